"""Models that are asked in OpenAI's way, with tools that are not really called."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import ValidationError
from servers.loopback import Loopback, Reply, Request, as_json, serving
from servers.openai import completion
from servers.openai import error as refusing
from support.agent_sessions import Place, trial

from ci_eval.agents import _model_agent_retries
from ci_eval.agents.openai_chat_agent import OpenAIChat
from ci_eval.plugins.points import RunningAgent
from ci_eval.records.cases import Content, Part, ToolCall
from ci_eval.runtime.retry import Backoff

KEY = "sk-a-key-of-this-test"
TOOLS = [
    {"name": "track", "description": "Where is it?", "parameters": {"type": "object"}},
    {"name": "refund"},
]
RESULTS = {"track": {"result": {"place": "Oslo"}}, "refund": {"error": "not allowed"}}


def called(*calls: tuple[str, Any], content: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a completion that calls tools."""
    found = completion(content, "tool_calls")
    found["choices"][0]["message"]["tool_calls"] = [
        {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": args}}
        for number, (name, args) in enumerate(calls)
    ]
    return {**found, **more}


CUT_CALL = called(("track", '{"or'), content="Let")
CUT_CALL["choices"][0]["finish_reason"] = "length"


class Model(Loopback):
    """Says what it is asked, or what a script says."""

    def reply(self, request: Request) -> Reply:
        return as_json(completion(f"You said {request.body['messages'][-1]['content']}"))

    def says(self, *answers: Any) -> None:
        self.script.extend(each if isinstance(each, Reply) else as_json(each) for each in answers)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_model_agent_retries, "BACKOFF", Backoff(0.001, 60.0))


@pytest.fixture
def _the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("support.agent_sessions.ENVIRONMENT", {"THE_KEY": KEY})


@pytest.fixture
def model() -> Iterator[Model]:
    found = Model()
    with serving(found):
        yield found


@pytest.fixture
def agent(model: Model) -> Callable[..., OpenAIChat]:
    def made(**options: Any) -> OpenAIChat:
        given = {"openai_chat": "gpt-4.1-mini", "base_url": model.url + "/v1/", **options}
        return OpenAIChat.model_validate(given)

    return made


def test_a_conversation_is_sent_whole(model: Model, agent: Any, place: Place) -> None:
    bot = agent(instruction="Be brief, {name}.", settings={"temperature": 0, "seed": 7})
    state = {"app_name": "a", "user_id": "u", "state": {"name": "Ann"}}
    talk = place.talk(bot, "one", "two", session_input=state)

    assert talk.error is None
    assert talk.responses == ["You said one", "You said two"]
    assert talk.state == {"name": "Ann"}
    assert model.requests[1].path == "/v1/chat/completions"
    assert model.requests[1].body == {
        "model": "gpt-4.1-mini",
        "messages": [
            {"role": "system", "content": "Be brief, Ann."},
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "You said one"},
            {"role": "user", "content": "two"},
        ],
        "temperature": 0,
        "seed": 7,
    }


