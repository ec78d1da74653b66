"""Lists, pages and the schema are made from the plugins, and say what they say."""

import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from ci_eval.cli import reference
from ci_eval.cli.reference import KINDS, catalogue, descriptions, json_schema, table
from ci_eval.config.config_schema import ConfigFile, EvalSetSpec, GateOptions, MatrixRow, RunOptions
from ci_eval.config.criterion_names import AMBIGUOUS
from ci_eval.config.load_config import load
from ci_eval.config.presets import PRESETS
from ci_eval.criteria.adk_matches import ToolTrajectory
from ci_eval.plugins import points
from ci_eval.records.cases import Record
from ci_eval.records.errors import ConfigError, UsageError
from ci_eval.runtime.context import RunContext

SCHEMA = json_schema()


class Inner(Record):
    """A part of something."""

    size: int = 1
    """How large it is,
    in metres."""
    silent: int = 1


class Outer(Inner):
    """Something with a part."""

    given_name: str = Field(default="", alias="givenName")
    """What it is called."""
    size: int = 2
    """How large it is, in feet."""
    parts: tuple[Inner, ...] = ()


# --- Descriptions ---------------------------------------------------------------------------


def test_the_docstring_under_a_field_describes_it() -> None:
    assert descriptions(Inner) == {"size": "How large it is, in metres."}


def test_what_a_class_inherits_is_described_unless_it_says_otherwise() -> None:
    assert descriptions(Outer) == {
        "size": "How large it is, in feet.",
        "given_name": "What it is called.",
        "givenName": "What it is called.",
    }


@pytest.mark.parametrize("model", [ConfigFile, RunOptions, GateOptions, EvalSetSpec, MatrixRow])
def test_every_key_of_a_configuration_is_described(model: type[Record]) -> None:
    assert set(descriptions(model)) == set(model.model_fields)


# --- Lists ----------------------------------------------------------------------------------


def test_every_plugin_is_in_the_catalogue() -> None:
    found = catalogue()
    assert {kind: [entry["name"] for entry in entries] for kind, entries in found.items()} == {
        **{kind: list(registry) for kind, registry in KINDS.items()},
        "presets": list(PRESETS),
    }
    assert [*KINDS] == [
        *("agents", "evalsets", "recordings", "criteria", "judges", "simulators"),
        *("baselines", "reporters", "engines"),
    ]


def test_an_entry_says_all_that_there_is_to_choose() -> None:
    (entry,) = [
        entry
        for entry in catalogue("criteria")["criteria"]
        if entry["name"] == "adk/tool_trajectory_avg_score"
    ]
    assert entry["summary"] == (
        "The share of invocations whose tool calls match the expected ones."
    )
    assert entry["description"].startswith("An invocation scores 1 or 0; the value is the mean.")
    assert set(entry["options"]) == set(ToolTrajectory.model_fields)
    assert entry["options"]["ignore_args"] == {
        "description": "Compare only the names.",
        "default": False,
        "type": "boolean",
    }
    assert {
        key: entry[key]
        for key in ("needs_reference", "judged", "interval", "higher_is_better", "informational")
    } == {
        "needs_reference": True,
        "judged": False,
        "interval": (0.0, 1.0),
        "higher_is_better": True,
        "informational": False,
    }
    json.dumps(entry)


def test_one_kind_can_be_asked_for() -> None:
    assert list(catalogue("agents")) == ["agents"]
    assert "options" not in catalogue("agents", options=False)["agents"][0]
    with pytest.raises(UsageError, match=r"^unknown kind 'agent'\. Did you mean 'agents'\?$"):
        catalogue("agent")


def test_a_table_has_a_line_for_each_plugin() -> None:
    head, *lines = table(catalogue("criteria"), 500).splitlines()
    assert head.split() == ["criteria", "reference", "rubrics", "judge", "simulation", "values"]
    lines = [line for line in lines if line]
    assert [line.split()[0] for line in lines] == list(points.criterion)
    (line,) = [line for line in lines if line.startswith("  adk/tool_trajectory_avg_score ")]
    assert line.split()[1:8] == ["yes", "no", "no", "no", "0", "to", "1"]
    assert line.endswith("  The share of invocations whose tool calls match the expected ones.")
    (line,) = [line for line in lines if line.startswith("  adk/tool_call_count_v1 ")]
    assert "  any, lower is better (shown only)  " in line
    assert {line.index("  no ") for line in lines if line.startswith("  adk/token")} == {
        line.index("  no ") for line in lines if line.startswith("  ci/tool_calls")
    }


