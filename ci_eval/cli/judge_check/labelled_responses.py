"""Label lines that contain the response to judge."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from pydantic import ValidationError

from ci_eval.cli.judge_check.human_labels import Form, Line, Refuse
from ci_eval.plugins.points import JudgedCriterion
from ci_eval.records.cases import Content, EvalCase, Invocation
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.validation_messages import explain
from ci_eval.text.yaml_files import dotted


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
    try:
        return Subject(EvalCase.model_validate(given), taken)
    except ValidationError as exc:
        for loc, message in explain(exc, EvalCase):
            refuse(f"{dotted(loc)}: {message}" if loc else message)
        return None


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
