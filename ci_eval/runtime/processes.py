"""Child processes: how agents are started.

A child leads a process group of its own and ends together with all that it started.  (A
grandchild that makes itself the leader of another group gets away: only the sweep at the end of
a run in our container, or the runner's own, catches it.)  In our container it runs as another user.
What a child writes is bounded: its lines in length, its
standard error to a beginning and an end, so that a flood neither fills memory nor blocks it.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ci_eval.records.errors import TrialError
from ci_eval.runtime import isolation
from ci_eval.runtime.spawning import spawn

MAX_LINE_BYTES = 16 * 1024 * 1024
"""The longest line that a child may write."""
EXCERPT_BYTES = 8 * 1024
"""How much of the beginning, and how much of the end, of standard error is kept."""
LINGER_S = 5.0
"""How long a child that is over may keep its pipes open, or one that closed them may live: long
enough for a busy machine to tell us of its end, for that says what happened."""
LAST_WORDS_CHARS = 2000
"""How much of standard error a message quotes at most."""

_STDIN, _STDOUT, _STDERR = 0, 1, 2

if sys.platform == "win32":  # pragma: no cover  # not tested there
    _OWN_GROUP: dict[str, Any] = {"creationflags": 0x200}  # CREATE_NEW_PROCESS_GROUP
else:
    _OWN_GROUP: dict[str, Any] = {"start_new_session": True}


@dataclass(frozen=True)
class Launch:
    """How a child is started."""

    argv: tuple[str, ...]
    """The program and its arguments; no shell reads them."""
    env: Mapping[str, str]
    """The whole environment it gets."""
    cwd: Path
    """The folder it starts in."""


class Excerpt:
    """The first and the last bytes of a stream."""

    def __init__(self, limit: int = EXCERPT_BYTES) -> None:
        self._limit = limit
        self._head = b""
        self._tail = b""
        self.size = 0
        """How many bytes it has had so far."""

    def feed(self, data: bytes) -> None:
        """Take what the stream goes on with."""
        self.size += len(data)
        room = self._limit - len(self._head)
        self._head += data[:room]
        self._tail = (self._tail + data[room:][-self._limit :])[-self._limit :]

    def since(self, size: int) -> str:
        """Return what came after the first `size` bytes, or as much of its end as was kept."""
        whole = self._head + self._tail
        kept = whole if len(whole) == self.size else self._tail
        return kept[max(len(kept) - (self.size - size), 0) :].decode(errors="replace")

    @property
    def text(self) -> str:
        """What was kept, with a line that says how much is left out between."""
        left_out = self.size - len(self._head) - len(self._tail)
        gap = f"\n[{left_out} bytes left out]\n".encode() if left_out else b""
        return (self._head + gap + self._tail).decode(errors="replace")


def last_words(written: str, limit: int = LAST_WORDS_CHARS) -> str:
    """Return the end of `written`, on lines of its own; nothing where nothing was."""
    text = written.strip()
    cut = text[-limit:]
    return "\n" + (cut if cut == text else "…" + cut) if text else ""


class _Lines:
    """Cuts a stream into lines."""

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
        """Return what stands behind the last line break."""
        return b"".join(self._parts)


class Child(asyncio.SubprocessProtocol):
    """A child process that is written lines to and that writes lines back.

    `hear` is called with each line of standard output; without it, that is kept as standard error
    is, and the child may close it.  `gone` is called once, when no line
    can follow: the child is over and its output read, or it took too long over one of the two.
    """

    def __init__(self, hear: Callable[[bytes], None] | None, gone: Callable[[], None]) -> None:
        self.stderr = Excerpt()
        """What it wrote to standard error."""
        self.exit_code: int | None = None
        """The exit code; minus the number of the signal that killed it; `None` while it runs."""
        self.fault = ""
        """What it did that got it killed, as a verb phrase; empty where it did nothing."""
        self._hear = hear
        self._gone = gone
        self._lines = _Lines()
        self._outgoing: list[bytes] = []
        self._input_ends = False
        self._open_pipes = {_STDOUT, _STDERR}
        self._exited = asyncio.Event()
        self._closed = asyncio.Event()
        self._over = False
        self._linger: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    async def start(self, launch: Launch) -> None:
        """Start what `launch` says.

        Raises:
            TrialError: it cannot be started.

        """
        argv, env, cwd = launch.argv, dict(launch.env), launch.cwd
        options = {**_OWN_GROUP, **isolation.child_options()}
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
    def last_words(self) -> str:
        """The end of its standard error, on lines of their own; empty where it wrote nothing."""
        return last_words(self.stderr.text)

    def write_line(self, line: str) -> None:
        """Send `line`; nothing happens where nobody is left to read it."""
        if not self._outgoing:
            # What is written in one turn of the loop goes out, and wakes the child, once.
            self._loop.call_soon(self._flush)
        self._outgoing.append(line.encode() + b"\n")

    def end_input(self) -> None:
        """Let it read the end of its input, once all lines are written."""
        self._input_ends = True
        self._loop.call_soon(self._flush)

    def kill(self) -> None:
        """Kill it with all that it started, at once."""
        if self.exit_code is None:
            self._kill_group()

    async def stop(self, *, grace_s: float = 0.0) -> None:
        """End its input, and `grace_s` seconds later its life; return when it is over."""
        try:
            if grace_s and self.exit_code is None:
                self.end_input()
                await _happens_within(grace_s, self._exited)
        finally:
            self.kill()
        await _happens_within(2 * LINGER_S, self._closed)
        if sys.platform != "win32":  # there, asyncio would be disturbed
            self._transport.close()

    def _flush(self) -> None:
        pipe = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(_STDIN))
        if self._outgoing and not pipe.is_closing():
            pipe.write(b"".join(self._outgoing))
        self._outgoing.clear()
        if self._input_ends:
            pipe.close()

    def _kill_group(self) -> None:
        if sys.platform == "win32":  # pragma: no cover  # not tested there
            self._transport.kill()
        else:
            try:
                os.killpg(self._transport.get_pid(), signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                return  # nobody is left, or (macOS) none but the dead

    # --- What asyncio calls -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note how to reach it."""
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take what it wrote."""
        if fd == _STDERR or self._hear is None:
            self.stderr.feed(data)
        elif not self._over:
            try:
                lines = self._lines.feed(data)
            except ValueError as exc:
                self.fault = str(exc)
                self._finish()
                return
            for line in lines:
                self._hear(line)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Note that it closed a pipe."""
        del exc
        self._open_pipes.discard(fd)
        if fd == _STDOUT and self._hear:
            self._begin_to_end()
        elif fd != _STDIN:
            self._settle()

    def process_exited(self) -> None:
        """Note that it is over, and end what it leaves behind."""
        self.exit_code = self._transport.get_returncode()
        # The number still names the group: it is not given away while a member lives, and
        # this is the turn of the loop in which we learned that the leader does not.
        self._kill_group()
        self._exited.set()
        if self._over:
            self._close()
        else:
            self._begin_to_end()

    def _begin_to_end(self) -> None:
        if self._linger is None and not self._over:
            self._linger = self._loop.call_later(LINGER_S, self._finish)
        self._settle()

    def _settle(self) -> None:
        if self.exit_code is not None and not self._open_pipes:
            self._finish()

    def _finish(self) -> None:
        if self._over:
            return
        self._over = True
        if self._linger:
            self._linger.cancel()
        last = self._lines.last()
        if last and self._hear and not self.fault:
            self._hear(last)
        self._gone()
        self.kill()
        if self.exit_code is not None:
            self._close()

    def _close(self) -> None:
        """Close our ends of the pipes, its end being known."""
        self._transport.close()
        self._closed.set()


async def _happens_within(seconds: float, event: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
