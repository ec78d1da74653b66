"""An api server of ADK is asked over HTTP: one that stands in for it, and real ones.

The real ones run where CI_EVAL_ADK_PYTHON names a Python that has google-adk 2.13 and
CI_EVAL_ADK23_PYTHON one with 2.3.0.  Where CI_EVAL_VECTORS names a folder with
`adk_server_observations.json`, what real servers were seen to answer is answered here, too.
"""

import asyncio
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from servers.loopback import HTML, Loopback, Reply, Request, as_json, closed_port, serving
from support.agent_sessions import LONG_S, Place, Talk, converse, dies, passing, trial

from ci_eval.agents import _agent_server
from ci_eval.agents import adk_server_agent as _adk_server
from ci_eval.agents.adk_agent import Adk
from ci_eval.agents.adk_server_agent import AdkServer
from ci_eval.plugins.points import RunningAgent
from ci_eval.records.cases import Content, FunctionCall, Invocation, ToolCall
from ci_eval.runtime.context import RunContext

HERE = Path(__file__).parent
AGENTS = HERE / "adk_agents"


# --- A stand-in -------------------------------------------------------------------------------


def event(*parts: dict[str, Any], author: str = "weather", **more: Any) -> dict[str, Any]:
    """Return an event as servers write it."""
    content = {"content": {"role": "model", "parts": list(parts)}} if parts else {}
    common = {"author": author, "invocationId": "e-1", "id": f"event-{len(str(parts))}"}
    return {**common, "timestamp": 17.5, "actions": {"stateDelta": {}}, **content, **more}


CALL = {"functionCall": {"id": "adk-1", "name": "look", "args": {"at": "Rome"}}}
ANSWER = {"functionResponse": {"id": "adk-1", "name": "look", "response": {"sky": "clear"}}}
RUN = [
    event(CALL, usageMetadata={"promptTokenCount": 10}, modelVersion="m-1", longRunningToolIds=[]),
    event(ANSWER),
    event({"text": "Clear."}, usageMetadata={"promptTokenCount": 12}),
]
PERMIT = event(
    {"functionCall": {"id": "adk-7", "name": "permit", "args": {"what": "a trip"}}},
    longRunningToolIds=["adk-7"],
)


class FakeAdk(Loopback):
    """Has the app `weather`, whose every run is `RUN`."""

    def __init__(self) -> None:
        super().__init__()
        self.apps: Any = ["weather"]
        self.sessions: dict[str, Any] = {}
        self.runs: list[Any] = []
        """The next runs: events, or what is answered."""
        self.sends_events = True
        """Whether it has `/run_sse`."""

    def reply(self, request: Request) -> Reply:
        if request.path == "/list-apps":
            return self.apps if isinstance(self.apps, Reply) else as_json(self.apps)
        if request.path == "/version":
            return as_json({"version": "2.13.0", "language": "python"})
        if request.path in ("/run", "/run_sse"):
            return self.run(request)
        if request.path.endswith("/sessions"):
            name = request.body["sessionId"]
            if name in self.sessions:
                return as_json({"detail": f"Session already exists: {name}"}, 409)
            self.sessions[name] = {"id": name, "state": request.body["state"], "events": []}
        else:
            name = request.path.rpartition("/")[2]
        if name not in self.sessions:
            return as_json({"detail": "Session not found"}, 404)
        return as_json(self.sessions[name])

    def run(self, request: Request) -> Reply:
        if request.path == "/run_sse" and not self.sends_events:
            return as_json({"detail": "Not Found"}, 404)
        found = self.runs.pop(0) if self.runs else RUN
        if isinstance(found, Reply):
            return found
        return streamed(*found) if request.path == "/run_sse" else as_json(found)

    @property
    def asked(self) -> list[Any]:
        """The bodies of the runs."""
        return [each.body for each in self.requests if each.path in ("/run", "/run_sse")]


