"""What is drawn again, and what of it is affordable."""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from support.run_language import FACTS, columns, meta, past, results

from ci_eval.config.config_schema import GateOptions
from ci_eval.config.load import load
from ci_eval.config.selection import Selection
from ci_eval.gate.compare import Examined, examine
from ci_eval.run.plan import Plan, plan
from ci_eval.run.rerun import Redraw, affordable, wanted
from ci_eval.run_files.score_table import Columns, Past
from ci_eval.runtime.context import RunContext

RERUN = GateOptions(on_inconclusive="rerun")


def examined(now: str, *before: str, tier: str = "block", gate: GateOptions = RERUN) -> Examined:
    facts = FACTS.model_copy(update={"tier": tier})
    return examine(meta(facts=facts), columns(now, facts), past(*before, facts=facts), gate)


def text(*values: float) -> str:
    return "\n".join(f"n{n} {value}" for n, value in enumerate(values))


DROPPED, BEFORE = text(*[0.6] * 7), text(*[0.8] * 7)
"""A drop that the first look has too little of the rate for; every case passes all the same."""
SOLID = "\n".join(f"n{n} 1" for n in range(99))
NOISY = [f"{SOLID}\nx 1\ny {flaky}" for flaky in (0, 1, 1, 0, 1)]
BROKEN = f"{SOLID}\ny 1\nx 0"


def test_where_nothing_is_in_doubt_nothing_is_drawn():
    found = wanted(examined(BEFORE, BEFORE), RERUN)

    assert not found
    assert found == Redraw(round=1)


def test_a_drop_in_doubt_draws_every_case_again():
    found = wanted(examined(DROPPED, BEFORE), RERUN)

    assert found == Redraw(round=1, pairs=frozenset({("a", "e")}))


def test_what_is_decided_draws_nothing():
    many, before = text(*[0.6] * 14), text(*[0.8] * 14)

    # Were it in doubt, it would be drawn: 2⁻¹⁴ is enough, 2⁻⁷ is not.
    assert not wanted(examined(many, before), RERUN)


def test_where_one_criterion_blocks_already_nothing_is_drawn_for_another():
    facts = dict.fromkeys("cd", FACTS)

    def of(first: str, second: str) -> Columns:
        return Columns.of([*results(first), *results(second, criterion="d")])

    same = text(*[0.8] * 14)
    half = text(*[0.6] * 7, *[0.8] * 7)
    run, before = meta(criteria=facts), [Past(meta("past0", criteria=facts), of(same, same))]
    doubtful = examine(run, of(same, half), before, RERUN)
    decided = examine(run, of(text(*[0.2] * 14), half), before, RERUN)

    assert wanted(doubtful, RERUN).pairs
    assert {key.criterion: found.in_doubt for key, found in decided.drifts.items()}["d"]
    assert not wanted(decided, RERUN)


def test_what_only_warns_draws_nothing():
    assert not wanted(examined(DROPPED, BEFORE, tier="warn"), RERUN)
    assert not wanted(examined(BROKEN, *NOISY, tier="warn"), RERUN)


def test_a_suspected_break_is_confirmed_by_trials_of_its_own():
    found = wanted(examined(BROKEN, *NOISY), RERUN)

    assert found.confirming.keys() == {("a", "e", "x")}
    assert found.confirming["a", "e", "x"] > 1


def test_what_fails_in_the_first_trials_that_confirm_is_drawn_once_more_and_nothing_else():
    def again(drawn: str) -> int:
        found = wanted(examined(f"{BROKEN} ! {drawn}", *NOISY), RERUN)
        return found.confirming.get(("a", "e", "x"), 0)

    assert wanted(examined(BROKEN, *NOISY), RERUN).confirming == {("a", "e", "x"): 2}
    more = again("0 0")
    assert more > 0
    assert [again(each) for each in ("1 1", "0 1", "0 " * (2 + more))] == [0, 0, 0]


def test_after_the_last_look_no_round_is_drawn():
    # In 1 of 8 ways at the first look, in 1 of 27 at the second: still in doubt.
    now, before = text(*[0.6] * 3).replace("0.6", "0.6 | 0.79"), text(*[0.8] * 3)
    more, last = (GateOptions(on_inconclusive="rerun", rerun_budget=budget) for budget in (3, 2))

    for gate in (more, last):
        (found,) = examined(now, before, gate=gate).drifts.values()
        assert found.in_doubt
    assert wanted(examined(now, before, gate=more), more) == Redraw(2, frozenset({("a", "e")}))
    assert not wanted(examined(now, before, gate=last), last)


# --- Trials -----------------------------------------------------------------------------------

