"""What the gateway answers to requests, honest or not, and what it sends to a provider."""

import asyncio
import gzip
import io
import json
import logging
import threading
import time
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp.web  # noqa: TID253  # a client and a server of tests
import pytest
from servers.loopback import Reply, as_json, serving
from servers.models import KEYS, Models
from yarl import URL

from ci_eval.llm.gateway.gateway import Gateway, gateway_for
from ci_eval.llm.gateway.gateway_options import ModelOptions
from ci_eval.llm.gateway.open_conversations import MARK, Conversation, Process
from ci_eval.llm.rate_limit import pace_of
from ci_eval.records.errors import TrialError
from ci_eval.records.trials import TrialKey
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.http import MAX_BODY

KEY = TrialKey(agent="a", evalset="e", case="c")
HELLO = {"model": "gpt-4.1-mini", "messages": [{"role": "user", "content": "Hello"}]}
CHAT = "/openai/v1/chat/completions"


class Client:
    """A client in a process of an agent."""

    def __init__(self, session: Any, gateway: Gateway, process: Process) -> None:
        self.session, self.gateway, self.process = session, gateway, process
        self.address, _, self.secret = process.base.rpartition("/")

    async def send(self, path: str, body: Any = HELLO, method: str = "POST", **options: Any) -> Any:
        """Return the status, the headers and the text of an answer."""
        url = path if path.startswith("http") else self.process.base + path
        async with self.session.request(method, url, json=body, **options) as response:
            return response.status, response.headers, await response.text()

    def begin(self, number: int = 1, key: TrialKey = KEY) -> Conversation:
        return self.gateway.open(self.process, number, key)


@pytest.fixture
def models():
    found = Models()
    with serving(found):
        yield found


def behind(
    folder: Path, models: Models, body: Callable[[Client], Awaitable[Any]], **options: Any
) -> Any:
    """Run `body` with a gateway and a client of it."""

    async def main() -> Any:
        context = RunContext(env=models.environment(), root=folder, now=lambda: 0.0)
        async with (
            gateway_for(ModelOptions(cassette="c.jsonl", **options), context) as gateway,
            aiohttp.ClientSession() as session,
        ):
            return await body(Client(session, gateway, gateway.process()))

    return asyncio.run(main())


def test_whoever_lacks_the_secret_gets_nothing(tmp_path: Path, models: Models):
    async def body(client: Client) -> None:
        client.begin()
        wrong = client.secret[:-1] + ("A" if client.secret[-1] != "A" else "B")
        for path in ("", "/", CHAT, f"/{wrong}{CHAT}", f"/{client.secret[:-1]}{CHAT}"):
            status, _, text = await client.send(client.address + path)
            assert (status, text) == (404, "")

    behind(tmp_path, models, body)
    assert models.requests == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", CHAT),
        ("POST", "/openai/v1/files"),
        ("POST", "/openai/v1/batches"),
        ("DELETE", "/openai/v1/chat/completions"),
        ("POST", "/gemini/v1beta/files"),
        ("POST", "/gemini/v1beta/models/../../x:generateContent"),
        ("POST", "/gemini/v1beta/models/a%2fb:generateContent"),
        ("POST", "/gemini/v1beta/models/a@evil:generateContent"),
        ("POST", "/anthropic/v1/messages/batches"),
        ("POST", "/anthropic//evil.example/v1/messages"),
        ("POST", "/elsewhere/v1/messages"),
    ],
)
def test_only_calls_of_models_are_passed_on(tmp_path, models, method, path):
    async def body(client: Client) -> Any:
        conversation = client.begin()
        url = client.process.base + path
        async with client.session.request(method, URL(url, encoded=True), json=HELLO) as response:
            assert response.status == 400
        return conversation

    conversation = behind(tmp_path, models, body, mode="live")
    assert models.requests == []
    assert conversation.error.kind == "models"
    assert "the gateway does not serve" in str(conversation.error)


