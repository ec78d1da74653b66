"""AgentFlow's criteria of tool calls: as documented, and as the package observes."""

from typing import Any

import pytest
from pydantic import ValidationError

from ci_eval.criteria.agentflow_sequences import OfToolCalls, ToolNameMatch, ToolTrajectory
from ci_eval.records.cases import EvalCase, Status
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace, TrialKey

KEY = TrialKey(agent="a", evalset="e", case="c")
TYPES = ("EXACT", "IN_ORDER", "ANY_ORDER")

Calls = list[tuple[str, Any]] | str | None


def invocation(calls: Calls) -> dict[str, Any]:
    """Return a turn with these calls: a letter each, names with arguments, or nothing known."""
    turn: dict[str, Any] = {"user_content": {}}
    if calls is not None:
        named = [(name, {}) for name in calls] if isinstance(calls, str) else calls
        uses = [{"name": name, "args": args} for name, args in named]
        turn["intermediate_data"] = {"tool_uses": uses}
    return turn


def scored(
    model: type[OfToolCalls], expected: list[Calls], actual: list[Calls], **options: Any
) -> Score:
    case = EvalCase.model_validate(
        {"eval_id": "c", "conversation": list(map(invocation, expected))}
    )
    trace = Trace.model_validate({"key": KEY, "invocations": list(map(invocation, actual))})
    criterion = model.model_validate(options)
    assert criterion.lacks(case) == ""
    return criterion.score(case, trace)


def names(expected: Calls, actual: Calls, **options: Any) -> float | None:
    return scored(ToolNameMatch, [expected], [actual], **options).value


def trajectory(expected: Calls, actual: Calls, **options: Any) -> float | None:
    return scored(ToolTrajectory, [expected], [actual], **options).value


# --- Names ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "actual", "documented", "observed"),
    [
        ("ab", "ab", 1.0, 1.0),
        ("ab", "ba", 1.0, 1.0),  # the order is not considered
        ("ab", "aab", 1.0, 1.0),  # only presence is
        ("ab", "abcd", 0.5, 1.0),  # no unexpected tools, in the documentation
        ("ab", "ac", 1 / 3, 0.5),
        ("ab", "cd", 0.0, 0.0),  # none of the expected tools
        ("ab", "", 0.0, 0.0),
        ("aab", "ab", 1.0, 2 / 3),
        ("", "", 1.0, 1.0),
        ("", "a", 0.0, 0.5),
    ],
)
def test_names_are_compared_as_sets_and_by_the_package_as_a_recall(
    expected: str, actual: str, documented: float, observed: float
) -> None:
    assert names(expected, actual) == documented
    assert names(expected, actual, semantics="observed") == observed


# --- Trajectory -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "actual", "fitting"),
    [
        ("ab", "ab", {"EXACT", "IN_ORDER", "ANY_ORDER"}),
        ("ab", "abx", {"IN_ORDER", "ANY_ORDER"}),  # extra tools fail EXACT only
        ("ab", "xab", {"IN_ORDER", "ANY_ORDER"}),
        ("ab", "axb", {"IN_ORDER", "ANY_ORDER"}),
        ("ab", "ba", {"ANY_ORDER"}),
        ("ab", "bxa", {"ANY_ORDER"}),
        ("ab", "a", set()),  # missing tools fail all
        ("aa", "ab", set()),
        ("", "", {"EXACT", "IN_ORDER", "ANY_ORDER"}),
        ("", "a", {"IN_ORDER", "ANY_ORDER"}),
    ],
)
def test_the_type_of_match_decides_as_the_documentation_says(
    expected: str, actual: str, fitting: set[str]
) -> None:
    values = {each: trajectory(expected, actual, match_type=each) for each in TYPES}

    assert values == {each: float(each in fitting) for each in TYPES}


