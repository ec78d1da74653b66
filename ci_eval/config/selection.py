"""Selection of a part of a suite, such as certain cases of an evalset."""

import fnmatch
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ci_eval.records.cases import EvalCase
from ci_eval.records.evalset_facts import OpenedEvalSet
from ci_eval.records.trials import Place


@dataclass(frozen=True)
class Selection:
    """A selection from a suite; an empty tuple means all."""

    agents: tuple[str, ...] = ()
    evalsets: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    """Ids or patterns such as `refund_*`."""
    criteria: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Tags that a case must have, all of them."""
    places: frozenset[Place] | None = None
    """The selected cases, each with one agent; `None` for all."""

    def __bool__(self) -> bool:
        chosen = self.agents or self.evalsets or self.cases or self.criteria or self.tags
        return bool(chosen) or self.places is not None


def fits(name: str, pattern: str) -> bool:
    """Return True if `name` equals or matches `pattern`."""
    return name == pattern or fnmatch.fnmatchcase(name, pattern)


@dataclass(frozen=True)
class Meant:
    """A filter for cases."""

    patterns: tuple[tuple[str, ...], ...]
    """Groups of ids or patterns; one of each group must match."""
    tags: frozenset[str]
    """Tags that the case must have, all of them."""

    def __call__(self, case: EvalCase) -> bool:
        """Return True if `case` is selected."""
        chosen = all(any(fits(case.eval_id, each) for each in group) for group in self.patterns)
        return chosen and self.tags <= {*case.tags}


@dataclass(frozen=True)
class PlannedEvalSet:
    """An evalset with its selected cases."""

    opened: OpenedEvalSet
    shown: str
    """The file, as the user named it."""
    meant: Callable[[EvalCase], bool]
    """Returns True if a case is selected for this run."""
    configured: Callable[[EvalCase], bool]
    """Returns True if a case belongs to the suite, selected for this run or not."""
    count: int

    def cases(self) -> Iterator[EvalCase]:
        """Yield the selected cases, in the order of the file."""
        return filter(self.meant, self.opened.cases())

    def suite(self) -> Iterator[EvalCase]:
        """Yield all cases of the suite, selected or not."""
        return filter(self.configured, self.opened.cases())
