"""Decisions on the content of the configuration, checked like `validate`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from ci_eval.cli.init.config_text import Draft, config_text
from ci_eval.cli.init.drafted_config_check import try_out
from ci_eval.cli.init.first_agent import Candidate, shared_parts
from ci_eval.cli.init.first_criteria import (
    Scoring,
    Wanted,
    anything_said,
    of_eval_config,
    of_eval_configs,
    suited,
    usual,
    with_anything_said,
    without_refused,
    written_out,
)
from ci_eval.cli.init.repository_survey import (
    INTERPRETER,
    FoundEvalSet,
    Survey,
    environment_of,
    is_for_evals,
)
from ci_eval.cli.init.surveyed_agents import FoundAgent
from ci_eval.config.criterion_names import Dialect
from ci_eval.config.evalset_names import free_name, unique_names
from ci_eval.formats.sniff import ENDINGS, SURE_ENDINGS
from ci_eval.records.cases import Json
from ci_eval.records.errors import Problem, UsageError
from ci_eval.run.requirements import UnjudgedCase
from ci_eval.run_files.report_phrases import listed
from ci_eval.runtime.context import RunContext
from ci_eval.text.templates import counted

_NAMED = 5
"""Maximum number of other agents named."""
_GOOGLE = (
    "GOOGLE_API_KEY",
    "GOOGLE_GENAI_USE_VERTEXAI",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_CLOUD_LOCATION",
    "GOOGLE_APPLICATION_CREDENTIALS",
)
_USUAL = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY")
_KEYS = {"adk": _GOOGLE, "openai_agents": ("OPENAI_API_KEY",)}
"""Variables that a framework's models usually need; `_USUAL` if it takes any model."""


def decide(
    survey: Survey, candidate: Candidate, wanted: Wanted | None, context: RunContext
) -> Draft:
    """Return a configuration of `candidate` that can be run.

    `wanted` is the user's choice of criteria; with `None`, an existing eval config decides.

    Raises:
        UsageError: errors remain after leaving out criteria and evalsets.

    """
    evalsets = [each for each in survey.evalsets if each.path in candidate.evalsets]
    draft = _drafted(survey, candidate, evalsets, _scoring(survey, evalsets, wanted))
    while errors := (tried := try_out(config_text(draft), context)).errors:
        if unjudged := tuple(each.case for each in errors if isinstance(each, UnjudgedCase)):
            draft = _judging(draft, unjudged)
            continue
        wrong = [each for each in evalsets if any(error.file == each.path for error in errors)]
        scoring = _mended(survey, draft.scoring, errors, evalsets)
        if wrong and len(wrong) < len(evalsets):
            evalsets = [each for each in evalsets if each not in wrong]
            why = tuple(str(each) for each in errors if each.file in {one.path for one in wrong})
            candidate = replace(candidate, left_out=(*candidate.left_out, *why))
            draft = _drafted(survey, candidate, evalsets, _scoring(survey, evalsets, wanted))
        elif scoring:
            draft = replace(draft, scoring=scoring)
        else:
            raise UsageError(problems=errors)
    return replace(draft, asked=tried.asked)


def _judging(draft: Draft, unjudged: tuple[str, ...]) -> Draft:
    """Return `draft` with a criterion for these cases, or else with them marked as unjudged."""
    scoring = with_anything_said(draft.scoring)
    if scoring.criteria.keys() != draft.scoring.criteria.keys():
        return replace(draft, scoring=scoring)
    return replace(draft, unjudged=(*draft.unjudged, *unjudged))


def _drafted(
    survey: Survey, candidate: Candidate, evalsets: Sequence[FoundEvalSet], scoring: Scoring
) -> Draft:
    name, agent, notes = _agent(survey, candidate)
    return Draft(
        suite=(survey.root.resolve().name or "evals")[:100],
        agent_name=name,
        agent=agent,
        agent_notes=notes,
        evalsets=_entries(survey, evalsets, patterns=candidate.recording is None),
        evalset_notes=tuple(_about_evalsets(survey, candidate)),
        scoring=scoring,
    )


