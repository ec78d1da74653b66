"""Nothing unmeasured is green: random suites, through every stage from the files to the verdict."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from ci_eval.config.load_config import load
from ci_eval.gate import mean_drop
from ci_eval.records.errors import NothingSelectedError, UsageError
from ci_eval.records.findings import Report
from ci_eval.records.results import Run, RunMeta, TrialResult
from ci_eval.records.trials import Failure, Trace, Trial, TrialKey
from ci_eval.run import report_assembly
from ci_eval.run.baseline_choice import Baseline
from ci_eval.run.collect import Collected, Tally
from ci_eval.run.plan import Plan, plan
from ci_eval.run.run_metadata import describe
from ci_eval.run.score import score
from ci_eval.run_files.score_table import Columns, Past
from ci_eval.runtime.context import RunContext
from ci_eval.stats import effective_test_count

UNTIL = {"until": "2999-12-31"}
CRITERIA: dict[str, Any] = {
    "tool_trajectory_avg_score": 1.0,
    "response_match_score": 0.5,
    "agentflow/rouge_match": 0.5,
    "agentflow/tool_name_match_score": {"threshold": 0.5, "semantics": "observed"},
    "agentflow/node_order_match_score": 0.5,
    "ci/exact_match": 1,
    "ci/required_tools": 1,
    "ci/tool_arguments": 1,
    "ci/tool_errors": 1,
    "ci/final_state": 1,
    "ci/assertions": 1,
    "says": {"use": "ci/regex", "pattern": "yes", "threshold": 1},
    "warns": {"use": "ci/regex", "pattern": "yes", "threshold": 1, "tier": "warn"},
    "informs": {"use": "ci/regex", "pattern": "yes", "threshold": 1, "tier": "inform"},
    "ci/latency_s": None,
    "tool_call_count_v1": None,
}
"""Criteria of every need, and some that never judge."""
NEVER_JUDGE = {"warns", "informs", "ci/latency_s", "tool_call_count_v1"}
DOES = ("right", "right", "right", "wrong", "silent", "lost")
"""What an agent does in a trial; `lost` is an error."""


@dataclass(frozen=True)
class Suite:
    """A configuration with its evalsets, and what the agents did and had done before."""

    config: dict[str, Any]
    evalsets: dict[str, Any]
    does: tuple[str, ...]
    """What happens in one trial after the other, over and over."""
    before: tuple[tuple[str, ...], ...]
    lost: frozenset[int] = frozenset()
    """The trials, by number, that end in an error whatever was to happen."""


@dataclass(frozen=True)
class Outcome:
    """What became of a suite."""

    report: Report
    results: list[TrialResult]

    @property
    def passed(self) -> bool:
        return self.report.verdict.outcome == "passed"


# --- Drawing --------------------------------------------------------------------------------


def adk(name: str, kind: str) -> dict[str, Any]:
    """Return a case as ADK has it."""
    user = {"user_content": {"parts": [{"text": f"Say yes to {name}"}]}}
    final = {"final_response": {"parts": [{"text": "yes"}]}}
    calls = {"intermediate_data": {"tool_uses": [{"name": "f", "args": {}}]}}
    plot = {"starting_prompt": "Hi", "conversation_plan": "Be kind."}
    conversations: dict[str, list[dict[str, Any]]] = {
        "bare": [user],
        "response": [user | final],
        "none": [user | final | {"intermediate_data": {"tool_uses": []}}],
        "calls": [user | final | calls],
        "mixed": [user, user | final | calls],
        "empty": [],
    }
    if kind == "scenario":
        return {"eval_id": name, "conversation_scenario": plot}
    return {"eval_id": name, "conversation": conversations[kind]}


def own(name: str, kind: str) -> dict[str, Any]:
    """Return a case as our own format has it."""
    asked = {"prompt": f"Say yes to {name}"}
    tools = {"expected_tools": [{"name": "f", "args": {}}]}
    cases: dict[str, dict[str, Any]] = {
        "bare": asked,
        "response": {**asked, "expected": "yes"},
        "none": {**asked, "expected_tools": []},
        "calls": {**asked, **tools, "expected": "yes"},
        "mixed": {"turns": [asked, {**asked, **tools, "expected_nodes": ["n"]}]},
        "empty": {"turns": []},
        "scenario": {"scenario": {"start": "Hi", "plan": "Be kind."}},
        "asserts": {**asked, "assert": [{"contains": "yes"}]},
        "state": {**asked, "final_state": {"n": 1}},
    }
    return {"id": name, **cases[kind]}


KINDS = ("bare", "response", "response", "none", "calls", "calls", "mixed", "empty", "scenario")


@st.composite
def evalsets(draw: st.DrawFn) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in draw(st.sampled_from(["e", "ef"])):
        size = draw(st.sampled_from([1, 2, 2, 3, 3, 5, 5, 0]))
        if draw(st.booleans()):
            kinds = draw(st.lists(st.sampled_from(KINDS), min_size=size, max_size=size))
            cases = [adk(f"c{number}", kind) for number, kind in enumerate(kinds)]
            found[name] = {"eval_set_id": name, "eval_cases": cases}
        else:
            every = st.sampled_from((*KINDS, "asserts", "state"))
            kinds = draw(st.lists(every, min_size=size, max_size=size))
            found[name] = {"cases": [own(f"c{n}", kind) for n, kind in enumerate(kinds)]}
    return found


gates = st.fixed_dictionaries(
    {},
    optional={
        "mode": st.sampled_from(["threshold", "regression", "both"]),
        "floors": st.sampled_from(["interval", "point"]),
        "min_pass_rate": st.sampled_from([0, 0.3, 0.6, 1]),
        "min_score": st.sampled_from([{"says": 0.5}, {"response_match_score": 0.4, "warns": 0.6}]),
        "max_errors": st.sampled_from([1, 2, 9]),
        "max_drop": st.sampled_from([0, 0.1]),
        "false_block": st.sampled_from([0.05, 0.2]),
        "on_inconclusive": st.sampled_from(["pass", "warn", "fail", "rerun"]),
        "on_missing": st.sampled_from(["threshold", "pass", "warn", "fail"]),
        "on_vanished": st.sampled_from(["pass", "warn", "fail"]),
        "allow_unjudged": st.lists(
            st.sampled_from(["c0", "c1", {"evalset": "f"}, {"case": "c2", "agent": "a"}]),
            min_size=1,
            max_size=3,
        ),
        "accept": st.just([{"criterion": "says", "reason": "meant", **UNTIL}]),
        "quarantine": st.just([{"case": "c1", "owner": "us", **UNTIL}]),
    },
)


@st.composite
def suites(draw: st.DrawFn) -> Suite:
    sets = draw(evalsets())
    names = draw(st.lists(st.sampled_from([*CRITERIA]), min_size=1, max_size=5, unique=True))
    if draw(st.sampled_from([True, True, True, False])):
        names = list(dict.fromkeys(["says", *names]))
    # Assertions that nothing reads are refused.
    asserting = any(
        "assert" in each for given_ in sets.values() for each in given_.get("cases", ())
    )
    if asserting and "ci/assertions" not in names:
        names.append("ci/assertions")
    agents = {name: {"recorded": "traces.jsonl"} for name in draw(st.sampled_from(["a", "ab"]))}
    config: dict[str, Any] = {
        "name": "suite",
        "agents": agents,
        "evalsets": {name: f"{name}.json" for name in sets},
        "criteria": {name: CRITERIA[name] for name in names},
        "run": {"repeats": draw(st.integers(1, 2))},
        "gate": draw(gates),
    }
    if len(agents) > 1 and draw(st.booleans()):
        row = {"agents": ["b"], "criteria": names[:1]}
        config["matrix"] = [{"agents": ["a"]}, row]
    done = st.lists(st.sampled_from(DOES), min_size=1, max_size=6).map(tuple)
    before = st.lists(done, max_size=3).map(tuple)
    return Suite(config, sets, draw(done), draw(before))


# --- The line -------------------------------------------------------------------------------


def planned(suite: Suite, folder: Path) -> tuple[Plan, RunMeta]:
    """Return the plan, read from files."""
    (folder / "traces.jsonl").touch()
    (folder / "ci-eval.yaml").write_text(json.dumps(suite.config))
    for name, content in suite.evalsets.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    context = RunContext(env={}, root=folder, now=lambda: 0.0)
    config = load(folder / "ci-eval.yaml", shown="ci-eval.yaml", context=context)
    found = plan(config, context)
    return found, describe(found, context, Path("out"))


def trace_of(trial: Trial, does: str) -> Trace:
    """Return an agent's behavior."""
    if does == "lost":
        return Trace(key=trial.key, error=Failure(kind="start", message="It is not there."))
    said = {"right": "yes", "wrong": "no", "silent": ""}[does]
    calls = [{"name": "f", "args": {}, "id": "1"}] if does == "right" else []
    answers = [{"name": "f", "id": "1", "response": {}}] if calls else []
    turn = {
        "user_content": {},
        "final_response": {"parts": [{"text": said}]},
        "intermediate_data": {"tool_uses": calls, "tool_responses": answers},
        "nodes": ["n"],
    }
    turns = 1 if trial.case.conversation is None else len(trial.case.conversation)
    given_ = {"key": trial.key, "invocations": [turn] * turns, "final_state": {"n": 1}}
    return Trace.model_validate(given_)


