"""Reports for `ci-eval gate explain`: stored, or reevaluated from a run."""

from pathlib import Path

from ci_eval.cli import command_inputs
from ci_eval.records.errors import Problem, UsageError
from ci_eval.records.findings import Report
from ci_eval.run_files.file_names import REPORT_FILE
from ci_eval.run_files.report_file import read_report
from ci_eval.text.json_stream import JsonFile
from ci_eval.text.json_text import RESULT_DEPTH


def report_of(given: str, config: str | None, *, usual: str | None) -> Report:
    """Return the report of the run at `given`.

    A stored report is returned unchanged, unless a `config` is given.  Otherwise the run is
    reevaluated with `config`, or else with the `usual` configuration.

    Raises:
        UsageError: there is no report and no run, or no configuration to reevaluate it with.

    """
    path = Path(given)
    written = path / REPORT_FILE if path.is_dir() else path
    if config is None and written.is_file() and _is_report(written):
        return _with_criteria(read_report(written, shown=str(written)), str(written))
    collected = command_inputs.stored_run(given)
    by = config or usual
    if by is None:
        message = f"{given} holds no report, and no configuration was found to reevaluate its run"
        raise UsageError(message, hint="pass one: -c FILE")
    return command_inputs.judge_again(given, collected, by)[0]


def _with_criteria(report: Report, shown: str) -> Report:
    """Return `report`, if its run describes all of its criteria.

    Raises:
        UsageError: it mentions an unknown criterion.

    """
    deltas = report.comparison.deltas if report.comparison else ()
    groups = [*(each.group for each in report.groups), *(each.group for each in deltas)]
    named = dict.fromkeys(group.criterion for group in groups)
    problems = [
        Problem(f"the run has no criterion {name!r}", shown)
        for name in named
        if name not in report.meta.criteria
    ]
    if problems:
        raise UsageError(problems=problems)
    return report


def _is_report(path: Path) -> bool:
    """Return True if a file is a report by its name or content; a run has no totals."""
    if path.name == REPORT_FILE:
        return True
    head = JsonFile(path, shown=str(path), max_depth=RESULT_DEPTH).head()
    return isinstance(head, dict) and "totals" in head
