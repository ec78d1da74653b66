"""Any file is checked: it gets a kind, its problems with their lines, and never a traceback."""

import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ci_eval.cli.validate_command import Checked, check
from ci_eval.runtime.context import RunContext

HELLO = {"parts": [{"text": "Hello"}]}
TURN = {
    "user_content": HELLO,
    "final_response": {"role": "model", "parts": [{"text": "Hi"}]},
    "intermediate_data": {
        "tool_uses": [{"id": "1", "name": "t", "args": {"x": [1, {"y": None}]}}],
        "tool_responses": [{"id": "1", "name": "t", "response": {"r": True}}],
        "intermediate_responses": [["agent", [{"text": "wait"}]]],
    },
    "rubrics": [
        {
            "rubric_id": "r",
            "rubric_content": {"text_property": "p"},
            "type": "FINAL_RESPONSE_QUALITY",
        }
    ],
    "app_details": {"agent_details": {"a": {"name": "a", "tool_declarations": [{}]}}},
}
EVENTS = {
    "userContent": HELLO,
    "intermediateData": {
        "invocationEvents": [
            {"author": "a", "content": {"parts": [{"functionCall": {"name": "t", "args": {}}}]}}
        ]
    },
}
EVALSET: dict[str, Any] = {
    "eval_set_id": "s",
    "name": "n",
    "eval_cases": [
        {
            "eval_id": "a",
            "conversation": [TURN, EVENTS],
            "session_input": {"app_name": "x", "user_id": "u", "state": {}},
            "creation_timestamp": 1.5,
        },
        {
            "eval_id": "b",
            "conversation_scenario": {"starting_prompt": "p", "conversation_plan": "q"},
        },
    ],
}
OLD_TURN = {
    "query": "q",
    "reference": "r",
    "expected_tool_use": [{"tool_name": "t", "tool_input": {"x": 1}}],
    "expected_intermediate_agent_responses": [{"author": "a", "text": "x"}],
}
LEGACY = [{"name": "a", "data": [OLD_TURN], "initial_session": {"app_name": "x", "state": {}}}]
EVAL_CONFIG = {
    "criteria": {
        "response_match_score": 0.5,
        "tool_trajectory_avg_score": {"threshold": 1, "matchType": "IN_ORDER"},
    }
}
CONFIG = """\
agents:
  bot: {recorded: traces.jsonl}
evalsets:
  smoke: smoke.evalset.json
criteria:
  tool_trajectory_avg_score: 1
gate: {allow_unjudged: [b]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traces.jsonl").touch()
    return tmp_path


def world_of(path: Path) -> RunContext:
    return RunContext(env={}, root=path.absolute().parent, now=lambda: 0.0)


def checked(name: str, content: object) -> Checked:
    """Write a file in the current folder and check it."""
    data = content if isinstance(content, str) else json.dumps(content)
    Path(name).write_text(data)
    return check(name, world_of)


def said(found: Checked) -> list[str]:
    return [f"{problem.severity} {problem}" for problem in found.problems]


# --- Kinds ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "content", "kind", "cases"),
    [
        ("a.json", EVALSET, "evalset", 2),
        ("a.evalset.json", EVALSET, "evalset", 2),
        ("a.test.json", [OLD_TURN], "evalset", 1),
        ("a.json", LEGACY, "evalset", 1),
        ("a.json", EVAL_CONFIG, "eval_config", None),
        ("a.txt", EVAL_CONFIG, "eval_config", None),
        ("a.json", '{"criteria": {"response_match_score": 1}, // so\n}', "eval_config", None),
        ("a.json", {"criterias": {"response_match_score": 1}}, "eval_config", None),
        ("a.json", {"customMetrics": {}, "criteria": {}}, "eval_config", None),
        ("a.yaml", CONFIG, "config", 2),
        ("a.yml", CONFIG, "config", 2),
        (
            "a.json",
            {
                "agents": {"bot": {"recorded": "traces.jsonl"}},
                "evalsets": {"smoke": "smoke.evalset.json"},
                "criteria": {"tool_trajectory_avg_score": 1},
                "gate": {"allow_unjudged": ["b"]},
            },
            "config",
            2,
        ),
        ("a.json", {"criteria": {}, "evalsets": {}}, "config", None),
        ("a.json", {}, "unknown", None),
        ("a.json", {"other": 1}, "unknown", None),
        ("a.json", [1], "unknown", None),
        ("a.json", {"scenarios": []}, "unknown", None),
        ("a.evalset.json", "{", "evalset", None),
        ("a.test.json", "[", "evalset", None),
        ("a.json", "{", "unknown", None),
        ("a.yaml", "[", "config", None),
        ("a.yaml", "{}", "config", None),
    ],
)
def test_a_file_is_of_the_kind_that_it_shows(
    name: str, content: object, kind: str, cases: int | None
) -> None:
    checked("smoke.evalset.json", EVALSET)
    found = checked(name, content)
    assert (found.kind, found.cases) == (kind, cases)
    assert found.file == name


def test_a_missing_file_has_the_kind_of_its_name(folder: Path) -> None:
    for name, kind in (
        ("a.yaml", "config"),
        ("a.evalset.json", "evalset"),
        ("test_config.json", "eval_config"),
        ("a.json", "unknown"),
    ):
        found = check(name, world_of)
        assert (found.kind, said(found)) == (kind, [f"error {name}: no such file"])
    found = check(str(folder), world_of)
    assert said(found) == [f"error {folder}: is not a file"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "a.json")
    os.mkfifo(folder / "a.yaml")
    for name in ("a.json", "a.yaml"):
        assert said(check(name, world_of)) == [f"error {name}: is not a file"]


# --- Problems -------------------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_an_evalset_is_checked_whole() -> None:
    text = '{"eval_set_id": "s", "eval_cases": [\n{"eval_id": 5},\n{"evalid": "a"}]}'
    assert said(checked("a.evalset.json", text)) == [
        "error a.evalset.json:2: eval_cases[0].eval_id: expected text, found 5",
        "error a.evalset.json:3: eval_cases[1]: 'eval_id' is missing",
    ]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("content", [{"eval_set_id": "s", "eval_cases": []}, []])
def test_an_empty_evalset_is_warned_of(content: object) -> None:
    found = checked("a.json", content)
    assert (found.kind, found.cases) == ("evalset", 0)
    assert said(found) == ["warning a.json:1: contains no cases"]


@pytest.mark.usefixtures("folder")
def test_an_eval_config_is_checked_whole() -> None:
    text = '{"criteria": {\n"response_match_score": 2,\n"nice": 1,}}'
    first, second, third = said(checked("test_config.json", text))
    assert (
        first == "warning test_config.json:3: a trailing comma, which ADK does not accept in JSON"
    )
    assert second == (
        "error test_config.json:2: criteria.response_match_score: "
        "the threshold must lie between 0 and 1"
    )
    assert third.startswith("error test_config.json:3: criteria.nice: unknown criterion; known: ")


EITHER = {"criteria": {"response_match_score": {"threshold": 0.5}}}


@pytest.mark.usefixtures("folder")
def test_an_eval_config_of_either_system_is_read_as_adks_with_a_warning() -> None:
    found = checked("eval.json", EITHER)
    assert found.kind == "eval_config"
    assert said(found) == [
        (
            "warning eval.json:1: ADK and AgentFlow read this differently; "
            "set `dialect:` where a configuration uses it"
        )
    ]
    assert found.summary() == "eval.json: eval config: ok"
    (first, _) = said(checked("eval.json", '{"criteria": {\n"safety_v1": {"threshold": 5}}}'))
    assert first == (
        "error eval.json:2: criteria.safety_v1: the threshold must lie between 0 and 1"
    )


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("test_config.json", EITHER),
        ("eval.json", {"criteria": {"response_match_score": 0.5}}),
        ("eval.json", {"criteria": {"final_response_match_v2": {"threshold": 0.5}}}),
        ("eval.json", {**EITHER, "parallel": False}),
        ("eval.json", {"criteria": {"rouge_match": {"threshold": 0.5}, "safety": None}}),
    ],
)
def test_an_eval_config_that_says_whose_it_is_needs_no_word(name: str, content: object) -> None:
    found = checked(name, content)
    assert (found.kind, said(found)) == ("eval_config", [])


@pytest.mark.usefixtures("folder")
def test_behind_comments_the_mistake_is_named_and_not_the_comment() -> None:
    text = '{ // so\n"criteria": {"response_match_score": 1, // one\n}}\n}'
    found = checked("a_config.json", text)
    assert (found.kind, said(found)) == (
        "eval_config",
        ["error a_config.json:4: has extra text after the end"],
    )
    (strict,) = said(checked("a.evalset.json", '{ // so\n"eval_cases": []}}'))
    assert strict.startswith("error a.evalset.json:1: ")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.yaml", "cases:\n- {prompt: Hi, expected: Hello}\n", "evalset"),
        ("a.yaml", "- {prompt: Hi, expected: Hello}\n", "evalset"),
        ("a.csv", "prompt,expected\nHi,Hello\n", "evalset"),
        ("a.jsonl", '{"prompt": "Hi", "expected": "Hello"}\n', "evalset"),
        ("a.json", '[{"prompt": "Hi", "expected": "Hello"}]', "evalset"),
    ],
)
def test_an_evalset_may_be_of_any_syntax(name: str, content: str, kind: str) -> None:
    found = checked(name, content)
    assert (found.kind, found.cases, said(found)) == (kind, 1, [])


@pytest.mark.usefixtures("folder")
def test_a_table_that_is_none_is_told_so() -> None:
    assert said(checked("a.csv", "x" * 200_000)) == [
        "error a.csv:1: is not CSV: field larger than field limit (131072)"
    ]


@pytest.mark.usefixtures("folder")
def test_a_case_that_nothing_can_judge_is_told_beforehand() -> None:
    checked("smoke.evalset.json", EVALSET)
    (said_,) = said(checked("a.yaml", CONFIG.partition("gate:")[0]))
    assert said_.startswith("error smoke.evalset.json:1: case 'b': no blocking criterion can ")


@pytest.mark.usefixtures("folder")
def test_a_configuration_is_checked_with_what_it_names() -> None:
    checked("smoke.evalset.json", EVALSET)
    (warning,) = said(checked("a.yaml", CONFIG))
    assert warning.startswith("warning smoke.evalset.json:1: 1 case expects a response, which no")
    assert checked("a.yaml", CONFIG).cases == 2
    more = CONFIG.replace("criteria:", "criteria:\n  response_match_score: 0.5")
    part = more.replace("evalsets:", "evalsets:\n  other: smoke.evalset.json")
    part = checked("a.yaml", f"{part}matrix: [{{evalsets: [smoke]}}]\n")
    assert part.cases == 2
    assert "matrix: no row names the evalset 'other'" in said(part)[0]
    assert not any("which no criterion reads" in each for each in said(checked("a.yaml", more)))
    checked("smoke.evalset.json", {"eval_set_id": "s", "eval_cases": [{"eval_id": "a"}]})
    found = checked("a.yaml", CONFIG)
    assert said(found) == [
        (
            "error smoke.evalset.json:1: eval_cases[0]: "
            "needs either 'conversation' or 'conversation_scenario'"
        )
    ]
    assert found.as_json() == {
        "file": "a.yaml",
        "kind": "config",
        "cases": None,
        "problems": [
            {
                "code": "CE0722",
                "severity": "error",
                "line": 1,
                "message": said(found)[0].removeprefix("error "),
            }
        ],
    }


@pytest.mark.usefixtures("folder")
def test_a_configuration_with_nothing_to_run_is_warned_of() -> None:
    checked("smoke.evalset.json", {"eval_set_id": "s", "eval_cases": []})
    found = checked("a.yaml", CONFIG)
    assert (found.kind, found.cases) == ("config", 0)
    assert said(found) == [
        "warning a.yaml: nothing to run: the evalsets contain no cases (smoke.evalset.json)"
    ]


@pytest.mark.usefixtures("folder")
def test_what_is_no_json_is_told_so() -> None:
    assert said(checked("a.json", '{"criteria": {')) == [
        "error a.json:1: is not JSON: expecting property name enclosed in double quotes"
    ]
    assert said(checked("a.json", "../a/b.json")) == [
        "error a.json:1: is not JSON but a symbolic link that was checked out as text"
    ]


@pytest.mark.usefixtures("folder")
def test_what_was_found_can_be_printed_in_one_line_or_as_json() -> None:
    found = checked("a.json", {"eval_set_id": "s", "eval_cases": [{"eval_id": "a"}, 5]})
    assert found.summary() == "a.json: evalset: 2 errors"
    assert found.as_json()["problems"][1] == {
        "code": "CE0521",
        "severity": "error",
        "line": 1,
        "message": "eval_cases[1]: expected an object, found 5",
    }
    assert checked("a.json", EVALSET).summary() == "a.json: evalset, 2 cases: ok"
    assert checked("a.json", EVAL_CONFIG).summary() == "a.json: eval config: ok"


# --- Anything at all ------------------------------------------------------------------------

ANYWHERE = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(None, True, 0, -1, 1.5, 10**400, "", "x", "\0", "\ud83d", [], [None], [[]], {}),
        *({"": None}, {"text": 5}, {"parts": None}, [{"role": []}], "EXACT", 1e300, ["a", []]),
    ]
)
KEYS = st.sampled_from(
    ["eval_id", "evalId", "text", "parts", "args", "line", "threshold", "name", "query", "x", ""]
)


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to everything inside `value`."""
    steps: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        steps = list(value.items())
    elif isinstance(value, list):
        steps = list(enumerate(value))
    for step, inner in steps:
        yield (*way, step)
        yield from places(inner, (*way, step))


