"""A folder with an agent, and a way to talk to it."""

import asyncio
import os
import textwrap
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from ci_eval.plugins.points import Agent, RunningAgent
from ci_eval.records.cases import Content, EvalCase, Invocation
from ci_eval.records.errors import TrialError
from ci_eval.records.trials import Trial, TrialKey
from ci_eval.runtime.context import RunContext

ENVIRONMENT = dict(os.environ)  # what the tests were started with
LONG_S = 300.0
"""What ends by then has not come to an end; only tests that fail wait for so long."""


class Place:
    """A folder for an agent, as a configuration would lie in it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def context(self) -> RunContext:
        return RunContext(env=ENVIRONMENT, root=self.root, now=lambda: 1_700_000_000.0)

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.write_text(textwrap.dedent(text))
        return path

    def pid(self) -> int:
        """Return the number that an agent wrote into the file `pid`; 0 if it has not yet."""
        path = self.root / "pid"
        return int(path.read_text() or 0) if path.exists() else 0

    def talk(self, agent: Agent, *messages: str | Content, **options: Any) -> "Talk":
        """Hold one conversation."""
        [talk] = self.talks(agent, [messages], **options)
        return talk

    def talks(self, agent: Agent, conversations: Any, **options: Any) -> list["Talk"]:
        """Hold all `conversations` at once."""

        async def hold(running: RunningAgent) -> list[Talk]:
            each = [converse(running, *messages, **options) for messages in conversations]
            return await asyncio.gather(*each)

        talks: list[Talk] = self.run(agent, hold)
        return talks

    def run(self, agent: Agent, body: Callable[[RunningAgent], Awaitable[Any]]) -> Any:
        """Run `body` with the started agent."""

        async def main() -> Any:
            async with agent.start(self.context) as running:
                return await body(running)

        return asyncio.run(main())


class Talk:
    """What came of a conversation."""

    def __init__(self) -> None:
        self.invocations: list[Invocation] = []
        self.error: BaseException | None = None
        self.state: Any = None

    @property
    def responses(self) -> list[str]:
        return [invocation.response for invocation in self.invocations]

    @property
    def failure(self) -> tuple[str, str]:
        """The kind and the message of the error."""
        assert isinstance(self.error, TrialError), self.error or self.responses
        return self.error.kind, str(self.error)


def trial(name: str = "case", **case: Any) -> Trial:
    content = Content.of_text("hello", role="user")
    turns = (Invocation(user_content=content),)
    return Trial(
        TrialKey(agent="weather", evalset="smoke", case=name),
        EvalCase(eval_id=name, conversation=turns, **case),
    )


async def converse(
    running: RunningAgent,
    *messages: str | Content,
    over: Callable[[], object] = lambda: False,
    alone: bool = False,
    **case: Any,
) -> Talk:
    """Hold a conversation as `execute` does: close it however it ended.

    Its time is up once it is `over`.
    """
    talk = Talk()
    try:
        session = await running.open(trial(**case), alone=alone)
    except TrialError as exc:
        talk.error = exc
        return talk
    try:
        async with asyncio.timeout(LONG_S) as clock, _ended(clock, over):
            for message in messages:
                asked = (
                    Content.of_text(message, role="user") if isinstance(message, str) else message
                )
                talk.invocations.append(await session.send(asked))
    except (TrialError, TimeoutError) as exc:
        talk.error = exc
    finally:
        talk.state = await session.close()
    return talk


@asynccontextmanager
async def _ended(clock: asyncio.Timeout, over: Callable[[], object]) -> AsyncIterator[None]:
    """Let the time be up once it is `over`."""

    async def end() -> None:
        await until(over)
        clock.reschedule(0)

    ending = asyncio.create_task(end())
    try:
        yield
    finally:
        ending.cancel()


async def until(happened: Callable[[], object]) -> None:
    """Wait for what nobody signals."""
    async with asyncio.timeout(LONG_S):
        while not happened():  # noqa: ASYNC110  # it happens in another process
            await asyncio.sleep(0.005)


def waits_for(happened: Callable[[], object]) -> bool:
    """Wait, outside of a loop, for what nobody signals; say whether it happened."""
    late = time.monotonic() + LONG_S
    while not (found := bool(happened())) and time.monotonic() < late:
        time.sleep(0.005)
    return found


def is_dead(pid: int) -> bool:
    """Return True if the process has ended; one that nobody waits for is dead all the same."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def dies(pid: int) -> bool:
    """Wait for the process to end: what is killed has not ended at once."""
    return waits_for(lambda: is_dead(pid))


@contextmanager
def passing(seconds: float, when: Callable[[], object]) -> Iterator[threading.Event]:
    """Let event loops believe, from then on, that so many more seconds have passed.

    So no limit has to be short that a test is to see exceeded, and no machine is too slow.  What
    is yielded is set when they have passed.
    """
    ahead = 0.0
    before = asyncio.BaseEventLoop.time
    passed = threading.Event()
    seen: list[asyncio.BaseEventLoop] = []
    left = threading.Event()

    def now(loop: asyncio.BaseEventLoop) -> float:
        if loop not in seen:
            seen.append(loop)
        return before(loop) + ahead

    def watch() -> None:
        nonlocal ahead
        while not left.is_set() and not when():
            time.sleep(0.005)
        ahead = seconds
        for loop in seen:
            with suppress(RuntimeError):  # it is closed
                loop.call_soon_threadsafe(lambda: None)  # wakes it
        passed.set()

    watching = threading.Thread(target=watch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.BaseEventLoop, "time", now)
        watching.start()
        try:
            yield passed
        finally:
            left.set()
            watching.join()
