"""The report of a run: its content, and its documents."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from ci_eval.config.config_schema import GateOptions
from ci_eval.gate.case_counts import count_cases, summarise
from ci_eval.gate.compare import compare
from ci_eval.gate.decide import decide, missing_parts
from ci_eval.gate.exemptions import Excuses, excused, reasons_of
from ci_eval.gate.missing_credentials import lacked
from ci_eval.gate.weakened_gate import loosened
from ci_eval.plugins import points
from ci_eval.plugins.points import Reporter
from ci_eval.records.cases import Status
from ci_eval.records.comparisons import Comparison
from ci_eval.records.findings import GroupSummary, Metered, Report
from ci_eval.records.results import Run, RunMeta, TrialResult
from ci_eval.records.trials import Place
from ci_eval.run.baseline_choice import Baseline
from ci_eval.run.collect import Collected, Tally
from ci_eval.run.confirmation import NOT_CONFIRMED, Confirmation
from ci_eval.run_files.file_names import (
    BASE_FOLDER,
    REPORT_FILE,
    RUN_FILE,
    SHARD_FILE,
    make_report_folder,
)
from ci_eval.run_files.run_file import read_run, redacted, replacing
from ci_eval.run_files.score_table import Columns, Past
from ci_eval.run_files.stored_document import write_record
from ci_eval.text.redact import Secrets

MAX_WORST = 100
"""Maximum number of results that a report includes with their evidence."""


def clear(folder: Path) -> None:
    """Remove the reports of an earlier run, so that a failing run does not leave them behind."""
    names = (REPORT_FILE, SHARD_FILE, *(points.reporter[name].file for name in points.reporter))
    for file in names if folder.is_dir() else ():
        (folder / file).unlink(missing_ok=True)


def write_report(
    report: Report, run: Run, folder: Path, configured: Mapping[str, Reporter], secrets: Secrets
) -> None:
    """Write the report and all its documents, with configured or default reporters.

    `report` and `run` are free of the `secrets`; the run of the merge base beside it, and text
    added by a template of the repository, are cleaned of them.
    """
    make_report_folder(folder)
    base = run.traces.parent / BASE_FOLDER / RUN_FILE if run.traces else None
    is_compared = base and base.is_file()
    before = redacted(read_run(base, shown=str(base)), secrets) if base and is_compared else None
    write_record(report, folder / REPORT_FILE)
    for name in points.reporter:
        if name not in configured and points.reporter[name].optional:
            continue
        reporter = configured.get(name) or points.reporter[name]()
        with replacing(folder / reporter.file) as file:
            chunks = reporter.of_run(report, run, before)
            is_ours = getattr(reporter, "template", None) is None
            # A secret cannot span two chunks: each is rendered as a whole.
            file.writelines(chunks if is_ours else map(secrets.text, chunks))


def worst_results(
    run: Run,
    columns: Columns,
    comparison: Comparison | None,
    limit: int,
    exempt: Excuses = MappingProxyType({}),
) -> Iterator[TrialResult]:
    """Yield the results to show: changes for the worse first, then failures and errors.

    Cases that are `exempt` from the gate are left out.
    """
    if not limit:
        return
    changes = sorted(comparison.changes if comparison else (), key=lambda each: not each.certain)
    worse = [each for each in changes if each.change != "fixed" and not each.excused]
    bad = (Status.FAILED, Status.ERROR)
    wanted = [each.place for each in worse]
    statuses = columns.statuses(run.meta.criteria, exempt)
    wanted += [place for place, status in statuses if status in bad]
    chosen = {place: rank for rank, place in enumerate([*dict.fromkeys(wanted)][:limit])}
    if not chosen:
        return
    found: dict[Place, TrialResult] = {}
    for result in run.results():
        place = result.key.place
        kept = found.get(place)
        if place in chosen and (kept is None or _graver(result, kept)):
            found[place] = result
    yield from sorted(found.values(), key=lambda result: chosen[result.key.place])


def _graver(result: TrialResult, other: TrialResult) -> bool:
    return (
        result.status is not other.status
        and Status.worst([result.status, other.status]) is result.status
    )


def compare_and_decide(
    collected: Collected,
    gate: GateOptions,
    baseline: Baseline | None,
    confirmation: Confirmation = NOT_CONFIRMED,
    *,
    worst: int = MAX_WORST,
) -> Report:
    """Compare a run with its baseline, decide, and return the report.

    `confirmation` has the results of the merge base in the same job.  The report shows at most
    `worst` results.
    """
    run, tally = collected
    meta = run.meta.model_copy(update={"warnings": (*run.meta.warnings, *tally.warnings())})
    comparison, weakened = None, meta.weakened
    base = confirmation.base
    past = (baseline.runs if baseline else ()) or ([base] if base else [])
    if baseline and past and gate.mode != "threshold":
        comparison = compare(meta, tally.columns, past, gate, baseline.lineage, base)
        weakened = tuple(dict.fromkeys([*comparison.loosened, *weakened]))
        update = {
            "loosened": weakened,
            "unconfirmed": confirmation.unconfirmed or comparison.unconfirmed,
            "limited_by": confirmation.limited_by,
            "base_trials": confirmation.trials,
        }
        comparison = comparison.model_copy(update=update)
    elif baseline and baseline.runs:
        weakened = tuple(dict.fromkeys([*loosened(meta, baseline.runs[0].meta), *weakened]))
        meta = meta.model_copy(update={"weakened": weakened})
    exempt = excused(meta, gate, tally.columns)
    groups = _groups(meta, tally, exempt)
    totals = tally.totals(count_cases(meta, tally.columns, gate), meta)
    verdict = decide(
        gate,
        totals,
        groups,
        comparison,
        baseline_configured=baseline is not None,
        missing=missing_parts(meta.missing_shards, tally.stopped_after),
        loosened=() if comparison else weakened,
        lacking=lacked(meta, groups, tally.simulation, tally.failures),
        unconfirmed=(comparison or confirmation).unconfirmed,
        needs_base=not (confirmation.base_is_new or (baseline and baseline.runs)),
        unused=baseline.unused if baseline else "",
        exemptions=reasons_of(exempt, meta, gate, tally.columns, comparison),
    )
    return Report(
        meta=meta,
        totals=totals,
        groups=groups,
        comparison=comparison,
        verdict=verdict,
        judging=tally.judged,
        simulation=tally.simulation,
        metered=_metered(tally.columns, past),
        history=tuple(baseline.history) if baseline else (),
        worst=tuple(worst_results(run, tally.columns, comparison, worst, exempt)),
    )


def _groups(meta: RunMeta, tally: Tally, exempt: Excuses) -> tuple[GroupSummary, ...]:
    """Return the summary of each group, with the usage of its judges."""
    return tuple(
        each.model_copy(update={"judging": tally.judging.get(each.group, each.judging)})
        for each in summarise(meta, tally.columns, exempt)
    )


def _metered(columns: Columns, past: Sequence[Past]) -> Metered | None:
    """Return the usage of the agents' models, and that of the nearest metered run."""
    if not columns.metered_trials:
        return None
    found = Metered(usage=columns.metered, trials=columns.metered_trials)
    before = next((each.columns for each in past if each.columns.metered_trials), None)
    if before is None:
        return found
    update = {"baseline": before.metered, "baseline_trials": before.metered_trials}
    return found.model_copy(update=update)
