"""How values travel between us and the processes of users: as lines of JSON."""

import json
import re

from ci_eval.records.model import Json
from ci_eval.text.json_text import parse_json

SHOWN_CHARS = 200
"""How much of a wrong reply a message shows."""

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}"  # a whole character
    rb"|(?P<half>u[dD][89a-fA-F][\da-fA-F]{2})|.)"
)
"""A backslash in JSON, with what belongs to it."""

encode = json.JSONEncoder(separators=(",", ":")).encode
"""Write a value as one line of JSON."""


def read_json(line: bytes) -> Json:
    """Return the JSON value `line`, with U+FFFD for halves of characters.

    Agents cut texts where they should not; a file could not hold what comes of it.

    Raises:
        ValueError: it is not JSON, or could not be written again; says so as a verb phrase.

    """
    if rb"\ud" in line or rb"\uD" in line:
        line = _ESCAPE.sub(lambda found: rb"\ufffd" if found["half"] else found[0], line)
    return parse_json(line)


def shown(value: object) -> str:
    """Return the beginning of `value` as Python writes it."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…"
