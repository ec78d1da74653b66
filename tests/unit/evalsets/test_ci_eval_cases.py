"""Our own evalsets: a prompt makes a case, and every mistake has its line."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reader_problems import talk, told

from ci_eval.config.open_evalset import open_evalset
from ci_eval.evalsets import _evalset_reading
from ci_eval.evalsets.ci_eval_cases import Cases
from ci_eval.records.cases import EvalCase
from ci_eval.records.errors import EvalSetError
from ci_eval.records.evalset_facts import OpenedEvalSet
from ci_eval.records.scenario_settings import of_metadata
from ci_eval.text.yaml_files import parse_yaml


def opened(folder: Path, text: str, name: str = "shop.yaml") -> OpenedEvalSet:
    path = folder / name
    path.write_bytes(text.encode())
    found = open_evalset(path, shown=name)
    assert found.header.format == "cases"
    return found


def cases(folder: Path, text: str, name: str = "shop.yaml") -> list[EvalCase]:
    return list(opened(folder, text, name).cases())


def only(folder: Path, text: str, name: str = "shop.yaml") -> EvalCase:
    (found,) = cases(folder, text, name)
    return found


def said(folder: Path, text: str, name: str = "shop.yaml") -> list[str]:
    """Return the problems, without the name of the file."""
    return told(lambda: opened(folder, text, name), name)


# --- What a case can say ----------------------------------------------------------------------


FULL = """\
name: shop
description: What customers ask.
cases:
  - prompt: What is the capital of France?
    expected: Paris
  - id: refund
    tags: [billing, slow]
    state: {user: vip}
    turns:
      - prompt: Refund order 7.
        expected_tools: [lookup, {name: refund, args: {order: 7}}]
        expected_nodes: [MAIN, TOOL]
      - prompt: Thank you!
        expected: You are welcome.
        expected_tools: []
    final_state: {refunded: true}
    rubrics: [It is polite., {id: brief, text: It is brief., type: TRAJECTORY_QUALITY}]
    assert:
      - contains: welcome
      - tool_calls: {max: 2}
  - id: table
    scenario: {start: I am hungry., plan: Book a table.}
    context: [The kitchen closes at nine., There are 12 tables.]
    reference_facts: The table is by the window.
