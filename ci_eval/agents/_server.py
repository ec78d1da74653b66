"""A server that an agent is: where it is and, where we start it for a run, its life."""

import asyncio
import os
import re
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count, islice
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field

from ci_eval.records.errors import FailureKind, TrialError
from ci_eval.records.model import Record
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import Declared, agent_environment, find_program, refused, unset
from ci_eval.runtime.http import Net, Request, StatusError
from ci_eval.runtime.paths import PathText
from ci_eval.runtime.processes import Child, Launch, last_words

PORT = "{port}"
"""What stands for the port in a command, in the environment and in an address."""
_PORTS = range(20_000, 30_000)
"""Where free ports are looked for.  Systems hand out others to whoever wants any (Linux from 32768,
others from 49152), so hardly anybody takes one before the server does."""
_TRIES = 3
"""How many ports are tried where others were quicker."""
_TAKEN = re.compile("(?i)address already in use|EADDRINUSE|only one usage of each socket")
"""How servers say that others were quicker."""
_ASK_EVERY_S = 0.1
_ASK_FOR_S = 5.0
"""How often a server is asked whether it is ready, and how long it may take to say so."""
_DYING_S = 1.5
"""How long after a connection broke it may turn out that the server had died."""
_WORDS_S = 0.2
"""How long after it answered with an error a server may take to write why."""


def _url_path(text: str) -> str:
    if not text.startswith("/") or any(map(str.isspace, text)):
        raise ValueError(f"expected a path such as '/health', found {text!r}")
    return text


UrlPath = Annotated[str, AfterValidator(_url_path)]
"""A path on a server; it begins with a slash."""


