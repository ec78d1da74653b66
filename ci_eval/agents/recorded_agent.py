"""Recorded conversations as agents, read from a file."""

import re
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import IO, ClassVar

from pydantic import Field

from ci_eval.formats import known_formats
from ci_eval.formats.sniff import syntax_of
from ci_eval.plugins import points
from ci_eval.plugins.plugin import Syntax
from ci_eval.plugins.points import Agent, RecordingReader, RunningAgent, Session, agent
from ci_eval.records.cases import Content, Invocation, Json
from ci_eval.records.errors import TrialError, UsageError, failure_kind
from ci_eval.records.trials import Recording, Trial, Try
from ci_eval.run_files.journal import MAX_LINE_BYTES
from ci_eval.run_files.recorded_lines import RecordedLine, parsed, recorded_lines
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.path_checks import contained
from ci_eval.runtime.storage.gcs import GcsOptions, Storage
from ci_eval.runtime.storage.gs_uri import Place, is_place
from ci_eval.text.json_stream import JsonFile
from ci_eval.text.json_text import TRACE_DEPTH, NotJsonError, parse_json
from ci_eval.text.sanitize import one_line
from ci_eval.text.yaml_files import reading


@agent("recorded")
class Recorded(Agent):
    """Recorded conversations, from `run --record`, another tool, or your own code.

    The file has one JSON object per line, `{"eval_id", "invocations": [ADK Invocation, …]}`,
    optionally with `agent`, `evalset`, `repeat`, `final_state` and `error`.  Or it has one of the
    formats listed by `ci-eval list recordings`, such as OpenTelemetry traces, detected from its
    content.  Such files may have up to 64 MiB; our own format has no limit.

    A conversation belongs to the case with its id.  In a file without case ids, it belongs to the
    case whose id is that of the conversation or session, else to every case with exactly the same
    user messages in the same order.  Several conversations of a case are its repeats 0, 1, 2 … in
    the order of the file, in every format.  A line of our own format with `repeat` is that repeat,
    and replaces an earlier line with the same number.  If lines name several agents, those with
    the agent's name in the configuration are used.  Conversations that belong to no case are
    ignored.  In a file without any record of tool calls (`intermediate_data`), criteria that read
    them are errors.

    If the messages of a case differ from its recording, the trial is the error `not_recorded`:
    record the case again.  Only the texts are compared, ignoring white space.  There is no
    comparison for scenarios, for messages without text, and for traces (`otel`, `openinference`),
    where a prompt may surround the user's words.
    """

    converses: ClassVar[bool] = False

    recorded: str = Field(min_length=1)
    """Path relative to the folder of the configuration, or an object, `gs://bucket/name`."""
    gcs: GcsOptions = GcsOptions()
    """Connection settings for Cloud Storage; default: `gcs` of the configuration."""

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[RunningAgent]:
        """Index the conversations, and open the file."""
        with self._found(context) as path:
            index = self._index(path, context)
            with path.open("rb") as file:
                yield _Replay(file, self.recorded, index)

    def check(self, context: RunContext) -> Iterator[tuple[str, str]]:
        """Yield the errors in the file."""
        try:
            with self._found(context) as path:
                self._index(path, context)
        except UsageError as exc:
            for problem in exc.problems:
                yield "recorded", str(problem)

    @contextmanager
    def _found(self, context: RunContext) -> Iterator[Path]:
        """Yield the path of the file, or of a temporary copy of the object."""
        if is_place(self.recorded):
            copy = Storage(self.gcs, context.env).copy(Place.parse(self.recorded))
            yield copy.path
            del copy  # it is needed until here
        else:
            yield contained(context.root, self.recorded)

    def _index(self, path: Path, context: RunContext) -> "_Index":
        shown = self.recorded if is_place(self.recorded) else context.shown(self.recorded)
        with reading(path, shown=shown):
            stat = path.stat()
        return _read_index(path, shown, stat.st_mtime_ns, stat.st_size)


_Owner = tuple[str | None, str | None, int]
"""Agent, evalset and repeat."""
_Place = int | Recording
"""Location of a conversation: an offset in the file, or the conversation itself."""


