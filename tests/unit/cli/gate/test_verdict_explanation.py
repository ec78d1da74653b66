"""Why a verdict is what it is: the numbers of its report, with what they follow from."""

import pytest
from support.run_language import FACTS, make_run, meta, past

from ci_eval.cli.gate.comparison_output import show_explanation
from ci_eval.cli.gate.verdict_explanation import explain
from ci_eval.config.config_schema import GateOptions
from ci_eval.gate import between_runs
from ci_eval.records.errors import UsageError
from ci_eval.run.baseline_choice import Baseline
from ci_eval.run.collect import collected_from
from ci_eval.run.report_assembly import compare_and_decide

BEFORE = "\n".join(f"c{n} {n % 2} 1 1" for n in range(30))
WORSE = "\n".join(f"c{n} 0 {n % 3 % 2} 0" for n in range(30))


def explained(text, *texts, facts=FACTS, **gate):
    options = GateOptions(**{"on_inconclusive": "warn", **gate})
    run = make_run(text, facts=facts)
    by = options.model_dump(mode="json", exclude_defaults=True)
    run = run._replace(meta=run.meta.model_copy(update={"gate": by}))
    return explain(
        compare_and_decide(collected_from(run), options, Baseline(past(*texts, facts=facts)))
    )


def test_a_regression_stands_with_its_level_and_why_it_is_that():
    found = explained(WORSE, BEFORE, BEFORE)
    (only,) = found.criteria

    assert found.verdict.outcome == "failed"
    assert only.delta.level == pytest.approx(0.018)
    assert (only.level.false_block, only.level.means) == pytest.approx((0.02, 0.018))
    assert (only.level.hypotheses, only.level.left) == (1, 1)
    assert (only.level.look, only.level.looks) == (1, 1)
    assert (only.runs, only.repeats) == (2, 1)


def test_the_drop_that_would_have_blocked_does_and_a_little_less_does_not():
    steps = [f"{n / 100:.2f}" for n in range(100)]

    def judged(drop):
        base = "\n".join(f"c{n} {steps[40 + n % 7]}" for n in range(40))
        now = "\n".join(f"c{n} {0.4 + n * 3 % 7 / 100 - drop}" for n in range(40))
        return explained(now, base, "\n".join(f"c{n} {0.46 - n % 7 / 100}" for n in range(40)))

    edge = judged(0.0).criteria[0].blocks_from
    assert edge > 0.05  # the cases vary little; what days may add is more
    assert judged(edge + 0.005).verdict.outcome == "failed"
    assert judged(edge - 0.005).verdict.outcome == "passed"


def test_noise_moves_the_drop_that_would_have_blocked():
    now = "\n".join(f"c{n} {n % 3 % 2} 1 1" for n in range(30))
    (only,) = explained(now, BEFORE, BEFORE).criteria

    assert only.least == pytest.approx(0.02)
    assert only.blocks_from > 2 * only.least


def test_cases_that_changed_alike_do_not_tell_what_would_have_blocked(monkeypatch):
    monkeypatch.setattr(between_runs, "PRIOR_SHARE", 0.0)
    (only,) = explained(BEFORE, BEFORE, BEFORE).criteria

    assert (only.visible, only.blocks_from) == (True, None)


def test_the_drop_that_would_have_blocked_is_possible():
    now = "a 1 1\nb 1 1\nc 0 1\nd 0 1\ne 1 1"
    before = ("a 0 1\nb 0 0\nc 1 1\nd 1 1\ne 0 1", "a 1 1\nb 0 0\nc 1 1\nd 0 0\ne 1 1")
    (only,) = explained(now, *before).criteria

    assert only.blocks_from == pytest.approx(only.delta.baseline) == 0.6


def test_a_case_that_blocks_does_not_make_a_small_drop_block():
    noise = "\n".join(f"c{n} {n % 2} 0 1 0 1 1" for n in range(8))
    found = explained(f"a 0 0 0 0 0 0\n{noise}", *[f"a 1 1 1 1 1 1\n{noise}"] * 4)
    (only,) = found.criteria

    assert (only.proven, found.verdict.outcome) == (1, "failed")
    assert only.blocks_from > -only.delta.effect > 0