def test_another_host_in_the_request_line_changes_nothing(tmp_path, models):
    async def body(client: Client) -> bytes:
        client.begin()
        host, _, port = client.address.rpartition("/")[2].partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        request = f"POST http://evil.example/{client.secret}{CHAT} HTTP/1.1\r\nHost: evil\r\n"
        writer.write(f"{request}Content-Length: 2\r\nConnection: close\r\n\r\n{{}}".encode())
        found = await reader.read()
        writer.close()
        return found

    assert b" 404 " in behind(tmp_path, models, body, mode="live").splitlines()[0]
    assert models.requests == []


def test_the_provider_gets_our_key_and_no_header_of_the_agent(tmp_path, models):
    async def body(client: Client) -> None:
        client.begin()
        headers = {
            "authorization": "Bearer of-the-agent",
            "x-api-key": "of-the-agent",
            "cookie": "a=b",
            "openai-organization": "other",
            "x-forwarded-for": "1.2.3.4",
            "anthropic-version": "2026-10-21",
        }
        status, *_ = await client.send("/anthropic/v1/messages?beta=true&x=1", headers=headers)
        assert status == 200

    behind(tmp_path, models, body, mode="live")
    sent = models.request
    assert sent.headers["x-api-key"] == KEYS["ANTHROPIC_API_KEY"]
    assert sent.headers["anthropic-version"] == "2026-10-21"
    assert dict(sent.query) == {"beta": ["true"]}
    assert not {"authorization", "cookie", "openai-organization", "x-forwarded-for", MARK} & {
        *sent.headers
    }


def test_a_redirect_is_not_followed_and_no_cookie_comes_back(tmp_path, models):
    async def body(client: Client) -> Any:
        client.begin()
        return await client.send(CHAT, allow_redirects=False)

    headers = {"location": f"{models.url}/elsewhere", "set-cookie": "a=b"}
    models.script.append(Reply(b"", 307, headers=headers))
    status, found, _ = behind(tmp_path, models, body, mode="live")
    assert status == 307
    assert not {"location", "set-cookie"} & {name.lower() for name in found}
    assert len(models.requests) == 1


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("alt=sse&key=of-the-agent", {"alt": ["sse"]}),
        ("alt=http://evil.example&beta=a%0d%0ab&alt=json", {"alt": ["json"]}),
    ],
)
def test_only_known_parameters_are_passed_on(tmp_path, models, query, kept):
    async def body(client: Client) -> None:
        client.begin()
        url = f"{client.process.base}/openai/v1/chat/completions?{query}"
        async with client.session.post(URL(url, encoded=True), json=HELLO) as response:
            assert response.status == 200

    behind(tmp_path, models, body, mode="live")
    assert dict(models.request.query) == kept


STREAM = {**HELLO, "stream": True}


@pytest.mark.parametrize(("asked", "status"), [(HELLO, 200), (STREAM, 200), (STREAM, 400)])
def test_a_key_that_a_provider_repeats_does_not_reach_the_agent(tmp_path, models, asked, status):
    async def body(client: Client) -> Any:
        client.begin()
        return await client.send(CHAT, asked)

    said = f"Incorrect API key provided: {KEYS['OPENAI_API_KEY']}."
    reply = as_json({"error": {"message": said}}, status)
    if asked == STREAM and status == 200:
        reply = Reply(f"data: {said}\n\n".encode(), content_type="text/event-stream")
    models.script.append(reply)
    found, _, text = behind(tmp_path, models, body, mode="live")
    assert found == status
    assert "Incorrect API key provided: [OPENAI_API_KEY]." in text
    assert KEYS["OPENAI_API_KEY"] not in text


def test_what_is_no_http_is_not_logged(tmp_path, models, caplog):
    async def body(client: Client) -> bytes:
        host, _, port = client.address.rpartition("/")[2].partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nHost: ##[error]of the agent\r\n\r\n")
        found = await reader.read(100)
        writer.close()
        return found

    assert b" 400 " in behind(tmp_path, models, body, mode="live")
    assert [each.name for each in caplog.records if each.levelno > logging.DEBUG] == []


