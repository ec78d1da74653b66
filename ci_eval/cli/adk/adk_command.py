"""`ci-eval adk`: a drop-in replacement for `adk eval`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ci_eval.cli import command_inputs, console
from ci_eval.cli.adk.adk_command_output import case_lines, counts_lines, criteria_line
from ci_eval.cli.adk.adk_eval_arguments import id_given
from ci_eval.cli.adk.adk_eval_options import Options, configured
from ci_eval.cli.adk.adk_eval_result_files import Results, run_and_write
from ci_eval.cli.adk.adk_eval_result_schema import EvalStatus
from ci_eval.cli.exit_codes import EXIT_CODES
from ci_eval.cli.output_paths import only_writer, refuse_recording
from ci_eval.cli.shared_options import adk_option, out_option, record_option
from ci_eval.config.handed_secrets import with_secrets
from ci_eval.pull_requests.github_runner import publish
from ci_eval.records.errors import CiEvalError, ExitCode, UsageError
from ci_eval.records.findings import Report
from ci_eval.run.collect import Outputs
from ci_eval.run.plan import Plan, plan
from ci_eval.runtime import isolation
from ci_eval.runtime.context import RunContext

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


@click.command()
@click.argument("agent_dir", type=click.Path(exists=True, file_okay=False))
@click.argument("sets", nargs=-1, metavar="[FILE|ID[:CASE,…]]…")
@adk_option(
    "config_file_path", "config_file", metavar="FILE", help="Eval config (JSON) with the criteria."
)
@adk_option(
    "print_detailed_results", "detailed", is_flag=True, help="Print the details of every case."
)
@adk_option(
    "eval_storage_uri",
    "storage_uri",
    metavar="gs://BUCKET",
    help="Bucket with the evalsets and results: gs://BUCKET.",
)
@adk_option(
    "log_level",
    type=click.Choice(_LEVELS, case_sensitive=False),
    default="INFO",
    expose_value=False,
    help="Accepted for compatibility; has no effect.",
)
@adk_option("enable_features", "enable", multiple=True, help="ADK features, comma-separated.")
@adk_option("disable_features", "disable", multiple=True, help="ADK features, comma-separated.")
@click.option("--interpreter", help="Python with google-adk and the agent's dependencies.")
@record_option
@out_option
def adk(agent_dir: str, *, record: str | None, out: str, detailed: bool, **given: Any) -> int:
    """Evaluate the ADK agent in AGENT_DIR, like `adk eval`.

    Name an evalset by its file, or by its id if it is in AGENT_DIR; append `:case,case` to run
    only these cases. ADK's output goes to stdout, its result files to
    AGENT_DIR/.adk/eval_history, and the reports of ci-eval to --out. With --eval_storage_uri the
    evalsets named by id are read from that bucket, and results are written to it.
    """
    options = Options(agent=agent_dir, **given)
    folder, context = Path(out), replace(command_inputs.context_of(), folder="")
    env = context.env
    isolation.close_memory()
    try:
        refuse_recording(record)
        outputs = Outputs(folder=folder, record=Path(record).resolve() if record else None)
        with only_writer(folder):
            report, failed = _run(options, context, outputs, detailed=detailed)
    except CiEvalError as exc:
        publish(None, folder, exc.exit_code, env, ())
        raise
    code = EXIT_CODES[report.verdict.outcome] if report else ExitCode.INTERRUPTED
    if report and failed and not report.totals.errors:
        # For ADK a case that nothing can judge has failed; it is not an error.
        code = ExitCode.FAILED
    publish(report, folder, code, env, ("summary", "annotations") if report else ())
    return code


def _run(
    options: Options, context: RunContext, outputs: Outputs, *, detailed: bool
) -> tuple[Report | None, int]:
    """Run, print ADK's output, and return the report and the number of cases failed for ADK.

    There is no report if the run was interrupted.
    """
    config = configured(options, context)
    context = with_secrets(context, config)
    planned = _named_as_given(plan(config, context, as_adk=True), options.sets)
    _refuse_same_ids(planned)
    agents = options.storage_uri or str(options.folder.parent)
    click.echo(criteria_line(planned.config.criteria))
    failed = 0

    def show(report: Report, results: Results, written: Sequence[str]) -> None:
        nonlocal failed
        counts = _counted(results)
        failed = sum(each[False] for each in counts.values())
        for line in _lines(results, counts, detailed=detailed):
            click.echo(line)
        for reason in report.verdict.reasons:
            console.say(f"- {reason.message}")
        if report.judging:
            console.say(f"judges: {console.spent(report.judging)}")
        for each in written:
            console.say(f"results: {each}")
        console.say(f"reports: {outputs.folder}")

    report = run_and_write(planned, context, outputs, agents, show)
    return report, failed


def _named_as_given(planned: Plan, given: Sequence[str]) -> Plan:
    """Return the plan with the ids that evalsets were given by, which count for ADK."""
    evalsets = dict(planned.evalsets)
    for name, each in planned.evalsets.items():
        if (eval_set_id := id_given(each.shown, given)) is not None:
            header = each.opened.header.model_copy(update={"eval_set_id": eval_set_id})
            evalsets[name] = replace(each, opened=replace(each.opened, header=header))
    return replace(planned, evalsets=evalsets)


def _refuse_same_ids(planned: Plan) -> None:
    """Reject evalsets that share an id, and so a result file.

    Raises:
        UsageError: two have the same id.

    """
    seen: dict[str, str] = {}
    for each in planned.evalsets.values():
        eval_set_id = each.opened.header.eval_set_id
        if eval_set_id in seen:
            message = f"has the same id {eval_set_id!r} as {seen[eval_set_id]}"
            raise UsageError(message, file=each.shown)
        seen[eval_set_id] = each.shown


def _counted(results: Results) -> dict[str, Counter[bool]]:
    """Return how many cases of each evalset passed and did not, by its id."""
    counts: dict[str, Counter[bool]] = {}
    for _, _, case in results.cases():
        passed = case.final_eval_status is EvalStatus.PASSED
        counts.setdefault(case.eval_set_id, Counter())[passed] += 1
    return counts


def _lines(results: Results, counts: dict[str, Counter[bool]], *, detailed: bool) -> Iterator[str]:
    """Yield the lines that `adk eval` prints at the end."""
    yield from counts_lines(counts)
    if detailed:
        for _, _, case in results.cases():
            yield from case_lines(case)
