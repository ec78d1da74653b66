"""Every value that crosses a stage survives JSON and says only what was observed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ci_eval.records.cases import Content, EvalCase, Invocation, InvocationEvents, Part, Status
from ci_eval.records.results import InvocationScore, Score, TrialResult
from ci_eval.records.trials import Failure, Trace, TrialKey

KEY = TrialKey(agent="a", evalset="e", case="c")

texts = st.text(max_size=5)
values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, values, max_size=3)


def spelled(snake: str, camel: str, value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return an object with one key, in either spelling, or without it."""
    names = st.sampled_from([snake, camel])
    return st.just({}) | st.builds(lambda name, given: {name: given}, names, value)


def joined(*parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(*parts).map(lambda found: {k: v for part in found for k, v in part.items()})


calls = st.fixed_dictionaries({"name": texts}, optional={"id": texts, "args": objects})
answers = st.fixed_dictionaries({}, optional={"id": texts, "name": texts, "response": objects})
parts = joined(
    st.fixed_dictionaries({}, optional={"text": texts}),
    spelled("function_call", "functionCall", calls),
    spelled("function_response", "functionResponse", answers),
)
contents = st.fixed_dictionaries({}, optional={"role": texts, "parts": st.lists(parts, max_size=3)})
events = st.fixed_dictionaries({"author": texts}, optional={"content": contents})
data = spelled("invocation_events", "invocationEvents", st.lists(events, max_size=3)) | joined(
    spelled("tool_uses", "toolUses", st.lists(calls, max_size=3)),
    spelled("tool_responses", "toolResponses", st.lists(answers, max_size=3)),
)
turns = joined(
    st.sampled_from(["user_content", "userContent"]).flatmap(
        lambda name: st.fixed_dictionaries({name: contents})
    ),
    spelled("final_response", "finalResponse", contents),
    spelled("intermediate_data", "intermediateData", data),
    st.fixed_dictionaries({}, optional={"duration": st.floats(0, 1e9)}),
)


# --- JSON -----------------------------------------------------------------------------------


@given(turns)
def test_an_invocation_survives_json(turn: dict[str, Any]) -> None:
    found = Invocation.model_validate(turn)
    for written in (found.model_dump_json(), found.model_dump_json(exclude_defaults=True)):
        again = Invocation.model_validate_json(written)
        assert again == found
        assert (again.user, again.response, again.tool_calls) == (
            found.user,
            found.response,
            found.tool_calls,
        )


@given(st.lists(turns, max_size=2), objects)
def test_a_case_and_a_trace_survive_json(given_turns: list[dict[str, Any]], state: Any) -> None:
    case = EvalCase.model_validate(
        {
            "eval_id": "c",
            "conversation": given_turns,
            "final_session_state": state,
            "extra": [state],
        }
    )
    assert EvalCase.model_validate_json(case.model_dump_json()) == case
    trace = Trace(key=KEY, invocations=case.conversation or (), final_state=state)
    assert Trace.model_validate(json.loads(trace.model_dump_json())) == trace


def test_an_invocation_is_written_as_adk_writes_it() -> None:
    turn = {
        "invocationId": "1",
        "userContent": {"parts": [{"text": "x"}]},
        "intermediateData": {"toolUses": [{"name": "t", "args": {}}]},
    }
    assert Invocation.model_validate(turn).model_dump(exclude_defaults=True, mode="json") == {
        "invocation_id": "1",
        "user_content": {"parts": [{"text": "x"}]},
        "intermediate_data": {"tool_uses": [{"name": "t", "args": {}}]},
    }


def test_the_line_of_a_case_is_no_part_of_it() -> None:
    case = EvalCase(eval_id="c", conversation=(), line=5)
    assert "line" not in case.model_dump()


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_json_has_no_number_for_is_refused(number: float) -> None:
    with pytest.raises(ValidationError):
        Trace(key=KEY, duration_s=number)


def test_a_stored_record_lets_newer_versions_say_more() -> None:
    found = Failure.model_validate({"kind": "timeout", "message": "m", "news": 1})
    assert found.kind == "timeout"
    assert Failure.model_validate({"kind": "news", "message": "m"}).kind == "recorded"
    with pytest.raises(ValidationError):
        TrialKey.model_validate({"agent": "a", "evalset": "e", "case": "c", "news": 1})


def test_records_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        KEY.case = "other"  # type: ignore[misc]  # it is frozen


# --- Messages -------------------------------------------------------------------------------


def test_a_message_may_be_made_of_a_text() -> None:
    made = Content.of_text("Hello", role="user")
    assert made.model_dump(exclude_defaults=True) == {"role": "user", "parts": ({"text": "Hello"},)}


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (None, ""),
        ([], ""),
        ([{}], ""),
        ([{"text": ""}, {"text": "a"}], "a"),
        ([{"text": "a", "thought": True}, {"inlineData": {}}, {"text": "b"}], "a\nb"),
    ],
)
def test_the_texts_of_a_message_are_joined_as_adk_joins_them(parts: Any, text: str) -> None:
    assert Content.model_validate({"parts": parts}).text == text


