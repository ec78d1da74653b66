"""Rendering of user templates in a child process, started by `template_sandbox.py`.

It reads one line of JSON, `{"kind", "source", "page"?, "most", "memory", "cpu_s"}`, and writes
one: `{"text"}`, or `{"error", "line"?}`, or `{"long": true}`.  Without a page, the template is
only checked, not rendered.
"""

import json
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ci_eval.runtime.isolation import close_memory
from ci_eval.text import html_templates, templates

_KEPT = ("range", "dict", "namespace")
"""Jinja's globals that templates may use."""
_OURS = {
    "markdown": ("_parts.md.j2", "comment.md.j2", "summary.md.j2"),
    "html": ("report/_parts.html.j2", "report/overview.html.j2"),
}
"""Our own templates that a user template of each kind may use; parts first."""
_FILES = 32
"""Maximum number of open files: what Python loads, and our own templates."""


class Plain:
    """A record of a report, reduced to its fields and its truth value."""

    def __init__(self, fields: Mapping[str, Any], *, truth: bool) -> None:
        self.__dict__.update(fields)
        self._truth = truth

    def __bool__(self) -> bool:
        return self._truth

    def __str__(self) -> str:
        return "a record"


Plain.__module__, Plain.__name__ = "builtins", "record"  # as Jinja's messages name it


class _TooLongError(Exception):
    """The rendered text is too long."""


def main() -> None:
    """Handle the request on standard input."""
    close_memory()  # in our container, agents run as the same user
    request = json.loads(sys.stdin.buffer.readline())
    environment = _environment(request["kind"])  # before memory and files are limited
    _limit(request["memory"], request["cpu_s"])
    try:
        answer = _error(environment, request, *_OURS[request["kind"]]) or _rendered(
            environment, request
        )
    except _TooLongError:
        answer = {"long": True}
    except MemoryError:
        answer = {"error": f"takes more than {request['memory'] >> 20} MiB"}
    except RecursionError:
        answer = {"error": "recurses without end"}
    except _errors() as exc:
        message = getattr(exc, "message", None) or str(exc)
        answer = {"error": message[:500].rstrip("."), "line": _line_of(exc)}
    sys.stdout.write(json.dumps(answer) + "\n")


def _environment(kind: str) -> Any:
    base = html_templates.environment() if kind == "html" else templates.environment()
    found = base.overlay()
    found.globals = {name: found.globals[name] for name in _KEPT}
    for name in _OURS[kind]:
        found.get_template(name)
    return found


def _limit(memory: int, cpu_s: int) -> None:
    """Limit the resources of this process irrevocably."""
    if sys.platform == "win32":  # has no such limits
        return
    import resource

    for what, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, _FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (least, least))


def _errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that an invalid template raises."""
    from jinja2 import TemplateError

    other = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
    return (TemplateError, *other)


def _error(
    environment: Any, request: Mapping[str, Any], parts: str, *others: str
) -> dict[str, Any] | None:
    """Return an error in a template that can be found without rendering it.

    `parts` and `others` are our templates that it may use.
    """
    from jinja2 import meta, nodes

    tree = environment.parse(request["source"])
    unknown = sorted(meta.find_undeclared_variables(tree) - {"page", *_KEPT})
    if unknown:
        return {"error": f"unknown variable {unknown[0]!r}; only 'page' is available"}
    if escaping := tree.find(nodes.ScopedEvalContextModifier):
        return {"error": "must not change how text is escaped", "line": escaping.lineno}
    for name in meta.find_referenced_templates(tree):
        if name is None:
            return {"error": "imports a template whose name is not a literal"}
        if name not in (parts, *others):
            return {"error": f"there is no template {name!r}; only {parts!r} can be imported"}
    environment.compile(request["source"], filename="<template>")
    return None


def _rendered(environment: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    if "page" not in request:
        return {"text": ""}
    page = _plain(request["page"])
    pieces = environment.from_string(request["source"]).generate({"page": page})
    return {"text": "".join(_up_to(pieces, request["most"]))}


def _up_to(pieces: Iterable[str], most: int) -> Iterator[str]:
    for piece in pieces:
        most -= len(piece)
        if most < 0:
            raise _TooLongError
        yield piece


def _plain(value: Any) -> Any:
    """Decode a page, encoded by `template_sandbox.plain`, for use in templates."""
    match value:
        case {"record": fields, "is": truth}:
            inner = {name: _plain(each) for name, each in fields.items()}
            return Plain(inner, truth=truth)
        case {"keys": entries}:
            return {name: _plain(each) for name, each in entries.items()}
        case [*entries]:
            return [_plain(each) for each in entries]
        case _:
            return value


def _line_of(exc: Exception) -> int | None:
    """Return the line of the template that failed, if known."""
    line = getattr(exc, "lineno", None)
    if line is not None:
        return int(line)
    frames = traceback.extract_tb(exc.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == "<template>"]
    return lines[-1] if lines else None
