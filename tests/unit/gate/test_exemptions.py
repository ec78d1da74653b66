"""What is excused, while it is, and what is said of it."""

from datetime import date

import pytest
from pydantic import ValidationError
from support.run_language import columns, meta, once, past

from ci_eval.config.config_schema import Acceptance, GateOptions, Quarantine
from ci_eval.gate.case_counts import count_cases, summarise
from ci_eval.gate.compare import compare
from ci_eval.gate.decide import decide
from ci_eval.gate.exemptions import covers, day_of, excused, gate_of, in_force, listed, reasons_of
from ci_eval.records.comparisons import Comparison
from ci_eval.records.errors import BaselineError

TODAY, YESTERDAY = date(2026, 1, 1), date(2025, 12, 31)
"""The runs of these tests began today."""
GROUP = ("a", "e", "c")


def quarantine(case: str, until: date = TODAY, **more: object) -> dict[str, object]:
    return {"case": case, "until": until, "owner": "the team", **more}


def accepted(case: str, until: date = TODAY, **more: object) -> dict[str, object]:
    return {"case": case, "until": until, "reason": "it was wrong", **more}


@pytest.mark.parametrize(
    ("named", "covered"),
    [
        ({"case": "x"}, True),
        ({"case": "X"}, False),
        ({"case": "x*"}, True),
        ({"case": "y"}, False),
        ({"case": "x", "criterion": "c"}, True),
        ({"case": "x", "criterion": "d"}, False),
        ({"case": "x", "evalset": "f"}, False),
        ({"case": "x", "agent": "b"}, False),
        ({"case": "*", "agent": "[ab]", "evalset": "?"}, True),
    ],
)
def test_an_excuse_covers_what_all_of_its_patterns_fit(named, covered):
    excuse = Quarantine(until=TODAY, owner="the team", **named)

    assert covers(excuse, GROUP, "x") is covered


def test_an_excuse_covers_the_case_that_it_names_whatever_its_id_means_as_a_pattern():
    excuse = Quarantine(until=TODAY, owner="the team", case="x[1]")

    assert covers(excuse, GROUP, "x[1]")
    assert covers(excuse, GROUP, "x1")
    assert not covers(excuse, GROUP, "x[2]")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("soon", "'soon'"),
        ("2026-02-31", "'2026-02-31'"),
        ("2026-1-1", "'2026-1-1'"),
        ("2026-12-31T10:00:00Z", "'2026-12-31T10:00:00Z'"),
        # Neither 1970, nor the second of some day.
        (20271231, "20271231"),
        (1830297600, "1830297600"),
    ],
)
def test_the_last_day_must_be_a_day(given, found):
    with pytest.raises(ValidationError, match=f"must be a date such as 2027-01-31, found {found}"):
        Quarantine.model_validate(quarantine("x", given))


def test_the_last_day_is_read_as_it_is_written():
    assert Quarantine.model_validate(quarantine("x", "2026-01-01")).until == TODAY


def compared(now: str, *before: str, **gate: object) -> Comparison:
    return compare(meta(), columns(now), past(*before), once(**gate))


def test_a_case_in_quarantine_decides_nothing_and_is_shown():
    found = compared("x 0\ny 1", *["x 1\ny 1"] * 2, quarantine=[quarantine("x")])
    (delta,), (change,), (excuse,) = found.deltas, found.changes, found.excused

    assert (delta.outcome, delta.cases, delta.effect) == ("unchanged", 1, 0)
    assert (change.case, change.change, change.excused) == ("x", "newly_failing", "quarantined")
    assert (change.certain, change.suspected) == (False, False)
    assert (excuse.kind, excuse.named, excuse.cases) == ("quarantined", "x", ("e/x",))
    assert (excuse.owner, excuse.until, excuse.expired) == ("the team", "2026-01-01", False)