def streamed(*events: Any, **more: Any) -> Reply:
    """Return events as they are sent one by one."""
    texts = (each if isinstance(each, str) else json.dumps(each) for each in events)
    body = "".join(f"data: {each}\n\n" for each in texts).encode()
    return Reply(body, content_type="text/event-stream; charset=utf-8", **more)


@pytest.fixture
def adk() -> Iterator[FakeAdk]:
    with serving(provider := FakeAdk()):
        yield provider


def agent(adk: Loopback, **fields: Any) -> AdkServer:
    return AdkServer.model_validate({"adk_server": adk.url, **fields})


def seen(talk: Talk) -> Invocation:
    """Return the observed part of the failed invocation."""
    found = talk.error.seen
    assert isinstance(found, Invocation)
    return found


def texts(invocation: Invocation) -> list[str]:
    return [each.content.text for each in invocation.events or () if each.content]


# --- A conversation ---------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_a_run_is_told_as_adk_tells_it(place: Place, adk: FakeAdk, stream: bool) -> None:
    talk = place.talk(agent(adk, stream=stream), "How is Rome?", "And now?")
    assert talk.error is None
    assert talk.responses == ["Clear.", "Clear."]
    [found, _] = talk.invocations
    assert found.invocation_id == "e-1"
    assert found.tool_calls == (ToolCall("look", {"at": "Rome"}, {"sky": "clear"}),)
    calling, _, final = found.events or ()
    assert calling.usage_metadata == {"prompt_token_count": 10}
    assert calling.model_version == "m-1"
    assert final.content is None
    assert found.app_details is None
    assert found.duration
    first = adk.asked[0]
    assert first == {
        "streaming": stream,
        "appName": "weather",
        "userId": "ci-eval-1700000000000000-1",
        "sessionId": "ci-eval-1700000000000000-1",
        "newMessage": {"role": "user", "parts": [{"text": "How is Rome?"}]},
    }
    assert talk.state == {}


def test_a_server_that_sends_no_events_is_asked_for_the_whole_run(
    place: Place, adk: FakeAdk
) -> None:
    adk.sends_events = False
    talk = place.talk(agent(adk), "How is Rome?")
    assert talk.responses == ["Clear."]
    assert [each.path for each in adk.requests if "run" in each.path] == ["/run_sse", "/run"]
    adk.sessions.clear()
    kind, message = place.talk(agent(adk, stream=True), "How is Rome?").failure
    assert kind == "connection"
    assert "/run_sse answered 404" in message


@pytest.mark.parametrize("status", [400, 403, 422, 500])
def test_a_run_that_is_refused_is_not_asked_for_again(
    place: Place, adk: FakeAdk, status: int
) -> None:
    adk.runs = [as_json({"detail": "no"}, status)]
    kind, message = place.talk(agent(adk), "hello").failure
    assert kind == "connection"
    assert f"/run_sse answered {status}: " in message
    assert len(adk.asked) == 1


def test_the_session_of_the_case_is_made_and_its_state_is_final(place: Place, adk: FakeAdk) -> None:
    given = {"app_name": "other", "user_id": "u/1", "state": {"cart": [1]}, "session_id": "s1"}
    talk = place.talk(agent(adk), "hello", session_input=given)
    assert talk.state == {"cart": [1]}
    made = next(each for each in adk.requests if each.path.endswith("/sessions"))
    assert made.path == "/apps/weather/users/u%2F1/sessions"
    assert made.body == {"sessionId": "s1", "state": {"cart": [1]}}


def test_a_session_that_the_case_names_and_that_is_there_is_gone_on_with(
    place: Place, adk: FakeAdk
) -> None:
    adk.sessions["s1"] = {"id": "s1", "state": {"cart": [7]}}
    given = {"app_name": "a", "user_id": "u", "state": {"cart": [1]}, "session_id": "s1"}
    assert place.talk(agent(adk), "hello", session_input=given).state == {"cart": [7]}


