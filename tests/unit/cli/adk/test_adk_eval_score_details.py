"""Details are averaged as ADK averages them; the numbers are worked out by hand."""

from hypothesis import given
from hypothesis import strategies as st

from ci_eval.cli.adk.adk_eval_score_details import (
    Details,
    Durations,
    RubricScore,
    TokenUsage,
    details_of,
    overall_details,
)
from ci_eval.records.cases import Status
from ci_eval.records.results import InvocationScore, Score

ANY = Score(criterion="x/y", name="x", status=Status.SKIPPED)


def details(criterion: str, evidence, value: float | None = None) -> Details:
    score = ANY.model_copy(update={"criterion": criterion})
    part = InvocationScore(status=Status.PASSED, value=value, evidence=evidence)
    return details_of(score, part)


def test_input_is_prompt_and_tool_use_and_output_is_candidates_and_reasoning():
    counts = {"input": 12, "tool_use": 2, "cached": 4, "output": 8, "reasoning": 5}

    found = details("adk/token_usage_v1", counts, 20.0).token_usage_details

    assert found == TokenUsage(
        total_tokens=20,
        input_tokens=12,
        prompt_tokens=10,
        cached_tokens=4,
        tool_use_tokens=2,
        output_tokens=8,
        candidates_tokens=3,
        reasoning_tokens=5,
    )


def test_tokens_that_nobody_reported_are_not_zero():
    assert details("adk/token_usage_v1", None) == Details(token_usage_details=TokenUsage())


def test_tokens_are_divided_by_all_invocations_and_seconds_by_the_timed_ones():
    parts = [
        Details(token_usage_details=TokenUsage(total_tokens=3, cached_tokens=2)),
        Details(token_usage_details=TokenUsage(total_tokens=6)),
        Details(token_usage_details=TokenUsage()),
    ]
    timed = [
        Details(duration_details=Durations(total_seconds=1.0, tool_seconds=0.25)),
        Details(duration_details=Durations(total_seconds=2.0005)),
        Details(duration_details=Durations()),
    ]

    tokens = overall_details(ANY, parts).token_usage_details

    assert tokens == TokenUsage(total_tokens=3.0, cached_tokens=2 / 3)
    assert overall_details(ANY, timed).duration_details == Durations(
        total_seconds=1.5, tool_seconds=0.25
    )


def test_a_rubric_of_ours_is_one_or_zero_and_one_of_a_custom_metric_is_what_it_says():
    evidence = {
        "rubrics": [
            {"rubric_id": "kind", "verdict": "yes", "rationale": "It says please."},
            {"rubric_id": "short", "verdict": "no", "rationale": ""},
            {"rubric_id": "open", "verdict": None},
            {"rubric_id": "own", "score": 0.4},
            {"verdict": "yes"},
            "[…3 more left out…]",
        ]
    }

    assert details("adk/rubric_based_final_response_quality_v1", evidence).rubric_scores == (
        RubricScore(rubric_id="kind", score=1.0, rationale="It says please."),
        RubricScore(rubric_id="short", score=0.0),
        RubricScore(rubric_id="open"),
        RubricScore(rubric_id="own", score=0.4),
    )


def test_a_rubric_is_averaged_over_the_invocations_that_have_a_verdict():
    yes, no = (RubricScore(rubric_id="a", score=each, rationale="r") for each in (1.0, 0.0))
    once = RubricScore(rubric_id="b", score=1.0, rationale="It is.")
    parts = [
        Details(rubric_scores=(yes, once)),
        Details(rubric_scores=(no,)),
        Details(rubric_scores=(RubricScore(rubric_id="a"),)),
        Details(),
    ]

    first, second = overall_details(ANY, parts).rubric_scores or ()

    assert (first.rubric_id, first.score) == ("a", 0.5)
    assert second == once


def test_what_a_metric_says_itself_of_its_rubrics_over_all_counts():
    whole = ANY.model_copy(update={"evidence": {"rubrics": [{"rubric_id": "a", "score": 0.9}]}})
    parts = [Details(rubric_scores=(RubricScore(rubric_id="a", score=0.0),))]

    assert overall_details(whole, parts).rubric_scores == (RubricScore(rubric_id="a", score=0.9),)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(JSON, st.sampled_from(["rubric_id", "rubrics", "score", "verdict", "rationale"]))
def test_evidence_of_any_shape_has_details(value, key):
    details("x/y", {"rubrics": value})
    details("x/y", {"rubrics": [{"rubric_id": "a", key: value}, value]})
