"""The change against the merge base of the same job: stored runs raise doubts, both arms decide."""

import math
from collections.abc import Callable
from random import Random

import pytest
from support.run_language import FACTS, columns, meta, past, results

from ci_eval.config.config_schema import GateOptions
from ci_eval.gate.both_arms import LOOKS, looks_taken, unlikely
from ci_eval.gate.case_counts import count_cases, summarise
from ci_eval.gate.compare import Examined, compare, examine
from ci_eval.gate.decide import decide
from ci_eval.gate.hard_break import Breaks
from ci_eval.gate.mean_drop import Finding
from ci_eval.records.comparisons import Comparison
from ci_eval.records.results import RunMeta
from ci_eval.run.rerun import Redraw, wanted
from ci_eval.run_files.score_cell import CONFIRMING
from ci_eval.run_files.score_table import Columns, Past

GATE = GateOptions(on_inconclusive="rerun")
GOOD, WORSE = " 0.8", " 0.6"


def every(values: str, cases: int = 12) -> str:
    """Return a run in which every case shows the same."""
    return "\n".join(f"n{number}{values}" for number in range(cases))


def base_of(text: str) -> Past:
    return Past(meta("base"), columns(text))


def examined(now: str, base: str, *before: str) -> Examined:
    return examine(meta(), columns(now), past(*before), GATE, base_of(base))


def drop(now: str, base: str, *before: str) -> Finding:
    (found,) = examined(now, base, *before).drifts.values()
    return found


def broke(now: str, base: str, *before: str) -> Breaks:
    (found,) = examined(now, base, *before).breaks.values()
    return found


def compared(now: str, base: str, *before: str) -> Comparison:
    return compare(meta(), columns(now), past(*before), GATE, base=base_of(base))


# --- Drops ------------------------------------------------------------------------------------


def test_stored_runs_alone_raise_a_doubt_and_decide_nothing():
    found = drop(every(WORSE), "", every(GOOD))

    assert (found.worse, found.in_doubt, found.level) == (False, True, 0.0)


def test_what_drops_against_the_merge_base_too_has_regressed():
    found = compared(every(WORSE), every(GOOD), every(GOOD))
    (delta,) = found.deltas

    assert (delta.outcome, delta.confirmed) == ("regressed", True)
    assert delta.reason == "worse than the merge base in the same job"
    assert delta.p_value == pytest.approx(2**-12)


def test_the_cases_that_differ_most_from_the_merge_base_are_named_first():
    others = "\n".join(f"n{number} 1 1 1 0" for number in range(12))
    good = every(" 1 1 1 1")
    now = f"same 1 1 0 0\n{others}\nmost 0 0 0 1"
    found = compared(now, f"same 1 1 0 0\n{good}\nmost 1 1 1 1", f"same 1\n{good}\nmost 1")
    counts = count_cases(meta(), columns(now), GATE), summarise(meta(), columns(now))
    reasons = decide(GATE, *counts, found, baseline_configured=True)
    reasons = [each for each in reasons.reasons if each.kind == "regressed"]

    assert found.deltas[0].reason == "worse than the merge base in the same job"
    assert reasons[0].message.endswith(" ('most', 'n0', 'n1', 'n2', 'n3' and 8 more)")


def test_what_is_lower_only_than_in_the_stored_runs_is_no_part_of_the_drop():
    now = f"same 0.5\n{every(WORSE)}"
    found = compared(now, f"same 0.5\n{every(GOOD)}", f"same 0.7\n{every(GOOD)}")

    assert found.deltas[0].reason == "worse than the merge base in the same job"
    assert "same" not in {each.case for each in found.changes}


def test_a_day_that_is_bad_for_both_arms_is_no_regression():
    (delta,) = compared(every(WORSE), every(WORSE), every(GOOD), every(GOOD)).deltas

    assert delta.outcome == "unchanged"
    assert delta.effect == 0


