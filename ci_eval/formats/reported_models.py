"""Versions of models, as providers report them with an answer."""

from ci_eval.records.model_versions import ModelRole, ServedModel
from ci_eval.text.sanitize import one_line

MAX_NAME_CHARS = 100
"""Maximum length of a name or version, in characters; longer ones are cut."""


def served(
    role: ModelRole,
    requested: str | None,
    version: str | None,
    fingerprint: str | None = None,
    *,
    agent: str = "",
) -> tuple[ServedModel, ...]:
    """Return the sanitized version that a provider reported; empty if it reported none."""
    if not version:
        return ()
    names = (one_line(each or "", MAX_NAME_CHARS) for each in (requested, version, fingerprint))
    known = dict(zip(("requested", "version", "fingerprint"), names, strict=True))
    return (ServedModel(role=role, agent=agent, **known),)
