"""Reporting what an agent does, and canned tools, for all adapters.

Adapters import this file under the agent's interpreter.  It needs only the standard library of
Python 3.9 and imports nothing but the files beside it.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import time
from collections.abc import Mapping
from contextlib import contextmanager
from datetime import date
from enum import Enum
from typing import TYPE_CHECKING, Any

from .. import worker_faults
from ..canned_tools import Canned, Given

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Json = Any

_FOLDER = os.getcwd()
"""The folder of the configuration, read before the agent changes the working directory."""
GRAPH_END = "__end__"
"""The node that a graph visits when it ends, as LangGraph and AgentFlow name it."""
MAX_DEPTH = 40
"""The deepest nesting of a value; deeper values are replaced by their `repr`."""


in_short = worker_faults.in_short


def require(*packages: str, least: tuple[int, ...] = ()) -> None:
    """Require one of `packages`, by their names on PyPI, in version `least` or later.

    Raises:
        ModuleNotFoundError: none is installed.
        ImportError: the installed version is too old.

    """
    from importlib.metadata import PackageNotFoundError, version

    for package in packages:
        try:
            found = version(package)
        except PackageNotFoundError:
            continue
        if tuple(map(int, re.findall(r"\d+", found)))[: len(least)] < least:
            needed = ".".join(map(str, least))
            raise ImportError(f"{package} {found} is too old: it must be {needed} or newer")
        return
    message = f"{packages[0]} is not installed for {sys.executable}; install it"
    raise ModuleNotFoundError(f"{message}, or set `interpreter` to a Python that has it")


# --- Events -----------------------------------------------------------------------------------


def event(  # noqa: PLR0913  # the parts of an event
    author: str,
    *,
    text: str = "",
    thought: str = "",
    calls: Iterable[dict[str, Json]] = (),
    usage: dict[str, Json] | None = None,
    model: str | None = None,
    fingerprint: str | None = None,
    finish: Any = None,
) -> dict[str, Json]:
    """Return the event of a model's response; `finish` is the provider's finish reason.

    `fingerprint` is OpenAI's `system_fingerprint`.
    """
    parts: list[dict[str, Json]] = [{"text": thought, "thought": True}] if thought else []
    parts += [{"text": text}] if text else []
    parts += [{"function_call": each} for each in calls]
    return {
        "author": author,
        "content": {"role": "model", "parts": parts} if parts else None,
        "usage_metadata": usage,
        "model_version": model,
        "system_fingerprint": fingerprint,
        "finish_reason": None if finish is None else str(getattr(finish, "value", finish)),
    }


def call(identity: str | None, name: str | None, args: Any) -> dict[str, Json]:
    """Return a tool call; arguments that are not an object are put under `arguments`."""
    return {"id": identity, "name": name, "args": as_object(args, "arguments")}


def answered(author: str, identity: str | None, name: str | None, result: Any) -> dict[str, Json]:
    """Return the event of a tool's response; one that is not an object is put under `result`."""
    response = {"id": identity, "name": name, "response": as_object(result, "result")}
    content = {"role": "user", "parts": [{"function_response": response}]}
    return {"author": author, "content": content}


def trajectory(events: list[dict[str, Json]], said: str | None) -> dict[str, Json]:
    """Return the events before the final response `said`.

    The final response itself is not among them, but its thoughts and token usage are.
    """
    *before, last = events or [{}]
    parts = (last.get("content") or {}).get("parts") or ()
    if said and [each.get("text") for each in parts if not each.get("thought")] == [said]:
        thoughts = [each for each in parts if each.get("thought")]
        last = {**last, "content": {"role": "model", "parts": thoughts} if thoughts else None}
    kept = [each for each in (*before, last) if each.get("content") or each.get("usage_metadata")]
    return {"invocation_events": kept}


def last_finish_reason(events: list[dict[str, Json]]) -> str | None:
    """Return the finish reason of the last model response, if known."""
    answers = [each for each in events if "finish_reason" in each]
    return answers[-1]["finish_reason"] if answers else None


def failed(kind: str, message: str) -> dict[str, Any]:
    """Return the error part of a reply, with the message on one line."""
    return {"error": {"kind": kind, "message": worker_faults.bounded(" ".join(message.split()))}}


def tokens(
    *, prompt: int | None, output: int | None, reasoning: int | None, cached: int | None
) -> dict[str, Json] | None:
    """Return a model's token usage with ADK's names, where the output excludes reasoning."""
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
    """Return the declaration of a tool in ADK's format."""
    function = {"name": name, "description": description or "", "parameters": as_json(schema)}
    return {"function_declarations": [function]}


def as_text(value: Any) -> str:
    """Return `value`, as JSON if it is not text."""
    return value if isinstance(value, str) else json.dumps(as_json(value), ensure_ascii=False)