@pytest.mark.parametrize(
    ("part", "is_plain"),
    [
        ({"text": "a"}, True),
        ({"text": "a", "thought": True, "thoughtSignature": "x"}, True),
        ({}, True),
        ({"text": "a", "inline_data": {"data": ""}}, False),
        ({"functionCall": {"name": "t"}}, False),
    ],
)
def test_a_message_is_plain_text_when_there_is_nothing_else(
    part: dict[str, Any], *, is_plain: bool
) -> None:
    assert Content(parts=(Part.model_validate(part),)).is_plain_text is is_plain


def test_a_message_without_parts_is_plain_text() -> None:
    assert Content().is_plain_text


# --- Trajectories ---------------------------------------------------------------------------


def trajectory(intermediate_data: Any) -> list[tuple[Any, ...]]:
    turn = {"user_content": {}, "intermediate_data": intermediate_data}
    return [tuple(call) for call in Invocation.model_validate(turn).tool_calls]


def test_a_call_has_the_answer_of_its_id() -> None:
    data = {
        "tool_uses": [
            {"id": "1", "name": "t", "args": {"x": 1}},
            {"id": "2", "name": "t"},
            {"id": "3", "name": "t", "args": {}},
        ],
        "tool_responses": [
            {"id": "2", "response": {"y": 2}},
            {"id": "1", "response": {"y": 1}},
            {"id": "2", "response": {"y": 3}},
        ],
    }
    assert trajectory(data) == [("t", {"x": 1}, {"y": 1}), ("t", None, {"y": 3}), ("t", {}, None)]


def test_calls_without_ids_have_the_answers_in_order() -> None:
    data = {
        "tool_uses": [{"name": "t"}, {"name": "u"}],
        "tool_responses": [{"response": {"y": 1}}, {"response": {"y": 2}}],
    }
    assert trajectory(data) == [("t", None, {"y": 1}), ("u", None, {"y": 2})]


def test_without_data_there_is_no_call() -> None:
    assert trajectory(None) == []
    assert trajectory({}) == []
    assert trajectory({"invocation_events": []}) == []
    assert (
        trajectory({"invocation_events": [{"author": "a"}, {"author": "a", "content": {}}]}) == []
    )


def test_a_trajectory_of_events_is_kept_as_events() -> None:
    turn = Invocation(
        user_content=Content(), intermediate_data=InvocationEvents(invocation_events=())
    )
    assert turn.events == ()
    assert Invocation(user_content=Content()).events is None
    assert Invocation.model_validate(turn.model_dump()).events == ()


def test_both_shapes_of_a_trajectory_cannot_be_mixed() -> None:
    with pytest.raises(ValidationError):
        trajectory({"invocation_events": [], "tool_uses": []})


def test_a_case_is_a_conversation_or_a_scenario() -> None:
    plot = {"starting_prompt": "p", "conversation_plan": "q"}
    for both in ({}, {"conversation": [], "conversation_scenario": plot}):
        with pytest.raises(ValidationError, match="needs either 'conversation' or"):
            EvalCase.model_validate({"eval_id": "c", **both})
    assert EvalCase.model_validate({"eval_id": "c", "conversation": []}).conversation == ()


# --- Statuses and scores --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statuses", "worst"),
    [
        ([], "skipped"),
        (["skipped"], "skipped"),
        (["skipped", "passed"], "passed"),
        (["passed", "failed", "skipped"], "failed"),
        (["failed", "error", "passed"], "error"),
    ],
)
def test_the_worst_status_counts(statuses: list[str], worst: str) -> None:
    assert Status.worst([Status(each) for each in statuses]) is Status(worst)


@pytest.mark.parametrize(
    ("status", "value", "is_score"),
    [
        ("passed", 1.0, True),
        ("failed", 0.0, True),
        ("skipped", None, True),
        ("error", None, True),
        ("passed", None, False),
        ("failed", None, False),
        ("skipped", 0.0, False),
        ("error", 0.0, False),
    ],
)
def test_a_score_has_a_value_exactly_when_it_was_measured(
    status: str, value: float | None, *, is_score: bool
) -> None:
    given_score = {"criterion": "c", "name": "c", "status": status, "value": value}
    if is_score:
        score = Score.model_validate(given_score)
        assert Score.model_validate_json(score.model_dump_json()) == score
    else:
        with pytest.raises(ValidationError, match="a score has a value exactly when"):
            Score.model_validate(given_score)


def test_a_result_survives_json() -> None:
    part = InvocationScore(status=Status.FAILED, value=0.5, evidence={"actual": [None, {"x": 1}]})
    score = Score(
        criterion="c", name="d", status=Status.FAILED, value=0.5, threshold=1, invocations=(part,)
    )
    result = TrialResult(
        key=KEY,
        status=Status.ERROR,
        error=Failure(kind="crash", message="m"),
        scores=(score,),
        line=3,
    )
    assert TrialResult.model_validate_json(result.model_dump_json()) == result
