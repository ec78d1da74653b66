"""Agents of Pydantic AI are talked to, and tell what they do.

Runs where CI_EVAL_FRAMEWORKS_PYTHON names a Python that has pydantic-ai 2.
"""

import re
from typing import Any

import pytest
from support.agent_sessions import Place, Talk
from support.framework_agents import (
    answered,
    at_once,
    here_and_elsewhere,
    interpreter,
    place_of,
    said,
    steps,
)

from ci_eval.agents.pydantic_ai_agent import PydanticAI
from ci_eval.plugins.points import RunningAgent
from ci_eval.records.cases import Invocation

SHOP = {"app_name": "shop", "user_id": "ada"}
CANNED = {
    "weather": {"result": {"sky": "canned"}},
    "moody": {"error": "on strike"},
    "broken": {"args": {"city": "Oslo"}, "result": "none"},
}
CONVERSATIONS = {
    "talk": said("hello", "call weather Rome", session_input={**SHOP, "state": {"mood": "calm"}}),
    "lost": said("hello", "call weather Nowhere"),
    "broken": said("call broken Rome"),
    "moody": said("call moody Rome"),
    "canned": said("call weather Rome", tool_mocks={"tools": CANNED}),
    "canned error": said("call moody Rome", tool_mocks={"tools": CANNED}),
    "unmocked": said("call broken Rome", tool_mocks={"tools": CANNED}),
    "cut off": said("be cut off", "hello"),
    **{f"city {number}": said(f"call weather City{number}", "more") for number in range(20)},
}


