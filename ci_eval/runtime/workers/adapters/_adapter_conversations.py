"""Conversations with agents, for all agent adapters: resolving the target, reading messages.

Adapters import this file under the agent's interpreter.  It needs only the standard library of
Python 3.9 and imports nothing but the files beside it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _adapter_reporting as reporting

if TYPE_CHECKING:
    import asyncio

Load = Callable[[str], Any]
"""Imports a `module:name`, as `worker.py` does."""
Json = Any


class Target:
    """The object that a target names: the agent, or a sync or async function that creates it."""

    def __init__(self, found: Any, convert: Callable[[Any], Any], expected: str) -> None:
        """Resolve `found`; `convert` returns the agent for it, or `None`.

        Raises:
            TypeError: it is not the `expected` object.

        """
        self._convert = convert
        self._expected = expected
        if inspect.isroutine(found):
            found = found()
        self._awaitable: Any = found if inspect.isawaitable(found) else None
        self._agent = None if self._awaitable else self._checked(found)
        self._task: asyncio.Task[Any] | None = None

    async def agent(self) -> Any:
        """Return the agent; an async function creates it on first use.

        The agent's clients belong to the event loop in which they are created.
        """
        import asyncio

        if self._awaitable is None:
            return self._agent
        if self._task is None:
            self._task = asyncio.ensure_future(self._created())
        # A timeout of one conversation must not cancel the creation for others.
        return await asyncio.shield(self._task)

    async def _created(self) -> Any:
        found = await self._awaitable
        try:
            return self._checked(found)
        except TypeError as exc:
            raise RefusedError(str(exc), kind="start") from None

    def _checked(self, found: Any) -> Any:
        agent = self._convert(found)
        if agent is None:
            what = f"expected {self._expected}, or a function without arguments that returns one"
            raise TypeError(f"{what}; found {reporting.in_short(found)}")
        return agent


class Conversations:
    """The callable for `worker.py`: each session is a conversation, until it is closed."""

    def __init__(self, target: Target, begin: Callable[[Any, dict[str, Any]], Any]) -> None:
        """Store the agent and `begin`, which begins a conversation with it in a session."""
        self._target = target
        self._begin = begin
        # By object identity, as sessions of two repeats may have the same id.
        self._open: dict[int, Any] = {}

    async def __call__(self, message: dict[str, Any], *, session: dict[str, Any]) -> Json:
        """Send `message`, and return the agent's reply."""
        try:
            agent = await self._target.agent()
            if id(session) not in self._open:
                self._open[id(session)] = self._begin(agent, session)
            return await self._open[id(session)].send(message)
        except RefusedError as exc:
            return reporting.failed(exc.kind, str(exc))

    def close(self, session: dict[str, Any]) -> None:
        """Close a conversation."""
        conversation = self._open.pop(id(session), None)
        if hasattr(conversation, "close"):
            conversation.close()


# --- The user's messages ----------------------------------------------------------------------


class RefusedError(ValueError):
    """A message cannot be passed to the agent, for the reason and with the kind given."""

    def __init__(self, message: str, *, kind: str = "unsupported") -> None:
        super().__init__(message)
        self.kind = kind


def text_of(message: dict[str, Any]) -> str:
    """Return the text of the user's message.

    Raises:
        RefusedError: it has other parts.

    """
    parts = message.get("parts") or ()
    plain = {"text", "thought", "thought_signature"}
    others = sorted({key for part in parts for key in part} - plain)
    if others:
        why = "only text can be passed to such an agent"
        raise RefusedError(f"the message has {others[0]!r}; {why}")
    return "\n".join(part["text"] for part in parts if part.get("text"))


def answers_of(message: dict[str, Any]) -> dict[str, Any]:
    """Return the answers to pending calls by call id; empty if there are none.

    An answer that was not an object originally is unwrapped.
    """
    parts = [part.get("function_response") for part in message.get("parts") or ()]
    return {
        part.get("id") or "": response["result"] if response.keys() == {"result"} else response
        for part in parts
        if part
        for response in [part.get("response") or {}]
    }


def approval(answer: Any) -> tuple[bool, str | None]:
    """Return True if a call is approved, and the reason if not.

    Raises:
        RefusedError: the answer is neither an approval nor a rejection.

    """
    decision = answer
    if isinstance(answer, dict):
        if "error" in answer:
            return False, str(answer["error"])
        decision = next((answer[key] for key in ("approved", "confirmed") if key in answer), answer)
    if not isinstance(decision, bool):
        shown = reporting.in_short(answer)
        raise RefusedError(f"expected true or false as the answer to an approval, found {shown}")
    return decision, None


def context_of(name: str | None, load: Load) -> Callable[[Json], Any]:
    """Return the function `name`, if given, which turns the session state into tools' context.

    Raises:
        TypeError: it is not callable.

    """
    if name is None:
        return lambda state: state
    found = load(name)
    if not callable(found):
        shown = reporting.in_short(found)
        raise TypeError(f"expected a function of the session state; found {shown}")
    return found  # type: ignore[no-any-return]  # just checked


def keep_state(session: dict[str, Any], context: Any) -> None:
    """Store the tools' context as the session state, if it is a JSON object."""
    state = reporting.as_json(context)
    if isinstance(state, dict):
        session["state"] = state
