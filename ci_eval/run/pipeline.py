"""The pipeline, from planned trials to a published report."""

import asyncio
import itertools
import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ci_eval.config import handed_secrets
from ci_eval.forge.lineage import is_target_checkout
from ci_eval.gate.weakened_by_change import rewritten
from ci_eval.records.errors import NothingSelectedError, UsageError
from ci_eval.records.findings import Report
from ci_eval.records.results import RunMeta
from ci_eval.run import participants
from ci_eval.run.arms import Arm, Arms, Round, clear_base, play
from ci_eval.run.baseline_choice import Baseline, load_baseline
from ci_eval.run.code_digest import code_digests
from ci_eval.run.collect import Collected, Outputs, Progress, collecting
from ci_eval.run.plan import Plan
from ci_eval.run.report_assembly import clear, compare_and_decide, write_report
from ci_eval.run.run_metadata import describe
from ci_eval.run_files.shard_files import Shard, ShardRedraw
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.workspace import agent_workspace
from ci_eval.text import templates

if TYPE_CHECKING:
    from ci_eval.run.merged_shards import MergedShards

REMINDER_S = 60.0
"""How often a log without a terminal names the trials that are running, in seconds."""
_log = logging.getLogger(__name__)


class ShardRun(NamedTuple):
    """The result of running a shard."""

    collected: Collected
    base_trials: int
    """The number of trials of the merge base."""
    duration_s: float
    unconfirmed: str
    """Why the agents of the merge base could not be run as planned; empty if they could."""
    base_is_new: bool
    """Whether the merge base has nothing to run yet."""


def run(
    plan: Plan, context: RunContext, outputs: Outputs, shards: "MergedShards | None" = None
) -> Report:
    """Execute and score the trials of a plan, compare and decide, write the report, publish it.

    Results of `shards` are adopted: only trials that would settle a doubt are executed.

    Raises:
        UsageError: an agent can never start, or the pull request is not checked out.
        BaselineError: the baseline cannot be read; raised before anything is run.
        NothingSelectedError: the configuration asks for nothing to be executed.
        OSError: a cassette cannot be written.
        InDoubtError: other jobs have to settle the verdict.

    """
    baseline = _prepare(plan, context, outputs)
    if shards is None:
        participants.check(plan, context)
    meta = describe(plan, context, outputs.folder)
    if outputs.max_failures:
        meta = meta.model_copy(update={"filtered": True})
    if shards:
        update = {
            "missing_shards": shards.missing,
            "modified": meta.modified or shards.modified,
            "untracked": shards.untracked,
        }
        meta = meta.model_copy(update=update)
    _log_plan(plan, meta)
    is_compared = bool(baseline and baseline.runs)
    weakened = tuple(rewritten(plan.config, meta, context, compared=is_compared))
    meta = meta.model_copy(update={"weakened": weakened})
    if shards:
        from ci_eval.run.merged_cassettes import merge_cassettes

        # Not earlier: the merged cassettes would make the checkout look modified.
        for line in merge_cassettes(plan.config, context, shards):
            context.say(line)
    with _observing(plan, context, outputs, baseline, meta) as arms:
        if shards:
            arms.unconfirmed = shards.planned.unconfirmed
            arms.base_is_new = shards.planned.base_is_new
            arms.may_fill = False  # the files are where the shards ran
        asyncio.run(_execute_and_score(arms, _rounds(arms, shards)))
    if redacted := arms.change.collector.redacted:
        conversations = templates.counted(redacted, "recorded conversation")
        context.say(
            f"warning: {conversations} had the value of a secret; replays are scored with the name "
            "of its variable instead"
        )
    collected = arms.change.collector.collected()
    report = compare_and_decide(collected, plan.config.gate, baseline, arms.confirmation())
    report = context.secrets.cleaned(report)  # a stored baseline may predate a secret
    observed = collected.run
    del arms, baseline, collected  # their values take much memory, and documents are large, too
    write_report(report, observed, outputs.folder, plan.config.reports, context.secrets)
    outputs.publish(report)
    return report


