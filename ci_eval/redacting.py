"""Keeps secrets out of documents: what agents say and print may hold keys that they were given.

Traces are scored as they are, so that a criterion can find a leak; it is what is written down of
them that is cleaned.
"""

import json
import re
from collections.abc import Mapping
from typing import TypeVar

from ci_eval.records import Record

M = TypeVar("M", bound=Record)

MIN_CHARS = 8
"""Shorter values are placeholders, and would be found in every other word."""
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
"""What the name of an environment variable says whose value is secret."""


class Secrets:
    """The values of environment variables whose names say that they are secret.

    A path is none: it says where a secret is.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        found: dict[str, str] = {}
        for name, value in env.items():
            if _SECRET.search(name) and not value.startswith(("/", "~")):
                # Of a key of several lines, a part would do.
                for part in {value, *value.splitlines()}:
                    if len(part.strip()) >= MIN_CHARS:
                        found[_in_json(part.strip())] = _in_json(f"[{name}]")
        # The longest first: one may hold another.
        self._found = dict(sorted(found.items(), key=lambda each: -len(each[0])))

    def cleaned(self, record: M) -> M:
        """Return `record`, with the variables' names in the place of their values.

        Where there are none, it is the very same.
        """
        if not self._found:
            return record
        text = record.model_dump_json()
        present = [value for value in self._found if value in text]
        if not present:
            return record
        for value in present:
            text = text.replace(value, self._found[value])
        return type(record).model_validate_json(text)


def _in_json(text: str) -> str:
    """Return `text` as pydantic writes it within a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
