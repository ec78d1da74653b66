"""Trials to traces: the agents are asked, so many at a time, and what they did is kept."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

from ci_eval.config_file import RunOptions
from ci_eval.conversing import Scripted, Users, converse
from ci_eval.errors import DisturbedError, TrialError
from ci_eval.plugins import Agent, RunningAgent, Session
from ci_eval.records import Invocation, Json
from ci_eval.trials import Failure, Trace, Trial
from ci_eval.world import World

ToTry = tuple[int, Trial, Trace | None]
"""The how-manieth trial it is, the trial, and what an earlier run observed, where one did."""
Landed = Callable[[int, Trial, Trace], Awaitable[None]]
"""Takes the how-manieth trial it was, the trial, and what was observed."""


@dataclass(frozen=True)
class Conduct:
    """How trials are conducted."""

    options: RunOptions
    users: Users = Scripted
    """Who talks to the agents."""


MAX_DISTURBANCES = 3
"""How often a trial is started again because a neighbour took its worker down."""
_FINAL = frozenset({"start", "not_recorded", "recorded", "unsupported", "waiting", "unmocked"})
"""Failures that would only repeat themselves."""


async def execute(
    trials: Iterator[ToTry],
    agents: Mapping[str, Agent],
    conduct: Conduct,
    world: World,
    landed: Landed,
) -> None:
    """Try every numbered trial, so many at once, and hand on each as it ends.

    A trial that could not be observed becomes a trace with an error; nothing that an agent
    does ends the others.

    Raises:
        UsageError: an agent can never start, because what it is made of is wrong.

    """

    async def work(running: Mapping[str, RunningAgent]) -> None:
        for number, trial, earlier in trials:
            trace = earlier or await observe(running[trial.key.agent], trial, conduct)
            await landed(number, trial, trace)

    async with AsyncExitStack() as stack:
        running = {
            name: await stack.enter_async_context(agent.start(world))
            for name, agent in agents.items()
        }
        async with asyncio.TaskGroup() as group:
            for _ in range(conduct.options.concurrency):
                group.create_task(work(running))


async def observe(agent: RunningAgent, trial: Trial, conduct: Conduct) -> Trace:
    """Try `trial`, again where that is allowed, and return the last trace."""
    tries, disturbances, alone = 0, 0, False
    while True:
        try:
            trace = await _attempt(agent, trial, conduct, alone=alone)
            tries += 1
        except DisturbedError as exc:
            _stop_if_cancelled()
            disturbances += 1
            alone = exc.alone or disturbances > 1
            if disturbances < MAX_DISTURBANCES:
                continue
            trace = Trace(key=trial.key, error=Failure(kind=exc.kind, message=str(exc)))
            return trace.model_copy(update={"attempts": tries + disturbances})
        if trace.error is None or trace.error.kind in _FINAL or tries > conduct.options.retries:
            return trace.model_copy(update={"attempts": tries + disturbances})


def _stop_if_cancelled() -> None:
    """Go on being cancelled, where what the cancelling disturbed hid that."""
    task = asyncio.current_task()
    if task and task.cancelling():
        raise asyncio.CancelledError


async def _attempt(agent: RunningAgent, trial: Trial, conduct: Conduct, *, alone: bool) -> Trace:
    started = time.perf_counter()
    timeout_s = conduct.options.timeout_s
    session: Session | None = None
    took: float | None = None
    seen: list[Invocation] = []
    final_state: dict[str, Json] | None = None
    error: Failure | None = None
    try:
        # A worker's start is nobody's turn: it has a limit of its own.
        session = await agent.open(trial, alone=alone)
        took = _took(session.held)
        async with asyncio.timeout(timeout_s):
            final_state = await _converse(session, trial, conduct.users, seen)
    except TimeoutError:
        error = Failure(kind="timeout", message=f"not done after {timeout_s:g} s")
    except DisturbedError:
        raise
    except TrialError as exc:
        error = Failure(kind=exc.kind, message=str(exc))
        seen += [exc.seen] if exc.seen else []
    except Exception as exc:  # noqa: BLE001  # one of three: nothing in a trial ends the others
        error = Failure(kind="internal", message=f"{type(exc).__name__}: {exc}")
    return Trace(
        key=trial.key,
        invocations=tuple(seen),
        final_state=final_state,
        error=error,
        duration_s=round(time.perf_counter() - started if took is None else took, 6),
        output=session.output if session else "",
    )


def _took(held: tuple[Invocation, ...] | None) -> float | None:
    """Return the seconds that a conversation took which is over; `None` where nothing tells."""
    known = [each.duration for each in held or () if each.duration is not None]
    return sum(known) if known else None


async def _converse(
    session: Session, trial: Trial, users: Users, seen: list[Invocation]
) -> dict[str, Json] | None:
    """Hold the conversation, adding to `seen`, and return the final state."""
    try:
        if session.held is not None:
            _take_held(session.held, trial, seen)
        else:
            await converse(session, trial.case, users(trial), seen)
    except BaseException:
        with suppress(TrialError):
            await session.close()
        raise
    return await session.close()


def _take_held(held: tuple[Invocation, ...], trial: Trial, seen: list[Invocation]) -> None:
    seen += held
    turns = trial.case.conversation
    if turns is not None and len(turns) != len(held):
        message = f"the recording has {len(held)} invocations, the case {len(turns)}"
        raise TrialError("recorded", message)
