"""Verdicts that are not decided, and what would decide them."""

import pytest
from support.run_language import columns, meta, once, past

from ci_eval.config.config_schema import GateOptions
from ci_eval.gate.case_counts import count_cases, summarise
from ci_eval.gate.compare import compare
from ci_eval.gate.decide import decide
from ci_eval.gate.undecided import what_would_decide
from ci_eval.records.comparisons import Comparison
from ci_eval.records.findings import Verdict

BROKEN = "x 0\ny 0\nz 0", "x 1\ny 1\nz 1"
DROPPED = (
    "\n".join(["x 0", *(f"n{n} 1" for n in range(4))]),
    "\n".join(["x 1", *(f"n{n} 1" for n in range(4))]),
)


def judged(
    now: str, before: str, gate: GateOptions, *, outcome: str = ""
) -> tuple[Verdict, Comparison]:
    """Compare and decide; as if reruns had left every group with `outcome`, if given."""
    run, values = meta(), columns(now)
    found = compare(run, values, past(before), gate)
    if outcome:
        deltas = tuple(each.model_copy(update={"outcome": outcome}) for each in found.deltas)
        found = found.model_copy(update={"deltas": deltas})
    totals, groups = count_cases(run, values, gate), summarise(run, values)
    return decide(gate, totals, groups, found, baseline_configured=True), found


def test_what_fell_and_could_not_be_blocked_is_not_decided():
    verdict, _ = judged(*DROPPED, once(on_inconclusive="warn"))

    assert verdict.outcome == "passed"
    assert verdict.undecided == "to decide it, set gate.on_inconclusive: rerun"


def test_what_did_not_fall_is_decided():
    verdict, _ = judged(DROPPED[1], DROPPED[1], once())

    assert (verdict.outcome, verdict.undecided) == ("passed", "")


def test_a_group_that_broke_as_a_whole_has_no_verdict():
    def left_open(now: str, before: str, gate: GateOptions) -> Verdict:
        return judged(now, before, gate, outcome="inconclusive")[0]

    verdict = left_open(*BROKEN, GateOptions())

    assert verdict.outcome == "incomplete"
    assert "all its cases broke, and nothing could confirm it" in verdict.reasons[0].message
    assert verdict.undecided == ""
    # Two are too few, and who sets `warn` wants a warning.
    two = left_open("x 0\ny 0", "x 1\ny 1", GateOptions())
    assert (two.outcome, bool(two.undecided)) == ("passed", True)
    assert left_open(*BROKEN, once(on_inconclusive="warn")).outcome == "passed"


@pytest.mark.parametrize(
    ("gate", "state", "said"),
    [
        ({"confirm": "off"}, {}, "set gate.confirm: both"),
        ({"rerun_budget": 1}, {}, "raise gate.rerun_budget (now 1)"),
        ({"confirm": "candidate"}, {}, "set gate.confirm: both, or store more runs"),
        (
            {},
            {"unconfirmed": "the clone is shallow"},
            "make the merge base run (see below), or store",
        ),
        ({"rerun_budget": 2}, {"base_trials": 5}, "raise gate.rerun_budget (now 2)"),
        ({}, {"base_trials": 5}, "set run.repeats: 3, and record the calls of models again"),
        ({}, {"base_trials": 5, "rounds": 3}, "raise gate.rerun_budget (now 10)"),
        ({}, {}, "store more runs, with run.repeats: 3 unless"),
    ],
)
def test_the_line_says_what_is_left_to_do(gate, state, said):
    options = GateOptions.model_validate(gate)
    _, found = judged(*DROPPED, GateOptions())

    assert said in what_would_decide(found.model_copy(update=state), options, ())
