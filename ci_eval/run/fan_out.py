"""Shards that ran at the same time; a merge adopts their results instead of running agents."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from ci_eval.llm.line_file import line_counts
from ci_eval.records.cases import Json
from ci_eval.records.errors import UsageError
from ci_eval.records.results import RunMeta, TrialResult
from ci_eval.records.trials import Failure, Trial, TrialKey
from ci_eval.run.arms import Arm, Arms, Round, base_folder
from ci_eval.run.base_arm import MAX_REASON
from ci_eval.run.plan import Plan
from ci_eval.run.rerun import Redraw
from ci_eval.run.score import unobserved
from ci_eval.run_files.file_names import CASSETTES_FOLDER, RUN_FILE, TRACES_FILE
from ci_eval.run_files.report_phrases import named_shards
from ci_eval.run_files.run_file import read_run
from ci_eval.run_files.shard_files import PlannedRedraw, ShardReport
from ci_eval.text.sanitize import one_line
from ci_eval.text.templates import counted, duration


@contextmanager
def saying_what_to_do() -> Iterator[None]:
    """Add a hint to the rejection of a report that has none."""
    try:
        yield
    except UsageError as exc:
        exc.hint = exc.hint or "run the shard again, or omit its folder to merge without a verdict"
        raise


class Found(NamedTuple):
    """The report of one shard."""

    report: ShardReport
    folder: Path

    @property
    def shown(self) -> str:
        """Its name in a message."""
        return f"shard {self.report.shard} ({self.folder})"

    @property
    def meta(self) -> RunMeta:
        """The metadata of its run."""
        path = self.folder / RUN_FILE
        return read_run(path, shown=str(path)).meta

    def check(self) -> None:
        """Reject results of another run.

        Raises:
            UsageError: there are no results, or they are not those of the report.

        """
        if not (self.folder / RUN_FILE).is_file():
            raise refused(self, f"it has no {RUN_FILE}")
        report, meta = self.report, self.meta
        expected = report.run_id, str(report.shard), report.manifest.suite, report.manifest.commit
        if (meta.run_id, meta.shard, meta.suite, meta.commit) != expected:
            raise refused(self, f"its {RUN_FILE} is of another run")
        found = line_counts(self.folder / CASSETTES_FOLDER)
        if any(found.get(name, 0) < lines for name, lines in report.recordings.items()):
            raise refused(self, f"its {CASSETTES_FOLDER} lack calls that it recorded")

    def trials(self, *, is_change: bool) -> int:
        """Return the number of its trials of the change, or of the merge base."""
        return self.report.trials if is_change else self.report.base_trials

    def is_older(self, attempts: Mapping[str, int]) -> bool:
        """Return True if its workflow run later repeated one of the shards that it confirms."""
        return self.report.attempt < attempts.get(self.report.workflow_run, 0)


@dataclass(frozen=True)
class FanOut:
    """The shards that ran at the same time, each listed once."""

    found: Sequence[Found]
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
        """The ids of their runs, which differ for every attempt."""
        return [each.report.run_id for each in self.found]

    def check(self, expected: PlannedRedraw) -> None:
        """Reject a redraw that is not the one that the earlier reports need.

        Raises:
            UsageError: it is a different one.

        """
        if expected == self.redraw:
            return
        why = "its trials are not those that the verdict needs"
        if self.redraw and self.redraw.reports != expected.reports:
            why = "it confirms reports other than those being merged"
        hint = "merge without the redraw, or plan it again: `ci-eval merge --redraw-plan FILE`"
        raise UsageError(f"{self.found[0].shown} cannot be merged: {why}", hint=hint)

    @saying_what_to_do()
    def adopt(self, arms: Arms, planned: Round) -> None:
        """Adopt the results of all trials of a round.

        Raises:
            UsageError: a result does not belong to the round, or two shards have the same one.

        """
        say = arms.change.context.say
        for arm, redraw in planned.drawn:
            is_change = arm is arms.change
            folders = [
                (each, each.folder if is_change else base_folder(each.folder))
                for each in self.found
            ]
            known = [(each, path) for each, path in folders if (path / RUN_FILE).is_file()]
            if not is_change:
                _check_base(known, arms.base_commit)
                for each in self.found if known else ():
                    if why := one_line(each.report.unconfirmed, MAX_REASON):
                        say(f"warning: {each.shown} could not run the merge base: {why}")
            arm.collector.adopt(self._results(arm, redraw, known, is_change=is_change))
            for each, path in known:
                traces, ran = path / TRACES_FILE, each.trials(is_change=is_change)
                kept = traces.is_file() and arm.collector.adopt_traces(traces, redraw.holds)
                if kept < ran:
                    kept_of = f"{kept:d} of {counted(ran, 'trial')}"
                    say(f"warning: {traces} has the conversations of only {kept_of}")

    @property
    def unconfirmed(self) -> str:
        """Why no shard could run the agents of the merge base; empty if one could."""
        reasons = [each.report.unconfirmed for each in self.found]
        return one_line(reasons[0], MAX_REASON) if all(reasons) else ""

    @property
    def base_is_new(self) -> bool:
        """True if the merge base has nothing to run yet."""
        return all(each.report.base_is_new for each in self.found)

    def _results(
        self, arm: Arm, redraw: Redraw, folders: Sequence[tuple[Found, Path]], *, is_change: bool
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
                message = f"no shard has a result for {trial.key.shown}"
                raise UsageError(message, hint="run the shards again, each in its own folder")
            if found is None:
                yield unobserved(trial, lost, criteria)
                continue
            each, result = found
            if not _fits(result, trial, arm.plan):
                raise refused(each, f"its result for {trial.key.shown} belongs to another trial")
            yield result
        for key, (each, _) in heads.waiting.items():
            message = f"its result for {key.shown} is not in the plan, or is out of order"
            raise refused(each, message)
        for each in self.found:
            ran = each.trials(is_change=is_change)
            if (count := heads.count.get(each.report.index, 0)) != ran:
                of = "" if is_change else " of the merge base"
                message = f"it ran {counted(ran, 'trial')}{of}, but has {counted(count, 'result')}"
                raise refused(each, message)

    @property
    def _why_lost(self) -> str:
        missing = self.missing
        return f"no report of {named_shards(missing)}" if missing else "no shard has a result"


def _check_base(known: Iterable[tuple[Found, Path]], commit: str | None) -> None:
    """Reject results of a merge base other than `commit`.

    Raises:
        UsageError: a shard ran another merge base.

    """
    for each, path in known:
        ran = read_run(path / RUN_FILE, shown=str(path / RUN_FILE)).meta.commit
        if ran != commit:
            now = f"but the merge base is now {str(commit)[:7]}"
            raise refused(
                each, f"it ran the merge base {str(ran)[:7]}, {now}", "run all shards again"
            )


@dataclass
class _Heads:
    """The next result of each shard."""

    waiting: dict[TrialKey, tuple[Found, TrialResult]] = field(default_factory=dict)
    results: dict[int, Iterator[TrialResult]] = field(default_factory=dict)
    """By the number of the shard."""
    count: dict[int, int] = field(default_factory=dict)
    """Results so far, by the number of the shard."""

    def advance(self, shard: Found, results: Iterator[TrialResult]) -> None:
        """Take the next result of a shard, if there is one."""
        result = next(results, None)
        if result is None:
            return
        self.count[shard.report.index] = self.count.get(shard.report.index, 0) + 1
        if result.key in self.waiting:
            other = self.waiting[result.key][0].shown
            raise refused(shard, f"it has a result for {result.key.shown}, and so does {other}")
        self.results[shard.report.index] = results
        self.waiting[result.key] = shard, result

    def take(self, key: TrialKey) -> tuple[Found, TrialResult] | None:
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


def refused(shard: Found, why: str, hint: str = "") -> UsageError:
    """Return the error that rejects a report."""
    return UsageError(f"{shard.shown} cannot be merged: {why}", hint=hint)
