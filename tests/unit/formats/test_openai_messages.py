"""Messages of chat completions, and events in general, become invocations."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.formats.event_lists import as_args, as_response, invocations
from ci_eval.formats.openai_messages import events_of, read_talk
from ci_eval.records.cases import IntermediateData, Invocation


def held(*messages: dict[str, Any]) -> tuple[Invocation, ...]:
    talk, wrong = read_talk(list(messages))
    assert wrong == []
    assert talk is not None
    return invocations(talk.events())


def user(content: object) -> dict[str, Any]:
    return {"role": "user", "content": content}


def agent(content: object = None, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def call(name: str, arguments: object = "{}", **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


def answer(content: object, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "content": content, **more}


def calls(turn: Invocation) -> list[tuple[Any, ...]]:
    return [tuple(each) for each in turn.tool_calls]


def intermediate(turn: Invocation) -> list[tuple[str, list[str | None]]]:
    assert isinstance(turn.intermediate_data, IntermediateData)
    said = turn.intermediate_data.intermediate_responses
    return [(author, [part.text for part in parts]) for author, parts in said]


# --- Cutting into invocations -----------------------------------------------------------------


def test_each_message_of_the_user_begins_an_invocation() -> None:
    first, second = held(user("Hi"), agent("Hello"), user("Bye"), agent("See you"))
    assert (first.user, first.response) == ("Hi", "Hello")
    assert (second.user, second.response) == ("Bye", "See you")


def test_messages_of_the_user_in_a_row_are_one() -> None:
    (turn,) = held(user("Hi"), user("there"), agent("Hello"))
    assert turn.user == "Hi\nthere"


def test_what_comes_before_the_user_and_what_the_system_says_is_left_out() -> None:
    system = {"role": "system", "content": "Be kind."}
    developer = {"role": "developer", "content": "Be brief."}
    (turn,) = held(system, agent("Welcome!"), developer, user("Hi"), system, agent("Hello"))
    assert (turn.user, turn.response) == ("Hi", "Hello")
    assert intermediate(turn) == []


def test_the_last_text_without_calls_is_the_response_and_others_are_on_the_way() -> None:
    (turn,) = held(
        user("Refund 7"),
        agent("Let me look.", name="clerk", tool_calls=[call("look", '{"order": 7}', id="1")]),
        answer("found", tool_call_id="1"),
        agent("One moment."),
        agent(tool_calls=[call("refund", id="2")]),
        answer('{"ok": true}', tool_call_id="2"),
        agent("Refunded."),
    )
    assert turn.response == "Refunded."
    assert calls(turn) == [
        ("look", {"order": 7}, {"result": "found"}),
        ("refund", {}, {"ok": True}),
    ]
    assert intermediate(turn) == [("clerk", ["Let me look."]), ("agent", ["One moment."])]


def test_a_conversation_that_ends_with_a_call_has_the_response_before_or_none() -> None:
    (turn,) = held(user("Hi"), agent("Hello"), agent(tool_calls=[call("note")]))
    assert (turn.response, calls(turn)) == ("Hello", [("note", {}, None)])
    (turn,) = held(user("Hi"), agent("So", tool_calls=[call("note")]))
    assert turn.final_response is None
    (turn,) = held(user("Hi"))
    assert (turn.final_response, calls(turn)) == (None, [])


def test_answers_belong_to_calls_by_id_then_by_name_then_in_order() -> None:
    (turn,) = held(
        user("Go"),
        agent(tool_calls=[call("a", id="1"), call("b", id="2"), call("a", id="3"), call("c")]),
        answer("third", tool_call_id="3"),
        answer("of b", name="b"),
        answer("first"),
        answer("last"),
        answer("of nobody"),
    )
    assert [result for _, _, result in calls(turn)] == [
        {"result": "first"},
        {"result": "of b"},
        {"result": "third"},
        {"result": "last"},
    ]


def test_functions_are_called_the_older_way_too() -> None:
    (turn,) = held(
        user("Go"),
        agent(function_call={"name": "f", "arguments": '{"x": 1}'}),
        {"role": "function", "name": "f", "content": "done"},
    )
    assert calls(turn) == [("f", {"x": 1}, {"result": "done"})]


def test_calls_may_be_flat_or_of_custom_tools() -> None:
    flat = {"id": "1", "name": "f", "args": {"x": 1}, "type": "tool_call"}
    custom = {"id": "2", "type": "custom", "custom": {"name": "g", "input": "as it is"}}
    (turn,) = held(user("Go"), agent(tool_calls=[flat, custom]))
    assert calls(turn) == [("f", {"x": 1}, None), ("g", {"arguments": "as it is"}, None)]


# --- Arguments, answers, parts ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "args"),
    [
        ('{"x": 1}', {"x": 1}),
        ({"x": 1}, {"x": 1}),
        ("", {}),
        (None, {}),
        ("[1]", {"arguments": "[1]"}),
        ("{x: 1}", {"arguments": "{x: 1}"}),
        ('{"x": NaN}', {"arguments": '{"x": NaN}'}),
        ([1], {"arguments": [1]}),
        (5, {"arguments": 5}),
    ],
)
def test_arguments_that_are_no_object_are_kept_as_they_are(given: object, args: object) -> None:
    assert as_args(given) == args


@given(st.text(min_size=1).filter(lambda text: not text.lstrip().startswith("{")))
def test_a_text_that_a_tool_answers_is_kept_as_it_is(text: str) -> None:
    assert as_response(text) == {"result": text}


def test_the_parts_of_a_message_are_kept() -> None:
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "input_audio", "input_audio": {"format": "wav", "data": "BBBB"}},
        {"type": "file", "file": {"file_id": "f1"}},
        "and this?",
    ]
    (turn,) = held(user(parts))
    assert turn.user == "What is this?\nand this?"
    kept = [part.model_dump(exclude_none=True) for part in turn.user_content.parts or ()]
    assert kept[1:5] == [
        {"file_data": {"file_uri": "https://example.com/a.png"}},
        {"inline_data": {"mime_type": "image/png", "data": "AAAA"}},
        {"inline_data": {"mime_type": "audio/wav", "data": "BBBB"}},
        {"file_data": {"file_id": "f1"}},
    ]


def test_a_refusal_is_what_was_said() -> None:
    (turn,) = held(user("Hi"), agent(refusal="No."))
    assert turn.response == "No."
    (turn,) = held(user("Hi"), agent([{"type": "refusal", "refusal": "No."}]))
    assert turn.response == "No."


# --- What is wrong --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ([], [((), "has no user message")]),
        ({"messages": [agent("Hi")]}, [(("messages",), "has no user message")]),
        ([user(5)], [((0, "content"), "expected text or a list of parts, found 5")]),
        ([user("x"), {}], [((1,), "'role' is missing")]),
        (
            [user([{"type": "hologram"}])],
            [((0, "content", 0), "a part of the type 'hologram' cannot be read")],
        ),
        (
            [user("x"), agent(tool_calls=[{"id": "1"}])],
            [((1, "tool_calls", 0), "'function' is missing")],
        ),
        (
            [user("x"), agent(tool_calls=[{"function": {"arguments": ""}}])],
            [((1, "tool_calls", 0, "function"), "'name' is missing")],
        ),
        (5, [((), "expected an object, found 5")]),
    ],
)
def test_what_is_wrong_is_told_with_its_place(value: object, problems: list[Any]) -> None:
    talk, wrong = read_talk(value)
    assert talk is None
    assert wrong == problems


@pytest.mark.parametrize(
    "message", [5, {}, {"role": "boss"}, {"role": 5}, {"role": "user", "content": 5}]
)
def test_a_single_message_is_understood_or_not(message: object) -> None:
    assert events_of(message) == []
    (event,) = events_of({"role": "human", "content": "Hi"})
    assert event.author == "user"
