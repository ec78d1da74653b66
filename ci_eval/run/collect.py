"""Collection of a run: traces as they arrive, results in trial order."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, Self

from ci_eval.records.cases import Status
from ci_eval.records.comparisons import GroupKey
from ci_eval.records.findings import Report, Totals
from ci_eval.records.model_usage import ModelUsage
from ci_eval.records.results import JudgeUsage, Run, RunMeta, TrialResult
from ci_eval.records.trials import Failure, Trace, Trial, TrialKey
from ci_eval.run.execute import ToTry
from ci_eval.run.plan import Plan
from ci_eval.run_files import report_phrases
from ci_eval.run_files.file_names import RUN_FILE, TRACES_FILE
from ci_eval.run_files.journal import Journal, trace_line
from ci_eval.run_files.resume import Begun
from ci_eval.run_files.run_file import read_run, replacing, writing_run
from ci_eval.run_files.score_table import Columns
from ci_eval.text.redact import Secrets
from ci_eval.text.templates import counted

if TYPE_CHECKING:
    from ci_eval.records.compared_trials import AnyTrial


class Progress:
    """Progress of a run; this base class shows nothing."""

    told: str = ""
    """The remark that `reused` got, which is also a warning of the report."""

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

    def reused(self, remark: str, outdated: int) -> None:
        """Handle the remark on what was reused, and the number of trials that ran other code."""
        del outdated
        self.told = remark


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
    continued: int = 0
    """The number of invocations that were reused from its unfinished trials."""
    cut_off: dict[str, list[str]] = field(default_factory=dict)
    """The cases whose responses were cut off, by the reason."""
    used: dict[str, ModelUsage] = field(default_factory=dict)
    """The model calls in trials without an error, by agent, if they are metered."""
    metered: Counter[str] = field(default_factory=Counter)
    """The number of these trials, by agent."""

    def add(self, result: "AnyTrial") -> None:
        """Add one result."""
        self.columns.add(result)
        self.trials += 1
        self.retried += result.attempts > 1
        self.duration_s += result.duration_s
        if result.error:
            self.failures.setdefault(result.key.agent, result.error)
        elif result.metered:
            agent, used = result.key.agent, result.metered
            self.used[agent] = self.used[agent] + used if agent in self.used else used
            self.metered[agent] += 1
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
    def reused(self) -> str:
        """The remark on what was reused from the run that this one resumes."""
        begun = counted(self.continued, "invocation")
        others = f", and {begun} of others" if self.continued else ""
        return f"reused {counted(self.carried_over, 'trial')}{others} from the previous run"

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
        silent = {agent for agent, used in self.used.items() if _is_silent(used)}
        # A part of the suite may legitimately call no model.
        names = dict.fromkeys((agent, name) for agent, _, name in self.columns.groups)
        for agent, name in () if meta.filtered else names:
            facts = meta.criteria[name]
            limits = facts.judges or facts.max_growth is not None
            if agent in silent and facts.criterion in _METERED and limits:
                yield f"{name} with {agent}"

    def warnings(self) -> Iterator[str]:
        """Yield remarks on the trials that no score reflects."""
        if self.carried_over or self.continued:
            yield self.reused
        for agent, used in self.used.items():
            if _is_silent(used):
                message = f"agent {agent!r}: no model call passed the gateway, so nothing was"
                yield f"{message} metered or replayed; does the agent set its own base URL?"
            elif used.calls and used.errors == used.calls:
                message = f"agent {agent!r}: every model call returned an error, so"
                yield f"{message} no model answer was measured"
        if self.judged and (unreadable := self.judged.unreadable):
            yield f"{counted(unreadable, 'answer')} of judges could not be read, and did not count"
        for reason, those in self.cut_off.items():
            names = list(dict.fromkeys(those))
            cases = "case" if len(names) == 1 else "cases"
            count = report_phrases.cut_off([reason] * len(those))
            yield f"{count} ({cases} {report_phrases.listed(names)})"


def _is_silent(used: ModelUsage) -> bool:
    """Return True if no call of an agent passed the gateway."""
    return not used.calls and not used.faults


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


@dataclass
class Collector:
    """Stores each trace as it lands, and writes results in the order of the trials."""

    plan: Plan
    outputs: Outputs
    secrets: Secrets
    journal: Journal
    write: Callable[[TrialResult], None]
    """Adds a result to the file of the run."""
    record: IO[str] | None
    """The open file for the traces, if one is wanted."""
    tally: Tally = field(default_factory=Tally)
    redacted: int = 0
    """The number of recorded conversations in which a secret was replaced."""
    _waiting: dict[int, tuple[TrialResult, str]] = field(default_factory=dict)
    """Results and record lines that wait for earlier trials."""
    _next: int = 0
    _failures: int = 0
    _earlier: dict[int, Trace | Begun] = field(default_factory=dict)
    """Journal entries of trials that have not landed yet."""

    def numbered(self, trials: Iterator[Trial]) -> Iterator[ToTry]:
        """Yield each trial with its number and any earlier observation."""
        for number, trial in enumerate(trials, start=self._next):
            if self.is_stopped:
                self.tally.unbegun = True
                return
            earlier = self.journal.observed(trial)
            if earlier:
                self._earlier[number] = earlier
            self.outputs.progress.began(trial.key)
            yield number, trial, earlier

    def take_spent(self) -> dict[str, ModelUsage]:
        """Return, once only, the model calls of each agent in the run that this one resumes."""
        spent, self.journal.spent = self.journal.spent, {}
        return spent

    @property
    def is_stopped(self) -> bool:
        """True if no more trials begin because too many did not pass."""
        most = self.outputs.max_failures
        return most is not None and self._failures >= most

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
            self.tally.continued += sum(one == other for one, other in pairs)
        self.journal.add(trace, trial.fingerprint)

    def scored(self, number: int, trace: Trace, result: TrialResult) -> None:
        """Count and write a result, once all earlier ones are written."""
        result = self.secrets.cleaned(result)
        self.outputs.progress.landed(result)
        self._failures += result.status in (Status.FAILED, Status.ERROR)
        line = ""
        if self.record:
            cleaned = self.secrets.cleaned(trace)
            line = trace_line(cleaned)
            self.redacted += cleaned is not trace and line != trace_line(trace)
        self._waiting[number] = result, line
        while self._next in self._waiting:
            self._write(*self._waiting.pop(self._next))

    def adopt(self, results: Iterator[TrialResult]) -> None:
        """Count and write results of another run, which come in the order of the trials."""
        for each in results:
            result = self.secrets.cleaned(each)
            self.outputs.progress.adopted(result)
            self._write(result, "")

    def adopt_traces(self, path: Path, holds: Callable[[TrialKey, int], bool]) -> int:
        """Keep the traces of another run that belong to a round of this one, and count the trials.

        `holds` is given a trial and the planned repeats of each case.
        """
        plan = self.plan
        return self.journal.copy(
            path, lambda key: plan.holds(key.place) and holds(key, plan.repeats)
        )

    def _write(self, result: TrialResult, line: str) -> None:
        self.tally.add(result)
        self.write(result)
        if self.record:
            self.record.write(line)
        self._next += 1

    def collected(self) -> Collected:
        """Return the run as written."""
        if self.outputs.resume:
            self.outputs.progress.reused(self.tally.reused, self.journal.outdated)
        path = self.outputs.folder / RUN_FILE
        return Collected(read_run(path, shown=str(path)), self.tally)


@contextmanager
def collecting(
    plan: Plan, meta: RunMeta, outputs: Outputs, secrets: Secrets, code: Mapping[str, str]
) -> Iterator[Collector]:
    """Open the files of a run; `code` has a digest of the code of each agent."""
    traces, suite = outputs.folder / TRACES_FILE, plan.config.suite
    with (
        Journal(traces, suite=suite, resume=outputs.resume, secrets=secrets, code=code) as journal,
        writing_run(outputs.folder / RUN_FILE, secrets.cleaned(meta)) as write,
        replacing(outputs.record) if outputs.record else nullcontext() as record,
        outputs.progress,
    ):
        yield Collector(plan, outputs, secrets, journal, write, record)
