"""A run whose progress the user sees."""

from collections.abc import Callable
from dataclasses import replace

from ci_eval.cli import console, logs
from ci_eval.records.findings import Report
from ci_eval.run import collect, pipeline
from ci_eval.run.collect import Outputs
from ci_eval.run.plan import Plan
from ci_eval.runtime import isolation
from ci_eval.runtime.context import RunContext


def run_watched(
    plan: Plan, context: RunContext, outputs: Outputs, publish: Callable[[Report], None]
) -> Report | None:
    """Run `plan`, show its progress and warnings, and return the report; `None` if interrupted."""
    console.say_problems(plan.warnings)
    isolation.close_memory()
    context.clone.look()

    is_over = False

    def warn_and_publish(report: Report) -> None:
        nonlocal is_over
        is_over = True
        for warning in report.meta.warnings[len(plan.warnings) :]:
            console.say(f"warning: {warning}")
        publish(report)

    progress = (
        collect.Progress()
        if logs.is_quiet()
        else console.Progress(plan.count, grouped=context.in_actions)
    )
    outputs = replace(outputs, progress=progress, publish=warn_and_publish)
    try:
        return pipeline.run(plan, context, outputs)
    except KeyboardInterrupt:
        if is_over:
            raise  # the run has a verdict, and only its publication was interrupted
        console.say(f"interrupted; partial results are in {outputs.folder}")
        return None
