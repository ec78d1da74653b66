"""Parsers for judges' answers: the requested JSON, and the text formats of ADK's judges."""

import re
from collections.abc import Mapping
from typing import Any

from ci_eval.records.cases import Json
from ci_eval.records.questions import UnreadableError
from ci_eval.text.json_text import parse_json

_FENCE = "```"


def json_object(text: str) -> dict[str, Any] | None:
    """Parse a JSON object, which may be in a fenced code block; `None` if it is not one."""
    try:
        value = parse_json(_unfenced(text.strip()))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _unfenced(text: str) -> str:
    """Return the content of `text` if it is a fenced code block, else `text` itself."""
    first, _, rest = text.partition("\n")
    is_block = first.startswith(_FENCE) and rest.endswith(_FENCE)
    return rest.removesuffix(_FENCE) if is_block else text


def text_of(found: Mapping[str, Json], key: str) -> str:
    """Return the text under `key`; empty if there is none."""
    value = found.get(key)
    return value if isinstance(value, str) else ""


def one(labels: list[str], *, expected: str) -> str:
    """Return the label that all of `labels` have in common.

    Raises:
        UnreadableError: there is no label, or several different ones.

    """
    different = list(dict.fromkeys(labels))
    if not different:
        raise UnreadableError(f"it holds no verdict; expected {expected}")
    if len(different) > 1:
        shown = ", ".join(repr(each[:40]) for each in different[:3])
        raise UnreadableError(f"it holds several verdicts: {shown}")
    return different[0]


def labels_in(text: str, key: str, label: str) -> list[str]:
    """Find the labels under `key` in text that is nearly JSON, as ADK does.

    `label` is the pattern of a label.  Takes linear time: the quantifiers around the label are
    possessive and never backtrack.
    """
    end = r"(?:[^\S\n]*+\n|\s*+\]*+\s*+[,}]|\s*+\]++[^\S\n]*+\n)"
    found = re.findall(rf'"{key}":\s*+\[*+\s*+"*+({label})"*+{end}', text)
    return [each for each in found if each]
