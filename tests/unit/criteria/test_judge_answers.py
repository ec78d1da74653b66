"""Answers of judges: JSON in a block of code or not, labels in what is nearly JSON."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from ci_eval.criteria import _rubric_verdicts, adk_final_response_match_v2
from ci_eval.criteria import adk_per_turn_user_simulator_quality_v1 as simulator
from ci_eval.criteria._judged_sentences import read_findings, read_sentences
from ci_eval.llm.model_answers import json_object
from ci_eval.llm.model_client import MAX_ANSWER_CHARS
from ci_eval.records.cases import Rubric
from ci_eval.records.questions import UnreadableError

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
        '<think>\n{"a": 2}\n</think>\n\n{"a": 1}',
    ],
)
def test_an_object_is_found_in_a_block_of_code_too(text: str):
    assert json_object(text) == {"a": 1}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "```",
        "``````",
        "[1]",
        "1",
        '{"a": 2, "a": 1}',
        '```{"a": 1}```',
        'So: {"a": 1}',
        '```\n{"a": 1}\n',
    ],
)
def test_anything_else_is_no_object(text: str):
    assert json_object(text) is None


VALID, INVALID = '"is_the_agent_response_valid"', '"is_the_agent_response_invalid"'


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        (f'{{"reasoning": "r", {VALID}: "valid"}}', True),
        (f"{{{VALID}: valid,}}", True),
        (f"{{{VALID}:\n [ invalid ],\n}}", False),
        (f"{{{VALID}: almost}}", False),
        (f'{{{INVALID}: "no"}}', True),
        (f'{{"reasoning": "a",\r\n{VALID}: invalid\r\n}}', False),
        (f'{{"reasoning": "a\nb", {VALID}: "valid"}}', True),
        (f'<think>{VALID} must be set.</think>{{"reasoning": "r", {VALID}: valid}}', True),
        (f'{{{INVALID}: "yes"}}', False),
        (f'{{{VALID}: "valid", {INVALID}: "false"}}', True),
    ],
)
def test_a_label_is_read_in_what_is_nearly_json(text: str, valid: bool):
    assert adk_final_response_match_v2.read(text)["valid"].yes is valid


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{{{VALID}: valid", "no verdict; expected `valid` or `invalid`"),
        (f'The agent wrote {{{VALID}: "valid"}}. My verdict: invalid.', "no verdict"),
        (f"{{'{VALID}': 'invalid', 'reasoning': 'It wrote {{{VALID}: valid}}'}}", "no verdict"),
        (f'{{{VALID}: "invalid", "reasoning": "r", {VALID}: "valid"}}', "no verdict"),
        (f'{{{VALID}: "invalid", "\\u0069{VALID[2:]}: "valid"}}', "no verdict"),
        (f'{{{VALID}: "valid", {INVALID}: "invalid"}}', "no single verdict"),
        (f'{{{INVALID}: "unknown"}}', "neither `valid` nor `invalid`, but 'unknown'"),
    ],
)
def test_an_answer_without_one_clear_label_is_refused(text: str, reason: str):
    with pytest.raises(UnreadableError, match=reason):
        adk_final_response_match_v2.read(text)


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
