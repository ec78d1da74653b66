"""What a configuration confides to agents, models and git, and nobody else is to learn."""

import json
import re
from collections.abc import Iterator

from ci_eval.asking import environment
from ci_eval.config import Config
from ci_eval.environments import agent_environment
from ci_eval.plugins import Agent
from ci_eval.redacting import Secrets, logins, passed_on
from ci_eval.world import World

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
    declared = getattr(agent, "env", {})
    taken = {name: value for name, value in declared.items() if value is None}
    more = agent_environment(world.env, taken).keys() - agent_environment(world.env, {}).keys()
    named = _VARIABLE.findall(json.dumps(agent.model_dump(mode="json")))
    yield from passed_on(world.env, sorted({*more, *named}))


def _of_git(world: World) -> Iterator[tuple[str, str]]:
    """Yield the settings of git that hold a login, and the login."""
    for _, name, value in world.clone.settings:
        if not _OF_GIT.fullmatch(name):
            continue
        if name.endswith("extraheader"):
            yield name, value
        for login in logins(f"{name} {value}"):
            yield "a login of git", login
