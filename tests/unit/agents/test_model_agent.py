"""An instruction is filled in as ADK does it, and tools answer what was written down for them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from ci_eval.agents._model_agent import CannedTools, filled_in
from ci_eval.records.cases import CannedResults, Content, EvalCase, FunctionCall, Invocation
from ci_eval.records.errors import TrialError
from ci_eval.records.trials import Trial, TrialKey

STATE: dict[str, Any] = {"city": "Oslo", "n": 3, "none": None, "user:name": "Ada", "a b": 1}


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("In {city}.", "In Oslo."),
        ("{ city } {{city}} {n}", "Oslo Oslo 3"),
        ("{user:name}, {none}{gone?}.", "Ada, ."),
        ('Say {"city": 1} or {} or {a b} or {n.m} or {1}.', None),
        ("Other: {team:name}, {artifact.map}.", None),
        ("no braces", None),
    ],
)
def test_names_of_the_state_are_filled_in_and_nothing_else(
    instruction: str, expected: str | None
) -> None:
    assert filled_in(instruction, STATE) == (instruction if expected is None else expected)


def test_what_is_filled_in_is_not_read_again() -> None:
    assert filled_in("{city}", {"city": "{n}", "n": 1}) == "{n}"


@pytest.mark.parametrize("name", ["town", "user:city", "temp:x"])
def test_a_name_that_the_state_does_not_have_is_an_error(name: str) -> None:
    with pytest.raises(TrialError, match="which the session's state does not have") as caught:
        filled_in(f"In {{{name}}}.", STATE)
    assert caught.value.kind == "start"


@given(st.text(st.characters(exclude_characters="{}")))
def test_a_text_without_braces_stays_as_it_is(text: str) -> None:
    assert filled_in(text, {}) == text


# --- Tools ------------------------------------------------------------------------------------


def tools(results: dict[str, Any], mocks: dict[str, Any] | None = None) -> CannedTools:
    turn = Invocation(user_content=Content.of_text("hello", role="user"))
    case = EvalCase.model_validate(
        {"eval_id": "c", "conversation": [turn], "tool_mocks": mocks and {"tools": mocks}}
    )
    trial = Trial(TrialKey(agent="a", evalset="e", case="c"), case)
    return CannedTools(TypeAdapter(CannedResults).validate_python(results), trial)


def look(city: str, name: str = "look") -> FunctionCall:
    return FunctionCall(id="c1", name=name, args={"city": city})


def test_the_case_comes_first_and_the_agent_where_it_says_nothing() -> None:
    found = tools({"look": {"result": "grey"}}, {"look": {"args": {"city": "Rome"}, "result": 1}})
    assert found.answer(look("Rome")).response == {"result": 1}
    assert found.answer(look("Oslo")).response == {"result": "grey"}
    answer = found.answer(look("Oslo"))
    assert (answer.id, answer.name) == ("c1", "look")


def test_an_error_and_an_object_are_told_as_they_are() -> None:
    found = tools({"look": [{"args": {"city": "Rome"}, "error": "down"}, {"result": {"sky": 1}}]})
    assert found.answer(look("Rome")).response == {"error": "down"}
    assert found.answer(look("Oslo")).response == {"sky": 1}


def test_results_in_turn_go_on_where_an_earlier_session_ended() -> None:
    results = {"look": {"results": ["a", "b", "c"]}}
    found = tools(results)
    assert found.answer(look("Rome")).response == {"result": "a"}
    again = tools(results)
    again.recall([look("Rome"), look("Rome"), look("Rome", name="other")])
    assert again.answer(look("Rome")).response == {"result": "c"}


def test_a_call_for_which_nothing_is_given_is_named_in_short() -> None:
    with pytest.raises(TrialError, match=r"the model called look\(city='x+") as caught:
        tools({"other": {"result": 1}}).answer(look("x" * 10_000))
    assert caught.value.kind == "unmocked"
    assert len(str(caught.value)) < 500
