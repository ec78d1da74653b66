"""Content of the Markdown documents: a report, arranged for readers and cut to size.

Templates get a `Page` and nothing else.  It has all counts of the report, but only the first
entries of long lists: a document is shortened by whole entries, never in mid-sentence.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from ci_eval.records.comparisons import Comparison, Vanished
from ci_eval.records.findings import GroupSummary, Report, Totals, Verdict
from ci_eval.records.results import JudgeUsage, RunMeta
from ci_eval.records.trials import Place
from ci_eval.reporters import _comparison_parts
from ci_eval.reporters._case_changes import named, worsened
from ci_eval.reporters._criteria_rows import Row, first_rows, rows_of
from ci_eval.reporters._notable_cases import Bounds, Cases, Findings, Some, Trouble
from ci_eval.reporters._score_history import History, history_of
from ci_eval.reporters._verdict_reasons import reasons_of, weakened
from ci_eval.run_files import report_phrases
from ci_eval.run_files.file_names import command_line
from ci_eval.run_files.times import moment
from ci_eval.text.templates import code

MAX_REASONS = 5
"""Maximum number of reasons of one severity at the top of a document."""
_MAX_COMMAND = 200
"""Maximum length of a command to copy, in characters."""
_ACCEPTED_DAYS = 60
_MAX_ACCEPTED = 20
"""Maximum number of broken cases that are accepted one by one, instead of their criteria."""
_LOG = re.compile(r"(https?://[\w.:-]+/[\w./~-]+)/(?:actions/runs|pipelines)/\d+", re.ASCII)
_COMMIT = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True)
class Page:
    """Everything that a Markdown document may show."""

    meta: RunMeta
    totals: Totals
    verdict: Verdict
    decided: str
    """How the suite ended: `passed`, `failed`, `has no verdict` or `was not evaluated`, followed by
    `part`."""
    comparison: Comparison | None
    compared: bool
    """Whether the verdict is based on a comparison."""
    baseline: _comparison_parts.Baseline
    blocking: Cases
    """The cases that block because they broke."""
    dropped: Some[Row]
    """The criteria that block because they got worse over all cases."""
    reasons: Some[str]
    """The other reasons why it blocks or, if nothing blocks, why there is no verdict."""
    warnings: Some[str]
    exempt: Some[str]
    """Exempted cases that did not pass or got worse."""
    notes: Some[str]
    """Other remarks on the verdict and the run."""
    loosened: Some[str]
    """How this pull request weakens its own gate."""
    model_changes: Some[str]
    """Models whose version differs from that in the baseline."""
    regression: bool
    """Whether any criterion regressed, even one that only warns."""
    doubt: str
    """The number of inconclusive criteria and cases, as a clause; empty if none."""
    together: _comparison_parts.TogetherRow | None
    """All blocking criteria combined, if they regressed or are inconclusive."""
    criteria: Some[Row]
    """The criteria that got worse or failed, and some others."""
    calm: Some[Row]
    """The remaining criteria, if there are many."""
    measures: Some[Row]
    """The informational criteria."""
    judged: Some[GroupSummary]
    """The criteria that called a model."""
    judging: JudgeUsage | None
    """Total usage of judge models."""
    simulation: JudgeUsage | None
    """Total usage of models for simulated users."""
    model_calls: str
    """Usage of the agents' models, now and in the baseline; empty if it is not metered."""
    broke: Cases
    """The cases that certainly got worse."""
    lower: Cases
    """The cases that are part of a criterion's drop."""
    suspected: Cases
    """The cases that always passed before and always fail now."""
    noise: Some[str]
    """The other cases that got worse."""
    in_base: Some[str]
    """The cases that also fail with the merge base."""
    others_failed: int
    """The number of failed cases that do not fail newly."""
    failing: Cases
    """The cases below a threshold that did not get worse, if the report contains them."""
    failing_counts: bool
    """Whether a case below a threshold blocks by itself."""
    troubles: Some[Trouble]
    """The causes of errors among the results in the report."""
    flaky: Some[_comparison_parts.FlakyCase]
    """Cases that both passed and failed in the baseline."""
    flaky_more: bool
    """Whether there are flaky cases that the report does not contain."""
    excused: Some[_comparison_parts.Excuse]
    """Accepted drops and quarantines, current and expired."""
    history: History
    """The history of the criteria over the last runs."""
    fixed: Some[str]
    added: Some[str]
    vanished: Some[str]
    not_comparable: Some[str]
    try_command: str
    """Command to reproduce the most important case locally; empty if there is none."""
    acceptance: str
    """Entries of `gate.accept` for what blocks because it got worse; empty if nothing does."""
    save_command: str
    """Command to make this run the baseline; empty if CI stores merged runs automatically."""

    @property
    def silent(self) -> int:
        """The number of cases in which a criterion that can block finds nothing to measure now."""
        found = self.comparison.silent if self.comparison else ()
        return len({case for each in found for case in each.cases})

    @property
    def needs_maintainer(self) -> bool:
        """True if calls of models must be recorded, which needs keys that forks do not get."""
        return self.meta.from_fork and any(
            each.kind == "not_recorded" for each in self.troubles.shown
        )

    @property
    def part(self) -> str:
        """A clause saying that only a part of the suite was run; empty if all of it was."""
        return report_phrases.part(self.meta)

    @property
    def left_out(self) -> str:
        """How many cases count neither as passed nor as failed, and why; empty if none."""
        return report_phrases.left_out(self.totals, self.meta)

    @property
    def log_url(self) -> str:
        """The page of the workflow run or pipeline; empty outside of CI."""
        return self.meta.url if _LOG.fullmatch(self.meta.url) else ""

    @property
    def commit_url(self) -> str:
        """The page of the commit; empty if unknown."""
        found, commit = _LOG.fullmatch(self.meta.url), self.meta.commit or ""
        return f"{found[1]}/commit/{commit}" if found and _COMMIT.fullmatch(commit) else ""


