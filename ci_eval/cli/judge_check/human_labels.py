"""Human labels of responses, one JSON object per line."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from ci_eval.cli.judge_check.calibrated_criterion import Chosen
from ci_eval.records.bounds import MAX_VALUE
from ci_eval.records.cases import EvalCase, Json, Record
from ci_eval.records.errors import NothingSelectedError, Problem, UsageError
from ci_eval.records.results import CriterionFacts
from ci_eval.text.file_problems import FileProblems
from ci_eval.text.json_stream import Element, walk_lines
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.validation_messages import describe, read_as
from ci_eval.text.yaml_files import Loc, dotted

MAX_LABELS = 10_000
"""Maximum number of labels in a file; more cannot have been given by hand."""
_WORDS = {
    **dict.fromkeys(("true", "pass", "passed", "yes", "valid"), True),
    **dict.fromkeys(("false", "fail", "failed", "no", "invalid"), False),
}


class Line(Record, extra="allow"):
    """The fields that all lines of labels have."""

    id: str | None = None
    """The name of the line in messages; by default its number."""
    label: Json
    """The label of a person, or a list of those of several: `true`, `pass`, `yes` or `valid`; or
    `false`, `fail`, `no` or `invalid`; or a score."""
    by: str | None = None
    """The person. Lines of several people about the same response share their `id`."""
    rubric_id: str | None = None
    """The rubric that the label is about; by default it is about the whole score."""
    criterion: str | None = None
    """The criterion that the label is about; by default the one that is checked."""


class Label(NamedTuple):
    """The label of one person."""

    passes: bool
    value: float | None = None
    """The score, if the person gives one."""


L = TypeVar("L", bound=Line)
S = TypeVar("S")


@dataclass
class Item(Generic[S]):
    """A labelled response, or one of its rubrics."""

    name: str
    line: int
    rubric: str | None
    subject: S
    """The response to judge, or the trial that contains it."""
    labels: list[Label] = field(default_factory=list)
    by: set[str | None] = field(default_factory=set)

    @property
    def passes(self) -> bool | None:
        """The majority of the labels; `None` if people are evenly divided."""
        good = sum(each.passes for each in self.labels)
        return None if 2 * good == len(self.labels) else 2 * good > len(self.labels)

    @property
    def value(self) -> float | None:
        """The mean of people's scores; `None` unless all give one."""
        values = [each.value for each in self.labels if each.value is not None]
        return sum(values) / len(values) if len(values) == len(self.labels) else None

    @property
    def pairs(self) -> tuple[int, int]:
        """The number of pairs of people that agree, and the number of all pairs."""
        count, good = len(self.labels), sum(each.passes for each in self.labels)
        return math.comb(good, 2) + math.comb(count - good, 2), math.comb(count, 2)


class Labels(NamedTuple, Generic[S]):
    """The content of a file of labels."""

    items: list[Item[S]]
    others: int = 0
    """Number of lines about other criteria."""
    warnings: tuple[Problem, ...] = ()


Refuse = Callable[[str], None]
"""Reports a problem of a line."""


class Form(NamedTuple, Generic[L, S]):
    """A format of lines."""

    line: type[L]
    subject: Callable[[L, Refuse], S | None]
    """Converts a line into its subject, or reports its problems and returns `None`."""


def read_labels(path: Path, form: Form[L, S], chosen: Chosen, *, shown: str) -> Labels[S]:
    """Read the labels on the `chosen` criterion.

    Raises:
        UsageError: the file is invalid; lists every problem.
        NothingSelectedError: it contains no label on the criterion.

    """
    reader = _Reader(form, chosen, shown)
    for element in walk_lines(path, shown=shown, refuse=reader.problems.add):
        reader.add(element)
    reader.problems.raise_errors()
    if not reader.items:
        about = f" on {chosen.name}" if reader.others else ""
        raise NothingSelectedError(f"{shown} contains no label{about}")
    return Labels(list(reader.items.values()), reader.others, tuple(reader.problems.found))


