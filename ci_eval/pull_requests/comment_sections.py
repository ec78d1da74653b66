"""Sections of a comment: one per job or step, in the comment of their suite.

A section is enclosed in two hidden lines with its digest, so that it can be read back from the
comment.  A section may contain an agent's output that looks like such a line.  But no text can
contain its own digest, so such output can neither end a section nor start another.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal, get_args
from urllib.parse import quote, unquote

from ci_eval.reporters.markdown import marker

MORE = "<!-- ci-eval:more -->"
"""A line in the text of a section; if space is short, the part after it is left out first."""
MAX_SECTIONS = 256
"""Maximum number of jobs in a comment, newest first; the maximum size of a GitHub matrix."""

Key = tuple[str, str]
Outcome = Literal["passed", "failed", "incomplete", "undecided"]

_MAX_NAME = 130
"""Maximum length of what identifies a section in its hidden line."""
_DIGEST = 12
"""Number of characters that distinguish texts that are too long for the line."""
_MAX_COMMIT = 64
_OPENING = re.compile(
    r"<!-- ci-eval:job (passed|failed|incomplete|undecided) ([0-9]{1,20}) ([0-9]{1,20}) "
    r"commit=([^ <>]{0,200}) digest=([0-9a-f]{32}|none) "
    r"name=([^<>|]{0,130})(?:\|([^<>|]{1,130}))? -->"
)
_CLOSING = re.compile(r"<!-- ci-eval:end [0-9a-f]{32} -->")


@dataclass(frozen=True)
class Section:
    """The report of one job."""

    suite: str
    job: str
    """The name of the job; empty if unknown."""
    outcome: Outcome
    text: str
    """Escaped Markdown: the verdict, the table, `MORE`, and the rest."""
    commit: str = ""
    """The commit that was evaluated."""
    run: int = 0
    """The number of the workflow run or pipeline, which increases; 0 if unknown."""
    attempt: int = 1
    """The attempt of that run."""
    step: str = ""
    """The workflow, the configuration and the selection; empty from earlier versions of ci-eval."""

    @property
    def key(self) -> Key:
        """What identifies the section: the job, and the step in it."""
        return self.job, self.step

    @property
    def verdict(self) -> Literal["passed", "failed", "incomplete"]:
        """The verdict as outputs state it: what is not decided has passed."""
        return "passed" if self.outcome == "undecided" else self.outcome

    @property
    def since(self) -> tuple[int, int]:
        """A sort key: greater for newer sections."""
        return self.run, self.attempt


# --- Combining jobs -----------------------------------------------------------------------------


def merged(sections: Iterable[Section]) -> tuple[Section, ...]:
    """Return the newest section of each step; of equally new sections, the last.

    The result depends neither on the order of sections of different age nor on duplicates, so
    concurrent writers converge.
    """
    newest: dict[Key, Section] = {}
    jobs: dict[str, tuple[int, int]] = {}
    for each in sections:
        other = newest.get(each.key)
        if other is None or other.since <= each.since:
            newest[each.key] = each
        if each.step:
            jobs[each.job] = max(each.since, jobs.get(each.job, each.since))
    # Earlier versions of ci-eval named no step: any newer section of the job replaces theirs.
    kept = [e for e in newest.values() if e.step or e.since >= jobs.get(e.job, e.since)]
    by_age = sorted(kept, key=lambda each: (each.since, each.key), reverse=True)
    return tuple(sorted(by_age[:MAX_SECTIONS], key=lambda each: each.key))


def joining(section: Section, there: Sequence[Section]) -> Section:
    """Return `section` normalised, for a comment with the sections `there`.

    A section without a run number is the newest, because it was posted by hand.
    """
    latest = max((each.since for each in there), default=(0, 1))
    run, attempt = section.since if section.run else latest
    return replace(
        in_line(section),
        commit=section.commit[:_MAX_COMMIT],
        run=run,
        attempt=attempt,
        text=as_stored(section.text),
    )


def with_distinct_names(sections: Iterable[Section]) -> tuple[Section, ...]:
    """Return the sections with distinct keys, by numbering job names.

    Jobs of a matrix may share a name, and one that passed must not replace one that failed.
    """
    found: dict[Key, Section] = {}
    for each in sections:
        named, number = each, 1
        while named.key in found:
            number += 1
            named = replace(each, job=f"{each.job} ({number})".lstrip())
        found[named.key] = named
    return tuple(found.values())


def newest_commit(sections: Iterable[Section]) -> str:
    """Return the commit of the newest run."""
    return max(sections, key=lambda each: each.since).commit


def in_line(section: Section) -> Section:
    """Return the section with its key as in the hidden line, where long texts are digests."""
    job = _fitting(section.job, _MAX_NAME - _DIGEST - 1, start=8)
    step = _fitting(section.step, _MAX_NAME - len(_quoted(job)) - 1)
    return replace(section, job=job, step=step)


def _fitting(text: str, room: int, *, start: int = 0) -> str:
    """Return the text as it is read back; if too long, its `start` and a digest."""
    if len(_quoted(text)) <= room:
        return unquote(_quoted(text))
    digest = sha256(text.encode(errors="replace")).hexdigest()[:_DIGEST]
    return f"{text[:start]}…{digest}" if start else digest


def as_stored(text: str) -> str:
    """Return `text` as a server returns it: lines end with line feeds, none at the start or end."""
    return text.replace("\r\n", "\n").strip("\n")


# --- Reading ------------------------------------------------------------------------------------


def read(suite: str, body: str) -> tuple[Section, ...]:
    """Return the sections of a comment body; none if `compose` did not write it."""
    lines = as_stored(body).split("\n")
    if lines[0] != marker(suite):
        return ()
    found: dict[Key, Section] = {}
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
        if (digest_of(section) if text else "none") != opening[5] or section.key in found:
            return ()
        found[section.key] = section
    return tuple(found.values())


def _section(suite: str, opening: re.Match[str], text: str) -> Section:
    outcome = next(each for each in get_args(Outcome) if each == opening[1])
    run, attempt = int(opening[2]), int(opening[3])
    commit, job, step = (unquote(each or "") for each in opening.group(4, 6, 7))
    return Section(suite, job, outcome, text, commit, run, attempt, step)


def digest_of(section: Section) -> str:
    """Return a digest of `section`; its 128 bits resist a brute-force search."""
    fields = (section.outcome, *section.since, section.commit, *_named(section), section.text)
    return sha256("\n".join(map(str, fields)).encode(errors="replace")).hexdigest()[:32]


def opening_line(section: Section) -> str:
    """Return the hidden line before a section; without text it is the whole section."""
    digest = digest_of(section) if section.text else "none"
    name = "|".join(map(_quoted, _named(section)))
    return (
        f"<!-- ci-eval:job {section.outcome} {section.run} {section.attempt} "
        f"commit={quote(section.commit, safe='')} digest={digest} name={name} -->"
    )


def _named(section: Section) -> tuple[str, ...]:
    return section.key if section.step else (section.job,)


def closing_line(digest: str) -> str:
    """Return the hidden line after a section."""
    return f"<!-- ci-eval:end {digest} -->"


def _quoted(name: str) -> str:
    """Return `name` with everything quoted that is invisible or could end an HTML comment."""

    def quote_found(found: re.Match[str]) -> str:
        return "".join(f"%{byte:02X}" for byte in found[0].encode(errors="replace"))

    return re.sub(r"[^\w .,:;/()=+@-]|--", quote_found, name)
