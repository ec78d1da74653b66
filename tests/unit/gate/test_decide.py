"""What blocks a merge, what only warns, and when there is no verdict."""

from collections.abc import Iterator, Mapping
from itertools import product
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from support.run_language import FACTS, columns, meta, once, past, results
from support.slow_params import some

from ci_eval.config.config_schema import GateOptions
from ci_eval.gate import mean_drop
from ci_eval.gate.case_counts import count_cases, summarise
from ci_eval.gate.compare import compare
from ci_eval.gate.decide import decide
from ci_eval.records.comparisons import Comparison, Together
from ci_eval.records.findings import Verdict
from ci_eval.records.results import CriterionFacts, RunMeta, TrialResult
from ci_eval.run_files.score_table import Columns, Past
from ci_eval.stats import effective_test_count

SOLID = "x 1\ny 1\nz 1"


def verdict(now: str, *before: str, configured: bool | None = None, **options: object) -> Verdict:
    """Return the verdict on a run; without runs before there is no baseline."""
    gate = once(**options)
    run, values = meta(), columns(now)
    comparison = None
    if before:
        comparison = compare(run, values, past(*before), gate)
    return decided(gate, run, values, comparison, configured=configured)


def decided(
    gate: GateOptions,
    run: RunMeta,
    values: Columns,
    comparison: Comparison | None = None,
    *,
    configured: bool | None = None,
) -> Verdict:
    """Return the verdict on what was measured; a comparison is one with a configured baseline."""
    if configured is None:
        configured = comparison is not None
    totals, groups = count_cases(run, values, gate), summarise(run, values)
    return decide(gate, totals, groups, comparison, baseline_configured=configured)


def said(found: Verdict, severity: str) -> list[str]:
    return [reason.message for reason in found.reasons if reason.severity == severity]


@pytest.mark.parametrize(
    ("now", "tells"),
    [("x 0\ny 0\nz 0", False), (SOLID, True)],
    ids=["beside a regression", "alone"],
)
def test_a_doubt_about_all_together_is_told_only_where_none_regressed(now, tells):
    run, values, gate = meta(), columns(now), once()
    together = Together(criteria=2, effect=-0.1, p_value=0.1, level=0.01, outcome="inconclusive")
    before = past(*[SOLID] * 5)
    comparison = compare(run, values, before, gate).model_copy(update={"together": together})
    found = decided(gate, run, values, comparison)
    assert any("combined are worse by 0.100" in each.message for each in found.reasons) is tells
    assert found.outcome == ("passed" if tells else "failed")


# --- Thresholds -------------------------------------------------------------------------------


def test_without_a_baseline_every_case_must_pass():
    assert verdict(SOLID).outcome == "passed"
    found = verdict("x 0\ny 1\nz 1\nu 1")

    assert found.outcome == "failed"
    assert found.mode == "threshold"
    assert said(found, "blocks") == ["1 of 4 cases failed (pass rate 75.0%, required 100.0%)"]


def test_what_a_change_loosens_is_told_where_nothing_is_compared():
    values = columns("x 1")
    groups, totals = summarise(meta(), values), count_cases(meta(), values, once())
    found = decide(once(), totals, groups, None, baseline_configured=False, loosened=["one", "two"])

    assert found.outcome == "passed"
    assert said(found, "warns") == ["this change weakens its own gate: one, two"]


@pytest.mark.parametrize(
    ("chosen", "loosened", "outcome"),
    [
        ("warn", "gate.max_drop: 0.02 → 0.1", "passed"),
        ("fail", "gate.max_drop: 0.02 → 0.1", "failed"),
        # A change cannot let itself pass.
        ("warn", "gate.on_loosened: fail → warn", "failed"),
    ],
)
def test_a_weakened_gate_does_what_was_chosen(chosen, loosened, outcome):
    values = columns("x 1")
    gate = GateOptions(on_loosened=chosen)
    groups, totals = summarise(meta(), values), count_cases(meta(), values, gate)
    found = decide(gate, totals, groups, None, baseline_configured=False, loosened=[loosened])

    assert found.outcome == outcome


def test_a_pass_rate_may_be_lower():
    assert verdict("x 0\ny 1", min_pass_rate=0.5).outcome == "passed"
    assert verdict("x 0\ny 0\nz 1", min_pass_rate=0.5, floors="point").outcome == "failed"


