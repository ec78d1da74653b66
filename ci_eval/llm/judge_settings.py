"""Who judges: the `judge:` of a configuration, and whom each criterion means."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import Field, ValidationError
from pydantic.alias_generators import to_snake

from ci_eval.llm.prices import Price, price_of
from ci_eval.llm.prompts import Prompts
from ci_eval.plugins import points
from ci_eval.plugins.points import Judge, JudgedCriterion, Simulator
from ci_eval.records.model import Json, Record
from ci_eval.text.validation_messages import explain
from ci_eval.text.yaml_files import dotted

Mode = Literal["auto", "record", "replay", "off"]
DEFAULT_CASSETTE = ".ci-eval/cache/judge.jsonl"
"""Beside the configuration."""
DEFAULT_CONCURRENCY = 16
MAX_CONCURRENCY = 1000
"""How many calls are under way at once, where nobody says, and at most."""


class JudgeOptions(Record):
    """How models are asked; the options of the provider stand beside these."""

    provider: str | None = None
    """Who is asked: `gemini`, `openai` or `scripted`. Left out, the name of the model tells,
    where it begins like `gemini-`, `gpt-` or `o3`."""
    samples: int | None = Field(default=None, ge=1, le=1000)
    """How often the same is asked where a criterion does not say; 5 for ADK's criteria, 3 for
    AgentFlow's."""
    jury: tuple[dict[str, Any], ...] = ()
    """Several judges instead of one, each with its provider, its model and its options; their
    majority, or their mean, counts, and how far they agree is reported."""
    mode: Mode = "auto"
    """`auto`: an answer that is kept is used again, and what is missing is asked. `record`: all
    is asked anew. `replay`: nothing is asked, and a missing answer is an error. `off`: nothing
    is kept."""
    cassette: str = Field(default=DEFAULT_CASSETTE, min_length=1)
    """The file that keeps the answers, from the folder of the configuration."""
    prompts: str | None = None
    """A folder with prompts in place of those of `templates/judge/`, under the same names."""
    env_file: str | None = None
    """A file of `NAME=value` lines with keys, from the folder of the configuration; what the
    environment holds comes first."""
    concurrency: int | None = Field(default=None, ge=1, le=MAX_CONCURRENCY)
    """How many calls may be under way at once; fewer while the provider says it is too much. Left
    out, as many as trials (`run.concurrency`), and at least 16."""
    requests_per_minute: float | None = Field(default=None, gt=0)
    """How many calls may be made in a minute."""
    tokens_per_minute: float | None = Field(default=None, gt=0)
    """How many tokens may be sent in a minute, as estimated from the length of the texts."""
    timeout_s: float = Field(default=60.0, gt=0)
    """Seconds that one call may take."""
    attempts: int = Field(default=8, ge=1, le=100)
    """How often a call that failed in passing is made in all."""
    patience_s: float = Field(default=120.0, gt=0)
    """Seconds without one good answer after which a provider counts as down and is asked no
    more."""
    max_calls: int | None = Field(default=None, ge=0)
    """How many calls a run may make."""
    max_cost_usd: float | None = Field(default=None, ge=0)
    """What a run may spend on judges, in US dollars."""
    max_prompt_chars: int = Field(default=400_000, ge=1000)
    """The longest question; what is longer is an error, and costs nothing."""
    prices: dict[str, Price] = Field(default_factory=dict)
    """What models cost, in US dollars for a million tokens: `{model: {input, output}}`."""


@dataclass(frozen=True)
class Simulation:
    """Who plays the users of scenarios."""

    simulator: Simulator
    own: Judge | None = None
    """The provider that is asked, where the configuration says so; else as for a criterion."""


