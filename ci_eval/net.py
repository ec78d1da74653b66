"""HTTP requests of our own: the only module that makes any.

What comes back is bounded, and what goes wrong is an error that names the address without its
query or its password, which may be secret.
"""

import asyncio
import importlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NamedTuple
from urllib.parse import urlsplit

from pydantic import AfterValidator

from ci_eval.errors import TrialError
from ci_eval.json_text import NotJsonError, parse_json
from ci_eval.records import Json
from ci_eval.templating import one_line

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

MAX_BODY = 16 * 1024 * 1024
"""The longest body, and the longest stream, in bytes."""
CONNECT_S = 30.0
"""How long it may take to be connected; how long an answer may take, the trial's time says."""
SHOWN_CHARS = 300


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
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{host}{parts.path}"


@dataclass(frozen=True)
class Response:
    """What came back."""

    request: Request
    status: int
    headers: Mapping[str, str]
    """By names in lower case."""
    text: str

    def json(self) -> Json:
        """Return the body as JSON.

        Raises:
            TrialError: it is none, or the status says that the request failed.

        """
        if not 200 <= self.status < 300:
            raise TrialError("connection", f"{self.request.shown} answered {self.shown}")
        try:
            return parse_json(self.text)
        except NotJsonError as exc:
            message = f"{self.request.shown} answered {self.shown}, which {exc}"
            raise TrialError("protocol", message) from None

    @property
    def shown(self) -> str:
        """The status and the beginning of the body."""
        return (
            f"{self.status}: {one_line(self.text, SHOWN_CHARS)}" if self.text else f"{self.status}"
        )


class Stream:
    """A response of server-sent events, as they come (WHATWG HTML, section 9.2)."""

    def __init__(self, request: Request, response: "ClientResponse") -> None:
        self.status = response.status
        self._request = request
        self._response = response

    async def events(self) -> AsyncIterator[str]:
        """Yield the data of each event.

        Raises:
            TrialError: the stream broke off, or is too long.

        """
        data: list[str] = []
        async for line in _lines(self._request, self._response):
            name, _, value = line.partition(":")
            if name == "data":
                data.append(value.removeprefix(" "))
            elif not line and data:
                yield "\n".join(data)
                data.clear()
        if data:  # the end of the stream ends an event that nothing else ended
            yield "\n".join(data)


async def _lines(request: Request, response: "ClientResponse") -> AsyncIterator[str]:
    rest, size = b"", 0
    with _told(request):
        async for chunk in response.content.iter_any():
            size += len(chunk)
            if size > MAX_BODY:
                raise TrialError("protocol", f"{request.shown} sent more than {MAX_BODY >> 20} MiB")
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line.removesuffix(b"\r").decode(errors="replace")
    if rest:
        yield rest.decode(errors="replace")


@contextmanager
def _told(request: Request) -> Iterator[None]:
    """Turn what goes wrong on the way into an error of the trial."""
    from aiohttp import ClientError

    try:
        yield
    except (ClientError, OSError, ValueError) as exc:
        why = f"{type(exc).__name__}: {one_line(str(exc), SHOWN_CHARS)}".removesuffix(": ")
        raise TrialError("connection", f"{request.shown} could not be reached: {why}") from exc


@asynccontextmanager
async def connecting(env: Mapping[str, str]) -> AsyncIterator["Net"]:
    """Be ready to make requests; leaving the context closes the connections.

    A proxy is used as `env` says.
    """
    # Importing it takes a while, in which other agents are started.
    await asyncio.to_thread(importlib.import_module, "aiohttp")
    async with client_session(env) as session:
        yield Net(session)


def client_session(env: Mapping[str, str]) -> "ClientSession":
    """Return what requests are sent with.

    It looks at proxies and `~/.netrc`, in a thread before each request, only where `env` names a
    proxy.
    """
    from aiohttp import ClientSession, ClientTimeout, TCPConnector

    return ClientSession(
        timeout=ClientTimeout(total=None, sock_connect=CONNECT_S),
        connector=TCPConnector(limit=0),
        trust_env=any(name.lower().endswith("_proxy") for name in env),
    )


class Net:
    """Makes requests, any number at a time, and keeps the connections."""

    def __init__(self, session: "ClientSession") -> None:
        self._session = session

    async def send(self, request: Request) -> Response:
        """Send `request`, and return what comes back, whatever its status.

        Raises:
            TrialError: nothing comes back, or too much.

        """
        async with self._opened(request) as response:
            with _told(request):
                body = await response.content.read(MAX_BODY + 1)
                while len(body) <= MAX_BODY and (more := await response.content.read(MAX_BODY)):
                    body += more
            if len(body) > MAX_BODY:
                raise TrialError("protocol", f"{request.shown} sent more than {MAX_BODY >> 20} MiB")
            headers = {name.lower(): value for name, value in response.headers.items()}
            return Response(request, response.status, headers, body.decode(errors="replace"))

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        """Send `request`, and read what comes back as it comes.

        Raises:
            TrialError: nothing comes back, or its status says that the request failed.

        """
        async with self._opened(request) as response:
            if not 200 <= response.status < 300:
                with _told(request):
                    body = (await response.content.read(MAX_BODY)).decode(errors="replace")
                failed = Response(request, response.status, {}, body)
                raise TrialError("connection", f"{request.shown} answered {failed.shown}")
            yield Stream(request, response)

    @asynccontextmanager
    async def _opened(self, request: Request) -> AsyncIterator["ClientResponse"]:
        with _told(request):
            response = await self._session.request(
                request.method, request.url, json=request.json, headers=request.headers
            )
        async with response:
            yield response
