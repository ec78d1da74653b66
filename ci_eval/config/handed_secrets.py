"""What a configuration confides to agents, models and git, and nobody else is to learn."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from ci_eval.config.model import Config
from ci_eval.llm.client import environment
from ci_eval.plugins.points import Agent
from ci_eval.runtime.context import World
from ci_eval.runtime.environments import agent_environment
from ci_eval.text.redact import Secrets, logins, passed_on

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_OF_GIT = re.compile(r"remote\..*url|http\..*extraheader|url\..*insteadof")
"""The settings of git that may hold a login."""


def secrets(config: Config, world: World, known: Secrets) -> Secrets:
    """Return the secrets that are `known`, and those that the configuration hands on.

    They are the variables that an agent gets by its `env:` or that its address and headers name,
    what a file of keys holds, and the logins that git has been given.
    """
    handed = [each for agent in config.agents.values() for each in _handed(agent, world)]
    of_file = Secrets(environment(config.judging, world)).given
    return known.with_more([*of_file, *handed, *_of_git(world)])


def _handed(agent: Agent, world: World) -> Iterator[tuple[str, str]]:
    """Yield the names and values of variables that `agent` gets and others do not."""
    named = _VARIABLE.findall(json.dumps(agent.model_dump(mode="json")))
    yield from passed_on(world.env, sorted({*_declared(agent, world), *named}))


def _declared(agent: Agent, world: World) -> set[str]:
    """Return the names of our variables that `agent` gets because its `env:` names them."""
    declared = getattr(agent, "env", {})
    taken = {name: value for name, value in declared.items() if value is None}
    more = agent_environment(world.env, taken).keys() - agent_environment(world.env, {}).keys()
    return set(more)


def files(config: Config, world: World) -> dict[str, Path]:
    """Return the files that variables name which agents get, such as a file of credentials."""
    names = {name for agent in config.agents.values() for name in _declared(agent, world)}
    found = {name: Path(world.env[name]) for name in sorted(names) if name in world.env}
    return {name: path for name, path in found.items() if path.is_absolute() and _is_file(path)}


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # what a variable holds may be no path
        return False


def _of_git(world: World) -> Iterator[tuple[str, str]]:
    """Yield the settings of git that hold a login, and the login."""
    for name, value, _ in world.clone.settings:
        if not _OF_GIT.fullmatch(name):
            continue
        if name.endswith("extraheader"):
            yield name, value
        for login in logins(f"{name} {value}"):
            yield "a login of git", login
