"""Agents that speak A2A: a stand-in for what goes wrong, and real servers.

The real ones are run by the Pythons that CI_EVAL_A2A_PYTHON (a2a-sdk, uvicorn) and
CI_EVAL_ADK_PYTHON (google-adk with its extra `a2a`, uvicorn) name.
"""

import asyncio
import functools
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from servers.loopback import HTML, Loopback, Reply, Request, as_json, serving
from support.agent_sessions import Place, Talk, converse, trial
from support.project import CONFIG, Project, case, turn

from ci_eval.agents import a2a_agent
from ci_eval.agents.a2a_agent import A2A
from ci_eval.plugins.points import RunningAgent
from ci_eval.records.cases import Content, FunctionCall, FunctionResponse, Part, ToolCall
from ci_eval.runtime.retry import Backoff

HERE = Path(__file__).parent
KEY = "a-key-of-this-test"


def answer_to(call: FunctionCall, response: Any) -> Content:
    answer = FunctionResponse(id=call.id, name=call.name, response=response)
    return Content(role="user", parts=(Part(function_response=answer),))


# --- A stand-in -------------------------------------------------------------------------------


def task(state: str, text: str = "", **more: Any) -> dict[str, Any]:
    message = {"messageId": text, "role": "ROLE_AGENT", "parts": [{"text": text}]}
    status = {"state": state, **({"message": message} if text else {})}
    return {"id": "t", "contextId": "c", "status": status, **more}


class Peer(Loopback):
    """Has a card, and answers what a script says, else with the same message."""

    card: Any = None

    def answer(self, request: Request) -> Reply:
        if request.path.endswith(".json"):
            self.asked_for.append(request)
            return self.reply_card(request)
        return super().answer(request)

    def __init__(self) -> None:
        super().__init__()
        self.asked_for: list[Request] = []
        self.card_path = "/.well-known/agent-card.json"

    def reply_card(self, request: Request) -> Reply:
        if request.path != self.card_path:
            return Reply(b"no such page", 404)
        card = self.card or {"url": f"{self.url}/rpc", "protocolVersion": "0.3.0"}
        return card if isinstance(card, Reply) else as_json(card)

    def reply(self, request: Request) -> Reply:
        parts = [{"kind": "text", "text": "Hi"}]
        message = {"kind": "message", "messageId": "m", "contextId": "c", "parts": parts}
        return as_json({"jsonrpc": "2.0", "id": request.body["id"], "result": message})

    def says(self, *results: Any) -> None:
        self.script.extend(
            each if isinstance(each, Reply) else as_json({"jsonrpc": "2.0", "result": each})
            for each in results
        )

    def offers(self, version: str, *, streams: bool = False) -> None:
        offer = {"url": f"{self.url}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": version}
        self.card = {"supportedInterfaces": [offer], "capabilities": {"streaming": streams}}


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    monkeypatch.setattr(a2a_agent, "BACKOFF", Backoff(0.01, 3.0))
    found = Peer()
    with serving(found):
        yield found


def test_a_conversation_keeps_its_context_and_its_headers(peer: Peer, place: Place) -> None:
    agent = A2A(a2a=peer.url, headers={"X-Key": KEY})
    talk = place.talk(agent, "one", "two")

    assert talk.responses == ["Hi", "Hi"]
    first, second = peer.requests
    assert first.path == "/rpc"
    assert first.body["method"] == "message/send"
    assert first.body["params"]["message"]["parts"] == [{"kind": "text", "text": "one"}]
    assert "contextId" not in first.body["params"]["message"]
    assert second.body["params"]["message"]["contextId"] == "c"
    assert "taskId" not in second.body["params"]["message"]
    assert {each.headers["x-key"] for each in (*peer.asked_for, *peer.requests)} == {KEY}
    ids = {each.body["params"]["message"]["messageId"] for each in peer.requests}
    assert len(ids) == 2
    assert len(peer.asked_for) == 1


def test_the_newer_version_is_asked_for_in_its_words(peer: Peer, place: Place) -> None:
    peer.offers("1.0")
    peer.says({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "Hi"}]}})
    assert place.talk(A2A(a2a=peer.url), "one").responses == ["Hi"]

    assert peer.request.headers["a2a-version"] == "1.0"
    assert peer.request.body["method"] == "SendMessage"
    assert peer.request.body["params"]["message"]["role"] == "ROLE_USER"


