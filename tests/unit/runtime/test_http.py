"""Requests to servers that answer well, badly, never, or too much; all on this machine."""

import asyncio
import gzip
import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from servers.loopback import closed_port

from ci_eval.records.errors import TrialError
from ci_eval.runtime import http
from ci_eval.runtime.http import (
    EventParser,
    Net,
    Request,
    StatusError,
    address,
    connecting,
    is_local,
    shown_address,
)

OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
Body = Callable[[Net, str], Awaitable[Any]]


def full(body: bytes, head: bytes = OK) -> bytes:
    return head + b"content-length: %d\r\n\r\n%s" % (len(body), body)


class Server:
    """Writes the same bytes to everybody, and keeps what it was asked."""

    def __init__(self, reply: bytes, *, then_wait: bool = False) -> None:
        self.asked: list[bytes] = []
        self.left = asyncio.Event()
        """Set when a client has gone."""
        self.has_answered = asyncio.Event()
        self._reply = reply
        self._waits = then_wait

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            self.asked.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(self._reply)
            await writer.drain()
            self.has_answered.set()
            if self._waits:
                while await reader.read(1000):
                    pass
        self.left.set()
        writer.close()


def meeting(server: Server, body: Body, env: dict[str, str] | None = None) -> Any:
    """Run `body` with the address of `server`."""

    async def main() -> Any:
        listening = await asyncio.start_server(server, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        async with listening, connecting(env or {}) as found:
            return await body(found, f"http://127.0.0.1:{port}")

    return asyncio.run(main())


def got(reply: bytes, **more: Any) -> http.Response:
    return meeting(Server(reply), lambda n, url: n.send(Request("GET", url, **more)))


def failed(reply: bytes, **more: Any) -> TrialError:
    """Return the error of reading JSON from a server that answers `reply`."""
    with pytest.raises(TrialError) as caught:
        got(reply, **more).json()
    return caught.value


async def all_events(found: Net, url: str, into: list[str]) -> None:
    async with found.stream(Request("GET", url)) as events:
        async for event in events:
            into.append(event)  # noqa: PERF401  # what came before an error counts


# --- Addresses --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:secret@example.com/a/b?key=1#x", "https://example.com/a/b"),
        ("http://127.0.0.1:80", "http://127.0.0.1:80"),
        ("http://[::1", "the address"),
        ("http://a/\x1b[31mred", "http://a/red"),
    ],
)
def test_an_address_in_a_message_has_nothing_secret(url: str, shown: str) -> None:
    assert shown_address(url) == shown


@pytest.mark.parametrize(
    "text",
    [
        *("", "a.example", "ftp://a.example", "http://", "http:///x", "http://a:b"),
        *("http://a:99999/", "http://a:0", "http://[::1", "https://a .example", "http://a/\n"),
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    assert address("https://me:secret@a.example:8443/b?c#d") == (
        "https://me:secret@a.example:8443/b?c#d"
    )
    with pytest.raises(ValueError, match="expected an address such as"):
        address(text)


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8000/a", True),
        ("http://127.9.9.9", True),
        ("https://localhost", True),
        ("http://[::1]:80", True),
        ("http://localhost.example.com", False),
        ("http://10.0.0.1", False),
        ("http://[::1", False),
    ],
)
def test_this_machine_is_told_from_others(url: str, here: bool) -> None:
    assert is_local(url) is here


# --- Answers ----------------------------------------------------------------------------------


def test_json_comes_back_as_json() -> None:
    response = got(full(b'{"a": [1]}', OK + b"X-One: two\r\n"))

    assert response.json() == {"a": [1]}
    assert (response.status, response.headers["x-oNe"]) == (200, "two")


def test_what_is_no_json_is_quoted() -> None:
    error = failed(full(b"<html>\x1b[2J sign in"))

    assert error.kind == "protocol"
    assert "answered 200: <html> sign in, which is not JSON: expecting value" in str(error)


