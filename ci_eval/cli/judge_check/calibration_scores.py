"""Label lines that refer to a stored, already judged run."""

from collections.abc import Iterator, Sequence

from ci_eval.cli.judge_check.human_labels import Form, Item, Line
from ci_eval.records.cases import Json
from ci_eval.records.errors import Problem, UsageError
from ci_eval.records.results import Run, Score
from ci_eval.records.trials import TrialKey

Place = dict[str, Json]
"""Fields of a trial's key; an omitted field matches any value."""


class Pointer(Line):
    """A line that names a trial."""

    case: str
    """The eval case."""
    evalset: str | None = None
    """The evalset, as the configuration names it; required if several have the case."""
    agent: str | None = None
    """The agent, if there are several."""
    repeat: int | None = None
    """Repeat index, from 0, if there are several."""

    @property
    def trial(self) -> Place:
        """The fields of a trial's key that the line gives."""
        return self.model_dump(include={*TrialKey.model_fields}, exclude_none=True)


POINTERS = Form(Pointer, lambda line, _refuse: line.trial)
"""The format of lines that name trials."""


def scores_of(run: Run, name: str, items: Sequence[Item[Place]], shown: str) -> list[Score]:
    """Return, for each of `items`, the score by the criterion `name`.

    Raises:
        UsageError: an item matches no trial, or several.

    """
    wanted = {item.subject["case"] for item in items}
    known: dict[str, list[tuple[TrialKey, Score]]] = {}
    for result in run.results():
        if result.key.case in wanted:
            scores = [each for each in result.scores if each.name == name]
            known.setdefault(result.key.case, []).extend((result.key, each) for each in scores)
    fitting = [_fitting(item.subject, known) for item in items]
    problems = list(_problems(items, fitting, name, shown))
    if problems:
        raise UsageError(problems=problems)
    return [found[0] for found in fitting]


def _fitting(wanted: Place, known: dict[str, list[tuple[TrialKey, Score]]]) -> list[Score]:
    named = known.get(wanted["case"], ())
    return [score for key, score in named if wanted.items() <= key.model_dump().items()]


def _problems(
    items: Sequence[Item[Place]], fitting: Sequence[Sequence[Score]], name: str, shown: str
) -> Iterator[Problem]:
    for item, found in zip(items, fitting, strict=True):
        case = item.subject["case"]
        if not found:
            message = f"the run has no such trial of {case!r} scored by {name}"
            yield Problem(message, shown, item.line)
        elif len(found) > 1:
            which = "choose one with `evalset`, `agent` or `repeat`"
            yield Problem(f"matches {len(found)} trials of {case!r}; {which}", shown, item.line)
