"""Answers of models: JSON schemas, in the subset that every provider supports, and parsers."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ci_eval.records.cases import Json
from ci_eval.records.questions import Question, Reading, Seat
from ci_eval.text.json_text import parse_json

T = TypeVar("T")

TEXT: Json = {"type": "string"}
NUMBER: Json = {"type": "number"}
INTEGER: Json = {"type": "integer"}
_FENCE = "```"
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
"""What some models of OpenAI-compatible servers write before an answer."""


def one_of(*words: str) -> Json:
    """Return the schema of a string with these values."""
    return {"type": "string", "enum": list(words)}


def many(entry: Json) -> Json:
    """Return the schema of a list of `entry`."""
    return {"type": "array", "items": entry}


def strict(**properties: Json) -> dict[str, Json]:
    """Return the schema of an object with exactly these properties.

    Models write them in this order, so reasons come before conclusions.
    """
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


async def ask_once(seat: Seat, question: Question, read: Callable[[str], T]) -> Reading[T]:
    """Draw one sample; an unreadable answer from the cache is requested again."""
    found = await seat.ask(question, read)
    if found.value is None and found.cached:
        return await seat.ask(question, read, fresh=True)
    return found


def json_object(text: str) -> dict[str, Any] | None:
    """Parse an answer that is a JSON object; `None` if it is not one.

    Duplicate keys are an error: they may contradict each other.
    """
    try:
        value = parse_json(answer_text(text), unique=True)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def answer_text(text: str) -> str:
    """Return an answer without thoughts before it, and without a fenced code block around it."""
    text = _THOUGHTS.sub("", text, count=1).strip()
    first, _, rest = text.partition("\n")
    is_block = first.startswith(_FENCE) and rest.endswith(_FENCE)
    return rest.removesuffix(_FENCE).strip() if is_block else text


def text_of(found: Mapping[str, Json], key: str) -> str:
    """Return the text under `key`; empty if there is none."""
    value = found.get(key)
    return value if isinstance(value, str) else ""