def test_the_usage_of_a_stream_is_counted_though_the_client_does_not_ask(tmp_path, models):
    async def body(client: Client) -> Any:
        conversation = client.begin()
        found = await client.send(CHAT, STREAM)
        return found, conversation.usage

    (status, headers, text), usage = behind(tmp_path, models, body, mode="record")
    assert (status, headers["content-type"]) == (200, "text/event-stream")
    assert models.request.body["stream_options"] == {"include_usage": True}
    assert '"choices": []' not in text
    assert text.endswith("data: [DONE]\n\n")
    assert (usage.input_tokens, usage.output_tokens, usage.unpriced) == (11, 7, 0)

    (_, _, again), replayed = behind(tmp_path, models, body, mode="replay")
    assert again == text
    assert replayed.model_copy(update={"replayed": 0, "seconds": usage.seconds}) == usage


def test_a_stream_has_the_charset_of_the_provider_and_utf_8_in_a_replay(tmp_path, models):
    async def body(client: Client) -> Any:
        client.begin()
        _, headers, text = await client.send(CHAT, STREAM)
        return headers["content-type"], text

    said = models.reply

    def reply(request):
        return replace(said(request), content_type="text/event-stream; charset=utf-8")

    models.reply = reply
    recorded = behind(tmp_path, models, body, mode="record")
    assert recorded[0] == "text/event-stream; charset=utf-8"
    assert behind(tmp_path, models, body, mode="replay") == recorded


def test_a_server_that_knows_no_such_option_is_asked_without(tmp_path, models):
    async def body(client: Client) -> Any:
        client.begin()
        return await client.send(CHAT, STREAM)

    models.script.append(as_json({"error": {"message": "unknown: stream_options"}}, 400))
    status, *_ = behind(tmp_path, models, body, mode="live")
    assert status == 200
    assert "stream_options" not in models.requests[-1].body


@pytest.mark.parametrize(
    "reply",
    [
        as_json({"error": {"message": "no such model"}}, 404),
        as_json({"error": {"message": "moved"}}, 301),
        Reply(b"", 307, headers={"location": "/elsewhere"}),
        as_json(["no object"]),
        Reply(b"<html>of a proxy</html>", content_type="text/html"),
        as_json({}, 501),
        as_json({}, 520),
        as_json({"error": {"message": "overloaded", "code": 502}}),
    ],
)
@pytest.mark.parametrize("asked", [HELLO, STREAM], ids=["whole", "stream"])
def test_what_is_no_answer_of_a_model_is_not_recorded(tmp_path, models, reply, asked):
    async def body(client: Client) -> Conversation:
        conversation = client.begin()
        await client.send(CHAT, asked)
        return conversation

    models.script.append(reply)
    conversation = behind(tmp_path, models, body, mode="record")
    with pytest.raises(TrialError, match="answered with status"):
        conversation.check()
    lines = (tmp_path / "c.jsonl").read_text().splitlines()
    assert not [each for each in lines if "request" in each]


def test_an_error_of_a_stream_reaches_the_client_whole(tmp_path, models):
    async def body(client: Client) -> Any:
        client.begin()
        return await client.send(CHAT, STREAM)

    models.script.append(as_json({"error": {"message": "too long"}}, 400))
    status, _, text = behind(tmp_path, models, body, mode="live")
    assert (status, json.loads(text)) == (400, {"error": {"message": "too long"}})
    assert len(models.requests) == 1


