"""Starting child processes without blocking the event loop at their end.

asyncio waits for an ended child until the kernel provides its exit code.  A process that traces
the child can delay that forever, and any agent can start such a process.  Here, polling a child
never blocks.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

POLL_S = 0.02
"""Polling interval in seconds, if the kernel does not notify us of a child's end or its exit code
is held back."""
UNKNOWN_CODE = 255
"""The exit code of a child whose own is lost because our parent process ignores SIGCHLD."""


async def spawn(
    protocol: asyncio.SubprocessProtocol,
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    **options: Any,
) -> None:
    """Start the program `argv` and connect its three streams with `protocol`.

    `options` are those of `subprocess.Popen`.  For POSIX only; elsewhere, use asyncio.

    Raises:
        OSError: it cannot be started.

    """
    spawned = _Spawned(protocol, argv, {"env": env, "cwd": cwd, **options})
    protocol.connection_made(spawned)
    try:
        await spawned.connect()
    except BaseException:
        spawned.kill()
        spawned.close()
        raise
    finally:
        spawned.watch()


class _Stream(asyncio.Protocol):
    """One of the three standard streams."""

    def __init__(self, number: int, protocol: asyncio.SubprocessProtocol) -> None:
        self._number = number
        self._protocol = protocol

    def data_received(self, data: bytes) -> None:
        self._protocol.pipe_data_received(self._number, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._protocol.pipe_connection_lost(self._number, exc)


class _Spawned(asyncio.SubprocessTransport):
    """Transport of a started child, for asyncio's protocols."""

    def __init__(
        self, protocol: asyncio.SubprocessProtocol, argv: Sequence[str], options: dict[str, Any]
    ) -> None:
        super().__init__()
        pipe = subprocess.PIPE
        self._popen = subprocess.Popen(  # noqa: S603  # the configuration names the program
            argv, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, **options
        )
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._pipes: dict[int, asyncio.BaseTransport] = {}
        self._pidfd: int | None = None
        """A descriptor that becomes readable when the child ends."""

    async def connect(self) -> None:
        """Connect the streams with the protocol."""
        streams = (self._popen.stdin, self._popen.stdout, self._popen.stderr)
        for number, stream in enumerate(streams):
            connect = self._loop.connect_read_pipe if number else self._loop.connect_write_pipe
            made, _ = await connect(partial(_Stream, number, self._protocol), stream)
            self._pipes[number] = cast("asyncio.BaseTransport", made)

    def watch(self) -> None:
        """Notify the protocol when the child has ended."""
        if sys.platform == "linux":
            with suppress(OSError):  # a sandbox may lack it
                self._pidfd = os.pidfd_open(self._popen.pid)
                self._loop.add_reader(self._pidfd, self._poll)
                return
        self._poll()

    def _poll(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        self._popen.returncode = _exit_code(self._popen.pid)
        if self._popen.returncode is None:
            self._loop.call_later(POLL_S, self._poll)
        else:
            self._protocol.process_exited()

    # --- Methods for protocols --------------------------------------------------------------------

    def get_pid(self) -> int:
        return self._popen.pid

    def get_returncode(self) -> int | None:
        return self._popen.returncode

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport | None:
        return self._pipes.get(fd)

    def kill(self) -> None:
        """Kill it, unless it has ended, as its process id may then be reused."""
        if self._popen.returncode is None:
            self._popen.kill()

    def close(self) -> None:
        """Close our ends of the streams; the child is watched until it has ended."""
        for pipe in self._pipes.values():
            pipe.close()


def _exit_code(pid: int) -> int | None:
    """Return the exit code of a child; `None` while it runs or its code is held back."""
    if sys.platform == "win32":
        return None
    try:
        found, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return UNKNOWN_CODE
    return os.waitstatus_to_exitcode(status) if found else None
