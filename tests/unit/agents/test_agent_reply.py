"""What becomes of an agent's reply."""

from typing import Any

import pytest

from ci_eval.agents._agent_reply import EXPECTED, to_invocation, unexpected
from ci_eval.records.cases import Content, FunctionCall, IntermediateData, Invocation, ToolCall
from ci_eval.records.errors import TrialError

QUESTION = Content.of_text("Will it rain?", role="user")


def invocation(reply: Any) -> Invocation:
    return to_invocation(QUESTION, reply, seconds=0.25)


def message_about(reply: Any) -> str:
    with pytest.raises(TrialError) as caught:
        invocation(reply)
    assert caught.value.kind == "protocol"
    assert EXPECTED in str(caught.value)
    return str(caught.value)


def test_a_text_is_the_final_response() -> None:
    found = invocation("No.")
    assert found.user == "Will it rain?"
    assert found.response == "No."
    assert found.tool_calls == ()
    assert found.duration == 0.25
    assert found.cost_usd is None


@pytest.mark.parametrize(("said", "kept"), [("length", "length"), ("stop", None), (None, None)])
def test_an_agent_may_say_why_its_response_ended(said: str | None, kept: str | None) -> None:
    assert invocation({"response": "No", "finish_reason": said}).finish_reason == kept


def test_calls_keep_their_order_and_find_their_results() -> None:
    calls = [
        {"name": "look", "args": {"at": 1}, "result": {"sky": "grey"}},
        {"name": "look", "args": {"at": 2}},
        {"name": "count", "result": [1, 2]},
        {"name": "stop", "args": None, "result": None},
    ]
    found = invocation({"response": "No.", "tool_calls": calls})
    assert found.tool_calls == (
        ToolCall("look", {"at": 1}, {"sky": "grey"}),
        ToolCall("look", {"at": 2}, None),
        ToolCall("count", {}, {"result": [1, 2]}),
        ToolCall("stop", {}, {"result": None}),
    )
    assert found.events is None


def test_with_usage_the_trajectory_is_kept_as_events_which_have_a_place_for_it() -> None:
    usage = {"input_tokens": 12, "output_tokens": 3, "cost_usd": 0.01}
    calls = [{"name": "look", "args": {}, "result": {"sky": "grey"}}]
    found = invocation({"response": "No.", "tool_calls": calls, "usage": usage})
    assert found.tool_calls == (ToolCall("look", {}, {"sky": "grey"}),)
    assert found.cost_usd == 0.01
    assert found.events is not None
    assert found.events[0].usage_metadata == {"prompt_token_count": 12, "candidates_token_count": 3}


def test_usage_counts_where_no_tool_was_called() -> None:
    found = invocation({"response": "No.", "usage": {"input_tokens": 12}})
    assert found.events is not None
    assert [event.content for event in found.events] == [None]
    assert found.tool_calls == ()


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (None, "answered None;"),
        (["No."], "answered ['No.'];"),
        (4, "answered 4;"),
        ({"text": "No."}, "text: unknown key"),
        ({"tool_calls": []}, "'response' is missing"),
        ({"response": 4}, "response: expected text, found 4"),
        ({"response": "", "tool_calls": {}}, "tool_calls: expected a list"),
        ({"response": "", "tool_calls": ["look"]}, "tool_calls[0]: expected an object"),
        ({"response": "", "tool_calls": [{"name": "look", "args": "{}"}]}, "expected an object"),
        ({"response": "", "usage": {"input_tokens": -1}}, "usage.input_tokens: "),
        ({"response": "", "usage": {"cost_usd": "much"}}, "usage.cost_usd: "),
    ],
)
def test_anything_else_is_an_error_that_says_what_came_and_what_was_expected(
    reply: Any, said: str
) -> None:
    assert said in message_about(reply)


def test_a_long_reply_is_shown_in_part() -> None:
    assert len(message_about(["x" * 10_000])) < 600


def test_an_error_may_quote_the_agent() -> None:
    assert str(unexpected("fell silent", "\nout of paper")).endswith("\nout of paper")


def test_a_call_that_waits_is_a_call() -> None:
    waits = [{"name": "approve", "args": {"of": 7}}, {"name": "ask", "id": "mine"}]
    found = invocation({"response": "May I?", "tool_calls": [{"name": "look"}], "waits_for": waits})
    assert [(call.id, call.name, call.args) for call in found.waits_for] == [
        ("wait-1", "approve", {"of": 7}),
        ("mine", "ask", {}),
    ]
    assert [call.name for call in found.tool_calls] == ["look", "approve", "ask"]


def test_the_calls_of_each_message_have_ids_of_their_own() -> None:
    reply = {"response": "", "tool_calls": [{"name": "look"}], "waits_for": [{"name": "ask"}]}
    ids = [
        call.id
        for number in (1, 2, 3)
        for call in _uses(to_invocation(QUESTION, reply, seconds=0.0, number=number))
    ]
    assert len(set(ids)) == len(ids) == 6


def _uses(found: Invocation) -> tuple[FunctionCall, ...]:
    assert isinstance(found.intermediate_data, IntermediateData)
    return found.intermediate_data.tool_uses


def test_what_waits_needs_a_name() -> None:
    assert "waits_for[0]: 'name' is missing" in message_about({"response": "", "waits_for": [{}]})
