"""Distribution of trials to a cluster: selection, batches, and recovery of lost trials.

A batch lasts long enough for the start of its agents not to matter.  Towards the end, batches get
smaller, so that all machines finish at about the same time (factoring; Hummel, Schonberg and
Flynn, 1992).
"""

import asyncio
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ci_eval.config import handed_secrets
from ci_eval.llm.gateway.gateway_clients import gateway_options
from ci_eval.plugins.engine import Cluster, LostError
from ci_eval.plugins.points import Agent
from ci_eval.records.errors import TrialError
from ci_eval.records.trials import Failure, Trace
from ci_eval.run.execute import Here, Part, ToTry
from ci_eval.run.remote_batch import OBSERVED, Batch, Observed
from ci_eval.runtime.context import RunContext
from ci_eval.text.json_text import RESULT_DEPTH, parse_json
from ci_eval.text.templates import counted

MAX_LOSSES = 3
"""How often a trial is begun on machines that die."""
_LONG_S = 60.0
"""How long a batch should last at most."""
_SHORT_S = 2.0
"""How long a batch should last at least."""
_MAX_TRIALS = 500
"""The most trials of a batch."""
_MAX_WAITING = 10_000
"""Maximum number of trials that wait for this machine while later ones fill remote batches."""


_Local = tuple[int, ToTry]
"""The index of an arm, and a trial of it that stays on this machine."""


@dataclass
class _Source:
    """The trials of an arm that have not begun."""

    index: int
    part: Part
    left: int
    """The number of trials left, if none is skipped."""

    def take(self) -> ToTry | None:
        """Return the next trial; `None` at the end."""
        self.left -= 1
        return next(self.part.trials, None)


