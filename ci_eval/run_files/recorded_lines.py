"""Conversations in our own recording format, one JSON object per line."""

from collections.abc import Container, Iterator
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from ci_eval.records.trials import Numbering, Recording, Try
from ci_eval.run_files.journal import MAX_LINE_BYTES
from ci_eval.text.file_problems import FileProblems
from ci_eval.text.json_text import TRACE_DEPTH, parse_json
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.validation_messages import explain
from ci_eval.text.yaml_files import dotted

_MISSPELT = 0.85
"""How similar an unknown key is to the one that was meant; `version` and `session` are less so."""
_MAX_UNKNOWN = 100
"""Maximum number of unknown keys of a line that are compared with the known ones."""


class RecordedLine(Recording):
    """A recorded conversation and its agent.  Keys that resemble its own are errors."""

    agent: str | None = None

    @property
    def identity(self) -> Try:
        """Its agent, evalset, case and repeat."""
        return self.agent, self.evalset, self.eval_id, self.repeat or 0


L = TypeVar("L", bound=RecordedLine)


def recorded_lines(
    path: Path, model: type[L], taken: Container[Try], *, shown: str
) -> Iterator[tuple[L, int]]:
    """Yield each conversation of a case with its repeat, and its offset in bytes.

    The caller adds the identity of each to `taken`.

    Raises:
        UsageError: with every problem, after the valid lines.

    """
    numbering, problems, end = Numbering(), FileProblems(shown), 0
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES), b""), 1):
            begin, end = end, end + len(line)
            if not line.strip():
                continue
            try:
                row = parse_json(line, max_depth=TRACE_DEPTH)
                if isinstance(row, dict) and (key := _misspelt(tuple(row), model)):
                    meant = did_you_mean(key.lower(), model.model_fields)
                    problems.add(f"unknown key{meant}", number, dotted((key,)))
                    continue
                found = model.model_validate(row)
                if found.eval_id is not None:
                    *_, repeat = numbering.number(found, found.agent, taken)
                    found = found.model_copy(update={"repeat": repeat})
            except ValidationError as exc:
                for loc, message in explain(exc, model):
                    problems.add(message, number, dotted(loc))
            except ValueError as exc:
                problems.add(str(exc), number)
            else:
                yield found, begin
    problems.raise_errors()


@lru_cache  # most lines have the same keys, and comparing texts is slow
def _misspelt(keys: tuple[str, ...], model: type[RecordedLine]) -> str:
    """Return an unknown key that resembles a known one; empty if there is none.

    Others are ignored, but without its `Error`, a failed conversation could pass.
    """
    known = model.model_fields
    compared = islice((key for key in keys if key not in known), _MAX_UNKNOWN)
    close = (key for key in compared if get_close_matches(key.lower(), known, 1, _MISSPELT))
    return next(close, "")


def parsed(line: bytes, model: type[L]) -> L:
    """Return the conversation on one line.

    Raises:
        ValueError: it is invalid.

    """
    return model.model_validate(parse_json(line, max_depth=TRACE_DEPTH))
