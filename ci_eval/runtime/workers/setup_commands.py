"""Setup commands (`setup:`), which run once before an agent is started."""

import asyncio
import json
import os
import shlex
import sys
import time
from asyncio import AbstractEventLoop, Lock, Task
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from socket import gethostname
from typing import Annotated, Any
from weakref import WeakKeyDictionary

from pydantic import BeforeValidator, Field

from ci_eval.records.errors import TrialError
from ci_eval.runtime import isolation, workspace
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import Declared, find_agent_program
from ci_eval.runtime.processes import Child, Launch
from ci_eval.text.sanitize import one_line

TIMEOUT_S = 1800.0
"""Timeout of all commands together."""
SHOWN_CHARS = 200
"""How many characters of a command are shown."""
NOTES = Path(workspace.OURS, "setup")
"""Where completed setups are recorded, relative to the folder of the configuration."""
DEPENDENCY_FILES = (
    *("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock"),
    *("requirements*.txt", "pyproject.toml", "setup.py", "setup.cfg"),
)
"""The files that name the dependencies to install."""
MAX_READ = 16 * 1024 * 1024
"""The largest such file that is read, in bytes; a larger one is compared by size and time."""
_POLL_S = 0.1
"""Interval of checking whether another process has finished the same setup, in seconds."""
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)  # opening a pipe would wait for a writer


def _split(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError as exc:
        raise ValueError(f"is not a valid shell command line: {exc}") from None


Command = Annotated[
    tuple[str, ...],
    Field(min_length=1),
    BeforeValidator(_split, json_schema_input_type=str | list[str]),
]
"""A program and its arguments."""


@dataclass
class _Setups:
    """The setups of one run; each is run once, one at a time."""

    tasks: dict[str, Task[None]] = field(default_factory=dict)
    users: Counter[str] = field(default_factory=Counter)
    """The number of agents that may need each setup."""
    lock: Lock = field(default_factory=Lock)


_setups: WeakKeyDictionary[AbstractEventLoop, _Setups] = WeakKeyDictionary()
"""By event loop; each run has one."""


@dataclass(frozen=True)
class Setup:
    """The setup of an agent, possibly shared with others."""

    commands: tuple[tuple[str, ...], ...]
    interpreter: str | None
    """The agent's interpreter, as the configuration names it."""
    declared: Declared
    """The agent's additional environment variables."""
    context: RunContext

    @asynccontextmanager
    async def in_use(self) -> AsyncIterator[None]:
        """Keep the setup running until all agents that may need it have left this context."""
        setups, name = self._setups, self._name
        setups.users[name] += 1
        try:
            yield
        finally:
            setups.users[name] -= 1
            if not setups.users[name] and name in setups.tasks and not setups.tasks[name].done():
                # Stop a running child here: at its own end, the event loop would cancel asyncio's
                # task for the child, and then wait forever.
                task = setups.tasks.pop(name)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def done(self) -> None:
        """Wait until the setup is done, and start it if necessary.

        Raises:
            TrialError: it failed, for this agent and all that share it.

        """
        setups = self._setups
        if self._name not in setups.tasks:
            setups.tasks[self._name] = asyncio.create_task(self._once(setups.lock))
        # Cancelling one agent must not cancel the setup for others.
        await asyncio.shield(setups.tasks[self._name])

    @property
    def _setups(self) -> _Setups:
        return _setups.setdefault(asyncio.get_running_loop(), _Setups())

    @property
    def _name(self) -> str:
        return _digest([self.commands, self.interpreter, str(self.context.root)])

    async def _once(self, lock: Lock) -> None:
        note = self.context.root / NOTES / self._name
        async with lock:
            try:
                async with _alone(note):
                    await self._unless_done(note)
            except OSError as exc:
                message = f"the setup cannot be recorded in {str(NOTES)!r}: {exc.strerror}"
                raise TrialError("start", message) from None

    async def _unless_done(self, note: Path) -> None:
        if await asyncio.to_thread(self._is_noted, note):
            return
        await asyncio.to_thread(note.unlink, missing_ok=True)
        await self._run_all()
        await asyncio.to_thread(self._note, note)

    async def _run_all(self) -> None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                for command in self.commands:
                    await self._run(command)
        except TimeoutError:
            message = f"the setup timed out after {TIMEOUT_S:g} s"
            raise TrialError("start", message) from None
        self.context.say(f"setup finished in {time.monotonic() - began:.1f} s")

    async def _run(self, command: tuple[str, ...]) -> None:
        shown = one_line(shlex.join(command), SHOWN_CHARS)
        self.context.say(f"running setup: {shown}")
        ended = asyncio.Event()
        child = Child(None, ended.set)
        try:
            await child.start(Launch.of(command, self.context, self.declared))
        except TrialError as exc:
            raise TrialError("start", f"the setup failed: {exc}") from None
        try:
            child.end_input()
            await ended.wait()
        finally:
            await child.stop()
        if child.fault or child.exit_code:
            message = f"the setup failed: {shown} {child.ending}{child.stderr_tail}"
            raise TrialError("start", message)

    def _is_noted(self, note: Path) -> bool:
        """Return True if the setup was completed and nothing has changed since."""
        if not note.is_file() or note.read_text(encoding="utf-8") != self._state():
            return False
        if self.interpreter is None:
            return True
        return find_agent_program(self.interpreter, self.context, self.declared) is not None

    def _note(self, note: Path) -> None:
        note.parent.mkdir(parents=True, exist_ok=True)
        # The state after the commands, so that their own change of a lock file causes no rerun.
        note.write_text(self._state(), encoding="utf-8")

    def _state(self) -> str:
        """Return a digest that changes whenever the setup must run again."""
        # Packages installed outside of the workspace in a container are lost with the container.
        machine = gethostname() if isolation.account() else ""
        files = {str(path): _file_state(path) for path in self._files()}
        return _digest([machine, files])

    def _files(self) -> Iterator[Path]:
        named = {self.context.root / word for command in self.commands for word in command}
        found = {path for pattern in DEPENDENCY_FILES for path in self.context.root.glob(pattern)}
        yield from sorted(path for path in named | found if path.is_file())


@asynccontextmanager
async def _alone(note: Path) -> AsyncIterator[None]:
    """Keep other processes, such as cluster tasks on this machine, from running the same setup."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    note.parent.mkdir(parents=True, exist_ok=True)
    with note.with_suffix(".lock").open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(_POLL_S)
        yield


def _digest(value: Any) -> str:
    return sha256(json.dumps(value).encode()).hexdigest()[:32]


def _file_state(path: Path) -> str | list[int]:
    """Return the digest of a file; for a large one, its size and modification time."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NONBLOCK)) as file:
        found = os.fstat(file.fileno())
        text = file.read(MAX_READ + 1) if found.st_size <= MAX_READ else None
        if text is None or len(text) > MAX_READ:
            return [found.st_size, found.st_mtime_ns]
        return sha256(text).hexdigest()
