"""`summary.md`: the job summary, which has room for more cases than a comment."""

from collections.abc import Callable, Iterator
from typing import ClassVar

from ci_eval.plugins.points import reporter
from ci_eval.records.findings import Report
from ci_eval.records.results import TrialResult
from ci_eval.reporters._findings import Bounds
from ci_eval.reporters._templated import Templated

MAX_BYTES = 900 * 1024
"""GitHub drops the whole summary of a step if it has more than 1 MiB."""

_LEVELS = (
    Bounds(evidence=100, lines=80, rows=1000),
    Bounds(evidence=50, lines=40, rows=500),
    Bounds(evidence=20, lines=40, rows=200),
    Bounds(evidence=10, lines=20, rows=50),
    Bounds(evidence=0, lines=0, rows=20),
    Bounds(evidence=0, lines=0, rows=1),
)


@reporter("summary")
class Summary(Templated):
    """The job summary: like the comment, with more cases and longer evidence."""

    file: ClassVar[str] = "summary.md"

    def render(self, report: Report, results: Callable[[], Iterator[TrialResult]]) -> Iterator[str]:
        """Yield the summary, of at most 900 KiB in UTF-8."""
        del results  # the report has all that fits into a summary
        yield self.filled(
            "summary.md.j2", report, _LEVELS, lambda text: len(text.encode()) <= MAX_BYTES
        )
