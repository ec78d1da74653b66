"""Agreement, worked by hand, by its laws, and by counting every table there can be."""

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.cli.judge_check.agreement import (
    Agreement,
    Distance,
    Interval,
    Share,
    kappa,
    kappa_error,
)

PASS, FAIL = True, False


def agreement(both: int, missed: int, let_pass: int, caught: int) -> Agreement:
    cells = {(PASS, PASS): both, (PASS, FAIL): missed, (FAIL, PASS): let_pass, (FAIL, FAIL): caught}
    return Agreement.of([said for said, count in cells.items() for _ in range(count)])


def estimate(found: Interval | None) -> Interval:
    assert found is not None
    return found


def test_kappa_worked_by_hand():
    # observed 35/50 = 0.7; expected 0.5 * 0.6 + 0.5 * 0.4 = 0.5; (0.7 - 0.5) / 0.5 = 0.4
    assert kappa([20, 5, 10, 15]) == pytest.approx(0.4)
    # slopes 0.68, -1.32, -1.08, 0.92; mean 0.2, mean of squares 0.8464; sqrt(0.8064 / 50)
    assert kappa_error([20, 5, 10, 15]) == pytest.approx(0.126996, abs=1e-6)


def test_the_table_and_its_shares():
    found = agreement(20, 5, 10, 15)

    assert found.table.rows == ((20, 5), (10, 15))
    assert (found.agreed.count, found.agreed.of) == (35, 50)
    assert estimate(found.passed.interval).value == 20 / 25
    assert estimate(found.failed.interval).value == 15 / 25
    assert estimate(found.kappa).value == pytest.approx(0.4)


CELLS = st.lists(st.integers(0, 40), min_size=4, max_size=4).filter(
    lambda cells: cells[0] + cells[1] and cells[2] + cells[3]
)


@given(CELLS)
def test_it_does_not_matter_which_verdict_is_called_pass(cells):
    turned = agreement(*reversed(cells)).kappa
    kept = agreement(*cells).kappa

    assert estimate(turned).model_dump() == pytest.approx(estimate(kept).model_dump())


@given(CELLS)
def test_an_interval_holds_its_estimate_and_stays_among_kappas(cells):
    found = estimate(agreement(*cells).kappa)

    assert -1 <= found.low <= found.value <= found.high <= 1


@given(CELLS)
def test_the_error_is_that_of_the_slopes(cells):
    """Against the slopes of kappa itself, measured by moving each cell a little."""
    cells = [each + 1 for each in cells]
    total = sum(cells)
    step = total * 1e-6
    slopes = [
        (kappa(_moved(cells, at, step)) - kappa(_moved(cells, at, -step))) / 2e-6 for at in range(4)
    ]
    # A cell that grows makes the total grow, so the mean slope is 0 here.
    square = sum(each / total * slope**2 for each, slope in zip(cells, slopes, strict=True))

    assert kappa_error(cells) == pytest.approx(math.sqrt(square / total), rel=1e-4, abs=1e-6)


def _moved(cells: list[int], at: int, step: float) -> list[float]:
    return [each + step * (at == index) for index, each in enumerate(cells)]


def test_a_judge_that_always_says_the_same_is_worth_nothing():
    found = agreement(18, 0, 2, 0)

    assert estimate(found.agreed.interval).value == 0.9
    assert estimate(found.kappa).value == 0.0


def test_full_agreement_on_few_labels_is_not_certain():
    few, many = agreement(5, 0, 0, 5), agreement(100, 0, 0, 100)

    assert estimate(few.kappa).value == estimate(many.kappa).value == 1.0
    assert estimate(few.kappa).low < 0.5
    assert 0.9 < estimate(many.kappa).low < 1


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ((9, 1, 0, 0), "all labels say pass"),
        ((0, 0, 1, 9), "all labels say fail"),
        ((0, 0, 0, 0), "nothing was decided"),
    ],
)
def test_labels_that_all_say_the_same_have_no_kappa(cells, reason):
    found = agreement(*cells)

    assert (found.kappa, found.kappa_reason) == (None, reason)


def test_a_share_of_nothing_has_no_interval():
    assert Share.make(0, 0).interval is None


@pytest.mark.parametrize(
    "shares",
    [
        (0.45, 0.05, 0.05, 0.45),
        (0.25, 0.25, 0.25, 0.25),
        (0.8, 0.05, 0.05, 0.1),
        (0.85, 0.05, 0.0, 0.1),
        (0.88, 0.02, 0.02, 0.08),
    ],
)
def test_nineteen_of_twenty_intervals_hold_the_truth_even_of_ten_labels(shares):
    """Sum the probabilities of all tables of ten labels whose interval holds the true kappa."""
    true, held, total = kappa(shares), 0.0, 0.0
    for cells in product(range(11), repeat=4):
        found = agreement(*cells).kappa if sum(cells) == 10 else None
        if found is None:
            continue
        chance = float(math.factorial(10))
        for count, share in zip(cells, shares, strict=True):
            chance *= share**count / math.factorial(count)
        total += chance
        held += chance * (found.low <= true <= found.high)

    assert 0.92 < held / total < 0.995


def test_distances_worked_by_hand():
    found = Distance.of([(0.5, 0.7), (0.2, 0.1), (1.0, 0.9), (0.0, 0.4)])

    # apart by 0.2, -0.1, -0.1, 0.4
    assert estimate(found.error).value == pytest.approx(0.2)
    assert estimate(found.bias).value == pytest.approx(0.1)
    # standard deviation of the four 0.2450, its error 0.1225, t of 3 degrees 3.182
    assert estimate(found.bias).high == pytest.approx(0.1 + 3.1824 * 0.12247, abs=1e-4)
    assert estimate(found.error).low == 0.0


def test_one_distance_has_no_interval():
    found = Distance.of([(0.5, 0.7)])

    assert (found.count, found.error, found.bias) == (1, None, None)
