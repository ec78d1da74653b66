"""Codes of error messages: `CE0412`.  Each stands for one entry of the troubleshooting page.

The page is the only source: an entry begins with its code and the messages that it explains, in
which `…` stands for any text.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

import click

from ci_eval.cli.published_source import page_url
from ci_eval.records.errors import UsageError
from ci_eval.run_files.report_phrases import listed
from ci_eval.text.suggest import MAX_NAMED

_PAGE = "docs/troubleshooting.md"
_ENTRY = re.compile(
    r'^- <a id="ce\d+"></a>\*\*(CE\d+)\*\*<br>\n((?:  .*\n|\n(?=  ))+)', re.MULTILINE
)
_MESSAGE = re.compile(r"^  (?P<ticks>`+) ?(.+?) ?(?P=ticks)<br>\n", re.MULTILINE)
_GUIDE_LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<page>(?:\S*/)?(?P<guide>[\w-]+)\.md[^)]*)\)")
_LEAST_LETTERS = 5
"""An entry with fewer letters besides its gaps would match anything, so it must match exactly."""
_CODE = re.compile(r"(?:CE)?(\d{1,4})", re.IGNORECASE)
_SAID = 3
"""Maximum number of codes named for one error, and of errors explained for a part of a message."""
_MAX_CHARS = 1_000
"""Number of characters of a message to look up."""


class Entry(NamedTuple):
    """An entry of the page: messages and their explanation."""

    code: str
    messages: tuple[str, ...]
    text: str
    """Their cause, and what to do."""


@cache
def entries() -> tuple[Entry, ...]:
    """Return all entries of the page; an installed package contains the page."""
    package = Path(__file__).parents[1]
    path = next(each for each in (package / _PAGE, package.parent / _PAGE) if each.is_file())
    found = []
    for entry in _ENTRY.finditer(path.read_text(encoding="utf-8")):
        messages = tuple(each[2] for each in _MESSAGE.finditer(entry[2]))
        text = " ".join(_MESSAGE.sub("", entry[2]).split())
        found.append(Entry(entry[1], messages, text))
    return tuple(found)


def explaining(message: str) -> Entry | None:
    """Return the entry that explains `message`; of several, the one that matches most text.

    The message may have more text than the entry: a place before it, a suggestion after it.
    """
    message = message[:_MAX_CHARS]
    while message:
        if found := _explaining(message):
            return found
        message = message.partition(": ")[2]
    return None


def code_of(message: str) -> str | None:
    """Return the code of the entry that explains `message`; `None` if there is none."""
    entry = explaining(message)
    return entry.code if entry else None


def _explaining(message: str) -> Entry | None:
    fitting = (
        (bool(found.group("rest")), -len(pattern.replace("…", "")), entry)
        for entry in entries()
        for pattern in entry.messages
        if (found := _compiled(pattern).fullmatch(message))
    )
    return min(fitting, default=(False, 0, None), key=lambda each: each[:2])[2]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    few = len(re.sub(r"\W", "", pattern)) < _LEAST_LETTERS
    parts = [pattern] if few else pattern.split("…")
    return re.compile(".*".join(map(re.escape, parts)) + r"(?P<rest>(?:[.,;:(]| \().*|)", re.DOTALL)


def codes_of(messages: Iterable[str]) -> list[str]:
    """Return the codes of the messages."""
    found = filter(None, map(code_of, messages))
    return [*dict.fromkeys(found)][:_SAID]


def error_page(code: str, env: Mapping[str, str]) -> str:
    """Return the URL of the entry of `code` on the page; empty if it is unknown."""
    page = page_url(_PAGE, env)
    return page and f"{page}#{code.lower()}"


@click.command()
@click.argument("codes", metavar="CODE...", nargs=-1, required=True)
def explain(codes: tuple[str, ...]) -> None:
    """Explain an error: its cause, and what to do.

    CODE is the code that a message ends with, such as CE0103, or a part of the message.
    """
    for number, found in enumerate(each for code in codes for each in _entries(code.strip())):
        if number:
            click.echo()
        click.echo(found.code)
        for message in found.messages:
            click.echo(f"  {message}")
        click.echo()
        click.echo(fill(_plain(found.text), 80, break_long_words=False, break_on_hyphens=False))


def _entries(given: str) -> Sequence[Entry]:
    """Return the entry with a code (leading zeros optional), or those with a message.

    Raises:
        UsageError: there is none, or a part of a message belongs to too many.

    """
    if code := _CODE.fullmatch(given.rstrip(",:")):
        number = f"CE{int(code[1]):04}"
        found: Sequence[Entry] = [each for each in entries() if each.code == number]
    else:
        whole = explaining(given)
        found = [whole] if whole else _containing(given)
    if not found:
        raise UsageError(f"no error has the code or the text {given!r}")
    if len(found) > _SAID:
        first = listed([entry.code for entry in found], MAX_NAMED)
        message = f"{len(found)} errors have a message with {given!r}: {first}"
        raise UsageError(message, hint="pass one of the codes, or more of the message")
    return found


def _containing(text: str) -> Sequence[Entry]:
    """Return the entry with the message `text` in any case, or else all that contain it."""
    wanted = text.strip().lower()
    lower = {entry: [each.lower() for each in entry.messages] for entry in entries()}
    found = {entry: [each for each in lower[entry] if wanted and wanted in each] for entry in lower}
    same = [entry for entry, messages in found.items() if wanted in messages]
    return same or [entry for entry, messages in found.items() if messages]


def _plain(text: str) -> str:
    """Return Markdown as plain text; a link becomes its text and the address of the guide."""

    def shown(link: re.Match[str]) -> str:
        url = page_url(f"docs/{link['page']}", {})
        return f"{link['text']} ({url or 'guide: ' + link['guide']})"

    guides = _GUIDE_LINK.sub(shown, text)
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", guides).replace("<br>", " ")
