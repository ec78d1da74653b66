"""Collection of a run: traces as they arrive, results in trial order."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, NamedTuple, Self

from ci_eval.records.cases import Status
from ci_eval.records.findings import GroupKey, Report, Totals
from ci_eval.records.model_usage import ModelUsage
from ci_eval.records.results import JudgeUsage, Run, RunMeta, TrialResult
from ci_eval.records.trials import Failure, Trace, Trial, TrialKey
from ci_eval.run.execute import ToTry
from ci_eval.run.plan import Plan
from ci_eval.run_files import report_phrases
from ci_eval.run_files.file_names import RUN_FILE, TRACES_FILE
from ci_eval.run_files.journal import Journal, trace_line
from ci_eval.run_files.resume import Begun
from ci_eval.run_files.run_file import RunWriter, read_run, replacing
from ci_eval.run_files.score_table import Columns
from ci_eval.text.redact import Secrets
from ci_eval.text.templates import counted

if TYPE_CHECKING:
    from ci_eval.records.compared_trials import AnyTrial


class Progress:
    """Progress of a run; this base class shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop showing progress, however the run ended."""

    def began(self, key: TrialKey) -> None:
        """Handle a trial that begins."""

    def waited(self, seconds: float) -> None:
        """Handle the time that has passed since the last call, or since the beginning."""

    def landed(self, result: TrialResult) -> None:
        """Handle a result."""

    def adopted(self, result: TrialResult) -> None:
        """Handle a result of a shard."""

    def advanced(self) -> None:
        """Handle a trial of the base arm."""

    def rerun(self, trials: int, base: int) -> None:
        """Handle trials of the change and its base arm, added because the verdict is in doubt."""

    def reused(self, trials: int, invocations: int, outdated: int) -> None:
        """Handle what was reused from the run that this one resumes.

        `invocations` belong to unfinished trials; `outdated` trials ran other code.
        """


OF_RESUMED = "from the run that this one resumes"
"""The end of the warning that trials were reused, which is also their progress."""


@dataclass(frozen=True)
class Outputs:
    """Outputs of a run."""

    folder: Path
    record: Path | None = None
    """A file for the traces, in the order of the trials; `recorded` agents read it."""
    resume: bool = False
    """Whether traces that the folder already holds are reused."""
    max_failures: int | None = None
    """After this many trials that did not pass, no more begin; `None`: no limit."""
    progress: Progress = field(default_factory=Progress)
    publish: Callable[[Report], None] = lambda _: None
    """Called with the report once its documents are written."""


_METERED = frozenset({"ci/cost_usd", "ci/model_calls", "ci/tokens"})
"""Criteria that score what the gateway counts."""


@dataclass
class Tally:
    """Counts and values of the results so far."""

    columns: Columns = field(default_factory=Columns)
    trials: int = 0
    retried: int = 0
    duration_s: float = 0.0
    judging: dict[GroupKey, JudgeUsage] = field(default_factory=dict)
    simulation: JudgeUsage | None = None
    failures: dict[str, Failure] = field(default_factory=dict)
    """The first error of each agent."""
    unbegun: bool = False
    """Whether trials were left out because of `max_failures`."""
    carried_over: int = 0
    """The number of trials whose conversations were reused from the run that this one resumes."""
    cut_off: dict[str, list[str]] = field(default_factory=dict)
    """The cases whose responses were cut off, by the reason."""
    calls: Counter[str] = field(default_factory=Counter)
    """The model calls in trials without an error, by agent, if they are metered."""
    live: set[str] = field(default_factory=set)
    """The agents with such calls that reached a provider."""
    metered: Counter[str] = field(default_factory=Counter)
    """The number of these trials, by agent."""
    refused: Counter[str] = field(default_factory=Counter)
    """The model calls that returned an error, by agent."""
    faults: Counter[str] = field(default_factory=Counter)
    """The model calls that got an injected fault instead of an answer, by agent."""

    def add(self, result: "AnyTrial") -> None:
        """Add one result."""
        self.columns.add(result)
        self.trials += 1
        self.retried += result.attempts > 1
        self.duration_s += result.duration_s
        if result.error:
            self.failures.setdefault(result.key.agent, result.error)
        elif result.metered:
            self.calls[result.key.agent] += result.metered.calls
            self.metered[result.key.agent] += 1
            if result.metered.calls > result.metered.replayed:
                self.live.add(result.key.agent)
            self.refused[result.key.agent] += result.metered.errors
            self.faults[result.key.agent] += result.metered.faults
        for reason in result.cut_off:
            self.cut_off.setdefault(reason, []).append(result.key.case)
        if result.simulation:
            self.simulation = (self.simulation or JudgeUsage()) + result.simulation
        for each in result.scores:
            if each.judging:
                key = result.key
                group = GroupKey(agent=key.agent, evalset=key.evalset, criterion=each.name)
                self.judging[group] = self.judging.get(group, JudgeUsage()) + each.judging

    @property
    def stopped_after(self) -> int:
        """The number of trials if others were left out because of `max_failures`; otherwise 0."""
        return self.trials if self.unbegun else 0

    @property
    def judged(self) -> JudgeUsage | None:
        """The usage of all judges; `None` if there are none."""
        return sum(self.judging.values(), JudgeUsage()) if self.judging else None

    @property
    def usage(self) -> JudgeUsage:
        """The usage of all models that ci-eval called."""
        return (self.judged or JudgeUsage()) + (self.simulation or JudgeUsage())

    def totals(self, cases: Totals, meta: RunMeta) -> Totals:
        """Return `cases` with the trials, their times and the models that answered."""
        update = {
            "trials": self.trials,
            "retried": self.retried,
            "duration_s": self.duration_s,
            "models": self.columns.models,
            "unmeasured": (*cases.unmeasured, *self._unmetered(meta)),
        }
        return cases.model_copy(update=update)

    def _unmetered(self, meta: RunMeta) -> Iterator[str]:
        """Yield the criteria that score model calls, with the agents that made no visible call."""
        silent = {agent for agent in self.calls if self._is_silent(agent)}
        # A part of the suite may legitimately call no model.
        names = dict.fromkeys((agent, name) for agent, _, name in self.columns.groups)
        for agent, name in () if meta.filtered else names:
            facts = meta.criteria[name]
            limits = facts.judges or facts.max_growth is not None
            if agent in silent and facts.criterion in _METERED and limits:
                yield f"{name} with {agent}"

    def _is_silent(self, agent: str) -> bool:
        """Return True if no call of an agent passed the gateway."""
        return not self.calls[agent] and not self.faults[agent]

    def warnings(self) -> Iterator[str]:
        """Yield remarks on the trials that no score reflects."""
        if self.carried_over:
            carried = counted(self.carried_over, "trial")
            yield f"reused {carried} {OF_RESUMED}"
        for agent, calls in self.calls.items():
            if self._is_silent(agent):
                message = f"agent {agent!r}: no model call passed the gateway, so nothing was"
                yield f"{message} metered or replayed; does the agent set its own base URL?"
            elif calls and self.refused[agent] == calls:
                message = f"agent {agent!r}: every model call returned an error, so"
                yield f"{message} no model answer was measured"
        if self.judged and (unreadable := self.judged.unreadable):
            yield f"{counted(unreadable, 'answer')} of judges could not be read, and did not count"
        for reason, those in self.cut_off.items():
            names = list(dict.fromkeys(those))
            cases = "case" if len(names) == 1 else "cases"
            count = report_phrases.cut_off([reason] * len(those))
            yield f"{count} ({cases} {report_phrases.listed(names)})"


class Collected(NamedTuple):
    """A run and the tally of its results."""

    run: Run
    tally: Tally


def collected_from(run: Run) -> Collected:
    """Return a stored run with the tally of its results."""
    tally = Tally()
    for result in run.compared_trials():
        tally.add(result)
    return Collected(run, tally)


class Collector:
    """Stores each trace as it lands, and writes results in the order of the trials."""

    def __init__(
        self, plan: Plan, meta: RunMeta, outputs: Outputs, secrets: Secrets, code: Mapping[str, str]
    ) -> None:
        """Prepare a run; `code` has a digest of the code of each agent."""
        self._plan = plan
        self._outputs = outputs
        self._secrets = secrets
        self._path = outputs.folder / RUN_FILE
        traces = outputs.folder / TRACES_FILE
        self._journal = Journal(
            traces, suite=plan.config.suite, resume=outputs.resume, secrets=secrets, code=code
        )
        self._writer = RunWriter(self._path, secrets.cleaned(meta))
        self._record: IO[str] | None = None
        self._open = ExitStack()
        self._waiting: dict[int, tuple[TrialResult, str]] = {}
        """Results and record lines that wait for earlier trials."""
        self._next = 0
        self._failures = 0
        self._earlier: dict[int, Trace | Begun] = {}
        """Journal entries of trials that have not landed yet."""
        self._reused_invocations = 0
        self.tally = Tally()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self._journal)
            stack.enter_context(self._writer)
            if self._outputs.record:
                self._record = stack.enter_context(replacing(self._outputs.record))
            stack.enter_context(self._outputs.progress)
            self._open = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open.__exit__(kind, value, traceback)

    @property
    def folder(self) -> Path:
        """The output directory."""
        return self._outputs.folder

    def numbered(self, trials: Iterator[Trial]) -> Iterator[ToTry]:
        """Yield each trial with its number and any earlier observation."""
        for number, trial in enumerate(trials, start=self._next):
            if self.is_stopped:
                self.tally.unbegun = True
                return
            earlier = self._journal.observed(trial)
            if earlier:
                self._earlier[number] = earlier
            self._outputs.progress.began(trial.key)
            yield number, trial, earlier

    def take_spent(self) -> dict[str, ModelUsage]:
        """Return, once only, the model calls of each agent in the run that this one resumes."""
        spent, self._journal.spent = self._journal.spent, {}
        return spent

    @property
    def is_stopped(self) -> bool:
        """True if no more trials begin because too many did not pass."""
        most = self._outputs.max_failures
        return most is not None and self._failures >= most

    def begun(self, trial: Trial, begun: Begun) -> None:
        """Store an unfinished conversation."""
        self._journal.keep(trial, begun)

    def landed(self, number: int, trial: Trial, trace: Trace) -> None:
        """Keep a trace."""
        earlier = self._earlier.pop(number, None)
        if earlier is trace:
            self.tally.carried_over += 1
            return
        if earlier:
            # A conversation that started over after all has other durations. Conversations that
            # continued on another machine come back as copies.
            pairs = zip(earlier.invocations, trace.invocations, strict=False)
            self._reused_invocations += sum(one == other for one, other in pairs)
        self._journal.add(trace, trial.fingerprint)

    def scored(self, number: int, trace: Trace, result: TrialResult) -> None:
        """Count and write a result, once all earlier ones are written."""
        result = self._secrets.cleaned(result)
        self._outputs.progress.landed(result)
        self._failures += result.status in (Status.FAILED, Status.ERROR)
        line = trace_line(self._secrets.cleaned(trace)) if self._record else ""
        self._waiting[number] = result, line
        while self._next in self._waiting:
            self._write(*self._waiting.pop(self._next))

    def adopt(self, results: Iterator[TrialResult]) -> None:
        """Count and write results of another run, which come in the order of the trials."""
        for each in results:
            result = self._secrets.cleaned(each)
            self._outputs.progress.adopted(result)
            self._write(result, "")

    def adopt_traces(self, path: Path, holds: Callable[[TrialKey, int], bool]) -> int:
        """Keep the traces of another run that belong to a round of this one, and count the trials.

        `holds` is given a trial and the planned repeats of each case.
        """
        plan = self._plan
        return self._journal.copy(
            path, lambda key: plan.holds(key.place) and holds(key, plan.repeats)
        )

    def _write(self, result: TrialResult, line: str) -> None:
        self.tally.add(result)
        self._writer.add(result)
        if self._record:
            self._record.write(line)
        self._next += 1

    def collected(self) -> Collected:
        """Return the run as written."""
        if self._outputs.resume:
            reused = self.tally.carried_over, self._reused_invocations, self._journal.outdated
            self._outputs.progress.reused(*reused)
        return Collected(read_run(self._path, shown=str(self._path)), self.tally)
