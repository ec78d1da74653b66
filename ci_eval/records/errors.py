"""Every error a user can meet, and its exit code.

CiEvalError
├── UsageError               invalid arguments, configuration or input file      exit 4
│   ├── ConfigError          invalid configuration, with file and line
│   ├── EvalSetError         invalid evalset, with file and line
│   └── UnknownPluginError   no agent type, criterion, … of that name
├── NothingSelectedError     nothing left to run                                 exit 5
├── BaselineError            the stored baseline cannot be read                  exit 6
├── MachineError             the machine cannot continue the run                 exit 6
└── (no exit) TrialError     one trial could not be observed: becomes data
    ├── DisturbedError       another trial interrupted it; runs again
    └── JudgeError           a model gave no answer
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, Literal, cast, get_args


class ExitCode(IntEnum):
    """The exit codes; 0 to 5 mean the same as in pytest."""

    PASSED = 0
    """Everything selected was measured, and the gate passed."""
    FAILED = 1
    """Measured, and below a threshold or regressed."""
    INTERRUPTED = 2
    """Stopped by Ctrl-C or by the runner."""
    INTERNAL_ERROR = 3
    """A bug in ci-eval."""
    USAGE_ERROR = 4
    """The arguments, the configuration or an input file is invalid."""
    NOTHING_SELECTED = 5
    """No trial was left to run."""
    INCOMPLETE = 6
    """Too much could not be measured to reach a verdict."""


Severity = Literal["error", "warning"]
"""An error stops the run; a warning is printed."""


_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def visible(name: str) -> str:
    r"""Return a name with escapes for control characters, so that it cannot break a line.

    >>> visible("a\nb")
    'a\\nb'
    """
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], name)


@dataclass(frozen=True)
class Problem:
    """One problem in one file."""

    message: str
    """What is wrong and, if known, what to do next."""
    file: str = ""
    """The file as the user named it, or empty."""
    line: int | None = None
    """The line number, from 1."""
    where: str = ""
    """The dotted path of the value, such as `criteria.response_match_score`."""
    severity: Severity = "error"
    concerns: str = ""
    """The only affected criterion, such as `adk/response_match_score`; empty for all."""
    adk_refuses: bool = False
    """True if ADK refuses the value, which ci-eval reads in its obvious meaning."""

    def __str__(self) -> str:
        """Return `file:line: where: message` without the unknown parts."""
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        names = map(visible, (place, self.where))
        return ": ".join(part for part in (*names, self.message) if part)


class CiEvalError(Exception):
    """An error with a message for the user and, if possible, a hint about what to do next.

    It always has at least one problem; by default, the message.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.INTERNAL_ERROR

    def __init__(  # noqa: PLR0913  # the parts of a problem
        self,
        message: str = "",
        *,
        file: str = "",
        line: int | None = None,
        where: str = "",
        hint: str = "",
        problems: Iterable[Problem] = (),
    ) -> None:
        own = Problem(message, file, line, where)
        self.problems = tuple(problems) or (own,)
        self.hint = hint
        super().__init__(str(own) or "\n".join(map(str, self.problems)))


class UsageError(CiEvalError):
    """The arguments, the configuration or an input file is invalid.

    What to do: correct the file at the line that the message names, or the
    arguments; `ci-eval validate` reports all problems of a file at once.
    """

    exit_code = ExitCode.USAGE_ERROR


class ConfigError(UsageError):
    """The configuration is invalid.

    What to do: correct the line; the [reference](config.md) has every key.
    """


class EvalSetError(UsageError):
    """An evalset is invalid.

    What to do: correct the case at the line that the message names.
    """


class UnknownPluginError(UsageError):
    """No plugin of that kind has the name.

    What to do: use the suggested name, or one that `ci-eval list` prints.
    """


class NothingSelectedError(CiEvalError):
    """Nothing to run, because of filters or empty evalsets.

    What to do: loosen the filters, or add cases; `ci-eval plan` shows what would run.
    """

    exit_code = ExitCode.NOTHING_SELECTED


