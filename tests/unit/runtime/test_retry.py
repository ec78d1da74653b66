"""Pauses between attempts; `Retry-After` is tested with the errors of providers."""

from itertools import islice

from ci_eval.runtime.retry import Backoff


def some(backoff: Backoff, seed: str = "") -> list[float]:
    return list(backoff.pauses(5, seed=seed))


def test_pauses_grow_up_to_the_longest() -> None:
    assert some(Backoff(0.5, 3.0)) == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert some(Backoff(1.0, 10.0, factor=4.0)) == [1.0, 4.0, 10.0, 10.0, 10.0]
    assert some(Backoff(5.0, 3.0)) == [3.0] * 5


def test_pauses_never_overflow() -> None:
    assert next(islice(Backoff(1.0, 9.0).pauses(), 5000, None)) == 9.0


def test_jitter_takes_its_share_of_each_pause() -> None:
    for pause, longest in zip(some(Backoff(1.0, 8.0, jitter=0.5)), (1, 2, 4, 8, 8), strict=True):
        assert longest / 2 <= pause <= longest


def test_jitter_is_the_same_for_the_same_seed_alone() -> None:
    backoff = Backoff(1.0, 8.0, jitter=1.0)
    assert some(backoff, "a") == some(backoff, "a") != some(backoff, "b")