def test_every_request_carries_the_headers_and_no_message_their_values(
    place: Place, adk: FakeAdk
) -> None:
    env = {"TOKEN": "a-secret-of-this-test"}
    context = RunContext(env=env, root=place.root, now=lambda: 1.0)
    found = agent(adk, headers={"Authorization": "Bearer ${TOKEN}"})
    adk.runs = [as_json({"detail": "a-secret-of-this-test is wrong"}, 403)]

    async def hold() -> Talk:
        async with found.start(context) as running:
            return await converse(running, "hello")

    kind, message = asyncio.run(hold()).failure
    assert {each.headers.get("authorization") for each in adk.requests} == {
        "Bearer a-secret-of-this-test"
    }
    assert kind == "connection"
    assert "answered 403" in message
    assert "secret" not in message


# --- What waits -------------------------------------------------------------------------------


def test_an_answer_names_the_event_that_asked_for_it(place: Place, adk: FakeAdk) -> None:
    adk.runs = [[PERMIT], [event({"text": "Gone."})]]

    async def hold(running: RunningAgent) -> tuple[Invocation, Any]:
        session = await running.open(trial())
        found = await session.send(Content.of_text("A trip!", role="user"))
        memento = json.loads(json.dumps(session.memento))
        again = await running.open(trial(), memento=memento)
        response = {"id": "adk-7", "name": "permit", "response": {"result": "yes"}}
        answer = Content.model_validate(
            {"role": "user", "parts": [{"function_response": response}]}
        )
        return found, await again.send(answer)

    first, second = place.run(agent(adk), hold)
    assert first.waits_for == (FunctionCall(id="adk-7", name="permit", args={"what": "a trip"}),)
    assert second.response == "Gone."
    asked = adk.asked[1]
    assert asked["functionCallEventId"] == PERMIT["id"]
    assert asked["invocationId"] == "e-1"
    assert asked["newMessage"]["parts"] == [
        {"functionResponse": {"id": "adk-7", "name": "permit", "response": {"result": "yes"}}}
    ]
    assert asked["sessionId"] == adk.asked[0]["sessionId"]


def test_a_session_that_is_gone_cannot_be_gone_on_with(place: Place, adk: FakeAdk) -> None:
    async def hold(running: RunningAgent) -> None:
        memento = {"place": ["weather", "u", "s9"], "asked": {}}
        await running.open(trial(), memento=memento)

    with pytest.raises(Exception, match="no longer has the session 's9'; run without"):
        place.run(agent(adk), hold)


# --- Streams ----------------------------------------------------------------------------------


CHUNKS = [event({"text": "Let "}, partial=True), event({"text": "me see."}, partial=True)]


def test_the_reason_of_the_model_comes_before_the_end_of_the_stream(
    place: Place, adk: FakeAdk
) -> None:
    adk.runs = [[*CHUNKS, event(errorCode="SAFETY")]]
    talk = place.talk(agent(adk, stream=True), "hello")
    assert talk.failure == ("raised", "the model gave no response: SAFETY")


def test_chunks_are_no_events_of_a_whole_run(place: Place, adk: FakeAdk) -> None:
    whole = event({"text": "Let me see."}, CALL)
    adk.runs = [[*CHUNKS, whole, *RUN[1:]]]
    [found] = place.talk(agent(adk, stream=True), "hello").invocations
    assert texts(found) == ["Let me see.", ""]
    assert found.response == "Clear."


def test_what_an_event_says_of_artifacts_is_not_a_second_event(place: Place, adk: FakeAdk) -> None:
    grounded = event({"text": "Clear."}, groundingMetadata={"webSearchQueries": ["sky"]})
    artifact = {**grounded, "actions": {"artifactDelta": {"map": 1}}}
    del artifact["content"]
    adk.runs = [[*RUN[:2], grounded, artifact]]
    [found] = place.talk(agent(adk, stream=True), "hello").invocations
    assert found.response == "Clear."
    assert len(found.events or ()) == 3


