"""A case in ADK's words: what is not measured is never a pass."""

import json

import pytest

from ci_eval.cli.adk.adk_eval_result_schema import CaseResult, EvalStatus, case_result
from ci_eval.plugins import points
from ci_eval.records.cases import Content, EvalCase, Invocation, Status
from ci_eval.records.results import InvocationScore, Score, TrialResult
from ci_eval.records.trials import Failure, Recording, TrialKey

KEY = TrialKey(agent="shop", evalset="s", case="c")
SAID = Invocation(
    user_content=Content.of_text("Hi", role="user"),
    final_response=Content.of_text("Hello", role="model"),
    cost_usd=0.5,
    nodes=("MAIN",),
)
CASE = EvalCase(eval_id="c", conversation=(SAID,))


def result(*scores: Score, status: Status, turns: int = 1, **more) -> CaseResult:
    found = TrialResult(key=KEY, status=status, scores=scores, **more)
    criteria = {"r": points.criterion["adk/response_match_score"](threshold=0.5)}
    return case_result(
        found, Recording(invocations=(SAID,) * turns), CASE, criteria, eval_set_id="s"
    )


def score(status: Status, value: float | None = None, parts: int = 1, **more) -> Score:
    part = InvocationScore(status=status, value=value)
    given = {"criterion": "adk/response_match_score", "name": "r", "threshold": 0.5, **more}
    return Score(status=status, value=value, invocations=(part,) * parts, **given)


@pytest.mark.parametrize(
    ("status", "value", "expected"),
    [
        (Status.PASSED, 1.0, EvalStatus.PASSED),
        (Status.FAILED, 0.0, EvalStatus.FAILED),
        (Status.ERROR, None, EvalStatus.NOT_EVALUATED),
        (Status.SKIPPED, None, EvalStatus.NOT_EVALUATED),
    ],
)
def test_a_status_becomes_adks(status, value, expected):
    found = result(score(status, value), status=status)

    (metric,) = found.overall_eval_metric_results
    (turn,) = found.eval_metric_result_per_invocation
    assert found.final_eval_status is metric.eval_status is expected
    assert turn.eval_metric_results[0].eval_status is expected
    assert metric.score == value


@pytest.mark.parametrize(
    ("status", "value", "expected"),
    [
        (Status.PASSED, 3.0, EvalStatus.INFORMATIONAL),
        (Status.SKIPPED, None, EvalStatus.INFORMATIONAL),
        (Status.ERROR, None, EvalStatus.NOT_EVALUATED),
    ],
)
def test_what_only_measures_is_informational_unless_it_went_wrong(status, value, expected):
    measured = score(status, value, informational=True, threshold=None, name="adk/token_usage_v1")

    (metric,) = result(measured, status=Status.PASSED).overall_eval_metric_results

    assert metric.eval_status is expected
    assert metric.metric_name == "token_usage_v1"
    assert metric.criterion is None


def test_a_criterion_of_the_whole_conversation_says_nothing_of_its_invocations():
    whole = score(Status.PASSED, 1.0, parts=0)

    found = result(whole, status=Status.PASSED, turns=2)

    statuses = [
        each.eval_metric_results[0].eval_status for each in found.eval_metric_result_per_invocation
    ]
    assert statuses == [EvalStatus.NOT_EVALUATED] * 2
    assert found.overall_eval_metric_results[0].eval_status is EvalStatus.PASSED


def test_what_was_seen_beyond_the_expected_has_nothing_to_be_compared_with():
    found = result(score(Status.PASSED, 1.0, parts=2), status=Status.PASSED, turns=2)

    expected = [each.expected_invocation for each in found.eval_metric_result_per_invocation]
    assert expected == [SAID, None]


def test_a_case_that_was_not_observed_has_neither_metrics_nor_invocations():
    failure = Failure(kind="timeout", message="timed out after 3 s")

    found = result(score(Status.ERROR), status=Status.ERROR, error=failure)

    assert found.final_eval_status is EvalStatus.NOT_EVALUATED
    assert found.overall_eval_metric_results == found.eval_metric_result_per_invocation == ()


def test_what_adk_has_no_field_for_is_left_out():
    value = json.loads(result(score(Status.PASSED, 1.0), status=Status.PASSED).as_json())

    (turn,) = value["eval_metric_result_per_invocation"]
    for invocation in (turn["actual_invocation"], turn["expected_invocation"]):
        assert invocation.keys() == {
            "invocation_id",
            "user_content",
            "final_response",
            "creation_timestamp",
        }


def test_the_options_of_a_metric_are_kept_beside_its_threshold():
    model = points.criterion["adk/tool_trajectory_avg_score"]
    criteria = {"t": model(threshold=0.5, match_type="IN_ORDER")}
    trial = TrialResult(
        key=KEY,
        status=Status.PASSED,
        scores=(score(Status.PASSED, 1.0, name="t", criterion=model.type_name),),
    )

    found = case_result(trial, Recording(invocations=(SAID,)), CASE, criteria, eval_set_id="s")

    (metric,) = found.overall_eval_metric_results
    assert metric.criterion == {"threshold": 0.5, "match_type": "IN_ORDER"}
    assert metric.custom_function_path is None


def test_a_custom_metric_is_named_with_its_code():
    model = points.criterion["adk/custom_metric"]
    criteria = {"mine": model(code="shop.metrics.kind", threshold=0.5, criterion={"words": ["a"]})}
    trial = TrialResult(
        key=KEY,
        status=Status.PASSED,
        scores=(score(Status.PASSED, 1.0, name="mine", criterion=model.type_name),),
    )

    (metric,) = case_result(
        trial, Recording(invocations=(SAID,)), CASE, criteria, eval_set_id="s"
    ).overall_eval_metric_results

    assert metric.custom_function_path == "shop.metrics.kind"
    assert metric.criterion == {"threshold": 0.5, "words": ["a"]}
