"""What goes into a request, and what is taken from an answer."""

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from ci_eval.agents import _http_expressions
from ci_eval.agents._http_expressions import (
    Expression,
    ExpressionError,
    Form,
    Nothing,
    filled,
    filled_address,
    value_of,
)

JSON: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ANSWER = {
    "items": [{"kind": "tool", "name": "a"}, {"kind": "text", "text": "hi"}],
    "keys": 1,
    "text": "hi",
    "none": None,
}


@given(JSON)
def test_a_text_that_is_only_an_expression_keeps_its_kind(value: Any) -> None:
    assert filled({"a": ["{{ message }}", 1, None]}, {"message": value}) == {"a": [value, 1, None]}


@given(JSON)
def test_what_an_expression_finds_is_what_is_there(value: Any) -> None:
    assert value_of("answer.items[0]", {"answer": {"items": [value]}}) == value


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("say {{ message }}!", 'say "quoted" {{ not }}!'),
        ("{{ message }}{{ message }}", '"quoted" {{ not }}' * 2),
        (" {{ session.id }} ", 7),
        ("{{- session.id -}}", 7),
        ("id {{ session.id }}", "id 7"),
        ("all {{ history }}", 'all [{"message": "ä"}]'),
        ("{{ session.none }}", None),
        ("none: {{ session.none }}", "none: "),
        ("{% if session.id %}yes{% endif %}", "yes"),
        ("plain", "plain"),
        ("{{ message | upper }}", '"QUOTED" {{ NOT }}'),
    ],
)
def test_texts_are_filled(text: str, made: Any) -> None:
    data = {
        "message": '"quoted" {{ not }}',
        "session": {"id": 7, "none": None},
        "history": [{"message": "ä"}],
    }
    assert filled(text, data) == made


def test_what_goes_into_an_address_stays_in_its_place() -> None:
    data = {"session": {"id": "a/../b?c=1#d ä"}}
    made = filled_address("/chat/{{ session.id }}/end", data)

    assert made == "/chat/a%2F..%2Fb%3Fc%3D1%23d%20%C3%A4/end"


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("answer.text", "hi"),
        ("answer.items[1].text", "hi"),
        ("answer['items'][0]['name']", "a"),
        ("answer.keys", 1),
        ("answer.none", None),
        ("answer.items | selectattr('kind', 'equalto', 'tool') | map(attribute='name')", ["a"]),
        ("answer.items | map(attribute='kind') | join('+')", "tool+text"),
        ("answer.missing or answer.text", "hi"),
        ("answer.missing or []", []),
        ("answer.missing.deeper or answer.text", "hi"),
        ("{'a': answer.text}", {"a": "hi"}),
    ],
)
def test_answers_are_read(expression: str, found: Any) -> None:
    assert value_of(expression, {"answer": ANSWER}) == found


@pytest.mark.parametrize(
    "expression",
    [
        "answer.missing",
        "answer.missing.deeper[0]",
        "answer.items[9]",
        "answer.get",
        "answer['pop']",
        "answer.text.upper",
        "answer.items.append",
        "answer.__class__",
        "answer.text.__class__.__mro__",
        "call.name",
    ],
)
def test_what_leads_nowhere_finds_nothing(expression: str) -> None:
    assert value_of(expression, {"answer": ANSWER}) is Nothing


@pytest.mark.parametrize(
    "expression", ["answer.keys / 0", "answer.text + 1", "answer.text | int / none"]
)
def test_what_cannot_be_computed_is_said(expression: str) -> None:
    with pytest.raises(ExpressionError, match="has no value: "):
        value_of(expression, {"answer": ANSWER})


def test_a_number_without_end_is_no_json() -> None:
    with pytest.raises(ExpressionError, match="is not a finite number"):
        value_of("answer * 10", {"answer": 1e308})


@pytest.mark.parametrize("form", ["{{ session.nope }}", "x {{ session.nope }}"])
def test_a_request_without_what_it_asks_for_is_not_made(form: str) -> None:
    with pytest.raises(ExpressionError, match="nope"):
        filled(form, {"session": {}})


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (
            Form,
            {"a": ["{{ mesage }}"]},
            "refers to 'mesage', which is not available here. Did you mean",
        ),
        (Form, "{{ message", "is not a valid template: unexpected end of template"),
        (Form, "{{ range(9) }}", "refers to 'range'"),
        (Expression, "answer..a", "is not a valid expression: expected name or number"),
        (Expression, "message", "refers to 'message', which is not available here; known: answer"),
        (Expression, "answer | nope", "is not a valid expression: No filter named 'nope'"),
        (Expression, "", "is not a valid expression: "),
    ],
)
def test_a_mistake_is_seen_before_anything_is_sent(kind: Any, value: Any, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(Annotated[kind, None]).validate_python(value)
    assert said in str(caught.value)


def test_a_list_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_http_expressions, "MAX_ELEMENTS", 2)
    with pytest.raises(ExpressionError, match="more than 2 elements"):
        value_of("answer | map('upper')", {"answer": "abc"})
