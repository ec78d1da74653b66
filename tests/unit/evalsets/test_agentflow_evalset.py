"""AgentFlow's evalsets: what the package writes is read, and every mistake has its line."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.reader_problems import in_lines, told

from ci_eval.config.open_evalset import open_evalset, reader_of
from ci_eval.criteria.agentflow_texts import RougeMatch
from ci_eval.evalsets import _evalset_reading
from ci_eval.evalsets.agentflow_evalset import AgentFlow
from ci_eval.formats.sniff import read_head
from ci_eval.records.cases import EvalCase, IntermediateData, ToolCall
from ci_eval.records.errors import EvalSetError
from ci_eval.records.evalset_facts import OpenedEvalSet
from ci_eval.records.stated_expectations import states
from ci_eval.text.fingerprint import of_case

DUMP = Path(__file__).parents[2] / "vectors" / "agentflow-0.10.1.evalset.json"
EMPTY = {"eval_set_id": "s", "name": "", "description": "", "eval_cases": [], "metadata": {}}
HELLO = {"role": "user", "content": "Hello"}


def opened(folder: Path, value: object) -> OpenedEvalSet:
    path = folder / "a.evalset.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return AgentFlow().read(path, shown="a.evalset.json")


def evalset(*cases: object) -> dict[str, Any]:
    return {"eval_set_id": "s", "eval_cases": list(cases)}


def turn(**more: object) -> dict[str, Any]:
    """Return a case of one turn."""
    return {"eval_id": "a", "conversation": [{"user_content": HELLO, **more}]}


def only(folder: Path, case: object) -> EvalCase:
    (found,) = opened(folder, evalset(case)).cases()
    return found


def said(folder: Path, value: object) -> list[str]:
    """Return the problems, without the name of the file."""
    return told(lambda: opened(folder, value), "a.evalset.json")


# --- What the package writes ----------------------------------------------------------------


def test_what_the_package_writes_is_read_with_the_same_cases() -> None:
    found = open_evalset(DUMP, shown="shop.evalset.json")
    weather, chat, blocks = found.cases()

    assert found.warnings == ()
    assert (found.header.eval_set_id, found.header.format) == ("shop", "agentflow")
    assert [case.eval_id for case in (weather, chat, blocks)] == ["weather", "chat", "blocks"]

    (invocation,) = weather.conversation or ()
    assert (invocation.user, invocation.response) == (
        "What is the weather in Oslo?",
        "It is sunny.",
    )
    assert invocation.tool_calls == (
        ToolCall("get_weather", {"city": "Oslo"}, {"sky": "clear"}),
        ToolCall("notify", {}, {"result": "sent"}),
    )
    assert invocation.nodes == ("MAIN", "TOOL", "MAIN")

    first, second = chat.conversation or ()
    assert (first.response, first.tool_calls) == ("Hi there!", (ToolCall("greet", {}, None),))
    assert (second.final_response, second.nodes, second.tool_calls) == (None, None, ())

    assert blocks.tags == ("billing", "slow")
    assert blocks.model_extra == {
        "name": "In blocks",
        "description": "Texts in two blocks",
        "metadata": {"reference_facts": ["A refund takes 7 days."]},
    }
    assert blocks.session_input is not None
    assert blocks.session_input.model_dump() == {
        "app_name": "shop",
        "user_id": "u1",
        "state": {"cart": [1]},
        "session_id": None,
        "config": {"temperature": 0},
    }
    (invocation,) = blocks.conversation or ()
    assert invocation.user == "I want a refund"
    assert invocation.intermediate_data.model_dump(exclude_none=True) == {
        "tool_uses": (),
        "tool_responses": (),
        "intermediate_responses": (("assistant", ({"text": "One moment."},)),),
    }


def test_calls_with_the_same_id_keep_their_own_results(tmp_path: Path) -> None:
    calls = [
        {"name": "find", "call_id": "c", "result": {"a": 1}},
        {"name": "find", "call_id": "c"},
        {"name": "find", "call_id": "c", "result": {"b": 2}},
    ]
    (found,) = only(tmp_path, turn(expected_tool_trajectory=calls)).conversation or ()
    assert [call.result for call in found.tool_calls] == [{"a": 1}, None, {"b": 2}]


def test_a_case_by_hand_is_the_same_as_when_the_package_has_written_it(tmp_path: Path) -> None:
    (_, chat, _) = open_evalset(DUMP, shown="shop.evalset.json").cases()
    by_hand = {
        "eval_id": "chat",
        "conversation": [
            {
                "user_content": HELLO,
                "expected_tool_trajectory": [{"name": "greet"}],
                "expected_final_response": {"role": "assistant", "content": "Hi there!"},
            },
            # The package writes the list whether or not anything was said.
            {
                "user_content": {"role": "user", "content": "And now?"},
                "expected_tool_trajectory": [],
            },
        ],
    }
    assert of_case(only(tmp_path, by_hand)) == of_case(chat)


def test_a_turn_without_a_trajectory_leaves_open_which_tools_are_called(tmp_path: Path) -> None:
    said_ = {"expected_intermediate_responses": [{"role": "assistant", "content": "Wait."}]}
    turns = [{}, {"expected_tool_trajectory": []}, said_, {"expected_tool_trajectory": [], **said_}]
    case = only(
        tmp_path,
        {"eval_id": "a", "conversation": [{"user_content": HELLO, **each} for each in turns]},
    )
    conversation = case.conversation or ()

    assert [states(each, "tool_calls") for each in conversation] == [False, True, False, True]
    # What it says on the way is kept in any case.
    third = conversation[2].intermediate_data
    assert isinstance(third, IntermediateData)
    assert third.intermediate_responses
    assert not case.of_adk


# --- Which reader -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "reader"),
    [
        (EMPTY, "agentflow"),
        (evalset(turn()), "agentflow"),
        (evalset({"conversation": [{"expected_node_order": ["A"]}]}), "agentflow"),
        ({**EMPTY, "eval_cases": [{"eval_id": "a", "conversation": []}]}, "agentflow"),
        (evalset(), "adk"),
        (evalset({"eval_id": "a", "conversation": []}), "adk"),
        (evalset({"conversation": [{"user_content": {"parts": [{"text": "x"}]}}]}), "adk"),
        (evalset({"conversation": [{"userContent": {"parts": []}}]}), "adk"),
        (evalset({"conversation": [{"user_content": "Hello"}]}), "adk"),
        (evalset({"conversation": [{"query": "x", "expected_tool_use": []}]}), "adk"),
        ({**EMPTY, "eval_cases": [{"eval_id": "a", "conversation_scenario": {}}]}, "adk"),
        (
            evalset({"conversation": [{"user_content": {"parts": []}, "expected_node_order": []}]}),
            "adk",
        ),
        (evalset(5), "adk"),
        ({"eval_set_id": "s", "metadata": {}}, "adk"),
        ([{"query": "Hello"}], "adk_flat"),
    ],
)
def test_files_of_agentflow_and_of_adk_are_told_apart(
    tmp_path: Path, value: object, reader: str
) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(value))
    found = reader_of(read_head(path, shown="a.json"))

    assert found is not None
    assert found.type_name == reader


def test_an_empty_set_is_one(tmp_path: Path) -> None:
    found = opened(tmp_path, EMPTY)

    assert (list(found.cases()), found.facts.cases, found.warnings) == ([], 0, ())


def test_a_large_file_is_read_again_case_by_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_evalset_reading, "KEPT_BYTES", 10)
    found = opened(tmp_path, evalset(turn(), {**turn(), "eval_id": "b"}))

    assert [case.eval_id for case in found.cases()] == ["a", "b"]
    assert [case.eval_id for case in found.cases()] == ["a", "b"]


# --- What is lenient -----------------------------------------------------------------------


@pytest.mark.parametrize("response", [None, {"role": "assistant", "content": ""}])
def test_an_empty_expected_response_is_none(tmp_path: Path, response: object) -> None:
    (invocation,) = only(tmp_path, turn(expected_final_response=response)).conversation or ()

    assert invocation.final_response is None


def test_an_empty_expected_response_after_another_is_the_last_one(tmp_path: Path) -> None:
    turns = [
        {
            "user_content": HELLO,
            "expected_final_response": None if text is None else {**HELLO, "content": text},
        }
        for text in ("", "Bye", None, "")
    ]
    case = only(tmp_path, {"eval_id": "a", "conversation": turns})
    found = [each.final_response and each.response for each in case.conversation or ()]

    assert found == [None, "Bye", None, ""]
    # The package compares with the last one, and without words passes or fails unseen.
    assert RougeMatch(semantics="observed").skip_reason(case) == "expects no response"
    assert RougeMatch().skip_reason(case) == ""


@pytest.mark.parametrize(
    ("orders", "nodes"),
    [
        ([["A", "B"], []], [("A", "B"), ()]),
        ([None, ["A"]], [(), ("A",)]),
        ([[], []], [None, None]),
        ([None, []], [None, None]),
    ],
)
def test_an_empty_node_list_counts_if_another_turn_expects_nodes(
    tmp_path: Path, orders: list[list[str] | None], nodes: list[tuple[str, ...] | None]
) -> None:
    turns = [
        {"user_content": HELLO} | ({} if each is None else {"expected_node_order": each})
        for each in orders
    ]
    case = only(tmp_path, {"eval_id": "a", "conversation": turns})
    assert [each.nodes for each in case.conversation or ()] == nodes


def test_a_case_without_a_session_has_the_one_of_the_package(tmp_path: Path) -> None:
    session = only(tmp_path, turn()).session_input

    assert session is not None
    assert (session.app_name, session.user_id, session.state) == ("", "test_user", {})


def test_a_set_without_an_id_is_called_like_its_file(tmp_path: Path) -> None:
    assert opened(tmp_path, {"eval_cases": []}).header.eval_set_id == "a.evalset.json"


def test_a_case_without_an_id_keeps_its_name_while_the_user_says_the_same(tmp_path: Path) -> None:
    def name(**more: object) -> str:
        case = {"conversation": [{"user_content": HELLO, **more}]}
        return only(tmp_path, case).eval_id

    other = {"role": "user", "content": "Bye"}
    assert name() == name(expected_node_order=["A"]) == name(invocation_id="x")
    assert name() != name(user_content=other)


def test_a_case_without_an_id_is_warned_of(tmp_path: Path) -> None:
    text = in_lines("", json.dumps({"conversation": [{"user_content": HELLO}]}))
    (name,) = (case.eval_id for case in opened(tmp_path, text).cases())
    (found,) = said(tmp_path, text)

    assert found == (
        f"warning: 3: eval_cases[0]: has no 'eval_id'; its generated name {name!r} changes "
        "with the user's messages; give it an id"
    )


def test_two_cases_without_an_id_that_ask_the_same_are_one_too_many(tmp_path: Path) -> None:
    case = json.dumps({"conversation": [{"user_content": HELLO}]})
    *_, error = said(tmp_path, in_lines(f"{case},", case))

    assert error.startswith("3: duplicate id 'unnamed-")
    assert error.endswith("; the first is on line 2")


def test_blocks_without_a_text_are_left_out_with_a_warning(tmp_path: Path) -> None:
    blocks = [{"type": "text", "text": "See"}, {"type": "image"}, {"text": "this"}, {"text": None}]
    case = turn(user_content={"role": "user", "content": blocks})
    (invocation,) = only(tmp_path, case).conversation or ()
    where = "eval_cases[0].conversation[0].user_content.content"

    assert invocation.user == "See this"
    assert said(tmp_path, evalset(case)) == [
        f"warning: 1: {where}[{number}]: has no text, so it is left out, as in AgentFlow"
        for number in (1, 3)
    ]


def test_unknown_keys_are_warned_of_wherever_they_are(tmp_path: Path) -> None:
    text = in_lines(
        '{"eval_id": "a", "tag": ["x"], "conversation": [',
        '  {"user_content": {"role": "user", "content": "Hello", "contents": 1},',
        '   "expected_tools": [],',
        '   "expected_tool_trajectory": [{"name": "t"},',
        '     {"name": "t", "arguments": {}}]}],',
        ' "session_input": {"user": "u"}, "metadata": {"anything": 1}}',
    )
    turn = "eval_cases[0].conversation[0]"
    places = [
        ("2: eval_cases[0].tag", "tags"),
        (f"3: {turn}.user_content.contents", "content"),
        (f"4: {turn}.expected_tools", "expected_tool_trajectory"),
        (f"6: {turn}.expected_tool_trajectory[1].arguments", "args"),
        ("7: eval_cases[0].session_input.user", "user_id"),
    ]
    assert said(tmp_path, text) == [
        f"warning: {place}: unknown key, ignored. Did you mean {meant!r}?"
        for place, meant in places
    ]


def test_an_unknown_key_of_the_set_is_warned_of(tmp_path: Path) -> None:
    known = "description, eval_cases, eval_set_id, metadata, name"

    assert said(tmp_path, {**EMPTY, "tags": []}) == [
        f"warning: 1: tags: unknown key, ignored; known: {known}"
    ]


def test_a_case_without_turns_is_warned_of(tmp_path: Path) -> None:
    message = "has no invocation, so there is nothing to measure"

    assert said(tmp_path, evalset({"eval_id": "a"})) == [
        f"warning: 1: eval_cases[0].conversation: {message}"
    ]


# --- What is wrong --------------------------------------------------------------------------


def test_every_wrong_value_is_told_with_its_line(tmp_path: Path) -> None:
    text = in_lines(
        '{"eval_id": 7, "conversation": [',
        '  {"user_content": {"content": "Hello"},',
        '   "expected_node_order": "MAIN",',
        '   "expected_tool_trajectory": [{"args": {}}, {"name": "t", "args": []}]}]},',
        '"text",',
        '{"eval_id": "b", "conversation": [{}], "tags": "x"}',
    )
    where = "eval_cases[0].conversation[0]"
    assert sorted(said(tmp_path, text)) == [
        "2: eval_cases[0].eval_id: expected text, found 7",
        f"3: {where}.user_content: 'role' is missing",
        f"4: {where}.expected_node_order: expected a list, found 'MAIN'",
        f"5: {where}.expected_tool_trajectory[0]: 'name' is missing",
        f"5: {where}.expected_tool_trajectory[1].args: expected an object, found a list",
        "6: eval_cases[1]: expected an object, found 'text'",
        "7: eval_cases[2].conversation[0]: 'user_content' is missing",
        "7: eval_cases[2].tags: expected a list, found 'x'",
    ]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({**EMPTY, "eval_cases": {}}, "1: eval_cases: expected a list of cases, found an object"),
        ({**EMPTY, "eval_set_id": 1}, "1: eval_set_id: expected text, found 1"),
        ({**EMPTY, "metadata": []}, "1: metadata: expected an object, found a list"),
        ({"metadata": {}}, "1: 'eval_cases' is missing"),
        ('{"eval_cases": [],\n"eval_cases": []}', "2: duplicate key 'eval_cases'"),
        ('{"eval_cases": [\n{"eval_id": }]}', "2: "),
        ('{"eval_cases": [\n{"eval_id": "a",\n"eval_id": "b"}]}', "3: duplicate key 'eval_id'"),
    ],
)
def test_a_set_that_is_none_is_refused(tmp_path: Path, value: object, message: str) -> None:
    (found,) = said(tmp_path, value)

    assert found.startswith(message)


def test_content_of_another_kind_is_refused_with_its_line(tmp_path: Path) -> None:
    found = said(tmp_path, evalset(turn(user_content={"role": "user", "content": 5})))

    assert found
    assert all(
        each.startswith("1: eval_cases[0].conversation[0].user_content.content") for each in found
    )


# --- Whatever is in it ----------------------------------------------------------------------

WRITTEN = json.loads(DUMP.read_text(encoding="utf-8"))


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value inside `value`."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in inner:
        yield (*way, key)
        if isinstance(each, dict | list):
            yield from places(each, (*way, key))


anything = st.sampled_from(
    [None, True, 0, -1.5, "", "text", [], {}, [None], [[]], [{}], {"text": 1}, {"content": "x"}]
)


@settings(
    max_examples=3 * settings.default.max_examples,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.sampled_from(list(places(WRITTEN))), anything)
def test_a_file_with_anything_anywhere_is_read_or_refused_with_its_place(
    tmp_path: Path, place: tuple[Any, ...], other: Any
) -> None:
    value = copy.deepcopy(WRITTEN)
    *way, last = place
    inner = value
    for key in way:
        inner = inner[key]
    inner[last] = other
    try:
        found = opened(tmp_path, value)
        problems, cases = found.warnings, list(found.cases())
    except EvalSetError as exc:
        problems, cases = exc.problems, []

    assert all(problem.message and problem.line for problem in problems)
    assert any(problem.severity == "error" for problem in problems) or (
        len(cases) == len(value["eval_cases"])
    )
    assert all(EvalCase.model_validate(case.model_dump(mode="json")) for case in cases)