def test_tools_answer_what_is_canned(model: Model, agent: Any, place: Place) -> None:
    calls = called(("track", '{"order": 9}'), ("refund", ""), content="Let me see.")
    model.says(calls, completion("It is in Oslo."))
    talk = place.talk(agent(tools=TOOLS, results=RESULTS), "Where is 9?")

    [invocation] = talk.invocations
    assert invocation.response == "It is in Oslo."
    assert invocation.tool_calls == (
        ToolCall("track", {"order": 9}, {"place": "Oslo"}),
        ToolCall("refund", {}, {"error": "not allowed"}),
    )
    first, answers, last = invocation.events
    assert first.content.parts[0].text == "Let me see."
    assert answers.content.role == "user"
    assert last.content is None
    usage = {"prompt_token_count": 11, "candidates_token_count": 7, "total_token_count": 18}
    assert (first.usage_metadata, last.usage_metadata) == (usage, usage)
    # Two answers of 11 and 7 tokens, at 0.40 and 1.60 dollars a million.
    assert invocation.cost_usd == pytest.approx(2 * (11 * 0.40 + 7 * 1.60) / 1e6)
    assert model.requests[1].body["messages"][1:] == [
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [
                {
                    "id": "c0",
                    "type": "function",
                    "function": {"name": "track", "arguments": '{"order": 9}'},
                },
                {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c0", "content": '{"place": "Oslo"}'},
        {"role": "tool", "tool_call_id": "c1", "content": '{"error": "not allowed"}'},
    ]
    assert [tool["function"]["name"] for tool in model.requests[0].body["tools"]] == [
        "track",
        "refund",
    ]


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"prompt_tokens": 11, "completion_tokens": 7}, (11 * 0.40 + 7 * 1.60) / 1e6),
        ({"prompt_tokens": 11}, 11 * 0.40 / 1e6),
        ({"completion_tokens": 7}, None),
        (None, None),
    ],
)
def test_a_name_of_no_price_costs_what_the_model_behind_it_does(
    model: Model, agent: Any, place: Place, usage: Any, cost: float | None
) -> None:
    model.says({**completion("a"), "usage": usage})
    [invocation] = place.talk(agent(openai_chat="our-deployment"), "x").invocations

    assert invocation.cost_usd == (cost if cost is None else pytest.approx(cost))


def test_a_schema_is_sent_with_all_that_is_in_it(model: Model, agent: Any, place: Place) -> None:
    schema = {"type": "object", "properties": {"by": {"type": "string", "default": None}}}
    talk = place.talk(agent(tools=[{"name": "track", "parameters": schema}]), "x")

    declared = {"name": "track", "description": "", "parameters": schema}
    assert model.request.body["tools"] == [{"type": "function", "function": declared}]
    details = talk.invocations[0].app_details.agent_details["agent"]
    assert details.tool_declarations == ({"function_declarations": [declared]},)


def test_what_the_case_cans_comes_first(model: Model, agent: Any, place: Place) -> None:
    model.says(called(("track", '{"order": 9}')), called(("track", '{"order": 1}')))
    mocks = {"tools": {"track": {"args": {"order": 9}, "result": "Bergen"}}}
    talk = place.talk(agent(tools=TOOLS, results=RESULTS), "x", tool_mocks=mocks)

    assert [call.result for call in talk.invocations[0].tool_calls] == [
        {"result": "Bergen"},
        {"place": "Oslo"},
    ]
    assert model.requests[1].body["messages"][-1]["content"] == "Bergen"


def test_a_call_that_nothing_is_canned_for_is_an_error(
    model: Model, agent: Any, place: Place
) -> None:
    model.says(called(("track", '{"order": 9}')))
    talk = place.talk(agent(tools=TOOLS), "x")

    kind, message = talk.failure
    assert kind == "unmocked"
    assert message.startswith("the model called track(order=9), which has no canned")
    assert talk.error.seen.tool_calls == (ToolCall("track", {"order": 9}, None),)


def test_a_model_that_never_stops_calling_is_stopped(
    model: Model, agent: Any, place: Place
) -> None:
    model.says(*[called(("track", "{}"))] * 3)
    talk = place.talk(agent(tools=TOOLS, results=RESULTS, max_calls=3), "x")

    assert talk.failure[0] == "raised"
    assert "still calls tools after 3 requests in one invocation" in talk.failure[1]
    assert len(talk.error.seen.tool_calls) == 3
    assert len({call["id"] for call in _sent_calls(model.requests[2])}) == 2


def test_calls_without_ids_get_some(model: Model, agent: Any, place: Place) -> None:
    answer = called(("track", "{}"), ("track", "{}"))
    for call in answer["choices"][0]["message"]["tool_calls"]:
        del call["id"]
    model.says(answer)
    place.talk(agent(tools=TOOLS, results=RESULTS), "x")

    assert [call["id"] for call in _sent_calls(model.requests[1])] == ["call-1", "call-2"]
    answers = [each for each in model.requests[1].body["messages"] if each["role"] == "tool"]
    assert [each["tool_call_id"] for each in answers] == ["call-1", "call-2"]


