"""A server on this machine that stands for a provider of models, and can be told to fail."""

import json
import socket
import ssl
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Request:
    """What came in."""

    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    """With names in lower case."""
    body: Any
    method: str = "POST"


@dataclass(frozen=True)
class Reply:
    """What goes out."""

    body: bytes = b""
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    cut: bool = False
    """The connection ends in the middle of the body."""
    dropped: bool = False
    """The connection ends, and nothing goes out."""


def as_json(value: Any, status: int = 200, **more: Any) -> Reply:
    return Reply(json.dumps(value).encode(), status, **more)


DROPPED = Reply(dropped=True)
HTML = Reply(b"<html><body>Sign in</body></html>", content_type="text/html; charset=utf-8")
CUT = Reply(b'{"candidates": [{"content": {"par', cut=True)


class Loopback:
    """A provider; `reply` says what it answers to what it understands."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.script: deque[Reply] = deque()
        """What is answered to the next requests, whatever they are."""
        self.arrived = threading.Event()
        """Set when there was a request."""
        self.closing = threading.Event()
        """Set when nobody needs an answer any more."""
        self.together = threading.Barrier(1)
        """What requests wait at: one for several answers none of them before all are there."""
        self.most_at_once = 0
        self.url = ""
        self._at_once = 0
        self._lock = threading.Lock()

    def reply(self, request: Request) -> Reply:
        raise NotImplementedError

    def answer(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            reply = self.script.popleft() if self.script else None
        self.arrived.set()
        self.together.wait()
        reply = reply or self.reply(request)
        self.closing.wait(reply.delay_s)
        with self._lock:
            self._at_once -= 1
        return reply

    @property
    def request(self) -> Request:
        """The only request."""
        (request,) = self.requests
        return request


class QuietServer(ThreadingHTTPServer):
    """Answers many at once, and says nothing of clients that go away: they are what is tested."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128  # else many at once wait for seconds, until they are sent again

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing."""


class _Server(QuietServer):
    provider: Loopback


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:  # as the library names it
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        url = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = json.loads(raw or b"null")
        request = Request(url.path, parse_qs(url.query), headers, body, self.command)
        self._send(self.server.provider.answer(request))

    def do_GET(self) -> None:
        self.do_POST()

    def do_PUT(self) -> None:
        self.do_POST()

    def do_PATCH(self) -> None:
        self.do_POST()

    def do_DELETE(self) -> None:
        self.do_POST()

    def _send(self, reply: Reply) -> None:
        if not reply.dropped:
            self.send_response(reply.status)
            self.send_header("content-type", reply.content_type)
            self.send_header("content-length", str(len(reply.body) * (1 + reply.cut)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)
            self.wfile.flush()
        if reply.dropped or reply.cut:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def serving(provider: Loopback, certificate: ssl.SSLContext | None = None) -> Iterator[None]:
    """Let `provider` answer at its `url`, encrypted where there is a certificate."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        scheme = "http"
        if certificate:
            server.socket = certificate.wrap_socket(server.socket, server_side=True)
            scheme = "https"
        server.provider = provider
        provider.url = f"{scheme}://127.0.0.1:{server.server_port}"
        provider.closing.clear()
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield
        finally:
            provider.closing.set()
            server.shutdown()
            thread.join()


@cache
def _taken() -> socket.socket:
    """Return a socket that has a port and never listens: others cannot have the port either."""
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    return taken


def closed_port() -> int:
    """Return a port at which nobody listens."""
    port: int = _taken().getsockname()[1]
    return port
