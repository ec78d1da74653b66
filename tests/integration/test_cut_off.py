"""Responses that were cut off are scored, and told of wherever they are reported."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.project import CASES, GREETS, REFUNDS, TRACKS, Project, changed


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> Project:
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, capsys)


def ended_by(case: dict[str, Any], reason: str) -> dict[str, Any]:
    *before, last = case["conversation"]
    return {**case, "conversation": [*before, {**last, "finish_reason": reason}]}


def test_a_cut_off_response_is_kept_scored_and_told_of(project: Project) -> None:
    wrong = changed(REFUNDS, "I can")
    project.traces(ended_by(GREETS, "MAX_TOKENS"), ended_by(wrong, "MAX_TOKENS"), TRACKS)
    ended = project.ci_eval("run", "--record", "again.jsonl")
    greets, refunds, tracks = project.run_json()["results"]
    assert greets["status"] == "passed"
    assert (greets["cut_off"], refunds["cut_off"]) == (["MAX_TOKENS"], ["MAX_TOKENS"])
    assert tracks.get("cut_off", []) == []
    said = "2 responses were cut off: MAX_TOKENS (cases greets, refunds)"
    assert said in project.read("comment.md").replace("\\_", "_").replace("`", "")
    assert said in project.read("report.json")
    assert said in ended.out + ended.err
    # The case that failed says so beside its evidence.
    detail = project.read("comment.md").replace("\\_", "_").partition("<summary>")[2]
    assert "\n1 response was cut off: MAX_TOKENS\n" in detail
    junit = project.read("junit.xml")
    assert junit.count('name="cut_off" value="1 response was cut off: MAX_TOKENS"') == 2
    assert '"finish_reason":"MAX_TOKENS"' in (project.folder / "again.jsonl").read_text().replace(
        ": ", ":"
    )


def test_a_response_that_ended_by_itself_is_not_mentioned(project: Project) -> None:
    project.traces(*(ended_by(each, "STOP") for each in CASES))
    ended = project.ci_eval("run")
    assert ended.code == 0
    assert "cut off" not in ended.out + ended.err + project.read("comment.md")
    assert "cut_off" not in project.read("junit.xml")


def test_each_reason_is_counted_and_few_cases_are_named(project: Project) -> None:
    many = [{**GREETS, "eval_id": f"c{number}"} for number in range(7)]
    project.evalset(*many)
    project.traces(*(ended_by(each, "length") for each in many[:6]), ended_by(many[6], "SAFETY"))
    project.ci_eval("run")
    report = project.read("report.json")
    assert "6 responses were cut off: length (cases c0, c1, c2, c3, c4 and 1 more)" in report
    assert "1 response was cut off: SAFETY (case c6)" in report


@pytest.mark.parametrize("key", ["finish_reason", "finishReason"])
def test_a_recorded_session_of_adk_says_it_too(project: Project, key: str) -> None:
    (turn,) = GREETS["conversation"]
    answered = {"author": "bot", "content": turn["final_response"], key: "MAX_TOKENS"}
    session = {"id": "s", "events": [{"author": "user", "content": turn["user_content"]}, answered]}
    (project.folder / "traces.jsonl").write_text(json.dumps(session))
    project.evalset(GREETS)
    project.ci_eval("run")
    (result,) = project.run_json()["results"]
    assert (result["status"], result["cut_off"]) == ("passed", ["MAX_TOKENS"])
