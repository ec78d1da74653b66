"""Plugin reference, generated from the plugins: lists, pages, JSON schema."""

import ast
import importlib
import inspect
import itertools
import typing
from collections.abc import Iterable, Iterator
from functools import cache
from textwrap import wrap
from typing import Any

from pydantic import BaseModel

from ci_eval.config.config_schema import ConfigFile, EvalSetSpec, RunOptions
from ci_eval.config.presets import PRESETS
from ci_eval.llm.judge_settings import JudgeOptions
from ci_eval.plugins import points
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.plugins.registry import Registry
from ci_eval.records.errors import UsageError
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.validation_messages import written

KINDS: dict[str, Registry[Any]] = {
    point.package.removeprefix("ci_eval."): point for point in points.POINTS
}
"""The registries, by the names of their packages."""
_PRESETS = "presets"


def catalogue(kind: str | None = None, *, options: bool = True) -> dict[str, list[dict[str, Any]]]:
    """Return all plugins and presets, or those of one kind, with descriptions and options.

    Raises:
        UsageError: there is no such kind.

    """
    models: dict[str, dict[str, type[BaseModel]]] = {
        name: {each: registry[each] for each in registry} for name, registry in KINDS.items()
    }
    models[_PRESETS] = {**PRESETS}
    if kind is not None and kind not in models:
        raise UsageError(f"unknown kind {kind!r}{did_you_mean(kind, models)}")
    return {
        of: [_entry(name, model, options=options) for name, model in found.items()]
        for of, found in models.items()
        if kind in (None, of)
    }


def _entry(name: str, model: type[BaseModel], *, options: bool) -> dict[str, Any]:
    summary, _, rest = inspect.cleandoc(model.__doc__ or "").partition("\n\n")
    entry: dict[str, Any] = {
        "name": name,
        "summary": " ".join(summary.split()),
        "description": " ".join(rest.split()),
    }
    if options:
        entry["options"] = options_of(model)
    if issubclass(model, AnyCriterion):
        entry |= {
            **{name: getattr(model, name) for name in _YES_OR_NO},
            "interval": model.interval,
            "higher_is_better": model.better == "higher",
            "takes_threshold": model.takes_threshold,
            "informational": model.takes_threshold == "never",
        }
    return entry


def options_of(model: type[BaseModel]) -> dict[str, dict[str, Any]]:
    """Return the schema and description of each field of `model`."""
    described = descriptions(model)
    schema = _json_schema(model)
    return {
        name: {"description": described.get(name, ""), **_without_title(each)}
        for name, each in schema.get("properties", {}).items()
    }


def _json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return pydantic's schema of `model`, keyed by the names used in files.

    These are the field names, not ADK's aliases; only a field that could
    not have its name, because pydantic reserves it, uses its alias.
    """
    schema = model.model_json_schema(by_alias=False)
    for name in model.model_fields:
        if (key := written(model, name)) != name:
            schema["properties"][key] = schema["properties"].pop(name)
            needed = schema.get("required", [])
            schema["required"] = [key if each == name else each for each in needed]
    return schema


def _without_title(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "title"}


def descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Return the field docstrings of `model` and its bases.

    Pydantic can collect them too, but reads the source at every start to do so.
    """
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            found |= _of_module(base.__module__).get(base.__qualname__, {})
    aliases = {name: info.alias for name, info in model.model_fields.items() if info.alias}
    return found | {alias: found[name] for name, alias in aliases.items() if name in found}


@cache
def _of_module(name: str) -> dict[str, dict[str, str]]:
    """Return the field docstrings of each class in a module."""
    tree = ast.parse(inspect.getsource(importlib.import_module(name)))
    return {
        statement.name: dict(_described(statement.body))
        for statement in tree.body
        if isinstance(statement, ast.ClassDef)
    }


def _described(statements: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, text in itertools.pairwise(statements):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
        ):
            yield field.target.id, " ".join(str(text.value.value).split())


# --- As text ----------------------------------------------------------------------------------


