"""Many cases a little worse: what is found, what is in doubt, and how often by chance."""

from collections.abc import Callable
from random import Random

import pytest
from support.run_language import FACTS, columns, meta, once, past, results
from support.slow_params import some

from ci_eval.gate import between_runs
from ci_eval.gate.compare import compare, examine
from ci_eval.gate.mean_drop import Drifts, Finding
from ci_eval.gate.pairing import groups_of, pool
from ci_eval.records.comparisons import Comparison
from ci_eval.records.results import CriterionFacts
from ci_eval.run_files.score_table import Columns, Past

RATE = 0.02
SECONDS = FACTS.model_copy(
    update={
        "better": "lower",
        "threshold": None,
        "interval": None,
        "informational": True,
        "max_growth": 0.2,
        "tier": "block",
    }
)


@pytest.fixture(autouse=True)
def days_are_alike(monkeypatch):
    """Test the exchanges alone; test_between_runs.py has what days add."""
    monkeypatch.setattr(between_runs, "PRIOR_SHARE", 0.0)


def drifts(
    now: str,
    *before: str,
    facts: CriterionFacts = FACTS,
    rounds: int = 0,
    rate: float = RATE,
    **options: object,
) -> Drifts:
    gate = once(**options)
    run, values = meta(facts=facts), columns(now, facts)
    pooled = pool(run, values, past(*before, facts=facts))
    groups = groups_of(run, values, pooled, gate.max_drop, {})
    return Drifts(groups, gate, rounds, rate)


def found(now: str, *before: str, **more: object) -> Finding:
    (one,), _ = drifts(now, *before, **more).found()
    return one


def text(values: list[float]) -> str:
    return "\n".join(f"n{n} {value}" for n, value in enumerate(values))


def test_a_drop_of_every_case_is_found():
    one = found(text([0.5] * 8), text([0.8] * 8))

    assert (one.worse, one.better, one.in_doubt) == (True, False, False)
    assert one.p_value == 1 / 256
    assert one.level == RATE
    assert one.effect == pytest.approx(-0.3)


def test_a_gain_of_every_case_is_found():
    one = found(text([0.8] * 8), text([0.5] * 8))

    assert (one.worse, one.better, one.in_doubt) == (False, True, False)


def test_a_drop_that_too_few_cases_show_is_in_doubt():
    # 1/32 is more than the rate, and less than what is worth another look.
    one = found(text([0.5] * 5), text([0.8] * 5))

    assert (one.worse, one.in_doubt) == (False, True)
    assert one.p_value == 1 / 32


@pytest.mark.parametrize(("drop", "worse"), [(0.018, False), (0.021, True)])
def test_a_drop_of_less_than_max_drop_is_none(drop, worse):
    one = found(text([0.8 - drop] * 10), text([0.8] * 10))

    assert (one.worse, one.in_doubt) == (worse, False)
    assert one.p_value == 1 / 1024


def test_a_suite_is_visible_where_all_of_it_would_be_enough():
    # 2⁵ ways are not enough for a rate of 0.02, 2⁶ are.
    assert not drifts(text([1.0] * 5), text([1.0] * 5)).visible
    assert drifts(text([1.0] * 6), text([1.0] * 6)).visible


# --- Growth -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("factor", "worse"), [(1.0, False), (1.15, False), (1.6, True)])
@pytest.mark.parametrize("unit", [0.001, 1, 3600])
def test_growth_is_found_where_it_is_more_than_what_is_tolerated(factor, worse, unit):
    random = Random(3)
    levels = [random.uniform(1, 9) * unit for _ in range(30)]

    def tried(by: float) -> str:
        return text([by * level * random.uniform(0.8, 1.25) for level in levels])

    one = found(tried(factor), tried(1), tried(1), facts=SECONDS)

    assert (one.worse, one.in_doubt) == (worse, False)
    # What is let through because it may grow is no gain.
    assert not one.better


def test_no_growth_may_be_tolerated():
    none = SECONDS.model_copy(update={"max_growth": 0.0})
    # By one in a hundred, which gate.max_drop would let through.
    assert found(text([1.01] * 10), text([1.0] * 10), facts=none).worse


def test_of_a_measure_that_may_grow_the_same_values_are_no_gain():
    same = text([1.0 + n for n in range(30)])

    assert not found(same, same, facts=SECONDS).better


