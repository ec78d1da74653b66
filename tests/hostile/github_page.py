"""What GitHub would make of a document, and what of that is live.

The page is that of cmark-gfm, GitHub's own renderer, with nothing sanitised, so that whatever a
sanitiser would have to take out is seen.  What GitHub does to texts afterwards is written here
from its documentation:

- mentions, issues and commits: <https://docs.github.com/en/get-started/writing-on-github/working-with-advanced-formatting/autolinked-references-and-urls>
- emoji: <https://docs.github.com/en/get-started/writing-on-github/getting-started-with-writing-and-formatting-on-github/basic-writing-and-formatting-syntax#using-emojis>
- mathematics: <https://docs.github.com/en/get-started/writing-on-github/working-with-advanced-formatting/writing-mathematical-expressions>
"""

import re
from collections.abc import Iterator

from cmarkgfm.cmark import Options, markdown_to_html_with_extensions
from lxml import html as lxml_html
from lxml.html import HtmlElement

_EXTENSIONS = ["table", "strikethrough", "autolink", "tasklist"]
_OPTIONS = (
    Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_FOOTNOTES | Options.CMARK_OPT_GITHUB_PRE_LANG
)

ELEMENTS = {"blockquote", "br", "code", "details", "em", "h2", "h3", "h4", "li", "p", "pre", "span"}
ELEMENTS |= {"strong", "sub", "summary", "table", "tbody", "td", "th", "thead", "tr", "ul"}
"""What our documents are made of."""
_ATTRIBUTES = {
    ("details", "open", ""),
    ("pre", "lang", "diff"),
    ("pre", "lang", "mermaid"),
    *((cell, "align", side) for cell in ("td", "th") for side in ("left", "right")),
}
_LIVE = re.compile(
    r"""
    @ [\w-]                                   # users, teams, addresses, commits of others
    | \# \d                                   # issues
    | gh-\d
    | : // \S | www \. \S                     # addresses, as cmark-gfm knows them
    | (?<! \w) [0-9a-f]{7,40} (?! \w)         # commits
    | : [\w+-]+ :                             # emoji
    | \$ (?! \d+(?:\.\d+)? (?: \D|$))         # mathematics; an amount of money ends no formula
    """,
    re.VERBOSE | re.IGNORECASE,
)
_QUIET = ("code", "pre")
"""In what nothing is linked."""
_UNSEEN = "\u200b"


def page_of(markdown: str) -> HtmlElement:
    """Return a document as GitHub shows it."""
    shown = markdown_to_html_with_extensions(markdown, _OPTIONS, _EXTENSIONS)
    return lxml_html.fragment_fromstring(shown, create_parent="main")


def live_parts(page: HtmlElement, comments: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield whatever is not ours, and every text that GitHub would make something of."""
    found = []
    for node in page.iterdescendants():
        if not isinstance(node.tag, str):
            found.append(str(node))
        elif node.tag not in ELEMENTS:
            yield f"<{node.tag}>"
        else:
            yield from (
                f"<{node.tag} {name}={value!r}>"
                for name, value in node.attrib.items()
                if (node.tag, name, value) not in _ATTRIBUTES
            )
    if found != [*comments]:
        yield f"comments {found}"
    for text in texts(page):
        if live := _LIVE.search(text):
            yield f"{live[0]!r} in {text!r}"


def texts(page: HtmlElement) -> Iterator[str]:
    """Yield the texts that stand outside code, each with what it touches."""
    inside = " or ".join(f"ancestor::{tag}" for tag in _QUIET)
    for text in page.xpath(f".//text()[not({inside})]"):
        parent = text.getparent()
        # A dollar sign in an element of its own is none of a formula's, as GitHub says.
        if not (parent.tag == "span" and text.is_text and text == "$"):
            yield str(text)


def seen(page: HtmlElement) -> str:
    """Return all that a reader sees, in one line and without what parts characters."""
    parts = " ".join(map(str, page.xpath(".//text()")))
    return " ".join(parts.replace(_UNSEEN, "").split())


def tables(page: HtmlElement) -> list[list[int]]:
    """Return how many cells each row of each table has."""
    found = page.iter("table")
    return [[len(row.xpath("./td|./th")) for row in table.iter("tr")] for table in found]


def skeleton(page: HtmlElement) -> list[str]:
    """Return the elements in their order; a dollar sign and a cut line have one more each."""
    return [node.tag for node in page.iterdescendants() if node.tag not in ("span", "br")]
