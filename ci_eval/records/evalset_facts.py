"""Facts about a whole evalset, known once it has been read."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ci_eval.records.cases import EvalCase, Record
from ci_eval.records.errors import Problem
from ci_eval.records.stated_expectations import UNSTATED, Expectation, expects


class EvalSet(Record):
    """The header of an evalset; its cases are read one by one."""

    eval_set_id: str
    path: str
    """The file, relative to the top of the repository if there is one."""
    format: str
    """The registered name of its reader."""


@dataclass
class CaseFacts:
    """Counts of the case features that criteria need."""

    cases: int = 0
    scenarios: int = 0
    """Cases with a simulated user."""
    with_rubrics: int = 0
    with_assertions: int = 0
    """Cases that contain assertions."""
    with_state: list[int | None] = field(default_factory=list)
    """The lines of the first cases with an initial session state."""

    expecting: Counter[Expectation] = field(default_factory=Counter)
    """The number of cases that state an expectation, by its kind."""

    def add(self, case: EvalCase) -> None:
        """Count `case`."""
        self.cases += 1
        turns = case.conversation
        self.scenarios += turns is None
        self.with_rubrics += bool(case.rubrics or any(turn.rubrics for turn in turns or ()))
        self.with_assertions += bool(case.assertions)
        if case.session_input and case.session_input.state and len(self.with_state) < MAX_LINES:
            self.with_state.append(case.line)
        for what in UNSTATED:
            self.expecting[what] += any(expects(turn, what) for turn in turns or ())


MAX_LINES = 20
"""Maximum number of lines that a warning about many cases lists."""


@dataclass(frozen=True)
class OpenedEvalSet:
    """An evalset that was read once without an error and can be read again."""

    header: EvalSet
    cases: Callable[[], Iterator[EvalCase]]
    """Yields the cases in file order, each with its line."""
    facts: CaseFacts
    warnings: tuple[Problem, ...] = ()
