"""The body of a comment: what each job says of a suite, one beneath the other.

A section stands between two hidden lines, both with a digest of it, so that it is read back from
the comment as it was written.  What an agent said may be in a section and may look like such a
line, but no text can hold its own digest: it neither ends a section nor begins another.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from hashlib import sha256
from typing import Literal, get_args
from urllib.parse import unquote

from ci_eval.reporters.markdown import marker
from ci_eval.templating import counted, html_code, markdown

MORE = "<!-- ci-eval:more -->"
"""A line in the text of a section: what comes after it is left out first where room is short."""
MAX_SECTIONS = 256
"""How many jobs a comment tells of, the newest: as many as a matrix of GitHub may have."""

Outcome = Literal["passed", "failed", "incomplete"]

_MAX_NAME = 130
"""Characters of the name of a job in its hidden line."""
_MAX_COMMIT = 64
_NAMED = 10
"""Jobs that the summary names of those that failed, and of the others."""
_OPENING = re.compile(
    r"<!-- ci-eval:job (passed|failed|incomplete) ([0-9]{1,20}) ([0-9]{1,9}) "
    r"commit=([^ <>]{0,200}) digest=([0-9a-f]{32}|none) name=([^<>]{0,130}) -->"
)
_CLOSING = re.compile(r"<!-- ci-eval:end [0-9a-f]{32} -->")
_ALERT = re.compile(r"\A> \[!(?:TIP|NOTE|WARNING|CAUTION)\]\n")
_FENCE = re.compile("`{3,}")
_REST = "<sub>The summary of this job, on the page of its run, has the rest.</sub>"
_DECIDED: dict[Outcome, str] = {
    "failed": "failed",
    "incomplete": "has no verdict",
    "passed": "passed",
}
_MARKS: dict[Outcome, str] = {"failed": "❌", "incomplete": "⚠️", "passed": "✅"}
_ORDER: tuple[Outcome, ...] = ("failed", "incomplete", "passed")


@dataclass(frozen=True)
class Section:
    """What one job says."""

    suite: str
    job: str
    """What the job is called, by which its section is found again; empty where nothing tells."""
    outcome: Outcome
    text: str
    """Markdown, escaped already: the decision, the table, `MORE`, and the rest."""
    commit: str = ""
    """The commit of the change that was evaluated."""
    run: int = 0
    """The number of the workflow run or pipeline, which grows with time; 0 where nothing tells."""
    attempt: int = 1
    """Which attempt of that run."""

    @property
    def since(self) -> tuple[int, int]:
        """What is greater for what is newer."""
        return self.run, self.attempt


# --- Jobs together ------------------------------------------------------------------------------


def merged(sections: Iterable[Section]) -> tuple[Section, ...]:
    """Return the newest section of each job, and of two that are equally new the last.

    The result does not depend on the order of sections that differ in age, nor on how often one is
    among them; so several writers arrive at the same, whoever reads whom first.
    """
    newest: dict[str, Section] = {}
    for each in sections:
        other = newest.get(each.job)
        if other is None or other.since <= each.since:
            newest[each.job] = each
    by_age = sorted(newest.values(), key=lambda each: (each.since, each.job), reverse=True)
    return tuple(sorted(by_age[:MAX_SECTIONS], key=lambda each: each.job))


def joining(section: Section, there: Sequence[Section]) -> Section:
    """Return `section` as it stands beside those that are `there` already.

    Where nothing numbers its run, it is the newest: somebody ran it by hand.
    """
    latest = max((each.since for each in there), default=(0, 1))
    run, attempt = section.since if section.run else latest
    return replace(
        section,
        job=_shortened(section.job),
        commit=section.commit[:_MAX_COMMIT],
        run=run,
        attempt=attempt,
        text=_trimmed(section.text),
    )


def newest_commit(sections: Iterable[Section]) -> str:
    """Return the commit of the newest run."""
    return max(sections, key=lambda each: each.since).commit


def _shortened(job: str) -> str:
    """Return a name for the hidden line; one that is very long ends with a digest of all of it."""
    if len(_quoted(job)) <= _MAX_NAME:
        return job
    return f"{job[:8]}…{sha256(job.encode(errors='replace')).hexdigest()[:12]}"


def _trimmed(text: str) -> str:
    """Return `text` as it comes back from a server: with line feeds, and none at its ends."""
    return text.replace("\r\n", "\n").strip("\n")


# --- Reading ------------------------------------------------------------------------------------


def read(suite: str, body: str) -> tuple[Section, ...]:
    """Return the sections of a body; none where it is not as `compose` made it."""
    lines = _trimmed(body).split("\n")
    if lines[0] != marker(suite):
        return ()
    found: dict[str, Section] = {}
    at = 1
    while at < len(lines):
        if _CLOSING.fullmatch(lines[at]):
            return ()
        opening = _OPENING.fullmatch(lines[at])
        at += 1
        if not opening:
            continue
        text = ""
        if opening[5] != "none":
            try:
                end = lines.index(_closing(opening[5]), at)
            except ValueError:
                return ()
            text, at = "\n".join(lines[at:end]).strip("\n"), end + 1
        section = _section(suite, opening, text)
        if (_digest(section) if text else "none") != opening[5] or section.job in found:
            return ()
        found[section.job] = section
    return tuple(found.values())


def _section(suite: str, opening: re.Match[str], text: str) -> Section:
    outcome = next(each for each in get_args(Outcome) if each == opening[1])
    run, attempt = int(opening[2]), int(opening[3])
    return Section(suite, unquote(opening[6]), outcome, text, unquote(opening[4]), run, attempt)


def _digest(section: Section) -> str:
    """Return what tells `section` from every other; 128 bits, which nobody can search."""
    told = (section.outcome, *section.since, section.commit, section.job, section.text)
    return sha256("\n".join(map(str, told)).encode(errors="replace")).hexdigest()[:32]


def _opening(section: Section) -> str:
    digest = _digest(section) if section.text else "none"
    return (
        f"<!-- ci-eval:job {section.outcome} {section.run} {section.attempt} "
        f"commit={_quoted(section.commit, ' ')} digest={digest} name={_quoted(section.job)} -->"
    )


def _closing(digest: str) -> str:
    return f"<!-- ci-eval:end {digest} -->"


def _quoted(text: str, more: str = "") -> str:
    """Return `text` with all quoted that could end a comment of HTML, or that cannot be seen."""

    def quote(found: re.Match[str]) -> str:
        return "".join(f"%{byte:02X}" for byte in found[0].encode(errors="replace"))

    return re.sub(rf"[^\w .,:;/()=+@-]|--|^[ ]|[ ]$|[{more or '%'}]", quote, text)


# --- Writing ------------------------------------------------------------------------------------


class _Level(IntEnum):
    """How much of a section is shown."""

    WHOLE = 0
    SHORT = 1
    """Without what comes after `MORE`."""
    LINE = 2
    HIDDEN = 3
    """Only counted."""


@dataclass(frozen=True)
class _Shown:
    """A section, and how much of it is shown."""

    section: Section
    level: _Level
    is_old: bool
    """Whether it is of a commit that is not the newest."""

    @property
    def text(self) -> str:
        """The text as far as it is shown."""
        if self.level >= _Level.LINE:
            return ""
        kept, more = _parts(self.section.text)
        if not more:
            return kept
        return f"{kept}\n\n{_REST if self.level else f'{MORE}\n\n{more}'}"

    @property
    def stored(self) -> Section:
        """The section as it will be read back."""
        return replace(self.section, text=self.text)


def compose(sections: Sequence[Section], limit: int) -> str:
    """Return the body of at most `limit` characters, which has room for the lines of 256 jobs.

    Of many sections, structure is left out and never the end of a sentence: first what comes after
    `MORE`, then whole texts, of which a line stays; what failed is kept longest.
    """
    newest = newest_commit(sections)
    ordered = sorted(sections, key=lambda each: (_ORDER.index(each.outcome), each.job))
    shown = [
        _Shown(each, _Level.LINE if is_old else _Level.WHOLE, is_old)
        for each in ordered
        for is_old in [each.commit != newest]
    ]
    steps = list(_steps(shown))

    def after(count: int) -> list[_Shown]:
        levels = dict(steps[:count])
        return [
            replace(each, level=max(each.level, levels.get(at, each.level)))
            for at, each in enumerate(shown)
        ]

    count = bisect_left(
        range(len(steps)), True, key=lambda count: len(_body(after(count), newest)) <= limit
    )
    return _body(after(count), newest)


def _steps(shown: Sequence[_Shown]) -> Iterator[tuple[int, _Level]]:
    """Yield what is shown less of, one after the other, until all is hidden."""

    def largest(level: _Level, *outcomes: Outcome) -> Iterator[tuple[int, _Level]]:
        these = [at for at, each in enumerate(shown) if each.section.outcome in outcomes]
        for at in sorted(these, key=lambda at: -len(shown[at].section.text)):
            yield at, level

    yield from largest(_Level.SHORT, "passed")
    yield from largest(_Level.SHORT, "incomplete", "failed")
    for level in (_Level.LINE, _Level.HIDDEN):
        for outcome in reversed(_ORDER):
            yield from largest(level, outcome)


def _body(shown: Sequence[_Shown], newest: str) -> str:
    first = shown[0].section
    parts = [marker(first.suite)]
    if len(shown) == 1:
        return "\n".join([*parts, *_text(shown[0])])
    parts += ["", *_summary(shown, newest), ""]
    for each in shown:
        if each.level < _Level.LINE:
            parts += [*(_folded(each) if each.section.outcome == "passed" else _headed(each)), ""]
    parts += [_line(each, newest) for each in shown if each.level == _Level.LINE]
    if hidden := sum(each.level == _Level.HIDDEN for each in shown):
        parts.append(f"- {counted(hidden, 'job')} for which there is no room here")
    parts += ["", *(_opening(each.stored) for each in shown if each.level >= _Level.LINE)]
    return "\n".join(parts).rstrip("\n")


def _text(shown: _Shown) -> list[str]:
    if not shown.text:
        return [_opening(shown.stored), "", f"{_name(shown.section)} {_told(shown.section)}"]
    return [_opening(shown.stored), "", shown.text, "", _closing(_digest(shown.stored))]


def _headed(shown: _Shown) -> list[str]:
    section = shown.section
    title = f"### {_MARKS[section.outcome]} {_name(section)} {_DECIDED[section.outcome]}"
    return [title, "", *_text(_without_alert(shown))]


def _folded(shown: _Shown) -> list[str]:
    title = f"<details><summary>{_MARKS['passed']} {_name(shown.section)} passed</summary>"
    return [title, "", *_text(_without_alert(shown)), "", "</details>"]


def _without_alert(shown: _Shown) -> _Shown:
    """Take the colour of an alert away: the summary has one, and inside others it is not shown."""
    text = _ALERT.sub("", shown.section.text)
    return replace(shown, section=replace(shown.section, text=text))


def _line(shown: _Shown, newest: str) -> str:
    section = shown.section
    if shown.is_old:
        return f"- ⏳ {_name(section)} is not evaluated yet{_at(newest)}; it {_past(section)}"
    return f"- {_MARKS[section.outcome]} {_name(section)} {_told(section)}"


def _told(section: Section) -> str:
    return f"{_DECIDED[section.outcome]}; the summary of the job says why"


def _past(section: Section) -> str:
    decided = "had no verdict" if section.outcome == "incomplete" else section.outcome
    return f"{decided}{_at(section.commit)}"


def _at(commit: str) -> str:
    return f" at {html_code(commit[:7])}" if commit else " before"


def _name(section: Section) -> str:
    return html_code(section.job) if section.job else "a job without a name"


def _summary(shown: Sequence[_Shown], newest: str) -> Iterator[str]:
    """Yield the alert above several sections: which failed, which are missing, how many passed."""
    by = {
        outcome: [e.section for e in shown if e.section.outcome == outcome and not e.is_old]
        for outcome in _ORDER
    }
    old = [each.section for each in shown if each.is_old]
    worst = next(outcome for outcome in _ORDER if by[outcome])
    kind = {"failed": "CAUTION", "incomplete": "WARNING"}.get(worst, "NOTE" if old else "TIP")
    suite = markdown(shown[0].section.suite)
    all_jobs = counted(len(shown), "job")
    yield f"> [!{kind}]"
    yield f"> **{suite} {_DECIDED[worst]} in {len(by[worst])} of {all_jobs}**" + _listed(by[worst])
    if worst == "failed" and by["incomplete"]:
        count = counted(len(by["incomplete"]), "job has", "jobs have")
        yield f"> <br>{count} no verdict{_listed(by['incomplete'])}"
    if worst != "passed" and by["passed"]:
        yield f"> <br>{counted(len(by['passed']), 'job')} passed."
    if old:
        count = counted(len(old), "job is", "jobs are")
        yield f"> <br>{count} not evaluated yet{_at(newest)}{_listed(old)}"


def _listed(sections: Sequence[Section]) -> str:
    """Return the names of jobs, as the end of a sentence; none where that is of no interest."""
    if all(each.outcome == "passed" for each in sections) and len(sections) > 1:
        return "."
    names = ", ".join(map(_name, sections[:_NAMED]))
    more = len(sections) - _NAMED
    return f": {names} and {more} more." if more > 0 else f": {names}."


def _parts(text: str) -> tuple[str, str]:
    """Return `text` before and after `MORE`; what is fenced is what others said, and no such line."""
    fence = ""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if found := _FENCE.match(line):
            if not fence:
                fence = found[0]
            elif line.rstrip() == found[0] and len(found[0]) >= len(fence):
                fence = ""
        elif line == MORE and not fence:
            return _trimmed("\n".join(lines[:at])), _trimmed("\n".join(lines[at + 1 :]))
    return text, ""
