"""What is observed of an agent of Google ADK is what ADK stores when it evaluates it.

Runs where CI_EVAL_ADK_PYTHON names a Python that has google-adk 2.13 with its `eval` extra and
`mcp`; CI_EVAL_ADK23_PYTHON names one with 2.3.0.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from servers.loopback import serving
from support.adk_agents import AGENTS, PLACE, VERSIONS, Weather, agent, normal, python

from ci_eval.agents.adk_agent import Adk
from ci_eval.records.cases import Content, Invocation
from ci_eval.records.errors import TrialError
from ci_eval.runtime.workers.worker_pool import WORKER

SCRIPT = Path(__file__).with_name("adk_parity.py")


def said(*messages: str, **state: Any) -> dict[str, Any]:
    return {"messages": messages, "state": state}


CASES = {
    "plain": [said("Hello"), said("One", "Two")],
    "tools": [said("Oslo")],
    "transfer": [said("Who knows?", "And now?")],
    "steps": [said("Write.")],
    "waiting": [said("a trip"), said("pay")],
    "stateful": [said("tea", "stop", guest="Ada"), said("secret", guest="Bob")],
    "own_agent": [said("Go.")],
    "cut_off": [said("go"), said("nothing")],
    "agent_tool": [said("Ask him.")],
    "raising": [said("Go.")],
    "gemini": [said("Oslo")],
    "mcp_tools": [said("Ada"), said("Bob")],
    "app": [said("Go.")],
    "later": [said("Well?")],
}
"""Conversations by the folder of the agent."""
ONLY_NEW = {"app", "later"}
"""What 2.3 evaluates otherwise: it leaves apps out."""


class Parity(NamedTuple):
    """What both came to."""

    version: str
    theirs: dict[str, Any]
    ours: dict[str, Any]


@pytest.fixture(scope="module", params=VERSIONS)
def parity(request: pytest.FixtureRequest) -> Parity:
    version = request.param
    gemini = Weather()
    with serving(gemini):
        found = subprocess.run(
            [python(version), "-B", SCRIPT, WORKER],
            input=json.dumps(
                {name: cases for name, cases in CASES.items() if name not in ONLY_NEW}
                if version == "2.3"
                else CASES
            ),
            cwd=AGENTS,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(AGENTS),
                "GOOGLE_API_KEY": "none",
                "GOOGLE_GEMINI_BASE_URL": gemini.url,
            },
            capture_output=True,
            text=True,
            timeout=900,
        )
    assert found.returncode == 0, found.stderr[-3000:]
    both = json.loads(found.stdout)
    return Parity(
        version,
        {name: each["theirs"] for name, each in both.items()},
        {name: each["ours"] for name, each in both.items()},
    )


@pytest.mark.parametrize("folder", CASES)
def test_what_is_observed_is_what_adk_stores(parity: Parity, folder: str) -> None:
    if folder not in parity.theirs:
        pytest.skip(f"ADK {parity.version} does not evaluate it as 2.13 does")

    for case, theirs, replies in zip(
        CASES[folder], parity.theirs[folder], parity.ours[folder], strict=True
    ):
        if theirs is None:
            continue
        expected = [Invocation.model_validate(turn) for turn in theirs]
        assert len(expected) == len(case["messages"])
        for turn, message, reply in zip(expected, case["messages"], replies, strict=True):
            assert normal(observed(message, reply)) == normal(turn)


def observed(message: str, reply: Any) -> Invocation:
    content = Content.of_text(message, role="user")
    try:
        return Adk(adk="agents").invocation(content, reply, 0.0)
    except TrialError as exc:
        found: Invocation = exc.seen
        return found


def test_agents_that_could_not_be_evaluated_are_those_that_raise(parity: Parity) -> None:
    failed = [name for name, cases in parity.theirs.items() if None in cases]
    assert failed == ["raising"]
    [[reply]] = parity.ours["raising"]
    place = "raising/agent.py:9"
    assert reply["error"] == {
        "kind": "raised",
        "message": f"RuntimeError: the tool is broken ({place})",
    }
    assert [each.name for each in observed("Go.", reply).tool_calls] == ["broken"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_command_of_adk_stores_the_same(version: str, tmp_path: Path) -> None:
    ran = python(version)
    shutil.copytree(AGENTS / "tools", tmp_path / "tools")
    turn = {"user_content": {"role": "user", "parts": [{"text": "Oslo"}]}}
    evalset = {"eval_set_id": "set", "eval_cases": [{"eval_id": "one", "conversation": [turn]}]}
    (tmp_path / "set.json").write_text(json.dumps(evalset))
    (tmp_path / "config.json").write_text('{"criteria": {"tool_trajectory_avg_score": 1.0}}')
    command = [ran, "-m", "google.adk.cli", "eval", "tools", "set.json"]
    subprocess.run(
        [*command, "--config_file_path=config.json"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(AGENTS)},
        capture_output=True,
        timeout=900,
    )
    [path] = tmp_path.glob("tools/.adk/eval_history/*")
    stored = json.loads(path.read_text())
    stored = json.loads(stored) if isinstance(stored, str) else stored
    [case] = stored["eval_case_results"]
    [result] = case["eval_metric_result_per_invocation"]

    [ours] = PLACE.talk(agent("tools", version), "Oslo").invocations

    assert normal(ours) == normal(Invocation.model_validate(result["actual_invocation"]))
