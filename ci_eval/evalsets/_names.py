"""Generated names for cases without an id."""

import re
from collections.abc import Iterable

from ci_eval.text.fingerprint import fingerprint

_MAX_SLUG = 40
"""Maximum length of the readable part, in characters."""


class MadeNames:
    """Names cases after their prompts, wherever in the file they are."""

    def __init__(self) -> None:
        self._lines: dict[str, int] = {}

    def name(self, asked: Iterable[str], line: int) -> tuple[str, str]:
        """Return a name for the case on `line`, and an error message, if any."""
        texts = list(asked)
        words = re.findall(r"\w+", texts[0].casefold() if texts else "")
        slug = "-".join(words)[:_MAX_SLUG].strip("-_")
        name = f"{slug}-{fingerprint(texts)[:8]}".lstrip("-")
        if name in self._lines:
            first = self._lines[name]
            return name, f"same prompts as the case on line {first}; give each of them an 'id'"
        self._lines[name] = line
        return name, ""
