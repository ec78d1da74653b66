"""Graphs of AgentFlow are talked to, and tell what they do: also where AgentFlow itself does not.

Runs where CI_EVAL_AGENTFLOW_PYTHON names a Python that has 10xscale-agentflow 0.10.
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

from ci_eval.agents.agentflow_agent import AgentFlow
from ci_eval.plugins.points import RunningAgent
from ci_eval.records.cases import FunctionCall, Invocation

SHOP = {"app_name": "shop", "user_id": "ada", "session_id": "same"}
CANNED = {"weather": {"result": {"sky": "canned"}}, "broken": {"error": "on strike"}}
CONVERSATIONS = {
    "talk": said(
        "hello", "call weather Rome", session_input={**SHOP, "state": {"mood": "calm", "other": 1}}
    ),
    "repeat": said("hello", session_input=SHOP),
    "configured": said("hello", session_input={**SHOP, "config": {"recursion_limit": 9}}),
    "lost": said("hello", "call weather Nowhere"),
    "broken": said("call broken Rome"),
    "listed": said("call listed Rome"),
    "canned": said("call weather Rome", tool_mocks={"tools": CANNED}),
    "canned error": said("call broken Rome", tool_mocks={"tools": CANNED}),
    "unmocked": said("call listed Rome", tool_mocks={"tools": CANNED}),
    **{f"city {number}": said(f"call weather City{number}", "more") for number in range(20)},
}


def python(target: str, **options: Any) -> AgentFlow:
    return AgentFlow(agentflow=target, interpreter=interpreter("agentflow"), **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_of(tmp_path_factory.mktemp("agentflow"), "agentflow_app.py")


@pytest.fixture(scope="module")
def talks(folder: Place) -> dict[str, Talk]:
    return at_once(folder, python("app:graph"), CONVERSATIONS)


def test_messages_of_nodes_are_the_trajectory(talks: dict[str, Talk]) -> None:
    first, second = talks["talk"].invocations
    assert steps(first) == ["MAIN says 1: hello", "MAIN used 10+3+2"]
    assert steps(second) == [
        "MAIN calls weather(city='Rome')",
        "MAIN used 10+3+2",
        "TOOL gets {'city': 'Rome'} of weather",
        """MAIN says 2: [{"city": "Rome"}]""",
        "MAIN used 10+3+2",
    ]
    assert second.events is not None
    assert [event.model_version for event in second.events] == ["scripted-1", None, "scripted-1"]


def test_what_a_plain_function_says_is_the_final_response(talks: dict[str, Talk]) -> None:
    assert talks["talk"].responses == ["[calm] 1: hello", '[calm] 2: [{"city": "Rome"}]']


def test_tool_nodes_are_visited_too(talks: dict[str, Talk]) -> None:
    first, second = talks["talk"].invocations
    assert first.nodes == ("__start__", "MAIN", "LAST", "__end__")
    assert second.nodes == ("__start__", "MAIN", "TOOL", "MAIN", "LAST", "__end__")


def test_times_of_models_and_tools_are_told(talks: dict[str, Talk]) -> None:
    first, second = talks["talk"].invocations
    assert first.model_duration is not None
    assert second.model_duration is not None
    assert first.tool_duration is None
    assert second.tool_duration is not None
    assert first.model_duration >= 0.01
    assert second.model_duration >= 0.02
    assert second.tool_duration >= 0.01


def test_what_the_agent_was_told_and_could_call_is_known(talks: dict[str, Talk]) -> None:
    details = talks["talk"].invocations[0].app_details
    assert details is not None
    told = details.agent_details["MAIN"]
    assert told.instructions == "Be kind."
    declared = [each["function_declarations"][0]["name"] for each in told.tool_declarations]
    assert declared == ["weather", "broken", "ask", "listed"]


def test_the_state_without_its_messages_is_the_final_state(talks: dict[str, Talk]) -> None:
    assert talks["talk"].state == {"mood": "calm", "turns": 2, "other": 1}


def test_every_trial_has_a_thread_of_its_own(talks: dict[str, Talk]) -> None:
    assert talks["repeat"].responses == ["[none] 1: hello"]


def test_the_configuration_of_a_case_reaches_the_graph(talks: dict[str, Talk]) -> None:
    assert talks["configured"].responses == ["[none] 19: hello"]


def test_a_tool_that_raises_was_called(talks: dict[str, Talk]) -> None:
    [call] = talks["broken"].invocations[0].tool_calls
    assert (call.name, call.args) == ("broken", {"city": "Rome"})
    assert call.result is not None
    assert "no Rome" in call.result["error"]


def test_a_list_is_answered_as_a_list(talks: dict[str, Talk]) -> None:
    [call] = talks["listed"].invocations[0].tool_calls
    assert call.result == {"result": ["Rome", 1]}


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


def test_a_call_without_a_canned_result_is_an_error_although_the_graph_goes_on(
    talks: dict[str, Talk],
) -> None:
    kind, message = talks["unmocked"].failure
    assert kind == "unmocked"
    assert message.startswith("the agent called listed(city='Rome'), which has no result")


def test_conversations_at_once_do_not_mix(talks: dict[str, Talk]) -> None:
    for number in range(20):
        first, second = talks[f"city {number}"].invocations
        assert [call.args for call in first.tool_calls] == [{"city": f"City{number}"}]
        assert [call.result for call in first.tool_calls] == [{"city": f"City{number}"}]
        assert first.nodes == ("__start__", "MAIN", "TOOL", "MAIN", "LAST", "__end__")
        assert (second.tool_calls, second.response) == ((), "[none] 2: more")


def test_an_interrupt_waits_for_an_answer_which_may_come_to_another_process(folder: Place) -> None:
    agent = python("app:made")
    for asked, done, state in here_and_elsewhere(
        folder, agent, "hello", "call ask Rome", result="yes"
    ):
        [waiting] = asked.waits_for
        assert (waiting.name, waiting.args) == ("interrupt", {"value": {"city": "Rome"}})
        assert asked.nodes == ("__start__", "MAIN")
        assert steps(done)[0] == "TOOL gets {'result': 'told yes'} of ask"
        assert (done.response, done.nodes) == (
            "[none] 2: told yes",
            ("TOOL", "MAIN", "LAST", "__end__"),
        )
        assert (done.waits_for, state["turns"]) == ((), 2)


def test_a_breakpoint_waits_to_be_passed(folder: Place) -> None:
    async def ask(running: RunningAgent) -> Any:
        return await answered(running, "hello", result=True)

    asked, done, state = folder.run(python("app:gated"), ask)
    assert asked.waits_for == (
        FunctionCall(id="interrupt", name="interrupt", args={"node": "LAST"}),
    )
    assert (done.nodes, done.response, state["turns"]) == (
        ("LAST", "__end__"),
        "[none] 1: hello",
        1,
    )


@pytest.mark.parametrize(
    ("target", "kind", "message"),
    [
        ("app:failing", "raised", "Error in node 'FAIL': nothing to say"),
        ("app:number", "start", "cannot load 'app:number': expected a graph of AgentF"),
    ],
)
def test_errors_are_told(folder: Place, target: str, kind: str, message: str) -> None:
    found, told = folder.talk(python(target), "hello").failure
    assert found == kind
    assert message in told
