"""Facts about criteria that decide whether two runs are comparable."""

from ci_eval.llm.judge_settings import Judging
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.plugins.points import JudgedCriterion, WorkerCriterion
from ci_eval.records.results import CriterionFacts
from ci_eval.runtime.context import RunContext
from ci_eval.text.fingerprint import fingerprint


def facts_of(criterion: AnyCriterion, judging: Judging, context: RunContext) -> CriterionFacts:
    """Return the settings of `criterion`, with a fingerprint of what decides its values.

    Raises:
        ValueError: the provider of its model is unknown.

    """
    return CriterionFacts(
        criterion=criterion.type_name,
        better=criterion.direction,
        threshold=criterion.threshold,
        interval=criterion.bounds,
        informational=criterion.informational,
        tier=criterion.tier or ("warn" if criterion.threshold is None else "block"),
        max_growth=criterion.max_growth,
        fingerprint=_fingerprint(criterion, judging, context),
    )


def _fingerprint(criterion: AnyCriterion, judging: Judging, context: RunContext) -> str:
    made_of = None
    if isinstance(criterion, WorkerCriterion):
        made_of = criterion.made_of(context)
    elif isinstance(criterion, JudgedCriterion):
        made_of = judging.made_of(criterion)
    more = [made_of] if made_of else []
    return fingerprint([criterion.type_name, criterion.options(), *more])
