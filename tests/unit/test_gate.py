"""What blocks a merge, what only warns, and when there is no verdict."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import FACTS, columns, meta, past, results

from ci_eval.columns import Columns
from ci_eval.compare import compare
from ci_eval.config_file import GateOptions
from ci_eval.findings import Verdict
from ci_eval.gate import count_cases, decide, summarise

SOLID = "x 1\ny 1\nz 1"


def verdict(now: str, *before: str, configured: bool | None = None, **options: object) -> Verdict:
    """Return the verdict on a run; without runs before there is no baseline."""
    gate = GateOptions.model_validate(options)
    run, values = meta(), columns(now)
    comparison = None
    if before:
        comparison = compare(run, values, past(*before), gate)
    return decide(
        gate,
        count_cases(run, values, gate),
        summarise(run, values),
        comparison,
        baseline_configured=bool(before) if configured is None else configured,
    )


def said(found: Verdict, severity: str) -> list[str]:
    return [reason.message for reason in found.reasons if reason.severity == severity]


# --- Thresholds -------------------------------------------------------------------------------


def test_without_a_baseline_every_case_must_pass():
    assert verdict(SOLID).outcome == "passed"
    found = verdict("x 0\ny 1\nz 1\nu 1")

    assert found.outcome == "failed"
    assert found.mode == "threshold"
    assert said(found, "blocks") == ["1 of 4 cases failed (pass rate 75.0%, required 100.0%)"]


def test_a_pass_rate_may_be_lower():
    assert verdict("x 0\ny 1", min_pass_rate=0.5).outcome == "passed"
    assert verdict("x 0\ny 0\nz 1", min_pass_rate=0.5, floors="point").outcome == "failed"


def test_a_floor_that_is_missed_by_chance_perhaps_is_in_doubt():
    found = verdict("x 0\ny 0\nz 1", min_pass_rate=0.5)

    assert found.outcome == "passed"
    assert said(found, "warns") == [
        "2 of 3 cases failed (pass rate 33.3%, required 50.0%, at most 80.4%): this may be noise"
    ]
    assert verdict("x 0\ny 0\nz 1", min_pass_rate=0.5, on_inconclusive="fail").outcome == "failed"
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


def test_some_errors_may_be_allowed():
    found = verdict("x error\ny 1", max_errors=1)

    assert found.outcome == "passed"
    assert said(found, "warns") == ["1 case could not be measured, which gate.max_errors allows"]


@pytest.mark.parametrize("now", ["x error", "x skip", "x skip\ny error"])
def test_where_nothing_was_judged_there_is_no_verdict(now):
    assert verdict(now, max_errors=9).outcome == "incomplete"


def test_a_floor_of_what_measured_nothing_leaves_no_verdict():
    facts = {"c": FACTS, "d": FACTS}
    values = Columns.of([*results("x 1\ny 1"), *results("x skip\ny skip", criterion="d")])
    run = meta(criteria=facts)

    def found(**floors: float) -> Verdict:
        gate = GateOptions(min_score=floors)
        cases, groups = count_cases(run, values, gate), summarise(run, values)
        return decide(gate, cases, groups, None, baseline_configured=False)

    assert found().outcome == found(c=0.5).outcome == "passed"
    assert found(d=0.5).outcome == "incomplete"
    assert said(found(d=0.5), "incomplete") == ["d measured nothing, and a mean of 0.5 is required"]
    # One that this run was not asked for is none of its business.
    assert found(other=0.5).outcome == "passed"


def test_a_floor_is_reached_where_only_one_evalset_was_measured():
    values = Columns.of([*results("x 1"), *results("x skip", evalset="f")])
    gate, run = GateOptions(min_score={"c": 0.5}), meta()
    found = decide(
        gate,
        count_cases(run, values, gate),
        summarise(run, values),
        None,
        baseline_configured=False,
    )

    assert found.outcome == "passed"


def test_a_value_of_millionths_is_told():
    cheap = FACTS.model_copy(update={"better": "lower", "interval": None, "threshold": 1.0})
    values, run = columns("x 0.000002", cheap), meta(facts=cheap)
    gate = GateOptions(min_score={"c": 0.000001})
    found = decide(
        gate,
        count_cases(run, values, gate),
        summarise(run, values),
        None,
        baseline_configured=False,
    )

    assert said(found, "blocks") == ["c on e with a has a mean of 2e-06, required 1e-06"]


# --- Regressions ------------------------------------------------------------------------------


def test_with_a_baseline_old_failures_do_not_block():
    found = verdict("x 0\ny 1", "x 0\ny 1")

    assert found.outcome == "passed"
    assert found.mode == "regression"
    assert said(found, "info") == ["1 case below a threshold, which alone does not block"]


def test_a_regression_blocks_and_names_its_cases():
    found = verdict("x 0\ny 1\nz 1", SOLID, SOLID)

    assert found.outcome == "failed"
    (message,) = said(found, "blocks")
    assert message.startswith("c on e with a regressed by 0.333, from 1.000: ")
    assert message.endswith("the baseline never varied here ('x')")


@pytest.mark.parametrize(
    ("choice", "outcome", "severity"),
    [("pass", "passed", "info"), ("warn", "passed", "warns"), ("fail", "failed", "blocks")],
)
def test_a_drop_that_may_be_noise_does_what_was_chosen(choice, outcome, severity):
    found = verdict("x 0\ny 1\nz 1", SOLID, on_inconclusive=choice)

    assert found.outcome == outcome
    assert any("may be noise ('x')" in message for message in said(found, severity))


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
    found = verdict("x@new 1", "x@old 1")

    assert said(found, "info") == ["not compared: case e/x: its content changed"]


def test_many_names_are_counted():
    before = "\n".join(f"case{n} 1" for n in range(9))
    found = verdict("case0 1", before)

    assert said(found, "warns")[0].endswith("and 3 more")


# --- No baseline yet --------------------------------------------------------------------------


def test_a_baseline_that_is_not_there_yet_leaves_the_thresholds():
    assert verdict("x 0", configured=True).outcome == "failed"
    found = verdict("x 1", configured=True)

    assert found.outcome == "passed"
    assert said(found, "info") == ["there is no baseline yet: judged by thresholds alone"]


def test_a_baseline_that_is_not_there_yet_may_only_warn_or_fail():
    assert verdict("x 0", configured=True, on_missing="warn").outcome == "passed"
    assert verdict("x 1", configured=True, on_missing="fail").outcome == "failed"


# --- Laws -------------------------------------------------------------------------------------

observation = st.sampled_from(["0", "0.3", "0.6", "1"])
runs = st.lists(st.tuples(observation, observation), min_size=1, max_size=9)
modes = st.sampled_from([None, "threshold", "regression", "both"])


def _texts(pairs: list[tuple[str, str]]) -> tuple[str, str]:
    now = "\n".join(f"case{n} {a}" for n, (a, _) in enumerate(pairs))
    before = "\n".join(f"case{n} {b}" for n, (_, b) in enumerate(pairs))
    return now, before


@given(runs, modes, st.integers(0, 8), st.integers(1, 2))
def test_a_worse_score_never_turns_failed_into_passed(pairs, mode, at, times):
    now, before = _texts(pairs)
    at %= len(pairs)
    lines = now.splitlines()
    lines[at] = f"case{at} 0"

    if verdict(now, *[before] * times, mode=mode).outcome == "failed":
        assert verdict("\n".join(lines), *[before] * times, mode=mode).outcome == "failed"


@given(runs, modes, st.integers(0, 8))
def test_an_error_never_turns_anything_into_passed(pairs, mode, at):
    now, before = _texts(pairs)
    at %= len(pairs)
    lines = now.splitlines()
    lines[at] = f"case{at} error"

    assert verdict("\n".join(lines), before, before, mode=mode).outcome != "passed"


def test_a_group_is_summed_up():
    (group,) = summarise(meta(), columns("x 1\ny 0\nz error\nu skip"))

    assert (group.passed, group.failed, group.errors, group.skipped) == (1, 1, 1, 1)
    assert group.value == 0.5
    assert group.threshold == FACTS.threshold
