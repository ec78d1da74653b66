"""`ci-eval report`: writes the reports of a stored run."""

from pathlib import Path
from typing import Any

import click

from ci_eval.cli import command_inputs, console
from ci_eval.cli.exit_codes import apart_from_json
from ci_eval.cli.output_paths import only_writer
from ci_eval.cli.shared_options import other_config_option, report_options
from ci_eval.run.report_assembly import write_report
from ci_eval.run_files.file_names import REPORT_FOLDER
from ci_eval.run_files.run_file import redacted


@click.command()
@click.argument("run", default=REPORT_FOLDER, type=click.Path())
@other_config_option("Configuration whose gate and baseline to use.")
@report_options
def report(run: str, config: str | None, out: str, **options: Any) -> int:
    """Reevaluate the gate for a stored run and write its reports.

    RUN is a run.json, or the folder that it is in. By default, the configuration is the one that
    the run was made with.
    """
    collected = command_inputs.stored_run(run)
    found, loaded, context = command_inputs.judge_again(run, collected, config)
    secrets = command_inputs.secrets_of(collected.run).with_more(context.secrets.given)
    found = secrets.cleaned(found)
    with only_writer(Path(out)):
        write_report(found, redacted(collected.run, secrets), Path(out), loaded.reports, secrets)
    with apart_from_json(as_json=options["as_json"]):
        run_folder = run if Path(run).is_dir() else str(Path(run).parent)
        most = console.shown_cases(options["show"])
        console.out_report(found, out, run_folder=run_folder, most=most)
    return console.shown(found, Path(out), options)
