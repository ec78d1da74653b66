"""What a workflow gets of a run, and that nothing happens outside of one."""

import re
from pathlib import Path

import pytest
from support.report_language import compared, make_report

from ci_eval.pull_requests.github_runner import (
    MAX_ANNOTATIONS,
    MAX_SUMMARY_BYTES,
    annotate,
    outputs,
    publish,
)
from ci_eval.records.comparisons import Together
from ci_eval.records.errors import ExitCode, Problem
from ci_eval.records.findings import Report

ALL = ("junit", "markdown", "summary", "annotations")
REPORT = make_report("greets pass 0.9 / refunds fail 0.2 was 0.9")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Return the folder of a run, with its documents, in a workspace."""
    folder = tmp_path / "workspace" / "sub" / "report"
    folder.mkdir(parents=True)
    for name in ("junit.xml", "comment.md"):
        (folder / name).write_text(name, encoding="utf-8")
    (folder / "summary.md").write_text("# Summary ✔\n", encoding="utf-8")
    (folder / "annotations.txt").write_text(
        "::error title=a::first\n::add-mask::x\nplain\n::notice title=b::second\n", encoding="utf-8"
    )
    return folder


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a step."""
    for name in ("output", "summary"):
        (tmp_path / name).write_bytes(b"")
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_WORKSPACE": str(tmp_path / "workspace"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }


def as_the_runner_reads(path: str) -> dict[str, str]:
    """Return the outputs in a file of the runner; fails where the runner would."""
    text = Path(path).read_text(encoding="utf-8")
    entry = re.compile(r"(?P<name>[\w-]+)<<(?P<end>\S+)\n(?P<value>.*?)\n(?P=end)\n", re.DOTALL)
    found = {match["name"]: match["value"] for match in entry.finditer(text)}
    assert entry.sub("", text) == ""
    return found


# --- A whole run -----------------------------------------------------------------------------