"""


def test_all_that_a_case_can_say_is_read(tmp_path: Path) -> None:
    first, second, third = cases(tmp_path, FULL)
    assert talk(first) == [("What is the capital of France?", "Paris")]
    assert [turn.intermediate_data for turn in first.conversation or ()] == [None]
    assert (first.session_input, first.rubrics, first.assertions) == (None, None, ())

    assert (second.eval_id, second.tags, second.line) == ("refund", ("billing", "slow"), 6)
    assert talk(second) == [("Refund order 7.", ""), ("Thank you!", "You are welcome.")]
    one, two = second.conversation or ()
    assert [(call.name, call.args) for call in one.tool_calls] == [
        ("lookup", None),
        ("refund", {"order": 7}),
    ]
    assert (one.nodes, two.nodes) == (("MAIN", "TOOL"), None)
    assert (two.intermediate_data is None, two.tool_calls) == (False, ())
    assert one.final_response is None
    assert second.session_input
    assert second.session_input.state == {"user": "vip"}
    assert second.final_session_state == {"refunded": True}
    assert second.assertions == ({"contains": "welcome"}, {"tool_calls": {"max": 2}})
    assert [
        (rubric.rubric_id, rubric.rubric_content.text_property, rubric.type)
        for rubric in second.rubrics or ()
    ] == [
        ("rubric-1", "It is polite.", "FINAL_RESPONSE_QUALITY"),
        ("brief", "It is brief.", "TRAJECTORY_QUALITY"),
    ]

    assert third.conversation is None
    assert third.conversation_scenario
    assert third.conversation_scenario.starting_prompt == "I am hungry."
    assert third.conversation_scenario.conversation_plan == "Book a table."
    assert of_metadata(third, "context") == ["The kitchen closes at nine.", "There are 12 tables."]
    assert of_metadata(third, "reference_facts") == "The table is by the window."


def test_what_the_cases_offer_is_counted(tmp_path: Path) -> None:
    facts = opened(tmp_path, FULL).facts
    assert (facts.cases, facts.scenarios, facts.with_rubrics, facts.with_assertions) == (3, 1, 1, 1)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("shop.yaml", "- prompt: Hi\n  expected: Hello\n- prompt: Bye"),
        ("shop.yml", "cases: [{prompt: Hi, expected: Hello}, {prompt: Bye}]"),
        ("shop.json", '{"cases": [{"prompt": "Hi", "expected": "Hello"}, {"prompt": "Bye"}]}'),
        ("shop.json", '[{"prompt": "Hi", "expected": "Hello"}, {"prompt": "Bye"}]'),
        ("shop.jsonl", '{"prompt": "Hi", "expected": "Hello"}\n\n{"prompt": "Bye"}\n'),
        ("shop.csv", "prompt,expected\nHi,Hello\nBye,\n"),
        ("shop.csv", "prompt,expected\r\nHi,Hello\r\nBye"),
        ("shop.csv", '\ufeff"prompt","expected"\r\n"Hi","Hello"\r\n\r\n"Bye",""\r\n,\r\n'),
    ],
)
def test_every_syntax_says_the_same(tmp_path: Path, name: str, text: str) -> None:
    found = opened(tmp_path, text, name)
    first, second = found.cases()
    assert talk(first) + talk(second) == [("Hi", "Hello"), ("Bye", "")]
    assert (second.conversation or ())[0].final_response is None
    assert found.header.eval_set_id == "shop"
    assert found.warnings == ()


def test_line_ends_of_a_table_do_not_change_its_cells(tmp_path: Path) -> None:
    text = 'prompt,expected\n"Hi\nyou","Hello\n\nyou"\n'
    (unix,), (windows,) = (
        [*opened(tmp_path, each, "shop.csv").cases()] for each in (text, text.replace("\n", "\r\n"))
    )

    assert talk(windows) == talk(unix) == [("Hi\nyou", "Hello\n\nyou")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("shop.json", '{"cases": [\n{"prompt": "Hi",\n"prompt": "Bye"}]}'),
        ("shop.jsonl", '\n\n{"prompt": "Hi", "prompt": "Bye"}\n'),
        ("shop.yaml", "cases:\n- prompt: Hi\n  prompt: Bye"),
    ],
)
def test_a_key_may_not_stand_twice_in_a_case(tmp_path: Path, name: str, text: str) -> None:
    assert said(tmp_path, text, name) == ["3: duplicate key 'prompt'"]


def test_the_name_of_the_set_is_its_id(tmp_path: Path) -> None:
    assert opened(tmp_path, "name: mine\ncases: []").header.eval_set_id == "mine"
    assert opened(tmp_path, "cases: []", "my.cases.yaml").header.eval_set_id == "my.cases"


def test_a_case_without_turns_is_warned_of(tmp_path: Path) -> None:
    assert said(tmp_path, "cases: [{id: a, turns: []}]") == [
        "warning: 1: cases[0].turns: has no turn, so there is nothing to measure"
    ]


def test_a_tool_without_arguments_is_warned_of(tmp_path: Path) -> None:
    text = "- prompt: Hi\n  expected_tools:\n  - look\n  - {name: x}\n  - {name: y, args: {}}"
    ending = (
        "names a tool without 'args'; in 'adk/tool_trajectory_avg_score' it matches no call "
        "unless that criterion has `missing_args: any` under `criteria:`"
    )
    assert said(tmp_path, text) == [
        f"warning: 3: [0].expected_tools[0]: {ending}",
        f"warning: 4: [0].expected_tools[1]: {ending}",
    ]


# --- Names ------------------------------------------------------------------------------------


def test_a_case_without_an_id_is_named_after_what_it_asks(tmp_path: Path) -> None:
    first, second, third = (
        case.eval_id
        for case in cases(tmp_path, "- prompt: What is, up?\n- prompt: what is up\n- prompt: …")
    )
    assert first.startswith("what-is-up-")
    assert second.startswith("what-is-up-")
    assert first != second
    assert len(third) == 8


def test_a_made_name_outlives_all_but_the_question(tmp_path: Path) -> None:
    def names(text: str) -> set[str]:
        return {case.eval_id for case in cases(tmp_path, text)}

    before = names("- prompt: One\n- prompt: Two\n  expected: a")
    assert names("- {prompt: Two, expected: b, tags: [x]}\n- prompt: One") == before
    assert names("- turns: [{prompt: One}]\n- prompt: Two") == before
    assert len(names("- prompt: One!\n- prompt: Two") & before) == 1
    scenario = names("- scenario: {start: One, plan: x}\n- scenario: {start: One, plan: y}")
    assert len(scenario - before) == 2


def test_two_cases_that_ask_the_same_need_ids(tmp_path: Path) -> None:
    text = (
        "- prompt: Hi\n- {prompt: Hi, expected: Hello}\n- {prompt: Hi, id: a}\n- {prompt: a, id: a}"
    )
    assert said(tmp_path, text) == [
        "2: [1]: same prompts as the case on line 1; give each of them an 'id'",
        "4: duplicate id 'a'; the first is on line 3",
    ]


# --- Tables -----------------------------------------------------------------------------------


def test_a_table_has_columns_for_all_that_one_turn_can_say(tmp_path: Path) -> None:
    head = (
        "id,prompt,context,tags,expected_tools,expected_nodes,state.user,state.n,final_state.ok,"
        "assert.contains,assert.max_words,assert.json\n"
    )
    row = 'a,"Hi,\n""you""",open at 9,x; y,look;find,A;B,vip,7,true,Hello,"""7""","{""a"": [1]}"\n'
    found = only(tmp_path, head + row, "t.csv")
    assert talk(found) == [('Hi,\n"you"', "")]
    assert (found.eval_id, found.tags) == ("a", ("x", "y"))
    (turn,) = found.conversation or ()
    assert [call.name for call in turn.tool_calls] == ["look", "find"]
    assert turn.nodes == ("A", "B")
    assert of_metadata(found, "context") == "open at 9"
    assert found.session_input
    assert found.session_input.state == {"user": "vip", "n": 7}
    assert found.final_session_state == {"ok": True}
    assert found.assertions == ({"contains": "Hello"}, {"max_words": "7"}, {"json": {"a": [1]}})


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ('{""name"": ""t""}', ["t"]),
        ('{""name"": ""t"", ""args"": {""x"": "";""}}; {""name"": ""u""};', ["t", "u"]),
        ('{""name"": ""t""} {""name"": ""u""}', "separate objects with ';'"),
        ('{""name"": ""t"", ""args"": {}', "is not JSON: expecting ',' delimiter"),
    ],
)
def test_tools_in_a_table_may_be_json_objects(
    tmp_path: Path, cell: str, names: list[str] | str
) -> None:
    text = f'prompt,expected_tools\nHi,"{cell}"\n'
    if isinstance(names, str):
        with pytest.raises(EvalSetError, match=re.escape(names)):
            only(tmp_path, text, "t.csv")
        return
    (turn,) = only(tmp_path, text, "t.csv").conversation or ()
    assert [call.name for call in turn.tool_calls] == names


