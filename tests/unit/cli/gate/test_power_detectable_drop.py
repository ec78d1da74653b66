"""How often the gate finds a drop: by formula, and as it is found in simulated runs."""

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np  # noqa: TID253  # no command starts with this
import pytest
from support.run_language import meta

from ci_eval.cli.gate.power_both_arms import ArmsSetting
from ci_eval.cli.gate.power_detectable_drop import Noise, Setting, fewest, noise_of
from ci_eval.config.config_schema import GateOptions
from ci_eval.gate.between_runs import PRIOR_RUNS, PRIOR_SHARE
from ci_eval.gate.both_arms import LOOKS, ArmDrops
from ci_eval.gate.compare import compare
from ci_eval.run_files.score_cell import Cell
from ci_eval.run_files.score_column import Column
from ci_eval.run_files.score_table import Columns, Past


def cell(*units):
    return Cell(units=units)


def test_the_noise_of_trials_is_told_from_that_of_runs():
    # Each run has the variance 2 within; the means 1, 11 and 21 have 100, of which 1 is theirs.
    found = noise_of([cell((0.0, 2.0), (10.0, 12.0), (20.0, 22.0))])

    assert found == Noise(within=2.0, between=99.0, runs=True)
    assert found.of_run(4) == pytest.approx(99.5)


def test_where_each_case_is_tried_once_in_a_run_the_runs_tell():
    assert noise_of([cell((0.0,), (1.0,)), cell((1.0,), (1.0,))]) == Noise(0.25, 0.0, runs=True)


def test_one_run_with_repeats_tells_of_its_trials_alone():
    assert noise_of([cell((0.0, 1.0)), cell((1.0, 1.0))]) == Noise(0.25, 0.0, runs=False)


def test_one_trial_of_each_case_tells_nothing():
    assert noise_of([cell((0.0,)), cell((1.0,)), cell()]) is None


def test_runs_that_differ_as_chance_has_it_have_nothing_in_common():
    rng = np.random.default_rng(1)
    cells = [cell(*map(tuple, rng.normal(size=(5, 3)))) for _ in range(200)]

    found = noise_of(cells)
    assert found.between == 0.0
    assert found.within == pytest.approx(1.0, abs=0.1)


def test_the_power_is_that_of_the_formula():
    """With many runs, what the drop adds to the spread is nothing, and the formula is Miller's."""
    setting = Setting(cases=100, runs=10_000, now=0.04, before=0.04, rate=0.005, least=0.0)
    normal = NormalDist()
    error = math.sqrt(0.04 * (1 + 1 / 10_000) / 100)

    for drop in (0.02, 0.05, 0.07):
        expected = normal.cdf(drop / error - normal.inv_cdf(0.995))
        assert setting.power(drop) == pytest.approx(expected, abs=0.001)
    # (z of 0.995 + z of 0.8) standard errors: 2.5758 + 0.8416.
    assert setting.detectable(0.8, 1.0) == pytest.approx(3.4174 * error, abs=0.0002)


def test_a_drop_that_never_counts_is_never_found():
    setting = Setting(cases=10_000, runs=5, now=0.04, before=0.04, rate=0.01, least=0.05)

    assert setting.power(0.03) == 0.0
    assert setting.power(0.05) == pytest.approx(0.5, abs=0.01)


def test_what_never_varies_shows_every_drop_that_counts():
    setting = Setting(cases=3, runs=5, now=0.0, before=0.0, rate=0.01, least=0.02)

    assert (setting.power(0.02), setting.power(0.019)) == (1.0, 0.0)
    assert setting.detectable(0.8, 1.0) == pytest.approx(0.02, abs=0.0002)


def test_too_few_cases_show_no_drop_at_all():
    """With one run before, the exchanged runs spread as far as the drop itself."""
    setting = Setting(cases=5, runs=1, now=0.01, before=0.01, rate=0.005, least=0.0)

    assert setting.detectable(0.8, 1.0) is None


def test_several_looks_err_no_more_and_find_more():
    alone = Setting(cases=100, runs=5, now=0.04, before=0.04, rate=0.005, least=0.0)
    thrice = Setting(100, 5, 0.04, 0.04, 0.005, 0.0, doubts=(0.06, 0.02))

    # A drop so small that it is none.
    assert thrice.power(1e-9) == pytest.approx(0.005, abs=0.0015)
    assert thrice.power(0.05) > alone.power(0.05) + 0.1


def test_the_smallest_number_that_is_good_is_found():
    assert fewest(lambda number: number >= 37, 1000) == 37
    assert fewest(lambda _: True, 1000) == 1
    assert fewest(lambda number: number >= 1000, 1000) == 1000
    assert fewest(lambda _: False, 1000) is None


# --- Beside the test itself -------------------------------------------------------------------

CASES, RUNS, REPEATS, SIMULATED = 40, 5, 3, 200
DAY = PRIOR_SHARE * 0.43
"""What a day adds: trials that pass 60 to 80 % vary by 0.40 to 0.49."""
ONCE = GateOptions(on_inconclusive="warn")


