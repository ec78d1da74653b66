"""HTTP client: the only module that sends our own requests.

Responses are limited in size, and errors name the address without query and password, which may
be secret.  Redirects are not followed: the next address would get our headers, which may hold a
key, and a `POST` would lose its body.
"""

import asyncio
import importlib
import ipaddress
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, NamedTuple
from urllib.parse import urljoin, urlsplit

from pydantic import AfterValidator

from ci_eval.records.cases import Json
from ci_eval.records.errors import TrialError
from ci_eval.runtime.http_errors import reason
from ci_eval.text.json_text import NotJsonError, parse_json
from ci_eval.text.sanitize import one_line

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

_log = logging.getLogger(__name__)

MAX_BODY = 16 * 1024 * 1024
"""The largest body or stream, in bytes."""
CONNECT_S = 30.0
"""Timeout of connecting; the trial's timeout limits the response."""
KEEP_ALIVE_S = 2.0
"""How long an idle connection is kept: less than on servers (uvicorn and Node: 5 s), so that no
request is sent on a connection that is just being closed."""
SHOWN_CHARS = 300
MIN_SECRET = 8
"""The shortest header value to redact; shorter ones are not keys, and appear in normal words."""


# --- Requests and responses -------------------------------------------------------------------


def address(text: str) -> str:
    """Return `text` if it is an HTTP address.

    Raises:
        ValueError: it is not.

    """
    with suppress(ValueError):
        parts = urlsplit(text)
        is_complete = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        if is_complete and not any(map(str.isspace, text)):
            return text
    raise ValueError(f"expected an address such as 'https://example.com/v1', found {text!r}")


Address = Annotated[str, AfterValidator(address)]
"""An address that begins with `http://` or `https://`."""


def shown_address(url: str) -> str:
    """Return `url` for messages, without possible secrets: user, password, query, fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "the address"
    host = parts.netloc.rpartition("@")[2]
    return one_line(f"{parts.scheme}://{host}{parts.path}", SHOWN_CHARS)


class Request(NamedTuple):
    """An HTTP request."""

    method: str
    url: str
    json: Json = None
    """The body as JSON or bytes; `None` sends none."""
    headers: Mapping[str, str] = {}

    @property
    def shown(self) -> str:
        """The address for messages."""
        return shown_address(self.url)

    def quoted(self, text: str) -> str:
        """Return the beginning of a server's text for messages, without our keys."""
        for value in self.headers.values():
            for each in (value, *value.split()):
                if len(each) >= MIN_SECRET:
                    text = text.replace(each, "[hidden]")
        return one_line(text, SHOWN_CHARS)


class StatusError(TrialError):
    """A request failed with an HTTP error status."""

    def __init__(self, message: str, response: "Response") -> None:
        self.response = response
        super().__init__("connection", message)


@dataclass(frozen=True)
class Response:
    """An HTTP response."""

    request: Request
    status: int
    headers: Mapping[str, str]
    """Their names are case-insensitive."""
    body: bytes

    @cached_property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode(errors="replace")

    def json(self) -> Json:
        """Return the body as JSON.

        Raises:
            StatusError: the request failed.
            TrialError: the body is not JSON.

        """
        self.require_success()
        try:
            return parse_json(self.text)
        except NotJsonError as exc:
            message = f"{self.request.shown} answered {self.shown}, which {exc}"
            raise TrialError("protocol", message) from None

    def require_success(self) -> None:
        """Require a successful status.

        Raises:
            StatusError: the request failed.

        """
        if not 200 <= self.status < 300:
            raise StatusError(f"{self.request.shown} answered {self.shown}", self)

    @property
    def shown(self) -> str:
        """The status and the beginning of the body, or the target of a redirect."""
        target = self.headers.get("Location", "")
        if 300 <= self.status < 400 and target:
            shown = shown_address(urljoin(self.request.url, target))
            return f"{self.status}, a redirect to {shown}; use that address"
        body = self.request.quoted(self.text)
        return f"{self.status}: {body}" if body else f"{self.status} without a body"


# --- Streams ----------------------------------------------------------------------------------


class EventParser:
    """Splits a stream into server-sent events (WHATWG HTML, section 9.2)."""

    _ENDS = re.compile(rb"\r\n|\n|\r")

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._data: list[str] = []
        self._is_first_line = True
        self._skips_line_feed = False

    def feed(self, chunk: bytes) -> Iterator[str]:
        """Yield the data of each event that `chunk` completes."""
        if not chunk:
            return
        if self._skips_line_feed:
            # The second half of a CR LF that was split between two chunks.
            chunk = chunk.removeprefix(b"\n")
        self._skips_line_feed = chunk.endswith(b"\r")
        *lines, rest = self._ENDS.split(chunk)
        for line in lines:
            self._rest.append(line)
            yield from self._line(b"".join(self._rest))
            self._rest.clear()
        self._rest.append(rest)

    def end(self) -> Iterator[str]:
        """Yield the data of an event that is terminated by the end of the stream."""
        yield from self._line(b"".join(self._rest))
        yield from self._line(b"")

    def _line(self, raw: bytes) -> Iterator[str]:
        if self._is_first_line:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
            self._is_first_line = False
        name, _, value = raw.decode(errors="replace").partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))
        elif not raw and self._data:
            yield "\n".join(self._data)
            self._data.clear()


