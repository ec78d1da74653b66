"""Conversion of the options of `evalset add` and `evalset update` into cases."""

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ci_eval.cli.evalset import added_cases
from ci_eval.cli.evalset.cases_from_traces import Wanted, expecting, from_traces, now_expecting
from ci_eval.cli.evalset.evalset_editing import EvalSetFile
from ci_eval.records.cases import EvalCase
from ci_eval.records.errors import UsageError
from ci_eval.records.trials import Recording

_FLAGS = {"case_file": "--file", "traces": "--from-traces", "trace_evalset": "--evalset"}
"""Options whose parameters have other names."""
_BELONGS = {
    "expected": ("prompt",),
    "agent": ("traces",),
    "trace_evalset": ("traces",),
    "repeat": ("traces",),
    "case": ("case_file", "prompt", "traces"),
}
"""Options that have an effect only together with one of the listed options."""


def new_cases(options: dict[str, Any], *, now: float) -> list[EvalCase]:
    """Return the cases that `evalset add` adds.

    Raises:
        UsageError: the options do not go together, or a file has errors.

    """
    source = _one_of(options, ("case_file", "prompt", "traces", "scenarios_file"))
    session_file = options["session_input_file"]
    session = added_cases.read_session(session_file) if session_file else None
    match source:
        case "case_file":
            cases = _from_file(options)
        case "scenarios_file":
            cases = added_cases.from_scenarios(options["scenarios_file"], session, now=now)
        case "prompt":
            prompt, expected, eval_id = (options[key] for key in ("prompt", "expected", "case"))
            cases = [added_cases.from_prompt(prompt, expected, eval_id, now=now)]
        case _:
            cases = [expecting(_recording(options), now=now)]
    if session:
        cases = [case.model_copy(update={"session_input": session}) for case in cases]
    return cases


def changed_cases(options: dict[str, Any], target: EvalSetFile, *, now: float) -> list[EvalCase]:
    """Return the cases with which `evalset update` replaces those in `target`.

    Raises:
        UsageError: as for `new_cases`, or the recorded conversation differs.

    """
    if _one_of(options, ("case_file", "traces")) == "case_file":
        return _from_file(options)
    known = (case for case in target.open().cases() if case.eval_id == options["case"])
    before = next(known, None)
    if before is None:
        return [expecting(_recording(options), now=now)]
    asked = tuple(turn.user for turn in before.conversation or ())
    return [now_expecting(before, _recording(options, asked))]


def _one_of(options: dict[str, Any], names: Sequence[str]) -> str:
    """Return the option of `names` that is given, and refuse options without effect beside it."""
    given = [name for name in names if options[name] is not None]
    if len(given) != 1:
        raise UsageError(f"give one of {', '.join(map(_flag, names))}")
    for name, beside in _BELONGS.items():
        if options.get(name) is not None and given[0] not in beside:
            where = " or ".join(_flag(each) for each in beside if each in names)
            raise UsageError(f"{_flag(name)} has no effect without {where}")
    return given[0]


def _flag(name: str) -> str:
    return _FLAGS.get(name, f"--{name}")


def _recording(options: dict[str, Any], asked: tuple[str, ...] | None = None) -> Recording:
    if not options["case"]:
        raise UsageError("--from-traces needs --case, the id of the case")
    wanted = Wanted(
        case=options["case"],
        asked=asked,
        agent=options["agent"],
        evalset=options["trace_evalset"],
        repeat=(options["repeat"] or 1) - 1,
    )
    return from_traces(Path(options["traces"]), wanted, shown=options["traces"])


def _from_file(options: dict[str, Any]) -> list[EvalCase]:
    """Return the cases of a file, or only the wanted one."""
    name, wanted = options["case_file"], options["case"]
    found = [case for case in _all_of_file(name) if wanted in (None, case.eval_id)]
    if not found:
        what = f"no case {wanted!r}" if wanted else "no cases"
        raise UsageError(f"{name} contains {what}")
    return found


def _all_of_file(name: str) -> list[EvalCase]:
    if name != "-":
        return added_cases.from_file(Path(name), shown=name)
    data = sys.stdin.buffer.read()
    with TemporaryDirectory(prefix="ci-eval-") as folder:
        suffix = "json" if data.lstrip().startswith((b"{", b"[")) else "yaml"
        path = Path(folder) / f"stdin.{suffix}"
        path.write_bytes(data)
        return added_cases.from_file(path, shown="stdin")
