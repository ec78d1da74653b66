"""Choice of the agent and evalsets of a new configuration."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import PurePosixPath

from ci_eval.agents.recorded_agent import Recorded
from ci_eval.cli.init.repository_survey import FoundEvalSet, Survey
from ci_eval.cli.init.surveyed_agents import KINDS, FoundAgent
from ci_eval.config.evalset_names import unique_names
from ci_eval.plugins.points import RunningAgent
from ci_eval.recordings.adk_result import AdkResult
from ci_eval.records.errors import TrialError, UsageError
from ci_eval.records.trials import Recording, Trial, TrialKey
from ci_eval.runtime.context import RunContext

_OF_ADK = ".evalset_result.json"


Trials = Mapping[str, Sequence[Trial]]
"""Trials of each evalset, by path."""


@dataclass(frozen=True)
class Candidate:
    """An agent that the configuration may use, with its evalsets."""

    label: str
    """Description for the prompt."""
    evalsets: tuple[str, ...]
    """Their paths."""
    left_out: tuple[str, ...] = ()
    """Why each of the other evalsets is not used, one line each."""
    recording: str | None = None
    gathered: tuple[Recording, ...] = ()
    """Content of the recording, if it is not a file yet."""
    source: FoundAgent | None = None


def candidates(survey: Survey, context: RunContext) -> Iterator[Candidate]:
    """Yield candidate agents, best first; the last is a function still to be written.

    A matching recording needs neither key nor model, so it comes first; then agents of
    frameworks; then functions, whose names may be misleading.
    """
    yield from _recorded(survey, context)
    for kind in KINDS:
        agents = [each for each in survey.sources.agents if each.kind == kind]
        owners = {each.path: _owner(each, agents) for each in survey.evalsets if agents}
        yield from sorted(
            (_of_source(each, owners) for each in agents), key=lambda each: not each.evalsets
        )
    every = tuple(each.path for each in survey.evalsets)
    yield Candidate("another agent, called in ci_eval_agent.py", every)


# --- Recordings -------------------------------------------------------------------------------


def _recorded(survey: Survey, context: RunContext) -> Iterator[Candidate]:
    """Yield recordings that hold all cases of an evalset; those with most evalsets first."""
    trials = _trials(survey.evalsets) if survey.recordings else {}
    found = [
        _replayed(each, asyncio.run(_held(each, trials, context))) for each in survey.recordings
    ]
    histories = dict.fromkeys(
        PurePosixPath(each).parent for each in survey.recordings if each.endswith(_OF_ADK)
    )
    found += [_gathered(survey, trials, folder) for folder in histories]
    usable = [each for each in found if each.evalsets]
    yield from sorted(usable, key=lambda each: len(each.left_out))


def _replayed(recording: str, held: Mapping[str, tuple[int, int]]) -> Candidate:
    """Return `recording` with the evalsets that it covers completely."""
    return Candidate(
        label=f"the conversations in {recording}, replayed",
        evalsets=tuple(path for path, (there, cases) in held.items() if there == cases),
        left_out=tuple(
            f"{path}: the recording contains {there} of its {cases} cases"
            for path, (there, cases) in held.items()
            if there < cases
        ),
        recording=recording,
    )


def _gathered(survey: Survey, trials: Trials, folder: PurePosixPath) -> Candidate:
    """Combine ADK's result files in `folder`, which hold one case or a few each."""
    newest: dict[str, Recording] = {}
    for path in survey.recordings:
        if PurePosixPath(path).parent != folder:
            continue
        try:
            read = list(AdkResult().read(survey.root / path, shown=path))
        except UsageError:
            continue
        for each in read:
            if each.eval_id is not None and each.invocations:
                newest.setdefault(each.eval_id, each)
    held = {
        path: (sum(trial.key.case in newest for trial in each), len(each))
        for path, each in trials.items()
    }
    owner = folder.parent.parent.name or "adk"
    found = _replayed(f"traces/{owner}.jsonl", held)
    label = f"the newest ADK results in {folder}, collected in {found.recording} and replayed"
    return replace(found, label=label, gathered=tuple(newest.values()))


def _trials(evalsets: Sequence[FoundEvalSet]) -> Trials:
    names = unique_names([each.path for each in evalsets])
    return {
        each.path: [
            Trial(TrialKey(agent="", evalset=names[each.path], case=case.eval_id), case)
            for case in each.opened.cases()
        ]
        for each in evalsets
    }


async def _held(recording: str, trials: Trials, context: RunContext) -> dict[str, tuple[int, int]]:
    """Return for each evalset the number of its cases in `recording`, and of all its cases."""
    agent = Recorded(recorded=recording)
    if any(agent.check(context)):
        return {}
    found: dict[str, tuple[int, int]] = {}
    async with agent.start(context) as running:
        for path, each in trials.items():
            there = [await _is_held(running, trial) for trial in each]
            found[path] = sum(there), len(there)
    return found


async def _is_held(running: RunningAgent, trial: Trial) -> bool:
    try:
        await running.open(trial)
    except TrialError:
        return False
    return True


# --- Agents in the code -----------------------------------------------------------------------


def _of_source(agent: FoundAgent, owners: Mapping[str, Sequence[FoundAgent]]) -> Candidate:
    """Return `agent` with its evalsets; `owners` maps each evalset to its agents."""
    left_out = [
        f"{path}: belongs to the agent in {found[0].folder or '.'}"
        for path, found in owners.items()
        if agent not in found
    ]
    own = [path for path, found in owners.items() if agent in found]
    return Candidate(agent.label, tuple(own), tuple(left_out), source=agent)


def _owner(evalset: FoundEvalSet, agents: Sequence[FoundAgent]) -> Sequence[FoundAgent]:
    """Return the agents that an evalset is for: the one that its sessions name, or the nearest."""
    sessions = (case.session_input for case in evalset.opened.cases())
    apps = {each.app_name for each in sessions if each}
    if len(named := [each for each in agents if each.name in apps]) == 1:
        return named
    nearest = max(_shared(each.folder, evalset.path) for each in agents)
    return [each for each in agents if _shared(each.folder, evalset.path) == nearest]


def _shared(folder: str, file: str) -> int:
    return shared_parts(folder.split("/"), file.split("/")[:-1])


def shared_parts(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of leading folders that two paths share."""
    return len([*takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))])
