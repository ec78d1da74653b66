"""What changed against a baseline, and what of it is not noise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import FACTS, columns, meta, past, results

from ci_eval.columns import Columns
from ci_eval.compare import compare
from ci_eval.config_file import GateOptions
from ci_eval.findings import Comparison
from ci_eval.results import CriterionFacts


def compared(now: str, *before: str, facts: CriterionFacts = FACTS, **more: object) -> Comparison:
    return compare(
        meta(facts=facts, **more),
        columns(now, facts),
        past(*before, facts=facts),
        GateOptions(),
    )


def changes(comparison: Comparison) -> dict[str, tuple[str, bool]]:
    return {change.case: (change.change, change.certain) for change in comparison.changes}


def test_a_run_compared_with_itself_has_no_change():
    found = compared("x 1\ny 0.3\nz error", "x 1\ny 0.3\nz 1")
    (delta,) = found.deltas

    assert delta.outcome == "unchanged"
    assert delta.effect == 0
    assert changes(found) == {"z": ("newly_erring", False)}


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_nothing_regresses_against_the_same_values(values):
    text = "\n".join(f"case{number} {value}" for number, value in enumerate(values))
    found = compared(text, text, text)

    assert found.changes == ()
    assert [delta.outcome for delta in found.deltas] == ["unchanged"]


def test_a_flip_after_one_run_is_only_suspected():
    found = compared("x 0\ny 1\nz 1", "x 1\ny 1\nz 1")

    assert changes(found) == {"x": ("newly_failing", False)}
    assert found.deltas[0].outcome == "inconclusive"


def test_a_flip_where_nothing_ever_varied_is_a_flip():
    found = compared("x 0\ny 1\nz 1", "x 1\ny 1\nz 1", "x 1\ny 1\nz 1")

    assert changes(found) == {"x": ("newly_failing", True)}
    assert found.deltas[0].outcome == "regressed"
    assert found.deltas[0].steady


def test_a_flip_where_some_case_varied_is_only_suspected():
    found = compared("x 0\ny 1\nz 1", "x 1\ny 1\nz 1", "x 1\ny 0\nz 1")

    assert found.deltas[0].outcome == "inconclusive"


def test_a_case_that_was_added_lately_does_not_hide_that_the_others_never_varied():
    found = compared("x 0\nnew 0", "x 1\nnew 1", "x 1")

    assert changes(found) == {"x": ("newly_failing", True), "new": ("newly_failing", False)}
    assert found.deltas[0].outcome == "regressed"


def test_a_flip_among_many_cases_is_suspected_too():
    many = "\n".join(f"case{n} 1" for n in range(200))
    found = compared(many.replace("case7 1", "case7 0"), many)

    assert changes(found) == {"case7": ("newly_failing", False)}
    assert found.deltas[0].outcome == "inconclusive"
    assert "passed every time before fails now, which may be noise" in found.deltas[0].reason


def test_a_criterion_that_one_agent_is_no_longer_scored_by_is_named():
    before = past("x 1")
    extra = Columns.of([*results("x 1"), *results("x 1", criterion="d", agent="b")])
    now = Columns.of([*results("x 1"), *results("x 1", criterion="d"), *results("x 1", agent="b")])
    facts = {"c": FACTS, "d": FACTS}
    found = compare(meta(criteria=facts), now, [before[0]._replace(columns=extra)], GateOptions())

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
    found = compare(meta(criteria=facts), now, before, GateOptions())

    assert [(gone.kind, gone.name) for gone in found.vanished] == [("criterion", "c")]
    assert found.deltas[0].outcome == "not_compared"


def test_a_case_whose_content_changed_is_not_compared():
    found = compared("x@new 0\ny 1", "x@old 1\ny 1")

    assert found.not_comparable == ("case e/x: its content changed",)
    assert found.deltas[0].cases == 1
    assert found.changes == ()


def test_a_criterion_whose_options_changed_is_not_compared():
    changed = FACTS.model_copy(update={"fingerprint": "g"})
    found = compare(meta(facts=changed), columns("x 0"), past("x 1"), GateOptions())

    assert found.not_comparable == ("criterion c: its options changed",)
    assert found.deltas[0].outcome == "not_compared"


def test_a_threshold_that_changed_is_compared_all_the_same():
    stricter = FACTS.model_copy(update={"threshold": 0.9})
    found = compare(meta(facts=stricter), columns("x 0.8"), past("x 0.8"), GateOptions())

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
    found = compare(meta(disabled=("off",)), columns("x 1\ny 1"), before, GateOptions())
    missed = compare(meta(), columns("x 1\ny 1"), before, GateOptions())

    assert found.vanished == ()
    assert [(gone.kind, gone.name) for gone in missed.vanished] == [("criterion", "off")]


def test_cases_are_missed_whatever_is_switched_off():
    before = past("x 1\nold 1")
    found = compare(meta(disabled=("c",)), columns("x 1"), before, GateOptions())

    assert [(gone.kind, gone.name) for gone in found.vanished] == [("case", "old")]


# --- Measures without bounds ------------------------------------------------------------------

SECONDS = FACTS.model_copy(update={"better": "lower", "threshold": 100.0, "interval": None})
"""At most a hundred, of as many as there may be."""


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