def test_tools_in_a_table_may_be_json(tmp_path: Path) -> None:
    text = 'prompt,expected_tools\na,[]\nb,"[{""name"": ""t"", ""args"": {""x"": 1}}]"\nc,\n'
    none, one, silent = (case.conversation or () for case in cases(tmp_path, text, "t.csv"))
    assert none[0].intermediate_data is not None
    assert none[0].tool_calls == ()
    assert [(call.name, call.args) for call in one[0].tool_calls] == [("t", {"x": 1})]
    assert silent[0].intermediate_data is None


def test_texts_in_a_table_stay_texts(tmp_path: Path) -> None:
    found = only(tmp_path, "id,prompt,expected\n007,42,true\n", "t.csv")
    assert (found.eval_id, talk(found)) == ("007", [("42", "true")])


def test_the_line_of_a_row_is_where_it_begins(tmp_path: Path) -> None:
    text = 'prompt,expected\n"a\nb",x\n\nc,"d\n\ne"\nf,g\n'
    assert [case.line for case in cases(tmp_path, text, "t.csv")] == [2, 5, 8]


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("id;prompt\na;b\n", ["1: columns must be separated by ',', found ';'"]),
        (
            "prompt,,prompt,inputs,input,assert,state.,tag\n",
            [
                "1: column 2: has no name",
                "1: column 3: duplicate column 'prompt'",
                "1: column 'inputs': unknown column; known: ",
                "1: column 'input': unknown column; use 'prompt'",
                "1: column 'assert': unknown column; add a name: 'assert.NAME'",
                "1: column 'state.': unknown column. Did you mean 'state.NAME'?",
                "1: column 'tag': unknown column. Did you mean 'tags'?",
            ],
        ),
        (
            'prompt,expected,expected_tools\nHello, you,x,y\n,b,\na,b,[x\n"c',
            [
                '2: has 4 cells for 3 columns; put a cell with a comma in "double quotes"',
                "3: needs a 'prompt', or 'turns', or a 'scenario'",
                "4: column 'expected_tools': is not JSON: expecting value",
                "5: is not CSV: unexpected end of data; this row begins here",
            ],
        ),
        (
            "prompt,expected_tools\na,[5]\n",
            ["2: column 'expected_tools': expected the name of a tool, or its name and args, fou"],
        ),
    ],
)
def test_what_is_wrong_in_a_table_has_its_line_and_column(
    tmp_path: Path, text: str, messages: list[str]
) -> None:
    found = said(tmp_path, text, "t.csv")
    assert len(found) == len(messages)
    assert all(one.startswith(other) for one, other in zip(found, messages, strict=True)), found


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(
    lambda text: text.strip() != ""
)


