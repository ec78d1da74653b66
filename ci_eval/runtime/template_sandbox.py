"""Templates of the user's, filled in by a process that can do nothing else.

Jinja's sandbox keeps a template away from the inside of Python; what it does not bound is time and
memory.  So a child of our own interpreter does it: without an environment, with little memory,
unable to write a file, and killed when its time is up.  It gets plain data and gives back a text.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

from ci_eval.records.errors import Problem, UsageError
from ci_eval.records.model import Json
from ci_eval.runtime import isolation
from ci_eval.runtime.clone import top_of
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.paths import contained
from ci_eval.text.yaml_files import read_text

MAX_SOURCE = 256 * 1024
"""The longest template, in characters."""
_TO_DIE_S = 5.0
"""Seconds that a killed child may take to end."""
_PACKAGE = str(Path(__file__).resolve().parents[2])
_CODE = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from ci_eval.runtime.template_child import main; main()"
)


class TemplateError(Exception):
    """A template of the user's could not be filled in; says why, as a sentence's end."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        self.line = line
        super().__init__(message)


class TooLongError(TemplateError):
    """What the template makes is longer than there is room for."""


@dataclass(frozen=True)
class Limits:
    """What filling in a template may take."""

    cpu_s: int = 10
    """Seconds of computing."""
    wall_s: float = 60.0
    """Seconds in all, for machines that do much else."""
    memory: int = 512 * 1024 * 1024
    """Bytes of address space."""


@dataclass(frozen=True)
class Template:
    """A template of the user's."""

    source: str
    shown: str
    """The file, as the user calls it."""
    limits: Limits = Limits()

    def check(self) -> None:
        """Find out what is wrong with it that can be seen without a report.

        Raises:
            TemplateError: something is.

        """
        self._ask({})

    def fill(self, page: Json, most: int) -> str:
        """Return what it makes of `page`, which `plain` made, of at most so many characters.

        Raises:
            TooLongError: it would make more.
            TemplateError: it is wrong, or takes too much time or memory.

        """
        return self._ask({"page": page, "most": most})

    def _ask(self, more: Mapping[str, Json]) -> str:
        asked = {
            "source": self.source,
            "memory": self.limits.memory,
            "cpu_s": self.limits.cpu_s,
            **more,
        }
        answer = _answer(json.dumps(asked).encode() + b"\n", self.limits)
        if answer.get("long"):
            raise TooLongError("makes more than there is room for")
        if "text" not in answer:
            raise TemplateError(str(answer.get("error")), line=answer.get("line"))
        return str(answer["text"])


def read_template(given: str, context: RunContext) -> Template:
    """Return the template that a configuration calls `given`.

    Raises:
        UsageError: it cannot be read, lies outside of the repository, or is wrong.

    """
    shown = context.shown(given)
    path = contained(context.root, given)
    inside = top_of(context.root) or context.root
    if not path.is_relative_to(os.path.normpath(inside)):
        message = "lies outside of the repository, and a template must not"
        raise UsageError(problems=[Problem(message, shown)])
    source = read_text(path, shown=shown)
    if len(source) > MAX_SOURCE:
        message = f"has more than {MAX_SOURCE:,} characters, the most that a template may have"
        raise UsageError(problems=[Problem(message, shown)])
    found = Template(source, shown)
    try:
        found.check()
    except TemplateError as exc:
        message = f"the template cannot be filled in: {exc}"
        raise UsageError(problems=[Problem(message, shown, exc.line)]) from None
    return found


def _answer(line: bytes, limits: Limits) -> dict[str, Any]:
    """Return what a child process answers.

    Raises:
        TemplateError: it had to be ended, or ended by itself.

    """
    child = subprocess.Popen(  # noqa: S603  # our own interpreter, with our own code
        [sys.executable, "-I", "-c", _CODE, _PACKAGE],
        env={},
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        **isolation.child_options(),
    )
    try:
        out, _ = child.communicate(line, timeout=limits.wall_s)
    except subprocess.TimeoutExpired:
        raise TemplateError(f"was not done after {limits.wall_s:g} s") from None
    finally:
        _end(child)
    if sys.platform != "win32" and child.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        raise TemplateError(f"was not done after {limits.cpu_s} s of computing")
    try:
        answer = json.loads(out)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise TemplateError("asked for more than a template is given")
    return answer


def _end(child: "subprocess.Popen[bytes]") -> None:
    """Kill the child, if it still runs, and close its streams.

    Its end is not waited for without a limit: a process of the same user can trace the child, and
    the kernel keeps its exit code back as long as that one likes.
    """
    if child.returncode is None:
        if sys.platform == "win32":
            child.kill()
        else:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_TO_DIE_S)
    for stream in filter(None, (child.stdin, child.stdout)):
        with suppress(BrokenPipeError):  # what was left to write
            stream.close()


# --- Plain data -------------------------------------------------------------------------------


def plain(value: Any) -> Json:
    """Return `value` as plain data, each record with its fields and what it knows of itself."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) or isinstance(value, BaseModel):
        known = {
            name: plain(getattr(value, name)) for name in _names(cast("Hashable", type(value)))
        }
        return {"record": known, "is": bool(value)}
    if isinstance(value, Mapping):
        return {"keys": {str(name): plain(each) for name, each in value.items()}}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """Return the names of the fields and properties of a record."""
    own = kind.model_fields if issubclass(kind, BaseModel) else [each.name for each in fields(kind)]
    properties = (
        name
        for base in kind.__mro__
        if base is not BaseModel
        for name, each in vars(base).items()
        if isinstance(each, property | cached_property) and not name.startswith("_")
    )
    return tuple(dict.fromkeys([*own, *properties]))
