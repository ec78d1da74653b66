"""Text edits of evalset files: add, replace or delete a case.

Nothing else changes: neither the order of keys, nor the indentation, nor a comment beside
another case.  So a review shows only the edited case.  Where that is impossible, as in YAML
that is written like JSON, the edit is refused.  Callers read the text again, to check that it
has the intended content.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Protocol

from ci_eval.cli.evalset.readable_yaml import yaml_text
from ci_eval.plugins.plugin import Syntax
from ci_eval.records.cases import Json
from ci_eval.records.errors import UsageError
from ci_eval.text.json_text import members, skip
from ci_eval.text.yaml_files import parse_yaml

LISTS = ("eval_cases", "evalCases", "cases")
"""Keys of the list of cases in files that are not the list itself."""


class Cases(Protocol):
    """The cases in a text; each method returns the edited text."""

    def add(self, items: Sequence[Json]) -> str:
        """Add `items` after the cases."""

    def replace(self, position: int, item: Json) -> str:
        """Replace the case at `position`, counted from 0."""

    def remove(self, position: int) -> str:
        """Remove the case at `position`, counted from 0."""


class NotEditableError(UsageError):
    """The text is written in a way that cannot be edited case by case.

    What to do: edit the file by hand.
    """


def _not_editable(what: str) -> NotEditableError:
    return NotEditableError(f"cases cannot be edited in {what}", hint="edit it by hand")


# --- One case per line ------------------------------------------------------------------------


def _line(item: Json) -> str:
    return json.dumps(item, ensure_ascii=False)


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


class _Lines:
    """The cases of a JSONL text, one per line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = re.findall(r"[^\n]*\n|[^\n]+\Z", text)
        self._places = [number for number, line in enumerate(self._lines) if line.strip()]

    def add(self, items: Sequence[Json]) -> str:
        return _ended(self._text) + "".join(f"{_line(item)}\n" for item in items)

    def replace(self, position: int, item: Json) -> str:
        return self._with(position, f"{_line(item)}\n")

    def remove(self, position: int) -> str:
        return self._with(position, "")

    def _with(self, position: int, line: str) -> str:
        self._lines[self._places[position]] = line
        return "".join(self._lines)


# --- JSON -------------------------------------------------------------------------------------


class _JsonList:
    """The list of cases in a JSON text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._begin = self._find()
        self._items = [(at, end) for _, _, at, end in members(text, self._begin)]
        self._end = skip(text, self._items[-1][1] if self._items else self._begin + 1)
        """The position of the closing bracket."""
        outer = _indent_at(text, self._begin)
        first = self._items[0][0] if self._items else self._begin + 1
        lead = text[self._begin + 1 : first]
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._in_lines = "\n" in lead or (not self._items and "\n" in text.strip())
        self._pad = lead.rpartition("\n")[2] if "\n" in lead and self._items else outer + "  "
        self._outer = outer
        grows = self._pad.startswith(outer) and len(self._pad) > len(outer)
        self._step = self._pad[len(outer) :] if grows else "  "

    def add(self, items: Sequence[Json]) -> str:
        text = self._text
        break_ = self._newline + self._pad if self._in_lines else ""
        between = f",{break_ or ' '}"
        added = between.join(map(self._written, items))
        if self._items:
            end = self._items[-1][1]
            return text[:end] + between + added + text[end:]
        closing = self._newline + self._outer if self._in_lines else ""
        return f"{text[: self._begin + 1]}{break_}{added}{closing}{text[self._end :]}"

    def replace(self, position: int, item: Json) -> str:
        begin, end = self._items[position]
        return self._text[:begin] + self._written(item) + self._text[end:]

    def remove(self, position: int) -> str:
        text, items = self._text, self._items
        if len(items) == 1:
            begin, end = self._begin + 1, self._end
        elif position == len(items) - 1:
            begin, end = items[-2][1], items[-1][1]
        else:
            begin, end = items[position][0], items[position + 1][0]
        return text[:begin] + text[end:]

    def _written(self, item: Json) -> str:
        if not self._in_lines:
            return _line(item)
        lines = json.dumps(item, ensure_ascii=False, indent=self._step).split("\n")
        return (self._newline + self._pad).join(lines)

    def _find(self) -> int:
        """Return the position of the list's opening bracket."""
        text = self._text
        begin = skip(text, 0)
        if text.startswith("[", begin):
            return begin
        for name, _, at, _ in members(text, begin):
            if name in LISTS and text[at] == "[":
                return at
        raise _not_editable("a document without a list of cases")


