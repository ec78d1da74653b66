"""Options for posting to a pull request.

The modules that post are imported only if something is posted.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ci_eval.cli import command_inputs
from ci_eval.cli.shared_options import Decorator, combined
from ci_eval.plugins.points import Reporter
from ci_eval.pull_requests.comment_options import MODES, WHENS, Mode, Options
from ci_eval.pull_requests.github_runner import append_outputs, not_evaluated, summarise
from ci_eval.records.errors import CiEvalError
from ci_eval.records.findings import Report
from ci_eval.reporters.issue import Issue
from ci_eval.reporters.markdown import Markdown
from ci_eval.runtime.context import RunContext
from ci_eval.text.redact import Secrets
from ci_eval.text.templates import ADDRESS, markdown

if TYPE_CHECKING:
    from ci_eval.pull_requests.sticky_comment import Posted

_MAX_WHY = 1_000
"""Maximum length of a reason, in characters."""


def _address(_context: click.Context, _parameter: click.Parameter, given: str) -> str:
    """Check the address of a page, to which the fragment of a case is added."""
    if given and (not ADDRESS.fullmatch(given) or "#" in given):
        raise click.BadParameter(f"{given!r} is not an http(s) address without `?` and `#`")
    return given


def posting_options(*, default: Mode) -> Decorator:
    """Return a decorator that adds the options to a command."""
    return combined(
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
        click.option(
            "--report-url",
            default="",
            metavar="URL",
            callback=_address,
            help="Where report.html is or will be, for links to it and its cases.",
        ),
    )


def wanted(given: Mapping[str, Any]) -> Options:
    """Return the posting options of a command."""
    is_shard = bool(given.get("shard"))  # `merge` posts
    return Options(
        "off" if is_shard else given["comment"],
        given["comment_on"],
        given["pr"],
        check_run=given["check_run"] and not is_shard,
        report_url=given["report_url"],
    )


def tell(
    report: Report, given: Mapping[str, Any], context: RunContext, documents: Mapping[str, Reporter]
) -> None:
    """Post a run as the options request, and set the step outputs.

    The settings of the configured `documents` apply to comments and issues.
    """
    if isinstance(issue := documents.get("issue"), Issue):
        from ci_eval.pull_requests import issue_posting

        issue_posting.post(report, issue, context)
    options, document = wanted(given), documents.get("markdown")
    if options.is_off:
        _set_outputs("off", "", context)
        return

    from ci_eval.pull_requests import run_posting

    writes = document if isinstance(document, Markdown) else None
    _hand_over(run_posting.post([report], options, context, writes), context)


def tell_none(why: str, config: str, given: Mapping[str, Any], *, is_news: bool) -> None:
    """Post that a run of `config` left no report, so that no older report looks current.

    With `is_news`, a comment is created if there is none.  If the configuration itself is wrong,
    the suite is unknown, and only an earlier section of the same step is updated.
    """
    options, context, suite = wanted(given), command_inputs.context_of(Path(config)), ""
    issue: Reporter | None = None
    with suppress(CiEvalError):
        loaded = command_inputs.load(config)[0]
        suite, issue = loaded.suite, loaded.reports.get("issue")
    why = markdown(Secrets(context.env).text(why), _MAX_WHY)
    said = not_evaluated(why, suite=suite)
    summarise(said, context.env)
    context = command_inputs.in_job(context, given)
    if isinstance(issue, Issue):
        from ci_eval.pull_requests import issue_posting

        issue_posting.post_notice(suite, said, issue, context, wanted=is_news)
    if options.mode == "off":
        _set_outputs("off", "", context)
        return

    from ci_eval.pull_requests import unevaluated_comment

    _hand_over(unevaluated_comment.post(suite, said, options, context, wanted=is_news), context)


def _hand_over(posted: "Posted", context: RunContext) -> None:
    """Report the outcome of the comment on the console and as step outputs."""
    if posted.url:
        context.say(f"comment {posted.status}: {posted.url}")
    if posted.note:
        context.say(posted.note)
    _set_outputs(posted.status, posted.url, context)


def _set_outputs(status: str, url: str, context: RunContext) -> None:
    append_outputs({"comment-status": status, "comment-url": url}, context.env)
