"""Conversations that already took place, read from a file."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple

from pydantic import ConfigDict, ValidationError

from ci_eval.documents import contained, dotted, open_text, read_text
from ci_eval.errors import Problem, TrialError, UsageError
from ci_eval.explain import explain
from ci_eval.json_walk import JsonFile, parse_json
from ci_eval.plugins import Agent, RunningAgent, World, agent
from ci_eval.records import Content, Invocation, Json, Record, Trial

MAX_LINE_BYTES = 64 * 1024 * 1024
"""The longest line of a recording."""
MAX_PROBLEMS = 100
"""Reading a recording stops after so many problems."""


class Recording(Record):
    """One conversation, one line of a recording; keys that are not known here are ignored."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")

    eval_id: str
    evalset: str | None = None
    """The evalset, as the configuration names it; left out, it fits any."""
    repeat: int = 0
    invocations: tuple[Invocation, ...] | None = None
    final_state: dict[str, Json] | None = None
    error: str | None = None
    """Why the agent could not be observed."""
    error_kind: str = "recorded"


@agent("recorded")
class Recorded(Agent):
    """Conversations that were recorded: by `run --record`, by ADK, or by your own tool.

    The file holds one JSON object a line, `{"eval_id", "invocations": [ADK Invocation, …]}`
    with `evalset`, `repeat`, `final_state` and `error` where there is something to say, and
    the last line about a case counts.  Or it is a result file of ADK (`*.evalset_result.json`).
    """

    recorded: str
    """The file, from the folder of the configuration."""

    @asynccontextmanager
    async def start(self, world: World) -> AsyncIterator[RunningAgent]:
        """Read where each conversation stands."""
        path, index = self._index(world)
        with path.open("rb") as file:
            yield _Replay(file, self.recorded, index)

    def check(self, world: World) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the file."""
        try:
            self._index(world)
        except UsageError as exc:
            for problem in exc.problems:
                place = f"{problem.file}:{problem.line}" if problem.line else problem.file
                said = ": ".join(filter(None, (place, problem.where, problem.message)))
                yield "recorded", said

    def _index(self, world: World) -> tuple[Path, "_Index"]:
        path = contained(world.root, self.recorded)
        with open_text(path, self.recorded):
            stat = path.stat()
        return path, _read_index(path, self.recorded, stat.st_mtime_ns, stat.st_size)


class _Place(NamedTuple):
    """Where a conversation stands: an offset in the file, or the conversation itself."""

    offset: int
    value: Recording | None = None


_Index = dict[tuple[str | None, str, int], _Place]


@lru_cache(maxsize=8)
def _read_index(path: Path, shown: str, _mtime_ns: int, _size: int) -> _Index:
    """Return where each conversation stands, having checked them all.

    Time and size of the file are arguments so that a changed file is read again.
    """
    head = None if _is_lines(path) else JsonFile(path, shown=shown).head()
    if isinstance(head, str) or (isinstance(head, dict) and _RESULTS & head.keys()):
        return _index_results(path, shown)
    return _index_lines(path, shown)


def _is_lines(path: Path) -> bool:
    """Say whether the first line is a whole JSON value, and not all there is of ADK's."""
    with path.open("rb") as file:
        first = file.readline(MAX_LINE_BYTES)
        try:
            value = parse_json(first)
        except ValueError:
            return False
        return isinstance(value, dict) and not _RESULTS & value.keys()


def _index_lines(path: Path, shown: str) -> _Index:
    index: _Index = {}
    problems: list[Problem] = []
    with path.open("rb") as file:
        offset = 0
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES), b""), 1):
            if line.strip():
                try:
                    found = _recording(line)
                    index[found.evalset, found.eval_id, found.repeat] = _Place(offset)
                except ValueError as exc:
                    problems += [Problem(text, shown, number) for text in _said(exc)]
            if len(problems) >= MAX_PROBLEMS:
                break
            offset += len(line)
    if problems:
        raise UsageError(problems=problems)
    return index


