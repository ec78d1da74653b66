"""`ci-eval adk` beside `adk eval` itself, for the same agent and evalset.

Runs where CI_EVAL_ADK_PYTHON names a Python that has google-adk 2.13.0 with its `eval` extra.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.adk_command import HERE, PRINTED, blocks
from support.commands import Ended
from support.project import case, turn

ADK = os.environ.get("CI_EVAL_ADK_PYTHON", "")
pytestmark = pytest.mark.skipif(
    not ADK, reason="CI_EVAL_ADK_PYTHON names no Python with google-adk"
)
CI_EVAL = Path(sys.executable).with_name("ci-eval")
DETAILS = "--print_detailed_results"
EVALSET = "agents/shop/smoke.evalset.json"

READ = """
import json
from google.adk.evaluation.local_eval_set_results_manager import LocalEvalSetResultsManager

manager = LocalEvalSetResultsManager(agents_dir="agents")
found = [
    manager.get_eval_set_result("shop", name) for name in manager.list_eval_set_results("shop")
]
print(json.dumps([each.model_dump(mode="json", exclude_none=True) for each in found]))
"""
FEATURES = """
from google.adk.agents import BaseAgent
from google.adk.events import Event
from google.adk.features import FeatureName, is_feature_enabled
from google.genai import types


class Teller(BaseAgent):
    async def _run_async_impl(self, ctx):
        asked = (FeatureName.SNAKE_CASE_SKILL_NAME, FeatureName.JSON_SCHEMA_FOR_FUNC_DECL)
        said = " ".join(str(is_feature_enabled(each)) for each in asked)
        content = types.Content(role="model", parts=[types.Part(text=said)])
        yield Event(author=self.name, invocation_id=ctx.invocation_id, content=content)


root_agent = Teller(name="teller")
"""


def place(folder: Path) -> Path:
    """Make a folder with the agent that ADK has evaluated."""
    shutil.copytree(HERE / "shop", folder / "agents/shop")
    return folder


def run(folder: Path, *command: str | Path, path: Path | None = None) -> Ended:
    """Run a command where `adk` is on the PATH."""
    env = {**os.environ, "PATH": str(path or Path(ADK).parent)}
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=900
    )
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with the agent, evaluated by `ci-eval adk`."""
    return place(tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def evaluated(folder) -> Ended:
    """What was printed there."""
    return run(folder, CI_EVAL, "adk", "agents/shop", EVALSET, DETAILS)


def untimed(printed: str) -> dict[str, str]:
    """Return the output about each case, without durations."""
    seconds = re.compile(r"\d+(\.\d+)?s|(?<=duration_v1, Status: INFORMATIONAL, Score: )[\d.]+")
    return {name: seconds.sub("…", each) for name, each in blocks(printed).items()}


def test_it_prints_of_each_case_what_adk_printed(evaluated):
    assert untimed(evaluated.out) == untimed(PRINTED), evaluated.err
    assert evaluated.code == 1


def test_adk_still_prints_that(tmp_path):
    theirs = run(
        place(tmp_path), Path(ADK).with_name("adk"), "eval", "agents/shop", EVALSET, DETAILS
    )

    assert untimed(theirs.out) == untimed(PRINTED), theirs.err


def test_adk_reads_the_results_that_are_left(folder, evaluated):
    read = run(folder, ADK, "-c", READ)

    (result,) = json.loads(read.out)
    cases = result["eval_case_results"]
    assert [each["eval_id"] for each in cases] == ["greets", "tracks", "both", "long"]
    assert [each["final_eval_status"] for each in cases] == [1, 1, 2, 2]
    assert {len(each["overall_eval_metric_results"]) for each in cases} == {6}
    sessions = [each["session_details"] for each in cases]
    assert [each["id"] for each in sessions] == [each["session_id"] for each in cases]
    assert all(each["events"][0]["author"] == "user" for each in sessions)
    assert evaluated.err.splitlines()[-2] == (
        f"results: agents/shop/.adk/eval_history/{result['eval_set_result_id']}.evalset_result.json"
    )


def test_features_of_adk_are_switched_in_the_agents_process(tmp_path):
    agent = tmp_path / "agents/teller"
    agent.mkdir(parents=True)
    (agent / "__init__.py").write_text("from . import agent\n")
    (agent / "agent.py").write_text(FEATURES)
    cases = [case("told", turn("?", "True False"))]
    (agent / "s.evalset.json").write_text(json.dumps({"eval_set_id": "s", "eval_cases": cases}))
    switched = (
        "--enable_features=SNAKE_CASE_SKILL_NAME",
        "--disable_features=JSON_SCHEMA_FOR_FUNC_DECL,AGENT_STAT",
    )

    ended = run(tmp_path, CI_EVAL, "adk", "agents/teller", "s", DETAILS, *switched)

    assert "  actual_response:            True False\n" in ended.out, ended.err
    assert ended.code == 0
    assert ended.err.count("has no feature 'AGENT_STAT'; known features: ") == 1


def test_where_no_adk_is_found_that_is_said(tmp_path):
    ended = run(place(tmp_path), CI_EVAL, "adk", "agents/shop", "smoke:greets", path=tmp_path)

    assert ended.code == 6
    assert "Overall Eval Status" not in ended.out
    assert "  Tests passed: 0\n  Tests failed: 1\n" in ended.out
    assert re.search("greets: start: .*google-adk is not installed", ended.err), ended.err
    assert "Traceback" not in ended.err
