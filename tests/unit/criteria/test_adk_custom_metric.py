"""What becomes of what a custom metric returns; a stand-in answers for the worker."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import ValidationError
from support.agent_sessions import Place
from support.project import REFUNDS, turn

from ci_eval.criteria.adk_custom_metric import CustomMetric, Interval, _Metric
from ci_eval.records.cases import EvalCase, Status
from ci_eval.records.errors import TrialError
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace, Trial, TrialKey
from ci_eval.run.score import score
from ci_eval.runtime.workers.worker_pool import Pool

TWO = [turn("Refund 7", "Done."), turn("Thanks", "Bye.")]
KEY = TrialKey(agent="bot", evalset="e", case="c")
CASE = EvalCase.model_validate({"eval_id": "c", "conversation": TWO})


class Answering:
    """A pool of workers that answers with what it is given, and keeps what it is asked."""

    def __init__(self, reply: Any) -> None:
        self.reply = reply
        self.asked: Any = None

    async def call(self, message: Any, **_: object) -> Any:
        self.asked = message
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


def metric(**options: Any) -> CustomMetric:
    return CustomMetric.model_validate({"code": "shop.kind", "threshold": 0.5, **options})


def result(score: Any, status: str = "PASSED", *parts: tuple[Any, str], **more: Any) -> Any:
    """Return a worker's report of an evaluation result, by default of two invocations."""
    return {
        "score": score,
        "status": status,
        "rubrics": [],
        "invocations": [
            {"score": each, "status": said, "rubrics": []}
            for each, said in parts or ((score, status), (score, status))
        ],
        **more,
    }


def scored(criterion: CustomMetric, reply: Any) -> Score:
    pool = Answering(reply)
    scorer = _Metric(criterion, cast("Pool", pool))
    trace = Trace.model_validate({"key": KEY, "invocations": TWO})
    done = asyncio.run(score(Trial(KEY, CASE), trace, {"mine": criterion}, {"mine": scorer}))
    [found] = done.scores
    return found


def asked(criterion: CustomMetric, case: dict[str, Any], actual: Any) -> Any:
    pool = Answering(result(1.0))
    trace = Trace.model_validate({"key": KEY, "invocations": actual})
    scorer = _Metric(criterion, cast("Pool", pool))
    asyncio.run(scorer.score(EvalCase.model_validate(case), trace))
    return pool.asked


# --- What it returns --------------------------------------------------------------------------


def test_the_overall_score_is_judged_by_the_threshold() -> None:
    passed = scored(metric(), result(0.5, "PASSED", (0.2, "FAILED"), (0.8, "PASSED")))
    assert (passed.status, passed.value, passed.evidence) == (Status.PASSED, 0.5, None)
    assert [(each.status, each.value) for each in passed.invocations] == [
        (Status.FAILED, 0.2),
        (Status.PASSED, 0.8),
    ]
    failed = scored(metric(), result(0.25, "FAILED"))
    assert (failed.status, failed.value) == (Status.FAILED, 0.25)
    assert failed.evidence == {"status": "FAILED"}


def test_an_invocation_that_was_not_evaluated_is_skipped() -> None:
    found = scored(metric(), result(1.0, "PASSED", (None, "NOT_EVALUATED"), (1.0, "PASSED")))
    assert found.status is Status.PASSED
    assert [each.status for each in found.invocations] == [Status.SKIPPED, Status.PASSED]


def test_the_rubrics_of_what_failed_are_evidence() -> None:
    rubrics = [{"rubric_id": "kind", "score": 0.0, "rationale": "Rude."}]
    reply = result(0.0, "FAILED", (0.0, "FAILED"), (0.0, "FAILED"), rubrics=rubrics)
    reply["invocations"][1]["rubrics"] = rubrics
    found = scored(metric(), reply)
    assert found.evidence == {"status": "FAILED", "rubrics": rubrics}
    assert [each.evidence for each in found.invocations] == [None, found.evidence]


def test_where_less_is_better_it_passes_up_to_the_threshold() -> None:
    less = metric(lower_is_better=True)
    assert scored(less, result(0.5, "PASSED")).status is Status.PASSED
    failed = scored(less, result(0.75, "FAILED"))
    assert (failed.status, failed.better) == (Status.FAILED, "lower")


