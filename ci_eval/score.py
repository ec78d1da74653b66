"""Traces to results: one score for each criterion."""

from collections.abc import Mapping

from ci_eval.plugins import Criterion
from ci_eval.records import Json, Status, Trace, Trial
from ci_eval.results import InvocationScore, Score, TrialResult

MAX_EVIDENCE_CHARS = 4_000
"""The longest text that is kept as evidence; the middle of a longer one is left out."""


def score(trial: Trial, trace: Trace, criteria: Mapping[str, Criterion]) -> TrialResult:
    """Score `trace` by every criterion; what cannot be scored is an error that says why."""
    scores = tuple(
        _named(name, _score(criterion, trial, trace)) for name, criterion in criteria.items()
    )
    judged = [each.status for each in scores if not each.informational]
    return TrialResult(
        key=trial.key,
        status=Status.ERROR if trace.error else Status.worst(judged),
        error=trace.error,
        scores=scores,
        duration_s=trace.duration_s,
        attempts=trace.attempts,
        line=trial.case.line,
        case_fingerprint=trial.fingerprint,
    )


def _named(name: str, found: Score) -> Score:
    return found if found.name == name else found.model_copy(update={"name": name})


def _score(criterion: Criterion, trial: Trial, trace: Trace) -> Score:
    case = trial.case
    if trace.error:
        return criterion.unscored(Status.ERROR, f"not observed: {trace.error.message}")
    if case.conversation is None and not criterion.supports_scenario:
        return criterion.unscored(Status.SKIPPED, "needs a written conversation, not a scenario")
    try:
        found = criterion.score(case, trace)
    except Exception as exc:  # noqa: BLE001  # one of three: a criterion that fails is an error here
        return criterion.unscored(Status.ERROR, f"{type(exc).__name__}: {exc}")
    if any(part.evidence for part in found.invocations):
        shown = tuple(_bounded(part) for part in found.invocations)
        return found.model_copy(update={"invocations": shown})
    return found


def _bounded(part: InvocationScore) -> InvocationScore:
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
