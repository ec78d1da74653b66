import doctest
import re

import jinja2  # noqa: TID253  # it is what is tested here
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree
from lxml import html as lxml_html
from support.report_language import shown_by_github

from ci_eval.text import templates
from ci_eval.text.sanitize import clean, one_line
from ci_eval.text.templates import (
    NONE,
    block,
    code,
    command_data,
    command_property,
    difference,
    duration,
    html_code,
    markdown,
    measure,
    p_value,
    percent,
    score,
    terminal,
    workflow_command,
    xml,
)

ANY_CHARACTER = st.characters(codec=None, exclude_categories=())
"""Every code point, halves of surrogate pairs too."""
_PIECES = (
    "@octocat|@org/team|https://evil.example/?q=1|http://1.2.3.4|ftp://x.y|www.evil.example|"
    "me@evil.example|mailto:me@evil.example|xmpp:me@evil.example|#1|GH-1|a/b#1|:x:|$x$|"
    "![p](http://e.x/y)|[a](b 't')|[a]: http://x.y|[^1]|<img src=x>|<script>|<!--|-->|"
    "<https://x.y>|<me@x.y>|&lt;img&gt;|&#64;octocat|&#124;|**|__|~~|`|``|```|~~~|\\|\\`|\\\\|"
    "\n|\r\n|\n\n|\n# h|\n- i|\n1. i|\n> q|\n---|\n===|\n    c|\t|  \n|\n::error::x|"
    "##[error]x|%0A|\x1b[31m|\x1b]8;;http://x.y\x07|\x9b1m|\x00|\x85|\u2028|\u202e|\u200b|"
    "\u2066|\ufeff|\ud800|\udfff|\U000e0041|</code>|</details>|]]>|&amp;|&#0;|'|\"|a|1| "
)
PIECES = st.sampled_from([*_PIECES.split("|"), "|", "\n|-|-|\n", "\\|"])
HOSTILE = st.one_of(st.text(ANY_CHARACTER), st.lists(PIECES, max_size=12).map("".join))

LIVE = re.compile(r"@\w|(?<!&)#\d|://|www\.|\bgh-\d|:\w+:", re.IGNORECASE)
"""What GitHub links, or makes an image of, outside code."""


def dead(html: str, allowed: set[str]) -> bool:
    """Return True if a page has only these elements, and nothing in its texts is live."""
    page = lxml_html.fragment_fromstring(html, create_parent="div")
    for element in page.iter():
        if element is page:
            continue
        if not isinstance(element.tag, str) or element.tag not in allowed or element.attrib:
            return False
    outside = "".join(page.xpath(".//text()[not(ancestor::code or ancestor::pre)]"))
    return not LIVE.search(outside)


@given(HOSTILE)
@example("a www.evil.example")
@example("\nwww.evil.example")
def test_running_text_is_one_dead_paragraph(text: str) -> None:
    assert dead(shown_by_github(f"So: {markdown(text)}."), {"p", "span"})
    assert dead(shown_by_github(markdown(text)), {"p", "span"})


@given(HOSTILE)
def test_running_text_is_as_dead_inside_html(text: str) -> None:
    page = shown_by_github(f"<details><summary>{markdown(text)}</summary>\n\n</details>")
    assert dead(page, {"details", "summary", "span"})


@given(HOSTILE, HOSTILE)
def test_code_never_leaves_its_span_whatever_stands_next_to_it(one: str, other: str) -> None:
    page = shown_by_github(f"{code(one)}{code(other)}{html_code(other)}{code(one)}")
    assert dead(page, {"p", "code"})


@given(HOSTILE, HOSTILE)
def test_a_table_keeps_its_cells(one: str, other: str) -> None:
    table = f"| a | b | c |\n|--|--|--|\n| {markdown(one)} | {code(other)} | {html_code(one)} |\n"
    page = shown_by_github(f"{table}\nafter")
    assert dead(page, {"table", "thead", "tbody", "tr", "th", "td", "code", "p", "span"})
    assert page.count("<td>") == 3


@given(HOSTILE, HOSTILE)
def test_a_quoted_list_keeps_its_items(one: str, other: str) -> None:
    page = shown_by_github(f"> - {markdown(one)}\n> - {code(other)}\n")
    assert dead(page, {"blockquote", "ul", "li", "code", "p", "span"})
    assert page.count("<li>") == 2


@given(HOSTILE)
def test_a_block_ends_where_it_should(text: str) -> None:
    page = lxml_html.fragment_fromstring(
        shown_by_github(f"{block(text)}\n\n**after**"), create_parent="div"
    )
    assert [child.tag for child in page] == ["pre", "p"]


def test_code_has_no_comment_that_could_be_taken_for_ours() -> None:
    assert code("<!-- ci-eval:v1 -->") == "`<\u200b!-- ci-eval:v1 -->`"
    assert block("<!-- ci-eval:v1 -->") == "```\n<\u200b!-- ci-eval:v1 -->\n```"


