"""Every error a user can meet, and the exit code it ends with.

CiEvalError
├── UsageError               the arguments, configuration or a file is wrong     exit 4
│   ├── ConfigError          the configuration, with file and line
│   ├── EvalSetError         an evalset, with file and line
│   └── UnknownPluginError   no agent type, criterion, … of that name
├── NothingSelectedError     nothing was left to run                             exit 5
├── BaselineError            the stored baseline cannot be read                  exit 6
├── MachineError             the machine cannot go on with the run               exit 6
└── (no exit) TrialError     one trial could not be observed: becomes data
    ├── DisturbedError       it was cut off by a neighbour, and runs again
    └── JudgeError           a model gave no answer
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, Literal


class ExitCode(IntEnum):
    """The codes a workflow can branch on; 0 to 5 mean what they mean in pytest."""

    PASSED = 0
    """Everything selected was measured, and the gate let it through."""
    FAILED = 1
    """Measured, and below a threshold or regressed."""
    INTERRUPTED = 2
    """Stopped by Ctrl-C or by the runner."""
    INTERNAL_ERROR = 3
    """A bug in ci-eval."""
    USAGE_ERROR = 4
    """The arguments, the configuration or an input file is wrong."""
    NOTHING_SELECTED = 5
    """No trial was left to run."""
    INCOMPLETE = 6
    """Too much could not be measured to reach a verdict."""


Severity = Literal["error", "warning"]
"""An error stops the run; a warning is printed."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong in one file."""

    message: str
    """What is wrong and, where it is known, the way out."""
    file: str = ""
    """The file as the user named it, or empty."""
    line: int | None = None
    """The line it stands on, counted from 1."""
    where: str = ""
    """The dotted path of the value, such as `criteria.response_match_score`."""
    severity: Severity = "error"
    concerns: str = ""
    """The criterion that alone makes it worth telling, such as `adk/response_match_score`."""

    def __str__(self) -> str:
        """Return `file:line: where: message`, leaving out what is unknown."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        return ": ".join(part for part in (place, self.where, self.message) if part)


class CiEvalError(Exception):
    """An error with a message for the user and, where there is one, a way out."""

    exit_code: ClassVar[ExitCode] = ExitCode.INTERNAL_ERROR

    def __init__(
        self, message: str = "", *, hint: str = "", problems: Iterable[Problem] = ()
    ) -> None:
        self.problems = tuple(problems)
        self.hint = hint
        super().__init__(message or "\n".join(map(str, self.problems)))


class UsageError(CiEvalError):
    """The arguments, the configuration or an input file is wrong."""

    exit_code = ExitCode.USAGE_ERROR


class ConfigError(UsageError):
    """The configuration is wrong."""


class EvalSetError(UsageError):
    """An evalset is wrong."""


class UnknownPluginError(UsageError):
    """No plugin of that kind has that name."""


class NothingSelectedError(CiEvalError):
    """The filters, or empty evalsets, left nothing to run."""

    exit_code = ExitCode.NOTHING_SELECTED


class BaselineError(CiEvalError):
    """The stored baseline cannot be read, so no verdict can be reached."""

    exit_code = ExitCode.INCOMPLETE


class MachineError(CiEvalError):
    """The machine lacks room or keeps agents running, so no verdict can be reached."""

    exit_code = ExitCode.INCOMPLETE


class TrialError(Exception):
    """One trial could not be observed; `execute` turns it into a `Failure`.

    `seen` is what there was of the invocation before, where that is known.
    """

    def __init__(self, kind: str, message: str, *, seen: Any = None) -> None:
        self.kind = kind
        self.seen = seen
        super().__init__(message)


class BadAnswerError(TrialError):
    """What a worker's function returned could not be understood; says what it did, as a verb."""

    def __init__(self, message: str) -> None:
        super().__init__("protocol", message)


class DisturbedError(TrialError):
    """A trial was cut off because its worker died or was killed for another one's sake.

    `execute` starts it once more.  `alone` asks for a worker of its own, so that the one
    that kills workers is found out.
    """

    def __init__(self, message: str, *, alone: bool) -> None:
        self.alone = alone
        super().__init__("crash", message)


class JudgeError(TrialError):
    """A model gave no answer.

    `passing` says that it may give one when it is asked again, `throttled` that it was asked
    too often, and `after_s` when the provider wants to be asked again, in seconds.  `hopeless`
    says that no other question would fare better.
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
