"""Text files, and YAML with the line of every value.

YAML follows version 1.2 (`off` is a string, not a boolean); duplicate keys are errors.
"""

import codecs
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn

from ci_eval.records.errors import Problem, Severity, UsageError

Loc = Sequence[int | str]
"""The path to a value: keys and indices, from the outside in."""

MAX_TEXT = 64 * 1024 * 1024
"""Maximum length of a file that is read at once, in characters."""
MAX_CONFIG = 1024 * 1024
"""Maximum length of a configuration, in characters."""
MAX_YAML_NODES = 200_000
"""Maximum number of values a YAML file may expand to; anchors can make a small file huge."""
MAX_YAML_DEPTH = 100
"""Maximum nesting depth of YAML; the parser itself is only limited by its stack."""
MAX_KEY = 100
"""Maximum number of characters of a key that a message shows."""
MAX_WALKED = 4 << 30
"""Maximum size of a streamed JSON document, such as a run or a baseline, in bytes."""
MAX_LINES = 64 << 30
"""Maximum size of a JSON Lines file, such as `traces.jsonl`, in bytes."""
_MAX_BITS = 1023
"""The maximum size of an integer, so that it is finite as a float."""
_CHUNK = 1 << 20
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_text(path: Path, *, shown: str, most: int = MAX_TEXT) -> str:
    """Return the text of the file at `path`; messages call it `shown`.

    Raises:
        UsageError: the file is missing, not a file, not UTF-8, or longer than `most` characters.

    """
    with reading(path, shown=shown) as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise UsageError(problems=[_too_long(most, shown)])
    return text


@contextmanager
def reading(
    path: Path, *, shown: str, most: int = MAX_LINES, newline: str = ""
) -> Iterator[IO[str]]:
    """Open the file at `path` as UTF-8; turn errors while it is read into problems.

    With `newline`, only this ends a line, which halves the time of reading by line.

    Raises:
        UsageError: the file is missing, not a file, unreadable, not UTF-8, or larger than `most`
            bytes.

    """
    try:
        if not path.is_file():
            what = "is not a file" if path.exists() else "no such file"
            raise UsageError(what, file=shown)
        if path.stat().st_size > most:
            raise UsageError(problems=[_too_long(most, shown)])
        with path.open(encoding="utf-8-sig", newline=newline) as file:
            yield file
    except UnicodeDecodeError as exc:
        raise UsageError(problems=[_not_utf8(path, shown)]) from exc
    except OSError as exc:
        raise UsageError(f"cannot be read: {exc.strerror or exc}", file=shown) from exc


def _too_long(most: int, shown: str) -> Problem:
    return Problem(f"is larger than {most >> 20} MiB, the limit for this kind of file", shown)


