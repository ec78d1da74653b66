"""What is drawn again, and what of it is affordable."""

import json
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from support.run_language import FACTS, columns, meta, past, results

from ci_eval.config.config_schema import GateOptions
from ci_eval.config.load_config import load
from ci_eval.config.selection import Selection
from ci_eval.gate import between_runs
from ci_eval.gate.compare import Examined, examine
from ci_eval.records.results import RunMeta
from ci_eval.run.collect import Tally
from ci_eval.run.plan import Plan, plan
from ci_eval.run.rerun import Plans, Redraw, Redraws, affordable, next_round, still_agents, wanted
from ci_eval.run_files.score_table import Columns, Past
from ci_eval.run_files.shard_files import FurtherTrials
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
    assert not any(wanted(examined(BEFORE, BEFORE), RERUN))


def test_a_drop_in_doubt_draws_every_case_again():
    found = wanted(examined(DROPPED, BEFORE), RERUN)

    assert found == Redraws(Redraw(range(1, 2), frozenset({("a", "e")})))


def test_what_is_decided_draws_nothing():
    many, before = text(*[0.4] * 14), text(*[0.8] * 14)

    # Were it in doubt, it would be drawn: 2⁻¹⁴ is enough, 2⁻⁷ is not.
    assert not any(wanted(examined(many, before), RERUN))


def test_where_one_criterion_blocks_already_nothing_is_drawn_for_another():
    facts = dict.fromkeys("cd", FACTS)

    def of(first: str, second: str) -> Columns:
        return Columns.of([*results(first), *results(second, criterion="d")])

    same = text(*[0.8] * 14)
    half = text(*[0.6] * 7, *[0.8] * 7)
    run, before = meta(criteria=facts), [Past(meta("past0", criteria=facts), of(same, same))]
    doubtful = examine(run, of(same, half), before, RERUN)
    decided = examine(run, of(text(*[0.2] * 14), half), before, RERUN)

    assert wanted(doubtful, RERUN).change.pairs
    assert {key.criterion: found.in_doubt for key, found in decided.drifts.items()}["d"]
    assert not any(wanted(decided, RERUN))


def test_what_only_warns_draws_nothing():
    assert not any(wanted(examined(DROPPED, BEFORE, tier="warn"), RERUN))
    assert not any(wanted(examined(BROKEN, *NOISY, tier="warn"), RERUN))


def test_a_suspected_break_is_confirmed_by_trials_of_its_own():
    found = wanted(examined(BROKEN, *NOISY), RERUN).change

    assert found.confirming.keys() == {("a", "e", "x")}
    assert len(found.confirming["a", "e", "x"]) > 1


def test_what_fails_in_the_first_trials_that_confirm_is_drawn_once_more_and_nothing_else():
    def again(drawn: str) -> int:
        found = wanted(examined(f"{BROKEN} ! {drawn}", *NOISY), RERUN).change
        numbers = found.confirming.get(("a", "e", "x"), range(0))
        assert not numbers or numbers.start == len(drawn.split())
        return len(numbers)

    first = wanted(examined(BROKEN, *NOISY), RERUN).change
    assert first.confirming == {("a", "e", "x"): range(2)}
    more = again("0 0")
    assert more > 0
    assert [again(each) for each in ("1 1", "0 1", "0 " * (2 + more))] == [0, 0, 0]


def test_after_the_last_look_no_round_is_drawn(monkeypatch):
    # In 1 of 8 ways at the first look, in 1 of 27 at the second: still in doubt.
    monkeypatch.setattr(between_runs, "PRIOR_SHARE", 0.0)
    now, before = text(*[0.6] * 3).replace("0.6", "0.6 | 0.79"), text(*[0.8] * 3)
    more, last = (GateOptions(on_inconclusive="rerun", rerun_budget=budget) for budget in (3, 2))

    for gate in (more, last):
        (found,) = examined(now, before, gate=gate).drifts.values()
        assert found.in_doubt
    drawn = Redraw(range(2, 3), frozenset({("a", "e")}))
    assert wanted(examined(now, before, gate=more), more) == Redraws(drawn)
    assert not any(wanted(examined(now, before, gate=last), last))


# --- Trials -----------------------------------------------------------------------------------