def test_a_task_that_goes_on_is_looked_at_until_it_ends(peer: Peer, place: Place) -> None:
    peer.offers("1.0")
    made = [{"artifactId": "a", "parts": [{"text": "Done."}]}]
    working = task("TASK_STATE_WORKING")
    peer.says(
        {"task": task("TASK_STATE_SUBMITTED")},
        working,
        working,
        task("TASK_STATE_COMPLETED", artifacts=made),
    )
    talk = place.talk(A2A(a2a=peer.url), "one")

    assert talk.responses == ["Done."]
    assert [each.body["method"] for each in peer.requests] == ["SendMessage", *["GetTask"] * 3]
    assert peer.requests[1].body["params"] == {"id": "t"}


def test_a_stream_that_ends_early_is_gone_on_with_by_looking(peer: Peer, place: Place) -> None:
    peer.offers("1.0", streams=True)
    body = {"jsonrpc": "2.0", "result": {"task": task("TASK_STATE_WORKING")}}
    event = f"data: {json.dumps(body)}\n\n".encode()
    peer.says(Reply(event, content_type="text/event-stream"))
    peer.says(task("TASK_STATE_COMPLETED", "Done."))

    assert place.talk(A2A(a2a=peer.url), "one").responses == ["Done."]
    assert [each.body["method"] for each in peer.requests] == ["SendStreamingMessage", "GetTask"]


@pytest.mark.parametrize(
    ("state", "kind", "said"),
    [
        ("failed", "raised", "the agent failed: no paper"),
        ("rejected", "raised", "the agent rejected the task: no paper"),
        ("canceled", "raised", "the task was canceled: no paper"),
        ("auth-required", "unsupported", "the agent requires authorization; set it in `headers`"),
    ],
)
def test_a_task_without_success_is_an_error_in_the_words_of_the_agent(
    peer: Peer, place: Place, state: str, kind: str, said: str
) -> None:
    peer.says({"kind": "task", **task(state, "no paper")})
    talk = place.talk(A2A(a2a=peer.url), "one")

    assert talk.failure[0] == kind
    assert talk.failure[1].startswith(said)
    assert talk.error.seen.response == "no paper"


def test_the_user_may_answer_a_question(peer: Peer, place: Place) -> None:
    peer.says({"kind": "task", **task("input-required", "When?")})
    talk = place.talk(A2A(a2a=peer.url, input_required="user"), "book", "Monday")

    assert talk.responses == ["When?", "Hi"]
    assert talk.invocations[0].waits_for == ()
    assert peer.requests[1].body["params"]["message"]["taskId"] == "t"


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (as_json({"error": {"code": -9, "message": "no", "data": "x"}}), "raised", "-9: no x"),
        (as_json({"result": {"kind": "poem"}}), "protocol", "which holds neither a task nor a"),
        (as_json({"result": {"kind": "task"}}), "protocol", "does not fit the protocol: see 'id'"),
        (as_json([]), "protocol", "answered [], which holds neither"),
        (HTML, "protocol", "which is not JSON"),
        (as_json({"detail": KEY}, 403), "connection", 'answered 403: {"detail": "[hidden]"}'),
        (Reply(dropped=True), "connection", "could not be reached: "),
    ],
    ids=["error", "poem", "half a task", "list", "html", "403", "dropped"],
)  # fmt: skip
def test_bad_answers_are_errors_that_say_what_came(
    peer: Peer, place: Place, reply: Reply, kind: str, said: str
) -> None:
    peer.says(reply)
    failure = place.talk(A2A(a2a=peer.url, headers={"X-Key": KEY}), "one").failure

    assert failure[0] == kind
    assert said in failure[1]


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        (b"data: no json\n\n", "sent the event 'no json', which is not JSON"),
        (b"", "the agent's stream ended without a task or a message"),
        (b'data: {"result": 1}\n\n', "which holds neither a task nor a message"),
    ],
)
def test_bad_streams_are_errors(peer: Peer, place: Place, stream: bytes, said: str) -> None:
    peer.says(Reply(stream, content_type="text/event-stream"))
    failure = place.talk(A2A(a2a=peer.url, stream=True), "one").failure

    assert failure[0] == "protocol"
    assert said in failure[1]