def test_a_failure_keeps_its_response() -> None:
    error = failed(full(b'{"error": "busy"}', OK.replace(b"200 OK", b"503 No")))

    assert isinstance(error, StatusError)
    assert error.kind == "connection"
    assert str(error).endswith('answered 503: {"error": "busy"}')
    assert error.response.status == 503


def test_a_failure_without_words_says_so() -> None:
    assert str(failed(full(b"", OK.replace(b"200 OK", b"500 No")))).endswith("500 without a body")


def test_a_redirect_is_told_and_not_followed() -> None:
    server = Server(
        full(b"", b"HTTP/1.1 307 See\r\nlocation: /chat?token=1\r\nconnection: close\r\n")
    )

    async def body(found: Net, url: str) -> str:
        with pytest.raises(StatusError) as caught:
            (await found.send(Request("POST", url + "/chat/", {"a": 1}))).json()
        return str(caught.value).replace(url, "")

    assert meeting(server, body) == "/chat/ answered 307, a redirect to /chat; use that address"
    assert len(server.asked) == 1


def test_keys_that_are_sent_are_never_shown() -> None:
    headers = {"Authorization": "Bearer sk-very-secret", "X-Short": "abc"}
    error = failed(
        full(b"no access for sk-very-secret, abc", OK.replace(b"200", b"401")), headers=headers
    )

    assert str(error).endswith("answered 401: no access for [hidden], abc")


def test_no_cookie_goes_from_one_conversation_to_the_next() -> None:
    server = Server(full(b"{}", OK + b"set-cookie: who=me; Path=/\r\nconnection: close\r\n"))

    async def body(found: Net, url: str) -> None:
        local = url.replace("127.0.0.1", "localhost")  # of bare addresses no cookies are kept
        await found.send(Request("GET", local))
        await found.send(Request("GET", local))

    meeting(server, body)
    assert not any(b"who=me" in asked for asked in server.asked)
    assert len(server.asked) == 2


# --- What goes wrong --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000,
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nabcd",
    ],
    ids=["nothing", "not http", "cut off", "bad chunk", "long header", "not gzip"],
)
def test_a_broken_answer_is_an_error_of_the_connection(reply: bytes) -> None:
    error = failed(reply)

    assert error.kind == "connection"
    assert " could not be reached: " in str(error)
    assert not str(error).endswith(": ")


def test_nobody_at_a_port_is_said_in_the_words_of_the_system() -> None:
    port = closed_port()

    async def main() -> None:
        async with connecting({}) as found:
            await found.send(Request("GET", f"http://127.0.0.1:{port}/a?key=1"))

    with pytest.raises(TrialError) as caught:
        asyncio.run(main())
    assert str(caught.value) == (
        f"http://127.0.0.1:{port}/a could not be reached: Connection refused"
    )


def test_a_header_that_cannot_be_sent_is_not_shown() -> None:
    error = failed(full(b"{}"), headers={"X-Key": "secret\r\nInjected: 1"})

    assert error.kind == "connection"
    assert "secret" not in str(error)


def test_a_long_body_is_refused_whatever_it_was_packed_in() -> None:
    packed = gzip.compress(bytes(http.MAX_BODY + 1))
    error = failed(full(packed, OK + b"content-encoding: gzip\r\n"))

    assert len(packed) < 100_000
    assert error.kind == "protocol"
    assert str(error).endswith("sent more than 16 MiB")


