"""HTTP requests of our own: the only module that makes any.

What comes back is bounded, and what goes wrong is an error that names the address without its
query or its password, which may be secret.  Redirects are not followed: the next address would
get our headers, which may hold a key, and a `POST` would lose its body on the way.
"""

import asyncio
import importlib
import ipaddress
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, NamedTuple
from urllib.parse import urljoin, urlsplit

from pydantic import AfterValidator

from ci_eval.records.errors import TrialError
from ci_eval.records.model import Json
from ci_eval.runtime.http_errors import reason
from ci_eval.text.json_text import NotJsonError, parse_json
from ci_eval.text.sanitize import one_line

if TYPE_CHECKING:
    from ssl import SSLContext

    from aiohttp import ClientResponse, ClientSession

MAX_BODY = 16 * 1024 * 1024
"""The longest body, and the longest stream, in bytes."""
CONNECT_S = 30.0
"""How long it may take to be connected; how long an answer may take, the trial's time says."""
KEEP_ALIVE_S = 2.0
"""How long a connection is kept that nobody uses: less than servers do (uvicorn and Node: 5 s),
so that no request goes out on one that is just being closed."""
SHOWN_CHARS = 300
MIN_SECRET = 8
"""Shorter values of headers are no keys, and would be found in every other word."""


# --- Requests and responses -------------------------------------------------------------------


def address(text: str) -> str:
    """Return `text`, which is where requests go.

    Raises:
        ValueError: it cannot be.

    """
    scheme, _, rest = text.partition("://")
    if scheme not in ("http", "https") or not rest or any(map(str.isspace, text)):
        raise ValueError(f"expected an address such as 'https://example.com/v1', found {text!r}")
    return text


Address = Annotated[str, AfterValidator(address)]
"""Where requests go: it begins with `http://` or `https://`."""


