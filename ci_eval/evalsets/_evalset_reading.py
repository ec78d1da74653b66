"""Shared parts of evalset readers: reading a file, collecting its problems, reading it again."""

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from ci_eval.plugins.points import EvalSetReader
from ci_eval.records.cases import EvalCase, Json
from ci_eval.records.errors import EvalSetError, Problem, Severity, UsageError
from ci_eval.records.evalset_facts import CaseFacts, EvalSet, OpenedEvalSet
from ci_eval.text.fingerprint import fingerprint
from ci_eval.text.json_stream import Element
from ci_eval.text.validation_messages import describe, read_as
from ci_eval.text.yaml_files import Loc, dotted

M = TypeVar("M", bound=BaseModel)

KEPT_BYTES = 4 * 1024 * 1024
"""Cases of files up to this size stay in memory; larger files are read again."""
KEPT_CASES = 5000
"""Maximum number of cases in memory: a case takes more memory than its row in a table."""
_MAX_SLUG = 40
"""Maximum length of the readable part of a generated name, in characters."""
MAX_PROBLEMS = 1000
"""Reading stops after this many different problems."""
MAX_ALIKE = 5
"""Maximum repetitions of one problem: a file in the wrong format has the same one in each case."""


class Problems:
    """The problems of one file, collected while it is read."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._found: list[Problem] = []
        self._alike: dict[tuple[str, str], _Alike] = {}
        self.errors = 0
        """Number of errors, which make the file unusable."""

    def add(  # noqa: PLR0913  # the parts of a problem
        self,
        message: str,
        line: int | None,
        where: str = "",
        *,
        severity: Severity = "error",
        concerns: str = "",
        adk_refuses: bool = False,
    ) -> None:
        """Note a problem: an error, which makes the file unusable, or a warning.

        Raises:
            EvalSetError: the limit is reached; it has all problems noted so far.

        """
        self.errors += severity == "error"
        kind = message, re.sub(r"\[\d+\]", "[]", where)
        alike = self._alike.setdefault(kind, _Alike())
        alike.count += 1
        alike.last_line = line
        if alike.count <= MAX_ALIKE:
            alike.last_reported = len(self._found)
            problem = Problem(message, self._shown, line, where, severity, concerns, adk_refuses)
            self._found.append(problem)
        if len(self._found) >= MAX_PROBLEMS:
            raise EvalSetError(problems=self.listed())

    def listed(self) -> list[Problem]:
        """Return the problems in the order of the file."""
        found = list(self._found)
        for alike in self._alike.values():
            more = alike.count - MAX_ALIKE
            if more > 0:
                last = found[alike.last_reported]
                places = "1 more place" if more == 1 else f"{more} more places"
                message = f"{last.message} (and in {places}, down to line {alike.last_line})"
                found[alike.last_reported] = replace(last, message=message)
        return sorted(found, key=lambda problem: problem.line or 0)


@dataclass
class _Alike:
    """Problems that differ only in their location."""

    count: int = 0
    last_line: int | None = None
    last_reported: int = 0
    """Index of the last of these among all reported problems."""


@dataclass(frozen=True)
class Notes:
    """Collects the problems of one case."""

    problems: Problems
    spot: Callable[[Loc], tuple[int, str]]
    """Returns the line and the name of a location in the case."""

    def error(self, message: str, loc: Loc = ()) -> None:
        """Note an error, which makes the file unusable."""
        self.problems.add(message, *self.spot(loc))

    def validated(self, model: type[M], value: Json, loc: Loc = ()) -> M | None:
        """Return the `value` at `loc` as a `model`, or note its errors."""
        return read_as(model, value, lambda message, at: self.error(message, (*loc, *at)))

    def warning(self, message: str, loc: Loc = (), *, concerns: str = "") -> None:
        """Note a warning; a topic in `concerns` limits it to the criteria it is relevant for."""
        self.problems.add(message, *self.spot(loc), severity="warning", concerns=concerns)


class MadeNames:
    """Generates names of cases from their prompts, whatever their position in the file."""

    def __init__(self) -> None:
        self._lines: dict[str, int] = {}

    def id_of(
        self, given: str | None, prompts: Iterable[str], line: int, notes: Notes
    ) -> str | None:
        """Return the `given` id of the case on `line`, else a generated one.

        If another case without an id has the same prompts, it notes an error and returns `None`.
        """
        if given is not None:
            return given
        texts = list(prompts)
        words = re.findall(r"\w+", texts[0].casefold() if texts else "")
        slug = "-".join(words)[:_MAX_SLUG].strip("-_")
        name = f"{slug}-{fingerprint(texts)[:8]}".lstrip("-")
        if name in self._lines:
            first = self._lines[name]
            notes.error(f"same prompts as the case on line {first}; give each of them an 'id'")
            return None
        self._lines[name] = line
        return name


def note_persona(case: EvalCase, notes: Notes, loc: Loc) -> None:
    """Note an error if the persona of a scenario, at `loc`, is unknown."""
    scenario = case.conversation_scenario
    if scenario and scenario.user_persona is not None:
        from ci_eval.formats.personas import fault

        if message := fault(scenario.user_persona):
            notes.error(message, loc)


ADK_TRAJECTORY = "adk/tool_trajectory_avg_score"
"""Topic: expected calls without arguments, which match no call in ADK."""
ADK_RESPONSES = "adk/response_match_score"
"""Topic: missing expected responses, which score 0 in ADK."""


def notes_on(element: Element, base: Loc, problems: Problems) -> Notes:
    """Return the notes for the case in `element`, which is at `base` in the file."""
    return Notes(problems, lambda loc: (element.line_of(loc), dotted((*base, *loc))))


# --- Readers --------------------------------------------------------------------------------


@dataclass(frozen=True)
class CaseFile:
    """A file of cases that is being read."""

    path: Path
    shown: str
    """Path as shown to the user."""
    problems: Problems
    """Collects the problems of the file."""
    header: dict[str, Any] = field(default_factory=dict)
    """Receives the content of the file beside its cases."""
    names: MadeNames = field(default_factory=MadeNames)
    """Generates the names of cases without an id."""

    def note_header(
        self, element: Element, name: str, types: Mapping[str, tuple[type, str]]
    ) -> None:
        """Add the member `name` to the header, and note if it is repeated or mistyped.

        `types` has the type of each key, and the type's name in messages.  A list that is read
        element by element is stored as an empty list.
        """
        value: Json = [] if element.is_begin else element.value
        expected, shown = types[name]
        if name in self.header:
            self.problems.add(f"duplicate key {name!r}", element.line)
        elif not isinstance(value, expected):
            message = f"expected {shown}, found {describe(value)}"
            self.problems.add(message, element.line, name)
        self.header.setdefault(name, value)


class CaseReader(EvalSetReader):
    """A format of evalset files whose cases are read one after the other."""

    @abstractmethod
    def cases(self, file: CaseFile) -> Iterator[EvalCase]:
        """Yield the valid cases of `file`, and note the problems of the others."""

    def set_id(self, file: CaseFile) -> str:
        """Return the id of the evalset in `file`, whose cases have been read."""
        return file.path.stem

    def read(self, path: Path, *, shown: str) -> OpenedEvalSet:
        """Read the whole file at `path` and check its cases, which can then be read repeatedly."""
        file, facts = CaseFile(path, shown, Problems(shown)), CaseFacts()
        kept: list[EvalCase] | None = [] if path.stat().st_size <= KEPT_BYTES else None
        lines: dict[str, int | None] = {}
        try:
            for case in self.cases(file):
                if case.eval_id in lines:
                    first = f"; the first is on line {lines[case.eval_id]}"
                    file.problems.add(f"duplicate id {case.eval_id!r}{first}", case.line)
                lines.setdefault(case.eval_id, case.line)
                facts.add(case)
                if kept is not None:
                    kept.append(case)
                    kept = kept if len(kept) <= KEPT_CASES else None
        except EvalSetError:
            raise
        except UsageError as exc:
            raise EvalSetError(problems=[*file.problems.listed(), *exc.problems]) from exc
        if file.problems.errors:
            raise EvalSetError(problems=file.problems.listed())

        def cases() -> Iterator[EvalCase]:
            return self.cases(CaseFile(path, shown, Problems(shown)))

        header = EvalSet(eval_set_id=self.set_id(file), path=shown, format=self.type_name)
        again = cases if kept is None else kept.__iter__
        return OpenedEvalSet(header, again, facts, tuple(file.problems.listed()))
