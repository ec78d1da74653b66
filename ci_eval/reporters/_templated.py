"""Documents in Markdown that a template makes: ours, or one of the repository's."""

import re
from collections.abc import Callable, Sequence
from typing import Self

from pydantic import Field, PrivateAttr

from ci_eval.plugins.points import Reporter
from ci_eval.records.findings import Report
from ci_eval.reporters._findings import Bounds
from ci_eval.reporters._page import fitting, page_of
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.template_sandbox import (
    Template,
    TemplateError,
    TooLongError,
    plain,
    read_template,
)
from ci_eval.text.templates import code, markdown

MAX_CHARACTERS = 1024 * 1024
"""What no document has room for."""
_OURS = re.compile(r"<!--(?=\s*ci-eval)(?! ci-eval:more -->)", re.IGNORECASE)
"""How the lines begin by which comments are found again, and taken apart; another tells where what
can be left out begins, and a template may say so."""


class Templated(Reporter):
    """A document that a template makes."""

    template: str | None = Field(default=None, min_length=1)
    """A Jinja template of the repository that is filled in place of ours, a path from the folder
    of the configuration. What it has to go by is in `docs/templates.md`. Where it fails, the
    document is ours and says so."""

    _template: Template | None = PrivateAttr(default=None)

    def prepared(self, context: RunContext) -> Self:
        """Return itself with its template read and checked.

        Raises:
            UsageError: it cannot be read, lies outside of the repository, or is wrong.

        """
        if self.template:
            self._template = read_template(self.template, context)
        return self

    def filled(
        self,
        ours: str,
        report: Report,
        levels: Sequence[Bounds],
        fits: Callable[[str], bool],
    ) -> str:
        """Return the template, or the one of `ours`, filled with as much of `report` as fits."""
        if self._template is None:
            return fitting(ours, report, levels, fits)
        try:
            return _theirs(self._template, report, levels, fits)
        except TemplateError as exc:
            note = _note(self._template, exc)
            return note + fitting(ours, report, levels, lambda text: fits(note + text))


def _theirs(
    template: Template, report: Report, levels: Sequence[Bounds], fits: Callable[[str], bool]
) -> str:
    for bounds in levels:
        try:
            text = template.fill(plain(page_of(report, bounds)), MAX_CHARACTERS)
        except TooLongError:
            continue
        text = _OURS.sub("&lt;!--", text)
        if fits(text):
            return text
    raise TooLongError("its output is too long")


def _note(template: Template, exc: TemplateError) -> str:
    place = f"{template.shown}:{exc.line}" if exc.line else template.shown
    return (
        f"> [!WARNING]\n> This is not what {code(place)} makes, which failed: "
        f"{markdown(str(exc))}.\n\n"
    )
