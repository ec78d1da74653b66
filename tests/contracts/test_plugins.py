"""What holds for every plugin, whoever wrote it."""

import importlib
import inspect
import json
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest
from support.case_language import SCENARIO
from support.judged_scores import judged
from support.project import GREETS, REFUNDS, TRACKS
from support.simulated_conversations import played
from support.slow_params import some

from ci_eval.cli.reference import catalogue, descriptions, json_schema
from ci_eval.llm.prompts import Prompts
from ci_eval.plugins import points
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.plugins.plugin import Plugin
from ci_eval.plugins.points import Criterion, JudgedCriterion, Simulator
from ci_eval.records.cases import EvalCase, Status
from ci_eval.records.errors import JudgeError, TrialError
from ci_eval.records.questions import Question
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace, TrialKey

KEY = TrialKey(agent="a", evalset="e", case="c")
ALL = [
    pytest.param(registry[name], id=f"{registry.kind}: {name}")
    for registry in points.POINTS
    for name in registry
]
CRITERIA = [pytest.param(points.criterion[name], id=name) for name in points.criterion]
SNIFFED = (points.evalset, points.recording)
"""Nobody names these in a configuration: the files themselves tell."""
DIRECT = [each for each in CRITERIA if issubclass(each.values[0], Criterion)]
SIMULATORS = [pytest.param(points.simulator[name], id=name) for name in points.simulator]
COMPARING = [each for each in DIRECT if each.values[0].needs_reference]
JUDGED = [each for each in CRITERIA if issubclass(each.values[0], JudgedCriterion)]
CASES = [EvalCase.model_validate(case) for case in (GREETS, REFUNDS, TRACKS)]


def made(model: type[AnyCriterion]) -> AnyCriterion:
    """Return the criterion as in its example, with the strictest threshold it can have."""
    strictest: dict[str, Any] = {}
    if model.takes_threshold == "always" and model.interval:
        strictest["threshold"] = model.interval[model.better == "higher"]
    return model.model_validate({**model.example, **strictest})


def traced(case: EvalCase, **more: Any) -> Trace:
    return Trace.model_validate({"key": KEY, "invocations": case.conversation, **more})


@pytest.mark.parametrize("model", ALL)
def test_a_plugin_says_what_it_is_and_what_each_field_means(model: type[Plugin]):
    doc = inspect.cleandoc(model.__doc__ or "")
    described = descriptions(model)

    assert doc
    assert doc != inspect.cleandoc(model.__mro__[1].__doc__ or "")
    assert [name for name in model.model_fields if not described.get(name)] == []


@pytest.mark.parametrize("model", ALL)
def test_a_plugin_is_frozen_and_refuses_what_it_does_not_know(model: type[Plugin]):
    assert model.model_config["frozen"]
    assert model.model_config["extra"] == "forbid"


@pytest.mark.parametrize("registry", points.POINTS, ids=lambda registry: registry.kind)
def test_what_the_modules_say_they_register_is_what_they_register(registry):
    said = list(registry)
    package = importlib.import_module(registry.package)
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{package.__name__}.{module.name}")

    assert sorted(registry._classes) == said
    assert [registry[name].type_name for name in said] == said


def test_every_plugin_is_listed_and_in_the_schema():
    listed = {entry["name"] for entries in catalogue().values() for entry in entries}
    text = str(json_schema())

    for registry in points.POINTS:
        for name in registry:
            assert name in listed
            assert registry in SNIFFED or name in text


@pytest.mark.parametrize("model", COMPARING)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.eval_id)
def test_doing_what_is_expected_scores_the_best_there_is(model: type[Criterion], case: EvalCase):
    criterion = made(model)
    if criterion.lacks(case):
        pytest.skip(criterion.lacks(case))
    score = criterion.score(case, traced(case))

    assert score.status is Status.PASSED
    assert model.interval is None or score.value == model.interval[model.better == "higher"]


@pytest.mark.parametrize("model", DIRECT)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.eval_id)
def test_whatever_was_done_the_score_is_sound(model: type[Criterion], case: EvalCase):
    criterion = made(model)
    for other in CASES:
        if len(other.conversation or ()) != len(case.conversation or ()):
            continue
        try:
            score = criterion.score(case, traced(other))
        except TrialError:
            continue  # it becomes an error with this reason

        assert score == Score.model_validate_json(score.model_dump_json())
        assert score.criterion == model.type_name
        assert (score.informational, score.better) == (criterion.informational, model.better)
        if score.value is not None and model.interval:
            assert model.interval[0] <= score.value <= model.interval[1]