@dataclass
class _Index:
    """Index of the conversations."""

    by_case: dict[_Owner, dict[str | None, _Place]] = field(default_factory=dict)
    """By agent, evalset and repeat, then by case."""
    agents: dict[str | None, None] = field(default_factory=dict)
    """The recorded agents; `None` for lines that name no agent."""
    by_session: dict[str, list[Recording]] = field(default_factory=dict)
    """Conversations without a case, by their session in the file."""
    by_texts: dict[tuple[str, ...], list[Recording]] = field(default_factory=dict)
    """Conversations without a case, by the user's messages."""
    verbatim: bool = True
    """Whether the recordings have the user's own words."""
    sees_calls: bool = False
    """Whether any conversation has a record of tool calls."""

    def add(self, found: Iterable[Recording]) -> None:
        """Add conversations."""
        for each in found:
            self.look_for_calls(each)
            if each.eval_id is not None:
                self.put((None, each.evalset, each.eval_id, each.repeat or 0), each)
                continue
            if each.session:
                self.by_session.setdefault(each.session, []).append(each)
            if each.invocations:
                texts = tuple(turn.user for turn in each.invocations)
                self.by_texts.setdefault(texts, []).append(each)

    def look_for_calls(self, found: Recording) -> None:
        """Note whether a conversation has a record of tool calls."""
        turns = found.invocations or ()
        self.sees_calls = self.sees_calls or any(
            turn.intermediate_data is not None for turn in turns
        )

    def __contains__(self, key: object) -> bool:
        return isinstance(key, tuple) and self.place(key) is not None

    def place(self, key: Try) -> _Place | None:
        """Return the location of a conversation with a case; `None` if there is none."""
        agent, evalset, case, repeat = key
        return self.by_case.get((agent, evalset, repeat), {}).get(case)

    def put(self, key: Try, place: _Place) -> None:
        """Add the location of a conversation with a case."""
        agent, evalset, case, repeat = key
        self.agents[agent] = None
        cases = self.by_case.setdefault((agent, evalset, repeat), {})
        cases[case and sys.intern(case)] = place

    def find(self, trial: Trial, shown: str) -> _Place | None:
        """Return the recording for `trial`; `shown` is the path that the user sees.

        Raises:
            TrialError: several agents were recorded, but not that of the trial.

        """
        key = trial.key
        is_named = key.agent in self.agents
        for evalset in (key.evalset, None):
            found = {
                agent: place
                for agent in ((key.agent, None) if is_named else self.agents)
                if (place := self.place((agent, evalset, key.case, key.repeat))) is not None
            }
            if len(found) > 1 and not is_named:
                names = ", ".join(repr(agent) for agent in found)
                message = f"{shown} has this case from several agents, {names}, {_UNKNOWN_AGENT}"
                raise TrialError("not_recorded", message)
            if found:
                return next(iter(found.values()))
        turns = trial.case.conversation or ()
        texts = tuple(turn.user for turn in turns)
        unnamed = self.by_session.get(key.case) or self.by_texts.get(texts) or []
        return unnamed[key.repeat] if key.repeat < len(unnamed) else None


@lru_cache(maxsize=8)
def _read_index(path: Path, shown: str, _mtime_ns: int, _size: int) -> _Index:
    """Validate all conversations, and return their index.

    The time and size of the file are arguments so that a changed file is read again.
    """
    head = _head(path, shown)
    reader = _reader(path, head)
    if reader:
        index = _Index(verbatim=reader.verbatim)
        index.add(reader().read(path, shown=shown))
        return index
    is_line = isinstance(head, dict) and "eval_id" in head
    odd = not is_line and _other(head)
    if head is not None and (odd or not _has_lines(path)):
        known = ", ".join(points.recording)
        message = (
            "is not in a known recording format (a JSON object with 'eval_id' and 'invocations' "
            f"on each line, or {known}): found {odd or known_formats.described(head)}"
        )
        raise UsageError(message, file=shown, line=1)
    return _index_lines(path, shown)


def _other(head: Json) -> str:
    """Describe a document that is certainly not a recording; empty if it may be one."""
    if isinstance(head, dict) and "invocations" in head:
        return "an object with 'invocations' and without 'eval_id'"
    found = known_formats.recognised(head)
    formats = points.evalset if isinstance(head, dict) and not found else ()
    name = next((name for name in formats if points.evalset[name].sniff(head)), None)
    return f"an evalset ({name})" if name else found


def _head(path: Path, shown: str) -> Json:
    """Return the beginning of the first document; `None` if it is invalid."""
    try:
        return JsonFile(path, shown=shown).head()
    except UsageError:
        return None


def _reader(path: Path, head: Json) -> type[RecordingReader] | None:
    """Return the reader of recordings that begin like `head`, if any.

    If the file name implies lines, the first line may be the only document, too.
    """
    begins: list[tuple[Syntax, Json]] = [("json", head)]
    if syntax_of(path) == "jsonl":
        begins.insert(0, ("jsonl", [head]))
    found = (points.recording.of(begin, syntax) for syntax, begin in begins)
    return next(filter(None, found), None)


