"""Label lines: with the response to judge, or with a trial of a stored run."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ci_eval.cli.judge_check.human_labels import Form, Item, Line, Refuse
from ci_eval.plugins.points import JudgedCriterion
from ci_eval.records.cases import Content, EvalCase, Invocation, Json
from ci_eval.records.errors import Problem, UsageError
from ci_eval.records.results import Run, Score
from ci_eval.records.trials import TrialKey
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.validation_messages import read_as
from ci_eval.text.yaml_files import Loc, dotted


class Response(Line):
    """A line with a response or a conversation; other keys are those of an eval case."""

    user: str | None = None
    """The user's message."""
    response: str | None = None
    """The agent's response."""
    expected: str | None = None
    """The expected response."""
    invocations: tuple[Invocation, ...] | None = None
    """The conversation, as in ADK and in recordings of ci-eval, instead of the texts."""


class Subject(NamedTuple):
    """A conversation to judge, with its case."""

    case: EvalCase
    invocations: tuple[Invocation, ...]


def responses(criterion: JudgedCriterion) -> Form[Response, Subject]:
    """Return the format of lines that `criterion` can judge."""

    def read(line: Response, refuse: Refuse) -> Subject | None:
        found = _subject(line, refuse)
        if found is None:
            return None
        for message in _faults(line, found, criterion):
            refuse(message)
        return found

    return Form(Response, read)


def _subject(line: Response, refuse: Refuse) -> Subject | None:
    wrong = False
    for message in _contradictions(line):
        refuse(message)
        wrong = True
    if wrong:
        return None
    given: dict[str, Any] = {**(line.model_extra or {}), "eval_id": line.id or "label"}
    if line.invocations is not None:
        taken = line.invocations
        if not {"conversation", "conversation_scenario"} & given.keys():
            given["conversation"] = tuple(map(_only_asked, taken))
    else:
        taken = (_invocation(line.user or "", line.response),)
        given["conversation"] = (_invocation(line.user or "", line.expected),)

    def refuse_at(message: str, loc: Loc) -> None:
        refuse(f"{dotted(loc)}: {message}" if loc else message)

    case = read_as(EvalCase, given, refuse_at)
    return Subject(case, taken) if case else None


def _contradictions(line: Response) -> Iterator[str]:
    texts = [key for key in ("user", "response", "expected") if getattr(line, key) is not None]
    extra = line.model_extra or {}
    if line.invocations is not None:
        if texts:
            yield f"has 'invocations', so {texts[0]!r} is not allowed"
        elif not line.invocations:
            yield "has no invocation, so there is nothing to judge"
    elif "case" in extra and not texts:
        yield "refers to a case of a run; pass the run with --run"
    elif "conversation" in extra:
        yield "has a 'conversation' (expected) but no 'invocations' (actual)"
    else:
        yield from (f"{key!r} is missing" for key in ("user", "response") if key not in texts)


def _invocation(asked: str, answered: str | None) -> Invocation:
    return Invocation(
        user_content=Content.of_text(asked, role="user"),
        final_response=None if answered is None else Content.of_text(answered, role="model"),
    )


def _only_asked(taken: Invocation) -> Invocation:
    """Return an invocation without expectations."""
    return Invocation(user_content=taken.user_content, rubrics=taken.rubrics)


def _faults(line: Response, found: Subject, criterion: JudgedCriterion) -> Iterator[str]:
    """Yield the reasons why `criterion` cannot judge the response."""
    expected = found.case.conversation
    if expected is not None and len(expected) != len(found.invocations):
        yield f"expects {len(expected)} invocations, but {len(found.invocations)} took place"
        return
    skip_reason = criterion.skip_reason(found.case)
    if expected and criterion.unstated(found.case):
        key = "expected" if line.invocations is None else "conversation"
        yield f"{key!r} is missing, but {criterion.type_name} needs it"
    elif skip_reason:
        yield f"{criterion.type_name} cannot judge it: {skip_reason}"
    yield from criterion.faults(found.case)
    known = _rubrics(found, criterion)
    if line.rubric_id is not None and line.rubric_id not in known:
        ending = did_you_mean(line.rubric_id, known)
        yield f"{criterion.type_name} has no rubric {line.rubric_id!r} for this line{ending}"


def _rubrics(found: Subject, criterion: JudgedCriterion) -> set[str]:
    """Return the ids of the rubrics that may be judged."""
    turns = (*(found.case.conversation or ()), *found.invocations)
    given = (getattr(criterion, "rubrics", ()), found.case.rubrics, *(e.rubrics for e in turns))
    return {rubric.rubric_id for each in given for rubric in each or ()}


# --- Lines about a stored run -----------------------------------------------------------------

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
