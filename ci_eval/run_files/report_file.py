"""`report.json`: read back, from whomever it comes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from ci_eval.records.errors import Problem, UsageError
from ci_eval.records.findings import Report
from ci_eval.run_files.run_file import check_version
from ci_eval.text.json_stream import Element
from ci_eval.text.json_text import RESULT_DEPTH, JsonText, NotJsonError, parse_json
from ci_eval.text.validation_messages import explain
from ci_eval.text.yaml_files import Loc, dotted, read_text


class Limits(NamedTuple):
    """What a report of strangers may hold."""

    text: int = 16 * 1024 * 1024
    """Characters in all."""
    values: int = 500_000
    """Values in all: one of 3,000 cases that all got worse has a third of it."""
    entries: int = 20_000
    """Entries of one list or object."""
    number: float = 1e100
    """The largest number: what is reckoned with it stays finite."""


def read_report(path: Path, *, shown: str, limits: Limits | None = None) -> Report:
    """Return the report in the file at `path`.

    Raises:
        UsageError: it is none, or one of another version, or goes beyond the limits.

    """
    if limits is None:
        return report_in(read_text(path, shown=shown), shown=shown)
    return report_in(read_text(path, shown=shown, most=limits.text), shown=shown, limits=limits)


def report_in(text: str, *, shown: str, limits: Limits | None = None) -> Report:
    """Return the report that `text` is.

    Raises:
        UsageError: it is none, or one of another version, or goes beyond the limits.

    """
    try:
        # It quotes results, and holds them a little deeper.
        value = parse_json(text, max_depth=RESULT_DEPTH + 10)
    except NotJsonError as exc:
        line = 1 + text.count("\n", 0, exc.position)
        raise UsageError(problems=[Problem(str(exc), shown, line)]) from exc
    found = JsonText(value, shown, text)
    if not isinstance(value, dict) or "verdict" not in value:
        raise UsageError(problems=[Problem("is no report of ci-eval", shown, 1)])
    if limits:
        # Before anything is made of it: what pydantic finds wrong is no smaller than what it is.
        _keep_within(limits, found)
    check_version(Element(value.get("schema_version"), 1, ""), shown, UsageError)
    try:
        return Report.model_validate(value)
    except ValidationError as exc:
        wrong = explain(exc, Report)
        problems = [Problem(message, shown, found.line(loc), dotted(loc)) for loc, message in wrong]
        raise UsageError(problems=problems) from exc


def _keep_within(limits: Limits, text: JsonText) -> None:
    left: list[tuple[Loc, Any]] = [((), text.value)]
    count = 0
    while left:
        loc, value = left.pop()
        count += 1
        if count > limits.values:
            raise UsageError(problems=[text.problem(f"holds more than {limits.values:,} values")])
        if isinstance(value, dict | list):
            if len(value) > limits.entries:
                message = f"has {len(value):,} entries, and {limits.entries:,} is the most"
                raise UsageError(problems=[text.problem(message, loc)])
            left += (((*loc, step), each) for step, each in _members(value))
        elif isinstance(value, int | float) and abs(value) > limits.number:
            raise UsageError(problems=[text.problem("is a number beyond all measure", loc)])


def _members(value: dict[str, Any] | list[Any]) -> Iterator[tuple[str | int, Any]]:
    yield from value.items() if isinstance(value, dict) else enumerate(value)
