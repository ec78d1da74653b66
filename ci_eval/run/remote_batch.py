"""A batch of trials in another process, such as on a machine of a cluster.

The process needs the same version of ci-eval.  It runs the same stage `execute`, and yields each
trace as it lands.
"""

import asyncio
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from ci_eval.config.config_schema import RunOptions
from ci_eval.config.handed_secrets import declared
from ci_eval.plugins.points import Agent
from ci_eval.records.cases import Record
from ci_eval.records.trials import Trace, Trial
from ci_eval.run.execute import Conduct, Part, ToTry, execute
from ci_eval.run_files.resume import Begun
from ci_eval.runtime.clone import Clone
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import moved


class Observed(Record):
    """What was observed of a trial."""

    number: int
    trace: Trace
    begun: Begun | None = None
    """The conversation of an unfinished trial."""


OBSERVED = TypeAdapter(tuple[Observed, ...])
"""One result of a batch: the trials that landed since the previous result."""


@dataclass(frozen=True)
class Batch:
    """Trials of one arm, and all that is needed to run them."""

    trials: tuple[ToTry, ...]
    agents: Mapping[str, Agent]
    options: RunOptions
    folder: str
    """The folder of the configuration, as the user wrote it."""
    root: Path
    """The same folder on the machine of ci-eval."""
    of_base: bool
    """Whether the trials belong to the merge base."""
    foreign: Path | None
    """For the merge base, the top of the clone with the change."""
    width: int
    """The maximum number of concurrent trials."""

    def __call__(self, folder: Path, env: Mapping[str, str]) -> Iterator[bytes]:
        """Run the trials in `folder`, and yield what was observed, as JSON."""
        with asyncio.Runner() as runner:
            landed: asyncio.Queue[Observed | None] = asyncio.Queue()
            work = runner.run(_begin(self, self._context(folder, env), landed))
            while found := runner.run(_next(landed)):
                yield OBSERVED.dump_json(tuple(found))
            runner.run(_end(work))

    def _context(self, folder: Path, env: Mapping[str, str]) -> RunContext:
        whole = {**self._own_variables(folder), **env}
        if path := whole.get("PYTHONPATH"):
            whole["PYTHONPATH"] = moved(path, str(self.root), str(folder))
        change = None
        if self.of_base:
            clone = Clone.without_git(self.foreign)
            change = RunContext(whole, folder, time.time, clone=clone)
        return RunContext(whole, folder, time.time, folder=self.folder, change=change)

    def _own_variables(self, folder: Path) -> dict[str, str]:
        """Return the variables of this machine, without those that agents get from the job.

        If the job has no key, as for a fork, no agent gets the machine's key instead.
        """
        context = RunContext(os.environ, folder, time.time)
        names = {name for agent in self.agents.values() for name in declared(agent, context)}
        return {name: value for name, value in os.environ.items() if name not in names}


async def _begin(
    batch: Batch, context: RunContext, found: asyncio.Queue[Observed | None]
) -> asyncio.Task[None]:
    begun: dict[int, Begun] = {}
    numbers = {trial.key: number for number, trial, _ in batch.trials}

    def keep(trial: Trial, so_far: Begun) -> None:
        begun[numbers[trial.key]] = so_far

    async def landed(number: int, _trial: Trial, trace: Trace) -> None:
        so_far = begun.pop(number, None) if trace.error else None
        found.put_nowait(Observed(number=number, trace=trace, begun=so_far))

    async def whole() -> None:
        conduct = Conduct(batch.options, keep=keep)
        part = Part(iter(batch.trials), batch.agents, conduct, context, landed)
        try:
            await execute([part], concurrency=batch.width)
        finally:
            found.put_nowait(None)

    return asyncio.create_task(whole())


async def _next(landed: asyncio.Queue[Observed | None]) -> list[Observed]:
    """Return all trials that landed, at least one; empty at the end."""
    found = [await landed.get()]
    while not landed.empty():
        found.append(landed.get_nowait())
    if len(found) > 1 and found[-1] is None:
        landed.put_nowait(found.pop())
    return [each for each in found if each]


async def _end(work: asyncio.Task[None]) -> None:
    await work
