"""Servers of agents: their addresses, and starting and stopping them for a run."""

import asyncio
import os
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from itertools import count, islice
from typing import Annotated, ClassVar, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from ci_eval.agents._agent_address import Faults, NetworkAgent, variables_in, wrong_address
from ci_eval.agents._server_turns import Turns
from ci_eval.llm.gateway.gateway_clients import CallingModels, Models, behind_gateway
from ci_eval.llm.gateway.providers import KEYS
from ci_eval.plugins.points import Session
from ci_eval.records.cases import Record
from ci_eval.records.errors import FailureKind, TrialError
from ci_eval.records.trials import Trial
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import Declared, refused, wrong_program
from ci_eval.runtime.http import Net, Request, StatusError, connecting
from ci_eval.runtime.path_checks import PathText
from ci_eval.runtime.processes import Child, Launch, output_tail, wait_at_most

PORT = "{port}"
"""The placeholder for the port in a command, an environment variable or an address."""
_PORTS = range(20_000, 30_000)
"""The range of ports to choose from.  Systems assign ephemeral ports from other ranges (Linux from
32768, others from 49152), so another process rarely takes one before the server does."""
_MAX_PORTS = 3
"""How many ports to try if another process takes one first."""
_TAKEN = re.compile("(?i)address already in use|EADDRINUSE|only one usage of each socket")
"""Servers' error messages for a port in use."""
_POLL_S = 0.1
_READY_TIMEOUT_S = 5.0
"""The interval between readiness checks, and the timeout of one, in seconds."""
_EXIT_WAIT_S = 1.5
"""How long to wait, after a lost connection, for the exit of the server."""
_LOG_WAIT_S = 0.2
"""How long to wait, after an error response, for the server's log."""


def _url_path(text: str) -> str:
    if not text.startswith("/") or any(map(str.isspace, text)):
        raise ValueError(f"expected a path such as '/health', found {text!r}")
    return text


UrlPath = Annotated[str, AfterValidator(_url_path)]
"""A path on a server; it begins with a slash."""


class _Startable(Record):
    launched: tuple[str, ...] | None = Field(default=None, alias="start", min_length=1)
    """The program to start for the run, and its arguments, run without a shell; `{port}` is
    replaced by a free port. It is stopped at the end with its child processes. Default: the
    server is already running."""
    ready: UrlPath | None = None
    """A path that returns a status below 500 once the started server is ready; default: the server
    is ready when it accepts connections."""
    start_timeout_s: float = Field(default=60.0, gt=0)
    """Seconds until the started server must be ready."""
    env: Declared = Field(default_factory=dict)
    """Additional environment variables of the started server: a list of names or patterns to pass
    on, or names with values, in which `{port}` is replaced, too."""
    cwd: PathText = "."
    """Working directory of the started server, relative to the folder of the configuration."""