def test_a_floor_that_is_missed_by_chance_perhaps_is_in_doubt():
    found = verdict("x 0\ny 0\nz 1", min_pass_rate=0.5)

    assert found.outcome == "passed"
    rates = "pass rate 33.3%, required 50.0%, perhaps up to 91.6%"
    assert said(found, "warns") == [f"2 of 3 cases failed ({rates}): this may be noise"]
    assert found.undecided == "to decide it, add cases, or set gate.floors: point"
    assert verdict("x 0\ny 0\nz 1", min_pass_rate=0.5, on_inconclusive="fail").outcome == "failed"
    # Nothing passed: too few to block, but no reason to pass.
    none = verdict("x 0\ny 0\nz 0", min_pass_rate=0.7, on_inconclusive="rerun")
    assert none.outcome == "incomplete"
    assert said(none, "incomplete") == [
        "3 of 3 cases failed (pass rate 0.0%, required 70.0%, perhaps up to 72.9%): nothing passed"
    ]
    assert verdict("x 0\ny 0", min_pass_rate=0.7).undecided
    # Of thirty, not by chance any more.
    many = "\n".join(f"case{n} {int(n % 3 == 0)}" for n in range(30))
    assert verdict(many, min_pass_rate=0.5).outcome == "passed"
    assert verdict(f"{many}\nx 0\ny 0\nz 0", min_pass_rate=0.5).outcome == "failed"


def test_a_mean_may_have_a_floor():
    assert verdict("x 0.6\ny 0.6", min_score={"c": 0.6}).outcome == "passed"
    found = verdict("x 0.6\ny 0.6", min_score={"c": 0.7}, floors="point")

    assert said(found, "blocks") == ["c on e with a has a mean of 0.600, required 0.7"]


# --- Nothing unmeasured is green --------------------------------------------------------------


def test_errors_leave_no_verdict():
    found = verdict("x error\ny 1")

    assert found.outcome == "incomplete"
    assert said(found, "incomplete") == ["1 case of 2 could not be measured"]


def test_a_run_that_fails_whatever_is_missing_has_failed():
    assert verdict("x error\ny 0").outcome == "failed"
    # Had x passed, one half would have.
    assert verdict("x error\ny 0", min_pass_rate=0.5).outcome == "incomplete"


def test_an_error_is_never_a_pass():
    errors = "\n".join(f"case{n} error" for n in range(9))
    options = {"min_pass_rate": 0.9, "floors": "point", "max_errors": 9}
    found = verdict(f"x 0\n{errors}", **options)

    assert found.outcome == "incomplete"
    (told,) = said(found, "incomplete")
    assert told.startswith("1 of 10 cases failed and 9 could not be measured (pass rate between ")
    assert told.endswith("between 0.0% and 90.0%, required 90.0%)")
    failed = verdict(f"x 0\ny 0\n{errors}", **options)
    assert said(failed, "blocks") == [
        "2 of 11 cases failed and 9 could not be measured (pass rate 0.0%, required 90.0%)"
    ]
    nine = "\n".join(f"case{n} 1" for n in range(9))
    # Nine of ten pass, whatever the tenth had shown.
    assert verdict(f"x error\n{nine}", **options).outcome == "passed"
    assert verdict(f"x error\n{nine}", **options | {"min_pass_rate": 0.91}).outcome == "incomplete"


@pytest.mark.parametrize("how", ["point", "interval"])
def test_a_mean_with_a_floor_may_be_anything_that_is_possible(how):
    def found(now: str) -> Verdict:
        options = {"min_score": {"c": 0.5}, "floors": how, "max_errors": 40, "on_missing": "pass"}
        return verdict(now, configured=True, **options)

    good, bad, lost = (
        "\n".join(f"{word}{n} {word}" for n in range(40)) for word in ("1", "0", "error")
    )
    assert found(f"{good}\nx error").outcome == "passed"
    assert found(f"{bad}\nx error").outcome == "failed"
    assert found(f"{good}\n{lost}").outcome == "passed"
    # From a third to two thirds.
    assert found(f"{good}\n{lost}\n{bad}").outcome == "incomplete"


def test_what_is_missing_of_a_measure_without_bounds_may_have_been_anything():
    slow = FACTS.model_copy(update={"better": "lower", "interval": None, "threshold": 9.0})
    gate = once(min_score={"c": 5.0}, max_errors=1)

    def found(now: str) -> Verdict:
        return decided(gate, meta(facts=slow), columns(now, slow))

    assert found("x 4\ny 4").outcome == "passed"
    assert found("x 4\ny error").outcome == "incomplete"
    assert found("x 8\ny 8").outcome == "failed"
    assert found("x 8\ny error").outcome == "incomplete"


