"""Commands as agents that exchange lines of JSON."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from pydantic import Field

from ci_eval.agents._agent_input import as_asked, opening, refuse_tool_mocks, session_ids, turn_of
from ci_eval.agents._agent_reply import to_invocation, unexpected
from ci_eval.llm.gateway.gateway_clients import CallingModels, Models, behind_gateway
from ci_eval.plugins.points import Agent, RunningAgent, Session, agent
from ci_eval.records.cases import Content, Invocation, Json
from ci_eval.records.errors import TrialError
from ci_eval.records.trials import Trial
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import Declared, refused, wrong_program
from ci_eval.runtime.path_checks import PathText, similar_path
from ci_eval.runtime.processes import Child, Excerpt, Launch
from ci_eval.runtime.workers.worker_wire import encode, read_json, shown

GRACE_S = 1.0
"""How long a command may run after the end of its input."""


@agent("command")
class Command(CallingModels, Agent):
    """Any command that reads a line of JSON for each message, and answers with a line of JSON.

    It reads `{"message", "history", "session"}` from standard input: the user's message (a text;
    ADK's content object if there is more than text), the previous turns (a list of
    `{"message", "response", "tool_calls"}`), and `{"id", "app_name", "user_id", "state"}`.  It
    writes to standard output, on one line, a JSON text or `{"response": text, "tool_calls":
    [{"name", "args", "result"?}], "usage"?: {"input_tokens", "output_tokens", "cost_usd"}}`.
    All other output belongs on standard error.

    If it needs an external answer to continue, it also writes `"waits_for": [{"name", "args",
    "id"?}]`.  The next message then has the answers: a content object with one
    `function_response` for each, `{"id", "name", "response"}`.

    With `per: message`, a resumed run continues an unfinished conversation with the same `history`
    and `session`; otherwise, the conversation starts over.
    """

    is_portable: ClassVar[bool] = True

    command: tuple[str, ...] = Field(min_length=1)
    """The program and its arguments, run without a shell. A program with a slash is a path
    relative to the folder of the configuration."""
    per: Literal["session", "message"] = "session"
    """`session`: one process per conversation. `message`: one process per message, which must
    exit after its answer."""
    env: Declared = Field(default_factory=dict)
    """Additional environment variables: a list of names or patterns to pass on, or names with
    values."""
    cwd: PathText = "."
    """Working directory, relative to the folder of the configuration."""

    def check(self, context: RunContext) -> Iterator[tuple[str, str]]:
        """Yield the errors in the program, the folder and the environment."""
        yield from self.wrong_models(context)
        for message in refused(self.env):
            yield "env", message
        for message in wrong_program(self.command[0], context, self.env):
            yield "command", message
        if not (context.root / self.cwd).is_dir():
            yield "cwd", f"there is no folder {self.cwd!r}{similar_path(context.root, self.cwd)}"

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[RunningAgent]:
        """Accept conversations; leaving the context ends all processes."""
        async with behind_gateway(self, context) as (agent, inner, models):
            launch = Launch.of(self.command, inner, agent.env, self.cwd)
            commands = _Commands(launch, self.per, session_ids(context), models)
            try:
                yield commands
            finally:
                await commands.stop()


@dataclass(frozen=True)
class _Commands:
    """Conversations, each with its own processes."""

    launch: Launch
    per: Literal["session", "message"]
    ids: Iterator[str]
    models: Models
    processes: set["_Process"] = field(default_factory=set)

    async def open(self, trial: Trial, *, alone: bool = False, memento: Json = None) -> Session:
        del alone  # it always is
        refuse_tool_mocks(trial, "command")
        session = opening(trial, next(self.ids))
        history: list[Json] = []
        if memento:
            session, history = memento["session"], memento["history"]
        # Each conversation has its own processes.
        env = {**self.launch.env, **self.models.variables()}
        launch = replace(self.launch, env=env)
        process = await self.start(launch) if self.per == "session" else None
        found = _Conversation(self, launch, session, history, process)
        return self.models.session(found, trial, env, 1)

    async def start(self, launch: Launch) -> "_Process":
        process = _Process()
        await process.child.start(launch)
        self.processes.add(process)
        return process

    async def end(self, process: "_Process", *, grace_s: float = 0.0) -> None:
        await process.child.stop(grace_s=grace_s)
        self.processes.discard(process)

    async def stop(self) -> None:
        await asyncio.gather(*map(self.end, self.processes))


class _Process:
    """One process of the command."""

    def __init__(self) -> None:
        self.child = Child(self._on_line, self._on_end)
        self._lines: list[bytes] = []
        self._answered = asyncio.Event()
        self._ended = asyncio.Event()

    async def ask(self, question: dict[str, Any], *, last: bool) -> Json:
        """Return the answer to `question`; for the `last` one, wait for the process to end.

        Raises:
            TrialError: there is no answer, more than one, or it is not JSON.

        """
        if self._lines:
            raise unexpected(f"wrote {shown(_text(self._lines[0]))} without a request")
        self.child.write_line(encode(question))
        if last:
            self.child.end_input()
        if not self._ended.is_set():
            self._answered.clear()
        await (self._ended if last else self._answered).wait()
        lines, self._lines = self._lines, []
        if len(lines) > 1:
            texts = ", then ".join(shown(_text(line)) for line in lines)
            raise unexpected(f"answered with more than one line: {texts}")
        if not lines or (last and self.child.exit_code):
            raise self._failure("after its answer" if lines else "without an answer")
        return _parsed(lines[0])

    def _on_line(self, line: bytes) -> None:
        if not line.strip():
            return
        self._lines.append(line)
        self._answered.set()
        if len(self._lines) > 1:
            self.child.kill()  # its further answers are useless

    def _on_end(self) -> None:
        self._ended.set()
        self._answered.set()

    def _failure(self, when: str) -> TrialError:
        what = f"{self.child.ending} {when}"
        if self.child.exit_code and not self.child.fault:
            return TrialError("crash", f"the agent {what}{self.child.stderr_tail}")
        return unexpected(what, self.child.stderr_tail)


@dataclass
class _Conversation(Session):
    """One conversation."""

    commands: _Commands
    launch: Launch
    session: dict[str, Json]
    history: list[Json]
    process: _Process | None
    """`None` if each message gets its own process."""
    written: Excerpt = field(default_factory=Excerpt)

    @property
    def memento(self) -> Json:
        if self.process:
            return None
        return {"session": self.session, "history": self.history}

    @property
    def output(self) -> str:
        return self.written.text

    async def send(self, message: Content) -> Invocation:
        asked = as_asked(message)
        question = {"message": asked, "history": self.history, "session": self.session}
        started = time.perf_counter()
        process = self.process or await self.commands.start(self.launch)
        try:
            reply = await process.ask(question, last=self.process is None)
        except BaseException:
            await self._end(process)
            raise
        if self.process is None:
            await self._end(process)
        seconds = time.perf_counter() - started
        number = len(self.history) + 1
        invocation = to_invocation(message, reply, seconds=seconds, number=number)
        self.history.append(turn_of(asked, reply))
        return invocation

    async def close(self) -> dict[str, Json] | None:
        if self.process:
            await self._end(self.process, grace_s=GRACE_S)
        return None

    async def _end(self, process: _Process, *, grace_s: float = 0.0) -> None:
        await self.commands.end(process, grace_s=grace_s)
        self.written.feed(process.child.stderr.text.encode())


def _parsed(line: bytes) -> Json:
    try:
        return read_json(line)
    except ValueError as exc:
        raise unexpected(f"answered {shown(_text(line))}: {exc}") from None


def _text(line: bytes) -> str:
    return line.decode(errors="replace")
