"""Generated names for cases without an id."""

import re
from collections.abc import Iterable

from ci_eval.evalsets._reading import Notes
from ci_eval.text.fingerprint import fingerprint

_MAX_SLUG = 40
"""Maximum length of the readable part, in characters."""


class MadeNames:
    """Names cases after their prompts, wherever in the file they are."""

    def __init__(self) -> None:
        self._lines: dict[str, int] = {}

    def id_of(
        self, given: str | None, prompts: Iterable[str], line: int, notes: Notes
    ) -> str | None:
        """Return the `given` id of the case on `line`, else a generated one.

        It is `None`, and an error is noted, if another case without an id has the same prompts.
        """
        if given is not None:
            return given
        texts = list(prompts)
        words = re.findall(r"\w+", texts[0].casefold() if texts else "")
        slug = "-".join(words)[:_MAX_SLUG].strip("-_")
        name = f"{slug}-{fingerprint(texts)[:8]}".lstrip("-")
        if name in self._lines:
            first = self._lines[name]
            notes.error(f"same prompts as the case on line {first}; give each of them an 'id'")
            return None
        self._lines[name] = line
        return name