def as_object(value: Any, key: str) -> dict[str, Json]:
    """Return `value`, or its JSON text, as an object; put other values under `key`."""
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
    """Return `value` as JSON, with text for the parts that JSON cannot represent."""
    value = _plain(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if depth >= MAX_DEPTH:
        return worker_faults.in_short(value)
    if isinstance(value, Mapping):
        return {str(key): as_json(each, depth + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [as_json(each, depth + 1) for each in value]
    return str(value)


def _plain(value: Any) -> Any:
    """Convert enums, dates, models and dataclasses to plain values."""
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
    """Stopwatch for models and tools that may run concurrently."""

    def __init__(self) -> None:
        self._began: dict[Any, tuple[str, float]] = {}
        self._spans: dict[str, list[tuple[float, float]]] = {"model": [], "tool": []}

    def begin(self, what: str, key: Any) -> None:
        """Record that a `model` or a `tool`, identified by `key`, starts."""
        self._began[key] = (what, time.perf_counter())

    def end(self, key: Any) -> None:
        """Record that it ends."""
        what, began = self._began.pop(key, ("", 0.0))
        if what:
            self._spans[what].append((began, time.perf_counter()))

    @contextmanager
    def during(self, what: str) -> Iterator[None]:
        """Record that a `model` or a `tool` runs within this context."""
        key = object()
        self.begin(what, key)
        try:
            yield
        finally:
            self.end(key)

    @property
    def durations(self) -> dict[str, float | None]:
        """The seconds during which models ran, and tools ran without any model."""
        models, tools = self._spans["model"], self._spans["tool"]
        model_s = _length(models)
        return {
            "model_duration": model_s if models else None,
            "tool_duration": max(_length(models + tools) - model_s, 0.0) if tools else None,
        }


def _length(spans: list[tuple[float, float]]) -> float:
    """Return the seconds covered by at least one of `spans`."""
    covered, reached = 0.0, -math.inf
    for began, ended in sorted(spans):
        covered += max(ended - max(began, reached), 0.0)
        reached = max(reached, ended)
    return covered


# --- Canned tools -----------------------------------------------------------------------------


class UnmockedError(Exception):
    """A tool was called that has no canned result."""


class Mocks:
    """The canned results of a conversation, as a context that records exceptions.

    Frameworks report exceptions in tools to the model and continue.  So the first call without a
    canned result is recorded, too, and makes the trial an error.
    """

    def __init__(self, session: dict[str, Any]) -> None:
        given = session.get("tool_mocks")
        self._canned = Canned(given["tools"], given.get("used", ())) if given else None
        self._calls_unmatched = not given or given.get("unmatched") == "pass"
        self._missing = ""
        self._raised = ""

    def __bool__(self) -> bool:
        """Return True if the conversation has canned results."""
        return self._canned is not None

    def find(self, name: str, args: Any) -> Given | None:
        """Return the canned outcome of a call of the tool `name`; `None` to make the call.

        Raises:
            UnmockedError: the call has no canned result, and must not be made.

        """
        if self._canned is None:
            return None
        known = as_object(args, "arguments")
        given: Given | None = self._canned.find(name, known)
        if given is None and not self._calls_unmatched:
            shown = worker_faults.cut(", ".join(f"{key}={value!r}" for key, value in known.items()))
            self._missing = self._missing or f"{name}({shown})"
            raise UnmockedError(f"no canned result for {name}({shown})")
        return given

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, exc: BaseException | None, _trace: object) -> bool:
        if isinstance(exc, Exception):
            self._raised = worker_faults.raised(exc, _FOLDER)
        return isinstance(exc, Exception)

    @property
    def reply_fields(self) -> dict[str, Any]:
        """The fields of a reply about them: their use, or the error that ended the turn."""
        used = {"used": self._canned.used} if self._canned and self._canned.used else {}
        if not self._missing:
            return failed("raised", self._raised) if self._raised else used
        return failed(
            "unmocked",
            f"the agent called {self._missing}, which has no result in the case's `tool_mocks`; "
            "add a result, or set `unmatched: pass`",
        )


# --- One message ------------------------------------------------------------------------------


class Observations:
    """What an agent does on one message."""

    def __init__(self, mocks: Mocks) -> None:
        self.mocks = mocks
        """The canned results of the conversation."""
        self.watch = Watch()
        """The stopwatch of models and tools."""
        self.events: list[dict[str, Json]] = []
        self.agents: dict[str, dict[str, Json]] = {}
        """The instructions and tools of each agent."""
        self.nodes: list[str] | None = None
        """The visited nodes of a graph, in order."""

    def ended(self, waits: Sequence[dict[str, Json]]) -> None:
        """Record that a graph reached its end, if it does not wait for answers."""
        if self.nodes is not None and not waits:
            self.nodes.append(GRAPH_END)

    def reply(
        self,
        said: str | None = None,
        last: str | None = None,
        *,
        waits: Sequence[dict[str, Json]] = (),
        memento: Json = None,
    ) -> dict[str, Json]:
        """Return the reply with the final response `said`, which waits for answers to `waits`.

        `last` is the text of the last event, if that is the final response.
        """
        final = {"role": "model", "parts": [{"text": said}]} if said else None
        invocation = {
            "intermediate_data": trajectory(self.events, last),
            "app_details": {"agent_details": self.agents} if self.agents else None,
            "nodes": self.nodes,
            "finish_reason": last_finish_reason(self.events),
            "final_response": final,
            "waits_for": waits,
            **self.watch.durations,
        }
        return {"invocation": invocation, "memento": memento, **self.mocks.reply_fields}
