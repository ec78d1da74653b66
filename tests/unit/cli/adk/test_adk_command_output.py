"""What is printed is made of the text of others, and does no harm."""

from collections import Counter

from ci_eval.cli.adk.adk_command_output import MAX_LINES, case_lines, counts_lines
from ci_eval.cli.adk.adk_eval_result_schema import (
    CaseResult,
    EvalStatus,
    InvocationResult,
    MetricResult,
    SessionDetails,
)
from ci_eval.cli.adk.adk_eval_score_details import Details, Durations, RubricScore
from ci_eval.records.cases import Content, FunctionCall, IntermediateData, Invocation


def printed(said: str = "Hello", *metrics: MetricResult, name: str = "track") -> list[str]:
    calls = IntermediateData(tool_uses=(FunctionCall(name=name, args={"x": said}),))
    turn = Invocation(
        user_content=Content.of_text("Hi", role="user"),
        final_response=Content.of_text(said, role="model"),
        intermediate_data=calls,
    )
    case = CaseResult(
        eval_set_file=said,
        eval_set_id=said,
        eval_id=said,
        final_eval_status=EvalStatus.FAILED,
        overall_eval_metric_results=metrics,
        eval_metric_result_per_invocation=(
            InvocationResult(actual_invocation=turn, eval_metric_results=metrics),
        ),
        session_id=said,
        session_details=SessionDetails(id=said, app_name=said, user_id=said),
        user_id=said,
    )
    return list(case_lines(case))


def test_no_text_steers_a_terminal_or_a_runner():
    lines = printed(
        "\x1b[2J::error::x\n::set-output name=a::b\r\u202e", name="\x1b[31mx\n::warning::"
    )

    assert not any("\x1b" in line or "\r" in line or "\u202e" in line for line in lines)
    assert not any("\n" in line for line in lines)
    assert not any(line.lstrip().startswith("::") for line in lines)


def test_a_long_value_is_cut():
    lines = printed("x\n" * (MAX_LINES * 3))
    longer = printed("y " * 10**6)

    for found in (lines, longer):
        assert MAX_LINES < len(found) < MAX_LINES * 3
        assert any(line.strip() == "…" for line in found)


def test_without_an_expected_invocation_nothing_is_said_of_it():
    assert not any("expected" in line for line in printed())


def test_rubrics_are_named_with_their_reasons():
    rubric = RubricScore(rubric_id="kind", score=1.0, rationale="It says please.")
    metric = MetricResult(
        metric_name="rubric_based_final_response_quality_v1",
        threshold=0.8,
        score=1.0,
        eval_status=EvalStatus.PASSED,
        details=Details(rubric_scores=(rubric,)),
    )

    lines = printed("Hello", metric)

    at = lines.index("Rubric Scores:")
    assert lines[at + 1] == "Rubric: kind, Score: 1.0, Reasoning: It says please."
    at = lines.index(f"  {'rubric:':<28}kind")
    assert lines[at + 1] == f"{'':<30}Score: 1.0, Reasoning: It says please."
    assert "  rubric_based_final_response_quality_v1: PASSED (1.0)" in lines


def test_a_measure_without_a_value_or_parts_is_shown_as_such():
    measured = {"eval_status": EvalStatus.INFORMATIONAL, "metric_name": "m"}
    none = MetricResult(**measured)
    plain = MetricResult(**measured, score=2.0)
    timed = MetricResult(
        **measured, score=1.25, details=Details(duration_details=Durations(total_seconds=1.25))
    )

    lines = printed("Hello", none, plain, timed)

    cells = [line.split(": ")[1].strip() for line in lines if line.startswith("  m: ")]
    assert cells == ["n/a", "2", "1.25s"]
    assert "  framework:      n/a" in [line[2:] for line in lines]


def test_everything_that_is_not_passed_has_failed():
    counts = Counter([True, False])

    assert list(counts_lines({"a": counts, "b": Counter()})) == [
        "*" * 69,
        "Eval Run Summary",
        "a:",
        "  Tests passed: 1",
        "  Tests failed: 1",
        "b:",
        "  Tests passed: 0",
        "  Tests failed: 0",
    ]
