"""What adapters have in common: how what an agent does is told of, and tools are canned.

They run this file by its path, under the agent's interpreter, as `worker.py` runs them.  So it
makes do with the standard library of Python 3.8 and imports nothing of ci-eval.
"""

from __future__ import annotations

import json
import math
import os
import re
import runpy
import sys
import time
from collections.abc import Mapping
from contextlib import contextmanager
from datetime import date
from enum import Enum
from os.path import dirname, join
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

    from ci_eval.runtime.workers.canned import Given

Json = Any

_FOLDER = os.getcwd()
"""That of the configuration, before the agent goes elsewhere."""
DEEPEST = 40
"""How deep a value may be nested; what lies below is told of as Python shows it."""


def _above(name: str) -> dict[str, Any]:
    return runpy.run_path(join(dirname(dirname(__file__)), name))


_Canned = _above("canned.py")["Canned"]
if TYPE_CHECKING:
    from ci_eval.runtime.workers import faults
else:
    faults = SimpleNamespace(**_above("faults.py"))
in_short = faults.in_short


def require(*packages: str, least: tuple[int, ...] = ()) -> None:
    """Make sure that one of `packages`, by their names on PyPI, is there, of at least `least`.

    Raises:
        ModuleNotFoundError: none is.
        ImportError: it is too old.

    """
    from importlib.metadata import PackageNotFoundError, version

    for package in packages:
        try:
            found = version(package)
        except PackageNotFoundError:
            continue
        if tuple(map(int, re.findall(r"\d+", found)))[: len(least)] < least:
            needed = ".".join(map(str, least))
            raise ImportError(f"{package} {found} is too old: {needed} is the least that is needed")
        return
    message = f"{packages[0]} is not installed for {sys.executable}"
    raise ModuleNotFoundError(f"{message}; install it there, or name the `interpreter` that has it")


# --- What the agent does ----------------------------------------------------------------------


def event(  # noqa: PLR0913  # what an event is made of
    author: str,
    *,
    text: str = "",
    thought: str = "",
    calls: Iterable[dict[str, Json]] = (),
    usage: dict[str, Json] | None = None,
    model: str | None = None,
    finish: Any = None,
) -> dict[str, Json]:
    """Return the event of a model's answer; `finish` is why it ended, as the provider says."""
    parts: list[dict[str, Json]] = [{"text": thought, "thought": True}] if thought else []
    parts += [{"text": text}] if text else []
    parts += [{"function_call": each} for each in calls]
    return {
        "author": author,
        "content": {"role": "model", "parts": parts} if parts else None,
        "usage_metadata": usage,
        "model_version": model,
        "finish_reason": None if finish is None else str(getattr(finish, "value", finish)),
    }


def call(identity: str | None, name: str | None, args: Any) -> dict[str, Json]:
    """Return a call of a tool; arguments that are no object stand under `arguments`."""
    return {"id": identity, "name": name, "args": as_object(args, "arguments")}


def answered(author: str, identity: str | None, name: str | None, result: Any) -> dict[str, Json]:
    """Return the event of a tool's answer; what is no object stands under `result`."""
    response = {"id": identity, "name": name, "response": as_object(result, "result")}
    return {
        "author": author,
        "content": {"role": "user", "parts": [{"function_response": response}]},
    }


def trajectory(events: list[dict[str, Json]], said: str | None) -> dict[str, Json]:
    """Return the events on the way to the final response `said`.

    That itself is no step on the way, but what it took to say it counts.
    """
    *before, last = events or [{}]
    parts = (last.get("content") or {}).get("parts") or ()
    if said and [each.get("text") for each in parts if not each.get("thought")] == [said]:
        thoughts = [each for each in parts if each.get("thought")]
        last = {**last, "content": {"role": "model", "parts": thoughts} if thoughts else None}
    told = [each for each in (*before, last) if each.get("content") or each.get("usage_metadata")]
    return {"invocation_events": told}


def ending(events: list[dict[str, Json]]) -> str | None:
    """Return why the last answer of a model ended, as far as that is known."""
    answers = [each for each in events if "finish_reason" in each]
    return answers[-1]["finish_reason"] if answers else None


def failed(kind: str, message: str) -> dict[str, Any]:
    """Return the part of a reply that says, in one line, what went wrong."""
    return {"error": {"kind": kind, "message": faults.bounded(" ".join(message.split()))}}


def spoken(text: str) -> dict[str, Json]:
    """Return the content of a final response."""
    return {"role": "model", "parts": [{"text": text}]}


def tokens(
    *, prompt: int | None, output: int | None, reasoning: int | None, cached: int | None
) -> dict[str, Json] | None:
    """Return what a model used, in the names of ADK, where reasoning is no part of the output."""
    if prompt is None and output is None:
        return None
    used = {
        "prompt_token_count": prompt,
        "candidates_token_count": max((output or 0) - (reasoning or 0), 0),
        "thoughts_token_count": reasoning or None,
        "cached_content_token_count": cached or None,
        "total_token_count": (prompt or 0) + (output or 0),
    }
    return {name: value for name, value in used.items() if value is not None}