def test_some_errors_may_be_allowed():
    found = verdict("x error\ny 1", max_errors=1)

    assert found.outcome == "passed"
    assert said(found, "warns") == ["1 case could not be measured, which gate.max_errors allows"]


@pytest.mark.parametrize("now", ["x error", "x skip", "x skip\ny error"])
def test_where_nothing_was_judged_there_is_no_verdict(now):
    assert verdict(now, max_errors=9).outcome == "incomplete"


def test_a_floor_of_what_measured_nothing_leaves_no_verdict():
    warns = FACTS.model_copy(update={"tier": "warn"})
    facts = {"c": FACTS, "d": warns}
    values = Columns.of(
        [*results("x 1\ny 1"), *results("x skip\ny skip", criterion="d", facts=warns)]
    )
    run = meta(criteria=facts)

    def found(**floors: float) -> Verdict:
        gate = once(min_score=floors)
        cases, groups = count_cases(run, values, gate), summarise(run, values)
        return decide(gate, cases, groups, None, baseline_configured=False)

    assert found().outcome == found(c=0.5).outcome == "passed"
    assert found(d=0.5).outcome == "incomplete"
    assert said(found(d=0.5), "incomplete") == ["d measured nothing, but a mean of 0.5 is required"]
    # One that this run was not asked for is none of its business.
    assert found(other=0.5).outcome == "passed"


def test_a_criterion_that_found_nothing_to_measure_leaves_no_verdict():
    values = Columns.of([*results("x 1\ny 1"), *results("x skip\ny skip", criterion="d")])

    def found(**more: object) -> Verdict:
        return decided(once(), meta(criteria={"c": FACTS, "d": FACTS}, **more), values)

    assert said(found(), "incomplete") == ["criteria with nothing to measure in any case: d"]
    # A part of the suite may well hold nothing for it.
    assert found(filtered=True).outcome == "passed"
    # One case is enough.
    assert values.add(next(results("z 1", criterion="d"))) is None
    assert found().outcome == "passed"


def test_a_case_that_nothing_judged_leaves_no_verdict_unless_that_is_allowed():
    now = "x 1\ny skip\nz skip"

    assert said(verdict(now), "incomplete") == ["no blocking criterion judged 2 cases: e/y, e/z"]
    assert verdict(now, allow_unjudged=["y"]).outcome == "incomplete"
    assert verdict(now, allow_unjudged=["y", {"case": "z", "evalset": "other"}]).outcome != "passed"
    allowed = verdict(now, allow_unjudged=["y", {"case": "z", "evalset": "e"}])
    assert allowed.outcome == "passed"
    (told,) = said(allowed, "warns")
    assert told.startswith("allowed by gate.allow_unjudged: no blocking criterion judged 2 ca")
    # Where nothing at all was judged, there is no verdict whatever is allowed.
    assert verdict("x skip", allow_unjudged=["x"]).outcome == "incomplete"
    assert verdict(now, now, now).outcome == "incomplete"


def test_what_only_warns_or_informs_judges_no_case():
    warns = FACTS.model_copy(update={"tier": "warn"})
    informs = FACTS.model_copy(update={"informational": True})
    run = meta(criteria={"c": FACTS, "w": warns, "i": informs})
    values = Columns.of(
        [
            *results("x 1\ny skip"),
            *results("y 1\nz 1", criterion="w", facts=warns),
            *results("y 1\nu 1", criterion="i", facts=informs),
        ]
    )
    found = decided(once(), run, values)

    assert said(found, "incomplete") == ["no blocking criterion judged 3 cases: e/y, e/z, e/u"]
    assert count_cases(run, values, once()).cases == 4


def test_a_case_in_quarantine_that_nothing_can_judge_is_named_all_the_same():
    quarantine = {"case": "y", "owner": "the team", "until": "2026-12-31"}

    assert verdict("x 1\ny 0", quarantine=[quarantine]).outcome == "passed"
    assert verdict("x 1\ny skip", quarantine=[quarantine]).outcome == "incomplete"


def test_a_floor_is_reached_where_only_one_evalset_was_measured():
    values = Columns.of([*results("x 1"), *results("x skip", evalset="f")])
    gate, run = once(min_score={"c": 0.5}, allow_unjudged=["x"]), meta()
    found = decided(gate, run, values)

    assert found.outcome == "passed"


