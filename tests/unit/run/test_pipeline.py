"""The pipeline as a whole: how far it is from `run` to an agent."""

import json
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.project import GREETS

import ci_eval
from ci_eval.agents.python_agent import Python
from ci_eval.config.load_config import load
from ci_eval.plugins.points import RunningAgent, Session
from ci_eval.records.cases import Content, Invocation
from ci_eval.run.collect import Outputs
from ci_eval.run.pipeline import run
from ci_eval.run.plan import plan
from ci_eval.runtime.context import RunContext

CONFIG = """
agents: {bot: {python: "shop:answer"}}
evalsets: {smoke: smoke.evalset.json}
criteria: {response_match_score: 0.5}
"""
MOST = 7


class Watched(Session):
    """A session that writes down who called it."""

    def __init__(self, frames: list[str]) -> None:
        self._frames = frames

    async def send(self, message: Content) -> Invocation:
        package = str(Path(ci_eval.__file__).parent)
        stack = traceback.extract_stack()
        self._frames += [each.name for each in stack if each.filename.startswith(package)]
        self._frames.append("send")
        return Invocation(user_content=message, final_response=message)

    async def close(self) -> None:
        pass


def test_an_agent_is_few_calls_away_from_the_pipeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames: list[str] = []

    class Running:
        async def open(self, trial: Any, **_: Any) -> Session:
            return Watched(frames)

    @asynccontextmanager
    async def start(_: Python, context: RunContext) -> AsyncIterator[RunningAgent]:
        yield Running()

    monkeypatch.setattr(Python, "start", start)
    (tmp_path / "ci-eval.yaml").write_text(CONFIG)
    evalset = {"eval_set_id": "smoke", "eval_cases": [GREETS]}
    (tmp_path / "smoke.evalset.json").write_text(json.dumps(evalset))
    context = RunContext({}, tmp_path, lambda: 0.0)
    config = load(tmp_path / "ci-eval.yaml", shown="ci-eval.yaml", context=context)
    run(plan(config, context), context, Outputs(tmp_path / "out"))

    assert frames[0] == "run"
    assert len(frames) <= MOST, frames
