"""Cases as lines for a console."""

from collections.abc import Iterable

import pytest
from support.report_language import compared, make_report, make_results

from ci_eval.records.findings import Report
from ci_eval.records.results import InvocationScore, Score, TrialResult
from ci_eval.records.trials import Failure, TrialKey
from ci_eval.reporters.case_lines import GUTTER, Line, failure_lines, first_case


def text(lines: Iterable[Line]) -> list[str]:
    return ["".join(span.text for span in line) for line in lines]


def failing(**evidence: object) -> Report:
    """Return a report on one case that failed with this evidence."""
    report = make_report("a fail 0.2")
    (worst,) = report.worst
    part = InvocationScore.model_validate({"status": "failed", "value": 0.2, "evidence": evidence})
    scores = tuple(each.model_copy(update={"invocations": (part,)}) for each in worst.scores)
    return report.model_copy(update={"worst": (worst.model_copy(update={"scores": scores}),)})


def shown(report: Report, *, lines: int = 12, width: int = 80) -> list[Line]:
    return list(failure_lines(report, most=5, lines=lines, width=width))


def test_texts_are_compared_word_by_word() -> None:
    found = shown(failing(expected="at half power", actual="at full power"))
    (words,) = (line for line in found if line[:1] and line[0].text == GUTTER)
    assert [(span.text, span.style) for span in words[1:] if span.text != " "] == [
        ("at", ""),
        ("half", "removed"),
        ("full", "added"),
        ("power", ""),
    ]


def test_tool_calls_are_compared_line_by_line() -> None:
    calls = {"expected_tool_calls": [{"name": "lock", "args": {"door": "front"}}]}
    calls["actual_tool_calls"] = [{"name": "lock", "args": {"door": "back"}}]
    assert text(shown(failing(**calls)))[2:5] == [
        "  Tool calls (- expected, + actual)",
        '  │ - lock(door="front")',
        '  │ + lock(door="back")',
    ]


def test_evidence_is_no_comparison_because_of_its_name() -> None:
    assert "  │ xml" in text(shown(failing(response_format="xml")))


@pytest.mark.parametrize("width", [40, 60, 100])
def test_lines_of_words_fit_and_lose_nothing(width: int) -> None:
    words = [f"word{n}" for n in range(60)]
    lines = text(shown(failing(expected=" ".join(words), actual=" ".join(words[:-1])), width=width))
    evidence = [line.removeprefix("  │ ") for line in lines if line.startswith("  │")]
    assert all(len(line) <= width for line in lines if line.startswith("  │"))
    assert "word59" in " ".join(evidence).split()


def test_evidence_is_bounded() -> None:
    found = shown(failing(trace="\n".join(map(str, range(100)))), lines=3)
    assert len([line for line in text(found) if line.startswith("  │")]) == 4


def test_no_line_gives_a_runner_a_command_or_a_terminal_a_sequence() -> None:
    hostile = "::error::forged\n  ::stop-commands::x\n\x1b[31mred ##[add-mask]e"
    report = failing(expected=hostile, actual="fine", trace=hostile)
    error = TrialResult(
        key=TrialKey(agent="::a", evalset="::e", case="::error::c"),
        status="error",  # type: ignore[arg-type]  # pydantic converts it
        error=Failure(kind="crash", message=hostile),
    )
    report = report.model_copy(update={"worst": (*report.worst, error)})
    lines = text(shown(report))
    assert not any(line.lstrip().startswith("::") for line in lines)
    assert not any("##[" in line or "\x1b" in line for line in lines)


def test_a_cause_of_errors_is_shown_once_with_its_cases() -> None:
    lines = text(shown(make_report("a error / b error")))
    assert [line for line in lines if line.startswith("ERROR ")] == [
        "ERROR a, b  evals/smoke.evalset.json:10"
    ]


def test_a_criterion_without_a_value_gives_its_reason() -> None:
    report = make_report("a fail 0.2")
    (worst,) = report.worst
    scores = tuple(
        Score.model_validate({**each.model_dump(), "reason": "two of three words differ"})
        for each in worst.scores
    )
    report = report.model_copy(update={"worst": (worst.model_copy(update={"scores": scores}),)})
    assert "  two of three words differ" in text(shown(report))


def test_a_case_that_got_worse_but_is_good_enough_did_not_fail() -> None:
    report = make_report("a fail 0.2 was 1.0")
    assert report.comparison
    (change,) = report.comparison.changes
    assert text(shown(report))[0].startswith("FAILED a")
    better = compared(report, changes=(change.model_copy(update={"value": 0.85}),))
    assert text(shown(better))[0].startswith("WORSE a")


def test_causes_of_errors_that_are_left_out_are_counted() -> None:
    results = make_results(" / ".join(f"c{name} error" for name in "abcdefg"))
    worst = tuple(
        each.model_copy(update={"error": Failure(kind="raised", message=f"no {each.key.case}")})
        for each in results
    )
    report = make_report(" / ".join(f"c{name} error" for name in "abcdefg"))
    found = text(shown(report.model_copy(update={"worst": worst})))
    assert len([line for line in found if line.startswith("ERROR ")]) == 5
    assert "… and 2 more causes of errors; --show N shows more" in found


def test_the_case_to_look_at_first_decides_the_verdict() -> None:
    cases = "a fail 0.2 was 0.9 noise / b fail 0.2 was 0.9 maybe / c fail 0.2 was 0.9"
    for text, expected in ((cases, "c"), (cases.rpartition(" / ")[0], "b")):
        first = first_case(make_report(text))
        assert first
        assert first.case == expected