def test_a_value_of_millionths_is_told():
    cheap = FACTS.model_copy(update={"better": "lower", "interval": None, "threshold": 1.0})
    values, run = columns("x 0.000002", cheap), meta(facts=cheap)
    gate = once(min_score={"c": 0.000001})
    found = decided(gate, run, values)

    [blocks] = said(found, "blocks")
    assert blocks.replace("\N{MINUS SIGN}", "-") == (
        "c on e with a has a mean of 2e-06, required 1e-06"
    )


# --- Regressions ------------------------------------------------------------------------------


def test_with_a_baseline_old_failures_do_not_block():
    found = verdict("x 0\ny 1", "x 0\ny 1")

    assert found.outcome == "passed"
    assert found.mode == "regression"
    assert said(found, "info") == [
        "1 case below a threshold (does not block: only getting worse does)"
    ]


def test_a_new_case_that_fails_with_two_agents_is_no_other_case():
    def of_both(text):
        return Columns.of([*results(text), *results(text, agent="b")])

    run, gate = meta(agents=("a", "b")), once()
    now = of_both("x 1\ny 1\nnew 0")
    comparison = compare(run, now, [Past(run, of_both("x 1\ny 1"))], gate)
    found = decided(gate, run, now, comparison)

    message = "nothing to compare with, and below a threshold (does not block): new"
    assert said(found, "warns") == [message]
    assert said(found, "info") == []


def test_a_regression_blocks_and_names_its_cases():
    found = verdict("x 0\ny 1\nz 1", SOLID, SOLID)

    assert found.outcome == "failed"
    (message,) = said(found, "blocks")
    assert message.startswith("c on e with a regressed by 0.333, from 1.000: ")
    assert message.endswith("these cases always scored the same before ('x')")


def test_where_values_are_missing_a_regression_is_at_least_what_the_others_show():
    found = verdict("x 0\ny 1\nz error", SOLID, SOLID)

    (message,) = said(found, "blocks")
    assert message.startswith("c on e with a regressed by at least 0.333, from 1.000: ")


def test_a_case_that_breaks_while_others_improve_is_no_drop_of_the_mean():
    found = verdict("x 0\ny 1\nz 1", "x 1\ny 0\nz 0", "x 1\ny 0\nz 0")

    (message,) = said(found, "blocks")
    assert message.startswith("c on e with a regressed in single cases (mean 0.333 → 0.667): ")


@pytest.mark.parametrize(
    ("choice", "outcome", "severity"),
    [("pass", "passed", "info"), ("warn", "passed", "warns"), ("fail", "failed", "blocks")],
)
def test_a_drop_that_may_be_noise_does_what_was_chosen(choice, outcome, severity):
    found = verdict("x 0\ny 1\nz 1", SOLID, on_inconclusive=choice)

    assert found.outcome == outcome
    assert any("rule out noise ('x')" in message for message in said(found, severity))


@pytest.mark.parametrize(
    ("choice", "outcome"), [("pass", "passed"), ("warn", "passed"), ("fail", "failed")]
)
def test_what_vanished_does_what_was_chosen(choice, outcome):
    found = verdict("x 1", SOLID, on_vanished=choice)

    assert found.outcome == outcome
    assert any("case 'y' on e, case 'z' on e" in reason.message for reason in found.reasons)


def test_both_asks_for_thresholds_and_for_no_regression():
    assert verdict("x 0\ny 1", "x 0\ny 1", mode="both").outcome == "failed"
    assert verdict("x 0.6\ny 1\nz 1", SOLID, SOLID, mode="both").outcome == "failed"
    assert verdict(SOLID, SOLID, mode="both").outcome == "passed"


def test_threshold_mode_ignores_the_baseline():
    assert verdict("x 0.6\ny 1\nz 1", SOLID, SOLID, mode="threshold").outcome == "passed"


def test_a_case_that_is_not_compared_is_said():
    found = verdict("x@new 1\ny 1", "x@old 1\ny 1")

    assert said(found, "info") == ["not compared: case e/x: its content changed"]


def test_many_names_are_counted():
    before = "\n".join(f"case{n} 1" for n in range(9))
    found = verdict("case0 1", before)

    assert said(found, "blocks")[0].endswith(
        "and 3 more; if that is intended, set gate.on_vanished: warn"
    )


# --- No baseline yet --------------------------------------------------------------------------


