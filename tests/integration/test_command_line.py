"""The command in a process of its own: signals, bugs, users' agents, a terminal."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from servers.github import Fault, github, sha
from support.agent_sessions import LONG_S, passing, waits_for
from support.project import GREETS, REFUNDS, Project

HANGS = """
import pathlib, time

def answer(message):
    if message == "Hello":
        return "Hello, how can I help?"
    pathlib.Path("asked").touch()
    time.sleep(600)
"""

ANSWERS = """
def answer(message):
    return "Order 7 is refunded."
"""


@pytest.fixture
def project(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, capsys)


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a user, not of a workflow."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GITHUB_", "RUNNER_", "CI", "INPUT_"))
    }
    return kept | more


def ci_eval(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ci_eval", *arguments],
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=LONG_S,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "inherited"),
    [
        (signal.SIGINT, signal.SIG_DFL),
        (signal.SIGTERM, signal.SIG_DFL),
        (signal.SIGHUP, signal.SIG_DFL),  # the terminal was closed
        (signal.SIGTERM, signal.SIG_IGN),  # as a shell starts what is to run in the background
    ],
)
def test_an_interrupted_run_says_how_to_go_on_and_goes_on(project, sent, inherited):
    (project.folder / "bot.py").write_text(HANGS)
    project.config(
        'agents: {bot: {python: "bot:answer"}}\n'
        "evalsets: {smoke: smoke.evalset.json}\n"
        "criteria: {response_match_score: 0.5}\n"
        "run: {concurrency: 1}\n"
    )
    project.evalset(GREETS, REFUNDS)
    out = project.folder / "ci-eval-report"
    out.mkdir()
    (out / "report.json").write_text("of an earlier run")
    how = {signal.SIGINT: inherited, signal.SIGHUP: signal.SIG_DFL}  # `nohup` would ignore it
    ours = {each: signal.signal(each, handler) for each, handler in how.items()}
    run = subprocess.Popen(
        [sys.executable, "-m", "ci_eval", "run"],
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    for each, handler in ours.items():
        signal.signal(each, handler)
    assert waits_for((project.folder / "asked").exists)
    run.send_signal(sent)
    _, err = run.communicate(timeout=LONG_S)

    assert run.returncode == 2
    assert "run again with --resume" in err
    assert "Traceback" not in err
    assert not (out / "run.json").exists()
    assert not (out / "report.json").exists(), "it says nothing of this run"

    (project.folder / "bot.py").write_text(ANSWERS)
    again = ci_eval("run", "--resume")
    assert again.returncode == 0, again.stderr
    assert len((project.folder / "ci-eval-report/traces.jsonl").read_text().splitlines()) == 2


@pytest.mark.slow
def test_a_job_that_is_cancelled_while_it_posts_ends_at_once(project):
    with github() as fake:
        fake.add_pull()
        fake.faults.append(Fault(delay_s=2 * LONG_S))
        more = fake.env | {"GITHUB_SHA": sha(10)}
        run = subprocess.Popen(
            [sys.executable, "-m", "ci_eval", "run", "--comment=update", "--pr=1"],
            env=environment(**more),
            stderr=subprocess.PIPE,
            text=True,
        )
        assert fake.arrived.wait(LONG_S)
        run.send_signal(signal.SIGTERM)
        _, err = run.communicate(timeout=LONG_S)
    assert run.returncode == 2
    assert err.endswith("interrupted\n")
    assert (project.folder / "ci-eval-report" / "run.json").exists()


def test_a_hanging_trial_is_killed_and_its_neighbours_are_not_lost(project):
    (project.folder / "bot.py").write_text(HANGS)
    project.config(
        'agents: {bot: {python: "bot:answer"}}\n'
        "evalsets: {smoke: smoke.evalset.json}\n"
        "criteria: {response_match_score: 0.5}\n"
        "run: {timeout_s: 300}\n"
    )
    project.evalset(GREETS, REFUNDS)
    asked, traces = project.folder / "asked", project.folder / "ci-eval-report/traces.jsonl"
    with passing(300, when=lambda: asked.exists() and "greets" in traces.read_text()):
        ended = project.ci_eval("run")

    assert ended.code == 6
    assert "ERROR bot · smoke · refunds: timeout: timed out after 300 s" in ended.err
    statuses = [result["status"] for result in project.run_json()["results"]]
    assert statuses == ["passed", "error"]


@pytest.mark.slow
def test_a_bug_of_ours_is_not_a_verdict(project):
    (project.folder / "ci_eval_bug.py").write_text(
        "import ci_eval.run.pipeline as p\n"
        "def run(*_): raise ZeroDivisionError('ours')\np.run = run\n"
    )
    code = "import ci_eval_bug, sys; sys.argv = ['ci-eval', 'run']; "
    code += "from ci_eval.__main__ import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(PYTHONPATH=str(project.folder)),
        capture_output=True,
        text=True,
        timeout=LONG_S,
    )

    assert ended.returncode == 3
    assert "ZeroDivisionError: ours" in ended.stderr
    assert "This is a bug in ci-eval" in ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize("streams", [">&-", "2>&-", ">&- 2>&-", "2>/dev/full"])
def test_streams_that_nobody_can_read_change_no_exit_code(project, streams):
    command = f"'{sys.executable}' -m ci_eval run {streams}"
    ended = subprocess.run(["sh", "-c", command], cwd=project.folder, check=False)

    assert ended.returncode == 0
    assert (project.folder / "ci-eval-report/junit.xml").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("command", "code"),
    [("plan", 6), ("plan --json", 6), ("run --json", 6), ("nonsense --json", 4)],
)
def test_a_result_that_a_full_disk_refuses_is_the_machines_matter(
    project, command, code, unbuffered
):
    ended = subprocess.run(
        ["sh", "-c", f"'{sys.executable}' -m ci_eval {command} >/dev/full"],
        env=environment(PYTHONUNBUFFERED=unbuffered),
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )

    assert ended.returncode == code
    if code == 6:
        assert "out of system resources: No space left on device\n" in ended.stderr
    assert "bug in ci-eval" not in ended.stderr
    assert "Exception ignored" not in ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("command", "code"), [("schema", 0), ("run -q", 6)])
def test_a_reader_that_has_had_enough_changes_no_exit_code(project, command, code):
    project.traces(GREETS, REFUNDS)
    with subprocess.Popen(
        [sys.executable, "-m", "ci_eval", *command.split()],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as printing:
        assert printing.stdout
        printing.stdout.close()
        assert printing.stderr
        said = printing.stderr.read()

    assert printing.returncode == code
    assert said == ""


@pytest.mark.slow
def test_somebody_who_watches_sees_a_bar_and_a_table(project):
    """A terminal gets colours; what was said stays readable when they are taken out."""
    project.traces(GREETS, REFUNDS)
    ours, theirs = pty.openpty()
    run = subprocess.Popen(
        [sys.executable, "-m", "ci_eval", "run"],
        env=environment(TERM="xterm", COLUMNS="60"),
        stderr=theirs,
        stdout=theirs,
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            chunk = os.read(ours, 4096)
        except OSError:
            break
        if not chunk:
            break
        said += chunk
    os.close(ours)

    assert run.wait(timeout=LONG_S) == 6
    colored = said.decode()
    text = click.unstyle(colored)
    assert "ERROR bot · smoke · tracks: not_recorded" in text
    assert "tool_trajectory_avg_score" in text  # not cut at 60 columns
    assert "response_match_score" in text
    assert click.style("? INCOMPLETE: the suite has no verdict", fg="yellow", bold=True) in colored


@pytest.mark.slow
def test_a_long_run_in_ci_says_little_and_groups_it(project):
    said = GREETS["conversation"]
    cases = [{"eval_id": f"case{n}", "conversation": said} for n in range(200)]
    project.evalset(*cases)
    project.traces()
    ended = ci_eval("run", GITHUB_ACTIONS="true")

    assert ended.returncode == 6
    lines = ended.stderr.splitlines()
    assert "::group::200 trials" in lines
    assert "::endgroup::" in lines
    assert "… see the reports for the others" in lines
    assert len(lines) < 80
    assert len([line for line in ended.stdout.splitlines() if line.startswith("::")]) <= 20


def test_without_a_key_or_network_the_examples_run(tmp_path):
    """Nothing of the environment is needed but the path."""
    config = Path(__file__).parents[2] / "examples/weather/ci-eval.yaml"
    ended = subprocess.run(
        [sys.executable, "-m", "ci_eval", "run", "--json", "-c", str(config)],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=LONG_S,
        cwd=tmp_path,
    )

    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["verdict"]["outcome"] == "passed"
