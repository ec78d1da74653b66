"""Execution of trials, a bounded number at a time, into traces."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, repeat
from typing import NamedTuple, TypeVar

from ci_eval.config.config_schema import RunOptions
from ci_eval.llm.gateway.gateway_clients import left_out_hint
from ci_eval.plugins.points import Agent, RunningAgent, Session
from ci_eval.records.bounds import MAX_SECONDS
from ci_eval.records.cases import Content, Invocation, Json
from ci_eval.records.errors import DisturbedError, FailureKind, TrialError
from ci_eval.records.trials import Failure, Trace, Trial
from ci_eval.run.conversation import Conversation, Scripted, User, Users, can_go_on
from ci_eval.run_files.resume import Begun
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import unseen_hint
from ci_eval.runtime.trial_clock import TrialClock

_log = logging.getLogger(__name__)
T = TypeVar("T")
ToTry = tuple[int, Trial, Trace | Begun | None]
"""A trial with its number, and its complete or partial observation from an earlier run."""
Landed = Callable[[int, Trial, Trace], Awaitable[None]]
"""Receives the number of a trial, the trial, and its trace."""


@dataclass(frozen=True)
class Conduct:
    """How trials are conducted."""

    options: RunOptions
    users: Users = Scripted
    """Creates the user who talks to the agent."""
    keep: Callable[[Trial, Begun], None] = lambda _trial, _begun: None
    """Stores an unfinished conversation."""


MAX_DISTURBANCES = 3
"""Maximum restarts of a trial whose worker was killed by another trial."""
_FINAL: frozenset[FailureKind] = frozenset(
    {"start", "not_recorded", "recorded", "unsupported", "waiting", "unmocked"}
)
"""Errors not worth a retry."""
_NOT_THE_AGENTS: frozenset[FailureKind] = frozenset({"waiting", "simulator"})
"""Failures that do not show whether the agent could continue its conversation."""


class Part(NamedTuple):
    """The trials of one arm in a round, and what they need."""

    trials: Iterator[ToTry]
    agents: Mapping[str, Agent]
    conduct: Conduct
    context: RunContext
    landed: Landed
    total: int = 0
    """The number of trials, if none is skipped."""


Here = Callable[[int, ToTry], Awaitable[None]]
"""Runs a trial on this machine, given the index of its part."""
Elsewhere = Callable[[Sequence[Part], Here], Awaitable[None]]
"""Runs trials on other machines; calls `Here` for those that must stay on this one."""


async def execute(
    parts: Sequence[Part], *, concurrency: int, elsewhere: Elsewhere | None = None
) -> None:
    """Run every trial, those of several arms in turn, and pass on each trace as it arrives.

    A trial that could not be observed becomes a trace with an error; no agent can end the
    trials of another.

    Raises:
        UsageError: an agent can never start, because its configuration or code is wrong.

    """

    async def work(trials: Iterator[tuple[Part, Mapping[str, RunningAgent], ToTry]]) -> None:
        for part, running, (number, trial, earlier) in trials:
            if isinstance(earlier, Trace):
                trace = earlier
            else:
                agent = running[trial.key.agent]
                trace = await execute_trial(agent, trial, part.conduct, earlier)
            await part.landed(number, trial, trace)

    async with AsyncExitStack() as stack:
        started = [
            {
                name: await stack.enter_async_context(agent.start(part.context))
                for name, agent in part.agents.items()
            }
            for part in parts
        ]
        if elsewhere:
            await elsewhere(
                parts, lambda index, to_try: work(iter([(parts[index], started[index], to_try)]))
            )
            return
        trials = _in_turn(
            zip(repeat(part), repeat(running), part.trials)
            for part, running in zip(parts, started, strict=True)
        )
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work(trials))


def with_hints(landed: Landed, agents: Mapping[str, Agent], context: RunContext) -> Landed:
    """Add a hint to errors that are caused by a missing environment variable."""

    async def hinted(number: int, trial: Trial, trace: Trace) -> None:
        if error := trace.error:
            agent = agents[trial.key.agent]
            hint = left_out_hint(error.message, agent)
            hint = hint or unseen_hint(error.message, getattr(agent, "env", {}), context)
            error = error.model_copy(update={"message": error.message + hint})
            trace = trace.model_copy(update={"error": error})
        await landed(number, trial, trace)

    return hinted


def _in_turn(each: Iterable[Iterator[T]]) -> Iterator[T]:
    """Yield one item of each iterator in turn, until all are exhausted."""
    turns = deque(each)
    while turns:
        trials = turns.popleft()
        for trial in islice(trials, 1):
            yield trial
            turns.append(trials)


async def execute_trial(
    agent: RunningAgent, trial: Trial, conduct: Conduct, begun: Begun | None = None
) -> Trace:
    """Run one trial, retry it where that is allowed, and return the last trace.

    A conversation that an earlier run has `begun` is continued if possible.
    """
    tries, disturbances, alone = 0, 0, False
    if begun and not can_go_on(begun, trial.case):
        begun = None
    while True:
        try:
            attempt = _Attempt(agent, trial, conduct, begun, tries + disturbances + 1)
            trace = await attempt.run(alone=alone)
        except DisturbedError as exc:
            _stop_if_cancelled()
            _log.debug("%s: disturbed by another trial: %s", _shown(trial), exc)
            disturbances += 1
            alone = exc.alone or disturbances > 1
            if disturbances < MAX_DISTURBANCES:
                continue
            error = Failure(kind=exc.kind, message=str(exc))
            return Trace(key=trial.key, error=error, attempts=tries + disturbances)
        if begun and trace.error and trace.error.kind not in _NOT_THE_AGENTS:
            # Perhaps it cannot be continued: only a whole conversation tells.
            begun, disturbances = None, disturbances + 1
            continue
        tries += 1
        _log.debug("%s: attempt %d: %s", _shown(trial), tries, _outcome(trace))
        if trace.error is None or trace.error.kind in _FINAL or tries > conduct.options.retries:
            return trace


def _shown(trial: Trial) -> str:
    key = trial.key
    return f"{key.agent} · {key.evalset} · {key.case} · repeat {key.repeat}"


def _outcome(trace: Trace) -> str:
    error = trace.error
    said = f"{error.kind}: {error.message}" if error else f"{len(trace.invocations)} invocations"
    return f"{said} in {trace.duration_s:.3f} s"


def _stop_if_cancelled() -> None:
    """Raise `CancelledError` again if a disturbance hid that the task was cancelled."""
    task = asyncio.current_task()
    if task and task.cancelling():
        raise asyncio.CancelledError


@dataclass
class _Unhurried:
    """A user whose thinking does not count towards the time limit of a trial."""

    user: User
    clock: TrialClock

    async def next_message(self, so_far: Sequence[Invocation]) -> Content | None:
        """Return the next message of the user; the time limit is paused until then."""
        with self.clock.stopped():
            return await self.user.next_message(so_far)


@dataclass
class _Attempt:
    """One attempt at a trial."""

    agent: RunningAgent
    trial: Trial
    conduct: Conduct
    begun: Begun | None
    number: int
    """The number of the attempt, from 1."""
    seen: list[Invocation] = field(default_factory=list)
    took: float | None = None
    """Seconds that a recorded conversation took."""
    session: Session | None = None
    clock: TrialClock | None = None
    opened: float | None = None
    """When the session was opened, in seconds of `time.perf_counter`."""

    async def run(self, *, alone: bool) -> Trace:
        """Hold the conversation, and return its trace."""
        final_state: dict[str, Json] | None = None
        error: Failure | None = None
        try:
            final_state = await self._converse(alone=alone)
        except TimeoutError:
            limit = self.conduct.options.timeout_s
            message = f"timed out after {limit:g} s, the limit in `run.timeout_s`"
            error = Failure(kind="timeout", message=message)
        except DisturbedError:
            raise
        except TrialError as exc:
            error = Failure(kind=exc.kind, message=str(exc))
            self.seen += [exc.seen] if exc.seen else []
        except Exception as exc:  # noqa: BLE001  # one of three: nothing in a trial ends the others
            _log.debug("%s: internal error", _shown(self.trial), exc_info=True)
            error = Failure(kind="internal", message=f"{type(exc).__name__}: {exc}")
        return Trace(
            key=self.trial.key,
            invocations=tuple(self.seen),
            final_state=final_state,
            error=error,
            duration_s=round(self._duration(ended=error is None), 6),
            attempts=self.number,
            output=self.session.output if self.session else "",
        )

    def _duration(self, *, ended: bool) -> float:
        """Return the seconds that the agent took, without its start.

        The sum of all invocations, as in `ci/latency_s`; for a conversation that broke off, the
        time until then.
        """
        if self.took is not None:
            return self.took
        if ended and self.seen and all(each.duration is not None for each in self.seen):
            return _took(self.seen) or 0.0
        if self.opened is None:
            return 0.0
        before = _took(self.begun.invocations) if self.begun else None
        stopped = self.clock.stopped_s if self.clock else 0
        return max(time.perf_counter() - self.opened - stopped + (before or 0), 0.0)

    async def _converse(self, *, alone: bool) -> dict[str, Json] | None:
        """Hold the conversation, and return the final state."""
        memento = self.begun.memento if self.begun else None
        # The start of a worker has its own time limit, and does not count towards the trial's.
        session = await self.agent.open(self.trial, alone=alone, memento=memento)
        self.session, self.took = session, _took(session.held)
        self.opened = time.perf_counter()
        async with asyncio.timeout(self.conduct.options.timeout_s) as limit:
            self.clock = TrialClock(limit)
            session.timed_by(self.clock)
            try:
                if session.held is None:
                    user = self.conduct.users(self.trial)
                    if not isinstance(user, Scripted):
                        user = _Unhurried(user, self.clock)
                    keep = partial(self.conduct.keep, self.trial)
                    conversation = Conversation(session, self.trial.case, user, self.seen, keep)
                    await conversation.hold(self.begun)
                else:
                    _take_held(session.held, self.trial, self.seen)
                session.complete()
            except BaseException:
                with suppress(TrialError):
                    await session.close()
                raise
            return await session.close()


def _took(held: Sequence[Invocation] | None) -> float | None:
    """Return the seconds that a recorded conversation took, or `None` if they are unknown."""
    known = [each.duration for each in held or () if each.duration is not None]
    return min(sum(known), MAX_SECONDS) if known else None


def _take_held(held: tuple[Invocation, ...], trial: Trial, seen: list[Invocation]) -> None:
    seen += held
    turns = trial.case.conversation
    if turns is not None and len(turns) != len(held):
        message = f"the recording has {len(held)} invocations, but the case has {len(turns)}"
        raise TrialError("recorded", message)