# --- Cards ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("card", "kind", "said"),
    [
        (Reply(b"no", 404), "connection", "answered 404: no"),
        (HTML, "protocol", "which is not JSON"),
        ([], "protocol", "is not an agent card: []"),
        ({"name": "a"}, "start", "offers nothing; ci-eval only supports JSONRPC"),
        (
            {"url": "x", "preferredTransport": "GRPC"},
            "start",
            "offers GRPC; ci-eval only supports JSONRPC",
        ),
    ],
)
def test_without_a_card_nothing_begins(
    peer: Peer, place: Place, card: Any, kind: str, said: str
) -> None:
    peer.card = card or as_json(card)
    failure = place.talk(A2A(a2a=peer.url), "one").failure

    assert failure[0] == kind
    assert said in failure[1]
    assert peer.requests == []


def test_a_card_may_be_where_it_was_before(peer: Peer, place: Place) -> None:
    peer.card_path = "/.well-known/agent.json"
    assert place.talk(A2A(a2a=peer.url), "one").responses == ["Hi"]


def test_a_card_may_be_elsewhere_and_an_address_be_given(peer: Peer, place: Place) -> None:
    peer.card_path = "/shop/card.json"
    peer.card = {"url": "http://nowhere.invalid/"}
    agent = A2A(a2a=peer.url + "/shop/", card="/card.json", endpoint="/here", headers={"X": KEY})

    assert place.talk(agent, "one").responses == ["Hi"]
    assert peer.request.path == "/shop/here"


def test_a_key_does_not_follow_a_card_to_another_host(peer: Peer, place: Place) -> None:
    peer.card = {"url": "http://other.invalid/rpc?x=1"}
    kind, message = place.talk(A2A(a2a=peer.url, headers={"X-Key": KEY}), "one").failure

    assert kind == "start"
    assert "names another host, http://other.invalid/rpc: `headers` are not sent" in message


def test_a_card_is_asked_for_again_after_a_failure(peer: Peer, place: Place) -> None:
    async def body(running: RunningAgent) -> list[str]:
        found = []
        for _ in range(2):
            try:
                session = await running.open(trial())
                found.append((await session.send(Content.of_text("x", role="user"))).response)
            except a2a_agent.TrialError as exc:
                found.append(exc.kind)
            peer.card = None
        return found

    peer.card = Reply(b"", 503)
    assert place.run(A2A(a2a=peer.url), body) == ["connection", "Hi"]


@pytest.mark.parametrize(
    ("options", "field", "said"),
    [
        ({"a2a": "127.0.0.1:9999"}, "a2a", "expected an address such as"),
        ({"headers": {"X": "${NOPE}"}}, "headers", "the environment variable 'NOPE' is not set"),
        ({"a2a": "http://127.0.0.1:{port}"}, "start", "needs an address without `{port}`"),
        ({"start": ["no-such-program"]}, "start", "there is no program 'no-such-program'"),
    ],
)
def test_mistakes_are_seen_before_anything_runs(
    place: Place, options: Any, field: str, said: str
) -> None:
    agent = A2A.model_validate({"a2a": "http://x", **options})
    [(where, message)] = agent.check(place.context)

    assert where == field
    assert said in message


def test_a_path_begins_with_a_slash() -> None:
    with pytest.raises(ValidationError, match="expected a path such as '/health', found 'card'"):
        A2A(a2a="http://x", card="card")


# --- Real servers -----------------------------------------------------------------------------


@functools.cache
def lacks(python: str, module: str) -> str:
    """Say why a server cannot be run by the Python that the variable `python` names."""
    path = os.environ.get(python)
    if not path:
        return f"{python} names no Python"
    tried = subprocess.run([path, "-c", f"import {module}, uvicorn"], capture_output=True)
    return f"{python} has no {module}" if tried.returncode else ""


def server(python: str, module: str, file: str, *options: str) -> dict[str, Any]:
    if why := lacks(python, module):
        pytest.skip(why)
    command = [os.environ[python], str(HERE / file), "{port}", *options]
    return {"a2a": "http://127.0.0.1:{port}", "start": command, "start_timeout_s": 300}


@pytest.fixture(
    params=[
        ("streaming", "1.0"),
        ("plain", "1.0"),
        ("streaming", "0.3"),
        ("plain", "0.3"),
        ("streaming", "1.0", "0.3"),
    ],
    ids=" ".join,
)
def sdk(request: pytest.FixtureRequest) -> A2A:
    options = server("CI_EVAL_A2A_PYTHON", "a2a", "a2a_server.py", *request.param)
    return A2A.model_validate(options)