@pytest.mark.parametrize(
    ("expected", "actual", "exact", "in_order", "any_order"),
    [
        ("ab", "abc", 2 / 3, 1.0, 1.0),
        ("abc", "bc", 2 / 3, 2 / 3, 2 / 3),
        ("ab", "ba", 0.5, 0.5, 1.0),
        ("", "a", 0.0, 1.0, 1.0),
    ],
)
def test_partial_gives_the_share_that_matches(
    expected: str, actual: str, exact: float, in_order: float, any_order: float
) -> None:
    values = [trajectory(expected, actual, match_type=each, partial=True) for each in TYPES]

    assert values == [exact, in_order, any_order]


@pytest.mark.parametrize(
    ("expected", "actual", "exact", "in_order", "any_order"),
    [
        ("ab", "abc", 1.0, 1.0, 1.0),  # what comes after the last expected call costs nothing
        ("ab", "xab", 0.0, 1.0, 1.0),  # a shift at the front costs all
        ("abc", "bc", 0.0, 0.0, 2 / 3),  # without the first, the others do not count in order
        ("ab", "ba", 0.0, 0.5, 1.0),
        ("", "a", 0.0, 1.0, 1.0),
        ("", "", 1.0, 1.0, 1.0),
    ],
)
def test_observed_semantics_have_the_quirks_of_the_package(
    expected: str, actual: str, exact: float, in_order: float, any_order: float
) -> None:
    values = [trajectory(expected, actual, match_type=each, semantics="observed") for each in TYPES]

    assert values == [exact, in_order, any_order]


@pytest.mark.parametrize(
    ("expected", "actual", "equal"),
    [
        ({"x": 1, "y": [2]}, {"y": [2], "x": 1}, True),  # the order of keys is no difference
        ({"x": 1}, {"x": 1.0}, True),
        ({"x": 1}, {"x": True}, True),
        ({"x": 1}, {"x": "1"}, False),
        ({"x": 1}, {"x": 1, "y": None}, False),  # an optional key more is one
        ({}, {"x": 1}, False),
        ({}, None, True),
    ],
)
def test_arguments_count_only_where_they_are_checked(
    expected: object, actual: object, *, equal: bool
) -> None:
    for match_type in TYPES:
        calls = [("t", expected)], [("t", actual)]
        assert trajectory(*calls, match_type=match_type) == 1.0
        assert trajectory(*calls, match_type=match_type, check_args=True) == equal


def test_expected_calls_without_arguments_match_any_in_the_package_only() -> None:
    calls = [("t", {})], [("t", {"x": 1})]

    assert trajectory(*calls, check_args=True) == 0.0
    assert trajectory(*calls, check_args=True, semantics="observed") == 1.0


def test_in_any_order_as_many_calls_as_possible_find_another() -> None:
    one, two = ("t", {"x": [1]}), ("t", {"x": [2]})
    options = {"match_type": "ANY_ORDER", "check_args": True}

    assert trajectory([one, two, one], [one, one, two], **options) == 1.0
    assert trajectory([one, two, one], [one, two, two], **options) == 0.0
    assert trajectory([one, two, one], [one, two, two], partial=True, **options) == 2 / 3


def test_the_package_gives_a_wildcard_the_first_call_that_is_left() -> None:
    wildcard, other = ("t", {}), ("t", {"x": 1})
    options = {"match_type": "ANY_ORDER", "check_args": True, "semantics": "observed"}

    assert trajectory([wildcard, other], [other, wildcard], **options) == 0.5
    assert trajectory([other, wildcard], [other, wildcard], **options) == 1.0


@pytest.mark.slow
def test_tens_of_thousands_of_calls_are_compared_in_no_time() -> None:
    many = [("t", {"n": n}) for n in range(30_000)]
    options = {"check_args": True, "match_type": "ANY_ORDER"}

    assert trajectory(many, many[::-1], **options) == 1.0
    assert trajectory(many, many[::-1], semantics="observed", **options) == 1.0


# --- A case of several invocations ----------------------------------------------------------


