"""Names for cases whose file gives them none."""

import re
from collections.abc import Iterable

from ci_eval.text.fingerprint import fingerprint

_MAX_SLUG = 40
"""The longest readable part, in characters."""


class MadeNames:
    """Names cases after what is asked in them: the same wherever in the file they stand."""

    def __init__(self) -> None:
        self._lines: dict[str, int] = {}

    def name(self, asked: Iterable[str], line: int) -> tuple[str, str]:
        """Return a name for the case on `line`, and what is wrong with it, if anything is."""
        texts = list(asked)
        words = re.findall(r"\w+", texts[0].casefold() if texts else "")
        slug = "-".join(words)[:_MAX_SLUG].strip("-_")
        name = f"{slug}-{fingerprint(texts)[:8]}".lstrip("-")
        if name in self._lines:
            first = self._lines[name]
            return name, f"asks the same as the case on line {first}; give each of them an 'id'"
        self._lines[name] = line
        return name, ""