def page_of(report: Report, bounds: Bounds) -> Page:
    """Return the content of `report` for a document, within `bounds`."""
    comparison = report.comparison or Comparison()
    findings = Findings(report, bounds)
    table, rows = rows_of(report), bounds.rows
    leading, others = first_rows(table)
    deciding, warnings, exempt, notes = reasons_of(report)
    broke, suspected = findings.worse("broke"), findings.worse("suspected")
    blocks = any(
        each.kind == "regressed" and each.severity == "blocks" and each.group
        for each in report.verdict.reasons
    )
    drops = [row for row in table if blocks and row.blocks_by_drop]
    return Page(
        meta=report.meta,
        totals=report.totals,
        verdict=report.verdict,
        decided=report_phrases.decided(report),
        comparison=report.comparison,
        compared=report.comparison is not None and report.verdict.mode != "threshold",
        baseline=_comparison_parts.baseline_of(report),
        blocking=findings.worse("broke", tier="block") if blocks else Cases((), 0),
        dropped=Some.of(drops, MAX_REASONS),
        reasons=Some.of(deciding, MAX_REASONS),
        warnings=Some.of(warnings, MAX_REASONS),
        exempt=Some.of(exempt, rows),
        notes=Some.of([*notes, *report.meta.warnings, *_overrides(report.meta)], rows),
        loosened=Some.of(weakened(report), MAX_REASONS),
        model_changes=Some.of(map(report_phrases.model_change, report.model_changes), MAX_REASONS),
        regression=any(delta.outcome == "regressed" for delta in comparison.deltas),
        doubt=_comparison_parts.doubt(comparison, suspected.total),
        together=_comparison_parts.together_row(comparison),
        criteria=Some.of(leading, rows),
        calm=Some.of(others, rows),
        measures=Some.of((row for row in table if row.summary.informational), rows),
        judged=Some.of((each for each in report.groups if each.judging), rows),
        judging=report.judging,
        simulation=report.simulation,
        model_calls=report_phrases.model_calls(report.metered) if report.metered else "",
        broke=broke,
        lower=findings.worse("lower"),
        suspected=suspected,
        noise=Some.of(findings.names("noise"), rows),
        in_base=Some.of(findings.names("in_base"), rows),
        others_failed=max(report.totals.failed - findings.newly_failing, 0),
        failing=findings.failing(bounds.evidence if report.verdict.by_threshold else 0),
        failing_counts=report.verdict.by_threshold,
        troubles=findings.troubles(),
        flaky=Some.of(_comparison_parts.flaky_cases(report), rows),
        flaky_more=comparison.flaky_total > len(comparison.flaky),
        excused=Some.of(_comparison_parts.excuses_of(comparison, report.meta), rows),
        history=history_of(report, table, bounds),
        fixed=Some.of(_fixed(comparison, report.meta), rows),
        added=Some.of(comparison.added, rows),
        vanished=Some.of(map(_gone, comparison.vanished), rows),
        not_comparable=Some.of(comparison.not_comparable, rows),
        try_command=_try_command(report, findings.first()),
        acceptance=_acceptance(report, drops) if blocks else "",
        save_command=_save_command(report.meta),
    )


