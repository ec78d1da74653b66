"""Agents of the OpenAI Agents SDK are talked to, and tell what they do.

Runs where CI_EVAL_FRAMEWORKS_PYTHON names a Python that has openai-agents.
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

from ci_eval.agents.openai_agents_agent import OpenAIAgents
from ci_eval.plugins.points import RunningAgent
from ci_eval.records.cases import Invocation
from ci_eval.records.errors import TrialError

SHOP = {"app_name": "shop", "user_id": "ada"}
CANNED = {
    "weather": {"result": {"sky": "canned"}},
    "frank": {"error": "on strike"},
    "broken": {"args": {"city": "Oslo"}, "result": "none"},
}
CONVERSATIONS = {
    "talk": said("hello", "call weather Rome", session_input={**SHOP, "state": {"mood": "calm"}}),
    "lost": said("hello", "call weather Nowhere"),
    "broken": said("call broken Rome"),
    "handoff": said("call transfer_to_billing", "more"),
    "canned": said("call weather Rome", tool_mocks={"tools": CANNED}),
    "canned error": said("call frank Rome", tool_mocks={"tools": CANNED}),
    "unmocked": said("call broken Rome", tool_mocks={"tools": CANNED}),
    "cut off": said("be cut off", "hello"),
    **{f"city {number}": said(f"call weather City{number}", "more") for number in range(20)},
}


def python(target: str, **options: Any) -> OpenAIAgents:
    return OpenAIAgents(openai_agents=target, interpreter=interpreter("frameworks"), **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_of(tmp_path_factory.mktemp("openai_agents"), "openai_agents_app.py")


@pytest.fixture(scope="module")
def talks(folder: Place) -> dict[str, Talk]:
    return at_once(folder, python("app:triage"), CONVERSATIONS)


def test_items_are_the_trajectory(talks: dict[str, Talk]) -> None:
    first, second = talks["talk"].invocations
    assert (first.response, steps(first)) == ("1: hello", ["Triage used 10+3+2"])
    assert steps(second) == [
        "Triage thinks Hm.",
        "Triage calls weather(city='Rome')",
        "Triage used 10+3+2",
        "Triage gets {'city': 'Rome'} of weather",
        "Triage used 10+3+2",
    ]
    assert second.response == "2: {'city': 'Rome'}"
    assert second.nodes is None


def test_times_of_models_and_tools_are_told(talks: dict[str, Talk]) -> None:
    first, second = talks["talk"].invocations
    assert first.model_duration is not None
    assert second.tool_duration is not None
    assert first.model_duration >= 0.01
    assert first.tool_duration is None
    assert second.tool_duration >= 0.01


def test_what_agents_were_told_and_could_call_is_known(talks: dict[str, Talk]) -> None:
    details = talks["handoff"].invocations[0].app_details
    assert details is not None
    triage, billing = (details.agent_details[name] for name in ("Triage", "Billing"))
    assert (triage.instructions, billing.instructions) == ("Be kind.", "Be exact.")
    declared = [each["function_declarations"][0]["name"] for each in triage.tool_declarations]
    assert declared == ["weather", "broken", "frank", "pay"]


def test_the_state_is_the_context_unless_one_is_made(talks: dict[str, Talk]) -> None:
    assert talks["talk"].state == {"mood": "calm", "looked_at": "Rome"}


def test_a_context_is_made_of_the_state(folder: Place) -> None:
    state = {"session_input": {**SHOP, "state": {"shop": "Tea"}}}
    talk = folder.talk(python("app:visitor", context="app:shop"), "call visit Rome", **state)
    assert talk.responses == ["1: Tea"]
    assert talk.state == {"name": "Tea", "visits": ["Rome"]}


def test_a_handoff_is_a_call_and_the_other_agent_goes_on(talks: dict[str, Talk]) -> None:
    first, second = talks["handoff"].invocations
    assert steps(first) == [
        "Triage thinks Hm.",
        "Triage calls transfer_to_billing()",
        "Triage used 10+3+2",
        "Triage gets {'assistant': 'Billing'} of transfer_to_billing",
        "Billing used 10+3+2",
    ]
    assert steps(second) == ["Billing used 10+3+2"]
    assert second.response == "2: more"


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
    assert talks["canned"].responses == ["1: {'sky': 'canned'}"]


def test_of_a_canned_error_a_tool_tells_in_its_own_way(talks: dict[str, Talk]) -> None:
    assert talks["canned error"].responses == ["1: sorry, on strike"]


def test_a_call_without_a_canned_result_is_an_error(talks: dict[str, Talk]) -> None:
    kind, message = talks["unmocked"].failure
    assert kind == "unmocked"
    assert message.startswith("the agent called broken(city='Rome'), which has no result")


def test_conversations_at_once_do_not_mix(talks: dict[str, Talk]) -> None:
    for number in range(20):
        first, second = talks[f"city {number}"].invocations
        assert [call.result for call in first.tool_calls] == [{"city": f"City{number}"}]
        assert (second.tool_calls, second.response) == ((), "2: more")
        assert talks[f"city {number}"].state == {"looked_at": f"City{number}"}


def test_a_call_waits_to_be_approved_which_may_be_done_in_another_process(folder: Place) -> None:
    agent = python("app:made")
    messages = "call weather Oslo", "call pay Rome"
    for asked, done, state in here_and_elsewhere(folder, agent, *messages, result=True):
        [waiting] = asked.waits_for
        assert (waiting.name, waiting.args) == ("pay", {"city": "Rome"})
        assert asked.final_response is None
        assert [call.name for call in asked.tool_calls] == ["pay"]
        assert steps(done) == ["Triage gets {'result': 'paid Rome'} of pay", "Triage used 10+3+2"]
        assert (done.response, done.waits_for) == ("2: paid Rome", ())
        assert state == {"looked_at": "Oslo"}


def test_a_call_may_be_rejected_and_must_be_answered_plainly(folder: Place) -> None:
    async def ask(running: RunningAgent) -> tuple[str, str]:
        rejected = await answered(running, "call pay Rome", result={"error": "too dear"})
        with pytest.raises(TrialError) as caught:
            await answered(running, "call pay Rome", result="perhaps")
        return rejected.done.response, str(caught.value)

    assert folder.run(python("app:triage"), ask) == (
        "1: too dear",
        "expected true or false as the answer to an approval, found str: 'perhaps'",
    )


def test_an_output_that_is_no_text_is_json(folder: Place) -> None:
    [found] = folder.talk(python("app:typed"), "hello").invocations
    assert found.response == '{"words": "hello"}'
    assert steps(found) == ["Typed used 10+3+2"]


def test_something_else_is_no_agent(folder: Place) -> None:
    talk = folder.talk(python("app:number"), "hello")
    expected = "an Agent of the OpenAI Agents SDK, or a function without arguments that returns one"
    assert talk.failure == ("start", f"cannot load 'app:number': expected {expected}; found int: 7")


def test_a_response_that_was_cut_off_says_so(talks: dict[str, Talk]) -> None:
    found = [each.finish_reason for each in talks["cut off"].invocations]
    assert found == ["incomplete", None]
