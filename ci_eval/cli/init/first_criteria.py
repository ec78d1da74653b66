"""Choice of criteria: from an eval config, a preset, or what the cases expect."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from ci_eval.cli.init.repository_survey import FoundEvalSet
from ci_eval.config import presets
from ci_eval.config.criterion_names import Dialect, resolve
from ci_eval.config.eval_config import read_eval_config
from ci_eval.config.evalset_names import free_name
from ci_eval.plugins.points import WorkerCriterion
from ci_eval.records.cases import Invocation, Json
from ci_eval.records.errors import Problem

_TRAJECTORY = "adk/tool_trajectory_avg_score"
_RESPONSE = "adk/response_match_score"
_FINAL_RUBRICS = "adk/rubric_based_final_response_quality_v1"
_TOOL_RUBRICS = "adk/rubric_based_tool_use_quality_v1"
QUESTIONS: Mapping[str, tuple[str, float]] = {
    "Is it exactly reproducible, without a judgment?": (_TRAJECTORY, 1.0),
    "Were the right tools called, in the right order?": (_TRAJECTORY, 1.0),
    "How many words does the answer share with the expected one?": (_RESPONSE, 0.8),
    "Does it mean the same, in whatever words?": ("adk/final_response_match_v2", 0.8),
    "Are tone, style and quality right?": (_FINAL_RUBRICS, 0.8),
    "Was the choice of tools and arguments sensible?": (_TOOL_RUBRICS, 1.0),
    "Is something made up?": ("adk/hallucinations_v1", 0.8),
    "Is it safe, and within the rules?": ("adk/safety_v1", 0.8),
    "Does a simulated user keep to its plan?": ("adk/per_turn_user_simulator_quality_v1", 1.0),
}
"""What users may want to know, each with a criterion and its threshold.

ADK's guide to its metrics asks these nine questions.
"""
USUAL = (2, 3)
"""The numbers of the questions that cases with expectations answer without a model."""


@dataclass
class Scoring:
    """The `criteria:` of a configuration, with notes on them."""

    criteria: dict[str, Json] = field(default_factory=dict)
    """By their names in the file; or only `from`, with the path of an eval config."""
    notes: list[str] = field(default_factory=list)
    """Why criteria were added or left out, one line each."""
    dialect: Dialect | None = None
    """The dialect of the names, if it is not ADK's or cannot be told from an eval config."""
    parts: tuple["Part", ...] = ()
    """Which criteria score which evalsets, if these have different eval configs."""


class Wanted(NamedTuple):
    """What the user wants to know."""

    specs: dict[str, dict[str, Any]]
    """Criteria by their qualified names, with their options."""
    beside_config: bool = False
    """Whether to keep the criteria of the eval config, too."""
    notes: tuple[str, ...] = ()


class Part(NamedTuple):
    """Some evalsets, and the criteria of their eval config."""

    evalsets: frozenset[str]
    """Their paths."""
    criteria: tuple[str, ...]


def of_eval_config(root: Path, path: str, dialect: Dialect | None) -> Scoring:
    """Return the scoring of the eval config at `path`; a reference if all of it can be read.

    `dialect` is that of the repository, if known.

    Raises:
        UsageError: it cannot be read.

    """
    read = read_eval_config(root / path, shown=path, dialect=dialect)
    if read.unclear:
        dialect = "adk"
        read = read_eval_config(root / path, shown=path, dialect=dialect)
    if not any(each.severity == "error" for each in read.problems):
        return Scoring({"from": path}, dialect=dialect)
    return written_out(root, path, dialect)


def written_out(root: Path, path: str, dialect: Dialect | None) -> Scoring:
    """Return the readable criteria of the eval config at `path`, written out one by one."""
    read = read_eval_config(root / path, shown=path, dialect=dialect)
    found = Scoring(notes=[f"From {path}, as far as applicable."], dialect=dialect)
    for name, criterion in read.criteria.items():
        options = criterion.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
        if isinstance(criterion, WorkerCriterion):  # its name is the user's own
            found.criteria[name] = {"use": criterion.type_name, **options}
        else:
            found.criteria[_plain(criterion.type_name, dialect)] = _short(options)
    found.notes += [
        _left_out(each.where, each.message) for each in read.problems if each.severity == "error"
    ]
    return found


def of_eval_configs(
    root: Path, owned: Mapping[str, Sequence[FoundEvalSet]], dialect: Dialect | None
) -> Scoring:
    """Return the scoring of several eval configs, each for the evalsets that it owns."""
    found = Scoring(dialect=dialect)
    for path, evalsets in owned.items():
        one = of_eval_config(root, path, dialect)
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


