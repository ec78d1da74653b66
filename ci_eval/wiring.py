"""From the options of a command to what a stage takes."""

import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ci_eval import config as configuration
from ci_eval import console, isolation, pipeline
from ci_eval.config import Config
from ci_eval.errors import ConfigError, NothingSelectedError, UsageError
from ci_eval.findings import Report
from ci_eval.plan import Plan
from ci_eval.plan import plan as make_plan
from ci_eval.records import Status
from ci_eval.run_file import read_run
from ci_eval.selecting import Selection
from ci_eval.world import World


def world(config: Path) -> World:
    """Return the world of the configuration at `config`."""
    return World(
        env=dict(os.environ),
        root=config.absolute().parent,
        now=time.time,
        folder=str(config.parent),
        say=console.say,
    )


def load(config: str) -> tuple[Config, World]:
    """Return the configuration that the user calls `config`, and its world."""
    path = Path(config)
    around = world(path)
    return configuration.load(path, shown=config, world=around), around


def plan(
    config: str, options: Mapping[str, Any], *, again: Path | None = None
) -> tuple[World, Plan]:
    """Return what the options of `run` and `plan` ask for.

    `again` is the folder of a run of which only what did not pass is meant.

    Raises:
        NothingSelectedError: everything passed there.

    """
    loaded, around = load(config)
    if options.get("judge_mode"):
        loaded = replace(loaded, judging=loaded.judging.in_mode(options["judge_mode"]))
    selection = Selection(
        agents=options["agent"],
        evalsets=options["evalset"],
        cases=options["case"],
        criteria=options["criterion"],
        tags=options["tag"],
        places=_not_passed(again / "run.json") if again else None,
    )
    return around, make_plan(loaded, around, selection=selection, repeats=options["repeats"])


def run(planned: Plan, around: World, outputs: pipeline.Outputs) -> Report | None:
    """Run, say meanwhile how far it is, and return the report; no report if interrupted."""
    console.say_problems(planned.warnings)
    isolation.close_memory()
    with (
        terminable(),
        isolation.room_for_agents(around),
        console.Progress(planned.count, grouped=in_actions(around)) as progress,
    ):
        try:
            return pipeline.run(planned, around, replace(outputs, watch=progress))
        except KeyboardInterrupt:
            console.say(f"interrupted; what was observed is in {outputs.folder}")
            return None


def _not_passed(path: Path) -> frozenset[tuple[str, str, str]]:
    """Return the agents, evalsets and cases that failed or were errors in a stored run."""
    if not path.exists():
        message = f"there is no {path}, which would say what did not pass"
        raise UsageError(message, hint="run without --failed first")
    found = frozenset(
        (result.key.agent, result.key.evalset, result.key.case)
        for result in read_run(path, shown=str(path)).results()
        if result.status in (Status.FAILED, Status.ERROR)
    )
    if not found:
        raise NothingSelectedError(f"nothing to run again: everything passed in {path}")
    return found


def in_actions(around: World) -> bool:
    """Say whether a GitHub workflow runs this."""
    return around.env.get("GITHUB_ACTIONS") == "true"


def require_baseline(config: Config) -> None:
    """Refuse a configuration without a baseline.

    Raises:
        ConfigError: it has none.

    """
    if config.baseline is None:
        raise ConfigError(f"{config.shown} names no baseline", hint="add `baseline: {store: file}`")


def save_baseline(config: Config, path: Path, around: World) -> None:
    """Store the run in the file at `path`.

    Raises:
        UsageError: it is no run, or an incomplete one.

    """
    require_baseline(config)
    observed = pipeline.recall(read_run(path, shown=str(path)))
    pipeline.refuse_incomplete(observed, config.gate)
    saved = config.baseline.save(observed.run, around) if config.baseline else False
    run_id = observed.run.meta.run_id
    console.say(f"stored {run_id}" if saved else f"{run_id} was stored already")


@contextmanager
def terminable() -> Iterator[None]:
    """Let a runner that cancels the job (SIGTERM) end a run as Ctrl-C does."""

    def interrupt(*_: object) -> None:
        # Not raised here, where it may be anybody's: asyncio ends what it runs on SIGINT.
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
