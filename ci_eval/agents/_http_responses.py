"""Reading replies from the responses of an `http` agent."""

import json
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator

from ci_eval.agents._agent_reply import Reply, ReplyCall
from ci_eval.agents._http_expressions import Expression, ExpressionError, Nothing, value_of
from ci_eval.formats.event_lists import as_args
from ci_eval.records.cases import Json, Record
from ci_eval.records.errors import TrialError
from ci_eval.runtime.http import Request
from ci_eval.runtime.workers.worker_wire import shown

TOKENS = {
    "input_tokens": ("input_tokens", "prompt_tokens"),
    "output_tokens": ("output_tokens", "completion_tokens"),
    "cost_usd": ("cost_usd",),
}
"""The fields of usage, with the names that services give them."""


class _CallsAt(Record):
    """Expressions for the list of tool calls and for the fields of each."""

    each: Expression
    """The list, such as `answer.steps | selectattr("kind", "equalto", "tool")`."""
    name: Expression | None = None
    """The name of the tool in each `call`."""
    args: Expression | None = None
    """The arguments in each `call`: an object, or JSON text."""
    result: Expression | None = None
    """The tool's response in each `call`."""


def _as_calls(value: Json) -> Json:
    return {"each": value} if isinstance(value, str) else value


CallsAt = Annotated[_CallsAt, BeforeValidator(_as_calls, json_schema_input_type=str | _CallsAt)]
"""An expression for a list of calls, or expressions for the list and its fields."""


@dataclass(frozen=True)
class Reading:
    """Reads one answer."""

    request: Request
    answer: Json

    def reply(
        self, response: str | None, tool_calls: CallsAt | None, usage: str | None
    ) -> dict[str, Json]:
        """Return the reply in the format of a `command` agent, with the values at the expressions.

        Raises:
            TrialError: a value is missing, or has the wrong type.

        """
        reply = {"response": self._text(response)} if response else self._default_reply()
        if tool_calls is not None:
            reply["tool_calls"] = self._calls(tool_calls)
        if usage is not None:
            reply["usage"] = self._usage(usage)
        return reply

    def object_at(self, where: str) -> dict[str, Json] | None:
        """Return an object, such as the state of the session; `None` if the answer has none.

        Raises:
            TrialError: it is something else.

        """
        found = self._found(where)
        if not isinstance(found, dict | None):
            raise self._unexpected(where, found, "an object")
        return found

    def session(self, where: str) -> str | int:
        """Return the service's id of the session.

        Raises:
            TrialError: there is none.

        """
        found = self._found(where)
        if isinstance(found, bool) or not isinstance(found, str | int):
            raise self._unexpected(where, found, "the id of a session")
        return found

    def joined(self, delta: str) -> Json:
        """Return the events of a stream, and the text joined from their pieces at `delta`.

        Raises:
            TrialError: a piece is not text.

        """
        pieces = []
        for event in self.answer:
            found = self._found(delta, event=event)
            if not isinstance(found, str | None):
                raise self._unexpected(delta, found, "a piece of text")
            pieces.append(found)
        known = [each for each in pieces if each is not None]
        return {"text": "".join(known) if known else None, "events": self.answer}

    def _default_reply(self) -> dict[str, Json]:
        """Return a reply in the default format, without expressions."""
        if isinstance(self.answer, str):
            return {"response": self.answer}
        if isinstance(self.answer, dict) and "response" in self.answer:
            return {key: self.answer[key] for key in Reply.model_fields if key in self.answer}
        hint = "set `response` of the agent to the location of its text"
        message = f"{self.request.shown} answered {self._shown}, which has no 'response'; {hint}"
        raise TrialError("protocol", message)

    def _text(self, where: str) -> Json:
        found = self._found(where)
        if found is None:
            raise self._unexpected(where, found, "the text of the answer")
        return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)

    def _usage(self, where: str) -> Json:
        known = self.object_at(where) or {}
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
        """Return one call in the format of a reply."""
        made = _known_fields(call)
        for key, where in (("name", at.name), ("args", at.args), ("result", at.result)):
            found = self._found(where, call=call) if where else None
            if found is not None:
                made[key] = found
        return {**made, "args": as_args(made.get("args"))}

    def _found(self, where: str, **more: Json) -> Json:
        """Evaluate the expression `where`; `None` if it finds nothing."""
        try:
            found = value_of(where, {"answer": self.answer, **more})
        except ExpressionError as exc:
            message = f"{self.request.shown} answered {self._shown}, in which {exc}"
            raise TrialError("protocol", message) from exc
        return None if found is Nothing else found

    def _unexpected(self, where: str, found: Json, expected: str) -> TrialError:
        what = "nothing" if found is None else shown(found)
        if found is None and isinstance(self.answer, dict):
            keys = ", ".join(f"{key!r:.40}" for key in [*self.answer][:5])
            what = (
                f"nothing; `answer` has the keys {keys}" if keys else "nothing; `answer` is empty"
            )
        message = f"expected {expected} at `{where}`, found {what}"
        return TrialError("protocol", f"{self.request.shown} answered {self._shown}: {message}")

    @property
    def _shown(self) -> str:
        return self.request.quoted(json.dumps(self.answer, ensure_ascii=False))


def _known_fields(call: Json) -> dict[str, Json]:
    """Return the fields of a call in our format or in OpenAI's."""
    if not isinstance(call, dict):
        return {}
    function = call.get("function")
    if isinstance(function, dict):
        return {"name": function.get("name"), "args": function.get("arguments")}
    return {key: call[key] for key in ReplyCall.model_fields if key in call}
