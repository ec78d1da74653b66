"""What whoever plays a user is shown of the conversation."""

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.records.cases import Invocation
from ci_eval.simulators._simulator_history import written

USER = {"role": "user", "parts": [{"text": "Hi"}]}
CALL = {"function_call": {"id": "1", "name": "find", "args": {"n": 1}}}
ANSWER = {"function_response": {"id": "1", "name": "find", "response": {"found": None}}}


def invocation(**more: Any) -> Invocation:
    return Invocation.model_validate({"user_content": USER, **more})


def model(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": [{"text": e} if isinstance(e, str) else e for e in parts]}


def event(author: str, *parts: Any) -> dict[str, Any]:
    return {"author": author, "content": model(*parts)}


EVENTS = invocation(
    intermediate_data={
        "invocation_events": [
            event("planner", "Let me see.", {"text": "hm", "thought": True}, CALL),
            event("planner", ANSWER),
            event("clerk", "Moment."),
        ]
    },
    final_response=model({"text": "secret", "thought": True}, "Here.", "Bye."),
)


def test_texts_are_shown_with_who_said_them_and_thoughts_are_not():
    assert written([EVENTS], calls=False).split("\n\n") == [
        "user: Hi",
        "planner: Let me see.",
        "clerk: Moment.",
        "clerk: Here.",
        "clerk: Bye.",
    ]


def test_calls_and_what_came_back_stand_at_their_place():
    assert written([EVENTS], calls=True).split("\n\n") == [
        "user: Hi",
        "planner: Let me see.",
        'planner called the tool "find" with {"n": 1}',
        'The tool "find" returned {"found": null}',
        "clerk: Moment.",
        "clerk: Here.",
        "clerk: Bye.",
    ]


def test_what_was_kept_as_lists_is_shown_calls_first():
    data = {
        "tool_uses": [{"name": "find"}],
        "tool_responses": [{"name": "find", "response": {"n": 1}}],
        "intermediate_responses": [["helper", [{"text": "Soon."}]]],
    }
    shown = written([invocation(intermediate_data=data, final_response=model("Ok."))], calls=True)

    assert shown.split("\n\n") == [
        "user: Hi",
        'agent called the tool "find" with {}',
        'The tool "find" returned {"n": 1}',
        "helper: Soon.",
        "agent: Ok.",
    ]


@pytest.mark.parametrize(
    ("details", "name"),
    [
        ({}, "agent"),
        ({"shop": {"name": "shop"}}, "shop"),
        ({"a": {"name": "a"}, "b": {"name": "b"}}, "agent"),
    ],
)
def test_the_final_response_is_of_the_only_agent_there_is(details: dict[str, Any], name: str):
    found = invocation(final_response=model("Ok."), app_details={"agent_details": details})
    assert written([found], calls=False) == f"user: Hi\n\n{name}: Ok."


def test_invocations_follow_one_another():
    turns = [invocation(final_response=model(text)) for text in ("One.", "Two.")]
    assert written(turns, calls=False) == ("user: Hi\n\nagent: One.\n\nuser: Hi\n\nagent: Two.")
    assert written([], calls=True) == ""


TEXT = st.text(st.sampled_from(string.ascii_letters + " :\n\r\x0b\x1c\x85\u2028"), min_size=1)


@given(texts=st.lists(TEXT, min_size=1, max_size=3), author=TEXT)
def test_no_text_and_no_name_begins_a_line_of_its_own(texts: list[str], author: str):
    said = invocation(
        intermediate_data={"invocation_events": [event(author, *texts)]},
        final_response=model("end"),
    )
    lines = written([said], calls=True).split("\n")
    begun = [line for line in lines if line and not line.startswith("  ")]

    assert len(begun) == 2 + len([text for text in texts if text])
