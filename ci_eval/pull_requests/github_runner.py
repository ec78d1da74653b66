"""Output of a run in a GitHub workflow: job summary, annotations, outputs of the step.

This module passes existing documents to the runner: it appends them to the files that the
environment names, and prints workflow commands.  Outside a workflow it does nothing.
"""

import os
import secrets
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from ci_eval.plugins import points
from ci_eval.records.errors import ExitCode, Problem
from ci_eval.records.findings import Report
from ci_eval.runtime.context import in_actions
from ci_eval.text.templates import code, markdown, workflow_command

MAX_SUMMARY_BYTES = 1024 * 1024
"""The runner drops a longer summary of a step."""
MAX_ANNOTATIONS = 10
"""Maximum number of errors, and of warnings, that the runner shows per step."""
_COMMANDS = ("::error ", "::warning ", "::notice ")
"""The commands that a document may contain; other commands do more than show messages."""
_VERDICTS = {
    ExitCode.PASSED: "passed",
    ExitCode.FAILED: "failed",
    ExitCode.USAGE_ERROR: "usage-error",
    ExitCode.NOTHING_SELECTED: "nothing-selected",
}


def publish(
    report: Report | None,
    out: Path,
    exit_code: ExitCode,
    env: Mapping[str, str],
    reports: tuple[str, ...],
) -> None:
    """Pass the outputs, and those of the `reports` that GitHub shows, to the runner.

    `report` is `None` if the run ended without one; any documents in `out` are then from an
    earlier run.
    """
    if report is not None:
        if "summary" in reports and env.get("GITHUB_STEP_SUMMARY"):
            _append_summary(_document(out, "summary"), Path(env["GITHUB_STEP_SUMMARY"]), env)
        if "annotations" in reports and in_actions(env):
            lines = _document(out, "annotations").read_text(encoding="utf-8").splitlines()
            _print(line for line in lines if line.startswith(_COMMANDS))
    append_outputs(outputs(report, out, exit_code, env), env)


def publish_shard(out: Path, exit_code: ExitCode, env: Mapping[str, str]) -> None:
    """Pass the outputs of a shard, which has no verdict, to the runner."""
    append_outputs(outputs(None, out, exit_code, env) | {"verdict": ""}, env)


def not_evaluated(why: str, *, suite: str = "", link: str = "") -> str:
    """Return a Markdown notice with a link to the log; `why` is Markdown already."""
    what = f"{markdown(suite)} was not evaluated" if suite else "Not evaluated"
    log = f" ([log]({link}))" if link else ""
    return f"> [!WARNING]\n> **{what}:** {why}{log}.\n"


def summarise(text: str, env: Mapping[str, str]) -> None:
    """Append `text` to the job summary."""
    _append(f"{text}\n", env.get("GITHUB_STEP_SUMMARY"))


def _append(text: str, path: str | None) -> None:
    """Append `text` to a file of the runner, if there is one."""
    if path:
        with Path(path).open("a", encoding="utf-8", newline="\n") as file:
            file.write(text)


def annotate(problems: Iterable[Problem], env: Mapping[str, str]) -> None:
    """Annotate the lines of the first `problems`, as many as the runner shows."""
    if not in_actions(env):
        return
    shown = {"error": 0, "warning": 0}
    lines = []
    for problem in problems:
        shown[problem.severity] += 1
        if shown[problem.severity] <= MAX_ANNOTATIONS:
            lines.append(_annotation(problem, env))
    _print(lines)


def outputs(
    report: Report | None, out: Path, exit_code: ExitCode, env: Mapping[str, str]
) -> dict[str, str]:
    """Return the outputs of the step; unknown ones are empty."""
    rate = report.totals.pass_rate if report else None
    regressions = _regressions(report)
    return {
        # An interrupted run or an internal error reached no verdict either.
        "verdict": _VERDICTS.get(exit_code, "incomplete"),
        "exit-code": str(int(exit_code)),
        "report-dir": _in_repository(str(out), env) if out.is_dir() else "",
        "pass-rate": "" if rate is None else f"{rate:.4f}",
        "regressions": "" if regressions is None else str(regressions),
        "junit": _in_repository(str(_document(out, "junit")), env) if report else "",
        "comment": _in_repository(str(_document(out, "markdown")), env) if report else "",
    }


def _regressions(report: Report | None) -> int | None:
    """Return the number of groups that regressed; `None` without a comparison."""
    if report is None or report.comparison is None:
        return None
    comparison = report.comparison
    worse = {delta.group for delta in comparison.deltas if delta.outcome == "regressed"}
    worse |= {each.group for each in comparison.changes if each.certain and not each.excused}
    together = comparison.together
    # A regression of all criteria combined counts as one.
    return len(worse) or int(together is not None and together.outcome == "regressed")


def _document(out: Path, reporter: str) -> Path:
    return out / points.reporter[reporter].file


def _in_repository(path: str, env: Mapping[str, str]) -> str:
    """Return `path` relative to the workspace, as later steps and annotations need it.

    In a container, the absolute path of the workspace differs from that in other steps, so only
    paths outside it stay absolute.
    """
    workspace = env.get("GITHUB_WORKSPACE")
    absolute = Path(os.path.abspath(path))  # noqa: PTH100  # keeps links unresolved
    if workspace and absolute.is_relative_to(workspace):
        return absolute.relative_to(workspace).as_posix()
    return path


def _annotation(problem: Problem, env: Mapping[str, str]) -> str:
    message = f"{problem.where}: {problem.message}" if problem.where else problem.message
    file = _in_repository(problem.file, env) if problem.file else ""
    return workflow_command(
        problem.severity, message, title="ci-eval", file=file, line=problem.line
    )


def _print(lines: Iterable[str]) -> None:
    """Print workflow commands, each at the start of a line."""
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def _append_summary(document: Path, target: Path, env: Mapping[str, str]) -> None:
    """Append `document`, or its path if the runner would drop the whole summary."""
    text = document.read_bytes()
    existing = target.stat().st_size if target.exists() else 0
    if existing + len(text) + 1 > MAX_SUMMARY_BYTES:
        place = _in_repository(str(document), env)
        text = f"The summary is too long to show; see {code(place, 500)}.\n".encode()
    with target.open("ab") as file:
        file.write(text + b"\n")


def append_outputs(values: Mapping[str, str], env: Mapping[str, str]) -> None:
    """Append `values`, each between delimiters that it cannot contain."""
    for name, value in values.items():
        delimiter = f"ci-eval-{secrets.token_hex(16)}"
        _append(f"{name}<<{delimiter}\n{value}\n{delimiter}\n", env.get("GITHUB_OUTPUT"))