def scored(*rounds):
    """Return the columns of a run: for each round a row of repeats for each case."""
    found = Columns()
    column = found.column(("a", "e", "c"))
    for number, values in enumerate(rounds):
        for case, row in enumerate(values):
            for value in row:
                column.add(str(case), float(value), unit=number)
    return found


def share_found(draw, drop, gate=ONCE):
    """Return how often the gate finds a drop among simulated runs."""
    rng = np.random.default_rng(7)
    found = 0
    for _ in range(SIMULATED):
        days = rng.normal(0.0, DAY, RUNS + 1)
        past = [Past(meta(f"p{run}"), scored(draw(rng, days[run]))) for run in range(RUNS)]
        rounds, outcome = [], "inconclusive"
        while outcome == "inconclusive" and len(rounds) < gate.looks:
            rounds.append(draw(rng, drop + days[RUNS]))
            outcome = compare(meta(), scored(*rounds), past, gate).deltas[0].outcome
        found += outcome == "regressed"
    return found / SIMULATED


def marks(rng, drop):
    hard = np.linspace(0.5, 0.7, CASES)[:, None]
    return np.clip(rng.normal(hard - drop, 0.1, (CASES, REPEATS)), 0, 1)


def passes(rng, drop):
    chances = np.linspace(0.6, 0.95, CASES)[:, None]
    return rng.random((CASES, REPEATS)) < chances - drop


def setting_of(draw, **more):
    """Return the test that the gate makes, with what many runs tell of the noise."""
    rng = np.random.default_rng(8)
    history = [scored(draw(rng, 0.0)).groups["a", "e", "c"] for _ in range(40)]
    pooled = Column(history[0].cases)
    for column in history:
        pooled.pool(column, column.numbers, as_unit=True)
    once = noise_of(pooled.values()).of_run(REPEATS)
    days = {"day": DAY * math.sqrt(1 + 1 / RUNS), "freedom": PRIOR_RUNS + RUNS - 1}
    return Setting(CASES, RUNS, once, once, rate=0.9 * 0.02, least=0.02, **days, **more)


@pytest.mark.slow
@pytest.mark.parametrize("draw", [marks, passes])
def test_the_predicted_drop_is_found_as_often_as_it_is_said(draw):
    setting = setting_of(draw)
    drop = setting.detectable(0.8, 1.0)

    # Each baseline estimates its own days, which the formula takes for known.
    assert share_found(draw, drop) == pytest.approx(0.8, abs=0.12)
    assert share_found(draw, drop / 2) == pytest.approx(setting.power(drop / 2), abs=0.12)


@pytest.mark.slow
def test_with_reruns_it_is_found_as_often_as_it_is_said():
    gate = GateOptions(on_inconclusive="rerun")
    # In doubt is a single hypothesis up to 0.15 at the first look, and 0.06 at the second.
    setting = setting_of(passes, doubts=(0.15, 0.06))
    drop = setting.detectable(0.8, 1.0)

    assert drop < setting_of(passes).detectable(0.8, 1.0)
    assert share_found(passes, drop, gate) == pytest.approx(0.8, abs=0.12)


def share_found_in_both_arms(draw, drop):
    """Return how often the gate finds a drop if it runs the merge base, too."""
    rng = np.random.default_rng(7)
    found = 0
    for _ in range(SIMULATED):
        past = [Past(meta(f"p{run}"), scored(draw(rng, 0.0))) for run in range(RUNS)]
        change, base = [], []
        for looks in ((1, 0), *LOOKS):
            change += [draw(rng, drop) for _ in range(looks[0] - len(change))]
            base += [draw(rng, 0.0) for _ in range(looks[1] - len(base))]
            now = scored(*change)
            before = scored(*base) if base else Columns(evalsets=now.evalsets)
            compared = compare(meta(), now, past, GateOptions(), base=Past(meta(), before))
            if (outcome := compared.deltas[0].outcome) != "inconclusive":
                break
        found += outcome == "regressed"
    return found / SIMULATED


@pytest.mark.slow
@pytest.mark.parametrize("draw", [marks, passes])
def test_with_both_arms_it_is_found_as_often_as_it_is_said(draw):
    doubts = tuple(map(min, ArmDrops.shared_doubt, ArmDrops.most_doubt))
    once = setting_of(draw).now
    setting = ArmsSetting(CASES, RUNS, once, once, rate=0.9 * 0.02, least=0.02, doubts=doubts)
    drop = setting.detectable(0.8, 1.0)

    assert drop < setting_of(draw).detectable(0.8, 1.0)
    assert share_found_in_both_arms(draw, drop) == pytest.approx(0.8, abs=0.12)
    assert share_found_in_both_arms(draw, drop / 2) == pytest.approx(
        setting.power(drop / 2), abs=0.12
    )


def test_a_small_budget_allows_fewer_looks_at_both_arms():
    setting = ArmsSetting(CASES, RUNS, 0.1, 0.1, rate=0.018, least=0.02, doubts=(0.18, 0.4, 0.1))

    assert len(setting.levels()) == len(LOOKS)
    assert len(replace(setting, budget=4.0).levels()) == 2
    assert replace(setting, budget=1.0).power(1.0) == 0.0
