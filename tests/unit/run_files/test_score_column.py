"""Columns hold in arrays what cells show one by one."""

import math
from collections import defaultdict

import numpy as np  # noqa: TID253  # the arrays are its own
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.run_language import FACTS

from ci_eval.run_files.score_cases import Cases
from ci_eval.run_files.score_cell import (
    CONFIRMING,
    LOST,
    MEASURED,
    SKIPPED,
    UNCONFIRMED,
    Cell,
    mean,
)
from ci_eval.run_files.score_column import RANKED, Column, mean_of

KINDS = (MEASURED, LOST, CONFIRMING, UNCONFIRMED, SKIPPED)
VALUES = st.sampled_from([0.0, 0.1, 0.4, 0.5, 1.0])
OBSERVED = st.tuples(st.sampled_from("abcde"), VALUES, st.sampled_from(KINDS), st.integers(0, 2))


def column_of(observed, cases=None):
    """Return a column, looked at halfway, as a gate does before further rounds."""
    found = Column(cases)
    for number, (case, value, kind, unit) in enumerate(observed):
        found.add(case, value, kind, unit if kind in (MEASURED, LOST) else 0)
        if 2 * number == len(observed):
            list(found.values())
    return found


def parts(cell: Cell):
    return cell.units, cell.confirming, cell.unconfirmed, cell.lost, cell.skipped


def parts_of(observed):
    """Return the expected cell of one case, without arrays."""
    units: list[list[float]] = []
    for _, value, kind, unit in observed:
        if kind == MEASURED:
            units += [[] for _ in range(unit + 1 - len(units))]
            units[unit].append(value)
    kinds = [kind for _, _, kind, _ in observed]
    return (
        tuple(map(tuple, units)),
        tuple(value for _, value, kind, _ in observed if kind == CONFIRMING),
        kinds.count(UNCONFIRMED),
        tuple(unit for _, _, kind, unit in observed if kind == LOST),
        kinds.count(SKIPPED),
    )


@given(st.lists(OBSERVED, max_size=30))
def test_a_cell_shows_the_observations_of_its_case_in_their_order(observed):
    by_case = defaultdict(list)
    for each in observed:
        by_case[each[0]].append(each)
    found = column_of(observed)

    assert [*found] == [*by_case]
    assert [parts(cell) for cell in found.values()] == [*map(parts_of, by_case.values())]
    assert all(parts(found[case]) == parts_of(each) for case, each in by_case.items())
    assert "z" not in found
    assert found.get("z") is None
    with pytest.raises(KeyError):
        found["z"]


@given(st.lists(OBSERVED, min_size=1, max_size=30))
def test_arrays_say_what_cells_say(observed):
    found = column_of(observed)
    cells = [*found.values()]

    assert found.counts(MEASURED).tolist() == [cell.measured for cell in cells]
    assert found.counts(LOST, UNCONFIRMED).tolist() == [c.errors + c.unconfirmed for c in cells]
    assert found.units.tolist() == [len(cell.units) for cell in cells]
    assert found.firsts.tolist() == [len(cell.units[0]) if cell.units else 0 for cell in cells]
    assert found.varied.tolist() == [cell.varied for cell in cells]
    statuses = [cell.status(FACTS) for cell in cells]
    assert [RANKED[rank] for rank in found.ranks(FACTS)] == statuses
    ended = found.ended(FACTS)
    counts = [ended.skipped, ended.passed, ended.errors, ended.failed]
    assert counts == [*map(statuses.count, RANKED)]
    assert found.lacking(FACTS) == [case for case, cell in found.items() if cell.lacks(FACTS)]
    means = [None if math.isnan(each) else each for each in found.means.tolist()]
    assert means == [cell.value for cell in cells]
    filled = [None if math.isnan(each) else each for each in found.with_missing(1.0).tolist()]
    assert filled == [cell.with_missing(1.0) for cell in cells]
    known = [each for each in means if each is not None]
    assert mean_of(found) == (math.fsum(known) / len(known) if known else None)
    bad = [
        [value < 0.5 for value in (*cell.observations, *cell.confirming)] + [False] * cell.errors
        for cell in cells
    ]
    assert found.failing(FACTS).tolist() == [bool(each) and all(each) for each in bad]


@given(st.lists(OBSERVED, min_size=1, max_size=30), st.integers(1, 3))
def test_a_copy_has_the_first_units_or_a_value_for_what_is_missing(observed, units):
    found = column_of(observed)

    for case, cell in found.only(units).items():
        whole = found[case]
        assert [*filter(None, cell.units)] == [*filter(None, whole.units[:units])]
        assert cell.lost == tuple(unit for unit in whole.lost if unit < units)
    for case, cell in found.filled(0.5).items():
        whole = found[case]
        assert (cell.lost, cell.measured) == ((), whole.measured + whole.errors)
        assert math.fsum(cell.observations) == math.fsum((*whole.observations, 0.5 * whole.errors))


@given(st.lists(st.lists(OBSERVED, max_size=20), min_size=1, max_size=4))
def test_each_pooled_run_is_one_unit_after_those_of_its_case(runs):
    cases = Cases()
    pooled = Column(cases)
    for case in "edcba":
        cases.number_of(case)
    expected = defaultdict(list)
    for observed in runs:
        run = column_of(observed)
        numbers = run.cases.numbers_in(cases)[run.numbers]
        numbers[[case == "a" for case in run]] = -1  # left out
        pooled.pool(run, numbers, as_unit=True)
        for case, cell in run.items():
            expected[case] += [sorted(cell.observations)] if cell.measured else []

    assert "a" not in pooled
    for case, cell in pooled.items():
        assert [sorted(unit) for unit in cell.units] == expected[case]


def test_cases_that_two_runs_have_are_the_same_if_their_contents_are():
    now, before = Cases(), Cases()
    for case, content in [("a", "1"), ("b", "2"), ("c", "3")]:
        now.number_of(case, content)
    for case, content in [("c", "3"), ("x", ""), ("b", "other")]:
        before.number_of(case, content)

    numbers = before.numbers_in(now)
    assert numbers.tolist() == [2, -1, 1]
    assert before.same_in(now, numbers).tolist() == [True, False, False]
    assert now.changed_in(before) == 1
    assert now.changed_in(Cases()) == 0


def test_a_column_takes_few_bytes_for_an_observation():
    found = Column()
    for number in range(1000):
        found.add(str(number), number / 1000)
    arrays = [each for each in vars(found).values() if hasattr(each, "itemsize")]
    held = sum(each.itemsize * len(each) for each in arrays)
    held += sum(each.nbytes for each in found.sorted())

    assert held <= 40 * 1000
    assert np.array_equal(found.means, np.arange(1000) / 1000)


@pytest.mark.parametrize(
    ("values", "found"),
    [((0.1, 0.2, 0.3), 0.2), ((0.6, 0.9, 0.9), 0.8), ((0.6, 0.7, 0.8), 0.7), ((0, 0, 1), 1 / 3)],
)
def test_rounding_does_not_move_a_mean_below_a_threshold(values, found):
    assert mean(values) == found
