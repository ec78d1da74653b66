"""A JSON document is walked: same values, same lines, whatever its size."""

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.records.errors import UsageError
from ci_eval.text import json_stream, json_text
from ci_eval.text.json_stream import JsonFile, walk_lines
from ci_eval.text.json_text import MAX_DEPTH
from ci_eval.text.yaml_files import MAX_WALKED

CASES = frozenset({"cases"})


@pytest.fixture
def small_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every value lie across the border of a window."""
    monkeypatch.setattr(json_stream, "_CHUNK", 3)


def file(folder: Path, text: str | bytes) -> JsonFile:
    path = folder / "a.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return JsonFile(path, shown="a.json")


def walked(folder: Path, text: str | bytes) -> list[tuple[str, Any, int]]:
    return [
        (name, "begin" if element.is_begin else element.value, element.line)
        for name, element in file(folder, text).walk(CASES)
    ]


def refusal(folder: Path, text: str | bytes) -> str:
    with pytest.raises(UsageError) as caught:
        walked(folder, text)
    return str(caught.value)


# --- Walking --------------------------------------------------------------------------------


def test_a_list_comes_element_by_element(tmp_path: Path) -> None:
    assert walked(tmp_path, '[1,\n {"a": 2},\n\n "x"]') == [
        ("", 1, 1),
        ("", {"a": 2}, 2),
        ("", "x", 4),
    ]


def test_an_object_comes_member_by_member(tmp_path: Path) -> None:
    assert walked(tmp_path, '{"a": [1],\n "b":\n 2}') == [("a", [1], 1), ("b", 2, 3)]


def test_the_arrays_that_are_named_come_element_by_element(tmp_path: Path) -> None:
    assert walked(tmp_path, '{"a": 1,\n"cases": [\n{},\n{}],\n"b": 2}') == [
        ("a", 1, 1),
        ("cases", "begin", 2),
        ("cases", {}, 3),
        ("cases", {}, 4),
        ("b", 2, 5),
    ]


def test_an_empty_array_is_there_and_null_is_none(tmp_path: Path) -> None:
    assert walked(tmp_path, '{"cases": [ ]}') == [("cases", "begin", 1)]
    assert walked(tmp_path, '{"cases": null}') == [("cases", None, 1)]
    assert walked(tmp_path, "{ }") == []
    assert walked(tmp_path, "[ ]") == []


def test_a_byte_order_mark_and_windows_lines_change_nothing(tmp_path: Path) -> None:
    assert walked(tmp_path, b"\xef\xbb\xbf[1,\r\n2]\r\n") == [("", 1, 1), ("", 2, 2)]


@given(
    st.lists(
        st.floats(allow_nan=False, allow_infinity=False)
        | st.integers()
        | st.text(max_size=9)
        | st.dictionaries(st.text(max_size=3), st.lists(st.integers(), max_size=3), max_size=3)
    ),
    st.integers(1, 9),
)
def test_any_window_shows_the_same(
    tmp_path_factory: pytest.TempPathFactory, values: list[Any], window: int
) -> None:
    folder = tmp_path_factory.mktemp("walk")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "_CHUNK", window)
        # A name that is too long to be one of the texts.
        text = json.dumps({"cases": values, "afterwards": values}, indent=1)
        found = walked(folder, text)
    assert [value for name, value, _ in found if name == "cases"] == ["begin", *values]
    assert found[-1][:2] == ("afterwards", values)
    assert found[-1][2] == text[: text.index('"afterwards"')].count("\n") + 1


@pytest.mark.usefixtures("small_window")
@pytest.mark.parametrize(
    "text", ["[12345.25]", "[-1.5e+3, 1E5]", '["\\ud83d\\ude00"]', "[false]", "[1.5]", "[ -1]"]
)
def test_a_number_or_a_word_may_go_on_behind_the_window(tmp_path: Path, text: str) -> None:
    assert [value for _, value, _ in walked(tmp_path, text)] == json.loads(text)


# --- Lines ----------------------------------------------------------------------------------


def test_an_element_knows_the_lines_inside_it(tmp_path: Path) -> None:
    text = '[{"a": 1},\n{"a": 1,\n "b": [\n  {"c": 1}]}]'
    *_, (_, element) = file(tmp_path, text).walk(frozenset())
    assert element.line == 2
    assert element.line_of(()) == 2
    assert element.line_of(("a",)) == 2
    assert element.line_of(("b",)) == 3
    assert element.line_of(("b", 0, "c")) == 4
    assert element.line_of(("b", 0, "nothing")) == 4


@pytest.mark.usefixtures("small_window")
def test_lines_are_counted_across_windows(tmp_path: Path) -> None:
    text = "[" + ",".join(f'\n{{"a":\n {n}}}' for n in range(50)) + "]"
    assert [line for _, _, line in walked(tmp_path, text)] == [2 + 2 * n for n in range(50)]


# --- Refusals -------------------------------------------------------------------------------

WRONG = [
    ("", "a.json:1: is empty"),
    (" \n ", "a.json:2: is empty"),
    ("1", "a.json:1: is neither a JSON object nor a list"),
    ("x", "a.json:1: is neither a JSON object nor a list"),
    ("[1,\n2", "a.json:2: ends unexpectedly"),
    ("[1,\n]", "a.json:2: is not JSON: expecting value"),
    ("[1\n2]", "a.json:2: expected ',' or ']', found '2'"),
    ('{"a": 1\n]', "a.json:2: expected ',' or '}', found ']'"),
    ('{"a"\n1}', "a.json:2: expected ':', found '1'"),
    ("{a: 1}", "a.json:1: expected a name in double quotes"),
    ('{"a": 1,}', "a.json:1: expected a name in double quotes"),
    ("[]\n[]", "a.json:2: has extra text after the end"),
    ('{"a": 1}\nx', "a.json:2: has extra text after the end"),
    ('[1,\n"a', "a.json:2: is not JSON: unterminated string"),
    ('[1,\n"a\n"]', "a.json:2: is not JSON: invalid control character"),
    ('[{"a":\n1,\n"b" 2}]', "a.json:3: is not JSON: expecting ':' delimiter"),
    ("[1,\n[2, NaN]]", "a.json:2: is not JSON: NaN is not a number"),
    ("[1,\n[2,\n 1e999]]", "a.json:3: the number 1e999 is too large"),
    ('[1,\n["a",\n "\\ud800"]]', "a.json:3: \\ud800 is an unpaired surrogate (half a character)"),
    ("[1,\n" + "[" * 100_000, "a.json:2: is nested too deeply"),
    (b"[1,\n\xff]", "a.json:2: byte 0xff is not UTF-8"),
    (b'["a",\n"\xe2', "a.json:2: byte 0xe2 is not UTF-8"),
    ("[]".encode("utf-16"), "a.json:1: byte 0xff is not UTF-8; the file seems to be UTF-16"),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_what_is_wrong_is_refused_with_its_line(
    tmp_path: Path, text: str | bytes, said: str
) -> None:
    assert refusal(tmp_path, text) == said


@pytest.mark.usefixtures("small_window")
@pytest.mark.parametrize(("text", "said"), WRONG)
def test_a_small_window_finds_the_same_wrong(tmp_path: Path, text: str | bytes, said: str) -> None:
    assert refusal(tmp_path, text) == said


def test_what_is_right_is_there_before_what_is_wrong(tmp_path: Path) -> None:
    elements = file(tmp_path, "[1, 2, x]").walk(CASES)
    assert [next(elements)[1].value, next(elements)[1].value] == [1, 2]
    with pytest.raises(UsageError):
        next(elements)


def test_nesting_is_read_to_the_limit_and_refused_beyond_it(tmp_path: Path) -> None:
    for depth, is_read in ((MAX_DEPTH, True), (MAX_DEPTH + 1, False), (900, False)):
        text = "[" + "[" * depth + "]" * depth + "]"
        if is_read:
            assert len(walked(tmp_path, text)) == 1
        else:
            assert refusal(tmp_path, text) == "a.json:1: is nested too deeply"


def test_a_file_of_ours_may_nest_deeper(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[" * (MAX_DEPTH + 3) + "]" * (MAX_DEPTH + 3))
    deeper = JsonFile(tmp_path / "a.json", shown="a.json", max_depth=MAX_DEPTH + 2)
    assert len(list(deeper.walk(CASES))) == 1


def test_an_element_that_is_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "MAX_ELEMENT_CHARS", 2 << 20)
    said = refusal(tmp_path, '[1,\n"' + "x" * (5 << 20) + '"]')
    assert said == "a.json:2: contains a value larger than 2 MiB"


def test_an_element_of_too_many_values_is_refused_before_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_text, "MAX_VALUES", 300_000)
    said = refusal(tmp_path, "[1,\n[" + "0, " * (2 << 20))
    assert said == "a.json:2: contains more than 300,000 values, too many for memory"


@pytest.mark.slow
def test_any_number_of_elements_may_hold_so_many_values_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_text, "MAX_VALUES", 300_000)
    long = f'"{"x" * (3 << 20)}"'  # so that much of what follows is in the window already
    (tmp_path / "a.json").write_text(f"[{long}, {', '.join(['[0, 0]'] * 300_000)}]")
    assert sum(1 for _ in JsonFile(tmp_path / "a.json", shown="a.json").walk(CASES)) == 300_001


def test_a_document_that_is_too_long_is_refused_and_not_walked(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.touch()
    os.truncate(path, MAX_WALKED + 1)
    with pytest.raises(UsageError) as caught:
        next(JsonFile(path, shown="a.json").walk(CASES))
    assert str(caught.value) == ("a.json: is larger than 4096 MiB, the limit for this kind of file")


def test_what_is_wrong_at_the_beginning_is_found_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "MAX_ELEMENT_CHARS", 2 << 20)
    text = '[{"a": oops, "b": "' + "x" * (5 << 20) + '"}]'
    assert refusal(tmp_path, text) == "a.json:1: is not JSON: expecting value"


# --- The beginning --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("", None),
        ("5", 5),
        ('"x"', "x"),
        ("[]", []),
        ("[1, 2, 3]", [1]),
        ("[1, x]", [1]),
        ("{}", {}),
        (
            '{"a": 1, "cases": [{"b": [1, 2]}, 5], "c": 2}',
            {"a": 1, "cases": [{"b": [1, 2]}], "c": 2},
        ),
        ('{"cases": [1, x], "c": 2}', {"cases": [1]}),
        ('{"cases": [], "c": x}', {"cases": []}),
    ],
)
def test_the_beginning_tells_what_a_document_is(tmp_path: Path, text: str, head: object) -> None:
    assert file(tmp_path, text).head() == head


def test_the_beginning_must_be_right(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^a.json:1: is not JSON: expecting value$"):
        file(tmp_path, '{"a": x, "cases": []}').head()
    with pytest.raises(UsageError, match=r"^a.json:1: is not JSON: expecting value$"):
        file(tmp_path, "[x]").head()


def test_the_beginning_of_a_long_list_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "_CHUNK", 100)
    text = json.dumps({"cases": list(range(1000)), "late": 1})
    assert file(tmp_path, text).head() == {"cases": [0]}


def test_the_file_must_be_there(tmp_path: Path) -> None:
    missing = JsonFile(tmp_path / "b.json", shown="b.json")
    with pytest.raises(UsageError, match=r"^b.json: no such file$"):
        missing.head()
    with pytest.raises(UsageError, match=r"^b.json: no such file$"):
        list(missing.walk(CASES))


# --- Large files ----------------------------------------------------------------------------

CASE = b'{"eval_id": "x", "conversation": ["' + b"y" * 500 + b'"]}'


def peak_of_refusing_or_walking(path: Path) -> tuple[int, int, str]:
    """Return the elements, the most memory that was held, and what was said."""
    tracemalloc.start()
    count, said = 0, ""
    try:
        for _ in JsonFile(path, shown="a.json").walk(CASES):
            count += 1
    except UsageError as exc:
        said = str(exc)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return count, peak, said


def test_a_long_file_needs_the_memory_of_a_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "_CHUNK", 10_000)
    path = tmp_path / "a.json"
    path.write_bytes(b'{"cases": [' + b",\n".join([CASE] * 4000) + b"]}")
    assert path.stat().st_size > 2_000_000
    count, peak, said = peak_of_refusing_or_walking(path)
    assert (count, said) == (4001, "")
    assert peak < 200_000


@pytest.mark.skipif("CI_EVAL_LARGE" not in os.environ, reason="CI_EVAL_LARGE=1 writes 200 MB files")
@pytest.mark.parametrize(
    ("parts", "most", "said"),
    [
        ((b'{"cases": [' + CASE, b",\n" + CASE, b"]}"), 10, ""),
        ((b'["', b"x" * 1000, b'"]'), 300, "contains a value larger than 64 MiB"),
        ((b"", b"\xff" * 1000, b""), 10, "byte 0xff is not UTF-8"),
        ((b"", b"x" * 1000, b""), 10, "is neither a JSON object nor a list"),
        ((b"[", b"[" * 1000, b""), 10, "is nested too deeply"),
        ((b"[1", b',"' + b"x" * 1000 + b'"', b"\xff"), 10, "byte 0xff is not UTF-8"),
    ],
)
def test_a_huge_file_needs_little_memory(
    tmp_path: Path, parts: tuple[bytes, bytes, bytes], most: int, said: str
) -> None:
    begin, piece, end = parts
    path = tmp_path / "a.json"
    with path.open("wb") as out:
        out.write(begin)
        for _ in range((200 << 20) // len(piece)):
            out.write(piece)
        out.write(end)
    _, peak, found = peak_of_refusing_or_walking(path)
    assert found == (f"a.json:1: {said}" if said else "")
    assert peak < most << 20


# --- Lines ------------------------------------------------------------------------------------


def lines(folder: Path, text: str) -> tuple[list[tuple[Any, int]], list[tuple[str, int]]]:
    """Return the values with their lines, and what is wrong with the others."""
    path = folder / "a.jsonl"
    path.write_bytes(text.encode())
    wrong: list[tuple[str, int]] = []
    walked = walk_lines(
        path, shown="a.jsonl", refuse=lambda message, line: wrong.append((message, line))
    )
    return [(each.value, each.line) for each in walked], wrong


def test_each_line_is_a_value_and_what_is_wrong_with_one_spoils_no_other(tmp_path: Path) -> None:
    values, wrong = lines(tmp_path, '\ufeff{"a": 1}\r\n\n  \n{\n5\n[1] x')
    assert values == [({"a": 1}, 1), (5, 5)]
    assert [line for _, line in wrong] == [4, 6]


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "MAX_ELEMENT_CHARS", 10)
    assert lines(tmp_path, "[1, 2, 3]\n")[0] == [([1, 2, 3], 1)]
    with pytest.raises(UsageError, match=r"^a\.jsonl:2: has a line longer than 0 MiB$"):
        lines(tmp_path, "1\n[1, 2, 3, 4]\n")