def test_a_baseline_that_is_not_there_yet_leaves_the_thresholds():
    assert verdict("x 0", configured=True).outcome == "failed"
    found = verdict("x 1", configured=True)

    assert found.outcome == "passed"
    assert found.by_threshold
    assert said(found, "info") == ["no baseline yet: judged by thresholds alone"]


def test_a_baseline_that_is_not_there_yet_may_only_warn_or_fail():
    warned = verdict("x 0", configured=True, on_missing="warn")
    failed = verdict("x 1", configured=True, on_missing="fail")

    assert (warned.outcome, failed.outcome) == ("passed", "failed")
    assert not warned.by_threshold
    assert not failed.by_threshold


@pytest.mark.parametrize("on_missing", ["threshold", "pass", "warn", "fail"])
def test_a_baseline_of_which_nothing_can_be_compared_is_as_good_as_none(on_missing):
    bad, good = (f"x@new {value}" for value in (0, 1))
    for now in (bad, good):
        found = verdict(now, "x@old 1", on_missing=on_missing)
        alone = verdict(now.replace("@new", ""), configured=True, on_missing=on_missing)
        assert found.outcome == alone.outcome

    assert any("no case of the baseline is comparable" in each.message for each in found.reasons)


def test_one_case_that_can_be_compared_is_a_comparison():
    found = verdict("x@new 0\ny 1", "x@old 1\ny 1")

    assert found.outcome == "passed"
    assert not any("nothing of the baseline" in each.message for each in found.reasons)


def test_a_measure_that_can_be_compared_stands_for_no_criterion_that_cannot():
    latency = CriterionFacts(criterion="ci/latency_s", informational=True, tier="inform")
    was = FACTS.model_copy(update={"fingerprint": "other"})
    run = meta(criteria={"c": FACTS, "latency": latency})
    old = meta("old", criteria={"c": was, "latency": latency})
    now, before = columns("x 0"), columns("x 1")
    for each in (now, before):
        for result in results("x 3", criterion="latency", facts=latency):
            each.add(result)
    gate = once()
    comparison = compare(run, now, [Past(old, before)], gate)
    found = decided(gate, run, now, comparison)

    assert found.outcome == "failed"
    assert said(found, "info")[-1] == (
        "no criterion that may block can be compared with the baseline: judged by thresholds alone"
    )


# --- Drops that are accepted ------------------------------------------------------------------

ACCEPTED = {"criterion": "c", "reason": "meant", "until": "2026-12-31"}


def test_a_drop_that_is_accepted_passes_where_there_is_no_other_criterion():
    found = verdict("x 0\ny 1", *["x 1\ny 1"] * 2, accept=[ACCEPTED])

    assert found.outcome == "passed"


def test_what_is_accepted_and_could_not_be_measured_is_no_verdict():
    before = ["x 1\ny 1"] * 2
    assert verdict("x error\ny error", *before, accept=[ACCEPTED]).outcome == "incomplete"
    # Nobody sees to what is in quarantine by accepting it, too.
    quarantine = {"case": "*", "owner": "the team", "until": "2026-12-31"}
    found = verdict("x 0\ny 1", *before, accept=[ACCEPTED], quarantine=[quarantine])
    assert found.outcome == "incomplete"


# --- Errors, where a baseline is compared ------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "before"),
    [
        # It fails whatever was missing; that it fails newly, every time, is not known.
        ("x 0 0 0", "x 1 1 1"),
        ("x 0 0 0 0\ny 1", "x 1 1 1\ny 1"),
        ("x 0.6\ny 1", "x 1\ny 1"),
    ],
)
def test_an_error_in_the_place_of_what_blocked_leaves_no_verdict(now, before):
    assert verdict(now, before, before).outcome == "failed"
    # The last word of the first case.
    first, _, rest = now.partition("\n")
    missing = f"{first.rpartition(' ')[0]} error\n{rest}"

    assert verdict(missing, before, before).outcome == "incomplete"
    # To allow an error is not to take it for a pass.
    allowed = verdict(missing, before, before, max_errors=1)
    assert allowed.outcome == "incomplete"
    assert "errors may hide a regression of: c on e with a" in said(allowed, "incomplete")


def test_a_criterion_that_could_not_be_measured_is_not_hidden_by_one_that_fails_as_before():
    facts = {"c": FACTS, "d": FACTS}

    def found(second: str) -> Verdict:
        run, gate = meta(criteria=facts), once()
        now = Columns.of([*results("x 0"), *results(second, criterion="d")])
        old = Columns.of([*results("x 0 0"), *results("x 1 1", criterion="d")])
        before = [Past(meta(f"past{n}", criteria=facts), old) for n in range(2)]
        comparison = compare(run, now, before, gate)
        return decided(gate, run, now, comparison)

    assert found("x 0").outcome == "failed"
    assert found("x error").outcome == "incomplete"


