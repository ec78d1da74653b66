"""ADK's older formats: a list of cases, and a list of turns that is one case."""

import json
from pathlib import Path

import pytest
from support.reader_problems import told

from ci_eval.config.open_evalset import reader_of
from ci_eval.evalsets.adk_evalset import AdkFlat, AdkLegacy
from ci_eval.plugins.points import EvalSetReader
from ci_eval.records.evalset_facts import OpenedEvalSet

ROLL = {
    "query": "Roll",
    "reference": "Rolled 4.",
    "expected_tool_use": [{"tool_name": "roll", "tool_input": {"sides": 6}}],
    "expected_intermediate_agent_responses": [{"author": "dice", "text": "Rolling…"}],
}
THANK = {"query": "Thanks"}


def opened(reader: EvalSetReader, folder: Path, value: object) -> OpenedEvalSet:
    path = folder / "a.test.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return reader.read(path, shown="a.test.json")


def said(reader: EvalSetReader, folder: Path, value: object, *, silence: bool = False) -> list[str]:
    """Return the problems, without the name of the file."""
    return told(lambda: opened(reader, folder, value), "a.test.json", silence=silence)


# --- Telling them apart ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "reader"),
    [
        ([{"name": "a", "data": []}], AdkLegacy),
        ([{"data": []}], AdkLegacy),
        ([], AdkLegacy),
        ([{"query": "x"}], AdkFlat),
        ([{"reference": "x", "expected_tool_use": []}], AdkFlat),
        ([{"other": 1}], None),
        ([5], None),
        ({"query": "x"}, None),
    ],
)
def test_the_format_is_told_from_the_first_element(
    head: object, reader: type[EvalSetReader] | None
) -> None:
    assert reader_of(head) is reader


# --- What is read ---------------------------------------------------------------------------


def test_a_list_of_cases_is_named_after_its_file(tmp_path: Path) -> None:
    text = f'[{{"name": "a", "data": [{json.dumps(ROLL)}]}},\n{{"name": "b", "data": []}}]'
    found = opened(AdkLegacy(), tmp_path, text)
    assert found.header.model_dump() == {
        "eval_set_id": "a.test.json",
        "path": "a.test.json",
        "format": "adk_legacy",
    }
    assert [(case.eval_id, case.line) for case in found.cases()] == [("a", 1), ("b", 2)]


def test_a_list_of_turns_is_one_case_named_after_its_file(tmp_path: Path) -> None:
    found = opened(AdkFlat(), tmp_path, "\n" + json.dumps([ROLL, THANK]))
    assert (found.header.eval_set_id, found.header.format) == ("a.test.json", "adk_flat")
    (case,) = found.cases()
    assert (case.eval_id, case.line) == ("a.test.json", 2)
    assert [turn.user for turn in case.conversation or ()] == ["Roll", "Thanks"]


def test_a_turn_becomes_an_invocation(tmp_path: Path) -> None:
    (case,) = opened(AdkLegacy(), tmp_path, [{"name": "a", "data": [ROLL, THANK]}]).cases()
    first, second = case.conversation or ()
    assert first.model_dump(exclude_defaults=True) == {
        "user_content": {"role": "user", "parts": ({"text": "Roll"},)},
        "final_response": {"role": "model", "parts": ({"text": "Rolled 4."},)},
        "intermediate_data": {
            "tool_uses": ({"name": "roll", "args": {"sides": 6}},),
            "intermediate_responses": (("dice", ({"text": "Rolling…"},)),),
        },
    }
    assert (second.response, second.tool_calls) == ("", ())


@pytest.mark.parametrize("reference", [{}, {"reference": None}, {"reference": ""}])
def test_a_reference_may_be_missing(tmp_path: Path, reference: dict[str, object]) -> None:
    found = opened(AdkFlat(), tmp_path, [{**THANK, **reference}])
    (case,) = found.cases()
    assert (case.conversation or ())[0].response == ""


