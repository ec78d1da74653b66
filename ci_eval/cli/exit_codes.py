"""Exit codes and error messages of commands."""

import errno
import json
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import (
    AbstractContextManager,
    contextmanager,
    nullcontext,
    redirect_stdout,
    suppress,
)
from typing import Any

from ci_eval.records.errors import CiEvalError, ExitCode, MachineError, Problem, UsageError
from ci_eval.text.redact import printing

EXIT_CODES = {
    "passed": ExitCode.PASSED,
    "failed": ExitCode.FAILED,
    "incomplete": ExitCode.INCOMPLETE,
}
"""Exit code by verdict."""


_LACKS = {
    *(errno.ENOSPC, errno.EDQUOT),
    *(errno.ENOMEM, errno.EAGAIN),
    *(errno.EMFILE, errno.ENFILE),
}
"""System errors that mean the machine is out of resources; no file is to blame."""
_NO_THREAD = "can't start new thread"  # Python's message for threads


def guarded(command: Callable[[], int], env: Mapping[str, str]) -> int:
    """Run `command` and return its exit code, whatever it raises; redacts secrets in `env`."""
    with printing(env), _terminable():
        try:
            return command()
        except KeyboardInterrupt:
            return ExitCode.INTERRUPTED
        except Exception:  # noqa: BLE001  # one of three; an error that arrives here is our bug
            sys.stderr.write(traceback.format_exc())
            sys.stderr.write("\nThis is a bug in ci-eval; please report it with the lines above.\n")
            return ExitCode.INTERNAL_ERROR


@contextmanager
def _terminable() -> Iterator[None]:
    """Handle what ends a job like Ctrl-C: SIGTERM of a runner, and SIGHUP of a closed terminal.

    Without a handler, the first process of a container ignores SIGTERM.  Ctrl-C is also enabled
    for a background process of a shell, which would ignore it; SIGHUP is not, for `nohup`.
    """

    def interrupt(*_: object) -> None:
        # Not a KeyboardInterrupt, which any code might catch: asyncio handles SIGINT itself.
        signal.raise_signal(signal.SIGINT)

    handled = [signal.SIGTERM]
    hangup = getattr(signal, "SIGHUP", None)  # not on Windows
    if hangup and signal.getsignal(hangup) != signal.SIG_IGN:
        handled.append(hangup)
    before = {each: signal.signal(each, interrupt) for each in handled}
    if ignored := signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def naming_files() -> Iterator[None]:
    """Turn system errors into errors that name the file and the cause.

    Raises:
        UsageError: a file cannot be used.
        MachineError: the machine lacks disk space, memory, processes or open files.

    """
    hint = "free disk space or memory, or raise the limits, then run again"
    try:
        yield
    except RuntimeError as exc:
        if str(exc) != _NO_THREAD:
            raise
        raise MachineError(f"out of system resources: {exc}", hint=hint) from exc
    except OSError as exc:
        if exc.errno in _LACKS:
            at = f" at {exc.filename}" if exc.filename is not None else ""
            message = f"out of system resources{at}: {exc.strerror}"
            raise MachineError(message, hint=hint) from exc
        if exc.filename is None:
            raise
        raise UsageError(f"{exc.filename} cannot be accessed: {exc.strerror}") from exc


def complain(error: CiEvalError, env: Mapping[str, str], *, as_json: bool) -> ExitCode:
    """Report an error on the console, as annotations and, if wanted, as JSON."""
    from ci_eval.cli import console
    from ci_eval.pull_requests.github_runner import annotate

    console.say_problems(error.problems, error.hint, env)
    with apart_from_json(as_json=as_json):
        annotate(error.problems, env)
    if as_json:
        problems = list(map(_as_json, error.problems))
        with suppress(OSError):  # the error is on stderr, too
            print_json({"error": type(error).__name__, "problems": problems})
            sys.stdout.flush()
    return error.exit_code


def apart_from_json(*, as_json: bool) -> AbstractContextManager[object]:
    """Send runner commands to stderr if stdout holds JSON; the runner reads both."""
    return redirect_stdout(sys.stderr) if as_json else nullcontext()


def print_json(value: Any) -> None:
    """Print `value` as the only output on stdout."""
    # Runners obey `##[` anywhere in a line; a JSON string can escape it.
    sys.stdout.write(json.dumps(value, indent=1).replace("##[", r"#\u0023[") + "\n")


def _as_json(problem: Problem) -> dict[str, Any]:
    from ci_eval.cli.error_codes import code_of

    return {
        "code": code_of(problem.message),
        "file": problem.file,
        "severity": problem.severity,
        "line": problem.line,
        "where": problem.where,
        "message": problem.message,
    }
