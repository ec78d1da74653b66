"""What a report says in a comment, as much of it as there is room for."""

from ci_eval.findings import Report
from ci_eval.reporters._page import fitting
from ci_eval.reporters.markdown import LEVELS


def text(report: Report, limit: int, *, in_bytes: bool = False) -> str:
    """Return the comment without its first line, as much of it as fits.

    `limit` counts characters, or bytes of UTF-8.
    """

    def fits(found: str) -> bool:
        return len(found.encode() if in_bytes else found) <= limit

    return fitting("comment.md.j2", report, LEVELS, fits)
