"""A persona as a template of the configuration may use it: ADK's names, and nothing else.

What a template is given could be used for all that it can do, so it can do next to nothing.
"""

from typing import NamedTuple

from ci_eval.formats.personas import Behavior, Persona


class ShownBehavior(NamedTuple):
    """One thing that a persona does."""

    name: str
    description: str
    behavior_instructions: tuple[str, ...]
    violation_rubrics: tuple[str, ...]

    def get_behavior_instructions_str(self) -> str:
        """Return the instructions as a list, as ADK's function of this name does."""
        return _listed(self.behavior_instructions)

    def get_violation_rubrics_str(self) -> str:
        """Return what breaks the behaviour as a list, likewise."""
        return _listed(self.violation_rubrics)


class ShownPersona(NamedTuple):
    """A kind of user."""

    id: str
    description: str
    behaviors: tuple[ShownBehavior, ...]


def shown(persona: Persona) -> ShownPersona:
    """Return what a template may use of `persona`."""
    return ShownPersona(persona.id, persona.description, tuple(map(_shown, persona.behaviors)))


def _shown(behavior: Behavior) -> ShownBehavior:
    return ShownBehavior(
        behavior.name,
        behavior.description,
        behavior.behavior_instructions,
        behavior.violation_rubrics,
    )


def _listed(lines: tuple[str, ...]) -> str:
    return "\n".join(f"  * {line}" for line in lines)
