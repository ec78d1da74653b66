"""How many independent tests related ones are worth."""

from random import Random

import pytest

from ci_eval.stats.effective_test_count import MAX_GROUPS, effective_size
from ci_eval.stats.permutation import Sample, Samples

RATE = 0.02


def made(runs: list[list[float]], *scope: str) -> Samples:
    """Return a group whose baseline had `runs`, a list of values for each case."""
    samples = ((f"{n}", Sample((0.5,), tuple(each))) for n, each in enumerate(runs))
    return Samples.of(scope, samples)


def noise(seed: int, cases: int = 40, runs: int = 5) -> list[list[float]]:
    random = Random(seed)
    return [[random.random() for _ in range(runs)] for _ in range(cases)]


def test_one_test_is_one():
    assert effective_size([made(noise(1))], [], RATE) == 1


def test_tests_that_always_agree_are_one():
    one = made(noise(1))

    assert effective_size([one] * 4, [], RATE) == pytest.approx(1, abs=0.02)
    # Their mean is the same again.
    assert effective_size([one] * 4, [0, 1, 2, 3], RATE) == pytest.approx(1, abs=0.02)


def test_tests_with_nothing_in_common_are_nearly_as_many_as_they_are():
    worth = effective_size([made(noise(seed, 400)) for seed in range(4)], [], RATE)

    assert 3.7 < worth <= 4


def test_the_more_they_have_in_common_the_less_they_are_worth():
    common, own = noise(1, 200), noise(2, 200)

    def worth(share: float) -> float:
        mixed = [
            [share * a + (1 - share) * b for a, b in zip(one, two, strict=True)]
            for one, two in zip(common, own, strict=True)
        ]
        return effective_size([made(common), made(mixed)], [], RATE)

    found = [worth(share) for share in (0.0, 0.5, 0.8, 1.0)]
    assert found == sorted(found, reverse=True)
    assert found[0] - found[-1] > 0.8


def test_a_baseline_of_one_run_says_nothing_of_what_they_have_in_common():
    groups = [made(noise(seed, runs=1)) for seed in range(3)]

    assert effective_size(groups, [0, 1, 2], RATE) == 4


def test_what_never_varied_counts_as_a_test_of_its_own():
    steady = made([[1.0] * 5] * 40)
    one = made(noise(1))

    assert effective_size([steady, steady], [0, 1], RATE) == 3
    assert effective_size([one, one, steady], [], RATE) == pytest.approx(2, abs=0.02)


def test_too_many_tests_are_taken_for_independent():
    one = made(noise(1, cases=3))

    assert effective_size([one] * (MAX_GROUPS + 1), [0, 1], RATE) == MAX_GROUPS + 2


def test_cases_whose_runs_do_not_fit_together_have_nothing_in_common():
    # As many values in all, and of each case another number.
    first, second = made([[0.0, 1.0], [0.0, 1.0, 1.0]]), made([[0.0, 1.0, 1.0], [0.0, 1.0]])

    assert effective_size([first, second], [], RATE) == pytest.approx(2, abs=0.03)


def test_criteria_on_other_evalsets_have_no_case_in_common():
    one = noise(1)
    groups = [made(one, "a", "e"), made(one, "a", "f")]

    assert effective_size(groups, [], RATE) == pytest.approx(2, abs=0.03)
