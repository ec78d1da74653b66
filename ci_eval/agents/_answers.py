"""What the `http` agent reads from an answer: the reply that it tells of."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Protocol

from pydantic import BeforeValidator

from ci_eval.agents._expressions import Expression, ExpressionError, Nothing, value_of
from ci_eval.agents._reply import Reply, ReplyCall, to_invocation
from ci_eval.formats.events import as_args
from ci_eval.records.errors import TrialError
from ci_eval.records.model import Content, Invocation, Json, Record
from ci_eval.runtime.http import Request
from ci_eval.runtime.workers.wire import shown

TOKENS = {
    "input_tokens": ("input_tokens", "prompt_tokens"),
    "output_tokens": ("output_tokens", "completion_tokens"),
    "cost_usd": ("cost_usd",),
}
"""What usage is made of, and what services call it."""


class _CallsAt(Record):
    """Where tool calls are, and what each is made of."""

    each: Expression
    """Where the list is, such as `answer.steps | selectattr("kind", "equalto", "tool")`."""
    name: Expression | None = None
    """Where each `call` has the name of the tool."""
    args: Expression | None = None
    """Where it has the arguments: an object, or JSON in a text."""
    result: Expression | None = None
    """Where it has what the tool answered."""


def _as_calls(value: Json) -> Json:
    return {"each": value} if isinstance(value, str) else value


CallsAt = Annotated[_CallsAt, BeforeValidator(_as_calls, json_schema_input_type=str | _CallsAt)]
"""An expression for a list of calls, or with what each is made of."""


class Paths(Protocol):
    """Where things are in an answer."""

    @property
    def response(self) -> str | None:
        """The text."""

    @property
    def tool_calls(self) -> CallsAt | None:
        """The calls."""

    @property
    def usage(self) -> str | None:
        """What it took."""

    @property
    def stream(self) -> str | None:
        """Whether the answer was put together from pieces."""


@dataclass(frozen=True)
class Reading:
    """One answer that is read."""

    request: Request
    answer: Json

    def reply(self, paths: Paths) -> dict[str, Json]:
        """Return the reply as a command would give it.

        Raises:
            TrialError: something is not there, or is something else.

        """
        where = paths.response or ("answer.text" if paths.stream else None)
        reply: dict[str, Json] = {"response": self._text(where)} if where else self._own()
        if paths.tool_calls is not None:
            reply["tool_calls"] = self._calls(paths.tool_calls)
        if paths.usage is not None:
            reply["usage"] = self._usage(paths.usage)
        return reply

    def state(self, where: str) -> dict[str, Json] | None:
        """Return the state of the session; `None` where the answer has none.

        Raises:
            TrialError: it is no object.

        """
        found = self._found(where)
        if not isinstance(found, dict | None):
            raise self._unexpected(where, found, "an object")
        return found

    def session(self, where: str) -> str | int:
        """Return what the service calls the session.

        Raises:
            TrialError: it says nothing.

        """
        found = self._found(where)
        if isinstance(found, bool) or not isinstance(found, str | int):
            raise self._unexpected(where, found, "the id of a session")
        return found

    def put_together(self, delta: str) -> Json:
        """Return the events of a stream with the text of their pieces, which are at `delta`.

        Raises:
            TrialError: a piece is no text.

        """
        pieces = []
        for event in self.answer:
            found = self._found(delta, event=event)
            if not isinstance(found, str | None):
                raise self._unexpected(delta, found, "a piece of text")
            pieces.append(found)
        known = [each for each in pieces if each is not None]
        return {"text": "".join(known) if known else None, "events": self.answer}

    def _own(self) -> dict[str, Json]:
        """Return a reply of the shape that nobody has to explain."""
        if isinstance(self.answer, str):
            return {"response": self.answer}
        if isinstance(self.answer, dict) and "response" in self.answer:
            return {key: self.answer[key] for key in Reply.model_fields if key in self.answer}
        where = "say with `response` of the agent where its text is"
        message = f"{self.request.shown} answered {self._shown}, which has no 'response'; {where}"
        raise TrialError("protocol", message)

    def _text(self, where: str) -> str:
        found = self._found(where)
        if found is None:
            raise self._unexpected(where, found, "the text of the answer")
        return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)

    def _usage(self, where: str) -> Json:
        found = self._found(where)
        if not isinstance(found, dict | None):
            raise self._unexpected(where, found, "an object")
        known = found or {}
        return {
            name: next((known[key] for key in keys if key in known), None)
            for name, keys in TOKENS.items()
        }

    def _calls(self, at: CallsAt) -> list[Json] | None:
        found = self._found(at.each)
        if not isinstance(found, list | None):
            raise self._unexpected(at.each, found, "a list of tool calls")
        return None if found is None else [self._call(at, each) for each in found]

    def _call(self, at: CallsAt, call: Json) -> Json:
        """Return one call, as a reply has it."""
        made = _usual(call)
        for key, where in (("name", at.name), ("args", at.args), ("result", at.result)):
            found = self._found(where, call=call) if where else None
            if found is not None:
                made[key] = found
        return {**made, "args": as_args(made.get("args"))}

    def _found(self, where: str, **more: Json) -> Json:
        """Return what the expression `where` finds; `None` where that is nothing."""
        try:
            found = value_of(where, {"answer": self.answer, **more})
        except ExpressionError as exc:
            message = f"{self.request.shown} answered {self._shown}, in which {exc}"
            raise TrialError("protocol", message) from exc
        return None if found is Nothing else found

    def _unexpected(self, where: str, found: Json, expected: str) -> TrialError:
        what = "nothing" if found is None else shown(found)
        message = f"expected {expected} at `{where}`, found {what}"
        return TrialError("protocol", f"{self.request.shown} answered {self._shown}: {message}")

    @property
    def _shown(self) -> str:
        return self.request.quoted(json.dumps(self.answer, ensure_ascii=False))


def told(message: Content, reply: Mapping[str, Json], *, seconds: float, number: int) -> Invocation:
    """Return the invocation that `reply` tells of, as `to_invocation` does.

    Where the reply does not say which tools were called, there is no trajectory.

    Raises:
        TrialError: the reply is not of the shape that is expected.

    """
    found = to_invocation(message, dict(reply), seconds=seconds, number=number)
    if reply.get("tool_calls") is None:
        return found.model_copy(update={"intermediate_data": None})
    return found


def _usual(call: Json) -> dict[str, Json]:
    """Return what a call has under the names of ours, or of OpenAI's."""
    if not isinstance(call, dict):
        return {}
    function = call.get("function")
    if isinstance(function, dict):
        return {"name": function.get("name"), "args": function.get("arguments")}
    return {key: call[key] for key in ReplyCall.model_fields if key in call}
