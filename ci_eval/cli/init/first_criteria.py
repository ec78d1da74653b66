"""Choice of criteria: from an eval config, a preset, or what the cases expect."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from ci_eval.cli.init.first_agent import free_name
from ci_eval.cli.init.repository_survey import FoundEvalSet
from ci_eval.config import presets
from ci_eval.config.criterion_names import Dialect, resolve
from ci_eval.config.eval_config import read_eval_config
from ci_eval.plugins.points import WorkerCriterion
from ci_eval.records.cases import Invocation, Json
from ci_eval.records.errors import Problem

_TRAJECTORY = "adk/tool_trajectory_avg_score"
_RESPONSE = "adk/response_match_score"


@dataclass
class Scoring:
    """The `criteria:` of a configuration, with what there is to say about them."""

    criteria: dict[str, Json] = field(default_factory=dict)
    """By the name they are written with; or `from` alone, with the path of an eval config."""
    notes: list[str] = field(default_factory=list)
    """Why something is there, or is not, one line each."""
    dialect: Dialect | None = None
    """Whose eval config it is, where the file itself does not tell."""
    parts: tuple["Part", ...] = ()
    """Which criteria score which evalsets, where each has an eval config of its own."""


class Part(NamedTuple):
    """Some evalsets, and the criteria of their eval config."""

    evalsets: frozenset[str]
    """Their paths."""
    criteria: tuple[str, ...]


@dataclass(frozen=True)
class _Expected:
    """What the cases of evalsets expect, as far as the choice of criteria depends on it."""

    calls: bool = False
    calls_without_args: bool = False
    responses: bool = False
    every_response: bool = True
    nodes: bool = False
    assertions: bool = False


def of_eval_config(root: Path, path: str, *, agentflow: bool) -> Scoring:
    """Return a scoring by the eval config at `path`, as a whole if all of it can be read.

    `agentflow` says whose file it is where that cannot be told.

    Raises:
        UsageError: it cannot be read.

    """
    dialect: Dialect | None = None
    read = read_eval_config(root / path, shown=path, dialect=None)
    if read.unclear:
        dialect = "agentflow" if agentflow else "adk"
        read = read_eval_config(root / path, shown=path, dialect=dialect)
    if not any(each.severity == "error" for each in read.problems):
        return Scoring({"from": path}, dialect=dialect)
    return written_out(root, path, dialect)


def written_out(root: Path, path: str, dialect: Dialect | None) -> Scoring:
    """Return a scoring by what can be read of the eval config at `path`, criterion by criterion."""
    read = read_eval_config(root / path, shown=path, dialect=dialect)
    found = Scoring(notes=[f"From {path}, as far as it applies here."])
    for name, criterion in read.criteria.items():
        options = criterion.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
        if isinstance(criterion, WorkerCriterion):  # its name is the user's own
            found.criteria[name] = {"use": criterion.type_name, **options}
        else:
            found.criteria[_plain(criterion.type_name)] = _short(options)
    found.notes += [
        _left_out(each.where, each.message) for each in read.problems if each.severity == "error"
    ]
    return found


def of_eval_configs(
    root: Path, owned: Mapping[str, Sequence[FoundEvalSet]], *, agentflow: bool
) -> Scoring:
    """Return a scoring by several eval configs, each for the evalsets that it owns."""
    found = Scoring()
    for path, evalsets in owned.items():
        one = of_eval_config(root, path, agentflow=agentflow)
        found.dialect = found.dialect or one.dialect
        written = written_out(root, path, one.dialect)
        names = []
        for name, spec in written.criteria.items():
            if found.criteria.get(name, spec) == spec:
                found.criteria[name] = spec
                names.append(name)
                continue
            # The same criterion with other options needs a name of its own.
            options = spec if isinstance(spec, dict) else {"threshold": spec}
            own = free_name(f"{name}-{Path(path).parent.name}", found.criteria)
            found.criteria[own] = {"use": name, **options}
            names.append(own)
        found.notes += written.notes
        part = Part(frozenset(each.path for each in evalsets), tuple(names))
        found.parts = (*found.parts, part)
    return found


def of_preset(name: str, evalsets: Sequence[FoundEvalSet]) -> Scoring:
    """Return a scoring by the preset `name`, suited to what the cases expect."""
    expected = _expected(evalsets)
    example = presets.PRESETS[name].example
    specs = presets.expanded(name, example)
    notes = ["The rubrics are examples: replace them with your own."] if example else []
    if _TRAJECTORY in specs:
        notes += _suit_calls(specs, expected)
    if _RESPONSE in specs:
        notes += _suit_responses(specs, expected)
    if expected.nodes:
        specs["agentflow/node_order_match_score"] = {"threshold": 1.0}
    if expected.assertions:
        specs["ci/assertions"] = {"threshold": 1.0}
    return Scoring({_plain(key): _short(spec) for key, spec in specs.items()}, notes)


def _suit_calls(specs: dict[str, dict[str, Any]], expected: _Expected) -> Iterator[str]:
    """Suit the trajectory to the calls that cases expect, and say how."""
    if not expected.calls:
        del specs[_TRAJECTORY]
        yield _left_out(_plain(_TRAJECTORY), "no case expects a tool call")
    elif expected.calls_without_args:
        specs[_TRAJECTORY]["missing_args"] = "any"
        yield "`missing_args: any`: calls expected by name only may have any arguments."


def _suit_responses(specs: dict[str, dict[str, Any]], expected: _Expected) -> Iterator[str]:
    """Suit the match of responses to those that cases expect, and say how."""
    if expected.every_response:
        return
    options = specs.pop(_RESPONSE)
    if not expected.responses:
        yield _left_out(_plain(_RESPONSE), "no case expects a response")
        return
    specs["agentflow/rouge_match"] = options
    yield (
        "`rouge_match` compares the last response, and skips cases that expect none; "
        "`response_match_score` would give them 0."
    )


def anything_said() -> Scoring:
    """Return the scoring of cases that expect nothing: that there is an answer at all."""
    said = {"use": "ci/regex", "pattern": r"\S", "threshold": 1.0}
    note = (
        "The cases expect nothing that can be compared; this only checks that there is an answer."
    )
    return Scoring({"says_something": said}, [note])


def with_anything_said(scoring: Scoring) -> Scoring:
    """Return `scoring` with a criterion for the cases that the others cannot judge."""
    note = (
        "Some cases expect nothing that the other criteria can compare; of these "
        "`says_something` only checks that there is an answer."
    )
    criteria = {**scoring.criteria, **anything_said().criteria}
    return replace(scoring, criteria=criteria, notes=[*scoring.notes, note])


def without_refused(scoring: Scoring, errors: Sequence[Problem]) -> Scoring | None:
    """Return `scoring` without the criteria that `errors` are about; `None` if there are none."""
    refused = {
        name: error.message
        for name in scoring.criteria
        for error in errors
        if f"{error.where}.".startswith(f"criteria.{name}.")
    }
    if not refused:
        return None
    kept = {name: spec for name, spec in scoring.criteria.items() if name not in refused}
    notes = [_left_out(name, why) for name, why in refused.items()]
    return replace(scoring, criteria=kept, notes=[*scoring.notes, *notes])


def _expected(evalsets: Sequence[FoundEvalSet]) -> _Expected:
    cases = [case for each in evalsets for case in each.opened.cases()]
    turns: list[Invocation] = [turn for case in cases for turn in case.conversation or ()]
    calls = [call for turn in turns for call in turn.tool_calls]
    return _Expected(
        calls=bool(calls),
        calls_without_args=any(call.args is None for call in calls),
        responses=any(turn.response for turn in turns),
        every_response=all(turn.response for turn in turns),
        nodes=any(turn.nodes for turn in turns),
        assertions=any(case.assertions for case in cases),
    )


def _left_out(name: str, why: str) -> str:
    return f"Left out: {name.removeprefix('criteria.')}: {why}."


def _plain(qualified: str) -> str:
    """Return the name of ADK's or AgentFlow's criterion without its prefix, where that is clear."""
    prefix, _, short = qualified.rpartition("/")
    if prefix in ("adk", "agentflow") and resolve(short, "adk").type_name == qualified:
        return short
    return qualified


def _short(options: Mapping[str, Any]) -> Json:
    """Return a threshold alone as a number, and options without those that are not set."""
    kept = {key: value for key, value in options.items() if value is not None}
    return kept["threshold"] if kept.keys() == {"threshold"} else kept