def test_what_was_to_confirm_a_break_and_could_not_be_measured_leaves_no_verdict():
    before = ["x 1\ny 1\nz 1"] * 2

    assert verdict("x 0 ! 0 0\ny 1\nz 1", *before, on_inconclusive="rerun").outcome == "failed"
    for drawn in ("0 error", "error error"):
        found = verdict(f"x 0 ! {drawn}\ny 1\nz 1", *before, on_inconclusive="rerun")
        assert found.outcome != "passed"
    # What passed once is no longer suspected, whatever else was to be drawn.
    assert verdict("x 1 ! 1 error\ny 1\nz 1", *before).outcome == "passed"


def test_a_floor_of_a_criterion_that_only_warns_needs_all_its_values():
    facts = FACTS.model_copy(update={"tier": "warn"})
    run, gate = meta(facts=facts), once(min_score={"c": 0.7}, floors="point")

    def found(text: str) -> Verdict:
        now = columns(f"{text}\ny 1", facts)
        return decided(gate, run, now)

    blocking = "c on e with a has a mean of 0.500, required 0.7"
    assert said(found("x 0 0"), "blocks") == [blocking]
    assert found("x 0.6 error").outcome == "incomplete"
    assert "c on e with a could not be measured on 1 case, but a mean of 0.7 is required" in said(
        found("x error"), "incomplete"
    )


def test_a_steady_case_that_gets_still_worse_blocks_all_the_same():
    for now in ("0.7 0.7", "0.7 0.6", "0.7 0", "0 0"):
        assert verdict(f"x {now}\ny 1", *["x 0.9\ny 1"] * 2).outcome == "failed"


def test_a_criterion_that_only_warns_warns():
    warns = FACTS.model_copy(update={"tier": "warn"})
    run, gate, now = meta(facts=warns), once(), columns("x 0\ny 1", warns)
    comparison = compare(run, now, past("x 1\ny 1", "x 1\ny 1", facts=warns), gate)
    found = decided(gate, run, now, comparison)

    assert comparison.deltas[0].outcome == "regressed"
    assert [reason.severity for reason in found.reasons if reason.group] == ["warns"]
    # Nothing that blocks was judged.
    assert found.outcome == "incomplete"


# --- Laws -------------------------------------------------------------------------------------

LEVELS = ("0", "0.3", "0.6", "1")
KINDS = (
    FACTS,
    FACTS.model_copy(update={"better": "lower"}),
    FACTS.model_copy(update={"interval": None}),
    FACTS.model_copy(update={"tier": "warn"}),
    FACTS.model_copy(
        update={"better": "lower", "interval": None, "threshold": None}
        | {"informational": True, "max_growth": 0.2, "tier": "block"}
    ),
)
Words = dict[tuple[str, str, int], list[str]]
"""What was observed, by agent, criterion and number of the case."""


class Suite(NamedTuple):
    """A run with its baseline, and what is to block."""

    facts: Mapping[str, CriterionFacts]
    now: Words
    before: list[Words]
    gate: GateOptions

    def verdict(self) -> Verdict:
        run = meta(criteria=self.facts)
        now = Columns.of(self.results(self.now))
        before = [
            Past(meta(f"past{number}", criteria=self.facts), Columns.of(self.results(words)))
            for number, words in enumerate(self.before)
        ]
        comparison = compare(run, now, before, self.gate) if before else None
        totals, groups = count_cases(run, now, self.gate), summarise(run, now)
        return decide(self.gate, totals, groups, comparison, baseline_configured=bool(before))

    def results(self, words: Words) -> Iterator[TrialResult]:
        for (agent, name, case), said_ in words.items():
            text = f"case{case} {' '.join(said_)}"
            yield from results(text, criterion=name, agent=agent, facts=self.facts[name])

    def with_word(self, place: tuple[str, str, int], at: int, word: str) -> "Suite":
        words = [*self.now[place]]
        words[at] = word
        return self._replace(now=self.now | {place: words})

    def worse(self, place: tuple[str, str, int], at: int, steps: int) -> "Suite":
        """Return it with one score that is worse."""
        better, word = self.facts[place[1]].better, self.now[place][at]
        if word not in LEVELS:
            return self
        rank = LEVELS.index(word) + (-steps if better == "higher" else steps)
        return self.with_word(place, at, LEVELS[min(max(rank, 0), len(LEVELS) - 1)])


