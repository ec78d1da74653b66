"""Settings of judges: the `judge:` block, and the judges and models that each criterion uses."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import Field, ValidationError
from pydantic.alias_generators import to_snake

from ci_eval.llm.prices import Price, price_of
from ci_eval.llm.prompts import Prompts
from ci_eval.plugins import points
from ci_eval.plugins.points import Judge, JudgedCriterion, Simulator
from ci_eval.records.bounds import Samples
from ci_eval.records.cases import Json, Record
from ci_eval.text.validation_messages import described

Mode = Literal["auto", "record", "replay", "off"]
DEFAULT_CASSETTE = ".ci-eval/cache/judge.jsonl"
"""Path relative to the folder of the configuration."""
DEFAULT_CONCURRENCY = 16
MAX_CONCURRENCY = 1000
"""Number of concurrent calls: the minimum of the default, and the maximum."""


class JudgeOptions(Record):
    """How models are called. The provider's own options go in the same block."""

    provider: str | None = None
    """The provider: `gemini`, `openai` or `scripted`. Default: inferred from the name of the model,
    if it starts with a known prefix such as `gemini-`, `gpt-` or `o3`."""
    samples: Samples | None = None
    """Samples per question, unless the criterion sets them. Default: 5 for ADK's criteria, 3 for
    AgentFlow's."""
    jury: tuple[dict[str, Any], ...] = ()
    """Several judges instead of one, each with its provider, model and options. Their majority or
    mean counts, and their agreement is reported."""
    mode: Mode = "auto"
    """`auto`: recorded answers are reused, missing ones are requested and recorded. `record`: every
    answer is requested and recorded again. `replay`: no model is called, and a missing answer is an
    error. `off`: nothing is reused or recorded."""
    cassette: str = Field(default=DEFAULT_CASSETTE, min_length=1)
    """The file of recorded answers, relative to the configuration."""
    prompts: str | None = None
    """A folder of prompts that override those with the same names in `templates/judge/`."""
    env_file: str | None = None
    """A file of `NAME=value` lines with keys, relative to the configuration. The environment takes
    precedence."""
    concurrency: int | None = Field(default=None, ge=1, le=MAX_CONCURRENCY)
    """Maximum number of concurrent calls; reduced while the provider throttles. Default:
    `run.concurrency`, but at least 16."""
    requests_per_minute: float | None = Field(default=None, gt=0)
    """Maximum number of calls per minute to each provider, shared with agents that have `models`.
    If several of them set a limit for a provider, the smallest applies."""
    tokens_per_minute: float | None = Field(default=None, gt=0)
    """Maximum number of input tokens per minute for each provider, estimated from the length of
    the texts; shared like `requests_per_minute`."""
    timeout_s: float = Field(default=60.0, gt=0)
    """Timeout of one call, in seconds."""
    attempts: int = Field(default=8, ge=1, le=100)
    """Maximum number of attempts per call; transient failures are retried."""
    patience_s: float = Field(default=120.0, gt=0)
    """Seconds without a successful response after which a provider is considered unavailable and
    is not called again."""
    max_calls: int | None = Field(default=None, ge=0)
    """Maximum number of calls per run."""
    max_cost_usd: float | None = Field(default=None, ge=0)
    """Maximum cost of all calls per run, in US dollars."""
    max_prompt_chars: int = Field(default=400_000, ge=1000)
    """Maximum length of a question; a longer one is an error, and is not sent."""
    prices: dict[str, Price] = Field(default_factory=dict)
    """Prices of models (names or patterns), in US dollars per million tokens: `{model: {input,
    output}}`. Default: list prices."""


@dataclass(frozen=True)
class Simulation:
    """The simulated user of scenarios."""

    simulator: Simulator
    own: Judge | None = None
    """The provider that the `simulator:` block sets; else chosen as for a criterion."""