@pytest.mark.parametrize(
    ("end", "kind", "said"),
    [
        ([], "connection", "the stream ended in the middle of a model response"),
        (['{"error": "no\\nluck"}'], "raised", "the agent raised no luck"),
        (
            [{"error": "ValueError: no luck", "error_details": {"error_type": "ValueError"}}],
            "raised",
            "the agent raised ValueError: no luck",
        ),
        (["{nonsense"], "protocol", "/run_sse sent '{nonsense', which is not JSON"),
        (["[1]"], "protocol", "/run_sse sent [1], which is not an event"),
        ([{"id": "1"}], "protocol", "/run_sse sent {'id': '1'}, which is not an event"),
        (
            [event({"text": 7})],
            "protocol",
            "event 2 of the agent: content.parts[0].text: expected text, found 7",
        ),
    ],
)
def test_a_stream_that_goes_wrong_is_an_error_that_keeps_its_beginning(
    place: Place, adk: FakeAdk, end: list[Any], kind: str, said: str
) -> None:
    started = event({"text": "Well."}, CALL)
    adk.runs = [streamed(started, *CHUNKS, *end)]
    talk = place.talk(agent(adk, stream=True), "hello")
    found, message = talk.failure
    assert (found, said in message) == (kind, True), message
    if "event 2" not in said:
        assert texts(seen(talk)) == ["Well.", "Let me see."]
        assert seen(talk).final_response is None
        assert seen(talk).tool_calls[0].name == "look"


def test_a_stream_that_breaks_off_keeps_its_beginning(place: Place, adk: FakeAdk) -> None:
    adk.runs = [streamed(*RUN[:2], *CHUNKS, cut=True)]
    talk = place.talk(agent(adk, stream=True), "hello")
    kind, message = talk.failure
    assert kind == "connection"
    assert "/run_sse could not be reached" in message
    assert texts(seen(talk))[-1] == "Let me see."


def test_a_stream_that_ends_before_a_call_is_answered_is_not_whole(
    place: Place, adk: FakeAdk
) -> None:
    adk.runs = [RUN[:1]]
    talk = place.talk(agent(adk, stream=True), "hello")
    assert talk.failure == ("connection", "the run ended before the call of 'look' returned")


# --- Runs that fail ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (as_json({"detail": "Session not found: s"}, 404), "connection", "404"),
        (as_json({"detail": "app_name is required"}, 400), "connection", "400"),
        (as_json({"detail": [{"type": "missing"}]}, 422), "connection", "422"),
        (Reply(b"Host not allowed", 403, "text/plain"), "connection", "403: Host not allowed"),
        (
            Reply(b"Internal Server Error", 500, "text/plain"),
            "raised",
            "the run failed: http://127.0.0.1",
        ),
        (HTML, "protocol", "which is not JSON"),
        (as_json({"events": []}), "protocol", "expected a list of events"),
        (as_json(["one"]), "protocol", "/run sent one, which is not an event"),
        (as_json([]), "raised", "the agent ended its run without a single event"),
        (
            as_json([event(errorCode="SAFETY", errorMessage="Blocked.")]),
            "raised",
            "the model gave no response: SAFETY: Blocked.",
        ),
        (Reply(dropped=True), "connection", "could not be reached"),
    ],
)
def test_a_run_that_fails_is_a_clear_error(
    place: Place, adk: FakeAdk, reply: Reply, kind: str, said: str
) -> None:
    adk.sends_events = False
    adk.runs = [reply]
    found, message = place.talk(agent(adk), "hello").failure
    assert (found, said in message) == (kind, True), message
    assert "\n" not in message
    assert len(message) < 700


@pytest.mark.parametrize(
    ("apps", "app", "said"),
    [
        (["a", "b"], None, "the server has these apps: a, b; set `app` to one of them"),
        ([], None, "the server has these apps: none; set `app` to one of them"),
        (
            ["weather", "shop"],
            "wether",
            "the server has no app 'wether', only weather, shop. Did you mean 'weather'?",
        ),
        (Reply(status=404), None, "the server does not list its apps; set `app`"),
    ],
)
def test_which_app_is_meant_has_to_be_clear(
    place: Place, adk: FakeAdk, apps: Any, app: str | None, said: str
) -> None:
    adk.apps = apps
    assert place.talk(agent(adk, app=app), "hello").failure == ("start", said)


