"""What the Markdown documents say: a report, arranged for a reader and cut to a size.

Templates get a `Page` and nothing else.  It has every count of the whole report, and of
long lists the first entries, so a document becomes smaller by showing fewer of them and
never by losing the end of a sentence.
"""

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ci_eval.records.findings import (
    Comparison,
    GroupSummary,
    Report,
    Totals,
    Vanished,
    Verdict,
)
from ci_eval.records.results import JudgeUsage, RunMeta
from ci_eval.reporters._changes import Place
from ci_eval.reporters._compared import (
    Baseline,
    Excuse,
    FlakyCase,
    TogetherRow,
    baseline_of,
    doubt,
    excuse_of,
    flaky_cases,
    together_row,
)
from ci_eval.reporters._findings import Bounds, Finding, Findings, Some, Trouble
from ci_eval.reporters._history import History, history_of
from ci_eval.reporters._reasons import reasons_of
from ci_eval.reporters._rows import Row, first_rows, judged_by_threshold, rows_of
from ci_eval.run_files import wording
from ci_eval.run_files.names import CONFIG_FILE
from ci_eval.text.templates import code, render

T = TypeVar("T")

MAX_REASONS = 5
"""Reasons of one severity that a document begins with."""
_MAX_COMMAND = 200


@dataclass(frozen=True)
class Page:
    """Everything that a Markdown document may say."""

    meta: RunMeta
    totals: Totals
    verdict: Verdict
    decided: str
    """How the suite ended: `passed`, `failed`, `has no verdict` or `was not evaluated`."""
    comparison: Comparison | None
    compared: bool
    """Whether the verdict rests on a comparison."""
    baseline: Baseline
    reasons: Some[str]
    """Why it blocks; where nothing does, why there is no verdict."""
    warnings: Some[str]
    notes: Some[str]
    """What else is worth knowing of the verdict and of the run."""
    loosened: Some[str]
    """What the change makes easier to pass."""
    regression: bool
    """Whether a criterion regressed, though it may be one that only warns."""
    doubt: str
    """How much of a comparison that blocks nothing is in doubt; empty where nothing is."""
    together: TogetherRow | None
    """All criteria that block, taken together, where they got worse or may have."""
    criteria: Some[Row]
    """Those that got worse or failed, and some others."""
    calm: Some[Row]
    """The others, where they are many."""
    measures: Some[Row]
    """The criteria that only inform."""
    judged: Some[GroupSummary]
    """The criteria that asked a model."""
    judging: JudgeUsage | None
    """What asking models for verdicts took in all."""
    simulation: JudgeUsage | None
    """What asking models for what users say took in all."""
    regressed: Some[Finding]
    """The cases that are a regression, or show one."""
    suspected: Some[Finding]
    """The cases that passed every time before and fail every time now."""
    noise: Some[str]
    """The other cases that got worse."""
    failing: Some[Finding]
    """The cases below a threshold that did not get worse, as far as the report has them."""
    failing_counts: bool
    """Whether a case below a threshold counts against the verdict by itself."""
    troubles: Some[Trouble]
    """Why something could not be measured, as far as the report has results."""
    flaky: Some[FlakyCase]
    """Cases that passed and failed in the baseline."""
    flaky_more: bool
    """Whether there are others that the report does not name."""
    excused: Some[Excuse]
    """What is accepted or in quarantine, and what was."""
    history: History
    """How criteria did over the last runs."""
    fixed: Some[str]
    added: Some[str]
    vanished: Some[str]
    not_comparable: Some[str]
    try_command: str
    """Runs the case to look at first on one's own machine; empty where there is none."""
    save_command: str
    """Makes this run the baseline; empty where CI stores what is merged by itself."""


def fitting(
    template: str, report: Report, levels: Sequence[Bounds], fits: Callable[[str], bool]
) -> str:
    """Return the template filled with as much of `report` as fits, the first level most."""
    text = ""
    for bounds in levels:
        text = render(template, {"page": page_of(report, bounds)})
        if fits(text):
            break
    return text


