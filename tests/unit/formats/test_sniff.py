"""How a file begins, in each syntax."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ci_eval.formats.sniff import read_head, syntax_of
from ci_eval.records.errors import EvalSetError


def head(folder: Path, name: str, text: str | bytes) -> Any:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_head(path, shown=name)


def refusal(folder: Path, name: str, text: str | bytes) -> str:
    with pytest.raises(EvalSetError) as caught:
        head(folder, name, text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "syntax"),
    [
        ("a.json", "json"),
        ("a.evalset.json", "json"),
        ("a", "json"),
        ("a.txt", "json"),
        ("a.jsonl", "jsonl"),
        ("a.ndjson", "jsonl"),
        ("a.yaml", "yaml"),
        ("a.yml", "yaml"),
        ("A.YAML", "yaml"),
        ("a.csv", "csv"),
        ("a.json.csv", "csv"),
    ],
)
def test_the_name_of_a_file_promises_a_syntax(name: str, syntax: str) -> None:
    assert syntax_of(Path("folder.csv") / name) == syntax


@pytest.mark.parametrize(
    ("name", "text", "beginning"),
    [
        ("a.json", '{"a": 1, "cases": [1, 2]}', {"a": 1}),
        ("a.json", '[{"a": 1}, {"b": 2}]', [{"a": 1}]),
        ("a.json", "[]", []),
        ("a.jsonl", '\n \n{"a": 1}\nthis is not looked at', [{"a": 1}]),
        ("a.jsonl", "5", [5]),
        ("a.jsonl", "", []),
        ("a.jsonl", "\n\n", []),
        ("a.jsonl", '\ufeff{"a": 1}\r\n', [{"a": 1}]),
        ("a.yaml", "cases:\n- prompt: Hi\n", {"cases": [{"prompt": "Hi"}]}),
        ("a.yml", "", None),
        ("a.csv", "id,prompt\n1,Hi\n", [{"id": "", "prompt": ""}]),
        ("a.csv", '"an ""id""",b', [{'an "id"': "", "b": ""}]),
        ("a.csv", "", []),
        ("a.csv", "\ufeffid\n", [{"id": ""}]),
    ],
)
def test_a_beginning_tells_what_a_file_is(
    tmp_path: Path, name: str, text: str, beginning: Any
) -> None:
    found = head(tmp_path, name, text)
    if isinstance(beginning, dict):
        assert found.items() >= beginning.items()
    else:
        assert found == beginning


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "a.json:1: expected a name in double quotes"),
        ("a.jsonl", '\n{"a" 1}\n', "a.jsonl:2: is not JSON: expecting ':' delimiter"),
        ("a.jsonl", b'{"a": "\xff"}', "a.jsonl:1: byte 0xff is not UTF-8"),
        ("a.yaml", "a: [", "a.yaml:1: is not YAML: "),
        ("a.csv", b"id,\xff\n", "a.csv:1: byte 0xff is not UTF-8"),
        ("a.csv", "x" * 200_000, "a.csv:1: is not CSV: field larger than field limit"),
    ],
)
def test_a_file_that_breaks_its_promise_is_refused_with_the_line(
    tmp_path: Path, name: str, text: str | bytes, message: str
) -> None:
    assert refusal(tmp_path, name, text).startswith(message)


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_what_looks_like_something_else_is_told(tmp_path: Path, name: str) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    assert refusal(tmp_path, name, pointer).startswith(
        f"{name}:1: is not JSON but a Git LFS pointer"
    )


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.yaml", "a.csv"])
def test_a_file_that_is_not_there_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(EvalSetError, match="no such file"):
        read_head(tmp_path / name, shown=name)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.binary(max_size=100), name=st.sampled_from(["a.json", "a.jsonl", "a.yaml", "a.csv"]))
def test_whatever_a_file_holds_it_is_read_or_refused(
    tmp_path: Path, data: bytes, name: str
) -> None:
    try:
        json.dumps(head(tmp_path, name, data), default=str)
    except EvalSetError as exc:
        assert exc.problems  # noqa: PT017  # either way is right
