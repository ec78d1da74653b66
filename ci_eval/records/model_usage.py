"""Usage of models that the gateway metered."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from ci_eval.records.bounds import MAX_COUNT, MAX_SECONDS, Count, Seconds, Total


class ModelUsage(BaseModel):
    """The calls of models for one message, or for one trial."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="ignore", allow_inf_nan=False, defer_build=True
    )

    calls: Count = 0
    """Calls that were answered."""
    replayed: Count = 0
    """Answered calls that came from a cassette."""
    retries: Count = 0
    """Calls that failed and that the agent repeated."""
    errors: Count = 0
    """Answers that were errors, such as status 400 for an invalid request."""
    faults: Count = 0
    """Injected faults: attempts that were made to fail."""
    input_tokens: Count = 0
    """Input tokens, cached ones included."""
    cached_tokens: Count = 0
    """Input tokens that the provider read from its cache."""
    output_tokens: Count = 0
    """Output tokens, thoughts included."""
    thought_tokens: Count = 0
    """Output tokens that were thoughts."""
    uncounted: Count = 0
    """Calls whose answer did not state its tokens."""
    cost_usd: Total = 0.0
    """Cost at list prices, in US dollars."""
    unpriced: Count = 0
    """Calls without a known cost."""
    seconds: Seconds = 0.0
    """Seconds from each call to the end of its answer, summed."""
    models: tuple[str, ...] = ()
    """The models that answered, as the provider named them."""

    def __add__(self, other: "ModelUsage") -> "ModelUsage":
        """Return the usage of both; providers may state any numbers, so sums stay in bounds."""
        mine, theirs = self.__dict__, other.__dict__
        both = {name: min(mine[name] + theirs[name], most) for name, most in _MOST.items()}
        models = tuple(dict.fromkeys((*self.models, *other.models)))
        return self.model_copy(update={**both, "models": models})

    @property
    def tokens(self) -> int:
        """Tokens in and out."""
        return self.input_tokens + self.output_tokens

    @property
    def alone(self) -> "ModelUsage":
        """A copy without the names of models, which a run stores elsewhere."""
        return self.model_copy(update={"models": ()})


_MOST = dict.fromkeys(ModelUsage.model_fields.keys() - {"models"}, MAX_COUNT)
_MOST["seconds"] = int(MAX_SECONDS)
