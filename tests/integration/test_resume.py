"""Runs that were killed go on, and runs that waited go on with what a human answered since."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from random import SystemRandom
from typing import Any

import pytest
from support.agent_sessions import waits_for
from support.git_repositories import Repo
from support.project import Project

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MOMENTS = 3

LOGS = """\
import json, os, sys, time

def log(said):
    with open("calls.log", "a") as file:
        file.write(said + "\\n")

def reply(message, history, session):
    said = message if isinstance(message, str) else "answer"
    log(said)
    while said == "three" and not os.path.exists("go"):
        time.sleep(0.05)
    return f"{said} after {len(history)}"
"""
PYTHON = (
    LOGS
    + """
def answer(message, history, session):
    session["state"]["heard"] = [*session["state"].get("heard", []), message]
    return reply(message, history, session)
"""
)
COMMAND = (
    LOGS
    + """
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps(reply(asked["message"], asked["history"], asked["session"])), flush=True)
"""
)
CASES = """\
- {id: long, turns: [{prompt: one}, {prompt: two}, {prompt: three}, {prompt: four}]}
- {id: short, prompt: hello}
"""
RUN = f"command: [{sys.executable}, bot.py]"


@pytest.fixture
def project(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Project:
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    return Project(tmp_path, capsys)


def suite(project: Project, agent: str, code: str, cases: str = CASES) -> None:
    (project.folder / "bot.py").write_text(code)
    (project.folder / "cases.yaml").write_text(cases)
    project.config(
        f"agents: {{bot: {{{agent}}}}}\n"
        "evalsets: {talks: cases.yaml}\n"
        "criteria: {ci/tool_calls: 10}\n"
        "run: {concurrency: 2}\n"
    )


def log(project: Project) -> list[str]:
    """Return the messages to the agent since the last call, without the parallel case."""
    path = project.folder / "calls.log"
    lines = text(path).splitlines()
    path.write_text("")
    return [line for line in lines if line != "hello"]


def traces(project: Project) -> dict[str, Any]:
    """Return the last trace of each case."""
    rows = map(json.loads, project.read("traces.jsonl").splitlines())
    return {row["eval_id"]: row for row in rows}


def said(trace: dict[str, Any]) -> list[str]:
    return [turn["final_response"]["parts"][0]["text"] for turn in trace["invocations"]]


def running(project: Project, at: str) -> subprocess.Popen[bytes]:
    """Run in a process of its own, and return when the agent is asked `at` and `short` is over."""
    command = [sys.executable, "-m", "ci_eval", "run"]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, env=os.environ, stdout=quiet, stderr=quiet)
    assert waits_for(
        lambda: (
            (
                f"{at}\n" in text(project.folder / "calls.log")
                and '"short"' in text(project.folder / "ci-eval-report/traces.jsonl")
            )
            or process.poll() is not None
        )
    ), "the agent was never asked"
    assert process.poll() is None, "it was over too early"
    return process


def run_and_kill(project: Project, at: str) -> None:
    """Kill a run when the agent is asked `at` and `short` is over."""
    process = running(project, at)
    process.kill()
    process.wait()


def text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


# --- Killed -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_that_was_killed_at_any_moment_comes_to_what_a_whole_one_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    seed = SystemRandom().randrange(1 << 32)
    outcomes = importlib.import_module("kill_and_resume").try_moments(MOMENTS, seed, cases=10)

    wrong = [each for each in outcomes if each.problems]
    assert not wrong, f"python benchmarks/kill_and_resume.py {MOMENTS} {seed}"
    assert len(outcomes) == MOMENTS


@pytest.mark.parametrize(
    ("agent", "code", "goes_on"),
    [
        ('python: "bot:answer"', PYTHON, True),
        pytest.param(
            'python: "bot:answer", resumable: false', PYTHON, False, marks=pytest.mark.slow
        ),
        (f"{RUN}, per: message", COMMAND, True),
        pytest.param(f"{RUN}, per: session", COMMAND, False, marks=pytest.mark.slow),
    ],
)
def test_a_conversation_goes_on_where_it_can_and_else_begins_anew(project, agent, code, goes_on):
    suite(project, agent, code)
    run_and_kill(project, "three")
    assert log(project) == ["one", "two", "three"]
    (project.folder / "go").touch()

    ended = project.ci_eval("run", "--resume")

    assert ended.code == 0
    assert log(project) == (["three", "four"] if goes_on else ["one", "two", "three", "four"])
    others = ", and 2 invocations of others" if goes_on else ""
    assert f"reused 1 trial{others} from the previous run\n" in ended.err
    expected = ["one after 0", "two after 1", "three after 2", "four after 3"]
    assert said(traces(project)["long"]) == expected
    assert not (project.folder / "ci-eval-report/underway.jsonl").exists()


@pytest.mark.slow
def test_two_runs_do_not_write_to_one_folder(project):
    suite(project, RUN, COMMAND)
    first = running(project, "three")

    for command in (
        ("run",),
        ("run", "--resume"),
        ("run", "--shard", "1/1"),
        ("merge", "ci-eval-report"),
    ):
        ended = project.ci_eval(*command)
        assert ended.code == 4
        assert "another ci-eval process is writing to ci-eval-report\n" in ended.err
        assert "wait until it ends, or name another folder with --out\n" in ended.err
    (project.folder / "go").touch()
    assert project.ci_eval("run", "--out", "other").code == 0
    assert "writes to other" not in project.ci_eval("report", "other", "--out", "other").err
    assert first.wait() == 0
    assert said(traces(project)["short"])
    left = {path.name for path in (project.folder / "ci-eval-report").iterdir()}
    assert ".lock" not in left

    # A folder in which nothing was written is not left behind.
    (project.folder / "ci-eval.yaml").write_text("criteria: 1")
    assert project.ci_eval("run", "--out", "new").code == 4
    assert not (project.folder / "new").exists()


@pytest.mark.slow
def test_the_state_of_a_session_goes_on_with_it(project):
    suite(project, 'python: "bot:answer"', PYTHON)
    run_and_kill(project, "three")
    (project.folder / "go").touch()
    project.ci_eval("run", "--resume")

    heard = ["one", "two", "three", "four"]
    assert traces(project)["long"]["final_state"] == {"heard": heard}


@pytest.mark.slow
def test_trials_of_an_agent_that_has_changed_since_are_run_again(project):
    cases = CASES.replace("three", "again")
    suite(project, RUN, COMMAND, cases)
    git = Repo(project.folder).git
    git("init", "--quiet")
    git("add", "bot.py", "cases.yaml", "ci-eval.yaml")
    git("commit", "--quiet", "-m", "all")
    first = project.ci_eval("run")
    assert "reused" not in first.err
    assert len(log(project)) == 4, first.err

    # What the agent wrote, and other cases, are no other code.
    (project.folder / "cases.yaml").write_text(f"{cases}- {{id: more, prompt: five}}\n")
    assert "reused 2 trials from the previous run\n" in project.ci_eval("run", "--resume").err
    assert log(project) == ["five"]

    for change in ("in the work tree", "in a commit"):
        (project.folder / "bot.py").write_text(f"{COMMAND}# {change}\n")
        if change == "in a commit":
            git("commit", "--quiet", "-a", "-m", change)
        again = project.ci_eval("run", "--resume").err
        assert "reused 0 trials from the previous run\n" in again
        assert "ran 3 trials again: the agent, or files of the repository, changed since\n" in again
        assert len(log(project)) == 5


def test_trials_of_an_agent_with_other_options_are_run_again(project, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody-at-all")
    command = f"models: {{max_calls: 5}}, {RUN}"
    suite(project, command, COMMAND, CASES.replace("three", "again"))
    project.ci_eval("run")
    begun = len(log(project))
    config = project.folder / "ci-eval.yaml"
    config.write_text(config.read_text().replace("max_calls: 5", "max_calls: 9"))
    assert "reused 0" not in project.ci_eval("run", "--resume").err

    config.write_text(config.read_text().replace("command:", "env: {MODE: other}, command:"))
    log(project)
    again = project.ci_eval("run", "--resume").err

    assert "reused 0 trials from the previous run\n" in again
    assert "the agent, or files of the repository, changed since\n" in again
    assert len(log(project)) == begun


@pytest.mark.slow
def test_what_was_under_way_of_another_case_is_left(project):
    suite(project, 'python: "bot:answer"', PYTHON)
    run_and_kill(project, "three")
    (project.folder / "go").touch()
    suite(project, 'python: "bot:answer"', PYTHON, CASES.replace("four", "five"))
    log(project)
    ended = project.ci_eval("run", "--resume")

    assert "reused 1 trial from the previous run\n" in ended.err
    assert log(project) == ["one", "two", "three", "five"]
    assert ended.err.count("reused") == 1
    assert "reused 1 trial from the previous run" in project.read("report.html")


@pytest.mark.slow
def test_traces_of_a_run_that_was_killed_can_be_scored(project):
    """What is under way stands in a file of its own, which no recording is mixed up with."""
    suite(project, 'python: "bot:answer"', PYTHON)
    run_and_kill(project, "three")
    (project.folder / "ci-eval-report/traces.jsonl").rename(project.folder / "traces.jsonl")
    project.config(
        project.folder.joinpath("ci-eval.yaml")
        .read_text()
        .replace('python: "bot:answer"', "recorded: traces.jsonl")
    )
    ended = project.ci_eval("run", "--case", "short")

    assert ended.code == 0


# --- Waiting ------------------------------------------------------------------------------------

ASKS = (
    LOGS
    + """
