"""What is told before a run: criteria that nothing can be scored by, cases that nothing reads."""

from pathlib import Path
from typing import Any

import pytest
from support.project import GREETS, REFUNDS, case, turn

from ci_eval.config.load_config import load
from ci_eval.config.selection import Meant, PlannedEvalSet, Selection
from ci_eval.config.validated_config import Config
from ci_eval.records.cases import EvalCase
from ci_eval.records.evalset_facts import CaseFacts, EvalSet, OpenedEvalSet
from ci_eval.run import requirements
from ci_eval.runtime.context import RunContext

WHOLE, SOME = Selection(), Selection(criteria=("some",))
SCENARIO = {
    "eval_id": "leads",
    "conversation_scenario": {"starting_prompt": "Hi", "conversation_plan": "Be kind."},
}
SILENT = case("silent", {"user_content": {"parts": [{"text": "Hello"}]}})
TWO_TURNS = case("two", turn("Hello", "Hi"), SILENT["conversation"][0])


def planned(name: str, *cases: dict[str, Any], only: tuple[str, ...] = ()) -> PlannedEvalSet:
    """Return an evalset whose cases stand on the lines 10, 20, … of a file."""
    read = [EvalCase(**each, line=10 * line) for line, each in enumerate(cases, 1)]
    facts = CaseFacts()
    for each in read:
        facts.add(each)
    header = EvalSet(eval_set_id=name, path=name, format="adk")
    opened = OpenedEvalSet(header, lambda: iter(read), facts)
    meant = Meant((only,) if only else (), frozenset())
    return PlannedEvalSet(opened, f"{name}.json", meant, meant, sum(map(meant, read)))