@pytest.mark.parametrize("model", DIRECT)
def test_a_conversation_without_turns_is_never_passed(model: type[Criterion]):
    empty = EvalCase(eval_id="empty", conversation=())
    criterion = made(model)

    assert criterion.lacks(empty) or criterion.score(empty, traced(empty)).status in (
        Status.SKIPPED,
        Status.ERROR,
    )


@pytest.mark.parametrize("model", CRITERIA)
@pytest.mark.parametrize("of_adk", [False, True])
def test_what_needs_a_reference_scores_nothing_where_nothing_is_stated(
    model: type[AnyCriterion], of_adk: bool
):
    asked = {"user_content": {"parts": [{"text": "Hi"}]}}
    case = EvalCase.model_validate({"eval_id": "c", "conversation": [asked], "of_adk": of_adk})
    # ADK's own number stands in ADK's own files, and nothing that a model judges does.
    counts = of_adk and model.counts_silence and not model.judged

    if model.needs_reference:
        assert bool(made(model).skip_reason(case)) is not counts


@pytest.mark.parametrize("model", JUDGED)
def test_every_prompt_of_a_judged_criterion_is_there_and_sound(model: type[JudgedCriterion]):
    prompts = Prompts()

    assert set(model.prompts) <= set(prompts.names())
    assert list(prompts.problems(model.prompts)) == []
    assert model.prompts or model.service


def test_every_prompt_is_asked_with():
    asked = {name for each in JUDGED for name in each.values[0].prompts}
    assert asked == set(Prompts().names())


@pytest.mark.parametrize("model", JUDGED)
@pytest.mark.parametrize(
    "answer", some([None, '{"score": "high"}', "yes", "", "?", "null", "[]", "{}"], 3)
)
def test_without_an_answer_there_is_never_a_score(model: type[JudgedCriterion], answer: str | None):
    criterion = made(model)
    for case in (*CASES, SCENARIO):
        trace = traced(case, invocations=case.conversation or REFUNDS["conversation"] * 2)
        if criterion.skip_reason(case):
            continue
        score = judged(criterion, case, trace, answer, samples=3).score
        assert score.status in (Status.ERROR, Status.SKIPPED)
        assert score.reason


@pytest.mark.parametrize("model", JUDGED)
def test_a_form_of_answers_is_one_that_providers_take(model: type[JudgedCriterion]):
    criterion = made(model)
    for case in (*CASES, SCENARIO):
        trace = traced(case, invocations=case.conversation or REFUNDS["conversation"] * 2)
        asked = [] if criterion.skip_reason(case) else judged(criterion, case, trace, None).asked
        for question in asked:
            assert list(loose(question.schema)) == []
            json.dumps(question.schema)


def loose(schema: Any) -> Iterator[Any]:
    """Yield the objects in `schema` that OpenAI's strict mode would refuse."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and (
            schema.get("additionalProperties") is not False
            or sorted(schema.get("required", ())) != sorted(schema.get("properties", ()))
        ):
            yield schema
        schema = list(schema.values())
    for each in schema if isinstance(schema, list | tuple) else ():
        yield from loose(each)


# --- Simulated users --------------------------------------------------------------------------


def test_every_prompt_of_a_simulated_user_is_there_and_sound_and_asked_with():
    prompts = Prompts(kind="simulator")
    asked = {name for each in SIMULATORS for name in each.values[0].prompts}

    assert asked == set(prompts.names())
    assert list(prompts.problems(tuple(asked))) == []


@pytest.mark.parametrize("model", SIMULATORS)
@pytest.mark.parametrize("answer", ["", " ", JudgeError("down")])
def test_a_user_whose_model_says_nothing_says_nothing_either(model: type[Simulator], answer: Any):
    def say(_: Question) -> str:
        if isinstance(answer, JudgeError):
            raise answer
        return str(answer)

    found = played(model(), SCENARIO, say)
    assert len(found.messages) == 1
    assert found.error
    assert found.error.kind == "simulator"


@pytest.mark.parametrize("model", SIMULATORS)
def test_a_simulated_user_is_not_asked_for_more_than_its_limit(model: type[Simulator]):
    say = lambda question: '{"reached": []}' if question.schema else "on"  # noqa: E731  # a name for a line
    found = played(model(), SCENARIO, say)

    assert len(found.messages) == model().limit(SCENARIO)
    assert len(found.asked) <= model.steps * len(found.messages)
    assert found.error is None


@pytest.mark.parametrize("model", SIMULATORS)
def test_who_is_asked_is_no_option_of_a_simulated_user(model: type[Simulator]):
    assert not {"model", "settings"} & model().options().keys()


@pytest.mark.parametrize("model", CRITERIA)
def test_a_threshold_does_not_change_what_is_measured(model: type[AnyCriterion]):
    assert not {"threshold", "enabled"} & made(model).options().keys()
