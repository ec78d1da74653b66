"""The arms of a run: the change and, if the verdict is in doubt, its merge base."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

from ci_eval.forge.lineage import began, event_of, is_without_change
from ci_eval.llm.gateway.gateway_clients import gateway_options, replays
from ci_eval.llm.gateway.spending import count_spent, limit_before
from ci_eval.plugins.engine import Cluster
from ci_eval.records.errors import UsageError
from ci_eval.records.model_usage import ModelUsage
from ci_eval.records.results import JudgeUsage, RunMeta
from ci_eval.run.base_arm import BaseArm, NoBaseArmError, base_arm
from ci_eval.run.baseline_choice import Baseline
from ci_eval.run.collect import Collector, Outputs, Tally, collecting
from ci_eval.run.confirmation import BaseProgress, Confirmation, confirmed_by
from ci_eval.run.distribute import Distribution
from ci_eval.run.execute import Conduct, Here, Part, execute, with_hints
from ci_eval.run.participants import Participants
from ci_eval.run.plan import Plan
from ci_eval.run.rerun import Plans, Redraw, Redraws, next_round, still_agents
from ci_eval.run.run_metadata import describe
from ci_eval.run.score import scoring
from ci_eval.run_files.file_names import (
    BASE_FOLDER,
    RUN_FILE,
    TRACES_FILE,
    UNDERWAY_FILE,
    remove_files,
)
from ci_eval.run_files.report_phrases import listed
from ci_eval.run_files.shard_files import FurtherTrials, ShardRedraw
from ci_eval.runtime.checkout import copy_untracked
from ci_eval.runtime.context import RunContext

_log = logging.getLogger(__name__)


class Arm(NamedTuple):
    """One version of the agents, and what was observed of it."""

    plan: Plan
    context: RunContext
    collector: Collector


class Round(NamedTuple):
    """The trials of a round."""

    drawn: Sequence[tuple[Arm, Redraw]]
    """The trials of each arm."""
    added: tuple[int, int] = (0, 0)
    """The numbers of unplanned trials: of the change, and of its base arm."""


async def play(drawn: Round, participants: Participants, *, concurrency: int) -> None:
    """Execute and score a round, the trials of both arms in turn.

    Raises:
        UsageError: an agent can never start, or the engine cannot.
        OSError: a file of the run cannot be written.

    """
    with _cause_alone():
        await _play(drawn, participants, concurrency)


@contextmanager
def _cause_alone() -> Iterator[None]:
    """Raise a `UsageError` or an `OSError` by itself, without the exception groups of the tasks."""
    try:
        yield
    except BaseExceptionGroup as group:
        cause: BaseException | None = group.subgroup(UsageError) or group.subgroup(OSError)
        while isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        if cause is None:
            raise
        raise cause from None


async def _play(drawn: Round, participants: Participants, concurrency: int) -> None:
    async with AsyncExitStack() as stack:
        parts = []
        for arm, redraw in drawn.drawn:
            count_spent(arm.collector.take_spent())
            others = participants.apart()
            landed = await stack.enter_async_context(scoring(arm.plan, others, arm.collector))
            agents = {name: arm.plan.config.agents[name] for name, _ in arm.plan.pairs}
            conduct = Conduct(arm.plan.config.run, others.users, arm.collector.journal.keep)
            numbered = arm.collector.numbered(redraw.trials(arm.plan))
            landed = with_hints(landed, agents, arm.context)
            count = redraw.count(arm.plan)
            parts.append(Part(numbered, agents, conduct, arm.context, landed, count))
        cluster = await stack.enter_async_context(connected(drawn, parts))
        if cluster is None:
            await execute(parts, concurrency=concurrency)
            return

        async def elsewhere(parts: Sequence[Part], here: Here) -> None:
            await Distribution(cluster, here, concurrency).run(parts)

        await execute(parts, concurrency=concurrency, elsewhere=elsewhere)


def connected(drawn: Round, parts: Sequence[Part]) -> AbstractAsyncContextManager[Cluster | None]:
    """Connect to the machines that run a round."""
    arm = drawn.drawn[0][0]
    folders = [part.context.root for part in parts]
    folder = arm.collector.outputs.folder.absolute()
    return arm.plan.config.engine.start(arm.context, folders, left_out=folder)


@dataclass
class Arms:
    """The arms of a run; that of the merge base is prepared when it is first needed."""

    change: Arm
    meta: RunMeta
    """The metadata of the run of the change."""
    outputs: Outputs
    baseline: Baseline | None
    stack: ExitStack
    """Closes the base arm at the end of the run."""
    base: Arm | None = None
    unconfirmed: str = ""
    """Why there is no base arm although the verdict was in doubt; empty if there is one."""
    base_is_new: bool = False
    """Whether the merge base has nothing to run yet."""
    runs_elsewhere: bool = False
    """Whether other jobs execute the further trials, with keys that this one may lack."""
    may_fill: bool = True
    """Whether the merge base may be run again, with untracked files."""
    _limited: dict[str, str] = field(default_factory=dict)
    """The agents whose limits of model calls allow no further trials, with these limits."""
    _alike: frozenset[str] = frozenset()
    """The agents whose model calls are replayed, with the same answers in both arms."""
    _found: BaseArm | None = None
    _discarded: int = 0
    _spent: JudgeUsage = field(default_factory=JudgeUsage)
    """The trials and the usage of a base arm that was begun again."""
    _files: ExitStack = field(init=False)
    """Closes the files of the base arm."""
    _meta: RunMeta = field(init=False)
    """The metadata of the base arm."""
    _progress: BaseProgress = field(init=False)

    def __post_init__(self) -> None:
        """Prepare to count the trials of the base arm."""
        self._progress = BaseProgress(self.outputs.progress)

    def next_round(self) -> Round | None:
        """Return the trials that would settle the verdict; `None` if it is settled."""
        # What was run is compared even so, if it can only be compared with the merge base.
        is_compared = self.base or self.baseline is None or self.baseline.runs
        if self.change.collector.is_stopped and is_compared:
            return None
        while found := self._redraws():
            if found == "base again":
                self._fill()
            elif found.base and self.base is None:
                self._prepare()
            elif limited := dict(self._limits(found)):
                self._limited |= limited
            else:
                break
        if not isinstance(found, Redraws):
            return None
        drawn = self._round(found)
        _log.info("a further round of %d trials: %s", sum(drawn.added), found)
        return drawn

    def part_of(self, shard: ShardRedraw) -> Round:
        """Return the further trials of a shard.

        Raises:
            UsageError: not all of them can be run.

        """
        redraw, count, way_to_make = shard
        if redraw.base != FurtherTrials():
            self._prepare()
        change, base = Redraw.of(redraw.change).within(self.change.plan, self._still), Redraw()
        if self.base:
            base = Redraw.of(redraw.base).within(self.base.plan, self._still)
        drawn = self._round(Redraws(change, base))
        if (possible := sum(drawn.added)) != count:
            message = f"the plan has {count} trials for this shard, but {possible} can be run"
            why = self.unconfirmed and f"no merge base: {self.unconfirmed}"
            raise UsageError(message, hint=why or way_to_make)
        return drawn

    def _round(self, found: Redraws) -> Round:
        drawn = [(self.change, found.change)]
        drawn += [(self.base, found.base)] if self.base else []
        change, *base = (redraw.count(arm.plan) for arm, redraw in drawn)
        return Round([each for each in drawn if each[1]], (change, sum(base)))

    def planned_rounds(self) -> Iterator[Round]:
        """Yield the rounds that depend on no result.

        These are all trials of the change and, if no stored run can be compared with, of its base.
        """
        plan = self.change.plan
        yield Round([(self.change, Redraw(range(1), frozenset(plan.pairs)))])
        if self.baseline and not self.baseline.runs and (found := self.next_round()):
            yield found

    @property
    def base_commit(self) -> str | None:
        """The commit of the merge base, once there is a base arm."""
        return self._meta.commit

    @property
    def usage(self) -> JudgeUsage:
        """The usage of all models that ci-eval called for both arms."""
        found = self.change.collector.tally.usage + self._spent
        return found + self.base.collector.tally.usage if self.base else found

    @property
    def _may_prepare(self) -> bool:
        """True if the base arm would be prepared once the verdict is in doubt."""
        config = self.change.plan.config
        is_wanted = config.gate.confirm == "both" or bool(
            config.baseline and not config.baseline.stores
        )
        return self.base is None and is_wanted and not self.unconfirmed

    @property
    def _still(self) -> frozenset[str]:
        """The agents whose further trials would show nothing new."""
        plan, env = self.change.plan, self.change.context.env
        alike = self._alike.difference(self._progress.failing.agents)
        if self._may_prepare:
            alike = frozenset(plan.config.agents)
        if self.runs_elsewhere:
            used = self.change.collector.tally.used.items()
            alike |= {name for name, each in used if each.calls > each.replayed}
        return still_agents(plan, env, alike) | self._limited.keys()

    def _limits(self, found: Redraws) -> Iterator[tuple[str, str]]:
        """Yield the agents that may not make as many model calls as further trials would need."""
        (plan, context, collector), base = self.change, self.base
        if base and not base.collector.tally.trials and not (self.baseline and self.baseline.runs):
            return  # without these trials, there is nothing to compare with
        for name, agent in plan.config.agents.items():
            options, others = gateway_options(agent), plan.config.agents.keys() - {name}
            if options is None or replays(agent, context.env):
                continue
            trials = found.change.within(plan, others).count(plan)
            trials += found.base.within(base.plan, others).count(base.plan) if base else 0
            if not trials:
                continue
            used = collector.tally.used.get(name, ModelUsage())
            calls = trials * used.calls / max(collector.tally.metered[name], 1)
            if limit := limit_before(name, options, calls):
                yield name, f"models.{limit} of {name}"

    def _redraws(self) -> Redraws | Literal["base again"] | None:
        store = self.change.plan.config.baseline
        if self.baseline is None or store is None or (store.stores and not self.baseline.runs):
            return None  # `gate.on_missing` decides what an empty store means
        plan, tally = self.change.plan, self.change.collector.tally
        plans, base = Plans(plan, still=self._still), None
        if self.base:
            may_fill, failing = bool(self.may_fill and self.meta.untracked), self._progress.failing
            if may_fill and failing.agents:
                return "base again"
            meta = failing.without(self._meta)
            if meta.agents:
                plans = Plans(plan, self.base.plan, self._still, may_fill, self._discarded)
                base = meta, self.base.collector.tally
        elif self._may_prepare:
            # As if the merge base had all agents and cases.
            plans, base = Plans(plan, plan, self._still), (self.meta, Tally())
        return next_round(plans, self.meta, self.baseline.runs, tally, base)

    def _prepare(self) -> None:
        """Check out the merge base; if that is impossible, keep the reason."""
        plan, context, _ = self.change
        store = plan.config.baseline
        lineage = began(context.clone, *(store.base, store.branches) if store else (None, ()))
        if not lineage.changes and is_without_change(context.env):
            self.unconfirmed = f"this run has no change (event {event_of(context.env)!r})"
            self.base_is_new = True
            return
        try:
            commit = next(iter(lineage.ancestors), None)
            found = self.stack.enter_context(base_arm(plan, context, commit))
        except NoBaseArmError as exc:
            self.unconfirmed, self.base_is_new = str(exc), exc.is_new
            return
        self._alike = found.alike
        self._files = self.stack.enter_context(ExitStack())
        self._found = found
        self._begin(found)

    def _fill(self) -> None:
        """Begin the base arm again, with untracked files in the work tree of the change.

        That shows why it did so badly: for lack of these files, or for a reason that affects both.
        """
        self.may_fill, names, context = False, self.meta.untracked, self.change.context
        if self.base is None or self._found is None:
            return
        try:
            copy_untracked(context.clone, names, self._found.tree)
        except OSError as exc:
            context.say(f"warning: {listed(names)} cannot be copied for the merge base: {exc}")
            return
        context.say(f"running the merge base again, with untracked files: {listed(names)}")
        tally = self.base.collector.tally
        self._discarded, self._spent = tally.trials, tally.usage
        self._files.close()
        self._begin(self._found, names)

    def _begin(self, found: BaseArm, untracked: tuple[str, ...] = ()) -> None:
        """Begin the base arm; `untracked` is what was copied for it."""
        self._progress = BaseProgress(self.outputs.progress)
        meta = describe(found.plan, found.context, self.outputs.folder)
        update = {
            "commit": found.commit,
            "shard": self.meta.shard,
            "gone": found.gone,
            "gone_groups": found.gone_groups,
            "changed_cases": found.changed_cases,
            "untracked": untracked,
        }
        self._meta = meta.model_copy(update=update)
        outputs = replace(
            self.outputs,
            folder=base_folder(self.outputs.folder),
            record=None,
            progress=self._progress,
        )
        code = dict.fromkeys(found.plan.config.agents, " ".join([found.commit, *untracked]))
        secrets = found.context.secrets
        collector = collecting(found.plan, self._meta, outputs, secrets, code)
        self.base = Arm(found.plan, found.context, self._files.enter_context(collector))

    def confirmation(self) -> Confirmation:
        """Return the confirmation by the base arm, once its run is written."""
        found = Confirmation(unconfirmed=self.unconfirmed, base_is_new=self.base_is_new)
        if self.base:
            found = confirmed_by(self.base.collector.collected())
        limits = [*self._limited.values(), *["--maxfail"] * self.change.collector.is_stopped]
        return found._replace(limited_by=" and ".join(limits))


def base_folder(folder: Path) -> Path:
    """Return the folder of the base arm's files, in the `folder` of a run."""
    return folder / BASE_FOLDER


def clear_base(folder: Path, *, resume: bool) -> None:
    """Remove the files of an earlier run's base arm; a resumed run keeps the traces."""
    for name in (RUN_FILE,) if resume else (RUN_FILE, TRACES_FILE, UNDERWAY_FILE):
        remove_files(base_folder(folder), name)