def test_a_stream_that_breaks_off_breaks_off_for_the_client_and_is_not_recorded(tmp_path, models):
    async def body(client: Client) -> Conversation:
        conversation = client.begin()
        with pytest.raises(aiohttp.ClientError):
            await client.send(CHAT, STREAM)
        assert conversation.failed
        status, _, text = await client.send(CHAT, STREAM)
        assert (status, text[-14:]) == (200, "data: [DONE]\n\n")
        return conversation

    cut = Reply(b'data: {"choices": []}\n\n', content_type="text/event-stream", cut=True)
    models.script.append(cut)
    conversation = behind(tmp_path, models, body, mode="record")
    assert (conversation.usage.calls, conversation.usage.retries) == (1, 1)
    assert (tmp_path / "c.jsonl").read_text().count('{"call":') == 1


def test_a_stream_is_passed_on_as_it_comes(tmp_path):
    first, rest = asyncio.Event(), asyncio.Event()

    last = b'data: {"candidates": [{"finishReason": "STOP"}]}\n\n'

    async def stream(request: Any) -> Any:
        response = aiohttp.web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b'data: {"a": 1}\n\n')
        await rest.wait()
        await response.write(last)
        return response

    async def main() -> None:
        app = aiohttp.web.Application()
        app.router.add_post("/{path:.*}", stream)
        runner = aiohttp.web.AppRunner(app)
        await runner.setup()
        site = aiohttp.web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        env = {"GOOGLE_API_KEY": "k" * 20, "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{port}"}
        context = RunContext(env=env, root=tmp_path, now=lambda: 0.0)
        options = ModelOptions(mode="record", cassette="c.jsonl")
        async with gateway_for(options, context) as gateway, aiohttp.ClientSession() as session:
            process = gateway.process()
            gateway.open(process, 1, KEY)
            url = f"{process.base}/gemini/v1beta/models/m:streamGenerateContent?alt=sse"
            async with session.post(url, json={"contents": []}) as response:
                chunk = await response.content.readany()
                assert chunk == b'data: {"a": 1}\n\n'  # while the provider waits
                first.set()
                rest.set()
                assert await response.content.read() == last
        await runner.cleanup()

    asyncio.run(main())
    line = (tmp_path / "c.jsonl").read_text().splitlines()[-1]
    assert len(json.loads(line)["answer"]["events"]) == 2


def test_a_client_that_leaves_a_stream_has_it_recorded_whole(tmp_path, models):
    async def leave(client: Client) -> None:
        conversation = client.begin()
        async with client.session.post(client.process.base + CHAT, json=STREAM) as response:
            await response.content.readany()
            response.close()
        await conversation.settle()
        assert conversation.usage.calls == 1

    async def replay(client: Client) -> Any:
        client.begin()
        return await client.send(CHAT, STREAM)

    behind(tmp_path, models, leave, mode="record")
    _, _, text = behind(tmp_path, models, replay, mode="replay")
    assert text.endswith("data: [DONE]\n\n")


def test_a_client_that_leaves_before_the_answer_has_it_recorded(tmp_path, models):
    async def leave(client: Client, body: Any) -> Conversation:
        conversation = client.begin()
        asking = asyncio.create_task(client.send(CHAT, body))
        await asyncio.to_thread(models.arrived.wait)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        models.together.wait()  # the provider answers only now
        await conversation.settle()
        conversation.check()
        return conversation

    for name, body in (("whole", HELLO), ("stream", STREAM)):
        models.arrived.clear()
        models.together = threading.Barrier(2)
        folder = tmp_path / name
        folder.mkdir()
        conversation = behind(folder, models, partial(leave, body=body), mode="record")
        assert conversation.usage.calls == 1
        assert (folder / "c.jsonl").read_text().count('{"call":') == 1


