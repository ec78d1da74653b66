"""The guide to criteria says of each what the criterion says of itself."""

import re

import pytest
from support.markdown_pages import DOCS, links

from ci_eval.cli.init.first_criteria import QUESTIONS
from ci_eval.cli.reference_pages import anchor
from ci_eval.config.criterion_names import AMBIGUOUS
from ci_eval.config.presets import PRESETS, expanded
from ci_eval.plugins import points

PAGE = (DOCS / "which-criterion.md").read_text(encoding="utf-8")
BY_ANCHOR = {f"reference/criteria.md#{anchor(name)}": name for name in points.criterion}


def rows(heading: str) -> list[list[str]]:
    """Return the rows of the first table under a heading, each as its cells."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    (table, *_) = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    lines = table.splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def named(cell: str) -> list[str]:
    """Return the criteria that a cell links to."""
    return [BY_ANCHOR[link] for link in links(cell) if link in BY_ANCHOR]


@pytest.mark.parametrize("row", rows("By question"), ids=lambda row: row[0])
def test_a_question_is_marked_where_its_criteria_ask_a_model(row: list[str]) -> None:
    asks = {points.criterion[name].judged for name in named(row[1])}

    assert asks <= {row[-1].strip("| ") == "judge"}


def test_init_asks_the_first_questions_and_writes_their_criteria() -> None:
    first = rows("By question")[: len(QUESTIONS)]
    assert [row[0] for row in first] == [*QUESTIONS]
    assert [named(row[1])[0] for row in first] == [name for name, _ in QUESTIONS.values()]


def test_every_criterion_of_our_own_answers_a_question() -> None:
    told = {name for row in rows("By question") for name in named(row[1])}

    assert {name for name in points.criterion if name.startswith("ci/")} <= told


@pytest.mark.parametrize("row", rows("What goes together"), ids=lambda row: row[1])
def test_a_combination_is_the_preset_of_that_name(row: list[str]) -> None:
    name = re.findall(r"`(\w+)`", row[1])[0]
    criteria = list(expanded(name, PRESETS[name].example))

    assert [f"adk/{each}" for each in re.findall(r"`(\w+)`", row[2])] == criteria
    asks = any(points.criterion[each].judged for each in criteria)
    assert asks == (row[-1].strip("| ") == "judge")


def test_all_names_that_mean_two_things_are_told_of() -> None:
    assert {row[0].strip("`| ") for row in rows("What a name means")} == set(AMBIGUOUS)