class Suite:
    """Criteria, one on each line from 4 on, on evalsets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "traces.jsonl").touch()
        self.more = ""

    def config(self, *criteria: str) -> Config:
        lines = [
            "agents: {bot: {recorded: traces.jsonl}}",
            "evalsets: {e: e.json, f: f.json}",
            "criteria:",
        ]
        path = self.folder / "ci-eval.yaml"
        path.write_text("\n".join((*lines, *(f"  {each}" for each in criteria), self.more)))
        context = RunContext(env={}, root=self.folder, now=lambda: 0.0)
        return load(path, shown="ci-eval.yaml", context=context)

    def problems(
        self,
        *evalsets: PlannedEvalSet,
        criteria: tuple[str, ...],
        selection: Selection = WHOLE,
        as_adk: bool = False,
    ) -> list[str]:
        config = self.config(*criteria)
        named = {each.opened.header.eval_set_id: each for each in evalsets}
        pairs = {("bot", name): config.criteria for name in named}
        found = requirements.problems(config, named, pairs, selection, as_adk=as_adk)
        return [f"{problem.severity} {problem}" for problem in found]


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


SAYS = "says: {use: ci/regex, pattern: x, threshold: 1}"
TRAJECTORY = "tool_trajectory_avg_score: 1"
WORDS = "response_match_score: 0.5"
ASSERTIONS = "ci/assertions: 1"


def test_criteria_and_cases_that_fit_need_no_word(suite: Suite) -> None:
    assert suite.problems(planned("e", GREETS, REFUNDS), criteria=(TRAJECTORY, WORDS)) == []


def test_one_case_that_can_be_scored_is_enough_wherever_it_is(suite: Suite) -> None:
    evalsets = planned("e", SCENARIO), planned("f", SCENARIO, GREETS)
    assert suite.problems(*evalsets, criteria=(TRAJECTORY, SAYS)) == []


def test_a_criterion_that_applies_to_no_selected_evalset_may_apply_to_others(suite: Suite) -> None:
    silent = planned("e", SILENT)
    assert suite.problems(silent, criteria=(WORDS, SAYS)) != []
    assert (
        suite.problems(silent, criteria=(WORDS, SAYS), selection=Selection(evalsets=("e",))) == []
    )


def test_a_case_that_nothing_can_judge_is_named_with_the_reason(suite: Suite) -> None:
    evalsets = planned("e", GREETS, SCENARIO), planned("f", GREETS)
    said = (
        "error e.json:20: case 'leads': no blocking criterion can judge it ({}"
        "tool_trajectory_avg_score: needs a written conversation, not a scenario); "
        "add a criterion that can, or add the case to gate.allow_unjudged"
    )

    assert suite.problems(*evalsets, criteria=(TRAJECTORY,)) == [said.format("")]
    # What only warns or informs judges nothing.
    assert suite.problems(
        *evalsets, criteria=(TRAJECTORY, SAYS.replace("1}", "1, tier: warn}"), "ci/latency_s:")
    ) == [said.format("")]
    assert suite.problems(*evalsets, criteria=(TRAJECTORY, SAYS)) == []
    # Of a part of the criteria nobody expects that they judge all.
    assert suite.problems(*evalsets, criteria=(TRAJECTORY,), selection=SOME) == []


@pytest.mark.parametrize(
    ("allowed", "refused"),
    [
        ("leads", False),
        ("{case: le*, evalset: e}", False),
        ("{evalset: e}", False),
        ("{case: leads, agent: bot}", False),
        ("{case: leads, agent: other}", True),
        ("{case: leads, evalset: f}", True),
        ("greets", True),
    ],
)
def test_a_case_that_nothing_can_judge_may_be_allowed(
    suite: Suite, allowed: str, refused: bool
) -> None:
    suite.more = f"gate: {{allow_unjudged: [{allowed}]}}"
    found = suite.problems(planned("e", GREETS, SCENARIO), criteria=(TRAJECTORY,))

    assert bool(found) is refused


def test_a_case_without_invocation_is_one_that_nothing_can_judge(suite: Suite) -> None:
    evalset = planned("e", GREETS, {"eval_id": "empty", "conversation": []})
    (said,) = suite.problems(evalset, criteria=(TRAJECTORY, SAYS))

    assert said.startswith("error e.json:20: case 'empty': no blocking criterion can judge it")


def test_of_many_cases_that_nothing_can_judge_the_number_is_told(suite: Suite) -> None:
    many = [{**SCENARIO, "eval_id": f"leads{number}"} for number in range(25)]
    found = suite.problems(planned("e", GREETS, *many), criteria=(TRAJECTORY,))

    assert len(found) == 20
    assert found[-1].endswith("gate.allow_unjudged (and 5 more cases)")


def test_adk_would_try_it_all_the_same(suite: Suite) -> None:
    for evalset in (planned("e", GREETS, SCENARIO), planned("e", SCENARIO)):
        (said,) = suite.problems(evalset, criteria=(TRAJECTORY,), as_adk=True)
        assert said.startswith("warning ")


@pytest.mark.parametrize("only", [(), ("leads",)])
def test_a_criterion_that_no_case_can_be_scored_by_is_named_with_the_reason(
    suite: Suite, only: tuple[str, ...]
) -> None:
    cases = (SCENARIO, GREETS) if only else (SCENARIO,)
    assert suite.problems(planned("e", *cases, only=only), criteria=(TRAJECTORY,)) == [
        (
            "error ci-eval.yaml:4: criteria.tool_trajectory_avg_score: "
            "cannot score any case: case 'leads' needs a written conversation, not a scenario; "
            "change the cases, or remove the criterion"
        )
    ]


def test_what_a_criterion_needs_of_a_case_may_be_missing_everywhere(suite: Suite) -> None:
    assert suite.problems(planned("e", GREETS, REFUNDS), criteria=(WORDS, ASSERTIONS)) == [
        (
            "error ci-eval.yaml:5: criteria.ci/assertions: cannot score any case: case 'refunds' "
            "has no assertions; change the cases, or remove the criterion"
        )
    ]


def test_a_case_that_states_nothing_of_what_is_compared_cannot_be_judged(suite: Suite) -> None:
    (said,) = suite.problems(planned("e", GREETS, SILENT, TWO_TURNS), criteria=(TRAJECTORY, WORDS))
    assert said.startswith("error e.json:20: case 'silent': no blocking criterion can judge it")
    assert "response_match_score: expects no response" in said
    # Silence counts in ADK's own files.
    of_adk = planned("e", GREETS, {**SILENT, "of_adk": True})
    assert suite.problems(of_adk, criteria=(TRAJECTORY, WORDS)) == []


ASSERTING = {**GREETS, "assertions": [{"contains": "help"}]}


def test_assertions_that_nothing_checks_are_an_error(suite: Suite) -> None:
    evalsets = planned("e", GREETS), planned("f", GREETS, ASSERTING)
    assert suite.problems(*evalsets, criteria=(WORDS,)) == [
        (
            "error f.json:20: case 'greets': nothing checks these assertions; "
            "add `ci/assertions: 1` to the criteria"
        )
    ]
    assert suite.problems(*evalsets, criteria=(WORDS, ASSERTIONS)) == []
    assert suite.problems(*evalsets, criteria=(WORDS,), selection=SOME) == []


def test_assertions_are_checked_before_a_run_with_the_line_of_their_case(suite: Suite) -> None:
    wrong = {**GREETS, "assertions": [{"contains": "x"}, {"containz": "x"}]}
    (said,) = suite.problems(planned("e", ASSERTING, wrong), criteria=(ASSERTIONS,))
    assert said.startswith("error e.json:20: case 'greets': assertion 2 ('containz'): ")
    assert "Did you mean 'contains'?" in said


def test_assertions_of_cases_that_are_not_meant_are_left_alone(suite: Suite) -> None:
    wrong = {**REFUNDS, "assertions": [{"containz": "x"}]}
    evalset = planned("e", ASSERTING, wrong, only=("greets",))
    assert suite.problems(evalset, criteria=(ASSERTIONS,)) == []


def of_kind(name: str, kind: str) -> dict[str, Any]:
    return {"rubric_id": name, "rubric_content": {"text_property": "Done."}, "type": kind}


def test_rubrics_of_a_case_that_cannot_be_judged_are_told_before_a_run(suite: Suite) -> None:
    twice = [of_kind("polite", "TOOL_USE_QUALITY")] * 2
    evalset = planned("e", {**GREETS, "rubrics": twice[:1]}, {**REFUNDS, "rubrics": twice})
    tools = "rubric_based_tool_use_quality_v1: 1"

    assert suite.problems(evalset, criteria=(tools,)) == [
        (
            "error e.json:20: case 'refunds': adk/rubric_based_tool_use_quality_v1: "
            "duplicate rubric id 'polite'; give one of them another id"
        )
    ]
    other = planned("e", {**GREETS, "rubrics": [of_kind("polite", "TONE")]})
    (said,) = suite.problems(other, criteria=(tools,))
    assert said.endswith(
        "cannot score any case: case 'greets' needs rubrics: in the criterion, or in the case with "
        "the type 'TOOL_USE_QUALITY'; change the cases, or remove the criterion"
    )


# --- Simulated users --------------------------------------------------------------------------


@pytest.fixture
def talks(tmp_path: Path) -> "Talks":
    (tmp_path / "bot.py").touch()
    return Talks(tmp_path)


class Talks(Suite):
    """The same with an agent that somebody has to talk to."""

    more = ""

    def config(self, *criteria: str) -> Config:
        path = self.folder / "ci-eval.yaml"
        lines = ["agents: {bot: {python: 'bot:x'}}", "evalsets: {e: e.json}", "criteria:"]
        path.write_text("\n".join((*lines, *(f"  {each}" for each in criteria), self.more)))
        context = RunContext(env={}, root=self.folder, now=lambda: 0.0)
        return load(path, shown="ci-eval.yaml", context=context)


LENGTH = "ci/latency_s: 5"
PERSONA = {"conversation_scenario": {**SCENARIO["conversation_scenario"], "user_persona": "NOVICE"}}
OWN = "'{{ stop_signal }}{{ conversation_plan }}{{ conversation_history }}'"


def test_a_scenario_needs_nothing_but_a_model_that_can_be_asked(talks: Talks) -> None:
    assert talks.problems(planned("e", SCENARIO), criteria=(LENGTH,)) == []
    talks.more = "judge: {max_cost_usd: 1, model: gemini-99}"
    (said,) = talks.problems(planned("e", SCENARIO, GREETS), criteria=(LENGTH,))
    assert said.startswith("error ci-eval.yaml:1: cases need a simulated user: the price of")
    assert talks.problems(planned("e", GREETS), criteria=(LENGTH,)) == []


def test_a_persona_that_would_never_be_heard_of_is_told(talks: Talks, suite: Suite) -> None:
    evalset = planned("e", SCENARIO, {**SCENARIO, **PERSONA, "eval_id": "played"})
    talks.more = f"simulator: {{custom_instructions: {OWN}}}"
    (said,) = talks.problems(evalset, criteria=(LENGTH,))

    assert said.startswith("error e.json:20: case 'played': has a persona, but the ")
    assert suite.problems(evalset, criteria=(LENGTH,)) == []


def test_a_state_that_an_agent_cannot_be_given_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "ci-eval.yaml"
    (tmp_path / "bot.py").touch()
    path.write_text(
        "agents: {far: {a2a: 'http://127.0.0.1:1'}, near: {python: 'bot:x'}}\n"
        f"evalsets: {{e: e.json}}\ncriteria: {{{LENGTH}}}\n"
    )
    config = load(path, shown=path.name, context=RunContext(env={}, root=tmp_path, now=lambda: 0.0))
    given = {"app_name": "shop", "user_id": "u", "state": {"cart": []}}
    evalset = planned("e", GREETS, {**GREETS, "eval_id": "b", "session_input": given})
    pairs = {(agent, "e"): config.criteria for agent in config.agents}
    (problem,) = requirements.problems(config, {"e": evalset}, pairs, WHOLE)
    assert (problem.severity, str(problem)) == (
        "warning",
        (
            "e.json:20: the `session_input.state` of the case is not used: agent 'far' is of type "
            "'a2a', which has no state"
        ),
    )


@pytest.mark.parametrize(
    ("criteria", "said"),
    [
        ((WORDS, TRAJECTORY), []),
        ((WORDS, "ci/tool_arguments: 1"), []),
        ((WORDS, "own: {use: ci/python, python: 'm:f', threshold: 1}"), []),
        ((WORDS,), ["e.json:20: 1 case expects tool calls", "tool_trajectory_avg_score"]),
        ((TRAJECTORY,), ["e.json:10: 2 cases expect a response", "response_match_score"]),
        ((TRAJECTORY, "hallucinations_v1: 1"), []),
    ],
)
def test_what_cases_expect_and_nothing_reads_is_named(
    suite: Suite, criteria: tuple[str, ...], said: list[str]
) -> None:
    config = suite.config(*criteria)
    evalsets = {"e": planned("e", GREETS, REFUNDS)}
    found = requirements.unread_expectations(config, evalsets, {("bot", "e"): config.criteria})
    text = " ".join(f"{each.severity} {each}" for each in found)
    assert all(part in text for part in said)
    assert bool(text) is bool(said)


def test_only_selected_cases_that_are_run_count_as_unread(suite: Suite) -> None:
    config = suite.config(TRAJECTORY, SAYS)
    evalsets = {
        "e": planned("e", GREETS, REFUNDS, only=("refunds",)),
        "f": planned("f", GREETS, SILENT, only=("silent",)),
        "g": planned("g", GREETS),
    }
    pairs = {("bot", name): config.criteria for name in ("e", "f")}
    found = map(str, requirements.unread_expectations(config, evalsets, pairs))
    assert [each.partition(",")[0] for each in found] == ["e.json:20: 1 case expects a response"]