def test_what_github_does_not_look_at_in_code_stays_to_be_copied() -> None:
    assert html_code("fedcba9876 #1 a:b $x") == "<code>fedcba9876 &#35;1 a:b &#36;x</code>"
    assert html_code("a@b https://c www.d") == (
        "<code>a@\u200bb https:\u200b//c www\u200b.d</code>"
    )


def test_a_block_names_its_language() -> None:
    assert block("a\n``` b", "diff") == "````diff\na\n``` b\n````"


@given(st.lists(st.sampled_from(["`", "``", "```", "\n", "~", " ", "x"])).map("".join))
def test_a_code_span_shows_the_text_itself(text: str) -> None:
    page = lxml_html.fragment_fromstring(shown_by_github(code(text)), create_parent="div")
    assert page.text_content().strip() == (one_line(text, 120) or "empty")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("quality on smoke fell by 0.1", "quality on smoke fell by 0.1"),
        ("tool_trajectory_avg_score", "tool_trajectory_avg_score"),
        ("_x_ *y*", "&#95;x&#95; &#42;y&#42;"),
        ("- no list", "&#45; no list"),
        ("1. no list", "&#49;. no list"),
        ("0.1.0 is no list", "0.1.0 is no list"),
        ("@octocat", "@\u200boctocat"),
        ("a@b.example", "a@\u200bb.example"),
        ("see https://x.example", "see https:\u200b//x.example"),
        ("at 10: late", "at 10: late"),
        ("two\nlines", "two lines"),
        ("for $5", "for <span>&#36;</span>\u200b5"),
        ("C #", "C &#35;"),
        ("see a5c3785", "see a5c378\u200b5"),
        ("run 20260304", "run 202603\u200b04"),
        ("_GH-1", "&#95;GH\u200b-1"),
    ],
)
def test_running_text_changes_no_more_than_it_must(text: str, written: str) -> None:
    assert markdown(text) == written


def test_a_long_text_says_how_long_it_is() -> None:
    assert markdown("x" * 1_000_000) == "x" * 300 + "\u2026 (1,000,000 characters in all)"
    assert code("y" * 121) == "`" + "y" * 120 + "\u2026 (121 characters in all)`"
    assert one_line("\x1b[1m" * 1_000 + "x", 10).startswith("\u2026 (4,001 characters")


@given(HOSTILE)
def test_clean_text_stays_as_it_is_and_can_be_written(text: str) -> None:
    cleaned = clean(text)
    assert clean(cleaned) == cleaned
    cleaned.encode()
    assert "\x1b" not in cleaned
    assert "##[" not in cleaned


@given(HOSTILE)
def test_xml_is_well_formed_as_text_and_as_attribute(text: str) -> None:
    root = etree.fromstring(f'<a b="{xml(text)}">{xml(text)}</a>'.encode())
    assert "\x1b" not in (root.text or "")


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cn"])))
def test_xml_keeps_what_xml_allows(text: str) -> None:
    assert (etree.fromstring(f"<a>{xml(text)}</a>".encode()).text or "") == text


def test_xml_replaces_what_xml_does_not_allow() -> None:
    assert xml("<\x1b[1m&\x00\ufffe\ud800\r") == "&lt;&amp;���&#13;"


@given(HOSTILE, HOSTILE, HOSTILE)
def test_a_workflow_command_is_one_line_and_one_command(text: str, title: str, file: str) -> None:
    command = workflow_command("error", text, title=title, file=file, line=3)
    assert command.splitlines() == [command]
    command.encode()
    properties, message = command.removeprefix("::error ").split("::", 1)
    assert properties.count(",") <= 2
    assert "##[" not in command
    decoded = message.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")
    assert decoded == clean(text)


def test_a_workflow_command_escapes_what_runners_read() -> None:
    assert command_data("50%\r\nof: a,b") == "50%25%0Aof: a,b"
    assert command_property("50%\nof: a,b") == "50%25%0Aof%3A a%2Cb"
    assert workflow_command("warning", "m", title="t") == "::warning title=t::m"
    assert workflow_command("error", "m", title="t", line=3) == "::error title=t::m"


