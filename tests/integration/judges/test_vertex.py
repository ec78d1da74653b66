"""The Vertex AI evaluation service's own package, against a server on this machine.

Runs where CI_EVAL_ADK_PYTHON names a Python that has google-adk with its `eval` extra, which
brings the package.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from servers.gemini import error
from servers.loopback import DROPPED, Reply, as_json, serving
from servers.vertex import FakeVertex, measured, rubric, unmeasured
from support.service_scores import served

from ci_eval.criteria.adk_vertex import VertexJudged
from ci_eval.plugins import points
from ci_eval.records.cases import EvalCase
from ci_eval.records.questions import Question
from ci_eval.records.trials import Trace, TrialKey

ADK = os.environ.get("CI_EVAL_ADK_PYTHON", "")
pytestmark = pytest.mark.skipif(
    not ADK, reason="CI_EVAL_ADK_PYTHON names no Python with google-adk"
)
ROOT = Path(__file__).parents[3]
NAMES = [
    "safety_v1",
    "response_evaluation_score",
    "multi_turn_task_success_v1",
    "multi_turn_trajectory_quality_v1",
    "multi_turn_tool_use_quality_v1",
]


def said(text: str, role: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"text": text}]}


CALL = {"id": "1", "name": "refund", "args": {"order": 7, "note": None, "why": {"x": None}}}
TOOL = {
    "function_declarations": [
        {
            "name": "refund",
            "description": "Pays back.",
            "parameters": {"type": "OBJECT", "properties": {"order": {"type": "INTEGER"}}},
        }
    ]
}
EVENTS = [
    {"author": "shop", "content": {"role": "model", "parts": [{"function_call": CALL}]}},
    {"author": "shop", "content": None},
    {
        "author": "shop",
        "content": {
            "role": "user",
            "parts": [
                {"function_response": {"id": "1", "name": "refund", "response": {"paid": True}}}
            ],
        },
    },
]
SHOP = {"name": "shop", "instructions": "Be kind.", "tool_declarations": [TOOL]}
ACTUAL = [
    {
        "invocation_id": "i-1",
        "user_content": said("Refund 7 — “now”, please", "user"),
        "final_response": {
            "role": "model",
            "parts": [{"text": "Order 7"}, {"text": "is refunded."}],
        },
        "intermediate_data": {"invocation_events": EVENTS},
        "app_details": {"agent_details": {"shop": SHOP}},
    },
    {
        "invocation_id": "i-2",
        "user_content": said("Thanks", "user"),
        "final_response": said("Bye.", "model"),
        "intermediate_data": {"tool_uses": [{"name": "wave"}]},
        "app_details": {
            "agent_details": {
                "shop": {"name": "shop", "instructions": "Later."},
                "helper": {"name": "helper"},
            }
        },
    },
]
CASE = {
    "eval_id": "refunds",
    "conversation": [
        {
            "user_content": said("Refund 7", "user"),
            "final_response": said("Order 7 is paid back.", "model"),
        },
        # Stated, as what a case does not state is skipped here, and ADK asks about it.
        {"user_content": said("Thanks", "user"), "final_response": said("Bye.", "model")},
    ],
}


@pytest.fixture
def vertex() -> Iterator[FakeVertex]:
    with serving(provider := FakeVertex()):
        yield provider


def criterion(name: str) -> VertexJudged:
    model = points.criterion[name]
    assert issubclass(model, VertexJudged)
    return model(threshold=1.0)


def questions(name: str) -> list[Question]:
    """Return the criterion's question."""
    trace = Trace.model_validate(
        {"key": TrialKey(agent="a", evalset="e", case="c"), "invocations": ACTUAL}
    )
    return served(criterion(name), EvalCase.model_validate(CASE), trace, {"score": 1}).asked


def ask(vertex: FakeVertex, folder: Path, asked: list[Question], **more: Any) -> Any:
    given = {"url": vertex.url, "questions": [asdict(each) for each in asked], **more}
    done = subprocess.run(
        [ADK, ROOT / "tests/integration/judges/vertex_asks.py"],
        cwd=folder,
        input=json.dumps(given),
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}",
            "STORAGE_EMULATOR_HOST": vertex.url,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it looks for the newest prices
        },
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if "adk" not in more:
        assert done.stderr == ""
    return json.loads((folder / "answers.json").read_text())


def test_the_service_is_sent_what_adk_sends_it(vertex: FakeVertex, tmp_path: Path) -> None:
    asked = [question for name in NAMES for question in questions(f"adk/{name}")]
    with serving(of_adk := FakeVertex()):
        told = ask(vertex, tmp_path, asked, adk=[CASE, ACTUAL], adk_url=of_adk.url)

    assert len(of_adk.bodies) == 2 + 2 + 3
    assert vertex.bodies == of_adk.bodies
    scores = [json.loads(each["text"])["score"] for each in told["answers"]]
    assert scores == [0.5, 0.5, 4.0, 4.0, 0.5, 0.5, 0.5]
    assert told["adk"] == dict(zip(NAMES, [0.5, 4.0, 0.5, 0.5, 0.5], strict=True))


def test_what_the_service_answers_is_passed_on_or_told(vertex: FakeVertex, tmp_path: Path) -> None:
    task = criterion("adk/multi_turn_task_success_v1")
    (question,) = questions("adk/multi_turn_task_success_v1")
    verdicts = [rubric("r1", "It pays back.", verdict=True, reasoning="It did."), rubric("r2")]
    replies: list[Reply] = [
        as_json(measured(0.5, "Half of it.", *verdicts)),
        as_json(unmeasured(3, "The turns are too long.")),
        as_json(unmeasured(8, "The judge has too much to do.")),
        as_json({"metricResults": [{"score": "NaN"}]}),
        as_json({}),
        error(403, "PERMISSION_DENIED", "Not your project."),
        DROPPED,
    ]
    vertex.script.extend(replies)
    answers = ask(vertex, tmp_path, [question] * len(replies))["answers"]
    scored, too_long, too_much, nan, empty, denied, dropped = answers

    assert task.read(scored["text"]) == (
        0.5,
        {
            "explanation": "Half of it.",
            "rubrics": [
                {"id": "It pays back.", "reasoning": "It did.", "verdict": True},
                {"id": "r2", "reasoning": "", "verdict": False},
            ],
        },
        "",
    )
    assert "The turns are too long." in json.loads(too_long["text"])["error"]
    assert (too_much["passing"], too_much["throttled"]) == (True, True)
    assert json.loads(nan["text"])["score"] is None
    assert "missing" in json.loads(empty["text"])["error"]
    assert denied["error"].startswith("'vertex' gave no answer: 403: PERMISSION_DENIED")
    assert "Application Default Credentials" in denied["error"]
    assert not denied["passing"]
    assert dropped["error"].startswith("'vertex' could not be reached: ")
    assert dropped["passing"]
