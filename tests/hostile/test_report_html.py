"""Hostile texts in `report.html`, as a parser of HTML sees it; `tests/browser` opens it."""

import json
import re

from hostile.batches import BATCHES, in_batches, named
from hostile.corpus import CORPUS
from hostile.fields import SHAPES, a_report, in_all, usual
from lxml import html as lxml_html
from support.report_language import streamed

from ci_eval.reporters.html import Html

NAMES = [*CORPUS]
LINK = re.compile(r"#(\w*|case=[\w.%~-]+)", re.ASCII)


def parsed(text: str, shape: str) -> lxml_html.HtmlElement:
    told = a_report(in_all(text) if text else usual, shape)
    page = "".join(Html().render(told.report, streamed(told.results)))
    return lxml_html.document_fromstring(page)


def parts(page: lxml_html.HtmlElement) -> set[tuple[str, str]]:
    """Return the elements of a page, each with its attributes."""
    return {(str(each.tag), name) for each in page.iter() for name in ("", *each.attrib)}


@in_batches
def test_a_text_adds_no_element_no_attribute_and_no_link(batch: str) -> None:
    known = set().union(*(parts(parsed("", shape)) for shape in SHAPES))
    for name in BATCHES[batch]:
        with named(name):
            page = parsed(CORPUS[name], SHAPES[NAMES.index(name) % len(SHAPES)])
            assert parts(page) <= known
            assert all(LINK.fullmatch(link.get("href")) for link in page.iter("a"))
            scripts = [each.get("id") or each.get("type") for each in page.iter("script")]
            assert scripts == ["index", *sorted(scripts[1:-1]), "module"]
            json.loads(page.get_element_by_id("index").text)