def shown_address(url: str) -> str:
    """Return `url` for messages, without what may be secret: user, password, query, fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "the address"
    host = parts.netloc.rpartition("@")[2]
    return one_line(f"{parts.scheme}://{host}{parts.path}", SHOWN_CHARS)


class Request(NamedTuple):
    """What is sent."""

    method: str
    url: str
    json: Json = None
    """The body; nothing is sent where it is `None`."""
    headers: Mapping[str, str] = {}

    @property
    def shown(self) -> str:
        """The address for messages."""
        return shown_address(self.url)

    def quoted(self, text: str) -> str:
        """Return the beginning of what the other side says, for messages, without our keys."""
        for value in self.headers.values():
            for each in (value, *value.split()):
                if len(each) >= MIN_SECRET:
                    text = text.replace(each, "[hidden]")
        return one_line(text, SHOWN_CHARS)


class StatusError(TrialError):
    """A request failed, as the status of its response says."""

    def __init__(self, message: str, response: "Response") -> None:
        self.response = response
        super().__init__("connection", message)


@dataclass(frozen=True)
class Response:
    """What came back."""

    request: Request
    status: int
    headers: Mapping[str, str]
    """Their names are the same in lower and in upper case."""
    body: bytes

    @cached_property
    def text(self) -> str:
        """The body, where it is text."""
        return self.body.decode(errors="replace")

    def json(self) -> Json:
        """Return the body as JSON.

        Raises:
            StatusError: the status says that the request failed.
            TrialError: it is no JSON.

        """
        self.require_success()
        try:
            return parse_json(self.text)
        except NotJsonError as exc:
            message = f"{self.request.shown} answered {self.shown}, which {exc}"
            raise TrialError("protocol", message) from None

    def require_success(self) -> None:
        """Go on only where the status says that all went well.

        Raises:
            StatusError: it says something else.

        """
        if not 200 <= self.status < 300:
            raise StatusError(f"{self.request.shown} answered {self.shown}", self)

    @property
    def shown(self) -> str:
        """The status and the beginning of the body, or where a redirect leads."""
        target = self.headers.get("Location", "")
        if 300 <= self.status < 400 and target:
            there = shown_address(urljoin(self.request.url, target))
            return f"{self.status}, a redirect to {there}; use that address"
        said = self.request.quoted(self.text)
        return f"{self.status}: {said}" if said else f"{self.status} and nothing else"


# --- Streams ----------------------------------------------------------------------------------


class EventParser:
    """Cuts a stream into server-sent events (WHATWG HTML, section 9.2)."""

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
            # The other half of an end of line that was cut in two.
            chunk = chunk.removeprefix(b"\n")
        self._skips_line_feed = chunk.endswith(b"\r")
        *lines, rest = self._ENDS.split(chunk)
        for line in lines:
            self._rest.append(line)
            yield from self._line(b"".join(self._rest))
            self._rest.clear()
        self._rest.append(rest)

    def end(self) -> Iterator[str]:
        """Yield the data of an event that only the end of the stream ends."""
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


class Stream:
    """A response of server-sent events, as they come."""

    def __init__(self, request: Request, response: "ClientResponse") -> None:
        self.status = response.status
        self._request = request
        self._response = response

    async def events(self) -> AsyncGenerator[str, None]:
        """Yield the data of each event.

        Raises:
            TrialError: the stream broke off, or is too long.

        """
        parser = EventParser()
        async with aclosing(_chunks(self._request, self._response)) as chunks:
            async for chunk in chunks:
                for event in parser.feed(chunk):
                    yield event
        for event in parser.end():
            yield event


async def _chunks(request: Request, response: "ClientResponse") -> AsyncGenerator[bytes, None]:
    """Yield the body as it comes."""
    size = 0
    with _told(request):
        async for chunk in response.content.iter_any():
            size += len(chunk)
            if size > MAX_BODY:
                raise TrialError("protocol", f"{request.shown} sent more than {MAX_BODY >> 20} MiB")
            yield chunk


@contextmanager
def _told(request: Request) -> Iterator[None]:
    """Turn what goes wrong on the way into an error of the trial."""
    from aiohttp import ClientError

    try:
        yield
    except (ClientError, OSError, ValueError) as exc:
        why = request.quoted(reason(exc)) or type(exc).__name__
        raise TrialError("connection", f"{request.shown} could not be reached: {why}") from exc


# --- Connections ------------------------------------------------------------------------------


@asynccontextmanager
async def connecting(env: Mapping[str, str], ca_file: str = "") -> AsyncIterator["Net"]:
    """Be ready to make requests; leaving the context closes the connections.

    A proxy is used as `env` says, but never on the way to this machine.  What the authorities in
    `ca_file` vouch for is trusted, too.

    Raises:
        OSError: that file cannot be read, or holds no certificates.

    """
    # Importing it takes a while, in which other agents are started.
    await asyncio.to_thread(importlib.import_module, "aiohttp")
    async with client_session(env, ca_file) as session, client_session({}, ca_file) as direct:
        yield Net(session, direct)


def client_session(env: Mapping[str, str], ca_file: str = "") -> "ClientSession":
    """Return what requests are sent with; it keeps no cookies, which conversations would share.

    It looks at proxies and `~/.netrc`, in a thread before each request, only where `env` names a
    proxy.
    """
    from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

    return ClientSession(
        timeout=ClientTimeout(total=None, sock_connect=CONNECT_S),
        connector=TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S, ssl=_trusted(ca_file)),
        cookie_jar=DummyCookieJar(),
        trust_env=any(name.lower().endswith("_proxy") for name in env),
    )


def _trusted(ca_file: str) -> "SSLContext | bool":
    """Return whom to trust: those whom the machine trusts, and those in `ca_file`."""
    if not ca_file:
        return True
    from ssl import create_default_context

    context = create_default_context()
    context.load_verify_locations(ca_file)
    return context


def is_here(url: str) -> bool:
    """Say whether `url` leads to this machine."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Net:
    """Makes requests, any number at a time, and keeps the connections."""

    def __init__(self, session: "ClientSession", direct: "ClientSession") -> None:
        self._session = session
        self._direct = direct

    async def send(self, request: Request) -> Response:
        """Send `request`, and return what comes back, whatever its status.

        Raises:
            TrialError: nothing comes back, or too much.

        """
        async with self._opened(request) as response:
            return await _whole(request, response)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        """Send `request`, and read what comes back as it comes.

        Raises:
            StatusError: the status says that the request failed.
            TrialError: nothing comes back, or no stream.

        """
        async with self._opened(request) as response:
            # Some servers call their events plain text.
            is_whole = response.content_type in ("application/json", "text/html")
            if is_whole or not 200 <= response.status < 300:
                whole = await _whole(request, response)
                whole.require_success()
                message = f"{request.shown} answered {whole.shown}, which is no stream of events"
                raise TrialError("protocol", message)
            yield Stream(request, response)

    @asynccontextmanager
    async def _opened(self, request: Request) -> AsyncIterator["ClientResponse"]:
        session = self._direct if is_here(request.url) else self._session
        with _told(request):
            response = await session.request(
                request.method,
                request.url,
                json=request.json,
                headers=request.headers,
                allow_redirects=False,
            )
        async with response:
            yield response


async def _whole(request: Request, response: "ClientResponse") -> Response:
    async with aclosing(_chunks(request, response)) as chunks:
        body = b"".join([chunk async for chunk in chunks])
    return Response(request, response.status, response.headers, body)
