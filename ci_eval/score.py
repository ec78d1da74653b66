"""Traces to results: one score for each criterion."""

from collections.abc import Mapping

from ci_eval.errors import TrialError
from ci_eval.plugins import AnyCriterion, Criterion, Scorer
from ci_eval.records import EvalCase, Json, Status, Trace, Trial
from ci_eval.results import InvocationScore, Score, TrialResult

MAX_EVIDENCE_CHARS = 4_000
"""The longest text that is kept as evidence; the middle of a longer one is left out."""


Scorers = Mapping[str, Scorer]
"""The criteria that had to be started, by the names that the configuration gives them."""


async def score(
    trial: Trial, trace: Trace, criteria: Mapping[str, AnyCriterion], scorers: Scorers
) -> TrialResult:
    """Score `trace` by every criterion; what cannot be scored is an error that says why."""
    scores = [
        _named(name, await _score(criterion, trial, trace, scorers.get(name)))
        for name, criterion in criteria.items()
    ]
    judged = [each.status for each in scores if not each.informational]
    return TrialResult(
        key=trial.key,
        status=Status.ERROR if trace.error else Status.worst(judged),
        error=trace.error,
        scores=tuple(scores),
        duration_s=trace.duration_s,
        attempts=trace.attempts,
        line=trial.case.line,
        case_fingerprint=trial.fingerprint,
    )


def _named(name: str, found: Score) -> Score:
    return found if found.name == name else found.model_copy(update={"name": name})


async def _score(
    criterion: AnyCriterion, trial: Trial, trace: Trace, scorer: Scorer | None
) -> Score:
    case = trial.case
    if trace.error:
        return criterion.unscored(Status.ERROR, f"not observed: {trace.error.message}")
    lacking = _lacking(criterion, case)
    if lacking:
        return criterion.unscored(Status.SKIPPED, lacking)
    try:
        if isinstance(criterion, Criterion):
            return _bounded(criterion.score(case, trace))
        if scorer:
            return _bounded(await scorer.score(case, trace))
        reason = "nothing here can score it"
    except TrialError as exc:
        reason = str(exc)
    except Exception as exc:  # noqa: BLE001  # one of three: a criterion that fails is an error here
        reason = f"{type(exc).__name__}: {exc}"
    return criterion.unscored(Status.ERROR, reason)


def _lacking(criterion: AnyCriterion, case: EvalCase) -> str:
    if case.conversation is None and not criterion.supports_scenario:
        return "needs a written conversation, not a scenario"
    return criterion.lacks(case)


def _bounded(found: Score) -> Score:
    """Return `found` with its evidence shortened."""
    if found.evidence:
        found = found.model_copy(update={"evidence": shortened(found.evidence)})
    if any(part.evidence for part in found.invocations):
        parts = tuple(_bounded_part(part) for part in found.invocations)
        return found.model_copy(update={"invocations": parts})
    return found


def _bounded_part(part: InvocationScore) -> InvocationScore:
    return part.model_copy(update={"evidence": shortened(part.evidence)})


def shortened(value: Json) -> Json:
    """Return `value` with the middle of its long texts left out."""
    if isinstance(value, dict):
        return {key: shortened(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shortened(each) for each in value]
    if isinstance(value, str) and len(value) > MAX_EVIDENCE_CHARS:
        half = MAX_EVIDENCE_CHARS // 2
        left_out = len(value) - 2 * half
        return f"{value[:half]} […{left_out} characters left out…] {value[-half:]}"
    return value
