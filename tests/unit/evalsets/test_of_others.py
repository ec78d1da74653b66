"""Evalsets of other tools: message lists, agents-cli, trpc-agent-go."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.reader_problems import talk, told

from ci_eval.config.open_evalset import open_evalset
from ci_eval.evalsets.agents_cli_evalset import AgentsCliDataset
from ci_eval.evalsets.openai_evalset import OpenAI
from ci_eval.evalsets.trpc_evalset import TrpcAgentGo
from ci_eval.plugins.points import EvalSetReader
from ci_eval.records.cases import EvalCase
from ci_eval.records.errors import EvalSetError
from ci_eval.records.evalset_facts import OpenedEvalSet
from ci_eval.records.stated_expectations import states


def opened(folder: Path, value: object, name: str = "a.json") -> OpenedEvalSet:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return open_evalset(path, shown=name)


def cases(folder: Path, value: object, name: str = "a.json") -> list[EvalCase]:
    return list(opened(folder, value, name).cases())


def said(folder: Path, value: object, name: str = "a.json") -> list[str]:
    """Return the problems, without the name of the file."""
    return told(lambda: opened(folder, value, name), name)


# --- OpenAI -----------------------------------------------------------------------------------

HELLO = {
    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}],
    "model": "gpt-4",
}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (json.dumps(HELLO), "a.json"),
        (json.dumps([HELLO]), "a.json"),
        (json.dumps(HELLO["messages"]), "a.json"),
        (json.dumps([HELLO["messages"]]), "a.json"),
        (json.dumps(HELLO) + "\n", "a.jsonl"),
        (json.dumps(HELLO["messages"]), "a.jsonl"),
    ],
)
def test_conversations_are_what_is_expected(tmp_path: Path, text: str, name: str) -> None:
    found = opened(tmp_path, text, name)
    (case,) = found.cases()
    assert (found.header.format, found.header.eval_set_id) == ("openai", "a")
    assert talk(case) == [("Hi", "Hello")]
    assert case.eval_id.startswith("hi-")
    assert case.line == 1
    assert not case.of_adk


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLING = [
    {"role": "assistant", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "1"},
    {"role": "assistant", "content": "Bye."},
]


@pytest.mark.parametrize(
    ("messages", "stated"),
    [
        # Nothing is said of tools,
        (HELLO["messages"], [False]),
        ([*HELLO["messages"], HELLO["messages"][0]], [False, False]),
        # or that none is called,
        ([HELLO["messages"][0], {**HELLO["messages"][1], "tool_calls": []}], [True]),
        # here in the first turn alone.
        ([*HELLO["messages"], HELLO["messages"][0], *CALLING], [True, True]),
        ([*HELLO["messages"], HELLO["messages"][0], *CALLING, HELLO["messages"][0]], [1, 1, 0]),
    ],
)
def test_a_conversation_without_calls_leaves_open_which_tools_are_called(
    tmp_path: Path, messages: list[Any], stated: list[bool]
) -> None:
    (case,) = cases(tmp_path, json.dumps(messages), "a.json")

    assert [states(each, "tool_calls") for each in case.conversation or ()] == stated


def test_a_conversation_may_have_an_id_and_tags(tmp_path: Path) -> None:
    rows = [
        {**HELLO, "id": "a", "tags": ["x"]},
        {**HELLO, "id": "no", "eval_id": "b"},
        {**HELLO, "metadata": {"eval_id": "c"}},
    ]
    found = cases(tmp_path, "\n".join(map(json.dumps, rows)), "a.jsonl")
    assert [(case.eval_id, case.tags, case.line) for case in found] == [
        ("a", ("x",), 1),
        ("b", (), 2),
        ("c", (), 3),
    ]


def test_two_conversations_with_the_same_question_need_ids(tmp_path: Path) -> None:
    assert said(tmp_path, [HELLO, HELLO]) == [
        "1: [1]: same prompts as the case on line 1; give each of them an 'id'"
    ]


def test_every_message_that_is_wrong_is_named(tmp_path: Path) -> None:
    text = '[{"messages": [{"role": "user", "content": "x"}]},\n{"messages": [\n{"content": "x"}]}]'
    assert said(tmp_path, text) == ["3: [1].messages[0]: 'role' is missing"]
    text = '{"messages": [\n{"role": "user", "content": [{"type": "odd"}]}]}'
    assert said(tmp_path, text) == [
        "2: messages[0].content[0]: a part of the type 'odd' cannot be read"
    ]


# --- agents-cli -------------------------------------------------------------------------------


def content(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"text": text}]}


def test_a_dataset_of_agents_cli_is_an_evalset(tmp_path: Path) -> None:
    found = opened(
        tmp_path,
        {
            "eval_cases": [
                {"eval_case_id": "a", "prompt": content("user", "Scan it")},
                {"prompt": content("user", "Stop")},
            ]
        },
    )
    first, second = found.cases()
    assert (found.header.format, found.warnings) == ("agents_cli", ())
    assert (first.eval_id, talk(first)) == ("a", [("Scan it", "")])
    assert second.eval_id.startswith("stop-")
    (turn,) = first.conversation or ()
    assert (turn.final_response, turn.intermediate_data) == (None, None)


def test_the_past_of_a_case_is_held_again_with_a_warning(tmp_path: Path) -> None:
    events = [
        {"author": "user", "content": content("user", "Scan it")},
        {"author": "planner", "content": content("model", "Sure?")},
        {"author": "user", "content": content("user", "Yes")},
    ]
    value = {"eval_cases": [{"eval_case_id": "a", "agent_data": {"turns": [{"events": events}]}}]}
    (case,) = cases(tmp_path, value)
    assert talk(case) == [("Scan it", "Sure?"), ("Yes", "")]
    assert said(tmp_path, value) == [
        (
            "warning: 1: eval_cases[0].agent_data: the agent's messages are "
            "used as expectations; agents-cli sends them as history"
        )
    ]


def test_what_is_not_read_of_a_dataset_is_warned_of(tmp_path: Path) -> None:
    case = {"eval_case_id": "a", "prompt": content("user", "x"), "rubric_groups": {}}
    assert said(tmp_path, {"eval_cases": [case]}) == [
        "warning: 1: eval_cases[0].rubric_groups: is ignored"
    ]


@pytest.mark.parametrize("reference", [{"response": content("model", "Done")}, "Done"])
def test_the_reference_is_the_expected_answer_to_the_last_message(
    tmp_path: Path, reference: Any
) -> None:
    events = [
        {"author": "user", "content": content("user", "Scan it")},
        {"author": "user", "content": content("user", "Now")},
        {"author": "planner", "content": content("model", "Sure?")},
        {"author": "user", "content": content("user", "Yes")},
    ]
    asked = {"eval_case_id": "a", "prompt": content("user", "Scan it"), "reference": reference}
    held = {"agent_data": {"turns": [{"events": events}]}, "reference": reference}
    first, second = cases(tmp_path, {"eval_cases": [asked, held]})
    assert talk(first) == [("Scan it", "Done")]
    assert talk(second) == [("Scan it\nNow", "Sure?"), ("Yes", "Done")]
    (turn,) = first.conversation or ()
    assert turn.intermediate_data is None


def test_a_reference_may_state_nothing(tmp_path: Path) -> None:
    case = {"eval_case_id": "a", "prompt": content("user", "x"), "reference": {"response": {}}}
    (found,) = cases(tmp_path, {"eval_cases": [case]})
    assert talk(found) == [("x", "")]
    case["reference"] = 5
    assert said(tmp_path, {"eval_cases": [case]}) == [
        "1: eval_cases[0].reference: expected an object, found 5"
    ]


def test_a_trace_of_agents_cli_is_no_evalset(tmp_path: Path) -> None:
    answered = {"prompt": content("user", "x"), "responses": [{"response": {"parts": []}}]}
    (message,) = said(tmp_path, {"eval_cases": [answered]})
    assert message.endswith(
        "found a recording (agents_cli); an agent `{recorded: FILE}` replays it"
    )


def test_what_is_wrong_with_a_dataset_is_named(tmp_path: Path) -> None:
    value = {"eval_cases": [{"eval_case_id": "a"}, {"eval_case_id": 5, "prompt": {"parts": []}}]}
    assert said(tmp_path, value) == [
        ("1: eval_cases[0]: has neither a 'prompt' nor a user message in 'agent_data'"),
        "1: eval_cases[1].eval_case_id: expected text, found 5",
    ]


# --- trpc-agent-go ----------------------------------------------------------------------------

TURN = {"invocationId": "i1", "userContent": {"role": "user", "content": "5 + 3?"}}


def trpc(*given: dict[str, Any]) -> dict[str, Any]:
    return {"evalSetId": "math", "name": "Math", "evalCases": list(given)}


def test_an_evalset_of_trpc_agent_go_is_read(tmp_path: Path) -> None:
    turn = {
        **TURN,
        "finalResponse": {"role": "assistant", "content": "8"},
        "tools": [
            {"id": "t1", "name": "calc", "arguments": {"a": 5}, "result": {"sum": 8}},
            {"name": "log", "arguments": '{"x": 1}', "result": "done"},
            {"name": "end"},
        ],
        "intermediateResponses": [{"role": "assistant", "content": "Hm."}],
    }
    case = {
        "evalId": "add",
        "conversation": [turn],
        "sessionInput": {"appName": "math", "userId": "u", "state": {"k": 1}},
        "rubrics": [{"id": "r", "content": {"text": "It is 8."}, "metricName": "x"}],
        "creationTimestamp": 17.5,
    }
    found = opened(tmp_path, trpc(case))
    (read,) = found.cases()
    assert (found.header.format, found.header.eval_set_id) == ("trpc_agent_go", "math")
    assert (read.eval_id, talk(read), read.creation_timestamp) == ("add", [("5 + 3?", "8")], 17.5)
    (invocation,) = read.conversation or ()
    assert [tuple(call) for call in invocation.tool_calls] == [
        ("calc", {"a": 5}, {"sum": 8}),
        ("log", {"x": 1}, {"result": "done"}),
        ("end", {}, None),
    ]
    assert read.session_input
    assert (read.session_input.app_name, read.session_input.state) == ("math", {"k": 1})
    assert [rubric.rubric_content.text_property for rubric in read.rubrics or ()] == ["It is 8."]


def test_a_turn_of_trpc_agent_go_without_tools_leaves_open_which_are_called(tmp_path: Path) -> None:
    way = {"intermediateResponses": [{"content": "Wait."}]}
    turns = [{}, {"tools": []}, way, {"tools": [], **way}]
    asked = [{"userContent": {"content": "Hi"}, **each} for each in turns]
    (case,) = cases(tmp_path, trpc({"evalId": "a", "conversation": asked}))

    assert [states(each, "tool_calls") for each in case.conversation or ()] == [
        False,
        True,
        False,
        True,
    ]


def test_a_scenario_of_trpc_agent_go_is_read(tmp_path: Path) -> None:
    plot = {"driver": "actual", "startingPrompt": "Hi", "conversationPlan": "Ask more."}
    (read,) = cases(tmp_path, trpc({"evalId": "a", "conversationScenario": plot}))
    assert read.conversation_scenario
    assert read.conversation_scenario.starting_prompt == "Hi"
    assert read.conversation_scenario.conversation_plan == "Ask more."


def test_what_has_no_place_here_is_warned_of(tmp_path: Path) -> None:
    turn = {**TURN, "toolMock": {"actual": []}}
    case = {"evalId": "a", "contextMessages": [{"role": "system", "content": "x"}]}
    parts = {**TURN, "userContent": {"content": "x", "contentParts": [{"type": "image"}]}}
    assert said(tmp_path, trpc({**case, "conversation": [turn, parts]})) == [
        ("warning: 1: evalCases[0].contextMessages: messages before the conversation are left out"),
        (
            "warning: 1: evalCases[0].conversation[0].toolMock: tools are not mocked: the "
            "agent calls its real tools"
        ),
        (
            "warning: 1: evalCases[0].conversation[1].userContent.contentParts: only 'content' "
            "of a message is read"
        ),
    ]


def test_what_is_wrong_with_an_evalset_of_trpc_agent_go_is_named(tmp_path: Path) -> None:
    wrong = trpc(
        {"evalId": "a", "conversation": [TURN]},
        {"evalId": "a", "conversation": [TURN]},
        {"conversation": [{}]},
        {"evalId": "c", "userTurns": []},
    )
    assert said(tmp_path, wrong) == [
        "1: duplicate id 'a'; the first is on line 1",
        "1: evalCases[2]: 'evalId' is missing",
        "1: evalCases[2].conversation[0]: 'userContent' is missing",
        "1: evalCases[3]: needs either 'conversation' or 'conversationScenario'",
    ]


def test_the_cases_are_there_once_and_are_a_list(tmp_path: Path) -> None:
    case = json.dumps({"evalId": "a", "conversation": [TURN]})
    other = case.replace('"a"', '"b"')
    header = '"evalSetId": "a", "evalSetId": "b"'
    twice = f'{{"evalCases": [{case}],\n{header}, "evalCases": [{other}]}}'
    assert said(tmp_path, twice) == ["2: duplicate key 'evalSetId'", "2: duplicate key 'evalCases'"]
    path = tmp_path / "a.json"
    path.write_text('{"evalSetId": "x"}')
    with pytest.raises(EvalSetError, match=r"^a\.json:1: 'evalCases' is missing$"):
        TrpcAgentGo().read(path, shown="a.json")


@pytest.mark.parametrize(
    ("reader", "head", "fits"),
    [
        (TrpcAgentGo, trpc({"evalId": "a", "conversation": [TURN]}), True),
        (TrpcAgentGo, trpc({"evalId": "a", "userTurns": []}), True),
        (
            TrpcAgentGo,
            trpc({"evalId": "a", "conversation": [{"userContent": {"parts": []}}]}),
            False,
        ),
        (TrpcAgentGo, {"eval_cases": [{"conversation": [TURN]}]}, False),
        (TrpcAgentGo, trpc(), False),
        (AgentsCliDataset, {"eval_cases": [{"prompt": {}}]}, True),
        (AgentsCliDataset, {"eval_cases": [{"eval_id": "a", "prompt": {}}]}, False),
        (AgentsCliDataset, {"eval_cases": []}, False),
        (OpenAI, HELLO, True),
        (OpenAI, [HELLO], True),
        (OpenAI, {"messages": []}, False),
        (OpenAI, [{"messages": "x"}], False),
        (OpenAI, None, False),
    ],
)
def test_a_format_is_told_from_the_beginning(
    reader: type[EvalSetReader], head: Any, *, fits: bool
) -> None:
    assert reader.sniff(head) is fits