def test_a_call_that_its_client_repeats_is_recorded_once(tmp_path, models):
    async def repeat(client: Client) -> tuple[Conversation, str]:
        conversation = client.begin()
        asking = asyncio.create_task(client.send(CHAT))
        await asyncio.to_thread(models.arrived.wait)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        models.together, held = threading.Barrier(1), models.together
        _, _, text = await client.send(CHAT)
        held.wait()  # the provider answers the first attempt only now
        await conversation.settle()
        conversation.check()
        return conversation, text

    async def replay(client: Client) -> str:
        client.begin()
        _, _, text = await client.send(CHAT)
        return str(text)

    models.together = threading.Barrier(2)
    conversation, text = behind(tmp_path, models, repeat, mode="record")
    assert (conversation.usage.calls, conversation.usage.retries) == (1, 1)
    assert (tmp_path / "c.jsonl").read_text().count('{"call":') == 1
    assert json.loads(behind(tmp_path, models, replay, mode="replay")) == json.loads(text)


def test_equal_requests_of_one_trial_get_their_answers_in_order(tmp_path, models):
    async def body(client: Client) -> list[str]:
        client.begin()
        answers = [await client.send(CHAT) for _ in range(3)]
        return [json.loads(text)["choices"][0]["message"]["content"] for *_, text in answers]

    async def more(client: Client) -> str:
        conversation = client.begin()
        for _ in range(4):
            await client.send(CHAT)
        return str(conversation.error)

    assert behind(tmp_path, models, body, mode="record") == ["Hello #1", "Hello #2", "Hello #3"]
    said = "this request is recorded only 3 times for this trial in c.jsonl"
    assert said in behind(tmp_path, models, more, mode="replay")
    assert behind(tmp_path, models, body, mode="replay") == ["Hello #1", "Hello #2", "Hello #3"]


def test_marks_tell_the_conversations_of_one_process_apart(tmp_path, models):
    async def body(client: Client) -> list[str]:
        keys = [KEY.model_copy(update={"repeat": number}) for number in range(8)]
        found = [client.begin(number + 1, key) for number, key in enumerate(keys)]
        headers = [{MARK: str(number + 1)} for number in range(8)]
        answers = await asyncio.gather(*(client.send(CHAT, headers=each) for each in headers))
        assert [each.usage.calls for each in found] == [1] * 8
        return [text for *_, text in answers]

    recorded = behind(tmp_path, models, body, mode="record")
    assert len({*recorded}) == 8
    replayed = behind(tmp_path, models, body, mode="replay")
    assert [*map(json.loads, replayed)] == [*map(json.loads, recorded)]


def test_a_call_before_the_first_conversation_makes_all_of_the_process_errors(tmp_path, models):
    async def body(client: Client) -> None:
        status, _, text = await client.send(CHAT)
        assert (status, "before the conversation" in text) == (400, True)
        for number in (1, 2):
            with pytest.raises(TrialError, match="called before the conversation"):
                client.begin(number).check()

    behind(tmp_path, models, body, mode="live")


@pytest.mark.parametrize(
    ("encoding", "packed", "reason"),
    [
        ("gzip", gzip.compress, ""),
        ("deflate", zlib.compress, ""),
        ("br", bytes, "its encoding is 'br'"),
        ("gzip", lambda body: gzip.compress(body)[:-9], "it is incomplete"),
        ("gzip", bytes, "incorrect header"),
        ("gzip", lambda body: gzip.compress(body + b" " * (MAX_BODY + 1)), "larger than 16 MiB"),
    ],
)
def test_a_compressed_request_is_read_or_an_error_of_its_trial(
    tmp_path, models, encoding, packed, reason
):
    async def body(client: Client) -> Any:
        conversation = client.begin()
        data = packed(json.dumps(HELLO).encode())
        headers = {"content-encoding": encoding, "content-type": "application/json"}
        url, error = client.process.base + CHAT, ""
        async with client.session.post(url, data=data, headers=headers) as response:
            status = response.status
        try:
            conversation.check()
        except TrialError as exc:
            error = str(exc)
        return status, error

    status, error = behind(tmp_path, models, body, mode="live")
    assert (status, bool(error)) == ((400, True) if reason else (200, False))
    assert reason in error


