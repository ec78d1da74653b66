"""User templates, rendered in a restricted child process.

Jinja's sandbox keeps a template from Python's internals, but limits neither time nor memory.  So it
is rendered by a child process of our own interpreter: without an environment, with little memory,
unable to write files, and killed at a timeout.  The child gets plain data and returns text.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel

from ci_eval.records.cases import Json
from ci_eval.records.errors import UsageError
from ci_eval.runtime import isolation
from ci_eval.runtime.clone import top_of
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.path_checks import contained
from ci_eval.text.sanitize import REPLACEMENT
from ci_eval.text.yaml_files import read_text

MAX_SOURCE = 256 * 1024
"""The longest template or style sheet, in characters."""
CPU_S = 10
"""The CPU time for rendering a template, in seconds."""
WALL_S = 60.0
"""The wall-clock time for rendering, in seconds; generous for busy machines."""
MEMORY = 512 * 1024 * 1024
"""The address space for rendering, in bytes."""
_KILL_TIMEOUT_S = 5.0
"""Maximum time for a killed child to end, in seconds."""
_END_OF_STYLE = re.compile("</style", re.IGNORECASE)
_PACKAGE = str(Path(__file__).resolve().parents[2])
_CODE = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from ci_eval.runtime.template_child import main; main()"
)


Kind = Literal["markdown", "html"]


class TemplateError(Exception):
    """A user template could not be rendered; the message says why."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        self.line = line
        super().__init__(message)


class TooLongError(TemplateError):
    """The rendered text is too long."""


@dataclass(frozen=True)
class Template:
    """A user template."""

    source: str
    shown: str
    """The path that the user sees."""
    kind: Kind = "markdown"
    """What it renders."""

    def place(self, exc: TemplateError) -> str:
        """Return where an error is: the path, and the line if it is known."""
        return f"{self.shown}:{exc.line}" if exc.line else self.shown

    def check(self) -> None:
        """Check the template without rendering it.

        Raises:
            TemplateError: it is invalid.

        """
        self._request({})

    def fill(self, page: Json, most: int) -> str:
        """Render `page`, encoded by `plain`, to at most `most` characters.

        Raises:
            TooLongError: the text would be longer.
            TemplateError: the template is invalid, or takes too much time or memory.

        """
        return self._request({"page": page, "most": most})

    def _request(self, more: Mapping[str, Json]) -> str:
        request = {
            "source": self.source,
            "kind": self.kind,
            "memory": MEMORY,
            "cpu_s": CPU_S,
            **more,
        }
        answer = _answer(json.dumps(request).encode() + b"\n")
        if answer.get("long"):
            raise TooLongError("its output is too long")
        if "text" not in answer:
            raise TemplateError(str(answer.get("error")), line=answer.get("line"))
        return str(answer["text"])


def read_template(given: str, context: RunContext, *, kind: Kind = "markdown") -> Template:
    """Read and check a template that the configuration names.

    Raises:
        UsageError: it cannot be read, is outside of the repository, or is invalid.

    """
    shown = context.shown(given)
    found = Template(_source(given, context, "template"), shown, kind)
    try:
        found.check()
    except TemplateError as exc:
        message = f"the template cannot be rendered: {exc}"
        raise UsageError(message, file=shown, line=exc.line) from None
    return found


def read_style(given: str, context: RunContext) -> str:
    """Read a style sheet that the configuration names.

    Raises:
        UsageError: it cannot be read, is outside of the repository, or would end its element.

    """
    text = _source(given, context, "style sheet")
    if found := _END_OF_STYLE.search(text):
        line = 1 + text.count("\n", 0, found.start())
        message = f"contains {found[0]!r}, which ends a style sheet in HTML; remove it"
        raise UsageError(message, file=context.shown(given), line=line)
    # Normalized as a browser does: a hash of any other text would block the whole style sheet.
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", REPLACEMENT)


def _source(given: str, context: RunContext, what: str) -> str:
    shown = context.shown(given)
    path = contained(context.root, given)
    top = top_of(context.root) or context.root
    if not path.is_relative_to(os.path.normpath(top)):
        message = f"is outside of the repository, which is not allowed for a {what}"
        raise UsageError(message, file=shown)
    source = read_text(path, shown=shown)
    if len(source) > MAX_SOURCE:
        message = f"has more than {MAX_SOURCE:,} characters, the limit for a {what}"
        raise UsageError(message, file=shown)
    return source


def _answer(line: bytes) -> dict[str, Any]:
    """Return the response of a child process.

    Raises:
        TemplateError: it timed out or crashed.

    """
    child = subprocess.Popen(  # noqa: S603  # our own interpreter, with our own code
        [sys.executable, "-I", "-c", _CODE, _PACKAGE],
        env={},
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        **isolation.child_options(isolation.account()),
    )
    try:
        out, _ = child.communicate(line, timeout=WALL_S)
    except subprocess.TimeoutExpired:
        raise TemplateError(f"timed out after {WALL_S:g} s") from None
    finally:
        _end(child)
    if sys.platform != "win32" and child.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        raise TemplateError(f"used more than {CPU_S} s of CPU time")
    try:
        answer = json.loads(out)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise TemplateError("exceeded the resource limits for templates")
    return answer


def _end(child: "subprocess.Popen[bytes]") -> None:
    """Kill the child, if it still runs, and close its streams.

    The wait for its end has a timeout: a process of the same user can trace the child, which makes
    the kernel hold back its exit code.
    """
    if child.returncode is None:
        isolation.kill_group(child.pid, child.kill)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_KILL_TIMEOUT_S)
    for stream in filter(None, (child.stdin, child.stdout)):
        with suppress(BrokenPipeError):  # unsent input
            stream.close()


# --- Plain data -------------------------------------------------------------------------------


def plain(value: Any) -> Json:
    """Return `value` as plain data; a record as its fields, properties and truth value."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) or isinstance(value, BaseModel):
        names = _names(cast("Hashable", type(value)))
        known = {name: plain(getattr(value, name)) for name in names}
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
