"""What each criterion makes of a trace, and what becomes of the trial."""

import asyncio
from contextlib import asynccontextmanager
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.project import REFUNDS, case, turn

from ci_eval.criteria.adk_efficiency import ToolCallCount
from ci_eval.criteria.adk_matches import ResponseMatch, ToolTrajectory
from ci_eval.plugins.points import Criterion, WorkerCriterion
from ci_eval.records.cases import EvalCase, Status
from ci_eval.records.errors import DisturbedError, TrialError
from ci_eval.records.results import Score, TrialResult
from ci_eval.records.trials import Failure, Trace, Trial, TrialKey
from ci_eval.run.score import MAX_EVIDENCE_CHARS, MAX_EVIDENCE_ITEMS, answering, score, shortened

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


def test_the_tools_that_a_case_mocks_are_named():
    mocks = {"tools": {"refund": {"result": "done"}, "track": {"result": None}}}
    expected = EvalCase.model_validate({**REFUNDS, "tool_mocks": mocks})
    trace = Trace.model_validate({"key": KEY, "invocations": REFUNDS["conversation"]})
    result = asyncio.run(score(Trial(KEY, expected), trace, {"calls": TRAJECTORY}, {}))

    assert result.mocked == ("refund", "track")


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


def test_a_list_and_an_object_are_cut_at_their_ends():
    many = list(range(MAX_EVIDENCE_ITEMS + 5))
    cut = shortened({"many": many, "x" * 5_000: 1})
    first, second = cut

    assert cut[first] == [*many[:MAX_EVIDENCE_ITEMS], "[…5 more left out…]"]
    assert len(second) < MAX_EVIDENCE_CHARS + 100
    wide = shortened({str(each): each for each in many})
    assert len(wide) == MAX_EVIDENCE_ITEMS + 1
    assert wide["…"] == "[…5 more left out…]"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_whatever_is_small_enough_is_kept_whole(value):
    assert shortened(value) == value


class Told(Criterion):
    """A criterion with evidence of the whole conversation."""

    def score(self, case: EvalCase, trace: Trace) -> Score:
        return self.scored(0.5, reason="r" * 9_000, evidence={"text": "x" * 9_000})


def test_evidence_of_the_whole_is_shortened_and_so_is_the_reason():
    [found] = scored({"told": Told(threshold=1.0)}).scores

    assert len(found.evidence["text"]) < MAX_EVIDENCE_CHARS + 100
    assert "5000 characters left out" in found.evidence["text"]
    assert len(found.reason) < MAX_EVIDENCE_CHARS + 100


class Picky(Criterion):
    """A criterion that needs something of a case."""

    supports_scenario: ClassVar[bool] = False

    def lacks(self, case: EvalCase) -> str:
        return "has no order"

    def score(self, case: EvalCase, trace: Trace) -> Score:
        raise AssertionError


def test_a_case_that_lacks_what_is_needed_is_skipped_with_the_reason():
    result = scored({"calls": TRAJECTORY, "picky": Picky(threshold=1.0)})

    assert result.status is Status.PASSED
    assert result.scores[1].status is Status.SKIPPED
    assert result.scores[1].reason == "has no order"


def test_a_scenario_is_skipped_by_what_needs_a_written_conversation():
    plot = {"starting_prompt": "Hi", "conversation_plan": "Be kind."}
    leads = EvalCase(eval_id="leads", conversation_scenario=plot)
    trace = Trace.model_validate({"key": KEY, "invocations": REFUNDS["conversation"]})
    result = asyncio.run(score(Trial(KEY, leads, "f"), trace, {"picky": Picky(threshold=1.0)}, {}))

    assert result.status is Status.SKIPPED
    assert result.scores[0].reason == "needs a written conversation, not a scenario"


class Elsewhere(WorkerCriterion):
    """A criterion that is scored by something that was started."""

    @asynccontextmanager
    async def start(self, context):
        yield self