def test_a_server_that_does_not_say_which_apps_it_has_can_be_asked_all_the_same(
    place: Place, adk: FakeAdk
) -> None:
    adk.apps = Reply(status=404)
    assert place.talk(agent(adk, app="any"), "hello").responses == ["Clear."]
    assert adk.asked[0]["appName"] == "any"


@pytest.mark.parametrize("apps", [{"apps": []}, [1], "weather"])
def test_a_server_of_another_kind_is_told_apart(place: Place, adk: FakeAdk, apps: Any) -> None:
    adk.apps = apps
    kind, message = place.talk(agent(adk), "hello").failure
    assert kind == "protocol"
    assert "/list-apps answered" in message
    assert "expected the names of apps" in message


def test_a_server_that_is_down_is_an_error_of_each_trial(place: Place) -> None:
    found = AdkServer.model_validate({"adk_server": f"http://127.0.0.1:{closed_port()}"})
    for talk in place.talks(found, [["hello"]] * 2):
        kind, message = talk.failure
        assert kind == "connection"
        assert "could not be reached" in message


def test_a_server_that_never_answers_is_given_up(
    place: Place, adk: FakeAdk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_adk_server, "OPEN_S", 0.2)
    adk.apps = as_json(["weather"], delay_s=60.0)
    said = "the server did not open a session within 0.2 s"
    assert place.talk(agent(adk), "hello").failure == ("connection", said)


def test_when_the_time_is_up_nothing_more_is_asked(place: Place, adk: FakeAdk) -> None:
    adk.runs = [as_json(RUN, delay_s=60.0)]

    def is_asked() -> bool:
        return any(each.path == "/run_sse" for each in adk.requests)

    talk = place.talk(agent(adk), "hello", over=is_asked)
    assert isinstance(talk.error, TimeoutError)
    assert talk.state is None
    assert adk.requests[-1].path == "/run_sse"


def test_tools_of_a_server_cannot_be_canned(place: Place, adk: FakeAdk) -> None:
    talk = place.talk(agent(adk), "hello", tool_mocks={"tools": {"look": [{"result": 1}]}})
    kind, message = talk.failure
    assert kind == "unsupported"
    assert "an agent of type 'adk_server' calls its tools itself" in message
    assert adk.requests == []


# --- Servers that we start --------------------------------------------------------------------

