"""Choice of the criterion to check, and its passing score."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ci_eval.config.validated_config import Config
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.plugins.points import JudgedCriterion
from ci_eval.records.errors import UsageError
from ci_eval.records.results import CriterionFacts, Run
from ci_eval.text.suggest import did_you_mean


@dataclass(frozen=True)
class Bar:
    """The passing score of a criterion."""

    threshold: float
    better: Literal["higher", "lower"] = "higher"
    bounds: tuple[float, float] | None = (0.0, 1.0)
    """The minimum and maximum score."""

    def passes(self, value: float) -> bool:
        """Return True if `value` passes."""
        return value >= self.threshold if self.better == "higher" else value <= self.threshold


class Chosen(NamedTuple):
    """The criterion that is checked."""

    name: str
    """Its name in the configuration."""
    type_name: str
    bar: Bar

    @property
    def names(self) -> frozenset[str]:
        """The names that labels may use for it."""
        return frozenset({self.name, self.type_name, _short(self.type_name)})


def choose(config: Config, wanted: str | None) -> tuple[Chosen, JudgedCriterion]:
    """Return the criterion `wanted` of `config`; by default the only one that uses a model.

    Raises:
        UsageError: there is none, or several, or it has no threshold.

    """
    judged = {
        name: each for name, each in config.criteria.items() if isinstance(each, JudgedCriterion)
    }
    types = {name: each.type_name for name, each in judged.items()}
    name = _name(types, wanted, config.shown)
    found: AnyCriterion = judged[name]
    bar = Bar(_required(found.threshold, name), found.direction, found.bounds)
    return Chosen(name, found.type_name, bar), judged[name]


def choose_of(run: Run, wanted: str | None, shown: str) -> Chosen:
    """Return the criterion `wanted` of a stored run; by default the only one that used a model.

    Raises:
        UsageError: there is none, or several, or it has no threshold.

    """
    asked = {
        score.name for result in run.results() for score in result.scores if score.judging
    } & run.meta.criteria.keys()
    known: Mapping[str, CriterionFacts] = run.meta.criteria
    types = {name: facts.criterion for name, facts in known.items() if wanted or name in asked}
    name = _name(types, wanted, shown)
    facts = known[name]
    bar = Bar(_required(facts.threshold, name), facts.better, facts.interval)
    return Chosen(name, facts.criterion, bar)


def _name(types: Mapping[str, str], wanted: str | None, shown: str) -> str:
    """Return the name in `types` that `wanted` refers to."""
    if not types:
        raise UsageError(f"{shown} has no criterion that uses a model")
    meant = list(types)
    if wanted is not None:
        same = (kind for kind in types.items() if wanted in (kind[1], _short(kind[1])))
        meant = [wanted] if wanted in types else [name for name, _ in same]
    if not meant:
        ending = did_you_mean(str(wanted), types)
        raise UsageError(f"{shown} has no criterion {wanted!r} that uses a model{ending}")
    if len(meant) > 1:
        hint = f"choose one: --criterion {', or '.join(meant)}"
        raise UsageError(f"{shown} has several criteria that use a model", hint=hint)
    return meant[0]


def _required(threshold: float | None, name: str) -> float:
    if threshold is None:
        message = f"{name} has no threshold, so pass and fail are undefined"
        raise UsageError(message, hint="set one in the configuration")
    return threshold


def _short(type_name: str) -> str:
    return type_name.rpartition("/")[2]
