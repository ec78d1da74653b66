"""Labels in judges' answers, including ADK's nearly valid JSON."""

import re
from collections.abc import Mapping
from typing import Any

from ci_eval.llm.model_answers import answer_text, json_object
from ci_eval.records.cases import Json
from ci_eval.records.questions import UnreadableError

_LABEL = r'"({})":\s*+\[*+\s*+"*+([^"\[\]{{}},\r\n]*+)"*+\s*+\]*+'
"""A key and its label.  Possessive quantifiers never backtrack, so that matching is linear."""


def one(labels: list[str], *, expected: str) -> str:
    """Return the label that all of `labels` have in common.

    Raises:
        UnreadableError: there is no label, or several different ones.

    """
    different = list(dict.fromkeys(labels))
    if not different:
        raise UnreadableError(f"it holds no verdict; expected {expected}")
    if len(different) > 1:
        raise UnreadableError("it holds no single verdict", different[:3])
    return different[0]


def object_with(text: str, key: str) -> dict[str, Any]:
    """Parse an answer as a JSON object; empty if it is not one.

    As ADK's judges write it, the label under `key`, a pattern, may lack quotes or have brackets,
    a comma may precede the end, and texts may have line breaks.  Nothing else may differ: a label
    that the answer only quotes, such as one that an agent wrote, is not a verdict.
    """
    found = json_object(text)
    text = answer_text(text)
    if found is None and len(re.findall(key, text)) == 1:
        mended = re.sub(_LABEL.format(key), r'"\1": "\2"', text, count=1)
        mended = re.sub(r",\s*+}", "}", mended)
        found = json_object(re.sub(r"\s", " ", mended))
    return found or {}


def label_in(answer: Mapping[str, Json], key: str) -> str:
    """Return the label under `key`, in a list or alone; empty if there is none.

    Raises:
        UnreadableError: there are several different ones.

    """
    value = answer.get(key)
    labels = value if isinstance(value, list) else [value]
    texts = [str(each).lower() if isinstance(each, bool) else each for each in labels]
    found = [each.strip() for each in texts if isinstance(each, str)]
    return one(found, expected="one") if found else ""
