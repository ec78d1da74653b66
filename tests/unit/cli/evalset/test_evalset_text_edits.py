"""Cases are edited in the text of a file, and the rest of it stays as it is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.cli.evalset.evalset_text_edits import NotEditableError, cases_in
from ci_eval.cli.evalset.readable_yaml import yaml_text
from ci_eval.text.yaml_files import parse_yaml

JSON = """\
{
    "eval_set_id": "s",
    "eval_cases": [
        {"eval_id": "a", "n": 1.50},
        {
            "eval_id": "b"
        }
    ],
    "mine": [ 1 ]
}
"""
YAML = """\
# of the shop
name: s
cases:
  # the first
  - id: a   # by hand
    prompt: Hello

  # the second
  - id: b
    prompt: |
      # no comment

      but text
    # of b
# the end
other: 1
"""


def test_a_case_is_added_in_the_style_of_the_file():
    assert cases_in(JSON, "json").add([{"eval_id": "c", "x": []}]) == JSON.replace(
        '            "eval_id": "b"\n        }\n',
        '            "eval_id": "b"\n        },\n'
        '        {\n            "eval_id": "c",\n            "x": []\n        }\n',
    )


def test_a_case_is_replaced_where_it_stands():
    assert cases_in(JSON, "json").replace(0, {"eval_id": "a"}) == JSON.replace(
        '{"eval_id": "a", "n": 1.50}', '{\n            "eval_id": "a"\n        }'
    )


def test_a_case_goes_with_its_comma():
    assert cases_in(JSON, "json").remove(0) == JSON.replace(
        '        {"eval_id": "a", "n": 1.50},\n', ""
    )
    assert cases_in(JSON, "json").remove(1) == JSON.replace(
        ',\n        {\n            "eval_id": "b"\n        }', ""
    )


def test_an_empty_list_is_filled_in_the_style_that_adk_writes():
    empty = '{\n  "eval_set_id": "s",\n  "eval_cases": []\n}'

    assert cases_in(empty, "json").add([{"eval_id": "a"}]) == json.dumps(
        {"eval_set_id": "s", "eval_cases": [{"eval_id": "a"}]}, indent=2
    )


def test_a_file_of_one_line_stays_one():
    assert cases_in('{"eval_cases":[{"a":1}]}', "json").add([{"b": 2}]) == (
        '{"eval_cases":[{"a":1}, {"b": 2}]}'
    )


def test_line_ends_stay_as_they_are():
    added = cases_in(JSON.replace("\n", "\r\n"), "json").add([{"eval_id": "c"}])

    assert added.count("\n") == added.count("\r\n")


def test_line_ends_of_yaml_stay_as_they_are():
    text = "cases:\r\n  - id: a\r\n    prompt: Hi\r\n"
    added = cases_in(text, "yaml").add([{"id": "b", "prompt": "Ho", "expected": "Hi"}])

    assert added.startswith(text)
    assert added.count("\n") == added.count("\r\n") > 3


def test_lines_are_edited_one_by_one():
    text = '{"id": "a"}\n\n{"id":"b"}'

    assert cases_in(text, "jsonl").add([{"id": "ü"}]) == f'{text}\n{{"id": "ü"}}\n'
    assert cases_in(text, "jsonl").remove(1) == '{"id": "a"}\n\n'
    assert cases_in(text, "jsonl").replace(0, {"id": "c"}) == '{"id": "c"}\n\n{"id":"b"}'


def test_a_case_is_added_to_yaml_behind_the_comments_of_the_last_one():
    assert cases_in(YAML, "yaml").add([{"id": "c", "tags": ["x"]}]) == YAML.replace(
        "    # of b\n", "    # of b\n  - id: c\n    tags:\n      - x\n"
    )


def test_blank_lines_that_a_text_keeps_belong_to_its_case():
    text = "- id: a\n  prompt: |+\n    keep\n\n# end\n"
    added = cases_in(text, "yaml").add([{"id": "c"}])
    assert added == text.replace("\n# end", "\n- id: c\n# end")


def test_the_last_case_of_a_list_in_the_column_of_its_key_goes():
    assert cases_in("cases:\n- id: a\nname: n\n", "yaml").remove(0) == "cases:\n  []\nname: n\n"


def test_a_case_of_yaml_goes_and_the_comment_above_it_stays():
    assert cases_in(YAML, "yaml").remove(0) == YAML.replace(
        "  - id: a   # by hand\n    prompt: Hello\n", ""
    )


def test_a_case_of_yaml_is_replaced_with_its_own_comments():
    replaced = cases_in(YAML, "yaml").replace(1, {"id": "b"})

    assert replaced == YAML[: YAML.index("  - id: b")] + "  - id: b\n# the end\nother: 1\n"


def test_yaml_can_be_emptied_and_filled_again():
    emptied = cases_in(cases_in(YAML, "yaml").remove(1), "yaml").remove(0)
    assert parse_yaml(emptied, shown="").value == {"name": "s", "cases": [], "other": 1}

    filled = cases_in(emptied, "yaml").add([{"id": "c"}])
    assert parse_yaml(filled, shown="").value["cases"] == [{"id": "c"}]


@pytest.mark.parametrize(
    "text",
    ["cases: [{id: a}, {id: b}]\n", "cases:\n  -\n    id: a\n  -\n    id: b\n", "cases: {}\n"],
)
def test_yaml_in_which_no_case_begins_with_a_dash_is_refused(text):
    with pytest.raises(NotEditableError, match="cases cannot be edited in "):
        cases_in(text, "yaml").add([{"id": "c"}])


def test_a_case_in_one_line_of_yaml_is_one():
    text = "cases:\n- {id: a}\nx: []\n"

    assert cases_in(text, "yaml").add([{"id": "c"}]) == "cases:\n- {id: a}\n- id: c\nx: []\n"


def test_a_table_is_not_edited():
    for edit in (
        lambda: cases_in("id\na\n", "csv").add([{}]),
        lambda: cases_in("id\na\n", "csv").replace(0, {}),
        lambda: cases_in("id\na\n", "csv").remove(0),
    ):
        with pytest.raises(NotEditableError, match="in a table"):
            edit()


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["08", "1e3", "0o7", "off", "~", "null", "<<", "- a", "a: b", "# c", "|", "a\n b\n\n", "\ttab"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
CASES = st.lists(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=3), max_size=4)
WRITERS = {
    "json": lambda cases, indent: json.dumps({"eval_cases": cases, "z": []}, indent=indent),
    "list": lambda cases, indent: json.dumps(cases, indent=indent),
    "jsonl": lambda cases, _: "".join(json.dumps(case) + "\n" for case in cases),
    "yaml": lambda cases, _: yaml_text({"name": "[]", "cases": cases}),
}


def read(text, kind):
    if kind == "jsonl":
        return [json.loads(line) for line in text.split("\n") if line]
    value = parse_yaml(text, shown="").value if kind == "yaml" else json.loads(text)
    return value if kind == "list" else value.get("cases", value.get("eval_cases"))


@given(
    cases=CASES,
    new=st.lists(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=2), min_size=1, max_size=2),
    kind=st.sampled_from(sorted(WRITERS)),
    indent=st.sampled_from([None, 1, 4, "\t"]),
    at=st.integers(0, 3),
)
def test_the_cases_are_those_that_were_meant(cases, new, kind, indent, at):
    text = WRITERS[kind](cases, indent)
    syntax = "json" if kind == "list" else kind

    assert read(cases_in(text, syntax).add(new), kind) == [*cases, *new]
    if at < len(cases):
        replaced = [*cases[:at], new[0], *cases[at + 1 :]]
        assert read(cases_in(text, syntax).replace(at, new[0]), kind) == replaced
        removed = [*cases[:at], *cases[at + 1 :]]
        assert read(cases_in(text, syntax).remove(at), kind) == removed


@given(CASES)
def test_an_edit_that_is_undone_leaves_the_text_as_it_was(cases):
    text = json.dumps({"eval_cases": cases}, indent=3)
    added = cases_in(text, "json").add([{"new": 1}])

    assert cases_in(added, "json").remove(len(cases)) == text
