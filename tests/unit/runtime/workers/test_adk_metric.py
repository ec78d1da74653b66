"""How a worker calls a metric, beside a stand-in for google-adk that knows as little as an old one.

`tests/integration/criteria/test_adk_custom_metric.py` does the same with google-adk itself.
"""

import asyncio
import sys
from enum import Enum
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from ci_eval.runtime.workers.adapters import adk_metric_adapter


class Known(BaseModel):
    """What refuses everything that it does not know."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class BaseCriterion(BaseModel):
    model_config = ConfigDict(extra="allow")

    threshold: float


class EvalMetric(Known):
    metric_name: str
    threshold: float | None
    criterion: BaseCriterion


class Usage(Known):
    prompt_token_count: int | None = Field(default=None, alias="promptTokenCount")


class InvocationEvent(Known):
    author: str
    content: dict[str, Any] | None
    usage_metadata: Usage | None = None


class InvocationEvents(Known):
    invocation_events: list[InvocationEvent]


class Invocation(Known):
    user_content: str
    intermediate_data: InvocationEvents | None = None


class ConversationScenario(Known):
    starting_prompt: str


class Status(Enum):
    PASSED = 1


class RubricScore(Known):
    rubric_id: str
    score: float | None = None


class PartResult(BaseModel):
    score: float | None = None
    eval_status: Status = Status.PASSED
    rubric_scores: list[RubricScore] | None = None


class EvaluationResult(BaseModel):
    overall_score: float | None = None
    overall_eval_status: Status = Status.PASSED
    per_invocation_results: list[PartResult] = []
    overall_rubric_scores: list[RubricScore] | None = None


MODULES = {
    "google.adk.evaluation.conversation_scenarios": [ConversationScenario],
    "google.adk.evaluation.eval_case": [Invocation, InvocationEvent],
    "google.adk.evaluation.eval_metrics": [BaseCriterion, EvalMetric],
    "google.adk.evaluation.evaluator": [EvaluationResult],
    "google.genai.types": [],
}


@pytest.fixture(autouse=True)
def google_adk(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, classes in MODULES.items():
        found = ModuleType(name)
        for each in classes:
            setattr(found, each.__name__, each)
        monkeypatch.setitem(sys.modules, name, found)
        package = name
        while "." in package:
            package, _, child = package.rpartition(".")
            if package not in sys.modules:
                monkeypatch.setitem(sys.modules, package, ModuleType(package))
            monkeypatch.setattr(
                sys.modules[package], child, sys.modules[f"{package}.{child}"], raising=False
            )
    types = sys.modules["google.genai.types"]
    monkeypatch.setattr(types, "GenerateContentResponseUsageMetadata", Usage, raising=False)


def message(**more: Any) -> dict[str, Any]:
    metric = {
        "metric_name": "mine",
        "threshold": 0.5,
        "criterion": {"threshold": 0.5, "words": ["a"]},
        "custom_function_path": "shop.mine",
    }
    return {
        "metric": metric,
        "actual": [{"user_content": "Hi"}],
        "expected": None,
        "scenario": None,
        **more,
    }


def adapted_to(found: Any) -> Any:
    """Return a caller of `found`, as if it were in a module."""
    return adk_metric_adapter.adapted("module:metric", {}, lambda name: found)


RESULT = EvaluationResult(
    overall_score=0.5,
    overall_rubric_scores=[RubricScore(rubric_id="kind")],
    per_invocation_results=[PartResult(score=0.25)],
)
TOLD = {
    "score": 0.5,
    "status": "PASSED",
    "rubrics": [{"rubric_id": "kind"}],
    "invocations": [{"score": 0.25, "status": "PASSED", "rubrics": []}],
}


def heard(**more: Any) -> tuple[Any, ...]:
    """Return the arguments that a function is called with."""
    calls: list[tuple[Any, ...]] = []

    def metric(*arguments: Any) -> EvaluationResult:
        calls.append(arguments)
        return RESULT

    assert adapted_to(metric)(message(**more)) == TOLD
    [found] = calls
    return found


def test_a_function_is_called_with_the_criterion_and_without_the_threshold() -> None:
    metric, actual, expected, scenario = heard()
    assert (metric.metric_name, metric.threshold) == ("mine", None)
    assert metric.criterion == BaseCriterion.model_validate({"threshold": 0.5, "words": ["a"]})
    assert (actual, expected, scenario) == ([Invocation(user_content="Hi")], None, None)


def test_a_function_is_told_what_was_expected_or_the_scenario() -> None:
    _, _, expected, _ = heard(expected=[{"user_content": "Hi"}])
    assert expected == [Invocation(user_content="Hi")]
    assert heard(scenario={"starting_prompt": "Hi"})[3] == ConversationScenario(
        starting_prompt="Hi"
    )


def test_without_a_threshold_the_options_are_still_there() -> None:
    plain = message()["metric"]
    metric = {**plain, "threshold": None, "criterion": {"threshold": None, "words": ["a"]}}
    found = heard(metric=metric)[0].criterion
    assert (found.threshold, found.words) == (None, ["a"])


def test_what_an_older_version_does_not_know_is_left_out() -> None:
    events = [
        {
            "author": "bot",
            "model_version": "m",
            "usage_metadata": {"promptTokenCount": 5, "other": 1},
        },
        {"author": "bot", "content": {"role": "model"}, "usage_metadata": {}},
    ]
    data = {"invocation_events": events}
    given = {"user_content": "Hi", "duration": 1.5, "nodes": ["a"], "intermediate_data": data}
    [found] = heard(actual=[given])[1]
    assert found.intermediate_data == InvocationEvents(
        invocation_events=[
            InvocationEvent(author="bot", content=None, usage_metadata=Usage(prompt_token_count=5)),
            InvocationEvent(author="bot", content={"role": "model"}, usage_metadata=Usage()),
        ]
    )


def test_a_conversation_that_it_refuses_is_said_to_be_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^this google-adk does not accept the conversation: 1 val"
    ):
        heard(actual=[{"user_content": 5}])


class Evaluator:
    def __init__(self, eval_metric: EvalMetric) -> None:
        assert eval_metric.threshold == 0.5

    def evaluate_invocations(
        self, actual_invocations: Any, expected_invocations: Any, conversation_scenario: Any
    ) -> EvaluationResult:
        assert (expected_invocations, conversation_scenario) == (None, None)
        assert actual_invocations == [Invocation(user_content="Hi")]
        return RESULT


class AsyncEvaluator(Evaluator):
    async def evaluate_invocations(self, **conversation: Any) -> EvaluationResult:  # type: ignore[override]  # as ADK's
        return super().evaluate_invocations(**conversation)


async def async_metric(*arguments: Any) -> EvaluationResult:
    return RESULT


def test_an_evaluator_is_made_with_the_metric_and_keeps_the_threshold() -> None:
    assert adapted_to(Evaluator)(message()) == TOLD


@pytest.mark.parametrize("found", [AsyncEvaluator, async_metric])
def test_what_is_async_stays_so_that_all_of_it_runs_on_one_loop(found: Any) -> None:
    metric = adapted_to(found)
    assert asyncio.iscoroutinefunction(metric)
    assert asyncio.run(metric(message())) == TOLD


def test_a_promise_of_what_is_not_async_is_kept() -> None:
    metric = adapted_to(lambda *arguments: async_metric())
    assert not asyncio.iscoroutinefunction(metric)
    assert asyncio.run(metric(message())) == TOLD


@pytest.mark.parametrize(
    ("returned", "told"),
    [(None, "None"), (0.5, "float: 0.5"), ("x" * 500, "str: '" + "x" * 199 + "…")],
)
def test_what_is_no_result_is_shown(returned: Any, told: str) -> None:
    assert adapted_to(lambda *arguments: returned)(message()) == {"unexpected": told}
