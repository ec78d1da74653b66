"""Servers that are started for a run, and whose calls of models pass the gateway."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from servers.models import KEYS, Models
from support.agent_sessions import waits_for
from support.model_projects import SERVER, ModelProject
from support.slow_params import some

pytestmark = pytest.mark.processes
START = f'start: ["{sys.executable}", bot.py, "{{port}}"]'
KINDS = {
    "http": f'http: "http://127.0.0.1:{{port}}/chat", {START}',
    "a2a": f'a2a: "http://127.0.0.1:{{port}}", {START}',
    "adk_server": f"adk_server: null, {START}",
}
CASSETTE = "{mode: record, cassette: models.jsonl}"


def serving(project: ModelProject, kind: str, models: str, *, cases: int, code: str = "") -> None:
    project.agent(code + SERVER, models, kind=KINDS[kind], cases=cases)


@pytest.mark.slow
@pytest.mark.parametrize("kind", some(KINDS, 1))
def test_a_started_server_is_recorded_and_replayed(
    project: ModelProject, models: Models, kind: str
) -> None:
    serving(project, kind, CASSETTE, cases=4)
    project.add("run: {repeats: 2, concurrency: 8}\n")
    project.with_keys(models)
    recorded = project.run()
    assert recorded.code == 0, project.errors()
    project.without_keys()

    replayed = project.run("--models", "replay", out="again")

    assert replayed.code == 0, project.errors("again")
    assert len(models.requests) == 8
    assert project.responses("again") == project.responses()
    assert len({text for each in project.responses().values() for text in each}) == 8
    assert project.values("ci/model_calls", "again") == [1.0] * 8
    assert "real-key" not in str(project.responses())


@pytest.mark.slow  # waits for a time limit
def test_a_server_that_may_still_be_busy_disturbs_no_other_trial(
    project: ModelProject, models: Models
) -> None:
    # The first one would call its model while the second one is held.
    pauses = "PAUSES = {'question 0': 6, 'question 1': 2}\n"
    serving(project, "http", CASSETTE, code=pauses, cases=3)
    project.add("run: {concurrency: 3, timeout_s: 5}\n")
    project.with_keys(models)

    assert project.run().code == 6

    assert [(name, kind) for name, (kind, _) in project.errors().items()] == [("c0", "timeout")]
    assert project.values("ci/model_calls")[1:] == [1.0, 1.0]
    assert len(models.requests) == 2


@pytest.mark.slow
def test_a_miss_on_a_server_is_an_error_of_its_trial_alone(project, models):
    serving(project, "http", CASSETTE, cases=2)
    project.with_keys(models)
    assert project.run().code == 0
    serving(project, "http", CASSETTE, cases=3)

    project.run("--models", "replay")

    assert [(name, kind) for name, (kind, _) in project.errors().items()] == [
        ("c2", "not_recorded")
    ]


@pytest.mark.parametrize("kind", ["http", "a2a", "adk_server"])
def test_a_server_that_runs_already_cannot_have_a_gateway(project, kind):
    agent = f'{kind}: "http://127.0.0.1:8000"'
    project.agent("", "auto", kind=agent)

    ended = project.ci_eval("validate")

    assert ended.code == 4
    assert re.search(r"ci-eval.yaml:1: .*needs `start`: a server that is already", ended.err)


def test_a_server_cannot_be_sent_a_key_that_the_gateway_keeps(project, models):
    headers = 'headers: {authorization: "Bearer ${OPENAI_API_KEY}"}'
    project.agent("", "auto", kind=f"{KINDS['http']}, {headers}")
    project.with_keys(models)

    ended = project.ci_eval("validate")

    assert ended.code == 4
    assert "hides 'OPENAI_API_KEY' from the agent, so its address and `headers`" in ended.err
    assert KEYS["OPENAI_API_KEY"] not in ended.err


@pytest.mark.slow
def test_a_server_ends_with_the_run_that_was_killed(project: ModelProject) -> None:
    code = "import os\n\nwith open('pid', 'w') as file:\n    file.write(str(os.getpid()))\n"
    code += "PAUSES = {'question 0': 60}\n"
    project.agent(code + SERVER, "live", kind=KINDS["http"], cases=1)
    project.set(OPENAI_API_KEY="k", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    command = [sys.executable, "-m", "ci_eval", "run"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=project.folder, stdout=quiet, stderr=quiet) as run:
        assert waits_for(lambda: number(project) > 0)
        run.kill()

    assert waits_for(lambda: not is_running(number(project)))


def number(project: ModelProject) -> int:
    path = project.folder / "pid"
    return int(path.read_text() or 0) if path.exists() else 0


def is_running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"
