"""Reader of `report.json`, which may be untrusted."""

from pathlib import Path
from typing import Any, NamedTuple

from ci_eval.records.errors import UsageError
from ci_eval.records.findings import Report
from ci_eval.run_files.stored_document import parsed, validated
from ci_eval.text.json_text import JsonText
from ci_eval.text.yaml_files import MAX_TEXT, Loc, read_text


class Limits(NamedTuple):
    """Limits for an untrusted report."""

    text: int = 16 * 1024 * 1024
    """Characters in total."""
    values: int = 500_000
    """Values in total: a report on 3,000 cases that all regressed has a third as many."""
    entries: int = 20_000
    """Entries of one list or object."""
    number: float = 1e100
    """The largest number, so that computations stay finite."""


def read_report(path: Path, *, shown: str, limits: Limits | None = None) -> Report:
    """Return the report in the file at `path`.

    Raises:
        UsageError: the file is not a valid report, has another version or exceeds the limits.

    """
    most = limits.text if limits else MAX_TEXT
    return report_in(read_text(path, shown=shown, most=most), shown=shown, limits=limits)


def report_in(text: str, *, shown: str, limits: Limits | None = None) -> Report:
    """Parse `text` as a report.

    Raises:
        UsageError: the text is not a valid report, has another version or exceeds the limits.

    """
    found = parsed(text, shown=shown, what="report", key="verdict")
    if limits:
        # Before validation: pydantic's errors can be as large as the document.
        _keep_within(limits, found)
    return validated(found, Report, shown=shown)


def _keep_within(limits: Limits, text: JsonText) -> None:
    left: list[tuple[Loc, Any]] = [((), text.value)]
    count = 0
    while left:
        loc, value = left.pop()
        count += 1
        if count > limits.values:
            message = f"contains more than {limits.values:,} values"
            raise UsageError(problems=[text.problem(message)])
        if isinstance(value, dict | list):
            if len(value) > limits.entries:
                message = f"has {len(value):,} entries; the maximum is {limits.entries:,}"
                raise UsageError(problems=[text.problem(message, loc)])
            members = value.items() if isinstance(value, dict) else enumerate(value)
            left += (((*loc, step), each) for step, each in members)
        elif isinstance(value, int | float) and abs(value) > limits.number:
            raise UsageError(problems=[text.problem("the number is out of range", loc)])
