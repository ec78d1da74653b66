"""Missing credentials: keys and other variables that the environment lacks."""

import re
from collections.abc import Iterator, Sequence

from ci_eval.records.findings import GroupSummary
from ci_eval.records.results import JudgeUsage, RunMeta

_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
_WAY_OUT = "pull requests from forks get no secrets, see docs/forks.md"


def lacked(meta: RunMeta, groups: Sequence[GroupSummary], simulation: JudgeUsage | None) -> str:
    """Return, in words, which missing credentials prevented a measurement; empty if none did.

    A variable that an agent lacks is reported only if none of its cases was measured.
    """
    found = list(dict.fromkeys(_found(meta, groups, simulation)))
    if not found:
        return ""
    said = found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"
    return f"{said}; {_WAY_OUT}" if _VARIABLE.search(said) else said


def _found(
    meta: RunMeta, groups: Sequence[GroupSummary], simulation: JudgeUsage | None
) -> Iterator[str]:
    for agent, missing in meta.lacking.items():
        own = [each for each in groups if each.group.agent == agent]
        if any(each.errors for each in own) and all(each.value is None for each in own):
            yield f"the agent {agent!r} lacks {missing}"
    for group in groups:
        for missing in group.judging.lacking if group.judging else ():
            yield f"the judge of {group.group.criterion} lacks {missing}"
    for missing in simulation.lacking if simulation else ():
        yield f"the simulated user of scenarios lacks {missing}"