def test_the_baseline_has_a_mean_with_exempt_cases_too():
    before = ["x 0\ny 1"] * 2
    (exempt,) = compared("x 0\ny 1", *before, quarantine=[quarantine("x")]).deltas
    (judged,) = compared("x 0\ny 1", *before).deltas

    assert (exempt.value, exempt.baseline, exempt.baseline_with_exempt) == (1, 1, 0.5)
    assert (judged.baseline, judged.baseline_with_exempt) == (0.5, None)


def test_an_accepted_drop_decides_nothing_under_the_criterion_it_names():
    accept = [accepted("x", criterion="c")]
    found = compared("x 0\ny 1", *["x 1\ny 1"] * 2, accept=accept)
    other = compared("x 0\ny 1", *["x 1\ny 1"] * 2, accept=[accepted("x", criterion="d")])

    assert found.deltas[0].outcome == "unchanged"
    assert found.changes[0].excused == "accepted"
    assert other.deltas[0].outcome == "regressed"
    assert other.excused[0].cases == ()


def test_an_excuse_that_is_over_excuses_nothing_and_is_said():
    found = compared("x 0\ny 1", *["x 1\ny 1"] * 2, quarantine=[quarantine("x", YESTERDAY)])

    assert found.deltas[0].outcome == "regressed"
    assert found.excused[0].expired
    assert found.excused[0].cases == ()


def test_without_a_baseline_exemptions_are_reasons_too():
    gate = once(quarantine=[quarantine("x"), quarantine("y", YESTERDAY)])
    run, values = meta(), columns("x 1\ny 1")
    totals, groups = count_cases(run, values, gate), summarise(run, values)
    reasons = [*reasons_of(excused(run, gate, values), run, gate, values, None)]
    found = decide(gate, totals, groups, None, baseline_configured=False, exemptions=reasons)

    assert found.outcome == "passed"
    assert [(each.kind, each.severity, each.message) for each in found.reasons] == [
        ("expired_exemption", "warns", "gate: quarantine of y expired on 2025-12-31"),
        ("exempt", "info", "quarantined until 2026-01-01 (the team): e/x"),
    ]


def means_of(now: str, **gate: object) -> list[str]:
    run, values, options = meta(), columns(now), once(min_score={"c": 0.9}, **gate)
    groups = summarise(run, values, excused(run, options, values))
    found = decide(
        options, count_cases(run, values, options), groups, None, baseline_configured=False
    )
    return [each.message for each in found.reasons if each.kind == "floor" and each.group]


def test_exempt_cases_do_not_count_for_a_required_mean():
    now = "x 0\ny 1\nz 1"

    assert means_of(now, quarantine=[quarantine("x")], mode="threshold") == []
    assert means_of(now, accept=[accepted("x")], mode="threshold") == []
    assert means_of(now, quarantine=[quarantine("x", YESTERDAY)], floors="point") == [
        "c on e with a has a mean of 0.667, required 0.9"
    ]


def test_a_required_mean_that_is_missed_says_which_cases_it_leaves_out():
    found = means_of("x 1\ny 0\nz 0\nu error", quarantine=[quarantine("x")], floors="point")

    assert found == [
        "c on e with a has a mean of 0.000 without 1 case and 1 exempt case, required 0.9"
    ]


def test_if_all_cases_are_exempt_no_mean_is_required():
    assert means_of("x 0\ny 0", quarantine=[quarantine("*")]) == []


def said_of_worse(now: str, before: str, **gate: object) -> list[str]:
    run, values, options = meta(), columns(now), once(**gate)
    found = compare(run, values, past(before), options)
    reasons = reasons_of(excused(run, options, values), run, options, values, found)
    return [each.message for each in reasons if each.kind == "exempt_worse"]


def test_exempted_cases_that_failed_or_fell_are_named():
    before = "failed 0\nfell 1\nsteady 1\nother 1"
    accept = [accepted("f*"), accepted("steady")]

    assert said_of_worse(before, before, accept=accept[1:]) == []
    assert said_of_worse("failed 0\nfell 0.6\nsteady 1\nother 1", before, accept=accept) == [
        "e/failed, e/fell did not pass or got worse; accepted until 2026-01-01: it was wrong"
    ]