# --- Criteria ---------------------------------------------------------------------------------


def _scoring(survey: Survey, evalsets: Sequence[FoundEvalSet], wanted: Wanted | None) -> Scoring:
    """Return the scoring that the user wants, else that of the evalsets' eval config."""
    by_config = wanted is None or wanted.beside_config
    config = _nearest_config(survey, evalsets) if by_config else None
    dialect = _dialect(survey)
    if config is None:
        found = suited(wanted or usual(), evalsets, dialect)
    else:
        owned = _owned(survey, evalsets)
        if len(owned) > 1:
            found = of_eval_configs(survey.root, owned, dialect)
        else:
            found = of_eval_config(survey.root, config, dialect)
        others = [each for each in survey.eval_configs if each not in (config, *owned)]
        found.notes += [f"Another eval config, not used: {each}." for each in others]
        if wanted:
            more = suited(wanted, evalsets, found.dialect)
            found.criteria = {**found.criteria, **more.criteria}
            found.notes += more.notes
    return found if found.criteria else _instead(found, evalsets)


def _mended(
    survey: Survey, scoring: Scoring, errors: Sequence[Problem], evalsets: Sequence[FoundEvalSet]
) -> Scoring | None:
    """Return `scoring` without what caused `errors`; `None` if nothing in it did."""
    config = scoring.criteria.get("from")
    if isinstance(config, str):
        found = written_out(survey.root, config, scoring.dialect)
        found.criteria |= {key: each for key, each in scoring.criteria.items() if key != "from"}
        found.notes += scoring.notes
        return found if found.criteria else _instead(found, evalsets)
    kept = without_refused(scoring, errors)
    if kept is None or kept.criteria:
        return kept
    if scoring.criteria.keys() == anything_said().criteria.keys():
        return None
    return _instead(kept, evalsets, tried=scoring.criteria)


def _instead(
    found: Scoring, evalsets: Sequence[FoundEvalSet], *, tried: Iterable[str] = ()
) -> Scoring:
    """Return a scoring that the cases suggest, for when nothing of the wanted one is left."""
    instead = suited(usual(), evalsets, found.dialect)
    if not instead.criteria or instead.criteria.keys() & set(tried):
        instead = anything_said()
    return Scoring(instead.criteria, [*found.notes, *instead.notes], found.dialect)


def _nearest_config(survey: Survey, evalsets: Sequence[FoundEvalSet]) -> str | None:
    """Return the eval config that lies nearest to the evalsets."""
    folders = [PurePosixPath(each.path).parent for each in evalsets]

    def distance(config: str) -> int:
        at = PurePosixPath(config).parent
        return min((_steps(at.parts, folder.parts) for folder in folders), default=0)

    return min(survey.eval_configs, key=distance, default=None)


def _owned(survey: Survey, evalsets: Sequence[FoundEvalSet]) -> dict[str, list[FoundEvalSet]]:
    """Return the evalsets by the eval config that lies nearest to each."""
    found: dict[str, list[FoundEvalSet]] = {}
    for evalset in evalsets:
        if config := _nearest_config(survey, [evalset]):
            found.setdefault(config, []).append(evalset)
    return found


