"""Single cases that were solid and fail now: suspected, confirmed, or proven by history."""

from random import Random

import pytest
from support.run_language import FACTS, columns, meta, once, past

from ci_eval.gate.compare import examine
from ci_eval.gate.hard_break import MAX_CONFIRMING, Breaks, breaks
from ci_eval.records.results import CriterionFacts
from ci_eval.stats.intervals import at_least, most_probable_break

RATE = 0.02


def broke(
    now: str, *before: str, rate: float = RATE, facts: CriterionFacts = FACTS, **options: object
) -> Breaks:
    gate = once(**options)
    examined = examine(meta(facts=facts), columns(now, facts), past(*before, facts=facts), gate)
    (found,) = breaks(examined.groups, gate, rate)
    return found


def drawn_next(found: Breaks) -> int:
    """Return how many more trials of each suspect are drawn next."""
    return max((change for change, _ in found.draws.values()), default=0)


def many(count: int, words: str) -> str:
    return "\n".join(f"n{n} {words}" for n in range(count))


NOISY = "z 1 0"
"""A case that keeps history from being steady."""


def test_a_case_is_suspected_that_passed_every_time_and_fails_every_time():
    now = "all 0 0\nsome 0 1\nlately 0 0\nsolid 1 1"
    found = broke(
        f"{now}\n{NOISY}", f"all 1\nsome 1\nlately 0\nsolid 1\n{NOISY}", "all 1\nlately 1"
    )

    assert set(found.suspects) == {"all"}
    assert found.proven == frozenset()


def test_a_case_that_a_change_breaks_again_is_suspected_and_not_proven():
    solid = many(9, "1")
    found = broke(f"{solid}\nx 0 0 0", f"{solid}\nx 1", *[f"{solid}\nx 0"] * 3)

    assert (set(found.suspects), found.proven) == ({"x"}, frozenset())
    assert found.suspected == {"x"}
    assert not broke(f"{solid}\nx 0", f"{solid}\nx 0", f"{solid}\nx 1").suspects


def test_a_single_break_is_as_probable_as_one_of_so_many_cases_makes_it():
    found = broke(f"{many(3, '1')}\nx 0", f"{many(3, '1')}\nx 1")

    # Each of four cases breaks with 1/4 at most.
    assert found.p_value == pytest.approx(1 - 0.75**4)
    assert found.proven == frozenset()


def test_so_many_breaks_at_once_are_no_chance():
    found = broke(f"{many(5, '0')}\n{many(2, '1').replace('n', 'm')}\n{NOISY}", many(5, "1"))

    # Of five cases with a baseline all five broke: 4⁻⁵.
    assert found.p_value == pytest.approx(4**-5)
    assert found.proven == {f"n{n}" for n in range(5)}


def test_the_only_case_that_is_lower_is_suspected_and_never_proven_by_stored_runs():
    found = broke("x 0.6\ny 1", "x 0.9\ny 1", on_inconclusive="rerun")
    drawn = broke("x 0.6 ! 0.6 0.6\ny 1", "x 0.9\ny 1", on_inconclusive="rerun")

    assert (set(found.suspects), drawn_next(found)) == ({"x"}, 2)
    assert (drawn.suspected, drawn.proven, drawn_next(drawn)) == ({"x"}, frozenset(), 0)
    assert not broke("x 0.6 ! 0.6 0.9\ny 1", "x 0.9\ny 1", on_inconclusive="rerun").suspects


def test_cases_without_a_baseline_and_what_is_missing_are_no_suspects():
    found = broke("x 0 error\nnew 0\ny 1", "x 1\ny 1")

    assert found.suspects == {}
    assert (found.p_value, drawn_next(found)) == (1.0, 0)


def test_to_excuse_a_case_proves_nothing_of_the_others():
    now, before = f"{many(20, '1')}\n{NOISY}\nx 0 0", f"{many(20, '1')}\n{NOISY}\nx 1 1"
    excuse = {"case": "n*", "owner": "the team", "until": "2026-12-31"}
    plain = broke(now, before)
    excused = broke(now, before, quarantine=[excuse])

    assert {*excused.group.pairs} == {"z", "x"}
    assert excused.p_value == plain.p_value > RATE


@pytest.mark.parametrize(
    ("now", "suspects"), [("x 9\ny 1", {"x"}), ("x 1.1\ny 1", set()), ("x 9\ny 0.9", set())]
)
def test_a_measure_is_suspected_if_few_cases_alone_raise_its_mean_too_far(now, suspects):
    update = {"threshold": None, "informational": True, "interval": None, "better": "lower"}
    limited = FACTS.model_copy(update=update | {"max_growth": 0.1})

    found = broke(now, "x 1\ny 1", facts=limited)

    assert (set(found.suspects), found.proven) == (suspects, frozenset())
    assert not broke(now, "x 1\ny 1", facts=FACTS.model_copy(update=update)).suspects


# --- Confirming -------------------------------------------------------------------------------

BEFORE = [f"{many(9, '1 1 1')}\n{NOISY}\nx 1 1 1"] * 5
NOW = f"{many(9, '1 1 1')}\n{NOISY}\nx 0 0 0"