@pytest.mark.parametrize("status", ["PASSED", "FAILED", "INFORMATIONAL"])
def test_without_a_threshold_it_is_measured_whatever_it_says(status: str) -> None:
    found = scored(metric(threshold=None), result(0.25, status))
    assert (found.status, found.value, found.informational) == (Status.PASSED, 0.25, True)
    assert found.evidence == {"status": status}


@pytest.mark.parametrize(
    ("options", "reply", "said"),
    [
        ({}, result(None, "NOT_EVALUATED"), "returned NOT_EVALUATED, so nothing was measured"),
        ({}, result(0.8, "NOT_EVALUATED"), "returned NOT_EVALUATED, so nothing was measured"),
        ({}, result(None, "PASSED"), "returned PASSED without a score"),
        (
            {},
            result(1.5, "PASSED"),
            "returned 1.5, which is not between 0 and 1, the range in `metric_info`",
        ),
        (
            {},
            result(-0.1, "FAILED"),
            "returned -0.1, which is not between 0 and 1, the range in `metric_info`",
        ),
        (
            {},
            result(0.75, "FAILED"),
            (
                "returned 0.75 and FAILED, but 0.75 passes the threshold 0.5; have it use "
                "`eval_metric.criterion.threshold`, or set `lower_is_better: true`"
            ),
        ),
        (
            {},
            result(0.25, "PASSED"),
            (
                "returned 0.25 and PASSED, but 0.25 fails the threshold 0.5; have it use "
                "`eval_metric.criterion.threshold`, or set `lower_is_better: true`"
            ),
        ),
        (
            {},
            result(0.75, "INFORMATIONAL"),
            "returned INFORMATIONAL, which cannot pass or fail; remove the threshold",
        ),
        ({}, result(1.0, "PASSED", (1.0, "PASSED")), "returned 1 results for 2 invocations"),
        (
            {"threshold": None},
            {**result(1.0), "invocations": []},
            "returned 0 results for 2 invocations",
        ),
        ({}, {"unexpected": "int: 5"}, "returned int: 5; expected an EvaluationResult"),
    ],
)
def test_what_measures_nothing_or_contradicts_itself_is_an_error(
    options: dict[str, Any], reply: Any, said: str
) -> None:
    found = scored(metric(**options), reply)
    assert (found.status, found.value) == (Status.ERROR, None)
    assert found.reason == f"shop.kind {said}"


def test_a_worker_that_cannot_start_names_where_it_looked() -> None:
    error = TrialError("start", "cannot load 'shop:kind': No module named 'google.adk'")
    found = scored(metric(interpreter=".venv/bin/python"), error)
    assert found.reason == (
        "cannot load 'shop:kind': No module named 'google.adk'\n"
        "it was looked for under .venv/bin/python, in the configuration's directory and on "
        "PYTHONPATH; google-adk and the metric's dependencies must be installed there"
    )
    assert "under the Python of ci-eval," in scored(metric(), error).reason


def test_any_other_error_of_the_worker_is_told_as_it_is() -> None:
    assert scored(metric(), TrialError("crash", "the worker died")).reason == "the worker died"


# --- What it is told --------------------------------------------------------------------------


def test_it_is_told_the_metric_as_adk_has_it() -> None:
    given = metric(code="a.b.kind", criterion={"words": ["dear"]}, threshold=0.75)
    assert asked(given, {"eval_id": "c", "conversation": TWO}, TWO)["metric"] == {
        "metric_name": "kind",
        "threshold": 0.75,
        "criterion": {"words": ["dear"], "threshold": 0.75},
        "custom_function_path": "a.b.kind",
    }
    named = asked(metric(metric_name="mine"), {"eval_id": "c", "conversation": TWO}, TWO)
    assert named["metric"]["metric_name"] == "mine"


def test_arguments_that_are_null_stay_and_those_that_are_missing_do_not_become_empty() -> None:
    calls = [{"name": "a", "args": {"x": None}}, {"name": "b"}]
    turns = [{**TWO[0], "intermediate_data": {"tool_uses": calls}}, TWO[1]]
    told = asked(metric(), {"eval_id": "c", "conversation": turns}, turns)
    for each in (told["actual"], told["expected"]):
        assert each[0]["intermediate_data"]["tool_uses"] == calls


