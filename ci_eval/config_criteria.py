"""The `criteria:` of a configuration, and ADK's own `test_config.json`."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ci_eval import plugins
from ci_eval.documents import MAX_CONFIG, Document, Loc, contained, read_text
from ci_eval.errors import Problem, Severity, UnknownPluginError, UsageError
from ci_eval.explain import describe, explain
from ci_eval.json_text import JsonText, parse_relaxed
from ci_eval.plugins import AnyCriterion
from ci_eval.registry import did_you_mean
from ci_eval.world import World

_EVAL_CONFIG_KEYS = ("criteria", "custom_metrics", "user_simulator_config", "live_model_config")
_BASE = {"adk@2.3": "adk"}
"""What a dialect shares with another is found there."""
_OF_ADK = frozenset(
    {
        "final_response_match_v2",
        "hallucinations_v1",
        "multi_turn_task_success_v1",
        "multi_turn_tool_use_quality_v1",
        "multi_turn_trajectory_quality_v1",
        "per_turn_user_simulator_quality_v1",
        "response_evaluation_score",
        "rubric_based_final_response_quality_v1",
        "rubric_based_multi_turn_trajectory_quality_v1",
        "rubric_based_tool_use_quality_v1",
        "safety_v1",
    }
)
"""Names that mean something in ADK, so that nobody is told to have misspelt them."""


class CriteriaReader:
    """Reads criteria from one document, collecting what is wrong."""

    def __init__(self, document: Document | JsonText, dialect: str, *, lenient: bool) -> None:
        self.found: dict[str, AnyCriterion] = {}
        self.problems: list[Problem] = []
        self._document = document
        self._dialect = dialect
        self._lenient = lenient
        """Whether options that nothing reads are only warned of, as ADK keeps them."""

    def add(self, name: str, spec: Any, loc: Loc) -> None:
        """Read the criterion that the user calls `name`."""
        given = _as_options(spec)
        if given is None:
            self.problem(f"expected a threshold or options, found {describe(spec)}", loc)
            return
        named, named_at = name, loc
        if "use" in given and not self._lenient:
            named, named_at = str(given.pop("use")), (*loc, "use")
        try:
            model = resolve(named, self._dialect)
        except UnknownPluginError as exc:
            self.problem(str(exc), named_at)
            return
        if self._lenient:
            given = self._without_unread(model, given, loc)
        try:
            self.found[name] = model.model_validate(given)
        except ValidationError as exc:
            for inner, message in explain(exc, model):
                self.problem(message, (*loc, *inner))

    def problem(self, message: str, loc: Loc, *, warning: bool = False) -> None:
        """Note what is wrong at `loc`."""
        severity: Severity = "warning" if warning else "error"
        self.problems.append(self._document.problem(message, loc, severity=severity))

    def _without_unread(
        self, model: type[AnyCriterion], given: dict[str, Any], loc: Loc
    ) -> dict[str, Any]:
        """Drop the options that no field is like; those that look misspelt stay, as errors."""
        fields = [*model.model_fields]
        aliases = [info.alias for info in model.model_fields.values() if info.alias]
        kept = {}
        for key, value in given.items():
            ending = did_you_mean(key, fields)
            if key in fields or key in aliases or ending.startswith("."):
                kept[key] = value
            else:
                self.problem("an option that nothing reads, ignored", (*loc, key), warning=True)
        return kept


def resolve(name: str, dialect: str) -> type[AnyCriterion]:
    """Return the criterion that `name` means in `dialect`.

    Raises:
        UnknownPluginError: there is none.

    """
    if "/" in name:
        return plugins.criterion[name]
    for prefix in filter(None, (dialect, _BASE.get(dialect))):
        qualified = f"{prefix}/{name}"
        if qualified in plugins.criterion:
            found = plugins.criterion[qualified]
            if dialect in found.absent_in:
                raise UnknownPluginError(f"the dialect {dialect!r} does not know this criterion")
            return found
    if name in _OF_ADK:
        raise UnknownPluginError("a criterion of ADK's that this version does not have yet")
    short = [known.removeprefix("adk/") for known in plugins.criterion if "@" not in known]
    raise UnknownPluginError(f"unknown criterion{did_you_mean(name, short)}")


def read_criteria(
    document: Document, loc: Loc, *, dialect: str, world: World
) -> tuple[dict[str, AnyCriterion], list[Problem]]:
    """Return the criteria that stand at `loc` in `document`, and what is wrong with them."""
    reader = CriteriaReader(document, dialect, lenient=False)
    entries: Any = document.value
    for step in loc:
        entries = entries[step]
    from_file: dict[str, AnyCriterion] = {}
    for name, spec in entries.items():
        if name != "from":
            reader.add(name, spec, (*loc, name))
        elif not isinstance(spec, str):
            reader.problem(f"expected a path, found {describe(spec)}", (*loc, name))
        else:
            try:
                path, shown = contained(world.root, spec), world.shown(spec)
                from_file, problems = read_eval_config(path, shown=shown, dialect=dialect)
                reader.problems += problems
            except UsageError as exc:
                reader.problem(f"{spec} cannot be read", (*loc, name))
                reader.problems += exc.problems
    return {**from_file, **reader.found}, reader.problems


def read_eval_config(
    path: Path, *, shown: str, dialect: str
) -> tuple[dict[str, AnyCriterion], list[Problem]]:
    """Read ADK's EvalConfig at `path`: its criteria, and what is wrong with it.

    Comments and trailing commas, which ADK refuses, are read with a warning.

    Raises:
        UsageError: it cannot be read, or is no JSON.

    """
    document, relaxed = parse_relaxed(read_text(path, shown=shown, most=MAX_CONFIG), shown=shown)
    reader = CriteriaReader(document, dialect, lenient=True)
    reader.problems += relaxed
    value = document.value
    if not isinstance(value, dict):
        reader.problem(f"expected an object, found {describe(value)}", ())
        return {}, reader.problems
    for key in value:
        if _snake(key) not in _EVAL_CONFIG_KEYS:
            ending = did_you_mean(key, _EVAL_CONFIG_KEYS)
            reader.problem(f"unknown key, which ADK ignores{ending}", (key,), warning=True)
    custom = value.get("custom_metrics", value.get("customMetrics"))
    criteria = value.get("criteria")
    if not isinstance(criteria, Mapping) or not criteria:
        odd = criteria is not None and not isinstance(criteria, Mapping)
        found = f"expected an object, found {describe(criteria)}" if odd else "names no criteria"
        reader.problem(f"{found}, so nothing would be measured", ("criteria",))
        return {}, reader.problems
    for name, spec in criteria.items():
        if isinstance(custom, Mapping) and name in custom:
            message = "a metric of your own code, which this version does not run"
            reader.problem(message, ("criteria", name))
        else:
            reader.add(name, _threshold_too(spec), ("criteria", name))
    return reader.found, reader.problems


def _as_options(spec: Any) -> dict[str, Any] | None:
    if spec is None:
        return {}
    if isinstance(spec, int | float) and not isinstance(spec, bool):
        return {"threshold": spec}
    return dict(spec) if isinstance(spec, Mapping) else None


def _threshold_too(spec: Any) -> Any:
    """Return a threshold that ADK takes although it is no number: true, or digits in quotes."""
    if not isinstance(spec, bool | str):
        return spec
    try:
        number = float(spec)
    except ValueError:
        return spec
    return number if math.isfinite(number) else spec


def _snake(key: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", lambda found: "_" + found[0].lower(), key)
