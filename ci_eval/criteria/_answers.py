"""What judges answer: JSON as they are asked for it, and the texts that ADK's judges write."""

import re
from collections.abc import Mapping
from typing import Any

from ci_eval.records.model import Json
from ci_eval.records.questions import UnreadableError
from ci_eval.text.json_text import parse_json

_FENCE = "```"


def json_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that `text` is, in a code block too; `None` where it is none."""
    try:
        value = parse_json(_unfenced(text.strip()))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _unfenced(text: str) -> str:
    """Return what stands in the block of code that `text` is, or `text` itself."""
    first, _, rest = text.partition("\n")
    is_block = first.startswith(_FENCE) and rest.endswith(_FENCE)
    return rest.removesuffix(_FENCE) if is_block else text


def text_of(found: Mapping[str, Json], key: str) -> str:
    """Return the text under `key`; empty where there is none."""
    value = found.get(key)
    return value if isinstance(value, str) else ""


def one(labels: list[str], *, expected: str) -> str:
    """Return the label that all of `labels` are.

    Raises:
        UnreadableError: there is none, or several that differ.

    """
    different = list(dict.fromkeys(labels))
    if not different:
        raise UnreadableError(f"it holds no verdict; expected {expected}")
    if len(different) > 1:
        shown = ", ".join(repr(each[:40]) for each in different[:3])
        raise UnreadableError(f"it holds several verdicts: {shown}")
    return different[0]


def labels_in(text: str, key: str, label: str) -> list[str]:
    """Return what stands under `key` in a text that is nearly JSON, as ADK looks for it.

    `label` is the pattern of what may stand there.  It takes time in proportion to the text:
    what repeats in front of and behind a label never gives back what it took.
    """
    end = r"(?:[^\S\n]*+\n|\s*+\]*+\s*+[,}]|\s*+\]++[^\S\n]*+\n)"
    found = re.findall(rf'"{key}":\s*+\[*+\s*+"*+({label})"*+{end}', text)
    return [each for each in found if each]
