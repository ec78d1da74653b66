"""The pipeline, from planned trials to a published report."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import ExitStack

from ci_eval.config import handed_secrets
from ci_eval.config.config_schema import GateOptions
from ci_eval.gate.compare import compare
from ci_eval.gate.decide import count_cases, decide, summarise
from ci_eval.gate.exemptions import excused, listed
from ci_eval.gate.missing_credentials import lacked
from ci_eval.gate.weakened_by_change import rewritten
from ci_eval.gate.weakened_gate import loosened
from ci_eval.records.errors import NothingSelectedError
from ci_eval.records.findings import Report
from ci_eval.records.results import JudgeUsage, RunMeta
from ci_eval.run import participants
from ci_eval.run.arms import NOT_CONFIRMED, Arm, Arms, Confirmation, Round, clear_base, play
from ci_eval.run.baseline_choice import Baseline, load_baseline
from ci_eval.run.collect import Collected, Collector, Outputs
from ci_eval.run.plan import Plan
from ci_eval.run.report_assembly import MAX_WORST, clear, worst_results, write_report
from ci_eval.run.run_metadata import describe
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.workspace import agent_workspace
from ci_eval.text import templates

_log = logging.getLogger(__name__)


def run(plan: Plan, context: RunContext, outputs: Outputs) -> Report:
    """Execute and score the trials of a plan, compare and decide, write the report, publish it.

    Raises:
        UsageError: an agent can never start.
        BaselineError: the baseline cannot be read; raised before anything is run.
        NothingSelectedError: the configuration asks for nothing to be executed.

    """
    if plan.config.mock:
        raise NothingSelectedError("nothing was run, because of `mock_mode` in the eval config")
    clear(outputs.folder)
    clear_base(outputs.folder, resume=outputs.resume)
    baseline = load_baseline(plan.config, context)
    participants.check(plan, context)
    meta = describe(plan, context, outputs.folder)
    if outputs.max_failures:
        meta = meta.model_copy(update={"filtered": True})
    _log_plan(plan, meta)
    is_compared = bool(baseline and baseline.runs)
    weakened = tuple(rewritten(plan.config, meta, context, compared=is_compared))
    files = handed_secrets.files(plan.config, context)
    with (
        agent_workspace(context, files) as room,
        Collector(plan, meta, outputs, context.secrets) as collector,
        ExitStack() as stack,
    ):
        arms = Arms(Arm(plan, room, collector), meta, outputs, baseline, stack)
        asyncio.run(_execute_and_score(arms))
    collected = collector.collected()
    report = compare_and_decide(
        collected, plan.config.gate, baseline, arms.confirmation(), weakened=weakened
    )
    report = context.secrets.cleaned(report)  # a stored baseline may be older than a secret
    write_report(report, collected.run, outputs.folder, plan.config.reports, context.secrets)
    outputs.publish(report)
    return report


def _log_plan(plan: Plan, meta: RunMeta) -> None:
    trials = templates.counted(plan.count, "trial")
    _log.info("run %s of suite %r: %s", meta.run_id, meta.suite, trials)
    for (agent, evalset), criteria in plan.pairs.items():
        cases = templates.counted(plan.evalsets[evalset].count, "case")
        repeats = templates.counted(plan.repeats, "repeat")
        shown = f"agent {agent!r} on evalset {evalset!r}: {cases}, {repeats}"
        _log.info("%s, scored by %s", shown, ", ".join(criteria))


async def _execute_and_score(arms: Arms) -> None:
    """Execute all trials, then those of further rounds, and score each trace when it lands."""
    # Reports need heavy imports, which happen while agents are waited for.
    loading = asyncio.create_task(asyncio.to_thread(templates.prepare))
    plan, context, _ = arms.change
    try:
        async with participants.started(plan, context) as others:
            trials: Round = [(arms.change, plan.trials())]
            while trials:
                await play(trials, others, concurrency=plan.config.run.concurrency)
                trials = [] if arms.change.collector.is_stopped else arms.next_round()
    finally:
        await loading


def compare_and_decide(  # noqa: PLR0913  # everything that the report depends on
    collected: Collected,
    gate: GateOptions,
    baseline: Baseline | None,
    confirmation: Confirmation = NOT_CONFIRMED,
    *,
    weakened: Sequence[str] = (),
    worst: int = MAX_WORST,
) -> Report:
    """Compare a run with its baseline, decide, and return the report.

    `confirmation` has what the merge base showed in the same job.  `weakened` says how the change
    weakens the gate; the report shows at most `worst` results.
    """
    run, tally = collected
    warnings = (*run.meta.warnings, *tally.warnings())
    meta = run.meta.model_copy(update={"warnings": warnings})
    comparison = None
    base = confirmation.base
    past = (baseline.runs if baseline else ()) or ([base] if base else [])
    if baseline and past and gate.mode != "threshold":
        comparison = compare(meta, tally.columns, past, gate, baseline.lineage, base)
        weakened = (*comparison.loosened, *weakened)
        comparison = comparison.model_copy(
            update={
                "loosened": weakened,
                "unconfirmed": confirmation.unconfirmed,
                "base_trials": confirmation.trials,
            }
        )
    elif baseline and baseline.runs:
        weakened = (*loosened(meta, baseline.runs[0].meta), *weakened)
    groups = tuple(
        each.model_copy(update={"judging": tally.judging.get(each.group, each.judging)})
        for each in summarise(meta, tally.columns)
    )
    totals = tally.totals(count_cases(meta, tally.columns, gate))
    verdict = decide(
        gate,
        totals,
        groups,
        comparison,
        baseline_configured=baseline is not None,
        loosened=() if comparison else weakened,
        lacking=lacked(meta, groups, tally.simulation, tally.failures),
        unconfirmed=confirmation.unconfirmed,
        unused=bool(baseline and baseline.history and not baseline.runs),
        exemptions=tuple(listed(meta, gate, excused(meta, gate, tally.columns))),
    )
    return Report(
        meta=meta,
        totals=totals,
        groups=groups,
        comparison=comparison,
        verdict=verdict,
        judging=sum(tally.judging.values(), JudgeUsage()) if tally.judging else None,
        simulation=tally.simulation,
        history=tuple(baseline.history) if baseline else (),
        worst=tuple(worst_results(run, tally.columns, comparison, worst)),
    )
