"""A run beside its baseline."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.run_language import FACTS, columns, meta, past

from ci_eval.gate.pairing import Group, groups_of, pool
from ci_eval.records.results import CriterionFacts
from ci_eval.stats.permutation import Sample

SECONDS = FACTS.model_copy(update={"better": "lower", "threshold": 100.0, "interval": None})
GROWS = SECONDS.model_copy(update={"threshold": None, "informational": True, "max_growth": 0.5})


def group(now: str, *before: str, facts: CriterionFacts = FACTS, max_drop: float = 0.02) -> Group:
    run, values = meta(facts=facts), columns(now, facts)
    pooled = pool(run, values, past(*before, facts=facts))
    (found,) = groups_of(run, values, pooled, max_drop, {})
    return found


def sample(now: str, *before: str, look: int = 0, facts: CriterionFacts = FACTS) -> Sample:
    found = group(now, *before, facts=facts)
    (one,) = found.samples_of(found.pairs, look)
    return one


OBSERVED = st.lists(st.sampled_from(["1", "0", "0.3", "error", "skip"]), min_size=1, max_size=3)
ROUNDS = st.lists(OBSERVED.map(" ".join), min_size=1, max_size=2).map(" | ".join)
RUN = st.lists(ROUNDS, min_size=1, max_size=6).map(
    lambda cases: "\n".join(f"case_{number} {each}" for number, each in enumerate(cases))
)


@given(RUN, st.lists(RUN, min_size=1, max_size=2), st.integers(0, 1))
def test_samples_that_are_made_from_arrays_are_those_of_each_case(now, before, look):
    found = group(now, *before, facts=FACTS)
    pairs = found.pairs

    by_case = {
        case: [tuple(row[:new]), tuple(row[new:])]
        for (new, _), (cases, rows) in found.samples(look).tables.items()
        for case, row in zip(cases, rows.tolist(), strict=True)
    }
    expected = zip(pairs, found.samples_of(pairs, look), strict=True)
    assert by_case == {case: [each.new, each.old] for case, each in expected}


def test_runs_of_the_baseline_are_pooled_case_by_case():
    found = group("x 1\ny 0", "x 1 0\ny 1", "x 1 1")

    assert found.pairs["x"].base == 0.75
    assert found.pairs["y"].base == 1
    assert found.drop == pytest.approx((-0.25 + 1) / 2)


def test_runs_that_are_alike_are_exchanged_as_a_whole():
    # The repeats of a run may have more in common than those of different runs.
    assert sample("x 1 0", "x 1 1", "x 0 0") == Sample((0.5,), (1.0, 0.0))


def test_of_runs_with_other_numbers_of_repeats_as_many_count_as_the_shortest_has():
    assert sample("x 1", "x 1 1 0") == Sample((1.0,), (1.0,))
    assert sample("x 1 0 0", "x 1 0", "x 0 0 1") == Sample((0.5,), (0.5, 0.0))


def test_the_rounds_of_a_stored_run_are_one_unit():
    assert sample("x 1", "x 0 | 1") == Sample((1.0,), (0.0,))


def test_rounds_are_runs_of_the_change():
    text = "x 1 0 | 0 0 | 1 1"

    assert sample(text, "x 1 1", look=0).new == (0.5,)
    assert sample(text, "x 1 1", look=1).new == (0.5, 0.0)
    assert sample(text, "x 1 1", look=2).new == (0.5, 0.0, 1.0)


@pytest.mark.parametrize(
    ("now", "first", "last"),
    [
        # Skipped in one round, or never drawn again.
        ("x skip | 1 | 0", (1.0,), (1.0, 0.0)),
        ("x 1 | skip | 0", (1.0,), (1.0, 0.0)),
        ("x 1", (1.0,), (1.0,)),
    ],
)
def test_a_case_that_lacks_a_round_has_those_that_measured_it(now, first, last):
    assert sample(now, "x 1", look=0).new == first
    assert sample(now, "x 1", look=2).new == last


def test_a_run_of_the_baseline_that_measured_nothing_of_a_case_is_none():
    assert sample("x 1", "x error", "x 0", "x skip").old == (0.0,)


def test_what_is_missing_now_counts_as_the_best_there_is():
    assert sample("x 0 error", "x 1 1") == Sample((0.0, 1.0), (1.0, 1.0))
    lower = FACTS.model_copy(update={"better": "lower"})
    assert sample("x 1 error", "x 0 0", facts=lower) == Sample((-1.0, -0.0), (-0.0, -0.0))


def test_what_nothing_bounds_is_not_compared_where_something_is_missing():
    assert {*group("x 1 error\ny 1", "x 1\ny 1", facts=SECONDS).pairs} == {"y"}


def test_trials_that_confirm_are_no_part_of_any_mean():
    found = group("x 1 ! 0 0 0", "x 1")

    assert found.drop == 0
    assert next(found.samples_of(found.pairs, 0)).new == (1.0,)


def test_drops_are_shares_of_the_interval_or_of_the_mean_of_the_baseline():
    stars = FACTS.model_copy(update={"interval": (1.0, 5.0)})

    assert sample("x 2", "x 4", facts=stars) == Sample((0.5,), (1.0,))
    found = group("x 10\ny 40", "x 20\ny 60", facts=SECONDS)
    assert found.scale == 40
    assert next(found.samples_of(found.pairs, 0)) == Sample((-0.25,), (-0.5,))
    assert found.least == pytest.approx(0.8)


def test_growth_that_is_tolerated_is_taken_off_beforehand():
    found = group("x 12", "x 10", facts=GROWS)

    (shown,) = found.samples_of(found.pairs, 0)
    assert (*shown.new, *shown.old) == pytest.approx((-1.2, -1.5))
    assert found.least == 5
    # Of a measure where higher is better it is what may be lost.
    higher = GROWS.model_copy(update={"better": "higher"})
    assert sample("x 8", "x 10", facts=higher) == Sample((0.8,), (0.5,))


@pytest.mark.parametrize(
    ("before", "steady"),
    [
        (["x 1\ny 1"], False),
        (["x 1\ny 1"] * 2, True),
        # Repeats of one run may have more in common than runs have.
        (["x 1 1\ny 1 1"], False),
        (["x 1\ny 1", "x 1\ny 0"], False),
        # y is new, and says nothing of the others.
        (["x 1\ny 1", "x 1"], True),
        (["x 0.9\ny 1", "x 0.91\ny 1"], False),
    ],
)
def test_history_is_steady_where_it_could_have_varied_and_did_not(before, steady):
    assert group("x 1\ny 1", *before).steady is steady


@pytest.mark.parametrize("now", ["x 1", "x 1\nflaky@2 1"])
def test_to_leave_the_flaky_case_out_or_to_change_it_makes_no_other_one_steady(now):
    assert not group(now, "x 1\nflaky@1 1", "x 1\nflaky@1 0").steady
    assert group(now, "x 1\nflaky@1 1", "x 1\nflaky@1 1").steady


def test_runs_can_be_exchanged_in_as_many_ways_as_all_cases_together():
    # 2 over 1, and 3 over 1
    assert group("x 1\ny 1", "x 1\ny 1", "x 1").exchanges == 6
    assert group("\n".join(f"n{n} 1" for n in range(200)), "n0 1").exchanges == 2


@pytest.mark.parametrize(
    ("update", "tested"),
    [
        ({}, True),
        ({"tier": "warn"}, True),
        ({"tier": "inform"}, False),
        ({"informational": True, "threshold": None}, False),
        ({"informational": True, "threshold": None, "max_growth": 0.0}, True),
    ],
)
def test_what_is_tested(update, tested):
    facts = FACTS.model_copy(update=update)

    assert group("x 1", "x 1", facts=facts).tested is tested
    assert not group("x 1", "y 1", facts=facts).tested