async def _events(request: Request, response: "ClientResponse") -> AsyncGenerator[str, None]:
    """Yield the data of each server-sent event.

    Raises:
        TrialError: the connection was lost, or the stream is too long.

    """
    parser = EventParser()
    async with aclosing(chunks(request, response)) as found:
        async for chunk in found:
            for event in parser.feed(chunk):
                yield event
    for event in parser.end():
        yield event


async def chunks(request: Request, response: "ClientResponse") -> AsyncGenerator[bytes, None]:
    """Yield the body in chunks as it arrives.

    Raises:
        TrialError: the connection was lost, or the body is too long.

    """
    size = 0
    with _trial_errors(request):
        async for chunk in response.content.iter_any():
            size += len(chunk)
            if size > MAX_BODY:
                raise TrialError("protocol", f"{request.shown} sent more than {MAX_BODY >> 20} MiB")
            yield chunk


@contextmanager
def _trial_errors(request: Request) -> Iterator[None]:
    """Turn connection errors into a `TrialError`."""
    from aiohttp import ClientError

    try:
        yield
    except (ClientError, OSError, ValueError) as exc:
        why = request.quoted(reason(exc)) or type(exc).__name__
        raise TrialError("connection", f"{request.shown} could not be reached: {why}") from exc


# --- Connections ------------------------------------------------------------------------------


@asynccontextmanager
async def connecting(env: Mapping[str, str], ca_file: str = "") -> AsyncIterator["Net"]:
    """Open an HTTP client; leaving the context closes its connections.

    `env` names the proxy, which is not used for local addresses.  The certificate authorities in
    `ca_file` are trusted in addition.

    Raises:
        OSError: the file cannot be read, or holds no certificates.

    """
    # The import is slow; other agents start in the meantime.
    await asyncio.to_thread(importlib.import_module, "aiohttp")
    async with client_session(env, ca_file) as session, client_session({}, ca_file) as direct:
        yield Net(session, direct)


def client_session(env: Mapping[str, str], ca_file: str = "") -> "ClientSession":
    """Return a client session without cookies, because conversations would share them.

    It looks up proxies and `~/.netrc`, in a thread before each request, only if `env` names a
    proxy.
    """
    from ssl import SSLContext, create_default_context

    from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

    trusted: SSLContext | bool = True
    if ca_file:
        trusted = create_default_context()
        trusted.load_verify_locations(ca_file)
    return ClientSession(
        timeout=ClientTimeout(total=None, sock_connect=CONNECT_S),
        connector=TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S, ssl=trusted),
        cookie_jar=DummyCookieJar(),
        trust_env=any(name.lower().endswith("_proxy") for name in env),
    )


@lru_cache(maxsize=1024)
def is_local(url: str) -> bool:
    """Return True if `url` is on this machine."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Net:
    """HTTP client for concurrent requests, with persistent connections."""

    def __init__(self, session: "ClientSession", direct: "ClientSession") -> None:
        self._session = session
        self._direct = direct

    async def send(self, request: Request) -> Response:
        """Send `request`, and return the response, whatever its status.

        Raises:
            TrialError: there is no response, or it is too large.

        """
        async with self.opened(request) as response:
            return await _whole(request, response)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[str]]:
        """Send `request`, and provide the data of each server-sent event of the response.

        Raises:
            StatusError: the request failed.
            TrialError: there is no response, or it is not a stream.

        """
        async with self.opened(request) as response:
            # Some servers declare their events as plain text.
            is_whole = response.content_type in ("application/json", "text/html")
            if is_whole or not 200 <= response.status < 300:
                whole = await _whole(request, response)
                whole.require_success()
                message = f"{request.shown} answered {whole.shown}, which is not an event stream"
                raise TrialError("protocol", message)
            async with aclosing(_events(request, response)) as events:
                yield events

    @asynccontextmanager
    async def opened(self, request: Request) -> AsyncIterator["ClientResponse"]:
        """Send `request`, and provide the response, whatever its status, before its body is read.

        Raises:
            TrialError: there is no response.

        """
        session = self._direct if is_local(request.url) else self._session
        name = "data" if isinstance(request.json, bytes) else "json"
        with _trial_errors(request):
            response = await session.request(
                request.method,
                request.url,
                headers=request.headers,
                allow_redirects=False,
                **{name: request.json},
            )
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("%s %s: status %d", request.method, request.shown, response.status)
        async with response:
            yield response


async def _whole(request: Request, response: "ClientResponse") -> Response:
    async with aclosing(chunks(request, response)) as found:
        body = b"".join([chunk async for chunk in found])
    return Response(request, response.status, response.headers, body)
