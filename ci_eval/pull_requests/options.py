"""How the comment is kept, and when there is one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:  # commands have these options, and start quickly
    from ci_eval.records.findings import Comparison, Report

Mode = Literal["update", "recreate", "minimize", "off"]
"""`update` edits the one comment; `recreate` takes it away and writes the next, which is at the end
of the conversation; `minimize` leaves it folded."""
When = Literal["always", "changes", "regression", "failure"]
"""What calls for a comment where there is none yet; one that is there is always kept up to date."""
MODES: tuple[Mode, ...] = get_args(Mode)
WHENS: tuple[When, ...] = get_args(When)


@dataclass(frozen=True)
class Options:
    """What is wanted on the pull request."""

    mode: Mode = "off"
    when: When = "always"
    pull_request: int | None = None
    """Its number, where it is not to be found by the event."""
    check_run: bool = False
    """Whether there is to be a check run, too."""

    @property
    def is_off(self) -> bool:
        """Whether nothing is posted."""
        return self.mode == "off" and not self.check_run


def calls_for(report: "Report", when: When) -> bool:
    """Say whether a report is reason enough to begin a comment."""
    outcome = report.verdict.outcome
    match when:
        case "always":
            return True
        case "failure":
            return outcome != "passed"
        case "regression":
            return outcome != "passed" or _regressed(report.comparison)
        case "changes":
            return outcome != "passed" or _changed(report.comparison)


def _regressed(comparison: "Comparison | None") -> bool:
    if comparison is None:
        return False
    deltas = any(delta.outcome == "regressed" for delta in comparison.deltas)
    return deltas or any(each.certain or each.suspected for each in comparison.changes)


def _changed(comparison: "Comparison | None") -> bool:
    if comparison is None:
        return False
    moved = any(delta.outcome in ("regressed", "improved") for delta in comparison.deltas)
    lists = (comparison.changes, comparison.added, comparison.vanished, comparison.not_comparable)
    return moved or any(lists)
