"""Adapter for custom metrics of Google ADK, called as ADK calls them.

`worker.py` runs this file under the interpreter of the metric, which has any version of google-adk.

The message has the arguments of a metric, as JSON: `metric` (ADK's `EvalMetric`), `actual`,
`expected` and `scenario`.  The reply is `{"score", "status", "rubrics", "invocations"}`, with the
first three again for each invocation, or `{"unexpected": str}` for a result that ADK cannot use.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import worker_faults

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable


def adapted(
    target: str, _options: dict[str, Any], load: Callable[[str], Any]
) -> Callable[[dict[str, Any]], Any]:
    """Return a function that calls the metric `target` with a message; async if the metric is.

    Raises:
        TypeError: it is not callable.

    """
    from google.adk.evaluation import evaluator

    found = load(target)
    if not callable(found):
        raise TypeError(f"it is not callable: {worker_faults.in_short(found)}")
    is_evaluator = isinstance(found, type) and hasattr(found, "evaluate_invocations")
    call = partial(_evaluated if is_evaluator else _called, found)
    result = evaluator.EvaluationResult

    async def metric(message: dict[str, Any]) -> dict[str, Any]:
        return _result(await call(message), result)

    def metric_in_a_thread(message: dict[str, Any]) -> Any:
        value = call(message)
        awaits = inspect.isawaitable(value)
        return _awaited_result(value, result) if awaits else _result(value, result)

    is_async = _is_async(found.evaluate_invocations if is_evaluator else found)
    return metric if is_async else metric_in_a_thread


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(type(function), "__call__", None)  # noqa: B004  # it is known to be callable
    )


def _called(function: Callable[..., Any], message: dict[str, Any]) -> Any:
    """Call a function as ADK's evaluator of custom metrics does: without the threshold."""
    metric = _metric(message["metric"])
    metric.threshold = None
    return function(metric, *_conversation(message))


def _evaluated(evaluator: Any, message: dict[str, Any]) -> Any:
    """Create an `Evaluator` for this call, as ADK's registry does."""
    names = ("actual_invocations", "expected_invocations", "conversation_scenario")
    given = dict(zip(names, _conversation(message)))
    return evaluator(eval_metric=_metric(message["metric"])).evaluate_invocations(**given)


# --- Arguments --------------------------------------------------------------------------------


def _metric(given: dict[str, Any]) -> Any:
    from google.adk.evaluation.eval_metrics import BaseCriterion, EvalMetric

    criterion = given["criterion"]
    # ADK requires a threshold; without one, the criterion's options must still be accessible.
    make = BaseCriterion if criterion["threshold"] is not None else BaseCriterion.model_construct
    return EvalMetric(**{**_known(EvalMetric, given), "criterion": make(**criterion)})


def _conversation(message: dict[str, Any]) -> tuple[Any, Any, Any]:
    from google.adk.evaluation.conversation_scenarios import ConversationScenario
    from pydantic import ValidationError

    expected, scenario = message["expected"], message["scenario"]
    try:
        return (
            [_invocation(each) for each in message["actual"]],
            None if expected is None else [_invocation(each) for each in expected],
            None if scenario is None else ConversationScenario.model_validate(scenario),
        )
    except ValidationError as exc:
        raise ValueError(f"this google-adk does not accept the conversation: {exc}") from exc


def _invocation(given: dict[str, Any]) -> Any:
    """Return an invocation without the fields that this version of ADK would reject."""
    from google.adk.evaluation.eval_case import Invocation, InvocationEvent

    kept = _known(Invocation, given)
    events = (given.get("intermediate_data") or {}).get("invocation_events")
    if events is not None:
        listed = [_event(_known(InvocationEvent, each)) for each in events]
        kept["intermediate_data"] = {"invocation_events": listed}
    return Invocation.model_validate(kept)


def _event(given: dict[str, Any]) -> dict[str, Any]:
    """Return an event with only the token counts that google-genai knows.

    ADK 2.3.0 requires an explicit `None` if there is no content.
    """
    from google.genai.types import GenerateContentResponseUsageMetadata

    event = {"content": None, **given}
    if event.get("usage_metadata") is not None:
        usage = _known(GenerateContentResponseUsageMetadata, event["usage_metadata"])
        event["usage_metadata"] = usage
    return event


def _known(model: Any, given: dict[str, Any]) -> dict[str, Any]:
    fields = model.model_fields
    names = {*fields, *(info.alias for info in fields.values())}
    return {name: value for name, value in given.items() if name in names}


# --- Results ----------------------------------------------------------------------------------


async def _awaited_result(promise: Awaitable[Any], result: type[Any]) -> dict[str, Any]:
    return _result(await promise, result)


def _result(value: Any, result: type[Any]) -> dict[str, Any]:
    if not isinstance(value, result):
        return {"unexpected": worker_faults.in_short(value)}
    whole = _scored(value.overall_score, value.overall_eval_status, value.overall_rubric_scores)
    results = value.per_invocation_results
    parts = [_scored(each.score, each.eval_status, each.rubric_scores) for each in results]
    return {**whole, "invocations": parts}


def _scored(score: Any, status: Any, rubrics: Iterable[Any] | None) -> dict[str, Any]:
    listed = [rubric.model_dump(mode="json", exclude_none=True) for rubric in rubrics or ()]
    return {"score": score, "status": status.name, "rubrics": listed}