def test_a_client_that_waits_to_be_told_to_continue_is_told_so(tmp_path, models):
    async def body(client: Client) -> Any:
        client.begin()
        return await client.send(CHAT, expect100=True)

    status, *_ = behind(tmp_path, models, body, mode="live")
    assert status == 200


def test_a_call_after_the_end_of_its_conversation_is_refused(tmp_path, models):
    async def body(client: Client) -> Any:
        client.begin(7)
        del client.process.conversations[7]
        return await client.send(CHAT, headers={MARK: "7"})

    status, headers, text = behind(tmp_path, models, body, mode="live")
    assert (status, headers["x-should-retry"]) == (400, "false")
    assert "the conversation is over" in text


def test_retry_after_and_the_status_reach_the_client(tmp_path, models):
    async def body(client: Client) -> Any:
        conversation = client.begin()
        first, headers, _ = await client.send(CHAT)
        assert (first, headers["retry-after"]) == (429, "3")
        assert pace_of("openai").closed_until > time.monotonic()
        pace_of("openai").closed_until = 0.0
        assert conversation.failed
        second, *_ = await client.send(CHAT)
        assert not conversation.failed
        return second, conversation.usage

    models.script.append(as_json({}, 429, headers={"retry-after": "3"}))
    status, usage = behind(tmp_path, models, body, mode="record")
    assert (status, usage.calls, usage.retries) == (200, 1, 1)


def test_an_error_of_the_request_itself_is_recorded(tmp_path, models):
    async def body(client: Client) -> Any:
        client.begin()
        return (await client.send(CHAT))[::2]

    models.script.append(as_json({"error": {"message": "too long"}}, 400))
    recorded = behind(tmp_path, models, body, mode="record")
    status, text = behind(tmp_path, models, body, mode="replay")
    assert (status, json.loads(text)) == (recorded[0], json.loads(recorded[1]))
    assert len(models.requests) == 1


def test_what_is_too_large_or_no_json_is_refused(tmp_path, models):
    async def body(client: Client) -> list[str]:
        found = []
        for data in (b" " * (17 << 20), b"{", b"[]", b'{"model": 5}', b"{}"):
            conversation = client.begin()
            async with client.session.post(
                client.process.base + CHAT, data=io.BytesIO(data)
            ) as response:
                assert response.status == 400
            found.append(str(conversation.error))
        return found

    first, broken, *others = behind(tmp_path, models, body, mode="live")
    assert first.endswith("the request is larger than 16 MiB")
    assert ": the request is not JSON: expecting property name" in broken
    assert {each.partition(": ")[2] for each in others} == {
        "the request is not JSON with a model name"
    }
    assert models.requests == []


def test_an_embedding_is_recorded_and_priced(tmp_path, models):
    async def body(client: Client) -> Any:
        conversation = client.begin()
        asked = {"model": "text-embedding-3-small", "input": "Hello"}
        await client.send("/openai/v1/embeddings", asked)
        return conversation.usage

    usage = behind(tmp_path, models, body, mode="record")
    assert (usage.input_tokens, usage.output_tokens, usage.unpriced) == (3, 0, 0)
    assert usage.cost_usd > 0


@pytest.mark.parametrize("kind", ["429", "500", "cut", "garbage", "timeout"])
def test_a_fault_on_purpose_is_no_outage(tmp_path, models, kind):
    async def body(client: Client) -> None:
        conversation = client.begin()
        timeout = aiohttp.ClientTimeout(total=0.5 if kind == "timeout" else None)
        try:
            status, _, text = await client.send(CHAT, timeout=timeout)
        except (aiohttp.ClientError, TimeoutError):
            assert kind in ("cut", "timeout")
        else:
            assert (status, "<html>" in text) == {
                "429": (429, False),
                "500": (500, False),
                "garbage": (200, True),
            }[kind]
        conversation.check()
        assert (conversation.usage.calls, conversation.usage.faults) == (0, 1)

    behind(tmp_path, models, body, mode="live", faults={"rate": 1, "kinds": [kind]})
    assert models.requests == []