def test_an_id_that_is_given_twice_is_changed(model: Model, agent: Any, place: Place) -> None:
    answer = called(("track", "{}"), ("track", "{}"))
    first, second = answer["choices"][0]["message"]["tool_calls"]
    first["id"], second["id"] = "call-1", None
    model.says(answer, answer)
    place.talk(agent(tools=TOOLS, results=RESULTS), "x")

    assert [call["id"] for call in _sent_calls(model.requests[2])] == [
        *("call-1", "call-2"),
        *("call-3", "call-4"),
    ]


def _sent_calls(request: Request) -> list[Any]:
    messages = request.body["messages"]
    return [call for each in messages for call in each.get("tool_calls", ())]


def test_arguments_that_are_no_json_are_kept_as_they_are(
    model: Model, agent: Any, place: Place
) -> None:
    model.says(called(("track", '{"order": ')))
    talk = place.talk(agent(tools=TOOLS, results=RESULTS), "x")

    assert talk.invocations[0].tool_calls[0].args == {"arguments": '{"order": '}


def test_another_session_goes_on_where_one_stopped(model: Model, agent: Any, place: Place) -> None:
    results = {"track": {"results": ["first", "second"]}}

    async def body(running: RunningAgent) -> None:
        first = await running.open(trial())
        await first.send(Content.of_text("one", role="user"))
        memento = json.loads(json.dumps(first.memento))
        second = await running.open(trial(), memento=memento)
        await second.send(Content.of_text("two", role="user"))

    model.says(called(("track", "{}")), completion("a"), called(("track", "{}")), completion("b"))
    place.run(agent(instruction="Be.", tools=TOOLS, results=results), body)
    said = [(each["role"], each["content"]) for each in model.requests[3].body["messages"]]
    assert said == [
        ("system", "Be."),
        ("user", "one"),
        ("assistant", None),
        ("tool", "first"),
        ("assistant", "a"),
        ("user", "two"),
        ("assistant", None),
        ("tool", "second"),
    ]


def test_images_go_along(model: Model, agent: Any, place: Place) -> None:
    parts = (
        Part(text="What is it?"),
        Part(inline_data={"mime_type": "image/png", "data": "iVBO"}),
        Part(file_data={"mimeType": "image/gif", "fileUri": "https://example.com/a.gif"}),
    )
    place.talk(agent(), Content(role="user", parts=parts))

    assert model.request.body["messages"][0]["content"] == [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.gif"}},
    ]


def test_other_parts_are_refused(model: Model, agent: Any, place: Place) -> None:
    part = Part(inline_data={"mime_type": "audio/wav", "data": "UklG"})
    kind, message = place.talk(agent(), Content(role="user", parts=(part,))).failure

    assert (kind, model.requests) == ("unsupported", [])
    assert message == "a chat message can have texts and images; this one has inline_data"


# --- Answers that are none --------------------------------------------------------------------


def test_a_refusal_is_a_response(model: Model, agent: Any, place: Place) -> None:
    model.says(completion(None, refusal="I cannot help with that."))
    assert place.talk(agent(), "x").responses == ["I cannot help with that."]


