"""Trials to a run: they are tried, scored as they land, and written down in their order."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ci_eval.records.findings import GroupKey, Totals
from ci_eval.records.results import JudgeUsage, Run, RunMeta, TrialResult
from ci_eval.records.trials import Trace, Trial
from ci_eval.run import participants
from ci_eval.run.execute import Conduct, ToTry, execute
from ci_eval.run.participants import Team
from ci_eval.run.plan import Plan
from ci_eval.run.rerun import Redraw
from ci_eval.run.score import score
from ci_eval.run_files import wording
from ci_eval.run_files.journal import Journal, trace_line
from ci_eval.run_files.resume import Begun
from ci_eval.run_files.run_file import RunWriter, read_run, replacing
from ci_eval.run_files.score_table import Columns
from ci_eval.runtime.context import RunContext
from ci_eval.text import templates
from ci_eval.text.redact import Secrets

_MAX_NAMED = 5
"""How many cases a warning names at most."""


@dataclass(frozen=True)
class Outputs:
    """Where a run leaves what it found."""

    folder: Path
    secrets: Secrets
    """What must not get into any document; what the configuration hands to agents is added."""
    record: Path | None = None
    """A file for the traces, in the order of the cases; `recorded` agents read it."""
    resume: bool = False
    """Whether traces that the folder holds already are taken as they are."""
    watch: Callable[[TrialResult], None] = lambda _: None
    """Sees each result as it is there."""
    more: Callable[[int], None] = lambda _: None
    """Learns how many trials are drawn again."""
    taken_over: Callable[[int, int], None] = lambda _trials, _invocations: None
    """Learns how many trials of an earlier run were taken over, and how many invocations of
    others."""


@dataclass
class Tally:
    """Counts what lands, and keeps the values."""

    columns: Columns = field(default_factory=Columns)
    trials: int = 0
    retried: int = 0
    duration_s: float = 0.0
    judging: dict[GroupKey, JudgeUsage] = field(default_factory=dict)
    simulation: JudgeUsage | None = None
    cut_off: dict[str, list[str]] = field(default_factory=dict)
    """The cases of responses that ended before they were whole, by why."""

    def add(self, result: TrialResult) -> None:
        """Add one result."""
        self.columns.add(result)
        self.trials += 1
        self.retried += result.attempts > 1
        self.duration_s += result.duration_s
        for reason in result.cut_off:
            self.cut_off.setdefault(reason, []).append(result.key.case)
        if result.simulation:
            self.simulation = (self.simulation or JudgeUsage()) + result.simulation
        for each in result.scores:
            if each.judging:
                key = result.key
                group = GroupKey(agent=key.agent, evalset=key.evalset, criterion=each.name)
                self.judging[group] = self.judging.get(group, JudgeUsage()) + each.judging

    def totals(self, cases: Totals) -> Totals:
        """Return `cases` with the trials and their times."""
        counted = {"trials": self.trials, "retried": self.retried, "duration_s": self.duration_s}
        return cases.model_copy(update=counted)

    def warnings(self) -> Iterator[str]:
        """Yield what is to be told of the observations, beside their scores."""
        for reason, those in self.cut_off.items():
            names = list(dict.fromkeys(those))
            shown = ", ".join(names[:_MAX_NAMED])
            more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
            cases = "case" if len(names) == 1 else "cases"
            yield f"{wording.cut_off([reason] * len(those))} ({cases} {shown}{more})"


class Observed(NamedTuple):
    """A run with its values at hand."""

    run: Run
    tally: Tally


def observe(
    plan: Plan,
    meta: RunMeta,
    context: RunContext,
    outputs: Outputs,
    again: Callable[[Tally], Redraw],
) -> Observed:
    """Try every trial, score each trace as it lands, and return what was observed.

    When all have landed, `again` says what is to be drawn again; nothing ends it.
    """
    path = outputs.folder / "run.json"
    with ExitStack() as stack:
        traces = outputs.folder / "traces.jsonl"
        journal = stack.enter_context(
            Journal(traces, suite=plan.config.suite, resume=outputs.resume, secrets=outputs.secrets)
        )
        writer = stack.enter_context(RunWriter(path, outputs.secrets.cleaned(meta)))
        line = _Line(plan, journal, writer, outputs, stack)
        asyncio.run(_try_all(plan, context, line, again))
    if outputs.resume:
        outputs.taken_over(*line.taken_over)
    return Observed(read_run(path, shown=str(path)), line.tally)


async def _try_all(
    plan: Plan, context: RunContext, line: "_Line", again: Callable[[Tally], Redraw]
) -> None:
    """Try every trial; what the reports will need is loaded while the agents are waited for."""
    loading = asyncio.create_task(asyncio.to_thread(templates.prepare))
    try:
        async with participants.started(plan, context, line.secrets) as found:
            await _try_these(plan.trials(), plan, context, line, found)
            while redraw := again(line.tally):
                await _try_these(redraw.trials(plan), plan, context, line, found)
    finally:
        await loading


async def _try_these(
    trials: Iterator[Trial], plan: Plan, context: RunContext, line: "_Line", taking_part: Team
) -> None:
    # Agents do not wait until a trace is scored, but for so many they run no further ahead.
    slots = asyncio.Semaphore(max(plan.config.run.concurrency, plan.config.judging.concurrency))
    agents = {name: plan.config.agents[name] for name, _ in plan.pairs}
    async with asyncio.TaskGroup() as scoring:

        async def landed(number: int, trial: Trial, trace: Trace) -> None:
            line.keep(number, trial, trace)
            await slots.acquire()
            task = scoring.create_task(line.score(taking_part, number, trial, trace))
            task.add_done_callback(lambda _: slots.release())

        conduct = Conduct(plan.config.run, taking_part.users, line.journal.keep)
        await execute(line.to_try(trials), agents, conduct, context, landed)


class _Line:
    """What happens to a trace when it lands."""

    def __init__(
        self, plan: Plan, journal: Journal, writer: RunWriter, outputs: Outputs, stack: ExitStack
    ) -> None:
        self._plan = plan
        self.secrets = outputs.secrets
        self.journal = journal
        self._writer = writer
        self._watch = outputs.watch
        self._record = stack.enter_context(replacing(outputs.record)) if outputs.record else None
        self._waiting: dict[int, tuple[TrialResult, str]] = {}
        self._next = 0
        self._earlier: dict[int, Trace | Begun] = {}
        """What the journal holds from an earlier run, until the trial has landed."""
        self._trials_taken_over = 0
        self._invocations_taken_over = 0
        self.tally = Tally()

    @property
    def taken_over(self) -> tuple[int, int]:
        """How many trials an earlier run observed, and how many invocations of others."""
        return self._trials_taken_over, self._invocations_taken_over

    def to_try(self, trials: Iterator[Trial]) -> Iterator[ToTry]:
        """Yield numbered trials, with what an earlier run observed of them."""
        for number, trial in enumerate(trials, start=self._next):
            earlier = self.journal.observed(trial)
            if earlier:
                self._earlier[number] = earlier
            yield number, trial, earlier

    def keep(self, number: int, trial: Trial, trace: Trace) -> None:
        """Keep a trace that has landed."""
        earlier = self._earlier.pop(number, None)
        if earlier is trace:
            self._trials_taken_over += 1
            return
        if earlier:
            # Where the conversation began anew after all, none of them is the same.
            pairs = zip(earlier.invocations, trace.invocations, strict=False)
            self._invocations_taken_over += sum(one is other for one, other in pairs)
        self.journal.add(trace, trial.fingerprint)

    async def score(self, taking_part: Team, number: int, trial: Trial, trace: Trace) -> None:
        """Score a trace, and write down its result when its turn has come."""
        criteria = self._plan.pairs[trial.key.agent, trial.key.evalset]
        result = await score(trial, trace, criteria, taking_part.scorers)
        if spent := taking_part.spent(trial.key):
            result = result.model_copy(update={"simulation": spent})
        result = self.secrets.cleaned(result)
        self._watch(result)
        line = trace_line(self.secrets.cleaned(trace)) if self._record else ""
        self._waiting[number] = result, line
        # Results are counted and written in the order of the cases, whichever ends first.
        while self._next in self._waiting:
            ready, line = self._waiting.pop(self._next)
            self.tally.add(ready)
            self._writer.add(ready)
            if self._record:
                self._record.write(line)
            self._next += 1