def scored(found: Plan, does: tuple[str, ...], lost: frozenset[int]) -> list[TrialResult]:
    """Return the results of all trials."""

    async def every() -> list[TrialResult]:
        return [
            await score(
                trial,
                trace_of(trial, "lost" if number in lost else does[number % len(does)]),
                found.pairs[trial.key.agent, trial.key.evalset],
                {},
            )
            for number, trial in enumerate(found.trials())
        ]

    return asyncio.run(every())


def retried(suite: Suite, refused: set[str]) -> Outcome | None:
    """Return the outcome of a suite without its rejected criteria, if there are any."""
    criteria = suite.config["criteria"]
    kept = {name: each for name, each in criteria.items() if f"criteria.{name}" not in refused}
    if not kept or len(kept) == len(criteria) or "matrix" in suite.config:
        return None
    return outcome_of(replace(suite, config={**suite.config, "criteria": kept}))


def outcome_of(suite: Suite) -> Outcome | None:
    """Return the outcome of a suite; nothing if it is rejected before the run."""
    with TemporaryDirectory() as folder:
        try:
            found, meta = planned(suite, Path(folder))
        except NothingSelectedError:
            return None
        except UsageError as exc:
            return retried(suite, {each.where for each in exc.problems})
        results = scored(found, suite.does, suite.lost)
        past = [
            Past(
                meta.model_copy(update={"run_id": f"past{number}"}),
                Columns.of(scored(found, does, frozenset())),
            )
            for number, does in enumerate(suite.before)
        ]
    tally = Tally()
    for result in results:
        tally.add(result)
    observed = Collected(Run(meta, lambda: iter(results)), tally)
    before = Baseline(past) if suite.before else None
    return Outcome(report_assembly.compare_and_decide(observed, found.config.gate, before), results)