def _recording(line: bytes) -> Recording:
    found = Recording.model_validate(parse_json(line))
    if found.invocations is None and found.error is None:
        raise ValueError("holds neither 'invocations' nor an 'error'")
    return found


def _said(exc: ValueError) -> Iterator[str]:
    """Yield what is wrong with a line."""
    if isinstance(exc, ValidationError):
        for loc, message in explain(exc, Recording):
            yield f"{dotted(loc)}: {message}"
    elif isinstance(exc, UnicodeDecodeError):
        yield f"byte {exc.object[exc.start]:#04x} is not UTF-8"
    else:
        yield str(exc) if "'" in str(exc) else f"is not JSON: {exc}"


# --- ADK's result files -----------------------------------------------------------------------

_RESULTS = {"eval_case_results", "evalCaseResults", "eval_set_result_id", "evalSetResultId"}


def _index_results(path: Path, shown: str) -> _Index:
    """Return the conversations of ADK's result file; older ones hold JSON in a JSON text."""
    value = parse_json(read_text(path, shown=shown))
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError as exc:
            message = f"holds a text that is not JSON: {exc}"
            raise UsageError(problems=[Problem(message, shown)]) from exc
    cases = value.get("eval_case_results", value.get("evalCaseResults"))
    if not isinstance(cases, list):
        raise UsageError(problems=[Problem("has no list 'eval_case_results'", shown)])
    index: _Index = {}
    seen: dict[str, int] = {}
    for position, case in enumerate(cases):
        try:
            found = _of_result(case)
        except (ValueError, LookupError, TypeError, AttributeError) as exc:
            where = f"eval_case_results[{position}]"
            text = next(_said(exc)) if isinstance(exc, ValueError) else "is not a case of ADK's"
            raise UsageError(problems=[Problem(text, shown, where=where)]) from exc
        repeat = seen.get(found.eval_id, 0)
        seen[found.eval_id] = repeat + 1
        index[None, found.eval_id, repeat] = _Place(0, found)
    return index


def _of_result(case: Any) -> Recording:
    """Return the conversation that one case of a result file holds."""
    turns = case.get("eval_metric_result_per_invocation")
    if turns is None:
        turns = case.get("evalMetricResultPerInvocation") or []
    actual = [turn.get("actual_invocation", turn.get("actualInvocation")) for turn in turns]
    given = {"eval_id": case.get("eval_id", case.get("evalId")), "invocations": actual}
    if not actual:
        given["error"] = "ADK's result holds no invocation: the agent failed there"
    return Recording.model_validate(given)


# --- Replaying --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Replay:
    """A recording that is open."""

    file: IO[bytes]
    shown: str
    index: _Index

    async def open(self, trial: Trial, *, alone: bool = False) -> "_Held":
        """Return the conversation that was recorded for `trial`."""
        del alone
        key = trial.key
        place = self.index.get((key.evalset, key.case, key.repeat)) or self.index.get(
            (None, key.case, key.repeat)
        )
        if place is None:
            raise TrialError("not_recorded", self._missing(key.evalset, key.case, key.repeat))
        found = place.value or self._read(place.offset)
        if found.error is not None:
            raise TrialError(found.error_kind, found.error)
        return _Held(found.invocations or (), found.final_state)

    def _read(self, offset: int) -> Recording:
        self.file.seek(offset)
        return _recording(self.file.readline(MAX_LINE_BYTES))

    def _missing(self, evalset: str, case: str, repeat: int) -> str:
        again = f" (repeat {repeat})" if repeat else ""
        others = sorted({str(at[0]) for at in self.index if at[1] == case and at[0]} - {evalset})
        elsewhere = f", only for the evalset {', '.join(others)}" if others else ""
        return f"{self.shown} has no recording of this case{again}{elsewhere}"


@dataclass(frozen=True)
class _Held:
    """A conversation that took place."""

    held: tuple[Invocation, ...]
    final_state: dict[str, Json] | None

    async def send(self, message: Content) -> Invocation:
        """Never called: the conversation is over."""
        raise NotImplementedError

    async def close(self) -> dict[str, Json] | None:
        """Return the recorded final state."""
        return self.final_state
