"""Causes that kept an agent, a judge or a simulated user from being called at all."""

import re
from collections.abc import Iterator, Mapping, Sequence

from ci_eval.records.errors import FailureKind
from ci_eval.records.findings import GroupSummary
from ci_eval.records.results import JudgeUsage, RunMeta
from ci_eval.records.trials import Failure
from ci_eval.text.redact import names_secret
from ci_eval.text.sanitize import one_line

_REFUSED = re.compile(
    r"api.?key|credential|unauthori[sz]ed|authenticat|permission|forbidden|\b40[13]\b",
    re.IGNORECASE,
)
"""Words that providers use to refuse a call without a valid key."""
_COMMON: frozenset[FailureKind] = frozenset({"start", "connection", "models", "not_recorded"})
"""Failures that affect all trials of an agent for one reason."""
_FORK = "pull requests from forks get no secrets"
MAX_CAUSE = 240
"""Maximum length of the cause of an agent's errors, in characters."""


def lacked(
    meta: RunMeta,
    groups: Sequence[GroupSummary],
    simulation: JudgeUsage | None,
    failures: Mapping[str, Failure],
) -> str:
    """Return, in words, what prevented a measurement; empty if unknown.

    `failures` has the first error of each agent; it is reported only if none of the agent's cases
    was measured.  A variable that the agent lacks is named only if the error is related to it.
    """
    found = dict(_found(meta, groups, simulation, failures))
    *others, last = found or [""]
    said = f"{', '.join(others)} and {last}" if others else last
    return f"{said}; {_FORK}" if meta.from_fork and any(found.values()) else said


def _found(
    meta: RunMeta,
    groups: Sequence[GroupSummary],
    simulation: JudgeUsage | None,
    failures: Mapping[str, Failure],
) -> Iterator[tuple[str, bool]]:
    """Yield each cause, and whether it is a missing variable."""
    for agent, failure in failures.items():
        own = [each for each in groups if each.group.agent == agent]
        if any(each.errors for each in own) and all(each.value is None for each in own):
            yield from _of_agent(agent, failure, meta.lacking.get(agent, ""))
    for group in groups:
        for missing in group.judging.lacking if group.judging else ():
            yield f"the judge of {group.group.criterion} lacks {missing}", True
    for missing in simulation.lacking if simulation else ():
        yield f"the simulated user of scenarios lacks {missing}", True


def _of_agent(agent: str, failure: Failure, missing: str) -> Iterator[tuple[str, bool]]:
    names = re.split(r" and | or ", missing) if missing else []
    is_refused = _REFUSED.search(failure.message) and any(map(names_secret, names))
    if is_refused or any(each in failure.message for each in names):
        yield f"the agent {agent!r} lacks {missing}", True
    elif failure.kind in _COMMON:
        verb = "cannot start" if failure.kind == "start" else "did not answer"
        first = failure.message.partition("\n")[0]
        yield f"the agent {agent!r} {verb}: {one_line(first, MAX_CAUSE)}", False