def run_shard(
    plan: Plan,
    shard: Shard,
    context: RunContext,
    outputs: Outputs,
    redraw: ShardRedraw | None = None,
) -> ShardRun:
    """Execute and score the trials of a plan, which are those of `shard`, and decide nothing.

    If the baseline is the merge base itself, its agents are tried on the same cases.  For a
    `redraw`, only the further trials are executed.

    Raises:
        UsageError: an agent can never start, the pull request is not checked out, or the trials do
            not match those of the redraw.
        BaselineError: the baseline cannot be read; raised before anything is run.
        NothingSelectedError: the configuration asks for nothing to be executed.

    """
    baseline = _prepare(plan, context, outputs)
    participants.check(plan, context)
    meta = describe(plan, context, outputs.folder).model_copy(update={"shard": str(shard)})
    _log_plan(plan, meta)
    began = time.monotonic()
    with _observing(plan, context, outputs, baseline, meta) as arms:
        rounds = iter([arms.part_of(redraw)]) if redraw else arms.planned_rounds()
        asyncio.run(_execute_and_score(arms, rounds))
    took = time.monotonic() - began
    arms.confirmation()  # writes the results of the base arm
    base = arms.base.collector.tally.trials if arms.base else 0
    collected = arms.change.collector.collected()
    return ShardRun(collected, base, took, arms.unconfirmed, arms.base_is_new)


def _prepare(plan: Plan, context: RunContext, outputs: Outputs) -> Baseline | None:
    """Remove the documents of an earlier run, and return the baseline."""
    if plan.config.mock:
        raise NothingSelectedError("nothing was run, because of `mock_mode` in the eval config")
    if is_target_checkout(context.clone):
        message = "the target branch is checked out, not the pull request"
        hint = "check out the pull request, as `on: pull_request` does by default"
        raise UsageError(message, hint=hint)
    clear(outputs.folder)
    clear_base(outputs.folder, resume=outputs.resume)
    return load_baseline(plan.config, context)


@contextmanager
def _observing(
    plan: Plan, context: RunContext, outputs: Outputs, baseline: Baseline | None, meta: RunMeta
) -> Iterator[Arms]:
    """Open the files of a run, and prepare to run its agents."""
    files = handed_secrets.files(plan.config, context)
    code = code_digests(plan, context)
    with (
        agent_workspace(context, files) as room,
        collecting(plan, meta, outputs, context.secrets, code) as collector,
        ExitStack() as stack,
    ):
        yield Arms(Arm(plan, room, collector), meta, outputs, baseline, stack)


def _log_plan(plan: Plan, meta: RunMeta) -> None:
    trials = templates.counted(plan.count, "trial")
    _log.info("run %s of suite %r: %s", meta.run_id, meta.suite, trials)
    for (agent, evalset), criteria in plan.pairs.items():
        cases = templates.counted(plan.evalsets[evalset].count, "case")
        repeats = templates.counted(plan.repeats, "repeat")
        shown = f"agent {agent!r} on evalset {evalset!r}: {cases}, {repeats}"
        _log.info("%s, scored by %s", shown, ", ".join(criteria))


async def _execute_and_score(arms: Arms, rounds: Iterator[Round]) -> None:
    """Execute the trials of each round, and score each trace when it lands."""
    # Reports need slow imports, which are done while waiting for agents.
    loading = asyncio.create_task(asyncio.to_thread(templates.prepare))
    plan, context, _ = arms.change
    reminding = asyncio.create_task(remind(arms.outputs.progress))
    try:
        first = next(rounds, None)
        if first is None:
            return
        async with participants.started(plan, context, arms.usage) as others:
            for each in itertools.chain([first], rounds):
                arms.outputs.progress.rerun(*each.added)
                await play(each, others, concurrency=plan.config.run.concurrency)
    finally:
        reminding.cancel()
        await loading


async def remind(progress: Progress) -> None:
    """Report the elapsed time to `progress` at regular intervals, until cancelled."""
    while True:
        await asyncio.sleep(REMINDER_S)
        progress.waited(REMINDER_S)


def _rounds(arms: Arms, shards: "MergedShards | None") -> Iterator[Round]:
    """Yield the rounds to execute: the planned ones, unless shards ran them, and further ones."""
    if shards:
        yield from shards.rounds(arms)
        return
    yield from arms.planned_rounds()
    while further := arms.next_round():
        yield further