SERVER = """
    import json, os, sys
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.answer()

        def do_GET(self):
            self.answer()

        def answer(self):
            run = [{"author": "a", "content": {"parts": [{"text": os.environ["MOOD"]}]}}]
            if self.path == "/run" and os.environ["MOOD"] == "die":
                print("good bye", flush=True)
                os._exit(3)
            if self.path == "/run" and os.environ["MOOD"] == "fail":
                print("ValueError: no luck", flush=True)
                self.send_error(500)
                return
            if self.path == "/run_sse":
                self.send_error(404)
                return
            known = {"/list-apps": ["a"], "/version": {}, "/run": run}
            body = json.dumps(known.get(self.path, {"state": {}})).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    open("pid", "w").write(str(os.getpid()))
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def started(place: Place, code: str = SERVER, **fields: Any) -> AdkServer:
    script = place.write("server.py", code)
    command = [sys.executable, "-S", str(script), "{port}"]
    given = {"adk_server": None, "start": command, "env": {"MOOD": "fine at {port}"}, **fields}
    return AdkServer.model_validate(given)


def test_a_server_is_started_on_a_free_port_and_stopped_at_the_end(place: Place) -> None:
    talk = place.talk(started(place), "hello")
    assert re.fullmatch(r"fine at \d+", talk.responses[0])
    assert dies(place.pid())


@pytest.mark.parametrize("ready", ["/health", None])
def test_a_server_that_is_not_ready_in_time_is_an_error_and_stopped(
    place: Place, ready: str | None
) -> None:
    code = """
        import os, time
        print("thinking it over", flush=True)
        open("pid", "w").write(str(os.getpid()))
        time.sleep(600)
    """
    found = started(place, code, ready=ready, start_timeout_s=120)
    with passing(120, when=place.pid):
        kind, message = place.talk(found, "hello").failure
    assert kind == "start"
    assert message.startswith("the server was not ready after 120 s: ")
    assert message.endswith("\nthinking it over")
    assert dies(place.pid())


def test_a_port_that_another_took_meanwhile_is_no_error(place: Place) -> None:
    taken = """
    with open("ports", "a") as file:
        file.write(sys.argv[1] + " ")
    if len(open("ports").read().split()) < 3:
        sys.exit("OSError: [Errno 98] Address already in use")
    """
    code = SERVER.replace("\n    open(", f"{taken}\n    open(")
    [response] = place.talk(started(place, code), "hello").responses
    first, second, third = (place.root / "ports").read_text().split()
    assert len({first, second, third}) == 3
    assert response == f"fine at {third}"


def test_where_each_port_is_taken_it_is_given_up(place: Place) -> None:
    code = "import sys; sys.exit('bind: address already in use')"
    kind, message = place.talk(started(place, code), "hello").failure
    assert (kind, message) == (
        "start",
        "the server exited with code 1 before it was ready\nbind: address already in use",
    )


def test_a_server_that_ends_at_once_is_an_error_with_its_last_words(place: Place) -> None:
    talk = place.talk(started(place, "raise SystemExit('no such app')"), "hello")
    said = "the server exited with code 1 before it was ready\nno such app"
    assert talk.failure == ("start", said)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes until a server that died is seen to be dead, it is waited for."""
    monkeypatch.setattr(_agent_server, "_EXIT_WAIT_S", LONG_S)


@pytest.mark.usefixtures("patient")
def test_a_server_that_dies_is_told_of_and_started_again(place: Place) -> None:
    found = started(place, env={"MOOD": "die"})

    async def hold(running: RunningAgent) -> list[Talk]:
        return [await converse(running, "hello") for _ in range(2)]

    for talk in place.run(found, hold):
        kind, message = talk.failure
        assert kind == "crash"
        assert message.endswith("; the server itself exited with code 3\ngood bye")


def test_what_a_server_writes_is_kept(place: Place) -> None:
    async def hold(running: RunningAgent) -> str:
        session = await running.open(trial())
        await session.send(Content.of_text("hello", role="user"))
        return session.output

    code = SERVER.replace("run = [", "print(self.path, flush=True)\n            run = [")
    assert "/run_sse\n/run\n" in place.run(started(place, code), hold)


def test_of_a_run_that_fails_it_is_told_what_the_server_wrote(place: Place) -> None:
    kind, message = place.talk(started(place, env={"MOOD": "fail"}), "hello").failure
    assert kind == "raised"
    assert "/run answered 500" in message
    assert message.endswith("\nValueError: no luck")


def test_a_port_that_is_taken_is_a_clear_error(place: Place, adk: FakeAdk) -> None:
    found = started(place, adk_server=adk.url)
    kind, message = place.talk(found, "hello").failure
    assert kind == "start"
    assert message.endswith("Address already in use; use `{port}` for a free port")
    assert not (place.root / "pid").exists()


