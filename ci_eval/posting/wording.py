"""What a report says in a comment, as much of it as there is room for."""

from ci_eval.findings import Report
from ci_eval.reporters._page import fitting
from ci_eval.reporters.markdown import LEVELS


def text(report: Report, limit: int) -> str:
    """Return the comment without its first line, in at most `limit` characters if it can be."""
    return fitting("comment.md.j2", report, LEVELS, lambda found: len(found) <= limit)
