"""Secrets that a configuration passes to agents, models and git."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ci_eval.config.validated_config import Config
from ci_eval.llm.model_client import environment
from ci_eval.plugins.points import Agent
from ci_eval.records.errors import UsageError
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import agent_environment
from ci_eval.runtime.workers.user_function import UnderPython
from ci_eval.text.record_strings import gathered
from ci_eval.text.redact import Secrets, logins, passed_on, print_none_of

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_HOST = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^@/?#]*/?")
"""A URL without a login, path or query."""
_OF_GIT = re.compile(r"remote\..*url|http\..*extraheader|url\..*insteadof")
"""Git settings that may contain a login."""


def with_secrets(context: RunContext, config: Config) -> RunContext:
    """Return `context` with the secrets that `config` passes on, which are redacted in all output.

    These are the variables in an agent's `env:`, URL and headers, secrets written there literally,
    the content of a key file, and the logins in git's settings.
    """
    found = [each for agent in config.agents.values() for each in handed(agent, context)]
    of_file = Secrets({})
    with suppress(UsageError):  # raised again where the keys are needed
        of_file = Secrets(environment(config.judging, context))
    secrets = context.secrets.with_more([*of_file.given, *found, *_of_git(context)])
    print_none_of(secrets)
    return replace(context, secrets=secrets)


def handed(agent: Agent | UnderPython, context: RunContext) -> Iterator[tuple[str, str]]:
    """Yield the names and values of variables that `agent` gets besides the usual ones.

    Also of variables and headers that the configuration sets itself, if their names say that they
    are secret, and the logins in its URLs.
    """
    texts: list[str] = []
    gathered(agent.model_dump(mode="json"), [], texts)
    named = _VARIABLE.findall("\n".join(texts))
    yield from passed_on(context.env, sorted({*declared(agent, context), *named}))
    for written in (getattr(agent, "env", {}), getattr(agent, "headers", {})):
        literal = {name: text for name, text in written.items() if _is_literal(text)}
        yield from Secrets(literal).given
    yield from (
        ("a login of an agent", login)
        for text in texts
        for login in logins(text)
        if login and not _VARIABLE.search(login)
    )


def _is_literal(text: str | None) -> bool:
    """Return True if a value contains no variable, and more than the address of a host."""
    return not (text is None or _VARIABLE.search(text) or _HOST.fullmatch(text))


def declared(agent: Agent | UnderPython, context: RunContext) -> set[str]:
    """Return the names of our environment variables that the `env:` of `agent` passes on."""
    named = getattr(agent, "env", {})
    taken = {name: value for name, value in named.items() if value is None}
    more = agent_environment(context, taken).keys() - agent_environment(context, {}).keys()
    return set(more)


def files(config: Config, context: RunContext) -> dict[str, Path]:
    """Return the files named in variables that agents get, such as a credentials file."""
    names = {name for agent in config.agents.values() for name in declared(agent, context)}
    found = {name: Path(context.env[name]) for name in sorted(names) if name in context.env}
    return {name: path for name, path in found.items() if path.is_absolute() and _is_file(path)}


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # the value may not be a valid path
        return False


def _of_git(context: RunContext) -> Iterator[tuple[str, str]]:
    """Yield the git settings that contain a login, and the login."""
    for name, value, _ in context.clone.settings:
        if not _OF_GIT.fullmatch(name):
            continue
        if name.endswith("extraheader"):
            yield name, value
        for login in logins(f"{name} {value}"):
            yield "a login of git", login
