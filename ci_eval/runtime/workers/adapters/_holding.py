"""What adapters of agents have in common: how a target is found, and what it is sent.

They run this file by its path, under the agent's interpreter, as `worker.py` runs them.  So it
makes do with the standard library of Python 3.8 and imports nothing of ci-eval.
"""

from __future__ import annotations

import inspect
import runpy
from os.path import dirname, join
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from ci_eval.runtime.workers.adapters import _telling as telling
else:
    from types import SimpleNamespace

    telling = SimpleNamespace(**runpy.run_path(join(dirname(__file__), "_telling.py")))

Json = Any


class Target:
    """What a target names: the agent itself, or a function that makes it, sync or async."""

    def __init__(self, found: Any, made_of: Callable[[Any], Any], expected: str) -> None:
        """Take what was found; `made_of` makes the agent of it, or returns `None`.

        Raises:
            TypeError: it is something else than what is expected.

        """
        self._made_of = made_of
        self._expected = expected
        if inspect.isroutine(found):
            found = found()
        self._coming: Any = found if inspect.isawaitable(found) else None
        self._agent = None if self._coming else self._checked(found)
        self._task: asyncio.Task[Any] | None = None

    async def agent(self) -> Any:
        """Return the agent, which an async function makes when it is first asked for.

        Its clients belong to the event loop that they are made in.
        """
        import asyncio

        if self._coming is None:
            return self._agent
        if self._task is None:
            self._task = asyncio.ensure_future(self._made())
        # Whoever is out of time does not take the agent from the others.
        return await asyncio.shield(self._task)

    async def _made(self) -> Any:
        found = await self._coming
        try:
            return self._checked(found)
        except TypeError as exc:
            raise RefusedError(str(exc), kind="start") from None

    def _checked(self, found: Any) -> Any:
        agent = self._made_of(found)
        if agent is None:
            what = f"expected {self._expected}, or a function without arguments that makes one"
            raise TypeError(f"{what}; found {telling.in_short(found)}")
        return agent


class Conversations:
    """What `worker.py` calls: each session is a conversation of its own, until it is closed."""

    def __init__(self, target: Target, begin: Callable[[Any, dict[str, Any]], Any]) -> None:
        """Take the agent and `begin`, which begins a conversation with it in a session."""
        self._target = target
        self._begin = begin
        # By the object: sessions of two repeats may bear the same id.
        self._held: dict[int, Any] = {}

    async def __call__(self, message: dict[str, Any], *, session: dict[str, Any]) -> Json:
        """Return what the agent does on `message`."""
        try:
            agent = await self._target.agent()
            if id(session) not in self._held:
                self._held[id(session)] = self._begin(agent, session)
            return await self._held[id(session)].send(message)
        except RefusedError as exc:
            return telling.failed(exc.kind, str(exc))

    def close(self, session: dict[str, Any]) -> None:
        """Let go of a conversation that is over."""
        conversation = self._held.pop(id(session), None)
        if hasattr(conversation, "close"):
            conversation.close()


# --- What the user says -----------------------------------------------------------------------


class RefusedError(ValueError):
    """A message cannot be given to the agent; says why, and of which kind the failure is."""

    def __init__(self, message: str, *, kind: str = "unsupported") -> None:
        super().__init__(message)
        self.kind = kind


def said_in(message: dict[str, Any]) -> str:
    """Return the text of the user's message.

    Raises:
        RefusedError: it holds something else.

    """
    parts = message.get("parts") or ()
    plain = {"text", "thought", "thought_signature"}
    others = sorted({key for part in parts for key in part} - plain)
    if others:
        raise RefusedError(
            f"the message holds {others[0]!r}, and only text is handed to such an agent"
        )
    return "\n".join(part["text"] for part in parts if part.get("text"))


def answers_of(message: dict[str, Any]) -> dict[str, Any]:
    """Return what calls that waited are answered, by their ids; empty where nothing is.

    An answer that was no object to begin with is given as it was.
    """
    parts = [part.get("function_response") for part in message.get("parts") or ()]
    return {
        part.get("id") or "": response["result"] if response.keys() == {"result"} else response
        for part in parts
        if part
        for response in [part.get("response") or {}]
    }


def approval(answer: Any) -> tuple[bool, str | None]:
    """Return whether a call is approved, and else why not.

    Raises:
        RefusedError: the answer does not say.

    """
    said = answer
    if isinstance(answer, dict):
        if "error" in answer:
            return False, str(answer["error"])
        said = next((answer[key] for key in ("approved", "confirmed") if key in answer), answer)
    if not isinstance(said, bool):
        raise RefusedError(
            f"an approval is answered with true or false, not with {telling.in_short(answer)}"
        )
    return said, None


def context_of(name: str | None, load: Callable[[str], Any]) -> Callable[[Json], Any]:
    """Return what makes the context that tools get of the session state: `name`, if it is given.

    Raises:
        TypeError: what is named cannot be called.

    """
    if name is None:
        return lambda state: state
    found = load(name)
    if not callable(found):
        raise TypeError(
            f"expected a function of the session state; found {telling.in_short(found)}"
        )
    return found  # type: ignore[no-any-return]  # just checked


def keep_state(session: dict[str, Any], context: Any) -> None:
    """Take what tools made of their context as the state, where it is one of names and values."""
    state = telling.as_json(context)
    if isinstance(state, dict):
        session["state"] = state
