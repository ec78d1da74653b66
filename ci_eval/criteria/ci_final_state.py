"""Comparison of the session's final state with the expected one."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from ci_eval.criteria._share_score import Share, share
from ci_eval.plugins.points import criterion
from ci_eval.records.cases import EvalCase, Json, Status
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace
from ci_eval.runtime.workers.canned_tools import equal

_MAX_SHOWN = 50
"""Maximum number of differences in the evidence."""
_MISSING = object()
"""Marks a missing value."""


@criterion("ci/final_state")
class FinalState(Share):
    """The share of expected values in the session's final state.

    1 if every expected value exists and is equal, 0 if none is. The expected state is the option
    `state`, or else the case's `final_session_state`; without either, the case is skipped. Objects
    are compared key by key, ignoring keys that are not expected; lists and all other values must be
    equal as a whole. An agent that does not report its final state is an error.
    """

    shorthand = "state"

    state: Annotated[dict[str, Json], Field(min_length=1)] | None = None
    """Expected state, instead of that of the cases."""

    def lacks(self, case: EvalCase) -> str:
        """Return a message if no state is expected; empty otherwise."""
        return "" if self.state or case.final_session_state else "expects no final state"

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Compare the states value by value."""
        expected = self.state or case.final_session_state
        if not expected:
            return self.scored(None, reason=self.lacks(case))
        if trace.final_state is None:
            reason = "the agent does not report the session's final state"
            return self.unscored(Status.ERROR, reason)
        compared = list(_compared(expected, trace.final_state))
        wrong: list[Json] = [_difference(*each) for each in compared if not _same(*each[1:])]
        value = share(_same(wanted, found) for _, wanted, found in compared)
        return self.scored(value, evidence={"differing_values": wrong[:_MAX_SHOWN]})


def _compared(expected: Json, actual: Json, *, at: str = "") -> Iterator[tuple[str, Json, Json]]:
    """Yield each expected value: its path, the value itself, and the actual value."""
    if not isinstance(expected, dict) or not expected:
        yield at, expected, actual
        return
    for key, value in expected.items():
        inside = actual.get(key, _MISSING) if isinstance(actual, dict) else _MISSING
        yield from _compared(value, inside, at=f"{at}.{key}" if at else key)


def _same(expected: Json, actual: Json) -> bool:
    # An expected empty object only requires an object.
    return isinstance(actual, dict) if expected == {} else equal(expected, actual)


def _difference(place: str, expected: Json, actual: Json) -> Json:
    found = {} if actual is _MISSING else {"actual": actual}
    return {"at": place, "expected": expected, **found}
