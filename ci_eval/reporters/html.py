"""`report.html`: a whole run in one file that a browser opens without a server.

No request leaves it: style, script and data are inside, and its content security policy allows
nothing else. A policy in a `meta` element binds scripts and styles by their hashes:
https://www.w3.org/TR/CSP3/#meta-element
"""

import base64
import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from pydantic import Field

from ci_eval.plugins.points import Reporter, reporter
from ci_eval.records.findings import Report
from ci_eval.records.results import Run, TrialResult
from ci_eval.reporters._case_changes import fragment
from ci_eval.reporters._html_cases import CaseData
from ci_eval.reporters._html_charts import HEIGHT, WIDTH, bars_of, line_of
from ci_eval.reporters._notable_cases import Bounds
from ci_eval.reporters._report_page import page_of
from ci_eval.reporters._score_history import trends
from ci_eval.run_files.conversations import Conversations, conversations
from ci_eval.run_files.file_names import PAGE_FILE
from ci_eval.text import templates
from ci_eval.text.sanitize import clean

BOUNDS = Bounds(evidence=50, lines=60, rows=200)
"""What is shown without scripts."""


@reporter("html")
class Html(Reporter):
    """A page with the verdict, the criteria, and every case with its conversation.

    It opens from a file, without a server. Without scripts it shows the verdict, the criteria, and
    the first cases that got worse or failed.
    """

    file = PAGE_FILE

    max_mb: float = Field(default=50, ge=1, le=1_000)
    """The most megabytes of conversations and evidence. If there are more, those of passing trials
    are left out, the last ones first; `traces.jsonl` and `run.json` have them."""

    def render(self, report: Report, results: Callable[[], Iterator[TrialResult]]) -> Iterator[str]:
        """Yield the page without conversations."""
        data = CaseData(report, int(self.max_mb * 1e6))
        data.read(results(), Conversations(None))
        return self._page(report, data)

    def of_run(self, report: Report, run: Run, before: Run | None = None) -> Iterator[str]:
        """Yield the page with the conversations that lie beside the run, and those before it."""
        data = CaseData(report, int(self.max_mb * 1e6))
        with conversations(run.traces) as found:
            data.read(run.results(), found)
        if before:
            with conversations(before.traces) as found:
                data.read_before(before.results(), found)
        return self._page(report, data)

    def _page(self, report: Report, data: CaseData) -> Iterator[str]:
        data.close()
        page = page_of(report, BOUNDS)
        rows = (*page.criteria.shown, *page.calm.shown, *page.measures.shown)
        style, script = _style(), _script()
        values = {
            "page": page,
            "rows": list(dict.fromkeys(rows)),
            "lines": {each.row.summary.group: line_of(each) for each in trends(report, rows)},
            "bars": {
                row.summary.group: bars_of(means, row.summary.interval)
                for row in rows
                if (means := data.values.get(row.summary.group))
            },
            "size": (WIDTH, HEIGHT),
            "cases": len(data.cases),
            "left_out": data.left_out,
            "style": style,
            "script": script,
            "hashes": {"style": _hash(style), "script": _hash(script)},
            "index": data.index(),
        }
        head, tail = "".join(_template().generate(values)).split("<!--chunks-->\n")
        yield head.lstrip()
        for number, chunk in sorted(data.chunks.items()):
            yield f'<script type="text/plain" id="chunk-{number}">{chunk}</script>\n'
        yield tail


def _style() -> str:
    return templates.source("report/report.css")


def _script() -> str:
    return templates.source("report/report.js")


def _hash(text: str) -> str:
    """Return the source expression that allows an element with exactly this `text`."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def _template() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(templates.folders()),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_seen,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    numbers = (
        templates.score,
        templates.measure,
        templates.exact,
        templates.difference,
        templates.duration,
        templates.dollars,
        templates.counted,
    )
    environment.filters.update({each.__name__: each for each in (*numbers, fragment)})
    return environment.get_template("report/report.html.j2")


def _seen(value: object) -> object:
    """Return a text without characters that hide or reorder others, and a count with commas."""
    if type(value) is int:
        return f"{value:,}"
    return clean(value) if type(value) is str else value
