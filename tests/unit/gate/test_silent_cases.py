"""Cases in which a criterion no longer finds anything to measure."""

import pytest
from support.run_language import FACTS, columns, meta, once, past

from ci_eval.gate.case_counts import count_cases, summarise
from ci_eval.gate.compare import compare
from ci_eval.gate.decide import decide
from ci_eval.records.comparisons import Comparison
from ci_eval.records.findings import Verdict

TEN = "\n".join(f"n{n} 1" for n in range(10))


def silent(count: int) -> str:
    """Return a run in which this many of ten cases cannot be measured."""
    return TEN.replace(" 1", " skip", count)


def compared(now: str, *before: str, tier: str = "block", **gate: object) -> Comparison:
    facts = FACTS.model_copy(update={"tier": tier})
    return compare(meta(facts=facts), columns(now, facts), past(*before, facts=facts), once(**gate))


def verdict(now: str, *before: str, **gate: object) -> Verdict:
    gate |= {"allow_unjudged": ("n*",)}
    options, run, values = once(**gate), meta(), columns(now)
    totals, groups = count_cases(run, values, options), summarise(run, values)
    found = compared(now, *before, **gate)
    return decide(options, totals, groups, found, baseline_configured=True)


@pytest.mark.parametrize(("count", "runs"), [(8, 1), (6, 3), (9, 5)])
def test_more_silent_cases_than_chance_explains_block(count, runs):
    found = verdict(silent(count), *[TEN] * runs)

    assert found.outcome == "failed"
    assert found.reasons[0].message.startswith(
        f"c on e with a finds nothing to measure in {count} cases that it measured before: n0, n1"
    )
    assert verdict(silent(count), *[TEN] * runs, on_vanished="warn").outcome == "passed"


@pytest.mark.parametrize(("count", "runs"), [(6, 1), (5, 1), (3, 5)])
def test_an_unusual_number_of_silent_cases_is_a_doubt(count, runs):
    found = verdict(silent(count), *[TEN] * runs)

    assert found.outcome == "passed"
    assert found.undecided.startswith("to decide it, let the criteria measure the same cases")
    assert verdict(silent(count), *[TEN] * runs, on_inconclusive="fail").outcome == "failed"


@pytest.mark.parametrize(("count", "before"), [(2, [TEN]), (1, [TEN] * 4), (9, [silent(9), TEN])])
def test_what_chance_explains_is_named(count, before):
    found = verdict(silent(count), *before)

    assert (found.outcome, found.undecided) == ("passed", "")
    (silence,) = [each for each in found.reasons if each.kind == "silent"]
    assert (silence.severity, "n0" in silence.message) == ("info", True)


def test_a_criterion_that_measures_some_trials_only_may_be_silent_in_other_cases():
    swapped = "\n".join(f"n{n} {'skip' if n > 4 else '1'}" for n in range(10))

    assert not verdict(silent(5), swapped).undecided


@pytest.mark.parametrize("now", [TEN, TEN.replace("n0 1", "n0 error"), f"{TEN}\nnew skip"])
def test_what_is_measured_lost_or_new_is_not_silent(now):
    assert compared(now, TEN).silent == ()


def test_a_criterion_that_measures_nothing_has_vanished():
    found = compared(silent(10), TEN)

    assert ([gone.where for gone in found.vanished], found.silent) == (["e with a"], ())


def test_what_cannot_block_and_what_is_exempt_is_left_out():
    case = {"case": "n0", "reason": "x", "owner": "x", "until": "2026-12-31"}

    assert compared(silent(9), TEN, tier="warn").silent == ()
    assert compared(silent(1), TEN, quarantine=(case,)).silent == ()