def test_the_first_exemptions_that_cover_worse_cases_are_named():
    cases = "\n".join(f"c{number} 0" for number in range(7))
    *first, last = said_of_worse(
        cases, cases, quarantine=[quarantine(f"c{number}") for number in range(7)]
    )

    assert len(first) == 5
    assert last == "cases of 2 more exemptions did not pass or got worse"


def test_where_all_cases_are_excused_nothing_is_compared():
    found = compared("x 0\ny 0", *["x 1\ny 1"] * 2, quarantine=[quarantine("*")])

    assert found.deltas[0].outcome == "not_compared"
    assert found.deltas[0].reason == "all cases are accepted or quarantined"


def test_to_excuse_the_flaky_case_makes_no_other_one_steady():
    before = ["x 1\nflaky 1", "x 1\nflaky 0"]
    found = compared("x 0\nflaky 1", *before, quarantine=[quarantine("flaky")])

    assert not found.deltas[0].steady
    assert found.deltas[0].outcome == "inconclusive"


def test_who_accepts_a_drop_accepts_no_error():
    accept = compared("x error\ny 1", "x 1\ny 1", accept=[accepted("x")])
    apart = compared("x error\ny 1", "x 1\ny 1", quarantine=[quarantine("x")])

    assert [each.cases for each in (*accept.excused, *apart.excused)] == [(), ("e/x",)]


def test_what_a_run_of_the_baseline_accepted_begins_a_new_level():
    accept = [accepted("x", date(2026, 6, 1))]
    nearest, *older = past("x 0.6\ny 1", "x 1\ny 1", "x 1\ny 1")
    nearest = nearest._replace(meta=meta("past0", gate={"accept": _json(accept)}))
    new, gate = columns("x 0.6\ny 1"), once()
    found = compare(meta(), new, [nearest, *older], gate)
    without = compare(meta(), new, past("x 0.6\ny 1", "x 1\ny 1", "x 1\ny 1"), gate)

    assert found.deltas[0].baseline == pytest.approx(0.8)
    assert found.deltas[0].effect == 0
    assert without.deltas[0].effect == pytest.approx((0.6 - 2.6 / 3) / 2)


def _json(excuses: list[dict[str, object]]) -> list[dict[str, object]]:
    return [each | {"until": str(each["until"])} for each in excuses]


def test_the_first_excuse_that_covers_a_case_is_its_reason():
    gate = GateOptions.model_validate(
        {"quarantine": [quarantine("x")], "accept": [accepted("*", criterion="c")]}
    )
    values = columns("x 0\ny 1")
    found = excused(meta(), gate, values)

    assert {case: each.kind for case, each in found[GROUP].items()} == {
        "x": "quarantined",
        "y": "accepted",
    }
    assert [(each.kind, each.cases) for each in listed(meta(), gate, found)] == [
        ("accepted", ("e/y",)),
        ("quarantined", ("e/x",)),
    ]


def test_without_an_excuse_no_case_is_looked_at():
    assert excused(meta(), once(), columns("x 0")) == {}


def test_what_was_in_force_is_what_held_on_the_day_of_the_run():
    gate = {"accept": _json([accepted("x"), accepted("y", YESTERDAY)])}

    assert in_force(meta(gate=gate)) == [Acceptance.model_validate(accepted("x"))]


def test_a_run_that_began_at_no_time_cannot_be_read():
    with pytest.raises(BaselineError, match="past0 cannot be read: created: 'soon' is not a date"):
        day_of(meta("past0", created="soon"))


def test_a_gate_that_is_none_cannot_be_read():
    with pytest.raises(BaselineError, match=r"past0 cannot be read: gate\.max_drop: "):
        gate_of(meta("past0", gate={"max_drop": [1]}))