def declaration(name: str, description: str | None, schema: Any) -> dict[str, Json]:
    """Return the declaration of a tool in the form of ADK."""
    told = {"name": name, "description": description or "", "parameters": as_json(schema)}
    return {"function_declarations": [told]}


def json_text(value: Any) -> str:
    """Return `value` as the text of its JSON."""
    return json.dumps(as_json(value), ensure_ascii=False)


def as_object(value: Any, key: str) -> dict[str, Json]:
    """Return `value` as a JSON object, also where it is the text of one; else it is at `key`."""
    found = value
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            found = value
    found = as_json(found)
    return found if isinstance(found, dict) else {key: as_json(value)}


def as_json(value: Any, depth: int = 0) -> Json:
    """Return `value` as JSON, with a text for each part that JSON has no form for."""
    value = _plain(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if depth >= DEEPEST:
        return faults.in_short(value)
    if isinstance(value, Mapping):
        return {str(key): as_json(each, depth + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [as_json(each, depth + 1) for each in value]
    return str(value)


def _plain(value: Any) -> Any:
    """Return what an object that stands for a value of another kind stands for."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, date):
        return value.isoformat()
    if hasattr(type(value), "model_dump"):
        return value.model_dump(exclude_none=True)
    if hasattr(type(value), "__dataclass_fields__"):
        return {name: getattr(value, name) for name in type(value).__dataclass_fields__}
    return value


class Watch:
    """How long models and tools are at work, several at a time."""

    def __init__(self) -> None:
        self._began: dict[Any, tuple[str, float]] = {}
        self._spans: dict[str, list[tuple[float, float]]] = {"model": [], "tool": []}

    def begin(self, what: str, key: Any) -> None:
        """Note that a `model` or a `tool`, known by `key`, goes to work."""
        self._began[key] = (what, time.perf_counter())

    def end(self, key: Any) -> None:
        """Note that it is done."""
        what, began = self._began.pop(key, ("", 0.0))
        if what:
            self._spans[what].append((began, time.perf_counter()))

    @contextmanager
    def during(self, what: str) -> Iterator[None]:
        """Note that a `model` or a `tool` is at work within."""
        key = object()
        self.begin(what, key)
        try:
            yield
        finally:
            self.end(key)

    @property
    def durations(self) -> dict[str, float | None]:
        """The seconds of models, and those of tools while no model was at work."""
        models, tools = self._spans["model"], self._spans["tool"]
        at_models = _length(models)
        return {
            "model_duration": at_models if models else None,
            "tool_duration": max(_length(models + tools) - at_models, 0.0) if tools else None,
        }


def _length(spans: list[tuple[float, float]]) -> float:
    """Return the seconds that at least one of `spans` covers."""
    covered, reached = 0.0, -math.inf
    for began, ended in sorted(spans):
        covered += max(ended - max(began, reached), 0.0)
        reached = max(reached, ended)
    return covered


# --- Tools that are not really called ---------------------------------------------------------


class UnmockedError(Exception):
    """A tool was called for which there is no canned result."""


class Mocks:
    """The canned results of a conversation; what is raised inside is kept, to be told.

    Frameworks tell models of exceptions in tools instead of ending: so the first call without a
    canned result is kept, too, and counts.
    """

    def __init__(self, session: dict[str, Any]) -> None:
        given = session.get("tool_mocks")
        self._canned = _Canned(given["tools"], given.get("used", ())) if given else None
        self._really = not given or given.get("unmatched") == "pass"
        self._missing = ""
        self._raised = ""

    def __bool__(self) -> bool:
        """Say whether there are any."""
        return self._canned is not None

    def find(self, name: str, args: Any) -> Given | None:
        """Return what a call of the tool `name` gets; `None` where it is to be made.

        Raises:
            UnmockedError: it is to be an error.

        """
        if self._canned is None:
            return None
        known = as_object(args, "arguments")
        given: Given | None = self._canned.find(name, known)
        if given is None and not self._really:
            shown = ", ".join(f"{key}={value!r}" for key, value in known.items())
            shown = shown if len(shown) <= faults.SHOWN_CHARS else shown[: faults.SHOWN_CHARS] + "…"
            self._missing = self._missing or f"{name}({shown})"
            raise UnmockedError(f"no canned result for {name}({shown})")
        return given

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _kind: type[BaseException] | None, exc: BaseException | None, _: TracebackType | None
    ) -> bool:
        if isinstance(exc, Exception):
            self._raised = faults.raised(exc, _FOLDER)
        return isinstance(exc, Exception)

    @property
    def told(self) -> dict[str, Any]:
        """What a reply says of them: how often they were used, or what ended the turn."""
        used = {"used": self._canned.used} if self._canned and self._canned.used else {}
        if not self._missing:
            return failed("raised", self._raised) if self._raised else used
        return failed(
            "unmocked",
            f"the agent called {self._missing}, for which `tool_mocks` of the case give nothing; "
            "add a result, or say `unmatched: pass`",
        )
