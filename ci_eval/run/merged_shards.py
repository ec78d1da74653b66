"""The reports of shards, whose results a merge takes over instead of running agents."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from ci_eval.records.errors import Problem, UsageError
from ci_eval.records.results import TrialResult
from ci_eval.records.trials import Failure, Trial, TrialKey
from ci_eval.run.arms import Arm, Arms, Round, base_folder
from ci_eval.run.base_arm import MAX_REASON
from ci_eval.run.plan import Plan
from ci_eval.run.score import unobserved
from ci_eval.run_files.file_names import CASSETTES_FOLDER, RUN_FILE, SHARD_FILE, TRACES_FILE
from ci_eval.run_files.report_phrases import listed
from ci_eval.run_files.run_file import read_run
from ci_eval.run_files.shard_files import Manifest, Shard, ShardReport, read_shard_report
from ci_eval.text.sanitize import one_line
from ci_eval.text.templates import counted, duration

_log = logging.getLogger(__name__)


class _Found(NamedTuple):
    """The report of one shard."""

    report: ShardReport
    folder: Path

    @property
    def shown(self) -> str:
        """Its name in a message."""
        return f"shard {self.report.shard} ({self.folder})"


@dataclass(frozen=True)
class MergedShards:
    """The shards of one suite, each once."""

    found: Sequence[_Found]
    """In the order of their numbers."""
    total: int
    warnings: Sequence[Problem]
    """The folders that hold no report of a shard."""

    @property
    def missing(self) -> tuple[str, ...]:
        """The shards without a report, such as `3/7`."""
        known = {each.report.index for each in self.found}
        shards = (Shard(number, self.total) for number in range(1, self.total + 1))
        return tuple(str(each) for each in shards if each.index not in known)

    @property
    def summary(self) -> str:
        """How many shards there are, and how long they took."""
        taken = [each.report.duration_s for each in self.found]
        said = f"merging {len(taken)} of {counted(self.total, 'shard')}"
        if not sum(taken):
            return said
        factor = max(taken) * len(taken) / sum(taken)
        return f"{said}; the longest took {duration(max(taken))}, {factor:.2f} times the mean"

    def recorded(self, name: str) -> dict[str, Path]:
        """Return the files that shards recorded to instead of a cassette, by shard."""
        files = {each.shown: each.folder / CASSETTES_FOLDER / name for each in self.found}
        return {shown: path for shown, path in files.items() if path.exists()}

    def adopt(self, arms: Arms, planned: Round) -> None:
        """Take over the results of all trials of a round.

        Raises:
            UsageError: a result does not belong to the round, or two shards have one.

        """
        for arm, trials, _ in planned.trials:
            is_change = arm is arms.change
            folders = [
                (each, each.folder if is_change else base_folder(each.folder))
                for each in self.found
            ]
            known = [(each, path) for each, path in folders if (path / RUN_FILE).is_file()]
            arm.collector.adopt(self._results(arm, trials, known, is_change=is_change))
            for _, path in known:
                if (path / TRACES_FILE).is_file():
                    arm.collector.adopt_traces(path / TRACES_FILE)

    @property
    def unconfirmed(self) -> str:
        """Why no shard could run the agents of the merge base; empty if one could."""
        reasons = [each.report.unconfirmed for each in self.found]
        return one_line(reasons[0], MAX_REASON) if all(reasons) else ""

    def _results(
        self,
        arm: Arm,
        trials: Iterator[Trial],
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
        for trial in trials:
            criteria = arm.plan.pairs[trial.key.agent, trial.key.evalset]
            found = heads.take(trial.key)
            if found is None and is_change and not self.missing:
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
        for each in self.found if is_change else ():
            if (count := heads.count.get(each.report.index, 0)) != each.report.trials:
                message = f"it ran {each.report.trials} trials, but has {count} results"
                raise _refused(each, message)

    @property
    def _why_lost(self) -> str:
        missing = [*self.missing]
        noun = "shard" if len(missing) == 1 else "shards"
        return f"no report of {noun} {listed(missing)}" if missing else "no shard has a result"


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
    problems, found = list[Problem](), dict[int, _Found]()
    for folder in folders:
        path = folder / SHARD_FILE
        if not path.is_file():
            why = f"has no {SHARD_FILE}" if folder.is_dir() else "is not a folder"
            problems.append(
                Problem(f"{why}, so it counts as a shard without a report", str(folder))
            )
            continue
        each = _Found(read_shard_report(path, shown=str(path)), folder)
        _check(each, manifest, found)
        number = each.report.index
        found[number] = _later(found[number], each) if number in found else each
    if not found:
        hint = "pass the output folders of `ci-eval run --shard I/N`"
        raise UsageError("there is no report of a shard", hint=hint, problems=problems)
    ordered = [found[number] for number in sorted(found)]
    for each in ordered:
        _log.info("%s: %d trials", each.shown, each.report.trials)
    warnings = [replace(each, severity="warning") for each in problems]
    return MergedShards(ordered, ordered[0].report.total, warnings)


def _check(each: _Found, manifest: Manifest, others: Mapping[int, _Found]) -> None:
    """Refuse a shard of another suite, or of another division of this one."""
    report = each.report
    if differences := manifest.differences(report.manifest):
        hint = "merge on the commit of the shards, and with the options that they had"
        raise UsageError(f"{each.shown} cannot be merged: it differs in {differences}", hint=hint)
    if report.index > report.total:
        raise _refused(each, "its number exceeds the number of shards")
    for other in others.values():
        if (report.total, report.assignment) != (other.report.total, other.report.assignment):
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
