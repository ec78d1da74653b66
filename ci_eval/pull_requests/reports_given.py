"""Reports named on the command line, such as downloaded artifacts of several jobs."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ci_eval.pull_requests.artifacts import LIMITS, MAX_ARTIFACTS, checked
from ci_eval.records.errors import Problem, UsageError
from ci_eval.records.findings import Report
from ci_eval.run_files.names import REPORT_FILE
from ci_eval.run_files.report_file import read_report


def reports_in(given: Sequence[str]) -> Iterator[Report | UsageError]:
    """Yield each report, or the error.

    The limits for untrusted reports apply, because artifacts may come from a fork.
    """
    for each in given:
        paths = _paths(Path(each))
        if len(paths) > MAX_ARTIFACTS:
            message = f"contains {len(paths):,} reports; the maximum is {MAX_ARTIFACTS}"
            yield UsageError(problems=[Problem(message, each)])
            continue
        for path in paths:
            try:
                found = read_report(path, shown=str(path), limits=LIMITS)
                yield checked(found, str(path))
            except UsageError as exc:
                yield exc


def _paths(given: Path) -> list[Path]:
    """Return the reports in a folder or its subfolders, the layout of downloaded artifacts."""
    if not given.is_dir():
        return [given]
    own = given / REPORT_FILE
    return [own] if own.exists() else sorted(given.glob(f"*/{REPORT_FILE}")) or [own]
