"""A question to a model, who is asked, and the answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from ci_eval.records.bounds import Count
from ci_eval.records.model import Json, Stored

T = TypeVar("T")


class UnreadableError(ValueError):
    """An answer is not in the form that was asked for; says what is wrong, as a sentence."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a model is asked, once."""

    about: str
    """The criterion that asks, such as `adk/final_response_match_v2`."""
    instructions: str
    """What the model is to do: words of ours, or of the repository's prompts."""
    text: str
    """What it is to look at; words of others are fenced."""
    schema: Mapping[str, Json]
    """The JSON schema of the answer; empty where it is plain text."""
    sample: int = 0
    """The how-manieth time the same is asked, counted from 0."""
    model: str = ""
    """Who is asked."""
    settings: Mapping[str, Json] = field(default_factory=dict)
    """Settings of the call, as google-genai's `GenerateContentConfig` names them."""
    remark: str = ""
    """Why the answer before this one could not be used; empty the first time."""

    @property
    def prompt(self) -> str:
        """All of the text, the remark at its end."""
        if not self.remark:
            return self.text
        return (
            f"{self.text}\n\nYou were asked this before, and your answer could not be used: "
            f"{self.remark}. Answer again, in the form that is asked for."
        )


class Wording(NamedTuple):
    """What a model is to look at, in words of the configuration's instead of ours."""

    template: str
    """A Jinja template."""
    names: Mapping[str, object] = {}
    """What the template may use beside the data, and is written as it is."""


class Answer(Stored):
    """What a model answered, whatever that is worth."""

    text: str = ""
    finish: Literal["stop", "length", "blocked", "other"] = "stop"
    """Why it ended: it was complete, too long, kept back by a filter, or something else."""
    input_tokens: Count = 0
    output_tokens: Count = 0
    """Tokens that were thought count, too."""
    model: str = ""
    """The version of the model, as the provider names it."""


class Reading(NamedTuple, Generic[T]):
    """What was read from a judge's answer, or why nothing was."""

    value: T | None
    reason: str = ""
    """Why there is no value."""
    failed: bool = False
    """Whether there was no answer at all, so that nobody knows what it would have been."""
    cached: bool = False
    """Whether the answer was kept from an earlier time."""


class Seat(Protocol):
    """One judge, as a criterion sees it."""

    @property
    def name(self) -> str:
        """What it is called in the evidence: its model."""

    @property
    def samples(self) -> int:
        """How often it is to be asked the same."""

    async def ask(
        self, question: Question, read: Callable[[str], T], *, fresh: bool = False
    ) -> Reading[T]:
        """Return what `read` makes of the answer to `question`.

        Where `read` raises `UnreadableError`, the judge is asked once more, with the reason.
        Where an answer was kept from an earlier time, that one is read; `fresh` forbids it.
        """