def test_the_try_after_a_fault_gets_the_recorded_answer(tmp_path, models):
    async def once(client: Client) -> Any:
        client.begin()
        return (await client.send(CHAT))[2]

    async def often(client: Client) -> Any:
        client.begin()
        found = [await client.send(CHAT) for _ in range(20)]
        return [text for status, _, text in found if status == 200], len(found)

    recorded = behind(tmp_path, models, once, mode="record")
    options = {"mode": "replay", "faults": {"rate": 0.5, "kinds": [500]}}
    answers, _ = behind(tmp_path, models, often, **options)
    assert json.loads(answers[0]) == json.loads(recorded)
    assert behind(tmp_path, models, often, **options)[0] == answers


def slow(slow_s: float, rate: float = 1.0) -> dict[str, Any]:
    return {"faults": {"rate": rate, "kinds": ["slow"], "slow_s": slow_s}}


def test_a_slow_answer_is_late_and_the_same_and_counted(tmp_path, models):
    async def body(client: Client) -> Any:
        conversation = client.begin()
        _, _, text = await client.send(CHAT)
        conversation.check()
        return json.loads(text), conversation.usage.calls

    recorded = behind(tmp_path, models, body, mode="record", **slow(0.01))
    assert behind(tmp_path, models, body, mode="replay", **slow(0.01)) == recorded
    assert recorded[1] == 1
    assert len(models.requests) == 1


def test_a_client_that_does_not_wait_for_a_slow_answer_costs_nothing(tmp_path, models):
    async def body(client: Client) -> Any:
        conversation = client.begin()
        timeout = aiohttp.ClientTimeout(total=0.5)
        with pytest.raises(TimeoutError):
            await client.send(CHAT, timeout=timeout)
        _, _, text = await client.send(CHAT, timeout=timeout)
        conversation.check()
        return json.loads(text)["choices"][0]["message"]["content"]

    # With this rate, the first try is slow, and the second is not: it gets the first answer.
    assert behind(tmp_path, models, body, mode="record", **slow(600, rate=0.8)) == "Hello #1"
    assert len(models.requests) == 1


def test_a_slow_answer_ends_with_its_trial(tmp_path, models):
    async def body(client: Client) -> None:
        conversation = client.begin()
        asyncio.get_running_loop().call_later(0.5, setattr, conversation, "is_over", True)
        assert (await client.send(CHAT))[0] in (400, 499)

    behind(tmp_path, models, body, mode="live", **slow(600))
    assert models.requests == []


def test_a_replayed_call_waits_for_no_limit(tmp_path, models):
    async def body(client: Client) -> Any:
        client.begin()
        return (await client.send(CHAT))[2]

    async def closed(client: Client) -> Any:
        pace_of("openai").close(time.monotonic() + 600)
        return await body(client)

    recorded = behind(tmp_path, models, body, mode="record")
    replayed = behind(tmp_path, models, closed, mode="replay", requests_per_minute=0.01)
    assert json.loads(replayed) == json.loads(recorded)


@pytest.mark.slow
def test_a_call_that_is_given_up_while_it_waits_is_neither_made_nor_hidden(tmp_path, models):
    async def body(client: Client) -> None:
        conversation = client.begin()
        assert (await client.send(CHAT))[0] == 200
        conversation.check()
        with pytest.raises(TimeoutError):
            await client.send(CHAT, timeout=aiohttp.ClientTimeout(total=0.3))
        with pytest.raises(TrialError, match="gave up before the rate limit allowed"):
            conversation.check()
        await conversation.settle()  # nobody pays for an answer that nobody gets
        with pytest.raises(TrialError, match="gave up before the rate limit allowed"):
            conversation.check()

    behind(tmp_path, models, body, mode="live", requests_per_minute=60)
    assert len(models.requests) == 1
