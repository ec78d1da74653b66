"""The line, from a configuration to documents, as it reads aloud."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex

from ci_eval import __version__
from ci_eval.config import handed_secrets
from ci_eval.config.model import Config
from ci_eval.config.schema import GateOptions
from ci_eval.forge.lineage import Lineage, current_branch
from ci_eval.gate import weakened_by_change
from ci_eval.gate.compare import compare, examine
from ci_eval.gate.decide import count_cases, decide, summarise
from ci_eval.gate.missing_credentials import lacked
from ci_eval.gate.weakened_gate import loosened
from ci_eval.llm.judge_settings import Judging
from ci_eval.plugins import points
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.plugins.points import JudgedCriterion, Reporter, WorkerCriterion
from ci_eval.records.errors import NothingSelectedError, UsageError
from ci_eval.records.findings import Comparison, Noted, Report
from ci_eval.records.model import Json, Status
from ci_eval.records.results import CriterionFacts, JudgeUsage, Run, RunMeta, TrialResult
from ci_eval.records.trials import TrialKey
from ci_eval.run import participants
from ci_eval.run.collect import Observed, Outputs, Tally, observe
from ci_eval.run.plan import Plan
from ci_eval.run.rerun import Redraw, affordable, wanted
from ci_eval.run_files.run_file import replacing
from ci_eval.run_files.score_table import Columns, Past
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.workspace import room_for_agents
from ci_eval.text.fingerprint import fingerprint
from ci_eval.text.redact import Secrets
from ci_eval.text.templates import counted

REPORT = "report.json"
"""What the report is called in the folder of its documents."""
MAX_WORST = 100
"""How many results a report carries with their evidence."""


def run(plan: Plan, context: RunContext, outputs: Outputs) -> Report:
    """Try, score, compare and decide; leave `run.json`, `traces.jsonl` and every report.

    Raises:
        UsageError: an agent can never start.
        BaselineError: the baseline cannot be read; said before anything is run.
        NothingSelectedError: the configuration asks for nothing to be executed.

    """
    if plan.config.mock:
        raise NothingSelectedError("nothing was run: `mock_mode` of the eval config asks for that")
    _clear(outputs.folder)
    secrets = handed_secrets.secrets(plan.config, context, outputs.secrets)
    outputs = replace(outputs, secrets=secrets)
    before = load_baseline(plan.config, context)
    participants.check(plan, context)
    meta = describe(plan, context)
    compared = bool(before and before.runs)
    own = tuple(weakened_by_change.rewritten(plan.config, meta, context, compared=compared))
    again = _again(plan, meta, before, outputs)
    with room_for_agents(context, handed_secrets.files(plan.config, context)) as around:
        observed = observe(plan, meta, around, outputs, again)
    found = judge(observed, plan.config.gate, before, rewritten=own)
    report = secrets.cleaned(found)  # a stored baseline may be older than what is secret now
    write_report(report, observed.run, outputs.folder, plan.config.reports, secrets)
    return report


def _clear(folder: Path) -> None:
    """Take away what an earlier run reported: one that is refused or cut off must not say it."""
    names = (REPORT, *(points.reporter[name].file for name in points.reporter))
    for file in names if folder.is_dir() else ():
        (folder / file).unlink(missing_ok=True)


def _again(
    plan: Plan, meta: RunMeta, before: "Before | None", outputs: Outputs
) -> Callable[[Tally], Redraw]:
    """Return what says, of what was observed so far, what is to be drawn again."""
    gate = plan.config.gate

    def again(tally: Tally) -> Redraw:
        if gate.on_inconclusive != "rerun" or gate.mode == "threshold":
            return Redraw()
        if not (before and before.runs):
            return Redraw()
        examined = examine(meta, tally.columns, before.runs, gate)
        redraw = affordable(wanted(examined, gate), plan, tally.trials)
        outputs.more(redraw.count(plan))
        return redraw

    return again


@dataclass(frozen=True)
class Before:
    """What a run is compared with."""

    runs: Sequence[Past]
    """The runs of the baseline, nearest first; none where nothing was stored yet."""
    lineage: Lineage = field(default_factory=Lineage)
    """Where they were looked for."""
    history: Sequence[Noted] = ()
    """The stored runs in short, newest first."""


def load_baseline(config: Config, context: RunContext) -> Before | None:
    """Return the runs to compare with; `None` where no baseline is configured."""
    store = config.baseline
    if store is None:
        return None
    lineage = store.lineage(context)
    runs = store.load(lineage, config.suite, context)
    return Before(runs, lineage, store.history(config.suite, context))


def recall(stored: Run) -> Observed:
    """Return what a stored run observed."""
    tally = Tally()
    for result in stored.results():
        tally.add(result)
    return Observed(stored, tally)


def judge(
    observed: Observed,
    gate: GateOptions,
    before: Before | None,
    *,
    rewritten: Sequence[str] = (),
    worst: int = MAX_WORST,
) -> Report:
    """Compare a run with its baseline and decide.

    `rewritten` is what the change made of its own measure; of the `worst` results the report has
    so many.
    """
    columns = observed.tally.columns
    warnings = (*observed.run.meta.warnings, *observed.tally.warnings())
    meta = observed.run.meta.model_copy(update={"warnings": warnings})
    comparison = (
        compare(meta, columns, before.runs, gate, before.lineage)
        if before and before.runs and gate.mode != "threshold"
        else None
    )
    loosens = tuple(rewritten)
    if comparison:
        loosens = (*comparison.loosened, *loosens)
        comparison = comparison.model_copy(update={"loosened": loosens})
    elif before and before.runs:
        loosens = (*loosened(meta, before.runs[0].meta), *loosens)
    asked = observed.tally.judging
    groups = tuple(
        each.model_copy(update={"judging": asked[each.group]}) if each.group in asked else each
        for each in summarise(meta, columns)
    )
    cases = count_cases(meta, columns, gate)
    counted, simulation = observed.tally.totals(cases), observed.tally.simulation
    return Report(
        meta=meta,
        totals=counted,
        groups=groups,
        comparison=comparison,
        verdict=decide(
            gate,
            counted,
            groups,
            comparison,
            baseline_configured=before is not None,
            loosened=() if comparison else loosens,
            lacking=lacked(meta, groups, simulation),
        ),
        judging=sum(asked.values(), JudgeUsage()) if asked else None,
        simulation=simulation,
        history=tuple(before.history) if before else (),
        worst=tuple(_worst(observed.run, columns, comparison, worst)),
    )


def refuse_incomplete(observed: Observed, gate: GateOptions) -> None:
    """Refuse to make a baseline of a run that lacks a part.

    Raises:
        UsageError: it lacks one.

    """
    cases = count_cases(observed.run.meta, observed.tally.columns, gate)
    if cases.errors > gate.max_errors:
        message = f"{cases.errors} of {cases.cases} cases could not be measured"
    elif observed.run.meta.filtered:
        message = "the run holds only a selected part of the suite"
    elif not cases.passed + cases.failed + cases.accepted:
        message = "the run measured nothing"
    elif cases.unjudged:
        count = cases.unjudged.count
        message = f"no criterion that blocks judged {counted(count, 'case')} of {cases.cases}"
    else:
        return
    raise UsageError(f"not stored: {message}")


def write_report(
    report: Report,
    observed: Run,
    folder: Path,
    configured: Mapping[str, Reporter],
    secrets: Secrets,
) -> None:
    """Write every document that a report becomes, as configured or plainly, and the report.

    What a template of the repository adds may hold one of the `secrets`, too.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / REPORT) as file:
        file.write(report.model_dump_json(indent=1) + "\n")
    for name in points.reporter:
        reporter = configured.get(name) or points.reporter[name]()
        with replacing(folder / reporter.file) as file:
            chunks = reporter.render(report, observed.results)
            is_ours = getattr(reporter, "template", None) is None
            file.writelines(chunks if is_ours else [secrets.text("".join(chunks))])