def page_of(report: Report, bounds: Bounds) -> Page:
    """Arrange `report`."""
    comparison = report.comparison or Comparison()
    by_threshold = judged_by_threshold(report)
    findings = Findings(report, bounds)
    rows = rows_of(report)

    def some(entries: Iterable[T]) -> Some[T]:
        found = tuple(entries)
        return Some(found[: bounds.rows], len(found))

    first = findings.first()
    leading, others = first_rows(rows)
    deciding, warnings, notes = reasons_of(report)
    suspected = findings.worse("suspected")
    return Page(
        meta=report.meta,
        totals=report.totals,
        verdict=report.verdict,
        decided=wording.decided(report),
        comparison=report.comparison,
        compared=report.comparison is not None and report.verdict.mode != "threshold",
        baseline=baseline_of(report),
        reasons=_leading(deciding),
        warnings=_leading(warnings),
        notes=some([*notes, *report.meta.warnings, *_overrides(report.meta)]),
        loosened=_leading([*comparison.loosened]),
        regression=any(delta.outcome == "regressed" for delta in comparison.deltas),
        doubt=doubt(comparison, suspected.total),
        together=together_row(comparison),
        criteria=some(leading),
        calm=some(others),
        measures=some(row for row in rows if row.summary.informational),
        judged=some(each for each in report.groups if each.judging),
        judging=report.judging,
        simulation=report.simulation,
        regressed=findings.worse("regressed"),
        suspected=suspected,
        noise=some(findings.noise()),
        failing=findings.failing(bounds.evidence if by_threshold else 0),
        failing_counts=by_threshold,
        troubles=findings.troubles(),
        flaky=some(flaky_cases(report)),
        flaky_more=comparison.flaky_total > len(comparison.flaky),
        excused=some(excuse_of(each, report.meta) for each in comparison.excused),
        history=history_of(report, rows, bounds),
        fixed=some(_fixed(comparison, report.meta)),
        added=some(comparison.added),
        vanished=some(map(_gone, comparison.vanished)),
        not_comparable=some(comparison.not_comparable),
        try_command=_try_command(report.meta, first) if first else "",
        save_command=_save_command(report.meta),
    )


def _leading(messages: list[str]) -> Some[str]:
    return Some(tuple(messages[:MAX_REASONS]), len(messages))


def _overrides(meta: RunMeta) -> list[str]:
    return [f"{name} is {module}'s, not ci-eval's own" for name, module in meta.overrides.items()]


def _fixed(comparison: Comparison, meta: RunMeta) -> Iterable[str]:
    fixed = (each for each in comparison.changes if each.change == "fixed")
    return dict.fromkeys(Place.of_change(each).named(meta) for each in fixed)


def _gone(each: Vanished) -> str:
    return f"{each.kind} {each.where}/{each.name}" if each.where else f"{each.kind} {each.name}"


def _try_command(meta: RunMeta, place: Place) -> str:
    command = ["ci-eval", "run", *_config(meta)]
    if len(meta.agents) > 1:
        command += ["--agent", place.agent]
    if len(meta.evalsets) > 1:
        command += ["--evalset", place.evalset]
    line = shlex.join([*command, "--case", place.case])
    # What is very long, or not shown just as it is, cannot be copied.
    if code(line, _MAX_COMMAND) == f"`{line}`":
        return line
    return shlex.join([*command[: 2 + len(_config(meta))], "--failed"])


def _save_command(meta: RunMeta) -> str:
    if meta.store.get("store", "file") not in ("file", "git"):
        return ""
    return shlex.join(["ci-eval", "baseline", "save", *_config(meta), "ci-eval-report/run.json"])


def _config(meta: RunMeta) -> list[str]:
    return [] if meta.config in ("", CONFIG_FILE) else ["-c", meta.config]
