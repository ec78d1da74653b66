"""Results of a run on stdout."""

import click
import pytest
from support.report_language import compared, compared_in_full, differing, make_report

from ci_eval.cli import console
from ci_eval.cli.console import out_report
from ci_eval.records.findings import Report


def printed(report: Report, capsys: pytest.CaptureFixture[str], most: int = 3) -> list[str]:
    out_report(report, "out", most=most)
    return capsys.readouterr().out.replace("\N{MINUS SIGN}", "-").splitlines()


def test_the_decision_comes_first_and_where_the_reports_are_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = printed(make_report("greets pass 0.9"), capsys)
    assert lines[:3] == ["✔ PASSED", "", "criterion  score  threshold  passed"]
    assert lines[-1] == "reports: out"


def test_a_score_just_below_its_threshold_does_not_look_like_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = printed(make_report("greets fail 0.79996"), capsys)
    assert "quality    0.79996  0.80000    0/1" in lines


def test_a_regression_is_told_with_effect_interval_and_p_value(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = compared_in_full(make_report("a pass 0.9 was 0.9 / b fail 0.2 was 0.9"))
    lines = printed(report, capsys)
    assert lines[lines.index("✘ FAILED") :][:3] == [
        "✘ FAILED",
        "- quality on smoke with support regressed by 0.350",
        "└ -0.350, p = 0.004 (needs ≤ 0.005)",
    ]


def test_the_baseline_and_what_was_drawn_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    report = compared_in_full(make_report("a pass 0.9 was 0.9"))
    assert printed(report, capsys)[-6:] == [
        (
            "baseline: run run-1 of commit fedcba9876, 2026-03-02, 3 commits before the merge base "
            "with main, pooled with 1 other run"
        ),
        "Compared after 2 reruns and 4 confirming trials",
        (
            "baseline: the clone is shallow, so a nearer run may exist: "
            "set 'fetch-depth: 0' for actions/checkout"
        ),
        (
            "exception: tracks (1 case): quarantined until 2026-12-01 (owner: search): the index "
            "is rebuilt"
        ),
        "exception: tone/* (0 cases): acceptance expired on 2026-01-31: curt",
        "reports: out",
    ]


def test_suspected_cases_are_told_a_few_of_many(capsys: pytest.CaptureFixture[str]) -> None:
    text = " / ".join(f"c{n} fail 0.2 was 0.9 maybe" for n in range(7))
    lines = [line for line in printed(make_report(text), capsys, 0) if "suspected" in line]
    assert lines[0] == "- c0 is suspected, quality: 3 of 3 trials fail, 0 of 15 in the baseline"
    assert lines[5:] == ["- 2 more broken or suspected cases"]


def test_of_several_evalsets_the_one_of_a_suspected_case_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = make_report("c0 fail 0.2 was 0.9 maybe")
    assert report.comparison
    (delta,) = report.comparison.deltas
    other = delta.model_copy(update={"group": delta.group.model_copy(update={"evalset": "more"})})
    lines = printed(compared(report, deltas=(delta, other)), capsys, 0)
    where = f"{delta.group.evalset} with {delta.group.agent}"
    assert any(f"c0 is suspected, quality on {where}: 3 of 3" in line for line in lines)


def test_a_name_in_a_report_gives_a_runner_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    report = compared_in_full(make_report("a pass 0.9 was 0.9"))
    report = compared(report, baseline_branch="x\n::error::forged", baseline_runs=("\n::a::b",))
    lines = printed(report, capsys)
    assert not any(line.startswith("::") for line in lines)


def test_the_first_failures_come_before_the_decision(capsys: pytest.CaptureFixture[str]) -> None:
    report = differing(make_report(" / ".join(f"c{n} fail 0.2" for n in range(4))))
    out_report(report, "out", most=2)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("FAILED ")] == ["c0", "c1"]
    assert lines.index("… and 2 more cases; --show N shows more") < lines.index("✘ FAILED")
    assert "next: ci-eval show c0 --out out" in lines


def test_a_case_that_looks_like_an_option_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    out_report(make_report("-dash fail 0.2"), "out", most=1)
    assert "next: ci-eval show --out out -- -dash\n" in capsys.readouterr().out


def test_no_failures_are_shown_where_none_are_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    out_report(make_report("a fail 0.2"), "out", most=0)
    assert capsys.readouterr().out.startswith("✘ FAILED\n")


@pytest.mark.parametrize(
    ("env", "is_colored"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_the_environment_chooses_the_colors(env: dict[str, str], *, is_colored: bool) -> None:
    with click.Context(click.Command("run"), obj=env):
        assert console.has_color() is is_colored


def test_a_case_that_flaked_is_named_under_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(make_report("a fail 0.2 was 0.9 noise / c pass 1.0"), capsys)
    assert "- 1 case flaked (worse in some trials, but no more than noise): a" in lines


def test_cases_that_were_not_measured_are_named_without_evidence_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = make_report("greets pass 1 / refunds error / tracks error")
    assert "- not measured: refunds, tracks" in printed(report, capsys, most=0)
    assert not [line for line in printed(report, capsys) if "not measured:" in line]
