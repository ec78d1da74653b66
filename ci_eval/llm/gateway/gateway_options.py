"""Options of the model gateway: the `models:` block of an agent."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ci_eval.llm.prices import Price
from ci_eval.records.bounds import MAX_SECONDS
from ci_eval.records.cases import Record
from ci_eval.runtime.path_checks import PathText
from ci_eval.text.patterns import Pattern


def _as_text(value: object) -> object:
    """Return a status as a string; YAML reads it as a number."""
    return str(value) if type(value) is int else value


Mode = Literal["live", "record", "replay", "auto"]
ProviderName = Literal["gemini", "openai", "anthropic"]
DEFAULT_CASSETTE = ".ci-eval/models.jsonl"
"""Path relative to the folder of the configuration."""
Fault = Literal["429", "500", "timeout", "cut", "garbage", "slow"]


class Faults(Record):
    """Injected faults."""

    rate: float = Field(gt=0, le=1)
    """The share of calls that fail; each attempt is drawn separately."""
    kinds: tuple[Annotated[Fault, BeforeValidator(_as_text)], ...] = Field(
        default=("429", "500", "timeout", "cut", "garbage"), min_length=1
    )
    """What happens: `429` (too many requests), `500` (server error), `timeout` (no answer),
    `cut` (the connection is lost in the middle of the answer), `garbage` (an answer that is not
    JSON), `slow` (the answer, after `slow_s`). Default: all but `slow`, which makes runs long."""
    slow_s: float = Field(default=10.0, gt=0, le=MAX_SECONDS)
    """Delay of a `slow` answer, in seconds. It counts as the agent's time, even in `replay`."""
    seed: int = 0
    """A different seed makes different calls fail."""


class ModelOptions(Record):
    """How an agent's model calls are handled."""

    mode: Mode = "auto"
    """`live`: calls are passed on and metered. `record`: they are also recorded, replacing earlier
    recordings of the trial. `replay`: recorded answers are used, without key or network; a call
    that is not recorded makes the trial an error. `auto`: recorded answers are used, and other
    calls are passed on and recorded."""
    cassette: PathText = DEFAULT_CASSETTE
    """The file of recorded calls, relative to the configuration; commit it to replay in CI."""
    providers: tuple[ProviderName, ...] = Field(
        default=("gemini", "openai", "anthropic"), min_length=1
    )
    """The providers that the agent may call: `gemini`, `openai`, `anthropic`. The agent gets a
    placeholder instead of each key."""
    allow: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Names or patterns of the models that the agent may call, such as `gemini-2.5-*`. Default:
    all."""
    max_calls: int | None = Field(default=None, ge=0)
    """Maximum number of calls to providers per run, over all trials of the agent."""
    max_cost_usd: float | None = Field(default=None, ge=0)
    """Maximum cost of the calls to providers per run, over all trials of the agent, in US
    dollars."""
    max_calls_per_trial: int | None = Field(default=None, ge=0)
    """Maximum number of calls to providers in one trial."""
    max_cost_usd_per_trial: float | None = Field(default=None, ge=0)
    """Maximum cost of the calls to providers in one trial, in US dollars."""
    requests_per_minute: float | None = Field(default=None, gt=0)
    """Maximum number of calls per minute to each provider, by all agents, judges and simulated
    users together. If several of them set a limit for a provider, the smallest applies."""
    tokens_per_minute: float | None = Field(default=None, gt=0)
    """Maximum number of input tokens per minute for each provider, estimated from the length of
    the requests; shared like `requests_per_minute`."""
    ignore: tuple[Pattern, ...] = ()
    """Regular expressions for text in requests that changes from run to run, such as today's date;
    matching text is ignored when a request is looked up."""
    faults: Faults | None = None
    """Injected faults, such as `{rate: 0.05, kinds: [429, timeout]}`, to test whether the agent
    survives its provider's bad day. Default: none."""
    prices: dict[str, Price] = Field(default_factory=dict)
    """Prices of models (names or patterns), in US dollars per million tokens: `{model: {input,
    output}}`. Default: list prices, with the discount for cached tokens."""

    def in_mode(self, mode: str) -> "ModelOptions":
        """Return a copy with another mode; the same if `mode` is empty."""
        return self.model_copy(update={"mode": mode}) if mode else self

    def within(self, other: "ModelOptions | None") -> "ModelOptions":
        """Return a copy with the per-run limits of `other`; the same if `other` is `None`."""
        limits = {name: getattr(other, name) for name in _OF_A_RUN} if other else {}
        return self.model_copy(update=limits)

    @property
    def has_cost_limit(self) -> bool:
        """True if every call needs a price."""
        return self.max_cost_usd is not None or self.max_cost_usd_per_trial is not None


_OF_A_RUN = ("max_calls", "max_cost_usd", "requests_per_minute", "tokens_per_minute")
"""The limits that all trials of a run share, in both arms."""


def _mode_alone(value: object) -> object:
    return {"mode": value} if isinstance(value, str) else value


Models = Annotated[
    ModelOptions, BeforeValidator(_mode_alone, json_schema_input_type=ModelOptions | Mode)
]
"""The options of the gateway, or a mode alone."""

UNREACHABLE: Mapping[str, tuple[str, ...]] = {
    "Vertex AI": ("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE"),
    "Amazon Bedrock": ("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_PROFILE"),
    "Azure OpenAI": ("AZURE_OPENAI_API_KEY", "AZURE_API_KEY"),
    "Mistral": ("MISTRAL_API_KEY",),
    "Cohere": ("CO_API_KEY", "COHERE_API_KEY"),
    "Groq": ("GROQ_API_KEY",),
    "DeepSeek": ("DEEPSEEK_API_KEY",),
    "xAI": ("XAI_API_KEY",),
    "OpenRouter": ("OPENROUTER_API_KEY",),
}
"""Services that the gateway does not serve, with the variables that make an agent call them."""


def unreachable(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the services that an agent's environment makes it call, with the variable of each.

    >>> unreachable({"MISTRAL_API_KEY": "k", "GOOGLE_GENAI_USE_VERTEXAI": "false"})
    {'Mistral': 'MISTRAL_API_KEY'}
    """
    found: dict[str, str] = {}
    for service, names in UNREACHABLE.items():
        for name in names:
            if variables.get(name, "").strip().lower() not in ("", "0", "false", "no"):
                found.setdefault(service, name)
    return found
