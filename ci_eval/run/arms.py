"""The arms of a run: the change, and in doubt the merge base beside it."""

import logging
import shutil
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, Self

from ci_eval.records.results import RunMeta, TrialResult
from ci_eval.records.trials import Trial
from ci_eval.run.base_arm import NoBaseArmError, base_arm
from ci_eval.run.baseline_choice import Baseline
from ci_eval.run.collect import Collected, Collector, Outputs, Progress, Tally
from ci_eval.run.execute import Conduct, Part, execute
from ci_eval.run.participants import Participants
from ci_eval.run.plan import Plan
from ci_eval.run.rerun import Plans, Redraws, next_round
from ci_eval.run.run_metadata import describe
from ci_eval.run.score import scoring
from ci_eval.run_files.file_names import BASE_FOLDER, RUN_FILE
from ci_eval.runtime.context import RunContext

_log = logging.getLogger(__name__)


class Arm(NamedTuple):
    """One version of the agents, and what was observed of it."""

    plan: Plan
    context: RunContext
    collector: Collector


Round = Sequence[tuple[Arm, Iterator[Trial]]]
"""The trials of a round, by arm."""


async def play(trials: Round, participants: Participants, *, concurrency: int) -> None:
    """Execute and score a round, the trials of both arms in turn."""
    async with AsyncExitStack() as stack:
        parts = []
        for arm, each in trials:
            others = participants.apart()
            landed = await stack.enter_async_context(scoring(arm.plan, others, arm.collector))
            agents = {name: arm.plan.config.agents[name] for name, _ in arm.plan.pairs}
            conduct = Conduct(arm.plan.config.run, others.users, arm.collector.begun)
            numbered = arm.collector.numbered(each)
            parts.append(Part(numbered, agents, conduct, arm.context, landed))
        await execute(parts, concurrency=concurrency)


class Confirmation(NamedTuple):
    """What the merge base showed in the job of a run."""

    base: Collected | None = None
    """The run of its agents; `None` if there was none."""
    unconfirmed: str = ""
    """Why its agents could not be run although there was doubt; empty if they could."""


NOT_CONFIRMED = Confirmation()


@dataclass
class _BaseProgress(Progress):
    """Progress of the base arm: its trials are counted, its failures are not the change's."""

    shown: Progress
    cause: str = ""
    """Why an agent of the merge base cannot be run at all; empty while all can."""

    def landed(self, result: TrialResult) -> None:
        """Count a result, and keep the first cause that affects all trials of an agent."""
        self.shown.advanced()
        if result.error and result.error.cause and not self.cause:
            self.cause = result.error.cause[1]


@dataclass
class Arms:
    """The arms of a run; that of the merge base is prepared when it is first needed."""

    change: Arm
    meta: RunMeta
    """The metadata of the run of the change."""
    outputs: Outputs
    baseline: Baseline | None
    base: Arm | None = None
    unconfirmed: str = ""
    """Why the agents of the merge base could not be run in doubt; empty if they could."""
    _meta: RunMeta = field(init=False)
    """The metadata of the base arm."""
    _progress: _BaseProgress = field(init=False)
    _open: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        """Prepare to count the trials of the base arm."""
        self._progress = _BaseProgress(self.outputs.progress)

    def __enter__(self) -> Self:
        self._open.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._open.__exit__(*exc)  # type: ignore[arg-type]  # the three of the protocol

    def next_round(self) -> Round:
        """Return the trials that would settle the verdict; empty if it is settled."""
        found = self._redraws()
        if found and found.base and self.base is None:
            self._prepare()
            found = self._redraws()
        if found is None:
            return ()
        drawn = [(self.change, found.change)]
        drawn += [(self.base, found.base)] if self.base else []
        more = sum(redraw.count(arm.plan) for arm, redraw in drawn)
        _log.info("a further round of %d trials: %s", more, found)
        self.outputs.progress.rerun(more)
        return [(arm, redraw.trials(arm.plan)) for arm, redraw in drawn if redraw]

    def _redraws(self) -> Redraws | None:
        store = self.change.plan.config.baseline
        if self.baseline is None or store is None or (store.stores and not self.baseline.runs):
            return None  # `gate.on_missing` says what a store that is still empty means
        if self._progress.cause and not self.unconfirmed:
            self.unconfirmed = f"the agents of the merge base cannot start: {self._progress.cause}"
        plan, tally = self.change.plan, self.change.collector.tally
        plans, base = Plans(plan), None
        if self.base and not self.unconfirmed:
            plans, base = Plans(plan, self.base.plan), (self._meta, self.base.collector.tally)
        elif plan.config.gate.confirm == "both" and not self.unconfirmed:
            plans, base = Plans(plan, plan), (self.meta, Tally())  # as if it knew everything
        return next_round(plans, self.meta, self.baseline.runs, tally, base)

    def _prepare(self) -> None:
        """Check out the merge base; if that is impossible, keep the reason."""
        change = self.change
        ancestors = self.baseline.lineage.ancestors if self.baseline else ()
        try:
            found = self._open.enter_context(
                base_arm(change.plan, change.context, ancestors[0] if ancestors else None)
            )
        except NoBaseArmError as exc:
            self.unconfirmed = str(exc)
            return
        meta = describe(found.plan, found.context)
        self._meta = meta.model_copy(update={"commit": found.commit})
        outputs = replace(
            self.outputs,
            folder=base_folder(self.outputs.folder),
            record=None,
            progress=self._progress,
        )
        collector = Collector(found.plan, self._meta, outputs, found.context.secrets)
        self.base = Arm(found.plan, found.context, self._open.enter_context(collector))

    def confirmation(self) -> Confirmation:
        """Return what the base arm showed, once it is written."""
        is_shown = self.base and not self.unconfirmed
        base = self.base.collector.collected() if self.base and is_shown else None
        return Confirmation(base, self.unconfirmed)


def base_folder(folder: Path) -> Path:
    """Return the folder of the base arm's files, in the `folder` of a run."""
    return folder / BASE_FOLDER


def clear_base(folder: Path, *, resume: bool) -> None:
    """Remove what an earlier run left of its base arm; a resumed run keeps the traces."""
    base = base_folder(folder)
    if base.is_symlink():
        base.unlink()
    elif resume:
        (base / RUN_FILE).unlink(missing_ok=True)
    else:
        shutil.rmtree(base, ignore_errors=True)
