"""Child processes, which run agents.

A child leads its own process group and is killed together with its children.  (A grandchild that
starts another group escapes; only the cleanup at the end of a run in our container, or the
runner's own, catches it.)  In our container, a child runs as another user.  Its output is limited:
lines in their length, and standard error to its beginning and end, so that a flood neither fills
memory nor blocks the child.
"""

import asyncio
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

from ci_eval.records.errors import TrialError
from ci_eval.runtime import isolation
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import Declared, agent_environment, find_agent_program
from ci_eval.runtime.spawning import spawn

MAX_LINE_BYTES = 16 * 1024 * 1024
"""The longest line of a child's output."""
EXCERPT_BYTES = 8 * 1024
"""How many bytes are kept of the beginning of standard error, and also of its end."""
LINGER_S = 5.0
"""How long pipes may stay open after a child has ended, or a child may live after closing them:
long enough to learn the exit code on a busy machine, for the error message."""
TAIL_CHARS = 2000
"""How much of standard error a message quotes, in characters."""

_STDIN, _STDOUT, _STDERR = 0, 1, 2

if sys.platform == "win32":  # pragma: no cover  # not tested there
    _OWN_GROUP: dict[str, Any] = {"creationflags": 0x200}  # CREATE_NEW_PROCESS_GROUP
else:
    _OWN_GROUP: dict[str, Any] = {"start_new_session": True}


@dataclass(frozen=True)
class Launch:
    """Program, environment and working directory of a child."""

    argv: tuple[str, ...]
    """The program and its arguments, without a shell."""
    env: Mapping[str, str]
    """Its complete environment."""
    cwd: Path
    """Its working directory."""
    account: isolation.Account | None
    """The user that it runs as; `None` if it is our own."""

    @classmethod
    def of(cls, argv: Sequence[str], context: RunContext, env: Declared, cwd: str = ".") -> Self:
        """Return the launch of an agent's program, in a folder relative to the configuration.

        Starting a program that does not exist fails with the system's error.
        """
        program = find_agent_program(argv[0], context, env) or argv[0]
        whole = agent_environment(context, env)
        return cls((program, *argv[1:]), whole, context.root / cwd, context.agent_account)


class Excerpt:
    """The first and the last bytes of a stream."""

    def __init__(self, limit: int = EXCERPT_BYTES) -> None:
        self._limit = limit
        self._head = b""
        self._tail = b""
        self.size = 0
        """The bytes received so far."""

    def feed(self, data: bytes) -> None:
        """Add data of the stream."""
        self.size += len(data)
        room = self._limit - len(self._head)
        self._head += data[:room]
        self._tail = (self._tail + data[room:][-self._limit :])[-self._limit :]

    def since(self, size: int) -> str:
        """Return the data after the first `size` bytes, as far as its end was kept."""
        whole = self._head + self._tail
        kept = whole if len(whole) == self.size else self._tail
        return kept[max(len(kept) - (self.size - size), 0) :].decode(errors="replace")

    @property
    def text(self) -> str:
        """The kept text, with a line that says how many bytes are left out."""
        left_out = self.size - len(self._head) - len(self._tail)
        gap = f"\n[{left_out} bytes left out]\n".encode() if left_out else b""
        return (self._head + gap + self._tail).decode(errors="replace")


def output_tail(written: str) -> str:
    """Return the end of `written`, beginning on a new line; empty if `written` is."""
    text = written.strip()
    cut = text[-TAIL_CHARS:]
    return "\n" + (cut if cut == text else "…" + cut) if text else ""


class _Lines:
    """Splits a stream into lines."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` completes.

        Raises:
            ValueError: a line is too long.

        """
        *ended, rest = data.split(b"\n")
        if ended:
            ended[0] = b"".join((*self._parts, ended[0]))
            self._parts.clear()
            self._size = 0
        self._parts.append(rest)
        self._size += len(rest)
        if max((self._size, *map(len, ended))) > MAX_LINE_BYTES:
            raise ValueError(f"wrote a line of more than {MAX_LINE_BYTES >> 20} MiB")
        return ended

    def last(self) -> bytes:
        """Return the text after the last line break."""
        return b"".join(self._parts)


