"""What each job says of a suite, as a section of the comment that they share.

A section stands between two hidden lines, both with a digest of it, so that it is read back from
the comment as it was written.  What an agent said may be in a section and may look like such a
line, but no text can hold its own digest: it neither ends a section nor begins another.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal, get_args
from urllib.parse import quote, unquote

from ci_eval.reporters.markdown import marker

MORE = "<!-- ci-eval:more -->"
"""A line in the text of a section: what comes after it is left out first where room is short."""
MAX_SECTIONS = 256
"""How many jobs a comment tells of, the newest: as many as a matrix of GitHub may have."""

Outcome = Literal["passed", "failed", "incomplete"]

_MAX_NAME = 130
"""Characters of the name of a job in its hidden line."""
_MAX_COMMIT = 64
_OPENING = re.compile(
    r"<!-- ci-eval:job (passed|failed|incomplete) ([0-9]{1,20}) ([0-9]{1,20}) "
    r"commit=([^ <>]{0,200}) digest=([0-9a-f]{32}|none) name=([^<>]{0,130}) -->"
)
_CLOSING = re.compile(r"<!-- ci-eval:end [0-9a-f]{32} -->")


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
        job=name_in_line(section.job),
        commit=section.commit[:_MAX_COMMIT],
        run=run,
        attempt=attempt,
        text=as_stored(section.text),
    )


def apart(sections: Iterable[Section]) -> tuple[Section, ...]:
    """Return what jobs say that are told at once, each by a name of its own.

    Else one that passed could take the place of one that failed: jobs of a matrix are called the
    same where nobody names their values.
    """
    found: dict[str, Section] = {}
    for each in sections:
        name, number = each.job, 1
        while name in found:
            number += 1
            name = f"{each.job} ({number})".lstrip()
        found[name] = replace(each, job=name)
    return tuple(found.values())


def newest_commit(sections: Iterable[Section]) -> str:
    """Return the commit of the newest run."""
    return max(sections, key=lambda each: each.since).commit


def name_in_line(job: str) -> str:
    """Return a name for the hidden line; one that is very long ends with a digest of all of it."""
    if len(_quoted(job)) <= _MAX_NAME:
        return unquote(_quoted(job))
    return f"{job[:8]}…{sha256(job.encode(errors='replace')).hexdigest()[:12]}"


def as_stored(text: str) -> str:
    """Return `text` as it comes back from a server: with line feeds, and none at its ends."""
    return text.replace("\r\n", "\n").strip("\n")


# --- Reading ------------------------------------------------------------------------------------


def read(suite: str, body: str) -> tuple[Section, ...]:
    """Return the sections of a body; none where it is not as `compose` made it."""
    lines = as_stored(body).split("\n")
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
                end = lines.index(closing_line(opening[5]), at)
            except ValueError:
                return ()
            text, at = "\n".join(lines[at:end]).strip("\n"), end + 1
        section = _section(suite, opening, text)
        if (digest_of(section) if text else "none") != opening[5] or section.job in found:
            return ()
        found[section.job] = section
    return tuple(found.values())


def _section(suite: str, opening: re.Match[str], text: str) -> Section:
    outcome = next(each for each in get_args(Outcome) if each == opening[1])
    run, attempt = int(opening[2]), int(opening[3])
    return Section(suite, unquote(opening[6]), outcome, text, unquote(opening[4]), run, attempt)


def digest_of(section: Section) -> str:
    """Return what tells `section` from every other; 128 bits, which nobody can search."""
    told = (section.outcome, *section.since, section.commit, section.job, section.text)
    return sha256("\n".join(map(str, told)).encode(errors="replace")).hexdigest()[:32]


def opening_line(section: Section) -> str:
    """Return the hidden line that a section begins with, and all there is of one without text."""
    digest = digest_of(section) if section.text else "none"
    return (
        f"<!-- ci-eval:job {section.outcome} {section.run} {section.attempt} "
        f"commit={quote(section.commit, safe='')} digest={digest} name={_quoted(section.job)} -->"
    )


def closing_line(digest: str) -> str:
    """Return the hidden line that a section ends with."""
    return f"<!-- ci-eval:end {digest} -->"


def _quoted(name: str) -> str:
    """Return `name` with all quoted that could end a comment of HTML, or that cannot be seen."""

    def quote_found(found: re.Match[str]) -> str:
        return "".join(f"%{byte:02X}" for byte in found[0].encode(errors="replace"))

    return re.sub(r"[^\w .,:;/()=+@-]|--", quote_found, name)
