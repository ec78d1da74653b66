"""The reports that the command line names, as artifacts of several jobs leave them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ci_eval.pull_requests.artifacts import LIMITS, MAX_ARTIFACTS, checked
from ci_eval.records.errors import Problem, UsageError
from ci_eval.records.findings import Report
from ci_eval.run_files.names import REPORT_FILE
from ci_eval.run_files.report_file import read_report


def reports_in(given: Sequence[str]) -> Iterator[tuple[Report | None, UsageError | None]]:
    """Yield each report, or why there is none.

    They are held to the same limits as those of strangers: they may come from there.
    """
    for each in given:
        paths = _paths(Path(each))
        if len(paths) > MAX_ARTIFACTS:
            message = f"holds {len(paths):,} reports, and {MAX_ARTIFACTS} are the most"
            yield None, UsageError(problems=[Problem(message, each)])
            continue
        for path in paths:
            try:
                found = read_report(path, shown=str(path), limits=LIMITS)
                yield checked(found, str(path)), None
            except UsageError as exc:
                yield None, exc


def _paths(given: Path) -> list[Path]:
    """Return the reports in a folder, or in the folders in it, as downloaded artifacts lie."""
    if not given.is_dir():
        return [given]
    own = given / REPORT_FILE
    return [own] if own.exists() else sorted(given.glob(f"*/{REPORT_FILE}")) or [own]
