"""Outcome of a trial, for the reports that list single trials."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from ci_eval.records.cases import Status
from ci_eval.records.findings import Report
from ci_eval.reporters._case_changes import Worsening, worsened
from ci_eval.run_files import report_phrases
from ci_eval.text.templates import counted, exact, score

if TYPE_CHECKING:
    from ci_eval.records.compared_trials import AnyScore, AnyTrial

MAX_PATH = 4_096
"""Maximum length of an evalset's path; no file system has longer ones."""


class Outcome(NamedTuple):
    """Why a trial did not pass."""

    kind: Literal["failure", "error", "skipped"]
    type: str
    """`ci_eval.Regression`, `ci_eval.BelowThreshold`, or the kind of error."""
    message: str
    """One sentence; not yet escaped or shortened."""
    suspected: bool = False
    """Whether it is a possible regression: it never failed before."""
    blocks: bool = True
    """False if the case is exempt, or its criterion cannot block."""


class Outcomes:
    """Determines the outcome of each trial of one report."""

    def __init__(self, report: Report) -> None:
        # In threshold mode nothing is a regression.
        compared = report.verdict.mode != "threshold"
        self.worsened = worsened(report) if compared else {}
        self.failing_blocks = report.verdict.by_threshold
        criteria = report.meta.criteria.items()
        self._advisory = {name for name, facts in criteria if facts.tier != "block"}
        changes = report.comparison.changes if report.comparison else ()
        self._excused = {each.place: each.excused for each in changes if each.excused}

    def of(self, result: "AnyTrial") -> Outcome | None:
        """Return why a trial did not pass; `None` if it passed all criteria that can block."""
        excuse = self._excused.get(result.key.place)
        if result.status is Status.ERROR:
            return _error(result)._replace(blocks=not excuse)
        regressed = list(self._regressed(result))
        if regressed:
            blocks = any(each.tier == "block" for each, _ in regressed)
            messages = [message for _, message in regressed]
            return Outcome("failure", "ci_eval.Regression", _listed(messages), blocks=blocks)
        if result.status is Status.FAILED:
            failed = [each for each in result.scores if each.status is Status.FAILED]
            doubts = [report_phrases.trials(each.change) for each in self._suspected(result)]
            if failed and not doubts and all(each.name in self._advisory for each in failed):
                return None
            below = _listed([*map(_below, failed)])
            note = "" if self.failing_blocks else " (does not block: only getting worse does)"
            if excuse:
                note = f" ({excuse}: does not block)"
            if doubts:
                note = f"; possible regression: {doubts[0]}"
            message, suspected = below + note, bool(doubts)
            return Outcome("failure", "ci_eval.BelowThreshold", message, suspected, not excuse)
        if result.status is Status.SKIPPED:
            reasons = dict.fromkeys(each.reason for each in result.scores if each.reason)
            message = "; ".join(reasons) or "no criterion applies"
            return Outcome("skipped", "ci_eval.Skipped", message)
        return None

    def baseline(self, result: "AnyTrial", criterion: str) -> float | None:
        """Return the baseline's value if the case got worse under `criterion`."""
        changes = (each.change for each in self.worsened.get(result.key.place, ()))
        return next((each.baseline for each in changes if each.group.criterion == criterion), None)

    def _suspected(self, result: "AnyTrial") -> Iterator[Worsening]:
        """Yield the possible regressions that this trial shows."""
        failed = {each.name for each in result.scores if each.status is Status.FAILED}
        for worsening in self.worsened.get(result.key.place, ()):
            if worsening.kind == "suspected" and worsening.change.group.criterion in failed:
                yield worsening

    def _regressed(self, result: "AnyTrial") -> Iterator[tuple[Worsening, str]]:
        """Yield the regressions that this trial shows, with messages; other repeats may pass."""
        scores = {each.name: each for each in result.scores}
        for worsening in self.worsened.get(result.key.place, ()):
            shown = scores.get(worsening.change.group.criterion)
            if worsening.kind in ("broke", "lower") and shown and _shows(worsening, shown):
                before = score(worsening.change.baseline)
                message = f"{shown.name} regressed from {before} to {_now(worsening, shown)}"
                trials = report_phrases.trials(worsening.change)
                more = [each for each in (trials, report_phrases.tier(worsening.tier)) if each]
                yield worsening, ": ".join([message, ", ".join(more)]) if more else message


def _now(worsening: Worsening, shown: "AnyScore") -> str:
    """Return the mean of the case, and the value of this trial if it differs."""
    mean, value = score(worsening.change.value), score(shown.value)
    return value if mean == value else f"{mean} (this trial: {value})"


def _shows(worsening: Worsening, shown: "AnyScore") -> bool:
    if worsening.change.change == "newly_failing":
        return shown.status is Status.FAILED
    before = worsening.change.baseline
    if shown.value is None or before is None:
        return False
    return shown.value < before if shown.better == "higher" else shown.value > before


def _error(result: "AnyTrial") -> Outcome:
    if result.error:
        return Outcome("error", f"ci_eval.{result.error.kind}", result.error.message)
    failed = [each for each in result.scores if each.status is Status.ERROR]
    messages = [f"{each.name} could not be measured: {each.reason}" for each in failed]
    return Outcome("error", "ci_eval.NotMeasured", _listed(messages))


def _below(each: "AnyScore") -> str:
    shown = f"{each.name} is {score(each.value, each.threshold)}"
    if each.threshold is None:
        return shown
    return f"{shown}, {'below' if each.better == 'higher' else 'above'} {exact(each.threshold)}"


def _listed(messages: list[str]) -> str:
    if len(messages) <= 1:
        return "".join(messages) or "no reason given"
    return f"{messages[0]}; {counted(len(messages) - 1, 'more criterion', 'more criteria')}"
