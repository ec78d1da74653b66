"""What changed against a baseline, and what of it is not noise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.run_language import FACTS, columns, meta, once, past, results

from ci_eval.gate.compare import compare
from ci_eval.records.comparisons import Comparison
from ci_eval.records.errors import BaselineError
from ci_eval.records.results import CriterionFacts
from ci_eval.run_files.score_table import Columns, Past

SECONDS = FACTS.model_copy(update={"better": "lower", "threshold": 100.0, "interval": None})
"""At most a hundred, of as many as there may be."""


def compared(now: str, *before: str, facts: CriterionFacts = FACTS, **more: object) -> Comparison:
    return compare(
        meta(facts=facts, **more), columns(now, facts), past(*before, facts=facts), once()
    )


def changes(comparison: Comparison) -> dict[str, tuple[str, bool]]:
    return {change.case: (change.change, change.certain) for change in comparison.changes}


def test_cases_that_ask_something_else_are_told_as_what_is_loosened():
    found = compared("x@2 1\ny@2 1\nz@1 1\nnew@1 1", "x@1 1\ny@1 1\nz@1 1")

    assert found.loosened == ("evalset e: 2 cases changed and cannot be compared",)
    # Those that an earlier change altered are compared with the run that has them so.
    assert compared("x@2 1\ny@2 1", "x@2 1\ny@2 1", "x@1 1\ny@1 1").loosened == ()


def test_a_run_compared_with_itself_has_no_change():
    found = compared("x 1\ny 0.3\nz error", "x 1\ny 0.3\nz 1")
    (delta,) = found.deltas

    assert delta.outcome == "unchanged"
    assert delta.effect == 0
    assert changes(found) == {"z": ("newly_erring", False)}


def test_means_and_their_change_are_of_the_cases_that_both_runs_have():
    (delta,) = compared("x 0.5\ny 0.7\nnew 0", "x 0.7\ny 0.9\ngone 0").deltas

    assert (delta.cases, delta.value, delta.baseline) == pytest.approx((2, 0.6, 0.8))
    assert delta.effect == pytest.approx(delta.value - delta.baseline)


observed = st.lists(
    st.sampled_from(["0", "0.3", "0.439", "0.386", "1", "1", "error", "skip"]),
    min_size=1,
    max_size=3,
)
kinds = st.sampled_from(
    [
        FACTS,
        FACTS.model_copy(update={"better": "lower"}),
        FACTS.model_copy(update={"interval": None}),
        FACTS.model_copy(update={"tier": "warn"}),
        FACTS.model_copy(update={"informational": True, "threshold": None}),
        FACTS.model_copy(
            update={"informational": True, "threshold": None, "interval": None, "max_growth": 0.2}
        ),
    ]
)
gates = st.fixed_dictionaries(
    {},
    optional={
        "max_drop": st.just(0),
        "false_block": st.just(0.3),
        "on_inconclusive": st.sampled_from(["fail", "rerun"]),
    },
)


@given(
    st.lists(observed, min_size=1, max_size=12),
    st.dictionaries(st.sampled_from("cd"), kinds, min_size=1),
    st.sampled_from([1, 1, 2, 4]),
    st.sampled_from([1, 3]),
    gates,
)
def test_a_run_compared_with_itself_finds_nothing(cases, facts, times, runs, gate):
    # Repeated, so that there are enough cases for anything to be significant.
    text = "\n".join(f"case{n} {' '.join(words)}" for n, words in enumerate(cases * times))
    values = Columns.of(
        each for name, of in facts.items() for each in results(text, criterion=name, facts=of)
    )
    run = meta(criteria=facts)
    found = compare(run, values, [Past(run, values)] * runs, once(**gate))

    assert found.changes == found.loosened == found.vanished == found.added == ()
    assert {delta.outcome for delta in found.deltas} <= {"unchanged", "not_compared"}
    assert found.together is None or found.together.outcome == "unchanged"


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_nothing_regresses_against_the_same_values(values):
    text = "\n".join(f"case{number} {value}" for number, value in enumerate(values))
    found = compared(text, text, text)

    assert found.changes == ()
    assert [delta.outcome for delta in found.deltas] == ["unchanged"]


def test_means_that_were_only_added_up_differently_are_no_gain():
    # The mean of a run and the mean of three of them differ in the last digit.
    text = "x 0.9 0.899\ny 0.9 0.965\nz 0.858 0.958"
    shown = FACTS.model_copy(update={"informational": True, "threshold": None})
    gate = once(max_drop=0)
    found = compare(meta(facts=shown), columns(text, shown), past(*[text] * 3, facts=shown), gate)

    assert found.deltas[0].outcome == "unchanged"


def test_one_case_is_enough_to_compare_and_not_to_be_sure():
    (delta,) = compared("x 0.6", "x 0.9").deltas

    assert (delta.cases, delta.outcome, delta.interval) == (1, "inconclusive", None)
    assert delta.reason.startswith("worse, while hardly any other case differs")
    # In one of two ways it is the lower one.
    assert delta.p_value == 0.5
    assert compared("x 0.6", "x 0.9", "x 0.9").deltas[0].outcome == "regressed"


def test_where_all_is_missing_nothing_is_compared():
    (delta,) = compared("x error\ny error", "x 1\ny 1", facts=SECONDS).deltas

    assert (delta.outcome, delta.value) == ("not_compared", None)
    assert compared("x 1", "x error", "x skip").deltas[0].outcome == "not_compared"


def test_a_case_that_could_not_be_measured_before_either_is_not_newly_missing():
    found = compared("x 1 error\ny error", "x 1 error\ny 1")

    assert changes(found) == {"y": ("newly_erring", False)}


def test_what_could_not_be_measured_is_no_gain():
    many = "\n".join(f"case{n} 0.6 error" for n in range(20))
    found = compared(many, "\n".join(f"case{n} 0.6" for n in range(20)))

    assert [delta.outcome for delta in found.deltas] == ["unchanged"]
    shown = FACTS.model_copy(update={"informational": True, "threshold": None})
    before = "\n".join(f"case{n} 0.{50 + n}" for n in range(20))
    assert compared(many, before, facts=shown).deltas[0].outcome == "unchanged"


def test_rounds_and_trials_that_confirm_are_counted_apart():
    found = compared("x 1 0 | 0 1 | 1 1\ny 1 0\nz 0 ! 0 0 0", "x 1\ny 1\nz 1")
    change = next(each for each in found.changes if each.case == "z")

    assert (found.rounds, found.confirming) == (2, 3)
    assert (change.failed, change.trials, change.trials_before) == (1, 1, 1)
    assert change.confirmed == (3, 3)


def test_a_steady_drop_waits_for_trials_that_can_be_had():
    gate = once(on_inconclusive="rerun")
    found = compare(meta(), columns("x 0.6\ny 1"), past(*["x 0.9\ny 1"] * 2), gate)
    (delta,), (change,) = found.deltas, found.changes

    assert delta.outcome == "inconclusive"
    said = "always scored the same before, worse now; too few trials to rule out noise"
    assert delta.reason == said
    assert (change.change, change.certain, change.suspected) == ("dropped", False, True)
    assert change.p_value is None


def test_a_flip_after_one_run_is_only_suspected():
    found = compared("x 0\ny 1\nz 1", "x 1\ny 1\nz 1")

    assert changes(found) == {"x": ("newly_failing", False)}
    assert found.deltas[0].outcome == "inconclusive"


def test_a_flip_where_nothing_ever_varied_is_a_flip():
    found = compared("x 0\ny 1\nz 1", "x 1\ny 1\nz 1", "x 1\ny 1\nz 1")

    assert changes(found) == {"x": ("newly_failing", True)}
    assert found.deltas[0].outcome == "regressed"
    assert found.deltas[0].steady


def test_a_flip_where_some_case_varied_is_only_suspected_and_only_if_it_is_unusual():
    often = [f"x 1\ny {y}\nz 1" for y in (1, 0, 1, 1)]
    # Chance breaks one of three with a probability of 23 % after four runs, of 38 % after two.
    found, usual = (compared("x 0\ny 1\nz 1", *often[:runs]) for runs in (4, 2))

    assert found.deltas[0].outcome == "inconclusive"
    assert [change.suspected for change in (*found.changes, *usual.changes)] == [True, False]
    assert usual.deltas[0].outcome == "unchanged"


def test_a_case_that_was_added_lately_does_not_hide_that_the_others_never_varied():
    found = compared("x 0\nnew 0", "x 1\nnew 1", "x 1")

    assert changes(found) == {"x": ("newly_failing", True), "new": ("newly_failing", False)}
    assert found.deltas[0].outcome == "regressed"


def test_a_flip_among_many_cases_is_suspected_too():
    many = "\n".join(f"case{n} 1" for n in range(200))
    found = compared(many.replace("case7 1", "case7 0"), many)

    assert changes(found) == {"case7": ("newly_failing", False)}
    assert found.deltas[0].outcome == "inconclusive"
    said = "always passed before, always fails now; too few trials to rule out noise"
    assert said in found.deltas[0].reason


def test_a_criterion_that_one_agent_is_no_longer_scored_by_is_named():
    before = past("x 1")
    extra = Columns.of([*results("x 1"), *results("x 1", criterion="d", agent="b")])
    now = Columns.of([*results("x 1"), *results("x 1", criterion="d"), *results("x 1", agent="b")])
    facts = {"c": FACTS, "d": FACTS}
    found = compare(meta(criteria=facts), now, [before[0]._replace(columns=extra)], once())

    assert [(gone.kind, gone.name, gone.where) for gone in found.vanished] == [
        ("criterion", "d", "e with b")
    ]


def test_a_drop_that_no_threshold_sees_counts_where_nothing_ever_varied():
    found = compared("x 0.7", "x 0.9", "x 0.9")

    assert changes(found) == {"x": ("dropped", True)}


def test_a_drop_of_less_than_max_drop_never_counts():
    found = compared("x 0.89", "x 0.9", "x 0.9")

    assert found.changes == ()
    assert found.deltas[0].outcome == "unchanged"


def test_a_broad_drop_is_more_than_noise():
    now = "\n".join(f"case{n} {0.6 + n % 3 / 100}" for n in range(20))
    before = "\n".join(f"case{n} {0.8 + n % 4 / 100}" for n in range(20))
    (delta,) = compared(now, before).deltas

    assert delta.outcome == "regressed"
    assert delta.p_value is not None
    assert delta.p_value < 0.02
    assert delta.interval is not None
    assert delta.interval[1] < 0


def test_a_broad_gain_is_an_improvement():
    before = "\n".join(f"case{n} {0.6 + n % 3 / 100}" for n in range(20))
    now = "\n".join(f"case{n} {0.8 + n % 4 / 100}" for n in range(20))

    assert compared(now, before).deltas[0].outcome == "improved"


def test_where_lower_is_better_a_rise_is_the_drop():
    lower = FACTS.model_copy(update={"better": "lower", "threshold": 0.5})
    found = compared("x 0.9\ny 0.8\nz 0.9\nu 1", "x 0.1\ny 0.2\nz 0.1\nu 0", facts=lower)
    (delta,) = found.deltas

    assert delta.outcome == "regressed"
    assert delta.effect is not None
    assert delta.effect > 0
    assert {change for change, _ in changes(found).values()} == {"newly_failing"}


def test_missing_observations_count_as_the_best_there_could_have_been():
    found = compared("x error\ny error\nz error\nu 1", "x 1\ny 1\nz 1\nu 1")

    assert found.deltas[0].outcome == "unchanged"
    assert changes(found) == dict.fromkeys("xyz", ("newly_erring", False))


def test_what_informs_is_compared_and_never_regresses():
    informs = FACTS.model_copy(update={"informational": True, "threshold": None, "interval": None})
    found = compared("x 9\ny 9\nz 9", "x 1\ny 1\nz 1", facts=informs)

    assert found.changes == ()
    assert found.deltas[0].effect == 8


def test_a_fixed_case_is_named():
    assert changes(compared("x 1", "x 0")) == {"x": ("fixed", False)}


def test_new_and_vanished_cases_are_named():
    found = compared("x 1\nnew 1", "x 1\nold 1")

    assert found.added == ("e/new",)
    assert [(gone.kind, gone.name, gone.where) for gone in found.vanished] == [("case", "old", "e")]


def test_of_a_part_of_the_suite_nothing_has_vanished():
    assert compared("x 1", "x 1\nold 1", filtered=True).vanished == ()


def test_a_vanished_criterion_is_named_once():
    before = past("x 1\ny 1")
    now = columns("x 1\ny 1")
    now.groups = {("a", "e", "other"): now.groups["a", "e", "c"]}
    facts = {"other": FACTS}
    found = compare(meta(criteria=facts), now, before, once())

    assert [(gone.kind, gone.name) for gone in found.vanished] == [("criterion", "c")]
    assert found.deltas[0].outcome == "not_compared"


def test_a_case_whose_content_changed_is_not_compared():
    found = compared("x@new 0\ny 1", "x@old 1\ny 1")

    assert found.not_comparable == ("case e/x: its content changed",)
    assert found.deltas[0].cases == 1
    assert found.changes == ()


def test_a_criterion_whose_options_changed_is_not_compared():
    changed = FACTS.model_copy(update={"fingerprint": "g"})
    found = compare(meta(facts=changed), columns("x 0"), past("x 1"), once())

    assert found.not_comparable == ("criterion c: its definition changed",)
    assert found.deltas[0].outcome == "not_compared"


def test_a_threshold_that_changed_is_compared_all_the_same():
    stricter = FACTS.model_copy(update={"threshold": 0.9})
    found = compare(meta(facts=stricter), columns("x 0.8"), past("x 0.8"), once())

    assert found.not_comparable == ()
    assert found.changes == ()


def test_the_baseline_is_named():
    found = compared("x 1", "x 1", "x 1")

    assert found.baseline_runs == ("past0", "past1")
    assert found.baseline_created == "2026-01-01T00:00:00+00:00"


# --- Criteria that are switched off -----------------------------------------------------------


def test_a_criterion_that_is_switched_off_has_not_vanished():
    before = past("x 1\ny 1")
    before[0].columns.groups["a", "e", "off"] = before[0].columns.groups["a", "e", "c"]
    found = compare(meta(disabled=("off",)), columns("x 1\ny 1"), before, once())
    missed = compare(meta(), columns("x 1\ny 1"), before, once())

    assert found.vanished == ()
    assert [(gone.kind, gone.name) for gone in missed.vanished] == [("criterion", "off")]


def test_cases_are_missed_whatever_is_switched_off():
    before = past("x 1\nold 1")
    found = compare(meta(disabled=("c",)), columns("x 1"), before, once())

    assert [(gone.kind, gone.name) for gone in found.vanished] == [("case", "old")]


# --- Measures without bounds ------------------------------------------------------------------


def test_without_bounds_a_drop_is_a_share_of_the_mean_of_the_baseline():
    # The mean is 20, of which 2 % are 0.4.
    before = "x 10\ny 30"
    less, more = "x 10.39\ny 30", "x 10.41\ny 30"

    assert compared(less, before, before, facts=SECONDS).changes == ()
    found = compared(more, before, before, facts=SECONDS)
    assert changes(found) == {"x": ("dropped", True)}
    assert found.deltas[0].outcome == "regressed"
    assert found.deltas[0].effect == pytest.approx(0.205)


def test_without_bounds_a_gain_is_no_drop():
    found = compared("x 1\ny 1", "x 10\ny 30", "x 10\ny 30", facts=SECONDS)

    assert found.changes == ()
    assert found.deltas[0].outcome != "regressed"


@given(st.integers(-6, 6))
def test_in_whatever_unit_something_is_measured_the_comparison_is_the_same(power):
    unit = 10.0**power
    facts = SECONDS.model_copy(update={"threshold": 100 * unit})
    before = "\n".join(f"case{n} {(8 + n % 4) * unit}" for n in range(20))
    now = "\n".join(f"case{n} {(11 + n % 3) * unit}" for n in range(20))
    (delta,) = compared(now, before, facts=facts).deltas
    (plain,) = compared(
        "\n".join(f"case{n} {11 + n % 3}" for n in range(20)),
        "\n".join(f"case{n} {8 + n % 4}" for n in range(20)),
        facts=SECONDS,
    ).deltas

    assert delta.outcome == plain.outcome == "regressed"
    assert delta.p_value == pytest.approx(plain.p_value)
    assert delta.effect == pytest.approx(plain.effect * unit)


def test_costs_of_millionths_are_seen():
    facts = SECONDS.model_copy(update={"threshold": 1.0})
    found = compared("x 0.000002\ny 0.000002", *["x 0.000001\ny 0.000001"] * 2, facts=facts)

    assert changes(found) == {"x": ("dropped", True), "y": ("dropped", True)}
    assert found.deltas[0].outcome == "regressed"


def test_what_was_free_and_now_costs_something_is_a_drop():
    assert compared("x 0", "x 0", "x 0", facts=SECONDS).changes == ()
    found = compared("x 0.000001", "x 0", "x 0", facts=SECONDS)

    assert changes(found) == {"x": ("dropped", True)}


def test_with_bounds_a_drop_is_a_share_of_the_interval_and_not_of_the_mean():
    stars = FACTS.model_copy(update={"interval": (1.0, 5.0), "threshold": 1.0})
    # 2 % of four stars are 0.08, whatever the mean was.
    assert compared("x 1.93", "x 2", "x 2", facts=stars).changes == ()
    assert changes(compared("x 1.9", "x 2", "x 2", facts=stars)) == {"x": ("dropped", True)}


# --- Growth that is tolerated -----------------------------------------------------------------

LATENCY = SECONDS.model_copy(
    update={"threshold": None, "informational": True, "max_growth": 0.2, "tier": "block"}
)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 3600.0])
@pytest.mark.parametrize(
    ("factor", "outcome"),
    [(0.5, "improved"), (1.0, "unchanged"), (1.15, "unchanged"), (1.6, "regressed")],
)
def test_a_measure_may_grow_by_what_is_tolerated_and_no_more(factor, outcome, unit):
    def took(by: float, shift: int) -> str:
        return "\n".join(
            f"case{n} {unit * by * (2 + n % 5) * (0.9 + (n + shift) % 3 / 10)!r}" for n in range(30)
        )

    (delta,) = compared(took(factor, 0), took(1, 1), took(1, 2), facts=LATENCY).deltas

    assert delta.outcome == outcome
    assert delta.effect == pytest.approx((factor - 1) * delta.baseline, rel=0.2, abs=0.1 * unit)


def test_where_nothing_ever_varied_growth_of_a_single_case_is_seen():
    before = ["x 10\ny 30"] * 2

    # A fifth of the mean of 20 is 4.
    assert compared("x 13.9\ny 30", *before, facts=LATENCY).deltas[0].outcome == "unchanged"
    assert compared("x 14.1\ny 30", *before, facts=LATENCY).deltas[0].outcome == "regressed"


# --- Nonsense in what was stored --------------------------------------------------------------


def test_a_run_of_the_baseline_with_a_gate_that_is_none_is_an_error():
    before = past("x 1")
    stored = before[0]._replace(meta=meta("past0", gate={"false_block": 7}))

    with pytest.raises(BaselineError, match=r"the stored run past0 cannot be read: gate\."):
        compare(meta(), columns("x 1"), [stored], once())
