"""`ci-eval models show`, `prune` and `check`."""

import json
from collections import Counter
from collections.abc import Sequence

import click

from ci_eval.cli import command_inputs, console
from ci_eval.cli.command_help import Group
from ci_eval.cli.exit_codes import print_json
from ci_eval.cli.models.recorded_calls import Cassette, cassettes
from ci_eval.cli.shared_options import config_option, json_option
from ci_eval.records.cases import Json
from ci_eval.records.errors import ExitCode, UsageError
from ci_eval.reporters.case_lines import Span
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.templates import counted, terminal


@click.group(cls=Group)
def models() -> None:
    """Show, clean and check cassettes with agents' model calls."""


@models.command()
@config_option
@click.option("--case", help="Show the requests and the answers of this case.")
@click.option("--agent", help="Only with this agent.")
@json_option
def show(config: str, *, case: str | None, agent: str | None, as_json: bool) -> None:
    """Show the recorded calls of each trial, or with --case their requests and answers."""
    found = _cassettes(config)
    _check_recorded(found, case, agent)
    if as_json:
        print_json([row for each in found for row in _rows(each, case, agent)])
        return
    for each in found:
        console.out(f"{each.shown}: {counted(len(each.cassette), 'call')}")
        if case:
            _show_case(each, case, agent)
        else:
            _show_trials(each, agent)


@models.command()
@config_option
def prune(config: str) -> None:
    """Remove the calls of trials that the configuration no longer plans."""
    for each in _cassettes(config):
        for conflict in each.conflicts():
            raise UsageError(conflict)
        removed = each.cassette.keep(each.trials)
        console.out(f"{each.shown}: removed {counted(removed, 'call')}")


@models.command()
@config_option
def check(config: str) -> int:
    """Exit with 1 if trials are not recorded, calls are unused, or a cassette contains keys."""
    found = _cassettes(config)
    problems = [line for each in found for line in each.problems()]
    for line in (*problems, *(line for each in found for line in each.remarks())):
        console.say(line)
    if not problems:
        console.out("ok")
    return ExitCode.FAILED if problems else ExitCode.PASSED


def _cassettes(config: str) -> list[Cassette]:
    loaded, context = command_inputs.load(config, runs_python=True)
    return cassettes(loaded, context)


def _check_recorded(found: Sequence[Cassette], case: str | None, agent: str | None) -> None:
    """Refuse a case or an agent without calls.

    Raises:
        UsageError: it has none; suggests a similar one, or lists all.

    """
    trials = [key for each in found for key, _ in each.cassette.trials_and_models()]
    cases = {key.case for key in trials if agent in (None, key.agent)}
    for kind, given, known in (
        ("agent", agent, {key.agent for key in trials}),
        ("case", case, cases),
    ):
        if given is not None and given not in known:
            message = f"no calls are recorded for the {kind} {given!r}{did_you_mean(given, known)}"
            raise UsageError(message)


def _rows(each: Cassette, case: str | None, agent: str | None) -> list[dict[str, object]]:
    return [
        {
            "cassette": each.shown,
            **call.trial.model_dump(),
            "number": call.place.number,
            "model": call.model,
            "request": call.request,
            "answer": call.answer.kept(),
        }
        for call in each.calls(case, agent)
    ]


def _show_trials(each: Cassette, agent: str | None) -> None:
    counts = Counter(each.cassette.trials_and_models())
    rows: list[tuple[str, ...]] = [
        (key.agent, key.evalset, key.case, str(key.repeat + 1), model, str(count))
        for (key, model), count in counts.items()
        if agent in (None, key.agent)
    ]
    if rows:
        console.out_table(("agent", "evalset", "case", "repeat", "model", "calls"), rows)


def _show_case(each: Cassette, case: str, agent: str | None) -> None:
    calls = [*each.calls(case, agent)]
    if not calls:
        console.out(f"no calls of case {case!r}")
    for call in calls:
        console.out()
        console.out(f"{call.trial.agent}, repeat {call.trial.repeat + 1}, {call.model}, request:")
        _out_indented(_laid_out(call.request))
        console.out(f"answer, with status {call.answer.status}:")
        value = call.answer.json
        text = call.answer.body.decode(errors="replace")
        _out_indented(text if value is None else _laid_out(value))


def _laid_out(value: Json) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _out_indented(text: str) -> None:
    """Print lines with their indentation."""
    for line in text.splitlines():
        unindented = line.lstrip(" ")
        margin = " " * (len(line) - len(unindented))
        console.out_spans((Span(margin), Span(terminal(unindented))))
