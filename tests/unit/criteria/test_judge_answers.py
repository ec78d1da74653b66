"""Answers of judges: JSON in a block of code or not, labels in what is nearly JSON."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from ci_eval.criteria import _rubric_verdicts, adk_final_response_match_v2
from ci_eval.criteria import adk_per_turn_user_simulator_quality_v1 as simulator
from ci_eval.criteria._judge_answers import labels_in
from ci_eval.criteria._judged_sentences import read_findings, read_sentences
from ci_eval.llm.model_answers import json_object
from ci_eval.llm.model_client import MAX_ANSWER_CHARS
from ci_eval.records.cases import Rubric

RUBRIC = Rubric.model_validate({"rubric_id": "ra", "rubric_content": {"text_property": "Done."}})
READERS: dict[str, Callable[[str], Any]] = {
    "match": adk_final_response_match_v2.read,
    "simulator": simulator.read,
    "rubrics": lambda text: _rubric_verdicts.read(text, [RUBRIC]),
    "sentences": lambda text: read_sentences(text, "It is."),
    "findings": lambda text: read_findings(text, ["It is."]),
}


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        ' \n{"a": 1}\n',
        '```json\n{"a": 1}\n```',
        '\n```\n{"a": 1}\n  ```\n',
        '```JSON  \n\n{"a":\n1}```',
    ],
)
def test_an_object_is_found_in_a_block_of_code_too(text: str):
    assert json_object(text) == {"a": 1}


@pytest.mark.parametrize(
    "text", ["", "```", "``````", "[1]", "1", '```{"a": 1}```', 'So: {"a": 1}', '```\n{"a": 1}\n']
)
def test_anything_else_is_no_object(text: str):
    assert json_object(text) is None


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ('{"k": yes}', ["yes"]),
        ('"k":"yes",', ["yes"]),
        ('"k":\n [ "yes" ]\n', ["yes"]),
        ('{"k": [yes],\n "k": no\n}', ["yes", "no"]),
        ('{"k": ""}', []),
        ('{"k": yes', []),
        ('{"k": yes indeed}', []),
        ('{"j": yes}', []),
    ],
)
def test_labels_are_found_in_what_is_nearly_json(text: str, labels: list[str]):
    found = labels_in(text, "k", r'[^"\]\s]*')
    assert [each.rstrip(",}") for each in found] == labels


BEGINNINGS = (
    '"is_the_agent_response_valid":',
    '"is_valid":',
    "Property: ",
    "Verdict: ",
    "sentence:",
    "<sentence>",
    "```\n",
    "",
)
REPEATED = (
    " ",
    "\n",
    "[",
    "]",
    '"',
    "a",
    "a ",
    "}",
    "] ",
    "\n`",
    '"is_valid":[',
    "sentence:\nlabel:",
)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("repeated", REPEATED)
def test_the_worst_answers_are_read_in_no_time(reader: str, repeated: str):
    started = time.process_time()
    for beginning in BEGINNINGS:
        text = beginning + repeated * ((MAX_ANSWER_CHARS - len(beginning)) // len(repeated))
        with pytest.raises(ValueError):  # noqa: PT011  # that it ends is what matters here
            READERS[reader](text)

    # It takes a second at most; where it grows with the square of the length, many minutes.
    assert time.process_time() - started < 60