@st.composite
def mutations(draw: st.DrawFn) -> Any:
    """Return a document of a known format in which a few things are otherwise."""
    original = draw(st.sampled_from([EVALSET, LEGACY, [OLD_TURN], EVAL_CONFIG]))
    value = json.loads(json.dumps(original))
    for _ in range(draw(st.integers(1, 4))):
        way = draw(st.sampled_from(list(places(value)) or [()]))
        holder = value
        for step in way[:-1]:
            holder = holder[step]
        if not way:
            continue
        change = draw(st.sampled_from(["remove", "replace", "add", "rename", "double"]))
        if change == "remove":
            del holder[way[-1]]
        elif change == "replace":
            holder[way[-1]] = copy.deepcopy(draw(ODD))
        elif change == "double" and isinstance(holder, list):
            holder.append(holder[way[-1]])
        elif change == "rename" and isinstance(holder, dict):
            holder[draw(KEYS)] = holder.pop(way[-1])
        elif isinstance(holder, dict):
            holder[draw(KEYS)] = copy.deepcopy(draw(ODD))
    return value


def is_well_formed(found: Checked) -> None:
    """Check what holds for whatever was found."""
    json.dumps(found.as_json())
    assert found.summary()
    for problem in found.problems:
        assert problem.message
        assert problem.line is None or problem.line >= 1