@dataclass(frozen=True)
class Judging:
    """The judges of a configuration and their options."""

    options: JudgeOptions
    default: Judge | None = None
    """The judge that the `judge:` block sets."""
    jury: tuple[Judge, ...] = ()
    prompts: Prompts = field(default_factory=Prompts)

    def in_mode(self, mode: Mode) -> "Judging":
        """Return a copy with another mode."""
        return replace(self, options=self.options.model_copy(update={"mode": mode}))

    @property
    def concurrency(self) -> int:
        """Maximum number of concurrent calls."""
        return self.options.concurrency or DEFAULT_CONCURRENCY

    def beside(self, trials: int) -> "Judging":
        """Return a copy for a run with `trials` concurrent trials."""
        at_once = self.options.concurrency or min(MAX_CONCURRENCY, max(trials, self.concurrency))
        return replace(self, options=self.options.model_copy(update={"concurrency": at_once}))

    def judges(self, criterion: JudgedCriterion) -> tuple[Judge, ...]:
        """Return the judges of `criterion`, each with its model.

        Raises:
            ValueError: the provider of the model is unknown.

        """
        asked = criterion.asked()
        if criterion.service:
            judge = self._service_judge(criterion.service)
            return (_configured(judge, judge.model or criterion.type_name, {}),)
        if self.jury:
            return tuple(_configured(each, each.model, asked.settings) for each in self.jury)
        if self.default and self.default.free:
            return (_configured(self.default, self.default.type_name, asked.settings),)
        model = asked.model or (self.default and self.default.model) or criterion.default_model
        return (_configured(self._judge_for(model), model, asked.settings),)

    def player(self, simulation: Simulation) -> Judge:
        """Return the judge that plays a simulated user.

        Raises:
            ValueError: the provider of the model is unknown.

        """
        simulator, known = simulation.simulator, simulation.own or self.default
        settings = simulator.call_settings()
        if known and known.free:
            return _configured(known, known.type_name, settings, alone=True)
        model = simulator.model or (known and known.model) or simulator.default_model
        judge = simulation.own or self._judge_for(model, block="simulator")
        return _configured(judge, model, settings, alone=True)

    def playing(self, simulation: Simulation) -> Json:
        """Return everything but the case that determines what simulated users say."""
        prompts = Prompts(kind="simulator")
        return [
            simulation.simulator.type_name,
            simulation.simulator.options(),
            identity(self.player(simulation)),
            *(prompts.source(name) for name in simulation.simulator.prompts),
        ]

    def unplayable(self, simulation: Simulation) -> Iterator[str]:
        """Yield the problems that prevent a simulated user from being called."""
        try:
            judge = self.player(simulation)
        except ValueError as exc:
            yield str(exc)
            return
        yield from _setting_errors(judge)
        if message := _price_missing(judge, self.options):
            yield message

    def samples(self, criterion: JudgedCriterion) -> int:
        """Return the number of samples that each judge draws."""
        return criterion.asked().samples or self.options.samples or criterion.default_samples

    def made_of(self, criterion: JudgedCriterion) -> Json:
        """Return everything but the options of `criterion` that determines its verdicts."""
        return {
            "judges": [identity(each) for each in self.judges(criterion)],
            "samples": self.samples(criterion),
            "prompts": [self.prompts.source(name) for name in criterion.prompts],
        }

    def problems(self, criterion: JudgedCriterion) -> Iterator[str]:
        """Yield the problems that prevent the judges of `criterion` from being called."""
        try:
            judges = self.judges(criterion)
        except ValueError as exc:
            yield str(exc)
            return
        yield from self.prompts.problems(criterion.prompts)
        for each in judges:
            yield from _setting_errors(each)
            if message := _price_missing(each, self.options):
                yield message

    def _service_judge(self, service: str) -> Judge:
        """Return the judge registered as `service`, with the options of `judge:`, if any."""
        named = self.default and self.default.type_name in (service, "scripted")
        return self.default if self.default and named else points.judge[service]()

    def _judge_for(self, model: str, *, block: str = "judge") -> Judge:
        """Return the judge for `model`: that of the `judge:` block, unless another serves it.

        `block` is the block of the configuration that can set the provider.
        """
        if self.default and (self.default.model == model or self.default.serves(model)):
            return self.default
        for kind in (points.judge[name] for name in points.judge):
            if kind.recognises(model):
                return kind()
        if self.default:
            return self.default
        raise ValueError(
            f"cannot infer the provider of model {model!r}; set `{block}: {{provider: …}}`, one of "
            f"{', '.join(points.judge)}"
        )


def identity(judge: Judge) -> Json:
    """Return everything that determines a judge's answers; its address does not."""
    return [judge.type_name, judge.model, dict(judge.settings), judge.script()]


def endpoint(judge: Judge) -> Json:
    """Return the endpoint of a judge; all its models share a connection."""
    return [judge.type_name, judge.model_dump(mode="json", exclude={"model", "settings"})]


def provider_of(judge: Judge) -> str:
    """Return the provider whose limits a judge shares with other judges and agents."""
    own = judge.model_dump(mode="json", exclude={"model", "settings"}, exclude_defaults=True)
    return json.dumps(endpoint(judge), sort_keys=True) if own else judge.type_name


def price(judge: Judge, given: Mapping[str, Price]) -> Price | None:
    """Return the price of a judge's model; `None` if it is unknown."""
    return Price(input=0, output=0) if judge.free else price_of(str(judge.model), given)


def _price_missing(judge: Judge, options: JudgeOptions) -> str:
    """Return a message if the cost is limited and the price of `judge` is unknown."""
    if options.max_cost_usd is None or judge.free or price(judge, options.prices):
        return ""
    return (
        f"the price of {judge.model!r} is unknown, so max_cost_usd cannot be enforced; "
        f"add it to `judge.prices`"
    )


def _setting_errors(judge: Judge) -> Iterator[str]:
    """Yield the errors in the settings of a judge, including those from a criterion."""
    try:
        type(judge).model_validate({**judge.model_dump(), "settings": judge.settings})
    except ValidationError as exc:
        yield from described(exc, type(judge))


def _configured(
    judge: Judge, model: str | None, settings: Mapping[str, Json], *, alone: bool = False
) -> Judge:
    """Return `judge` with this model, and these settings added to its own or used `alone`."""
    # ADK's files may say `maxOutputTokens` where the configuration says `max_output_tokens`.
    both = {**({} if alone else judge.settings), **settings}
    merged = {to_snake(name): value for name, value in both.items()}
    return judge.model_copy(update={"model": model, "settings": merged})
