"""Agents with the real clients, recorded once and replayed with the provider gone.

Each runs under the Python that a variable names, as `.ci/run` makes them; those of google-genai and
openai run under ours.  `.ci/run` replays each twice; with `CI_EVAL_REPLAYS=20`, it is 20 times.
"""

import os
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from servers.loopback import serving
from servers.models import KEYS, Models, addresses
from support.adk_agents import AGENTS as ADK_AGENTS
from support.counting_listener import Listener, listening
from support.model_projects import ModelProject

pytestmark = [pytest.mark.processes, pytest.mark.slow]

AGENTS = Path(__file__).parent / "client_agents"
REPLAYS = int(os.environ.get("CI_EVAL_REPLAYS", "2"))
"""How often each agent is replayed; half of the runs hold one conversation at a time."""
CASES, REPEATS = 7, 3
TRIALS = CASES * REPEATS
MANY = 20
"""Conversations at a time, otherwise."""


class Client(NamedTuple):
    """An agent, and the Python that has what it needs."""

    source: Path
    """Its file, or its folder."""
    kind: str
    """The keys that set its type."""
    variable: str
    """The variable that names its Python; empty for ours."""
    calls: int
    """How often it asks a model in one conversation."""


FUNCTION = 'python: "bot:answer"'
OURS, CLIENTS, FRAMEWORKS = "", "CI_EVAL_CLIENTS_PYTHON", "CI_EVAL_FRAMEWORKS_PYTHON"
ADKS = {"2.13": "CI_EVAL_ADK_PYTHON", "2.3": "CI_EVAL_ADK23_PYTHON"}
ALL = {
    "google-genai": Client(AGENTS / "google_genai.py", FUNCTION, OURS, 2),
    "google-genai in threads": Client(AGENTS / "google_genai_in_threads.py", FUNCTION, OURS, 1),
    "openai": Client(AGENTS / "openai_client.py", FUNCTION, OURS, 5),
    "openai in threads": Client(AGENTS / "openai_in_threads.py", FUNCTION, OURS, 1),
    "anthropic": Client(AGENTS / "anthropic_client.py", FUNCTION, CLIENTS, 2),
    "langgraph": Client(AGENTS / "langgraph_graph.py", 'langgraph: "bot:graph"', FRAMEWORKS, 2),
    "openai-agents": Client(
        AGENTS / "openai_agents_agent.py", 'openai_agents: "bot:agent"', FRAMEWORKS, 2
    ),
    "pydantic-ai": Client(
        AGENTS / "pydantic_ai_agent.py", 'pydantic_ai: "bot:agent"', FRAMEWORKS, 2
    ),
    "agentflow": Client(
        AGENTS / "agentflow_graph.py", 'agentflow: "bot:graph"', "CI_EVAL_AGENTFLOW_PYTHON", 3
    ),
    **{
        f"adk {version}{name}": Client(source, kind, variable, calls)
        for version, variable in ADKS.items()
        for name, source, kind, calls in (
            ("", ADK_AGENTS / "gemini", "adk: gemini", 2),
            (" streams", AGENTS / "adk_streams.py", FUNCTION, 2),
            (" litellm", AGENTS / "adk_litellm", "adk: adk_litellm", 6),
        )
    },
}


def prepared(project: ModelProject, client: Client) -> None:
    """Write a project with the agent; skip if its Python is missing."""
    python = os.environ.get(client.variable, "") if client.variable else sys.executable
    if not python:
        pytest.skip(f"{client.variable} names no Python with it")
    code = ""
    if client.source.is_dir():
        shutil.copytree(client.source, project.folder / client.source.name)
    else:
        code = client.source.read_text(encoding="utf-8")
    kind = f"{client.kind}, interpreter: {python}"
    project.agent(code, "{mode: record, cassette: models.jsonl}", kind=kind, cases=CASES)
    project.edit("response_match_score: 0.5", "response_match_score: 0.1")
    project.add(f"run: {{repeats: {REPEATS}, concurrency: {MANY}}}\n")


def go_offline(project: ModelProject, listener: Listener) -> None:
    """Take the keys away, and lead all that leaves this machine to the listener."""
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), listener.url)
    project.set(**dict.fromkeys(KEYS), **addresses(listener.url), **proxies)


@pytest.mark.parametrize("name", ALL)
def test_a_client_gets_from_the_cassette_what_it_got_from_the_provider(
    project: ModelProject, name: str
):
    client = ALL[name]
    prepared(project, client)
    models = Models()
    with serving(models):
        project.with_keys(models)
        recorded = project.run()
    assert recorded.code == 0, recorded.err
    assert project.values("ci/model_calls") == [client.calls] * TRIALS
    assert len(models.requests) == TRIALS * client.calls
    # Repeats stay samples: the provider never says the same twice.
    assert len({*map(str, project.responses().values())}) == TRIALS

    with listening() as listener:
        go_offline(project, listener)
        at_once = MANY
        for number in range(REPLAYS):
            before, at_once = at_once, 1 if number % 2 else MANY
            project.edit(f"concurrency: {before}", f"concurrency: {at_once}")
            replayed = project.run("--models", "replay", out=f"out-{number}")
            assert replayed.code == 0, replayed.err
            assert project.observed(f"out-{number}") == project.observed()
            for each in ("ci/tokens", "ci/cost_usd", "ci/model_calls"):
                assert project.values(each, f"out-{number}") == project.values(each)
        assert listener.connections() == 0


def test_a_call_that_leaves_this_machine_is_seen(project: ModelProject):
    code = (
        "import urllib.request\n\n\ndef answer(message):\n"
        "    try:\n        urllib.request.urlopen('https://models.example/v1')\n"
        "    except OSError:\n        return message\n"
    )
    project.agent(code, "live", cases=2)
    with listening() as listener:
        project.set(OPENAI_API_KEY="k")
        project.set(HTTPS_PROXY=listener.url)
        assert project.run().code == 0
        assert listener.connections() == 2
