"""JSON that is held whole: its value, its lines, and what is refused."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.records.errors import UsageError
from ci_eval.text.json_text import (
    MAX_DEPTH,
    MAX_VALUES,
    JsonText,
    NotJsonError,
    Places,
    parse_json,
    parse_relaxed,
    parse_strict,
)

values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def refusal(text: str | bytes) -> tuple[str, int]:
    with pytest.raises(NotJsonError) as caught:
        parse_json(text)
    return str(caught.value), caught.value.position


def nested(depth: int, *, opening: str = '{"a":', closing: str = "}") -> str:
    return opening * depth + "1" + closing * depth


# --- Values ---------------------------------------------------------------------------------


@given(values, st.booleans())
def test_what_python_writes_is_read(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert parse_json(text) == value
    assert parse_json(f" \r\n\t{text}\n".encode()) == value


def test_a_byte_order_mark_is_passed_over() -> None:
    assert parse_json(b'\xef\xbb\xbf{"a":1}') == {"a": 1}


@pytest.mark.parametrize("sign", ["", "-"])
def test_whole_numbers_are_read_as_long_as_a_float_can_hold_them(sign: str) -> None:
    longest = sign + "9" * 308
    assert math.isfinite(float(parse_json(longest)))
    assert refusal(f"[1, {longest}9]") == (f"the number {longest[:20]} is too large", 4)


@pytest.mark.parametrize("before", range(80))
def test_a_number_with_too_many_digits_is_refused_wherever_it_stands(before: int) -> None:
    text = f'["{"x" * before}", {"1" * 309}, "{"x" * 200}"]'
    assert refusal(text) == (f"the number {'1' * 20} is too large", before + 5)


def test_more_values_than_memory_should_hold_are_refused_before_they_are_made() -> None:
    signs = "[" + "," * MAX_VALUES  # no JSON either, which nobody gets to see
    assert refusal(signs) == ("contains more than 5,000,000 values, too many for memory", 0)
    assert parse_json(json.dumps("," * MAX_VALUES)[:-2] + '"') == "," * (MAX_VALUES - 1)


def test_the_last_of_two_equal_keys_counts_where_nobody_wrote_them_by_hand() -> None:
    assert parse_json('{"a": 1, "a": 2}') == {"a": 2}


@pytest.mark.parametrize(
    ("text", "key", "position"),
    [
        ('{"a": 1, "a": 2}', "a", 9),
        ('[{"b": {"a": 1}, "a": {"x": "}{", "a" : [{"a": 1}], "\\u0061": 2}}]', "a", 52),
        ('{"\\"": "\\"\\"{", "x": {"é": 1,\n"é": 2}}', "é", 30),
    ],
)
def test_duplicate_keys_of_what_people_write_are_refused(
    text: str, key: str, position: int
) -> None:
    with pytest.raises(NotJsonError, match=f"^duplicate key '{key}'$") as caught:
        parse_json(text, unique=True)
    assert caught.value.position == position
    assert parse_json(text)


@given(st.recursive(st.text('a"\\{}:'), lambda x: st.dictionaries(st.text('a"\\{}:'), x)))
def test_what_has_no_duplicate_keys_is_unique(value: Any) -> None:
    assert parse_json(json.dumps(value), unique=True) == value


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("", "is not JSON: expecting value", 0),
        ("{'a': 1}", "is not JSON: expecting property name enclosed in double quotes", 1),
        ('{"a" 1}', "is not JSON: expecting ':' delimiter", 5),
        ('["a', "is not JSON: unterminated string", 1),
        ('["a\nb"]', "is not JSON: invalid control character", 3),
        ("[1] 2", "has extra text after the end", 4),
        ('["NaN", NaN]', "is not JSON: NaN is not a number", 8),
        ("[1, -Infinity]", "is not JSON: -Infinity is not a number", 4),
        ("[1e5, -1e999]", "the number -1e999 is too large", 6),
        ("[1.5, 9.9e9999, x]", "the number 9.9e9999 is too large", 6),
        (f"[1, {'9' * 4301}]", f"the number {'9' * 20} is too large", 4),
        (
            '["\\ud83d\\ude00", "\\ud83d"]',
            "\\ud83d is an unpaired surrogate (half a character)",
            18,
        ),
        ('["\\\\ud83d \\uDE00"]', "\\uDE00 is an unpaired surrogate (half a character)", 10),
        ('["\\ud83d\\ud83d\\ude00"]', "\\ud83d is an unpaired surrogate (half a character)", 2),
        ('["\\ud83d\\n\\ude00"]', "\\ud83d is an unpaired surrogate (half a character)", 2),
        ('{"\\ude00": 1}', "\\ude00 is an unpaired surrogate (half a character)", 2),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(text: str, message: str, position: int) -> None:
    assert refusal(text) == (message, position)


@pytest.mark.parametrize("text", ['["\\ud83d\\ude00"]', '["\\\\ud83d"]', '["\\ud7ff\\ue000"]'])
def test_whole_characters_may_be_written_as_escapes(text: str) -> None:
    assert parse_json(text) == json.loads(text)


def test_bytes_that_are_not_utf8_are_refused() -> None:
    assert refusal(b'["\xff"]') == ("byte 0xff is not UTF-8", 2)


@pytest.mark.parametrize(("opening", "closing"), [('{"a":', "}"), ("[", "]"), ('[{"a":', "}]")])
def test_nesting_is_read_to_the_limit_and_refused_beyond_it(opening: str, closing: str) -> None:
    levels = opening.count("{") + opening.count("[")
    most = MAX_DEPTH // levels
    parse_json(nested(most, opening=opening, closing=closing))
    for depth in (most + 1, 900, 100_000):
        message, _ = refusal(nested(depth, opening=opening, closing=closing))
        assert message == "is nested too deeply"
    message, _ = refusal(opening * 100_000)
    assert message == "is nested too deeply"


def test_many_values_side_by_side_are_not_deep() -> None:
    assert len(parse_json("[" + ",".join(["[{}]"] * 1000) + "]")) == 1000


def test_our_own_files_may_nest_deeper() -> None:
    assert parse_json(nested(MAX_DEPTH + 5), max_depth=MAX_DEPTH + 5)


# --- Lines ----------------------------------------------------------------------------------

LINES = """
{
  "a": [1,
    {"b":
      2}, [],
  "x"],
  "c": "d",  "e": {"a":
  [
   3]}
}
"""


@pytest.mark.parametrize(
    ("loc", "line"),
    [
        ((), 2),
        (("a",), 3),
        (("a", 0), 3),
        (("a", 1), 4),
        (("a", 1, "b"), 4),  # where its name is
        (("a", 2), 5),
        (("a", 3), 6),
        (("c",), 7),
        (("e",), 7),
        (("e", "a"), 8),  # a list stands where it begins
        (("e", "a", 0), 9),
        (("e", "nothing", "further"), 7),
        (("a", 9), 3),
        (("a", "word"), 3),
        (("c", "further"), 7),
    ],
)
def test_every_value_has_its_line(loc: tuple[str | int, ...], line: int) -> None:
    document = parse_strict(LINES, shown="a.json")
    assert document.line(loc) == line
    assert document.line(loc) == line  # from what was remembered, too


def test_of_two_equal_keys_the_one_that_counts_is_named() -> None:
    assert Places('{"a": 1,\n"a": 2}').line(("a",)) == 2


def test_lines_end_at_line_feeds_only() -> None:
    assert Places('["\u2028\u0085",\r\n1]').line((1,)) == 2


def test_nothing_has_a_line_too() -> None:
    assert Places("").line(("a",)) == 1


def test_a_problem_names_file_line_and_path() -> None:
    document = JsonText(json.loads(LINES), "a.json", LINES)
    assert str(document.problem("is odd", ("a", 1, "b"))) == "a.json:4: a[1].b: is odd"
    assert document.problem("is odd", severity="warning").severity == "warning"


@given(values)
def test_every_way_into_a_value_leads_to_a_line(value: Any) -> None:
    text = json.dumps(value, indent=1)
    places = Places(text)
    for loc in ways(value):
        assert 1 <= places.line(loc) <= text.count("\n") + 1


def ways(value: Any) -> list[list[str | int]]:
    found: list[list[str | int]] = [[]]
    steps: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        steps = list(value.items())
    elif isinstance(value, list):
        steps = list(enumerate(value))
    return found + [[step, *way] for step, inner in steps for way in ways(inner)]


# --- JSON as people write it ----------------------------------------------------------------


def relaxed(text: str) -> tuple[Any, list[str]]:
    document, oddities = parse_relaxed(text, shown="c.json")
    return document.value, list(map(str, oddities))


def usage_error(action: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as caught:
        action()
    return str(caught.value)


def test_json_without_oddities_is_read_without_a_word() -> None:
    assert relaxed('{"a": "//b, }"}') == ({"a": "//b, }"}, [])


def test_comments_and_trailing_commas_are_read_with_a_warning_each() -> None:
    text = """\
