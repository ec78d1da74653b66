"""What pydantic finds wrong is said in the words of the file."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from ci_eval.config.config_schema import ConfigFile
from ci_eval.records.cases import EvalCase, Record
from ci_eval.text.validation_messages import describe, explain


def said(model: type[BaseModel], value: object) -> list[tuple[list[int | str], str]]:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(value)
    return [(list(loc), message) for loc, message in explain(caught.value, model)]


class Inner(Record):
    size: int = 1
    hidden: int = Field(default=1, exclude=True)


class Example(Record):
    text: str = ""
    whole: int = 0
    number: float = 0
    truth: bool = False
    words: tuple[str, ...] = ()
    pair: tuple[str, int] = ("", 0)
    table: dict[str, int] = Field(default_factory=dict)
    inner: Inner = Inner()
    mode: Literal["on", "off"] = "on"
    share: float = Field(default=0.5, ge=0, le=1)
    count: int = Field(default=1, gt=0, lt=10)
    name: str = Field(default="x", min_length=1, max_length=3)
    some: tuple[str, ...] = Field(default=("x",), min_length=1, max_length=2)
    either: Annotated[int, BeforeValidator(lambda value: value)] | Inner = 1
    of: Annotated[str, Field(pattern="^a$")] = "a"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("text", 5, "expected text, found 5"),
        ("text", None, "expected text, found nothing"),
        ("whole", "x", "expected a whole number, found 'x'"),
        ("whole", 1.5, "expected a whole number, found 1.5"),
        ("whole", [], "expected a whole number, found a list"),
        ("number", "much", "expected a number, found 'much'"),
        ("number", float("inf"), "expected a finite number, found inf"),
        ("truth", "maybe", "expected true or false, found 'maybe'"),
        ("truth", {}, "expected true or false, found an object"),
        ("words", "x", "expected a list, found 'x'"),
        ("table", [], "expected an object, found a list"),
        ("inner", True, "expected an object, found true"),
        ("mode", "of", "expected 'on' or 'off', found 'of'"),
        ("share", -1, "must be at least 0, found -1"),
        ("share", 1.5, "must be at most 1, found 1.5"),
        ("count", 0, "must be more than 0, found 0"),
        ("count", 10, "must be less than 10, found 10"),
        ("name", "", "must not be empty"),
        ("name", "long", "must not be longer than 3 characters"),
        ("some", [], "must not be empty"),
        ("some", ["a", "b", "c"], "expected at most 2 elements, found 3"),
        ("pair", ["a", 1, 2], "expected at most 2 elements, found 3"),
        ("pair", ["a"], "has too few elements"),
        ("of", "b", "string should match pattern '^a$'"),
    ],
)
def test_a_wrong_value_is_named_with_what_was_expected(
    field: str, value: object, message: str
) -> None:
    assert said(Example, {field: value}) == [([field], message)]


def test_an_unknown_key_is_named_with_what_was_meant() -> None:
    assert said(Example, {"wholes": 1}) == [(["wholes"], "unknown key. Did you mean 'whole'?")]
    assert said(Example, {"inner": {"sise": 1}}) == [
        (["inner", "sise"], "unknown key. Did you mean 'size'?")
    ]


def test_a_key_of_our_own_is_never_suggested() -> None:
    assert said(Inner, {"hiden": 1}) == [(["hiden"], "unknown key; known: size")]


def test_what_is_missing_is_said_of_the_place_where_it_should_be() -> None:
    turn: dict[str, Any] = {"user_content": {"parts": []}}
    found = said(EvalCase, {"eval_id": "a", "conversation": [turn, {}]})
    assert found == [(["conversation", 1], "'user_content' is missing")]


def test_names_of_pydantic_for_parts_of_unions_are_in_no_place() -> None:
    assert [loc for loc, _ in said(Example, {"either": {"size": "x"}})] == [
        ["either"],
        ["either", "Inner", "size"],
    ]
    turn = {"user_content": {}, "intermediate_data": {"tool_uses": [{"nam": 1}]}}
    assert said(EvalCase, {"eval_id": "a", "conversation": [turn]}) == [
        (
            ["conversation", 0, "intermediate_data", "tool_uses", 0, "nam"],
            "unknown key. Did you mean 'name'?",
        )
    ]


def test_a_union_suggests_the_keys_of_the_part_that_was_meant() -> None:
    data: dict[str, Any] = {"invocationEvents": [], "tool_uses": []}
    turn = {"userContent": {}, "intermediateData": data}
    assert said(EvalCase, {"eval_id": "a", "conversation": [turn]}) == [
        (
            ["conversation", 0, "intermediateData", "tool_uses"],
            "unknown key; known: invocation_events",
        )
    ]


def test_a_key_in_both_spellings_is_not_unknown() -> None:
    turn: dict[str, Any] = {"userContent": {}, "user_content": {}}
    assert said(EvalCase, {"eval_id": "a", "conversation": [turn]}) == [
        (["conversation", 0, "user_content"], "is given twice, in two spellings")
    ]


def test_a_validator_of_ours_speaks_for_itself() -> None:
    assert said(EvalCase, {"eval_id": "a"}) == [
        ([], "needs either 'conversation' or 'conversation_scenario'")
    ]


def test_everything_is_said_at_once() -> None:
    found = said(ConfigFile, {"agents": {}, "run": {"repeats": 0, "timeout": 1}})
    assert sorted(message for _, message in found) == [
        "'evalsets' is missing",
        "must be at least 1, found 0",
        "must not be empty",
        "unknown key. Did you mean 'timeout_s'?",
    ]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("", "an empty text"),
        ("it's", '"it\'s"'),
        ("x" * 40, f"'{'x' * 40}'"),
        ("x" * 41, f"'{'x' * 40}'…"),
        (True, "true"),
        (None, "nothing"),
        (10**4000, "1" + "0" * 39),
        (1.5, "1.5"),
        ([], "a list"),
        ((), "a list"),
        ({}, "an object"),
        (object, "type"),
    ],
)
def test_any_value_can_be_described(value: Any, words: str) -> None:
    assert describe(value) == words
