"""What every criterion does alike: its threshold, its status, its evidence."""

from typing import Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.project import GREETS

from ci_eval.plugins.criterion import MAX_VALUE
from ci_eval.plugins.points import Criterion
from ci_eval.records.cases import EvalCase, Status
from ci_eval.records.results import InvocationScore, Score
from ci_eval.records.trials import Trace

CASE = EvalCase.model_validate(GREETS)
SCENARIO = EvalCase.model_validate(
    {
        "eval_id": "leads",
        "conversation_scenario": {"starting_prompt": "Hi", "conversation_plan": "Be kind."},
    }
)


class Always(Criterion):
    """Is judged."""

    def score(self, case: EvalCase, trace: Trace) -> Score:
        raise AssertionError


class Optionally(Always):
    """Is judged where there is a threshold."""

    takes_threshold: ClassVar[Literal["always", "optionally", "never"]] = "optionally"
    interval: ClassVar[tuple[float, float] | None] = None
    better: ClassVar[Literal["higher", "lower"]] = "lower"


class Never(Always):
    """Is shown."""

    takes_threshold: ClassVar[Literal["always", "optionally", "never"]] = "never"


class Stars(Always):
    """Is one star to five."""

    interval: ClassVar[tuple[float, float] | None] = (1.0, 5.0)


# --- Thresholds -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (Always, {"threshold": 0}),
        (Always, {"threshold": 1}),
        (Stars, {"threshold": 5}),
        (Optionally, {}),
        (Optionally, {"threshold": 1e9}),
        (Optionally, {"threshold": -5}),
        (Never, {}),
        (Never, {"threshold": None}),
    ],
)
def test_a_threshold_that_fits_is_taken(model: type[Criterion], given: dict[str, Any]) -> None:
    criterion = model.model_validate(given)
    assert criterion.informational is (given.get("threshold") is None)


@pytest.mark.parametrize(
    ("model", "given", "message"),
    [
        (Always, {}, "needs a threshold"),
        (Always, {"threshold": None}, "needs a threshold"),
        (Always, {"threshold": 1.01}, "the threshold must lie between 0 and 1"),
        (Stars, {"threshold": 0.9}, "the threshold must lie between 1 and 5"),
        (Never, {"threshold": 0}, "takes no threshold; it is informational"),
        (Optionally, {"threshold": float("nan")}, "finite"),
    ],
)
def test_a_threshold_that_does_not_fit_is_refused(
    model: type[Criterion], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        model.model_validate(given)


# --- Scores -----------------------------------------------------------------------------------


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_value_passes_from_the_threshold_on_or_up_to_it(value: float, threshold: float) -> None:
    higher, lower = Always(threshold=threshold), Optionally(threshold=threshold)
    assert (higher.scored(value).status is Status.PASSED) is (value >= threshold)
    assert (lower.scored(value).status is Status.PASSED) is (value <= threshold)


def test_a_score_says_what_it_is_of() -> None:
    found = Optionally(threshold=2.0).scored(3.0, [InvocationScore(status="failed", value=3.0)])
    assert (found.status, found.value, found.threshold) == (Status.FAILED, 3.0, 2.0)
    assert (found.better, found.informational, len(found.invocations)) == ("lower", False, 1)


def test_what_only_informs_passes_whatever_it_is() -> None:
    found = Optionally().scored(1e9)
    assert (found.status, found.informational) == (Status.PASSED, True)


def test_no_value_is_skipped_and_never_passed() -> None:
    for criterion in (Always(threshold=0.0), Optionally(), Never()):
        found = criterion.scored(None, reason="nothing there")
        assert (found.status, found.value, found.reason) == (Status.SKIPPED, None, "nothing there")
        error = criterion.unscored(Status.ERROR, "broken")
        assert (error.status, error.value, error.reason) == (Status.ERROR, None, "broken")


@pytest.mark.parametrize("value", [1.1 * MAX_VALUE, -1.1 * MAX_VALUE, 1e308])
def test_a_value_that_no_measurement_has_is_an_error(value: float) -> None:
    for criterion in (Optionally(), Optionally(threshold=5.0)):
        found = criterion.scored(value, evidence={"seconds": value})
        assert (found.status, found.value, found.evidence) == (Status.ERROR, None, None)
        assert found.reason == f"{value:g} is out of range for a measurement"
    assert Optionally().scored(MAX_VALUE).value == MAX_VALUE


@pytest.mark.parametrize(
    ("criterion", "value", "kept"),
    [
        (Always(threshold=0.5), 0.4, True),
        (Always(threshold=0.5), 0.5, False),
        (Always(threshold=0.5), None, False),
        (Optionally(), 0.5, True),
        (Optionally(threshold=0.5), 0.5, False),
        (Optionally(threshold=0.5), 0.6, True),
    ],
)
def test_evidence_is_kept_where_the_score_failed_or_only_informs(
    criterion: Criterion, value: float | None, kept: bool
) -> None:
    found = criterion.scored(value, evidence={"why": "so"})
    assert found.evidence == ({"why": "so"} if kept else None)


# --- What stands in the way -------------------------------------------------------------------


class Written(Always):
    """Needs a conversation that is written down, with something in it."""

    supports_scenario: ClassVar[bool] = False

    def lacks(self, case: EvalCase) -> str:
        assert case.conversation is not None
        return "" if case.tags else "has no tags"


def test_a_case_is_hindered_by_what_it_is_before_what_it_lacks() -> None:
    written = Written(threshold=1.0)
    assert written.skip_reason(SCENARIO) == "needs a written conversation, not a scenario"
    assert written.skip_reason(CASE) == "has no tags"
    assert written.skip_reason(CASE.model_copy(update={"tags": ("x",)})) == ""
    assert Always(threshold=1.0).skip_reason(SCENARIO) == ""


def test_neither_threshold_nor_switch_decides_the_value() -> None:
    assert Always(threshold=0.5).options() == Always(threshold=1.0, enabled=False).options() == {}
