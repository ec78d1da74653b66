"""`ci-eval publish`: posts stored reports to their pull request."""

from collections.abc import Sequence
from typing import Any

import click

from ci_eval.cli import command_inputs, console
from ci_eval.cli.exit_codes import apart_from_json, print_json
from ci_eval.cli.publish.posting_options import posting_options, wanted
from ci_eval.cli.shared_options import json_option
from ci_eval.pull_requests import run_posting
from ci_eval.pull_requests.comment_options import Options
from ci_eval.pull_requests.comment_thread import PostingError
from ci_eval.pull_requests.fork_reports import Relayed, Told, relay
from ci_eval.pull_requests.github_runner import annotate, append_outputs, summarise
from ci_eval.pull_requests.report_artifacts import reports_in
from ci_eval.records.errors import CiEvalError, ExitCode, Problem, UsageError
from ci_eval.records.findings import Report
from ci_eval.runtime.context import RunContext
from ci_eval.text.templates import link


@click.command()
@click.argument("reports", nargs=-1, metavar="[REPORT]...", type=click.Path())
@posting_options(default="update")
@click.option(
    "--artifact",
    default="ci-eval-report*",
    show_default=True,
    metavar="NAME",
    help="Artifacts with reports, by name or pattern.",
)
@json_option
def publish(reports: tuple[str, ...], artifact: str, *, as_json: bool, **options: Any) -> int:
    """Post stored reports to their pull request.

    REPORT is a report.json, or a directory that contains one at any level.  Without any, in a
    workflow on `workflow_run`, reports are read from the artifacts of the triggering run.
    """
    context, asked = command_inputs.context_of(), wanted(options)
    with apart_from_json(as_json=as_json):
        found = _stored(reports, asked, context) if reports else _relayed(artifact, asked, context)
        code = ExitCode.USAGE_ERROR if _has_failed(found) else ExitCode.PASSED
        _hand_over(found, code, context)
    if as_json:
        print_json(_as_json(found))
    return code


def _stored(given: tuple[str, ...], options: Options, context: RunContext) -> Relayed:
    """Post the reports that the user named."""
    found = Relayed()
    suites: dict[str, list[Report]] = {}
    stored = [*reports_in(given)]
    if options.report_url:
        _refuse_several(stored)
        summarise(link(options.report_url, "report.html: every case"), context.env)
    for each in stored:
        if isinstance(each, UsageError):
            found.errors.append(each)
        else:
            suites.setdefault(each.meta.suite, []).append(each)
    for suite, readable in suites.items():
        reports = [*map(run_posting.beside_unreadable, readable)] if found.errors else readable
        posted = run_posting.post(reports, options, context)
        found.told += [Told(suite, each.meta.job, each.verdict.outcome, posted) for each in reports]
    return found


def _refuse_several(reports: Sequence[Report | UsageError]) -> None:
    """Refuse to give several reports the address of one page."""
    if len(reports) > 1:
        message = f"--report-url is the address of one page, and there are {len(reports)} reports"
        raise UsageError(message, hint="publish them one by one, each with its address")


def _relayed(pattern: str, options: Options, context: RunContext) -> Relayed:
    if options.report_url:
        message = "--report-url needs a REPORT: artifacts may hold several, of any author"
        raise UsageError(message, hint="name the report that has this address")
    try:
        return relay(options, pattern, context)
    except (PostingError, UsageError) as exc:
        return Relayed(errors=[exc])


def _has_failed(found: Relayed) -> bool:
    posted = [each.posted for each in found.told] + ([found.notice] if found.notice else [])
    return bool(found.errors) or any(each.status == "failed" for each in posted)


def _hand_over(found: Relayed, code: ExitCode, context: RunContext) -> None:
    """Report the outcome on the console and as step outputs."""
    console.say_problems([problem for error in found.errors for problem in error.problems])
    for hint in dict.fromkeys(error.hint for error in found.errors if error.hint):
        console.say(hint)
    annotate([problem for error in found.errors for problem in _annotated(error)], context.env)
    for suite, posted in dict.fromkeys((each.suite, each.posted) for each in found.told):
        console.say(f"{suite}: comment {posted.status} {posted.url}".rstrip())
        if posted.note:
            console.say(posted.note)
    if found.notice:
        console.say(f"not evaluated: comment {found.notice.status} {found.notice.url}".rstrip())
    append_outputs(_outputs(found) | {"exit-code": str(int(code))}, context.env)


def _annotated(error: CiEvalError) -> tuple[Problem, ...]:
    """Return the problems to annotate, with their hint."""
    if error.problems[0].file or not error.hint:
        return error.problems
    return (Problem(f"{error}; {error.hint}"),)


def _outputs(found: Relayed) -> dict[str, str]:
    """Return the step outputs; for several reports, the worst verdict."""
    told = [(each.verdict, each.posted) for each in found.told]
    if found.notice:
        told.append(("incomplete", found.notice))
    if not told:
        status = "failed" if found.errors else "none"
        return {"verdict": "", "comment-status": status, "comment-url": ""}
    verdicts = {verdict for verdict, _ in told}
    worst = next(each for each in ("failed", "incomplete", "passed") if each in verdicts)
    first = next((posted for _, posted in told if posted.status == "failed"), told[0][1])
    return {"verdict": worst, "comment-status": first.status, "comment-url": first.url}


def _as_json(found: Relayed) -> dict[str, Any]:
    return {
        "told": [
            {
                "suite": each.suite,
                "job": each.job,
                "verdict": each.verdict,
                "status": each.posted.status,
                "url": each.posted.url,
            }
            for each in found.told
        ],
        "notice": found.notice._asdict() if found.notice else None,
        "problems": [str(each) for error in found.errors for each in error.problems],
    }
