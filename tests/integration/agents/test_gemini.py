"""The gemini agent over google-genai, against a server on this machine."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError
from servers.gemini import KEY, FakeGemini, answer, error, retry_info, streamed
from servers.loopback import CUT, DROPPED, HTML, Reply, as_json, closed_port, serving
from support.agent_sessions import Place, Talk, converse, trial

from ci_eval.agents import _model_agent_retries
from ci_eval.agents.gemini_agent import Gemini
from ci_eval.formats.event_lists import calls_of
from ci_eval.plugins.points import RunningAgent
from ci_eval.records.cases import Content, Invocation, ToolCall
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.retry import Backoff

# google-genai makes a class of its own of aiohttp's session.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")

WEATHER = {
    "name": "get_weather",
    "description": "How it is outside.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}
PARIS = {"functionCall": {"name": "get_weather", "args": {"city": "Paris"}}}
ROME = {"functionCall": {"name": "get_weather", "args": {"city": "Rome"}}}
SUNNY = {"get_weather": {"result": {"sky": "sunny"}}}


class Desk(Place):
    """A folder whose environment has a key."""

    env: dict[str, str] = {"GOOGLE_API_KEY": KEY}  # noqa: RUF012  # each test may set its own

    @property
    def context(self) -> RunContext:
        return RunContext(env=self.env, root=self.root, now=lambda: 1_700_000_000.0)


@pytest.fixture
def desk(place: Place, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr(_model_agent_retries, "BACKOFF", Backoff(0.01, 60.0))
    return Desk(place.root)


@pytest.fixture
def google() -> Iterator[FakeGemini]:
    with serving(provider := FakeGemini()):
        yield provider


def model(google: FakeGemini, **fields: Any) -> Gemini:
    given = {"gemini": "gemini-2.5-flash", "base_url": google.url, **fields}
    return Gemini.model_validate(given)


def says(*parts: dict[str, Any], finish: str = "STOP") -> dict[str, Any]:
    return answer(parts=list(parts), finish=finish)


def plays(google: FakeGemini, *answers: dict[str, Any] | Reply) -> None:
    """Let the next requests be answered so."""
    google.script += [each if isinstance(each, Reply) else as_json(each) for each in answers]


def seen(talk: Talk) -> Invocation:
    """Return the observed part of the failed invocation."""
    found = talk.error.seen
    assert isinstance(found, Invocation)
    return found


# --- A conversation -----------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_sent_and_what_is_told_of_it(desk: Desk, google: FakeGemini) -> None:
    plays(google, says({"text": "Let me see."}, PARIS), says({"text": "Sunny."}))
    agent = model(
        google,
        instruction="Talk about {topic}.",
        tools=[WEATHER],
        results=SUNNY,
        settings={"temperature": 0},
    )
    state = {"topic": "the weather"}
    session = {"app_name": "a", "user_id": "u", "state": state}
    talk = desk.talk(agent, "How is Paris?", session_input=session)

    assert talk.error is None
    assert talk.state == state
    first, second = (each.body for each in google.requests)
    asked = {"role": "user", "parts": [{"text": "How is Paris?"}]}
    assert first == {
        "contents": [asked],
        "systemInstruction": {"role": "user", "parts": [{"text": "Talk about the weather."}]},
        "generationConfig": {"temperature": 0.0},
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "get_weather",
                        "description": "How it is outside.",
                        "parameters_json_schema": WEATHER["parameters"],
                    }
                ]
            }
        ],
    }
    response = {"name": "get_weather", "response": {"sky": "sunny"}}
    assert second["contents"] == [
        asked,
        {"role": "model", "parts": [{"text": "Let me see."}, PARIS]},
        {"role": "user", "parts": [{"functionResponse": response}]},
    ]

    [found] = talk.invocations
    assert found.response == "Sunny."
    assert found.tool_calls == (ToolCall("get_weather", {"city": "Paris"}, {"sky": "sunny"}),)
    assert found.app_details
    details = found.app_details.agent_details["agent"]
    assert details.instructions == "Talk about the weather."
    assert details.tool_declarations == ({"function_declarations": [WEATHER]},)
    assert found.cost_usd == pytest.approx(2 * (11 * 0.30 + 12 * 2.50) / 1e6)
    assert found.tool_duration == 0
    assert found.duration
    assert found.model_duration
    assert 0 < found.model_duration <= found.duration

    calling, answering, final = found.events or ()
    assert calling.content
    assert calling.content.text == "Let me see."
    assert calling.model_version == final.model_version == "gemini-2.5-flash-001"
    assert answering.content
    assert answering.content.role == "user"
    assert final.content is None
    assert final.usage_metadata == {
        "prompt_token_count": 11,
        "candidates_token_count": 7,
        "thoughts_token_count": 5,
        "total_token_count": 23,
    }


@pytest.mark.slow
def test_a_conversation_goes_on_here_and_in_another_process(desk: Desk, google: FakeGemini) -> None:
    results = {"get_weather": {"results": [{"sky": "sunny"}, {"sky": "grey"}, {"sky": "red"}]}}
    agent = model(google, tools=[WEATHER], results=results)
    plays(google, says(PARIS), says({"text": "Sunny."}), says(PARIS), says({"text": "Grey."}))

    async def hold(running: RunningAgent) -> tuple[Invocation, Any]:
        session = await running.open(trial())
        await session.send(Content.of_text("Now?", role="user"))
        return await session.send(Content.of_text("And now?", role="user")), session.memento

    found, memento = desk.run(agent, hold)
    assert found.tool_calls == (ToolCall("get_weather", {"city": "Paris"}, {"sky": "grey"}),)

    async def go_on(running: RunningAgent) -> Invocation:
        session = await running.open(trial(), memento=json.loads(json.dumps(memento)))
        return await session.send(Content.of_text("And at last?", role="user"))

    plays(google, says(PARIS), says({"text": "Red."}))
    found = desk.run(agent, go_on)
    assert found.tool_calls == (ToolCall("get_weather", {"city": "Paris"}, {"sky": "red"}),)
    contents = google.requests[-1].body["contents"]
    assert [each["role"] for each in contents] == ["user", "model", "user", "model"] * 2 + [
        *("user", "model", "user")
    ]
    texts = [each["parts"][0]["text"] for each in contents if "text" in each["parts"][0]]
    assert texts == ["Now?", "Sunny.", "And now?", "Grey.", "And at last?"]
    assert KEY not in json.dumps(memento)


def test_ids_that_are_made_up_are_new_in_another_process(desk: Desk, google: FakeGemini) -> None:
    earlier = [
        {"role": "user", "parts": [{"text": "Now?"}]},
        {
            "role": "model",
            "parts": [{"function_call": {"id": "adk-2", "name": "get_weather", "args": {}}}],
        },
    ]
    plays(google, says(PARIS, PARIS), says({"text": "Sunny."}))

    async def go_on(running: RunningAgent) -> Invocation:
        session = await running.open(trial(), memento={"said": earlier})
        return await session.send(Content.of_text("And now?", role="user"))

    found = desk.run(model(google, tools=[WEATHER], results=SUNNY), go_on)
    calls = calls_of((found.events or ())[0].content)
    assert [call.id for call in calls] == ["adk-1", "adk-3"]


def test_thought_signatures_and_ids_of_the_model_go_back_to_it(
    desk: Desk, google: FakeGemini
) -> None:
    call = {"functionCall": {**PARIS["functionCall"], "id": "c7"}, "thoughtSignature": "+/+/eA=="}
    plays(google, says(call), says({"text": "Sunny."}))
    desk.talk(model(google, tools=[WEATHER], results=SUNNY), "How is Paris?")
    _, said, answered = google.requests[-1].body["contents"]
    assert said["parts"] == [{**call, "thoughtSignature": "-_-_eA=="}]
    assert answered["parts"][0]["functionResponse"]["id"] == "c7"


# --- Streams ------------------------------------------------------------------------------------


def test_a_stream_says_what_its_chunks_say_together(desk: Desk, google: FakeGemini) -> None:
    opening = {"functionCall": {"name": "get_weather", "willContinue": True}}
    pieces = [
        {"functionCall": {"partialArgs": [{"jsonPath": "$.city", "stringValue": "Pa"}]}},
        {"functionCall": {"partialArgs": [{"jsonPath": "$.city", "stringValue": "ris"}]}},
    ]
    pieces[0]["functionCall"]["willContinue"] = True
    first = streamed(
        *({"candidates": [says(each)["candidates"][0]]} for each in (opening, *pieces))
    )
    second = streamed(
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "Sun"}]}}]},
        says({"text": "ny."}),
    )
    plays(google, first, second)
    talk = desk.talk(model(google, tools=[WEATHER], results=SUNNY, stream=True), "How is Paris?")
    [found] = talk.invocations
    assert found.response == "Sunny."
    assert found.tool_calls == (ToolCall("get_weather", {"city": "Paris"}, {"sky": "sunny"}),)
    assert google.requests[0].path.endswith(":streamGenerateContent")
    assert google.requests[1].body["contents"][1]["parts"] == [PARIS]


def test_of_a_stream_that_breaks_off_the_beginning_is_kept(desk: Desk, google: FakeGemini) -> None:
    beginning = {"candidates": [{"content": {"role": "model", "parts": [{"text": "It is"}]}}]}
    plays(google, *[streamed(beginning, cut=True)] * 4)
    talk = desk.talk(model(google, stream=True), "How is Paris?")
    kind, message = talk.failure
    assert kind == "connection"
    assert "'gemini-2.5-flash' could not be reached" in message
    [event] = seen(talk).events or ()
    assert event.content
    assert event.content.text == "It is"
    assert len(google.requests) == 4


def test_an_error_within_a_stream_is_one(desk: Desk, google: FakeGemini) -> None:
    gone = {"error": {"code": 404, "status": "NOT_FOUND", "message": "no such thing"}}
    plays(google, streamed(gone))
    kind, message = desk.talk(model(google, stream=True), "hello").failure
    assert kind == "start"
    assert "404 NOT_FOUND: no such thing; name another model with 'gemini' of the agent" in message


@pytest.mark.parametrize(
    "reply",
    [
        Reply(b"data: {nonsense\n\n", content_type="text/event-stream"),
        Reply(b"", content_type="text/event-stream"),
        streamed({"candidates": [{"content": {"parts": [{"thoughtSignature": "?"}]}}]}),
        HTML,
    ],
    ids=["no JSON", "nothing", "another shape", "a page"],
)
def test_a_stream_of_something_else_is_a_clear_error(
    desk: Desk, google: FakeGemini, reply: Reply
) -> None:
    plays(google, *[reply] * 4)
    kind, message = desk.talk(model(google, stream=True), "hello").failure
    assert kind == "connection"
    assert "'gemini-2.5-flash' returned something other than an answer: it is" in message


# --- Tools --------------------------------------------------------------------------------------


def test_the_results_of_the_case_come_first(desk: Desk, google: FakeGemini) -> None:
    plays(google, says(PARIS, ROME), says({"text": "So so."}))
    mocks = {"tools": {"get_weather": [{"args": {"city": "Paris"}, "error": "no such town"}]}}
    talk = desk.talk(model(google, tools=[WEATHER], results=SUNNY), "How is it?", tool_mocks=mocks)
    [found] = talk.invocations
    assert [call.result for call in found.tool_calls] == [
        {"error": "no such town"},
        {"sky": "sunny"},
    ]


@pytest.mark.parametrize("unmatched", ["error", "pass"])
def test_a_call_without_a_result_is_an_error_whatever_the_case_says(
    desk: Desk, google: FakeGemini, unmatched: str
) -> None:
    plays(google, says({"text": "Well."}, PARIS))
    mocks = {"tools": {"get_weather": [{"args": {"city": "Oslo"}, "result": 1}]}}
    talk = desk.talk(
        model(google, tools=[WEATHER]), "How is it?", tool_mocks={**mocks, "unmatched": unmatched}
    )
    kind, message = talk.failure
    assert kind == "unmocked"
    assert message.startswith(
        "the model called get_weather(city='Paris'), which has no canned result; add one"
    )
    assert seen(talk).tool_calls == (ToolCall("get_weather", {"city": "Paris"}, None),)


def test_a_model_that_never_stops_calling_is_stopped(desk: Desk, google: FakeGemini) -> None:
    plays(google, *[says(PARIS)] * 3)
    agent = model(google, tools=[WEATHER], results=SUNNY, max_calls=3)
    talk = desk.talk(agent, "How is it?")
    kind, message = talk.failure
    assert kind == "raised"
    assert message.startswith("the model still calls tools after 3 requests in one invocation")
    assert len(seen(talk).tool_calls) == 3


# --- Answers that are none ----------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_was_cut_off_is_final_where_it_says_something(
    desk: Desk, google: FakeGemini, stream: bool
) -> None:
    answered = says({"text": "It is su"}, finish="MAX_TOKENS")
    plays(google, streamed(answered) if stream else answered)
    [found] = desk.talk(model(google, stream=stream), "hello").invocations
    assert (found.response, found.finish_reason) == ("It is su", "MAX_TOKENS")


def test_an_answer_that_ended_by_itself_has_no_reason(desk: Desk, google: FakeGemini) -> None:
    plays(google, says(PARIS), says({"text": "Sunny."}))
    [found] = desk.talk(model(google, tools=[WEATHER], results=SUNNY), "hello").invocations
    assert found.finish_reason is None


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"candidates": [{"finishReason": "SAFETY"}]}, "SAFETY"),
        (
            {"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "a\nb"}},
            "SAFETY: a b",
        ),
        ({"candidates": [{"content": {"role": "model"}}]}, "it gave no reason"),
        ({}, "it gave no reason"),
        ({"promptFeedback": {"blockReason": "OTHER"}}, "OTHER"),
        ({"candidates": [{"finishReason": "MAX_TOKENS"}]}, "MAX_TOKENS"),
    ],
)
def test_without_a_word_the_reason_is_the_error(
    desk: Desk, google: FakeGemini, body: dict[str, Any], reason: str, stream: bool
) -> None:
    usage = {"usageMetadata": {"promptTokenCount": 3}}
    plays(google, streamed(body | usage) if stream else as_json(body | usage))
    talk = desk.talk(model(google, stream=stream), "hello")
    assert talk.failure == ("raised", f"the model gave no response: {reason}")
    [event] = seen(talk).events or ()
    assert event.usage_metadata == {"prompt_token_count": 3}


@pytest.mark.parametrize("reply", [HTML, Reply(b""), as_json([1]), as_json({"candidates": 1})])
def test_an_answer_of_another_shape_is_asked_for_again_and_is_an_error_then(
    desk: Desk, google: FakeGemini, reply: Reply
) -> None:
    plays(google, *[reply] * 4)
    kind, message = desk.talk(model(google), "hello").failure
    assert kind == "connection"
    assert message.startswith("'gemini-2.5-flash' returned something other than an answer: it ")
    assert len(google.requests) == 4


def test_what_fails_in_passing_is_tried_again(desk: Desk, google: FakeGemini) -> None:
    busy = error(429, "RESOURCE_EXHAUSTED", "Too fast.", retry_info("0.01s"))
    plays(google, busy, CUT, DROPPED, says({"text": "Sunny."}))
    assert desk.talk(model(google), "hello").responses == ["Sunny."]


def test_one_that_wants_to_be_asked_much_later_is_not_waited_for(
    desk: Desk, google: FakeGemini
) -> None:
    plays(google, error(429, "RESOURCE_EXHAUSTED", "Too fast.", retry_info("600s")))
    kind, message = desk.talk(model(google), "hello").failure
    assert kind == "connection"
    assert "429 RESOURCE_EXHAUSTED: Too fast." in message


# --- What it lacks ------------------------------------------------------------------------------


def test_a_wrong_key_is_tried_once_for_all_conversations(desk: Desk, google: FakeGemini) -> None:
    desk.env = {"GEMINI_API_KEY": "AIzaSy-the-wrong-key-of-this-test"}

    async def hold(running: RunningAgent) -> list[Talk]:
        return [await converse(running, "hello") for _ in range(3)]

    talks = desk.run(model(google), hold)
    assert len(google.requests) == 1
    for talk in talks:
        kind, message = talk.failure
        assert kind == "start"
        assert "the key comes from GEMINI_API_KEY" in message
        assert "wrong-key" not in message


def test_without_a_key_nothing_is_sent(desk: Desk, google: FakeGemini) -> None:
    desk.env = {}
    talk = desk.talk(model(google), "hello")
    assert talk.failure == ("start", "the agent lacks GOOGLE_API_KEY or GEMINI_API_KEY")
    assert google.requests == []


def test_where_nobody_listens_the_error_says_so(desk: Desk) -> None:
    url = f"http://127.0.0.1:{closed_port()}"
    agent = Gemini.model_validate({"gemini": "gemini-2.5-flash", "base_url": url})
    kind, message = desk.talk(agent, "hello").failure
    assert kind == "connection"
    assert "could not be reached" in message


def test_a_state_that_the_instruction_names_has_to_be_there(desk: Desk, google: FakeGemini) -> None:
    talk = desk.talk(model(google, instruction="About {topic} in {lang?}"), "hello")
    kind, message = talk.failure
    assert kind == "start"
    assert message == (
        "the instruction names {topic}, which the session's state does not have; set it in the "
        "case's `session_input.state`, or write {topic?}"
    )


def test_a_message_that_google_does_not_know_is_refused(desk: Desk, google: FakeGemini) -> None:
    message = Content.model_validate(
        {"role": "user", "parts": [{"inline_data": {"colour": "red"}}]}
    )
    kind, said = desk.talk(model(google), message).failure
    assert kind == "unsupported"
    assert said.startswith("a message cannot be sent to the model: ")


def test_the_check_names_what_is_wrong(desk: Desk, google: FakeGemini) -> None:
    agent = model(
        google,
        instruction={"file": "gone.md"},
        tools=[WEATHER],
        results={"get_wether": {"result": 1}},
    )
    found = dict(agent.check(desk.context))
    assert found.keys() == {"instruction", "results"}
    assert "gone.md" in found["instruction"]
    assert found["results"] == (
        "there is no tool 'get_wether' in `tools`. Did you mean 'get_weather'?"
    )
    desk.write("told.md", "Be kind.")
    assert list(model(google, instruction={"file": "told.md"}).check(desk.context)) == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"tools": [WEATHER, WEATHER]}, "two tools are named 'get_weather'"),
        ({"settings": {"tools": []}}, "'tools' cannot be set for an agent: the agent's 'tools'"),
        ({"settings": {"temperature": 3}}, "temperature: must be at most 2, found 3"),
        ({"max_calls": 0}, "greater than or equal to 1"),
        ({"results": {"f": {}}}, "needs one of 'result', 'results' and 'error'"),
    ],
)
def test_what_cannot_be_configured_is_refused(
    google: FakeGemini, fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        model(google, **fields)
