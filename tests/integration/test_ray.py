"""Trials on a real Ray cluster of two machines: what it writes is what one machine writes."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from servers.loopback import serving
from servers.models import Models
from support.commands import Ended
from support.documents import essence
from support.git_repositories import ENV
from support.git_suites import Suite, evalset
from support.model_projects import CHAT
from support.project import turn

import ci_eval

pytestmark = [pytest.mark.slow, pytest.mark.processes]
PYTHON = os.environ.get("CI_EVAL_RAY_PYTHON", "")
SCRIPT = Path(__file__).parents[1] / "support" / "ray_cluster.py"
WAIT_S = 300.0
CONFIG = """\
name: shop
agents:
  bot: {python: "bot:answer", env: [API_KEY, GATE]}
evalsets: {smoke: evals/smoke.csv}
criteria: {response_match_score: 0.8}
run: {engine: ray, concurrency: 8, per_task: 4}
"""
WAITS = """\
import os, time, uuid
from pathlib import Path
from tempfile import TemporaryDirectory
gate = Path(os.environ["GATE"])
def answer(text):
    if int(text.split()[-1]) >= 8:
        (gate / uuid.uuid4().hex).touch()
        while not (gate / "open").exists():
            time.sleep(0.05)
    return "yes"
"""
"""From the ninth case on, it waits until a test opens the gate."""


class Cluster(NamedTuple):
    address: str
    raylets: list[int]
    folder: Path
    head: int
    """The raylet of the machine that runs ci-eval."""

    def run(self, suite: Suite, *args: str, **env: str) -> Ended:
        """Run a command of ci-eval, as the first machine of the cluster would."""
        process = self.begin(suite, *args, **env)
        out, err = process.communicate(timeout=WAIT_S)
        return Ended(process.returncode, out, err)

    def begin(self, suite: Suite, *args: str, **env: str) -> subprocess.Popen[str]:
        variables = {**ENV, "PATH": os.environ["PATH"], "RAY_ADDRESS": self.address, **env}
        return subprocess.Popen(
            [PYTHON, "-m", "ci_eval", *args],
            cwd=suite.folder,
            env=variables,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


@contextmanager
def started(cpus: int) -> Iterator[Cluster]:
    if not PYTHON:
        pytest.skip("CI_EVAL_RAY_PYTHON names no Python with ray")
    # Its path is part of the names of sockets, which may not be long.
    with (
        TemporaryDirectory(prefix="ray-") as folder,
        subprocess.Popen(
            [PYTHON, SCRIPT, str(cpus), folder],
            env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process,
    ):
        assert process.stdout
        found = next((json.loads(line) for line in process.stdout if line.startswith("{")), None)
        assert found, "the cluster did not start"
        yield Cluster(found["address"], found["nodes"], Path(folder), found["head"])
        process.communicate(timeout=WAIT_S)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with started(cpus=2) as found:
        yield found


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path / "shop")


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def kill_tree(pid: int) -> None:
    """Kill a process and all that it started, the youngest last."""
    children: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            children += map(int, path.read_text().split())
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    for each in children:
        kill_tree(each)


def recordings(cases: int, repeats: int = 1) -> str:
    """Return recorded traces of an agent that says yes."""
    return "".join(
        json.dumps({"eval_id": f"c{case}", "repeat": repeat, "invocations": [said(case)]}) + "\n"
        for case in range(cases)
        for repeat in range(repeats)
    )


def said(case: int) -> dict[str, object]:
    return turn(f"question {case}", "yes")


def keys_of(suite: Suite, folder: str = "ci-eval-report") -> list[str]:
    run = json.loads((suite.folder / folder / "run.json").read_text())
    return sorted(each["key"]["case"] for each in run["results"])


def test_two_thousand_trials_are_the_same_whole_in_shards_and_on_the_cluster(cluster, suite):
    config = CONFIG.replace(", env: [API_KEY, GATE]", "").replace(
        "per_task", "repeats: 4, per_task"
    )
    config = config.replace("agents:\n", "agents:\n  tape: {recorded: tape.jsonl}\n")
    ignored = "/whole\n/ray\n/merged\n/[0-9]\n*report\n__pycache__\n"
    files = {"ci-eval.yaml": config + "baseline: {store: file}\n", ".gitignore": ignored}
    tape = recordings(250, repeats=4)
    suite.begin(250, **files, **{"tape.jsonl": tape, "evals/smoke.csv": evalset(250)})
    local = ("--engine", "local")
    cluster.run(suite, "run", *local)
    assert cluster.run(suite, "baseline", "save", "ci-eval-report/run.json").code == 0
    suite.commit("baseline")
    # Some cases break, others raise, and the last recording is missing.
    after = (
        "def answer(text):\n"
        "    number = int(text.split()[-1])\n"
        "    if number % 50 == 9: raise ValueError(f'no answer to {number}')\n"
        "    return 'no' if number % 50 == 7 else 'yes'\n"
    )
    shorter = "".join(tape.splitlines(keepends=True)[:-1])
    suite.commit("change", **{"bot.py": after, "tape.jsonl": shorter})

    whole = cluster.run(suite, "run", *local, "--out", "whole")
    shards = [*"1234567"]
    for each in shards:
        cluster.run(suite, "run", *local, "--shard", f"{each}/7", "--out", each)
    random.Random(7).shuffle(shards)
    merged = cluster.run(suite, "merge", *shards, "--out", "merged")
    there = cluster.run(suite, "run", "--out", "ray")

    assert whole.code == 1
    for name, least in (("whole/run.json", 2000), ("whole/base/run.json", 1)):
        assert len(json.loads((suite.folder / name).read_text())["results"]) >= least
    for folder, ended in (("merged", merged), ("ray", there)):
        assert (ended.code, ended.out.replace(folder, "whole")) == (whole.code, whole.out)
        assert essence(suite, folder) == essence(suite, "whole")


def test_agents_behind_the_model_gateway_stay_with_it(cluster, suite):
    bot = f"{CHAT}\ndef answer(text):\n    return ask(text).split()[0] + ' ' + os.getcwd()\n"
    cloud = "import os\ndef answer(text):\n    return os.getcwd()\n"
    config = CONFIG.replace(
        '{python: "bot:answer", env: [API_KEY, GATE]}',
        '{python: "bot:answer", models: live}\n  cloud: {python: "cloud:answer"}',
    )
    files = {"ci-eval.yaml": config, "bot.py": bot, "cloud.py": cloud}
    suite.begin(3, **files, **{"evals/smoke.csv": evalset(3)})

    models = Models()
    with serving(models):
        ended = cluster.run(suite, "run", **models.environment())

    answers: dict[str, set[str]] = {"bot": set(), "cloud": set()}
    for line in (suite.folder / "ci-eval-report/traces.jsonl").read_text().splitlines():
        row = json.loads(line)
        assert not row.get("error"), ended.err
        answers[row["agent"]].add(row["invocations"][0]["final_response"]["parts"][0]["text"])
    assert answers["bot"] == {f"question {suite.folder}"}
    assert "_ray_pkg_" in str(answers["cloud"])
    assert len(models.requests) == 3


def test_the_agents_of_the_merge_base_run_there_too(cluster, suite):
    config = CONFIG.replace(", env: [API_KEY, GATE]", "") + "baseline: {store: merge_base}\n"
    suite.begin(12, **{"ci-eval.yaml": config, ".gitignore": "/local\n/ray\n"})
    suite.commit(
        "break",
        **{"bot.py": "import ray_is_here\ndef answer(text):\n    return ray_is_here.said\n"},
        **{"ray_is_here.py": "said = 'no'\n"},
    )

    here = cluster.run(suite, "run", "--engine", "local", "--out", "local")
    there = cluster.run(suite, "run", "--out", "ray")

    assert (there.code, here.code) == (1, 1)
    assert essence(suite, "ray") == essence(suite, "local")
    assert (suite.folder / "ray/base/run.json").exists()


def test_a_machine_that_dies_loses_and_doubles_nothing(tmp_path, suite):
    gate = tmp_path / "gate"
    gate.mkdir()
    suite.begin(40, **{"ci-eval.yaml": CONFIG, "bot.py": WAITS, "evals/smoke.csv": evalset(40)})
    with started(cpus=1) as cluster:
        process = cluster.begin(suite, "run", "--json", GATE=str(gate))
        wait_until(lambda: len([*gate.iterdir()]) == 8)
        kill_tree(cluster.raylets[0])
        (gate / "open").touch()
        out, err = process.communicate(timeout=WAIT_S)

    assert process.returncode == 0, err
    assert "raylet)" not in out + err  # what Ray prints by itself
    assert json.loads(out)
    assert keys_of(suite) == sorted(f"c{number}" for number in range(40))
    run = json.loads((suite.folder / "ci-eval-report/run.json").read_text())
    assert {each["attempts"] for each in run["results"]} == {1, 2}
    assert re.search(r"^lost \d+ trials: ", err, re.MULTILINE)


def test_a_run_that_was_killed_resumes_with_what_had_landed(tmp_path, cluster, suite):
    gate = tmp_path / "gate"
    gate.mkdir()
    suite.begin(40, **{"ci-eval.yaml": CONFIG, "bot.py": WAITS, "evals/smoke.csv": evalset(40)})
    traces = suite.folder / "ci-eval-report/traces.jsonl"
    process = cluster.begin(suite, "run", GATE=str(gate))
    wait_until(lambda: traces.exists() and traces.read_text().count("\n") >= 8)
    process.kill()
    process.communicate()
    (gate / "open").touch()

    ended = cluster.run(suite, "run", "--resume", GATE=str(gate))

    assert ended.code == 0
    assert "reused 8 trials" in ended.err
    assert keys_of(suite) == sorted(f"c{number}" for number in range(40))


def test_a_cluster_without_machines_ends_the_run_which_resumes(tmp_path, cluster, suite):
    gate = tmp_path / "gate"
    gate.mkdir()
    # A busy machine takes seconds to start the first task.
    config = CONFIG.replace("per_task: 4", "per_task: 4, start_timeout_s: 30")
    suite.begin(40, **{"ci-eval.yaml": config, "bot.py": WAITS, "evals/smoke.csv": evalset(40)})
    traces = suite.folder / "ci-eval-report/traces.jsonl"
    with started(cpus=1) as lost:
        process = lost.begin(suite, "run", GATE=str(gate))
        wait_until(lambda: traces.exists() and traces.read_text().count("\n") >= 8)
        for raylet in lost.raylets:
            kill_tree(raylet)
        _, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 4
    assert "the Ray cluster ran no task within 30 s" in err

    (gate / "open").touch()
    suite.write("ci-eval.yaml", CONFIG)
    ended = cluster.run(suite, "run", "--resume", GATE=str(gate))
    assert ended.code == 0
    assert "reused 8 trials" in ended.err
    assert keys_of(suite) == sorted(f"c{number}" for number in range(40))


def test_a_run_whose_own_machine_leaves_the_cluster_ends_and_resumes(tmp_path, cluster, suite):
    gate = tmp_path / "gate"
    gate.mkdir()
    suite.begin(12, **{"ci-eval.yaml": CONFIG, "bot.py": WAITS, "evals/smoke.csv": evalset(12)})
    with started(cpus=1) as lost:
        process = lost.begin(suite, "run", GATE=str(gate))
        wait_until(lambda: any(gate.iterdir()))
        kill_tree(lost.head)
        _, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 4, err
    assert "this machine has left the Ray cluster" in err

    (gate / "open").touch()
    assert cluster.run(suite, "run", "--resume", GATE=str(gate)).code == 0
    assert keys_of(suite) == sorted(f"c{number}" for number in range(12))


def test_an_interrupted_run_ends_as_on_one_machine(tmp_path, cluster, suite):
    gate = tmp_path / "gate"
    gate.mkdir()
    suite.begin(12, **{"ci-eval.yaml": CONFIG, "bot.py": WAITS, "evals/smoke.csv": evalset(12)})
    process = cluster.begin(suite, "run", GATE=str(gate))
    wait_until(lambda: any(gate.iterdir()))
    process.terminate()
    _, err = process.communicate(timeout=WAIT_S)

    assert process.returncode == 2
    assert "interrupted" in err


def test_machines_get_the_files_and_keys_that_they_need_and_no_others(cluster, suite):
    listing = (
        "import os\n"
        "def answer(text):\n"
        "    files = sorted(f'{a}/{f}' for a, _, c in os.walk('.') for f in c if '/__' not in a)\n"
        "    return ' '.join([os.environ['API_KEY'].replace('3', 'e'), *files])\n"
    )
    config = CONFIG.replace(", GATE]", "]").replace(
        "per_task: 4", "per_task: 4, exclude: [big/, /sub/notes]"
    )
    files = {"bot.py": listing, "ci-eval.yaml": config, ".gitignore": "ignored\n"}
    more = {"big/data": "", "sub/more.py": "", "sub/notes": "", "notes": ""}
    (suite.folder.parent / "of_the_job").write_text("x")
    (suite.folder / "leak").symlink_to("../of_the_job")
    suite.begin(1, **files, **more, **{"evals/smoke.csv": evalset(1)})
    for name in (".env", "sub/.env.local", "ignored"):
        (suite.folder / name).write_text("x")
    secret = "s3cret-0123456789"

    ended = cluster.run(suite, "run", API_KEY=secret)

    assert "warning: not copied to the cluster: 'leak'; links are copied only if" in ended.err
    (line,) = (suite.folder / "ci-eval-report/traces.jsonl").read_text().splitlines()
    said = json.loads(line)["invocations"][0]["final_response"]["parts"][0]["text"].split()
    assert said == [
        secret.replace("3", "e"),
        *("./.gitignore", "./bot.py", "./ci-eval.yaml", "./evals/smoke.csv", "./notes"),
        "./sub/more.py",
    ]
    session = (cluster.folder / "session_latest").resolve()
    logs = [path for path in session.rglob("*") if path.is_file()]
    assert len(logs) > 10
    assert not [path for path in logs if secret.encode() in path.read_bytes()]
    assert secret not in metadata(cluster)


def metadata(cluster: Cluster) -> str:
    """Return all that the head keeps about jobs."""
    code = (
        "import ray\n"
        "from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_list\n"
        "ray.init(log_to_driver=False)\n"
        "for space in (None, b'job', b'fun', b'session', b'dashboard'):\n"
        "    for key in _internal_kv_list(b'', namespace=space):\n"
        "        print(key, _internal_kv_get(key, namespace=space))\n"
    )
    env = {**os.environ, "RAY_ADDRESS": cluster.address}
    done = subprocess.run([PYTHON, "-c", code], env=env, text=True, capture_output=True, check=True)
    assert "gcs://_ray_pkg" in done.stdout
    return done.stdout


def test_setup_runs_once_for_all_tasks_of_a_machine(tmp_path, cluster, suite):
    log = tmp_path / "log"
    config = CONFIG.replace(
        "env: [API_KEY, GATE]", "env: [LOG], setup: [\"sh -c 'echo done >> $LOG; sleep 1'\"]"
    ).replace("per_task: 4", "per_task: 2")
    suite.begin(30, **{"ci-eval.yaml": config, "evals/smoke.csv": evalset(30)})

    ended = cluster.run(suite, "run", LOG=str(log))

    assert ended.code == 0
    assert log.read_text() == "done\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("address: 127.0.0.1:9", "there is no Ray cluster at '127.0.0.1:9'"),
        ("cpus: 64, start_timeout_s: 1", "the Ray cluster ran no task within 1 s"),
    ],
)
def test_a_cluster_that_cannot_be_used_is_a_usage_error(options, said, cluster, suite):
    config = CONFIG.replace("per_task: 4", options)
    suite.begin(1, **{"ci-eval.yaml": config, "evals/smoke.csv": evalset(1)})

    ended = cluster.run(suite, "run")

    assert ended.code == 4
    assert said in ended.err


def test_a_cluster_with_another_version_of_ci_eval_is_a_usage_error(tmp_path, cluster, suite):
    package = Path(ci_eval.__file__).parent
    other = shutil.copytree(package, tmp_path / "other" / "ci_eval")
    shutil.copytree(package.parent / "docs", tmp_path / "other" / "docs")
    text = (other / "__init__.py").read_text()
    (other / "__init__.py").write_text(text.replace(ci_eval.__version__, "99.0"))
    suite.begin(1, **{"ci-eval.yaml": CONFIG, "evals/smoke.csv": evalset(1)})

    ended = cluster.run(suite, "run", PYTHONPATH=str(other.parent))

    assert ended.code == 4
    assert f"the Ray cluster has ci-eval {ci_eval.__version__}, but this is 99.0" in ended.err


def test_without_ray_the_extra_is_named(suite):
    suite.begin(1, **{"ci-eval.yaml": CONFIG, "evals/smoke.csv": evalset(1)})

    ended = suite.ci_eval("run")

    assert ended.code == 4
    assert "the engine 'ray' needs the package ray" in ended.err
    assert "pip install 'ci-eval[ray]'" in ended.err
