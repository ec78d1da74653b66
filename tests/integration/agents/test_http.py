"""Services that answer over HTTP, each in its own way."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from servers.loopback import HTML, Loopback, Reply, Request, as_json, serving
from support.agent_sessions import Place, trial
from support.project import CONFIG, Project

from ci_eval.agents import http_agent
from ci_eval.agents._http_responses import Reading
from ci_eval.agents.http_agent import Http
from ci_eval.plugins.points import RunningAgent
from ci_eval.records.cases import Content, ToolCall
from ci_eval.records.errors import TrialError
from ci_eval.runtime.http import Request as Sent
from ci_eval.text.json_text import parse_json

KEY = "a-key-of-this-test"


class Service(Loopback):
    """Answers `{"response": …}` with what it was asked."""

    def reply(self, request: Request) -> Reply:
        return as_json({"response": f"You said {(request.body or {}).get('message')}"})


@pytest.fixture
def service() -> Iterator[Service]:
    found = Service()
    with serving(found):
        yield found


def sse(*events: Any) -> Reply:
    texts = [each if isinstance(each, str) else json.dumps(each) for each in events]
    body = "".join(f"data: {text}\n\n" for text in texts)
    return Reply(body.encode(), content_type="text/event-stream")


# --- Requests ---------------------------------------------------------------------------------


def test_an_address_is_enough(service: Service, place: Place) -> None:
    talk = place.talk(Http(http=service.url + "/chat"), "Hello", "Again")

    assert talk.error is None
    assert talk.responses == ["You said Hello", "You said Again"]
    assert service.requests[1].path == "/chat"
    assert service.requests[1].body == {
        "message": "Again",
        "history": [{"message": "Hello", "response": "You said Hello", "tool_calls": []}],
        "session": {
            "id": "ci-eval-1700000000000000-1",
            "app_name": "weather",
            "user_id": "ci-eval",
            "state": {},
        },
    }


def test_a_request_has_the_shape_that_is_asked_for(service: Service, place: Place) -> None:
    agent = Http(
        http=service.url + "/users/{{ session.user_id }}/chat?v=1",
        headers={"Authorization": f"Bearer {KEY}"},
        body={"input": {"text": "{{ message }}", "all": "{{ messages }}"}, "deep": [1, None]},
    )
    place.talk(agent, "one", "two", session_input={"app_name": "a", "user_id": "ann/lee"})

    last = service.requests[1]
    assert last.path == "/users/ann%2Flee/chat"
    assert last.query == {"v": ["1"]}
    assert last.headers["authorization"] == f"Bearer {KEY}"
    assert last.body == {
        "input": {
            "text": "two",
            "all": [
                {"role": "user", "content": "one"},
                {"role": "assistant", "content": "You said None"},
                {"role": "user", "content": "two"},
            ],
        },
        "deep": [1, None],
    }


def test_with_get_all_is_in_the_address(service: Service, place: Place) -> None:
    agent = Http(http=service.url + "/?q={{ message }}&to=x", method="GET")
    talk = place.talk(agent, "a&b=c ü")

    assert talk.responses == ["You said None"]
    assert service.request.query == {"q": ["a&b=c ü"], "to": ["x"]}
    assert service.request.body is None


def test_the_service_may_name_the_session(service: Service, place: Place) -> None:
    service.script.extend(
        [as_json({"response": "a", "id": "s/9"}), as_json({"response": "b", "id": "other"})]
    )
    agent = Http(
        http=service.url + "/{{ session.id }}", body={"id": "{{ session.id }}"}, session="answer.id"
    )
    talk = place.talk(agent, "one", "two", "three")

    assert talk.responses == ["a", "b", "You said None"]
    assert [(each.path, each.body["id"]) for each in service.requests] == [
        ("/", None),
        ("/s%2F9", "s/9"),
        ("/s%2F9", "s/9"),
    ]


def test_conversations_have_nothing_in_common(service: Service, place: Place) -> None:
    agent = Http(http=service.url)
    talks = place.talks(agent, [["a", "b"] for _ in range(8)])

    assert all(talk.responses == ["You said a", "You said b"] for talk in talks)
    seconds = [each.body for each in service.requests if each.body["message"] == "b"]
    assert len({each["session"]["id"] for each in seconds}) == 8
    assert all(len(each["history"]) == 1 for each in seconds)


def test_another_session_goes_on_where_one_stopped(service: Service, place: Place) -> None:
    async def body(running: RunningAgent) -> None:
        first = await running.open(trial())
        await first.send(Content.of_text("one", role="user"))
        memento = json.loads(json.dumps(first.memento))
        second = await running.open(trial(), memento=memento)
        await second.send(Content.of_text("two", role="user"))

    service.script.append(as_json({"response": "a", "id": 7}))
    place.run(Http(http=service.url, session="answer.id"), body)
    assert service.requests[1].body["session"]["id"] == 7
    assert [each["message"] for each in service.requests[1].body["history"]] == ["one"]


def test_calls_of_all_messages_have_ids_of_their_own(service: Service, place: Place) -> None:
    answer = {"response": "a", "tool_calls": [{"name": "track"}], "waits_for": [{"name": "ok"}]}
    service.script += [as_json(answer)] * 2
    talk = place.talk(Http(http=service.url), "one", "two")

    called = [[call.id for call in turn.intermediate_data.tool_uses] for turn in talk.invocations]
    assert called == [["call-1", "wait-1"], ["call-2.1", "wait-2.1"]]
    assert [[call.id for call in turn.waits_for] for turn in talk.invocations] == [
        ["wait-1"],
        ["wait-2.1"],
    ]


def test_a_case_that_replaces_tools_is_refused(service: Service, place: Place) -> None:
    mocks = {"tools": {"refund": {"result": 1}}}
    talk = place.talk(Http(http=service.url), "x", tool_mocks=mocks)

    assert talk.failure[0] == "unsupported"
    assert service.requests == []


def test_unless_the_service_is_told_what_to_replace(service: Service, place: Place) -> None:
    mocks = {"tools": {"refund": {"result": 1}}}
    agent = Http(http=service.url, body={"mocks": "{{ tool_mocks.tools }}"})
    talk = place.talk(agent, "x", tool_mocks=mocks)

    assert talk.error is None
    assert service.request.body["mocks"]["refund"][0]["result"] == 1


def test_a_request_without_what_it_asks_for_is_not_made(service: Service, place: Place) -> None:
    agent = Http(http=service.url, body={"plan": "{{ session.state.plan }}"})

    assert place.talk(agent, "x").failure == (
        "unsupported",
        "the request cannot be created: `{{ session.state.plan }}` finds nothing",
    )
    assert service.requests == []


# --- Answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        as_json("Hello"),
        as_json({"response": "Hello", "request_id": 9}),
        Reply(b"Hello", content_type="text/plain; charset=utf-8"),
    ],
    ids=["json text", "object", "plain text"],
)
def test_no_calls_are_not_the_same_as_calls_that_nobody_told_of(
    service: Service, place: Place, reply: Reply
) -> None:
    service.script.append(reply)
    talk = place.talk(Http(http=service.url), "x")

    assert talk.responses == ["Hello"]
    assert talk.invocations[0].intermediate_data is None


def test_calls_and_usage_of_our_own_shape_need_no_words(service: Service, place: Place) -> None:
    calls = [{"name": "track", "args": {"order": 9}, "result": "Oslo"}]
    usage = {"input_tokens": 3, "output_tokens": 2, "cost_usd": 0.5}
    service.script.append(as_json({"response": "a", "tool_calls": calls, "usage": usage}))
    service.script.append(as_json({"response": "b", "tool_calls": []}))
    talk = place.talk(Http(http=service.url), "x", "y")

    first, second = talk.invocations
    assert first.tool_calls == (ToolCall("track", {"order": 9}, {"result": "Oslo"}),)
    assert first.cost_usd == 0.5
    assert first.events[0].usage_metadata == {"prompt_token_count": 3, "candidates_token_count": 2}
    assert second.intermediate_data is not None
    assert second.tool_calls == ()


def test_answers_of_any_shape_are_read(service: Service, place: Place) -> None:
    service.script.append(
        as_json(
            {
                "output": [{"text": "It is in Oslo."}],
                "steps": [
                    {"kind": "thought", "text": "hm"},
                    {"kind": "tool", "tool": "track", "input": '{"order": 9}', "out": {"at": 1}},
                ],
                "tokens": {"prompt_tokens": 30, "completion_tokens": 2, "total": 32},
                "memory": {"last": 9},
            }
        )
    )
    agent = Http(
        http=service.url,
        response="answer.output[0].text",
        tool_calls={
            "each": "answer.steps | selectattr('kind', 'equalto', 'tool')",
            "name": "call.tool",
            "args": "call.input",
            "result": "call.out",
        },
        usage="answer.tokens",
        state="answer.memory",
    )
    talk = place.talk(agent, "x")

    assert talk.error is None
    assert talk.responses == ["It is in Oslo."]
    assert talk.invocations[0].tool_calls == (ToolCall("track", {"order": 9}, {"at": 1}),)
    assert talk.invocations[0].events[0].usage_metadata["prompt_token_count"] == 30
    assert talk.state == {"last": 9}


def test_calls_as_openai_has_them_are_known(service: Service, place: Place) -> None:
    function = {"name": "track", "arguments": '{"order": 9}'}
    service.script.append(as_json({"r": 1.5, "calls": [{"id": "c", "function": function}]}))
    talk = place.talk(Http(http=service.url, response="answer.r", tool_calls="answer.calls"), "x")

    assert talk.responses == ["1.5"]
    assert talk.invocations[0].tool_calls == (ToolCall("track", {"order": 9}, None),)


@pytest.mark.parametrize(
    ("where", "captured"), [("answer.calls", False), ("answer.calls or []", True)]
)
def test_where_no_calls_are_found_the_expression_decides(
    service: Service, place: Place, where: str, captured: bool
) -> None:
    talk = place.talk(Http(http=service.url, tool_calls=where), "x")

    assert (talk.invocations[0].intermediate_data is not None) is captured
    assert talk.invocations[0].tool_calls == ()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"response": "answer.a"}, "expected the text of the answer at `answer.a`, found nothing"),
        ({"tool_calls": "answer.b"}, "expected a list of tool calls at `answer.b`, found 'x'"),
        ({"tool_calls": "answer.c"}, "'name' is missing"),
        ({"usage": "answer.b"}, "expected an object at `answer.b`, found 'x'"),
        ({"usage": "answer.u"}, "usage.input_tokens: must be at least 0, found -1"),
        ({"state": "answer.b"}, "expected an object at `answer.b`, found 'x'"),
        ({"session": "answer.a"}, "expected the id of a session at `answer.a`, found nothing"),
        ({"response": "answer.b / 2"}, "in which `answer.b / 2` has no value: unsupported operand"),
    ],
)
def test_what_is_not_where_it_should_be_is_said(
    service: Service, place: Place, options: Any, said: str
) -> None:
    answer = {"response": "hi", "b": "x", "c": [{"no": 1}], "u": {"prompt_tokens": -1}}
    service.script.append(as_json(answer))
    kind, message = place.talk(Http(http=service.url, **options), "x").failure

    assert kind == "protocol"
    assert said in message


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (as_json({"text": "hi"}), "protocol", '{"text": "hi"}, which has no \'response\'; set'),
        (as_json({"response": 5}), "protocol", "expected text, found 5"),
        (HTML, "protocol", "answered 200: <html><body>Sign in</body></html>, which is not JSON"),
        (as_json({"detail": f"not {KEY}"}, 401), "connection", '401: {"detail": "not [hidden]"}'),
        (Reply(b"down", 503, "text/plain"), "connection", "answered 503: down"),
        (Reply(dropped=True), "connection", "could not be reached: "),
        (Reply(b'{"resp', cut=True), "connection", "could not be reached: "),
        (Reply(b"", 200), "protocol", "answered 200 without a body, which is not JSON"),
    ],
)
def test_bad_answers_are_errors_that_say_what_came(
    service: Service, place: Place, reply: Reply, kind: str, said: str
) -> None:
    service.script.append(reply)
    agent = Http(http=service.url + "/a?key=1", headers={"X-Key": KEY})
    failure = place.talk(agent, "x").failure

    assert failure[0] == kind
    assert said in failure[1]
    assert f"{service.url}/a" in failure[1] or "the agent answered" in failure[1]
    assert "key=1" not in failure[1]


def test_a_slow_answer_has_its_own_limit(service: Service, place: Place) -> None:
    service.script.append(as_json({"response": "late"}, delay_s=60))
    talk = place.talk(Http(http=service.url, timeout_s=0.05), "x")

    assert talk.failure == ("timeout", f"{service.url} did not answer within 0.05 s")


@given(st.text() | st.binary())
def test_whatever_comes_back_it_is_a_reply_or_an_error_of_the_trial(body: Any) -> None:
    text = body if isinstance(body, str) else body.decode(errors="replace")
    try:
        answer = parse_json(text)
    except ValueError:
        answer = text
    reading = Reading(Sent("POST", "http://x"), answer)
    if isinstance(answer, str) or (isinstance(answer, dict) and "response" in answer):
        assert "response" in reading.reply(None, None, None)
        return
    with pytest.raises(TrialError, match="has no 'response'"):
        reading.reply(None, None, None)


# --- Streams ----------------------------------------------------------------------------------


def test_a_stream_adds_up(service: Service, place: Place) -> None:
    service.script.append(
        sse({"delta": "It is "}, {"ping": 1}, {"delta": "in Oslo.", "x": 1}, "[DONE]")
    )
    talk = place.talk(Http(http=service.url, stream="sse"), "x")

    assert talk.error is None
    assert talk.responses == ["It is in Oslo."]


def test_the_events_of_a_stream_can_be_read_too(service: Service, place: Place) -> None:
    service.script.append(
        sse(
            {"type": "text", "text": "Oslo"},
            {"type": "call", "name": "track", "args": {"order": 9}},
            {"type": "text", "text": "!"},
        )
    )
    agent = Http(
        http=service.url,
        stream="sse",
        delta="event.text",
        tool_calls="answer.events | selectattr('type', 'equalto', 'call')",
    )
    talk = place.talk(agent, "x")

    assert talk.responses == ["Oslo!"]
    assert talk.invocations[0].tool_calls == (ToolCall("track", {"order": 9}, None),)


def test_events_may_be_plain_text(service: Service, place: Place) -> None:
    service.script.append(sse("Hello ", "you"))
    talk = place.talk(Http(http=service.url, stream="sse", delta="event"), "x")

    assert talk.responses == ["Hello you"]


def test_a_stream_without_end_is_given_up(
    service: Service, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_agent, "MAX_EVENTS", 2)
    service.script.append(sse(*[{"delta": "a"}] * 3))
    failure = place.talk(Http(http=service.url, stream="sse"), "x").failure

    assert failure == ("protocol", f"{service.url} sent more than 2 events")


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (sse({"text": "a"}), "expected the text of the answer at `answer.text`, found nothing"),
        (sse({"delta": 1}), "expected a piece of text at `event.delta`, found 1"),
        (as_json({"response": "a"}), "which is not an event stream"),
        (Reply(b"data: {}", 200, "text/event-stream", cut=True), "could not be reached"),
    ],
)
def test_a_stream_without_text_is_an_error(
    service: Service, place: Place, reply: Reply, said: str
) -> None:
    service.script.append(reply)
    assert said in place.talk(Http(http=service.url, stream="sse"), "x").failure[1]


# --- Configurations ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "field", "said"),
    [
        ({"http": "ftp://x"}, "http", "expected an address such as 'https://example.com/chat'"),
        ({"http": "${NOPE_URL}/a"}, "http", "the environment variable 'NOPE_URL' is not set"),
        ({"headers": {"A": "${NOPE}"}}, "headers", "the environment variable 'NOPE' is not set"),
        ({"headers": {"A B": "1"}}, "headers", "'A B' is not a valid name of a header"),
        ({"headers": {"A": "1\n2"}}, "headers", "'A' has a line break or a character"),
        ({"headers": {"A": "${GITHUB_TOKEN}"}}, "headers", "'GITHUB_TOKEN' is never passed"),
        ({"http": "http://127.0.0.1:{port}/"}, "start", "needs an address without `{port}`"),
    ],
)
def test_mistakes_are_seen_before_anything_runs(
    place: Place, options: Any, field: str, said: str
) -> None:
    [(where, message)] = Http(**{"http": "http://x", **options}).check(place.context)

    assert where == field
    assert said in message


def test_variables_are_put_in_and_their_ends_cut(
    service: Service, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = place.context
    env = {**context.env, "BASE": service.url, "THE_KEY": f"{KEY}\n", "OTHER": "not read"}
    monkeypatch.setattr("support.agent_sessions.ENVIRONMENT", env)
    agent = Http(http="${BASE}/a", headers={"X-Key": "${THE_KEY}", "X-Other": "$OTHER"})

    assert list(agent.check(place.context)) == []
    place.talk(agent, "x")
    assert service.request.headers["x-key"] == KEY
    assert service.request.headers["x-other"] == "$OTHER"


def test_a_variable_that_no_header_can_have_is_refused_unseen(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("support.agent_sessions.ENVIRONMENT", {"THE_KEY": "secret\nInjected: 1"})
    [(_, message)] = Http(http="http://x", headers={"X": "${THE_KEY}"}).check(place.context)

    assert message == "'THE_KEY' has a line break or a character that is not allowed in a header"


def test_a_template_that_asks_for_what_there_is_not_is_refused() -> None:
    with pytest.raises(ValidationError, match="refers to 'sesion', which is not available here"):
        Http(http="http://x/{{ sesion.id }}")


SERVER = """
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = {"Hello": "Hello, how can I help?", "Refund 7": "Order 7 is refunded."}
        calls = [{"name": "refund", "args": {"order": 7}}] if "7" in asked["message"] else []
        body = json.dumps({"response": said.get(asked["message"], "?"), "tool_calls": calls})
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())


HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def project(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Project:
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, capsys)


def test_a_service_is_started_asked_and_scored(project: Project) -> None:
    (project.folder / "server.py").write_text(SERVER)
    started = (
        f'{{http: "http://127.0.0.1:{{port}}/", start: [{sys.executable}, server.py, "{{port}}"]}}'
    )
    project.config(CONFIG.replace("{recorded: traces.jsonl}", started))
    ended = project.ci_eval("run")

    assert ended.code == 1, ended.err
    assert project.scores() == {
        "greets": {"tool_trajectory_avg_score": 1.0, "response_match_score": 1.0},
        "refunds": {"tool_trajectory_avg_score": 1.0, "response_match_score": 1.0},
        "tracks": {"tool_trajectory_avg_score": 0.0, "response_match_score": 0.0},
    }


def test_without_calls_a_trajectory_is_an_error_and_never_green(
    project: Project, service: Service
) -> None:
    config = CONFIG.replace("{recorded: traces.jsonl}", f"{{http: {service.url}}}")
    before, _, _ = config.partition("  tool_trajectory_avg_score")
    project.config(f"{before}  agentflow/tool_name_match_score: 1.0\n")
    ended = project.ci_eval("run")

    assert ended.code == 6
    assert {each["agentflow/tool_name_match_score"] for each in project.scores().values()} == {None}
