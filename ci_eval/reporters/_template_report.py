"""Markdown documents rendered from a template: the default one, or one of the repository."""

import re
from collections.abc import Callable, Sequence
from typing import Self

from pydantic import Field, PrivateAttr

from ci_eval.plugins.points import Reporter
from ci_eval.records.findings import Report
from ci_eval.reporters._notable_cases import Bounds
from ci_eval.reporters._report_page import page_of
from ci_eval.runtime import template_sandbox
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.template_sandbox import Template, TemplateError, TooLongError
from ci_eval.text.templates import code, markdown, render

MAX_CHARACTERS = 1024 * 1024
"""More characters than fit into any document."""
_MOST_SAID = 500
"""Maximum length of a message before the output of a template, in characters."""
_OURS = re.compile(r"<!--(?=\s*ci-eval)(?! ci-eval:more -->)", re.IGNORECASE)
"""The beginning of our markers, which identify comments and their sections. The only marker that a
template may output is the one before the part that can be left out."""


class Templated(Reporter):
    """A document rendered from a template."""

    template: str | None = Field(default=None, min_length=1)
    """Path of a Jinja template in the repository to use instead of the default one, relative to
    the directory of the configuration; see the guide to templates. If it fails, the default
    document is rendered, with a warning."""

    _template: Template | None = PrivateAttr(default=None)

    def prepared(self, context: RunContext) -> Self:
        """Return itself with its template read and checked.

        Raises:
            UsageError: the template cannot be read, is outside the repository, or is invalid.

        """
        if self.template:
            self._template = template_sandbox.read_template(self.template, context)
        return self

    def filled(
        self, ours: str, report: Report, levels: Sequence[Bounds], fits: Callable[[str], bool]
    ) -> str:
        """Render the user's template, or our template `ours`, with as much of `report` as fits."""
        text = note = ""
        if self._template:
            head = _always_said(report)
            try:
                return head + _custom(
                    self._template, report, levels, lambda text: fits(head + text)
                )
            except TemplateError as exc:
                note = _note(self._template, exc)
        for bounds in levels:
            text = note + render(ours, {"page": page_of(report, bounds)})
            if fits(text):
                break
        return text


def _always_said(report: Report) -> str:
    """Return the lines that no template can leave out, because it may be part of the change."""
    verdict = report.verdict
    said = [each.message for each in verdict.reasons if each.kind == "weakened_gate"]
    if verdict.undecided:
        said.append(f"not decided: {verdict.undecided}")
    lines = [f"> {markdown(each, _MOST_SAID)}\n" for each in said]
    return "".join(("> [!WARNING]\n", *lines, "\n")) if lines else ""


def _custom(
    template: Template, report: Report, levels: Sequence[Bounds], fits: Callable[[str], bool]
) -> str:
    for bounds in levels:
        try:
            text = template.fill(template_sandbox.plain(page_of(report, bounds)), MAX_CHARACTERS)
        except TooLongError:
            continue
        text = _OURS.sub("&lt;!--", text)
        if fits(text):
            return text
    raise TooLongError("its output is too long")


def _note(template: Template, exc: TemplateError) -> str:
    place = code(template.place(exc))
    return (
        f"> [!WARNING]\n> The template {place} failed, so this is the default document: "
        f"{markdown(str(exc))}.\n\n"
    )
