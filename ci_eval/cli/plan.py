"""`ci-eval plan`: shows what `run` would execute."""

from typing import Any

import click

from ci_eval.cli import console, load
from ci_eval.cli.exit_codes import print_json
from ci_eval.cli.options import (
    config_option,
    json_option,
    repeats_option,
    run_python_option,
    selection_options,
)
from ci_eval.records.errors import ExitCode
from ci_eval.run.cost_estimate import estimate
from ci_eval.text.templates import counted, terminal

_MAX_LINE = 5_000
"""Maximum length of a line of names, in characters."""


@click.command()
@config_option
@selection_options
@repeats_option
@run_python_option
@json_option
def plan(config: str, *, run_python: bool, as_json: bool, **options: Any) -> int:
    """Show what `run` would execute, without executing it."""
    planned, _ = load.planned(config, options, runs_python=run_python)
    console.say_problems(planned.warnings)
    asked = estimate(planned)
    if as_json:
        print_json(
            {
                "suite": planned.config.suite,
                "trials": planned.count,
                "most_trials": planned.most,
                "pairs": [
                    {
                        "agent": agent,
                        "evalset": evalset,
                        "cases": planned.evalsets[evalset].count,
                        "repeats": planned.repeats,
                        "criteria": list(criteria),
                    }
                    for (agent, evalset), criteria in planned.pairs.items()
                ],
                "judging": [each.model_dump(mode="json") for each in asked],
            }
        )
        return ExitCode.PASSED
    for (agent, evalset), criteria in planned.pairs.items():
        cases = counted(planned.evalsets[evalset].count, "case")
        times = counted(planned.repeats, "time")
        line = f"{agent} on {evalset}: {cases}, {times}: {', '.join(criteria)}"
        click.echo(terminal(line, _MAX_LINE))
    most = f"; in doubt, at most {planned.most:,}" if planned.most > planned.count else ""
    click.echo(counted(planned.count, "trial") + most)
    for each in asked:
        click.echo(terminal(console.describe_estimate(each), _MAX_LINE))
    return ExitCode.PASSED
