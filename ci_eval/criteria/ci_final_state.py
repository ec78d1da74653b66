"""Whether a conversation leaves the session in the expected state."""

from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import Field

from ci_eval.criteria._json_values import equal
from ci_eval.criteria._share import Share, share
from ci_eval.plugins.points import criterion
from ci_eval.records.model import EvalCase, Json, Status
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace

_MAX_SHOWN = 50
"""How many differences the evidence names."""
_MISSING = object()
"""What stands where a state has nothing."""


@criterion("ci/final_state")
class FinalState(Share):
    """The share of expected values that the session's final state has.

    1 where each value is there and equal, 0 where none is. Expected is what the case says as
    `final_session_state`, or `state`; a case that expects nothing is skipped without it. Objects
    are compared key by key, and what they have beyond the expected keys does not matter; lists
    and all other values must be equal as a whole. An agent that does not report its final state
    is an error.
    """

    shorthand: ClassVar[str] = "state"

    state: Annotated[dict[str, Json], Field(min_length=1)] | None = None
    """The state, instead of what the cases expect."""

    def lacks(self, case: EvalCase) -> str:
        """Say that no state is expected."""
        return "" if self.state or case.final_session_state else "expects no final state"

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Compare the states value by value."""
        expected = self.state or case.final_session_state
        if not expected:
            return self.scored(None, reason=self.lacks(case))
        if trace.final_state is None:
            return self.unscored(
                Status.ERROR, "the agent does not report the session's final state"
            )
        compared = list(_compared(expected, trace.final_state))
        wrong: list[Json] = [_told(*each) for each in compared if not _same(*each[1:])]
        value = share(_same(wanted, found) for _, wanted, found in compared)
        return self.scored(value, evidence={"differing_values": wrong[:_MAX_SHOWN]})


def _compared(expected: Json, actual: Json, *, at: str = "") -> Iterator[tuple[str, Json, Json]]:
    """Yield the place of each expected value, the value, and what is there."""
    if not isinstance(expected, dict) or not expected:
        yield at, expected, actual
        return
    for key, value in expected.items():
        inside = actual.get(key, _MISSING) if isinstance(actual, dict) else _MISSING
        yield from _compared(value, inside, at=f"{at}.{key}" if at else key)


def _same(expected: Json, actual: Json) -> bool:
    # Of an object that is expected empty nothing is asked but to be one.
    return isinstance(actual, dict) if expected == {} else equal(expected, actual)


def _told(place: str, expected: Json, actual: Json) -> Json:
    found = {} if actual is _MISSING else {"actual": actual}
    return {"at": place, "expected": expected, **found}
