"""When a provider serves another version of a model than in the baseline."""

import pytest

from ci_eval.records.model_versions import (
    MAX_SERVED,
    ModelRole,
    ServedModel,
    changed_models,
    merged,
)


def models(*versions: str, role: ModelRole = "judge", agent: str = "") -> list[ServedModel]:
    """Return versions of the model `m`; a fingerprint follows `@`."""
    pairs = [each.partition("@") for each in versions]
    return [
        ServedModel(role=role, agent=agent, requested="m", version=name, fingerprint=fingerprint)
        for name, _, fingerprint in pairs
    ]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ([], ["1"]),
        (["1"], []),
        (["1"], ["1"]),
        (["1", "2"], ["2"]),
        (["1@a", "1@b"], ["1@b", "1@c"]),
        (["1"], ["1@a"]),
        (["1@a"], ["1"]),
    ],
)
def test_what_answered_before_or_is_unknown_is_no_change(before: list[str], now: list[str]) -> None:
    assert changed_models(models(*now), models(*before)) == ()


@pytest.mark.parametrize(
    ("before", "now", "shown"),
    [
        (["1"], ["2"], (("1",), ("2",))),
        (["1"], ["2", "1"], (("1",), ("1", "2"))),
        (["1@a"], ["2@a"], (("1",), ("2",))),
        (["1@a", "1@b"], ["1@c"], (("1 (a)", "1 (b)"), ("1 (c)",))),
    ],
)
def test_another_version_or_only_other_fingerprints_are_a_change(
    before: list[str], now: list[str], shown: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    (change,) = changed_models(models(*now), models(*before))
    assert (change.before, change.now) == shown
    assert (change.requested, change.used_by) == ("m", ("judges",))


def test_the_same_change_is_told_once_for_all_its_users() -> None:
    def by_all(version: str) -> list[ServedModel]:
        agents = [models(version, role="agent", agent=name)[0] for name in ("a", "b")]
        return [*agents, *models(version), *models(version, role="simulator")]

    (change,) = changed_models(by_all("2"), by_all("1"))
    assert change.used_by == ("agent a", "agent b", "judges", "simulated users")


def test_each_user_is_compared_with_itself() -> None:
    agent = models("2", role="agent", agent="a")
    assert changed_models([*agent, *models("1")], [*agent, *models("1")]) == ()
    assert changed_models(models("2"), [*agent, *models("1")])[0].used_by == ("judges",)


def test_each_version_is_kept_once_and_a_bounded_number() -> None:
    assert merged(models("1", "2"), models("2", "3")) == tuple(models("1", "2", "3"))
    assert len(merged(models(*map(str, range(2 * MAX_SERVED))))) == MAX_SERVED
