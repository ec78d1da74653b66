"""What the events of an ADK run come to."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.agents._adk_events import Rules, refuse_silence, to_invocation
from ci_eval.records.cases import Content, Invocation
from ci_eval.records.errors import TrialError

ASKED = Content.of_text("Where is it?", role="user")
USAGE = {"promptTokenCount": 7, "candidatesTokenCount": 2}
RULES: tuple[Rules, ...] = ("adk", "adk@2.3")


def event(*parts: dict[str, Any], author: str = "bot", **fields: Any) -> dict[str, Any]:
    content = {"content": {"role": "model", "parts": list(parts)}} if parts else {}
    return {"invocationId": "e-1", "author": author, "timestamp": 5.0, **content, **fields}


def text(value: str) -> dict[str, Any]:
    return {"text": value}


def call(identity: str, name: str = "find", **args: Any) -> dict[str, Any]:
    return {"functionCall": {"id": identity, "name": name, "args": args}}


def answer(identity: str, name: str = "find", **response: Any) -> dict[str, Any]:
    return {"functionResponse": {"id": identity, "name": name, "response": response}}


def found(*events: dict[str, Any], rules: Rules = "adk") -> Invocation:
    return to_invocation(events, ASKED, rules=rules)


def kept(invocation: Invocation) -> list[Any]:
    """Return the trajectory, each event as its author and what it says."""
    return [
        (each.author, each.content and each.content.model_dump(exclude_none=True)["parts"])
        for each in invocation.events or ()
    ]


def test_a_run_is_an_invocation() -> None:
    events = [
        {"invocationId": "e-1", "author": "user", "timestamp": 4.0, "content": {"parts": []}},
        event(text("Let me see."), call("1", what="it"), usageMetadata=USAGE, modelVersion="m-1"),
        event(answer("1", place="here")),
        event(text("It is here."), usageMetadata=USAGE, modelVersion="m-1"),
    ]

    invocation = found(*events)

    assert invocation.invocation_id == "e-1"
    assert invocation.creation_timestamp == 4.0
    assert invocation.user_content == ASKED
    assert invocation.response == "It is here."
    assert invocation.tool_calls == (("find", {"what": "it"}, {"place": "here"}),)
    assert kept(invocation)[0] == (
        "bot",
        (
            {"text": "Let me see."},
            {"function_call": {"id": "1", "name": "find", "args": {"what": "it"}}},
        ),
    )
    assert kept(invocation)[2] == ("bot", None)
    assert [(each.usage_metadata, each.model_version) for each in invocation.events or ()] == [
        ({"prompt_token_count": 7, "candidates_token_count": 2}, "m-1"),
        (None, None),
        ({"prompt_token_count": 7, "candidates_token_count": 2}, "m-1"),
    ]


def test_2_3_keeps_neither_the_final_event_nor_what_models_used() -> None:
    invocation = found(
        event(call("1"), usageMetadata=USAGE),
        event(answer("1")),
        event(text("Done."), usageMetadata=USAGE),
        rules="adk@2.3",
    )

    assert invocation.response == "Done."
    assert [each.usage_metadata for each in invocation.events or ()] == [None, None]


@pytest.mark.parametrize("rules", RULES)
def test_the_last_final_response_counts_and_the_earlier_ones_are_on_the_way(rules: Rules) -> None:
    invocation = found(
        event(text("A draft."), author="first"),
        event(text("Final."), author="second"),
        event(actions={"stateDelta": {"said": "Final."}}, author="second"),
        rules=rules,
    )

    last = [("second", None)] if rules == "adk" else []
    assert invocation.response == "Final."
    assert kept(invocation) == [("first", ({"text": "A draft."},)), *last]


FINAL: list[tuple[str, dict[str, Any], dict[Rules, bool]]] = [
    ("a text", event(text("x")), {"adk": True, "adk@2.3": True}),
    ("a chunk", event(text("x"), partial=True), {"adk": False, "adk@2.3": False}),
    ("a call", event(call("1")), {"adk": False, "adk@2.3": False}),
    ("an answer", event(answer("1")), {"adk": False, "adk@2.3": False}),
    (
        "an answer that nobody is to sum up",
        event(answer("1"), actions={"skipSummarization": True}),
        {"adk": True, "adk@2.3": True},
    ),
    (
        "a call that takes its time",
        event(call("1"), longRunningToolIds=["1"]),
        {"adk": True, "adk@2.3": True},
    ),
    (
        "what code came to",
        event(text("x"), {"codeExecutionResult": {"output": "7"}}),
        {"adk": False, "adk@2.3": False},
    ),
    (
        "an error behind an answer",
        event(answer("1"), errorCode="X"),
        {"adk": True, "adk@2.3": False},
    ),
    (
        "an error with a call",
        event(call("1"), errorCode="MAX_TOKENS"),
        {"adk": False, "adk@2.3": False},
    ),
]


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize(("name", "given", "final"), FINAL, ids=[each[0] for each in FINAL])
def test_what_is_a_final_response(
    name: str, given: dict[str, Any], final: dict[Rules, bool], rules: Rules
) -> None:
    assert (found(given, rules=rules).final_response is not None) == final[rules]


def test_a_text_goes_before_mere_sound_but_not_in_2_3() -> None:
    sound = {"inlineData": {"data": "AA==", "mimeType": "audio/wav"}}
    events = [event(text("Said.")), event(sound)]

    assert found(*events).response == "Said."
    assert found(*events, rules="adk@2.3").response == ""
    assert found(event(sound), event(text("Said."))).response == "Said."
    assert found(event(sound), event(sound)).final_response is not None


def test_only_2_13_keeps_an_event_with_nothing_but_grounding() -> None:
    grounding = {"webSearchQueries": ["it"]}
    events = [event(groundingMetadata=grounding), event(text("Here."))]

    first = (found(*events).events or ())[0]

    assert first.content is None
    assert first.grounding_metadata == {"web_search_queries": ["it"]}
    assert kept(found(*events, rules="adk@2.3")) == []


def test_what_the_user_writes_and_what_says_nothing_is_no_part_of_the_trajectory() -> None:
    invocation = found(
        event(text("What the user said."), author="User"),
        event({"executableCode": {"code": "1"}}),
        event(text("")),
        event(text("Here.")),
    )

    assert kept(invocation) == [("bot", None)]
    assert invocation.response == "Here."


def test_an_agent_waits_for_the_calls_that_take_their_time_and_have_no_answer_yet() -> None:
    invocation = found(
        event(call("1"), call("2", "permit"), call("3", "pay"), longRunningToolIds=["2", "3"]),
        event(answer("1"), answer("3", "pay", status="pending")),
    )

    assert [(each.id, each.name) for each in invocation.waits_for] == [("2", "permit")]


def test_what_providers_add_to_parts_is_left_out() -> None:
    invocation = found(event({"text": "Here.", "somethingNew": 1}, somethingElse=2))

    assert invocation.response == "Here."


def test_an_event_that_is_none_is_told_with_its_number() -> None:
    with pytest.raises(TrialError, match=r"^event 2 of the agent: expected an object, found 7$"):
        found(event(text("x")), 7)  # type: ignore[arg-type]  # what comes over a wire
    with pytest.raises(TrialError, match=r"^event 1 of the agent: content\.parts\[0\]\.text: "):
        found(event({"text": {"deep": 1}}))


def test_a_run_that_came_to_nothing_is_refused() -> None:
    nothing = found()
    with pytest.raises(TrialError, match="without a single event"):
        refuse_silence([], nothing)

    blocked = [
        event(text("Hm."), partial=True),
        event(errorCode="SAFETY", errorMessage="no\n" * 999),
    ]
    with pytest.raises(TrialError, match=r"^the model gave no response: SAFETY: no no .*…") as info:
        refuse_silence(blocked, found(*blocked))
    assert info.value.kind == "raised"
    assert len(str(info.value)) < 700

    cut_off = [event(text("It goes on and"), errorCode="MAX_TOKENS")]
    refuse_silence(cut_off, found(*cut_off))
    only_state = [event(actions={"stateDelta": {"x": 1}})]
    refuse_silence(only_state, found(*only_state))


PARTS = st.sampled_from(
    [text("a"), text(""), call("1"), answer("1"), {"inlineData": {"data": "AA=="}}]
)


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"finishReason": "MAX_TOKENS"}, "MAX_TOKENS"),
        ({"finish_reason": "MAX_TOKENS", "error_code": "MAX_TOKENS"}, "MAX_TOKENS"),
        ({"finishReason": "STOP"}, None),
        ({}, None),
    ],
)
def test_why_the_final_response_ended_is_kept(
    fields: dict[str, Any], reason: str | None, rules: Rules
) -> None:
    before = event(text("Let me see."), call("1"), finishReason="STOP")
    events = before, event(answer("1")), event(text("It is"), **fields)
    assert found(*events, rules=rules).finish_reason == reason


EVENTS = st.lists(
    st.builds(
        lambda parts, fields: event(*parts, **fields),
        st.lists(PARTS, max_size=3),
        st.fixed_dictionaries(
            {},
            optional={
                "partial": st.booleans(),
                "errorCode": st.just("X"),
                "longRunningToolIds": st.just(["1"]),
                "groundingMetadata": st.just({"a": 1}),
            },
        ),
    ),
    max_size=6,
)


@given(events=EVENTS, rules=st.sampled_from(RULES))
def test_no_call_is_lost_and_no_final_response_is_told_twice(
    events: list[Any], rules: Rules
) -> None:
    invocation = found(*events, rules=rules)

    calls = [part for each in events for part in each.get("content", {}).get("parts", ())]
    assert len(invocation.tool_calls) == sum("functionCall" in part for part in calls)
    repeated = [each.content for each in invocation.events or () if each.content is not None]
    if invocation.final_response and not any(
        part.function_call for part in invocation.final_response.parts or ()
    ):
        assert all(each is not invocation.final_response for each in repeated)