def table(found: dict[str, list[dict[str, Any]]], width: int) -> str:
    """Return a catalogue as text for a terminal of `width` columns."""
    sections = (_section(kind, entries, width) for kind, entries in found.items())
    return "\n".join(itertools.chain.from_iterable(sections))


def _section(kind: str, entries: list[dict[str, Any]], width: int) -> Iterator[str]:
    heads = FACTS if kind == "criteria" else ()
    rows = [(kind, *heads, "")]
    rows += [(f"  {each['name']}", *facts(each), each["summary"]) for each in entries]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    for row in rows:
        cells = "  ".join(cell.ljust(each) for cell, each in zip(row, widths, strict=False))
        if len(cells) + 2 + len(row[-1]) <= width:
            yield f"{cells}  {row[-1]}".rstrip()
        else:
            yield cells.rstrip()
            yield from wrap(row[-1], width, initial_indent=_INDENT, subsequent_indent=_INDENT)
    yield ""


_INDENT = " " * 6


FACTS = ("reference", "rubrics", "judge", "simulation", "values")
"""Table heads: what a criterion compares with, needs, asks, scores and returns."""
_YES_OR_NO = ("needs_reference", "needs_rubrics", "judged", "supports_scenario")
"""The attributes of a criterion under all heads but the last."""


