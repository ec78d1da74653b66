"""Recorded answers of judges in one file: a cache on a laptop, a cassette in a repository.

Each line holds one answer and its key; if a key has several lines, the last readable one counts.
The file contains no questions and no known secrets.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path

from ci_eval.llm.line_file import LineFile, Position
from ci_eval.records.questions import Answer
from ci_eval.text.json_text import parse_json
from ci_eval.text.redact import Secrets

VERSION = 1
"""Version of the format; incremented when older readers would misread it."""
_LINE = re.compile(rb'\{"key":"([0-9a-f]{32})",')


class Cassette:
    """The answers in the file at `path`, named `shown` in messages.

    A shard writes new answers to a file of its `own`, which `absorb` merges later.
    """

    def __init__(
        self, path: Path, *, shown: str, secrets: Secrets | None = None, own: Path | None = None
    ) -> None:
        self._file = _file(path, shown)
        self._own = _file(own, shown) if own else None
        self._secrets = secrets or Secrets({})
        self.shown = shown
        """Path of the file in messages."""
        self._positions: dict[str, Position] = {}
        """The last readable line of each key."""
        self._added: dict[str, Answer] = {}

    @property
    def is_empty(self) -> bool:
        """True if there are no answers."""
        return not (self._positions or self._added)

    def load(self) -> None:
        """Index the answers in the file.

        Raises:
            UsageError: it is not a regular file, not a cassette of this version, or too large.

        """
        for file in filter(None, (self._file, self._own)):
            for place, line in file.lines():
                found = _LINE.match(line)
                if found and ((key := found[1].decode()) not in self._positions or _answer(line)):
                    self._positions[key] = place

    def begin(self) -> None:
        """Create the file if it is missing, and check that it can be written.

        Raises:
            OSError: it cannot be written.
            UsageError: it is not a regular file.

        """
        (self._own or self._file).begin()

    def get(self, key: str) -> Answer | None:
        """Return the answer recorded under `key`, if there is one."""
        if key in self._added or key not in self._positions:
            return self._added.get(key)
        line = self._positions[key].read()
        found = _LINE.match(line)
        if found is None or found[1].decode() != key:
            return None  # another process has replaced the file
        return _answer(line)

    def add(self, key: str, answer: Answer, *, about: str) -> None:
        """Record `answer` under `key`; `about` names the criterion, for human readers."""
        self._added[key] = answer
        clean = self._secrets.cleaned(answer)
        row = {"key": key, "criterion": about, "answer": clean.model_dump(exclude_defaults=True)}
        (self._own or self._file).append(
            json.dumps(row, separators=(",", ":")).encode("ascii") + b"\n"
        )

    def tidy(self) -> None:
        """Remove lines that a later line of the same key replaces."""
        (self._own or self._file).rewrite(_last_of_each)

    def absorb(self, parts: Iterable[Path]) -> int:
        """Add the answers of shards; return the number of questions with differing answers.

        If answers differ, that of the first part counts, as for equal questions in one run.

        Raises:
            UsageError: the file or a part is not a cassette.
            OSError: the file cannot be written.

        """
        self.load()  # refused before it is changed
        found: dict[bytes, bytes] = {}
        differing = set[bytes]()
        for part in parts:
            for key, line in _by_key(each for _, each in _file(part, str(part)).lines()).items():
                if found.setdefault(key, line) != line:
                    differing.add(key)
        self._file.begin()
        for line in found.values():
            self._file.append(line)
        self._file.rewrite(_last_of_each)
        return len(differing)


def _file(path: Path, shown: str) -> LineFile:
    return LineFile(
        path, shown=shown, of="ci-eval cassette", version=VERSION, refuses_conflicts=True
    )


def _answer(line: bytes) -> Answer | None:
    """Return the answer in a line; `None` if it was damaged or edited by hand."""
    try:
        return Answer.model_validate(parse_json(line)["answer"])
    except (ValueError, LookupError, TypeError):
        return None


def _by_key(lines: Iterable[bytes]) -> dict[bytes, bytes]:
    """Return the last line of each key, or the last that is readable."""
    found: dict[bytes, bytes] = {}
    for line in lines:
        key = _LINE.match(line)
        if key and (key[1] not in found or _answer(line)):
            found[key[1]] = line
    return found


def _last_of_each(lines: Iterable[bytes]) -> Iterable[bytes]:
    return _by_key(lines).values()
