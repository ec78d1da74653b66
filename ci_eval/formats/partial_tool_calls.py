"""A streamed tool call, whose arguments arrive in pieces with JSON paths.

https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling, "Streaming
function call arguments"; as in ADK 2.13.0, inconsistent pieces are dropped.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ci_eval.records.cases import AdkRecord, FunctionCall, Json, Part
from ci_eval.records.errors import TrialError
from ci_eval.text.json_text import MAX_DEPTH, with_leaves
from ci_eval.text.sanitize import one_line

MAX_INDEX = 10_000
"""Maximum list index, as in ADK."""
MAX_GAPS = 100_000
"""Maximum number of empty list elements in one call."""


class _PartialArg(AdkRecord, extra="ignore"):
    json_path: str | None = None
    string_value: str | None = None
    number_value: float | None = None
    bool_value: bool | None = None
    null_value: Json = None


_PARTIAL_ARGS = TypeAdapter(tuple[_PartialArg, ...])


class _Growing:
    """An unfinished string."""

    def __init__(self) -> None:
        self.pieces: list[str] = []


@dataclass
class OpenCall:
    """An unfinished call."""

    id: str
    place: int
    """Index among the parts."""
    name: str = ""
    signature: Json = None
    args: dict[str, Any] = field(default_factory=dict)
    gaps: int = 0

    @property
    def part(self) -> Part:
        """The complete call."""
        call = FunctionCall(id=self.id, name=self.name, args=with_leaves(self.args, _settled))
        return Part(function_call=call, thought_signature=self.signature)

    def take(self, part: Part, call: FunctionCall) -> None:
        """Add another piece.

        Raises:
            TrialError: it cannot be parsed.

        """
        self.name = call.name or self.name
        self.signature = self.signature or part.thought_signature
        try:
            given = _PARTIAL_ARGS.validate_python(call.partial_args or ())
        except ValidationError:
            shown = one_line(repr(call.partial_args), 200)
            message = f"the model streams invalid arguments: {shown}"
            raise TrialError("protocol", message) from None
        for each in given:
            if each.json_path:
                self._take_arg(tuple(steps(each.json_path)), each)

    def _take_arg(self, path: tuple[str | int, ...], given: _PartialArg) -> None:
        if given.string_value is not None:
            found = self._at(path)
            if not isinstance(found, _Growing):
                self._put(path, found := _Growing())
            found.pieces.append(given.string_value)
        elif given.number_value is not None:
            self._put(path, given.number_value)
        elif given.bool_value is not None:
            self._put(path, given.bool_value)
        elif given.null_value is not None:
            self._put(path, None)

    def _at(self, path: tuple[str | int, ...]) -> Any:
        here: Any = self.args
        for step in path:
            if not _fits(here, step) or (isinstance(step, int) and step >= len(here)):
                return None
            here = here[step] if isinstance(step, int) else here.get(step)
        return here

    def _put(self, path: tuple[str | int, ...], value: Any) -> None:
        """Store `value` at `path`, unless that contradicts earlier pieces."""
        here: Any = self.args
        for step, following in pairwise(path):
            if not self._has_place(here, step):
                return
            if here[step] is None:
                here[step] = [] if isinstance(following, int) else {}
            here = here[step]
        if path and self._has_place(here, path[-1]):
            here[path[-1]] = value

    def _has_place(self, here: Any, step: str | int) -> bool:
        """Make room for `step` in `here`; return False if that is impossible."""
        if not _fits(here, step):
            return False
        if isinstance(step, str):
            here.setdefault(step)
            return True
        missing = max(0, step + 1 - len(here))
        self.gaps += max(0, missing - 1)
        if self.gaps > MAX_GAPS:
            message = f"the model streams lists with more than {MAX_GAPS:,} empty places"
            raise TrialError("protocol", message)
        here += [None] * missing
        return True


def _fits(here: Any, step: str | int) -> bool:
    if isinstance(step, str):
        return isinstance(here, dict)
    return isinstance(here, list) and step <= MAX_INDEX


def _settled(value: Any) -> Json:
    return "".join(value.pieces) if isinstance(value, _Growing) else value


# --- JSON paths -------------------------------------------------------------------------------

_STEP = re.compile(
    r"\[\s*(?P<index>[0-9]{1,9})\s*\]"
    r"|\[(?P<quote>['\"])(?P<quoted>(?:\\.|(?!(?P=quote)|\\).)*)(?P=quote)\]"
    r"|\.?(?P<name>(?:\\.|[^.\[\]\\])+)",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\(?:u(?P<code>[0-9a-fA-F]{4})|(?P<letter>.))", re.DOTALL)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


def steps(path: str) -> Iterator[str | int]:
    """Yield the steps of a JSON path such as `$.items[0]['a key']`: keys and list indices.

    Raises:
        TrialError: it is not a valid path, or too long.

    """
    at = len("$") if path.startswith("$") else 0
    taken = 0
    while at < len(path):
        found = _STEP.match(path, at)
        taken += 1
        if found is None or taken > MAX_DEPTH:
            why = f"has more than {MAX_DEPTH} steps" if found else "cannot be read"
            shown = one_line(path, 100)
            message = f"the model streams an argument with the path {shown!r}, which {why}"
            raise TrialError("protocol", message)
        at = found.end()
        if found["index"]:
            yield int(found["index"])
        else:
            yield _unescaped(found["name"] or found["quoted"])


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text

    def meant(found: re.Match[str]) -> str:
        if found["code"]:
            return chr(int(found["code"], 16))
        return _LETTERS.get(found["letter"], found["letter"])

    halves = _ESCAPED.sub(meant, text)  # may contain surrogate pairs
    return halves.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