def test_an_answer_that_was_cut_off_counts_as_far_as_it_goes(
    model: Model, agent: Any, place: Place
) -> None:
    model.says(completion("It is in", "length"), completion("It is in Oslo.", "stop"))
    talk = place.talk(agent(), "x", "y")
    assert talk.responses == ["It is in", "It is in Oslo."]
    assert [each.finish_reason for each in talk.invocations] == ["length", None]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (completion(None, "length"), ("raised", "it was cut off at the token limit")),
        (CUT_CALL, ("raised", "cut off at the token limit")),
        (completion("", "content_filter"), ("raised", "the provider's content filter blocked it")),
        ({"error": {"message": "no such model"}}, ("connection", "gave no answer: no such model")),
        ({"choices": []}, ("protocol", "did not return a chat completion: {")),
        (
            {"choices": [{"message": {"content": 5}}]},
            ("protocol", "did not return a chat completion"),
        ),
        ([], ("protocol", "did not return a chat completion: []")),
        (Reply(b"<html>"), ("protocol", "which is not JSON")),
    ],
)
def test_an_answer_that_says_nothing_is_an_error(
    model: Model, agent: Any, place: Place, answer: Any, error: tuple[str, str]
) -> None:
    model.says(*[answer] * 4)
    failure = place.talk(agent(tools=TOOLS, results=RESULTS), "x").failure

    assert failure[0] == error[0]
    assert error[1] in failure[1]


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_who_is_busy_is_asked_again(
    model: Model, agent: Any, place: Place, status: int, monkeypatch: Any
) -> None:
    model.says(*[refusing(status, "busy", headers={"Retry-After": "0.01"})] * 3)

    assert place.talk(agent(), "x").responses == ["You said x"]
    assert len(model.requests) == 4


def test_but_not_for_ever(model: Model, agent: Any, place: Place, monkeypatch: Any) -> None:
    model.says(*[refusing(503, "busy")] * 9)
    kind, message = place.talk(agent(), "x").failure

    assert (kind, len(model.requests)) == ("connection", 4)
    assert "answered 503: " in message


@pytest.mark.usefixtures("_the_key")
@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (refusing(400, "bad"), "connection"),
        (refusing(401, f"Incorrect API key provided: {KEY}"), "start"),
        (refusing(404, "no such model"), "start"),
        (refusing(429, "pay first", code="insufficient_quota"), "connection"),
        (refusing(429, "later", headers={"Retry-After": "3600"}), "connection"),
    ],
)
def test_what_waiting_does_not_mend_is_asked_once(
    model: Model, agent: Any, place: Place, reply: Reply, kind: str
) -> None:
    model.says(reply)
    failure = place.talk(agent(api_key_env="THE_KEY"), "x").failure

    assert (failure[0], len(model.requests)) == (kind, 1)
    assert KEY not in failure[1]
    assert model.request.headers["authorization"] == f"Bearer {KEY}"