@pytest.mark.parametrize(
    ("session", "read"),
    [
        ({"app_name": "x", "user_id": "u", "state": {"k": 1}}, ("x", "u", {"k": 1})),
        ({"state": {"k": 1}}, ("", "", {"k": 1})),
        ({"app_name": "x"}, ("x", "", {})),
        ({}, None),
        (None, None),
    ],
)
def test_the_initial_session_is_read_as_adk_reads_it(
    tmp_path: Path, session: object, read: object
) -> None:
    value = [{"name": "a", "data": [THANK], "initial_session": session}]
    (case,) = opened(AdkLegacy(), tmp_path, value).cases()
    found = case.session_input
    assert (found and (found.app_name, found.user_id, found.state)) == read


def test_a_list_of_turns_that_is_long_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ci_eval.evalsets._evalset_reading.KEPT_BYTES", 10)
    found = opened(AdkFlat(), tmp_path, [ROLL])
    assert list(found.cases()) == list(found.cases())


# --- What is read with a warning ------------------------------------------------------------


def test_unknown_keys_are_warned_of_in_the_order_of_the_file(tmp_path: Path) -> None:
    case_keys = "data, initial_session, name"
    turn_keys = (
        "expected_intermediate_agent_responses, expected_tool_use, mock_tool_output, "
        "query, reference"
    )
    text = """[{"name": "a", "zebra": 1,
"initial_sesion": {},
"data": [{"query": "x", "mock_tool_output": 1,
"wibble": 1}]}]"""
    assert said(AdkLegacy(), tmp_path, text) == [
        f"warning: 1: [0].zebra: unknown key, ignored; known: {case_keys}",
        ("warning: 2: [0].initial_sesion: unknown key, ignored. Did you mean 'initial_session'?"),
        f"warning: 4: [0].data[0].wibble: unknown key, ignored; known: {turn_keys}",
    ]
    assert said(AdkFlat(), tmp_path, '[{"query": "x",\n"referense": "y"}]') == [
        "warning: 2: [0].referense: unknown key, ignored. Did you mean 'reference'?"
    ]


def test_a_call_whose_arguments_are_null_is_warned_of(tmp_path: Path) -> None:
    call = '{"query": "x", "expected_tool_use": [{"tool_name": "t", "tool_input": null}]}'
    begin = "the expected call of 't' has no 'args', which matches no call with arguments, "
    (flat,) = said(AdkFlat(), tmp_path, f'[{{"query": "x"}},\n{call}]')
    assert flat.startswith(f"warning: 2: [1]: {begin}")
    (legacy,) = said(AdkLegacy(), tmp_path, f'[{{"name": "a", "data": [\n{call}]}}]')
    assert legacy.startswith(f"warning: 2: [0].data[0]: {begin}")


@pytest.mark.parametrize("reference", [{}, {"reference": None}, {"reference": ""}])
def test_what_is_not_stated_and_counts_all_the_same_is_warned_of(
    tmp_path: Path, reference: dict[str, object]
) -> None:
    bare = {**THANK, **reference}
    bare.pop("expected_tool_use", None)
    full = {"query": "x", "reference": "y", "expected_tool_use": []}
    for reader, value, where in (
        (AdkFlat(), [full, bare], "[1]"),
        (AdkLegacy(), [{"name": "a", "data": [full, bare]}], "[0].data[1]"),
    ):
        found = said(reader, tmp_path, value, silence=True)
        assert [each.partition(", ")[0] for each in found] == [
            f"warning: 1: {where}: does not state the expected tool calls",
            f"warning: 1: {where}: expects no response",
        ]
        (case,) = opened(reader, tmp_path, value).cases()
        assert case.of_adk


def test_a_case_without_a_turn_is_warned_of(tmp_path: Path) -> None:
    assert said(AdkLegacy(), tmp_path, '[{"name": "a",\n"data": []}]') == [
        "warning: 2: [0].data: has no invocation, so there is nothing to measure"
    ]


# --- What is refused ------------------------------------------------------------------------