def _not_utf8(path: Path, shown: str) -> Problem:
    """Return a problem with the line of the first byte that is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line = 1
    with path.open("rb") as file:
        while True:
            chunk = file.read(_CHUNK)
            try:
                decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as exc:
                line += exc.object.count(b"\n", 0, exc.start)
                is_utf16 = line == 1 and exc.object.startswith(_UTF16_MARKS)
                hint = "; the file seems to be UTF-16" if is_utf16 else ""
                return Problem(f"byte {exc.object[exc.start]:#04x} is not UTF-8{hint}", shown, line)
            line += chunk.count(b"\n")


def dotted(loc: Loc) -> str:
    """Return `loc` as messages show it.

    >>> dotted(("matrix", 0, "agents"))
    'matrix[0].agents'
    """
    steps = (f"[{step}]" if isinstance(step, int) else f".{_short(step)}" for step in loc)
    return "".join(steps).removeprefix(".")


def _short(key: str) -> str:
    return key if len(key) <= MAX_KEY else key[:MAX_KEY] + "…"


# --- YAML -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Document:
    """A YAML value with the line of each of its parts."""

    value: Any
    shown: str
    """The file, as the user named it."""
    _root: Any = None

    def line(self, loc: Loc) -> int | None:
        """Return the line of the key or element at `loc`, or of its nearest existing parent."""
        import yaml

        node, line = self._root, 1
        for step in loc:
            if isinstance(node, yaml.MappingNode):
                pairs = [(key, value) for key, value in node.value if key.value == str(step)]
                if not pairs:
                    break
                line, node = pairs[0][0].start_mark.line + 1, pairs[0][1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
                node = node.value[step]
                line = node.start_mark.line + 1
        return line

    def problem(self, message: str, loc: Loc = (), *, severity: Severity = "error") -> Problem:
        """Return the problem `message` at `loc`."""
        return Problem(message, self.shown, self.line(loc), dotted(loc), severity)

    def placed(self, problems: Iterable[Problem], loc: Loc) -> list[Problem]:
        """Return `problems`; those without a file get the location of the value at `loc`."""
        return [each if each.file else self.problem(each.message, loc) for each in problems]


def read_yaml(path: Path, *, shown: str) -> Document:
    """Read the YAML file at `path`.

    Raises:
        UsageError: the file is invalid; names the line.

    """
    return parse_yaml(read_text(path, shown=shown, most=MAX_CONFIG), shown=shown)


def parse_yaml(text: str, *, shown: str) -> Document:
    """Parse `text` as YAML 1.2 (JSON is a subset).

    Raises:
        UsageError: the text is invalid; names the line.

    """
    import yaml

    odd = _NOT_YAML.search(text)
    if odd:
        found = f"the character U+{ord(odd[0]):04X} is not allowed in YAML"
        at = text.count("\n", 0, odd.start()) + 1
        raise UsageError(found, file=shown, line=at)
    try:
        _refuse_deep(text, shown)
        root = yaml.compose(text, Loader=_loader())
        return Document(_Builder(shown).value(root), shown, root)
    except yaml.MarkedYAMLError as exc:
        cause, line = _cause(exc, text)
        raise UsageError(f"is not YAML: {cause}", file=shown, line=line) from exc


def _cause(exc: Any, text: str) -> tuple[str, int | None]:
    """Return the cause of a syntax error, and the line where it began, if known."""
    is_begun = exc.context_mark and exc.context in _BEGUN
    mark = exc.context_mark if is_begun else exc.problem_mark or exc.context_mark
    if mark is None:
        return str(exc.problem), None
    lines = text.splitlines()
    number = min(mark.line, text.rstrip().count("\n"))
    line = lines[number] if lines else ""
    if "\t" in line[: mark.column + 1]:
        return "a tab, where YAML needs spaces", number + 1
    if is_begun and "end of stream" in exc.problem:
        return "a quote is opened here and never closed", number + 1
    cause = " ".join(filter(None, (exc.context, exc.problem)))
    is_value = "mapping values are not allowed" in cause
    before = number - 1 if is_value and number else number  # a text may continue on the next line
    if (is_begun or is_value) and (word := re.match(r"\s*([\w.-]+:)[^\s/]", lines[before])):
        return f"no space after {word[1]!r}", before + 1
    if is_value:
        is_text = len(re.findall(r":\s", line)) > 1
        wanted = "put the text that contains ': ' in quotes" if is_text else "check the indentation"
        cause = f"{cause}; {wanted}"
    return cause, number + 1


_BEGUN = ("while scanning a quoted scalar", "while scanning a simple key")
"""What the parser was doing if the cause of an error is at the line where it began."""
_NOT_YAML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PLAIN = {
    "null": (re.compile(r"~|null|Null|NULL|"), ["~", "n", "N", ""]),
    "bool": (re.compile(r"true|True|TRUE|false|False|FALSE"), list("tTfF")),
    "int": (re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"), list("-+0123456789")),
    "float": (
        re.compile(
            r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
            r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
        ),
        list("-+.0123456789"),
    ),
    "merge": (re.compile("<<"), ["<"]),
}
"""The patterns of plain scalars in YAML 1.2 by kind, each with its possible first characters."""
_TAG = "tag:yaml.org,2002:"


@cache
def _loader() -> Any:
    """Return PyYAML's safe loader with exactly the plain scalars of YAML 1.2."""
    import yaml

    class Yaml12Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # one of two classes
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # as PyYAML declares it

    for kind, (pattern, first) in _PLAIN.items():
        whole = re.compile(f"(?:{pattern.pattern})$")
        Yaml12Loader.add_implicit_resolver(_TAG + kind, whole, first)
    return Yaml12Loader


