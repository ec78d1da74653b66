"""Options that several commands share."""

from collections.abc import Callable
from typing import Any

import click

from ci_eval.run_files.names import CONFIG_FILE, REPORT_FOLDER

Command = Callable[..., Any]


def config_option(command: Command) -> Command:
    """Add `--config`."""
    help_ = "Configuration file."
    option = click.option("-c", "--config", default=CONFIG_FILE, show_default=True, help=help_)
    return option(command)


def json_option(command: Command) -> Command:
    """Add `--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Output JSON.")(command)


def out_option(command: Command) -> Command:
    """Add `--out`."""
    help_ = "Output directory."
    return click.option("--out", default=REPORT_FOLDER, show_default=True, help=help_)(command)


def repeats_option(command: Command) -> Command:
    """Add `--repeats`."""
    help_ = "Number of times to run each case."
    return click.option("--repeats", type=click.IntRange(1, 1000), help=help_)(command)


def selection_options(command: Command) -> Command:
    """Add the options that select agents, evalsets, cases and criteria."""
    for name, what in (
        ("tag", "Only cases with this tag; if repeated, with all of them."),
        ("criterion", "Only this criterion; may be repeated."),
        ("case", "Only this case, by id or pattern; may be repeated."),
        ("evalset", "Only this evalset; may be repeated."),
        ("agent", "Only this agent; may be repeated."),
    ):
        command = click.option(f"--{name}", multiple=True, help=what)(command)
    return command
