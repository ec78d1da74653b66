"""Options for posting to a pull request; free if nothing is posted."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ci_eval.cli import load
from ci_eval.forge.job_name import job_name
from ci_eval.plugins.points import Reporter
from ci_eval.pull_requests import after_run, unevaluated
from ci_eval.pull_requests.github_runner import append_outputs, not_evaluated, summarise
from ci_eval.pull_requests.options import MODES, WHENS, Mode, Options
from ci_eval.pull_requests.sticky import Posted
from ci_eval.records.errors import CiEvalError
from ci_eval.records.findings import Report
from ci_eval.reporters.markdown import Markdown
from ci_eval.runtime.context import RunContext
from ci_eval.text.redact import Secrets
from ci_eval.text.templates import markdown

_NAMES = ("comment", "comment_on", "pr", "check_run")
OUTPUTS = ("comment-status", "comment-url")
"""Step outputs about the comment."""
_MAX_WHY = 1_000
"""Characters."""
Command = Callable[..., Any]


def posting_options(*, default: Mode) -> Callable[[Command], Command]:
    """Return a decorator that adds the options to a command."""
    options = (
        click.option(
            "--comment",
            type=click.Choice(MODES),
            default=default,
            show_default=True,
            help="How to maintain the pull request comment.",
        ),
        click.option(
            "--comment-on",
            type=click.Choice(WHENS),
            default="always",
            show_default=True,
            help="When to create a comment.",
        ),
        click.option("--pr", type=click.IntRange(min=1), help="Pull request number."),
        click.option("--check-run", is_flag=True, help="Also create a check run."),
    )

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def wanted(given: Mapping[str, Any]) -> Options:
    """Return the posting options of a command."""
    mode, when, number, check_run = (given[name] for name in _NAMES)
    return Options(mode, when, number, check_run=check_run)


def tell(
    report: Report, given: Mapping[str, Any], context: RunContext, document: Reporter | None
) -> None:
    """Post a run as the options request, and set the step outputs.

    `document` is how the configuration wants comments, where it says.
    """
    options = wanted(given)
    if options.is_off:
        append_outputs(dict(zip(OUTPUTS, ("off", ""), strict=True)), context.env)
        return

    writes = document if isinstance(document, Markdown) else None
    _hand_over(after_run.post([report], options, context, writes), context)


def tell_none(why: str, config: str, given: Mapping[str, Any], *, is_news: bool) -> None:
    """Tell that a run of the configuration `config` left no report, so that no older looks new.

    `is_news` calls for a comment where there is none yet.  Where the configuration is what is
    wrong nobody knows the suite, and a comment is left as it is.
    """
    options, context, suite = wanted(given), load.context_of(Path(config)), ""
    with suppress(CiEvalError):
        suite = load.load(config)[0].suite
    why = markdown(Secrets(context.env).text(why), _MAX_WHY)
    said = not_evaluated(why, suite=suite)
    summarise(said, context.env)
    if options.mode == "off" or not suite:
        status = "off" if options.mode == "off" else "none"
        append_outputs(dict(zip(OUTPUTS, (status, ""), strict=True)), context.env)
        return

    context = replace(context, job=job_name(context.env, given["section"]))
    _hand_over(unevaluated.post(suite, said, options, context, wanted=is_news), context)


def _hand_over(posted: Posted, context: RunContext) -> None:
    """Report the outcome of the comment on the console and as step outputs."""
    if posted.url:
        context.say(f"comment {posted.status}: {posted.url}")
    if posted.note:
        context.say(posted.note)
    append_outputs(dict(zip(OUTPUTS, (posted.status, posted.url), strict=True)), context.env)