def test_a_table_of_other_kinds_has_no_facts_of_criteria() -> None:
    (line,) = [
        line for line in table(catalogue("agents"), 500).splitlines() if "recorded  " in line
    ]
    assert re.fullmatch(r"  recorded +Recorded conversations, from [\w`, -]+\.", line)
    assert table({"agents": []}, 500) == "agents\n"


# --- The schema -----------------------------------------------------------------------------


def parts(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in a schema."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list):
            yield from parts(inner)


def test_the_schema_is_json_and_says_what_it_is() -> None:
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMA["title"] == "ci-eval configuration"
    assert SCHEMA["required"] == ["agents", "evalsets"]
    assert SCHEMA["additionalProperties"] is False


def test_every_reference_in_the_schema_leads_somewhere() -> None:
    references = [part["$ref"] for part in parts(SCHEMA) if isinstance(part.get("$ref"), str)]
    assert references
    for each in references:
        assert each.removeprefix("#/$defs/") in SCHEMA["$defs"]


def test_every_key_in_the_schema_is_described() -> None:
    named = [
        part["properties"] for part in parts(SCHEMA) if isinstance(part.get("properties"), dict)
    ]
    silent = {
        key
        for properties in named
        for key, each in properties.items()
        if "description" not in each and key not in {"store", "use"}
    }
    assert silent == set()


def test_the_schema_knows_every_plugin() -> None:
    properties = SCHEMA["properties"]
    agents = properties["agents"]["additionalProperties"]["anyOf"]
    assert [set(points.agent) & set(each["properties"]) for each in agents] == [
        {name} for name in points.agent
    ]
    criteria = properties["criteria"]["properties"]
    for name in points.criterion:
        assert name in criteria
        assert "@" in name or name.removeprefix("adk/") in criteria
    names, with_options = properties["reports"]["items"]["anyOf"]
    assert names == {"enum": list(points.reporter)}
    assert list(with_options["properties"]) == names["enum"]
    stores = properties["baseline"]["anyOf"]
    assert [each["properties"]["store"] for each in stores[:-1]] == [
        {"const": name} for name in points.baseline
    ]


def test_a_measure_takes_no_threshold_in_the_schema_either() -> None:
    criteria = SCHEMA["properties"]["criteria"]["properties"]
    assert criteria["adk/response_match_score"]["anyOf"][0] == {"type": "number"}
    assert criteria["tool_call_count_v1"]["anyOf"][0] == {"type": "null"}


@cache
def validator() -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(SCHEMA)


def allowed(section: dict[str, Any]) -> bool:
    """Return True if the schema allows a configuration with these keys."""
    base = {"agents": {"a": {"recorded": "t.jsonl"}}, "evalsets": {"e": "e.json"}}
    return bool(validator().is_valid({**base, **section}))


def loadable(section: dict[str, Any], folder: Path) -> bool:
    """Return True if a configuration with these keys can be loaded."""
    base = {"agents": {"a": {"recorded": "t.jsonl"}}, "evalsets": {"e": "e.json"}}
    (folder / "t.jsonl").touch()
    path = folder / "ci-eval.yaml"
    path.write_text(json.dumps({**base, **section}))
    try:
        load(
            path, shown="c", context=RunContext(env=dict(os.environ), root=folder, now=lambda: 0.0)
        )
    except ConfigError:
        return False
    return True


ADK_RUBRIC = {"rubric_id": "r", "rubric_content": {"text_property": "p"}}
AGENTFLOW_RUBRIC = {"rubric_id": "r", "content": "p"}


@pytest.mark.parametrize(
    ("section", "sound"),
    [
        ({"criteria": {"response_match_score": 0.5}}, True),
        ({"criteria": {"response_match_score": {"threshold": 0.5}}}, True),
        ({"criteria": {"adk/response_match_score": {}}}, False),
        ({"criteria": {"response_match_score": "high"}}, False),
        ({"criteria": {"response_match_score": {"threshold": 1, "treshold": 1}}}, False),
        ({"criteria": {"agentflow/response_match_score": None}}, True),
        ({"criteria": {"adk/response_match_score": None}}, False),
        ({"criteria": {"adk@2.3/response_match_score": 0.5}}, True),
        ({"criteria": {"rouge_match": None}}, True),
        ({"criteria": {"trajectory": {"check_args": True, "partial": True}}}, True),
        ({"criteria": {"trajectory_match": 0.5, "node_order": 1, "hallucination": {}}}, True),
        ({"criteria": {"node_order": {"check_args": True}}}, False),
        ({"criteria": {"rubric_based": 0.8}}, False),
        ({"criteria": {"rubric_based": {"rubrics": [AGENTFLOW_RUBRIC]}}}, True),
        ({"criteria": {"rubric_based": {"rubrics": [ADK_RUBRIC]}}}, False),
        (
            {
                "criteria": {
                    "rubric_based_tool_use_quality_v1": {"threshold": 1, "rubrics": [ADK_RUBRIC]}
                }
            },
            True,
        ),
        ({"criteria": {"ci/python": {"python": "a:b"}}}, True),
        ({"criteria": {"ci/python": {"threshold": 1}}}, False),
        ({"criteria": {"ci/python": 1}}, False),
        ({"criteria": {"mine": {"use": "response_match_score", "threshold": 1}}}, True),
        ({"criteria": {"mine": {"threshold": 1}}}, False),
        ({"preset": "regression"}, True),
        ({"preset": ["regression", {"tool_usage": {"threshold": 0.5}}]}, True),
        ({"preset": {"quality": {"rubrics": [ADK_RUBRIC]}}}, True),
        ({"preset": "regresion"}, False),
        ({"preset": {"tool_usage": {"threshold": 2}}}, False),
        ({"preset": {"quality": {"rubrics": []}}}, False),
        ({"preset": 5}, False),
        ({}, False),
    ],
)
def test_the_schema_allows_what_can_be_loaded_and_refuses_what_cannot(
    section: dict[str, Any], sound: bool, tmp_path: Path
) -> None:
    assert (allowed(section), loadable(section, tmp_path)) == (sound, sound)


@pytest.mark.parametrize("name", list(points.criterion))
def test_the_schema_allows_the_example_of_each_criterion_under_all_its_names(name: str) -> None:
    model = points.criterion[name]
    needs_one = model.takes_threshold == "always"
    example = {**model.example, **({"threshold": 1.0} if needs_one else {})}
    short = [name.rpartition("/")[2], *model.aliases] if "@" not in name else []
    for each in (name, *short):
        assert allowed({"criteria": {each: example}})


@pytest.mark.parametrize("name", list(PRESETS))
def test_the_schema_allows_the_example_of_each_preset(name: str) -> None:
    assert allowed({"preset": {name: dict(PRESETS[name].example)}})


def test_a_name_of_several_meanings_is_described_by_all_of_them() -> None:
    criteria = SCHEMA["properties"]["criteria"]["properties"]
    for name in AMBIGUOUS:
        description = criteria[name]["description"]
        assert f"adk/{name}: " in description
        assert f"agentflow/{name}: " in description
    assert "agentflow/safety_v1" not in criteria["adk/safety_v1"]["description"]
    assert criteria["trajectory"]["description"].startswith("agentflow/tool_trajectory_avg_score: ")


def test_models_in_a_plugin_are_described_at_the_top_of_the_schema() -> None:
    shared: dict[str, Any] = {}
    schema = reference._schema_of(Outer, shared)
    assert schema["properties"]["parts"]["items"] == {"$ref": "#/$defs/Inner"}
    assert "$defs" not in schema
    assert shared["Inner"]["properties"]["size"]["description"] == "How large it is, in metres."


class Deep(Record):
    """Something with parts by name."""

    parts: dict[str, dict[str, Inner | int]]
    """What it is made of."""


def test_models_deep_inside_a_field_are_described_too() -> None:
    shared: dict[str, Any] = {}
    reference._schema_of(Deep, shared)
    assert shared["Inner"]["properties"]["size"]["description"] == "How large it is, in metres."


def test_what_the_schema_has_as_a_default_is_one(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").touch()
    text = "agents: {a: {recorded: t.jsonl}}\nevalsets: {e: e.json}\n"
    text += "criteria: {response_match_score: 1}\n"
    context = RunContext(env={}, root=tmp_path, now=lambda: 0.0)
    path = tmp_path / "ci-eval.yaml"
    path.write_text(text)
    bare = load(path, shown="ci-eval.yaml", context=context)
    defaults = {
        key: each["default"] for key, each in SCHEMA["$defs"]["RunOptions"]["properties"].items()
    }
    path.write_text(text + f"run: {json.dumps(defaults)}\n")
    assert load(path, shown="ci-eval.yaml", context=context).run == bare.run