@pytest.mark.parametrize("outcome", ["unchanged", "regressed"])
def test_a_merge_base_that_lacks_files_and_did_worse_than_stored_runs_does_not_count(outcome):
    untracked = ("data/",) if outcome == "regressed" else ()
    change = meta().model_copy(update={"untracked": untracked})
    stored = past(*[every(GOOD)] * 5)
    found = compare(change, columns(every(WORSE)), stored, GATE, base=base_of(every(WORSE)))

    assert [each.outcome for each in found.deltas] == [outcome]
    assert ("did worse than in its stored runs" in found.unconfirmed) == bool(untracked)


def test_a_merge_base_that_lacks_files_and_did_as_well_as_before_counts():
    change = meta().model_copy(update={"untracked": ("data/",)})
    found = compare(
        change, columns(every(WORSE)), past(every(GOOD)), GATE, base=base_of(every(GOOD))
    )

    assert [each.confirmed for each in found.deltas] == [True]
    assert found.unconfirmed == ""


def test_a_merge_base_that_did_worse_than_stored_runs_and_the_change_does_not_count():
    half = "\n".join(f"n{n}{GOOD if n < 6 else WORSE}" for n in range(12))
    found = compared(half, every(" 0.1"), *[every(GOOD)] * 5)

    assert [each.outcome for each in found.deltas] == ["regressed"]
    assert found.unconfirmed.endswith("and worse than this change, so its work tree may lack files")


def test_a_merge_base_that_did_worse_with_copies_of_untracked_files_excuses_nothing():
    change = meta().model_copy(update={"untracked": ("data/",)})
    base = base_of(every(WORSE))
    base = base._replace(meta=base.meta.model_copy(update={"untracked": ("data/",)}))
    found = compare(change, columns(every(WORSE)), past(*[every(GOOD)] * 5), GATE, base=base)

    assert [each.outcome for each in found.deltas] == ["inconclusive"]
    assert "copies of untracked files, which may be built from this change: data/" in (
        found.unconfirmed
    )


def of_two(now: str, base: str, *before: str) -> tuple[RunMeta, Columns, list[Past], Past]:
    """Return runs with two criteria; a text has the values of `c`, `;`, those of `d`."""
    facts = dict.fromkeys("cd", FACTS)

    def of(text: str) -> Columns:
        first, second = (every(each) if each else "" for each in text.split(";"))
        return Columns.of([*results(first), *results(second, criterion="d")])

    stored = [Past(meta(f"past{at}", criteria=facts), of(each)) for at, each in enumerate(before)]
    run = meta(criteria=facts)
    return run, of(now), stored, Past(run, of(base))


def criteria(now: str, base: str, *before: str) -> dict[str, Finding]:
    """Return the finding of each criterion."""
    run, columns, stored, arm = of_two(now, base, *before)
    found = examine(run, columns, stored, GATE, arm)
    return {key.criterion: each for key, each in found.drifts.items()}


def test_what_the_stored_runs_do_not_doubt_is_not_tested_again():
    found = criteria(f"{WORSE};{WORSE}", f"{WORSE};{GOOD}", f"{GOOD};{WORSE}")

    assert {name: each.worse for name, each in found.items()} == {"c": False, "d": False}


def test_a_criterion_that_rose_less_than_the_others_is_in_doubt():
    good_day = f"{WORSE};{GOOD}", f"{WORSE};{WORSE}"

    found = criteria(good_day[0], ";", good_day[1])
    assert {name: each.in_doubt for name, each in found.items()} == {"c": True, "d": False}
    run, columns, stored, arm = of_two(good_day[0], ";", good_day[1])
    delta, _ = compare(run, columns, stored, GATE, base=arm).deltas
    assert (delta.outcome, delta.effect) == ("inconclusive", 0)
    assert delta.reason == "worse than the other criteria or the newest stored run"
    found = criteria(good_day[0], f"{GOOD};{GOOD}", good_day[1])
    assert {name: each.worse for name, each in found.items()} == {"c": True, "d": False}