@given(rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, unique_by=lambda row: row[0]))
def test_whatever_a_table_quotes_is_read_as_it_was_written_but_for_line_ends(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    written = io.StringIO()
    csv.writer(written).writerows([("prompt", "expected"), *rows])
    found = cases(tmp_path_factory.mktemp("csv"), written.getvalue(), "t.csv")
    expected = [tuple(cell.replace("\r\n", "\n") for cell in row) for row in rows]
    assert [talk(case)[0] for case in found] == expected


# --- What is wrong ----------------------------------------------------------------------------

WRONG = [
    ("5", ": expected an object, found 5"),
    ("null", ": expected an object, found nothing"),
    ("{}", ": needs a 'prompt', or 'turns', or a 'scenario'"),
    ("{expected: x}", ": needs a 'prompt', or 'turns', or a 'scenario'"),
    ("{prompt: ''}", ".prompt: must not be empty"),
    ("{prompt: 5}", ".prompt: expected text, found 5; put it in quotes"),
    ("{prompt: a, expected: 4.5}", ".expected: expected text, found 4.5; put it in quotes"),
    ("{prompt: a, expected: true}", ".expected: expected text, found true; put it in quotes"),
    ("{prompt: a, expected: [x]}", ".expected: expected text, found a list"),
    ("{prompt: a, turns: []}", ".turns: has both 'prompt' and 'turns'; use only one"),
    (
        "{turns: [], scenario: {start: a, plan: b}}",
        ".scenario: has both 'turns' and 'scenario'; use only one",
    ),
    ("{turns: [{prompt: a}], expected: x}", ".expected: belongs in one of the 'turns'"),
    ("{scenario: {start: a, plan: b}, expected: x}", ".expected: belongs beside a 'prompt'"),
    ("{scenario: {start: a}}", ".scenario: needs a 'plan', or 'goals'"),
    ("{scenario: {start: a, plan: b, goals: x}}", ".scenario.goals: expected a list"),
    ("{scenario: {start: a, plan: b, max_turns: 0}}", ".scenario.max_turns: must be at least 1"),
    (
        "{scenario: {start: a, plan: b, persona: NOVISE}}",
        ".scenario.persona: unknown persona 'NOVISE'. Did you mean 'NOVICE'?",
    ),
    (
        "{scenario: {start: a, plan: b, persona: {id: x}}}",
        ".scenario.persona: 'description' is missing",
    ),
    ("{turns: [{expected: a}]}", ".turns[0]: 'prompt' is missing"),
    ("{turns: [{prompt: a, id: x}]}", ".turns[0].id: unknown key; known: "),
    ("{turns: {prompt: a}}", ".turns: expected a list, found an object"),
    ("{prompt: a, tags: x}", ".tags: expected a list, found 'x'"),
    ("{prompt: a, tags: [5]}", ".tags[0]: expected text, found 5; put it in quotes"),
    ("{prompt: a, state: [x]}", ".state: expected an object, found a list"),
    ("{prompt: a, id: ''}", ".id: must not be empty"),
    ("{prompt: a, id: ' x'}", ".id: must not begin or end with a blank, found ' x'"),
    ("{prompt: a, id: ' '}", ".id: must not begin or end with a blank, found ' '"),
    (
        "{prompt: a, expected_tools: [5]}",
        ".expected_tools[0]: expected the name of a tool, or its name and args, found 5",
    ),
    ("{prompt: a, expected_tools: [{args: {}}]}", ".expected_tools[0]: 'name' is missing"),
    (
        "{prompt: a, expected_tools: [{name: x, arg: 1}]}",
        ".expected_tools[0].arg: unknown key. Did you mean 'args'?",
    ),
    (
        "{prompt: a, expected_tools: [{name: x, args: [1]}]}",
        ".expected_tools[0].args: expected an object, found a list",
    ),
    ("{prompt: a, rubrics: [5]}", ".rubrics[0]: expected a text, or an id and a text, found 5"),
    ("{prompt: a, rubrics: [{id: x}]}", ".rubrics[0]: 'text' is missing"),
    ("{prompt: a, assert: {contains: x}}", ".assert: expected a list, found an object"),
    ("{prompt: a, assert: [contains]}", ".assert[0]: expected an object, found 'contains'"),
    (
        "{prompt: a, assert: [{contains: x, max: 1}]}",
        ".assert[0]: expected one check, such as 'contains: Paris', found 2",
    ),
    ("{promt: a}", ".promt: unknown key. Did you mean 'prompt'?"),
    ("{question: a}", ".question: unknown key; use 'prompt'"),
    ("{prompt: a, ground_truth: b}", ".ground_truth: unknown key; use 'expected'"),
    ("{turns: [{input: a, prompt: a}]}", ".turns[0].input: unknown key; use 'pro"),
]


@pytest.mark.parametrize(("case", "message"), WRONG)
def test_a_case_must_be_right(tmp_path: Path, case: str, message: str) -> None:
    (found,) = said(tmp_path, f"cases:\n  - prompt: first\n  - {case}\n")
    assert found.startswith(f"3: cases[1]{message}")


def test_every_mistake_is_named_in_the_order_of_the_file(tmp_path: Path) -> None:
    lines = "".join(f"  - {case}\n" for case, _ in WRONG)
    found = said(tmp_path, f"cases:\n{lines}")
    assert [int(each.partition(":")[0]) for each in found] == list(range(2, 2 + len(WRONG)))


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("nam: x\ncases: []", ["1: nam: unknown key. Did you mean 'name'?"]),
        ("name: 5\ncases: []", ["1: name: expected text, found 5"]),
        ("cases: {a: 1}", ["1: cases: expected a list of cases, found an object"]),
        ("cases:", ["1: cases: expected a list of cases, found nothing"]),
        (
            "case: [{prompt: Hi}]",
            ["1: 'cases' is missing", "1: case: unknown key. Did you mean 'cases'?"],
        ),
    ],
)
@pytest.mark.parametrize("name", ["a.yaml", "a.json"])
def test_the_set_itself_must_be_right(
    tmp_path: Path, text: str, messages: list[str], name: str
) -> None:
    if name == "a.json":
        value = parse_yaml(text, shown=name).value
        text = json.dumps(value, indent=0).replace("{\n", "{", 1)
    assert said(tmp_path, text, name) == messages


