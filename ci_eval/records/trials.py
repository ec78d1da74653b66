"""Trials: one case with one agent, and what was observed."""

import re
from collections.abc import Container
from typing import ClassVar, NamedTuple, Self

from pydantic import ConfigDict, field_validator, model_validator

from ci_eval.records.bounds import Count, Repeat, Seconds
from ci_eval.records.cases import EvalCase, Invocation, Json, Record, Stored
from ci_eval.records.errors import FailureKind, failure_kind

GIST_CHARS = 240
"""Maximum length of a program's last output if space is limited, in characters."""
_VARIES = re.compile(r"\w*\d[\w-]*")
"""Numbers and ids, by which messages about the same error differ."""
_MAX_COMPARED = 2_000
"""Maximum number of characters of two messages to compare."""


class Place(NamedTuple):
    """One case with one agent."""

    agent: str
    evalset: str
    case: str


class TrialKey(Record):
    """The identity of a trial in journal, baseline, JUnit and comment."""

    agent: str
    evalset: str
    case: str
    repeat: Repeat = 0
    """Index of the repeat, from 0."""

    @property
    def place(self) -> Place:
        """The agent, the evalset and the case."""
        return Place(self.agent, self.evalset, self.case)

    @property
    def shown(self) -> str:
        """Its name in messages."""
        return f"{self.agent} on {self.evalset}/{self.case} (repeat {self.repeat})"


class Trial(NamedTuple):
    """One case to try with one agent."""

    key: TrialKey
    case: EvalCase
    fingerprint: str = ""
    """Fingerprint of the case."""
    round: int = 0
    """0 for planned trials; 1, 2 … for reruns of all cases."""
    confirms: bool = False
    """Whether it is drawn to confirm that this case fails."""
    again: int | None = None
    """The planned repeat that it repeats; `None` if it is planned itself."""


class Recording(Record):
    """A recorded conversation; unknown keys are ignored."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")

    eval_id: str | None = None
    """The case; `None` if not recorded: the user's messages then identify it."""
    session: str | None = None
    """The id of the conversation in the file, which may be the id of a case."""
    evalset: str | None = None
    """The evalset, as the configuration names it. Default: matches any."""
    repeat: Repeat | None = None
    """Index of the repeat. Default: the next one that no other line has."""
    invocations: tuple[Invocation, ...] | None = None
    final_state: dict[str, Json] | None = None
    error: str | None = None
    """Why the agent could not be observed."""
    error_kind: str = "recorded"

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.invocations is None and self.error is None:
            raise ValueError("has neither 'invocations' nor an 'error'")
        return self


Try = tuple[str | None, str | None, str | None, int]
"""Identity of a recorded conversation: agent, evalset, case, repeat."""


class Numbering:
    """Numbers the lines of a recording: the lines of a case are its repeats, in order."""

    def __init__(self) -> None:
        self._next: dict[tuple[str | None, ...], int] = {}
        self._assumed: set[Try] = set()

    def number(self, found: Recording, agent: str | None, taken: Container[Try]) -> Try:
        """Return the identity of `found`, a conversation of `agent`; those in `taken` are in use.

        A line without `repeat` gets the first free number.  Of several lines with the same
        number, the last one counts, because a resumed run appends lines.

        Raises:
            ValueError: it has the number that an earlier line without `repeat` got.

        """
        place = agent, found.evalset, found.eval_id
        repeat = self._next.get(place, 0) if found.repeat is None else found.repeat
        while found.repeat is None and (*place, repeat) in taken:
            repeat += 1
        key = *place, repeat
        if found.repeat is None:
            self._next[place] = repeat + 1
            self._assumed.add(key)
        elif key in self._assumed:
            raise ValueError(
                f"is repeat {repeat} of case {found.eval_id!r}, like an earlier line without "
                "'repeat'; set 'repeat' on all lines of this case or on none"
            )
        return key


class Failure(Stored):
    """Why a trial could not be observed."""

    kind: FailureKind
    message: str

    @field_validator("kind", mode="before")
    @classmethod
    def _known(cls, value: object) -> object:
        return failure_kind(value) if isinstance(value, str) else value

    @property
    def cause(self) -> tuple[str, str] | None:
        """The kind and the first line, if it affects all trials of an agent equally."""
        if self.kind not in ("start", "connection"):
            return None
        return self.kind, self.message.partition("\n")[0]

    @property
    def likeness(self) -> tuple[str, str]:
        """The kind and the message; equal if two messages differ only in numbers and ids."""
        return self.cause or (self.kind, _VARIES.sub("…", self.message[:_MAX_COMPARED]))

    @property
    def gist(self) -> str:
        """The first line, and the end of the rest, where programs print the cause."""
        first, _, others = self.message.partition("\n")
        is_long = len(others) > GIST_CHARS
        return "\n".join(filter(None, (first, "…" * is_long + others[-GIST_CHARS:])))


class Trace(Stored):
    """The agent's observed behaviour in one trial."""

    key: TrialKey
    invocations: tuple[Invocation, ...] = ()
    final_state: dict[str, Json] | None = None
    error: Failure | None = None
    duration_s: Seconds = 0.0
    attempts: Count = 1
    """Number of starts; more than 1 after retries."""
    output: str = ""
    """The agent's stdout and stderr: the beginning and the end."""