def test_what_falls_in_all_criteria_as_far_as_days_differ_is_not_in_doubt():
    days = [f" {each}; {each}" for each in (0.6, 0.9, 0.6, 0.9)]

    found = criteria(" 0.7; 0.7", ";", *days)
    assert not any(each.in_doubt for each in found.values())
    assert all(each.in_doubt for each in criteria(" 0.2; 0.2", ";", *days).values())


def test_each_look_at_both_arms_may_reject_at_a_higher_level():
    levels = []
    for change, base in LOOKS:
        now, beside = WORSE + f" |{WORSE}" * (change - 1), GOOD + f" |{GOOD}" * (base - 1)
        levels.append(drop(every(now, 3), every(beside, 3), every(GOOD, 3)).level)

    assert 0 < levels[0] < levels[1] < levels[2] < 0.05


def test_a_look_is_taken_when_the_merge_base_has_its_rounds():
    def taken(base: str) -> int:
        return looks_taken([*examined("x 1", base, "x 1").arms.values()])

    assert [taken(each) for each in ("", "x 1", "x 1 | 1", "x 1 | 1 | 1", "x 1 | 1 | 1 | 1")] == [
        *(0, 1, 2, 2, 3)
    ]


def test_a_change_that_undoes_a_gain_of_the_base_branch_is_in_doubt():
    old = [every(" 0.5")] * 4

    # The pool of all runs says that this is better.
    assert drop(every(WORSE), "", every(GOOD), *old).in_doubt
    assert drop(every(WORSE), every(GOOD), every(GOOD), *old).worse


def test_where_the_base_branch_gained_nothing_the_nearest_run_alone_raises_no_doubt():
    now, nearest = every(" 0.75", 4), every(GOOD, 4)
    high, low = every(" 1", 4), every(WORSE, 4)

    assert not drop(now, "", nearest, high, low, high, low).in_doubt
    assert drop(now, "", nearest, low, low, low, low).in_doubt


def test_without_stored_runs_everything_is_in_doubt_and_the_arms_decide():
    def found(now: str, base: str) -> Finding:
        seen = base_of(base)
        (only,) = examine(meta(), columns(now), [seen], GATE, seen).drifts.values()
        return only

    assert found(every(WORSE), every(GOOD)).worse
    assert not found(every(GOOD), every(GOOD)).worse


@pytest.mark.parametrize("options", [{"confirm": "off"}, {"rerun_budget": 1}])
def test_without_further_trials_the_first_look_at_both_arms_has_the_whole_rate(options):
    def found(gate: GateOptions) -> Finding:
        seen = base_of(every(GOOD, 7))
        (only,) = examine(meta(), columns(every(WORSE, 7)), [seen], gate, seen).drifts.values()
        return only

    alone = found(GateOptions.model_validate(options))
    assert (alone.worse, alone.p_value, found(GATE).worse) == (True, 2**-7, False)


def test_an_agent_that_the_merge_base_lacks_is_compared_with_stored_runs():
    run = meta(agents=("a", "b"))
    text = every(" 0.4")
    now = Columns.of([*results(text), *results(text, agent="b")])
    before = Columns.of([*results(every(GOOD)), *results(every(GOOD), agent="b")])
    found = examine(run, now, [Past(run, before)], GATE, base_of(text))

    assert {key.agent: each.worse for key, each in found.drifts.items()} == {"a": False, "b": True}


# --- Single cases -----------------------------------------------------------------------------

SOLID = every(" 1", 9)


def test_a_case_that_fails_with_the_merge_base_too_is_named_and_does_not_block():
    found = compared(f"{SOLID}\nx 0 ! 0 0 0", f"{SOLID}\nx ! 0", f"{SOLID}\nx 1")
    (change,) = found.changes

    assert (change.case, change.in_base, change.base) == ("x", True, (1, 1))
    assert not change.suspected
    assert not change.certain
    assert found.deltas[0].outcome == "unchanged"