def test_two_cases_can_never_block_by_their_mean():
    (only,) = explained("a 0\nb 1", "a 1\nb 0", "a 0\nb 1").criteria

    assert (only.visible, only.blocks_from) == (False, None)


def test_where_the_baseline_never_varied_the_least_drop_blocks():
    found = explained("a 1 1\nb 0 0", *["a 1 1\nb 1 1"] * 2)
    (only,) = found.criteria

    assert only.blocks_from == only.least
    assert only.proven == 1
    assert found.turning == ("c on e with a: blocks while 1 case is broken",)


def test_a_drop_that_was_not_confirmed_is_not_said_to_have_blocked(capsys):
    found = explained("a 0\nb 1", *["a 1\nb 1"] * 2, on_inconclusive="rerun")
    (only,) = found.criteria
    show_explanation(found)
    told = capsys.readouterr().out

    assert (only.delta.outcome, only.blocks_from) == ("inconclusive", None)
    assert "the baseline never varied: the drop counts once further trials confirm it" in told
    assert "would have blocked" not in told


def test_an_older_report_does_not_say_what_would_have_blocked(capsys):
    found = explained(WORSE, BEFORE, BEFORE)
    (only,) = found.criteria
    show_explanation(found)
    assert "would have blocked" in capsys.readouterr().out

    old = only.model_copy(update={"least": None, "visible": False, "blocks_from": None})
    show_explanation(found.model_copy(update={"criteria": (old,)}))
    assert "would have blocked" not in capsys.readouterr().out


def test_what_passed_says_what_came_closest():
    found = explained("c0 1 1 1\n" + BEFORE.partition("\n")[2], BEFORE, BEFORE)

    (line,) = found.turning
    assert line.startswith("c on e with a came closest: it had no drop, and a drop of about 0.")


def test_where_less_is_better_a_rise_blocks(capsys):
    facts = FACTS.model_copy(update={"better": "lower"})
    flat = "\n".join(f"c{n} 0.1 0.2" for n in range(9))
    found = explained(flat.replace("0.2", "0.9"), flat, flat, facts=facts)
    show_explanation(found)

    assert " a rise of less than about 0." in found.turning[0]
    assert "drop" not in capsys.readouterr().out


def test_an_excused_break_is_counted_as_that():
    excuse = {"case": "b", "owner": "me", "until": "2030-01-01"}
    (only,) = explained("a 1 1\nb 0 0", "a 1 1\nb 1 1", quarantine=[excuse]).criteria

    assert (only.proven, only.excused) == (0, 1)


def test_a_floor_stands_with_its_interval():
    found = explained("a 0\nb 0\nc 1", "a 0\nb 0\nc 1", min_pass_rate=0.9, min_score={"c": 0.1})

    rate, mean = found.floors
    assert (rate.what, rate.required) == ("pass rate", 0.9)
    assert rate.value == pytest.approx(1 / 3)
    assert rate.interval[0] < 1 / 3 < rate.interval[1] <= 1
    assert rate.missed
    assert (mean.what, mean.missed) == ("c", False)
    assert "pass rate: at least 0.9" in found.turning


def test_reruns_spread_the_rate_over_looks():
    (only,) = explained(BEFORE, BEFORE, BEFORE, on_inconclusive="rerun").criteria

    assert (only.level.look, only.level.looks, only.level.left) == (1, 3, None)
    assert only.delta.level < 0.018


def test_a_verdict_without_a_baseline_is_explained_by_its_floor():
    run = make_run("a 1\nb 0")
    found = explain(compare_and_decide(collected_from(run), GateOptions(), None))

    assert (found.criteria, found.comparison) == ((), None)
    (floor,) = found.floors
    assert (floor.required, floor.value, floor.certain) == (1.0, 0.5, True)
    assert found.turning == ("pass rate: at least 1",)


def test_a_report_with_an_invalid_gate_is_refused():
    report = compare_and_decide(
        collected_from(make_run("a 1")), GateOptions(), Baseline(past("a 1"))
    )
    strange = report.model_copy(update={"meta": meta(gate={"max_drop": 7})})
    with pytest.raises(UsageError, match=r"gate\.max_drop: must be at most 1"):
        explain(strange)
