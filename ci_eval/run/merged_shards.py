"""The reports of shards: of the planned trials, and of redraws that settle a verdict in doubt."""

import glob
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ci_eval.records.errors import Problem, UsageError
from ci_eval.records.results import RunMeta
from ci_eval.run import shards
from ci_eval.run.arms import Arms, Round, base_folder
from ci_eval.run.fan_out import FanOut, Found, refused, saying_what_to_do
from ci_eval.run_files.file_names import CASSETTES_FOLDER, RUN_FILE, SHARD_FILE
from ci_eval.run_files.score_table import Past
from ci_eval.run_files.shard_files import (
    FurtherTrials,
    Manifest,
    PlannedRedraw,
    ShardPlan,
    read_shard_report,
)
from ci_eval.text.fingerprint import fingerprint

_log = logging.getLogger(__name__)
_OLD = "belongs to an earlier attempt than the shards that it confirms, so it is ignored"


class InDoubtError(Exception):
    """The verdict is in doubt, and other jobs have to settle it."""

    def __init__(self, plan: ShardPlan) -> None:
        super().__init__("the verdict is in doubt")
        self.plan = plan


@dataclass(frozen=True)
class MergedShards:
    """The reports of all shards of a suite."""

    planned: FanOut
    redraws: Sequence[FanOut]
    """The shards of further trials, round by round."""
    warnings: Sequence[Problem]
    """Warnings about folders with no shard report, or with an old one."""
    leaves_doubt: bool = False
    """Whether other jobs settle a verdict that is still in doubt."""

    @property
    def missing(self) -> tuple[str, ...]:
        """The shards without a report, such as `3/7`."""
        return tuple(name for each in (self.planned, *self.redraws) for name in each.missing)

    @property
    def modified(self) -> bool:
        """Whether tracked files differed from the commit where a shard ran."""
        return any(meta.modified for meta in self._metas)

    @property
    def untracked(self) -> tuple[str, ...]:
        """What git did not track where a shard ran."""
        return tuple(dict.fromkeys(name for meta in self._metas for name in meta.untracked))

    @property
    def _metas(self) -> Iterator[RunMeta]:
        fan_outs = (self.planned, *self.redraws)
        return (each.meta for fan_out in fan_outs for each in fan_out.found)

    def recorded(self, name: str) -> dict[str, Path]:
        """Return the files, by shard, to which shards recorded instead of to a cassette."""
        found = (each for fan_out in (self.planned, *self.redraws) for each in fan_out.found)
        files = {each.shown: each.folder / CASSETTES_FOLDER / name for each in found}
        return {shown: path for shown, path in files.items() if path.exists()}

    def rounds(self, arms: Arms) -> Iterator[Round]:
        """Adopt the results of all shards, and yield the rounds that are left to execute.

        Raises:
            UsageError: a result does not belong to its round, or two shards have the same one.
            InDoubtError: a round is left, and other jobs have to execute it.

        """
        arms.runs_elsewhere = True
        for planned in arms.planned_rounds():
            self.planned.adopt(arms, planned)
        done = [self.planned]
        # While trials are missing, further trials could not settle the verdict.
        for each in self.redraws:
            if done[-1].missing:
                return
            drawn = arms.next_round() or Round([])
            each.check(_redraw(arms, drawn, done))
            each.adopt(arms, drawn)
            done.append(each)
        arms.runs_elsewhere = self.leaves_doubt
        while not done[-1].missing and (further := arms.next_round()):
            if self.leaves_doubt:
                raise InDoubtError(_plan(arms, further, done))
            yield further


def _redraw(arms: Arms, further: Round, done: Sequence[FanOut]) -> PlannedRedraw:
    """Return the plan of a round that is still to be executed after the reports so far."""
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


def gathered(folders: Sequence[Path], manifest: Manifest) -> MergedShards:
    """Read the reports of shards of the suite `manifest`.

    A folder without a report counts as a missing one: a killed job leaves such a folder.

    Raises:
        UsageError: there is no report, one belongs to another suite, or two contradict each other.

    """
    problems, read = list[Problem](), dict[int, list[Found]]()
    for folder in folders:
        path = folder / SHARD_FILE
        if not path.is_file():
            none = "matches no folder" if glob.has_magic(str(folder)) else "is not a folder"
            why = f"has no {SHARD_FILE}" if folder.is_dir() else none
            problems.append(Problem(f"{why}, so it is not the report of a shard", str(folder)))
            continue
        with saying_what_to_do():
            each = Found(read_shard_report(path, shown=str(path)), folder)
        read.setdefault(each.report.shard.redraw, []).append(each)
    if not read:
        hint = "pass the output folders of `ci-eval run --shard I/N`"
        raise UsageError("no shard report was found", hint=hint, problems=problems)
    fan_outs, attempts = list[FanOut](), dict[str, int]()
    for number, reports in sorted(read.items()):
        current = [each for each in reports if not each.is_older(attempts)]
        old = (each for each in reports if each.is_older(attempts))
        problems += (Problem(_OLD, str(each.folder)) for each in old)
        for each in current:
            run = each.report.workflow_run
            attempts[run] = max(each.report.attempt, attempts.get(run, 0))
        if current and number != len(fan_outs):
            lacks = f"redraw {len(fan_outs)}" if fan_outs else "the shards that it adds trials to"
            message = f"there is a report of redraw {number}, but none of {lacks}"
            raise UsageError(message, hint="pass the reports of all shards and redraws")
        if current:
            fan_outs.append(_fan_out(current, manifest))
    warnings = [replace(each, severity="warning") for each in problems]
    return MergedShards(fan_outs[0], fan_outs[1:], warnings)


@saying_what_to_do()
def _fan_out(reports: Iterable[Found], manifest: Manifest) -> FanOut:
    """Return the shards that ran at the same time, each once.

    Raises:
        UsageError: one belongs to another suite, or two contradict each other.

    """
    found: dict[int, Found] = {}
    for each in reports:
        _check(each, manifest, found)
        number = each.report.index
        found[number] = _later(found[number], each) if number in found else each
    ordered = [found[number] for number in sorted(found)]
    for each in ordered:
        each.check()
        _log.info("%s: %d trials", each.shown, each.report.trials)
    return FanOut(ordered)


def _check(each: Found, manifest: Manifest, others: Mapping[int, Found]) -> None:
    """Reject a shard of another suite, or of another division of this one."""
    report = each.report
    if differences := manifest.differences(report.manifest):
        hint = "merge on the commit that the shards ran on, with the same options"
        raise UsageError(f"{each.shown} cannot be merged: it differs in {differences}", hint=hint)
    if report.index > report.total:
        raise refused(each, "its number exceeds the number of shards")
    for other in others.values():
        if report.division != other.report.division:
            message = f"its cases were assigned differently from those of {other.shown}"
            raise refused(each, message, "run all shards with the same --plan, or all without one")


def _later(one: Found, other: Found) -> Found:
    """Return the report of the later attempt at the same shard."""
    if one.report == other.report and _content(one) == _content(other):
        return one
    same = one.report.workflow_run and one.report.workflow_run == other.report.workflow_run
    if not same or one.report.attempt == other.report.attempt:
        why = f"{one.shown} is another run of the same shard"
        raise refused(other, why, "pass only one of them")
    return max(one, other, key=lambda each: each.report.attempt)


def _content(shard: Found) -> list[bytes]:
    """Return the results of both arms."""
    files = (each / RUN_FILE for each in (shard.folder, base_folder(shard.folder)))
    return [path.read_bytes() if path.is_file() else b"" for path in files]
