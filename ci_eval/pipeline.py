"""The line, from a configuration to documents, as it reads aloud."""

import asyncio
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ci_eval import __version__, plugins, team, templating
from ci_eval.columns import Columns, Past
from ci_eval.compare import compare
from ci_eval.config import Config
from ci_eval.config_file import GateOptions
from ci_eval.errors import NothingSelectedError, UsageError
from ci_eval.execute import Conduct, ToTry, execute
from ci_eval.findings import Comparison, GroupKey, Report, Totals
from ci_eval.fingerprint import fingerprint
from ci_eval.gate import count_cases, decide, summarise
from ci_eval.git import Repository
from ci_eval.journal import Journal, trace_line
from ci_eval.judging import Judging
from ci_eval.lineage import current_branch
from ci_eval.measures import AnyCriterion
from ci_eval.plan import Plan
from ci_eval.plugins import JudgedCriterion, Reporter, WorkerCriterion
from ci_eval.records import Status
from ci_eval.redacting import Secrets
from ci_eval.results import CriterionFacts, JudgeUsage, Run, RunMeta, TrialResult
from ci_eval.resuming import Begun
from ci_eval.run_file import RunWriter, read_run, replacing
from ci_eval.score import score
from ci_eval.team import Team
from ci_eval.trials import Trace, Trial, TrialKey
from ci_eval.world import World

MAX_WORST = 100
"""How many results a report carries with their evidence."""


@dataclass(frozen=True)
class Outputs:
    """Where a run leaves what it found."""

    folder: Path
    secrets: Secrets
    """What must not get into any document."""
    record: Path | None = None
    """A file for the traces, in the order of the cases; `recorded` agents read it."""
    resume: bool = False
    """Whether traces that the folder holds already are taken as they are."""
    watch: Callable[[TrialResult], None] = lambda _: None
    """Sees each result as it is there."""
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

    def add(self, result: TrialResult) -> None:
        """Add one result."""
        self.columns.add(result)
        self.trials += 1
        self.retried += result.attempts > 1
        self.duration_s += result.duration_s
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


class Observed(NamedTuple):
    """A run with its values at hand."""

    run: Run
    tally: Tally


def run(plan: Plan, world: World, outputs: Outputs) -> Report:
    """Try, score, compare and decide; leave `run.json`, `traces.jsonl` and every report.

    Raises:
        UsageError: an agent can never start.
        BaselineError: the baseline cannot be read; said before anything is run.
        NothingSelectedError: the configuration asks for nothing to be executed.

    """
    if plan.config.mock:
        raise NothingSelectedError("nothing was run: `mock_mode` of the eval config asks for that")
    past = load_baseline(plan.config, world)
    team.check(plan, world)
    observed = observe(plan, world, outputs)
    report = judge(observed, plan.config.gate, past)
    write_report(report, observed.run, outputs.folder, plan.config.reports)
    return report


def load_baseline(config: Config, world: World) -> Sequence[Past] | None:
    """Return the runs to compare with; `None` where no baseline is configured."""
    store = config.baseline
    return store.load(store.lineage(world), config.suite, world) if store else None


def observe(plan: Plan, world: World, outputs: Outputs) -> Observed:
    """Try every trial, score each trace as it lands, and return what was observed."""
    meta = describe(plan, world)
    path = outputs.folder / "run.json"
    with ExitStack() as stack:
        journal = stack.enter_context(
            Journal(outputs.folder / "traces.jsonl", suite=plan.config.suite, resume=outputs.resume)
        )
        line = _Line(plan, journal, stack.enter_context(RunWriter(path, meta)), outputs, stack)
        asyncio.run(_try_all(plan, world, line))
    if outputs.resume:
        outputs.taken_over(*line.taken_over)
    return Observed(read_run(path, shown=str(path)), line.tally)


async def _try_all(plan: Plan, world: World, line: "_Line") -> None:
    """Try every trial; what the reports will need is loaded while the agents are waited for."""
    loading = asyncio.create_task(asyncio.to_thread(templating.prepare))
    agents = {name: plan.config.agents[name] for name, _ in plan.pairs}
    # Agents do not wait until a trace is scored, but for so many they run no further ahead.
    slots = asyncio.Semaphore(max(plan.config.run.concurrency, plan.config.judging.concurrency))
    try:
        async with team.started(plan, world) as found, asyncio.TaskGroup() as scoring:

            async def landed(number: int, trial: Trial, trace: Trace) -> None:
                line.keep(number, trial, trace)
                await slots.acquire()
                task = scoring.create_task(line.score(found, number, trial, trace))
                task.add_done_callback(lambda _: slots.release())

            conduct = Conduct(plan.config.run, found.users, line.journal.keep)
            await execute(line.to_try(), agents, conduct, world, landed)
    finally:
        await loading


def recall(stored: Run) -> Observed:
    """Return what a stored run observed."""
    tally = Tally()
    for result in stored.results():
        tally.add(result)
    return Observed(stored, tally)


def judge(observed: Observed, gate: GateOptions, past: Sequence[Past] | None) -> Report:
    """Compare a run with its baseline and decide."""
    meta, columns = observed.run.meta, observed.tally.columns
    comparison = (
        compare(meta, columns, past, false_block=gate.false_block, max_drop=gate.max_drop)
        if past and gate.mode != "threshold"
        else None
    )
    asked = observed.tally.judging
    groups = tuple(
        each.model_copy(update={"judging": asked[each.group]}) if each.group in asked else each
        for each in summarise(meta, columns)
    )
    cases = count_cases(meta, columns)
    counted = observed.tally.totals(cases)
    return Report(
        meta=meta,
        totals=counted,
        groups=groups,
        comparison=comparison,
        verdict=decide(gate, counted, groups, comparison, baseline_configured=past is not None),
        judging=sum(asked.values(), JudgeUsage()) if asked else None,
        simulation=observed.tally.simulation,
        worst=tuple(_worst(observed.run, columns, comparison)),
    )