def test_a_step_gets_outputs_summary_and_annotations(
    out: Path, env: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    publish(REPORT, out, ExitCode.FAILED, env, ALL)
    assert as_the_runner_reads(env["GITHUB_OUTPUT"]) == {
        "verdict": "failed",
        "exit-code": "1",
        "report-dir": "sub/report",
        "pass-rate": "0.5000",
        "regressions": "1",
        "junit": "sub/report/junit.xml",
        "comment": "sub/report/comment.md",
    }
    summary = Path(env["GITHUB_STEP_SUMMARY"]).read_text(encoding="utf-8")
    assert summary == "# Summary ✔\n\n"
    assert capsys.readouterr().out == "::error title=a::first\n::notice title=b::second\n"


def test_only_the_reports_that_are_asked_for_are_shown(
    out: Path, env: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    publish(REPORT, out, ExitCode.FAILED, env, ("junit",))
    assert as_the_runner_reads(env["GITHUB_OUTPUT"])["comment"] == "sub/report/comment.md"
    assert not Path(env["GITHUB_STEP_SUMMARY"]).read_bytes()
    assert not capsys.readouterr().out


def test_without_a_report_nothing_of_an_earlier_run_is_shown(
    out: Path, env: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    publish(None, out, ExitCode.USAGE_ERROR, env, ALL)
    assert as_the_runner_reads(env["GITHUB_OUTPUT"]) == {
        "verdict": "usage-error",
        "exit-code": "4",
        "report-dir": "sub/report",
        "pass-rate": "",
        "regressions": "",
        "junit": "",
        "comment": "",
    }
    assert not Path(env["GITHUB_STEP_SUMMARY"]).read_bytes()
    assert not capsys.readouterr().out


def test_outside_of_a_workflow_nothing_happens(
    tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(tmp_path.rglob("*"))
    publish(REPORT, out, ExitCode.FAILED, {}, ALL)
    annotate([Problem("wrong")], {})
    assert sorted(tmp_path.rglob("*")) == before
    assert capsys.readouterr() == ("", "")


def test_what_is_there_already_stays(out: Path, env: dict[str, str]) -> None:
    Path(env["GITHUB_OUTPUT"]).write_text("other=1\n", encoding="utf-8")
    Path(env["GITHUB_STEP_SUMMARY"]).write_text("other\n", encoding="utf-8")
    publish(REPORT, out, ExitCode.FAILED, env, ALL)
    assert Path(env["GITHUB_OUTPUT"]).read_text(encoding="utf-8").startswith("other=1\n")
    assert Path(env["GITHUB_STEP_SUMMARY"]).read_text(encoding="utf-8").startswith("other\n")


# --- Outputs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (ExitCode.PASSED, "passed"),
        (ExitCode.FAILED, "failed"),
        (ExitCode.INTERRUPTED, "incomplete"),
        (ExitCode.INTERNAL_ERROR, "incomplete"),
        (ExitCode.USAGE_ERROR, "usage-error"),
        (ExitCode.NOTHING_SELECTED, "nothing-selected"),
        (ExitCode.INCOMPLETE, "incomplete"),
    ],
)
def test_each_exit_code_has_a_verdict(code: ExitCode, verdict: str, out: Path) -> None:
    said = outputs(None, out, code, {})
    assert (said["verdict"], said["exit-code"]) == (verdict, str(code.value))


@pytest.mark.parametrize(
    ("report", "rate", "regressions"),
    [
        (make_report("greets pass 0.9"), "1.0000", ""),
        (make_report("greets error / refunds skip"), "", ""),
        (make_report("greets pass 0.9 was 0.9"), "1.0000", "0"),
        (make_report("greets fail 0.2 was 0.9 maybe"), "0.0000", "0"),
        (make_report("greets fail 0.2 was 0.9"), "0.0000", "1"),
    ],
)
def test_no_number_stands_for_no_number(
    report: Report, rate: str, regressions: str, out: Path
) -> None:
    said = outputs(report, out, ExitCode.PASSED, {})
    assert (said["pass-rate"], said["regressions"]) == (rate, regressions)


def test_a_certain_change_counts_where_the_mean_does_not_show_it(out: Path) -> None:
    comparison = REPORT.comparison
    assert comparison
    (delta,) = comparison.deltas
    quiet = comparison.model_copy(
        update={"deltas": (delta.model_copy(update={"outcome": "unchanged"}),)}
    )
    report = REPORT.model_copy(update={"comparison": quiet})
    assert outputs(report, out, ExitCode.FAILED, {})["regressions"] == "1"


def test_what_is_excused_is_no_regression(out: Path) -> None:
    report = make_report("greets fail 0.2 was 0.9")
    assert report.comparison
    (delta,), (change,) = report.comparison.deltas, report.comparison.changes
    report = compared(
        report,
        deltas=(delta.model_copy(update={"outcome": "not_compared"}),),
        changes=(change.model_copy(update={"excused": "accepted"}),),
    )
    assert outputs(report, out, ExitCode.PASSED, {})["regressions"] == "0"


def test_what_only_all_criteria_together_show_is_one_regression(out: Path) -> None:
    found = Together(criteria=4, effect=-0.03, p_value=0.001, level=0.004, outcome="regressed")
    report = compared(make_report("greets pass 0.9 was 0.9"), together=found)
    assert outputs(report, out, ExitCode.FAILED, {})["regressions"] == "1"
    report = compared(make_report("greets fail 0.2 was 0.9"), together=found)
    assert outputs(report, out, ExitCode.FAILED, {})["regressions"] == "1"


def test_a_folder_that_was_never_made_is_not_named(tmp_path: Path) -> None:
    assert not outputs(None, tmp_path / "none", ExitCode.USAGE_ERROR, {})["report-dir"]


def test_a_folder_outside_the_workspace_keeps_its_name(out: Path, tmp_path: Path) -> None:
    env = {"GITHUB_WORKSPACE": str(tmp_path / "elsewhere")}
    assert outputs(REPORT, out, ExitCode.PASSED, env)["junit"] == str(out / "junit.xml")


# --- The summary -----------------------------------------------------------------------------


@pytest.mark.parametrize(("room", "shown"), [(0, False), (1, True)])
def test_a_summary_that_the_runner_would_drop_is_only_named(
    room: int, shown: bool, out: Path, env: dict[str, str]
) -> None:
    text = "é" * 100_000
    (out / "summary.md").write_text(text, encoding="utf-8")
    target = Path(env["GITHUB_STEP_SUMMARY"])
    target.write_bytes(b"x" * (MAX_SUMMARY_BYTES - 200_000 - room))
    publish(REPORT, out, ExitCode.FAILED, env, ALL)
    written = target.read_text(encoding="utf-8").lstrip("x")
    assert target.stat().st_size <= MAX_SUMMARY_BYTES
    assert (written == f"{text}\n") is shown
    assert ("see `sub/report/summary.md`" in written) is not shown


# --- Annotations -----------------------------------------------------------------------------


def test_a_problem_is_shown_on_its_line(
    env: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "workspace" / "sub").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "workspace" / "sub")
    annotate(
        [
            Problem("unknown", file="ci-eval.yaml", line=3, where="gate.mod"),
            Problem("old,\n::error::format", file="../evals/a:b.json", severity="warning"),
            Problem("no agent"),
            Problem("strange", file="/elsewhere/ci-eval.yaml", line=1),
        ],
        env,
    )
    assert capsys.readouterr().out.splitlines() == [
        "::error file=sub/ci-eval.yaml,line=3,title=ci-eval::gate.mod: unknown",
        "::warning file=evals/a%3Ab.json,title=ci-eval::old,%0A::error::format",
        "::error title=ci-eval::no agent",
        "::error file=/elsewhere/ci-eval.yaml,line=1,title=ci-eval::strange",
    ]


def test_as_many_problems_are_shown_as_the_runner_shows(
    env: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    many = [Problem("wrong")] * 100 + [Problem("odd", severity="warning")] * 100
    annotate(many, env)
    printed = capsys.readouterr().out.splitlines()
    assert [line.startswith("::error ") for line in printed].count(True) == MAX_ANNOTATIONS
    assert len(printed) == 2 * MAX_ANNOTATIONS