def test_a_case_is_proven_by_trials_that_all_fail_with_the_change_and_pass_with_the_merge_base():
    eight = f"{SOLID}\nx 0 ! 0 0 0 0 0 0 0", f"x ! {'1 ' * 8}"
    (change,) = compared(*eight, f"{SOLID}\nx 1").changes

    assert (change.certain, change.base, change.confirmed) == (True, (0, 8), (7, 7))
    # Of ten cases at a level of 0.002, 2⁻¹⁶ is enough, and 2⁻⁸ is not.
    assert broke(*eight, f"{SOLID}\nx 1").p_value == pytest.approx(10 * 2**-16, rel=0.02)
    few = broke(f"{SOLID}\nx 0 ! 0 0 0", "x ! 1 1 1 1", f"{SOLID}\nx 1")
    assert (few.proven, few.suspected) == (frozenset(), {"x"})


def test_a_history_without_variance_proves_nothing_where_the_merge_base_can_be_run():
    runs = [f"{SOLID}\nx 1"] * 5

    assert broke(f"{SOLID}\nx 0 0 0", "", *runs).proven == frozenset()
    assert broke(f"{SOLID}\nx 0 0 0", "", *runs).draws


@pytest.mark.parametrize(
    ("stored", "suspects"),
    [
        (("1", "0", "0"), {"x"}),
        (("1 1", "1 1", "0 0"), {"x"}),
        (("1 0", "0 0", "0 0"), set()),  # not all trials of the newest run passed
        (("1", "0", "1", "0"), set()),  # not one fix: the case varies
        (("0", "1", "1"), set()),  # broke on the base branch
        (("0", "0"), set()),
    ],
)
def test_a_case_that_passes_since_a_fix_is_suspected_if_it_fails(stored, suspects):
    runs = [f"{SOLID}\nx {each}" for each in stored]

    assert broke(f"{SOLID}\nx 0", "", *runs).suspects.keys() == suspects


def test_a_pass_clears_a_suspect():
    assert not broke(f"{SOLID}\nx 0 ! 0 1", "", f"{SOLID}\nx 1").suspects


TOKENS = FACTS.model_copy(
    update={
        "threshold": None,
        "informational": True,
        "interval": None,
        "better": "lower",
        "max_growth": 0.2,
    }
)


@pytest.mark.parametrize(("tokens", "proven"), [("9000", True), ("130", False)])
def test_a_measure_that_grows_in_one_case_blocks_if_its_mean_grows_too_far(tokens, proven):
    def of(text: str) -> Columns:
        return columns(text, TOKENS)

    calm = every(" 100", 9)
    now = f"{calm}\nx {tokens}" + f" ! {f'{tokens} ' * 7}" * proven
    base = Past(meta("base", TOKENS), of(f"{calm}\nx ! {'100 ' * 8}"))
    stored = [Past(meta("past", TOKENS), of(f"{calm}\nx 100"))]
    found = compare(meta(facts=TOKENS), of(now), stored, GATE, base=base)

    assert (found.deltas[0].outcome == "regressed") is proven
    assert [(each.case, each.certain) for each in found.changes] == [("x", True)] * proven


@pytest.mark.parametrize("failed", range(1, 9))
@pytest.mark.parametrize("tried", range(1, 9))
def test_the_bound_is_the_largest_probability(failed: int, tried: int):
    total = failed + tried
    exact = math.pow(failed / total, failed) * math.pow(tried / total, tried)

    assert exact <= unlikely(failed, tried, 0) <= exact * 1.02
    assert unlikely(failed, tried, 1) > unlikely(failed, tried, 0)


def test_a_case_that_only_the_stored_run_could_not_measure_is_named_beside_the_merge_base():
    stored = f"{SOLID}\nx error"

    assert compared(f"{SOLID}\nx 0", f"{SOLID}\nx 1", stored).unmatched_failures == ("a/e/x",)
    hidden = compared(f"{SOLID}\nx 0", f"{SOLID}\nx error", stored)
    assert (hidden.unmatched_failures, len(hidden.hidden)) == ((), 1)