def _has_lines(path: Path) -> bool:
    """Return True if the first non-blank line is valid JSON."""
    with path.open("rb") as file:
        lines = iter(lambda: file.readline(MAX_LINE_BYTES), b"")
        try:
            parse_json(next(line for line in lines if line.strip()), max_depth=TRACE_DEPTH)
        except NotJsonError:
            return False
    return True


def _index_lines(path: Path, shown: str) -> _Index:
    index = _Index()
    for line, offset in recorded_lines(path, _Line, index, shown=shown):
        index.put(line.identity, offset)
        index.look_for_calls(line)
    return index


class _Line(RecordedLine):
    """One line of a recording in our own format."""

    eval_id: str


# --- Replaying --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Replay:
    """An open recording."""

    file: IO[bytes]
    shown: str
    index: _Index

    async def open(self, trial: Trial, *, alone: bool = False, memento: Json = None) -> Session:
        """Return the recorded conversation for `trial`."""
        del alone, memento
        found = self.index.find(trial, self.shown)
        if found is None:
            key = trial.key
            raise TrialError("not_recorded", self._missing(key.evalset, key.case, key.repeat))
        if isinstance(found, int):
            self.file.seek(found)
            found = parsed(self.file.readline(MAX_LINE_BYTES), _Line)
        if found.error is not None:
            raise TrialError(failure_kind(found.error_kind), found.error)
        if self.index.verbatim:
            _refuse_other_words(found, trial, self.shown)
        return _RecordedSession(found, self.index.sees_calls)

    def _missing(self, evalset: str, case: str, repeat: int) -> str:
        again = f" (repeat {repeat + 1})" if repeat else ""
        places = self.index.by_case
        if not places and not self.index.by_session and not self.index.by_texts:
            return f"{self.shown} has no conversations"
        named = {str(at[1]) for at, cases in places.items() if case in cases and at[1]}
        others = sorted(named - {evalset})
        elsewhere = f", only for the evalset {', '.join(others)}" if others else ""
        unnamed = sum(map(len, self.index.by_texts.values()))
        how = f"; {unnamed} conversations in it name no case; {_MATCHING}" if unnamed else ""
        return f"{self.shown} has no recording of this case{again}{elsewhere}{how}"


def _refuse_other_words(found: Recording, trial: Trial, shown: str) -> None:
    turns = zip(found.invocations or (), trial.case.conversation or (), strict=False)
    for number, (answered, asked) in enumerate(turns, start=1):
        given, wanted = (" ".join(each.user.split()) for each in (answered, asked))
        if given and not _may_be(given, wanted):
            alike = takewhile(lambda pair: pair[0] == pair[1], zip(given, wanted, strict=False))
            begin = max(len(list(alike)) - _SHOWN // 2, 0)
            given, wanted = ("…" * bool(begin) + each[begin:] for each in (given, wanted))
            message = (
                f"{shown} answers another message in turn {number}: it has "
                f"{one_line(given, _SHOWN)!r}, the case {one_line(wanted, _SHOWN)!r}; "
                "record the case again"
            )
            raise TrialError("not_recorded", message)


def _may_be(redacted: str, text: str) -> bool:
    """Return True if `redacted` is `text` with names in place of secrets."""
    first, *others = _REDACTED.split(redacted)
    if not others:
        return redacted == text
    at = len(first)
    for each in others[:-1]:
        found = text.find(each, at + 1)
        if found < 0:
            return False
        at = found + len(each)
    last = others[-1]
    return text.startswith(first) and text.endswith(last) and at < len(text) - len(last)


_REDACTED = re.compile(r"\[[A-Z][A-Z0-9_]*\]")
"""A redacted secret in a recording; the case may still contain it."""
_SHOWN = 100
"""How many characters of a message an error shows, around the first difference."""
_UNKNOWN_AGENT = "but not from this agent; give this agent the name of one of them"
_MATCHING = (
    "they are matched by the session, if it has the id of the case, or by exactly the same user "
    "messages"
)


@dataclass(frozen=True)
class _RecordedSession(Session):
    """A recorded conversation."""

    recording: Recording
    sees_calls: bool
    """Whether the file has any record of tool calls."""

    @property
    def held(self) -> tuple[Invocation, ...]:
        """The recorded conversation."""
        held = self.recording.invocations or ()
        if self.sees_calls:
            return held
        return tuple(each.model_copy(update={"unseen": True}) for each in held)

    async def send(self, message: Content) -> Invocation:
        """Never called for a recording."""
        raise NotImplementedError

    async def close(self) -> dict[str, Json] | None:
        """Return the recorded final state."""
        return self.recording.final_state