def test_each_line_that_is_wrong_is_named(tmp_path: Path) -> None:
    text = '{"prompt": "a"}\n{"prompt":\n\n{"prompt": "b", "expected": 5}\n[1]'
    assert said(tmp_path, text, "a.jsonl") == [
        "2: is not JSON: expecting value",
        "4: expected: expected text, found 5; put it in quotes",
        "5: expected an object, found a list",
    ]


def test_yaml_that_is_broken_or_unfolds_without_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvalSetError, match=r"^a.yaml:2: is not YAML"):
        open_evalset(written(tmp_path, "cases:\n  - {"), shown="a.yaml")
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n"
        for before, name in zip("abcdef", "bcdefg", strict=True)
    )
    with pytest.raises(EvalSetError, match="expands to more than"):
        open_evalset(written(tmp_path, bomb + "cases: *g\n"), shown="a.yaml")


def written(folder: Path, text: str) -> Path:
    path = folder / "a.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv"])
def test_a_long_file_is_read_again_instead_of_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(_evalset_reading, "KEPT_BYTES", 5)
    text = {
        "a.jsonl": '{"prompt": "a"}\n{"prompt": "b"}',
        "a.json": '[{"prompt": "a"}, {"prompt": "b"}]',
        "a.csv": "prompt\na\nb",
    }[name]
    found = opened(tmp_path, text, name)
    assert list(found.cases()) == list(found.cases())
    assert next(found.cases()) is not next(found.cases())


