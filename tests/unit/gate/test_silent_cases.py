"""Cases in which a criterion no longer finds anything to measure."""

import pytest
from support.run_language import FACTS, columns, meta, once, past

from ci_eval.gate.compare import compare
from ci_eval.records.findings import Comparison

TEN = "\n".join(f"n{n} 1" for n in range(10))


def silent(count: int) -> str:
    """Return a run in which this many of ten cases cannot be measured."""
    return TEN.replace(" 1", " skip", count)


def compared(now: str, *before: str, tier: str = "block", **gate: object) -> Comparison:
    facts = FACTS.model_copy(update={"tier": tier})
    return compare(meta(facts=facts), columns(now, facts), past(*before, facts=facts), once(**gate))


@pytest.mark.parametrize(("count", "runs"), [(8, 1), (6, 3), (9, 5)])
def test_more_silent_cases_than_chance_explains_are_a_criterion_that_vanished(count, runs):
    found = compared(silent(count), *[TEN] * runs)

    assert [(gone.kind, gone.name, gone.where) for gone in found.vanished] == [
        ("criterion", "c", f"{count} cases of e with a")
    ]
    assert found.not_comparable == ()


@pytest.mark.parametrize(("count", "before"), [(2, TEN), (7, TEN), (9, silent(9))])
def test_a_few_silent_cases_are_named(count, before):
    found = compared(silent(count), before, TEN) if before != TEN else compared(silent(count), TEN)

    assert found.vanished == ()
    assert [*found.not_comparable] == [
        f"case e/n{n}: c finds nothing to measure" for n in range(count)
    ]


@pytest.mark.parametrize("now", [TEN, TEN.replace("n0 1", "n0 error"), f"{TEN}\nnew skip"])
def test_what_is_measured_lost_or_new_is_not_silent(now):
    found = compared(now, TEN)

    assert (found.vanished, found.not_comparable) == ((), ())


def test_a_criterion_that_measures_nothing_is_named_once():
    assert [gone.where for gone in compared(silent(10), TEN).vanished] == ["e with a"]


def test_what_cannot_block_and_what_is_exempt_is_left_out():
    case = {"case": "n0", "reason": "x", "owner": "x", "until": "2026-12-31"}

    assert compared(silent(9), TEN, tier="warn").vanished == ()
    assert compared(silent(1), TEN, quarantine=(case,)).not_comparable == ()