# --- Whole jobs -------------------------------------------------------------------------------


class Job:
    """Both arms of one pull request, drawn as the gate wants."""

    def __init__(self, change: Callable[[], str], base: Callable[[], str], before: str) -> None:
        self._now, self._base = columns(change()), Columns()
        self._draw = change, base
        self._before = past(before)
        self._base.evalsets = self._now.evalsets

    def decided(self) -> Examined:
        """Return the findings after the last round."""
        while True:
            base = Past(meta("base"), self._base)
            found = examine(meta(), self._now, self._before, GATE, base)
            redraws = wanted(found, GATE)
            if not any(redraws):
                return found
            for redraw, seen, draw in zip(
                redraws, (self._now, self._base), self._draw, strict=True
            ):
                self._add(redraw, seen, draw)

    def _add(self, redraw: Redraw, seen: Columns, draw: Callable[[], str]) -> None:
        column = seen.column(("a", "e", "c"))
        for _ in redraw.rounds if redraw.pairs else ():
            for case, cell in columns(draw()).groups["a", "e", "c"].items():
                held = column.get(case)
                for unit, values in enumerate(cell.units, len(held.units) if held else 0):
                    for value in values:
                        column.add(case, value, unit=unit)
        for (_, _, case), numbers in redraw.confirming.items():
            for _ in numbers:
                (value,) = columns(draw()).groups["a", "e", "c"][case].observations
                column.add(case, value, CONFIRMING)


def blocks(found: Examined) -> bool:
    breaks = found.breaks.values()
    return any(each.worse for each in found.drifts.values()) or any(each.proven for each in breaks)


@pytest.mark.parametrize("cases", [5, 10, 20])
def test_of_deterministic_cases_one_that_broke_blocks_after_one_stored_run(cases: int):
    good = every(" 1", cases)
    bad = good.replace("n0 1", "n0 0")

    assert blocks(Job(lambda: bad, lambda: good, good).decided())
    assert not blocks(Job(lambda: good, lambda: good, good).decided())
    assert not blocks(Job(lambda: bad, lambda: bad, good).decided())


@pytest.mark.parametrize("cases", [1, 2, 5, 20])
def test_of_cases_that_score_the_same_one_that_is_lower_and_still_passes_blocks(cases: int):
    good = every(" 0.9", cases)
    bad = good.replace("n0 0.9", "n0 0.6")

    assert blocks(Job(lambda: bad, lambda: good, good).decided())
    assert not blocks(Job(lambda: bad, lambda: bad, good).decided())


def test_a_lower_score_raises_no_suspicion_where_others_vary_or_rise():
    noisy = "\n".join(f"n{number} 0.8{number % 3}" for number in range(12))
    lower = "\n".join(f"n{number} 0.7{number % 4}" for number in range(12))

    assert not broke(lower, "", noisy).suspects
    assert not broke("x 0.6\ny 1", "", "x 0.9\ny 0.9").suspects
    assert not broke("x 0.6\ny 1", "", "x 0.7\ny 1", "x 0.9\ny 1").suspects
    assert broke("x 0.6\ny 1", "", "x 0.9\ny 1").suspects


def test_an_agent_whose_every_answer_is_wrong_blocks_after_one_stored_run():
    good, bad = every(" 1", 5), every(" 0", 5)

    assert blocks(Job(lambda: bad, lambda: good, good).decided())


@pytest.mark.slow
def test_stored_runs_that_were_better_than_the_base_branch_is_now_do_not_block():
    def blocked(seed: int) -> bool:
        chance = Random(seed)

        def drawn() -> str:
            return "\n".join(f"n{case} {int(chance.random() < 0.7)}" for case in range(30))

        return blocks(Job(drawn, drawn, every(" 1", 30)).decided())

    # At a rate of 3 %, more than 12 of 200 have a probability of one in a hundred.
    assert sum(map(blocked, range(200))) <= 12
