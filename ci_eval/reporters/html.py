"""`report.html`: a whole run in one file that a browser opens without a server.

No request leaves it: style, script and data are inside, and its content security policy allows
nothing else. A policy in a `meta` element binds scripts and styles by their hashes:
https://www.w3.org/TR/CSP3/#meta-element
"""

import base64
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

from pydantic import Field, PrivateAttr

from ci_eval.plugins.points import Reporter, reporter
from ci_eval.records.findings import Report
from ci_eval.records.results import Run, TrialResult
from ci_eval.reporters._criteria_rows import Row
from ci_eval.reporters._html_cases import CaseData
from ci_eval.reporters._html_charts import Bars, Line, bars_of, line_of
from ci_eval.reporters._notable_cases import Bounds
from ci_eval.reporters._report_page import Page, page_of
from ci_eval.reporters._score_history import trends
from ci_eval.run_files.file_names import PAGE_FILE
from ci_eval.run_files.traces_file import Conversations, conversations
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.template_sandbox import (
    Template,
    TemplateError,
    plain,
    read_style,
    read_template,
)
from ci_eval.text import html_templates, templates

MAX_CHARACTERS = 5_000_000
"""Maximum length of the text that a user's template may render."""
BOUNDS = Bounds(evidence=50, lines=60, rows=200)
"""Limits on what the page shows without scripts."""


@dataclass(frozen=True)
class Charted:
    """A criterion with its charts."""

    row: Row
    line: Line | None
    """Its means in the last runs, if there are any."""
    bars: Bars | None
    """Its cases by score, if any was measured."""


@dataclass(frozen=True)
class Overview(Page):
    """The content above the list of cases."""

    charted: tuple[Charted, ...]
    """The criteria, the most serious first."""


@reporter("html")
class Html(Reporter):
    """A page with the verdict, the criteria, and every case with its conversation.

    It opens from a file, without a server. Without scripts it shows the verdict, the criteria, and
    the first cases that got worse or failed.
    """

    file = PAGE_FILE

    max_mb: float = Field(default=50, ge=1, le=1_000)
    """Maximum size of conversations and evidence, in megabytes. If there are more, those of passing
    trials are left out, the last ones first; `traces.jsonl` and `run.json` still have them."""
    template: str | None = Field(default=None, min_length=1)
    """Path of a Jinja template in the repository for the part above the list of cases, relative to
    the directory of the configuration. See the guide to templates. If it fails, the default one is
    used, with a warning."""
    style: str | None = Field(default=None, min_length=1)
    """Path of a style sheet in the repository that is added to the default one. It cannot load
    anything: images and fonts have to be `data:` addresses."""

    _template: Template | None = PrivateAttr(default=None)
    _added_style: str = PrivateAttr(default="")

    def prepared(self, context: RunContext) -> Self:
        """Return itself with its template and style sheet read and checked.

        Raises:
            UsageError: one of them cannot be read, is outside the repository, or is invalid.

        """
        if self.template:
            self._template = read_template(self.template, context, kind="html")
        if self.style:
            self._added_style = read_style(self.style, context)
        return self

    def render(self, report: Report, results: Callable[[], Iterator[TrialResult]]) -> Iterator[str]:
        """Yield the page without conversations."""
        data = CaseData(report, int(self.max_mb * 1e6))
        data.read(results(), Conversations(None))
        return self._page(report, data)

    def of_run(self, report: Report, run: Run, before: Run | None = None) -> Iterator[str]:
        """Yield the page with the conversations of the run, and those before the change."""
        data = CaseData(report, int(self.max_mb * 1e6))
        with conversations(run) as found:
            data.read(run.results(), found)
        if before:
            with conversations(before) as found:
                data.read_before(before.results(), found)
        return self._page(report, data)

    def _page(self, report: Report, data: CaseData) -> Iterator[str]:
        data.close()
        page = _overview(report, data)
        overview, failure = self._filled(page)
        style = templates.source("report/report.css") + self._added_style
        script = templates.source("report/report.js")
        counts = {"cases": len(data.index), "left_out": data.left_out}
        values = {"page": page, "failure": failure, **counts}
        markup = {"overview": overview, "style": style, "script": script}
        markup |= {"style_hash": _hash(style), "script_hash": _hash(script)}
        text = html_templates.render("report/report.html.j2", values, markup=markup)
        head, _, tail = text.rpartition("<!--data-->\n")
        yield f'{head.lstrip()}<script type="application/json" id="index">'
        yield from data.index.written()
        yield "</script>\n"
        for number, chunk in sorted(data.chunks.items()):
            yield f'<script type="text/plain" id="chunk-{number}">{chunk}</script>\n'
        yield tail

    def _filled(self, page: Overview) -> tuple[str, str]:
        """Return the overview, and why the user's template was not used, if it failed."""
        failure = ""
        if self._template:
            try:
                return self._template.fill(plain(page), MAX_CHARACTERS), failure
            except TemplateError as exc:
                place, why = self._template.place(exc), str(exc).rstrip(".")
                failure = f"The template {place} failed, so this is the default page: {why}."
        ours = html_templates.render("report/overview.html.j2", {"page": page}, markup={})
        return ours, failure


def _overview(report: Report, data: CaseData) -> Overview:
    page = page_of(report, BOUNDS)
    rows = tuple(dict.fromkeys((*page.criteria.shown, *page.calm.shown, *page.measures.shown)))
    lines = {each.row.summary.group: line_of(each) for each in trends(report, rows)}
    charted = []
    for row in rows:
        means = data.index.means(row.summary.group)
        bars = bars_of(means, row.summary.interval) if means else None
        charted.append(Charted(row, lines.get(row.summary.group), bars))
    return Overview(**vars(page), charted=tuple(charted))


def _hash(text: str) -> str:
    """Return the source expression that allows an element with exactly this `text`."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
