"""Details that ADK adds to a score: rubric verdicts, tokens and seconds by kind."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from ci_eval.records.cases import Json, Record
from ci_eval.records.results import InvocationScore, Score
from ci_eval.text.json_text import objects_in

R = TypeVar("R", bound=Record)

_YES_OR_NO = {"yes": 1.0, "no": 0.0}
_SEVERAL = "A mean over the invocations; each has its own reason."


class RubricScore(Record):
    """The verdict on one rubric."""

    rubric_id: str
    rationale: str | None = None
    score: float | None = None
    """1 for yes, 0 for no; in between for a mean."""


class TokenUsage(Record):
    """Tokens by kind; `None` if no model call reported them.

    Input is prompt and tool use, cached is a part of the prompt, and output is candidates and
    reasoning.
    """

    total_tokens: float | None = None
    input_tokens: float | None = None
    prompt_tokens: float | None = None
    cached_tokens: float | None = None
    tool_use_tokens: float | None = None
    output_tokens: float | None = None
    candidates_tokens: float | None = None
    reasoning_tokens: float | None = None


class Durations(Record):
    """Seconds by kind; `None` if not measured."""

    total_seconds: float | None = None
    model_seconds: float | None = None
    tool_seconds: float | None = None
    framework_seconds: float | None = None


class Details(Record):
    """Details of a score; set for the metrics that have them."""

    rubric_scores: tuple[RubricScore, ...] | None = None
    token_usage_details: TokenUsage | None = None
    duration_details: Durations | None = None


def details_of(score: Score, part: InvocationScore) -> Details:
    """Return the evidence for one invocation as ADK's details."""
    evidence = part.evidence or {}
    if score.criterion == "adk/token_usage_v1":
        return Details(token_usage_details=_tokens(evidence, part.value))
    if score.criterion == "adk/invocation_duration_v1":
        return Details(duration_details=_durations(evidence, part.value))
    rubrics = tuple(_rubrics(evidence))
    return Details(rubric_scores=rubrics or None)


def overall_details(score: Score, parts: Sequence[Details]) -> Details:
    """Average the details of the invocations as ADK does.

    Tokens are averaged over all invocations, seconds over the timed ones.  A custom metric returns
    its own overall rubric scores.
    """
    tokens = [each.token_usage_details for each in parts if each.token_usage_details]
    seconds = [each.duration_details for each in parts if each.duration_details]
    rubrics = [each for part in parts for each in part.rubric_scores or ()]
    return Details(
        rubric_scores=tuple(_rubrics(score.evidence or {})) or tuple(_pooled(rubrics)) or None,
        token_usage_details=_averaged(TokenUsage, tokens, len(parts)) if tokens else None,
        duration_details=_averaged(Durations, seconds, None) if seconds else None,
    )


def _tokens(evidence: Mapping[str, Json], total: float | None) -> TokenUsage:
    given, said = evidence.get("input"), evidence.get("output")
    by_tools, reasoning = evidence.get("tool_use"), evidence.get("reasoning")
    return TokenUsage(
        total_tokens=total,
        input_tokens=given,
        prompt_tokens=None if given is None else given - (by_tools or 0),
        cached_tokens=evidence.get("cached"),
        tool_use_tokens=by_tools,
        output_tokens=said,
        candidates_tokens=None if said is None else said - (reasoning or 0),
        reasoning_tokens=reasoning,
    )


def _durations(evidence: Mapping[str, Json], total: float | None) -> Durations:
    return Durations(
        total_seconds=total,
        model_seconds=evidence.get("model_s"),
        tool_seconds=evidence.get("tool_s"),
        framework_seconds=evidence.get("framework_s"),
    )


def _rubrics(evidence: Mapping[str, Json]) -> Iterator[RubricScore]:
    """Yield the verdicts in the evidence of our own criteria, or of a custom metric."""
    for each in objects_in(evidence.get("rubrics")):
        if isinstance(each.get("rubric_id"), str):
            score = _YES_OR_NO.get(str(each.get("verdict")), each.get("score"))
            yield RubricScore(
                rubric_id=each["rubric_id"],
                rationale=str(each.get("rationale") or "") or None,
                score=score if isinstance(score, int | float) else None,
            )


def _pooled(rubrics: Iterable[RubricScore]) -> Iterator[RubricScore]:
    """Yield the mean of each rubric over the invocations."""
    by_id: dict[str, list[RubricScore]] = {}
    for each in rubrics:
        by_id.setdefault(each.rubric_id, []).append(each)
    for rubric_id, found in by_id.items():
        mean = _mean([each.score for each in found if each.score is not None], None)
        several = RubricScore(rubric_id=rubric_id, rationale=_SEVERAL, score=mean)
        yield several if len(found) > 1 else found[0]


def _averaged(model: type[R], parts: Sequence[R], number: int | None) -> R:
    """Return the mean of each field, over `number` parts or else over the parts that have it."""
    fields: dict[str, Any] = {}
    for name in model.model_fields:
        values = [value for each in parts if (value := getattr(each, name)) is not None]
        mean = _mean(values, number)
        fields[name] = mean if mean is None or number else round(mean, 3)
    return model(**fields)


def _mean(values: Sequence[float], number: int | None) -> float | None:
    return sum(values) / (number or len(values)) if values else None
