"""Hostile texts through the command itself: what agents say and print, and files that are bombs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile.corpus import CORPUS
from hostile.github_page import live_parts, page_of
from hostile.runner import STEERING, commands, values
from lxml import etree

from ci_eval.cli.main import main

AGENT = """
import json, pathlib, sys
TEXTS = json.loads(pathlib.Path("texts.json").read_text())
def answer(message):
    text = TEXTS[int(message)]
    for stream in (sys.stdout, sys.stderr):
        stream.buffer.write(text.encode("utf-8", "surrogatepass") + b"\\n")
        stream.flush()
    if int(message) % 3 == 2:
        raise RuntimeError(text)
    return {"response": text, "tool_calls": [{"name": text, "args": {text: text}}]}
"""
CONFIG = """
name: "shop ##[error]x @octocat"
agents: {"::error::bot": {python: "bot:answer"}}
evalsets: {all: cases.json}
criteria: {response_match_score: 0.5, tool_trajectory_avg_score: 1.0}
"""


def test_what_an_agent_prints_and_answers_reaches_no_runner_and_no_page(tmp_path: Path) -> None:
    texts = [*CORPUS.values()][::4]
    cases = [
        {
            "id": f"{number} {text[:40]}".strip(),
            "prompt": str(number),
            "expected": "a",
            "expected_tools": [],
        }
        for number, text in enumerate(texts)
    ]
    written = {"texts.json": texts, "cases.json": cases}
    for name, value in written.items():
        (tmp_path / name).write_text(json.dumps(value))
    (tmp_path / "bot.py").write_text(AGENT)
    (tmp_path / "ci-eval.yaml").write_text(CONFIG)
    files = {"GITHUB_OUTPUT": tmp_path / "out", "GITHUB_STEP_SUMMARY": tmp_path / "summary"}
    env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    env |= {"GITHUB_ACTIONS": "true", **{name: str(path) for name, path in files.items()}}

    ended = subprocess.run(
        [sys.executable, "-m", "ci_eval", "run"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        timeout=500,
        check=False,
    )

    assert ended.returncode in (1, 2), ended.stderr.decode()[-2_000:]
    assert {each.name for each in commands(ended.stdout.decode())} <= {"error", "warning"}
    printed = [each.name for each in commands(ended.stderr.decode())]
    assert printed == ["group", "endgroup"]
    assert b"Traceback" not in ended.stderr
    outputs = values(files["GITHUB_OUTPUT"].read_text())
    assert outputs["comment"] == "ci-eval-report/comment.md"
    folder = tmp_path / "ci-eval-report"
    marker, _, comment = (folder / "comment.md").read_text().partition("\n")
    assert marker == "<!-- ci-eval:v1 id=shop%20%23%23%5Berror%5Dx%20%40octocat -->"
    more = "<!-- ci-eval:more -->"
    assert list(live_parts(page_of(comment.replace(f"\n{more}\n", "\n")))) == []
    summary = files["GITHUB_STEP_SUMMARY"].read_text().replace(f"\n{more}\n", "\n")
    assert list(live_parts(page_of(summary))) == []
    cases_found = etree.parse(folder / "junit.xml").findall(".//testcase")
    assert len(cases_found) == len(texts)


NAMED = r"""
agents: {"::add-mask::bot": {python: "bot:answer"}}
evalsets: {"all ##[error]x": cases.json}
criteria: {"##[add-mask]c": {use: ci/exact_match, threshold: 1}}
"""


def test_what_is_planned_and_checked_is_told_in_plain_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bot.py").write_text(AGENT)
    cases = [{"id": "a", "prompt": "0", "expected": "a"}]
    file = "x\n::add-mask::y ##[error]\u202e.json"
    for name in ("cases.json", file):
        Path(name).write_text(json.dumps(cases))
    Path("ci-eval.yaml").write_text(NAMED)

    assert main(["plan"]) == main(["validate", "ci-eval.yaml", file]) == 0
    printed = "".join(capsys.readouterr())
    assert "add-mask::bot on all ## [error]x: 1 case" in printed
    assert "add-mask::y" in printed
    assert list(commands(printed)) == []
    assert not STEERING.search(printed)


# --- Files ----------------------------------------------------------------------------------

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)
BOMBS = {
    "aliases": LAUGHS,
    "an alias of itself": "agents: &a [*a]\n",
    "a python tag": "agents: !!python/object/apply:os.system [exit 1]\n",
    "brackets": "agents: " + "[" * 20_000,
    "braces": "{agents: " * 20_000,
    "indents": "".join(f"{' ' * depth}a:\n" for depth in range(2_000)),
    "one line": "name: " + "x" * (1 << 20) + "\n",
    "keys twice": "name: a\nname: b\n",
    "an integer": "version: " + "9" * 5_000 + "\n",
    "infinity": "run: {repeats: .inf}\n",
    "no number": "run: {repeats: .nan}\n",
    "control": "name: \x00\x1b[31m\n",
    "bytes": "name: \udcff\n",
    "merge": "<<: {name: x}\n",
    "entities": '<!DOCTYPE x [<!ENTITY a "&b;">]><x>&a;</x>\n',
    "commands": "##[error]x: 1\n'::error::x': 2\n",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_configuration_that_is_a_bomb_is_refused_in_few_plain_words(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ci-eval.yaml").write_bytes(BOMBS[name].encode("utf-8", "surrogateescape"))
    assert main(["validate"]) == 4
    out, err = capsys.readouterr()
    assert "ci-eval.yaml" in err
    assert len(err) < 20_000
    assert "Traceback" not in err
    assert [*commands(out + err)] == []


CASES = {
    "deep": '{"eval_set_id": "x", "eval_cases": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "open": '{"eval_set_id": "x", "eval_cases": ' + "[" * 100_000,
    "keys twice": '{"eval_set_id": "x", "eval_set_id": "y", "eval_cases": []}',
    "integer": '{"eval_set_id": ' + "9" * 10_000 + ', "eval_cases": []}',
    "no number": '{"eval_set_id": "x", "eval_cases": NaN}',
    "infinity": '{"eval_set_id": "x", "eval_cases": -Infinity}',
    "one line": '{"eval_set_id": "' + "x" * (1 << 20) + '", "eval_cases": 1}',
    "control": '{"eval_set_id": "\x00", "eval_cases": []}',
    "half a pair": '{"eval_set_id": "x", "eval_cases": [{"eval_id": "\\ud800"}]}',
    "command": '{"eval_set_id": "x", "##[error]x": 1, "\\n::error::x": 2, "eval_cases": 0}',
    "aliases": LAUGHS,
}


@pytest.mark.parametrize("name", CASES)
def test_an_evalset_that_is_a_bomb_is_refused_in_few_plain_words(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ci-eval.yaml").write_text(
        "agents: {bot: {recorded: t.jsonl}}\nevalsets: {all: cases.json}\n"
        "criteria: {response_match_score: 0.5}\n"
    )
    Path("t.jsonl").write_text("")
    Path("cases.json").write_text(CASES[name])
    assert main(["validate"]) == 4
    out, err = capsys.readouterr()
    assert "cases.json" in err
    assert len(err) < 20_000
    assert "Traceback" not in err
    assert [*commands(out + err)] == []
