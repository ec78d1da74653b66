"""What a person sees while a run goes on."""

import pytest
from support.report_language import compared, compared_in_full, make_report

from ci_eval.cli.console import Progress, say_report
from ci_eval.records.cases import Status
from ci_eval.records.findings import Report
from ci_eval.records.results import TrialResult
from ci_eval.records.trials import Failure, TrialKey


def result(case: str, kind: str, *, agent: str = "weather", words: str = "") -> TrialResult:
    return TrialResult(
        key=TrialKey(agent=agent, evalset="smoke", case=case),
        status=Status.ERROR,
        error=Failure(kind=kind, message=f"it cannot be\n{words}"),
    )


def shown(capsys: pytest.CaptureFixture[str], *results: TrialResult) -> list[str]:
    with Progress(len(results), grouped=False) as progress:
        for each in results:
            progress.landed(each)
    return capsys.readouterr().err.splitlines()[1:]


def test_an_agent_that_cannot_start_is_told_once_with_the_number_of_its_trials(
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = [result(f"c{n}", "start", words=f"at 10:0{n}") for n in range(5)]
    assert shown(capsys, *results) == [
        "ERROR weather · smoke · c0: start: it cannot be at 10:00",
        "ERROR weather · 4 more trials: start: same cause: it cannot be",
    ]


def test_other_agents_and_other_errors_are_told_for_themselves(
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = [
        result("a", "start"),
        result("a", "start", agent="other"),
        result("b", "timeout"),
        result("c", "timeout"),
    ]
    assert shown(capsys, *results) == [
        "ERROR weather · smoke · a: start: it cannot be",
        "ERROR other · smoke · a: start: it cannot be",
        "ERROR weather · smoke · b: timeout: it cannot be",
        "ERROR weather · smoke · c: timeout: it cannot be",
    ]


def test_what_an_agent_says_gives_a_runner_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    words = "::set-output name=verdict::forged\n  ::stop-commands::x\n##[add-mask]e"
    lines = shown(capsys, result("a", "crash", words=words))
    assert len(lines) == 1
    assert lines[0].startswith("ERROR ")
    assert "##[" not in lines[0]


def test_of_a_long_message_the_beginning_and_the_end_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    [line] = shown(capsys, result("c0", "crash", words="log\n" * 999 + "KeyError: city"))
    assert line.startswith("ERROR weather · smoke · c0: crash: it cannot be …")
    assert line.endswith(" log KeyError: city")
    assert len(line) < 400


# --- The report -----------------------------------------------------------------------------


def printed(report: Report, capsys: pytest.CaptureFixture[str]) -> list[str]:
    say_report(report, "out")
    return capsys.readouterr().err.replace("\N{MINUS SIGN}", "-").splitlines()


def test_the_decision_comes_first_and_where_the_reports_are_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = printed(make_report("greets pass 0.9"), capsys)
    assert lines[:3] == [
        "✔ PASSED",
        "",
        "agent    evalset  criterion  score  threshold  baseline  passed",
    ]
    assert lines[-1] == "reports: out"


def test_a_regression_is_told_with_effect_interval_and_p_value(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = compared_in_full(make_report("a pass 0.9 was 0.9 / b fail 0.2 was 0.9"))
    assert printed(report, capsys)[:4] == [
        "✘ FAILED",
        "- quality on smoke with support regressed by 0.350",
        "└ -0.350 (95% CI -0.400 to -0.300), p = 0.004 (needs ≤ 0.005)",
        (
            "- all 2 blocking criteria combined: worse by 3.1% of their range, "
            "p = 0.004 (needs ≤ 0.0044)"
        ),
    ]


def test_the_baseline_and_what_was_drawn_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    report = compared_in_full(make_report("a pass 0.9 was 0.9"))
    assert printed(report, capsys)[-4:] == [
        (
            "baseline: run run-1 of commit fedcba9876, 2026-03-02, 3 commits before the merge base "
            "with main, pooled with 1 other run"
        ),
        "Decided after 2 reruns and 4 confirming trials",
        (
            "baseline: the clone is shallow, so a nearer run may exist: "
            "set 'fetch-depth: 0' for actions/checkout"
        ),
        "reports: out",
    ]


def test_suspected_cases_are_told_a_few_of_many(capsys: pytest.CaptureFixture[str]) -> None:
    text = " / ".join(f"c{n} fail 0.2 was 0.9 maybe" for n in range(7))
    lines = [line for line in printed(make_report(text), capsys) if "suspected" in line]
    assert lines[0] == "- c0 is suspected, quality: 3 of 3 trials fail, 0 of 15 in the baseline"
    assert lines[5:] == ["- 2 more broken or suspected cases"]


def test_of_several_evalsets_the_one_of_a_suspected_case_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = make_report("c0 fail 0.2 was 0.9 maybe")
    assert report.comparison
    (delta,) = report.comparison.deltas
    other = delta.model_copy(update={"group": delta.group.model_copy(update={"evalset": "more"})})
    lines = printed(compared(report, deltas=(delta, other)), capsys)
    where = f"{delta.group.evalset} with {delta.group.agent}"
    assert any(f"c0 is suspected, quality on {where}: 3 of 3" in line for line in lines)


def test_a_name_in_a_report_gives_a_runner_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    report = compared_in_full(make_report("a pass 0.9 was 0.9"))
    report = compared(report, baseline_branch="x\n::error::forged", baseline_runs=("\n::a::b",))
    lines = printed(report, capsys)
    assert not any(line.startswith("::") for line in lines)
