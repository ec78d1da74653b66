"""The data of `report.html`: an index of all cases, and their trials in compressed chunks.

A browser reads the index at once, and inflates a chunk when the reader opens one of its cases.  So
a page of 100,000 cases responds as fast as one of ten.
"""

import base64
import gzip
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pydantic_core import to_json

from ci_eval.records.cases import Status
from ci_eval.records.findings import Report
from ci_eval.records.results import Score, TrialResult
from ci_eval.records.trials import Trace
from ci_eval.reporters._evidence import exhibits_of, response_words, wrapped
from ci_eval.reporters._html_index import CaseIndex, dumped
from ci_eval.reporters._judge_evidence import cited
from ci_eval.run_files import report_phrases
from ci_eval.run_files.traces_file import Conversations
from ci_eval.text.sanitize import one_line

CHUNK = 500
"""Number of trials in a chunk."""
_MAX_LINES = 200
"""Maximum number of lines of each piece of evidence, and of the agent's output."""
_MAX_TEXT = 20_000
"""Maximum length of one text of a conversation, in characters."""
_MAX_TURNS = 100
_MAX_CALLS = 100
_GIST = 80
_MAX_CITED = 50
_BAD = (Status.FAILED, Status.ERROR)
_PASSING = (Status.PASSED, Status.SKIPPED)


@dataclass
class CaseData:
    """The cases of one report."""

    report: Report
    max_bytes: int
    """Maximum size of all chunks together, in bytes."""
    index: CaseIndex = field(init=False)
    chunks: dict[int, str] = field(default_factory=dict)
    """Compressed trials by number: even ones hold trials that did not pass."""
    left_out: int = 0
    """Number of trials whose details did not fit."""
    _open: tuple[list[Any], list[Any]] = field(default_factory=lambda: ([], []))
    """The trials of the last chunk of each kind: those that did not pass, and those that did."""
    _counts: list[int] = field(default_factory=lambda: [0, 0])

    def __post_init__(self) -> None:
        self.index = CaseIndex(self.report, CHUNK)

    def read(self, results: Iterable[TrialResult], conversations: Conversations) -> None:
        """Add the results of a run."""
        for result in results:
            case = self.index.number(result.key.place)
            is_calm = result.status in _PASSING
            # The first trial shows the conversation; for other passing trials, scores suffice.
            is_shown = case is None or not is_calm
            trace = conversations.of(result.key) if is_shown else None
            gist = "" if self.index.has_gist(case) else _gist(result, trace)
            self.index.add(result, self._add(_trial(result, trace), int(is_calm)), gist)

    def read_before(self, results: Iterable[TrialResult], conversations: Conversations) -> None:
        """Add the trials without the change, for the cases that changed or did not pass."""
        changes = self.report.comparison.changes if self.report.comparison else ()
        wanted = {*(each.place for each in changes), *(r.key.place for r in self.report.worst)}
        for result in results:
            case = self.index.number(result.key.place)
            if case is not None and result.key.place in wanted:
                trial = _trial(result, conversations.of(result.key))
                self.index.add_before(case, self._add(trial, 0))

    def _add(self, trial: dict[str, Any], kind: int) -> int:
        """Add a trial to the chunks of a kind, and return its number."""
        number = self._counts[kind]
        self._counts[kind] += 1
        self._open[kind].append(trial)
        if len(self._open[kind]) == CHUNK:
            self._pack(kind)
        return 2 * number + kind

    def close(self) -> None:
        """Pack the remaining trials, and make all fit."""
        for kind in (0, 1):
            self._pack(kind)
        self._fit()

    def _pack(self, kind: int) -> None:
        trials = self._open[kind]
        if trials:
            # The same run gives the same file.  Level 1 takes a third of the time of level 6.
            packed = gzip.compress(to_json(trials), compresslevel=1, mtime=0)
            number = sum(each % 2 == kind for each in self.chunks)
            self.chunks[2 * number + kind] = base64.b64encode(packed).decode("ascii")
            trials.clear()

    def _fit(self) -> None:
        """Leave out passing trials, the last first, then others, until all fit."""
        size = sum(map(len, self.chunks.values()))
        for kind in (1, 0):
            for number in sorted((each for each in self.chunks if each % 2 == kind), reverse=True):
                if size <= self.max_bytes:
                    break
                size -= len(self.chunks.pop(number))
        for kind in (0, 1):
            kept = sum(number % 2 == kind for number in self.chunks)
            self.left_out += max(self._counts[kind] - kept * CHUNK, 0)