def wanted(questions: Iterable[str], chosen: Iterable[str] = ()) -> Wanted:
    """Return the criteria that answer some of the `QUESTIONS`, and those of `chosen` presets."""
    specs: dict[str, dict[str, Any]] = {}
    example = presets.RubricPreset.example
    for question in questions:
        name, threshold = QUESTIONS[question]
        rubrics = example if name in (_FINAL_RUBRICS, _TOOL_RUBRICS) else {}
        specs[name] = {"threshold": threshold, **rubrics}
    examples = any("rubrics" in each for each in specs.values())
    for preset in chosen:
        specs.update(presets.expanded(preset, presets.PRESETS[preset].example))
    note = "The rubrics are examples: replace them with your own."
    return Wanted(specs, notes=(note,) if examples else ())


def usual() -> Wanted:
    """Return the criteria that need no model and suit most cases."""
    return wanted([*QUESTIONS][number - 1] for number in USUAL)


def suited(found: Wanted, evalsets: Sequence[FoundEvalSet], dialect: Dialect | None) -> Scoring:
    """Return the scoring that the user wants, adapted to what the cases expect."""
    cases = [case for each in evalsets for case in each.opened.cases()]
    turns = [turn for case in cases for turn in case.conversation or ()]
    specs = {name: dict(options) for name, options in found.specs.items()}
    notes = [*found.notes]
    if _TRAJECTORY in specs:
        notes += _suit_calls(specs, turns)
    if _RESPONSE in specs:
        notes += _suit_responses(specs, turns)
    if any(turn.nodes for turn in turns):
        specs["agentflow/node_order_match_score"] = {"threshold": 1.0}
    if any(case.assertions for case in cases):
        specs["ci/assertions"] = {"threshold": 1.0}
    criteria = {_plain(key, dialect): _short(spec) for key, spec in specs.items()}
    return Scoring(criteria, notes, dialect)


def _suit_calls(specs: dict[str, dict[str, Any]], turns: Sequence[Invocation]) -> Iterator[str]:
    """Adapt the trajectory criterion to the calls that cases expect; yield notes."""
    calls = [call for turn in turns for call in turn.tool_calls]
    if not calls:
        del specs[_TRAJECTORY]
        yield _left_out(_TRAJECTORY, "no case expects a tool call")
    elif any(call.args is None for call in calls):
        specs[_TRAJECTORY]["missing_args"] = "any"
        yield "`missing_args: any`: calls expected by name only may have any arguments."


def _suit_responses(specs: dict[str, dict[str, Any]], turns: Sequence[Invocation]) -> Iterator[str]:
    """Adapt the response criterion to the responses that cases expect; yield notes."""
    if all(turn.response for turn in turns):
        return
    options = specs.pop(_RESPONSE)
    if not any(turn.response for turn in turns):
        yield _left_out(_RESPONSE, "no case expects a response")
        return
    specs["agentflow/rouge_match"] = options
    yield (
        "`rouge_match` compares the last response, and skips cases that expect none; "
        "`response_match_score` would give them 0."
    )


def anything_said() -> Scoring:
    """Return the scoring of cases that expect nothing: whether there is an answer at all."""
    said = {"use": "ci/regex", "pattern": r"\S", "threshold": 1.0}
    note = (
        "The cases expect nothing that can be compared; this only checks that there is an answer."
    )
    return Scoring({"says_something": said}, [note])


def with_anything_said(scoring: Scoring) -> Scoring:
    """Return `scoring` with a criterion for the cases that the others cannot judge."""
    note = (
        "Some cases expect nothing that the other criteria can compare; for these, "
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


def _left_out(name: str, why: str) -> str:
    return f"Left out: {name.removeprefix('criteria.').removeprefix('adk/')}: {why}."


def _plain(qualified: str, dialect: Dialect | None) -> str:
    """Return the name of ADK's or AgentFlow's criterion; without its prefix if unambiguous."""
    prefix, _, short = qualified.rpartition("/")
    is_bare = prefix in ("adk", "agentflow")
    if is_bare and resolve(short, dialect or "adk").type_name == qualified:
        return short
    return qualified


def _short(options: Mapping[str, Any]) -> Json:
    """Return a threshold alone as a number, otherwise the options that are set."""
    kept = {key: value for key, value in options.items() if value is not None}
    return kept["threshold"] if kept.keys() == {"threshold"} else kept