class BaselineError(CiEvalError):
    """The stored baseline cannot be read, so no verdict can be reached.

    What to do: restore the file, or store a new baseline with
    `ci-eval baseline save` from a run of the base branch.
    """

    exit_code = ExitCode.INCOMPLETE


class MachineError(CiEvalError):
    """The disk is full or agents cannot be stopped, so no verdict can be reached.

    What to do: free disk space or memory, or raise the limits, then continue with
    `ci-eval run --resume`.
    """

    exit_code = ExitCode.INCOMPLETE


FailureKind = Literal[
    "connection",
    "crash",
    "internal",
    "judge",
    "models",
    "not_recorded",
    "not_run",
    "protocol",
    "raised",
    "recorded",
    "simulator",
    "start",
    "timeout",
    "unmocked",
    "unsupported",
    "waiting",
]
"""Why a trial could not be observed.

- `connection`: an agent on the network cannot be reached. Check its address and that it runs;
  `run.retries` bridges short outages.
- `crash`: the agent's process ended. Read its stderr in the message; if memory is short, lower
  `run.concurrency`.
- `internal`: a bug in ci-eval. Report it with the whole output.
- `judge`: a model gave no answer. Check key, model and quota of `judge:`, then continue with
  `ci-eval run --resume`.
- `models`: a call of a model was refused: a budget is used up, or the model is not allowed. Change
  `models:` of the agent; see [The model gateway](../model-gateway.md).
- `not_recorded`: a recording lacks the case, or a cassette lacks a call of a model. Record the case
  with `ci-eval run --record` or `--models record`, or leave it out.
- `not_run`: the shard with the case has no report. Run the shard again, then merge.
- `protocol`: a reply cannot be understood. Make the agent reply as its [type](agents.md)
  describes.
- `raised`: the agent raised an error. Fix the agent; reproduce it with `ci-eval run --case ID`.
- `recorded`: the recording holds an error, or does not match the case. Record the case again.
- `simulator`: the simulated user gave no message. Check key, model and quota of `simulator:`.
- `start`: the agent cannot start. Check `interpreter`, the installed packages and the path or
  command.
- `timeout`: the trial exceeded its time limit. Raise `run.timeout_s`.
- `unmocked`: a tool call has no canned result. Add the result to the `tool_mocks` of the case or
  the evalset.
- `unsupported`: the agent cannot do what the case asks for. Use another agent type for the case,
  or leave it out.
- `waiting`: the agent waits for an answer that the case does not give. Add the answer to the
  [`human_answers`](../human-in-the-loop.md) of the case.
"""


def failure_kind(kind: str) -> FailureKind:
    """Return `kind` if it is known, else `recorded`: files and agents may say anything."""
    return cast("FailureKind", kind) if kind in get_args(FailureKind) else "recorded"


class TrialError(Exception):
    """One trial could not be observed; `execute` turns it into a `Failure`.

    `seen` is the part of the invocation observed before the error, if known.
    """

    def __init__(self, kind: FailureKind, message: str, *, seen: Any = None) -> None:
        self.kind = kind
        self.seen = seen
        super().__init__(message)


class BadAnswerError(TrialError):
    """A worker's function returned an invalid value; the message starts with a verb."""

    def __init__(self, message: str) -> None:
        super().__init__("protocol", message)


class DisturbedError(TrialError):
    """A trial was interrupted because its worker died or was killed because of another trial.

    `execute` starts it once more.  `alone` requests a separate worker, to find the trial that
    kills workers.
    """

    def __init__(self, message: str, *, alone: bool) -> None:
        self.alone = alone
        super().__init__("crash", message)


class JudgeError(TrialError):
    """A model gave no answer.

    `passing` means that a retry may succeed, `throttled` that the rate limit was exceeded, and
    `after_s` is the provider's requested wait before a retry, in seconds.  `hopeless` means that
    every other question would fail, too.
    """

    def __init__(
        self,
        message: str,
        *,
        passing: bool = False,
        throttled: bool = False,
        after_s: float | None = None,
        hopeless: bool = False,
    ) -> None:
        self.hopeless = hopeless
        self.passing = passing or throttled
        self.throttled = throttled
        self.after_s = after_s
        super().__init__("judge", message)