def test_a_measure_that_may_grow_and_shrank_got_better():
    gate, before = once(), past(text([5.0 + n for n in range(30)]), facts=SECONDS)
    now = columns(text([2.0 + n / 2 for n in range(30)]), SECONDS)
    (delta,) = compare(meta(facts=SECONDS), now, before, gate).deltas

    assert delta.outcome == "improved"


# --- What is missing --------------------------------------------------------------------------


def test_what_is_missing_is_no_gain():
    now = "\n".join(f"n{n} 0.5 error" for n in range(30))
    one = found(now, text([0.5] * 30))

    # Had all of it been the best there is, it would be one.
    assert one.effect == pytest.approx(0.25)
    assert not one.better


def test_what_got_worse_whatever_is_missing_is_found():
    now = "\n".join(f"n{n} 0 0 error" for n in range(30))

    assert found(now, "\n".join(f"n{n} 1 1 1" for n in range(30))).worse


def test_errors_of_the_baseline_are_no_values():
    now, before = text([0.5] * 8), "\n".join(f"n{n} 0.8 error" for n in range(8))

    assert found(now, before).p_value == 1 / 256


# --- Several criteria -------------------------------------------------------------------------


def several(now: dict[str, str], *before: dict[str, str], **options: object) -> Comparison:
    facts = dict.fromkeys(now, FACTS)

    def of(texts: dict[str, str]) -> Columns:
        return Columns.of(
            each for name, given in texts.items() for each in results(given, criterion=name)
        )

    runs = [Past(meta(f"past{n}", criteria=facts), of(each)) for n, each in enumerate(before)]
    return compare(meta(criteria=facts), of(now), runs, once(**options))


def test_several_criteria_share_the_rate_and_so_does_their_mean():
    names = "cdef"
    one = several(dict.fromkeys(names, text([0.5] * 9)), dict.fromkeys(names, text([0.8] * 9)))

    # 95 % of it are for drifts; four criteria and their mean make five tests.
    assert [delta.level for delta in one.deltas] == pytest.approx([0.018 / n for n in (5, 4, 3, 2)])
    assert {delta.outcome for delta in one.deltas} == {"regressed"}
    assert one.together
    assert (one.together.criteria, one.together.outcome) == (4, "regressed")
    assert one.together.effect == pytest.approx(-0.3)


def test_all_together_show_what_none_of_them_shows():
    # Under each criterion five other cases dropped: in 1 of 32 ways. In the mean all thirty did.
    names = "cdefgh"
    now = {
        name: text([0.5 if n % 6 == number else 0.8 for n in range(30)])
        for number, name in enumerate(names)
    }
    one = several(now, dict.fromkeys(names, text([0.8] * 30)))

    assert one.together
    assert one.together.outcome == "regressed"
    assert "regressed" not in {delta.outcome for delta in one.deltas}


def test_equal_p_values_are_ranked_in_the_same_way_whatever_came_first():
    drop, kept = text([0.6] * 8), text([0.8] * 8)

    def levels(names: str) -> dict[str, float | None]:
        one = several(dict.fromkeys(names, drop), dict.fromkeys(names, kept))
        return {delta.group.criterion: delta.level for delta in one.deltas}

    assert levels("cd") == levels("dc")
    assert levels("cd")["c"] != levels("cd")["d"]


def test_a_criterion_that_warns_takes_nothing_from_those_that_block():
    warns = FACTS.model_copy(update={"tier": "warn"})
    facts = {"c": FACTS, "d": warns}
    now = Columns.of([*results(text([0.5] * 9)), *results(text([0.5] * 9), criterion="d")])
    old = Columns.of([*results(text([0.8] * 9)), *results(text([0.8] * 9), criterion="d")])
    one = examine(meta(criteria=facts), now, [Past(meta("past0", criteria=facts), old)], once())

    assert {key.criterion: each.level for key, each in one.drifts.items()} == {
        "c": pytest.approx(0.018),
        "d": pytest.approx(0.018),
    }
    assert one.together is None


# --- Several looks ----------------------------------------------------------------------------


def rounds_of(*rounds: float, cases: int = 10) -> str:
    return "\n".join(f"n{n} {' | '.join(map(str, rounds))}" for n in range(cases))


