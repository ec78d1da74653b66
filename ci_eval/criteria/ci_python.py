"""A criterion implemented as a Python function of the user."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field, ValidationError, field_validator

from ci_eval.plugins.points import Scorer, WorkerCriterion, criterion
from ci_eval.records.bounds import Value
from ci_eval.records.cases import EvalCase, Invocation, Json, Record, Status
from ci_eval.records.errors import BadAnswerError, TrialError
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.workers.user_function import PythonTarget
from ci_eval.runtime.workers.worker_pool import Pool
from ci_eval.runtime.workers.worker_wire import shown
from ci_eval.text.validation_messages import described

_EXPECTED = 'expected true, false, a number from 0 to 1, None, or {"score", "reason"?, "evidence"?}'


class Returned(Record):
    """A returned score with a reason or evidence."""

    score: float | None = Field(ge=0, le=1)
    reason: str = ""
    evidence: dict[str, Json] | None = None

    @field_validator("score", mode="before")
    @classmethod
    def _true_is_1(cls, value: Json) -> Json:
        return float(value) if isinstance(value, bool) else value


@criterion("ci/python")
class Python(PythonTarget, WorkerCriterion):
    """A Python function of your own, `module:function`, run in a separate process.

    It is called once per trial, with one dictionary: `response` and `expected_response` (the
    last ones, as text), `tool_calls` and `expected_tool_calls` (of the whole conversation, each
    `{"name", "args", "result"}`), `invocations` (the same for each message, with the `message`),
    `final_state`, `duration_s`, and `case` (in ADK's format).  It returns true or false, a number
    from 0 to 1, `None` if it does not apply (the score is skipped), or `{"score": …, "reason":
    text, "evidence": {…}}`.  Exceptions and other return values are errors, never scores.  If the
    module changed, its scores are not compared with those of a baseline.  If a pull request changes
    the module, or a module of the repository that it imports, the report says so.
    """

    shorthand = "python"
    example: ClassVar[Mapping[str, Json]] = {"python": "checks:polite"}

    threshold: Value | None = 1.0
    """Cases with at least this value pass."""
    timeout_s: float = Field(default=60.0, gt=0)
    """Timeout of one call in seconds; exceeding it is an error."""

    def options(self) -> dict[str, Json]:
        """Return the options that affect the value, not where and how long it runs."""
        return {"python": self.python}

    @property
    def module(self) -> str:
        """The function's module."""
        return self.python.partition(":")[0]

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[Scorer]:
        """Start a worker for the first trial; leaving the context ends it."""
        async with self.pool_of(
            self.python, context, check=self.code_check(self.module, context)
        ) as pool:
            yield _Function(self, pool)


@dataclass(frozen=True)
class _Function:
    """The function, in its worker."""

    criterion: Python
    pool: Pool

    async def score(self, case: EvalCase, trace: Trace) -> Score:
        """Return the function's score of one trial."""
        name, timeout_s = self.criterion.python, self.criterion.timeout_s
        try:
            given = _payload(case, trace)
            return self._score(await self.pool.call(given, name=name, timeout_s=timeout_s))
        except BadAnswerError as exc:
            raise TrialError("protocol", f"{name} {exc}; {_EXPECTED}") from exc

    def _score(self, reply: Json) -> Score:
        given = reply if isinstance(reply, dict) else {"score": reply}
        try:
            returned = Returned.model_validate(given, strict=True)
        except ValidationError as exc:
            wrong = "; ".join(described(exc, Returned))
            message = f"{self.criterion.python} returned {shown(reply)}: {wrong}; {_EXPECTED}"
            raise TrialError("protocol", message) from exc
        if returned.score is None:
            reason = returned.reason or f"{self.criterion.python} returned no score: does not apply"
            return self.criterion.unscored(Status.SKIPPED, reason)
        return self.criterion.scored(
            returned.score, reason=returned.reason, evidence=returned.evidence
        )


# --- Input of the function --------------------------------------------------------------------


def _payload(case: EvalCase, trace: Trace) -> dict[str, Json]:
    expected: Sequence[Invocation] = case.conversation or ()
    actual = trace.invocations
    return {
        "response": _last_response(actual),
        "expected_response": _last_response(expected),
        "tool_calls": None if any(each.unseen for each in actual) else _calls(actual),
        "expected_tool_calls": _calls(expected),
        "invocations": [
            _turn(each, expected[number] if number < len(expected) else None)
            for number, each in enumerate(actual)
        ],
        "final_state": trace.final_state,
        "duration_s": trace.duration_s,
        "case": case.model_dump(mode="json", exclude_none=True),
    }


def _turn(actual: Invocation, expected: Invocation | None) -> dict[str, Json]:
    return {
        "message": actual.user,
        "response": actual.response,
        "expected_response": _response(expected),
        "tool_calls": None if actual.unseen else _calls([actual]),
        "expected_tool_calls": _calls([expected] if expected else []),
    }


def _last_response(invocations: Sequence[Invocation]) -> str | None:
    return _response(invocations[-1]) if invocations else None


def _response(invocation: Invocation | None) -> str | None:
    return invocation.response if invocation and invocation.final_response else None


def _calls(invocations: Iterable[Invocation]) -> list[dict[str, Json]]:
    return [call._asdict() for each in invocations for call in each.tool_calls]