def describe(plan: Plan, context: RunContext) -> RunMeta:
    """Return what holds for the whole of a run."""
    created = datetime.fromtimestamp(context.now(), UTC)
    config = plan.config
    agents = tuple(dict.fromkeys(agent for agent, _ in plan.pairs))
    return RunMeta(
        run_id=f"{created:%Y%m%dT%H%M%SZ}-{token_hex(4)}",
        suite=config.suite,
        created=created.isoformat(timespec="seconds"),
        version=__version__,
        config=config.shown,
        commit=context.clone.head,
        branch=current_branch(context.clone),
        job=context.job,
        agents=agents,
        evalsets={name: chosen.opened.header for name, chosen in plan.evalsets.items()},
        criteria={
            name: CriterionFacts(
                criterion=criterion.type_name,
                better=criterion.direction,
                threshold=criterion.threshold,
                interval=criterion.bounds,
                informational=criterion.informational,
                tier=criterion.tier or ("warn" if criterion.threshold is None else "block"),
                max_growth=criterion.max_growth,
                fingerprint=_fingerprint(criterion, config.judging, context),
            )
            for chosen in plan.pairs.values()
            for name, criterion in chosen.items()
        },
        gate=config.gate.model_dump(mode="json", exclude_defaults=True),
        store=_stored_in(config),
        repeats=plan.repeats,
        filtered=plan.filtered,
        disabled=config.disabled,
        overrides={
            name: module for point in points.POINTS for name, module in point.overridden.items()
        },
        warnings=tuple(map(str, plan.warnings)),
        lacking={
            name: missing
            for name in agents
            if (missing := config.agents[name].missing(context.env))
        },
    )