class Startable(Record):
    """A server that can be started for the run, and is stopped at its end."""

    model_config: ClassVar[ConfigDict] = ConfigDict(populate_by_name=True)

    launched: tuple[str, ...] | None = Field(default=None, alias="start", min_length=1)
    """The program that is started for the run, and its arguments, in which `{port}` is a free
    port; no shell reads them. It is stopped at the end with all that it started. Left out, the
    server runs already."""
    ready: UrlPath | None = None
    """The path that answers when the started server is ready, with any status below 500; left out,
    it is ready when it can be connected to."""
    start_timeout_s: float = Field(default=60.0, gt=0)
    """How long it may take to be ready, in seconds."""
    env: Declared = Field(default_factory=dict)
    """Environment variables that the started server gets beside the usual ones: a list of names or
    patterns to pass on, or names with values, in which `{port}` is the port, too."""
    cwd: PathText = "."
    """The folder it is started in, from the folder of the configuration."""

    def missing(self, env: Mapping[str, str]) -> str:
        """Say which variables the started server is to get are not set."""
        return unset(self.env, env)

    def wrong_start(self, address: str | None, context: RunContext) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with how the server at `address` is started."""
        if self.launched is None:
            if address is None or PORT in address:
                message = f"needs an address without `{PORT}`, or `start`, which starts the server"
                yield "start", message
            return
        for message in refused(self.env):
            yield "env", message
        if not find_program(self.launched[0], root=context.root, env=self._environment(context)):
            yield "start", f"there is no program {self.launched[0]!r}"
        told = (*self.launched, *(value or "" for value in self.env.values()))
        if PORT in (address or PORT) and not any(PORT in each for each in told):
            message = f"does not tell the server its port; say it with `{PORT}`, here or in `env`"
            yield "start", message
        if not (context.root / self.cwd).is_dir():
            yield "cwd", f"there is no folder {self.cwd!r}"

    @asynccontextmanager
    async def served(
        self, address: str | None, context: RunContext, net: Net
    ) -> AsyncIterator["Server"]:
        """Have the server at `address`; one that is started is stopped in the end."""
        server = Server(self, address or f"http://127.0.0.1:{PORT}", context, net)
        server.begin()
        try:
            yield server
        finally:
            await server.stop()

    def launch(self, port: int, context: RunContext) -> Launch:
        """Return how the server is started on `port`."""
        name, *arguments = self.launched or ("",)
        env = self._environment(context)
        given = {key: value for key, value in self.env.items() if value is not None}
        # A program that vanished after the check fails in the words of the system.
        program = find_program(name, root=context.root, env=env) or name
        return Launch(
            argv=(program, *(each.replace(PORT, str(port)) for each in arguments)),
            env=env | {key: value.replace(PORT, str(port)) for key, value in given.items()},
            cwd=context.root / self.cwd,
        )

    def _environment(self, context: RunContext) -> dict[str, str]:
        return agent_environment(context.env, self.env)


class Server:
    """A server; where we start it, it is started again once it has ended."""

    def __init__(self, how: Startable, address: str, context: RunContext, net: Net) -> None:
        self._how = how
        self._address = address
        self._world = context
        self._net = net
        self._child: Child | None = None
        self._starting: asyncio.Task[str] | None = None
        self._gone = asyncio.Event()

    @property
    def output(self) -> str:
        """What it wrote since it was started: the beginning and the end."""
        return self._child.stderr.text if self._child else ""

    def begin(self) -> None:
        """Start it, and do not wait until it is ready."""
        if self._how.launched is not None:
            self._starting = asyncio.create_task(self._start())

    async def address(self) -> str:
        """Return where it is, without a slash at the end, once it is ready.

        Raises:
            TrialError: it never is.

        """
        if self._starting is None:
            return self._address.rstrip("/")
        if self._starting.done() and not self._starting.exception() and self._is_over:
            self.begin()
        # Who is cancelled while it starts does not spoil it for the others.
        return await asyncio.shield(self._starting)

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Tell of its end, where that is why it could not be reached, and of what it wrote."""
        child = self._child
        before = child.stderr.size if child else 0
        try:
            yield
        except TrialError as exc:
            if exc.kind not in ("connection", "raised") or self._child is None:
                raise
            kind: FailureKind = exc.kind
            message = str(exc)
            if exc.kind == "raised" or isinstance(exc, StatusError):
                await asyncio.sleep(_WORDS_S)
            elif await self._ends():
                kind, message = "crash", f"{exc}; the server itself {self._child.ending}"
            written = self._child.stderr.since(before if self._child is child else 0)
            raise TrialError(kind, message + last_words(written), seen=exc.seen) from exc

    async def stop(self) -> None:
        """End it, with all that it started."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait([self._starting])
            if not self._starting.cancelled():
                self._starting.exception()  # told already, or nobody is left to be told
        if self._child is not None:
            await self._child.stop()

    @property
    def _is_over(self) -> bool:
        return self._child is not None and self._child.exit_code is not None

    async def _ends(self) -> bool:
        """Say whether it is over, or is about to be."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_DYING_S):
                await self._gone.wait()
        return self._is_over

    async def _start(self) -> str:
        for _ in range(_TRIES - 1):
            with suppress(_TakenError):
                return await self._start_once()
        return await self._start_once()

    async def _start_once(self) -> str:
        port = _port(self._address)
        self._gone.clear()
        late = asyncio.get_running_loop().time() + self._how.start_timeout_s
        self._child = child = Child(None, self._gone.set)
        await child.start(self._how.launch(port, self._world))
        address = self._address.replace(PORT, str(port)).rstrip("/")
        await self._until_ready(address, port, child, late)
        return address

    async def _until_ready(self, address: str, port: int, child: Child, late: float) -> None:
        while True:
            why = await self._hindrance(address, port)
            if child.exit_code is not None:
                await child.stop()  # so that all that it wrote has been read
                message = f"the server {child.ending} before it was ready{child.last_words}"
                is_taken = PORT in self._address and _TAKEN.search(child.stderr.text)
                raise (_TakenError if is_taken else TrialError)("start", message)
            if not why:
                return
            if asyncio.get_running_loop().time() > late:
                await child.stop()
                message = f"the server was not ready after {self._how.start_timeout_s:g} s: {why}"
                raise TrialError("start", f"{message}{child.last_words}")
            await asyncio.sleep(_ASK_EVERY_S)

    async def _hindrance(self, address: str, port: int) -> str:
        """Say why it is not ready; nothing where it is."""
        if self._how.ready is None:
            host = urlsplit(address).hostname or ""
            return "" if await _listens(host, port) else f"nobody listens on port {port}"
        try:
            async with asyncio.timeout(_ASK_FOR_S):
                response = await self._net.send(Request("GET", address + self._how.ready))
        except TimeoutError:
            return f"{self._how.ready} did not answer within {_ASK_FOR_S:g} s"
        except TrialError as exc:
            return str(exc)
        return f"{self._how.ready} answered {response.shown}" if response.status >= 500 else ""


class _TakenError(TrialError):
    """Another took the port before the server did."""


_places = count(os.getpid() * 37)  # so processes that look at the same time begin elsewhere


def _port(address: str) -> int:
    """Return the port that is meant by `address`, which is a free one.

    Raises:
        TrialError: it is taken.

    """
    if PORT in address:
        return _free_port()
    parts = urlsplit(address)
    wanted = parts.port if parts.port is not None else {"https": 443}.get(parts.scheme, 80)
    try:
        return _bound(wanted)
    except OSError as exc:
        message = f"the server cannot be started on port {wanted}: {exc.strerror}"
        raise TrialError("start", f"{message}; with `{PORT}` it gets a free one") from exc


def _free_port() -> int:
    for place in islice(_places, len(_PORTS)):
        with suppress(OSError):
            return _bound(_PORTS[place % len(_PORTS)])
    return _bound(0)


def _bound(port: int) -> int:
    """Return the port, which can be bound; any free one for 0."""
    with socket.socket() as found:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(("127.0.0.1", port))
        free: int = found.getsockname()[1]
        return free


async def _listens(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(_ASK_FOR_S):
            _, writer = await asyncio.open_connection(host, port)
    except OSError:  # a timeout is one, too
        return False
    writer.close()
    return True
