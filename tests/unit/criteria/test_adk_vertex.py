"""ADK's criteria that Vertex AI measures: what they send, and what they make of the answer."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.case_language import KEY, SCENARIO, did, expecting
from support.project import content
from support.service_scores import served

from ci_eval.criteria.adk_vertex import (
    ResponseEvaluation,
    Safety,
    TaskSuccess,
    ToolUseQuality,
    TrajectoryQuality,
    VertexJudged,
)
from ci_eval.records.cases import EvalCase, Invocation, Status
from ci_eval.records.errors import JudgeError
from ci_eval.records.questions import Question, UnreadableError
from ci_eval.records.trials import Trace

SAFETY = Safety(threshold=0.8)
COHERENCE = ResponseEvaluation(threshold=3.0)
TASK = TaskSuccess(threshold=0.8)


def answer(score: Any, explanation: str = "", error: str = "", *rubrics: Any) -> dict[str, Any]:
    return {"score": score, "explanation": explanation, "error": error, "rubrics": [*rubrics]}


def by_response(**scores: Any) -> Callable[[Question], dict[str, Any]]:
    return lambda question: answer(scores[json.loads(question.text)["response"]])


def trace(*invocations: dict[str, Any]) -> Trace:
    return Trace.model_validate({"key": KEY, "invocations": invocations})


# --- Each invocation for itself -----------------------------------------------------------------


def test_each_invocation_is_one_question_and_the_mean_is_the_score() -> None:
    found = served(SAFETY, expecting("Aye", "No"), did("yes", "no"), by_response(yes=1.0, no=0.0))

    assert [json.loads(each.text) for each in found.asked] == [
        {"metric": "safety_v1", "prompt": "?", "reference": "Aye", "response": "yes"},
        {"metric": "safety_v1", "prompt": "?", "reference": "No", "response": "no"},
    ]
    assert {each.about for each in found.asked} == {"adk/safety_v1"}
    assert (found.score.value, found.score.status) == (0.5, Status.FAILED)
    assert [part.value for part in found.score.invocations] == [1.0, 0.0]


def test_a_simulated_conversation_has_nothing_to_compare_with() -> None:
    found = served(SAFETY, SCENARIO, did("yes"), by_response(yes=1))
    assert json.loads(found.asked[0].text)["reference"] is None
    assert found.score.status is Status.PASSED


def test_coherence_is_a_number_from_1_to_5() -> None:
    found = served(COHERENCE, expecting("a", "b"), did("x", "y"), by_response(x=5, y=2))
    assert json.loads(found.asked[0].text)["metric"] == "coherence_v1"
    assert (found.score.value, found.score.status) == (3.5, Status.PASSED)


def test_what_the_service_says_is_kept_whether_it_passed_or_not() -> None:
    rubric = {"id": "r", "reasoning": "So it is.", "verdict": True}
    found = served(SAFETY, expecting("a"), did("x"), answer(1, "Harmless.", "", rubric))
    assert found.score.status is Status.PASSED
    assert found.evidence == [{"explanation": "Harmless.", "rubrics": [rubric]}]


def test_one_invocation_without_a_score_makes_it_an_error_not_a_better_mean() -> None:
    def say(question: Question) -> dict[str, Any]:
        fine = json.loads(question.text)["response"] == "yes"
        return answer(1.0) if fine else answer(None, error="The policies are busy.")

    found = served(SAFETY, expecting("a", "b"), did("yes", "no"), say)

    assert (found.score.value, found.score.status) == (None, Status.ERROR)
    assert found.score.reason == (
        "no verdict was reached: it holds no score: The policies are busy."
    )
    assert [part.status for part in found.score.invocations] == [Status.PASSED, Status.ERROR]


@pytest.mark.parametrize("criterion", [SAFETY, COHERENCE])
def test_what_the_service_would_refuse_is_not_sent(criterion: VertexJudged) -> None:
    found = served(criterion, expecting("a"), did(""), answer(1.0))
    assert found.asked == []
    assert found.score.status is Status.ERROR
    assert "needs a response with text" in found.score.reason
    wordless = did({"user_content": {}, "final_response": content("Hi", "model")})
    assert (
        "needs a message with text"
        in served(criterion, expecting("a"), wordless, answer(1.0)).score.reason
    )


def test_a_service_that_is_down_is_an_error() -> None:
    def down(question: Question) -> dict[str, Any]:
        raise JudgeError("nobody is there")

    found = served(SAFETY, expecting("a"), did("x"), down)
    assert found.score.status is Status.ERROR
    assert "nobody is there" in found.score.reason


def test_it_is_asked_once_however_often_models_are() -> None:
    found = served(SAFETY, expecting("a"), did("x"), answer(1.0), samples=5)
    assert len(found.asked) == 1


# --- The answer ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("criterion", "said", "reason"),
    [
        (SAFETY, "no JSON", "it holds no score"),
        (SAFETY, "[1]", "it holds no score"),
        (SAFETY, '{"score": null, "error": "Too long."}', "it holds no score: Too long."),
        (SAFETY, '{"score": null, "explanation": "Odd."}', "it holds no score: Odd."),
        (SAFETY, '{"score": true}', "it holds no score"),
        (SAFETY, '{"score": "1"}', "it holds no score"),
        (SAFETY, '{"score": NaN}', "it holds no score"),
        (SAFETY, '{"score": 1e999}', "it holds no score"),
        (SAFETY, '{"score": 1.5}', "its score, 1.5, is not between 0 and 1"),
        (SAFETY, '{"score": -0.1}', "its score, -0.1, is not between 0 and 1"),
        (COHERENCE, '{"score": 0}', "its score, 0, is not between 1 and 5"),
    ],
)
def test_what_is_no_score_is_never_read_as_one(
    criterion: VertexJudged, said: str, reason: str
) -> None:
    with pytest.raises(UnreadableError) as caught:
        criterion.read(said)
    assert str(caught.value) == reason


def test_that_there_was_no_score_is_not_kept_for_good(tmp_path: Path) -> None:
    def score(said: Any) -> tuple[Any, int]:
        found = served(SAFETY, expecting("a"), did("x"), answer(said), tmp_path)
        return found.score.value, len(found.asked)

    assert score(None) == (None, 2)  # once more, as with every answer that cannot be used
    assert score(1.0) == (1.0, 1)
    assert score(0.0) == (1.0, 0)


# --- The whole conversation ---------------------------------------------------------------------

CALL = {"name": "refund", "args": {"order": 7, "note": None}}
CALLING = {"role": "model", "parts": [{"function_call": CALL}]}
FIRST = {
    "invocation_id": "i-1",
    "user_content": content("Refund 7", "user"),
    "final_response": content("Done.", "model"),
    "intermediate_data": {
        "invocation_events": [{"author": "shop", "content": CALLING}, {"author": "shop"}]
    },
    "app_details": {
        "agent_details": {
            "shop": {
                "name": "shop",
                "instructions": "Be kind.",
                "tool_declarations": [{"function_declarations": [{"name": "refund"}]}],
            }
        }
    },
}
SECOND = {
    "invocation_id": "i-2",
    "user_content": content("Thanks", "user"),
    "intermediate_data": {"tool_uses": [CALL]},
    "app_details": {
        "agent_details": {
            "shop": {"name": "shop", "instructions": "Be rude."},
            "till": {"name": "till", "instructions": "Count."},
        }
    },
}


@pytest.mark.parametrize(
    ("model", "metric"),
    [
        (TaskSuccess, "multi_turn_task_success_v1"),
        (TrajectoryQuality, "multi_turn_trajectory_quality_v1"),
        (ToolUseQuality, "multi_turn_tool_use_quality_v1"),
    ],
)
def test_a_conversation_is_one_question_with_its_agents_and_turns(
    model: type[VertexJudged], metric: str
) -> None:
    found = served(model(threshold=0.8), expecting("a", "b"), trace(FIRST, SECOND), answer(1.0))

    (question,) = found.asked
    sent = json.loads(question.text)
    assert sent["metric"] == metric
    assert sent["agents"] == {
        "shop": {
            "agent_id": "shop",
            "instruction": "Be kind.",
            "tools": [{"function_declarations": [{"name": "refund"}]}],
        },
        "till": {"agent_id": "till", "instruction": "Count.", "tools": []},
    }
    assert sent["turns"] == [
        {
            "turn_index": 0,
            "turn_id": "i-1",
            "events": [
                {"author": "user", "content": content("Refund 7", "user")},
                {"author": "shop", "content": CALLING},
                {"author": "agent", "content": content("Done.", "model")},
            ],
        },
        {
            "turn_index": 1,
            "turn_id": "i-2",
            "events": [
                {"author": "user", "content": content("Thanks", "user")},
                {"author": "agent", "content": None},
            ],
        },
    ]


def test_the_score_of_a_conversation_stands_at_its_end() -> None:
    found = served(TASK, expecting("a", "b"), trace(FIRST, SECOND), answer(0.75, "Nearly."))
    assert (found.score.value, found.score.status) == (0.75, Status.FAILED)
    before, last = found.score.invocations
    assert (before.value, before.status, before.evidence) == (None, Status.SKIPPED, None)
    assert (last.value, last.status) == (0.75, Status.FAILED)
    assert last.evidence == {"explanation": "Nearly."}


def test_a_conversation_without_a_score_is_an_error() -> None:
    found = served(TASK, expecting("a"), trace(FIRST), answer(None, error="No plan."))
    assert found.score.status is Status.ERROR
    assert found.score.reason.endswith("it holds no score: No plan.")


def test_a_conversation_without_turns_is_not_sent() -> None:
    empty = EvalCase(eval_id="c", conversation=())
    found = served(TASK, empty, trace(), answer(1.0))
    assert (found.asked, found.score.status) == ([], Status.SKIPPED)


def test_the_same_conversation_is_the_same_question() -> None:
    """Its order of keys does not count, so answers that were kept are found again."""
    turned = {key: FIRST[key] for key in reversed(FIRST)}
    assert Invocation.model_validate(turned) == Invocation.model_validate(FIRST)
    one, other = (
        served(TASK, expecting("a"), trace(each), answer(1.0)).asked for each in (FIRST, turned)
    )
    assert one == other
