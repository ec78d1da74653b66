"""Personas for templates in the configuration, with ADK's attributes and no others.

A template could use every attribute of the objects that it gets.
"""

from typing import NamedTuple

from ci_eval.formats.personas import Behavior, Persona


class ShownBehavior(NamedTuple):
    """One behaviour of a persona."""

    name: str
    description: str
    behavior_instructions: tuple[str, ...]
    violation_rubrics: tuple[str, ...]

    def get_behavior_instructions_str(self) -> str:
        """Return the instructions as a list, as ADK's function of this name does."""
        return _listed(self.behavior_instructions)

    def get_violation_rubrics_str(self) -> str:
        """Return the violations of the behaviour as a list, as ADK does."""
        return _listed(self.violation_rubrics)


class ShownPersona(NamedTuple):
    """A kind of user."""

    id: str
    description: str
    behaviors: tuple[ShownBehavior, ...]


def shown(persona: Persona) -> ShownPersona:
    """Return the parts of `persona` that a template may use."""
    return ShownPersona(persona.id, persona.description, tuple(map(_shown, persona.behaviors)))


def _shown(behavior: Behavior) -> ShownBehavior:
    return ShownBehavior(*(getattr(behavior, name) for name in ShownBehavior._fields))


def _listed(lines: tuple[str, ...]) -> str:
    return "\n".join(f"  * {line}" for line in lines)
