"""What answers say of models and tokens, in whole and in streams."""

import json
from typing import Any

import pytest

from ci_eval.llm.gateway.answers import (
    STREAM,
    Answer,
    Used,
    WithoutKey,
    WithoutUsage,
    blocks,
    restored,
    used,
)
from ci_eval.llm.gateway.providers import Call, checked_call, route
from ci_eval.llm.prices import Price, Tokens, cost_of

PATHS = {
    "gemini": "/gemini/v1beta/models/m:generateContent",
    "chat": "/openai/v1/chat/completions",
    "responses": "/openai/v1/responses",
    "messages": "/anthropic/v1/messages",
    "count": "/anthropic/v1/messages/count_tokens",
}


def call(api: str) -> Call:
    routed = route(PATHS[api], "", ("gemini", "openai", "anthropic"))
    assert routed
    found = checked_call(routed, {"model": "m"}, {})
    assert found
    return found


def whole(body: Any) -> Answer:
    return Answer(200, "application/json", json.dumps(body).encode())


def stream(*events: Any) -> Answer:
    text = "".join(f"event: x\ndata: {json.dumps(each)}\n\n" for each in events)
    return Answer(200, STREAM, text.encode() + b"data: [DONE]\n\n")


GEMINI = {
    "promptTokenCount": 100,
    "cachedContentTokenCount": 40,
    "candidatesTokenCount": 7,
    "thoughtsTokenCount": 5,
    "toolUsePromptTokenCount": 3,
}
CHAT = {
    "prompt_tokens": 11,
    "completion_tokens": 7,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
RESPONSES = {
    "input_tokens": 11,
    "output_tokens": 7,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens_details": {"reasoning_tokens": 2},
}
MESSAGES = {"input_tokens": 11, "output_tokens": 7, "cache_read_input_tokens": 50}


@pytest.mark.parametrize(
    ("api", "answer", "expected"),
    [
        (
            "gemini",
            whole({"modelVersion": "g", "usageMetadata": GEMINI}),
            Used("g", Tokens(103, 12, 40), 5),
        ),
        (
            "gemini",  # counts are totals so far, in every chunk
            stream(
                {"modelVersion": "g", "usageMetadata": {"promptTokenCount": 100}},
                {"usageMetadata": GEMINI},
            ),
            Used("g", Tokens(103, 12, 40), 5),
        ),
        ("chat", whole({"model": "g", "usage": CHAT}), Used("g", Tokens(11, 7, 4), 2)),
        (
            "chat",
            stream({"model": "g", "usage": None}, {"model": "g", "choices": [], "usage": CHAT}),
            Used("g", Tokens(11, 7, 4), 2),
        ),
        ("chat", stream({"model": "g"}), Used("g", None)),
        ("responses", whole({"model": "g", "usage": RESPONSES}), Used("g", Tokens(11, 7, 4), 2)),
        (
            "responses",
            stream(
                {"type": "response.created", "response": {"model": "x", "usage": None}},
                {"type": "response.completed", "response": {"model": "g", "usage": RESPONSES}},
            ),
            Used("g", Tokens(11, 7, 4), 2),
        ),
        (
            "messages",
            whole({"model": "g", "usage": {**MESSAGES, "cache_creation_input_tokens": 9}}),
            Used("g", Tokens(70, 7, 50, 9)),
        ),
        (
            "messages",
            whole(
                {
                    "model": "g",
                    "usage": {
                        **MESSAGES,
                        "cache_creation_input_tokens": 9,
                        "cache_creation": {"ephemeral_1h_input_tokens": 8},
                    },
                }
            ),
            Used("g", Tokens(70, 7, 50, 9, written_1h=8)),
        ),
        (
            "gemini",
            whole(
                {
                    "usageMetadata": {
                        **GEMINI,
                        "promptTokensDetails": [
                            {"modality": "TEXT", "tokenCount": 30},
                            {"modality": "AUDIO", "tokenCount": 70},
                        ],
                        "cacheTokensDetails": [{"modality": "AUDIO", "tokenCount": 40}, "odd"],
                    }
                }
            ),
            Used("", Tokens(103, 12, 40, audio=30), 5),
        ),
        (
            "messages",
            stream(
                {
                    "type": "message_start",
                    "message": {"model": "g", "usage": {**MESSAGES, "output_tokens": 1}},
                },
                {"type": "message_delta", "usage": {"output_tokens": 5}},
                {"type": "message_delta", "usage": {"output_tokens": 7}},
            ),
            Used("g", Tokens(61, 7, 50)),
        ),
        ("count", whole({"input_tokens": 5}), Used("", Tokens(0, 0))),
    ],
)
def test_usage_is_read_as_each_api_states_it(api: str, answer: Answer, expected: Used):
    assert used(call(api), answer) == expected


@pytest.mark.parametrize(
    ("answer", "outage"),
    [
        (stream({"error": {"message": "overloaded", "code": 503}}), "overloaded"),
        (stream({"choices": []}, {"error": {"type": "server_error"}}), "server_error"),
        (stream({"type": "error", "error": {"type": "api_error", "message": "no"}}), "no"),
        (stream({"type": "error", "code": "server_error", "message": "no"}), "no"),
        (stream({"response": {"error": {"code": "rate_limit_exceeded"}}}), "rate_limit_exceeded"),
        (whole([{"candidates": []}, {"error": {"status": "UNAVAILABLE"}}]), "unavailable"),
        (whole({"error": "no capacity"}), "no capacity"),
        (whole({"error": None, "output": []}), ""),
        (whole({"error": {"message": "no", "code": "invalid_api_key"}}), "no"),
        (stream({"error": {"type": "authentication_error"}}), "authentication_error"),
        (whole({"object": "error", "message": "no", "code": 500}), "no"),
        (stream({"choices": [{"finish_reason": "error"}]}), "finish_reason 'error'"),
        (stream({"response": {"error": {"code": "invalid_prompt"}}}), ""),
        (whole({"error": {"code": 400, "status": "INVALID_ARGUMENT"}}), ""),
        (Answer(400, "application/json", b'{"error": {"message": "too long"}}'), ""),
    ],
)
def test_an_error_of_the_provider_in_a_success_is_an_outage(answer: Answer, outage: str):
    assert answer.trouble == (f"reports an error: {outage}" if outage else "")


@pytest.mark.parametrize("body", [{}, {"detail": "maintenance"}, {"errors": [{"message": "no"}]}])
def test_an_answer_of_a_server_in_front_of_the_model_is_none(body: dict[str, Any]):
    assert whole(body).trouble == f"is not an answer of a model: {body}"


@pytest.mark.parametrize(
    "answer",
    [Answer(200, STREAM, b""), Answer(200, STREAM, b"<html>"), stream([1], "x"), whole([])],
)
def test_a_success_without_a_json_object_is_none(answer: Answer):
    assert answer.trouble == "not with a JSON object"


@pytest.mark.parametrize(
    ("event", "end"),
    [
        ({"choices": [{"delta": {"content": "x"}}]}, {"choices": [{"finish_reason": "stop"}]}),
        ({"type": "response.created", "response": {}}, {"type": "response.completed"}),
        ({"type": "message_start", "message": {}}, {"type": "message_stop"}),
        ({"candidates": [{"content": {}}]}, {"candidates": [{"finishReason": "STOP"}]}),
        ({"candidates": []}, {"promptFeedback": {"blockReason": "SAFETY"}}),
        ({"candidates": []}, {"error": {"status": "INVALID_ARGUMENT"}}),
    ],
)
def test_a_stream_without_its_last_event_is_no_answer(event: Any, end: Any):
    def events(*each: Any) -> Answer:
        return Answer(200, STREAM, "".join(f"data: {json.dumps(e)}\n\n" for e in each).encode())

    assert events(event).trouble == "the stream ended early"
    assert not events(event, end).trouble
    assert not stream(event).trouble  # data: [DONE]


def test_a_list_of_chunks_is_an_answer_of_gemini():
    chunks = [{"modelVersion": "m"}, {"usageMetadata": {"promptTokenCount": 3}}]
    assert not whole(chunks).trouble
    assert used(call("gemini"), whole(chunks)) == Used("m", Tokens(3, 0))


@pytest.mark.parametrize(
    "answer",
    [
        whole([]),
        whole({"usage": [1], "model": 5}),
        Answer(200, "text/html", b"<html>"),
        Answer(200, "application/json", b"\xff"),
        stream([1], "x", {"usage": "x"}),
        stream({"type": "response.completed", "response": [1]}),
    ],
)
@pytest.mark.parametrize("api", ["chat", "responses", "messages", "gemini"])
def test_usage_that_is_not_stated_is_unknown(api: str, answer: Answer):
    assert used(call(api), answer).tokens is None


@pytest.mark.parametrize("count", [-1, 10**30, True, "7", 1.5, None])
def test_a_number_that_is_no_count_is_not_stated(count: Any):
    answer = whole({"usage": {"prompt_tokens": count, "completion_tokens": 2}})
    assert used(call("chat"), answer).tokens is None
    details = {"prompt_tokens_details": {"cached_tokens": count}}
    answer = whole({"usage": {"prompt_tokens": 3, "completion_tokens": 2, **details}})
    assert used(call("chat"), answer).tokens == Tokens(3, 2)


def test_usage_that_a_later_event_leaves_open_is_that_of_an_earlier_one():
    first = {"type": "message_start", "message": {"usage": MESSAGES}}
    last = {"type": "message_delta", "usage": {"input_tokens": None, "output_tokens": 9}}
    assert used(call("messages"), stream(first, last)).tokens == Tokens(61, 9, 50)


@pytest.mark.parametrize(
    "answer",
    [
        whole({"a": [1.5, "é", None]}),
        Answer(400, "text/plain", b"no\n"),
        Answer(200, STREAM, b'event: a\ndata: {"x": "\xc3\xa9"}\n\ndata: [DONE]\n\n'),
    ],
)
def test_an_answer_is_restored(answer: Answer):
    again = restored(json.loads(json.dumps(answer.kept())))
    assert (again.status, again.type) == (answer.status, answer.type)
    if answer.type == "application/json":
        assert json.loads(again.body) == json.loads(answer.body)
    else:
        assert again.body == answer.body


def test_line_ends_of_a_stream_do_not_matter():
    assert [*blocks("a: 1\r\nb: 2\r\n\r\nc: 3")] == [*blocks("a: 1\nb: 2\n\nc: 3\n\n")]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_the_event_with_usage_is_dropped_however_the_stream_is_cut(size: int):
    asked = [{"choices": [{"delta": {"content": "a"}}], "usage": None}, {"choices": []}]
    events = [*asked, {"choices": [], "usage": {"prompt_tokens": 1}}]
    text = "".join(f"data: {json.dumps(each)}\r\n\r\n" for each in events) + "data: [DONE]\r\n\r\n"
    dropping = WithoutUsage()
    chunks = [text[at : at + size].encode() for at in range(0, len(text), size)]
    found = b"".join([*map(dropping.feed, chunks), dropping.end()])

    lines = [line for line in found.decode().split("\n\n") if line]
    assert lines == [*(f"data: {json.dumps(each)}" for each in asked), "data: [DONE]"]


def test_cached_tokens_cost_less_and_given_prices_come_first():
    def cost(**given: Price) -> float | None:
        tokens = Tokens(1000, 0, cached=1000)
        return cost_of(("gpt-4.1-mini-2025-04-14",), tokens, given, provider="openai")

    full = cost_of(("gpt-4.1-mini",), Tokens(1000, 0), {}, provider="openai")
    assert full == pytest.approx(0.0004)
    assert cost() == pytest.approx(0.0001)
    assert cost(**{"gpt-4.1-mini-2025-04-14": Price(input=7, output=1)}) == pytest.approx(0.007)
    assert cost(**{"gpt-4.1-*": Price(input=7, output=1)}) == pytest.approx(0.007)


def test_the_model_that_was_asked_for_is_priced_if_the_one_that_answered_is_unknown():
    names = ("gemini-2.5-flash-001-unheard-of", "gemini-2.5-flash")
    assert cost_of(names, Tokens(1, 1), {}, provider="google")
    assert cost_of(("own-model",), Tokens(1, 1), {}, provider="openai") is None
    assert cost_of(("gpt-4o-audio-preview",), Tokens(1, 1), {}, provider="openai") is None


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_a_key_in_an_answer_is_replaced_however_the_answer_is_divided(size: int):
    key = "sk-sk-secret-1"
    whole = f"sk sk-sk-sk-secret-1 and {key}{key[:9]}".encode()
    found = WithoutKey(key, "[KEY]")
    parts = [found.feed(whole[at : at + size]) for at in range(0, len(whole), size)]
    assert b"".join([*parts, found.end()]) == f"sk sk-[KEY] and [KEY]{key[:9]}".encode()


def test_what_is_no_key_is_passed_on_at_once():
    assert WithoutKey("sk-secret-1", "[KEY]").feed(b"data: 1\n\n") == b"data: 1\n\n"
    assert WithoutKey("", "[None]").feed(b"x") == b"x"
