"""Text files, and YAML with the line of every value.

YAML is read by the rules of version 1.2 (`off` is a word, not a boolean), and a key that
is there twice is refused.
"""

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn

from ci_eval.errors import Problem, Severity, UsageError

Loc = Sequence[int | str]
"""The way to a value: keys and positions, from the outside in."""

MAX_YAML_NODES = 200_000
"""The most values a YAML file may unfold to; anchors can make a small file huge."""
MAX_TEXT_BYTES = 64 * 1024 * 1024
"""The longest file that is read whole."""


def read_text(path: Path, *, shown: str) -> str:
    """Return the text of the file at `path`, which the user calls `shown`.

    Raises:
        UsageError: it is not there, not a file, or not UTF-8.

    """
    with open_text(path, shown) as file:
        if path.stat().st_size > MAX_TEXT_BYTES:
            size = f"is larger than {MAX_TEXT_BYTES >> 20} MiB"
            raise UsageError(problems=[Problem(size, shown)])
        try:
            return file.read()
        except UnicodeDecodeError as exc:
            raise not_utf8(path, shown) from exc


def contained(root: Path, given: str) -> Path:
    """Return the path `given`, from `root`, unless a symlink leads it out of the repository.

    A configuration may name a file elsewhere in so many words; a link that leads out of the
    repository is how a pull request would have a file of the machine read and shown.

    Raises:
        UsageError: a link leads out.

    """
    inside = next((up for up in (root, *root.parents) if (up / ".git").exists()), root)
    meant = Path(os.path.normpath(root / given))
    if meant.is_relative_to(inside) and not meant.resolve().is_relative_to(inside.resolve()):
        raise UsageError(problems=[Problem("is a link that leads out of the repository", given)])
    return meant


def open_text(path: Path, shown: str) -> IO[str]:
    """Open the file at `path` as UTF-8, or say why it cannot be.

    Raises:
        UsageError: it is not there, or not a file.

    """
    try:
        if not path.is_file():
            what = "is not a file" if path.exists() else "no such file"
            raise UsageError(problems=[Problem(what, shown)])
        return path.open(encoding="utf-8-sig", newline="")
    except (OSError, ValueError) as exc:
        raise UsageError(problems=[Problem(f"cannot be read: {_cause(exc)}", shown)]) from exc


def _cause(exc: OSError | ValueError) -> str:
    return getattr(exc, "strerror", None) or str(exc)


def not_utf8(path: Path, shown: str) -> UsageError:
    """Return an error that names the line of the first byte that is not UTF-8."""
    line = 1
    with path.open("rb") as file:
        for line, raw in enumerate(file, 1):
            try:
                raw.decode()
            except UnicodeDecodeError as exc:
                found = f"byte {raw[exc.start]:#04x} is not UTF-8"
                return UsageError(problems=[Problem(found, shown, line)])
    return UsageError(problems=[Problem("is not UTF-8", shown, line)])


def dotted(loc: Loc) -> str:
    """Return `loc` as it is shown.

    >>> dotted(("matrix", 0, "agents"))
    'matrix[0].agents'
    """
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in loc)
    return "".join(steps).removeprefix(".")


# --- YAML -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Document:
    """A value and where each part of it stands."""

    value: Any
    shown: str
    """The file, as the user named it."""
    _root: Any = None

    def line(self, loc: Loc) -> int | None:
        """Return the line of the key or element that `loc` leads to, or of the last one met."""
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


def read_yaml(path: Path, *, shown: str) -> Document:
    """Read the YAML file at `path`.

    Raises:
        UsageError: with the line of what is wrong.

    """
    return parse_yaml(read_text(path, shown=shown), shown=shown)


def parse_yaml(text: str, *, shown: str) -> Document:
    """Read `text` as YAML 1.2, or JSON, which is a part of it.

    Raises:
        UsageError: with the line of what is wrong.

    """
    import yaml

    try:
        root = yaml.compose(text, Loader=_loader())
        return Document(_Builder(shown).value(root), shown, root)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        found = " ".join(filter(None, (exc.context, exc.problem)))
        line = mark.line + 1 if mark else None
        raise UsageError(problems=[Problem(f"is not YAML: {found}", shown, line)]) from exc
    except yaml.reader.ReaderError as exc:
        found = f"character {exc.character!r} is not allowed in YAML"
        line = text.count("\n", 0, exc.position) + 1
        raise UsageError(problems=[Problem(found, shown, line)]) from exc
    except RecursionError as exc:
        raise UsageError(problems=[Problem("is nested too deep", shown)]) from exc


@cache
def _loader() -> Any:
    """Return PyYAML's safe loader with the plain words of YAML 1.2, and no others."""
    import yaml

    class Yaml12Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # one of two classes
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # as PyYAML declares it

    for tag, pattern, first in (
        ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
        ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
        ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
        (
            "float",
            r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
            list("-+.0123456789"),
        ),
        ("merge", r"<<", ["<"]),
    ):
        Yaml12Loader.add_implicit_resolver(
            f"tag:yaml.org,2002:{tag}", re.compile(f"(?:{pattern})$"), first
        )
    return Yaml12Loader


class _Builder:
    """Turns PyYAML's nodes into plain values."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._left = MAX_YAML_NODES

    def value(self, node: Any) -> Any:
        import yaml

        if node is None:
            return None
        self._left -= 1
        if self._left < 0:
            self._refuse(node, f"unfolds to more than {MAX_YAML_NODES} values")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item) for item in node.value]
        return self._scalar(node)

    def _mapping(self, node: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, value in node.value:
            if not hasattr(key, "value") or not isinstance(key.value, str):
                self._refuse(key, "a key must be a word")
            if key.tag.endswith(":merge"):
                for source in value.value if value.id == "sequence" else [value]:
                    if source.id != "mapping":
                        self._refuse(source, "'<<' takes a mapping")
                    merged = {**self._mapping(source), **merged}
            elif key.value in found:
                self._refuse(key, f"the key {key.value!r} is there twice")
            else:
                found[key.value] = self.value(value)
        return {**merged, **found}

    def _scalar(self, node: Any) -> Any:
        kind, text = node.tag.rsplit(":", 1)[-1], node.value
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        if kind == "int":
            if len(text) > 300:
                self._refuse(node, "the number is too long")
            return int(text, 8) if text.startswith("0o") else int(text, 16 if "x" in text else 10)
        if kind == "float":
            number = float(re.sub(r"\.(inf|nan)", r"\1", text.lower()))
            if not math.isfinite(number):
                self._refuse(node, f"{text!r} is not a finite number")
            return number
        if kind == "str":
            return text
        return self._refuse(node, f"the tag {node.tag!r} is not supported")

    def _refuse(self, node: Any, message: str) -> NoReturn:
        raise UsageError(problems=[Problem(message, self._shown, node.start_mark.line + 1)])
