"""What an agent tells of a key it was given is written down nowhere, and found all the same."""

import json
from pathlib import Path

import pytest

from ci_eval.cli import main

SECRET = 'sk-"1234'
AGENT = """
import os, sys
def answer(message):
    key = os.environ["SHOP_API_KEY"]
    print("asking with", key)
    if message == "fail":
        raise RuntimeError("401 for " + key)
    return {"response": "I use " + key, "tool_calls": [{"name": "ask", "args": {"key": key}}]}
"""
CONFIG = """
agents: {bot: {python: "shop:answer", env: [SHOP_API_KEY]}}
evalsets: {all: cases.yaml}
criteria:
  quiet: {use: ci/regex, pattern: "sk-", absent: true, threshold: 1}
  tool_trajectory_avg_score: 1.0
"""
CASES = """
- {id: leaks, prompt: Hi, expected: Hello, expected_tools: []}
- {id: fails, prompt: fail, expected: Hello, expected_tools: []}
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOP_API_KEY", SECRET)
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "shop.py": AGENT,
        "ci-eval.yaml": CONFIG,
        "cases.yaml": CASES,
    }.items():
        Path(name).write_text(text)
    return tmp_path


def test_a_key_is_in_no_document_and_a_criterion_finds_the_leak(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--record", "record.jsonl", "--adk-results", "adk"]) == 1
    printed = "".join(capsys.readouterr())
    written = {
        path.relative_to(shop): path.read_text(encoding="utf-8")
        for path in [
            *shop.glob("ci-eval-report/*"),
            *shop.glob("adk/bot/.adk/*/*.json"),
            shop / "record.jsonl",
        ]
        if path.is_file()
    }
    assert len(written) > 6
    for form in (SECRET, json.dumps(SECRET)[1:-1], "1234"):
        assert form not in printed
        assert {name for name, text in written.items() if form in text} == set()
    results = json.loads((shop / "ci-eval-report/run.json").read_text())["results"]
    assert [score["status"] for score in results[0]["scores"]] == ["failed", "failed"]
    assert "[SHOP_API_KEY]" in results[0]["output"]
    assert "401 for [SHOP_API_KEY]" in results[1]["error"]["message"]


def test_what_held_a_secret_is_observed_again(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["run"])
    first = json.loads((shop / "ci-eval-report/run.json").read_text())["results"]
    capsys.readouterr()
    main(["run", "--resume"])
    again = json.loads((shop / "ci-eval-report/run.json").read_text())["results"]

    assert "taken over from the run before: 0 trials" in "".join(capsys.readouterr())
    assert [each["scores"] for each in again] == [each["scores"] for each in first]