def test_what_may_be_drawn_again_is_not_decided_before_it_was():
    alone = broke(NOW, *BEFORE)
    waiting = broke(NOW, *BEFORE, on_inconclusive="rerun")

    # The flaky case has ten trials before; of the others one breaks with 0.0003 at most.
    assert alone.p_value < RATE
    assert alone.proven == {"x"}
    assert waiting.p_value == 1
    assert waiting.proven == frozenset()
    assert drawn_next(waiting) == 1


@pytest.mark.parametrize("gate", [{"confirm": "off"}, {"rerun_budget": 1}])
def test_what_will_not_be_drawn_again_is_decided_at_once(gate):
    found = broke(NOW, *BEFORE, on_inconclusive="rerun", **gate)

    assert (found.proven, drawn_next(found)) == ({"x"}, 0)


def test_a_few_trials_are_wanted_first_and_then_as_many_as_prove_one_case_if_all_fail():
    before, now = [f"{many(99, '1')}\nx 1"] * 5, f"{many(99, '1')}\nx 0"
    noisy = [f"{each}\n{NOISY}" for each in before]

    def found(confirming: int) -> Breaks:
        drawn = f"{now} ! {'0 ' * confirming}" if confirming else now
        return broke(f"{drawn}\n{NOISY}", *noisy, rate=0.001, on_inconclusive="rerun")

    assert drawn_next(found(0)) == 2
    assert not found(2).proven
    more = drawn_next(found(2))
    assert 2 < more < MAX_CONFIRMING - 2
    assert found(2 + more).proven
    assert drawn_next(found(2 + more)) == 0
    assert not found((2 + more) // 2).proven


@pytest.mark.parametrize("confirming", ["1", "0 0 1", "1 0 0 0 0 0 0 0 0 0"])
def test_a_single_trial_that_passes_ends_the_suspicion(confirming):
    found = broke(f"{NOW} ! {confirming}", *BEFORE, on_inconclusive="rerun")

    assert found.suspects == {}


def test_confirming_trials_that_all_fail_prove_it():
    found = broke(f"{NOW} ! 0 0 0", *BEFORE, on_inconclusive="rerun")

    assert found.proven == {"x"}
    # Ten cases were tried fifteen times before, and one ten times.
    assert found.p_value == pytest.approx(
        1 - (1 - most_probable_break(15, 6)) ** 10 * (1 - most_probable_break(10, 5)), rel=1e-9
    )
    assert drawn_next(found) == 0


def test_what_was_not_drawn_again_neither_proves_nor_hides_what_was():
    now = NOW.replace("n0 1 1 1", "n0 0 0 0")
    found = broke(f"{now} ! 0 0 0 0", *BEFORE, on_inconclusive="rerun")

    assert set(found.suspects) == {"n0", "x"}
    assert found.proven == {"x"}


def test_other_numbers_of_trials_share_the_rate():
    now = f"{NOW} ! 0 0 0 0".replace("n0 1 1 1", "n0 0 0 0 ! 0 0")
    found = broke(now, *BEFORE, on_inconclusive="rerun")
    # After two trials both had broken, after four one of them; the smaller counts twice.
    both = at_least(2, [(10, most_probable_break(15, 5)), (1, most_probable_break(10, 4))])
    one = at_least(1, [(10, most_probable_break(15, 7)), (1, most_probable_break(10, 6))])

    assert set(found.suspects) == {"n0", "x"}
    assert found.p_value == pytest.approx(2 * min(both, one))
    assert found.proven == {"n0", "x"}


def test_where_no_number_of_trials_could_prove_it_it_is_judged_as_it_is():
    # Tried once before, one of a hundred is never proven to have broken.
    found = broke(
        f"{many(100, '1')}\nx 0", f"{many(100, '1')}\nx 1", rate=0.001, on_inconclusive="rerun"
    )

    assert drawn_next(found) == 0
    assert found.p_value == pytest.approx(1 - 0.75**101)


def test_many_breaks_are_found_though_no_trial_could_prove_a_single_one():
    found = broke(many(100, "0"), many(100, "1"), rate=0.001, on_inconclusive="rerun")

    assert drawn_next(found) == 0
    assert len(found.proven) == 100


# --- A steady history -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "proven"),
    [
        ("x 0", True),
        ("x 0.7", True),
        # By less than max_drop, and still passing.
        ("x 0.89", False),
        ("x 0.89 0.89", False),
        ("x 0.7 0.6", True),
        ("x 0.7 0", True),
        ("x 0.7 0.9", False),
        ("x 0 0.9", False),
        ("x 0.7 error", False),
    ],
)
def test_where_nothing_ever_varied_a_case_counts_that_is_worse_every_time(now, proven):
    found = broke(f"{now}\ny 1", "x 0.9\ny 1", "x 0.9\ny 1")

    assert bool(found.proven) is proven


def test_a_fall_below_the_threshold_counts_however_small_it_is():
    assert broke("x 0.499", "x 0.5", "x 0.5").proven == {"x"}


def test_where_one_case_varied_nothing_is_steady():
    assert broke("x 0\ny 1", "x 1\ny 1", "x 1\ny 0").proven == frozenset()


