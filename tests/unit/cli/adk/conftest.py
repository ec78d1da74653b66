"""An agent of ADK without ADK: what it does was recorded when ADK evaluated it."""

import pytest
from support.adk_command import Shop


@pytest.fixture
def shop(tmp_path, monkeypatch, capsys) -> Shop:
    """A shop whose agent is a recording, so that no google-adk is needed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "ci_eval.cli.adk.adk_eval_options.agent_of", lambda *_: {"recorded": "traces.jsonl"}
    )
    return Shop(tmp_path, capsys)
