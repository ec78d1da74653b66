"""Schema of ADK's result files: one case with its metrics, invocations and session.

The fields are those of `EvalCaseResult` in ADK 2.13.0 (`google/adk/evaluation/eval_result.py` and
`eval_metrics.py`) that ci-eval can fill.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple
from uuid import uuid4

from pydantic import Field

from ci_eval.cli.adk.adk_eval_score_details import Details, details_of, overall_details
from ci_eval.criteria.adk_custom_metric import CustomMetric
from ci_eval.formats.event_lists import trajectory_events
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.records.cases import OWN_FIELDS, Content, EvalCase, Invocation, Json, Record, Status
from ci_eval.records.results import Score, TrialResult
from ci_eval.records.trials import Recording

# --- The session, which `adk web` shows -------------------------------------------------------

_PREFIX = "adk-eval-session-"
"""Prefix of the session ids that `adk eval` generates."""
_DEFAULT_USER = "test_user_id"


class Event(Record):
    """One message of a session."""

    id: str = Field(default_factory=lambda: str(uuid4()))
    invocation_id: str
    author: str
    content: Content | None = None
    timestamp: float


class SessionDetails(Record):
    """A session like ADK's `Session`, without the fields that were not observed."""

    id: str
    app_name: str
    user_id: str
    state: dict[str, Json] = Field(default_factory=dict)
    events: tuple[Event, ...] = ()
    last_update_time: float = 0.0


def session_details(
    case: EvalCase, app: str, seen: Sequence[Invocation], state: dict[str, Json] | None
) -> SessionDetails:
    """Return the session of a finished case; `state` is its final state."""
    given = case.session_input
    return SessionDetails(
        id=(given.session_id if given else None) or f"{_PREFIX}{uuid4()}",
        app_name=(given.app_name if given else None) or app,
        user_id=(given.user_id if given else None) or _DEFAULT_USER,
        state=state or {},
        events=tuple(event for each in seen for event in _events(each, app)),
        last_update_time=max((each.creation_timestamp for each in seen), default=0.0),
    )


def _events(invocation: Invocation, app: str) -> Iterator[Event]:
    at: dict[str, Any] = {
        "invocation_id": invocation.invocation_id or str(uuid4()),
        "timestamp": invocation.creation_timestamp,
    }
    yield Event(author="user", content=invocation.user_content, **at)
    for event in trajectory_events(invocation, app):
        if event.content:
            yield Event(author=event.author, content=event.content, **at)
    if invocation.final_response:
        yield Event(author=app, content=invocation.final_response, **at)


# --- Results ----------------------------------------------------------------------------------


class EvalStatus(IntEnum):
    """Status of a metric, an invocation or a case, in ADK's numbers."""

    PASSED = 1
    FAILED = 2
    NOT_EVALUATED = 3
    """Not measured; ADK does not distinguish skipped from failed measurements."""
    INFORMATIONAL = 4
    """Measured, without a verdict."""


class MetricResult(Record):
    """Result of one metric for a case or an invocation."""

    metric_name: str
    threshold: float | None = None
    criterion: dict[str, Json] | None = None
    """The threshold and the options of the metric; `None` if it only measures."""
    custom_function_path: str | None = None
    """The code of a custom metric."""
    score: float | None = None
    eval_status: EvalStatus
    details: Details = Details()


class InvocationResult(Record):
    """Results of the metrics for one invocation."""

    actual_invocation: Invocation
    expected_invocation: Invocation | None = None
    eval_metric_results: tuple[MetricResult, ...] = ()


class CaseResult(Record):
    """Result of one case."""

    eval_set_file: str
    """The id of the evalset again, for older readers."""
    eval_set_id: str
    eval_id: str
    final_eval_status: EvalStatus
    overall_eval_metric_results: tuple[MetricResult, ...] = ()
    eval_metric_result_per_invocation: tuple[InvocationResult, ...] = ()
    session_id: str
    session_details: SessionDetails
    user_id: str

    def as_json(self) -> str:
        """Return the result as one line of ADK's JSON."""
        own = {*OWN_FIELDS}
        invocations = {"actual_invocation": own, "expected_invocation": own}
        left_out = {"eval_metric_result_per_invocation": {"__all__": invocations}}
        return self.model_dump_json(exclude_none=True, exclude=left_out)


def case_result(
    result: TrialResult,
    observed: Recording,
    case: EvalCase,
    criteria: Mapping[str, AnyCriterion],
    *,
    eval_set_id: str,
) -> CaseResult:
    """Return ADK's result for `result` and the `observed` conversation.

    ADK stores neither metrics nor invocations of a case that could not be observed.
    """
    scores = () if result.error else result.scores
    said = observed.invocations or ()
    seen = () if result.error else said
    found = [(score, _parts(score, len(seen))) for score in scores]
    expected = case.conversation or ()
    session = session_details(case, result.key.agent, said, observed.final_state)
    return CaseResult(
        eval_set_file=eval_set_id,
        eval_set_id=eval_set_id,
        eval_id=case.eval_id,
        final_eval_status=_STATUSES[result.status],
        overall_eval_metric_results=tuple(
            _metric(score, _whole(score, own), criteria) for score, own in found
        ),
        eval_metric_result_per_invocation=tuple(
            InvocationResult(
                actual_invocation=invocation,
                expected_invocation=expected[at] if at < len(expected) else None,
                eval_metric_results=tuple(
                    _metric(score, own[at], criteria) for score, own in found
                ),
            )
            for at, invocation in enumerate(seen)
        ),
        session_id=session.id,
        session_details=session,
        user_id=session.user_id,
    )


_STATUSES = {
    Status.PASSED: EvalStatus.PASSED,
    Status.FAILED: EvalStatus.FAILED,
    Status.ERROR: EvalStatus.NOT_EVALUATED,
    Status.SKIPPED: EvalStatus.NOT_EVALUATED,
}


class _Found(NamedTuple):
    """Value and status of a metric for a case or an invocation."""

    status: Status
    value: float | None
    details: Details = Details()


def _parts(score: Score, count: int) -> list[_Found]:
    """Split a score over `count` invocations.

    A criterion that judges the whole conversation has no values for single invocations.
    """
    if len(score.invocations) != count:
        return [_Found(Status.SKIPPED, None)] * count
    return [_Found(each.status, each.value, details_of(score, each)) for each in score.invocations]


def _whole(score: Score, parts: Sequence[_Found]) -> _Found:
    details = overall_details(score, [each.details for each in parts])
    return _Found(score.status, score.value, details)


def _metric(score: Score, found: _Found, criteria: Mapping[str, AnyCriterion]) -> MetricResult:
    criterion = criteria.get(score.name)
    is_measured = found.status in (Status.PASSED, Status.SKIPPED)
    informational = score.informational and is_measured
    return MetricResult(
        metric_name=score.name.removeprefix("adk/"),
        threshold=score.threshold,
        criterion=criterion_of(criterion) if criterion and score.threshold is not None else None,
        custom_function_path=criterion.code if isinstance(criterion, CustomMetric) else None,
        score=found.value,
        eval_status=EvalStatus.INFORMATIONAL if informational else _STATUSES[found.status],
        details=found.details,
    )


def criterion_of(criterion: AnyCriterion) -> dict[str, Json]:
    """Return ADK's criterion of a metric: threshold and options."""
    if isinstance(criterion, CustomMetric):
        return {"threshold": criterion.threshold, **criterion.criterion}
    said = criterion.model_dump(
        mode="json", exclude_defaults=True, exclude_none=True, exclude={"threshold", "enabled"}
    )
    return {"threshold": criterion.threshold, **said}
