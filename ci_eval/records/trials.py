"""One try of a case with an agent: what is tried, and what was observed."""

from collections.abc import Container
from typing import ClassVar, NamedTuple, Self

from pydantic import ConfigDict, model_validator

from ci_eval.records.bounds import Count, Repeat, Seconds
from ci_eval.records.model import EvalCase, Invocation, Json, Record, Stored

GIST_CHARS = 240
"""How much is shown, where there is little room, of what a program wrote in the end."""


class TrialKey(Record):
    """What a trial is, everywhere: in journal, baseline, JUnit and comment."""

    agent: str
    evalset: str
    case: str
    repeat: Repeat = 0
    """The how-manieth try of the same, counted from 0."""


class Trial(NamedTuple):
    """One case to try with one agent."""

    key: TrialKey
    case: EvalCase
    fingerprint: str = ""
    """Of the content of the case."""
    round: int = 0
    """0 for what was planned; 1 and so on for all cases drawn again."""
    confirms: bool = False
    """Whether it is drawn because this very case had failed."""


class Recording(Record):
    """A conversation that took place; keys that are not known here are ignored."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")

    eval_id: str | None = None
    """The case; `None` where the file does not say, and the user's messages have to tell."""
    session: str | None = None
    """What the file calls the conversation, which may be the id of a case."""
    evalset: str | None = None
    """The evalset, as the configuration names it; left out, it fits any."""
    repeat: Repeat | None = None
    """Which try of the case it is; left out, the next one that no other line claims."""
    invocations: tuple[Invocation, ...] | None = None
    final_state: dict[str, Json] | None = None
    error: str | None = None
    """Why the agent could not be observed."""
    error_kind: str = "recorded"

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.invocations is None and self.error is None:
            raise ValueError("holds neither 'invocations' nor an 'error'")
        return self


Try = tuple[str | None, str | None, str | None, int]
"""A conversation in a recording: its agent, its evalset, its case, and which try of it it is."""


class Numbering:
    """Numbers the lines of a recording: those of one case are its repeats, in their order."""

    def __init__(self) -> None:
        self._next: dict[tuple[str | None, ...], int] = {}
        self._assumed: set[Try] = set()

    def number(self, found: Recording, agent: str | None, taken: Container[Try]) -> Try:
        """Return what `found` is, which is by `agent`, beside those that are `taken`.

        A line that gives no `repeat` is the first that is free.  Of several that give the same,
        each takes the place of the one before, as a run that is resumed writes them.

        Raises:
            ValueError: it gives the number of an earlier line, which gives none.

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
                f"gives the repeat {repeat} of the case {found.eval_id!r}, which an earlier line "
                "without 'repeat' is already; number all of its lines, or none"
            )
        return key


class Failure(Stored):
    """Why a trial could not be observed."""

    kind: str
    """`timeout`, `crash`, `raised`, `not_recorded`, `protocol`, `start`, `unsupported`; `waiting`
    for an answer that nobody gives; `unmocked`, a call for which there is no canned result;
    `connection`, where an agent is reached over the network; `simulator`."""
    message: str

    @property
    def cause(self) -> tuple[str, str] | None:
        """The kind and the first line, where it strikes all trials of an agent alike."""
        if self.kind not in ("start", "connection"):
            return None
        return self.kind, self.message.partition("\n")[0]

    @property
    def gist(self) -> str:
        """The first line, and the end of the others, where programs say what they died of."""
        first, _, others = self.message.partition("\n")
        is_long = len(others) > GIST_CHARS
        return "\n".join(filter(None, (first, "…" * is_long + others[-GIST_CHARS:])))


class Trace(Stored):
    """What an agent did in one trial."""

    key: TrialKey
    invocations: tuple[Invocation, ...] = ()
    final_state: dict[str, Json] | None = None
    error: Failure | None = None
    duration_s: Seconds = 0.0
    attempts: Count = 1
    """How often the trial was started; more than 1 after retries."""
    output: str = ""
    """What the agent wrote to its standard streams: the beginning and the end."""
