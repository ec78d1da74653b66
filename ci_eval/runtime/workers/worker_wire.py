"""Wire format between us and user processes: lines of JSON."""

import json
import re

from ci_eval.records.cases import Json
from ci_eval.runtime.workers.worker_faults import cut
from ci_eval.text.json_text import parse_json

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}"  # a surrogate pair
    rb"|(?P<half>u[dD][89a-fA-F][\da-fA-F]{2})|.)"
)
"""An escape sequence in JSON."""

encode = json.JSONEncoder(separators=(",", ":")).encode
"""Encode a value as one line of JSON."""


def read_json(line: bytes) -> Json:
    """Parse `line` as JSON, with U+FFFD for lone surrogates.

    Agents that cut a text within a character produce lone surrogates, and files cannot hold them.

    Raises:
        ValueError: it is not JSON, or cannot be encoded again; the message is a verb phrase.

    """
    if rb"\ud" in line or rb"\uD" in line:
        line = _ESCAPE.sub(lambda found: rb"\ufffd" if found["half"] else found[0], line)
    return parse_json(line)


def shown(value: object) -> str:
    """Return the beginning of the `repr` of `value`."""
    return cut(repr(value))
