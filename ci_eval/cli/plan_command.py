"""`ci-eval plan`: shows what `run` would execute."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ci_eval.cli import command_inputs, console
from ci_eval.cli.exit_codes import naming_files, print_json
from ci_eval.cli.output_paths import refuse_plan
from ci_eval.cli.shared_options import json_option, not_empty, planning_options, run_python_option
from ci_eval.pull_requests.github_runner import append_outputs
from ci_eval.records.errors import Problem, UsageError
from ci_eval.run.baseline_choice import load_baseline
from ci_eval.run.cost_estimate import Estimate, estimate
from ci_eval.run.plan import Plan
from ci_eval.run.quota_estimate import Quota, quotas
from ci_eval.run.shards import divided, manifest_of
from ci_eval.run_files.shard_files import MAX_SHARDS, Chosen, ShardPlan
from ci_eval.run_files.stored_document import write_record
from ci_eval.runtime.context import RunContext
from ci_eval.text.templates import terminal

_MAX_LINE = 5_000
"""Maximum length of a line of names, in characters."""


@click.command()
@planning_options
@run_python_option
@click.option(
    "--shards",
    type=click.IntRange(1, MAX_SHARDS),
    metavar="N",
    help="Divide the cases among N jobs, by their stored durations.",
)
@click.option(
    "--plan",
    "--out",
    "file",
    metavar="FILE",
    callback=not_empty,
    help="Write the shard plan to FILE.",
)
@json_option
def plan(
    config: str,
    *,
    run_python: bool,
    shards: int | None,
    file: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Show what `run` would execute, without executing it.

    With --shards and --out, write the plan that `run --shard I/N --plan FILE` follows.
    """
    if file and not shards:
        raise UsageError("--out needs --shards", hint="add `--shards N`")
    refuse_plan(file)
    planned, context = command_inputs.planned(
        config, options, runs_agents=False, runs_python=run_python
    )
    console.say_problems(planned.warnings)
    asked = estimate(planned)
    slow = quotas(planned, context, asked)
    found = _divided(planned, context, shards) if shards else None
    if found:
        append_outputs({"matrix": json.dumps(shards_json(found)["matrix"])}, context.env)
    if found and file:
        with naming_files():
            write_record(found.model_copy(update={"chosen": Chosen.by(options)}), Path(file))
    if as_json:
        print_json(_whole(planned, asked, slow, found))
        return
    shards_of = found.shards if found else ()
    for line in console.text_lines(
        "plan.txt.j2",
        planned=planned,
        runs_base=_runs_base(planned),
        most=_most(planned),
        asked=asked,
        shards=shards_of,
        expected_s=max((each.expected_s or 0.0 for each in shards_of), default=0.0),
        concurrency=planned.config.run.concurrency,
        slow=slow,
        limits=_limits,
    ):
        click.echo(terminal(line, _MAX_LINE))
    if file:
        how = context.command("run", "--shard", f"I/{shards}", "--plan", file)
        console.out(f"wrote {file}; run each shard with `{how}`")


def _runs_base(planned: Plan) -> bool:
    """Return True if the merge base is run even without a doubt."""
    store, agents = planned.config.baseline, planned.config.agents
    is_compared = bool(store and not store.stores) and planned.config.gate.mode != "threshold"
    return is_compared and any(agents[name].of_base() for name, _ in planned.pairs)


def _most(planned: Plan) -> int:
    """Return the maximum number of trials of both arms."""
    return max(planned.most, planned.count * (2 if _runs_base(planned) else 1))


def _whole(
    planned: Plan, asked: Sequence[Estimate], slow: Sequence[Quota], found: ShardPlan | None
) -> dict[str, Any]:
    return {
        "suite": planned.config.suite,
        "trials": planned.count,
        "base_trials": planned.count if _runs_base(planned) else 0,
        "most_trials": _most(planned),
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
        "quotas": [each.model_dump(mode="json") for each in slow],
        **(shards_json(found) if found else {}),
    }


def _divided(planned: Plan, context: RunContext, total: int) -> ShardPlan:
    baseline = load_baseline(planned.config, context)
    past = baseline.runs if baseline else ()
    found = divided(planned, total, manifest_of(planned, context), past)
    if empty := sum(not each.trials for each in found.shards):
        message = f"{empty} of {total} shards have nothing to run, because there are too few cases"
        console.say_problems([Problem(message, severity="warning")])
    return found


def shards_json(found: ShardPlan) -> dict[str, Any]:
    """Return the shards, and the value of `strategy.matrix` for as many jobs on GitHub."""
    total = len(found.shards)
    shown = [
        {"index": index, "total": total, "trials": each.trials, "expected_s": each.expected_s}
        for index, each in enumerate(found.shards, 1)
    ]
    return {"shards": shown, "matrix": {"shard": [f"{each['index']}/{total}" for each in shown]}}


def _limits(quota: Quota) -> list[str]:
    """Return the limits per minute of calls."""
    limits = ((quota.requests_per_minute, "requests"), (quota.tokens_per_minute, "tokens"))
    return [f"{most:g} {what} a minute" for most, what in limits if most]