patient = settings(suppress_health_check=[HealthCheck.too_slow])
"""A busy machine is no fault of the gate."""

gates = st.fixed_dictionaries(
    {},
    optional={
        "mode": st.sampled_from(["threshold", "regression", "both"]),
        "floors": st.sampled_from(["interval", "point"]),
        "on_inconclusive": st.sampled_from(["pass", "warn", "fail", "rerun"]),
        "max_drop": st.sampled_from([0, 0.1]),
        "false_block": st.sampled_from([0.05, 0.2]),
        "min_pass_rate": st.sampled_from([0.3, 0.6, 1]),
        "min_score": st.sampled_from([{"c": 0.4}, {"c": 0.8}, {"c": 0.4, "d": 0.4}]),
    },
)


UNTIL = {"until": "2026-12-31"}
lax = st.builds(
    lambda strict, lenient: strict | lenient,
    gates,
    st.fixed_dictionaries(
        {},
        optional={
            "max_errors": st.sampled_from([1, 2, 9]),
            "on_missing": st.sampled_from(["threshold", "pass", "warn", "fail"]),
            "on_vanished": st.sampled_from(["pass", "warn", "fail"]),
            "accept": st.just([{"criterion": "c", "reason": "meant", **UNTIL}]),
            "quarantine": st.just([{"case": "case1", "owner": "the team", **UNTIL}]),
            "allow_unjudged": st.just(["case0"]),
        },
    ),
)
"""Everything that can be said of a gate."""


@st.composite
def suites(draw: st.DrawFn, gates: st.SearchStrategy[dict[str, object]] = gates) -> Suite:
    """Draw runs of some cases that are repeated, so that there are many and yet not too many."""
    facts = {name: draw(st.sampled_from(KINDS)) for name in draw(st.sampled_from(["c", "cd"]))}
    agents = draw(st.sampled_from(["a", "a", "ab"]))
    repeats, rounds = draw(st.integers(1, 2)), draw(st.sampled_from([1, 1, 2]))
    sizes = draw(st.lists(st.sampled_from([1, repeats, 3]), max_size=3))
    count = draw(st.sampled_from([1, 3, 6, 7, 8, 10, 40]))
    kinds = draw(st.integers(1, min(count, 3)))
    good, bad = (
        st.sampled_from(["1", "1", "1", "0", "0.6"]),
        st.sampled_from(["0", "0", "0.3", "0.6", "1", "error", "skip"]),
    )

    def words(of: st.SearchStrategy[str], size: int) -> list[str]:
        return draw(st.lists(of, min_size=size, max_size=size))

    suite = Suite(facts, {}, [{} for _ in sizes], once(**draw(gates)))
    for agent, name in product(agents, facts):
        swapped = facts[name].better == "lower"
        for kind in range(kinds):
            now = words(bad, repeats)
            for _ in range(rounds - 1):
                now += ["|", *words(bad, repeats)]
            if draw(st.sampled_from([False, False, True])):
                now += ["!", *words(bad, draw(st.sampled_from([1, 4, 12])))]
            old = [words(good, size) for size in sizes]
            if swapped:
                now, *old = ([_swapped(word) for word in each] for each in (now, *old))
            for case in range(kind, count, kinds):
                suite.now[agent, name, case] = now
                for each, given_ in zip(suite.before, old, strict=True):
                    each[agent, name, case] = given_
    return suite


def _swapped(word: str) -> str:
    return LEVELS[-1 - LEVELS.index(word)] if word in LEVELS else word


