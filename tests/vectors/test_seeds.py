"""The eval configs that documents show are read as they stand there.

The documents are looked for in the folder that the environment variable CI_EVAL_SEEDS names.
What each block states is read a second time here, by far simpler means, and compared.
"""

import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ci_eval.cli.validate_command import check
from ci_eval.config.criteria_section import read_criteria
from ci_eval.runtime.context import RunContext
from ci_eval.text.yaml_files import parse_yaml

SEEDS = os.environ.get("CI_EVAL_SEEDS")
BLOCK = re.compile(r'```\w*\n(?P<fenced>.*?)```|"""\n(?P<quoted>.*?)"""', re.DOTALL)
COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*')
COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])')


class Stated(NamedTuple):
    """An eval config in a document."""

    place: str
    name: str
    """What a user would call the file: code in a notebook writes `eval_config.json`."""
    text: str
    criteria: dict[str, Any]
    behind: int | None
    """The line of what follows the end; `None` where nothing does."""
    odd: set[int]
    """The lines with what JSON does not know: comments, and commas before a bracket."""


def stated(place: str, name: str, text: str) -> Stated:
    bare = COMMENT.sub(r"\1", text)
    odd = lines_of(COMMENT, text) | lines_of(COMMA, bare)
    plain = COMMA.sub(r"\1", bare)
    value, end = json.JSONDecoder().raw_decode(plain)
    rest = plain[end:].lstrip()
    behind = plain[: len(plain) - len(rest)].count("\n") + 1 if rest else None
    return Stated(place, name, text, value["criteria"], behind, odd)


def lines_of(pattern: re.Pattern[str], text: str) -> set[int]:
    """Return the lines on which `pattern` finds something that is no string."""
    return {
        text.count("\n", 0, found.start()) + 1
        for found in pattern.finditer(text)
        if found[1] is None
    }


def documented() -> list[Stated]:
    found = []
    for path in sorted(Path(SEEDS).glob("*.txt")) if SEEDS else ():
        document = path.read_text(encoding="utf-8")
        for block in BLOCK.finditer(document):
            text = block["fenced"] or block["quoted"] or ""
            if '"criteria"' in text:
                line = document.count("\n", 0, block.start()) + 1
                name = "test_config.json" if block["fenced"] else "eval_config.json"
                found.append(stated(f"{path.name[:3]}:{line}", name, text))
    return found


ALL = documented()
SOUND = [pytest.param(each, id=each.place) for each in ALL if each.behind is None]
BROKEN = [pytest.param(each, id=each.place) for each in ALL if each.behind is not None]


def context(folder: Path) -> RunContext:
    return RunContext(env={}, root=folder, now=lambda: 0.0)


def written(folder: Path, example: Stated) -> Path:
    path = folder / example.name
    path.write_text(example.text, encoding="utf-8")
    return path


@pytest.mark.skipif(not SEEDS, reason="CI_EVAL_SEEDS names no folder")
def test_every_example_is_found():
    assert (len(SOUND), len(BROKEN)) == (25, 2)


@pytest.mark.parametrize("example", SOUND)
def test_an_example_is_valid_by_itself(example, tmp_path):
    found = check(str(written(tmp_path, example)), lambda path: context(path.parent))

    assert found.kind == "eval_config"
    assert [problem for problem in found.problems if problem.severity == "error"] == []
    # ADK takes no JSON with comments; whoever copies the example learns it.
    assert {problem.line for problem in found.problems} == example.odd


@pytest.mark.parametrize("example", SOUND)
def test_a_configuration_takes_from_an_example_what_it_states(example, tmp_path):
    written(tmp_path, example)
    document = parse_yaml(f"criteria: {{from: {example.name}}}", shown="ci-eval.yaml")
    read = read_criteria(document, dialect="adk", context=context(tmp_path))

    assert [problem for problem in read.problems if problem.severity == "error"] == []
    assert {name: each.type_name for name, each in read.found.items()} == {
        name: f"adk/{name}" for name in example.criteria
    }
    assert {
        name: each.model_dump(mode="json", exclude_unset=True) for name, each in read.found.items()
    } == {
        name: spec if isinstance(spec, dict) else {"threshold": spec}
        for name, spec in example.criteria.items()
    }


@pytest.mark.parametrize("example", BROKEN)
def test_a_brace_too_many_is_named_with_its_line(example, tmp_path):
    path = written(tmp_path, example)
    found = check(str(path), lambda path: context(path.parent))
    document = parse_yaml(f"criteria: {{from: {example.name}}}", shown="ci-eval.yaml")
    read = read_criteria(document, dialect="adk", context=context(tmp_path))

    assert found.kind == "eval_config"
    assert [str(problem) for problem in found.problems] == [
        f"{path}:{example.behind}: has extra text after the end"
    ]
    assert [str(problem) for problem in read.problems] == [
        f"ci-eval.yaml:1: criteria.from: {example.name} cannot be read",
        f"{example.name}:{example.behind}: has extra text after the end",
    ]
