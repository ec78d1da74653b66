"""`ci-eval judge check`: compares a judge with human labels."""

import asyncio
from pathlib import Path
from typing import Any

import click

from ci_eval.cli import command_inputs, console
from ci_eval.cli.command_help import Group
from ci_eval.cli.exit_codes import EXIT_CODES, print_json
from ci_eval.cli.judge_check import judge_verdicts
from ci_eval.cli.judge_check.calibrated_criterion import choose, choose_of
from ci_eval.cli.judge_check.calibration import Calibration, Judges, Required, calibrate, decide
from ci_eval.cli.judge_check.calibration_output import show
from ci_eval.cli.judge_check.human_labels import read_labels
from ci_eval.cli.judge_check.label_lines import POINTERS, responses, scores_of
from ci_eval.cli.shared_options import NumberRange, config_option, json_option
from ci_eval.llm import model_client
from ci_eval.records.results import JudgeUsage
from ci_eval.run_files.run_file import read_run


@click.group(cls=Group)
def judge() -> None:
    """Measure how well a judge agrees with people."""


@judge.command()
@click.argument("labels", type=click.Path())
@config_option
@click.option("--criterion", help="Criterion to check, if several use a model.")
@click.option("--run", type=click.Path(), help="Labeled run: a run.json, or its folder.")
@click.option("--min-kappa", type=NumberRange(-1, 1), help="Exit with 1 if kappa is lower.")
@click.option("--min-agreement", type=NumberRange(0, 1), help="Exit with 1 if agreement is lower.")
@click.option(
    "--max-undecided",
    type=NumberRange(0, 1),
    default=0.1,
    show_default=True,
    help="Exit with 6 if a larger share is undecided.",
)
@json_option
def check(labels: str, config: str, run: str | None, *, as_json: bool, **options: Any) -> int:
    """Compare a judge with human labels: LABELS has one JSON object per line.

    Each object has a `label` (true or false, pass or fail, or a score) and its subject: the texts
    `user`, `response` and `expected`, or, with --run, the `case` of a run.
    """
    path, wanted = Path(labels), options["criterion"]
    if run is None:
        found = _asked(path, labels, config, wanted)
    else:
        found = _recalled(path, labels, command_inputs.run_file(run), wanted)
    required = Required(options["min_kappa"], options["min_agreement"], options["max_undecided"])
    outcome, reasons = decide(found, required)
    if as_json:
        print_json({"outcome": outcome, "reasons": reasons, **found.model_dump(mode="json")})
    else:
        show(found, required)
    return EXIT_CODES[outcome]


def _asked(path: Path, shown: str, config: str, wanted: str | None) -> Calibration:
    """Ask the judge about the responses in the file."""
    loaded, context = command_inputs.load(config, runs_python=True)
    chosen, criterion = choose(loaded, wanted)
    labels = read_labels(path, responses(criterion), chosen, shown=shown)
    console.say_problems(labels.warnings)
    judging = loaded.judging
    model_client.check(judging, [criterion], context)
    scores = asyncio.run(judge_verdicts.judge(labels.items, chosen, criterion, judging, context))
    usage = (each.judging for each in scores.values() if each.judging)
    verdicts = [
        judge_verdicts.verdict_of(scores[item.name], item.rubric, chosen.facts)
        for item in labels.items
    ]
    models = tuple(str(each.model) for each in judging.judges(criterion))
    judges = Judges(criterion=chosen.name, models=models, samples=judging.samples(criterion))
    return calibrate(labels, verdicts, judges, sum(usage, JudgeUsage()))


def _recalled(path: Path, shown: str, run_file: Path, wanted: str | None) -> Calibration:
    """Look up the judge's scores in a stored run."""
    run = read_run(run_file, shown=str(run_file))
    chosen = choose_of(run, wanted, str(run_file))
    labels = read_labels(path, POINTERS, chosen, shown=shown)
    console.say_problems(labels.warnings)
    scores = scores_of(run, chosen.name, labels.items, shown)
    found = zip(labels.items, scores, strict=True)
    labelled = [judge_verdicts.verdict_of(each, item.rubric, chosen.facts) for item, each in found]
    return calibrate(labels, labelled, Judges(criterion=chosen.name), JudgeUsage())