@pytest.mark.parametrize("model", [ToolNameMatch, ToolTrajectory])
def test_the_calls_of_a_case_are_one_sequence_whatever_the_turns(model: type[OfToolCalls]) -> None:
    score = scored(model, ["ab", ""], ["a", "b"])

    assert score.value == 1.0
    assert score.status is Status.PASSED
    assert all(part.value is not None and part.value < 1.0 for part in score.invocations)


def test_each_invocation_is_shown_and_the_case_is_not_their_mean() -> None:
    score = scored(ToolTrajectory, ["a", "b", ""], ["a", "c", ""])

    assert [part.value for part in score.invocations] == [1.0, 0.0, 1.0]
    assert [part.status for part in score.invocations] == ["passed", "failed", "passed"]
    assert (score.value, score.status) == (0.0, Status.FAILED)


def test_what_was_compared_is_kept_where_it_did_not_pass() -> None:
    score = scored(ToolTrajectory, [[("t", {"x": 1})]], [[("u", {}), ("v", {})]])

    assert score.evidence == {
        "expected_tool_calls": [{"name": "t", "args": {"x": 1}}],
        "actual_tool_calls": [{"name": "u", "args": {}}, {"name": "v", "args": {}}],
    }
    assert scored(ToolTrajectory, ["a"], ["a"]).evidence is None


@pytest.mark.parametrize("semantics", ["documented", "observed"])
@pytest.mark.parametrize("model", [ToolNameMatch, ToolTrajectory])
def test_calls_that_nobody_recorded_are_not_taken_for_none(
    model: type[OfToolCalls], semantics: str
) -> None:
    score = scored(model, ["", ""], [None, None], semantics=semantics)

    assert (score.status, score.value) == (Status.ERROR, None)
    assert score.reason == (
        "the agent did not report its tool calls (an empty list means that it made none)"
    )
    assert scored(model, ["a", ""], ["a", None], semantics=semantics).value == 1.0


@pytest.mark.parametrize("model", [ToolNameMatch, ToolTrajectory])
@pytest.mark.parametrize("semantics", ["documented", "observed"])
def test_a_turn_that_does_not_state_its_calls_is_left_out(
    model: type[OfToolCalls], semantics: str
) -> None:
    unstated = EvalCase.model_validate({"eval_id": "c", "conversation": [invocation(None)]})
    criterion = model.model_validate({"semantics": semantics})
    assert criterion.skip_reason(unstated).startswith("does not state the expected tool calls")

    score = scored(model, ["a", None], ["a", "bc"], semantics=semantics)
    assert (score.value, [part.value for part in score.invocations]) == (1.0, [1.0, None])
    assert scored(model, [""], [""]).value == 1.0
    assert scored(model, [""], ["a"]).value == 0.0


@pytest.mark.parametrize("model", [ToolNameMatch, ToolTrajectory])
def test_the_package_also_compares_calls_of_turns_that_state_none(model: type[OfToolCalls]) -> None:
    expected: list[Calls] = ["a", None, "b"]

    score = scored(model, expected, ["", "a", "b"], semantics="observed")
    assert (score.value, [part.value for part in score.invocations]) == (1.0, [0.0, None, 1.0])
    assert scored(model, expected, ["", "a", "b"]).value != 1.0
    assert scored(ToolTrajectory, expected, ["a", "c", "b"], semantics="observed").value == 0.5


# --- Options --------------------------------------------------------------------------------


def test_the_defaults_are_those_of_the_documentation() -> None:
    criterion = ToolTrajectory()

    assert (criterion.threshold, criterion.enabled) == (0.8, True)
    assert (criterion.match_type, criterion.check_args) == ("EXACT", False)
    assert ToolNameMatch().threshold == 0.8


@pytest.mark.parametrize(
    "options", [{"match_type": "SOMEHOW"}, {"threshold": 1.5}, {"threshold": None}, {"args": True}]
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ToolTrajectory.model_validate(options)
