"""The part of a suite that is asked for: which cases of an evalset are meant."""

import fnmatch
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ci_eval.records.evalset_facts import OpenedEvalSet
from ci_eval.records.model import EvalCase


@dataclass(frozen=True)
class Selection:
    """The part of a suite that is asked for; an empty tuple means all."""

    agents: tuple[str, ...] = ()
    evalsets: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    """Ids or patterns such as `refund_*`."""
    criteria: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Of which a case must have every one."""
    places: frozenset[tuple[str, str, str]] | None = None
    """Agents, evalsets and cases that belong together; `None` where all do."""

    def __bool__(self) -> bool:
        chosen = self.agents or self.evalsets or self.cases or self.criteria or self.tags
        return bool(chosen) or self.places is not None


def fits(case: str, patterns: Sequence[Sequence[str]]) -> bool:
    """Say whether the name `case` is, or fits, a pattern of each group."""
    return all(
        any(case == pattern or fnmatch.fnmatchcase(case, pattern) for pattern in group)
        for group in patterns
    )


@dataclass(frozen=True)
class Meant:
    """Says whether a case is meant."""

    patterns: tuple[tuple[str, ...], ...]
    """Each a list of ids or patterns of which one must fit."""
    tags: frozenset[str]
    """All of which the case must have."""

    def __call__(self, case: EvalCase) -> bool:
        """Say it of `case`."""
        return fits(case.eval_id, self.patterns) and self.tags <= {*case.tags}


@dataclass(frozen=True)
class PlannedEvalSet:
    """An evalset with the cases of it that are meant."""

    opened: OpenedEvalSet
    shown: str
    """What the user calls the file."""
    meant: Callable[[EvalCase], bool]
    configured: Callable[[EvalCase], bool]
    """Says whether a case is one of the suite, whether or not it was asked for this time."""
    count: int

    def cases(self) -> Iterator[EvalCase]:
        """Yield the cases that are meant, in the order of the file."""
        return filter(self.meant, self.opened.cases())

    def suite(self) -> Iterator[EvalCase]:
        """Yield the cases of the suite, asked for this time or not."""
        return filter(self.configured, self.opened.cases())