def answer(message, history, session):
    said = reply(message, history, session)
    if message == "refund":
        return {"response": "May I?", "waits_for": [{"name": "approve", "args": {"order": 7}}]}
    if isinstance(message, str):
        return said
    given = message["parts"][0]["function_response"]["response"]
    return {"response": f"refunded: {given['result']}", "tool_calls": [{"name": "refund"}]}
"""
)
ASKED = """\
- id: long
  turns: [{prompt: one}, {prompt: refund}, {prompt: bye}]
- {id: short, prompt: hello}
"""
ANSWERS = "  human_answers: {approve: {args: {order: 7}, result: gladly}}\n"
WAITS = "the agent waits for an answer to approve(order=7); add it to `human_answers` of the case"


def answered(more: str = "") -> str:
    first, last = ASKED.split("- {id: short")
    return f"{first}{ANSWERS}{more}- {{id: short{last}"


def test_an_agent_that_waits_is_an_error_in_every_report(project):
    suite(project, 'python: "bot:answer"', ASKS, ASKED)
    ended = project.ci_eval("run")

    assert ended.code == 6
    assert f"ERROR bot · talks · long: waiting: {WAITS}" in ended.err
    junit = project.read("junit.xml")
    assert 'type="ci_eval.waiting"' in junit
    assert "waits for an answer to approve(order=7)" in junit
    assert "waits for an answer to approve" in project.read("comment.md")
    assert "waits for an answer to approve" in project.read("annotations.txt")
    (result, _) = project.run_json()["results"]
    assert result["error"] == {"kind": "waiting", "message": WAITS}


def test_a_human_answers_at_once_where_the_case_says_what(project):
    suite(project, 'python: "bot:answer"', ASKS, answered())
    assert project.ci_eval("run").code == 0

    trace = traces(project)["long"]
    assert said(trace) == ["one after 0", "refunded: gladly", "bye after 3"]
    assert log(project) == ["one", "refund", "answer", "bye"]


@pytest.mark.parametrize(
    ("more", "asked", "expected"),
    [
        ("", ["bye"], ["one after 0", "gladly", "bye after 2"]),
        (
            "  rerun_on_resume: true\n",
            ["answer", "bye"],
            ["one after 0", "refunded: gladly", "bye after 3"],
        ),
    ],
)
def test_what_waited_goes_on_when_it_is_answered(project, more, asked, expected):
    suite(project, 'python: "bot:answer"', ASKS, ASKED)
    project.ci_eval("run")
    log(project)
    suite(project, 'python: "bot:answer"', ASKS, answered(more))
    ended = project.ci_eval("run", "--resume")

    assert ended.code == 0
    assert log(project) == asked
    assert said(traces(project)["long"]) == expected
    assert "reused 1 trial, and 1 invocation of others from the previous run\n" in ended.err
    assert not (project.folder / "ci-eval-report/underway.jsonl").exists()
    # There is nothing left to go on with.
    assert project.ci_eval("run", "--resume").code == 0
    assert log(project) == []


def test_what_nobody_has_answered_waits_on(project):
    suite(project, 'python: "bot:answer"', ASKS, ASKED)
    project.ci_eval("run")
    log(project)
    for _ in range(2):
        ended = project.ci_eval("run", "--resume")
        assert ended.code == 6
        assert WAITS in ended.err
        assert log(project) == []

    suite(project, 'python: "bot:answer"', ASKS, answered())
    assert project.ci_eval("run", "--resume").code == 0
    assert log(project) == ["bye"]


def test_a_run_that_goes_on_tries_errors_again_and_nothing_else(project):
    broken = PYTHON.replace("    return reply", '    assert message != "two"\n    return reply')
    (project.folder / "go").touch()
    suite(project, 'python: "bot:answer"', broken)
    assert project.ci_eval("run").code == 6
    assert log(project) == ["one"]
    suite(project, 'python: "bot:answer"', PYTHON)
    ended = project.ci_eval("run", "--resume")

    assert ended.code == 0
    assert "reused 1 trial from the previous run\n" in ended.err
    assert log(project) == ["one", "two", "three", "four"]
    assert (project.folder / "calls.log").read_text() == ""


# --- Canned results -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "code", "kind"),
    [('python: "bot:answer"', PYTHON, "python"), (RUN, COMMAND, "command")],
)
def test_an_agent_whose_tools_nobody_can_replace_is_not_let_loose_on_them(
    project, agent, code, kind
):
    mocked = "- {id: mocked, prompt: hi, tool_mocks: {tools: {refund: {result: 1}}}}\n"
    suite(project, agent, code, mocked)
    ended = project.ci_eval("run")

    assert ended.code == 6
    assert (
        f"mocked: unsupported: the case has `tool_mocks`, but an agent of type {kind!r}"
        in ended.err
    )
    assert log(project) == []
