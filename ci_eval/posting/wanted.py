"""The options that say what is wanted on a pull request; they cost nothing where nothing is."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from ci_eval.posting.options import MODES, WHENS, Mode, Options

if TYPE_CHECKING:
    from ci_eval.findings import Report
    from ci_eval.plugins import Reporter
    from ci_eval.world import World

_NAMES = ("comment", "comment_on", "pr", "check_run")
OUTPUTS = ("comment-status", "comment-url")
"""The outputs of a step that tell what became of the comment."""
Command = Callable[..., Any]


def posting_options(*, default: Mode) -> Callable[[Command], Command]:
    """Return what adds the options to a command."""
    options = (
        click.option(
            "--comment",
            type=click.Choice(MODES),
            default=default,
            show_default=True,
            help="How the comment on the pull request is kept.",
        ),
        click.option(
            "--comment-on",
            type=click.Choice(WHENS),
            default="always",
            show_default=True,
            help="What calls for a comment where there is none yet.",
        ),
        click.option("--pr", type=click.IntRange(min=1), help="The number of the pull request."),
        click.option("--check-run", is_flag=True, help="Make a check run, too."),
    )

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def wanted(given: Mapping[str, Any]) -> Options:
    """Return what the options of a command say."""
    mode, when, number, check_run = (given[name] for name in _NAMES)
    return Options(mode, when, number, check_run=check_run)


def tell(
    report: "Report", given: Mapping[str, Any], world: "World", document: "Reporter | None"
) -> None:
    """Tell of a run as the options want it; a step's outputs say what became of that.

    `document` is how the configuration wants comments, where it says.
    """
    from ci_eval.publish import append_outputs

    options = wanted(given)
    if options.is_off:
        append_outputs(dict(zip(OUTPUTS, ("off", ""), strict=True)), world.env)
        return
    from ci_eval.posting.after_run import post
    from ci_eval.reporters.markdown import Markdown

    writes = document if isinstance(document, Markdown) else None
    posted = post(report, options, world, writes)
    if posted.url:
        world.say(f"comment {posted.status}: {posted.url}")
    if posted.note:
        world.say(posted.note)
    append_outputs(dict(zip(OUTPUTS, (posted.status, posted.url), strict=True)), world.env)
