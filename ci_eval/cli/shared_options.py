"""Options that several commands share."""

import math
from collections.abc import Callable
from typing import Any

import click

from ci_eval.records.errors import UsageError
from ci_eval.run_files.file_names import CONFIG_FILE, REPORT_FOLDER

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


def combined(*decorators: Decorator) -> Decorator:
    """Return a decorator that adds several arguments and options, shown in this order."""

    def add(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return add


def adk_option(name: str, parameter: str = "", **attributes: Any) -> Decorator:
    """Return an option of ADK, whose name may be written with underscores or hyphens."""
    names = (f"--{name}", f"--{name.replace('_', '-')}", parameter or name)
    return click.option(*names, **attributes)


class NumberRange(click.FloatRange):
    """A number in a range; unlike click's own, not NaN, which is in no range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


def not_empty(_: click.Context, option: click.Parameter, given: str | None) -> str | None:
    """Reject an empty value, which an unset variable leaves, as the callback of an option.

    Raises:
        UsageError: the value is empty.

    """
    if given == "":
        name = "/".join(option.opts)
        raise UsageError(f"{name} is empty", hint="is a variable unset? Set it, or omit the option")
    return given


config_option = click.option(
    "-c",
    "--config",
    type=click.Path(),
    metavar="FILE",
    default=CONFIG_FILE,
    show_default=True,
    help="Configuration file.",
)


def other_config_option(purpose: str) -> Decorator:
    """Return the option of a configuration for a command that needs none."""
    return click.option("-c", "--config", metavar="FILE", help=purpose)


json_option = click.option("--json", "as_json", is_flag=True, help="Output JSON.")
out_option = click.option(
    "--out",
    type=click.Path(),
    metavar="DIR",
    default=REPORT_FOLDER,
    show_default=True,
    callback=not_empty,
    help="Output directory.",
)
record_option = click.option(
    "--record", type=click.Path(), help="Output path of traces, for a `recorded` agent."
)
run_python_option = click.option(
    "--run-python",
    is_flag=True,
    help="Run Python files that build criteria or evalsets, as `run` does.",
)
mode_options = combined(
    click.option(
        "--judge-mode",
        type=click.Choice(["auto", "record", "replay", "off"]),
        help="Use of cached judge responses; replay calls no model.",
    ),
    click.option(
        "--models",
        type=click.Choice(["live", "record", "replay", "auto"]),
        help="Use of agents' recorded model calls; replay calls no model.",
    ),
)
report_options = combined(
    out_option,
    click.option(
        "--show",
        type=click.IntRange(min=0),
        help="Failed cases to print; default 5, with -q 0, with -v 50.",
    ),
    click.option(
        "--open", "opens", is_flag=True, help="Open report.html in the browser afterwards."
    ),
    json_option,
)
planning_options = combined(
    config_option,
    click.option("--agent", multiple=True, help="Only this agent; may be repeated."),
    click.option("--evalset", multiple=True, help="Only this evalset; may be repeated."),
    click.option(
        "--case", multiple=True, help="Only this case, by id or pattern; may be repeated."
    ),
    click.option("--criterion", multiple=True, help="Only this criterion; may be repeated."),
    click.option(
        "--tag", multiple=True, help="Only cases with this tag; if repeated, with all of them."
    ),
    click.option(
        "--repeats", type=click.IntRange(1, 1000), help="Number of times to run each case."
    ),
)
