"""An evalset of any format is opened by the one reader that understands it."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.project import GREETS

from ci_eval.config.open_evalset import open_evalset, reader_of
from ci_eval.plugins import points
from ci_eval.plugins.plugin import Syntax
from ci_eval.records.errors import EvalSetError

LEGACY = [{"query": "Hi", "reference": "Hello", "expected_tool_use": []}]
AGENTFLOW = {
    "eval_set_id": "s",
    "eval_cases": [
        {
            "eval_id": "a",
            "conversation": [
                {
                    "user_content": {"role": "user", "content": "Hi"},
                    "expected_final_response": {"role": "assistant", "content": "Hello"},
                }
            ],
        }
    ],
}


def opened(folder: Path, value: Any, name: str = "a.json") -> tuple[str, list[str]]:
    """Return the format of an evalset, and the names of its cases."""
    text = value if isinstance(value, str) else json.dumps(value)
    (folder / name).write_text(text)
    found = open_evalset(folder / name, shown=name)
    assert found.facts.cases == len(list(found.cases()))
    return found.header.format, [case.eval_id for case in found.cases()]


@pytest.mark.parametrize(
    ("value", "format_", "cases"),
    [
        ({"eval_set_id": "s", "eval_cases": [GREETS]}, "adk", ["greets"]),
        ({"evalSetId": "s", "evalCases": [GREETS]}, "adk", ["greets"]),
        ({"eval_set_id": "s", "eval_cases": []}, "adk", []),
        (LEGACY, "adk_flat", ["a.json"]),
        (AGENTFLOW, "agentflow", ["a"]),
    ],
)
def test_the_content_tells_the_format(
    tmp_path: Path, value: Any, format_: str, cases: list[str]
) -> None:
    assert opened(tmp_path, value) == (format_, cases)


def test_an_evalset_of_cases_may_be_of_any_syntax(tmp_path: Path) -> None:
    for name, text in (
        ("a.json", '{"cases": [{"id": "a", "prompt": "Hi", "expected": "Hello"}]}'),
        ("a.jsonl", '{"id": "a", "prompt": "Hi", "expected": "Hello"}\n'),
        ("a.yaml", "cases:\n- {id: a, prompt: Hi, expected: Hello}\n"),
        ("a.csv", "id,prompt,expected\na,Hi,Hello\n"),
    ):
        assert opened(tmp_path, text, name) == ("cases", ["a"])


def test_a_reader_is_not_asked_in_a_syntax_that_it_does_not_have() -> None:
    head = {"eval_set_id": "s", "eval_cases": [GREETS]}
    assert reader_of(head) is points.evalset["adk"]
    others: list[Syntax] = ["jsonl", "csv"]
    for syntax in others:
        assert reader_of(head, syntax) is not points.evalset["adk"]


@pytest.mark.parametrize("head", [None, {}, 5, "x", [5], {"scenarios": []}, {"criteria": {}}])
def test_what_no_reader_knows_has_none(head: Any) -> None:
    assert reader_of(head) is None


def test_what_is_no_evalset_is_refused_with_what_it_is(tmp_path: Path) -> None:
    known = ", ".join(points.evalset)
    with pytest.raises(EvalSetError) as caught:
        opened(tmp_path, {"criteria": {}, "judge": {}})
    assert str(caught.value).startswith(f"a.json:1: is not a known evalset format ({known}): ")


def test_what_is_wrong_in_a_file_of_a_known_format_is_not_tried_as_another(tmp_path: Path) -> None:
    with pytest.raises(EvalSetError) as caught:
        opened(tmp_path, {"eval_set_id": "s", "eval_cases": [{"eval_id": 5}]})
    (problem,) = caught.value.problems
    assert problem.message == "expected text, found 5"
