"""What is known of an evalset once it was read as a whole."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ci_eval.records.errors import Problem
from ci_eval.records.model import EvalCase, Record


class EvalSet(Record):
    """What a file says of its cases as a whole; the cases are read one by one."""

    eval_set_id: str
    path: str
    """The file, from the top of the repository where there is one."""
    format: str
    """The reader that understood it."""


@dataclass
class CaseFacts:
    """What the cases of an evalset offer to criteria."""

    cases: int = 0
    scenarios: int = 0
    """Cases that a simulated user leads."""
    with_rubrics: int = 0
    with_assertions: int = 0
    """Cases that assert something of themselves."""
    with_state: list[int | None] = field(default_factory=list)
    """The lines of the first cases that begin with a state of the session."""

    def add(self, case: EvalCase) -> None:
        """Count `case`."""
        self.cases += 1
        turns = case.conversation
        self.scenarios += turns is None
        self.with_rubrics += bool(case.rubrics or any(turn.rubrics for turn in turns or ()))
        self.with_assertions += bool(case.assertions)
        if case.session_input and case.session_input.state and len(self.with_state) < MAX_LINES:
            self.with_state.append(case.line)


MAX_LINES = 20
"""How many lines a warning about many cases names at most."""


@dataclass(frozen=True)
class OpenedEvalSet:
    """An evalset that was read once, without an error, and can be read again."""

    header: EvalSet
    cases: Callable[[], Iterator[EvalCase]]
    """Yields the cases in the order of the file, each with its line."""
    facts: CaseFacts
    warnings: tuple[Problem, ...] = ()