WRONG_TURNS = [
    ("5", ": expected an object, found 5"),
    ("{}", ": 'query' is missing"),
    ('{"query": null}', ".query: expected text, found nothing"),
    ('{"query": "x", "reference": 5}', ".reference: expected text, found 5"),
    (
        '{"query": "x", "expected_tool_use": {}}',
        ".expected_tool_use: expected a list, found an object",
    ),
    (
        '{"query": "x", "expected_tool_use": [5]}',
        ".expected_tool_use[0]: expected an object, found 5",
    ),
    (
        '{"query": "x", "expected_tool_use": [{"tool_input": {}}]}',
        ".expected_tool_use[0]: 'tool_name' is missing",
    ),
    (
        '{"query": "x", "expected_tool_use": [{"tool_name": "t"}]}',
        ".expected_tool_use[0]: 'tool_input' is missing",
    ),
    (
        '{"query": "x", "expected_tool_use": [{"tool_name": "t", "tool_input": 5}]}',
        ".expected_tool_use[0].tool_input: expected an object, found 5",
    ),
    (
        '{"query": "x", "expected_intermediate_agent_responses": [{"text": "x"}]}',
        ".expected_intermediate_agent_responses[0]: 'author' is missing",
    ),
]


@pytest.mark.parametrize(("turn", "message"), WRONG_TURNS)
def test_a_turn_must_be_right_in_both_formats(tmp_path: Path, turn: str, message: str) -> None:
    legacy = f'[{{"name": "a", "data": [{{"query": "x"}},\n{turn}]}}]'
    assert said(AdkLegacy(), tmp_path, legacy) == [f"2: [0].data[1]{message}"]
    flat = f'[{{"query": "x"}},\n{turn}]'
    assert said(AdkFlat(), tmp_path, flat) == [f"2: [1]{message}"]


@pytest.mark.parametrize(
    ("case", "messages"),
    [
        ("5", [": expected an object, found 5"]),
        ("{}", [": 'name' is missing", ": 'data' is missing"]),
        ('{"name": 5, "data": {}}', [".name: expected text, found 5", ".data: expected a list"]),
        ('{"name": "a", "data": [], "initial_session": []}', [".initial_session: expected an "]),
        (
            '{"name": "a", "data": [], "initial_session": {"user_id": 5}}',
            [".initial_session.user_id: expected text, found 5"],
        ),
    ],
)
def test_a_case_must_be_right(tmp_path: Path, case: str, messages: list[str]) -> None:
    found = said(
        AdkLegacy(), tmp_path, f'[{{"name": "first", "data": [{{"query": "x"}}]}},\n{case}]'
    )
    assert len(found) == len(messages)
    for each, message in zip(found, messages, strict=True):
        assert each.startswith(f"2: [1]{message}")


def test_each_mistake_has_the_line_of_its_value(tmp_path: Path) -> None:
    text = """[
{"name": "a", "data": [
  {"query": "x",
   "expected_tool_use": [
     {"tool_name": "t", "tool_input": {}},
     {"tool_name":
       5, "tool_input": {}}]},
  {"query":
    6}]}]"""
    assert said(AdkLegacy(), tmp_path, text) == [
        "6: [0].data[0].expected_tool_use[1].tool_name: expected text, found 5",
        "8: [0].data[1].query: expected text, found 6",
    ]


def test_an_id_is_there_once(tmp_path: Path) -> None:
    case = '{"name": "a", "data": [{"query": "x"}]}'
    assert said(AdkLegacy(), tmp_path, f"[{case},\n{case}]") == [
        "2: duplicate id 'a'; the first is on line 1"
    ]


@pytest.mark.slow
def test_a_conversation_of_thousands_of_turns_takes_no_time(tmp_path: Path) -> None:
    turns = [{"query": "x", "odd": n} for n in range(2_000)]
    legacy = opened(AdkLegacy(), tmp_path, [{"name": "a", "data": turns}])
    flat = opened(AdkFlat(), tmp_path, turns)
    for found in (legacy, flat):
        (case,) = found.cases()
        assert len(case.conversation or ()) == 2_000
        assert sum(not each.concerns for each in found.warnings) == 5
