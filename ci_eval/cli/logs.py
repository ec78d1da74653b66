"""Logging: level and format of the loggers `ci_eval.*`."""

import logging
import sys
from collections.abc import Mapping

import click

from ci_eval.records.errors import UsageError
from ci_eval.text.redact import before_splitting
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.templates import terminal

LEVEL_VARIABLE = "CI_EVAL_LOG"
"""The environment variable with the log level; command-line options win."""
MAX_LINES = 100
"""Maximum number of lines of a message, which may quote an agent."""
_LEVELS = ("error", "warning", "info", "debug")
_LOGGER = logging.getLogger("ci_eval")
_FORMAT = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")


class _Stderr(logging.Handler):
    """Writes to the current `sys.stderr`, without secrets."""

    def emit(self, record: logging.LogRecord) -> None:
        lines = before_splitting(_FORMAT.format(record)).splitlines()
        for line in lines[:MAX_LINES]:
            sys.stderr.write(f"{terminal(line)}\n")
        if len(lines) > MAX_LINES:
            sys.stderr.write(f"… and {len(lines) - MAX_LINES} more lines\n")


def configure(env: Mapping[str, str], *, verbose: int = 0, quiet: bool = False) -> None:
    """Set the level from `--verbose` and `--quiet`, `CI_EVAL_LOG` or `RUNNER_DEBUG=1`, in order.

    Raises:
        UsageError: `CI_EVAL_LOG` is not a log level.

    """
    if not _LOGGER.handlers:
        _LOGGER.addHandler(_Stderr())
        _LOGGER.propagate = False
    _LOGGER.setLevel(_level(env, verbose=verbose, quiet=quiet))


def _level(env: Mapping[str, str], *, verbose: int, quiet: bool) -> int:
    if quiet:
        return logging.ERROR
    if verbose:
        return logging.INFO if verbose == 1 else logging.DEBUG
    if named := env.get(LEVEL_VARIABLE, "").lower():
        if named not in _LEVELS:
            meant = did_you_mean(named, _LEVELS)
            raise UsageError(f"{LEVEL_VARIABLE}: unknown level {named!r}{meant}")
        return logging.getLevelNamesMapping()[named.upper()]
    return logging.DEBUG if env.get("RUNNER_DEBUG") == "1" else logging.WARNING


def is_quiet() -> bool:
    """Return True if the user wants no progress."""
    return not _LOGGER.isEnabledFor(logging.WARNING)


def is_verbose() -> bool:
    """Return True if the user wants to know more."""
    return _LOGGER.isEnabledFor(logging.INFO)


def add_options(command: click.Command) -> None:
    """Add `--verbose` and `--quiet` to a command and its subcommands."""
    verbose = click.Option(
        ["-v", "--verbose"],
        count=True,
        expose_value=False,
        callback=_note,
        help="Log what happens; -vv logs every request.",
    )
    quiet = click.Option(
        ["-q", "--quiet"],
        is_flag=True,
        expose_value=False,
        callback=_note,
        help="Show no progress and no evidence.",
    )
    command.params += [verbose, quiet]
    for each in command.commands.values() if isinstance(command, click.Group) else ():
        add_options(each)


def _note(context: click.Context, option: click.Parameter, value: int) -> None:
    """Update the level with this option."""
    given = context.meta.setdefault(__name__, {"verbose": 0, "quiet": 0})
    given[option.name] += value
    configure(context.obj or {}, verbose=given["verbose"], quiet=bool(given["quiet"]))