// first
{
  "a": [1, 2, /* so
  long */ ],  # here
  "b": "# // /* ,] \\" ,}", // there
}
"""
    value, said = relaxed(text)
    assert value == {"a": [1, 2], "b": '# // /* ,] " ,}'}
    assert said == [
        "c.json:1: a comment, which ADK does not accept in JSON",
        "c.json:3: a comment, which ADK does not accept in JSON",
        "c.json:3: a trailing comma, which ADK does not accept in JSON",
        "c.json:4: a comment, which ADK does not accept in JSON",
        "c.json:5: a comment, which ADK does not accept in JSON",
        "c.json:5: a trailing comma, which ADK does not accept in JSON",
    ]


def test_oddities_leave_every_value_on_its_line() -> None:
    document, oddities = parse_relaxed('{ /*\n\n*/ "a": 1,\n}', shown="c.json")
    assert document.line(("a",)) == 3
    assert [problem.severity for problem in oddities] == ["warning", "warning"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "c.json:1: is not JSON: expecting value"),
        ('{"a": 1}}', "c.json:1: has extra text after the end"),
        ('{"a":\n /* no end', "c.json:2: is not JSON: expecting value"),
        ('// x\n{"a": "b', "c.json:2: is not JSON: unterminated string"),
        ('{"a": 1 // x\n "b": 2}', "c.json:2: is not JSON: expecting ',' delimiter"),
    ],
)
def test_what_is_no_json_without_its_oddities_either_is_refused(text: str, said: str) -> None:
    assert usage_error(lambda: parse_relaxed(text, shown="c.json")) == said


@pytest.mark.parametrize("text", ['"' + '\\"' * 200_000, "/*" * 200_000, "," * 400_000])
def test_no_text_takes_long_to_refuse(text: str) -> None:
    usage_error(lambda: parse_relaxed(text, shown="c.json"))


def test_strict_json_takes_no_comments() -> None:
    said = usage_error(lambda: parse_strict("{}\n// x", shown="c.json"))
    assert said == "c.json:2: has extra text after the end"