def test_the_check_names_what_is_wrong(place: Place) -> None:
    def wrong(**fields: Any) -> dict[str, str]:
        given = {"adk_server": "http://127.0.0.1:8000", **fields}
        return dict(AdkServer.model_validate(given).check(place.context))

    assert wrong() == {}
    assert wrong(adk_server="http://127.0.0.1:{port}", start=[sys.executable, "{port}"]) == {}
    told = {"start": [sys.executable], "env": {"PORT": "{port}"}}
    assert wrong(adk_server=None, **told) == {}
    assert wrong(adk_server=None, start=[sys.executable]).keys() == {"start"}
    assert wrong(adk_server=None).keys() == {"start"}
    assert wrong(adk_server="http://127.0.0.1:{port}").keys() == {"start"}
    assert wrong(adk_server="localhost:8000").keys() == {"adk_server"}
    assert wrong(headers={"Key": "${NO_SUCH_VARIABLE}"}).keys() == {"headers"}
    found = wrong(start=["no-such-adk"], cwd="gone", env=["GITHUB_TOKEN"])
    assert found.keys() == {"start", "cwd", "env"}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"start": []}, "start"),
        ({"ready": "health"}, "expected a path such as '/health', found 'health'"),
        ({"start_timeout_s": 0}, "start_timeout_s"),
    ],
)
def test_what_cannot_be_configured_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        AdkServer.model_validate({"adk_server": None, **fields})


# --- What was seen of real servers ------------------------------------------------------------

FOLDER = os.environ.get("CI_EVAL_VECTORS")


class Seen(FakeAdk):
    """Answers what a real server was seen to answer."""

    def __init__(self, answers: dict[str, Any]) -> None:
        super().__init__()
        self.answers = answers

    def reply(self, request: Request) -> Reply:
        names = {"/list-apps": "list-apps", "/version": "version"}
        names |= {"/run": "run_ok", "/run_sse": "sse_stream"}
        # What was seen of the session at last is not whole; it begins as when it was made.
        found = self.answers[names.get(request.path, "create")]
        return Reply(found["body"].encode(), found["status"], found["ctype"])


@pytest.mark.skipif(not FOLDER, reason="CI_EVAL_VECTORS names no folder")
@pytest.mark.parametrize("version", ["2.13.0", "2.3.0"])
@pytest.mark.parametrize("stream", [False, True])
def test_what_real_servers_answered_is_understood(place: Place, version: str, stream: bool) -> None:
    path = Path(FOLDER or "") / "adk_server_observations.json"
    with serving(provider := Seen(json.loads(path.read_text())[version])):
        talk = place.talk(agent(provider, stream=stream), "What is the weather in Paris?")
    [found] = talk.invocations
    assert found.response == "It is 21 degrees and sunny in Paris right now."
    result = {"city": "Paris", "temp_c": 21}
    assert found.tool_calls == (ToolCall("get_weather", {"city": "Paris"}, result),)
    assert talk.state == {"k": 1}
    # What 2.3 evaluates has no usage, and no event for the final response.
    assert len(found.events or ()) == (3 if version == "2.13.0" else 2)
    assert provider.asked[0]["appName"] == "fake_agent"


# --- Real servers -----------------------------------------------------------------------------

PYTHONS = {"2.13": "CI_EVAL_ADK_PYTHON", "2.3": "CI_EVAL_ADK23_PYTHON"}
TALKS = {
    "tools": [["Oslo"]],
    "transfer": [["Who knows?", "And now?"]],
    "waiting": [["a trip"], ["pay"]],
    "stateful": [["tea", "stop"], ["secret"]],
    "raising": [["Go."]],
}
"""Conversations by the folder of the agent."""
STATE = {"app_name": "app", "user_id": "user", "state": {"guest": "Ada"}}


def python(version: str) -> str:
    variable = PYTHONS[version]
    if not os.environ.get(variable):
        pytest.skip(f"{variable} names no Python with google-adk {version}")
    return os.environ[variable]


def context(now: float) -> RunContext:
    return RunContext(env=dict(os.environ), root=AGENTS, now=lambda: now)


def command(version: str) -> list[str]:
    run = "import sys; from google.adk.cli import main; sys.argv[0] = 'adk'; sys.exit(main())"
    services = [f"--{kind}_service_uri=memory://" for kind in ("session", "artifact", "memory")]
    return [python(version), "-W", "ignore", "-c", run, "api_server", "--port", "{port}", *services]