@dataclass(frozen=True)
class Judging:
    """Who judges, and how they are asked."""

    options: JudgeOptions
    default: Judge | None = None
    """The judge of the block, where it says who that is."""
    jury: tuple[Judge, ...] = ()
    prompts: Prompts = field(default_factory=Prompts)

    def in_mode(self, mode: Mode) -> "Judging":
        """Return the same with another mode."""
        return replace(self, options=self.options.model_copy(update={"mode": mode}))

    @property
    def concurrency(self) -> int:
        """How many calls may be under way at once."""
        return self.options.concurrency or DEFAULT_CONCURRENCY

    def beside(self, trials: int) -> "Judging":
        """Return the same for a run with so many trials at once."""
        at_once = self.options.concurrency or min(MAX_CONCURRENCY, max(trials, self.concurrency))
        return replace(self, options=self.options.model_copy(update={"concurrency": at_once}))

    def judges(self, criterion: JudgedCriterion) -> tuple[Judge, ...]:
        """Return who judges by `criterion`, each with its model.

        Raises:
            ValueError: its model cannot be reached; says why, and the way out.

        """
        asked = criterion.asked()
        if criterion.service:
            judge = self._serving(criterion.service)
            return (_with(judge, judge.model or criterion.type_name, {}),)
        if self.jury:
            return tuple(_with(each, each.model, asked.settings) for each in self.jury)
        if self.default and self.default.free:
            return (_with(self.default, self.default.type_name, asked.settings),)
        model = asked.model or (self.default and self.default.model) or criterion.default_model
        return (_with(self._reaching(model), model, asked.settings),)

    def player(self, simulation: Simulation) -> Judge:
        """Return who is asked what a simulated user says.

        Raises:
            ValueError: its model cannot be reached; says why, and the way out.

        """
        simulator, known = simulation.simulator, simulation.own or self.default
        settings = simulator.call_settings()
        if known and known.free:
            return _with(known, known.type_name, settings, alone=True)
        model = simulator.model or (known and known.model) or simulator.default_model
        judge = simulation.own or self._reaching(model, told="simulator")
        return _with(judge, model, settings, alone=True)

    def playing(self, simulation: Simulation) -> Json:
        """Return what decides what simulated users say, beside the case."""
        prompts = Prompts(kind="simulator")
        return [
            simulation.simulator.type_name,
            simulation.simulator.options(),
            identity(self.player(simulation)),
            *(prompts.source(name) for name in simulation.simulator.prompts),
        ]

    def unplayable(self, simulation: Simulation) -> Iterator[str]:
        """Yield what keeps simulated users from saying anything."""
        try:
            judge = self.player(simulation)
        except ValueError as exc:
            yield str(exc)
            return
        yield from _refused(judge)
        if message := _unpriced(judge, self.options):
            yield message

    def samples(self, criterion: JudgedCriterion) -> int:
        """Return how often each judge is asked the same."""
        return criterion.asked().samples or self.options.samples or criterion.default_samples

    def made_of(self, criterion: JudgedCriterion) -> Json:
        """Return what decides the verdicts beside the options of `criterion`."""
        return {
            "judges": [identity(each) for each in self.judges(criterion)],
            "samples": self.samples(criterion),
            "prompts": [self.prompts.source(name) for name in criterion.prompts],
        }

    def problems(self, criterion: JudgedCriterion) -> Iterator[str]:
        """Yield what keeps `criterion` from being asked about."""
        try:
            judges = self.judges(criterion)
        except ValueError as exc:
            yield str(exc)
            return
        yield from self.prompts.problems(criterion.prompts)
        for each in judges:
            yield from _refused(each)
            if message := _unpriced(each, self.options):
                yield message

    def _serving(self, service: str) -> Judge:
        """Return the judge that is registered as `service`, as the block sets it where it does."""
        named = self.default and self.default.type_name in (service, "scripted")
        return self.default if self.default and named else points.judge[service]()

    def _reaching(self, model: str, *, told: str = "judge") -> Judge:
        """Return the judge that reaches `model`: that of the block, unless it is another's.

        `told` is the block that may say who it is.
        """
        if self.default and (self.default.model == model or self.default.serves(model)):
            return self.default
        for kind in (points.judge[name] for name in points.judge):
            if kind.recognises(model):
                return kind()
        if self.default:
            return self.default
        raise ValueError(
            f"nothing tells who has the model {model!r}; say `{told}: {{provider: …}}`, one of "
            f"{', '.join(points.judge)}"
        )


def identity(judge: Judge) -> Json:
    """Return what decides a judge's answers; where it is reached does not."""
    return [judge.type_name, judge.model, dict(judge.settings), judge.script()]


def endpoint(judge: Judge) -> Json:
    """Return where a judge is reached: one connection serves all its models there."""
    return [judge.type_name, judge.model_dump(mode="json", exclude={"model", "settings"})]


def price(judge: Judge, given: Mapping[str, Price]) -> Price | None:
    """Return what a judge costs; `None` where nobody knows."""
    return Price(input=0, output=0) if judge.free else price_of(str(judge.model), given)


def _unpriced(judge: Judge, options: JudgeOptions) -> str:
    """Say that nobody could count what `judge` costs, where that is limited."""
    if options.max_cost_usd is None or judge.free or price(judge, options.prices):
        return ""
    return (
        f"nobody knows here what {judge.model!r} costs, so max_cost_usd cannot be kept; "
        f"add it to `judge.prices`"
    )


def _refused(judge: Judge) -> Iterator[str]:
    """Yield what is wrong with the settings of a judge, those of a criterion among them."""
    try:
        type(judge).model_validate({**judge.model_dump(), "settings": judge.settings})
    except ValidationError as exc:
        for loc, message in explain(exc, type(judge)):
            yield f"{dotted(loc)}: {message}" if loc else message


def _with(
    judge: Judge, model: str | None, settings: Mapping[str, Json], *, alone: bool = False
) -> Judge:
    """Return `judge` with this model and these settings, added to its own or `alone`."""
    # ADK's files may say `maxOutputTokens` where the configuration says `max_output_tokens`.
    both = {**({} if alone else judge.settings), **settings}
    merged = {to_snake(name): value for name, value in both.items()}
    return judge.model_copy(update={"model": model, "settings": merged})
