"""AgentFlow's simulated user: its goals, its limit, and what it says first."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from support.simulated_conversations import played, saying, scenario

from ci_eval.records.errors import JudgeError
from ci_eval.records.questions import Question, UnreadableError
from ci_eval.simulators.agentflow_simulator import AgentFlow, reached_in

USER = AgentFlow()


def reaching(*answers: Any, message: str = "on") -> Callable[[Question], Any]:
    """Say which goals are reached, time after time, and the same message in between."""
    left = iter(answers)

    def say(question: Question) -> Any:
        if not question.schema:
            return message
        return json.dumps({"reasoning": "so", "reached": next(left)})

    return say


def goals_left(question: Question) -> list[str]:
    text = question.text.partition("[goals ")[2].partition("]\n")[2].partition("\n[/goals")[0]
    found: list[str] = json.loads(text)
    return found


def test_the_user_leaves_when_all_goals_are_reached():
    case = scenario("Hi", goals=["weather", "packing"])
    found = played(USER, case, reaching([], [1], [1, 2]))

    assert found.messages == ["Hi", "on", "on"]
    assert found.error is None
    asked = [question for question in found.asked if not question.schema]
    assert [goals_left(question) for question in asked] == [["weather", "packing"], ["packing"]]
    assert [bool(question.schema) for question in found.asked] == [True, False, True, False, True]


def test_the_whole_conversation_decides_what_is_reached():
    first, second = played(USER, scenario(goals=["a"]), reaching([], [1])).asked[::2]

    assert "user: Hi\n\nagent: You said: Hi\n" in first.text
    assert "agent: You said: on\n" in second.text
    assert '"goal": "a"' in first.text


def test_without_goals_the_plan_is_the_only_one():
    found = played(USER, scenario("Hi", "Buy a hat."), reaching([], [1]))

    assert found.messages == ["Hi", "on"]
    assert goals_left(found.asked[1]) == ["Buy a hat."]


def test_with_nothing_to_reach_the_first_message_is_the_only_one():
    found = played(USER, scenario("Hi", " "), saying())
    assert (found.messages, found.asked) == (["Hi"], [])


def test_a_first_message_that_nobody_wrote_is_asked_for():
    found = played(USER, scenario("", "Buy.", goals=["hat"]), reaching([1], message="Hello!"))

    assert found.messages == ["Hello!"]
    assert goals_left(found.asked[0]) == ["hat"]
    assert "[conversation " in found.asked[0].text


@pytest.mark.parametrize(
    ("user", "said", "messages"),
    [
        (AgentFlow(), {}, 10),
        (AgentFlow(max_invocations=3), {}, 3),
        (AgentFlow(max_invocations=3), {"max_turns": 5}, 5),
        (AgentFlow(max_invocations=3), {"max_turns": 1}, 1),
        (AgentFlow(max_invocations=3), {"max_turns": 0}, 3),
        (AgentFlow(max_invocations=3), {"max_turns": "5"}, 3),
        (AgentFlow(max_invocations=3), {"max_turns": True}, 3),
    ],
)
def test_the_limit_of_the_case_comes_before_that_of_the_simulator(
    user: AgentFlow, said: dict[str, Any], messages: int
):
    found = played(user, scenario(goals=["a"], **said), reaching(*[[]] * 20))

    assert len(found.messages) == messages
    assert len(found.asked) == 2 * (messages - 1)
    assert found.error is None


@pytest.mark.parametrize("fails", [True, False])
def test_nothing_is_said_in_place_of_an_answer_that_there_is_not(fails: bool):
    def say(question: Question) -> Any:
        if bool(question.schema) is fails:
            raise JudgeError("down for today")
        return '{"reasoning": "", "reached": []}'

    found = played(USER, scenario(goals=["a"]), say)
    what = "verdict on its goals" if fails else "next message"
    assert found.messages == ["Hi"]
    assert found.error
    assert found.error.kind == "simulator"
    assert str(found.error) == f"the simulated user gave no {what}: down for today"


@pytest.mark.parametrize(
    ("user", "settings"),
    [
        (AgentFlow(), {"temperature": 0.7}),
        (AgentFlow(temperature=0), {"temperature": 0}),
        (AgentFlow(temperature=None), {}),
        (AgentFlow(settings={"top_p": 0.5}), {"temperature": 0.7, "top_p": 0.5}),
        (AgentFlow(settings={"temperature": 1}), {"temperature": 1}),
    ],
)
def test_the_temperature_is_a_setting_of_the_call(user: AgentFlow, settings: dict[str, Any]):
    [question] = played(user, scenario(goals=["a"]), reaching([1])).asked
    assert question.settings == settings
    assert "temperature" not in user.options()


# --- Goals in an answer -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ('{"reached": []}', set()),
        ('{"reasoning": "r", "reached": [2, 1, 2]}', {1, 2}),
        ('```json\n{"reached": [3]}\n```', {3}),
    ],
)
def test_an_answer_names_the_goals_by_number(answer: str, numbers: set[int]):
    assert reached_in(answer, 3) == numbers


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("", "no JSON object with a list under 'reached'"),
        ("[1]", "no JSON object with a list under 'reached'"),
        ('{"reached": 1}', "no JSON object with a list under 'reached'"),
        ('{"reached": [0]}', "it holds no number of a goal under 'reached', but 0"),
        ('{"reached": [4]}', "it holds no number of a goal under 'reached', but 4"),
        ('{"reached": [true]}', "it holds no number of a goal under 'reached', but True"),
        ('{"reached": ["1"]}', "it holds no number of a goal under 'reached', but '1'"),
        ('{"reached": [1.0]}', "it holds no number of a goal under 'reached', but 1.0"),
        ('{"reached": [' + "[" * 5000 + "]" * 5000 + "]}", "it holds no JSON object"),
    ],
)
def test_any_other_answer_is_none(answer: str, said: str):
    with pytest.raises(UnreadableError, match="reached") as refused:
        reached_in(answer, 3)
    assert said in str(refused.value)