class _Reader(Generic[L, S]):
    def __init__(self, form: Form[L, S], chosen: Chosen, shown: str) -> None:
        self._form = form
        self._chosen = chosen
        self._shown = shown
        self._known = {*form.line.model_fields, *EvalCase.model_fields}
        self._first: dict[str, Item[S]] = {}
        """The item of the first line of each name."""
        self.items: dict[tuple[str, str | None], Item[S]] = {}
        self.problems = FileProblems(shown)
        self._misspelt: set[str] = set()
        """Keys that are probably misspelt; each is reported once."""
        self.others = 0

    def add(self, element: Element) -> None:
        """Read one line."""
        line = self._line(element)
        if line is None:
            return
        if line.criterion is not None and line.criterion not in self._chosen.names:
            self.others += 1
            return
        self._warn_of_misspelt(line, element.line)
        before = self.problems.errors
        labels = self._labels(line, element.line)
        subject = self._form.subject(line, lambda message: self.problems.add(message, element.line))
        if subject is not None and self.problems.errors == before:
            self._merge(line, element.line, subject, labels)

    def _line(self, element: Element) -> L | None:
        value = element.value
        if not isinstance(value, dict):
            self.problems.add(f"expected an object, found {describe(value)}", element.line)
            return None

        def refuse(message: str, loc: Loc) -> None:
            self.problems.add(message, element.line_of(loc), dotted(loc))

        return read_as(self._form.line, _with_id(value), refuse)

    def _warn_of_misspelt(self, line: L, number: int) -> None:
        """Warn of unknown keys that resemble those of a label; others are allowed."""
        for key in line.model_extra or {}:
            ending = "" if key in self._known else did_you_mean(key, self._form.line.model_fields)
            if ending.startswith(".") and key not in self._misspelt:
                self._misspelt.add(key)
                message = f"unknown key, ignored{ending}"
                self.problems.add(message, number, key[:100], severity="warning")

    def _labels(self, line: L, number: int) -> list[Label]:
        given = line.label if isinstance(line.label, list) else [line.label]
        found = []
        for each in given:
            try:
                found.append(label_of(each, self._chosen.facts))
            except ValueError as exc:
                self.problems.add(str(exc), number, "label")
        if not given:
            self.problems.add("must not be empty", number, "label")
        if len(given) > 1 and line.by is not None:
            self.problems.add("names one person, but there are several labels", number, "by")
        return found

    def _merge(self, line: L, number: int, subject: S, labels: list[Label]) -> None:
        """Add the labels of a line to those of earlier lines about the same item."""
        name = f"line {number}" if line.id is None else line.id
        first = self._first.setdefault(name, Item(name, number, None, subject))
        if first.subject != subject:
            message = f"differs from line {first.line}, which has the same id"
            self.problems.add(message, number, "id")
            return
        made = Item(name, number, line.rubric_id, first.subject)
        item = self.items.setdefault((name, line.rubric_id), made)
        if item is not made and (line.by in item.by or None in {line.by, *item.by}):
            message = (
                f"labels the same response as line {item.line}; if several people label it, "
                "each line must name the person in `by`"
            )
            self.problems.add(message, number, "id")
            return
        item.by.add(line.by)
        item.labels += labels
        if len(self.items) > MAX_LABELS:
            message = f"holds more than {MAX_LABELS:,} labels, the maximum"
            raise UsageError(message, file=self._shown, line=number)


def _with_id(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line with its id as text under `id`; recordings call it `eval_id`."""
    named = {"id": value.get("eval_id"), **value}
    if isinstance(named["id"], int):
        named["id"] = str(named["id"])
    return {key: each for key, each in named.items() if key != "eval_id"}


def label_of(value: Json, facts: CriterionFacts) -> Label:
    """Return the label that a person wrote.

    Raises:
        ValueError: it is not a valid label.

    """
    if isinstance(value, bool):
        return Label(value)
    if isinstance(value, int | float):
        low, high = facts.interval or (-MAX_VALUE, MAX_VALUE)
        if not low <= value <= high:
            raise ValueError(
                f"a score must be between {low:g} and {high:g}, found {describe(value)}"
            )
        return Label(facts.passes(value), float(value))
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in _WORDS:
        raise ValueError(
            "expected true or false, pass or fail, yes or no, valid or invalid, or a score; "
            f"found {describe(value)}"
        )
    return Label(_WORDS[word])
