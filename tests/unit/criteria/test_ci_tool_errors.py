"""Answers of tools that tell of an error."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.case_language import did, expecting

from ci_eval.criteria.ci_tool_use import ToolErrors, has_failed
from ci_eval.records.cases import Status
from ci_eval.records.results import Score


def answered(*answers: dict[str, Any] | None) -> dict[str, Any]:
    """Return an invocation with a call for each answer; `None` stands for none."""
    uses = [{"id": str(at), "name": f"t{at}", "args": {}} for at, _ in enumerate(answers)]
    responses = [
        {"id": str(at), "name": f"t{at}", "response": each}
        for at, each in enumerate(answers)
        if each is not None
    ]
    return {"intermediate_data": {"tool_uses": uses, "tool_responses": responses}}


def scored(*turns: dict[str, Any]) -> Score:
    return ToolErrors().score(expecting(*["?"] * len(turns)), did(*turns))


@pytest.mark.parametrize(
    "answer",
    [
        {"error": "no such order"},
        {"error": {"code": 404}},
        {"exception": "KeyError"},
        {"isError": True, "content": []},
        {"is_error": True},
        {"success": False},
        {"status": "error", "error_message": "no such city"},
        {"status": " FAILED "},
        {"status": "failure"},
        {"result": {"error": "x"}},
        {"result": "Error: no such order"},
        {"result": "\n error: no such order"},
        {"result": "ok", "error": "x"},
    ],
)
def test_an_answer_tells_of_an_error(answer: dict[str, Any]):
    assert has_failed(answer)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"error": None},
        {"error": ""},
        {"error": False},
        {"errors": 0},
        {"isError": False},
        {"isError": "true"},
        {"success": True},
        {"success": None},
        {"status": "success"},
        {"status": 500},
        {"result": "Error rates fell."},
        {"result": "No error: all is well"},
        {"result": [{"error": "x"}]},
        {"result": {"order": {"status": "failed"}}},
        {"result": None},
    ],
)
def test_an_answer_tells_of_no_error(answer: dict[str, Any]):
    assert not has_failed(answer)


def test_the_value_is_the_share_of_answered_calls_that_did_not_fail():
    score = scored(answered({}, {"error": "x"}, None), answered({}, {}))

    assert score.value == 0.75
    assert score.evidence == {"failed_calls": [{"name": "t1", "answer": {"error": "x"}}]}
    assert scored(answered({}, {}, None)).value == 1.0


def test_calls_whose_answers_nobody_wrote_down_are_an_error_and_no_calls_are_skipped():
    unanswered, none = scored(answered(None, None)), scored(answered(), answered())

    assert unanswered.status is Status.ERROR
    assert unanswered.reason == "tools were called, but the trace has no record of their results"
    assert (none.status, none.reason) == (Status.SKIPPED, "no tool was called")


def test_answers_without_ids_are_answers_each():
    answers = [{"name": "t", "response": {"error": "x"}}, {"name": "t", "response": {}}]
    data = {"tool_uses": [{"name": "t"}] * 2, "tool_responses": answers}

    assert scored({"intermediate_data": data}).value == 0.5


def test_answers_are_found_among_events_too():
    answers = [{"function_response": {"name": "t", "response": {"error": at}}} for at in ("", "x")]
    events = [{"author": "a"}, {"author": "a", "content": {"parts": [*answers, {"text": "x"}]}}]

    assert scored({"intermediate_data": {"invocation_events": events}}).value == 0.5


def test_of_several_answers_to_one_call_the_last_counts():
    answers = [
        {"id": "1", "name": "t", "response": {"status": "error"}},
        {"id": "1", "name": "t", "response": {"status": "done"}},
    ]
    data = {"tool_uses": [{"id": "1", "name": "t"}], "tool_responses": answers}

    assert scored({"intermediate_data": data}).value == 1.0


def test_tools_that_nobody_looked_for_are_an_error():
    score = scored({"final_response": {"parts": [{"text": "x"}]}})

    assert score.status is Status.ERROR
    assert score.reason.startswith("the trace has no record of tool calls")


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_each_failure_lowers_the_value(failing: list[bool]):
    found = scored(answered(*({"error": "x"} if each else {} for each in failing)))

    assert found.value == pytest.approx(1 - sum(failing) / len(failing))


def test_no_failed_call_is_hidden_by_another_call_with_the_same_id():
    turn = answered({"error": "down"}, {"ok": 1})
    for each in (*turn["intermediate_data"].values(),):
        for part in each:
            part["id"] = "1"

    assert scored(turn).value == 0.5
    del turn["intermediate_data"]["tool_uses"][1:]
    assert scored(turn).value == 1.0, "the last result of one call counts"
