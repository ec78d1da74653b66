"""Escaping of untrusted text, formatting of numbers, and templates.

Text from agents, evalsets, judges and users is hostile until it has passed one of these filters:

=================== =======================================================================
`markdown`          running text in Markdown: paragraphs, table cells, also inside HTML tags
`code`              a Markdown code span
`html_code`         an HTML code element, where Markdown is not interpreted (`<summary>`)
`block`             a fenced Markdown block of many lines
`xml`               XML text and attribute values
`terminal`          one plain line of a log
`workflow_command`  one line that a GitHub runner executes
=================== =======================================================================

No filter fails on any text.  `render` fills a template from `templates/`; every value passes
through `markdown` unless it has passed another filter, so a template cannot output untrusted text
unescaped.
"""

import html
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from typing import Any, Literal

from ci_eval.text.sanitize import REPLACEMENT, clean, one_line, without_sequences

# --- Markdown -------------------------------------------------------------------------------

_BREAK = "\u200b"
"""A zero-width space: invisible, but separates the text around it."""
_MARKUP = re.compile(
    r"[&<>|`*~\[\]$\\\^\#]"
    r"|_(?![A-Za-z0-9])|(?<![A-Za-z0-9])_"  # not markup inside a word
    r"|^[-+=:/]|^[0-9](?=[0-9]*[.)](?:\s|$))"  # starts a line: list, rule, GitLab's action
)
_DOLLAR = f"&#{ord('$')};"
_LINKED = re.compile(
    r"[@\#](?=\S)|:(?=//|[\w+-]+(?::|$))|[\[*](?=\w+:)|www(?=\.)|gh(?=-[0-9])"
    r'|[!&$](?=[0-9])|[~%](?=[\w"])'  # GitLab's merge requests, epics, snippets, labels, milestones
    r"|[0-9a-f]{6}(?=[0-9a-f])",  # at least 7 digits of a commit
    re.IGNORECASE,
)
"""Starts of texts that GitHub or GitLab turn into a mention, an issue, an emoji or a link."""
ADDRESS = re.compile(r"https?://[\w.:-]+(/[\w.~/#%+=-]*)?", re.ASCII)
"""The address of a web page that can be linked: no query, no characters special in Markdown."""
_LINKED_IN_CODE = re.compile(r"@(?=\S)|:(?=//)|www(?=\.)", re.IGNORECASE)
"""Starts of links that are recognised even inside an HTML code element."""


def markdown(text: str, limit: int = 300) -> str:
    """Return `text` as running text: one line that GitHub shows verbatim.

    Uses character references instead of backslashes, so that the result is also valid inside HTML.
    """
    # GitHub looks for formulas after resolving references; an element around each `$` prevents it:
    # https://docs.github.com/get-started/writing-on-github/working-with-advanced-formatting/writing-mathematical-expressions
    return _escaped(one_line(text, limit), _LINKED).replace(_DOLLAR, f"<span>{_DOLLAR}</span>")


def _escaped(line: str, linked: re.Pattern[str]) -> str:
    broken = linked.sub(rf"\g<0>{_BREAK}", line)
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", broken)


def code(text: str, limit: int = 120) -> str:
    """Return `text` as a code span.

    A text with backticks or bars, which could end the span or its table cell, becomes an HTML
    element instead, so the result is safe in any surrounding text.
    """
    line = one_line(text, limit)
    plain = line and not set(line) & {"`", "|"}
    return f"`{_without_comments(line)}`" if plain else html_code(text, limit)


def html_code(text: str, limit: int = 120) -> str:
    """Return `text` as an HTML code element, for places where Markdown is not interpreted."""
    return f"<code>{_escaped(one_line(text, limit), _LINKED_IN_CODE) or 'empty'}</code>"


def block(lines: str, language: str = "") -> str:
    """Return `lines` as a fenced block, with a fence longer than any in `lines`.

    `language` sets the syntax highlighting; it must be trusted.
    """
    text = _without_comments(clean(lines)).rstrip("\n")
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def link(address: str, text: "str | _Safe") -> str:
    """Return a Markdown link to a web page, or only its text if the address is not plain."""
    shown = _output(text)
    return f"[{shown}]({address})" if ADDRESS.fullmatch(address) else shown


def _without_comments(text: str) -> str:
    """Return the text of a code element without anything that looks like one of our comments.

    These comments mark the parts of a document, and a parser need not know which parts are code.
    """
    return text.replace("<!--", f"<{_BREAK}!--")


