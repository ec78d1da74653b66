"""The arguments of a call are put together from pieces, each under a path of its own."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.formats.partial_tool_calls import MAX_GAPS, MAX_INDEX, OpenCall, steps
from ci_eval.records.cases import FunctionCall, Part
from ci_eval.records.errors import TrialError
from ci_eval.text.json_text import MAX_DEPTH


def taken(*pieces: Any) -> OpenCall:
    """Return a call that came in pieces."""
    call = OpenCall("c1", place=0)
    for piece in pieces:
        call.take(Part(), FunctionCall(name="f", partial_args=piece))
    return call


def args_of(*given: dict[str, Any]) -> Any:
    """Return the arguments of a call of which each piece brings one."""
    call = taken(*([each] for each in given)).part.function_call
    assert call
    return call.args


# --- Paths ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$.city", ["city"]),
        ("city", ["city"]),
        ("$", []),
        ("$.items[0].name", ["items", 0, "name"]),
        ("$.items[ 12 ][3]", ["items", 12, 3]),
        ("$['a key'].b", ["a key", "b"]),
        ('$["a.b[0]"]', ["a.b[0]"]),
        (r"$['it\'s']", ["it's"]),
        (r'$["a\"b\\c"]', ['a"b\\c']),
        (r"$['line\nbreak\ttab\r\b\f']", ["line\nbreak\ttab\r\b\f"]),
        (r"$['caf\u00e9']", ["café"]),
        (r"$['\ud83d\ude00']", ["😀"]),
        (r"$['\ud83d']", ["\ufffd"]),
        (r"$.a\.b", ["a.b"]),
        ("$['']", [""]),
        ("$.größe", ["größe"]),
    ],
)
def test_a_path_is_read_as_adk_reads_it(path: str, expected: list[str | int]) -> None:
    assert list(steps(path)) == expected


@pytest.mark.parametrize("path", ["$..a", "$.a..b", "$[", "$['a", "$[-1]", "$[x]", "$.", "a]"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(TrialError, match=r"streams an argument with the path .* cannot be read"):
        list(steps(path))


@given(st.text(max_size=30))
def test_any_text_is_a_path_or_is_refused(path: str) -> None:
    with suppress(TrialError):
        assert all(isinstance(each, str | int) for each in steps(path))


@given(st.text(max_size=10))
def test_any_key_can_be_quoted(key: str) -> None:
    quoted = key.replace("\\", "\\\\").replace("'", "\\'")
    assert list(steps(f"$['{quoted}']")) == [key]


# --- Values -----------------------------------------------------------------------------------


def test_values_of_all_kinds_are_put_in_their_places() -> None:
    found = args_of(
        {"jsonPath": "$.text", "stringValue": ""},
        {"jsonPath": "$.number", "numberValue": 3},
        {"jsonPath": "$.no", "boolValue": False},
        {"jsonPath": "$.nothing", "nullValue": "NULL_VALUE"},
        {"jsonPath": "$.left_out"},
        {"stringValue": "nowhere"},
    )
    assert found == {"text": "", "number": 3.0, "no": False, "nothing": None}


def test_a_number_takes_the_place_of_a_text_and_a_text_that_of_a_number() -> None:
    text, number = {"jsonPath": "a", "stringValue": "x"}, {"jsonPath": "a", "numberValue": 1}
    assert args_of(text, number) == {"a": 1.0}
    assert args_of(text, number, text) == {"a": "x"}


def test_what_does_not_fit_to_what_is_there_is_left_out() -> None:
    number = {"jsonPath": "$.a", "numberValue": 1}
    assert args_of(number, {"jsonPath": "$.a.b", "numberValue": 2}) == {"a": 1.0}
    assert args_of(number, {"jsonPath": "$.a[0]", "stringValue": "x"}) == {"a": 1.0}
    assert args_of(number, {"jsonPath": "$[0]", "numberValue": 2}) == {"a": 1.0}


def test_the_last_place_of_a_list_has_a_limit() -> None:
    last = args_of({"jsonPath": f"$.a[{MAX_INDEX}]", "numberValue": 1})["a"]
    assert len(last) == MAX_INDEX + 1
    assert args_of({"jsonPath": f"$.a[{MAX_INDEX + 1}]", "numberValue": 1}) == {"a": []}


# --- Hostile input ----------------------------------------------------------------------------


def test_a_path_without_end_is_refused_at_its_first_step_too_many() -> None:
    path = "$" + ".a" * 10**6
    with pytest.raises(TrialError, match=f"has more than {MAX_DEPTH} steps") as caught:
        args_of({"jsonPath": path, "numberValue": 1})
    assert len(str(caught.value)) < 300

    found = []
    with suppress(TrialError):
        found.extend(steps(path))
    assert found == ["a"] * MAX_DEPTH


def test_lists_of_nothing_but_gaps_are_refused() -> None:
    gaps = [{"jsonPath": f"$.k{number}[{MAX_INDEX}]", "numberValue": 1} for number in range(11)]
    assert MAX_GAPS < 11 * MAX_INDEX
    with pytest.raises(TrialError, match="lists with more than 100,000 empty places"):
        args_of(*gaps)


def test_a_text_in_many_pieces_is_put_together_once() -> None:
    piece = {"jsonPath": "$.a", "stringValue": "x" * 1000}
    call = taken(*[[piece]] * 1000)
    # Put together piece by piece, it would be copied a thousand times.
    growing = call.args["a"]
    assert all(each is piece["stringValue"] for each in growing.pieces)
    assert call.part.function_call
    assert call.part.function_call.args == {"a": "x" * 10**6}


@pytest.mark.parametrize(
    "piece", ["text", [1], [{"jsonPath": 7}], [{"jsonPath": "a", "numberValue": "NaN"}], {"a": 1}]
)
def test_arguments_that_are_none_are_refused(piece: Any) -> None:
    with pytest.raises(TrialError, match="the model streams invalid arguments: ") as caught:
        taken(piece)
    assert caught.value.kind == "protocol"