# --- Streams ----------------------------------------------------------------------------------


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {
        "model": "gpt-4.1-mini-2025-04-14",
        "system_fingerprint": "fp_1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def streamed(*chunks: Any, end: str = "data: [DONE]\n\n") -> Reply:
    body = "".join(f"data: {json.dumps(each)}\n\n" for each in chunks) + end
    return Reply(body.encode(), content_type="text/event-stream")


def piece(index: int, arguments: str = "", **more: Any) -> dict[str, Any]:
    function = {"arguments": arguments, **({"name": more.pop("name")} if "name" in more else {})}
    return {"index": index, "function": function, **more}


def test_pieces_of_a_stream_are_put_together(model: Model, agent: Any, place: Place) -> None:
    usage = {
        "prompt_tokens": 20,
        "completion_tokens": 9,
        "total_tokens": 29,
        "prompt_tokens_details": {"cached_tokens": 5},
        "completion_tokens_details": {"reasoning_tokens": 4},
    }
    model.says(
        streamed(
            chunk(role="assistant", content=""),
            chunk(content="Let "),
            chunk(content="me see."),
            chunk(tool_calls=[piece(0, name="track", id="a"), piece(1, name="refund", id="b")]),
            chunk(tool_calls=[piece(0, '{"ord')]),
            chunk(tool_calls=[piece(1, "{}"), piece(0, 'er": 9}')]),
            chunk("tool_calls"),
            {"choices": [], "usage": usage},
        ),
        streamed(chunk(content="In Oslo."), chunk("stop")),
    )
    talk = place.talk(agent(tools=TOOLS, results=RESULTS, stream=True), "x")

    [invocation] = talk.invocations
    assert invocation.response == "In Oslo."
    assert [call[:2] for call in invocation.tool_calls] == [("track", {"order": 9}), ("refund", {})]
    assert invocation.events[0].content.text == "Let me see."
    assert invocation.events[0].usage_metadata == {
        "prompt_token_count": 20,
        "candidates_token_count": 5,
        "thoughts_token_count": 4,
        "cached_content_token_count": 5,
        "total_token_count": 29,
    }
    assert invocation.events[0].system_fingerprint == "fp_1"
    assert invocation.cost_usd is None  # of the second answer nobody knows
    assert model.requests[0].body["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize(
    "reply",
    [
        streamed(chunk(content="It is"), end=""),
        streamed(end=""),
        Reply(b'data: {"choices": []}\n\n', 200, "text/event-stream", cut=True),
    ],
    ids=["in the middle", "at once", "the connection"],
)
def test_a_stream_that_broke_off_is_an_error(
    model: Model, agent: Any, place: Place, reply: Reply, monkeypatch: Any
) -> None:
    model.says(*[reply] * 4)

    assert place.talk(agent(stream=True), "x").failure[0] == "connection"


def test_an_error_in_a_stream_is_told(
    model: Model, agent: Any, place: Place, monkeypatch: Any
) -> None:
    model.says(*[streamed(chunk(content="a"), {"error": {"message": "overloaded"}})] * 4)

    assert "gave no answer: overloaded" in place.talk(agent(stream=True), "x").failure[1]


def test_a_call_without_a_function_is_no_answer(model: Model, agent: Any, place: Place) -> None:
    model.says(streamed(chunk(tool_calls=[{"index": 0, "function": "y"}]), chunk("tool_calls")))
    kind, message = place.talk(agent(tools=TOOLS, stream=True), "x").failure

    assert kind == "protocol"
    assert "did not return a chat completion: " in message


@pytest.mark.parametrize("garbage", ["5", '"a"', '{"choices": 5}', '{"choices": [{"delta": []}]}'])
def test_what_is_no_piece_is_passed_over(
    model: Model, agent: Any, place: Place, garbage: str
) -> None:
    odd = chunk(content="Hi", tool_calls=[{"index": "x"}, 7, None])
    model.says(streamed(json.loads(garbage), odd, chunk("stop", tool_calls="y")))
    assert place.talk(agent(stream=True), "x").responses == ["Hi"]


# --- Configurations ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "field", "said"),
    [
        ({}, "api_key_env", "the environment variable 'OPENAI_API_KEY' is not set"),
        (
            {"base_url": "http://x", "api_key_env": "NOPE"},
            "api_key_env",
            "the environment variable 'NOPE' is not set",
        ),
        (
            {"base_url": "http://x", "instruction": {"file": "nope.md"}},
            "instruction",
            "nope.md: no such file",
        ),
        (
            {"base_url": "http://x", "tools": TOOLS, "results": {"trac": {"result": 1}}},
            "results",
            "there is no tool 'trac' in `tools`. Did you mean 'track'?",
        ),
    ],
)
def test_mistakes_are_seen_before_anything_runs(
    place: Place, options: Any, field: str, said: str, monkeypatch: Any
) -> None:
    monkeypatch.setattr("support.agent_sessions.ENVIRONMENT", {})
    agent = OpenAIChat.model_validate({"openai_chat": "m", **options})

    assert list(agent.check(place.context)) == [(field, said)]


def test_what_the_agent_itself_says_is_no_setting() -> None:
    with pytest.raises(ValidationError, match="'messages' cannot be in `settings`"):
        OpenAIChat.model_validate({"openai_chat": "m", "settings": {"messages": []}})


def test_the_key_of_openai_goes_nowhere_else(
    model: Model, agent: Any, place: Place, monkeypatch: Any
) -> None:
    monkeypatch.setattr("support.agent_sessions.ENVIRONMENT", {"OPENAI_API_KEY": KEY})
    place.talk(agent(), "x")

    assert "authorization" not in model.request.headers
