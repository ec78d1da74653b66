"""Pages of Markdown, as the tests of the documentation read them: sections, blocks and links."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GUIDES = sorted(DOCS.glob("*.md"))
PAGES = [*GUIDES, *sorted(DOCS.glob("*/*.md"))]

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r"`([\w./-]+)`:\s*\Z")
_HEADING = re.compile(r"^(#{1,6}) (.+)$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")


class Block(NamedTuple):
    """A fenced block."""

    language: str
    text: str
    file: str
    """What the sentence before it names as its file: "… `evals/a.yaml`:"."""


class Section(NamedTuple):
    """A heading of the second level, and what follows it."""

    page: str
    title: str
    blocks: tuple[Block, ...]


def sections(path: Path) -> Iterator[Section]:
    """Yield the sections of a page that have blocks; what is before the first is one, too."""
    text = path.read_text(encoding="utf-8")
    for part in re.split(r"^(?=## )", text, flags=re.MULTILINE):
        title = re.sub(r"^#+ ", "", part.split("\n", 1)[0])
        blocks = tuple(_blocks(part))
        if blocks:
            yield Section(path.name, title, blocks)


def _blocks(text: str) -> Iterator[Block]:
    end = 0
    for found in _BLOCK.finditer(text):
        named = _NAMED.search(text[end : found.start()])
        yield Block(found[1], found[2], named[1] if named else "")
        end = found.end()


def without_blocks(text: str) -> str:
    """Return `text` without what is in fences, where nothing is a heading or a link."""
    return _BLOCK.sub("", text)


def headings(text: str) -> list[str]:
    """Return the headings of a page, as they are written."""
    return [found[2] for found in _HEADING.finditer(without_blocks(text))]


def anchors(text: str) -> set[str]:
    """Return the anchors of a page, by GitHub's rule."""
    found: set[str] = set()
    for heading in headings(text):
        plain = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        number = 0
        while (name := f"{plain}-{number}" if number else plain) in found:
            number += 1
        found.add(name)
    return found


def links(text: str) -> list[str]:
    """Return where the links of a page lead."""
    return _LINK.findall(without_blocks(text))
