"""Our `llm_backed` user and that of ADK itself, side by side.

CI_EVAL_ADK_PYTHON and CI_EVAL_ADK23_PYTHON name interpreters that have it.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.simulated_conversations import played

from ci_eval.records.cases import EvalCase, Invocation
from ci_eval.records.questions import Question
from ci_eval.simulators.llm_simulator import LlmBacked

PYTHONS = {
    version: os.environ.get(name)
    for version, name in (("2.13.0", "CI_EVAL_ADK_PYTHON"), ("2.3.0", "CI_EVAL_ADK23_PYTHON"))
}
SCENARIO = {"starting_prompt": "Hi", "conversation_plan": "Buy a hat."}
SHOWN = "{{ conversation_plan }}\n{{ conversation_history }}\n{{ stop_signal }}"
CALL = {"function_call": {"name": "find", "args": {"hat": "red"}}}
ANSWER = {"function_response": {"name": "find", "response": {"found": 1}}}
TURN = [
    ["shop", {"text": "I think.", "thought": True}],
    ["shop", {"text": "Let me see."}],
    ["shop", CALL],
    ["shop", ANSWER],
    ["clerk", {"text": "Here it is."}],
]


def play(*answers: str, scenario: Any = SCENARIO, turns: Any = (TURN,), **config: Any) -> Any:
    parts = [[{"text": each}] for each in answers]
    return {"scenario": scenario, "config": config, "answers": parts, "turns": [*turns]}


PLAYS = {
    "stops": play("A hat", "Red", "ok </Finished> bye"),
    "starts over": play(scenario={**SCENARIO, "starting_prompt": "</FINISHED>"}),
    "limit": play("on", "on", "on", max_allowed_invocations=3),
    "no message": play(max_allowed_invocations=0),
    "one message": play(max_allowed_invocations=1),
    "twenty": play(*["on"] * 19),
    "unlimited": play(*["on"] * 40, "</finished>", max_allowed_invocations=-1),
    "camel": play("on", maxAllowedInvocations=2),
    "empty": play("A hat", "", ""),
    "shown": play("A hat", "</finished>", custom_instructions=SHOWN),
    "shown with calls": play("</finished>", custom_instructions=SHOWN, include_function_calls=True),
    "own persona": play(
        "</finished>",
        custom_instructions=SHOWN + "\n{{ persona.id }}: {{ persona.description }}"
        "{% for b in persona.behaviors %}\n{{ b.name }} {{ b.description }}"
        "\n{{ b.get_behavior_instructions_str() }}{% endfor %}",
        scenario={
            **SCENARIO,
            "user_persona": {
                "id": "x",
                "description": "In a hurry.",
                "behaviors": [
                    {
                        "name": "Short",
                        "description": "Ends soon.",
                        "behavior_instructions": ["Write little.", "Be brief."],
                        "violation_rubrics": ["Long."],
                    }
                ],
            },
        },
    ),
}


@pytest.fixture(scope="module", params=PYTHONS)
def theirs(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the messages of ADK's user in each play."""
    python = PYTHONS[request.param]
    if not python:
        pytest.skip(f"no interpreter with google-adk {request.param} is named")
    ended = subprocess.run(
        [python, "-W", "ignore", Path(__file__).with_name("adk_user.py")],
        input=json.dumps([*PLAYS.values()]),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert ended.returncode == 0, ended.stderr
    return dict(zip(PLAYS, json.loads(ended.stdout), strict=True))


def agent(message: str) -> Invocation:
    """Do what `TURN` says, of which the last is the response."""
    *before, (speaker, said) = TURN
    events = [{"author": who, "content": {"parts": [part]}} for who, part in before]
    return Invocation.model_validate(
        {
            "user_content": {"role": "user", "parts": [{"text": message}]},
            "intermediate_data": {"invocation_events": [*events, {"author": speaker}]},
            "final_response": {"role": "model", "parts": [said]},
        }
    )


def ours(given: Any) -> tuple[list[str], str, list[Question]]:
    config = {
        "".join(f"_{char.lower()}" if char.isupper() else char for char in key): value
        for key, value in given["config"].items()
    }
    case = EvalCase.model_validate({"eval_id": "c", "conversation_scenario": given["scenario"]})
    answers = (answer[0]["text"] for answer in given["answers"])
    found = played(LlmBacked(**config), case, lambda _: next(answers), agent=agent)
    return found.messages, "error" if found.error else "", found.asked


@pytest.mark.parametrize("name", PLAYS)
def test_both_say_the_same_and_end_alike(theirs: dict[str, Any], name: str) -> None:
    said, end, _ = ours(PLAYS[name])

    assert said == theirs[name]["said"]
    assert end == ("error" if theirs[name]["end"].startswith("error") else "")


@pytest.mark.parametrize("name", ["shown", "shown with calls", "own persona"])
def test_both_show_their_model_the_same(theirs: dict[str, Any], name: str) -> None:
    """But for the fences round what others wrote, and the words for a call of a tool."""
    *_, asked = ours(PLAYS[name])
    marks = [each.text.partition("[name ")[2].partition("]")[0] for each in asked]
    shown = [
        "\n".join(
            line
            for line in each.text.partition("\n\n")[2].split("\n")
            if not line.endswith(f" {mark}]")
        )
        for each, mark in zip(asked, marks, strict=True)
    ]
    for mine, adks in zip(shown, theirs[name]["shown"], strict=True):
        assert words(mine) == words(adks)


def words(text: str) -> list[str]:
    """Return the words, the two ways to tell of a tool made one."""
    told = text.replace("called tool 'find' with args: {'hat': 'red'}", "CALL")
    told = told.replace('called the tool "find" with {"hat": "red"}', "CALL")
    told = told.replace("Tool 'find' returned: {'found': 1}", "ANSWER")
    told = told.replace('The tool "find" returned {"found": 1}', "ANSWER")
    return told.split()
