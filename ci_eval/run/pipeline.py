"""The pipeline, from planned trials to a published report."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from ci_eval.config import handed_secrets
from ci_eval.config.config_schema import GateOptions
from ci_eval.gate.compare import compare
from ci_eval.gate.decide import count_cases, decide, summarise
from ci_eval.gate.missing_credentials import lacked
from ci_eval.gate.weakened_by_change import rewritten
from ci_eval.gate.weakened_gate import loosened
from ci_eval.records.errors import NothingSelectedError
from ci_eval.records.findings import Report
from ci_eval.records.results import JudgeUsage, RunMeta
from ci_eval.records.trials import Trial
from ci_eval.run import participants
from ci_eval.run.baseline_choice import Baseline, load_baseline
from ci_eval.run.collect import Collected, Collector, Outputs, Tally
from ci_eval.run.execute import Conduct, execute
from ci_eval.run.plan import Plan
from ci_eval.run.report_assembly import MAX_WORST, clear, worst_results, write_report
from ci_eval.run.rerun import next_round
from ci_eval.run.run_metadata import describe
from ci_eval.run.score import scoring
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
    baseline = load_baseline(plan.config, context)
    participants.check(plan, context)
    meta = describe(plan, context)
    _log_plan(plan, meta)
    past = baseline.runs if baseline else ()
    weakened = tuple(rewritten(plan.config, meta, context, compared=bool(past)))
    rerun = partial(next_round, plan, meta, past, outputs.progress)
    files = handed_secrets.files(plan.config, context)
    with (
        agent_workspace(context, files) as room,
        Collector(plan, meta, outputs, context.secrets) as collector,
    ):
        asyncio.run(_execute_and_score(plan, room, collector, rerun))
    collected = collector.collected()
    report = compare_and_decide(collected, plan.config.gate, baseline, weakened=weakened)
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


async def _execute_and_score(
    plan: Plan,
    context: RunContext,
    collector: Collector,
    rerun: Callable[[Tally], Iterator[Trial] | None],
) -> None:
    """Execute all trials, then those of each rerun, and score each trace when it lands."""
    # Reports need heavy imports, which happen while agents are waited for.
    loading = asyncio.create_task(asyncio.to_thread(templates.prepare))
    try:
        async with participants.started(plan, context) as others:
            agents = {name: plan.config.agents[name] for name, _ in plan.pairs}
            conduct = Conduct(plan.config.run, others.users, collector.begun)
            trials: Iterator[Trial] | None = plan.trials()
            while trials is not None:
                async with scoring(plan, others, collector) as landed:
                    await execute(collector.numbered(trials), agents, conduct, context, landed)
                trials = rerun(collector.tally)
    finally:
        await loading


def compare_and_decide(
    collected: Collected,
    gate: GateOptions,
    baseline: Baseline | None,
    *,
    weakened: Sequence[str] = (),
    worst: int = MAX_WORST,
) -> Report:
    """Compare a run with its baseline, decide, and return the report.

    `weakened` says how the change weakens the gate; the report shows at most `worst` results.
    """
    run, tally = collected
    warnings = (*run.meta.warnings, *tally.warnings())
    meta = run.meta.model_copy(update={"warnings": warnings})
    comparison = None
    if baseline and baseline.runs and gate.mode != "threshold":
        comparison = compare(meta, tally.columns, baseline.runs, gate, baseline.lineage)
        weakened = (*comparison.loosened, *weakened)
        comparison = comparison.model_copy(update={"loosened": weakened})
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
        lacking=lacked(meta, groups, tally.simulation),
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