# --- Everything else ------------------------------------------------------------------------


_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow."""
_ATTACHMENT = re.compile(r"\[\[(?=ATTACHMENT\|)", re.IGNORECASE)
"""An attachment in test results: https://docs.gitlab.com/ci/testing/unit_test_reports/."""


def xml(text: str) -> str:
    """Return `text` for XML, as text or between the quotes of an attribute.

    Breaks up the syntax by which readers of test results link or upload a file.
    """
    kept = _NOT_XML.sub(REPLACEMENT, without_sequences(text))
    kept = _ATTACHMENT.sub("[ [", kept)
    return html.escape(kept).replace("\r", "&#13;")


def terminal(text: str, limit: int = 500) -> str:
    """Return `text` as one line of a log that no CI runner takes for a command."""
    line = one_line(text, limit)
    return f": {line[1:]}" if line.startswith("::") else line


def command_data(text: str) -> str:
    """Return `text` as the message of a workflow command; keeps line breaks."""
    return clean(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def command_property(text: str) -> str:
    """Return `text` as the value of a property of a workflow command."""
    return command_data(text).replace(":", "%3A").replace(",", "%2C")


def workflow_command(
    level: Literal["error", "warning", "notice"],
    message: str,
    *,
    title: str,
    file: str = "",
    line: int | None = None,
) -> str:
    """Return the workflow command by which a GitHub runner annotates `line` of `file`."""
    place = {"file": file, "line": str(line or "") if file else "", "title": title}
    known = [f"{name}={command_property(value)}" for name, value in place.items() if value]
    return f"::{level} {','.join(known)}::{command_data(message)}"


# --- Numbers --------------------------------------------------------------------------------

NONE = "\N{EN DASH}"
"""Shown where there is no number."""


def score(value: float | None, beside: float | None = None) -> str:
    """Return `value` with 3 decimals, or more if needed to distinguish it from `beside` or from 0.

    >>> score(0.9), score(0.79996, 0.8), score(0.00033)
    ('0.900', '0.79996', '0.00033')
    """
    if value is None:
        return NONE
    if 0 < abs(value) < 0.0005 and float(f"{value:.3g}") != beside:
        return _minus(f"{value:.3g}")
    return _minus(_apart(value, value if beside is None else beside, 3))


def _apart(value: float, beside: float, digits: int) -> str:
    """Return `value` with `digits` decimals, or with more if it would look like `beside`."""
    while value != beside and digits < 9 and f"{value:.{digits}f}" == f"{beside:.{digits}f}":
        digits += 1
    return f"{value:,.{digits}f}"


def measure(value: float | None) -> str:
    """Return an unbounded value (tokens, seconds, money) with 3 significant digits.

    >>> measure(15321.0), measure(0.00123), measure(4.5)
    ('15,321', '0.00123', '4.5')
    """
    if value is None:
        return NONE
    return _minus(f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}")


def plain(value: float) -> str:
    """Return a value for a sentence: with 3 decimals, or 3 digits if these would all be 0.

    >>> plain(0.5), plain(0.0000123), plain(0.0)
    ('0.500', '1.23e-05', '0.000')
    """
    return f"{value:.3g}" if 0 < abs(value) < 0.001 else f"{value:.3f}"


def exact(value: float | None) -> str:
    """Return a number that a user wrote, such as a threshold, unrounded.

    >>> exact(1.0), exact(0.85), exact(0.99995)
    ('1', '0.85', '0.99995')
    """
    return NONE if value is None else _minus(f"{value:.10g}")


def difference(value: float | None) -> str:
    """Return `value` with its sign: with 3 decimals, or 3 digits if these would all be 0.

    >>> difference(0.25), difference(0.0), difference(0.0001)
    ('+0.250', '±0.000', '+0.0001')
    """
    if value is None:
        return NONE
    if abs(value) < 1e-9:  # rounding error between means of equal numbers
        return f"±{0:.3f}"
    return _minus(f"{value:+.3g}" if abs(value) < 0.001 else f"{value:+,.3f}")


def percent(rate: float | None, beside: float | None = None) -> str:
    """Return a rate in [0, 1] as a percentage that differs from `beside`, or else from 0 and 100.

    >>> percent(0.9), percent(0.99999), percent(0.00001), percent(1.0), percent(0.8999, 0.9)
    ('90.0%', '99.999%', '0.001%', '100.0%', '89.99%')
    """
    if rate is None:
        return NONE
    other = round(rate) if beside is None else beside
    return f"{_apart(100 * rate, 100 * other, 1)}%"


def p_value(value: float | None) -> str:
    """Return a p-value with its relation.

    >>> p_value(0.0123), p_value(0.00001)
    ('p = 0.012', 'p < 0.001')
    """
    if value is None:
        return NONE
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def duration(seconds: float) -> str:
    """Return a duration in its two largest units.

    >>> duration(0.35), duration(41.2), duration(125), duration(200_000)
    ('350 ms', '41 s', '2 min 5 s', '2 d 7 h')
    """
    if seconds < 1:
        return f"{math.floor(seconds * 1000)} ms"
    left, parts = int(seconds), list[str]()
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        amount, left = divmod(left, size)
        if amount or parts:
            parts.append(f"{amount} {unit}")
    return " ".join(part for part in parts[:2] if not part.startswith("0 "))


def dollars(amount: float) -> str:
    """Return an amount of money, in cents if these suffice.

    >>> dollars(12.3), dollars(0.0213), dollars(0.000004)
    ('$12.30', '$0.0213', '$0.000004')
    """
    if amount >= 1 or not amount:
        return f"${amount:.2f}"
    digits = max(2, 2 - math.floor(math.log10(amount)))
    return "$" + f"{amount:.{digits}f}".rstrip("0").ljust(4, "0")


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun.

    >>> counted(1, "case"), counted(3000, "case"), counted(2, "criterion", "criteria")
    ('1 case', '3,000 cases', '2 criteria')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def _minus(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


# --- Templates ------------------------------------------------------------------------------

NUMBERS: tuple[Callable[..., str], ...] = (
    *(score, measure, exact, difference, percent, p_value, duration, dollars, counted),
)


@dataclass(frozen=True)
class _Safe:
    """Escaped Markdown from a filter or a template.

    Deliberately not a string: joined or formatted with other text it becomes a plain string
    again, which is escaped when it is output.
    """

    text: str

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return bool(self.text)


def render(template: str, context: Mapping[str, Any]) -> str:
    """Render the template file `template` with the values of `context`.

    Raises:
        jinja2.TemplateError: the template is invalid or uses an undefined value.
        TypeError: the template outputs a value that is neither text nor a number.

    """
    return "".join(environment().get_template(template).generate(context))


def source(name: str) -> str:
    """Return the raw text of the file `name` in a template folder."""
    found = next(path for folder in folders() if (path := folder / name).is_file())
    return found.read_text(encoding="utf-8")


def prepare() -> None:
    """Compile all templates in advance, because compiling takes longer than rendering."""
    found = environment()
    for name in found.list_templates(["j2"]):
        if "/" not in name:  # subfolders hold prompts
            found.get_template(name)


@cache
def environment() -> Any:
    """Return the Jinja environment of all templates; the import is slow."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Environment(ImmutableSandboxedEnvironment):
        # The output of a macro or a block is already escaped.
        concat = staticmethod(lambda pieces: _Safe("".join(pieces)))  # type: ignore[assignment]  # no str

    environment = made_for_folders(Environment, finalize=_output, keep_trailing_newline=True)
    filters: tuple[Callable[..., str], ...] = (markdown, code, html_code, block, link, *NUMBERS)
    environment.filters.update({each.__name__: _as_safe(each) for each in filters})
    return environment


def made_for_folders(kind: Callable[..., Any], **options: Any) -> Any:
    """Return a Jinja environment of this kind, for the templates in our folders."""
    from jinja2 import FileSystemLoader, StrictUndefined

    return kind(
        loader=FileSystemLoader(folders()),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        optimized=False,  # compiling takes longer than rendering
        **options,
    )


def folders() -> list[Path]:
    """Return the template folders: of an installed package, and of the repository."""
    package = Path(__file__).parents[1]
    return [package / "templates", package.parent / "templates"]


def _output(value: object) -> str:
    """Return the output of a template for `value`."""
    match value:
        case _Safe():
            return value.text
        case str():
            return markdown(value)
        case int():
            return f"{value:,}"
        case float():
            return score(value)
        case _:
            # For an undefined value, `str` raises an error with its name.
            shown = str(value)[:80]
            raise TypeError(f"templates can output only text and numbers, not {shown}")


def _as_safe(function: Callable[..., str]) -> Callable[..., _Safe]:
    @wraps(function)
    def filtered(value: object, *options: Any) -> _Safe:
        plain = value.text if isinstance(value, _Safe) else value
        return _Safe(function(plain, *options))

    return filtered
