"""What the gate can see with the baseline that it has."""

from dataclasses import replace

import pytest
from support.run_language import FACTS, meta, past
from support.run_language import results as run_results

from ci_eval.cli.gate.power_analysis import Asked, outlook
from ci_eval.cli.gate.power_costs import Cost
from ci_eval.config.config_schema import GateOptions
from ci_eval.records.errors import UsageError
from ci_eval.run.baseline_choice import Baseline
from ci_eval.run_files.score_table import Columns, Past

NOISY = "\n".join(f"c{n} {n % 2} 1 1" for n in range(60))
CALM = "\n".join(f"c{n} 1 1 1" for n in range(60))
ASKED = Asked(
    "suite", GateOptions(on_inconclusive="warn"), repeats=3, window=5, power=0.8, drop=None
)
RERUN = GateOptions(on_inconclusive="rerun", rerun_budget=3)


def seen(*texts, facts=FACTS, **changes):
    found = outlook(
        replace(ASKED, **changes), Baseline(past(*texts, facts=facts)), Cost(seconds=2.0)
    )
    (only,) = found.criteria
    return found, only


def test_without_a_stored_run_nothing_can_be_told():
    with pytest.raises(UsageError, match="no run of 'suite' is stored") as refused:
        outlook(ASKED, Baseline(()), Cost())

    assert "--baseline-save" in refused.value.hint


def test_one_run_with_each_case_tried_once_tells_nothing():
    text = "\n".join(f"c{n} {n % 2}" for n in range(60))
    with pytest.raises(UsageError, match="has one run, with each case run once") as refused:
        outlook(ASKED, Baseline(past(text)), Cost())

    assert "repeats: 2" in refused.value.hint


def test_one_run_with_repeats_tells_of_trials_and_not_of_runs():
    _, only = seen(NOISY)

    # Every other case has 0 1 1: a variance of 1/3, and one of 1/6 on average.
    assert only.trial_sd == pytest.approx((1 / 6) ** 0.5)
    assert only.run_sd is None
    assert only.drop is not None


def test_the_level_is_what_the_gate_takes():
    found, only = seen(NOISY, NOISY)

    assert only.level == pytest.approx(0.9 * 0.02)
    assert found.hypotheses == {"block": 1}
    assert (found.runs, found.cases, found.looks) == (2, 60, 1)


def test_more_runs_and_more_repeats_see_more():
    drops = [
        seen(*[NOISY] * runs, repeats=repeats)[1].drop
        for runs, repeats in ((1, 1), (2, 1), (5, 1), (5, 3))
    ]

    assert drops == sorted(drops, reverse=True)
    assert len({*drops}) == 4


def test_where_nothing_ever_varied_the_smallest_drop_that_counts_is_seen():
    _, only = seen(CALM, CALM)

    assert only.steady
    assert only.drop == pytest.approx(0.02, abs=0.001)
    assert only.single.proven


def test_a_suite_of_two_cases_sees_no_drop():
    _, only = seen("a 1 0\nb 1 1", "a 1 1\nb 0 1")

    assert only.drop is None
    assert only.share is None


def test_what_a_wanted_drop_takes_is_enough_and_not_more():
    _, only = seen(*[NOISY] * 5, drop=0.08)

    assert only.share > 0.08
    assert only.wanted.repeats > 3
    assert only.wanted.cases > 60
    more = "\n".join(f"c{n} {n % 2} 1 1" for n in range(only.wanted.cases))
    _, then = seen(*[more] * 5)
    assert then.share == pytest.approx(0.08, abs=0.002)


def test_a_drop_that_is_let_through_cannot_be_wanted():
    _, only = seen(NOISY, NOISY, drop=0.02)

    assert (only.wanted.repeats, only.wanted.cases) == (None, None)
    assert only.wanted.reason == "gate.max_drop ignores drops this small"


def test_a_break_takes_trials_by_what_was_tried_before():
    # 60 cases, 15 trials before: 60 * (15/19)^15 (4/19)^4 = 0.0034, and 0.05 * 0.02 is allowed;
    # with 5 trials now it is 60 * (15/20)^15 (5/20)^5 = 0.00078.
    _, only = seen(*[NOISY] * 5)

    assert only.single.trials == 5
    assert (only.single.drawn, only.single.proven) == (False, False)
    assert seen(*[NOISY] * 5, repeats=5)[1].single.proven
    rerun = seen(*[NOISY] * 5, gate=RERUN)[1].single
    assert (rerun.trials, rerun.drawn, rerun.proven) == (5, True, True)


def test_reruns_see_more_by_looking_again():
    _, once = seen(*[NOISY] * 5)
    found, again = seen(*[NOISY] * 5, gate=RERUN)

    assert found.looks == 3
    assert again.drop < once.drop
    assert again.level < once.level


def test_a_measure_that_may_grow_shows_what_grows_more():
    facts = FACTS.model_copy(
        update={
            "interval": None,
            "threshold": None,
            "informational": True,
            "better": "lower",
            "max_growth": 0.2,
            "tier": "warn",
        }
    )
    text = "\n".join(f"c{n} 2 2.2 1.8" for n in range(60))
    _, only = seen(text, text, facts=facts)

    assert only.tier == "warn"
    assert only.mean == pytest.approx(2.0)
    assert 0.2 < only.share < 0.3
    assert only.single is None


def test_what_it_costs_follows_from_the_trials():
    found, _ = seen(*[NOISY] * 5, drop=0.1)

    assert (found.cost.trials, found.cost.seconds) == (180, 360.0)
    assert (found.cost.agents_usd, found.cost.judges_usd) == (None, None)
    (only,) = found.criteria
    assert found.cost_of_repeats.trials == 60 * only.wanted.repeats
    assert found.cost_of_cases.trials == pytest.approx(only.wanted.cases * 3, abs=3)


def test_runs_of_other_options_tell_nothing():
    other = FACTS.model_copy(update={"fingerprint": "g"})
    runs = [*past(NOISY), Past(meta("old", other), past(NOISY, facts=other)[0].columns)]

    one, both = outlook(ASKED, Baseline(runs[:1]), Cost()), outlook(ASKED, Baseline(runs), Cost())
    assert one.criteria == both.criteria


# --- All criteria together --------------------------------------------------------------------


def both(second):
    """Return a baseline with two criteria: what NOISY says of the one, `second` of the other."""
    facts = {"c": FACTS, "d": FACTS}
    runs = []
    for number in range(5):
        results = [*run_results(NOISY), *run_results(second, criterion="d")]
        runs.append(Past(meta(f"past{number}", criteria=facts), Columns.of(results)))
    return outlook(ASKED, Baseline(runs), Cost())


def test_criteria_that_always_agree_show_no_more_together():
    found = both(NOISY)

    assert found.hypotheses == {"block": 3}
    assert found.together == pytest.approx(found.criteria[0].share, abs=0.001)


def test_criteria_that_never_agree_show_more_together():
    # Where the one fails, the other never does.
    found = both("\n".join(f"c{n} 1 {(n + 1) % 2} 1" for n in range(60)))

    assert found.together < 0.9 * found.criteria[0].share


def test_a_single_criterion_is_not_taken_together_with_any():
    assert seen(NOISY, NOISY)[0].together is None
