"""What is run once before an agent can be started: the commands of its `setup:`."""

import asyncio
import json
import os
import shlex
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
from ci_eval.runtime.environments import Declared, agent_environment, find_program
from ci_eval.runtime.processes import Child, Launch
from ci_eval.text.sanitize import one_line

TIMEOUT_S = 1800.0
"""How long all commands together may take."""
SHOWN_CHARS = 200
"""How much of a command is shown."""
NOTES = Path(workspace.OURS, "setup")
"""Where it is noted what was done, from the folder of the configuration."""
MADE_OF = (
    *("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock"),
    *("requirements*.txt", "pyproject.toml", "setup.py", "setup.cfg"),
)
"""The files that say what is to be installed."""
MAX_READ = 16 * 1024 * 1024
"""The longest of them that is read, in bytes; a longer one counts by its size and time."""
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)  # a pipe would keep us waiting for a writer


def _split(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError as exc:
        raise ValueError(f"cannot be split as a shell would: {exc}") from None


Command = Annotated[
    tuple[str, ...],
    Field(min_length=1),
    BeforeValidator(_split, json_schema_input_type=str | list[str]),
]
"""A program and its arguments."""


@dataclass
class _Begun:
    """The set-ups of one run: each is done once, and they do not get in each other's way."""

    tasks: dict[str, Task[None]] = field(default_factory=dict)
    kept: Counter[str] = field(default_factory=Counter)
    """How many may need each."""
    lock: Lock = field(default_factory=Lock)


_begun: WeakKeyDictionary[AbstractEventLoop, _Begun] = WeakKeyDictionary()
"""A run is one event loop."""


@dataclass(frozen=True)
class SetUp:
    """The set-up of one agent, which may be that of others, too."""

    commands: tuple[tuple[str, ...], ...]
    interpreter: str | None
    """What the agent is run with, as the configuration names it."""
    declared: Declared
    """The environment variables that the agent gets beside the usual ones."""
    context: RunContext

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Let it go on while somebody is within who may need it; the last one to leave ends it."""
        begun, name = self._begun, self._name
        begun.kept[name] += 1
        try:
            yield
        finally:
            begun.kept[name] -= 1
            if not begun.kept[name] and name in begun.tasks and not begun.tasks[name].done():
                # A child that is started must not be left to the end of the loop, which cancels
                # also what asyncio itself does for it, and then waits for that for ever.
                task = begun.tasks.pop(name)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def done(self) -> None:
        """Return when it is done, by whoever began it.

        Raises:
            TrialError: it failed, for this agent and for all that have the same.

        """
        begun = self._begun
        if self._name not in begun.tasks:
            begun.tasks[self._name] = asyncio.create_task(self._once(begun.lock))
        # An agent that stops waiting does not take it from the others.
        await asyncio.shield(begun.tasks[self._name])

    @property
    def _begun(self) -> _Begun:
        return _begun.setdefault(asyncio.get_running_loop(), _Begun())

    @property
    def _name(self) -> str:
        return _digest([self.commands, self.interpreter, str(self.context.root)])

    async def _once(self, lock: Lock) -> None:
        note = self.context.root / NOTES / self._name
        async with lock:
            try:
                if await asyncio.to_thread(self._is_noted, note):
                    return
                note.unlink(missing_ok=True)
                await self._run_all()
                await asyncio.to_thread(self._note, note)
            except OSError as exc:
                message = f"the set-up cannot be noted in {str(NOTES)!r}: {exc.strerror}"
                raise TrialError("start", message) from None

    async def _run_all(self) -> None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                for command in self.commands:
                    await self._run(command)
        except TimeoutError:
            message = f"the set-up was not done after {TIMEOUT_S:g} s"
            raise TrialError("start", message) from None
        self.context.say(f"set up in {time.monotonic() - began:.1f} s")

    async def _run(self, command: tuple[str, ...]) -> None:
        shown = one_line(shlex.join(command), SHOWN_CHARS)
        self.context.say(f"setting up: {shown}")
        root, over = self.context.root, asyncio.Event()
        env = agent_environment(self.context.env, self.declared)
        program = find_program(command[0], root=root, env=env) or command[0]
        child = Child(None, over.set)
        try:
            await child.start(Launch((program, *command[1:]), env, root))
        except TrialError as exc:
            raise TrialError("start", f"the set-up failed: {exc}") from None
        try:
            child.end_input()
            await over.wait()
        finally:
            await child.stop()
        if child.fault or child.exit_code:
            message = f"the set-up failed: {shown} {child.ending}{child.last_words}"
            raise TrialError("start", message)

    def _is_noted(self, note: Path) -> bool:
        """Say whether it was done, and nothing changed since."""
        if not note.is_file() or note.read_text(encoding="utf-8") != self._state():
            return False
        if self.interpreter is None:
            return True
        env = agent_environment(self.context.env, self.declared)
        return find_program(self.interpreter, root=self.context.root, env=env) is not None

    def _note(self, note: Path) -> None:
        note.parent.mkdir(parents=True, exist_ok=True)
        # What the commands themselves changed, such as a lock file, is no reason to run again.
        note.write_text(self._state(), encoding="utf-8")

    def _state(self) -> str:
        """Return what tells whether it has to be done again."""
        # In a container, what is installed outside of the workspace ends with it.
        machine = gethostname() if isolation.account() else ""
        files = {str(path): _seen(path) for path in self._files()}
        return _digest([machine, files])

    def _files(self) -> Iterator[Path]:
        named = {self.context.root / word for command in self.commands for word in command}
        found = {path for pattern in MADE_OF for path in self.context.root.glob(pattern)}
        yield from sorted(path for path in named | found if path.is_file())


def _digest(value: Any) -> str:
    return sha256(json.dumps(value).encode()).hexdigest()[:32]


def _seen(path: Path) -> str | list[int]:
    """Return the digest of a file; the size and time of change of one too long to be read."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _AT_ONCE)) as file:
        found = os.fstat(file.fileno())
        text = file.read(MAX_READ + 1) if found.st_size <= MAX_READ else None
        if text is None or len(text) > MAX_READ:
            return [found.st_size, found.st_mtime_ns]
        return sha256(text).hexdigest()