CONFIG = f"""\
agents:
  live: {{command: ["{sys.executable}"]}}
  told: {{recorded: traces.jsonl}}
evalsets: {{e: e.json}}
criteria: {{response_match_score: 0.5}}
run: {{repeats: 2}}
gate: {{on_inconclusive: rerun, rerun_budget: 3}}
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
    redraw = Redraw(range(2, 3), frozenset({("live", "e")}))
    trials = [*redraw.trials(planned)]

    assert [(each.key.case, each.key.repeat) for each in trials] == [
        (case, repeat) for case in "xyz" for repeat in (4, 5)
    ]
    assert {(each.key.agent, each.round, each.confirms) for each in trials} == {("live", 2, False)}
    assert redraw.count(planned) == len(trials)


def test_the_first_round_is_the_planned_one(planned):
    whole = Redraw(range(1), frozenset(planned.pairs))
    assert [*whole.trials(planned)] == [*planned.trials()]
    assert whole.count(planned) == planned.count


def test_a_stored_redraw_is_of_the_same_trials_and_no_others(planned):
    redraw = Redraw(range(1, 3), frozenset({("live", "e")}), {("told", "e", "y"): range(1, 4)})
    stored = FurtherTrials.model_validate_json(redraw.stored().model_dump_json())
    keys = [each.key for each in Redraw.of(stored).trials(planned)]

    assert keys == [each.key for each in redraw.trials(planned)]
    every = [
        each.key.model_copy(update={"repeat": repeat})
        for each in replace(planned, repeats=1).trials()
        for repeat in range(60)
    ]
    held = [key for key in every if redraw.holds(key, planned.repeats)]
    assert sorted(held, key=str) == sorted(keys, key=str)


def test_confirming_draws_one_case_under_numbers_that_no_round_has(planned):
    redraw = Redraw(confirming={("live", "e", "y"): range(1, 4)})
    trials = [*redraw.trials(planned)]

    # Ten rounds of two repeats come first, and one trial that was drawn earlier.
    assert [(each.key.case, each.key.repeat) for each in trials] == [
        ("y", 21),
        ("y", 22),
        ("y", 23),
    ]
    assert {(each.round, each.confirms) for each in trials} == {(0, True)}
    assert redraw.count(planned) == 3


def test_no_two_trials_have_the_same_key(planned):
    redraws = [
        Redraw(range(1, 2), BOTH, {("live", "e", "x"): range(9)}),
        Redraw(range(2, 4), BOTH, {("live", "e", "x"): range(9, 12)}),
    ]
    keys = Counter(each.key for redraw in redraws for each in redraw.trials(planned))
    keys.update(each.key for each in planned.trials())

    assert set(keys.values()) == {1}


def test_recordings_have_nothing_more_to_tell(planned):
    two = range(2)
    redraw = Redraw(range(1, 2), BOTH, {("live", "e", "x"): two, ("told", "e", "x"): two})

    plans = Plans(planned, still=still_agents(planned, {}, ()))
    assert affordable(Redraws(redraw), plans, 12) == Redraws(
        Redraw(range(1, 2), frozenset({("live", "e")}), {("live", "e", "x"): two})
    )


@pytest.mark.parametrize(
    ("confirming", "done", "pairs", "left"),
    [
        # Planned are 12, so 42 may be tried; a round of one agent takes 6.
        (2, 34, True, 2),
        # To confirm is cheaper.
        (2, 35, False, 2),
        (2, 40, False, 2),
        (2, 41, False, 0),
        (0, 36, True, 0),
        (0, 37, False, 0),
    ],
)
def test_what_the_budget_does_not_allow_is_not_drawn(planned, confirming, done, pairs, left):
    place = ("live", "e", "x")
    drawn = {place: range(confirming)} if confirming else {}
    redraw = Redraw(range(1, 2), frozenset({("live", "e")}), drawn)
    found = affordable(Redraws(redraw), Plans(planned), done).change

    assert bool(found.pairs) is pairs
    assert len(found.confirming.get(place, ())) == left
    assert done + found.count(planned) <= 42


@pytest.mark.parametrize(
    ("done", "drawn"),
    [
        (30, {"x": 7, "y": 5}),
        # Five trials that all fail prove one; four of each would prove neither.
        (32, {"y": 5}),
        (38, {}),
    ],
)
def test_what_can_be_confirmed_is_where_not_everything_can(planned, done, drawn):
    confirming = {("live", "e", "x"): range(7), ("live", "e", "y"): range(5)}
    found = affordable(Redraws(Redraw(confirming=confirming)), Plans(planned), done).change

    assert {case: len(numbers) for (_, _, case), numbers in found.confirming.items()} == drawn


def test_of_equal_suspects_the_same_are_confirmed_whatever_their_order(planned):
    places = [("live", "e", case) for case in "zxy"]
    redraw = Redraw(range(1, 2), BOTH, dict.fromkeys(places, range(10)))
    found = affordable(Redraws(redraw), Plans(planned), 20).change

    assert found.confirming.keys() == {("live", "e", "x"), ("live", "e", "y")}
    assert not found.pairs


# --- Both arms --------------------------------------------------------------------------------


def in_both(now: str, base: str, *before: str) -> Redraws:
    """Return the next round after the merge base showed `base`."""
    seen = Past(meta("base"), columns(base, FACTS))
    return wanted(examine(meta(), columns(now, FACTS), past(*before), RERUN, seen), RERUN)


def test_a_drop_in_doubt_first_draws_the_merge_base_and_then_both():
    drawn = frozenset({("a", "e")})

    def rounds(*further: float) -> tuple[str, str]:
        """Return three cases of the change and of the merge base, and what further rounds show.

        A fourth is a little better, so that no single case is suspected.
        """
        more = "".join(f" | {value}" for value in further)
        three = ("\n".join(f"n{n} {value}{more}" for n in range(3)) for value in (0.6, 0.8))
        return tuple(
            f"{each}\nm {value}{more}" for each, value in zip(three, (0.81, 0.8), strict=True)
        )

    (one, first), (two, second), (four, last) = rounds(), rounds(0.79), rounds(0.79, 0.78, 0.77)

    assert in_both(one, "", first) == Redraws(base=Redraw(range(1), drawn))
    assert in_both(one, first, first) == Redraws(
        Redraw(range(1, 2), drawn), Redraw(range(1, 2), drawn)
    )
    assert in_both(two, second, first) == Redraws(
        Redraw(range(2, 4), drawn), Redraw(range(2, 4), drawn)
    )
    assert not any(in_both(four, last, first))


def test_where_the_merge_base_drops_as_well_nothing_more_is_drawn():
    assert not any(in_both(DROPPED, DROPPED, BEFORE))


def test_a_suspected_case_is_tried_alone_first_and_then_in_both_arms():
    place = ("a", "e", "x")

    def drawn(now: str, base: str) -> tuple[range, range]:
        found = in_both(f"{SOLID}\nx {now}", base and f"x {base}", f"{SOLID}\nx 1")
        return tuple(each.confirming.get(place, range(0)) for each in found)

    assert drawn("0", "") == (range(1), range(0))
    assert drawn("0 ! 0", "") == (range(1, 2), range(0))
    assert drawn("0 ! 0 0", "") == (range(2, 3), range(1))
    change, base = drawn("0 ! 0 0 0", "! 1")
    assert (change.start, base.start) == (3, 1)
    assert len(change) == len(base) > 0
    enough = " 0" * len(change), " 1" * len(base)
    # Cleared by the change, by the merge base, and proven.
    assert drawn("0 ! 0 1", "") == drawn("0 ! 0 0 0", "! 0") == (range(0), range(0))
    assert drawn(f"0 ! 0 0 0{enough[0]}", f"! 1{enough[1]}") == (range(0), range(0))


@pytest.mark.parametrize(
    ("differing", "confirmed"),
    [
        ({0: "0", 1: "0"}, True),
        (dict.fromkeys(range(4), "0"), True),
        (dict.fromkeys(range(5), "0"), False),
        ({0: "0", 1: "0", 2: "0 1", 3: "0.7", 4: "0.7"}, True),
        ({0: "0", **dict.fromkeys(range(1, 5), "0.7")}, False),
        ({0: "0", **dict.fromkeys(range(1, 4), "0 ! 1")}, False),
    ],
    ids=["two", "four", "five", "most of the drop", "others fell more", "others were cleared"],
)
def test_few_suspects_are_confirmed_before_every_case_is_drawn_again(differing, confirmed):
    cases = dict.fromkeys(range(20), "1")

    def run(of_cases: Mapping[int, str]) -> str:
        return "\n".join(f"n{number} {values}" for number, values in of_cases.items())

    change, base = in_both(run(cases | differing), "", run(cases))

    assert change.confirming
    assert bool(base.pairs) is not confirmed


def test_without_stored_runs_the_merge_base_is_drawn_whatever_the_change_showed(planned):
    of_base = replace(planned, pairs={("live", "e"): planned.pairs["live", "e"]})
    plans = Plans(planned, of_base)
    run = meta()

    assert next_round(plans, run, (), Tally(), (run, Tally())) == Redraws(
        base=Redraw(range(1), frozenset(of_base.pairs))
    )
    assert next_round(Plans(planned), run, (), Tally()) is None


@pytest.mark.parametrize(("untracked", "may_fill"), [((), True), (("data/",), False)])
def test_a_merge_base_that_did_badly_is_run_again_where_it_lacks_files(
    planned, untracked, may_fill
):
    shown = Tally(columns=columns(DROPPED, FACTS), trials=3)
    plans = Plans(planned, planned, may_fill=True)
    run = meta().model_copy(update={"untracked": ("data/",)})

    def drawn(plans: Plans, run: RunMeta) -> object:
        return next_round(plans, run, past(BEFORE), shown, (meta("base"), shown))

    assert drawn(plans, run) == "base again"
    run = run.model_copy(update={"untracked": untracked})
    assert drawn(plans._replace(may_fill=may_fill), run) != "base again"