CONFIG = f"""\
agents:
  live: {{command: ["{sys.executable}"]}}
  told: {{recorded: traces.jsonl}}
evalsets: {{e: e.json}}
criteria: {{response_match_score: 0.5}}
run: {{repeats: 2}}
gate: {{on_inconclusive: rerun}}
"""


@pytest.fixture
def planned(tmp_path: Path) -> Plan:
    said = {"parts": [{"text": "x"}]}
    cases = [
        {"eval_id": name, "conversation": [{"user_content": said, "final_response": said}]}
        for name in "xyz"
    ]
    (tmp_path / "e.json").write_text(json.dumps({"eval_set_id": "e", "eval_cases": cases}))
    (tmp_path / "traces.jsonl").touch()
    (tmp_path / "ci-eval.yaml").write_text(CONFIG)
    context = RunContext(env={}, root=tmp_path, now=lambda: 0.0)
    config = load(tmp_path / "ci-eval.yaml", shown="ci-eval.yaml", context=context)
    return plan(config, context, selection=Selection(), repeats=None)


BOTH = frozenset({("live", "e"), ("told", "e")})


def test_a_round_draws_every_case_as_often_as_planned_under_numbers_of_its_own(planned):
    redraw = Redraw(round=2, pairs=frozenset({("live", "e")}))
    trials = [*redraw.trials(planned)]

    assert [(each.key.case, each.key.repeat) for each in trials] == [
        (case, repeat) for case in "xyz" for repeat in (4, 5)
    ]
    assert {(each.key.agent, each.round, each.confirms) for each in trials} == {("live", 2, False)}
    assert redraw.count(planned) == len(trials)


def test_confirming_draws_one_case_under_numbers_that_no_round_has(planned):
    redraw = Redraw(round=1, confirming={("live", "e", "y"): 3})
    trials = [*redraw.trials(planned)]

    # Three looks at two repeats come first.
    assert [(each.key.case, each.key.repeat) for each in trials] == [("y", 6), ("y", 7), ("y", 8)]
    assert {(each.round, each.confirms) for each in trials} == {(0, True)}
    assert redraw.count(planned) == 3


def test_no_two_trials_have_the_same_key(planned):
    redraws = [
        Redraw(1, BOTH, {("live", "e", "x"): 9}),
        Redraw(2, BOTH),
    ]
    keys = Counter(each.key for redraw in redraws for each in redraw.trials(planned))
    keys.update(each.key for each in planned.trials())

    assert set(keys.values()) == {1}


def test_recordings_have_nothing_more_to_tell(planned):
    redraw = Redraw(1, BOTH, {("live", "e", "x"): 2, ("told", "e", "x"): 2})

    assert affordable(redraw, planned, 12) == Redraw(
        1, frozenset({("live", "e")}), {("live", "e", "x"): 2}
    )


@pytest.mark.parametrize(
    ("confirming", "done", "pairs", "left"),
    [
        # Planned are 12, so 36 may be tried; a round of one agent takes 6.
        (2, 28, True, 2),
        # To confirm is cheaper.
        (2, 29, False, 2),
        (2, 34, False, 2),
        (2, 35, False, 0),
        (0, 30, True, 0),
        (0, 31, False, 0),
    ],
)
def test_what_the_budget_does_not_allow_is_not_drawn(planned, confirming, done, pairs, left):
    place = ("live", "e", "x")
    redraw = Redraw(1, frozenset({("live", "e")}), {place: confirming} if confirming else {})
    found = affordable(redraw, planned, done)

    assert bool(found.pairs) is pairs
    assert found.confirming.get(place, 0) == left
    assert done + found.count(planned) <= 36


@pytest.mark.parametrize(
    ("done", "drawn"),
    [
        (24, {"x": 7, "y": 5}),
        # Five trials that all fail prove one; four of each would prove neither.
        (26, {"y": 5}),
        (32, {}),
    ],
)
def test_what_can_be_confirmed_is_where_not_everything_can(planned, done, drawn):
    confirming = {("live", "e", "x"): 7, ("live", "e", "y"): 5}
    found = affordable(Redraw(1, frozenset(), confirming), planned, done)

    assert {case: count for (_, _, case), count in found.confirming.items()} == drawn


def test_of_equal_suspects_the_same_are_confirmed_whatever_their_order(planned):
    places = [("live", "e", case) for case in "zxy"]
    found = affordable(Redraw(1, BOTH, dict.fromkeys(places, 10)), planned, 14)

    assert found.confirming.keys() == {("live", "e", "x"), ("live", "e", "y")}
    assert not found.pairs