class Child(asyncio.SubprocessProtocol):
    """A child process that exchanges lines with us.

    `on_line` is called with each line of standard output; without it, standard output is kept like
    standard error, and the child may close it.  `on_end` is called once, when no line can follow:
    when the child has ended and its output was read, or one of the two took too long.
    """

    def __init__(self, on_line: Callable[[bytes], None] | None, on_end: Callable[[], None]) -> None:
        self.stderr = Excerpt()
        """Its standard error."""
        self.exit_code: int | None = None
        """The exit code, or minus the number of the signal that killed it; `None` while it runs."""
        self.fault = ""
        """Why we killed it, as a verb phrase; empty if we did not."""
        self._on_line = on_line
        self._on_end = on_end
        self._lines = _Lines()
        self._outgoing: list[bytes] = []
        self._input_ends = False
        self._open_pipes = {_STDOUT, _STDERR}
        self._exited = asyncio.Event()
        self._closed = asyncio.Event()
        self._ended = False
        self._linger: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    async def start(self, launch: Launch, *, reads_input: bool = True) -> None:
        """Start the program of `launch`; if it does not read its input, it is killed when we end.

        Raises:
            TrialError: it cannot be started.

        """
        argv, env, cwd = launch.argv, dict(launch.env), launch.cwd
        options = {**_OWN_GROUP, **isolation.child_options(launch.account)}
        if not reads_input:
            options |= isolation.ending_with_us()
        try:
            if sys.platform == "win32":  # pragma: no cover  # not tested there
                await self._loop.subprocess_exec(lambda: self, *argv, env=env, cwd=cwd, **options)
            else:
                await spawn(self, argv, env=env, cwd=cwd, **options)
        except OSError as exc:
            raise TrialError("start", f"cannot start {argv[0]!r}: {exc.strerror}") from exc

    @property
    def ending(self) -> str:
        """How it ended, as a verb phrase, such as `exited with code 7`."""
        if self.fault:
            return self.fault
        if self.exit_code is None:
            return "closed its standard output"
        if self.exit_code >= 0:
            return f"exited with code {self.exit_code}"
        try:
            name = signal.Signals(-self.exit_code).name
        except ValueError:
            name = f"signal {-self.exit_code}"
        hint = " (out of memory?)" if name == "SIGKILL" else ""
        return f"was killed by {name}{hint}"

    @property
    def stderr_tail(self) -> str:
        """The end of its standard error, beginning on a new line; empty if it wrote nothing."""
        return output_tail(self.stderr.text)

    def write_line(self, line: str) -> None:
        """Send `line`, ignored if the child no longer reads."""
        if not self._outgoing:
            # Lines written in one iteration of the event loop wake the child only once.
            self._loop.call_soon(self._flush)
        self._outgoing.append(line.encode() + b"\n")

    def end_input(self) -> None:
        """Close its input once all lines are written."""
        self._input_ends = True
        self._loop.call_soon(self._flush)

    def kill(self) -> None:
        """Kill it and its children at once."""
        if self.exit_code is None:
            self._kill_group()

    async def stop(self, *, grace_s: float = 0.0) -> None:
        """Close its input, kill it after `grace_s` seconds, and return once it has ended."""
        try:
            if grace_s and self.exit_code is None:
                self.end_input()
                await wait_at_most(grace_s, self._exited)
        finally:
            self.kill()
        await wait_at_most(2 * LINGER_S, self._closed)
        if sys.platform != "win32":  # it would disturb asyncio on Windows
            self._transport.close()

    def _flush(self) -> None:
        pipe = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(_STDIN))
        if self._outgoing and not pipe.is_closing():
            pipe.write(b"".join(self._outgoing))
        self._outgoing.clear()
        if self._input_ends:
            pipe.close()

    def _kill_group(self) -> None:
        isolation.kill_group(self._transport.get_pid(), self._transport.kill)

    # --- What asyncio calls -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Handle its output."""
        if fd == _STDERR or self._on_line is None:
            self.stderr.feed(data)
        elif not self._ended:
            try:
                lines = self._lines.feed(data)
            except ValueError as exc:
                self.fault = str(exc)
                self._finish()
                return
            for line in lines:
                self._on_line(line)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Handle a closed pipe."""
        del exc
        self._open_pipes.discard(fd)
        if fd == _STDOUT and self._on_line:
            self._await_end()
        elif fd != _STDIN:
            self._finish_if_ended()

    def process_exited(self) -> None:
        """Handle its end, and kill its children."""
        self.exit_code = self._transport.get_returncode()
        # The process group id is still valid: it is not reused while a member lives, and we only
        # just learned, in this iteration of the event loop, that the leader has ended.
        self._kill_group()
        self._exited.set()
        if self._ended:
            self._close()
        else:
            self._await_end()

    def _await_end(self) -> None:
        if self._linger is None and not self._ended:
            self._linger = self._loop.call_later(LINGER_S, self._finish)
        self._finish_if_ended()

    def _finish_if_ended(self) -> None:
        if self.exit_code is not None and not self._open_pipes:
            self._finish()

    def _finish(self) -> None:
        if self._ended:
            return
        self._ended = True
        if self._linger:
            self._linger.cancel()
        last = self._lines.last()
        if last and self._on_line and not self.fault:
            self._on_line(last)
        self._on_end()
        self.kill()
        if self.exit_code is not None:
            self._close()

    def _close(self) -> None:
        """Close our ends of the pipes, after the child has ended."""
        self._transport.close()
        self._closed.set()


async def wait_at_most(seconds: float, event: asyncio.Event) -> None:
    """Wait for `event`, but not longer than that."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
