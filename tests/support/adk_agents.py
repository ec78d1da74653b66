"""Agents of Google ADK with scripted models, and the Pythons that can run them."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from servers.gemini import answer
from servers.loopback import Loopback, Reply, Request, as_json
from support.agent_sessions import Place

from ci_eval.agents.adk_agent import Adk
from ci_eval.records.cases import Invocation

AGENTS = Path(__file__).parents[1] / "integration" / "agents" / "adk_agents"
PLACE = Place(AGENTS)
VERSIONS = {"2.13": "CI_EVAL_ADK_PYTHON", "2.3": "CI_EVAL_ADK23_PYTHON"}


def python(version: str) -> str:
    """Return the Python that has this google-adk; skip where there is none."""
    variable = VERSIONS[version]
    if not os.environ.get(variable):
        pytest.skip(f"{variable} names no Python with google-adk {version}")
    return os.environ[variable]


def agent(folder: str, version: str = "2.13", **options: Any) -> Adk:
    return Adk(adk=folder, interpreter=python(version), **options)


class Weather(Loopback):
    """A Gemini that calls one tool."""

    def reply(self, request: Request) -> Reply:
        last = request.body["contents"][-1]["parts"][-1]
        if "functionResponse" in last:
            return as_json(answer(f"It is {last['functionResponse']['response']['report']}."))
        call = {"functionCall": {"name": "weather", "args": {"city": last["text"]}}}
        return as_json(answer(parts=[{"text": "Let me see.", "thought": True}, call]))


def normal(invocation: Invocation) -> Any:
    """Return an invocation without what differs from run to run, and what only ours has."""
    told = _of_adk(json.loads(invocation.model_dump_json()))
    for name in ("creation_timestamp", "duration", "model_duration", "tool_duration"):
        assert told.pop(name, 0.0) >= 0.0
    told.pop("waits_for")
    ids: dict[str, str] = {}
    # ADK makes ids of its own: of invocations, and of calls to which the model gave none.
    text = re.sub(
        r"(?:e-|adk-)[0-9a-f-]{36}",
        lambda found: ids.setdefault(found[0], f"id-{len(ids)}"),
        json.dumps(told, sort_keys=True),
    )
    return json.loads(text)


def _of_adk(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: each for name, each in value.items() if each is not None}
        kept.pop("finish_reason", None)  # ADK stores none
        return {name: _of_adk(each) for name, each in kept.items()}
    return list(map(_of_adk, value)) if isinstance(value, list) else value