NAMES = ["a.json", "a.evalset.json", "a.test.json", "a.yaml", "a.txt", "a.csv", "a.jsonl"]


@ANYWHERE
@given(data=st.binary(max_size=200), name=st.sampled_from(NAMES))
@pytest.mark.usefixtures("folder")
def test_no_bytes_lead_to_a_traceback(data: bytes, name: str) -> None:
    Path(name).write_bytes(data)
    is_well_formed(check(name, world_of))


@ANYWHERE
@given(
    text=st.text('{}[]",:.0123456789eE+-\\untrlsaf#/*&|>!%@ \n\t', max_size=80),
    name=st.sampled_from(NAMES),
)
@pytest.mark.usefixtures("folder")
def test_nothing_that_looks_like_json_or_yaml_leads_to_a_traceback(text: str, name: str) -> None:
    Path(name).write_text(text)
    is_well_formed(check(name, world_of))


@settings(ANYWHERE, max_examples=3 * settings.default.max_examples)
@given(value=mutations(), name=st.sampled_from(["a.json", "a.evalset.json", "a.yaml"]))
@pytest.mark.usefixtures("folder")
def test_no_change_of_a_real_file_leads_to_a_traceback(value: Any, name: str) -> None:
    Path(name).write_text(json.dumps(value, indent=1))
    is_well_formed(check(name, world_of))


@ANYWHERE
@given(value=mutations(), cut=st.integers(1, 2000), odd=st.binary(max_size=3))
@pytest.mark.usefixtures("folder")
def test_no_cut_of_a_real_file_leads_to_a_traceback(value: Any, cut: int, odd: bytes) -> None:
    text = json.dumps(value, ensure_ascii=False).encode(errors="replace")
    Path("a.json").write_bytes(text[:cut] + odd + text[cut + len(odd) :])
    is_well_formed(check("a.json", world_of))


@ANYWHERE
@given(lines=st.lists(st.sampled_from([*CONFIG.splitlines(), "", "run: {repeats: x}"]), max_size=8))
@pytest.mark.usefixtures("folder")
def test_no_order_of_the_lines_of_a_configuration_leads_to_a_traceback(lines: list[str]) -> None:
    checked("smoke.evalset.json", EVALSET)
    is_well_formed(checked("a.yaml", "\n".join(lines)))