class ServedAgent(CallingModels, NetworkAgent, _Startable):
    """An agent on a server that can be started for the run, and is then stopped at its end.

    With `models`, which needs `start`, the server holds one conversation at a time.
    """

    base: str | None = Field(default=None, min_length=1)
    """The address of a running server with the code of the base branch, such as production. In
    doubt, both servers are tested in the same job. Only without `start`: a server that is started
    for the run is also started from the code of the merge base."""

    type_name: ClassVar[str]

    def of_base(self) -> Self | None:
        """Return the agent on the server that is started from the merge base, or at `base`.

        Servers on the same fixed port cannot both be started.
        """
        if self.launched is not None:
            return self if PORT in (getattr(self, self.type_name) or PORT) else None
        return self.model_copy(update={self.type_name: self.base}) if self.base else None

    def check(self, context: RunContext) -> Faults:
        """Yield the errors in the address, the headers and the options to start the server."""
        yield from self.wrong_access(getattr(self, self.type_name), context)

    def wrong_access(self, address: str | None, context: RunContext) -> Faults:
        """Yield the errors in the `address`, the headers and the server's options."""
        if address is not None:
            yield from wrong_address(self.type_name, address.replace(PORT, "1"), context)
        if self.base is not None:
            yield from wrong_address("base", self.base, context)
            if self.launched is not None:
                yield "base", "is for a server that is already running, not together with `start`"
        yield from self.wrong_headers(context)
        yield from self.wrong_gateway(address, context)
        yield from self.wrong_start(address, context)

    def wrong_gateway(self, address: str | None, context: RunContext) -> Faults:
        """Yield the errors in the options for calling models."""
        if self.models is None:
            return
        yield from self.wrong_models(context)
        if self.launched is None:
            message = "needs `start`: a server that is already running calls its models directly;"
            yield "models", f"{message} only a process that ci-eval starts uses the gateway"
        for name in variables_in(address or "", *self.headers.values()):
            if name in KEYS:
                hidden = f"hides {name!r} from the agent, so its address and `headers` cannot"
                yield "models", f"{hidden} contain this key"

    def wrong_start(self, address: str | None, context: RunContext) -> Faults:
        """Yield the errors in the options that start the server at `address`."""
        if self.launched is None:
            if address is None or PORT in address:
                message = f"needs an address without `{PORT}`, or `start` to start the server"
                yield "start", message
            return
        for message in refused(self.env):
            yield "env", message
        for message in wrong_program(self.launched[0], context, self.env):
            yield "start", message
        texts = (*self.launched, *(value or "" for value in self.env.values()))
        if PORT in (address or PORT) and not any(PORT in each for each in texts):
            message = f"does not pass the port to the server; use `{PORT}` here or in `env`"
            yield "start", message
        if not (context.root / self.cwd).is_dir():
            yield "cwd", f"there is no folder {self.cwd!r}"

    @asynccontextmanager
    async def served(self, address: str | None, context: RunContext) -> AsyncIterator["Server"]:
        """Provide the server at `address`; if it was started, stop it at the end."""
        async with (
            behind_gateway(self, context) as (agent, inner, models),
            connecting(context.env) as net,
        ):
            server = Server(agent, address or f"http://127.0.0.1:{PORT}", inner, net, models)
            server.begin()
            try:
                yield server
            finally:
                await server.stop()

    def launch(self, port: int, context: RunContext) -> Launch:
        """Return the launch of the server on `port`."""
        name, *arguments = self.launched or ("",)
        argv = (name, *(each.replace(PORT, str(port)) for each in arguments))
        env = {key: value and value.replace(PORT, str(port)) for key, value in self.env.items()}
        return Launch.of(argv, context, env, self.cwd)


