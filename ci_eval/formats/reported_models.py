"""Versions of models, as providers report them beside an answer."""

from ci_eval.records.model_versions import ModelRole, ServedModel
from ci_eval.text.sanitize import one_line

MAX_NAME_CHARS = 100
"""The longest name or version that is kept, in characters."""


def served(
    role: ModelRole,
    requested: str | None,
    version: str | None,
    fingerprint: str | None = None,
    *,
    agent: str = "",
) -> tuple[ServedModel, ...]:
    """Clean the version that a provider reported beside an answer; empty if it reported none."""
    if not version:
        return ()
    names = (one_line(each or "", MAX_NAME_CHARS) for each in (requested, version, fingerprint))
    known = dict(zip(("requested", "version", "fingerprint"), names, strict=True))
    return (ServedModel(role=role, agent=agent, **known),)
