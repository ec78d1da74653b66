"""Personas of simulated users: ADK's three by name, and those described in cases.

The model that plays the user gets the instructions; the judge of simulated users also gets the
violations.  The names are ADK's; the texts are ci-eval's.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from pydantic import ValidationError

from ci_eval.records.cases import AdkRecord, Json
from ci_eval.text import templates
from ci_eval.text.json_text import with_leaves
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.validation_messages import describe, explain

STOP_SIGNAL = "</finished>"
"""Text with which ADK's simulated user ends the conversation."""
_NAMED_SIGNAL = re.compile(r"\{\{\s*stop_signal\s*\}\}")


class Behavior(AdkRecord, extra="ignore"):
    """One behaviour of a persona, with its violations."""

    name: str
    description: str
    behavior_instructions: tuple[str, ...]
    """Instructions for the model that plays the persona."""
    violation_rubrics: tuple[str, ...]
    """Violations of the behaviour, for a judge."""


class Persona(AdkRecord, extra="ignore"):
    """A kind of user."""

    id: str
    description: str
    behaviors: tuple[Behavior, ...]


def fault(value: Json) -> str:
    """Return the error in the `user_persona` of a scenario; empty if there is none."""
    if value is None or (isinstance(value, str) and value in known()):
        return ""
    if isinstance(value, str):
        return f"unknown persona {value[:80]!r}{did_you_mean(value[:80], known())}"
    if not isinstance(value, Mapping):
        return f"expected the name or the description of a persona, found {describe(value)}"
    try:
        Persona.model_validate(value)
    except ValidationError as exc:
        loc, message = next(explain(exc, Persona))
        return ".".join(map(str, loc)) + f": {message}" if loc else message
    return ""


def persona_of(value: Json, stop_signal: str = STOP_SIGNAL) -> Persona | None:
    """Return the persona with this name or description; `None` if it is invalid.

    `{{ stop_signal }}` is replaced in its texts; nothing else is.
    """
    named = known().get(value) if isinstance(value, str) else None
    if named is None and fault(value):
        return None
    given = named.model_dump(mode="json") if named else value
    if given is None:
        return None

    def with_signal(leaf: Json) -> Json:
        return _NAMED_SIGNAL.sub(lambda _: stop_signal, leaf) if isinstance(leaf, str) else leaf

    return Persona.model_validate(with_leaves(given, with_signal))


def persona_text(persona: Persona, *, to_judge: bool = False) -> str:
    """Return the text of `persona`, one item per line; for a judge, with the violations."""
    return "\n".join(_lines(persona, to_judge=to_judge))


def _lines(persona: Persona, *, to_judge: bool) -> Iterator[str]:
    yield from filter(None, (persona.id, persona.description))
    for each in persona.behaviors:
        yield from filter(None, (each.name, each.description))
        yield from (f"- {line}" for line in each.behavior_instructions)
        if to_judge:
            yield from (f"- It breaks this where: {line}" for line in each.violation_rubrics)


def described(value: Json, stop_signal: str) -> str:
    """Return the persona's text for a judge; empty without a persona."""
    persona = persona_of(value, stop_signal)
    return persona_text(persona, to_judge=True) if persona else ""


@cache
def known() -> Mapping[str, Persona]:
    """Return the personas that a scenario may name, by name: ADK's, in ci-eval's words."""
    import yaml

    listed = yaml.safe_load(templates.source("simulator/personas.yaml"))["personas"]
    return {each["id"]: Persona.model_validate(each) for each in listed}