class Scores:
    """What was started: it scores a half, or raises."""

    def __init__(self, criterion: Elsewhere, error: Exception | None = None) -> None:
        self.criterion = criterion
        self.error = error

    async def score(self, case: EvalCase, trace: Trace) -> Score:
        await asyncio.sleep(0)
        if self.error:
            raise self.error
        return self.criterion.scored(0.5, evidence={"text": "x" * 9_000})


def scored_elsewhere(scorers: dict[str, Scores]) -> Score:
    expected = EvalCase.model_validate(REFUNDS)
    trace = Trace.model_validate({"key": KEY, "invocations": REFUNDS["conversation"]})
    criteria = {"mine": Elsewhere(threshold=1.0)}
    return asyncio.run(score(Trial(KEY, expected, "f"), trace, criteria, scorers)).scores[0]


def test_what_was_started_scores_in_its_own_time():
    found = scored_elsewhere({"mine": Scores(Elsewhere(threshold=1.0))})

    assert (found.name, found.status, found.value) == ("mine", Status.FAILED, 0.5)
    assert len(found.evidence["text"]) < MAX_EVIDENCE_CHARS + 100


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TrialError("crash", "the worker died"), "the worker died"),
        (DisturbedError("again and again", alone=True), "again and again"),
        (ValueError("surprise"), "ValueError: surprise"),
    ],
)
def test_what_was_started_may_fail_which_is_an_error(error, reason):
    found = scored_elsewhere({"mine": Scores(Elsewhere(threshold=1.0), error)})

    assert (found.status, found.value, found.reason) == (Status.ERROR, None, reason)


def test_what_was_not_started_is_an_error_and_never_a_score():
    found = scored_elsewhere({})

    assert (found.status, found.reason) == (Status.ERROR, "no criterion can score it")


def test_what_the_agent_wrote_is_kept_where_the_trial_did_not_pass():
    failed = ResponseMatch(threshold=0.9)
    wrong = case("refunds", turn("Refund 7", "No.", ("refund", {"order": 7})))
    error = Failure(kind="timeout", message="too slow")

    assert scored({"calls": TRAJECTORY}, output="looking").output == ""
    assert scored({"words": failed}, wrong, output="looking").output == "looking"
    assert scored({"calls": TRAJECTORY}, error=error, output="looking").output == "looking"


@pytest.mark.parametrize("criterion", [TRAJECTORY, ToolCallCount()])
def test_tool_calls_that_nobody_could_see_are_not_taken_for_none(criterion: Criterion):
    silent = turn("Refund 7", "Order 7 is refunded.") | {"intermediate_data": None}
    seen = scored({"calls": criterion, "words": ResponseMatch(threshold=0.9)}, case("r", silent))
    assert seen.scores[0].status is not Status.ERROR  # a recording is taken as ADK takes it

    unseen = scored(
        {"calls": criterion, "words": ResponseMatch(threshold=0.9)},
        case("r", silent | {"unseen": True}),
    )
    assert [each.status for each in unseen.scores] == [Status.ERROR, Status.PASSED]
    assert unseen.scores[0].reason == (
        "the agent does not report its tool calls, so they cannot be scored"
    )


def test_the_versions_in_a_trace_are_those_that_answered_the_agent():
    events = [
        {"author": "desk", "modelVersion": "m-001"},
        {"author": "user"},
        {"author": "helper", "modelVersion": "m-002", "systemFingerprint": "fp"},
        {"author": "desk", "modelVersion": "m-001"},
    ]
    turns = [{**turn("Hi", "Hello"), "intermediate_data": {"invocationEvents": events}}]
    key = TrialKey(agent="bot", evalset="e", case="c")
    trace = Trace.model_validate({"key": key, "invocations": turns})
    found = answering(trace, "")
    assert [(each.agent, each.label) for each in found] == [("bot", "m-001"), ("bot", "m-002 (fp)")]
    assert answering(Trace(key=key), "m") == ()