def test_with_more_looks_to_come_the_first_is_held_to_less():
    one = found(text([0.5] * 8), text([0.8] * 8), on_inconclusive="rerun")

    # A tenth of the rate is for the first of three looks; 1/256 is more.
    assert one.level == pytest.approx(RATE / 10, rel=0.01)
    assert (one.worse, one.in_doubt) == (False, True)


@pytest.mark.parametrize("gate", [{"confirm": "off"}, {"rerun_budget": 1}])
def test_without_further_trials_the_only_look_has_the_whole_rate(gate):
    one = found(text([0.5] * 8), text([0.8] * 8), on_inconclusive="rerun", **gate)

    assert (one.level, one.worse) == (pytest.approx(RATE), True)


def test_what_was_in_doubt_is_looked_at_again_with_all_that_was_drawn():
    # Seven of ten dropped, then all of them.
    now = "\n".join(f"n{n} {0.5 if n < 7 else 0.81} | 0.5" for n in range(10))
    first = found(now.replace(" | 0.5", ""), text([0.8] * 10), on_inconclusive="rerun")
    both = found(now, text([0.8] * 10), on_inconclusive="rerun", rounds=1)

    assert first.in_doubt
    assert not first.worse
    assert both.worse


def test_what_was_not_in_doubt_at_the_first_look_is_not_rejected_at_the_second():
    now = rounds_of(0.8, 0.1, cases=30)
    one = found(now, text([0.8] * 30), on_inconclusive="rerun", rounds=1)

    assert one.p_value < 0.001
    assert (one.worse, one.in_doubt) == (False, False)


def test_a_drop_that_was_too_doubtful_at_the_first_look_is_let_go_for_good():
    now = "\n".join(f"n{n} {0.9 if n % 2 else 0.655} | 0.1" for n in range(20))
    first = found(now.replace(" | 0.1", ""), text([0.8] * 20), on_inconclusive="rerun")
    one = found(now, text([0.8] * 20), on_inconclusive="rerun", rounds=1)

    # More than max_drop, and more often by chance than is worth another look.
    assert first.effect == pytest.approx(-0.0225)
    assert first.p_value > 0.15
    assert not first.in_doubt
    assert one.p_value < 0.001
    assert (one.worse, one.in_doubt) == (False, False)


def test_what_was_drawn_counts_though_nothing_more_may_be_drawn():
    # A run with rounds may be compared again by a gate that draws none.
    one = found(rounds_of(0.5, 0.5), text([0.8] * 10), rounds=1)

    assert one.worse


# --- The rate, by simulation ------------------------------------------------------------------


def rate_of(tries: int, rate: float, finds: Callable[[], bool]) -> None:
    """Say that noise is found at most at the rate."""
    hits = sum(finds() for _ in range(tries))

    assert hits / tries <= rate + 3.1 * (rate * (1 - rate) / tries) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("solid", some([0.8, 0.5, 0.95], 1))
def test_repeats_that_always_agree_with_each_other_are_no_more_than_one(solid):
    random = Random(f"agree{solid}")

    def run() -> str:
        return "\n".join(
            f"n{n} {' '.join([str(int(random.random() < solid))] * 3)}" for n in range(8)
        )

    rate_of(300, 0.1, lambda: found(run(), run(), rate=0.1, max_drop=0).worse)


@pytest.mark.slow
def test_one_repeat_against_three_keeps_the_rate():
    random = Random(13)

    def run(repeats: int) -> str:
        return "\n".join(
            f"n{n} {' '.join(str(int(random.random() < 0.7)) for _ in range(repeats))}"
            for n in range(6)
        )

    rate_of(300, 0.1, lambda: found(run(1), run(3), rate=0.1, max_drop=0).worse)


@pytest.mark.slow
def test_related_criteria_keep_the_rate_together():
    random = Random(17)
    names = "cde"

    def run() -> dict[str, str]:
        # Whether a case goes wrong decides for all criteria alike, but for some noise.
        common = [random.random() ** 3 for _ in range(12)]
        return {
            name: text([round(0.8 * each + 0.2 * random.random(), 3) for each in common])
            for name in names
        }

    def blocked() -> bool:
        one = several(run(), run(), run(), false_block=0.1, max_drop=0)
        both = [*one.deltas, *([one.together] if one.together else [])]
        return any(each.outcome == "regressed" for each in both)

    rate_of(120, 0.1, blocked)
