"""Eval configs of other tools: ADK's `test_config.json` and AgentFlow's EvalConfig.

Both contain `{"criteria": {name: …}}`, and four names mean different things in the two.  So the
dialect of a file is inferred from its content, or else taken from the configuration; failing both,
the file name `test_config.json` means ADK.

AgentFlow's files have two forms: up to version 0.7.4 the keys are names of criteria; from 0.7.5.1
on they are slots, null if unused.

ADK's `custom_metrics` name the code of criteria of the same name; that code is neither imported nor
looked up here, because it may be installed only where it runs.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from ci_eval.config.criterion_names import AMBIGUOUS, NAME, NO_NAME, Dialect, belongs_to, resolve
from ci_eval.config.eval_config_keys import (
    ADK_KEYS,
    AGENTFLOW_KEYS,
    CRITERION_DEFAULTS,
    SIMULATOR_DEFAULTS,
    replaced,
    snake,
    unheeded,
)
from ci_eval.plugins import points
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.plugins.points import Simulator
from ci_eval.records.cases import AdkRecord, Json
from ci_eval.records.errors import Problem, Severity, UnknownPluginError, UsageError
from ci_eval.text.json_text import JsonText, is_number, parse_relaxed
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.validation_messages import describe, read_as
from ci_eval.text.yaml_files import MAX_CONFIG, Loc, read_text

M = TypeVar("M", bound=BaseModel)

_OPTIONS_OF_ADK = frozenset(
    {
        *("judge_model_options", "ignore_args", "stop_signal", "rubric_type"),
        *("evaluate_intermediate_nl_responses", "include_intermediate_responses_in_final"),
    }
)
_OF_SIMULATORS = {"model_configuration": "settings"}
"""Keys that have another name in ci-eval."""
_TIMEOUT_S = 300.0
_CONCURRENCY = 4
"""AgentFlow's defaults."""
_LONGEST_S = 1e9
_OF_AGENTS_CLI = re.compile(r'(?m)^(?:(?:metrics_to_run|custom_metrics):|[ \t]*"metrics_to_run")')
"""A key of agents-cli, whose eval configs are YAML; ADK's `custom_metrics` is in quotes."""
_NO_JUDGE: Mapping[str, Any] = MappingProxyType({})


@dataclass
class EvalConfigFile:
    """The content of an eval config."""

    dialect: Dialect | None = None
    """The dialect of the file; `None` if unknown."""
    unclear: bool = False
    """Whether the dialect is unknown and a name in the file depends on it."""
    criteria: dict[str, AnyCriterion] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    run: dict[str, float] = field(default_factory=dict)
    """Options as in `run:` of a configuration."""
    mock: bool = False
    """Whether no agent is to be run."""
    simulator: Simulator | None = None
    """The simulated user for scenarios, if the file configures one."""


class _CodeConfig(AdkRecord):
    """The code of a custom metric."""

    name: str


