"""`ci-eval evalset …`: the evalsets of a repository, listed, made, edited and converted."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ci_eval.cli.exit_codes import print_json
from ci_eval.cli.options import json_option
from ci_eval.records.errors import ExitCode, Problem, UsageError

if TYPE_CHECKING:
    from ci_eval.cli.evalset.files import File

Command = Callable[..., Any]


@click.group(name="evalset")
def evalsets() -> None:
    """List, make, edit and convert evalsets.

    An evalset is named by its FILE, or, as ADK's tools do it, by the folder of an agent and an
    ID: `agents/shop smoke` is the file `agents/shop/smoke.evalset.json`.

    \b
    ci-eval evalset create agents/shop smoke
    ci-eval evalset add agents/shop smoke --prompt "Where is order 9?" --expected "In Oslo."
    ci-eval evalset update evals/smoke.evalset.json --case refunds \\
        --from-traces ci-eval-report/traces.jsonl

    A case is edited in the text of the file, and everything else in it stays as it is.
    """  # noqa: D301  # click wants this mark as it is


def _place(command: Command) -> Command:
    for argument in (
        click.argument("eval_set_id", metavar="[ID]", required=False),
        click.argument("place", metavar="FILE|AGENT_DIR"),
    ):
        command = argument(command)
    return command


def _traces(command: Command) -> Command:
    for option in (
        click.option("--repeat", type=click.IntRange(0), default=0, help="Which try; 0 at first."),
        click.option("--evalset", "trace_evalset", help="Of this evalset, where it is several."),
        click.option("--agent", help="Of this agent, where it is several."),
        click.option(
            "--from-traces",
            "traces",
            metavar="FILE",
            help="Expect what an agent did: `traces.jsonl` of a run, or another recording.",
        ),
    ):
        command = option(command)
    return command


_FILE_HELP = "A case in ADK's JSON (or YAML), or an evalset of any format; - is stdin."


@evalsets.command(name="list")
@click.argument("folder", default=".", metavar="[DIR]")
@json_option
def list_sets(folder: str, *, as_json: bool) -> int:
    """List the evalsets in a folder and below it: their ids, formats and numbers of cases."""
    from ci_eval.cli.evalset.finding import evalset_files
    from ci_eval.config.open_evalset import open_evalset

    rows: list[dict[str, Any]] = []
    problems: list[Problem] = []
    for file in evalset_files(folder):
        shown = file.shown
        try:
            opened = open_evalset(file.path, shown=shown)
        except UsageError as exc:
            problems += exc.problems
            rows.append({"id": None, "path": shown, "format": None, "cases": None})
        else:
            header = opened.header
            found = {"id": header.eval_set_id, "path": shown, "format": header.format}
            rows.append({**found, "cases": opened.facts.cases})
    if as_json:
        print_json(rows)
    else:
        table = [
            [_plain("-" if cell is None else str(cell)) for cell in row.values()] for row in rows
        ]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for cells in table:
            padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
            click.echo(f"{'  '.join(padded).rstrip()} cases")
    _say(problems)
    return ExitCode.USAGE_ERROR if problems else ExitCode.PASSED


@evalsets.command()
@_place
def create(place: str, eval_set_id: str | None) -> int:
    """Make an evalset without cases: ADK's JSON, or our own format in a file `*.yaml`.

    \b
    ci-eval evalset create agents/shop smoke      # as `adk eval_set create agents/shop smoke`
    ci-eval evalset create evals/smoke.yaml
    """  # noqa: D301  # as above
    from ci_eval.cli.evalset.finding import located

    target = located(place, eval_set_id)
    target.create(time.time())
    of = f" for app '{target.app}'" if target.app else ""
    _done(f"Eval set '{target.eval_set_id}' created{of}.")
    return ExitCode.PASSED


@evalsets.command()
@_place
@click.option("--file", "case_file", metavar="FILE", help=_FILE_HELP)
@click.option("--prompt", help="What the user says.")
@click.option("--expected", help="What the agent should answer to --prompt.")
@click.option("--case", help="Its id: of the new one, or in --file or --from-traces.")
@_traces
@click.option(
    "--scenarios_file", "--scenarios-file", metavar="FILE", help="As of `adk eval_set`: JSON."
)
@click.option(
    "--session_input_file",
    "--session-input-file",
    metavar="FILE",
    help="The session that new cases begin with, as of `adk eval_set`: JSON.",
)
def add(place: str, eval_set_id: str | None, **options: Any) -> int:
    """Add cases; an id that is there already is refused.

    Of --scenarios_file, such cases are skipped, as `adk eval_set add_eval_case` does it.

    \b
    ci-eval evalset add evals/smoke.evalset.json --prompt Hello --expected "How can I help?"
    ci-eval evalset add agents/shop smoke --from-traces ci-eval-report/traces.jsonl --case greets
    ci-eval evalset add agents/shop smoke --file case.json
    """  # noqa: D301  # as above
    from ci_eval.cli.evalset.finding import located
    from ci_eval.cli.evalset.options import new_cases

    target = located(place, eval_set_id)
    cases = new_cases(options, now=time.time())
    known = set()
    if options["scenarios_file"]:
        known = {case.eval_id for case in target.open().cases()}
    fresh = [case for case in cases if case.eval_id not in known]
    _say(target.add(fresh) if fresh else ())
    of = f"eval set '{target.eval_set_id}'"
    for case in cases:
        skipped = case.eval_id in known
        ending = f"already exists in {of}, skipped adding." if skipped else f"added to {of}."
        _done(f"Eval case '{case.eval_id}' {ending}")
    return ExitCode.PASSED


@evalsets.command()
@_place
@click.option("--file", "case_file", metavar="FILE", help=_FILE_HELP)
@click.option("--case", help="The id of the case in --file or --from-traces.")
@_traces
def update(place: str, eval_set_id: str | None, **options: Any) -> int:
    """Replace cases by others of the same ids.

    With --from-traces a case expects from now on what the agent did; its session, tags,
    rubrics, assertions and keys of your own stay.
    """
    from ci_eval.cli.evalset.finding import located
    from ci_eval.cli.evalset.options import changed_cases

    target = located(place, eval_set_id)
    cases = changed_cases(options, target, now=time.time())
    _say(target.update(cases))
    for case in cases:
        _done(f"Eval case '{case.eval_id}' updated in {target.shown}.")
    return ExitCode.PASSED


@evalsets.command()
@_place
@click.option("--case", "cases", multiple=True, required=True, help="Its id; may be repeated.")
def delete(place: str, eval_set_id: str | None, cases: tuple[str, ...]) -> int:
    """Take cases out; where one of them is not there, none is."""
    from ci_eval.cli.evalset.finding import located

    target = located(place, eval_set_id)
    target.delete(cases)
    for case in dict.fromkeys(cases):
        _done(f"Eval case '{case}' deleted from {target.shown}.")
    return ExitCode.PASSED


@evalsets.command()
@click.argument("file")
@click.option("--to", required=True, help="The format: adk, cases (our own) or agentflow.")
@click.option("--out", metavar="FILE", help="Where to; else beside FILE. What is there is kept.")
def convert(file: str, to: str, out: str | None) -> int:
    """Write an evalset of any format in another one, and say what that does not keep.

    \b
    ci-eval evalset convert evals/smoke.evalset.json --to cases --out evals/smoke.yaml
    """  # noqa: D301  # as above
    from ci_eval.cli.evalset import converting
    from ci_eval.text.templates import counted

    written = converting.convert(file, to, out)
    _refuse_there(written.file)
    _say(written.warnings)
    converting.save([written])
    _done(f"{written.shown}: {counted(written.cases, 'case')} written.")
    return ExitCode.PASSED


@evalsets.command()
@click.argument("place", metavar="FILE|DIR")
@click.option("--out", metavar="FILE", help="Where to; else FILE itself is rewritten.")
@click.option("--backup", is_flag=True, help="Keep what was there as FILE.bak.")
@click.option(
    "--initial-session",
    metavar="FILE",
    help="The session of the cases that name none: JSON with app_name, user_id and state.",
)
def migrate(place: str, out: str | None, initial_session: str | None, *, backup: bool) -> int:
    """Bring files of ADK's older formats into the present one, as ADK's own migration does.

    Of a folder it is every `*.test.json` and `*.evalset.json` of an older format in and below
    it.  Ids of cases stay as they are, so that a baseline still knows them.
    """
    from ci_eval.cli.evalset import converting, given
    from ci_eval.cli.evalset.files import file_at
    from ci_eval.cli.evalset.finding import is_folder
    from ci_eval.text.templates import counted

    session = None
    if initial_session:
        path = Path(initial_session)
        session = given.read_initial_session(path, shown=initial_session)
    if is_folder(place):
        if out:
            raise UsageError("--out is for one file, not for a folder")
        found = converting.migrate_folder(place, session)
    else:
        if out and not _same(out, place):
            _refuse_there(file_at(out))
        one = converting.migrate(place, out, session)
        found = [one] if one else []
    for each in found:
        _say(each.warnings)
    converting.save(found, backup=backup)
    for each in found:
        _done(f"{each.shown}: {counted(each.cases, 'case')} migrated.")
    if not found:
        _done(f"{place}: nothing of an older format.")
    return ExitCode.PASSED


def _same(one: str, other: str) -> bool:
    return one == other or Path(one).absolute() == Path(other).absolute()


def _refuse_there(file: "File") -> None:
    if file.there:
        raise UsageError(f"{file.shown} is there already", hint="name another file with --out")


def _say(problems: Iterable[Problem]) -> None:
    from ci_eval.cli import console

    console.say_problems(problems)


def _done(line: str) -> None:
    click.echo(_plain(line))


def _cell(value: object) -> str:
    return "-" if value is None else _plain(str(value))


def _plain(line: str) -> str:
    from ci_eval.text.templates import terminal

    return terminal(line)