def python(target: str, **options: Any) -> PydanticAI:
    return PydanticAI(pydantic_ai=target, interpreter=interpreter("frameworks"), **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_of(tmp_path_factory.mktemp("pydantic_ai"), "pydantic_ai_app.py")


@pytest.fixture(scope="module")
def talks(folder: Place) -> dict[str, Talk]:
    return at_once(folder, python("app:support"), CONVERSATIONS)


def test_messages_are_the_trajectory(talks: dict[str, Talk]) -> None:
    first, second = talks["talk"].invocations
    assert (first.response, steps(first)) == ("1: hello", ["Support used 10+3+2"])
    assert steps(second) == [
        "Support thinks Hm.",
        "Support calls weather(city='Rome')",
        "Support used 10+3+2",
        "Support gets {'city': 'Rome'} of weather",
        "Support used 10+3+2",
    ]
    assert second.response == "2: {'city': 'Rome'}"
    assert second.events is not None
    assert [event.model_version for event in second.events] == [
        "function:scripted:",
        None,
        "function:scripted:",
    ]


def test_times_of_models_and_tools_are_told(talks: dict[str, Talk]) -> None:
    first, second = talks["talk"].invocations
    assert first.model_duration is not None
    assert second.tool_duration is not None
    assert first.model_duration >= 0.01
    assert first.tool_duration is None
    assert second.tool_duration >= 0.01


def test_what_the_agent_was_told_and_could_call_is_known_at_every_message(
    talks: dict[str, Talk],
) -> None:
    for invocation in talks["talk"].invocations:
        details = invocation.app_details
        assert details is not None
        told = details.agent_details["Support"]
        assert told.instructions == "You are Ada.\n\nBe kind."
        declared = [each["function_declarations"][0]["name"] for each in told.tool_declarations]
        assert declared == ["weather", "broken", "moody", "pay", "later"]


def test_the_state_is_what_tools_depend_on_unless_that_is_made(talks: dict[str, Talk]) -> None:
    assert talks["talk"].state == {"mood": "calm", "looked_at": "Rome"}


def test_dependencies_are_made_of_the_state(folder: Place) -> None:
    state = {"session_input": {**SHOP, "state": {"shop": "Tea"}}}
    talk = folder.talk(python("app:visitor", deps="app:shop"), "call visit Rome", **state)
    assert talk.responses == ["1: Tea"]
    assert talk.state == {"name": "Tea", "visits": ["Rome"]}


def test_a_tool_that_raises_ends_the_trial(talks: dict[str, Talk]) -> None:
    kind, message = talks["broken"].failure
    assert kind == "raised"
    assert message.startswith("RuntimeError: no Rome (app.py:")


def test_what_a_tool_wants_otherwise_is_an_error_of_it(talks: dict[str, Talk]) -> None:
    [call] = talks["moody"].invocations[0].tool_calls
    assert call.result == {"error": "not Rome"}
    assert talks["moody"].responses == ["1: not Rome"]


def test_what_was_seen_before_an_exception_is_kept(talks: dict[str, Talk]) -> None:
    kind, message = talks["lost"].failure
    assert kind == "raised"
    assert re.search(r"nowhere.* \(app\.py:\d+\)$", message)
    seen: Invocation = talks["lost"].error.seen  # type: ignore[union-attr]  # a TrialError
    [call] = seen.tool_calls
    assert (call.name, call.args, call.result) == (
        "weather",
        {"city": "Nowhere"},
        {"city": "Nowhere"},
    )
    assert (seen.final_response, seen.waits_for) == (None, ())


def test_canned_results_take_the_place_of_tools(talks: dict[str, Talk]) -> None:
    [call] = talks["canned"].invocations[0].tool_calls
    assert call.result == {"sky": "canned"}
    [failed] = talks["canned error"].invocations[0].tool_calls
    assert failed.result == {"error": "on strike"}
    assert talks["canned error"].responses == ["1: on strike"]


def test_a_call_without_a_canned_result_is_an_error_with_what_was_seen(
    talks: dict[str, Talk],
) -> None:
    kind, message = talks["unmocked"].failure
    assert kind == "unmocked"
    assert message.startswith("the agent called broken(city='Rome'), which has no result")
    seen = talks["unmocked"].error.seen
    assert [call.name for call in seen.tool_calls] == ["broken"]


def test_conversations_at_once_do_not_mix(talks: dict[str, Talk]) -> None:
    for number in range(20):
        first, second = talks[f"city {number}"].invocations
        assert [call.result for call in first.tool_calls] == [{"city": f"City{number}"}]
        assert (second.tool_calls, second.response) == ((), "2: more")
        assert talks[f"city {number}"].state == {"looked_at": f"City{number}"}


@pytest.mark.parametrize(
    ("tool", "given", "result"), [("pay", True, "paid Rome"), ("later", "done", "done")]
)
def test_a_call_waits_to_be_approved_or_made(
    folder: Place, tool: str, given: Any, result: str
) -> None:
    agent, messages = python("app:made"), ("call weather Oslo", f"call {tool} Rome")
    for asked, done, state in here_and_elsewhere(folder, agent, *messages, result=given):
        [waiting] = asked.waits_for
        assert (waiting.name, waiting.args) == (tool, {"city": "Rome"})
        assert asked.final_response is None
        assert [call.name for call in asked.tool_calls] == [tool]
        assert steps(done) == [
            f"Support gets {{'result': '{result}'}} of {tool}",
            "Support used 10+3+2",
        ]
        assert (done.response, done.waits_for) == (f"2: {result}", ())
        assert state == {"looked_at": "Oslo"}


def test_a_call_may_be_rejected(folder: Place) -> None:
    async def ask(running: RunningAgent) -> Any:
        return await answered(running, "call pay Rome", result={"error": "too dear"})

    _, done, _ = folder.run(python("app:support"), ask)
    assert steps(done)[0] == "Support gets {'error': 'too dear'} of pay"


def test_an_output_that_is_no_text_is_json_and_its_tool_is_none(folder: Place) -> None:
    [found] = folder.talk(python("app:typed"), "hello").invocations
    assert found.response == '{"words": "hello"}'
    assert steps(found) == ["agent used 10+3+2"]


def test_something_else_is_no_agent(folder: Place) -> None:
    talk = folder.talk(python("app:number"), "hello")
    expected = "an Agent of Pydantic AI, or a function without arguments that returns one"
    assert talk.failure == ("start", f"cannot load 'app:number': expected {expected}; found int: 7")


def test_a_response_that_was_cut_off_says_so(talks: dict[str, Talk]) -> None:
    found = [each.finish_reason for each in talks["cut off"].invocations]
    assert found == ["length", None]
