"""Several criteria combined in one value."""

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from ci_eval.plugins import points
from ci_eval.plugins.points import Criterion, criterion
from ci_eval.records.bounds import Value
from ci_eval.records.cases import EvalCase, Json, Record, Status
from ci_eval.records.results import Score
from ci_eval.records.stated_expectations import Expectation
from ci_eval.records.trials import Trace
from ci_eval.text.json_text import is_number
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.templates import plain
from ci_eval.text.validation_messages import described, validated

_PREFIX = "ci/"
_OF_WHOLE = ("threshold", "tier", "enabled")


class WeightedPart(Record, extra="allow"):
    """A part: its weight, its floor, and the options of its criterion."""

    use: str | None = None
    """The criterion, if the part has another name."""
    weight: float = Field(default=1.0, gt=0, le=1e9)
    """Its weight relative to the other parts."""
    floor: Value | None = None
    """If the part's value is lower, the whole value is 0."""


def _weight_alone(value: object) -> object:
    return {"weight": value} if is_number(value) else value


_WeightOrPart = Annotated[
    WeightedPart, BeforeValidator(_weight_alone, json_schema_input_type=WeightedPart | float)
]


class _Part(NamedTuple):
    """One of the criteria."""

    name: str
    weight: float
    floor: float | None
    criterion: Criterion
    bounds: tuple[float, float]


@criterion("ci/weighted")
class Weighted(Criterion):
    """The weighted mean of several criteria, each with an optional floor.

    `criteria` names the parts, each with its weight alone, or with its `weight` (default: 1), its
    `floor` and its options; `use` names the criterion if the part has another name:

        {"adk/response_match_score": {"weight": 2, "floor": 0.5},
         "greets": {"use": "contains", "text": "Hello"}}

    `ci/` may be left out. Each part's value is scaled to a share of its criterion's interval; the
    whole value is the weighted mean of these shares. If a part is below its floor, the whole value
    is 0. A part that skips the case is left out; an error of a part is an error of the whole.

    Parts must have bounded values, and higher must be better. Criteria that call a model, run your
    code or combine others cannot be parts; use them beside this one.
    """

    example: ClassVar[Mapping[str, Json]] = {
        "criteria": {"adk/response_match_score": {"weight": 2, "floor": 0.5}, "numeric": 1}
    }

    criteria: dict[str, _WeightOrPart] = Field(min_length=1)
    """The parts, by name."""

    @model_validator(mode="after")
    def _parts_are_valid(self) -> Self:
        _ = self.parts
        return self

    @cached_property
    def parts(self) -> tuple[_Part, ...]:
        """The parts, in order.

        Raises:
            ValueError: one of them is invalid.

        """
        return tuple(_part(name, given) for name, given in self.criteria.items())

    @property
    def relevant_warnings(self) -> frozenset[str]:
        """Topics of readers' warnings that are relevant to one of the parts."""
        return frozenset().union(*(each.criterion.relevant_warnings for each in self.parts))

    def may_compare(self, what: Expectation) -> bool:
        """Return True if one of the parts may compare with that expectation."""
        return any(each.criterion.may_compare(what) for each in self.parts)

    def lacks(self, case: EvalCase) -> str:
        """Return a message if no part can score `case`; empty otherwise."""
        reasons = [each.criterion.skip_reason(case) for each in self.parts]
        return "" if "" in reasons else "; ".join(dict.fromkeys(reasons))

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Combine the values of the parts."""
        shares, weights = Fraction(), Fraction()
        missed: list[str] = []
        shown: list[Json] = []
        for part in self.parts:
            if part.criterion.skip_reason(case):
                continue
            if unreported := part.criterion.not_observed(trace.invocations):
                return self.unscored(Status.ERROR, f"{part.name}: {unreported}")
            found = part.criterion.score(case, trace)
            if found.status is Status.ERROR:
                return self.unscored(Status.ERROR, f"{part.name}: {found.reason}")
            if found.value is None:
                continue
            value, weight, low, high = map(Fraction, (found.value, part.weight, *part.bounds))
            shares += weight * (value - low) / (high - low)
            weights += weight
            if part.floor is not None and found.value < part.floor:
                missed.append(f"{part.name} {plain(found.value)} is below its floor {part.floor:g}")
            shown.append({"name": part.name, "value": found.value, "weight": part.weight})
        if not weights:
            return self.scored(None, reason="none of its parts applies")
        whole = 0.0 if missed else float(shares / weights)
        return self.scored(whole, reason="; ".join(missed), evidence={"parts": shown})


def _part(name: str, given: WeightedPart) -> _Part:
    """Return the part `name`.

    Raises:
        ValueError: it is invalid.

    """
    model = _model(name, given.use or name)
    for key in _OF_WHOLE:
        if key in (given.model_extra or {}):
            instead = "; use 'floor'" if key == "threshold" else ""
            raise ValueError(f"{name}: {key!r} is an option of the whole, not of a part{instead}")
    low = model.interval[0] if model.interval else 0.0
    options: dict[str, Any] = {
        "threshold": low if given.floor is None else given.floor,
        **(given.model_extra or {}),
    }
    try:
        made = validated(model, options)
    except ValidationError as exc:
        raise ValueError(f"{name}: {'; '.join(described(exc, model))}") from exc
    if made.bounds is None or made.direction == "lower":
        message = "cannot be a part: its values must be bounded, and higher must be better"
        raise ValueError(f"{name}: {message}")
    return _Part(name, given.weight, given.floor, made, made.bounds)


def _model(name: str, used: str) -> type[Criterion]:
    qualified = used if "/" in used else _PREFIX + used
    if qualified not in points.criterion:
        known = [each.removeprefix(_PREFIX) for each in points.criterion]
        raise ValueError(f"{name}: unknown criterion{did_you_mean(used, known)}")
    model = points.criterion[qualified]
    combines = model.reads_assertions or issubclass(model, Weighted)
    if combines or model.judged or not issubclass(model, Criterion):
        message = "calls a model, runs your code or combines others, so it cannot be a part"
        raise ValueError(f"{name}: {message}")
    return model