@given(HOSTILE)
def test_a_line_for_a_terminal_is_no_command(text: str) -> None:
    line = terminal(text)
    assert len(line.splitlines()) <= 1
    assert not line.lstrip().startswith("::")
    assert "##[" not in line
    line.encode()


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (score(None), NONE),
        (score(0.5), "0.500"),
        (score(0.7999, 0.8), "0.7999"),
        (score(0.8, 0.8), "0.800"),
        (score(0.000299996, 0.0003), "0.000299996"),
        (score(0.8 - 1e-12, 0.8), "0.800000000"),
        (score(-0.25), "\N{MINUS SIGN}0.250"),
        (measure(None), NONE),
        (measure(0.8), "0.8"),
        (measure(12_345.6), "12,346"),
        (difference(None), NONE),
        (difference(-0.1484), "\N{MINUS SIGN}0.148"),
        (difference(0.1484), "+0.148"),
        (difference(-0.0001), "\N{MINUS SIGN}0.0001"),
        (difference(-0.0000123), "\N{MINUS SIGN}1.23e\N{MINUS SIGN}05"),
        (difference(0.1 + 0.2 - 0.3), "±0.000"),
        (difference(1234.5), "+1,234.500"),
        (percent(None), NONE),
        (percent(0.0), "0.0%"),
        (percent(2 / 3), "66.7%"),
        (percent(0.9999), "99.99%"),
        (percent(0.99999), "99.999%"),
        (percent(1999 / 2000, 1.0), "99.95%"),
        (percent(1.0, 1999 / 2000), "100.00%"),
        (p_value(None), NONE),
        (p_value(0.5), "p = 0.500"),
        (duration(0), "0 ms"),
        (duration(59.9), "59 s"),
        (duration(60), "1 min"),
        (duration(3_725), "1 h 2 min"),
        (duration(90_000), "1 d 1 h"),
    ],
)
def test_numbers_read_well(shown: str, expected: str) -> None:
    assert shown == expected


def test_the_examples_hold() -> None:
    assert doctest.testmod(templates).failed == 0


# --- Templates ------------------------------------------------------------------------------

EVIL = "@octocat <img src=x> | **x**"


def filled(source: str, **context: object) -> str:
    template = templates.environment().from_string(source)
    return "".join(template.generate(context))


@pytest.mark.parametrize(
    "source",
    [
        "{{ evil }}",
        "{{ evil | safe }}",
        "{{ evil | upper | lower }}",
        "{{ evil | e }}",
        "{{ evil ~ '' }}",
        "{{ (evil | code) ~ evil }}",
        "{{ '%s' | format(evil) }}",
        "{{ '{}'.format(evil) }}",
        "{{ evil | tojson }}",
        "{{ [evil, evil] | join }}",
        "{{ {'a': evil} | xmlattr }}",
        "{{ evil | urlize }}",
        "{% set x %}{{ evil }}{% endset %}{{ x }}",
        "{% set x %}{{ evil }}{% endset %}{{ x ~ evil }}",
        "{% set x %}{}{% endset %}{{ x | string }}{{ evil }}",
        "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(evil) }}{{ m(m(evil)) }}",
        "{% filter lower %}{{ evil }}{% endfilter %}",
        "{% autoescape false %}{{ evil }}{% endautoescape %}",
        "{% autoescape true %}{{ evil }}{{ evil | safe }}{% endautoescape %}",
        "{% for x in evil.split('|') %}{{ x }}{% endfor %}",
        "{{ evil | markdown | string }}",
        "{{ 'https://example.com' | link(evil) }}{{ evil | link(evil) }}",
    ],
)
def test_no_template_writes_the_text_of_others_as_it_is(source: str) -> None:
    written = filled(source, evil=EVIL)
    assert "<img" not in written
    assert "@octocat" not in re.sub("`[^`]*`", "", written)


def test_what_macros_blocks_and_filters_made_is_not_escaped_twice() -> None:
    source = (
        "{% macro m(x) %}**{{ x | code }}**{% endmacro %}"
        "{% set y %}{{ m(x) }}{% endset %}{% if y %}{{ y }}{% endif %}"
    )
    assert filled(source, x="a_b") == "**`a_b`**"
    assert filled("{% set y %}{% endset %}{% if not y %}empty{% endif %}") == "empty"


def test_numbers_are_formatted() -> None:
    assert filled("{{ 3000 }} {{ 0.5 }} {{ 0.25 | percent }}") == "3,000 0.500 25.0%"


@pytest.mark.parametrize("value", [None, ["x"], {"a": 1}, object()])
def test_a_template_writes_nothing_but_text_and_numbers(value: object) -> None:
    with pytest.raises(TypeError, match="only text and numbers"):
        filled("{{ value }}", value=value)


def test_what_there_is_not_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError, match="nothing"):
        filled("{{ nothing }}")


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__ }}",
        "{{ value.append(1) }}",
        "{{ (value | code).__init__.__globals__ }}",
        "{{ value | code | attr('__class__') }}",
    ],
)
def test_a_template_cannot_reach_further(source: str) -> None:
    with pytest.raises((jinja2.TemplateError, TypeError)):
        filled(source, value=[])


def test_templates_lie_in_the_package_or_beside_it() -> None:
    inside, beside = templates.folders()
    assert inside.parent == beside.parent / "ci_eval"
    assert (beside / "comment.md.j2").is_file()


@pytest.mark.parametrize("piece", ["\x1b]", "\x90", "\x1b[1;", "\x1b", "`", "|", "\ud800", " \n"])
def test_long_hostile_texts_take_no_long_time(piece: str) -> None:
    text = piece * 200_000
    for function in (clean, xml, markdown, code, block, command_data):
        function(text)
