"""What each criterion makes of a trace, and what becomes of the trial."""

import asyncio

import pytest
from project import REFUNDS, case, turn

from ci_eval.criteria.adk_efficiency import ToolCallCount
from ci_eval.criteria.adk_response_match_score import ResponseMatch
from ci_eval.criteria.adk_tool_trajectory_avg_score import ToolTrajectory
from ci_eval.plugins import Criterion
from ci_eval.records import EvalCase, Failure, Status, Trace, Trial, TrialKey
from ci_eval.results import Score, TrialResult
from ci_eval.score import MAX_EVIDENCE_CHARS, score, shortened

KEY = TrialKey(agent="bot", evalset="e", case="refunds")
TRAJECTORY = ToolTrajectory(threshold=1.0)


class Breaks(Criterion):
    """A criterion with a bug."""

    def score(self, case: EvalCase, trace: Trace) -> Score:
        raise KeyError("surprise")


def scored(criteria: dict[str, Criterion], done: object = REFUNDS, **more: object) -> TrialResult:
    expected = EvalCase.model_validate({**REFUNDS, "line": 7})
    given = {"key": KEY, "invocations": done["conversation"], **more}
    trace = Trace.model_validate(given)
    return asyncio.run(score(Trial(KEY, expected, "f"), trace, criteria, {}))


def test_a_trial_is_as_good_as_its_worst_criterion():
    good, bad = TRAJECTORY, ResponseMatch(threshold=0.9)
    wrong = case("refunds", turn("Refund 7", "No.", ("refund", {"order": 7})))
    result = scored({"calls": good, "words": bad}, wrong)

    assert [each.status for each in result.scores] == [Status.PASSED, Status.FAILED]
    assert [each.name for each in result.scores] == ["calls", "words"]
    assert result.status is Status.FAILED
    assert (result.line, result.case_fingerprint) == (7, "f")


def test_what_was_not_observed_is_an_error_in_every_criterion():
    result = scored({"calls": TRAJECTORY}, error=Failure(kind="timeout", message="too slow"))

    assert result.status is Status.ERROR
    assert result.scores[0].status is Status.ERROR
    assert result.scores[0].reason == "not observed: too slow"


def test_a_criterion_that_breaks_is_an_error_that_says_why():
    result = scored({"calls": TRAJECTORY, "broken": Breaks(threshold=1.0)})

    assert result.status is Status.ERROR
    assert result.scores[0].status is Status.PASSED
    assert result.scores[1].reason == "KeyError: 'surprise'"


def test_what_only_informs_decides_nothing():
    assert scored({"count": ToolCallCount()}).status is Status.SKIPPED
    assert scored({"calls": TRAJECTORY, "count": ToolCallCount()}).status is Status.PASSED


def test_evidence_is_shortened():
    long = "x" * (3 * MAX_EVIDENCE_CHARS)
    result = scored(
        {"words": ResponseMatch(threshold=0.9)}, case("refunds", turn("Refund 7", long))
    )
    evidence = result.scores[0].invocations[0].evidence

    assert evidence is not None
    assert len(evidence["actual"]) < MAX_EVIDENCE_CHARS + 100
    assert "8000 characters left out" in evidence["actual"]


@pytest.mark.parametrize("value", [1, None, "short", {"a": ["b", {"c": 1.5}]}])
def test_what_is_short_stays_as_it_is(value):
    assert shortened(value) == value
