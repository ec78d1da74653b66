"""Conversations that already took place, read from a file."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, ClassVar, NamedTuple

from pydantic import ConfigDict, Field, ValidationError

from ci_eval import foreign
from ci_eval.documents import contained, dotted, read_text, reading
from ci_eval.errors import Problem, TrialError, UsageError
from ci_eval.explain import explain
from ci_eval.json_text import TRACE_DEPTH, NotJsonError, parse_json, parse_strict
from ci_eval.json_walk import JsonFile
from ci_eval.plugins import Agent, RunningAgent, agent
from ci_eval.records import AdkRecord, Content, Invocation, Json, Recording, Trial
from ci_eval.world import World

MAX_LINE_BYTES = 64 * 1024 * 1024
"""The longest line of a recording."""
MAX_PROBLEMS = 100
"""Reading a recording stops after so many problems."""


@agent("recorded")
class Recorded(Agent):
    """Conversations that were recorded: by `run --record`, by ADK, or by your own tool.

    The file holds one JSON object a line, `{"eval_id", "invocations": [ADK Invocation, …]}`
    with `evalset`, `repeat`, `final_state` and `error` where there is something to say, and
    the last line about a case counts.  Or it is a result file of ADK (`*.evalset_result.json`).
    """

    recorded: str = Field(min_length=1)
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
                yield "recorded", str(problem)

    def _index(self, world: World) -> tuple[Path, "_Index"]:
        path, shown = contained(world.root, self.recorded), world.shown(self.recorded)
        with reading(path, shown=shown):
            stat = path.stat()
        return path, _read_index(path, shown, stat.st_mtime_ns, stat.st_size)


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
    head = _head(path, shown)
    if isinstance(head, str) or foreign.is_adk_result(head):
        return _index_results(path, shown)
    is_recording = isinstance(head, dict) and "eval_id" in head
    odd = foreign.recognised(head) and not is_recording
    if head is not None and (odd or not _has_lines(path)):
        message = f"expected a JSON object on each line, found {foreign.described(head)}"
        raise UsageError(problems=[Problem(message, shown, 1)])
    return _index_lines(path, shown)


def _head(path: Path, shown: str) -> Json:
    """Return the beginning of the one document, or of the first; nothing where it is broken."""
    try:
        return JsonFile(path, shown=shown).head()
    except UsageError:
        return None


def _has_lines(path: Path) -> bool:
    """Say whether the first line that is not blank is JSON on its own."""
    with path.open("rb") as file:
        lines = iter(lambda: file.readline(MAX_LINE_BYTES), b"")
        try:
            parse_json(next(line for line in lines if line.strip()), max_depth=TRACE_DEPTH)
        except NotJsonError:
            return False
    return True


def _index_lines(path: Path, shown: str) -> _Index:
    index: _Index = {}
    problems: list[Problem] = []
    with path.open("rb") as file:
        offset = 0
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES), b""), 1):
            try:
                if line.strip():
                    found = _recording(line)
                    index[found.evalset, found.eval_id, found.repeat] = _Place(offset)
            except ValidationError as exc:
                for loc, message in explain(exc, Recording):
                    problems.append(Problem(message, shown, number, dotted(loc)))
            except ValueError as exc:
                problems.append(Problem(str(exc), shown, number))
            if len(problems) >= MAX_PROBLEMS:
                break
            offset += len(line)
    if problems:
        raise UsageError(problems=problems)
    return index


def _recording(line: bytes) -> Recording:
    return Recording.model_validate(parse_json(line, max_depth=TRACE_DEPTH))


# --- ADK's result files -----------------------------------------------------------------------


def _index_results(path: Path, shown: str) -> _Index:
    """Return the conversations of ADK's result file; older ones hold JSON in a JSON text."""
    document = parse_strict(read_text(path, shown=shown), shown=shown)
    if isinstance(document.value, str):
        document = parse_strict(document.value, shown=shown)
    value = document.value if isinstance(document.value, dict) else {}
    key = "evalCaseResults" if "evalCaseResults" in value else "eval_case_results"
    if not isinstance(value.get(key), list):
        raise UsageError(problems=[Problem("has no list 'eval_case_results'", shown, 1)])
    index: _Index = {}
    problems: list[Problem] = []
    seen: Counter[str] = Counter()
    for position, case in enumerate(value[key]):
        try:
            found = _of_result(_Result.model_validate(case))
        except ValidationError as exc:
            problems += [
                document.problem(message, (key, position, *loc))
                for loc, message in explain(exc, _Result)
            ]
        else:
            index[None, found.eval_id, seen[found.eval_id]] = _Place(0, found)
            seen[found.eval_id] += 1
    if problems:
        raise UsageError(problems=problems[:MAX_PROBLEMS])
    return index


class _Observed(AdkRecord):
    """One turn of a result; what ADK made of it is not read."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")

    actual_invocation: Invocation


class _Result(AdkRecord):
    """One case of a result."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")

    eval_id: str
    eval_metric_result_per_invocation: tuple[_Observed, ...] | None = None


def _of_result(result: _Result) -> Recording:
    """Return the conversation that one case of a result file holds."""
    turns = result.eval_metric_result_per_invocation
    if not turns:
        error = "ADK's result holds no invocation: the agent failed there"
        return Recording(eval_id=result.eval_id, error=error)
    actual = tuple(turn.actual_invocation for turn in turns)
    return Recording(eval_id=result.eval_id, invocations=actual)


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