@pytest.mark.parametrize(
    ("head", "is_ours"),
    [
        ({"cases": []}, True),
        ({"name": "x", "cases": None}, True),
        ({"name": "x", "case": [{"prompt": "x"}]}, True),
        ({"case": [{"id": "x"}]}, False),
        ({"eval_cases": [{"prompt": "x"}]}, False),
        ({"base": {"prompt": "x"}}, False),
        ([{"prompt": "x"}], True),
        ([{"turns": []}], True),
        ([{"question": "x"}], True),
        ([{"any": "", "column": ""}], True),
        ([{"messages": []}], False),
        ([{"id": "x"}], False),
        ([{}], False),
        ([], True),
        ({"eval_cases": []}, False),
        (None, False),
    ],
)
def test_the_format_is_told_from_the_beginning(head: Any, *, is_ours: bool) -> None:
    assert Cases.sniff(head) is is_ours


# --- What is canned in a case -------------------------------------------------------------------

CANNED = """\
- prompt: Refund order 7.
  tool_mocks:
    tools:
      find: [{args: {order: 7}, result: null}, {results: [1, 2]}]
      refund: {error: no money}
    unmatched: pass
  human_answers: {approve: {result: true}}
  rerun_on_resume: true
- prompt: Hello.
"""


def test_what_tools_and_humans_answer_is_read(tmp_path: Path) -> None:
    first, second = cases(tmp_path, CANNED)

    assert first.tool_mocks
    assert first.tool_mocks.unmatched == "pass"
    found = {name: list(map(dict, each)) for name, each in first.tool_mocks.tools.items()}
    nothing = {"args": None, "result": None, "results": None, "error": None}
    assert found == {
        "find": [nothing | {"args": {"order": 7}}, nothing | {"results": (1, 2)}],
        "refund": [nothing | {"error": "no money"}],
    }
    assert first.human_answers["approve"][0].result is True
    assert first.rerun_on_resume
    assert (second.tool_mocks, second.human_answers, second.rerun_on_resume) == (None, {}, False)


def test_what_is_canned_wrongly_is_told_with_its_line(tmp_path: Path) -> None:
    text = """\
- prompt: Hello.
  tool_mocks:
    tools:
      find: [{args: {x: 1}, rsult: 1}]
      refund: {result: 1, error: no money}
    unmatched: maybe
    more: 1
  human_answers:
    approve: {}
    notify: [{results: []}]
  rerun_on_resume: perhaps
- {prompt: Bye., tool_mock: {}}
"""
    assert said(tmp_path, text) == [
        "4: [0].tool_mocks.tools.find[0].rsult: unknown key. Did you mean 'result'?",
        "5: [0].tool_mocks.tools.refund: needs one of 'result', 'results' and 'error'",
        "6: [0].tool_mocks.unmatched: expected 'error' or 'pass', found 'maybe'",
        "7: [0].tool_mocks.more: unknown key; known: tools, unmatched",
        "9: [0].human_answers.approve: needs one of 'result', 'results' and 'error'",
        "10: [0].human_answers.notify[0].results: must not be empty",
        "11: [0].rerun_on_resume: expected true or false, found 'perhaps'",
        "12: [1].tool_mock: unknown key. Did you mean 'tool_mocks'?",
    ]
