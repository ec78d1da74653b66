"""Graphs of LangGraph are talked to, and tell what they do.

Runs where CI_EVAL_FRAMEWORKS_PYTHON names a Python that has langgraph 1.
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

from ci_eval.agents.langgraph_agent import LangGraph
from ci_eval.plugins.points import RunningAgent
from ci_eval.records.cases import FunctionCall, Invocation

CANNED = {"weather": {"result": {"sky": "canned"}}, "broken": {"error": "on strike"}}
CONVERSATIONS = {
    "talk": said(
        "hello",
        "call weather Rome",
        session_input={
            "app_name": "shop",
            "user_id": "ada",
            "session_id": "same",
            "state": {"mood": "calm", "other": 1},
        },
    ),
    "repeat": said(
        "hello", session_input={"app_name": "shop", "user_id": "ada", "session_id": "same"}
    ),
    "lost": said("hello", "call weather Nowhere"),
    "broken": said("call broken Rome"),
    "canned": said("call weather Rome", tool_mocks={"tools": CANNED}),
    "canned error": said("call broken Rome", tool_mocks={"tools": CANNED}),
    "other canned": said(
        "call weather Oslo",
        "call weather Rome",
        tool_mocks={
            "tools": {"weather": {"args": {"city": "Oslo"}, "result": "other"}},
            "unmatched": "pass",
        },
    ),
    "unmocked": said(
        "call broken Rome",
        tool_mocks={"tools": {"broken": {"args": {"city": "Oslo"}, "result": "none"}}},
    ),
    "cut off": said("be cut off", "hello"),
    **{f"city {number}": said(f"call weather City{number}", "more") for number in range(20)},
}


def python(target: str, **options: Any) -> LangGraph:
    return LangGraph(langgraph=target, interpreter=interpreter("frameworks"), **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_of(tmp_path_factory.mktemp("langgraph"), "langgraph_app.py")


@pytest.fixture(scope="module")
def talks(folder: Place) -> dict[str, Talk]:
    return at_once(folder, python("app:graph"), CONVERSATIONS)


def test_messages_are_the_trajectory(talks: dict[str, Talk]) -> None:
    first, second = talks["talk"].invocations
    assert first.response == "1: hello"
    assert steps(first) == ["agent used 10+3+2"]
    assert steps(second) == [
        "agent calls weather(city='Rome')",
        "agent used 10+3+2",
        "tools gets {'city': 'Rome'} of weather",
        "agent used 10+3+2",
    ]
    assert second.response == '2: {"city": "Rome"}'
    assert second.nodes == ("agent", "tools", "agent", "__end__")
    assert second.events is not None
    assert [event.model_version for event in second.events] == ["scripted-1", None, "scripted-1"]


def test_times_of_models_and_tools_are_told(talks: dict[str, Talk]) -> None:
    first, second = talks["talk"].invocations
    assert first.model_duration is not None
    assert first.tool_duration is None
    assert second.tool_duration is not None
    assert 0.01 <= second.tool_duration < second.duration


def test_what_the_agent_was_told_and_could_call_is_known(talks: dict[str, Talk]) -> None:
    details = talks["talk"].invocations[0].app_details
    assert details is not None
    told = details.agent_details["agent"]
    assert told.instructions == "Be kind."
    declared = [each["function_declarations"][0]["name"] for each in told.tool_declarations]
    assert declared == ["weather", "broken", "ask"]


def test_the_session_state_begins_the_thread_and_the_final_state_ends_it(
    talks: dict[str, Talk],
) -> None:
    assert talks["talk"].state == {"mood": "calm", "other": 1, "turns": 3}


def test_repeats_of_a_case_do_not_share_its_session(talks: dict[str, Talk]) -> None:
    assert talks["repeat"].responses == ["1: hello"]


def test_an_error_of_a_tool_is_its_answer(talks: dict[str, Talk]) -> None:
    [call] = talks["broken"].invocations[0].tool_calls
    assert call.result is not None
    assert "RuntimeError('no Rome')" in call.result["error"]


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
    assert talks["canned"].responses == ['1: {"sky": "canned"}']
    [failed] = talks["canned error"].invocations[0].tool_calls
    assert failed.result is not None
    assert "on strike" in failed.result["error"]


def test_each_conversation_has_its_own_canned_results(talks: dict[str, Talk]) -> None:
    assert talks["other canned"].responses == ["1: other", '2: {"city": "Rome"}']


def test_a_call_without_a_canned_result_is_an_error_although_the_graph_goes_on(
    talks: dict[str, Talk],
) -> None:
    talk = talks["unmocked"]
    kind, message = talk.failure
    assert kind == "unmocked"
    assert message.startswith("the agent called broken(city='Rome'), which has no result")
    assert isinstance(talk.error, Exception)
    seen: Invocation = talk.error.seen
    assert [call.name for call in seen.tool_calls] == ["broken"]


def test_conversations_at_once_do_not_mix(talks: dict[str, Talk]) -> None:
    for number in range(20):
        first, second = talks[f"city {number}"].invocations
        assert [call.args for call in first.tool_calls] == [{"city": f"City{number}"}]
        assert first.nodes == ("agent", "tools", "agent", "__end__")
        assert (second.tool_calls, second.response) == ((), "2: more")


# --- Graphs that ask --------------------------------------------------------------------------


def test_an_interrupt_waits_for_an_answer_which_may_come_to_another_process(folder: Place) -> None:
    agent = python("app:made")
    for asked, done, state in here_and_elsewhere(
        folder, agent, "hello", "call ask Rome", result="yes"
    ):
        [waiting] = asked.waits_for
        assert (waiting.name, waiting.args) == ("interrupt", {"value": {"city": "Rome"}})
        assert asked.nodes == ("agent",)
        assert asked.final_response is None
        assert [call.name for call in asked.tool_calls] == ["ask"]
        assert steps(done) == ["tools gets {'result': 'told yes'} of ask", "agent used 10+3+2"]
        assert (done.response, done.nodes, done.waits_for) == (
            "2: told yes",
            ("tools", "agent", "__end__"),
            (),
        )
        assert state["turns"] == 3


def test_a_breakpoint_waits_to_be_passed(folder: Place) -> None:
    async def ask(running: RunningAgent) -> Any:
        return await answered(running, "hello", result=True)

    asked, done, state = folder.run(python("app:gated"), ask)
    assert asked.waits_for == (
        FunctionCall(id="interrupt", name="interrupt", args={"before": ["cheer"]}),
    )
    assert asked.response == "1: hello"
    assert (done.nodes, state["mood"]) == (("cheer", "__end__"), "good")


# --- Other graphs -----------------------------------------------------------------------------


def test_nodes_of_a_graph_within_a_graph_are_told_once(folder: Place) -> None:
    talk = folder.talk(python("app:team"), "call weather Rome", "more")
    first, second = talk.invocations
    assert first.nodes == ("team/agent", "team/tools", "team/agent", "team", "cheer", "__end__")
    assert steps(first) == [
        "team/agent calls weather(city='Rome')",
        "team/agent used 10+3+2",
        "team/tools gets {'city': 'Rome'} of weather",
        "team/agent used 10+3+2",
    ]
    assert steps(second) == ["team/agent used 10+3+2"]
    assert second.response == "2: more"


def test_a_graph_without_messages_is_asked_by_another_key(folder: Place) -> None:
    agent = python("app:question", input="question", output="answer")
    talk = folder.talk(agent, "Rome")
    [found] = talk.invocations
    assert found.response == "1: Rome!"
    assert steps(found) == [
        "look calls weather(city='Rome')",
        "look gets {'city': 'Rome'} of weather",
        "look used 10+3+2",
    ]
    assert talk.state == {"question": "Rome", "answer": "1: Rome!"}


@pytest.mark.parametrize(("target", "path"), [("app:plain", ""), ("app:plain_team", "team/")])
def test_messages_that_are_no_objects_yet_are_seen_like_those_that_are(
    folder: Place, target: str, path: str
) -> None:
    [found] = folder.talk(python(target), "hello").invocations
    assert steps(found) == [
        f"{path}agent says Wait.",
        f"{path}agent calls weather(city='Rome')",
        f"{path}tools gets {{'city': 'Rome'}} of weather",
    ]
    assert found.response == 'plainly {"city": "Rome"}'


# --- What goes wrong --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "kind", "message"),
    [
        ("app:failing", "raised", "ValueError: nothing to say (app.py:"),
        ("app:number", "start", "cannot load 'app:number': expected a graph of LangG"),
        (
            "app:question",
            "start",
            "the state of the graph has no key 'messages', only answer, question",
        ),
    ],
)
def test_errors_are_told(folder: Place, target: str, kind: str, message: str) -> None:
    found, told = folder.talk(python(target), "hello").failure
    assert found == kind
    assert message in told


def test_a_response_that_was_cut_off_says_so(talks: dict[str, Talk]) -> None:
    found = [each.finish_reason for each in talks["cut off"].invocations]
    assert found == ["length", None]