def _gist(result: TrialResult, trace: Trace | None) -> str:
    asked = trace.invocations[0].user if trace and trace.invocations else ""
    asked = asked or next(iter(result.messages), "")
    return one_line(asked[: 2 * _GIST], 2 * _GIST)[:_GIST] if asked else ""


def _trial(result: TrialResult, trace: Trace | None) -> dict[str, Any]:
    """Return the parts of a trial that the page shows, without unknown ones."""
    error, later = result.error, "rerun" if result.round else None
    found = {
        "status": result.status[0],
        "scores": [_score(each) for each in result.scores],
        "turns": list(_turns(trace)) if trace else [{"user": _cut(m)} for m in result.messages],
        "kind": "confirming" if result.confirms else later,
        "seconds": round(result.duration_s, 3) if result.duration_s else None,
        "attempts": result.attempts if result.attempts > 1 else None,
        "mocked": result.mocked or None,
        "error": [error.kind, _cut(error.message)] if error else None,
        "output": wrapped(result.output)[:_MAX_LINES] if result.output else None,
        "cut": report_phrases.cut_off(result.cut_off) if result.cut_off else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _score(score: Score) -> dict[str, Any]:
    found: dict[str, Any] = {"name": score.name, "status": score.status[0]}
    if score.value is not None:
        found["value"] = score.value
    if score.reason:
        found["reason"] = _cut(score.reason)
    if used := score.judging:
        found["tokens"] = [used.input_tokens, used.output_tokens, used.cost_usd]
        found["asked"] = [used.calls, used.cached]
    # A passed criterion without a judge needs no evidence.
    if score.judging or score.status in _BAD:
        of = tuple(Status) if score.judging else _BAD
        found["evidence"] = [
            {
                "title": each.title,
                "kind": each.kind,
                "lines": each.lines,
                "words": list(response_words(each)) if each.compared == "response" else None,
            }
            for each in exhibits_of(score, max_lines=_MAX_LINES, max_invocations=10, of=of)
        ]
        parts = (score.evidence, *(each.evidence for each in score.invocations))
        passages = dict.fromkeys(text for part in parts for text in cited(part))
        if passages and score.judging:
            found["cites"] = [_cut(each) for each in islice(passages, _MAX_CITED)]
    return found


def _turns(trace: Trace) -> Iterator[dict[str, Any]]:
    for turn in trace.invocations[:_MAX_TURNS]:
        calls = [
            {"name": call.name, "args": _json(call.args), "result": _json(call.result)}
            for call in turn.tool_calls[:_MAX_CALLS]
        ]
        found: dict[str, Any] = {
            "user": _cut(turn.user),
            "agent": _cut(turn.response),
            "calls": calls,
            "seconds": turn.duration,
            "model": turn.model_duration,
            "tool": turn.tool_duration,
            "cost": turn.cost_usd,
            "waits": [call.name for call in turn.waits_for[:_MAX_CALLS]],
        }
        yield {key: value for key, value in found.items() if value}


def _json(value: object) -> str:
    return "" if value is None else _cut(dumped(value))


def _cut(text: str) -> str:
    if len(text) <= _MAX_TEXT:
        return text
    return f"{text[:_MAX_TEXT]}… ({len(text):,} characters in all)"