def test_rubrics_of_the_case_and_of_an_expected_invocation_are_put_to_what_was_done() -> None:
    general, own = (
        {"rubric_id": name, "rubric_content": {"text_property": f"It is {name}."}}
        for name in ("kind", "brief")
    )
    expected = [{**TWO[0], "rubrics": [own]}, TWO[1]]
    case = {"eval_id": "c", "conversation": expected, "rubrics": [general]}
    told = asked(metric(), case, TWO)
    assert [each["rubrics"] for each in told["actual"]] == [[general, own], [general]]
    assert [each.get("rubrics") for each in told["expected"]] == [[own], None]


def test_of_a_scenario_it_is_told_the_scenario_and_nothing_that_was_expected() -> None:
    scenario = {"starting_prompt": "Hi", "conversation_plan": "Ask for 7."}
    told = asked(metric(), {"eval_id": "c", "conversation_scenario": scenario}, TWO)
    assert (told["expected"], told["scenario"]) == (None, scenario)
    told = asked(metric(), {"eval_id": "c", "conversation": TWO}, TWO)
    assert told["scenario"] is None
    assert len(told["expected"]) == 2


# --- How it is set ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"code": "kind"}, r"expected 'module\.name', such as 'tests\.metrics\.polite', found"),
        ({"code": "shop:kind"}, "expected 'module"),
        ({"code": "shop.kind()"}, "expected 'module"),
        ({"code": ".kind"}, "expected 'module"),
        ({"criterion": {"threshold": 1}}, "'threshold' belongs beside 'criterion', not inside it"),
        ({"threshold": 1.5}, "the threshold must lie between 0 and 1"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        metric(**options)


def test_an_interval_may_be_open_at_its_ends() -> None:
    closed = Interval(min_value=0, max_value=5)
    half = Interval(min_value=0, open_at_min=True, max_value=5)
    open_ = Interval(min_value=0, open_at_min=True, max_value=5, open_at_max=True)
    held = [[each.holds(value) for value in (-1, 0, 2, 5, 6)] for each in (closed, half, open_)]
    assert held == [
        [False, True, True, True, False],
        [False, False, True, True, False],
        [False, False, True, False, False],
    ]


def test_the_threshold_lies_in_the_interval_that_metric_info_names() -> None:
    values = {"interval": {"min_value": 1, "max_value": 5}}
    found = metric(threshold=4, metric_info={"metric_value_info": values})
    assert found.bounds == (1, 5)
    assert scored(found, result(4.5)).value == 4.5
    anything = metric(threshold=-40, metric_info={"metric_value_info": {}})
    assert anything.bounds is None
    assert scored(anything, result(1e9)).value == 1e9


def test_where_and_how_long_it_runs_does_not_change_what_is_measured() -> None:
    there = metric(interpreter="python3", timeout_s=5, env={"A": "1"}, threshold=0.1)
    assert there.options() == metric().options()
    others = ({"criterion": {"a": 1}}, {"lower_is_better": True}, {"code": "shop.rude"})
    assert all(metric(**each).options() != metric().options() for each in others)


def test_the_digest_is_of_the_module_that_has_the_code(tmp_path: Path) -> None:
    place = Place(tmp_path)
    assert metric().made_of(place.context) is None
    place.write("shop.py", "def kind(*_): ...")
    before = metric().made_of(place.context)
    place.write("shop.py", "def kind(*_): return None")
    assert metric().made_of(place.context) not in (None, before)


def test_a_python_without_google_adk_is_said_to_lack_it(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("shop.py", "def kind(*_): ...")
    found = metric(interpreter=None, env=["COVERAGE_*"])
    trace = Trace.model_validate({"key": KEY, "invocations": REFUNDS["conversation"]})

    async def main() -> None:
        async with found.start(place.context) as scorer:
            await scorer.score(CASE, trace)

    with pytest.raises(TrialError, match=r"cannot load 'shop:kind': No module named 'google"):
        asyncio.run(main())
