"""AgentFlow's node order: where a graph begins and ends counts only where it is expected."""

from typing import Any

import pytest

from ci_eval.criteria.agentflow_sequences import NodeOrderMatch
from ci_eval.records.cases import EvalCase, Status
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace, TrialKey

KEY = TrialKey(agent="a", evalset="e", case="c")
TYPES = ("EXACT", "IN_ORDER", "ANY_ORDER")

Nodes = str | None


def turns(nodes: list[Nodes]) -> list[dict[str, Any]]:
    return [{"user_content": {}, "nodes": None if each is None else each.split()} for each in nodes]


def case_of(*nodes: Nodes) -> EvalCase:
    return EvalCase.model_validate({"eval_id": "c", "conversation": turns(list(nodes))})


def scored(expected: list[Nodes], actual: list[Nodes], **options: Any) -> Score:
    trace = Trace.model_validate({"key": KEY, "invocations": turns(actual)})
    criterion = NodeOrderMatch.model_validate(options)
    return criterion.score(case_of(*expected), trace)


def order(expected: str, actual: str, **options: Any) -> float | None:
    return scored([expected], [actual], **options).value


@pytest.mark.parametrize(
    ("expected", "actual", "value"),
    [
        ("MAIN TOOL MAIN END", "MAIN TOOL MAIN END", 1.0),
        ("MAIN TOOL MAIN END", "__start__ MAIN TOOL MAIN __end__", 1.0),
        ("MAIN TOOL MAIN", "__start__ MAIN TOOL MAIN END", 1.0),
        ("MAIN TOOL MAIN END", "MAIN TOOL MAIN", 0.0),
        ("__start__ MAIN", "__start__ MAIN", 1.0),
        ("__start__ MAIN", "MAIN", 0.0),
        ("MAIN", "__start__ MAIN", 1.0),
        ("MAIN", "MAIN TOOL MAIN", 0.0),
        ("MAIN", "main", 0.0),
    ],
)
def test_nodes_are_visited_in_the_expected_sequence(
    expected: str, actual: str, value: float
) -> None:
    assert order(expected, actual) == value


@pytest.mark.parametrize(
    ("expected", "actual", "fitting"),
    [
        ("a b", "a x b", {"IN_ORDER", "ANY_ORDER"}),
        ("a b", "b a", {"ANY_ORDER"}),
        ("a a", "a", set()),
    ],
)
def test_the_types_of_match_are_those_of_the_trajectory(
    expected: str, actual: str, fitting: set[str]
) -> None:
    assert {each for each in TYPES if order(expected, actual, match_type=each)} == fitting


def test_partial_counts_what_is_left_without_the_ends() -> None:
    assert order("a b", "__start__ a c b __end__", partial=True) == 2 / 3
    assert order("a b", "__start__ a", partial=True) == 0.5


@pytest.mark.parametrize(
    ("expected", "actual", "values"),
    [
        # What the package's collector reports of MAIN, a tool and MAIN again.
        ("MAIN TOOL MAIN", "__start__ MAIN MAIN", [1 / 3, 1 / 3, 2 / 3]),
        ("MAIN", "__start__ MAIN", [0.0, 1.0, 1.0]),
        ("__start__ MAIN MAIN", "__start__ MAIN MAIN", [1.0, 1.0, 1.0]),
        ("END", "__end__", [0.0, 0.0, 0.0]),
        ("", "MAIN", [1.0, 1.0, 1.0]),
    ],
)
def test_observed_semantics_compare_every_name_as_it_is(
    expected: str, actual: str, values: list[float]
) -> None:
    found = [order(expected, actual, match_type=each, semantics="observed") for each in TYPES]

    assert found == values


def test_the_nodes_of_a_case_are_one_sequence_shown_by_invocation() -> None:
    score = scored(["a b", "c"], ["a", "b c"])

    assert score.value == 1.0
    assert [part.value for part in score.invocations] == [0.0, 0.0]


def test_what_was_compared_is_kept_where_it_did_not_pass() -> None:
    evidence = {"expected_nodes": ["a", "b"], "actual_nodes": ["__start__", "b"]}

    assert scored(["a", "b"], ["__start__", "b"]).evidence == evidence
    assert scored(["a"], ["a"]).evidence is None


@pytest.mark.parametrize("expected", [(None,), ("",), (None, "")])
def test_a_case_that_expects_no_nodes_is_skipped(expected: tuple[Nodes, ...]) -> None:
    assert NodeOrderMatch().lacks(case_of(*expected)) == "expects no nodes"
    assert NodeOrderMatch(semantics="observed").lacks(case_of(*expected)) == "expects no nodes"
    assert NodeOrderMatch().lacks(case_of(*expected, "a")) == ""


def test_a_turn_that_states_no_nodes_is_left_out() -> None:
    score = scored(["a", None, "b"], ["a", "x y", "b"])

    assert (score.value, [part.value for part in score.invocations]) == (1.0, [1.0, None, 1.0])
    # An empty list states that there are none.
    assert scored(["a", ""], ["a", "x"]).value == 0.0


@pytest.mark.parametrize("semantics", ["documented", "observed"])
def test_nodes_that_nobody_reported_are_not_taken_for_none(semantics: str) -> None:
    score = scored(["a", "b"], ["a", None], semantics=semantics)

    assert (score.status, score.value) == (Status.ERROR, None)
    assert score.reason == (
        "the agent did not report the nodes that it visited (as `nodes` in each answer)"
    )


def test_no_visit_at_all_is_measured() -> None:
    assert scored(["a"], [""]).value == 0.0
