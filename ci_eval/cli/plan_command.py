"""`ci-eval plan`: shows what `run` would execute."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from ci_eval.cli import command_inputs, console
from ci_eval.cli.exit_codes import naming_files, print_json
from ci_eval.cli.output_paths import refuse_plan
from ci_eval.cli.shared_options import (
    config_option,
    json_option,
    not_empty,
    repeats_option,
    run_python_option,
    selection_options,
)
from ci_eval.pull_requests.github_runner import append_outputs
from ci_eval.records.errors import ExitCode, UsageError
from ci_eval.run.baseline_choice import load_baseline
from ci_eval.run.cost_estimate import Estimate, estimate
from ci_eval.run.plan import Plan
from ci_eval.run.quota_estimate import Quota, quotas
from ci_eval.run.shards import divided, manifest_of
from ci_eval.run_files.shard_files import MAX_SHARDS, ShardPlan, write_plan
from ci_eval.runtime.context import RunContext
from ci_eval.text.templates import counted, duration, terminal

_MAX_LINE = 5_000
"""Maximum length of a line of names, in characters."""


@click.command()
@config_option
@selection_options
@repeats_option
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
) -> int:
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
            write_plan(found, Path(file))
    if as_json:
        print_json(_whole(planned, asked, slow, found))
        return ExitCode.PASSED
    for (agent, evalset), criteria in planned.pairs.items():
        cases = counted(planned.evalsets[evalset].count, "case")
        times = counted(planned.repeats, "repeat")
        line = (
            f"{agent} on {evalset}: {cases} \N{MULTIPLICATION SIGN} {times}: {', '.join(criteria)}"
        )
        click.echo(terminal(line, _MAX_LINE))
    click.echo(_trials_line(planned))
    for each in asked:
        click.echo(terminal(console.describe_estimate(each), _MAX_LINE))
    if found:
        for line in _shard_lines(found, planned):
            click.echo(line)
    for quota in slow:
        click.echo(terminal(_quota_line(quota, found), _MAX_LINE))
    return ExitCode.PASSED


def _trials_line(planned: Plan) -> str:
    """Return the number of trials, of the merge base and in doubt, too."""
    line, most = counted(planned.count, "trial"), _most(planned)
    if _runs_base(planned):
        line += ", and as many with the merge base, on cases that it also has"
    return f"{line}; at most {most:,} if in doubt" if planned.most > planned.count else line


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


def _span(ordered: Iterable[str]) -> str:
    """Return the first and the last value, once if they are equal."""
    first, *_, last = [*ordered] * 2
    return first if first == last else f"{first} to {last}"


def _divided(planned: Plan, context: RunContext, total: int) -> ShardPlan:
    baseline = load_baseline(planned.config, context)
    past = baseline.runs if baseline else ()
    return divided(planned, total, manifest_of(planned, context), past)


def shards_json(found: ShardPlan) -> dict[str, Any]:
    """Return the shards, and the value of `strategy.matrix` for as many jobs on GitHub."""
    total = len(found.shards)
    shown = [
        {"index": index, "total": total, "trials": each.trials, "expected_s": each.expected_s}
        for index, each in enumerate(found.shards, 1)
    ]
    return {"shards": shown, "matrix": {"shard": [f"{each['index']}/{total}" for each in shown]}}


def _shard_lines(found: ShardPlan, planned: Plan) -> Iterator[str]:
    """Yield the size of the shards, and a note if more of them would not help."""
    total, run = len(found.shards), planned.config.run
    trials = sorted(each.trials for each in found.shards)
    taken = sorted(each.expected_s for each in found.shards if each.expected_s is not None)
    times = f", expected to take {_span(map(duration, taken))}" if taken else ""
    yield f"{counted(total, 'shard')} of {_span(f'{each:,}' for each in trials)} trials{times}"
    if not taken:
        yield "no stored run has the durations of the cases; assuming that all take equally long"
    if total >= run.concurrency:
        yield (
            f"run.concurrency is {run.concurrency} for the whole suite, so more than "
            f"{counted(run.concurrency, 'shard')} do not help"
        )


def _quota_line(quota: Quota, found: ShardPlan | None) -> str:
    """Return how long calls take at the limits per minute, and whether that limits the run."""
    limits = [
        f"{most:g} {what} a minute"
        for most, what in (
            (quota.requests_per_minute, "requests"),
            (quota.tokens_per_minute, "tokens"),
        )
        if most
    ]
    line = (
        f"{quota.provider}: about {counted(quota.calls, 'call')} take at least "
        f"{duration(quota.seconds)} at {' and '.join(limits)}"
    )
    if found is None:
        return line
    line += ", however many shards there are"
    expected = max((each.expected_s or 0.0 for each in found.shards), default=0.0)
    return (
        f"{line}: the quota limits the run, not the CPU" if quota.seconds > expected > 0 else line
    )
