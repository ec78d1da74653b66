"""Versions of models that answered, as their providers report them.

Providers update models under the same name, so a score can change without a change of the agent.
"""

from collections.abc import Iterable
from typing import Literal

from ci_eval.records.cases import Stored

MAX_SERVED = 50
"""Maximum number of versions that a record keeps."""
ModelRole = Literal["agent", "judge", "simulator"]
"""The role of a model in a run."""


class ServedModel(Stored):
    """One version of a model that answered."""

    role: ModelRole
    agent: str = ""
    """Name of the agent; empty for judges and simulated users."""
    requested: str = ""
    """Name of the model in the requests; empty if only the agent knows it."""
    version: str
    """The version, as the provider reports it."""
    fingerprint: str = ""
    """OpenAI's `system_fingerprint`: the configuration of the provider's servers; empty if none."""

    @property
    def label(self) -> str:
        """The version, with its fingerprint if it has one."""
        return f"{self.version} ({self.fingerprint})" if self.fingerprint else self.version


class ModelChange(Stored):
    """A model whose version differs from that in the baseline."""

    requested: str = ""
    """Name of the model in the requests; empty if only its user knows it."""
    before: tuple[str, ...]
    """The versions in the baseline."""
    now: tuple[str, ...]
    """The versions in this run."""
    used_by: tuple[str, ...]
    """Its users: agents by name, `judges`, `simulated users`."""


def merged(*found: Iterable[ServedModel]) -> tuple[ServedModel, ...]:
    """Return each version once, at most `MAX_SERVED` of them."""
    every = dict.fromkeys(each for some in found for each in some)
    return tuple(every)[:MAX_SERVED]


def changed_models(
    now: Iterable[ServedModel], before: Iterable[ServedModel]
) -> tuple[ModelChange, ...]:
    """Return the models that answered with a version that did not answer in the baseline.

    A version that no longer answers does not count: a smaller run may not have reached it.
    """
    earlier = _by_user(before)
    users: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (role, agent, requested), versions in _by_user(now).items():
        labels = _changed(earlier.get((role, agent, requested), []), versions)
        if labels:
            users.setdefault((requested, *labels), []).append(_user(role, agent))
    return tuple(
        ModelChange(requested=requested, before=then, now=here, used_by=tuple(used_by))
        for (requested, then, here), used_by in users.items()
    )


_User = tuple[ModelRole, str, str]
"""The role, the agent, and the model that it requests."""


def _by_user(found: Iterable[ServedModel]) -> dict[_User, list[ServedModel]]:
    users: dict[_User, list[ServedModel]] = {}
    for each in found:
        users.setdefault((each.role, each.agent, each.requested), []).append(each)
    return users


def _changed(
    before: list[ServedModel], now: list[ServedModel]
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the versions before and now; `None` if nothing new answers."""
    if not before:
        return None
    then, here = ([each.version for each in some] for some in (before, now))
    if not set(here) <= set(then):
        return _once(then), _once(here)
    # Several fingerprints answer at the same time, so only a complete change is meaningful.
    older, newer = ({each.label for each in some if each.fingerprint} for some in (before, now))
    if older and newer and not older & newer:
        return _once(each.label for each in before), _once(each.label for each in now)
    return None


def _once(labels: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(labels)))


def _user(role: ModelRole, agent: str) -> str:
    return {"agent": f"agent {agent}", "judge": "judges", "simulator": "simulated users"}[role]
