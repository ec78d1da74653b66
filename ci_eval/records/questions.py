"""Questions to models, and their answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from ci_eval.records.bounds import Count
from ci_eval.records.cases import Json, Stored

T = TypeVar("T")


class UnreadableError(ValueError):
    """An answer does not have the requested form."""

    def __init__(self, problem: str, *found: object) -> None:
        """Describe the `problem` in a full sentence; the message adds what was `found` instead.

        The judge only gets the problem: what was found may be the agent's instructions to it.
        """
        super().__init__(", but ".join([problem, *(f"{each!r:.80}" for each in found)]))
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Question:
    """One question to a model."""

    about: str
    """The criterion that asks, such as `adk/final_response_match_v2`."""
    instructions: str
    """The task, from our templates or the repository's."""
    text: str
    """The material to judge; untrusted text is fenced."""
    schema: Mapping[str, Json]
    """The JSON schema of the answer; empty for plain text."""
    sample: int = 0
    """Sample index, from 0."""
    model: str = ""
    """Name of the model."""
    settings: Mapping[str, Json] = field(default_factory=dict)
    """Call settings, named as in google-genai's `GenerateContentConfig`."""
    remark: str = ""
    """Why the previous answer was unusable; empty the first time."""

    @property
    def prompt(self) -> str:
        """The text, followed by the remark."""
        if not self.remark:
            return self.text
        return (
            f"{self.text}\n\nYou were asked this before, and your answer could not be used: "
            f"{self.remark}. Answer again, in the form that is asked for."
        )


class Wording(NamedTuple):
    """The text of a question, as the configuration words it."""

    template: str
    """A Jinja template."""
    names: Mapping[str, object] = {}
    """Additional template variables, inserted without fencing."""


class Answer(Stored):
    """A model's raw answer."""

    text: str = ""
    finish: Literal["stop", "length", "blocked", "other"] = "stop"
    """Why it ended: complete, too long, blocked by a filter, or something else."""
    input_tokens: Count = 0
    output_tokens: Count = 0
    """Includes thinking tokens."""
    model: str = ""
    """The model version, as reported by the provider."""
    fingerprint: str = ""
    """OpenAI's `system_fingerprint`; empty if there is none."""


class Reading(NamedTuple, Generic[T]):
    """The value parsed from a judge's answer, or the reason why there is none."""

    value: T | None
    reason: str = ""
    """Why there is no value."""
    failed: bool = False
    """Whether there was no answer at all, rather than an unreadable one."""
    cached: bool = False
    """Whether the answer came from the cache."""


class Seat(Protocol):
    """One judge, as a criterion sees it."""

    @property
    def name(self) -> str:
        """Its name in the evidence: the model."""

    @property
    def samples(self) -> int:
        """The number of samples to draw."""

    async def ask(
        self, question: Question, read: Callable[[str], T], *, fresh: bool = False
    ) -> Reading[T]:
        """Ask `question` and parse the answer with `read`.

        If `read` raises `UnreadableError`, the judge is called once more, with the reason.
        A cached answer is used if there is one, unless `fresh` is set.
        """
