"""The reports of shards, whose results a merge takes over instead of running agents."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from ci_eval.records.cases import Json
from ci_eval.records.errors import Problem, UsageError
from ci_eval.records.results import TrialResult
from ci_eval.records.trials import Failure, Trial, TrialKey
from ci_eval.run import shards
from ci_eval.run.arms import Arm, Arms, Round, base_folder
from ci_eval.run.base_arm import MAX_REASON
from ci_eval.run.plan import Plan
from ci_eval.run.rerun import Redraw
from ci_eval.run.score import unobserved
from ci_eval.run_files.file_names import CASSETTES_FOLDER, RUN_FILE, SHARD_FILE, TRACES_FILE
from ci_eval.run_files.report_phrases import listed
from ci_eval.run_files.run_file import read_run
from ci_eval.run_files.score_table import Past
from ci_eval.run_files.shard_files import (
    FurtherTrials,
    Manifest,
    PlannedRedraw,
    ShardPlan,
    ShardReport,
    read_shard_report,
)
from ci_eval.text.fingerprint import fingerprint
from ci_eval.text.sanitize import one_line
from ci_eval.text.templates import counted, duration

_log = logging.getLogger(__name__)
_OLD = "is of an earlier attempt than the shards that it confirms, so it does not count"


class _Found(NamedTuple):
    """The report of one shard."""

    report: ShardReport
    folder: Path

    @property
    def shown(self) -> str:
        """Its name in a message."""
        return f"shard {self.report.shard} ({self.folder})"

    def is_older(self, attempts: Mapping[str, int]) -> bool:
        """Return True if its workflow run had a later attempt at what it confirms."""
        return self.report.attempt < attempts.get(self.report.workflow_run, 0)


@dataclass(frozen=True)
class FanOut:
    """The shards that ran at once, each once."""

    found: Sequence[_Found]
    """In the order of their numbers."""

    @property
    def redraw(self) -> PlannedRedraw | None:
        """The redraw that they ran; `None` for the planned trials."""
        return self.found[0].report.redraw

    @property
    def missing(self) -> tuple[str, ...]:
        """The shards without a report, such as `3/7`."""
        known = {each.report.index for each in self.found}
        one = self.found[0].report.shard
        shards = (replace(one, index=number) for number in range(1, one.total + 1))
        return tuple(str(each) for each in shards if each.index not in known)

    @property
    def summary(self) -> str:
        """How many shards there are, and how long they took."""
        one, taken = self.found[0].report.shard, [each.report.duration_s for each in self.found]
        of = f" of redraw {one.redraw}" if one.redraw else ""
        said = f"merging {len(taken)} of {counted(one.total, 'shard')}{of}"
        if not sum(taken):
            return said
        factor = max(taken) * len(taken) / sum(taken)
        return f"{said}; the longest took {duration(max(taken))}, {factor:.2f} times the mean"

    @property
    def run_ids(self) -> list[Json]:
        """The ids of their runs, which no other attempt has."""
        files = (each.folder / RUN_FILE for each in self.found)
        return [read_run(path, shown=str(path)).meta.run_id for path in files if path.is_file()]

    def check(self, expected: PlannedRedraw | None) -> None:
        """Refuse a redraw that is not the one that the reports before it need.

        Raises:
            UsageError: it is another one.

        """
        if expected == self.redraw:
            return
        is_of_others = expected and self.redraw and expected.reports != self.redraw.reports
        why = (
            "it confirms other reports than those that are merged"
            if is_of_others
            else "its trials are not those that the verdict needs"
        )
        hint = "merge without the redraw, or plan it again: `ci-eval merge --redraw-plan FILE`"
        raise UsageError(f"{self.found[0].shown} cannot be merged: {why}", hint=hint)

    def adopt(self, arms: Arms, planned: Round) -> None:
        """Take over the results of all trials of a round.

        Raises:
            UsageError: a result does not belong to the round, or two shards have one.

        """
        for arm, redraw in planned.drawn:
            is_change = arm is arms.change
            folders = [
                (each, each.folder if is_change else base_folder(each.folder))
                for each in self.found
            ]
            known = [(each, path) for each, path in folders if (path / RUN_FILE).is_file()]
            arm.collector.adopt(self._results(arm, redraw, known, is_change=is_change))
            for _, path in known:
                if (path / TRACES_FILE).is_file():
                    arm.collector.adopt_traces(path / TRACES_FILE, redraw.holds)

    @property
    def unconfirmed(self) -> str:
        """Why no shard could run the agents of the merge base; empty if one could."""
        reasons = [each.report.unconfirmed for each in self.found]
        return one_line(reasons[0], MAX_REASON) if all(reasons) else ""

    def _results(
        self,
        arm: Arm,
        redraw: Redraw,
        folders: Sequence[tuple[_Found, Path]],
        *,
        is_change: bool,
    ) -> Iterator[TrialResult]:
        """Yield the result of each trial; the shards have theirs in the same order."""
        heads = _Heads()
        for each, path in folders:
            run = read_run(path / RUN_FILE, shown=str(path / RUN_FILE))
            heads.advance(each, iter(run.results()))
        lost = Failure(kind="not_run", message=self._why_lost)
        for trial in redraw.trials(arm.plan):
            criteria = arm.plan.pairs[trial.key.agent, trial.key.evalset]
            found = heads.take(trial.key)
            # A planned trial of the merge base may have been impossible.
            if found is None and (is_change or self.redraw) and not self.missing:
                message = f"no shard has a result of {trial.key.shown}"
                raise UsageError(message, hint="run the shards again, in folders of their own")
            if found is None:
                yield unobserved(trial, lost, criteria)
                continue
            each, result = found
            if not _fits(result, trial, arm.plan):
                raise _refused(each, f"its result of {trial.key.shown} is of another trial")
            yield result
        for key, (each, _) in heads.waiting.items():
            message = f"its result of {key.shown} is not in the plan, or not in its order"
            raise _refused(each, message)
        for each in self.found:
            ran = each.report.trials if is_change else each.report.base_trials
            if (count := heads.count.get(each.report.index, 0)) != ran:
                message = f"it ran {ran} trials, but has {count} results"
                raise _refused(each, message)

    @property
    def _why_lost(self) -> str:
        missing = [*self.missing]
        noun = "shard" if len(missing) == 1 else "shards"
        return f"no report of {noun} {listed(missing)}" if missing else "no shard has a result"


class InDoubtError(Exception):
    """The verdict is in doubt, and other jobs are to settle it."""

    def __init__(self, plan: ShardPlan) -> None:
        super().__init__("the verdict is in doubt")
        self.plan = plan


@dataclass(frozen=True)
class MergedShards:
    """The reports of all shards of a suite."""

    planned: FanOut
    redraws: Sequence[FanOut]
    """Those of further trials, round by round."""
    warnings: Sequence[Problem]
    """The folders that hold no report of a shard, or an old one."""
    leaves_doubt: bool = False
    """Whether doubts that are left are settled in other jobs."""

    @property
    def missing(self) -> tuple[str, ...]:
        """The shards without a report, such as `3/7`."""
        return tuple(name for each in (self.planned, *self.redraws) for name in each.missing)

    def recorded(self, name: str) -> dict[str, Path]:
        """Return the files that shards recorded to instead of a cassette, by shard."""
        found = (each for fan_out in (self.planned, *self.redraws) for each in fan_out.found)
        files = {each.shown: each.folder / CASSETTES_FOLDER / name for each in found}
        return {shown: path for shown, path in files.items() if path.exists()}

    def rounds(self, arms: Arms) -> Iterator[Round]:
        """Take over the results of all shards, and yield the rounds that are left to execute.

        Raises:
            UsageError: a result does not belong to its round, or two shards have one.
            InDoubtError: a round is left, and other jobs are to execute it.

        """
        for planned in arms.planned_rounds():
            self.planned.adopt(arms, planned)
        done = [self.planned]
        # While trials are missing, others could not settle the verdict.
        for each in self.redraws:
            if done[-1].missing:
                return
            further = arms.next_round()
            each.check(_redraw(arms, further, done) if further else None)
            each.adopt(arms, further or Round([]))
            done.append(each)
        while not done[-1].missing and (further := arms.next_round()):
            if self.leaves_doubt:
                raise InDoubtError(_plan(arms, further, done))
            yield further


def _redraw(arms: Arms, further: Round, done: Sequence[FanOut]) -> PlannedRedraw:
    """Return the plan of a round that the reports so far leave to execute."""
    trials = {arm is arms.change: redraw.stored() for arm, redraw in further.drawn}
    return PlannedRedraw(
        number=len(done),
        reports=fingerprint([id_ for each in done for id_ in each.run_ids]),
        change=trials.get(True, FurtherTrials()),
        base=trials.get(False, FurtherTrials()),
    )


def _plan(arms: Arms, further: Round, done: Sequence[FanOut]) -> ShardPlan:
    """Divide a round among shards, by the durations in the reports so far."""
    one = done[0].found[0].report
    trials = (trial for arm, redraw in further.drawn for trial in redraw.trials(arm.plan))
    counts = Counter(trial.key.place for trial in trials)
    past = [Past(arms.meta, arms.change.collector.tally.columns)]
    total = min(one.total, len(counts))
    found = shards.division(arms.change.plan, counts, total, one.manifest, past)
    return found.model_copy(update={"redraw": _redraw(arms, further, done)})


@dataclass
class _Heads:
    """The next result of each shard."""

    waiting: dict[TrialKey, tuple[_Found, TrialResult]] = field(default_factory=dict)
    results: dict[int, Iterator[TrialResult]] = field(default_factory=dict)
    """By the number of the shard."""
    count: dict[int, int] = field(default_factory=dict)
    """Results so far, by the number of the shard."""

    def advance(self, shard: _Found, results: Iterator[TrialResult]) -> None:
        """Take the next result of a shard, if there is one."""
        result = next(results, None)
        if result is None:
            return
        self.count[shard.report.index] = self.count.get(shard.report.index, 0) + 1
        if result.key in self.waiting:
            other = self.waiting[result.key][0].shown
            raise _refused(shard, f"it has the result of {result.key.shown}, as {other} does")
        self.results[shard.report.index] = results
        self.waiting[result.key] = shard, result

    def take(self, key: TrialKey) -> tuple[_Found, TrialResult] | None:
        """Return the result of a trial with its shard; `None` if no shard has it."""
        found = self.waiting.pop(key, None)
        if found:
            self.advance(found[0], self.results[found[0].report.index])
        return found


def _fits(result: TrialResult, trial: Trial, plan: Plan) -> bool:
    """Return True if a result is of this trial, with a score for each criterion."""
    criteria = plan.pairs[trial.key.agent, trial.key.evalset]
    scored = [(each.name, each.criterion) for each in result.scores]
    return (
        result.case_fingerprint == trial.fingerprint
        and result.round == trial.round
        and result.confirms == trial.confirms
        and scored == [(name, each.type_name) for name, each in criteria.items()]
    )


def _refused(shard: _Found, why: str) -> UsageError:
    return UsageError(f"{shard.shown} cannot be merged: {why}")


def gathered(folders: Sequence[Path], manifest: Manifest) -> MergedShards:
    """Read the reports of shards of the suite `manifest`.

    A folder without a report is as good as none: a job that was killed leaves such a folder.

    Raises:
        UsageError: there is no report, one is of another suite, or two contradict each other.

    """
    problems, read = list[Problem](), dict[int, list[_Found]]()
    for folder in folders:
        path = folder / SHARD_FILE
        if not path.is_file():
            why = f"has no {SHARD_FILE}" if folder.is_dir() else "is not a folder"
            problems.append(
                Problem(f"{why}, so it counts as a shard without a report", str(folder))
            )
            continue
        each = _Found(read_shard_report(path, shown=str(path)), folder)
        read.setdefault(each.report.shard.redraw, []).append(each)
    if 0 not in read:
        hint = "pass the output folders of `ci-eval run --shard I/N`"
        raise UsageError("there is no report of a shard", hint=hint, problems=problems)
    fan_outs, attempts = list[FanOut](), dict[str, int]()
    for number, reports in sorted(read.items()):
        current = [each for each in reports if not each.is_older(attempts)]
        old = (each for each in reports if each.is_older(attempts))
        problems += (Problem(_OLD, str(each.folder)) for each in old)
        for each in current:
            run = each.report.workflow_run
            attempts[run] = max(each.report.attempt, attempts.get(run, 0))
        if current and number != len(fan_outs):
            message = f"there is a report of redraw {number}, but none of redraw {len(fan_outs)}"
            raise UsageError(message, hint="pass the reports of all redraws")
        if current:
            fan_outs.append(_fan_out(current, manifest))
    warnings = [replace(each, severity="warning") for each in problems]
    return MergedShards(fan_outs[0], fan_outs[1:], warnings)


def _fan_out(reports: Iterable[_Found], manifest: Manifest) -> FanOut:
    """Return the shards that ran at once, each once.

    Raises:
        UsageError: one is of another suite, or two contradict each other.

    """
    found: dict[int, _Found] = {}
    for each in reports:
        _check(each, manifest, found)
        number = each.report.index
        found[number] = _later(found[number], each) if number in found else each
    ordered = [found[number] for number in sorted(found)]
    for each in ordered:
        _log.info("%s: %d trials", each.shown, each.report.trials)
    return FanOut(ordered)


def _check(each: _Found, manifest: Manifest, others: Mapping[int, _Found]) -> None:
    """Refuse a shard of another suite, or of another division of this one."""
    report = each.report
    if differences := manifest.differences(report.manifest):
        hint = "merge on the commit of the shards, and with the options that they had"
        raise UsageError(f"{each.shown} cannot be merged: it differs in {differences}", hint=hint)
    if report.index > report.total:
        raise _refused(each, "its number exceeds the number of shards")
    for other in others.values():
        if report.division != other.report.division:
            raise _refused(each, f"its cases were assigned differently from those of {other.shown}")


def _later(one: _Found, other: _Found) -> _Found:
    """Return the report of the later attempt at the same shard."""
    if one.report == other.report and _content(one) == _content(other):
        return one
    same = one.report.workflow_run and one.report.workflow_run == other.report.workflow_run
    if not same or one.report.attempt == other.report.attempt:
        raise _refused(other, f"{one.shown} is another run of it; pass one of them")
    return max(one, other, key=lambda each: each.report.attempt)


def _content(shard: _Found) -> bytes:
    path = shard.folder / RUN_FILE
    return path.read_bytes() if path.is_file() else b""
