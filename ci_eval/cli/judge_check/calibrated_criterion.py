"""Choice of the criterion to check, and its passing score."""

from collections.abc import Mapping
from typing import NamedTuple

from ci_eval.config.validated_config import Config
from ci_eval.plugins.points import JudgedCriterion
from ci_eval.records.errors import UsageError
from ci_eval.records.results import CriterionFacts, Run
from ci_eval.text.suggest import did_you_mean


class Chosen(NamedTuple):
    """The criterion that is checked."""

    name: str
    """Its name in the configuration."""
    facts: CriterionFacts

    @property
    def names(self) -> frozenset[str]:
        """The names that labels may use for it."""
        return frozenset({self.name, self.facts.criterion, _short(self.facts.criterion)})


def choose(config: Config, wanted: str | None) -> tuple[Chosen, JudgedCriterion]:
    """Return the criterion `wanted` of `config`; by default the only one that uses a model.

    Raises:
        UsageError: there is none, or several, or it has no threshold.

    """
    judged = {
        name: each for name, each in config.criteria.items() if isinstance(each, JudgedCriterion)
    }
    known = {
        name: CriterionFacts(
            criterion=each.type_name,
            better=each.direction,
            threshold=each.threshold,
            interval=each.bounds,
        )
        for name, each in judged.items()
    }
    chosen = _chosen(known, wanted, config.shown)
    return chosen, judged[chosen.name]


def choose_of(run: Run, wanted: str | None, shown: str) -> Chosen:
    """Return the criterion `wanted` of a stored run; by default the only one that used a model.

    Raises:
        UsageError: there is none, or several, or it has no threshold.

    """
    asked = {score.name for result in run.results() for score in result.scores if score.judging}
    criteria = run.meta.criteria.items()
    known = {name: facts for name, facts in criteria if wanted or name in asked}
    return _chosen(known, wanted, shown)


def _chosen(known: Mapping[str, CriterionFacts], wanted: str | None, shown: str) -> Chosen:
    """Return the criterion in `known` that `wanted` refers to."""
    if not known:
        raise UsageError(f"{shown} has no criterion that uses a model")
    meant = list(known)
    if wanted is not None:
        types = {name: facts.criterion for name, facts in known.items()}
        same = [name for name, kind in types.items() if wanted in (kind, _short(kind))]
        meant = [wanted] if wanted in known else same
    if not meant:
        ending = did_you_mean(str(wanted), known)
        raise UsageError(f"{shown} has no criterion {wanted!r} that uses a model{ending}")
    if len(meant) > 1:
        hint = f"choose one: --criterion {', '.join(meant)}"
        raise UsageError(f"{shown} has several criteria that use a model", hint=hint)
    [name] = meant
    if known[name].threshold is None:
        message = f"{name} has no threshold, so pass and fail are undefined"
        raise UsageError(message, hint="set one in the configuration")
    return Chosen(name, known[name])


def _short(type_name: str) -> str:
    return type_name.rpartition("/")[2]