SAID = (
    ["make a poem"],
    ["answer yes", "recall it"],
    ["say that it is done"],
    ["data"],
    ["fail"],
    ["reject"],
    ["log-in"],
    ["raise"],
)
FAILURES = (
    "the agent failed: out of paper",
    "the agent rejected the task: not my job",
    "the agent requires authorization; set it in `headers`: who are you?",
    "a bug in the agent",
)


def test_agents_made_with_the_sdk_are_understood(sdk: A2A, place: Place) -> None:
    async def body(running: RunningAgent) -> tuple[list[Talk], list[str]]:
        talks = [converse(running, *messages) for messages in SAID]
        return await asyncio.gather(*talks), await _asked_and_answered(running)

    talks, responses = place.run(sdk, body)
    made, recalled, said, data, *failed = talks

    assert made.responses == ["make a poem"]
    assert recalled.responses == ["so be it: yes", "answer yes | recall it"]
    assert said.responses == ["that it is done"]
    assert data.responses == ['{"day": 3}']
    assert all(each.invocations[0].intermediate_data is None for each in (made, said, data))
    kinds, messages = zip(*(each.failure for each in failed), strict=True)
    assert kinds == ("raised", "raised", "unsupported", "raised")
    for message, words in zip(messages, FAILURES, strict=True):
        assert words in message.splitlines()[0]
    assert responses == ["Which day?", "Monday it is", "ask | Monday it is | recall"]


async def _asked_and_answered(running: RunningAgent) -> list[str]:
    first = await running.open(trial())
    asked = await first.send(Content.of_text("ask", role="user"))
    [call] = asked.waits_for
    assert (call.name, call.args) == ("input_required", {"message": "Which day?"})
    # The rest is said by somebody who only has the memento.
    second = await running.open(trial(), memento=json.loads(json.dumps(first.memento)))
    answered = await second.send(answer_to(call, {"result": "Monday it is"}))
    later = await second.send(Content.of_text("recall", role="user"))
    return [asked.response, answered.response, later.response]


@pytest.fixture(params=["auto", False], ids=["streamed", "whole"])
def shop(request: pytest.FixtureRequest) -> A2A:
    options = server("CI_EVAL_ADK_PYTHON", "a2a", "a2a_adk_server.py")
    return A2A.model_validate({**options, "stream": request.param})


USAGE = {"prompt_token_count": 11, "candidates_token_count": 7, "total_token_count": 18}


def test_an_agent_of_adk_tells_which_tools_it_called(shop: A2A, place: Place) -> None:
    async def body(running: RunningAgent) -> tuple[Talk, Any, Any]:
        talk = await converse(running, "hello", "track")
        session = await running.open(trial())
        asked = await session.send(Content.of_text("refund", role="user"))
        [call] = asked.waits_for
        return talk, asked, await session.send(answer_to(call, {"allowed": True}))

    talk, asked, answered = place.run(shop, body)
    hello, track = talk.invocations

    assert talk.responses == ["You said hello", "It says: {'place': 'Oslo', 'order': 9}"]
    assert hello.intermediate_data is not None
    assert hello.tool_calls == ()
    assert track.tool_calls == (ToolCall("track", {"order": 9}, {"place": "Oslo", "order": 9}),)
    if shop.stream:  # only in a stream each answer comes with what it took
        assert [each.usage_metadata for each in track.events] == [USAGE, None, USAGE]
    # A tool that waits for somebody is waited for itself.
    assert (asked.waits_for[0].name, asked.waits_for[0].args) == ("refund", {"order": 9})
    assert asked.tool_calls == (ToolCall("refund", {"order": 9}, None),)
    assert answered.response == "It says: {'allowed': True}"
    assert answered.waits_for == ()


def test_a_case_with_the_answer_of_a_human_is_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = server("CI_EVAL_A2A_PYTHON", "a2a", "a2a_server.py", "streaming", "1.0")
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path, capsys)
    config = CONFIG.replace("{recorded: traces.jsonl}", json.dumps(options))
    project.config(config.replace("  tool_trajectory_avg_score: 1.0\n", ""))
    books = case("books", turn("ask me", "Monday it is"))
    answers = {"input_required": {"result": "Monday it is"}}
    project.evalset({**books, "human_answers": answers}, case("waits", turn("ask me", "x")))
    ended = project.ci_eval("run")

    assert ended.code == 6
    assert project.scores()["books"] == {"response_match_score": 1.0}
    assert "waits for an answer to input_required(message='Which day?')" in ended.err