def _stored_in(config: Config) -> dict[str, Json]:
    store = config.baseline
    given = store.model_dump(mode="json", exclude_defaults=True) if store else {}
    return {"store": store.type_name, **given} if store else {}


def _fingerprint(criterion: AnyCriterion, judging: Judging, context: RunContext) -> str:
    made_of = None
    if isinstance(criterion, WorkerCriterion):
        made_of = criterion.made_of(context)
    elif isinstance(criterion, JudgedCriterion):
        made_of = judging.made_of(criterion)
    more = [made_of] if made_of else []
    return fingerprint([criterion.type_name, criterion.options(), *more])


def _worst(
    observed: Run, columns: Columns, comparison: Comparison | None, limit: int
) -> Iterator[TrialResult]:
    """Yield the results to show: what changed for the worse first, then failures and errors."""
    if not limit:
        return
    wanted: dict[tuple[str, str, str], None] = {}
    changes = sorted(
        (
            change
            for change in (comparison.changes if comparison else ())
            if change.change != "fixed"
        ),
        key=lambda change: not change.certain,
    )
    for change in changes:
        wanted[change.group.agent, change.group.evalset, change.case] = None
    for place, status in columns.cases(observed.meta.criteria):
        if status in (Status.FAILED, Status.ERROR):
            wanted[place] = None
    chosen = {place: rank for rank, place in enumerate(wanted) if rank < limit}
    if not chosen:
        return
    found: dict[tuple[str, str, str], TrialResult] = {}
    for result in observed.results():
        place = _place(result.key)
        kept = found.get(place)
        if place in chosen and (kept is None or _graver(result, kept)):
            found[place] = result
    yield from sorted(found.values(), key=lambda result: chosen[_place(result.key)])


def _place(key: TrialKey) -> tuple[str, str, str]:
    return key.agent, key.evalset, key.case


def _graver(result: TrialResult, other: TrialResult) -> bool:
    return (
        result.status is not other.status
        and Status.worst([result.status, other.status]) is result.status
    )
