"""ADK's evalsets and results in a bucket: what ADK writes is read, and what is written, ADK reads.

Both talk to gcp-storage-emulator.  Runs where CI_EVAL_ADK_PYTHON names a Python that has
google-adk 2.13 with its `eval` extra and google-cloud-storage; CI_EVAL_ADK23_PYTHON names one with
2.3.0.
"""

import io
import json
import os
import random
import secrets
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from support.agent_sessions import LONG_S, waits_for
from support.project import CASES, GREETS, REFUNDS, Project

from ci_eval.agents._agent_server import _free_port
from ci_eval.records.errors import ExitCode
from ci_eval.runtime.storage.gcs import GcsOptions, Storage

PYTHONS = {"2.13": "CI_EVAL_ADK_PYTHON", "2.3": "CI_EVAL_ADK23_PYTHON"}
SCRIPT = Path(__file__).with_name("adk_storage_speaks.py")
RESULT = {
    "eval_set_id": "theirs",
    "eval_id": "greets",
    "final_eval_status": 1,
    "overall_eval_metric_results": [],
    "eval_metric_result_per_invocation": [
        {
            "actual_invocation": GREETS["conversation"][0],
            "expected_invocation": GREETS["conversation"][0],
            "eval_metric_results": [],
        }
    ],
    "session_id": "s",
}
"""What both versions of ADK take for the result of a case."""
CONFIG = """\
version: 1
name: shop
agents:
  shop: {recorded: traces.jsonl}
evalsets:
  theirs: gs://kept/shop/theirs
criteria:
  tool_trajectory_avg_score: 1.0
"""


@pytest.fixture(scope="module")
def emulator() -> Iterator[str]:
    """The address of an emulator that was just started."""
    with ExitStack() as leaving:
        # Whose port another was quicker to take has ended.
        yield next(filter(None, (started(leaving) for _ in range(5))))


def started(leaving: ExitStack) -> str:
    """Start an emulator and return its address; nothing where it ended at once."""
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    command = ("-m", "gcp_storage_emulator", "start", "--in-memory", "--host=127.0.0.1")
    running = leaving.enter_context(
        subprocess.Popen(
            [sys.executable, *command, f"--port={port}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    )
    leaving.callback(running.kill)

    def is_ready() -> bool:
        with suppress(OSError):
            make_bucket(url, "first")
            return True
        return False

    assert waits_for(lambda: is_ready() or running.poll() is not None)
    return url if running.poll() is None else ""


def make_bucket(url: str, name: str) -> None:
    request = urllib.request.Request(
        f"{url}/storage/v1/b",
        json.dumps({"name": name}).encode(),
        {"content-type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=LONG_S).close()


class Adk:
    """One version of ADK, and a bucket of its own."""

    def __init__(self, version: str, url: str) -> None:
        self._python = os.environ.get(PYTHONS[version], "")
        if not self._python:
            pytest.skip(f"{PYTHONS[version]} names no Python with google-adk {version}")
        # pytest may set the fixture up twice.
        self.bucket = f"kept-{version}-{secrets.token_hex(4)}"
        self._url = url
        make_bucket(url, self.bucket)

    def __call__(self, what: str, **given: Any) -> Any:
        done = subprocess.run(
            [self._python, SCRIPT, self.bucket, what],
            input=json.dumps(given),
            env={**os.environ, "STORAGE_EMULATOR_HOST": self._url},
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module", params=PYTHONS)
def adk(request: pytest.FixtureRequest, emulator: str) -> Adk:
    """ADK, which has written an evalset and a result."""
    found = Adk(request.param, emulator)
    found("write", cases=[GREETS, REFUNDS], results=[RESULT])
    return found


@pytest.fixture
def project(adk, emulator, tmp_path, capsys, monkeypatch) -> Project:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", emulator)
    found = Project(tmp_path, capsys)
    found.config(CONFIG.replace("kept", adk.bucket))
    return found


def test_what_adk_wrote_is_read(adk, project):
    ended = project.ci_eval("run")

    assert ended.code == ExitCode.PASSED, ended.err
    assert [each["key"]["case"] for each in project.run_json()["results"]] == ["greets", "refunds"]


def test_a_result_of_adk_is_replayed(adk, project):
    (name,) = (each for each in adk("read")["results"] if "theirs" in each)
    place = f"gs://{adk.bucket}/shop/evals/eval_history/{name}.evalset_result.json"
    project.evalset(GREETS)
    project.config(
        CONFIG.replace("traces.jsonl", json.dumps(place)).replace(
            "gs://kept/shop/theirs", "smoke.evalset.json"
        )
    )
    ended = project.ci_eval("run")

    assert ended.code == ExitCode.PASSED, ended.err
    assert project.scores() == {"greets": {"tool_trajectory_avg_score": 1.0}}


def test_both_list_the_same_evalsets_and_read_the_same_in_them(adk, project):
    place = f"gs://{adk.bucket}/shop"
    assert project.ci_eval("evalset", "create", place, "ours").code == ExitCode.PASSED
    added = project.ci_eval("evalset", "add", place, "ours", "--file", "smoke.evalset.json")
    assert added.code == ExitCode.PASSED, added.err
    theirs = adk("read")["sets"]
    ours = project.ci_eval("evalset", "list", place, "--json").json

    assert {each["id"]: each["cases"] for each in ours} == {
        name: len(found["eval_cases"]) for name, found in theirs.items()
    }
    assert [case["eval_id"] for case in theirs["ours"]["eval_cases"]] == [
        case["eval_id"] for case in CASES
    ]
    said = theirs["ours"]["eval_cases"][1]["conversation"][0]
    assert said["final_response"]["parts"][0]["text"] == "Order 7 is refunded."
    assert said["intermediate_data"]["tool_uses"][0]["args"] == {"order": 7}


def test_adk_reads_the_results_that_are_left(adk, project):
    ended = project.ci_eval("run", "--adk-results", f"gs://{adk.bucket}")
    (line,) = (line for line in ended.err.splitlines() if line.startswith("results: "))
    name = line.rpartition("/")[2].removesuffix(".evalset_result.json")
    result = adk("read")["results"][name]

    assert result["eval_set_id"] == "theirs"
    assert [each["eval_id"] for each in result["eval_case_results"]] == ["greets", "refunds"]
    assert [each["final_eval_status"] for each in result["eval_case_results"]] == [1, 1]


def test_both_refuse_the_same_ids_in_the_same_words(adk, project):
    given = ["theirs", "a-b", "a/b", ""]
    ours = [
        project.ci_eval("evalset", "create", f"gs://{adk.bucket}/shop", each).err for each in given
    ]

    said = adk("refuse", ids=given)
    for their_words, our_words in zip(said[:2], ours, strict=False):
        assert their_words in our_words
    assert len(said) == len(given)
    assert all(ours)


def test_what_is_sent_in_several_pieces_is_stored_whole(emulator):
    """As google-cloud-storage does with more than 8 MiB."""
    data = random.Random(1).randbytes(20 << 20)
    bucket = Storage(GcsOptions(), {"STORAGE_EMULATOR_HOST": emulator}).bucket("first")
    bucket.put("large", io.BytesIO(data), instead_of=0)

    assert bucket.copy("large").path.read_bytes() == data
