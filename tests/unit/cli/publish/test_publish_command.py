"""What `ci-eval publish` hands to its step, whatever was posted."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.report_language import make_report

from ci_eval.cli.main import main
from ci_eval.pull_requests import run_posting
from ci_eval.pull_requests.report_artifacts import MAX_ARTIFACTS
from ci_eval.pull_requests.sticky_comment import Posted
from ci_eval.records.findings import Report

REPORTS = {
    "passed": make_report("greets pass 0.9"),
    "failed": make_report("greets fail 0.2"),
    "incomplete": make_report("greets error"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "outputs"))
    return tmp_path


def posting(monkeypatch: pytest.MonkeyPatch, *posted: Posted) -> None:
    """Let that become of the reports, one after the other."""
    left = iter(posted)

    def post(*_: Any) -> Posted:
        return next(left)

    monkeypatch.setattr(run_posting, "post", post)


def of_suite(report: Report, suite: str) -> Report:
    return report.model_copy(update={"meta": report.meta.model_copy(update={"suite": suite})})


def written(folder: Path, *names: str) -> None:
    for number, name in enumerate(names):
        path = folder / "reports" / str(number) / "report.json"
        path.parent.mkdir(parents=True)
        path.write_text(of_suite(REPORTS[name], str(number)).model_dump_json())


def outputs(folder: Path) -> list[str]:
    return (folder / "outputs").read_text().splitlines()[1::3]


@pytest.mark.parametrize(
    ("names", "verdict"),
    [
        (("passed", "passed"), "passed"),
        (("passed", "incomplete"), "incomplete"),
        (("incomplete", "failed", "passed"), "failed"),
    ],
)
def test_of_several_reports_the_verdict_is_that_of_the_worst(
    folder: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], verdict: str
) -> None:
    written(folder, *names)
    posting(monkeypatch, *(Posted("updated", "https://x") for _ in names))
    assert main(["publish", "reports"]) == 0
    assert outputs(folder) == [verdict, "updated", "https://x", "0"]


def test_one_that_was_not_posted_is_what_the_step_is_told_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(folder, "passed", "passed")
    posting(monkeypatch, Posted("created", "https://x"), Posted("failed"))
    assert main(["publish", "reports"]) == 4
    assert outputs(folder) == ["passed", "failed", "", "4"]


def test_a_fork_that_may_not_write_is_no_failure(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(folder, "failed")
    posting(monkeypatch, Posted("deferred"))
    assert main(["publish", "reports"]) == 0
    assert outputs(folder) == ["failed", "deferred", "", "0"]


def test_what_did_not_go_as_it_should_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written(folder, "passed")
    posting(monkeypatch, Posted("created", note="another comment is still there"))
    assert main(["publish", "reports"]) == 0
    assert "another comment is still there" in capsys.readouterr().err


def test_a_folder_holds_so_many_reports_at_most(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written(folder, *["passed"] * (MAX_ARTIFACTS + 1))
    posting(monkeypatch)
    assert main(["publish", "reports"]) == 4
    assert "reports: contains 257 reports; the maximum is 256" in capsys.readouterr().err


def test_a_folder_without_a_report_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "reports").mkdir()
    assert main(["publish", "reports"]) == 4
    assert "reports/report.json: no such file" in capsys.readouterr().err


def test_a_report_that_is_named_is_held_to_the_limits_of_strangers(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meta = REPORTS["passed"].meta.model_copy(update={"suite": "x" * 101})
    long = REPORTS["passed"].model_copy(update={"meta": meta})
    (folder / "long.json").write_text(long.model_dump_json())
    value = REPORTS["passed"].model_dump(mode="json") | {"history": [1] * 20_001}
    (folder / "many.json").write_text(json.dumps(value))
    assert main(["publish", "long.json", "many.json"]) == 4
    said = capsys.readouterr().err
    assert "meta.suite: expected 1 to 100 characters, found 101" in said
    assert "has 20,001 entries" in said
