"""`ci-eval evalset …`: lists, creates, edits and converts evalsets."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ci_eval.cli import console
from ci_eval.cli.command_help import Group
from ci_eval.cli.command_inputs import context_of
from ci_eval.cli.evalset import added_cases, evalset_conversion
from ci_eval.cli.evalset.added_cases import with_adk_ids
from ci_eval.cli.evalset.command_files import File, file_at
from ci_eval.cli.evalset.evalset_argument import evalset_files, is_folder, located
from ci_eval.cli.evalset.evalset_options import changed_cases, new_cases
from ci_eval.cli.evalset.stored_results import results
from ci_eval.cli.exit_codes import print_json
from ci_eval.cli.shared_options import adk_option, combined, json_option, not_empty
from ci_eval.config.open_evalset import open_evalset
from ci_eval.records.errors import ExitCode, Problem, UsageError
from ci_eval.text.templates import counted


@click.group(name="evalset", cls=Group)
def evalsets() -> None:
    """List, create, edit and convert evalsets.

    Name an evalset by its FILE or, as in ADK's tools, by the directory of an agent and an
    ID: `agents/shop smoke` is the file `agents/shop/smoke.evalset.json`.

    Edits change only the text of the case; the rest of the file stays as it is.
    """


evalsets.add_command(results)
_place = combined(
    click.argument("place", metavar="FILE|AGENT_DIR"),
    click.argument("eval_set_id", metavar="[ID]", required=False),
)
_traces = combined(
    click.option(
        "--from-traces",
        "traces",
        metavar="FILE",
        help="Expect recorded behavior: traces.jsonl or a recording.",
    ),
    click.option("--agent", help="Agent of the trace, if there are several."),
    click.option("--evalset", "trace_evalset", help="Evalset of the trace, if there are several."),
    click.option("--repeat", type=click.IntRange(1), help="Repeat of the case, from 1; default 1."),
)
_FILE_HELP = "A case in ADK's JSON (or YAML), or an evalset of any format; - is stdin."


@evalsets.command(name="list")
@click.argument("folder", default=".", metavar="[DIR]")
@json_option
def list_sets(folder: str, *, as_json: bool) -> int:
    """List the evalsets in a directory tree with id, format and number of cases.

    Warns about other files of these types that cannot be read, as they may be evalsets.
    """
    rows: list[dict[str, Any]] = []
    problems: list[Problem] = []
    unread: list[Problem] = []
    for file in evalset_files(folder, unread):
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
    elif rows:
        cells = [["-" if each is None else str(each) for each in row.values()] for row in rows]
        console.out_table(tuple(rows[0]), [tuple(each) for each in cells])
    warnings = [
        replace(each, message=f"not listed: {each.message}", severity="warning") for each in unread
    ]
    console.say_problems([*problems, *warnings])
    return ExitCode.USAGE_ERROR if problems else ExitCode.PASSED


@evalsets.command()
@_place
def create(place: str, eval_set_id: str | None) -> None:
    """Create an empty evalset: ADK's JSON, or our own format in a file `*.yaml`."""
    target = located(place, eval_set_id)
    target.create(time.time())
    of = f" for app '{target.app}'" if target.app else ""
    console.out(f"Eval set '{target.eval_set_id}' created{of}.")


@evalsets.command()
@_place
@click.option("--file", "case_file", metavar="FILE", help=_FILE_HELP)
@click.option("--prompt", help="User message.")
@click.option("--expected", help="Expected response to --prompt.")
@click.option(
    "--case",
    callback=not_empty,
    help="Id of the new case, or of the case in --file or --from-traces.",
)
@_traces
@adk_option("scenarios_file", metavar="FILE", help="Scenarios as in `adk eval_set` (JSON).")
@adk_option(
    "session_input_file",
    metavar="FILE",
    help="Initial session of new cases, as in `adk eval_set` (JSON).",
)
def add(place: str, eval_set_id: str | None, **options: Any) -> None:
    """Add cases; duplicate ids are rejected.

    With --scenarios_file, duplicates are skipped, as by `adk eval_set add_eval_case`.
    """
    target = located(place, eval_set_id)
    cases = new_cases(options, now=time.time())
    skipped: set[int] = set()
    if options["scenarios_file"]:
        cases = with_adk_ids(cases, Path(place), context_of())
        known = {case.eval_id for case in target.open().cases()}
        for position, case in enumerate(cases):
            if case.eval_id in known:
                skipped.add(position)
            known.add(case.eval_id)
    fresh = [case for position, case in enumerate(cases) if position not in skipped]
    console.say_problems(target.add(fresh) if fresh else ())
    of = f"eval set '{target.eval_set_id}'"
    for position, case in enumerate(cases):
        is_there = position in skipped
        ending = f"already exists in {of}, skipped adding." if is_there else f"added to {of}."
        console.out(f"Eval case '{case.eval_id}' {ending}")
    if options["traces"]:
        missing = "a recording has neither the tags nor the initial state of a case"
        console.say(f"note: {missing}; add them to {target.shown} if they matter")