def test_who_is_cancelled_in_the_middle_of_a_body_hangs_up() -> None:
    async def body(found: Net, url: str) -> None:
        asking = asyncio.create_task(found.send(Request("GET", url)))
        await server.has_answered.wait()
        for _ in range(20):  # until the half has been read
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        async with asyncio.timeout(120):
            await server.left.wait()

    async def main() -> None:
        nonlocal server
        server = Server(OK + b"content-length: 10\r\n\r\nhalf", then_wait=True)
        listening = await asyncio.start_server(server, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        async with listening, connecting({}) as found:
            await body(found, f"http://127.0.0.1:{port}")

    server: Server
    asyncio.run(main())


# --- Proxies ----------------------------------------------------------------------------------


def test_a_proxy_is_used_but_not_on_the_way_to_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy = Server(full(b'{"by": "proxy"}', OK + b"connection: close\r\n"))
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)

    async def body(found: Net, url: str) -> tuple[Any, Any]:
        monkeypatch.setenv("http_proxy", url)
        far = await found.send(Request("GET", "http://far.example/a"))
        near = await found.send(Request("GET", url + "/near"))
        return far.json(), near.json()

    meeting(proxy, body, env={"http_proxy": "set"})
    assert [asked.split(b"\r\n")[0] for asked in proxy.asked] == [
        b"GET http://far.example/a HTTP/1.1",
        b"GET /near HTTP/1.1",
    ]


# --- Streams ----------------------------------------------------------------------------------


def parsed(*chunks: bytes) -> list[str]:
    parser = EventParser()
    return [event for chunk in chunks for event in parser.feed(chunk)] + list(parser.end())


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", ["a", "b"]),
        (b"\xef\xbb\xbfdata:a\r\n\r\n", ["a"]),
        (b"data: a\rdata: b\r\r", ["a\nb"]),
        (b": awake\n\nevent: x\nid: 1\ndata:  a\nretry: 5\n\n", [" a"]),
        (b"data\n\n", [""]),
        (b"data: a", ["a"]),
        (b"\n\n\n", []),
        ("data: ä\n\n".encode(), ["ä"]),
        (b"data: \xff\n\n", ["\ufffd"]),
    ],
)
def test_events_are_cut_as_the_standard_says(stream: bytes, events: list[str]) -> None:
    assert parsed(stream) == events


@given(
    st.lists(st.sampled_from([b"data: \xc3\xa4", b"data:b", b":c", b"\n", b"\r\n", b"\r"])),
    st.lists(st.integers(0, 40)),
)
def test_how_a_stream_is_cut_into_chunks_never_matters(pieces: list[bytes], cuts: Any) -> None:
    stream = b"".join(pieces)
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[a:b] for a, b in itertools.pairwise(places)]

    assert parsed(*chunks) == parsed(stream)


def test_events_before_a_stream_breaks_off_are_not_lost() -> None:
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    seen: list[str] = []

    with pytest.raises(TrialError) as caught:
        meeting(Server(head + b"9\r\ndata: a\n\n\r\n"), lambda n, url: all_events(n, url, seen))
    assert seen == ["a"]
    assert caught.value.kind == "connection"


def test_a_stream_ends_with_its_connection() -> None:
    seen: list[str] = []
    meeting(Server(EVENTS + b"data: a\n\ndata: b"), lambda n, url: all_events(n, url, seen))

    assert seen == ["a", "b"]


def test_a_stream_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_BODY", 1024 * 1024)

    with pytest.raises(TrialError, match="sent more than 1 MiB"):
        meeting(Server(EVENTS + b"data: x\n\n" * 200_000), lambda n, u: all_events(n, u, []))


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (full(b'{"a": 1}'), "protocol", 'answered 200: {"a": 1}, which is not an event stream'),
        (full(b"{}", OK.replace(b"200", b"429")), "connection", "answered 429: {}"),
        (
            full(b"data: no", EVENTS[:-2].replace(b"200", b"400")),
            "connection",
            "answered 400: data: no",
        ),
    ],
)
def test_what_is_no_stream_is_said(reply: bytes, kind: str, said: str) -> None:
    with pytest.raises(TrialError) as caught:
        meeting(Server(reply), lambda n, url: all_events(n, url, []))

    assert caught.value.kind == kind
    assert str(caught.value).endswith(said)
