"""Cases as lines for a console: scores, with expected and actual as the comment shows them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, zip_longest
from typing import Literal, NamedTuple

from ci_eval.records.cases import Invocation, Json, Status, ToolCall
from ci_eval.records.findings import Report
from ci_eval.records.results import Score, TrialResult
from ci_eval.records.stated_expectations import states
from ci_eval.records.trials import Place, Trace
from ci_eval.reporters._case_changes import named
from ci_eval.reporters._evidence import (
    Exhibit,
    call_lines,
    exhibits_of,
    response_words,
    shown_value,
    wrapped,
)
from ci_eval.reporters._notable_cases import Bounds, Finding, Findings, Trouble
from ci_eval.reporters._notable_cases import Line as ScoreLine
from ci_eval.run_files import report_phrases
from ci_eval.text.sanitize import one_line
from ci_eval.text.templates import counted, exact, score, terminal

Style = Literal["", "strong", "good", "bad", "open", "faint", "minus", "plus", "removed", "added"]
"""`minus` and `plus` are lines of a diff, `removed` and `added` are words in one."""
GUTTER = "  │ "
"""Begins each line of evidence, so that no CI runner takes it for a command."""
_MAX_LINE = 5_000
_STATUSES: dict[Status, Style] = {Status.PASSED: "good", Status.SKIPPED: "faint"}
_GROUPED = 50
"""Maximum number of failed cases that are searched for equal causes."""
_WHOLE = 300
"""Maximum number of lines of a text, and of invocations, in a case that is shown in full."""


class Span(NamedTuple):
    """A piece of a line in one style."""

    text: str
    style: Style = ""


Line = tuple[Span, ...]


def failure_lines(report: Report, *, most: int, lines: int, width: int) -> Iterator[Line]:
    """Yield the first `most` cases that got worse or failed, with `lines` of each evidence.

    Then follow the causes of errors, and the number of cases left out.
    """
    findings = Findings(report, Bounds(evidence=most, lines=lines, rows=max(most, _GROUPED)))
    groups = [findings.worse("broke"), findings.worse("lower"), findings.worse("suspected")]
    if report.verdict.by_threshold:
        groups.append(findings.failing(most))
    shown = [finding for group in groups for finding in group.shown][:most]
    for finding in shown:
        yield from _finding_lines(finding, width)
    troubles = findings.troubles()
    for trouble in troubles.shown[:most]:
        yield from _trouble_lines(trouble)
    if most and (left_out := troubles.total - most) > 0:
        causes = counted(left_out, "more cause")
        yield (Span(f"… and {causes} of errors; --show N shows more"),)
        yield ()
    failed = sum(group.total for group in groups)
    if report.verdict.by_threshold:
        failed = max(failed, report.totals.failed)
    told = sum(1 + len(finding.alike) for finding in shown)
    if shown and failed > told:
        yield (Span(f"… and {counted(failed - told, 'more case')}; --show N shows more"),)
        yield ()


def first_case(report: Report) -> Place | None:
    """Return the case to look at first."""
    return Findings(report, Bounds(evidence=0, lines=0, rows=0)).first()


def unmeasured_cases(report: Report) -> list[str]:
    """Return the names of the cases with errors, as far as the report has their results."""
    return [
        named(each.key.place, report.meta) for each in report.worst if each.status is Status.ERROR
    ]


def flaked_cases(report: Report) -> list[str]:
    """Return the names of the cases that got worse, probably by chance."""
    return list(Findings(report, Bounds(evidence=0, lines=0, rows=0)).names("noise"))


def trial_lines(
    result: TrialResult, trace: Trace | None, expected: Sequence[Invocation] = (), *, width: int
) -> Iterator[Line]:
    """Yield one trial in full: the conversation, the scores with their evidence, and the output.

    Each turn is followed by what the case `expected`, unless it is the same.
    """
    turns = list(zip_longest(trace.invocations if trace else (), expected))
    for number, (turn, wanted) in enumerate(turns, start=1):
        where = f" {number}" if len(turns) > 1 else ""
        yield from _titled(f"User{where}", wrapped((turn or wanted).user) or ["(no text)"])
        yield from _turn_lines(turn, wanted, where)
    if result.error:
        yield (Span("  ERROR ", "bad"), Span(result.error.kind))
        yield from _gutter(wrapped(result.error.message))
    for each in result.scores if not result.error else ():
        yield from _score_lines(each, width)
    if result.output:
        yield from _titled("Output of the agent", wrapped(result.output))
    if result.cut_off:
        yield (Span(f"  {terminal(report_phrases.cut_off(result.cut_off))}"),)


def _turn_lines(turn: Invocation | None, wanted: Invocation | None, where: str) -> Iterator[Line]:
    """Yield the calls and the response of a turn, if it was reached, and the expected ones."""
    calls, response = (_plain_calls(turn), turn.response) if turn else ([], "")
    if turn and calls:
        yield from _titled(f"Tool calls{where}", _calls_with_results(turn.tool_calls))
    if wanted and states(wanted, "tool_calls") and (not turn or _plain_calls(wanted) != calls):
        shown = list(call_lines(_plain_calls(wanted))) or ["(none)"]
        yield from _titled(f"Expected tool calls{where}", shown)
    if turn:
        yield from _titled(f"Response{where}", wrapped(response) or ["(empty)"])
    if wanted and states(wanted, "response") and (not turn or wanted.response != response):
        yield from _titled(f"Expected response{where}", wrapped(wanted.response))


def _plain_calls(turn: Invocation) -> list[dict[str, Json]]:
    return [{"name": call.name, "args": call.args} for call in turn.tool_calls]


def _calls_with_results(calls: Iterable[ToolCall]) -> Iterator[str]:
    for call in calls:
        yield from call_lines([{"name": call.name, "args": call.args}])
        if call.result is not None:
            yield from (f"  → {line}" for line in wrapped(shown_value(call.result) or "null"))


def _score_lines(found: Score, width: int) -> Iterator[Line]:
    missed = found.threshold if found.status is Status.FAILED else None
    value = f" {score(found.value, missed)}" if found.value is not None else ""
    bound = ""
    if found.value is not None and found.threshold is not None:
        relation = "≥" if found.better == "higher" else "≤"
        bound = f" (needs {relation} {exact(found.threshold)})"
    name = terminal(f"{found.name}{value}{bound}")
    yield (Span("  "), status_span(found.status), Span(name))
    if found.reason:
        yield from _gutter(wrapped(found.reason))
    for exhibit in exhibits_of(found, max_lines=_WHOLE, max_invocations=_WHOLE):
        yield from exhibit_lines(exhibit, width)


def status_span(status: Status) -> Span:
    """Return a status as the first word of a line."""
    return Span(f"{status.upper()} ", _STATUSES.get(status, "bad"))


def _titled(title: str, lines: Iterable[str]) -> Iterator[Line]:
    yield (Span(f"  {title}", "faint"),)
    yield from _gutter(lines)


def _gutter(lines: Iterable[str]) -> Iterator[Line]:
    for text in lines:
        yield (Span(GUTTER, "faint"), _span(text))


def _finding_lines(finding: Finding, width: int) -> Iterator[Line]:
    sure = [line for line in finding.lines if line.what != "suspected"]
    kind = "FAILED" if any(map(_misses, sure)) else "WORSE" if sure else "SUSPECTED"
    yield (Span(f"{kind} ", "bad"), Span(terminal(finding.name), "strong"), *_source(finding))
    if finding.alike:
        names = report_phrases.listed(finding.alike)
        yield (Span(f"  {len(finding.alike)} more with the same failure: {terminal(names)}"),)
    if finding.asked:
        yield (Span("  User: ", "faint"), Span(terminal(finding.asked)))
    for line in finding.lines:
        yield (Span(f"  {terminal(_value(line))}"),)
        if line.reason:
            yield (Span(f"  {terminal(line.reason)}"),)
        for exhibit in line.exhibits:
            yield from exhibit_lines(exhibit, width)
    if finding.cut_off:
        yield (Span(f"  {terminal(finding.cut_off)}"),)
    yield ()


def _misses(line: ScoreLine) -> bool:
    """Return True unless the value is known to be good enough for the threshold."""
    if line.value is None or line.threshold is None:
        return True
    is_less = line.value < line.threshold
    return is_less if line.better == "higher" else line.value > line.threshold


def _source(finding: Finding) -> Iterator[Span]:
    if finding.source:
        yield Span(f"  {terminal(finding.source)}", "faint")


def _value(line: ScoreLine) -> str:
    now = f"{line.criterion} {score(line.value, line.threshold)}"
    if line.baseline is not None:
        now = f"{line.criterion} {score(line.baseline)} → {score(line.value)}"
    elif line.threshold is not None and line.value is not None:
        now += f" {'<' if line.better == 'higher' else '>'} {exact(line.threshold)}"
    notes = ", ".join(note for note in (line.trials, line.tier) if note)
    return f"{now} ({notes})" if notes else now


def _trouble_lines(trouble: Trouble) -> Iterator[Line]:
    names = ", ".join(trouble.cases) + (" and others" if trouble.more else "")
    source = Span(f"  {terminal(trouble.source)}" if trouble.source else "", "faint")
    yield (Span("ERROR ", "bad"), Span(terminal(names), "strong"), source)
    if trouble.asked:
        yield (Span("  User: ", "faint"), Span(terminal(trouble.asked)))
    yield from _gutter(wrapped(trouble.message))
    yield ()


def exhibit_lines(exhibit: Exhibit, width: int) -> Iterator[Line]:
    """Yield a piece of evidence; differences of texts as differences of words."""
    note = " (- expected, + actual)" if exhibit.kind == "diff" else ""
    yield (Span(f"  {terminal(exhibit.title)}{note}", "faint"),)
    if exhibit.compared == "response":
        yield from _words(exhibit, width - 2 * len(GUTTER))  # leaves room for marks
        return
    if exhibit.kind != "diff":
        yield from _gutter(exhibit.lines)
        return
    for text in exhibit.lines:
        yield (Span(GUTTER, "faint"), _diff_span(text))


def _diff_span(text: str) -> Span:
    style: Style = "minus" if text.startswith("- ") else "plus" if text.startswith("+ ") else ""
    return _span(text, style)


def _span(text: str, style: Style = "") -> Span:
    """Return one line of evidence without control sequences; keeps its indentation."""
    left = text.lstrip(" ")
    return Span(" " * (len(text) - len(left)) + one_line(left, _MAX_LINE), style)


def _words(exhibit: Exhibit, width: int) -> Iterator[Line]:
    """Yield the texts of a difference as one text, with the words that differ marked."""
    pieces: list[Span] = []
    for found in response_words(exhibit):
        style: Style = "" if found.kind == "same" else found.kind
        pieces += (Span(word, style) for word in found.words)
    for line in _filled(pieces, width):
        yield (Span(GUTTER, "faint"), *line)


def _filled(words: Iterable[Span], width: int) -> Iterator[Line]:
    """Yield lines of words that fit in `width`, successive words of one style joined."""
    line: list[Span] = []
    length = 0
    for word in words:
        if line and length + 1 + len(word.text) > width:
            yield _joined(line)
            line, length = [], 0
        line.append(Span(one_line(word.text, _MAX_LINE), word.style))
        length += len(word.text) + 1
    if line:
        yield _joined(line)


def _joined(words: Iterable[Span]) -> Line:
    spans = [
        Span(" ".join(word.text for word in group), style)
        for style, group in groupby(words, lambda word: word.style)
    ]
    # Spans are separated by an unstyled space.
    return tuple(piece for span in spans for piece in (span, Span(" ")))[:-1]