def facts(entry: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of a criterion under `FACTS`; empty for other plugins."""
    if "judged" not in entry:
        return ()
    said = ["yes" if entry[name] else "no" for name in _YES_OR_NO]
    interval = entry["interval"]
    values = f"{interval[0]:g} to {interval[1]:g}" if interval else "any"
    direction = "" if entry["higher_is_better"] else ", lower is better"
    shown = " (shown only)" if entry["informational"] else ""
    return (*said, f"{values}{direction}{shown}")


# --- As a schema ------------------------------------------------------------------------------


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a configuration, including all plugins."""
    shared: dict[str, Any] = {}
    schema = _schema_of(ConfigFile, shared)
    properties = schema["properties"]
    agents = [_plugin_schema(points.agent[name], shared) for name in points.agent]
    properties["agents"]["additionalProperties"] = {"anyOf": agents}
    evalset = {"anyOf": [{"type": "string"}, _schema_of(EvalSetSpec, shared)]}
    properties["evalsets"]["additionalProperties"] = evalset
    properties["criteria"] |= _criteria_schema(shared)
    properties["preset"] |= _presets_schema(shared)
    properties["judge"] |= _judge_schema(shared)
    properties["simulator"] |= _simulator_schema(shared)
    engines = [_engine_schema(name, shared) for name in points.engine]
    properties["run"] = {**properties["run"], "anyOf": engines}
    properties["run"].pop("$ref", None)
    stores = [_store_schema(name, shared) for name in points.baseline]
    properties["baseline"] = {**properties["baseline"], "anyOf": [*stores, {"type": "null"}]}
    properties["reports"]["items"] = {"anyOf": [{"enum": list(points.reporter)}, _reports(shared)]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "$defs": shared,
        "title": "ci-eval configuration",
        "anyOf": [{"required": ["criteria"]}, {"required": ["preset"]}],
    }


def _schema_of(model: type[BaseModel], shared: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of `model`; nested models go to `shared`."""
    schema = _json_schema(model)
    inner = schema.pop("$defs", {})
    for each in _models_in(model):
        of_each = schema if each is model else inner[each.__name__]
        for name, text in descriptions(each).items():
            if name in of_each["properties"]:
                of_each["properties"][name]["description"] = text
    shared |= inner
    return schema


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in a type, and those used in their fields."""
    parts: Iterable[Any] = typing.get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        parts = (info.annotation for info in annotation.model_fields.values())
    for part in parts:
        yield from _models_in(part)


def _plugin_schema(model: type[BaseModel], shared: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a plugin or a preset, with its description."""
    schema = _schema_of(model, shared)
    return {**schema, "description": inspect.cleandoc(model.__doc__ or "")}


def _judge_schema(shared: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of `judge:`: common options and those of one provider."""
    asking = _schema_of(JudgeOptions, shared)["properties"]
    blocks, jurors = [], []
    for name in points.judge:
        schema = _plugin_schema(points.judge[name], shared)
        own = {**schema["properties"], "provider": {**asking["provider"], "const": name}}
        jurors.append({**schema, "properties": own})
        blocks.append({**schema, "properties": {**asking, **own}})
    jury = {**asking["jury"], "items": {"anyOf": jurors}}
    for block in blocks:
        block["properties"]["jury"] = jury
    return {"anyOf": [*blocks, {"type": "null"}]}


def _simulator_schema(shared: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of `simulator:`: options of one type and of one provider."""
    blocks = []
    for name in points.simulator:
        schema = _plugin_schema(points.simulator[name], shared)
        for provider in points.judge:
            theirs = _plugin_schema(points.judge[provider], shared)["properties"]
            named = {
                "type": {"const": name, "description": "Type of simulator."},
                "provider": {
                    "const": provider,
                    "description": "Model provider (default: the judge's).",
                },
            }
            blocks.append({**schema, "properties": {**theirs, **schema["properties"], **named}})
    return {"anyOf": [*blocks, {"type": "null"}]}


def _store_schema(name: str, shared: dict[str, Any]) -> dict[str, Any]:
    schema = _plugin_schema(points.baseline[name], shared)
    schema["properties"] = {"store": {"const": name}, **schema["properties"]}
    return schema


def _engine_schema(name: str, shared: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of `run:`: options of all runs and those of one engine."""
    schema = _plugin_schema(points.engine[name], shared)
    all_runs = _schema_of(RunOptions, shared)["properties"]
    named = {"engine": {**all_runs["engine"], "const": name}}
    required = {} if name == all_runs["engine"]["default"] else {"required": ["engine"]}
    return {**schema, **required, "properties": {**all_runs, **schema["properties"], **named}}


def _reports(shared: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a report with options."""
    named = {name: _plugin_schema(points.reporter[name], shared) for name in points.reporter}
    return {"type": "object", "properties": named, "additionalProperties": False}


def _criteria_schema(shared: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the criteria, under qualified and bare names."""
    named: dict[str, Any] = {
        "from": {"type": "string", "description": "The eval config of ADK or of AgentFlow."}
    }
    bare: dict[str, dict[str, dict[str, Any]]] = {}
    for name in points.criterion:
        model = points.criterion[name]
        schema = _criterion_schema(model, shared)
        named[name] = schema
        for short in (name.rpartition("/")[2], *model.aliases) if "@" not in name else ():
            bare.setdefault(short, {})[name] = schema
    for short, meanings in bare.items():
        named[short] = {
            "anyOf": [each for schema in meanings.values() for each in schema["anyOf"]],
            "description": "\n\n".join(
                f"{name}: {schema['description']}" for name, schema in meanings.items()
            ),
        }
    own = {"type": "object", "required": ["use"], "properties": {"use": {"type": "string"}}}
    return {"properties": named, "additionalProperties": own}


def _criterion_schema(model: type[AnyCriterion], shared: dict[str, Any]) -> dict[str, Any]:
    schema = _plugin_schema(model, shared)
    needed = schema.get("required", [])
    default = model.model_fields["threshold"].default
    needs_threshold = model.takes_threshold == "always" and default is None
    if needs_threshold:
        schema["required"] = ["threshold", *needed]
    number = [] if needed or model.takes_threshold == "never" else [{"type": "number"}]
    empty = [] if needed or needs_threshold else [{"type": "null"}]
    return {"anyOf": [*number, *empty, schema], "description": schema["description"]}


def _presets_schema(shared: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of `preset:`: a name, a name with options, or a list of these."""
    options = {name: _plugin_schema(model, shared) for name, model in PRESETS.items()}
    one = [
        {"enum": list(PRESETS)},
        {"type": "object", "properties": options, "additionalProperties": False},
    ]
    return {"anyOf": [*one, {"type": "array", "items": {"anyOf": one}}, {"type": "null"}]}
