"""Conversion of the options of `ci-eval adk` into a configuration."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci_eval.cli.adk.adk_eval_arguments import config_beside, named_sets, stored
from ci_eval.config.load_config import checked
from ci_eval.config.validated_config import Config
from ci_eval.records.cases import Json
from ci_eval.records.errors import Problem, Severity
from ci_eval.runtime.clone import top_of
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import find_program, is_program, own_python
from ci_eval.text.yaml_files import Document, Loc

DEFAULT_CRITERIA = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
"""Default criteria of `adk eval` without an eval config."""
ALWAYS_MEASURED = (
    "tool_call_count_v1",
    "inference_call_count_v1",
    "token_usage_v1",
    "invocation_duration_v1",
)
"""Metrics that ADK 2.13.0 always adds."""
CONCURRENCY = 4
"""Number of cases that `adk eval` runs concurrently."""
TIMEOUT_S = 600.0
"""Time limit of a case; `adk eval` has none."""
_PLACES = {"interpreter": "--interpreter", "adk": "AGENT_DIR", "from": "--config_file_path"}


@dataclass(frozen=True)
class Options:
    """Options of `ci-eval adk`."""

    agent: str
    """The folder of the agent, as the user named it."""
    sets: tuple[str, ...]
    config_file: str | None = None
    interpreter: str | None = None
    enable: tuple[str, ...] = ()
    """Names of ADK features; each item may be a comma-separated list."""
    disable: tuple[str, ...] = ()
    storage_uri: str | None = None
    """The bucket of the evalsets given by id, and of the results."""

    @property
    def app(self) -> str:
        """ADK's name for the agent: that of its folder."""
        return self.folder.name

    @property
    def folder(self) -> Path:
        """The absolute path of the agent's folder."""
        return Path(os.path.abspath(self.agent))  # noqa: PTH100  # keeps the names of links


def configured(options: Options, context: RunContext) -> Config:
    """Convert `options` into a configuration.

    Raises:
        UsageError: an evalset, the eval config or the interpreter is missing or invalid.

    """
    given = (
        options.sets
        if options.storage_uri is None
        else tuple(stored(options.storage_uri, options.app, each) for each in options.sets)
    )
    sets = named_sets(options.agent, given)
    config_file = options.config_file or config_beside(sets, given)
    criteria: dict[str, Json] = {"from": config_file} if config_file else {**DEFAULT_CRITERIA}
    value = {
        "name": options.app[:100],
        "dialect": "adk",
        "agents": {options.app: agent_of(options, context)},
        "evalsets": {name: each.model_dump(mode="json") for name, each in sets.items()},
        "criteria": criteria | dict.fromkeys(ALWAYS_MEASURED),
        "run": {"concurrency": CONCURRENCY, "timeout_s": TIMEOUT_S},
        "gate": {"mode": "threshold"},
    }
    return checked(_FromOptions(value, "", criteria_file=config_file or ""), Path(), context)


def agent_of(options: Options, context: RunContext) -> dict[str, Json]:
    """Return the agent as in a configuration.

    As with `adk eval`, it gets our own environment, without the job's token and the like.
    """
    on, off = _listed(options.enable), _listed(options.disable)
    return {
        "adk": options.agent,
        "interpreter": options.interpreter or interpreter_of(options.folder, context),
        "env": {"*": None},
        "features": {**dict.fromkeys(on, True), **dict.fromkeys(off, False)},
    }


def _listed(given: Sequence[str]) -> Iterator[str]:
    """Yield the names in comma-separated texts."""
    names = (each.strip() for text in given for each in text.split(","))
    yield from filter(None, names)


@dataclass(frozen=True)
class _FromOptions(Document):
    """A configuration without a file: errors name options of the command."""

    criteria_file: str = ""
    """The eval config, which names the criteria."""

    def line(self, loc: Loc) -> int | None:
        """Return `None`: there are no lines."""
        del loc
        return None

    def problem(self, message: str, loc: Loc = (), *, severity: Severity = "error") -> Problem:
        """Return the problem `message`, with the option or the criterion that it is about."""
        match loc:
            case ("criteria", str(name), *_) if name != "from":
                return Problem(message, self.criteria_file, where=name, severity=severity)
        named: list[Any] = [_PLACES.get(str(step)) for step in loc]
        return Problem(message, where=next(filter(None, named), ""), severity=severity)


# --- The default interpreter ------------------------------------------------------------------

_SHEBANG_BYTES = 512


def interpreter_of(agent: Path, context: RunContext) -> str | None:
    """Return the interpreter for the agent in the folder `agent`; `None` for our own.

    It is that of the nearest `.venv`, in the agent's folder or a folder above it in the repository,
    or else the one that runs `adk` on the PATH.
    """
    own = own_python(agent, top_of(agent) or context.root)
    if own:
        return str(own)
    command = find_program("adk", root=context.root, env=context.env)
    return _interpreter_of_script(Path(command)) if command else None


def _interpreter_of_script(script: Path) -> str | None:
    """Return the Python that a script of an installed package runs under."""
    beside = script.resolve().parent / "python"
    if is_program(beside):
        return str(beside)
    with script.open("rb") as file:
        first = file.readline(_SHEBANG_BYTES).decode(errors="replace")
    named = Path(first.removeprefix("#!").strip())
    is_python = first.startswith("#!") and named.name.startswith("python")
    return str(named) if is_python and is_program(named) else None