# --- What must hold -------------------------------------------------------------------------

Place = tuple[str, str, str]


def place_of(key: TrialKey) -> Place:
    return key.agent, key.evalset, key.case


def allowed(suite: Suite, place: Place) -> bool:
    """Return True if the gate names a case that nothing judges."""
    agent, evalset, case = place
    entries = [
        {"case": each} if isinstance(each, str) else each
        for each in suite.config["gate"].get("allow_unjudged", ())
    ]
    return any(
        each.get("case", case) == case
        and each.get("evalset", evalset) == evalset
        and each.get("agent", agent) == agent
        for each in entries
    )


def unmeasured(suite: Suite, outcome: Outcome) -> Iterator[Place]:
    """Yield the cases that nothing which blocks measured, and that nothing allows."""
    measured: dict[Place, bool] = {}
    lost: set[Place] = set()
    for result in outcome.results:
        place = place_of(result.key)
        judging = [each for each in result.scores if each.name not in NEVER_JUDGE]
        found = any(each.value is not None for each in judging)
        measured[place] = measured.get(place, False) or found
        if any(each.status == "error" for each in judging):
            lost.add(place)
    # An error is named as such, and `max_errors` says how many there may be.
    if len(lost) > suite.config["gate"].get("max_errors", 0):
        # Those in quarantine, or accepted, decide nothing.
        lost = {place for place in lost if {"quarantine", "accept"} & {*suite.config["gate"]}}
    for place, was_measured in measured.items():
        if not (was_measured or place in lost or allowed(suite, place)):
            yield place