class Server:
    """A server; one that we started is restarted if it ends."""

    def __init__(
        self, options: ServedAgent, address: str, context: RunContext, net: Net, models: Models
    ) -> None:
        self.net = net
        self.headers = options.filled_headers(context.env)
        """The headers of every request."""
        self._options = options
        self._address = address
        self._context = context
        self._child: Child | None = None
        self._starting: asyncio.Task[str] | None = None
        self._exited = asyncio.Event()
        self._models = models
        self._variables: Mapping[str, str] = {}
        """The environment variables that direct the process to the gateway."""
        self._turns = Turns(self._stop_process) if models.gateway else None
        self._numbers = count(1)

    @property
    def output(self) -> str:
        """The beginning and the end of its output."""
        return self._child.stderr.text if self._child else ""

    def begin(self) -> None:
        """Start it without waiting until it is ready."""
        if self._options.launched is not None:
            self._starting = asyncio.create_task(self._start())

    async def address(self) -> str:
        """Wait until it is ready, and return its address without a trailing slash.

        Raises:
            TrialError: it does not become ready.

        """
        if self._starting is None:
            return self._address.rstrip("/")
        if self._starting.done() and not self._starting.exception() and self._has_ended:
            self.begin()
        # Cancelling one trial must not cancel the start for others.
        return await asyncio.shield(self._starting)

    async def hold(self, trial: Trial, begin: Callable[[], Awaitable[Session]]) -> Session:
        """Begin a conversation; behind the gateway, only once the previous one is over."""
        if self._turns is None:
            return await begin()
        inner = await self._turns.take(begin)
        return self._models.session(inner, trial, self._variables, next(self._numbers))

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Add the server's output to errors, and its exit if that caused a connection error."""
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
                await asyncio.sleep(_LOG_WAIT_S)
            elif await self._ends():
                kind, message = "crash", f"{exc}; the server itself {self._child.ending}"
            written = self._child.stderr.since(before if self._child is child else 0)
            raise TrialError(kind, message + output_tail(written), seen=exc.seen) from exc

    async def stop(self) -> None:
        """Stop it and its child processes."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait([self._starting])
            if not self._starting.cancelled():
                self._starting.exception()  # reported already, or no longer of interest
        await self._stop_process()

    async def _stop_process(self) -> None:
        if self._child is not None:
            await self._child.stop()
        for port in [port for port, server in _fixed.items() if server is self]:
            del _fixed[port]

    @property
    def _has_ended(self) -> bool:
        return self._child is not None and self._child.exit_code is not None

    async def _ends(self) -> bool:
        """Return True if it has ended or ends shortly."""
        await wait_at_most(_EXIT_WAIT_S, self._exited)
        return self._has_ended

    async def _start(self) -> str:
        for _ in range(_MAX_PORTS - 1):
            with suppress(_TakenError):
                return await self._start_once()
        return await self._start_once()

    async def _start_once(self) -> str:
        port = self._claimed_port()
        self._exited.clear()
        deadline = asyncio.get_running_loop().time() + self._options.start_timeout_s
        self._child = child = Child(None, self._exited.set)
        self._variables = self._models.variables()
        launch = self._options.launch(port, self._context)
        launch = replace(launch, env={**launch.env, **self._variables})
        await child.start(launch, reads_input=False)
        address = self._address.replace(PORT, str(port)).rstrip("/")
        await self._until_ready(address, port, child, deadline)
        return address

    def _claimed_port(self) -> int:
        """Return the port to start it on, which no other server of the run may then use.

        Raises:
            TrialError: it is in use.

        """
        port = _port(self._address)
        if PORT not in self._address and _fixed.setdefault(port, self) is not self:
            message = f"another server of this run is started on port {port}, too"
            raise TrialError("start", f"{message}; use `{PORT}` for a free port")
        return port

    async def _until_ready(self, address: str, port: int, child: Child, deadline: float) -> None:
        while True:
            why = await self._not_ready_reason(address, port)
            if child.exit_code is not None:
                await child.stop()  # so that all output has been read
                message = f"the server {child.ending} before it was ready{child.stderr_tail}"
                is_taken = PORT in self._address and _TAKEN.search(child.stderr.text)
                raise (_TakenError if is_taken else TrialError)("start", message)
            if not why:
                return
            if asyncio.get_running_loop().time() > deadline:
                await child.stop()
                limit_s = self._options.start_timeout_s
                message = f"the server was not ready after {limit_s:g} s: {why}"
                raise TrialError("start", f"{message}{child.stderr_tail}")
            await asyncio.sleep(_POLL_S)

    async def _not_ready_reason(self, address: str, port: int) -> str:
        """Return why it is not ready; empty if it is."""
        if self._options.ready is None:
            host = urlsplit(address).hostname or ""
            return "" if await _listens(host, port) else f"nothing listens on port {port}"
        try:
            async with asyncio.timeout(_READY_TIMEOUT_S):
                response = await self.net.send(Request("GET", address + self._options.ready))
        except TimeoutError:
            return f"{self._options.ready} did not answer within {_READY_TIMEOUT_S:g} s"
        except TrialError as exc:
            return str(exc)
        return f"{self._options.ready} answered {response.shown}" if response.status >= 500 else ""


class _TakenError(TrialError):
    """Another process took the port before the server did."""


_fixed: dict[int, Server] = {}
"""The servers on fixed ports, by port.  A second one would take the first one for itself."""
_offsets = count(os.getpid() * 37)  # so that concurrent processes begin at different ports


def _port(address: str) -> int:
    """Return the port of `address`, having checked that it is free.

    Raises:
        TrialError: it is in use.

    """
    if PORT in address:
        return _free_port()
    parts = urlsplit(address)
    wanted = parts.port if parts.port is not None else {"https": 443}.get(parts.scheme, 80)
    try:
        return _bound(wanted)
    except OSError as exc:
        message = f"the server cannot be started on port {wanted}: {exc.strerror}"
        raise TrialError("start", f"{message}; use `{PORT}` for a free port") from exc


def _free_port() -> int:
    for offset in islice(_offsets, len(_PORTS)):
        with suppress(OSError):
            return _bound(_PORTS[offset % len(_PORTS)])
    return _bound(0)


def _bound(port: int) -> int:
    """Check that the port can be bound, and return it; for 0, return any free port."""
    with socket.socket() as found:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(("127.0.0.1", port))
        free: int = found.getsockname()[1]
        return free


async def _listens(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(_READY_TIMEOUT_S):
            _, writer = await asyncio.open_connection(host, port)
    except OSError:  # a timeout is one, too
        return False
    writer.close()
    return True