@evalsets.command()
@_place
@click.option("--file", "case_file", metavar="FILE", help=_FILE_HELP)
@click.option("--case", callback=not_empty, help="Id of the case in --file or --from-traces.")
@_traces
def update(place: str, eval_set_id: str | None, **options: Any) -> None:
    """Replace cases that have the same ids.

    With --from-traces, a case will expect what the agent did; its session, tags, rubrics,
    assertions and your own keys are kept.
    """
    target = located(place, eval_set_id)
    cases = changed_cases(options, target, now=time.time())
    console.say_problems(target.update(cases))
    for case in cases:
        console.out(f"Eval case '{case.eval_id}' updated in {target.shown}.")


@evalsets.command()
@_place
@click.option(
    "--case", "cases", multiple=True, required=True, help="Id of a case; may be repeated."
)
def delete(place: str, eval_set_id: str | None, cases: tuple[str, ...]) -> None:
    """Delete cases; if one does not exist, none is deleted."""
    target = located(place, eval_set_id)
    target.delete(cases)
    for case in dict.fromkeys(cases):
        console.out(f"Eval case '{case}' deleted from {target.shown}.")


@evalsets.command()
@click.argument("file")
@click.option("--to", required=True, help="Target format: adk, cases (our own) or agentflow.")
@click.option("--out", metavar="FILE", help="Output path (default: beside FILE); never overwrites.")
def convert(file: str, to: str, out: str | None) -> None:
    """Convert an evalset to another format, and warn about losses."""
    written = evalset_conversion.convert(file, to, out)
    _refuse_there(written.file)
    console.say_problems(written.warnings)
    evalset_conversion.save([written])
    console.out(f"{written.file.shown}: {counted(written.cases, 'case')} written.")


@evalsets.command()
@click.argument("place", metavar="FILE|DIR")
@click.option("--out", metavar="FILE", help="Output path (default: rewrite FILE).")
@click.option("--backup", is_flag=True, help="Keep the original as FILE.bak.")
@click.option(
    "--initial-session",
    metavar="FILE",
    help="Default session (JSON with app_name, user_id, state).",
)
def migrate(place: str, out: str | None, initial_session: str | None, *, backup: bool) -> None:
    """Rewrite files that ADK does not read: in its older formats, or with obvious mistakes.

    With a DIR, rewrites every such `*.test.json` and `*.evalset.json` in and below it.  The ids of
    cases are kept, so that baselines stay comparable.
    """
    session = added_cases.read_initial_session(initial_session) if initial_session else None
    if is_folder(place):
        if out:
            raise UsageError("--out needs a single file, not a directory")
        found = evalset_conversion.migrate_folder(place, session)
    else:
        if out and Path(out).absolute() != Path(place).absolute():
            _refuse_there(file_at(out))
        one = evalset_conversion.migrate(file_at(place), out, session)
        found = [one] if one else []
    for each in found:
        console.say_problems(each.warnings)
    evalset_conversion.save(found, backup=backup)
    for each in found:
        console.out(f"{each.file.shown}: {counted(each.cases, 'case')} migrated.")
    if not found:
        console.out(f"{place}: nothing to migrate; only files in ADK formats are migrated.")


def _refuse_there(file: File) -> None:
    if file.there:
        raise UsageError(f"{file.shown} already exists", hint="choose another path with --out")
