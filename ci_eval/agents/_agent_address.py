"""Addresses and headers of agents that are reached over the network."""

import re
from collections.abc import Iterator, Mapping

from pydantic import Field

from ci_eval.records.cases import Record
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import refused
from ci_eval.runtime.http import address

Faults = Iterator[tuple[str, str]]
"""The field and the message of each error in a configuration."""
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_SENDABLE = re.compile(r"[ -~\t]*")
_UNSENDABLE = "has a line break or a character that is not allowed in a header"
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A valid name of a header (RFC 9110, 5.1)."""


class NetworkAgent(Record):
    """An agent that is reached over the network."""

    headers: dict[str, str] = Field(default_factory=dict)
    """HTTP headers of every request. `${NAME}` stands for the environment variable `NAME`, such as
    an API key; no other variables are read, and messages never show their values."""

    def wrong_headers(self, context: RunContext) -> Faults:
        """Yield the errors in the headers."""
        for name, text in self.headers.items():
            if not _NAME.fullmatch(name):
                yield "headers", f"{name!r} is not a valid name of a header"
            yield from _wrong_variables("headers", text, context)
            if not _SENDABLE.fullmatch(text):
                yield "headers", f"{name!r} {_UNSENDABLE}"

    def filled_headers(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return the headers with variables inserted."""
        return {name: with_variables(text, env) for name, text in self.headers.items()}


def with_variables(text: str, env: Mapping[str, str]) -> str:
    """Insert the environment variables that `text` names."""
    return _VARIABLE.sub(lambda found: env.get(found[1], "").strip(), text)


def variables_in(*texts: str) -> list[str]:
    """Return the environment variables that are inserted into texts."""
    return [name for text in texts for name in _VARIABLE.findall(text)]


def wrong_address(field: str, text: str, context: RunContext) -> Faults:
    """Yield the errors in an address that may name variables, each with `field`."""
    yield from _wrong_variables(field, text, context)
    if all(context.env.get(name) for name in _VARIABLE.findall(text)):
        try:
            address(with_variables(text, context.env))
        except ValueError:
            example = "https://example.com/chat"
            yield field, f"expected an address such as {example!r}, found {text!r}"


def _wrong_variables(field: str, text: str, context: RunContext) -> Faults:
    for name in _VARIABLE.findall(text):
        yield from wrong_variable(field, name, context)


def wrong_variable(field: str, name: str, context: RunContext) -> Faults:
    """Yield the reason if the variable `name` cannot be sent.

    It may be unset in a command that runs no agent.
    """
    never = list(refused({name: None}))
    for message in never:
        yield field, message
    value = context.env.get(name, "").strip()
    if not value and not never and context.runs_agents:
        yield field, f"the environment variable {name!r} is not set"
    if not _SENDABLE.fullmatch(value):
        yield field, f"{name!r} {_UNSENDABLE}"
