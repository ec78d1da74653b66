"""What a change makes easier to pass."""

import pytest
from support.run_language import FACTS, meta

from ci_eval.gate.weakened_gate import loosened
from ci_eval.records.errors import BaselineError
from ci_eval.records.results import RunMeta

UNTIL = "2027-01-31"
ACCEPTED = {"case": "x", "until": UNTIL, "reason": "it was wrong"}
QUARANTINED = {"case": "x", "until": UNTIL, "owner": "the team"}


def of_gate(now: dict[str, object], before: dict[str, object]) -> list[str]:
    return [*loosened(meta(gate=now), meta(gate=before))]


@pytest.mark.parametrize(
    ("now", "before", "said"),
    [
        ({"max_drop": 0.1}, {}, "gate.max_drop: 0.02 → 0.1"),
        ({"max_errors": 3}, {"max_errors": 1}, "gate.max_errors: 1 → 3"),
        ({"false_block": 0.001}, {}, "gate.false_block: 0.02 → 0.001"),
        ({"on_missing": "pass"}, {}, "gate.on_missing: threshold → pass"),
        ({}, {"on_missing": "fail"}, "gate.on_missing: fail → threshold"),
        ({}, {"on_inconclusive": "fail"}, "gate.on_inconclusive: fail → rerun"),
        ({"on_inconclusive": "warn"}, {}, "gate.on_inconclusive: rerun → warn"),
        ({"on_inconclusive": "pass"}, {}, "gate.on_inconclusive: rerun → pass"),
        ({"on_vanished": "pass"}, {}, "gate.on_vanished: fail → pass"),
        ({}, {"on_loosened": "fail"}, "gate.on_loosened: fail → warn"),
        ({"rerun_budget": 2}, {}, "gate.rerun_budget: 10 → 2"),
        ({}, {"floors": "point"}, "gate.floors: point → interval"),
        ({"mode": "threshold"}, {"mode": "both"}, "gate.mode: both → threshold"),
        ({}, {"min_pass_rate": 0.9}, "gate.min_pass_rate: 0.9 → none"),
        ({"min_pass_rate": 0.8}, {"min_pass_rate": 0.9}, "gate.min_pass_rate: 0.9 → 0.8"),
        (
            {"mode": "threshold", "min_pass_rate": 0.9},
            {"mode": "threshold"},
            "gate.min_pass_rate: 1 → 0.9",
        ),
        ({}, {"min_score": {"c": 0.7}}, "gate.min_score.c: 0.7 → none"),
        ({"min_score": {"c": 0.6}}, {"min_score": {"c": 0.7}}, "gate.min_score.c: 0.7 → 0.6"),
        ({"allow_unjudged": ["x"]}, {}, "gate.allow_unjudged: x is added"),
        (
            {"allow_unjudged": ["x", {"case": "y*", "evalset": "e"}]},
            {"allow_unjudged": [{"case": "x", "reason": "small talk"}]},
            "gate.allow_unjudged: e/y* is added",
        ),
        ({"accept": [ACCEPTED]}, {}, f"gate: x is accepted until {UNTIL}"),
        ({"quarantine": [QUARANTINED]}, {}, f"gate: x is quarantined until {UNTIL}"),
        (
            {"quarantine": [{**QUARANTINED, "case": "*"}]},
            {},
            f"gate: every case is quarantined until {UNTIL}",
        ),
    ],
)
def test_each_key_that_lets_more_through_is_said_and_the_other_way_round_is_not(now, before, said):
    assert of_gate(now, before) == [said]
    assert of_gate(before, now) == []
    assert of_gate(now, now) == []


def test_many_excuses_hide_nothing_that_excuses_more():
    accepted = [ACCEPTED | {"case": f"old{number}"} for number in range(6)]
    accepted += [ACCEPTED | {"case": f"none{number}*"} for number in range(2)]
    now = {"accept": accepted, "quarantine": [QUARANTINED | {"case": "*"}], "on_vanished": "warn"}

    assert of_gate({**now, "allow_unjudged": ["?*"]}, {}) == [
        "gate.on_vanished: fail → warn",
        f"gate: every case is quarantined until {UNTIL}",
        f"gate: none0* is accepted until {UNTIL}",
        f"gate: none1* is accepted until {UNTIL}",
        "gate.allow_unjudged: ?* is added",
        f"gate: old0 is accepted until {UNTIL}",
        f"gate: old1 is accepted until {UNTIL}",
        "gate: 4 more cases in accept, quarantine or allow_unjudged",
    ]


def test_an_excuse_that_is_prolonged_is_said():
    longer = QUARANTINED | {"until": "2028-01-31"}

    assert of_gate({"quarantine": [longer]}, {"quarantine": [QUARANTINED]}) == [
        "gate: x is quarantined until 2028-01-31"
    ]


def test_an_excuse_that_is_over_excuses_nothing():
    # The run began on the day after.
    assert of_gate({"quarantine": [QUARANTINED | {"until": "2025-12-31"}]}, {}) == []
    assert len(of_gate({"quarantine": [QUARANTINED | {"until": "2026-01-01"}]}, {})) == 1


