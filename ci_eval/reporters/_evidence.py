"""Evidence of a score that did not pass, as lines of text."""

import json
import textwrap
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice
from typing import Literal

from ci_eval.records.cases import Json, Status
from ci_eval.records.results import Score
from ci_eval.reporters import _judge_evidence
from ci_eval.text.bounded_diff import BoundedMatcher
from ci_eval.text.sanitize import clean, one_line
from ci_eval.text.word_diff import Words, word_diff

_WIDTH = 96
"""Characters per line; about the width of a comment on GitHub."""
_MAX_CHARACTERS = 20_000
"""Maximum length of a text before it is wrapped, in characters."""
_MAX_LINES = 300
"""Maximum number of lines of each side to compare."""
_MAX_STRING = 2_000
"""Maximum length of a string inside a value, in characters."""
_MAX_ITEMS = 50
"""Maximum number of items of a list or an object."""
_MAX_DEPTH = 8
_CONTEXT = 2
"""Equal lines to show before and after a difference."""


@dataclass(frozen=True)
class Exhibit:
    """One piece of evidence."""

    title: str
    kind: Literal["diff", "text", "data"]
    lines: tuple[str, ...]
    """In a diff, each begins with `- ` (expected), `+ ` (actual) or two spaces (both)."""
    compared: Literal["tool calls", "response", ""] = ""
    """In a diff, what is compared."""


def exhibits_of(
    score: Score,
    *,
    max_lines: int,
    max_invocations: int = 3,
    of: Collection[Status] = (Status.FAILED, Status.ERROR),
) -> Iterator[Exhibit]:
    """Yield the evidence of the whole conversation, then of the first invocations with a status."""
    count = len(score.invocations)
    parts = (
        (f", invocation {position} of {count}" if count > 1 else "", part.evidence)
        for position, part in enumerate(score.invocations, start=1)
        if part.evidence and part.status in of
    )
    for where, evidence in (("", score.evidence or {}), *islice(parts, max_invocations)):
        for exhibit in _exhibits(evidence):
            if exhibit.lines:
                lines = tuple(_first([*exhibit.lines], max_lines))
                yield replace(exhibit, title=exhibit.title + where, lines=lines)


def response_words(exhibit: Exhibit) -> Iterator[Words]:
    """Yield the texts of a difference as one text, with the words that differ marked."""
    for is_same, group in groupby(exhibit.lines, lambda line: line.startswith("  ")):
        lines = [*group]
        if is_same:
            yield Words("same", tuple(word for line in lines for word in line.split()))
            continue
        before, after = (
            " ".join(line[2:] for line in lines if line.startswith(sign)) for sign in "-+"
        )
        yield from word_diff(before, after)


def differing(score: Score) -> tuple[str, ...]:
    """Name the compared part of a score's evidence: tool calls, the response, or neither."""
    keys = {*(score.evidence or ())}.union(*(each.evidence or () for each in score.invocations))
    compared = (("actual_tool_calls", "tool calls"), ("actual", "response"))
    return tuple(word for key, word in compared if key in keys)


def different_calls(exhibit: Exhibit) -> list[str]:
    """Return the tools that were called too often or not often enough, each after its sign.

    If only arguments differ, return the whole actual calls.
    """
    if exhibit.compared != "tool calls":
        return []
    # The lines of a long call's arguments are indented.
    starts = [line for line in exhibit.lines if line[:2] in ("- ", "+ ") and line[2:3] not in " )"]
    changed = [line.partition("(")[0] for line in starts]
    names = Counter(line[2:] for line in changed if line.startswith("+ "))
    if names == Counter(line[2:] for line in changed if line.startswith("- ")):
        return [line for line in exhibit.lines if line.startswith("+ ")]
    return changed


def _exhibits(evidence: Mapping[str, Json]) -> Iterator[Exhibit]:
    rest = dict(evidence)
    calls = rest.pop("expected_tool_calls", None), rest.pop("actual_tool_calls", None)
    texts = rest.pop("expected", None), rest.pop("actual", None)
    yield Exhibit("Tool calls", "diff", _compared(*map(call_lines, calls)), "tool calls")
    expected, actual = _text_lines(*map(shown_value, texts))
    if expected:
        yield Exhibit("Response", "diff", _compared(expected, actual), "response")
    else:  # `ci/contains` and others compare with no whole text
        yield Exhibit("Actual response", "text", tuple(actual))
    for title, lines in _judge_evidence.extracted(rest):
        shown = [part for line in lines for part in _indented(line)]
        yield Exhibit(_title(title), "data" if len(shown) > 1 else "text", tuple(shown))
    for name, found in rest.items():
        value = found[0] if isinstance(found, list) and len(found) == 1 else found
        kind: Literal["text", "data"] = "text" if isinstance(value, str) else "data"
        title = name[:_WIDTH].replace("_", " ").capitalize()
        yield Exhibit(_title(title), kind, tuple(wrapped(shown_value(value) or "null")))


