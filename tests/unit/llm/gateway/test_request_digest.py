"""Which requests count as equal."""

from typing import Any

import pytest

from ci_eval.llm.gateway.providers import Call, checked_call, route
from ci_eval.llm.gateway.request_digest import digest_of, normalised

ALL = ("gemini", "openai", "anthropic")
CHAT = "/openai/v1/chat/completions"
MESSAGES = "/anthropic/v1/messages"
GEMINI = "/gemini/v1beta/models/gemini-2.5-flash:generateContent"


def call(path: str, body: dict[str, Any], **headers: str) -> Call:
    routed = route(path, "", ALL)
    assert routed
    found = checked_call(routed, {"model": "m", **body} if path != GEMINI else body, headers)
    assert found
    return found


def digest(path: str, body: dict[str, Any], *ignore: str, **headers: str) -> str:
    return digest_of(normalised(call(path, body, **headers), ignore, "SECRET"))


def tool_call(identity: str, arguments: str = '{"a": 1, "b": [1.0]}') -> dict[str, Any]:
    function = {"name": "f", "arguments": arguments}
    return {
        "messages": [
            {"role": "assistant", "tool_calls": [{"id": identity, "function": function}]},
            {"role": "tool", "tool_call_id": identity, "content": "1"},
        ]
    }


def gemini(part: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [part]}], **more}


EQUAL = [
    (CHAT, tool_call("call_1"), tool_call("call_2")),
    (CHAT, tool_call("c"), tool_call("c", '{ "b":[1.0],"a":1 }')),
    (CHAT, {"messages": []}, {"messages": [], "user": "u", "metadata": {"a": "b"}, "store": True}),
    (CHAT, {"messages": [], "stream": True}, {"stream": True, "stream_options": {"x": 1}}),
    (CHAT, {"messages": [1], "tools": []}, {"messages": [1], "tools": None}),
    (GEMINI, gemini({"functionCall": {"id": "pyd_1"}}), gemini({"function_call": {"id": "pyd_2"}})),
    (GEMINI, gemini({"text": "t"}), gemini({"text": "t", "thought_signature": "s"})),
    (GEMINI, gemini({"text": "t"}), gemini({"text": "t"}, labels={"adk": "x"})),
    (
        GEMINI,
        gemini({"text": "t"}, generationConfig={"topP": 1}),
        gemini({"text": "t"}, generation_config={"top_p": 1, "topK": None}),
    ),
    (
        MESSAGES,
        {"messages": [{"content": [{"type": "thinking", "thinking": "t", "signature": "a"}]}]},
        {"messages": [{"content": [{"type": "thinking", "thinking": "t", "signature": "b"}]}]},
    ),
    (CHAT, {"messages": ["http://SECRET/x"]}, {"messages": ["http://…/x"]}),
]
OTHER = [
    (CHAT, {"messages": [1, 2]}, {"messages": [2, 1]}),
    (CHAT, {"messages": []}, {"messages": [], "temperature": 0}),
    (CHAT, {"messages": []}, {"messages": [], "stream": True}),
    (CHAT, {"messages": []}, {"messages": [], "model": "n"}),
    (CHAT, tool_call("c"), tool_call("c", '{"a": 2}')),
    (CHAT, tool_call("c", "no json"), tool_call("c", "other")),
    (GEMINI, gemini({"functionCall": {"args": {"id": 1}}}), gemini({"functionCall": {}})),
    # What is in data is no key of the provider.
    (
        GEMINI,
        gemini({"functionCall": {"args": {"a_b": 1}}}),
        gemini({"functionCall": {"args": {"aB": 1}}}),
    ),
    (
        MESSAGES,
        {"messages": [{"content": [{"type": "tool_use", "input": {"id": "a"}}]}]},
        {"messages": [{"content": [{"type": "tool_use", "input": {"id": "b"}}]}]},
    ),
    (CHAT, {"tools": [{"name": "a"}, {"name": "b"}]}, {"tools": [{"name": "b"}, {"name": "a"}]}),
]


@pytest.mark.parametrize(("path", "one", "other"), EQUAL)
def test_requests_that_differ_without_a_reason_are_equal(path, one, other):
    assert digest(path, one) == digest(path, other)


@pytest.mark.parametrize(("path", "one", "other"), OTHER)
def test_requests_that_may_be_answered_otherwise_differ(path, one, other):
    assert digest(path, one) != digest(path, other)


def test_which_of_two_calls_is_answered_makes_a_difference():
    def answered(first: str, second: str) -> dict[str, Any]:
        calls = [{"id": each, "function": {}} for each in ("x", "y")]
        tools = [{"role": "tool", "tool_call_id": each, "content": ""} for each in (first, second)]
        return {"messages": [{"tool_calls": calls}, *tools]}

    assert digest(CHAT, answered("x", "y")) != digest(CHAT, answered("y", "x"))


def test_headers_that_decide_the_form_of_an_answer_count():
    versions = ({"anthropic-version": each} for each in ("2023-06-01", "2026-10-21"))
    one, other = (digest(MESSAGES, {"messages": []}, **each) for each in versions)
    assert one != other


def test_what_a_pattern_matches_is_left_out():
    days = ({"messages": [f"Today is 2026-11-{day}."]} for day in (24, 25))
    one, other = (digest(CHAT, each, r"\d{4}-\d\d-\d\d") for each in days)
    assert one == other