def normal(talk: Talk) -> Any:
    """Return the observations without values that vary between runs or that servers do not send."""
    found = [*talk.invocations]
    if talk.error is not None and getattr(talk.error, "seen", None):
        found.append(seen(talk))
    told = [json.loads(each.model_dump_json(exclude_none=True)) for each in found]
    for each in told:
        for name in ("creation_timestamp", "duration", "model_duration", "tool_duration"):
            each.pop(name, None)
        each.pop("app_details", None)
    ids: dict[str, str] = {}
    return json.loads(
        re.sub(
            r"(?:e-|adk-)[0-9a-f-]{36}",
            lambda match: ids.setdefault(match[0], f"id-{len(ids)}"),
            json.dumps(told, sort_keys=True),
        )
    )


async def all_talks(agent: Any, conversations: list[list[str]], now: float = 1.0) -> list[Talk]:
    """Hold all conversations at once."""
    async with agent.start(context(now)) as running:
        talks = [
            converse(running, *messages, session_input={**STATE, "user_id": f"user-{number}"})
            for number, messages in enumerate(conversations)
        ]
        return await asyncio.gather(*talks)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("version", PYTHONS)
def test_a_real_server_tells_what_the_agent_itself_tells(version: str) -> None:
    async def hold() -> list[Talk]:
        expected = {}
        for folder, conversations in TALKS.items():
            inside = Adk(adk=folder, interpreter=python(version))
            expected[folder] = await all_talks(inside, conversations)
        async with served(version).start(context(4.0)) as running:
            url = await running.server.address()
            for folder, conversations in TALKS.items():
                for stream in (False, True):
                    given = {"adk_server": url, "app": folder, "stream": stream}
                    outside = AdkServer.model_validate(given)
                    found = await all_talks(outside, conversations, now=2.0 + stream)
                    for ours, theirs in zip(found, expected[folder], strict=True):
                        alike(ours, theirs)
            asking = AdkServer.model_validate({"adk_server": url, "app": "waiting"})
            async with asking.start(context(5.0)) as waiting:
                await a_human_answers(waiting)
            return [await converse(running, word) for word in ("go", "raise", "die")]

    fine, raised, died = asyncio.run(hold())
    assert fine.responses == ["It is fine."]
    kind, message = raised.failure
    assert kind == "raised"
    assert "lost the thread" in message
    assert texts(seen(raised)) == ["It is fi"]
    kind, message = died.failure
    assert kind == "crash"
    assert "the server itself exited with code 3" in message
    assert texts(seen(died)) == ["It is fi"]


async def a_human_answers(running: RunningAgent) -> None:
    """Let an agent be answered that waits for a permission, and one that waits for a yes."""
    for asked, response, expected in (
        ("a trip", {"granted": "yes"}, "Answered: {'granted': 'yes'}."),
        ("pay", {"confirmed": True}, "Answered: {'paid': 5}."),
    ):
        session = await running.open(trial())
        [call] = (await session.send(Content.of_text(asked, role="user"))).waits_for
        given = {"id": call.id, "name": call.name, "response": response}
        message = {"role": "user", "parts": [{"function_response": given}]}
        found = await session.send(Content.model_validate(message))
        assert (found.response, found.waits_for) == (expected, ())


def served(version: str) -> AdkServer:
    return AdkServer.model_validate(
        {
            "adk_server": "http://127.0.0.1:{port}",
            "start": [*command(version), str(AGENTS)],
            "start_timeout_s": LONG_S,
            "app": "streamed",
            "stream": True,
        }
    )


def alike(ours: Talk, theirs: Talk) -> None:
    """Compare what a server told with what the agent itself did."""
    assert normal(ours) == normal(theirs)
    if theirs.error is None:
        assert ours.error is None
        assert ours.state == theirs.state
    else:
        assert ours.failure[0] == theirs.failure[0] == "raised"
        assert "the tool is broken" in ours.failure[1]