def test_a_mode_that_is_left_out_is_not_known_to_be_looser():
    assert of_gate({}, {"mode": "both"}) == []


def test_a_mode_that_is_left_out_is_that_of_a_run_with_a_baseline():
    kept = {"store": "file"}
    usual, by_threshold = meta(store=kept), meta(store=kept, gate={"mode": "threshold"})
    both = meta(store=kept, gate={"mode": "both"})

    assert [*loosened(by_threshold, usual)] == ["gate.mode: regression → threshold"]
    assert [*loosened(usual, both)] == ["gate.mode: both → regression"]
    # Cases that failed before and still fail no longer block.
    assert [*loosened(usual, by_threshold)] == ["gate.mode: threshold → regression"]
    assert [*loosened(both, usual)] == [*loosened(both, by_threshold)] == []


def test_where_lower_is_better_a_greater_mean_is_the_looser_one():
    lower = FACTS.model_copy(update={"better": "lower"})
    strict = meta(facts=lower, gate={"min_score": {"c": 0.2}})
    loose = meta(facts=lower, gate={"min_score": {"c": 0.4}})

    assert [*loosened(loose, strict)] == ["gate.min_score.c: 0.2 → 0.4"]
    assert [*loosened(strict, loose)] == []


def of_criterion(now: dict[str, object], before: dict[str, object]) -> list[str]:
    new, old = (meta(facts=FACTS.model_copy(update=each)) for each in (now, before))
    return [*loosened(new, old)]


@pytest.mark.parametrize(
    ("now", "before", "said"),
    [
        ({"threshold": 0.4}, {}, "threshold of c: 0.5 → 0.4"),
        ({"threshold": None}, {}, "threshold of c: 0.5 → none"),
        (
            {"threshold": 0.6, "better": "lower"},
            {"threshold": 0.5, "better": "lower"},
            "threshold of c: 0.5 → 0.6",
        ),
        ({"tier": "warn"}, {}, "tier of c: block → warn"),
        ({"tier": "inform"}, {"tier": "warn"}, "tier of c: warn → inform"),
        ({"max_growth": 0.3}, {"max_growth": 0.2}, "max_growth of c: 0.2 → 0.3"),
        ({"max_growth": None}, {"max_growth": 0.2}, "max_growth of c: 0.2 → none"),
    ],
)
def test_each_fact_of_a_criterion_that_lets_more_through_is_said(now, before, said):
    assert of_criterion(now, before) == [said]
    assert of_criterion(before, now) == []


def test_a_criterion_with_other_options_is_said_either_way():
    said = "criterion c changed its definition"

    assert (
        of_criterion({"fingerprint": "g"}, {}) == of_criterion({}, {"fingerprint": "g"}) == [said]
    )


def test_a_criterion_that_is_switched_off_is_said():
    off = meta(criteria={}, disabled=("c", "was never there"))

    assert [*loosened(off, meta())] == ["criterion c is disabled"]


def test_repeats_are_those_of_the_configurations():
    three, one = meta(repeats=3, configured_repeats=1), meta(repeats=1, configured_repeats=1)

    assert [*loosened(one, three)] == [*loosened(three, one)] == []
    kept = meta(repeats=1, configured_repeats=3)
    assert [*loosened(one, kept)] == ["run.repeats: 3 → 1"]
    assert [*loosened(kept, meta(repeats=3, configured_repeats=3))] == ["--repeats: 3 → 1"]
    assert [*loosened(kept, kept)] == []


def test_fewer_repeats_and_another_store_are_said():
    now = meta(repeats=1, store={"store": "file", "path": "b.json"})
    before = meta(repeats=3, store={"store": "file", "path": "a.json"})

    assert [*loosened(now, before)] == ["baseline: location changed", "run.repeats: 3 → 1"]
    shorter = meta(repeats=3, store={"store": "file", "path": "a.json", "window": 1})
    assert [*loosened(shorter, before)] == ["baseline.window: 5 → 1"]
    assert [*loosened(before, shorter)] == ["baseline.window: 1 → 5"]
    # A run that had no store yet is no reason to warn of one.
    assert [*loosened(now, meta())] == []


@pytest.mark.parametrize(
    ("gate", "where"),
    [
        ({"max_drop": "nonsense"}, "gate.max_drop: "),
        ({"accept": [{"case": "x"}]}, "gate.accept"),
        ({"unheard_of": 1}, "gate.unheard_of: "),
        ({"quarantine": "x"}, "gate.quarantine: "),
    ],
)
def test_what_a_stored_run_says_of_its_gate_may_be_nonsense(gate, where):
    before: RunMeta = meta("past0", gate=gate)

    with pytest.raises(BaselineError) as caught:
        [*loosened(meta(), before)]
    assert str(caught.value).startswith(f"the stored run past0 cannot be read: {where}")