def worst_rate(outcome: Outcome) -> float:
    """Return the share of cases that passed, of all that were judged or should have been."""
    statuses: dict[Place, set[str]] = {}
    for result in outcome.results:
        for each in result.scores:
            if each.name not in NEVER_JUDGE and each.status != "skipped":
                statuses.setdefault(place_of(result.key), set()).add(each.status)
    good = sum(found == {"passed"} for found in statuses.values())
    return good / len(statuses) if statuses else 0.0


patient = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)


@pytest.fixture(autouse=True, scope="module")
def _quickly():
    """Draw less where laws hold for any number of draws."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(effective_test_count, "_DRAWS", 2_000)
        patch.setattr(mean_drop, "_FEWEST_DRAWS", 999)
        yield


@pytest.mark.slow
@settings(patient, max_examples=3 * settings.default.max_examples)
@given(suites())
def test_what_passed_was_measured(suite: Suite) -> None:
    outcome = outcome_of(suite)
    event("refused" if outcome is None else outcome.report.verdict.outcome)
    if outcome is None or not outcome.passed:
        return
    gate = suite.config["gate"]

    assert list(unmeasured(suite, outcome)) == []
    for name, content in suite.evalsets.items():
        cases = content.get("cases", content.get("eval_cases"))
        assert cases or {"evalset": name} in gate.get("allow_unjudged", ())
    # One repeat, and nothing excused: then the share is plain.
    plain = suite.config["run"]["repeats"] == 1 and not {"accept", "quarantine"} & {*gate}
    if plain and gate.get("floors") == "point" and "min_pass_rate" in gate:
        assert worst_rate(outcome) >= gate["min_pass_rate"] - 1e-9


@pytest.mark.slow
@settings(patient, max_examples=3 * settings.default.max_examples)
@given(suites(), st.lists(st.integers(0, 99), min_size=1, max_size=3))
def test_a_pass_that_is_lost_makes_nothing_green(suite: Suite, picked: list[int]) -> None:
    before = outcome_of(suite)
    if before is None or before.passed:
        return
    passing = [number for number, each in enumerate(before.results) if each.status == "passed"]
    if not passing:
        return
    lost = frozenset(passing[each % len(passing)] for each in picked)
    after = outcome_of(replace(suite, lost=lost))

    event("lost a pass")
    assert after is not None
    assert not after.passed


BOTH = {"e": {"cases": [own("c0", "response"), own("c1", "calls")]}}


@pytest.mark.parametrize(
    ("sets", "criteria", "gate", "does", "outcome"),
    [
        (BOTH, ["response_match_score"], {}, "right", "passed"),
        (BOTH, ["response_match_score"], {}, "wrong", "failed"),
        (BOTH, ["response_match_score"], {}, "lost", "incomplete"),
        (BOTH, ["tool_trajectory_avg_score"], {}, "right", None),
        (BOTH, ["tool_trajectory_avg_score"], {"allow_unjudged": ["c0"]}, "right", "passed"),
        (BOTH, ["warns", "response_match_score"], {}, "right", "passed"),
        (BOTH, ["ci/tool_errors"], {}, "wrong", "incomplete"),
        (BOTH, ["ci/tool_errors", "says"], {}, "wrong", "failed"),
        ({**BOTH, "f": {"cases": []}}, ["response_match_score"], {}, "right", None),
    ],
)
def test_every_way_to_end_is_there(
    sets: dict[str, Any], criteria: list[str], gate: dict[str, Any], does: str, outcome: str | None
) -> None:
    config = {
        "agents": {"a": {"recorded": "traces.jsonl"}},
        "evalsets": {name: f"{name}.json" for name in sets},
        "criteria": {name: CRITERIA[name] for name in criteria},
        "gate": gate,
    }
    found = outcome_of(Suite(config, sets, (does,), ()))

    assert (found and found.report.verdict.outcome) == outcome