class _CustomMetric(AdkRecord):
    """A custom metric in ADK's file."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")

    code_config: _CodeConfig
    metric_info: Json = None
    description: str = ""


def read_eval_config(
    path: Path,
    *,
    shown: str,
    dialect: Dialect | None,
    interpreter: str | None = None,
    judge: Mapping[str, Any] = _NO_JUDGE,
) -> EvalConfigFile:
    """Read the eval config at `path`: its criteria, and its problems.

    `dialect` is the user's choice, if any.  Comments and trailing commas, which ADK does not
    accept, cause warnings.  `interpreter` is the Python that runs custom metrics.  `judge` is the
    block of the configuration; its model and number of samples replace AgentFlow's defaults,
    because AgentFlow writes these into every file.

    Raises:
        UsageError: the file cannot be read, is not JSON, or is of agents-cli.

    """
    text = read_text(path, shown=shown, most=MAX_CONFIG)
    if found := _OF_AGENTS_CLI.search(text):
        message = (
            "is an eval config of agents-cli, which is not read; write its metrics under "
            "`criteria:`, a function as `ci/python`, a prompt as rubrics"
        )
        raise UsageError(message, file=shown, line=1 + text.count("\n", 0, found.start()))
    document, relaxed = parse_relaxed(text, shown=shown)
    reader = _Reader(document, interpreter, judge)
    reader.file.problems += relaxed
    value = document.value
    if not isinstance(value, dict):
        reader.problem(f"expected an object, found {describe(value)}", ())
        return reader.file
    inferred = dialect_of(value)
    if inferred == "adk" and dialect == "adk@2.3":
        inferred = dialect  # the user chose the version of ADK
    reader.file.dialect = (
        inferred or dialect or ("adk" if path.name == "test_config.json" else None)
    )
    reader.read(value)
    return reader.file


def dialect_of(value: Mapping[str, Any]) -> Dialect | None:
    """Return the dialect of the eval config `value`; `None` if it is ambiguous."""
    signs = set(_signs(value))
    return signs.pop() if len(signs) == 1 else None


def _signs(value: Mapping[str, Any]) -> Iterator[Dialect]:
    """Yield the dialect of each feature in the file that only one dialect has."""
    keys = {snake(key) for key in value}
    if keys & {"custom_metrics", "live_model_config"} or keys - value.keys():
        yield "adk"
    if keys & (set(AGENTFLOW_KEYS) - set(ADK_KEYS)):
        yield "agentflow"
    criteria = value.get("criteria")
    for name, spec in criteria.items() if isinstance(criteria, Mapping) else ():
        of_adk, of_agentflow = belongs_to(name, "adk"), belongs_to(name, "agentflow")
        if of_adk != of_agentflow:
            yield "adk" if of_adk else "agentflow"
        yield from _signs_of(spec)


def _signs_of(spec: Any) -> Iterator[Dialect]:
    if isinstance(spec, int | float | str):
        yield "adk"
    if not isinstance(spec, Mapping):
        return
    match_type = spec.get("match_type")
    if {snake(key) for key in spec} & _OPTIONS_OF_ADK or spec.keys() - set(map(snake, spec)):
        yield "adk"
    elif spec.keys() & (CRITERION_DEFAULTS.keys() - {"threshold", "match_type", "rubrics"}):
        yield "agentflow"
    if match_type is not None and match_type not in ("EXACT", "IN_ORDER", "ANY_ORDER"):
        yield "adk"
    rubrics = spec.get("rubrics")
    for rubric in rubrics if isinstance(rubrics, list) else ():
        if isinstance(rubric, Mapping) and {"rubric_content", "content"} & rubric.keys():
            yield "adk" if "rubric_content" in rubric else "agentflow"


class _Reader:
    def __init__(
        self, document: JsonText, interpreter: str | None, judge: Mapping[str, Any]
    ) -> None:
        self._document = document
        self._interpreter = interpreter
        self._judge = judge
        self.file = EvalConfigFile()

    def read(self, value: Mapping[str, Any]) -> None:
        """Read the whole file."""
        is_agentflow = self.file.dialect == "agentflow"
        self._check_keys(value, AGENTFLOW_KEYS if is_agentflow else ADK_KEYS, ())
        for key, message, severity in unheeded(value, is_agentflow=is_agentflow):
            self.problem(message, (key,), severity=severity)
        if is_agentflow:
            self._read_run(value)
        self._read_simulator(value)
        criteria = value.get("criteria")
        if is_agentflow and isinstance(criteria, Mapping):
            criteria = {name: spec for name, spec in criteria.items() if spec is not None}
        if not isinstance(criteria, Mapping) or not criteria:
            found = "lists no criteria"
            if not isinstance(criteria, Mapping | None):
                found = f"expected an object, found {describe(criteria)}"
            self.problem(f"{found}, so nothing would be measured", ("criteria",))
            return
        custom = {} if is_agentflow else self._custom_metrics(value, criteria)
        for name, spec in criteria.items():
            if name in custom:
                self._read_custom(name, spec, *custom[name])
            else:
                self._read_one(name, spec, ("criteria", name))

    def problem(self, message: str, loc: Loc, *, severity: Severity = "error") -> None:
        """Add a problem at `loc`."""
        self.file.problems.append(self._document.problem(message, loc, severity=severity))

    def _check_keys(self, value: Mapping[str, Any], known: tuple[str, ...], loc: Loc) -> None:
        whose = "AgentFlow" if known is AGENTFLOW_KEYS else "ADK"
        for key in value:
            if snake(key) not in known:
                message = f"unknown key, which {whose} ignores{did_you_mean(key, known)}"
                self.problem(message, (*loc, key), severity="warning")

    def _object(self, value: Mapping[str, Any], name: str) -> tuple[str, Mapping[str, Any]]:
        """Return the key `name` as the file spells it, and its object; empty without one."""
        key = to_camel(name) if to_camel(name) in value else name
        found = {} if value.get(key) is None else value[key]
        if isinstance(found, Mapping):
            return key, found
        self.problem(f"expected an object, found {describe(found)}", (key,))
        return key, {}

    def _custom_metrics(
        self, value: Mapping[str, Any], criteria: Mapping[str, Any]
    ) -> dict[str, tuple[Any, Loc]]:
        """Return the entry of each custom metric, and its location."""
        key, entries = self._object(value, "custom_metrics")
        for name in entries:
            if name not in criteria:
                suggestion = did_you_mean(name, criteria)
                message = f"no criterion has this name, so it never runs{suggestion}"
                self.problem(message, (key, name), severity="warning")
        return {name: (entry, (key, name)) for name, entry in entries.items()}

    def _read_custom(self, name: str, spec: Any, entry: Any, at: Loc) -> None:
        """Read the custom criterion `name`; `entry` at `at` names its code."""
        loc: Loc = ("criteria", name)
        given = _options(spec)
        if given is None:
            self.problem(f"expected a threshold or options, found {describe(spec)}", loc)
        elif given.get("threshold") is None:
            self.problem("needs a threshold", loc)
        elif not NAME.fullmatch(name.replace("/", "", 1)):
            self.problem(NO_NAME, loc)
        else:
            metric = self._validated(_CustomMetric, entry, lambda inner: (*at, *inner))
            if metric is not None:
                self._check_keys(entry, tuple(_CustomMetric.model_fields), at)
                self._make_custom(name, given, metric, at)

    def _make_custom(
        self, name: str, given: Mapping[str, Any], metric: _CustomMetric, at: Loc
    ) -> None:
        if belongs_to(name, "adk"):
            message = "replaces ADK's criterion of the same name, as in ADK"
            self.problem(message, at, severity="warning")
        options = {
            "code": metric.code_config.name,
            "metric_name": name,
            "threshold": given["threshold"],
            "criterion": {key: value for key, value in given.items() if key != "threshold"},
            "interpreter": self._interpreter,
        }
        if metric.metric_info is not None:
            options["metric_info"] = metric.metric_info
        places: dict[int | str, Loc] = {
            "code": (*at, "code_config", "name"),
            "metric_info": (*at, "metric_info"),
        }

        def place_of(inner: Loc) -> Loc:
            return (*places.get(next(iter(inner), ""), ("criteria", name)), *inner[1:])

        found = self._validated(resolve("adk/custom_metric", "adk"), options, place_of)
        if found is not None:
            self.file.criteria[name] = found

    def _validated(self, model: type[M], value: Any, place_of: Callable[[Loc], Loc]) -> M | None:
        """Validate `value` as `model`; add problems at their location in the file."""
        return read_as(model, value, lambda message, at: self.problem(message, place_of(at)))

    def _read_run(self, value: Mapping[str, Any]) -> None:
        """Read AgentFlow's options for running the cases."""
        timeout = value.get("timeout", _TIMEOUT_S)
        parallel = self._switch(value, "parallel")
        at_once = value.get("max_concurrency", _CONCURRENCY) if parallel else 1
        self.file.mock = self._switch(value, "mock_mode")
        if is_number(timeout) and 0 < timeout <= _LONGEST_S:
            self.file.run["timeout_s"] = timeout
        else:
            self.problem(f"expected seconds, found {describe(timeout)}", ("timeout",))
        if is_number(at_once) and at_once in range(1, 10_001):
            self.file.run["concurrency"] = int(at_once)
        else:
            message = f"expected a number from 1 to 10000, found {describe(at_once)}"
            self.problem(message, ("max_concurrency",))

    def _read_simulator(self, value: Mapping[str, Any]) -> None:
        """Read the simulated user for scenarios."""
        key, given = self._object(value, "user_simulator_config")
        kind = given.get("type") or "llm_backed"
        if kind != "llm_backed":
            message = f"only 'llm_backed' users are supported, found {describe(kind)}"
            self.problem(message, (key, "type"))
            return
        model = points.simulator["agentflow" if self.file.dialect == "agentflow" else kind]
        keys = {_OF_SIMULATORS.get(snake(each), snake(each)): each for each in given}
        options = {ours: given[each] for ours, each in keys.items() if ours != "type"}
        wanted = self._without_unread(model, options, (key,), SIMULATOR_DEFAULTS)
        if wanted:
            self.file.simulator = self._validated(
                model, wanted, lambda inner: (key, *(keys.get(str(each), each) for each in inner))
            )

    def _switch(self, value: Mapping[str, Any], key: str) -> bool:
        if not isinstance(switch := value.get(key, False), bool):
            self.problem(f"expected true or false, found {describe(switch)}", (key,))
        return switch is True

    def _read_one(self, name: str, spec: Any, loc: Loc) -> None:
        if (given := _options(spec)) is None:
            self.problem(f"expected a threshold or options, found {describe(spec)}", loc)
            return
        if spec is False or given.get("threshold") is False:
            self.problem("`false` is 0; to disable it, remove it", loc, severity="warning")
        if self.file.dialect is None and name in AMBIGUOUS:
            self.file.unclear = True
            message = (
                "has different meanings in ADK and AgentFlow, and the file does not show which is "
                "meant; set `dialect: adk` or `dialect: agentflow` in the configuration"
            )
            self.problem(message, loc)
            return
        try:
            model = resolve(name, self.file.dialect or "adk")
        except UnknownPluginError as exc:
            self.problem(str(exc), loc)
            return
        wanted = self._without_unread(model, given, loc, CRITERION_DEFAULTS)
        if self.file.dialect == "agentflow":
            for key, message in replaced(wanted, self._judge):
                self.problem(message, (*loc, key), severity="warning")
        found = self._validated(model, wanted, lambda inner: (*loc, *inner))
        if found is not None:
            self.file.criteria[name] = found
            for option, message in found.remarks():
                written = tuple(map(to_camel, option))
                place = written if written[0] in given else option
                self.problem(message, (*loc, *place), severity="warning")

    def _without_unread(
        self, model: type[BaseModel], given: dict[str, Any], loc: Loc, defaults: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Drop unknown options; those that look misspelt stay and cause errors.

        Files written by AgentFlow contain all options, so its `defaults` are dropped silently.
        """
        aliases = [info.alias for info in model.model_fields.values() if info.alias]
        known = [*model.model_fields, *aliases]
        shared = defaults if self.file.dialect == "agentflow" else {}
        kept = {}
        for key, value in given.items():
            suggestion = did_you_mean(key, model.model_fields)
            if key in known or (key not in shared and suggestion.startswith(".")):
                kept[key] = value
            elif key not in shared or value != shared[key]:
                self.problem("unused option, ignored", (*loc, key), severity="warning")
        return kept


def _options(spec: Any) -> dict[str, Any] | None:
    """Return the options in `spec`, which may be just a threshold; `None` if it is invalid.

    As in ADK, `true` and quoted digits are thresholds, too.
    """
    if isinstance(spec, Mapping):
        return dict(spec)
    if spec is None:
        return {}
    try:
        threshold = float(spec)
    except (TypeError, ValueError, OverflowError):
        return None
    return {"threshold": threshold} if math.isfinite(threshold) else None