def _refuse_deep(text: str, shown: str) -> None:
    """Refuse deep nesting, which would overflow the parser's stack."""
    import yaml

    depth = 0
    event: Any
    for event in yaml.parse(text, Loader=_loader()):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_YAML_DEPTH:
            line = event.start_mark.line + 1
            raise UsageError("is nested too deeply", file=shown, line=line)


class _Builder:
    """Converts PyYAML's nodes to plain values."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._left = MAX_YAML_NODES
        self._depth = 0

    def value(self, node: Any) -> Any:
        if node is None:
            return None
        self._left -= 1
        if self._left < 0:
            self._refuse(node, f"expands to more than {MAX_YAML_NODES} values")
        if node.id == "scalar":
            return self._scalar(node)
        if node.tag not in (_TAG + "map", _TAG + "seq"):
            self._refuse_tag(node)
        self._depth += 1
        if self._depth > MAX_YAML_DEPTH:
            self._refuse(node, "is nested too deeply or contains itself")
        found = self._mapping(node) if node.id == "mapping" else list(map(self.value, node.value))
        self._depth -= 1
        return found

    def _mapping(self, node: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] | None = None
        for key, value in node.value:
            if key.id != "scalar":
                self._refuse(key, "a key must be text, not a list or a mapping")
            is_merge = key.tag == _TAG + "merge"
            if key.value in found or (is_merge and merged is not None):
                self._refuse(key, f"duplicate key {key.value!r}")
            if is_merge:
                merged = self._merged(value)
            else:
                found[key.value] = self.value(value)
        return {**(merged or {}), **found}

    def _merged(self, node: Any) -> dict[str, Any]:
        """Return the keys merged by `<<`; for duplicate keys, the first mapping wins."""
        merged: dict[str, Any] = {}
        for source in node.value if node.id == "sequence" else [node]:
            if source.id != "mapping":
                self._refuse(source, "'<<' takes a mapping, or a list of them")
            merged = {**self.value(source), **merged}
        return merged

    def _scalar(self, node: Any) -> Any:
        kind, text = node.tag.removeprefix(_TAG), node.value
        if kind == "str":
            return text
        if kind not in _PLAIN or kind == "merge":
            self._refuse_tag(node)
        if not _PLAIN[kind][0].fullmatch(text):
            self._refuse(node, f"{text[:40]!r} is not a valid {kind}")
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        return self._number(node, kind, text.lower())

    def _number(self, node: Any, kind: str, text: str) -> int | float:
        if len(text) > 300:
            self._refuse(node, "the number is too long")
        if kind == "int":
            whole = int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
            if whole.bit_length() > _MAX_BITS:
                self._refuse(node, "the number is too long")
            return whole
        number = float(text.replace(".inf", "inf").replace(".nan", "nan"))
        if not math.isfinite(number):
            self._refuse(node, f"{node.value!r} is not a finite number")
        return number

    def _refuse_tag(self, node: Any) -> NoReturn:
        self._refuse(node, f"the tag {node.tag.replace(_TAG, '!!')!r} is not supported")

    def _refuse(self, node: Any, message: str) -> NoReturn:
        raise UsageError(message, file=self._shown, line=node.start_mark.line + 1)
