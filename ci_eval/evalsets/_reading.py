"""What every reader of evalsets does the same: read all, report all, read again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ci_eval.errors import EvalSetError, Problem, UsageError
from ci_eval.plugins import CaseFacts, OpenedEvalSet
from ci_eval.records import EvalCase, EvalSet

KEPT_BYTES = 4 * 1024 * 1024
"""Cases of files up to this size stay in memory; larger files are read once more."""
MAX_PROBLEMS = 1000
"""Reading stops after so many problems; a file of another kind has one in each line."""


@dataclass
class Problems:
    """The problems of one file, collected while it is read."""

    shown: str
    found: list[Problem] = field(default_factory=list)

    def error(self, message: str, line: int | None, where: str = "") -> None:
        """Note something that makes the file unusable."""
        self._add(Problem(message, self.shown, line, where))

    def warning(self, message: str, line: int | None, where: str = "") -> None:
        """Note something that is read all the same."""
        self._add(Problem(message, self.shown, line, where, "warning"))

    @property
    def errors(self) -> list[Problem]:
        """What makes the file unusable."""
        return [problem for problem in self.found if problem.severity == "error"]

    def _add(self, problem: Problem) -> None:
        self.found.append(problem)
        if len(self.errors) >= MAX_PROBLEMS:
            raise EvalSetError(problems=self.found)


Parse = Callable[[Problems], Iterator[EvalCase]]
"""Yields the cases of a file that can be understood, and notes what cannot."""


def open_evalset(
    path: Path, shown: str, reader: str, parse: Parse, *, set_id: Callable[[], str]
) -> OpenedEvalSet:
    """Read a whole file, check what concerns all of its cases, and make it readable again.

    Raises:
        EvalSetError: with every problem of the file.

    """
    problems = Problems(shown)
    facts = CaseFacts()
    kept: list[EvalCase] | None = [] if path.stat().st_size <= KEPT_BYTES else None
    lines: dict[str, int | None] = {}
    try:
        for case in parse(problems):
            if case.eval_id in lines:
                first = f"; the first is on line {lines[case.eval_id]}"
                problems.error(f"the id {case.eval_id!r} is there twice{first}", case.line)
            lines.setdefault(case.eval_id, case.line)
            facts.add(case)
            if kept is not None:
                kept.append(case)
    except UsageError as exc:
        if isinstance(exc, EvalSetError):
            raise
        raise EvalSetError(problems=[*problems.found, *exc.problems]) from exc
    if problems.errors:
        raise EvalSetError(problems=problems.found)
    cases = kept.__iter__ if kept is not None else lambda: parse(Problems(shown))
    header = EvalSet(eval_set_id=set_id(), path=shown, format=reader)
    return OpenedEvalSet(header, cases, facts, tuple(problems.found))