def test_a_case_that_was_seen_once_is_not_known_to_be_steady():
    found = broke("x 0\nnew 0", "x 1\nnew 1", "x 1")

    assert found.proven == {"x"}
    assert set(found.suspects) == {"x", "new"}


@pytest.mark.parametrize(
    ("now", "wanted", "proven"),
    [
        ("x 0", 2, False),
        ("x 0.6", 2, False),
        ("x 0 0", 1, False),
        ("x 0 0 0", 0, True),
        ("x 0 ! 0 0", 0, True),
        ("x 0.6 ! 0.6 0.5", 0, True),
        ("x 0 ! 0 1", 0, False),
    ],
)
def test_three_trials_must_agree_where_they_can_be_had(now, wanted, proven):
    steady = f"{many(99, '1')}\nx 1"
    found = broke(f"{many(99, '1')}\n{now}", steady, steady, rate=0.001, on_inconclusive="rerun")

    assert (drawn_next(found), bool(found.proven)) == (wanted, proven)


# --- The rate, by simulation ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("repeats", "runs", "cases"), [(1, 1, 8), (1, 3, 30), (3, 2, 30)])
@pytest.mark.parametrize("solid", [0.5, 0.8, 0.95])
def test_chance_is_called_a_break_as_rarely_as_the_rate_says(repeats, runs, cases, solid):
    random = Random(f"{repeats}{runs}{cases}{solid}")
    tries, rate = 150, 0.1

    def tried() -> str:
        return "\n".join(
            f"n{n} {' '.join(str(int(random.random() < solid)) for _ in range(repeats))}"
            for n in range(cases)
        )

    found = 0
    for _ in range(tries):
        judged = broke(
            f"{tried()}\n{NOISY}", *[f"{tried()}\n{NOISY}" for _ in range(runs)], rate=rate
        )
        found += bool(judged.proven)

    assert found / tries <= rate + 3.1 * (rate * (1 - rate) / tries) ** 0.5


def test_repeats_that_always_agree_are_no_more_than_one():
    now = f"x 0 0 0\n{many(20, '1 1 1')}"
    swung = [f"n{n} {'1 1 1' if n % 2 else '0 0 0'}" for n in range(20)]
    back = [f"n{n} {'0 0 0' if n % 2 else '1 1 1'}" for n in range(20)]
    before = ["\n".join(["x 1 1 1", *each]) for each in (swung, back)]
    found = broke(now, *before)

    # Each of 21 cases passed in two runs and failed in one: (2/3)² · 1/3 at most.
    assert found.p_value == pytest.approx(1 - (23 / 27) ** 21)
    # What confirms was drawn in the same run, and agrees with it.
    assert broke(now.replace("x 0 0 0", "x 0 0 0 ! 0 0 0"), *before).p_value == found.p_value


def test_repeats_of_which_it_may_be_chance_that_they_agree_count_each():
    now = "x 0 0 0\ny 1 1 1\nz 1 1 1"
    found = broke(now, "x 1 1 1\ny 1 1 1\nz 0 0 0", "x 1 1 1\ny 1 1 1\nz 1 1 1")

    assert found.p_value == pytest.approx(1 - (1 - most_probable_break(6, 3)) ** 3)


@pytest.mark.slow
@pytest.mark.parametrize("alike", [0.2, 0.5, 0.8])
def test_repeats_that_have_something_in_common_keep_the_rate(alike):
    random = Random(f"common{alike}")
    tries, rate = 60, 0.05
    solid = [random.betavariate(8, 2) for _ in range(60)]

    def tried() -> str:
        lines = []
        for n, chance in enumerate(solid):
            common = random.random() < chance
            words = [common if random.random() < alike else random.random() < chance for _ in "123"]
            lines.append(f"n{n} {' '.join(str(int(word)) for word in words)}")
        return "\n".join(lines)

    found = sum(
        bool(broke(tried(), *[tried() for _ in range(4)], rate=rate).proven) for _ in range(tries)
    )

    assert found / tries <= rate + 3.1 * (rate * (1 - rate) / tries) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("solid", [0.5, 0.8, 0.95])
def test_repeats_that_always_agree_keep_the_rate(solid):
    random = Random(f"agree{solid}")
    tries, rate = 200, 0.1

    def tried() -> str:
        words = [str(int(random.random() < solid)) for _ in range(30)]
        return "\n".join(f"n{n} {word} {word} {word}" for n, word in enumerate(words))

    found = sum(bool(broke(tried(), tried(), tried(), rate=rate).proven) for _ in range(tries))

    assert found / tries <= rate + 3.1 * (rate * (1 - rate) / tries) ** 0.5


def test_a_case_that_nothing_was_measured_of_now_is_worth_no_trial():
    # The repeats of a run always agree, so that each is worth what all of them are.
    before = [f"{many(30, word)}\nx 1 1 1\ny 1 1 1" for word in ("1 1 1", "0 0 0", "1 1 1")]
    found = broke(f"{many(30, '1 1 1')}\nx error\ny 0 0 0", *before)

    assert found.suspects.keys() == {"y"}