def _steps(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of steps from one folder to another."""
    return len(one) + len(other) - 2 * shared_parts(one, other)


def _dialect(survey: Survey) -> Dialect | None:
    """Return the dialect of the repository; `None` if unknown."""
    of_adk = any(each.kind == "adk" for each in survey.sources.agents)
    is_agentflow = not of_adk and "AgentFlow" in dict(survey.sources.frameworks)
    return "agentflow" if is_agentflow else None


# --- Agents -----------------------------------------------------------------------------------


def _agent(survey: Survey, candidate: Candidate) -> tuple[str, dict[str, Json], tuple[str, ...]]:
    """Return the agent's name, its entry in the configuration, and notes on it."""
    source = candidate.source
    agent: dict[str, Json] = {source.kind: source.target} if source else {}
    if candidate.recording:
        names = {each.name for each in survey.sources.agents}
        stem = PurePosixPath(candidate.recording).name.partition(".")[0]
        name = names.pop() if len(names) == 1 else stem or "agent"
        agent = {"recorded": candidate.recording}
        note = (
            "Replays recorded conversations, without an API key or a model; commit the file. "
            "Record them again to see the effect of a change to the agent."
        )
    elif source is None:
        name, agent = "agent", {"python": "ci_eval_agent:answer"}
        note = "Every case fails with an error until ci_eval_agent.py calls your agent."
    elif source.kind == "python":
        name = source.name
        note = (
            "A function called with each message. It gets the environment variables that "
            "`env: [NAME, …]` lists, and a few standard ones."
        )
    else:
        name = source.name
        note = (
            f"This is {source.label}. It gets the environment variables in `env`, if they are "
            "set, and a few standard ones."
        )
    folder = environment_of(survey.root, source.folder if source else "")
    if folder and not candidate.recording:
        agent["interpreter"] = f"{folder}/{INTERPRETER}"
    if source and source.kind != "python":
        agent["env"] = [*_KEYS.get(source.kind, _USUAL)]
    return free_name(name, ()), agent, (note, *_others(survey, source))


def _others(survey: Survey, chosen: FoundAgent | None = None) -> Iterator[str]:
    """Yield the other agents and evalsets that were found."""
    for agent in [each for each in survey.sources.agents if each != chosen][:_NAMED]:
        yield f"Also found: {agent.label}."
    for framework, file in survey.sources.other_frameworks:
        yield f"Found {framework} in {file}: ci_eval_agent.py can call it."


# --- Evalsets ---------------------------------------------------------------------------------


def _entries(
    survey: Survey, evalsets: Sequence[FoundEvalSet], *, patterns: bool
) -> Mapping[str, str]:
    """Return the evalsets' paths by name, or patterns that match exactly those of a folder."""
    names = unique_names([each.path for each in survey.evalsets])
    left = {each.path: names[each.path] for each in evalsets}
    found: dict[str, str] = {}
    for pattern, fitting in list(_patterns(survey, left)) if patterns else ():
        folder = PurePosixPath(pattern).parent
        found[free_name(folder.name or "evals", {*found, *left.values()})] = pattern
        for path in fitting:
            del left[path]
    return {**found, **{name: path for path, name in left.items()}}


def _patterns(survey: Survey, paths: Mapping[str, str]) -> Iterator[tuple[str, set[str]]]:
    """Yield patterns that match some of `paths`, but no other existing file."""
    for folder in dict.fromkeys(PurePosixPath(each).parent for each in paths):
        # Eval configs may end with `.json`, too.
        others = [each for each in ENDINGS if each != ".json"] if is_for_evals(folder) else []
        for ending in (*SURE_ENDINGS, *others):
            pattern = (folder / f"*{ending}").as_posix()
            if set(str(folder)) & set("*?[") or (survey.root / pattern).exists():
                continue  # what looks like a pattern may be the name of a file, too
            found = (survey.root / folder).glob(f"*{ending}")
            fitting = {each.relative_to(survey.root).as_posix() for each in found}
            if fitting and fitting <= paths.keys():
                yield pattern, fitting


def _about_evalsets(survey: Survey, candidate: Candidate) -> Iterator[str]:
    """Yield the reasons why existing evalsets are not used."""
    for why in candidate.left_out:
        yield f"Left out: {why}."
    unused = [each for each in survey.recordings if each != candidate.recording]
    if unused and not candidate.gathered:
        yield f"{counted(len(unused), 'recording')} not used: {listed(unused, _NAMED)}"
    for problem in survey.unreadable:
        yield f"Cannot be read: {problem}."
    if survey.cut_off:
        yield "The repository has more files than `init` reads; add what is missing."