def _title(text: str) -> str:
    """Return `text` as one non-empty line, because Markdown cannot set nothing in bold."""
    return one_line(text, _WIDTH) or "Untitled"


def _indented(line: str) -> Iterator[str]:
    """Yield `line`, wrapped to lines of the same indentation."""
    text = line.lstrip(" ")
    margin = " " * (len(line) - len(text))
    yield from (f"{margin}{part}" for part in wrapped(_cut(text, _MAX_STRING)))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"


def _compared(expected: list[str], actual: list[str]) -> tuple[str, ...]:
    """Return the lines that differ, with context; none if there are no differences."""
    compared = BoundedMatcher(expected, actual)
    lines = []
    for number, group in enumerate(compared.get_grouped_opcodes(_CONTEXT)):
        if number or group[0][1]:
            lines.append("  …")
        for kind, start, end, other_start, other_end in group:
            if kind == "equal":
                lines += [f"  {line}" for line in expected[start:end]]
            else:
                lines += [f"- {line}" for line in expected[start:end]]
                lines += [f"+ {line}" for line in actual[other_start:other_end]]
    return tuple(lines)


def call_lines(calls: Json) -> list[str]:
    """Return tool calls in Python syntax, long ones with one argument per line."""
    if calls is None:
        return []
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        return wrapped(shown_value(calls) or "")
    calls_shown = chain.from_iterable(map(_call, calls[:_MAX_ITEMS]))
    lines = [_cut(clean(line).replace("\n", " "), 2 * _WIDTH) for line in calls_shown]
    if len(calls) > _MAX_ITEMS:
        lines.append(f"… {len(calls):,} tool calls in all")
    return lines or ["(no tool calls)"]


def _call(call: Mapping[str, Json]) -> list[str]:
    name, args = str(call.get("name"))[:_MAX_STRING], call.get("args")
    if not isinstance(args, dict):
        # Unknown arguments differ from no arguments.
        return [name if args is None else f"{name}({_json(args)})"]
    parts = [f"{key[:_WIDTH]}={_json(value)}" for key, value in islice(args.items(), _MAX_ITEMS)]
    if len(args) > _MAX_ITEMS:
        parts.append(f"… {len(args):,} in all")
    whole = f"{name}({', '.join(parts)})"
    if len(whole) <= _WIDTH:
        return [whole]
    return [f"{name}(", *(f"    {part}," for part in parts), ")"]


def _text_lines(expected: str | None, actual: str | None) -> tuple[list[str], list[str]]:
    """Return both texts as lines, starting shortly before the first difference."""
    if expected is not None and actual is not None:
        start = _shared(expected, actual) - 4 * _WIDTH
        if start > 0:
            expected, actual = f"… {expected[start:]}", f"… {actual[start:]}"
    return _side(expected), _side(actual)


def _side(text: str | None) -> list[str]:
    if text is None:
        return []
    return wrapped(text) or ["(empty)"]


def _shared(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts, by bisection."""
    sizes = range(1, min(len(one), len(other)) + 1)
    return bisect_left(sizes, 1, key=lambda size: not one.startswith(other[:size]))


def wrapped(text: str) -> list[str]:
    """Return `text` cleaned and wrapped; only the beginning of a very long one."""
    lines: list[str] = []
    for line in clean(text[:_MAX_CHARACTERS]).split("\n"):
        lines += textwrap.wrap(line, _WIDTH, break_on_hyphens=False) or [""]
    if len(text) > _MAX_CHARACTERS:
        lines.append(f"… {len(text) - _MAX_CHARACTERS:,} more characters")
    return _first(lines, _MAX_LINES) if any(lines) else []


def _first(lines: list[str], limit: int) -> list[str]:
    """Return at most `limit` lines, with a note if there are more."""
    return lines if len(lines) <= limit else [*lines[:limit], "  … more in run.json"]


def shown_value(value: Json) -> str | None:
    """Return a text unchanged and any other value as JSON; `None` stands for no value."""
    if value is None or isinstance(value, str):
        return value
    short = _json(value)
    return short if len(short) <= _WIDTH else _json(value, indent=2)


def _json(value: Json, indent: int | None = None) -> str:
    return json.dumps(_shortened(value), ensure_ascii=False, indent=indent)


def _shortened(value: Json, depth: int = 0) -> Json:
    """Return `value` with long parts shortened and deep parts left out."""
    match value:
        case str() if len(value) > _MAX_STRING:
            return f"{value[:_MAX_STRING]}… ({len(value):,} characters in all)"
        case dict() | list() if depth == _MAX_DEPTH:
            return "…"
        case dict():
            shown = {
                key[:_MAX_STRING]: _shortened(each, depth + 1)
                for key, each in islice(value.items(), _MAX_ITEMS)
            }
            return shown if len(value) <= _MAX_ITEMS else {**shown, "…": f"{len(value):,} in all"}
        case list():
            items = [_shortened(each, depth + 1) for each in value[:_MAX_ITEMS]]
            return items if len(value) <= _MAX_ITEMS else [*items, f"… {len(value):,} in all"]
        case _:
            return value