@pytest.fixture(autouse=True, scope="module")
def _quickly():
    """Draw less where laws hold for any number of draws."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(effective_test_count, "_DRAWS", 2_000)
        patch.setattr(mean_drop, "_FEWEST_DRAWS", 999)
        yield


places = st.lists(
    st.tuples(st.integers(0, 999), st.integers(0, 99), st.integers(1, 3)), min_size=1, max_size=3
)


@settings(patient, max_examples=2 * settings.default.max_examples)
@given(suites(), places)
def test_a_worse_score_never_turns_anything_into_passed(suite: Suite, picked):
    assume(suite.verdict().outcome != "passed")
    worse = suite
    for case, at, steps in picked:
        place = [*suite.now][case % len(suite.now)]
        worse = worse.worse(place, at % len(suite.now[place]), steps)

    assert worse.verdict().outcome != "passed"


@settings(patient, max_examples=2 * settings.default.max_examples)
@given(suites(), places)
def test_an_error_never_turns_anything_into_passed(suite: Suite, picked):
    assume(suite.verdict().outcome != "passed")
    broken = suite
    for case, at, _ in picked:
        place = [*suite.now][case % len(suite.now)]
        word = at % len(suite.now[place])
        if suite.now[place][word] not in "|!":
            broken = broken.with_word(place, word, "error")

    assert broken.verdict().outcome != "passed"


@pytest.mark.slow
@settings(patient, max_examples=3 * settings.default.max_examples)
@given(suites(lax), places)
def test_a_pass_that_becomes_an_error_never_turns_anything_into_passed(suite: Suite, picked):
    before = suite.verdict().outcome
    assume(before != "passed")
    broken = suite
    for case, at, _ in picked:
        place = [*suite.now][case % len(suite.now)]
        word, facts = at % len(suite.now[place]), suite.facts[place[1]]
        given_ = suite.now[place][word]
        if given_ in LEVELS and facts.threshold is not None and facts.passes(float(given_)):
            broken = broken.with_word(place, word, "error")

    assert broken.verdict().outcome != "passed"


@pytest.mark.parametrize("count", [9, 40])
@pytest.mark.parametrize("choice", ["warn", "rerun"])
@pytest.mark.parametrize("seed", some(range(3), 1))
def test_a_run_that_gets_worse_step_by_step_fails_once_and_for_all(count, choice, seed):
    random = Random(f"{count}{choice}{seed}")
    facts = {"c": FACTS, "d": KINDS[1]}

    def drawn(share: float) -> Words:
        # Where lower is better, 0 is the best.
        return {
            ("a", name, case): [str(int((random.random() < share) is (name == "c")))]
            for name in facts
            for case in range(count)
        }

    gate = once(on_inconclusive=choice, false_block=0.05)
    suite = Suite(facts, drawn(0.9), [drawn(0.8), drawn(0.8)], gate)
    steps = [(place, 0) for place in suite.now]
    random.shuffle(steps)
    outcomes = []
    for number, (place, at) in enumerate(steps):
        suite = suite.worse(place, at, 3)
        # The border is crossed somewhere on the way.
        if number % (count // 9) == 0:
            outcomes.append(suite.verdict().outcome)

    assert outcomes == sorted(outcomes, reverse=True)
    assert {*outcomes} == {"passed", "failed"}


@pytest.mark.slow
@settings(patient, max_examples=60)
@given(suites(), st.randoms(use_true_random=False))
def test_the_order_of_cases_and_criteria_changes_nothing(suite: Suite, random: Random):
    def shuffled(words: Words) -> Words:
        return dict(random.sample([*words.items()], len(words)))

    other = suite._replace(now=shuffled(suite.now), before=[*map(shuffled, suite.before)])
    one, two = suite.verdict(), other.verdict()

    assert one.outcome == two.outcome
    assert sorted(each.severity for each in one.reasons) == sorted(
        each.severity for each in two.reasons
    )


@pytest.mark.slow
@settings(patient, max_examples=2 * settings.default.max_examples)
@given(
    st.lists(st.tuples(st.sampled_from(LEVELS), st.sampled_from(LEVELS)), max_size=8),
    st.fixed_dictionaries({}, optional={"max_drop": st.just(0.1), "false_block": st.just(0.2)}),
    st.integers(1, 2),
)
def test_to_excuse_what_broke_never_turns_passed_into_failed(others, options, times):
    cases = [*others, ("0", "1")]
    now = "\n".join(f"case{n} {new}" for n, (new, _) in enumerate(cases))
    before = "\n".join(f"case{n} {old}" for n, (_, old) in enumerate(cases))
    excuse = {"case": f"case{len(others)}", "owner": "the team", "until": "2026-12-31"}
    assume(verdict(now, *[before] * times, **options).outcome == "passed")

    assert verdict(now, *[before] * times, **options, quarantine=[excuse]).outcome != "failed"


def test_a_group_is_summed_up():
    (group,) = summarise(meta(), columns("x 1\ny 0\nz error\nu skip"))

    assert (group.passed, group.failed, group.errors, group.skipped) == (1, 1, 1, 1)
    assert group.value == 0.5
    assert group.threshold == FACTS.threshold
