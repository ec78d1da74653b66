"""`comment.md`, the comment on a pull request, and `summary.md`, the job summary."""

from collections.abc import Callable, Iterator
from hashlib import sha256
from urllib.parse import quote

from ci_eval.plugins.points import reporter
from ci_eval.records.findings import Report
from ci_eval.records.results import TrialResult
from ci_eval.reporters._notable_cases import Bounds
from ci_eval.reporters._template_report import Templated

MAX_CHARACTERS = 60_000
"""GitHub rejects comments of more than 65,536 characters; `publish` may add a few lines."""

LEVELS = (
    Bounds(evidence=10, lines=40, rows=50),
    Bounds(evidence=5, lines=20, rows=30),
    Bounds(evidence=2, lines=10, rows=20),
    Bounds(evidence=0, lines=0, rows=10),
    Bounds(evidence=0, lines=0, rows=4),
    Bounds(evidence=0, lines=0, rows=1),
)

MAX_SUMMARY_BYTES = 900 * 1024
"""GitHub drops the whole summary of a step if it has more than 1 MiB."""

_SUMMARY_LEVELS = (
    Bounds(evidence=100, lines=80, rows=1000),
    Bounds(evidence=50, lines=40, rows=500),
    Bounds(evidence=20, lines=40, rows=200),
    Bounds(evidence=10, lines=20, rows=50),
    Bounds(evidence=0, lines=0, rows=20),
    Bounds(evidence=0, lines=0, rows=1),
)

_MAX_NAME = 300


def marker(suite: str) -> str:
    """Return the first line of the comment of `suite`, which identifies it."""
    name = quote(suite, safe="", errors="replace")
    if len(name) > _MAX_NAME:
        name = sha256(name.encode()).hexdigest()
    return f"<!-- ci-eval:v1 id={name} -->"


@reporter("markdown")
class Markdown(Templated):
    """The comment on a pull request: the verdict, its reasons, and what got worse."""

    file = "comment.md"

    def render(self, report: Report, results: Callable[[], Iterator[TrialResult]]) -> Iterator[str]:
        """Yield the comment, of at most 60,000 characters."""
        del results  # the report has all that fits into a comment
        first = f"{marker(report.meta.suite)}\n"
        yield first
        yield self.body(report, lambda text: len(first + text) <= MAX_CHARACTERS)

    def body(self, report: Report, fits: Callable[[str], bool]) -> str:
        """Return the comment without its first line, shortened to fit."""
        return self.filled("comment.md.j2", report, LEVELS, fits)


@reporter("summary")
class Summary(Templated):
    """The job summary: like the comment, with more cases and longer evidence."""

    file = "summary.md"

    def render(self, report: Report, results: Callable[[], Iterator[TrialResult]]) -> Iterator[str]:
        """Yield the summary, of at most 900 KiB in UTF-8."""
        del results  # the report has all that fits into a summary
        yield self.filled(
            "summary.md.j2",
            report,
            _SUMMARY_LEVELS,
            lambda text: len(text.encode()) <= MAX_SUMMARY_BYTES,
        )
