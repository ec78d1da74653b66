"""Fills a template of the user's: what a child process of `template_sandbox.py` runs.

It reads one line of JSON, `{"name", "source", "page"?, "most", "memory", "cpu_s"}`, and
writes one: `{"text"}`, or `{"error", "line"?}`, or `{"long": true}`.  Without a page nothing is
filled in; what can be seen without it is checked.
"""

import json
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ci_eval.runtime.isolation import close_memory
from ci_eval.text import templates

_KEPT = ("range", "dict", "namespace")
"""What a template has from Jinja itself; the rest is for other purposes."""
_FILES = 32
"""How many files may be open: what Python loads, and our own templates."""


class Plain:
    """A record of a report: only its fields, and whether it counts as something."""

    def __init__(self, fields: Mapping[str, Any], *, truth: bool) -> None:
        self.__dict__.update(fields)
        self._truth = truth

    def __bool__(self) -> bool:
        return self._truth

    def __str__(self) -> str:
        return "a record"


Plain.__module__, Plain.__name__ = "builtins", "record"  # what Jinja's messages call it


class _TooLongError(Exception):
    """The text is longer than anybody takes."""


def main() -> None:
    """Do what the line on standard input asks for."""
    close_memory()  # in our container agents are of the same user
    asked = json.loads(sys.stdin.buffer.readline())
    environment = _environment()  # before there is little memory and few files
    _limit(asked["memory"], asked["cpu_s"])
    try:
        answer = _checked(environment, asked) or _filled(environment, asked)
    except _TooLongError:
        answer = {"long": True}
    except MemoryError:
        answer = {"error": f"takes more than {asked['memory'] >> 20} MiB"}
    except RecursionError:
        answer = {"error": "calls itself without an end"}
    except _errors() as exc:
        said = getattr(exc, "message", None) or str(exc)
        answer = {"error": said[:500], "line": _line_of(exc)}
    sys.stdout.write(json.dumps(answer) + "\n")


def _environment() -> Any:
    found = templates.environment().overlay()
    found.globals = {name: found.globals[name] for name in _KEPT}
    for name in ("_parts.md.j2", "comment.md.j2", "summary.md.j2"):
        found.get_template(name)
    return found


def _limit(memory: int, cpu_s: int) -> None:
    """Take what a template does not need; there is no way back."""
    if sys.platform == "win32":  # it has no such limits
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
    """Return what a wrong template raises."""
    from jinja2 import TemplateError

    wrong = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
    return (TemplateError, *wrong)


def _checked(environment: Any, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what is wrong with a template that can be seen without filling it in."""
    from jinja2 import meta

    tree = environment.parse(asked["source"])
    unknown = sorted(meta.find_undeclared_variables(tree) - {"page", *_KEPT})
    if unknown:
        return {"error": f"asks for {unknown[0]!r}; there is only 'page'"}
    ours = set(environment.list_templates(filter_func=lambda name: "/" not in name))
    for name in meta.find_referenced_templates(tree):
        if name is None:
            return {"error": "takes from a template whose name is not written down"}
        if name not in ours:
            return {"error": f"there is no template {name!r}; it can take from '_parts.md.j2'"}
    environment.compile(asked["source"], filename="<template>")
    return None


def _filled(environment: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    if "page" not in asked:
        return {"text": ""}
    page = _plain(asked["page"])
    pieces = environment.from_string(asked["source"]).generate({"page": page})
    return {"text": "".join(_up_to(pieces, asked["most"]))}


def _up_to(pieces: Iterable[str], most: int) -> Iterator[str]:
    for piece in pieces:
        most -= len(piece)
        if most < 0:
            raise _TooLongError
        yield piece


def _plain(value: Any) -> Any:
    """Return a page as templates see it; `template_sandbox.plain` wrote it down."""
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
    """Return the line of the template on which it went wrong, where that is known."""
    line = getattr(exc, "lineno", None)
    if line is not None:
        return int(line)
    frames = traceback.extract_tb(exc.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == "<template>"]
    return lines[-1] if lines else None
