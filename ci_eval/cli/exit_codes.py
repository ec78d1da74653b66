"""How a command ends: with an exit code, whatever became of it, and a word to the user."""

import errno
import json
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from typing import Any

from ci_eval.records.errors import CiEvalError, ExitCode, MachineError, Problem, UsageError
from ci_eval.text.redact import printing

EXIT_CODES = {
    "passed": ExitCode.PASSED,
    "failed": ExitCode.FAILED,
    "incomplete": ExitCode.INCOMPLETE,
}
"""With which code a command ends that reached this verdict."""


_LACKS = {
    *(errno.ENOSPC, errno.EDQUOT),
    *(errno.ENOMEM, errno.EAGAIN),
    *(errno.EMFILE, errno.ENFILE),
}
"""What the system says when the machine lacks room; no file is to blame."""
_NO_THREAD = "can't start new thread"  # how Python says it of threads


def guarded(command: Callable[[], int], env: Mapping[str, str]) -> int:
    """Return the exit code of `command`, whatever becomes of it; it prints no secret of `env`."""
    with printing(env), _terminable():
        try:
            return command()
        except KeyboardInterrupt:
            return ExitCode.INTERRUPTED
        except Exception:  # noqa: BLE001  # one of three: what arrives here is a bug of ours
            traceback.print_exc()
            sys.stderr.write("\nThis is a bug in ci-eval; please report it with the lines above.\n")
            return ExitCode.INTERNAL_ERROR


@contextmanager
def _terminable() -> Iterator[None]:
    """Let a runner that cancels the job (SIGTERM) end a command as Ctrl-C does.

    In a container, where we are the first process, it would not be ended at all; nor where a shell
    started us in the background, which lets its children ignore Ctrl-C.
    """

    def interrupt(*_: object) -> None:
        # Not raised here, where it may be anybody's: asyncio ends what it runs on SIGINT.
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, interrupt)
    if ignored := signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def naming_files() -> Iterator[None]:
    """Say of a file that the system refuses which one it is, and why.

    Raises:
        UsageError: a file cannot be used.
        MachineError: the machine lacks disk space, memory, processes or open files.

    """
    hint = "make room on the machine or raise its limits, and run again"
    try:
        yield
    except RuntimeError as exc:
        if str(exc) != _NO_THREAD:
            raise
        raise MachineError(f"the machine cannot go on: {exc}", hint=hint) from exc
    except OSError as exc:
        if exc.errno in _LACKS:
            at = f" at {exc.filename}" if exc.filename is not None else ""
            message = f"the machine cannot go on{at}: {exc.strerror}"
            raise MachineError(message, hint=hint) from exc
        if exc.filename is None:
            raise
        raise UsageError(f"{exc.filename} cannot be used: {exc.strerror}") from exc


def complain(error: CiEvalError, env: Mapping[str, str], *, as_json: bool) -> ExitCode:
    """Say what is wrong, to the person, the runner and the program that asked for JSON."""
    from ci_eval.cli import console
    from ci_eval.pull_requests.github_runner import annotate

    problems = error.problems or (Problem(str(error)),)
    console.say_problems(problems)
    if error.hint:
        console.say(error.hint)
    with apart_from_json(as_json=as_json):
        annotate(problems, env)
    if as_json:
        print_json({"error": type(error).__name__, "problems": list(map(_as_json, problems))})
    return error.exit_code


def apart_from_json(*, as_json: bool) -> AbstractContextManager[object]:
    """Send the commands for the runner, which reads both streams, where no JSON is."""
    return redirect_stdout(sys.stderr) if as_json else nullcontext()


def print_json(value: Any) -> None:
    """Print `value`, which is all that stdout holds then."""
    # Runners obey `##[` wherever it stands in a line; in a string of JSON it can be spelled so.
    sys.stdout.write(json.dumps(value, indent=1).replace("##[", r"#\u0023[") + "\n")


def _as_json(problem: Problem) -> dict[str, Any]:
    return {
        "file": problem.file,
        "severity": problem.severity,
        "line": problem.line,
        "where": problem.where,
        "message": problem.message,
    }