def _overrides(meta: RunMeta) -> list[str]:
    return [f"{name} is from {module}, not from ci-eval" for name, module in meta.overrides.items()]


def _fixed(comparison: Comparison, meta: RunMeta) -> Iterable[str]:
    fixed = (each for each in comparison.changes if each.change == "fixed")
    return dict.fromkeys(named(each.place, meta) for each in fixed)


def _gone(each: Vanished) -> str:
    return f"{each.kind} {each.where}/{each.name}" if each.where else f"{each.kind} {each.name}"


def _try_command(report: Report, place: Place | None) -> str:
    meta = report.meta
    if not place or (report.verdict.outcome == "incomplete" and meta.missing_shards):
        return ""
    command = ["run"]
    if len(meta.agents) > 1:
        command += ["--agent", place.agent]
    if len(meta.evalsets) > 1:
        command += ["--evalset", place.evalset]
    if not report.totals.passed + report.totals.failed:
        return _command(meta, *command)  # any case reproduces the error
    line = _command(meta, *command, "--case", place.case)
    # A command that is very long or not shown verbatim cannot be copied.
    if code(line, _MAX_COMMAND) == f"`{line}`":
        return line
    return _command(meta, "run", "--failed")


def _command(meta: RunMeta, *words: str) -> str:
    return command_line(meta.config_from_top or meta.config, *words)


def _acceptance(report: Report, drops: Iterable[Row]) -> str:
    """Return the entries of `gate.accept` that cover all that regressed."""
    created = moment(report.meta.created)
    criteria = {row.summary.group.criterion: "criterion" for row in drops}
    broken = [
        each.change
        for found in worsened(report).values()
        for each in found
        if each.kind == "broke" and each.tier == "block"
        if each.change.group.criterion not in criteria
    ]
    what = {each.case: "case" for each in broken}
    if len(what) > _MAX_ACCEPTED:
        what = {each.group.criterion: "criterion" for each in broken}
    what |= criteria
    until = (created + timedelta(days=_ACCEPTED_DAYS)).date() if created else "a day"
    # JSON's strings are also YAML's.
    entries = (
        f"    - {{{key}: {json.dumps(name, ensure_ascii=False)}, reason: say why, until: {until}}}"
        for name, key in what.items()
        if len(name) <= _MAX_COMMAND
    )
    return "\n".join(["gate:", "  accept:", *entries]) if what else ""


def _save_command(meta: RunMeta) -> str:
    if meta.store.get("store", "file") not in ("file", "git"):
        return ""
    return _command(meta, "baseline", "save", "ci-eval-report/run.json")


def run_command(meta: RunMeta) -> str:
    """Return the command that runs the suite."""
    return _command(meta, "run")