@dataclass
class Distribution:
    """The distribution of one round."""

    cluster: Cluster
    here: Here
    concurrency: int
    sources: deque[_Source] = field(default_factory=deque)
    _taking: asyncio.Lock = field(default_factory=asyncio.Lock)
    _trials: int = 0
    _seconds: float = 0.0
    """The number of trials that landed, and the total duration of all batches."""

    async def run(self, parts: Sequence[Part]) -> None:
        """Run all trials, those of several arms in turn."""
        self.sources.extend(_Source(index, part, part.total) for index, part in enumerate(parts))
        local: asyncio.Queue[_Local | None] = asyncio.Queue(_MAX_WAITING)
        async with asyncio.TaskGroup() as group:
            for _ in range(self.concurrency):
                group.create_task(self._work_here(local))
            async with asyncio.TaskGroup() as lanes:
                for _ in range(self._lanes):
                    lanes.create_task(self._work_there(local))
            for _ in range(self.concurrency):
                await local.put(None)

    @property
    def _lanes(self) -> int:
        """The maximum number of concurrent tasks."""
        return math.ceil(self.concurrency / self.cluster.width)

    async def _work_here(self, local: asyncio.Queue[_Local | None]) -> None:
        while found := await local.get():
            await self.here(*found)

    async def _work_there(self, local: asyncio.Queue[_Local | None]) -> None:
        while True:
            async with self._taking:
                taken = await self._take(local)
            if taken is None:
                return
            await self._run(*taken)

    async def _take(self, local: asyncio.Queue[_Local | None]) -> tuple[Part, list[ToTry]] | None:
        """Return the next batch; trials that must stay on this machine go to `local`."""
        while self.sources:
            source = self.sources.popleft()
            size = self.size(source.left)
            trials: list[ToTry] = []
            while len(trials) < size and (each := source.take()):
                if _is_portable(source.part, each):
                    trials.append(each)
                else:
                    await local.put((source.index, each))
            if len(trials) == size:
                self.sources.append(source)
            if trials:
                return source.part, trials
        return None

    def size(self, left: int) -> int:
        """Return the size of the next batch, with `left` trials to go.

        While no duration is known, a batch has one trial for each that runs at a time.
        """
        width = min(self.cluster.width, self.concurrency)
        if not self._trials:
            return width
        pace = max(self._seconds / self._trials, 0.001)
        least, most = _SHORT_S / pace, max(_LONG_S / pace, 4 * width)
        fair = max(left, 0) / self._lanes
        trials = min(max(fair / 2, least), fair, most, _MAX_TRIALS)
        return max(math.ceil(trials / width), 1) * width

    async def _run(self, part: Part, trials: Sequence[ToTry]) -> None:
        """Run a batch and rerun lost trials, finally one by one: a single one may be the cause."""
        todo = {number: (number, trial, begun) for number, trial, begun in trials}
        began = asyncio.get_running_loop().time()
        reason = ""
        losses = 0
        while todo and losses < MAX_LOSSES:
            alone = losses == MAX_LOSSES - 1
            groups = [[each] for each in todo] if alone else [[*todo]]
            for group in groups:
                try:
                    await self._attempt(part, {each: todo[each] for each in group}, todo, losses)
                except LostError as exc:
                    reason = str(exc)
                    lost = counted(sum(each in todo for each in group), "trial")
                    part.context.say(f"lost {lost}: {reason}")
            losses += 1
        for number, trial, _ in [*todo.values()]:
            message = f"lost {MAX_LOSSES} times, the last time because: {reason}"
            failure = Failure(kind="crash", message=message)
            await part.landed(number, trial, Trace(key=trial.key, error=failure, attempts=losses))
        self._trials += len(trials)
        self._seconds += asyncio.get_running_loop().time() - began

    async def _attempt(
        self, part: Part, batch: dict[int, ToTry], todo: dict[int, ToTry], losses: int
    ) -> None:
        """Run a batch once, and remove the observed trials from `todo`.

        Raises:
            LostError: some trials were not observed.

        """
        task = self._task(part, batch)
        env = _variables(task.agents, part.context)
        try:
            async for found in self.cluster.run(task, part.context.root, env):
                # `validate_json` rejects values nested as deeply as a trace may be.
                row = parse_json(found, max_depth=RESULT_DEPTH)
                for each in OBSERVED.validate_python(row):
                    await self._land(part, each, todo, losses)
        except TrialError as exc:
            failure = Failure(kind=exc.kind, message=str(exc))
            for number in batch.keys() & todo.keys():
                trace = Trace(key=batch[number][1].key, error=failure)
                await self._land(part, Observed(number=number, trace=trace), todo, losses)
        if batch.keys() & todo.keys():
            raise LostError("the task ended before all of its trials")

    async def _land(self, part: Part, found: Observed, todo: dict[int, ToTry], losses: int) -> None:
        _, trial, _ = todo.pop(found.number)
        if found.begun:
            part.conduct.keep(trial, found.begun)
        trace = found.trace
        if losses:
            trace = trace.model_copy(update={"attempts": trace.attempts + losses})
        await part.landed(found.number, trial, trace)

    def _task(self, part: Part, batch: dict[int, ToTry]) -> Batch:
        names = {trial.key.agent for _, trial, _ in batch.values()}
        change = part.context.change
        return Batch(
            trials=tuple(batch.values()),
            agents={name: part.agents[name] for name in sorted(names)},
            options=part.conduct.options,
            folder=part.context.folder,
            root=part.context.root,
            of_base=change is not None,
            foreign=change.clone.top if change else None,
            width=min(self.cluster.width, self.concurrency),
        )


def _is_portable(part: Part, to_try: ToTry) -> bool:
    """Return True if another machine can run a trial.

    Only this one has the model gateway, and the model, cassette and limits of a simulated user.
    """
    _, trial, earlier = to_try
    agent = part.agents[trial.key.agent]
    needs_this = gateway_options(agent) or trial.case.conversation_scenario
    return agent.is_portable and not needs_this and not isinstance(earlier, Trace)


def _variables(agents: Mapping[str, Agent], context: RunContext) -> dict[str, str]:
    """Return the environment variables that `agents` declare, which they need elsewhere, too."""
    names = {name for agent in agents.values() for name in handed_secrets.declared(agent, context)}
    found = {name: value for name, value in context.env.items() if name in names}
    # `PYTHONPATH` of the remote process concerns ci-eval, not the agents.
    return {**found, "PYTHONPATH": context.env.get("PYTHONPATH", "")}
