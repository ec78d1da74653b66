"""The report that `ci-eval gate explain` is about: as it was written, or judged again."""

from pathlib import Path

from pydantic import ValidationError

from ci_eval import wiring
from ci_eval.documents import dotted, read_text
from ci_eval.errors import Problem, UsageError
from ci_eval.explain import explain
from ci_eval.findings import Report
from ci_eval.json_text import RESULT_DEPTH, JsonText, NotJsonError, parse_json
from ci_eval.json_walk import Element, JsonFile
from ci_eval.run_file import check_version

REPORT_FILE = "report.json"


def report_of(given: str, config: str | None, *, usual: str | None) -> Report:
    """Return the report on the run that the user calls `given`.

    A stored report is taken as it is, unless a `config` asks for another judgement.  A run that
    has none is judged by `config`, else by the `usual` one.

    Raises:
        UsageError: there is no report and no run, or no configuration to judge it by.

    """
    path = Path(given)
    written = path / REPORT_FILE if path.is_dir() else path
    if config is None and written.is_file() and _is_report(written):
        return read_report(written, shown=str(written))
    observed = wiring.recall(given)
    by = config or usual
    if by is None:
        message = f"{given} holds no report, and no configuration says how to judge its run"
        raise UsageError(message, hint="name one: -c FILE")
    return wiring.judge_again(observed, by)[0]


def read_report(path: Path, *, shown: str) -> Report:
    """Return the report in the file at `path`.

    Raises:
        UsageError: it is none, or one of another version.

    """
    written = read_text(path, shown=shown)
    try:
        # It quotes results, and holds them a little deeper.
        value = parse_json(written, max_depth=RESULT_DEPTH + 10)
    except NotJsonError as exc:
        line = 1 + written.count("\n", 0, exc.position)
        raise UsageError(problems=[Problem(str(exc), shown, line)]) from exc
    text = JsonText(value, shown, written)
    if not isinstance(text.value, dict) or "verdict" not in text.value:
        raise UsageError(problems=[Problem("is no report of ci-eval", shown, 1)])
    check_version(Element(text.value.get("schema_version"), 1, ""), shown, UsageError)
    try:
        return Report.model_validate(text.value)
    except ValidationError as exc:
        found = explain(exc, Report)
        problems = [Problem(message, shown, text.line(loc), dotted(loc)) for loc, message in found]
        raise UsageError(problems=problems) from exc


def _is_report(path: Path) -> bool:
    """Say whether a file is called, or begins, as a report does; a run has no totals."""
    if path.name == REPORT_FILE:
        return True
    head = JsonFile(path, shown=str(path), max_depth=RESULT_DEPTH).head()
    return isinstance(head, dict) and "totals" in head
