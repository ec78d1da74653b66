"""What a judge is shown of a trajectory: its steps, its calls, the agents."""

from typing import Any

from support.case_language import did

from ci_eval.criteria._shown_to_judges import (
    declared_tools,
    dialogue,
    grounding,
    instructions,
    moments,
    steps,
    tool_calls,
)
from ci_eval.records.cases import Invocation


def of(**more: Any) -> Invocation:
    return did({"user_content": {"parts": [{"text": "Hi"}]}, **more}).invocations[0]


def events(*parts: list[dict[str, Any]]) -> dict[str, Any]:
    made = [{"author": "root", "content": {"parts": each}} for each in parts]
    return {"intermediate_data": {"invocation_events": made}}


def call(name: str, number: str | None = None, **args: Any) -> dict[str, Any]:
    return {"function_call": {"id": number, "name": name, "args": args}}


def result(name: str, number: str | None = None, **response: Any) -> dict[str, Any]:
    return {"function_response": {"id": number, "name": name, "response": response}}


def test_calls_are_numbered_and_results_name_their_call():
    both = [call("find", "x-1", of=None), call("find", "x-2", of=2)]
    found = of(**events([{"text": "I look."}, *both], [result("find", "x-2", ok=True)]))

    assert steps(moments(found)) == [
        {"by": "root", "says": "I look."},
        {"by": "root", "calls": "find", "call": 1, "arguments": {"of": None}},
        {"by": "root", "calls": "find", "call": 2, "arguments": {"of": 2}},
        {"returns": "find", "call": 2, "result": {"ok": True}},
    ]
    assert tool_calls(found) == [
        {"call": 1, "tool": "find", "arguments": {"of": None}, "result": None},
        {"call": 2, "tool": "find", "arguments": {"of": 2}, "result": {"ok": True}},
    ]


def test_a_result_without_an_id_names_no_call():
    found = of(**events([call("find"), result("find", ok=True)]))
    assert steps(moments(found))[1] == {"returns": "find", "call": None, "result": {"ok": True}}


def test_results_of_calls_with_the_same_id_name_their_own_call():
    both = [call("find", "x"), call("get", "x")]
    found = of(**events(both, [result("get", "x", b=2), result("find", "x", a=1)]))

    assert steps(moments(found))[2:] == [
        {"returns": "get", "call": 2, "result": {"b": 2}},
        {"returns": "find", "call": 1, "result": {"a": 1}},
    ]
    assert [each["result"] for each in tool_calls(found)] == [{"a": 1}, {"b": 2}]


def test_ids_do_not_matter_so_that_the_same_run_asks_the_same():
    one, two = (of(**events([call("f", name), result("f", name)])) for name in ("adk-1", "adk-2"))
    assert steps(moments(one)) == steps(moments(two))


def test_lists_show_their_calls_first():
    data = {
        "tool_uses": [{"id": "1", "name": "f"}],
        "tool_responses": [{"id": "1", "name": "f", "response": {}}],
        "intermediate_responses": [["desk", [{"text": "So."}, {"text": "There."}]]],
    }
    assert steps(moments(of(intermediate_data=data))) == [
        {"by": "agent", "calls": "f", "call": 1, "arguments": None},
        {"returns": "f", "call": 1, "result": {}},
        {"by": "desk", "says": "So."},
        {"by": "desk", "says": "There."},
    ]


def test_a_conversation_is_told_turn_by_turn():
    turns = [of(**events([{"text": "Hm."}])), of(final_response={"parts": [{"text": "Bye."}]})]
    assert dialogue(turns) == [
        {"turn": 1, "user": "Hi", "steps": [{"by": "root", "says": "Hm."}], "response": ""},
        {"turn": 2, "user": "Hi", "steps": [], "response": "Bye."},
    ]


def test_what_the_agents_were_told_and_had_is_said_once():
    def agent(name: str, told: str, *tools: Any) -> dict[str, Any]:
        details = {"name": name, "instructions": told, "tool_declarations": tools}
        return {"app_details": {"agent_details": {name: details}}}

    find = {"function_declarations": [{"name": "find", "description": None}]}
    turns = [
        of(**agent("root", "Be kind.", find)),
        of(**agent("root", "Be kind.", find)),
        of(**agent("root", "Be brief.")),
        of(**agent("desk", "")),
        of(),
    ]

    assert instructions(turns) == {"root": "Be kind.\n\nBe brief."}
    assert declared_tools(turns) == {"root": [{"function_declarations": [{"name": "find"}]}]}
    assert (instructions([of()]), declared_tools([of()])) == ({}, {})


def test_what_was_looked_up_is_shown_without_what_it_does_not_say():
    event = {"author": "root", "grounding_metadata": {"queries": ["a", None], "other": None}}
    found = of(intermediate_data={"invocation_events": [event, {"author": "root"}]})

    assert grounding(found) == [{"queries": ["a", None]}]
    assert steps(moments(found)) == [{"by": "root", "grounding_metadata": {"queries": ["a", None]}}]