def refuse_incomplete(observed: Observed, gate: GateOptions) -> None:
    """Refuse to make a baseline of a run that lacks a part.

    Raises:
        UsageError: it lacks one.

    """
    cases = count_cases(observed.run.meta, observed.tally.columns)
    if cases.errors > gate.max_errors:
        message = f"{cases.errors} of {cases.cases} cases could not be measured"
    elif observed.run.meta.filtered:
        message = "the run holds only a selected part of the suite"
    elif not cases.passed + cases.failed:
        message = "the run measured nothing"
    else:
        return
    raise UsageError(f"not stored: {message}")


def write_report(
    report: Report, observed: Run, folder: Path, configured: Mapping[str, Reporter]
) -> None:
    """Write every document that a report becomes, as configured or plainly, and the report."""
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / "report.json") as file:
        file.write(report.model_dump_json(indent=1) + "\n")
    for name in plugins.reporter:
        reporter = configured.get(name) or plugins.reporter[name]()
        with replacing(folder / reporter.file) as file:
            file.writelines(reporter.render(report, observed.results))


def describe(plan: Plan, world: World) -> RunMeta:
    """Return what holds for the whole of a run."""
    created = datetime.fromtimestamp(world.now(), UTC)
    config = plan.config
    repository = Repository(world.root, world.env)
    return RunMeta(
        run_id=f"{created:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}",
        suite=config.suite,
        created=created.isoformat(timespec="seconds"),
        version=__version__,
        config=config.shown,
        commit=repository.commit("HEAD"),
        branch=current_branch(repository),
        agents=tuple(dict.fromkeys(agent for agent, _ in plan.pairs)),
        evalsets={name: chosen.opened.header for name, chosen in plan.evalsets.items()},
        criteria={
            name: CriterionFacts(
                criterion=criterion.type_name,
                better=criterion.direction,
                threshold=criterion.threshold,
                interval=criterion.bounds,
                informational=criterion.informational,
                fingerprint=_fingerprint(criterion, config.judging, world),
            )
            for chosen in plan.pairs.values()
            for name, criterion in chosen.items()
        },
        repeats=plan.repeats,
        filtered=plan.filtered,
        disabled=config.disabled,
        overrides={
            name: module for point in plugins.POINTS for name, module in point.overridden.items()
        },
        warnings=tuple(map(str, plan.warnings)),
    )


def _fingerprint(criterion: AnyCriterion, judging: Judging, world: World) -> str:
    made_of = None
    if isinstance(criterion, WorkerCriterion):
        made_of = criterion.made_of(world)
    elif isinstance(criterion, JudgedCriterion):
        made_of = judging.made_of(criterion)
    more = [made_of] if made_of else []
    return fingerprint([criterion.type_name, criterion.options(), *more])


class _Line:
    """What happens to a trace when it lands."""

    def __init__(
        self, plan: Plan, journal: Journal, writer: RunWriter, outputs: Outputs, stack: ExitStack
    ) -> None:
        self._plan = plan
        self._secrets = outputs.secrets
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

    def to_try(self) -> Iterator[ToTry]:
        """Yield the trials, with what an earlier run observed of them."""
        for number, trial in enumerate(self._plan.trials()):
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
        clean = self._secrets.cleaned(trace)
        # What was scored cannot be scored again from the journal where it held a secret.
        self.journal.add(clean, trial.fingerprint if clean is trace else "")

    async def score(self, taking_part: Team, number: int, trial: Trial, trace: Trace) -> None:
        """Score a trace, and write down its result when its turn has come."""
        criteria = self._plan.pairs[trial.key.agent, trial.key.evalset]
        result = await score(trial, trace, criteria, taking_part.scorers)
        if spent := taking_part.spent(trial.key):
            result = result.model_copy(update={"simulation": spent})
        result = self._secrets.cleaned(result)
        self._watch(result)
        line = trace_line(self._secrets.cleaned(trace)) if self._record else ""
        self._waiting[number] = result, line
        # Results are counted and written in the order of the cases, whichever ends first.
        while self._next in self._waiting:
            ready, line = self._waiting.pop(self._next)
            self.tally.add(ready)
            self._writer.add(ready)
            if self._record:
                self._record.write(line)
            self._next += 1


def _worst(observed: Run, columns: Columns, comparison: Comparison | None) -> Iterator[TrialResult]:
    """Yield the results to show: what changed for the worse first, then failures and errors."""
    wanted: dict[tuple[str, str, str], None] = {}
    changes = sorted(
        (
            change
            for change in (comparison.changes if comparison else ())
            if change.change != "fixed"
        ),
        key=lambda change: not change.certain,
    )
    for change in changes:
        wanted[change.group.agent, change.group.evalset, change.case] = None
    for place, status in columns.cases(observed.meta.criteria):
        if status in (Status.FAILED, Status.ERROR):
            wanted[place] = None
    chosen = {place: rank for rank, place in enumerate(wanted) if rank < MAX_WORST}
    if not chosen:
        return
    found: dict[tuple[str, str, str], TrialResult] = {}
    for result in observed.results():
        place = _place(result.key)
        kept = found.get(place)
        if place in chosen and (kept is None or _graver(result, kept)):
            found[place] = result
    yield from sorted(found.values(), key=lambda result: chosen[_place(result.key)])


def _place(key: TrialKey) -> tuple[str, str, str]:
    return key.agent, key.evalset, key.case


def _graver(result: TrialResult, other: TrialResult) -> bool:
    return (
        result.status is not other.status
        and Status.worst([result.status, other.status]) is result.status
    )
