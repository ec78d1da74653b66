"""Verdict on a run and its comparison: whether it may be merged, and why."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ci_eval.config.config_schema import GateOptions
from ci_eval.gate import floors
from ci_eval.gate.floors import SEVERITIES, reason
from ci_eval.gate.silent_cases import reasons_of_silence
from ci_eval.gate.undecided import is_all_broken, what_would_decide
from ci_eval.gate.weakened_gate import UNBLOCKED
from ci_eval.records.comparisons import CaseChange, Comparison, Delta, Outcome, Vanished
from ci_eval.records.findings import (
    GroupSummary,
    Named,
    Reason,
    ReasonKind,
    ReasonSeverity,
    Totals,
    Verdict,
)
from ci_eval.records.results import Tier
from ci_eval.run_files.report_phrases import MAX_NAMED, listed, named, named_shards
from ci_eval.text.templates import counted, plain

_MISSING: dict[str, tuple[ReasonSeverity, str]] = {
    "pass": ("info", "nothing was compared"),
    "threshold": ("info", "judged by thresholds alone"),
    "warn": ("warns", "nothing was compared"),
    "fail": ("blocks", "gate.on_missing is 'fail'"),
}
"""ReasonSeverity and consequence of a missing baseline, by `gate.on_missing`."""
_OUTCOMES: dict[ReasonSeverity, Literal["passed", "failed", "incomplete"]] = {
    "blocks": "failed",
    "incomplete": "incomplete",
    "warns": "passed",
    "info": "passed",
}
"""The outcome by the gravest reason, which comes first."""


def decide(  # noqa: PLR0913  # everything that the verdict depends on
    options: GateOptions,
    totals: Totals,
    groups: tuple[GroupSummary, ...],
    comparison: Comparison | None,
    *,
    baseline_configured: bool,
    loosened: Sequence[str] = (),
    lacking: str = "",
    unconfirmed: str = "",
    needs_base: bool = False,
    exemptions: Iterable[Reason] = (),
    unused: str = "",
    missing: Iterable[Reason] = (),
) -> Verdict:
    """Return the verdict.

    It is `failed` if something blocks, whatever the missing observations would have been; otherwise
    `incomplete` if too much is missing or nothing was judged; otherwise `passed`.

    `loosened` is how the change weakens the gate, beyond what the comparison found; `lacking` is
    why something could not be measured, and `unconfirmed` why the merge base could not be run, if
    known, and `needs_base` True if there is nothing else to compare with; `exemptions` are the
    reasons from `gate.accept` and `gate.quarantine`; `unused` is why none of the stored runs fits,
    if any are stored; `missing` are the `missing_parts`.
    """
    mode = options.mode or ("regression" if baseline_configured else "threshold")
    lacks = lacks_baseline(comparison)
    by_threshold = mode != "regression" or (lacks and options.on_missing == "threshold")
    # A case that fails anyway may still have regressed in what is missing.
    compared = comparison is not None and mode != "threshold"
    errors = totals.incomplete if compared else totals.errors
    gate = _Gate(options, totals, groups, lacking, errors, unused, unconfirmed, needs_base)
    reasons = [*gate.floors(by_threshold=by_threshold)]
    if not by_threshold and options.min_pass_rate is None:
        reasons += gate.failed_before(comparison)
    if loosened:
        reasons.append(_weakened(loosened, options))
    if mode != "threshold":
        reasons += gate.changes(comparison) if comparison else ()
        reasons += gate.missing_baseline(comparison) if lacks else ()
    reasons += exemptions
    reasons += missing
    reasons += gate.completeness()
    reasons += gate.judgement()
    reasons.sort(key=lambda each: [*_OUTCOMES].index(each.severity))
    outcome = _OUTCOMES[reasons[0].severity] if reasons else "passed"
    undecided = ""
    if outcome == "passed":
        undecided = what_would_decide(comparison if compared else None, options, reasons)
    return Verdict(
        outcome=outcome,
        mode=mode,
        by_threshold=by_threshold,
        reasons=tuple(reasons),
        undecided=undecided,
        unconfirmed=unconfirmed,
    )


def missing_parts(shards: Sequence[str], stopped_after: int) -> Iterator[Reason]:
    """Yield what was not run: `shards` without a report, and what `--maxfail` left out.

    `stopped_after` is the number of trials that were run; 0 if all were.
    """
    if shards:
        yield reason("missing_shards", "incomplete", f"no report of {named_shards(shards)}")
    if stopped_after:
        message = f"stopped after {counted(stopped_after, 'trial')}, because of --maxfail"
        yield reason("unmeasured_cases", "incomplete", message)


def lacks_baseline(comparison: Comparison | None) -> bool:
    """Return True if there is no baseline run, or none with a comparable case."""
    return comparison is None or not comparison.comparable


@dataclass(frozen=True)
class _Gate:
    options: GateOptions
    totals: Totals
    groups: tuple[GroupSummary, ...]
    lacking: str
    errors: int
    """Number of cases with missing observations that could change the verdict."""
    unused: str
    """Why none of the stored runs fits, if any are stored."""
    unconfirmed: str
    """Why the merge base could not be run, if known."""
    needs_base: bool
    """Whether there is nothing else to compare with, so that it leaves a doubt."""

    @property
    def tolerated(self) -> bool:
        """True if no more is missing than `gate.max_errors` allows."""
        return self.errors <= self.options.max_errors

    def floors(self, *, by_threshold: bool) -> Iterator[Reason]:
        """Yield the floors that are missed, or may be because of what is missing."""
        totals, allowed = self.totals, floors.Allowance.shared(self.groups, self.options)
        if by_threshold or self.options.min_pass_rate is not None:
            yield from floors.of_pass_rate(totals, self.options, allowed, tolerated=self.tolerated)
        yield from floors.of_means(self.groups, self.options, allowed, tolerated=self.tolerated)
        if by_threshold:
            yield from self._failed_warnings()

    def failed_before(self, comparison: Comparison | None) -> Iterator[Reason]:
        """Yield the number of failed cases that are not named as broken or suspected."""
        deciding = {each.group for each in self.groups if each.tier == "block"}
        deltas, changes = (comparison.deltas, comparison.changes) if comparison else ((), ())
        regressed = {each.group for each in deltas if each.outcome == "regressed"}
        named_ones = {
            "/".join(each.place)
            for each in changes
            if each.change in ("newly_failing", "dropped") and each.failed
            if each.certain or each.suspected or each.group in regressed
            if each.group in deciding and not each.excused
        }
        if unmatched := comparison.unmatched_failures if comparison else ():
            names = listed(list(dict.fromkeys(each.split("/", 2)[-1] for each in unmatched)))
            message = f"nothing to compare with, and below a threshold (does not block): {names}"
            yield reason("failed_cases", "warns", message)
        named_ones.update(unmatched)
        others = self.totals.failed - len(named_ones)
        if others > 0:
            failed = counted(others, "other case" if named_ones else "case")
            message = f"{failed} below a threshold (does not block: only getting worse does)"
            yield reason("failed_cases", "info", message)

    def _failed_warnings(self) -> Iterator[Reason]:
        """Yield the criteria of tier `warn` that cases failed."""
        for group in self.groups:
            if group.tier == "warn" and group.failed and not group.informational:
                failed = counted(group.failed, "case")
                message = f"{named(group.group)} failed {failed} (tier 'warn': does not block)"
                yield reason("advisory", "warns", message, group.group)

    def changes(self, comparison: Comparison) -> Iterator[Reason]:
        """Yield the changes compared with the baseline."""
        if comparison.loosened:
            yield _weakened(comparison.loosened, self.options)
        for delta in comparison.deltas:
            if delta.outcome in ("regressed", "inconclusive"):
                verb = "regressed" if delta.outcome == "regressed" else "changed"
                message = f"{named(delta.group)} {verb}{self._change_of(delta)}: {delta.reason}"
                message += _worse_cases(comparison, delta)
                severity = self._severity(delta.outcome, delta.tier)
                if self._is_all_broken(delta, comparison):
                    severity = "incomplete"
                    message += "; all its cases broke, and nothing could confirm it"
                yield reason(delta.outcome, severity, message, delta.group)
        yield from self._together(comparison)
        yield from self._of_merge_base(comparison)
        gone = comparison.vanished
        if gone:
            names = listed([_gone(each) for each in gone])
            fails = self.options.on_vanished == "fail"
            why = "; if that is intended, set gate.on_vanished: warn" if fails else ""
            message = f"in the baseline but not in this run: {names}{why}"
            yield reason("vanished", SEVERITIES[self.options.on_vanished], message)
        yield from reasons_of_silence(comparison.silent, self.options)
        if comparison.hidden:
            message = f"errors may hide a regression of: {listed(comparison.hidden)}"
            yield reason("hidden", "incomplete", message)
        if comparison.not_comparable:
            names = listed(list(comparison.not_comparable))
            yield reason("not_comparable", "info", f"not compared: {names}")

    def _change_of(self, delta: Delta) -> str:
        """Return how the mean of a group changed, as the end of a phrase."""
        if delta.value is None or delta.baseline is None or delta.effect is None:
            return ""
        before, now = plain(delta.baseline), plain(delta.value)
        if delta.outcome != "regressed":
            return f" from {before} to {now}"
        own = [each for each in self.groups if each.group == delta.group]
        loss = delta.effect if any(each.better == "lower" for each in own) else -delta.effect
        if loss > 0 and before != now:
            # Missing values count as the best possible ones.
            least = "at least " * any(each.incomplete for each in own)
            return f" by {least}{plain(loss)}, from {before}"
        return f" in single cases (mean {before} → {now})"

    def _together(self, comparison: Comparison) -> Iterator[Reason]:
        """Yield the result for all criteria combined, if no single criterion shows it."""
        found = comparison.together
        outcomes = {delta.outcome for delta in comparison.deltas if delta.tier == "block"}
        # If one criterion regressed for certain, the combined result adds nothing.
        if "regressed" in outcomes:
            return
        if found and found.outcome in {"regressed", "inconclusive"} - outcomes:
            is_sure = found.outcome == "regressed"
            doubt = "" if is_sure else "; this may be noise"
            share = f"{-found.effect:.3f} of their ranges"
            blocking = {each.group for each in comparison.deltas if each.tier == "block"}
            names = _listed_cases(
                change
                for change in comparison.changes
                if change.group in blocking and change.change == "newly_failing"
            )
            message = f"all blocking criteria combined are worse by {share}{names}{doubt}"
            kind: ReasonKind = "regressed" if is_sure else "inconclusive"
            yield reason(kind, self._severity(found.outcome, "block"), message)

    def _is_all_broken(self, delta: Delta, comparison: Comparison) -> bool:
        """Return True if a whole group broke and reruns could not settle it."""
        open_by_default = self.options.on_inconclusive == "rerun" and delta.tier == "block"
        is_open = open_by_default and delta.outcome == "inconclusive"
        return is_open and is_all_broken(delta, comparison)

    def _severity(self, outcome: Outcome, tier: Tier) -> ReasonSeverity:
        severity = "blocks" if outcome == "regressed" else SEVERITIES[self.options.on_inconclusive]
        return "warns" if severity == "blocks" and tier == "warn" else severity

    def _of_merge_base(self, comparison: Comparison) -> Iterator[Reason]:
        """Yield what fails with the merge base, too, and why it was not run."""
        if in_base := [repr(each.case) for each in comparison.changes if each.in_base]:
            names = listed(list(dict.fromkeys(in_base)))
            message = f"not caused by this change, because the merge base fails, too: {names}"
            yield reason("fails_in_base", "info", message)
        if copies := comparison.base_copies:
            message = f"the merge base was run with copies of untracked files: {listed(copies)}"
            yield reason("fails_in_base", "info", message)
        if self.unconfirmed:
            yield self._not_run()

    def _not_run(self) -> Reason:
        """Return why the merge base could not be run."""
        severity: ReasonSeverity = "info"
        if self.needs_base:
            severity = "blocks" if self.options.on_inconclusive == "fail" else "warns"
        message = f"not compared with the merge base: {self.unconfirmed}"
        return reason("unconfirmed", severity, message)

    def missing_baseline(self, comparison: Comparison | None) -> Iterator[Reason]:
        """Yield the consequence of a missing baseline, as `gate.on_missing` sets it."""
        severity, therefore = _MISSING[self.options.on_missing]
        what = "no case of the baseline is comparable" if comparison else "no baseline yet"
        if comparison and any(each.outcome != "not_compared" for each in comparison.deltas):
            what = "no criterion that may block can be compared with the baseline"
        if self.unused and not comparison:
            what = f"no stored run fits this one ({self.unused})"
        if self.unconfirmed and not comparison:
            yield self._not_run()
            what = "nothing to compare with"
        yield reason("no_baseline", severity, f"{what}: {therefore}")

    def completeness(self) -> Iterator[Reason]:
        """Yield a reason if cases could not be measured."""
        errors, totals = self.errors, self.totals
        if not self.tolerated:
            because = f": {self.lacking}" if self.lacking else ""
            message = f"{counted(errors, 'case')} of {totals.cases} could not be measured{because}"
            yield reason("unmeasured_cases", "incomplete", message)
        elif errors:
            lost = counted(errors, "case")
            message = f"{lost} could not be measured, which gate.max_errors allows"
            yield reason("unmeasured_cases", "warns", message)

    def judgement(self) -> Iterator[Reason]:
        """Yield a reason if no criterion applied to some cases, or a criterion to none."""
        totals = self.totals
        judged = totals.passed + totals.failed + totals.accepted
        if found := totals.unjudged:
            yield reason("unjudged_cases", "incomplete", _unjudged(found))
        elif not judged and totals.errors <= self.options.max_errors:
            yield reason("unjudged_cases", "incomplete", "no case was judged by any criterion")
        if found := totals.allowed:
            message = f"allowed by gate.allow_unjudged: {_unjudged(found)}"
            yield reason("unjudged_cases", "warns", message)
        if judged and totals.unmeasured:
            names = listed([*totals.unmeasured])
            message = f"criteria with nothing to measure in any case: {names}"
            yield reason("unmeasured_criteria", "incomplete", message)
        used = {each.group.criterion for each in self.groups}
        applied = {each.group.criterion for each in self.groups if each.span or each.errors}
        for name, floor in self.options.min_score.items():
            if name in used - applied and name not in totals.unmeasured:
                message = f"{name} measured nothing, but a mean of {floor:g} is required"
                yield reason("unmeasured_criteria", "incomplete", message)


def _unjudged(found: Named) -> str:
    """Return the unjudged cases as a sentence."""
    names = found.first[:MAX_NAMED]
    more = f" and {found.count - len(names)} more" if found.count > len(names) else ""
    count = counted(found.count, "case")
    return f"no blocking criterion judged {count}: {', '.join(names)}{more}"


def _weakened(found: Sequence[str], gate: GateOptions) -> Reason:
    message = f"this change weakens its own gate: {listed([*found])}"
    fails = gate.on_loosened == "fail" or UNBLOCKED in found
    return reason("weakened_gate", "blocks" if fails else "warns", message)


def _worse_cases(comparison: Comparison, delta: Delta) -> str:
    """Return the cases of a group that got worse, as a suffix for its message.

    If its mean fell below that of the merge base, those that differ most from it come first.
    """
    own = [each for each in comparison.changes if each.group == delta.group]
    is_tested = delta.p_value is not None and delta.level is not None
    fell = delta.confirmed and is_tested and (delta.p_value or 0.0) <= (delta.level or 0.0)
    found = [
        each
        for each in own
        if each.certain
        or each.suspected
        or each.change == "dropped"
        or (fell and each.change == "newly_failing" and _rise(each) > 0)
    ]
    return _listed_cases(sorted(found, key=_rise, reverse=True) if fell else found)


def _rise(change: CaseChange) -> float:
    """Return how much more often a case fails than with the merge base in the same job."""
    failed, count = change.base or (0, 0)
    more = change.confirmed or (0, 0)
    trials = change.trials + more[1]
    return (change.failed + more[0]) / trials - failed / count if trials and count else 0.0


def _listed_cases(changes: Iterable[CaseChange]) -> str:
    names = dict.fromkeys(repr(each.case) for each in changes if not each.excused)
    return f" ({listed([*names])})" if names else ""


def _gone(thing: Vanished) -> str:
    where = f" on {thing.where}" if thing.where else ""
    return f"{thing.kind} {thing.name!r}{where}"
