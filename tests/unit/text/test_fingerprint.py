"""What makes two cases, or two values, the same."""

import copy

import pytest
from support.project import REFUNDS

from ci_eval.records.cases import EvalCase
from ci_eval.text.fingerprint import fingerprint, of_case, of_question


def of(case: dict[str, object]) -> str:
    return of_case(EvalCase.model_validate(case))


def test_the_order_of_keys_does_not_matter():
    assert fingerprint({"a": 1, "b": [1, 2]}) == fingerprint({"b": [1, 2], "a": 1})
    assert fingerprint([1, 2]) != fingerprint([2, 1])

    one, other = copy.deepcopy(REFUNDS), copy.deepcopy(REFUNDS)
    for case, args in ((one, {"a": 1, "b": 2}), (other, {"b": 2, "a": 1})):
        case["conversation"][0]["intermediate_data"]["tool_uses"][0]["args"] = args
    assert of(one) == of(other)


def test_when_and_by_which_id_it_was_written_down_does_not_matter():
    written = copy.deepcopy(REFUNDS)
    written["creation_timestamp"] = 5.0
    written["conversation"][0] |= {"invocation_id": "x", "creation_timestamp": 7.0}

    assert of({**written, "line": 3}) == of(REFUNDS)


@pytest.mark.parametrize(
    "change",
    [
        {"user_content": {"parts": [{"text": "Refund 8"}]}},
        {"final_response": None},
        {"intermediate_data": None},
        {"rubrics": [{"rubric_id": "polite", "rubric_content": {"text_property": "Polite"}}]},
    ],
)
def test_what_is_asked_and_expected_matters(change):
    changed = copy.deepcopy(REFUNDS)
    changed["conversation"][0] |= change

    assert of(changed) != of(REFUNDS)


def test_the_state_that_a_conversation_starts_from_matters():
    session = {"app_name": "shop", "user_id": "u", "state": {"vip": True}}

    assert of({**REFUNDS, "session_input": session}) != of(REFUNDS)


ANSWERED = {"human_answers": {"approve": {"result": True}}}


def test_what_a_human_answers_matters_and_not_to_what_is_asked():
    assert of({**REFUNDS, **ANSWERED}) != of(REFUNDS)
    asked = [of_question(EvalCase.model_validate(each)) for each in (REFUNDS, REFUNDS | ANSWERED)]
    assert asked == [of(REFUNDS)] * 2


def test_how_a_run_goes_on_does_not_matter():
    assert of({**REFUNDS, "rerun_on_resume": True}) == of(REFUNDS)


def test_what_tools_answer_matters():
    mocked = {**REFUNDS, "tool_mocks": {"tools": {"refund": {"result": 1}}}}

    assert of(mocked) != of(REFUNDS)
    assert of_question(EvalCase.model_validate(mocked)) != of(REFUNDS)
