"""Options of the comment on a pull request."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:  # keeps the start of commands fast
    from ci_eval.records.findings import Report

Mode = Literal["update", "recreate", "minimize", "off"]
"""`update` edits the existing comment; `recreate` deletes it and adds a new one at the end of the
conversation; `minimize` adds a new one and minimizes the old one."""
When = Literal["always", "changes", "regression", "failure"]
"""When to create a comment; an existing one is always kept up to date."""
MODES: tuple[Mode, ...] = get_args(Mode)
WHENS: tuple[When, ...] = get_args(When)


@dataclass(frozen=True)
class Options:
    """What to post on the pull request."""

    mode: Mode = "off"
    when: When = "always"
    pull_request: int | None = None
    """Its number; `None` to find it from the event."""
    check_run: bool = False
    """Whether to create a check run, too."""
    report_url: str = ""
    """The address of `report.html`, if the user gave it."""

    @property
    def is_off(self) -> bool:
        """True if nothing is posted."""
        return self.mode == "off" and not self.check_run


def calls_for(report: "Report", when: When) -> bool:
    """Return True if a report justifies a new comment."""
    found = report.comparison
    if when == "always" or report.verdict.outcome != "passed":
        return True
    if when == "failure" or found is None:
        return False
    outcomes = {delta.outcome for delta in found.deltas}
    if when == "regression":
        worse = any(each.certain or each.suspected for each in found.changes)
        return worse or "regressed" in outcomes
    lists = (found.changes, found.added, found.vanished, found.not_comparable)
    return any(lists) or not outcomes.isdisjoint(("regressed", "improved"))