def _indent_at(text: str, position: int) -> str:
    """Return the indentation of the line that contains `position`."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


# --- YAML -------------------------------------------------------------------------------------

_ITEM = re.compile(r"( *)-(?: |$)")
_KEEPS_BLANK = re.compile(r"[|>](?:\d?\+|\+\d)\s*(?:#.*)?$")
"""The first line of a text that keeps the blank lines at its end."""
_EMPTY = re.compile(r"(?m)^(?P<head>cases:)?\s*\[ *\] *$")


class _YamlList:
    """The list of cases in a YAML text, each of which begins with a dash on a line of its own."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = _ended(text).split("\n")[:-1]
        document = parse_yaml(text, shown="")
        found, at = document.value, list[str]()
        if isinstance(found, dict):
            at = [name for name in LISTS if name in found][:1]
            found = found[at[0]] if at else None
        count = len(found) if isinstance(found, list) else 0
        self._is_nested = bool(at)
        self._starts = [(document.line((*at, place)) or 1) - 1 for place in range(count)]
        self._blocks = list(self._each_block())

    def add(self, items: Sequence[Json]) -> str:
        if not self._blocks:
            return self._begun(items)
        indent, (_, end) = self._indent(), self._blocks[-1]
        return self._spliced(end, end, [_yaml(item, indent) for item in items])

    def _begun(self, items: Sequence[Json]) -> str:
        found = list(_EMPTY.finditer(self._text))
        if len(found) != 1:
            raise _not_editable("this YAML, which has no list of cases")
        indent, head = ("  ", "cases:\n") if found[0]["head"] else ("", "")
        written = "\n".join(_yaml(item, indent) for item in items)
        return self._text[: found[0].start()] + head + written + self._text[found[0].end() :]

    def replace(self, position: int, item: Json) -> str:
        begin, end = self._blocks[position]
        return self._spliced(begin, end, [_yaml(item, self._indent())])

    def remove(self, position: int) -> str:
        begin, end = self._blocks[position]
        # Below its key, a list may begin in the column of the key, but `[]` may not.
        indent = self._indent() or "  " * self._is_nested
        left = [] if len(self._blocks) > 1 else [f"{indent}[]"]
        return self._spliced(begin, end, left)

    def _spliced(self, begin: int, end: int, new: list[str]) -> str:
        end_of_line = "\r" * ("\r\n" in self._text)
        lines = [line + end_of_line for item in new for line in item.split("\n")]
        return "\n".join([*self._lines[:begin], *lines, *self._lines[end:]]) + "\n"

    def _indent(self) -> str:
        found = _ITEM.match(self._lines[self._starts[0]])
        return found[1] if found else ""

    def _each_block(self) -> Iterator[tuple[int, int]]:
        """Yield the first line of each case, and the line after its last."""
        last = len(self._lines)
        for begin, next_begin in pairwise([*self._starts, last]):
            found = _ITEM.match(self._lines[begin])
            if not found or next_begin <= begin:
                raise _not_editable("YAML in which a case has no dash on a line of its own")
            end = begin + 1
            keeps_blank = _KEEPS_BLANK.search(self._lines[begin])
            for number in range(begin + 1, next_begin):
                line = self._lines[number]
                keeps_blank = keeps_blank or _KEEPS_BLANK.search(line)
                is_blank = not line.strip()
                if is_blank or len(line) - len(line.lstrip(" ")) > len(found[1]):
                    end = number + 1 if keeps_blank or not is_blank else end
                elif not line.startswith("#", len(found[1])):
                    break
            yield begin, end


def _yaml(item: Json, indent: str) -> str:
    """Return `item` as an element of a list in YAML, as lines that begin with `indent`."""
    lines = yaml_text([item]).rstrip("\n").split("\n")
    return "\n".join(f"{indent}{line}" if line else line for line in lines)


_KINDS: dict[Syntax, Callable[[str], Cases]] = {
    "json": _JsonList,
    "jsonl": _Lines,
    "yaml": _YamlList,
}


def cases_in(text: str, syntax: Syntax) -> Cases:
    """Return the cases in `text`, ready to be edited.

    Raises:
        NotEditableError: the text is written in a way that cannot be edited case by case.

    """
    if syntax not in _KINDS:
        raise _not_editable("a table")
    return _KINDS[syntax](text)
