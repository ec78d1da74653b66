"""Layout of a comment: a summary of all jobs, followed by their sections."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from ci_eval.pull_requests.comment_sections import (
    MORE,
    Outcome,
    Section,
    as_stored,
    closing_line,
    digest_of,
    newest_commit,
    opening_line,
)
from ci_eval.reporters.markdown import marker
from ci_eval.text.templates import counted, html_code, markdown

_NAMED = 10
"""Maximum number of failed jobs, and of other jobs, that the summary names."""
_FOLDED = 5
"""If more jobs passed, they are folded into one element."""
_ALERT = re.compile(r"\A> \[!(?:TIP|NOTE|WARNING|CAUTION)\]\n")
_FENCE = re.compile("`{3,}")
_REST = "<sub>See the job summary on the page of the run for the rest.</sub>"
_DECIDED: dict[Outcome, str] = {
    "failed": "failed",
    "incomplete": "has no verdict",
    "undecided": "is not decided",
    "passed": "passed",
}
_MARKS: dict[Outcome, str] = {
    "failed": "❌",
    "incomplete": "⚠️",
    "undecided": "\N{LARGE YELLOW CIRCLE}",
    "passed": "✅",
}
_ORDER: tuple[Outcome, ...] = ("failed", "incomplete", "undecided", "passed")


class _Level(IntEnum):
    """How much of a section is shown."""

    WHOLE = 0
    SHORT = 1
    """Only the part before `MORE`."""
    LINE = 2
    HIDDEN = 3
    """Not shown, only counted."""


@dataclass(frozen=True)
class _Shown:
    """A section with its level of detail."""

    section: Section
    level: _Level
    name: str
    """The name of its job and, if others have the same, of its step; escaped."""
    is_old: bool
    """Whether it is about a commit other than the newest."""

    @property
    def text(self) -> str:
        """The part of the text that is shown."""
        if self.level >= _Level.LINE:
            return ""
        kept, more = _parts(self.section.text)
        if not more:
            return kept
        return f"{kept}\n\n{_REST}" if self.level else f"{kept}\n\n{MORE}\n\n{more}"

    @property
    def stored(self) -> Section:
        """The section as it will be read back."""
        return replace(self.section, text=self.text)


def compose(sections: Sequence[Section], limit: int) -> str:
    """Return the body, at most `limit` characters, which must fit the lines of 256 jobs.

    If the sections are too long, whole parts are left out, never half sentences: first the parts
    after `MORE`, then whole texts except for one line; failed jobs are kept longest.
    """
    newest = newest_commit(sections)
    ordered = sorted(sections, key=lambda each: (_ORDER.index(each.outcome), each.key))
    jobs = Counter(each.job for each in sections)
    shown = [
        _Shown(each, _Level.WHOLE, _name(each, jobs[each.job]), each.commit != newest)
        for each in ordered
    ]
    shown = [replace(each, level=_Level.LINE) if each.is_old else each for each in shown]
    steps = list(_steps(shown))

    def after(count: int) -> str:
        levels = dict(steps[:count])
        reduced = [
            replace(each, level=max(each.level, levels.get(at, each.level)))
            for at, each in enumerate(shown)
        ]
        return _body(reduced, newest)

    # From some step on, it fits.
    fits = bisect_left(range(len(steps)), 1, key=lambda count: len(after(count)) <= limit)
    return after(fits)


def _steps(shown: Sequence[_Shown]) -> Iterator[tuple[int, _Level]]:
    """Yield the steps that reduce the detail, one by one, until all is hidden."""

    def largest(level: _Level, *outcomes: Outcome) -> Iterator[tuple[int, _Level]]:
        these = [at for at, each in enumerate(shown) if each.section.outcome in outcomes]
        for at in sorted(these, key=lambda at: -len(shown[at].section.text)):
            yield at, level

    yield from largest(_Level.SHORT, "passed")
    yield from largest(_Level.SHORT, "incomplete", "failed")
    for outcome in reversed(_ORDER):
        yield from largest(_Level.LINE, outcome)
        yield from largest(_Level.HIDDEN, outcome)


def _body(shown: Sequence[_Shown], newest: str) -> str:
    first = shown[0].section
    parts = [marker(first.suite)]
    if len(shown) == 1:
        return "\n".join([*parts, *_text(shown[0])])
    parts += ["", *_summary(shown, newest), ""]
    texts = [each for each in shown if each.level < _Level.LINE]
    for each in texts:
        if each.section.outcome != "passed":
            parts += [*_headed(each), ""]
    parts += _folded([each for each in texts if each.section.outcome == "passed"])
    parts += [_line(each, newest) for each in shown if each.level == _Level.LINE]
    if hidden := sum(each.level == _Level.HIDDEN for each in shown):
        parts.append(f"- {counted(hidden, 'more job')} not shown for lack of space")
    parts += ["", *(opening_line(each.stored) for each in shown if each.level >= _Level.LINE)]
    return "\n".join(parts).rstrip("\n")


def _text(shown: _Shown) -> list[str]:
    if not shown.text:
        return [opening_line(shown.stored), "", f"{shown.name} {_decided(shown.section)}"]
    return [opening_line(shown.stored), "", shown.text, "", closing_line(digest_of(shown.stored))]


def _headed(shown: _Shown) -> list[str]:
    section = shown.section
    title = f"### {_MARKS[section.outcome]} {shown.name} {_DECIDED[section.outcome]}"
    return [title, "", *_text(_without_alert(shown))]


def _folded(shown: Sequence[_Shown]) -> Iterator[str]:
    """Yield passed jobs, each folded; if there are many, all of them in one element."""
    mark = _MARKS["passed"]
    if len(shown) > _FOLDED:
        yield from (f"<details><summary>{mark} {len(shown)} jobs passed</summary>", "")
    for each in shown:
        yield from (f"<details><summary>{mark} {each.name} passed</summary>", "")
        yield from (*_text(_without_alert(each)), "", "</details>", "")
    if len(shown) > _FOLDED:
        yield from ("</details>", "")


def _without_alert(shown: _Shown) -> _Shown:
    """Remove the alert marker: the summary has one, and GitHub does not render nested alerts."""
    text = _ALERT.sub("", shown.section.text)
    return replace(shown, section=replace(shown.section, text=text))


def _line(shown: _Shown, newest: str) -> str:
    section = shown.section
    if shown.is_old:
        decided = "had no verdict" if section.outcome == "incomplete" else section.outcome
        last = f"it {decided}{_at(section.commit)}"
        return f"- ⏳ {shown.name} is not evaluated yet{_at(newest)}; {last}"
    return f"- {_MARKS[section.outcome]} {shown.name} {_decided(section)}"


def _decided(section: Section) -> str:
    return f"{_DECIDED[section.outcome]}; see the job summary"


def _at(commit: str) -> str:
    return f" at {html_code(commit[:7])}" if commit else " before"


def _name(section: Section, count: int) -> str:
    """Return the name of a section, one of `count` of its job."""
    name = html_code(section.job) if section.job else "an unnamed job"
    return f"{name} ({html_code(section.step)})" if count > 1 and section.step else name


def _summary(shown: Sequence[_Shown], newest: str) -> Iterator[str]:
    """Yield the alert above several sections: failed, missing and passed jobs."""
    by = {
        outcome: [e for e in shown if e.section.outcome == outcome and not e.is_old]
        for outcome in _ORDER
    }
    old = [each for each in shown if each.is_old]
    worst = next(outcome for outcome in _ORDER if by[outcome])
    calm = "NOTE" if old else "TIP"
    kind = {"failed": "CAUTION", "passed": calm}.get(worst, "WARNING")
    suite = markdown(shown[0].section.suite)
    all_jobs = counted(len(shown), "job")
    named = "" if worst == "passed" else _listed(by[worst])
    yield f"> [!{kind}]"
    yield f"> **{suite} {_DECIDED[worst]} in {len(by[worst])} of {all_jobs}**{named}."
    details = []
    if worst == "failed" and by["incomplete"]:
        details.append(f"no verdict in {_counted(by['incomplete'])}{_listed(by['incomplete'])}")
    if worst != "undecided" and by["undecided"]:
        details.append(f"not decided in {_counted(by['undecided'])}{_listed(by['undecided'])}")
    if worst != "passed" and by["passed"]:
        details.append(f"{_counted(by['passed'])} passed")
    if old:
        are = "is" if len(old) == 1 else "are"
        details.append(f"{_counted(old)} {are} not evaluated yet{_at(newest)}")
    if details:
        yield ">"
    yield from (f"> - {each}" for each in details)


def _counted(shown: Sequence[_Shown]) -> str:
    return counted(len(shown), "job")


def _listed(shown: Sequence[_Shown]) -> str:
    """Return the names of jobs, as the end of a sentence."""
    names = ", ".join(each.name for each in shown[:_NAMED])
    more = len(shown) - _NAMED
    return f": {names} and {more} more" if more > 0 else f": {names}"


def _parts(text: str) -> tuple[str, str]:
    """Return `text` before and after `MORE`; fenced lines are untrusted and never match."""
    fence = ""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if found := _FENCE.match(line):
            if not fence:
                fence = found[0]
            elif line.rstrip() == found[0] and len(found[0]) >= len(fence):
                fence = ""
        elif line == MORE and not fence:
            return as_stored("\n".join(lines[:at])), as_stored("\n".join(lines[at + 1 :]))
    return text, ""
