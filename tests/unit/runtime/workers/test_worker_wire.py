"""Values travel to the processes of users and back as lines, and arrive as they were."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.runtime.workers.worker_faults import SHOWN_CHARS
from ci_eval.runtime.workers.worker_wire import encode, read_json, shown

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("ab\n"), inner),
)


@given(VALUES)
def test_what_is_sent_is_one_line_and_arrives_as_it_was(value: object) -> None:
    line = encode(value)
    assert "\n" not in line
    assert read_json(line.encode()) == value


@given(st.text(st.characters()))
def test_halves_of_characters_are_replaced_and_nothing_else_is(text: str) -> None:
    # Two halves that meet are a character, in JSON as in UTF-16.
    meant = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert read_json(json.dumps(text).encode()) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"cut \ud83d"', "cut \ufffd"),
        (r'"\uDE00\uD83D"', "\ufffd\ufffd"),
        (r'"\\ud83d \" \\\ud83d"', '\\ud83d " \\\ufffd'),
        (r'{"\udead": ["\ud83d", 1, {"a": null}]}', {"\ufffd": ["\ufffd", 1, {"a": None}]}),
    ],
)
def test_half_a_character_is_replaced_and_whole_ones_are_kept(written: str, meant: Any) -> None:
    found = read_json(written.encode())
    assert found == meant
    assert json.dumps(found, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "line", [b"", b"No.", b"NaN", b"[-Infinity]", b"1e999", b'"\xff"', b"[" * 9999]
)
def test_what_is_not_json_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_json(line)


def test_of_a_value_the_beginning_is_shown() -> None:
    assert shown({"a": 1}) == "{'a': 1}"
    long = shown("x" * 1_000)
    assert (len(long), long[-1]) == (SHOWN_CHARS + 1, "…")
