"""What holds for every plugin, whoever wrote it."""

import inspect
from typing import Any

import pytest
from project import GREETS, REFUNDS, TRACKS

from ci_eval import plugins
from ci_eval.plugins import Criterion, Plugin
from ci_eval.records import EvalCase, Status, Trace, TrialKey
from ci_eval.reference import catalogue, descriptions, json_schema
from ci_eval.results import Score

KEY = TrialKey(agent="a", evalset="e", case="c")
ALL = [
    pytest.param(registry[name], id=f"{registry.kind}: {name}")
    for registry in plugins.POINTS
    for name in registry
]
CRITERIA = [pytest.param(plugins.criterion[name], id=name) for name in plugins.criterion]
CASES = [EvalCase.model_validate(case) for case in (GREETS, REFUNDS, TRACKS)]


def made(model: type[Criterion]) -> Criterion:
    """Return the criterion with the strictest threshold it can have."""
    strictest: dict[str, Any] = {}
    if not model.informational and model.interval:
        strictest["threshold"] = model.interval[model.better == "higher"]
    return model.model_validate(strictest)


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


def test_every_plugin_is_listed_and_in_the_schema():
    listed = {entry["name"] for entries in catalogue().values() for entry in entries}
    text = str(json_schema())

    for registry in plugins.POINTS:
        for name in registry:
            assert name in listed
            assert registry is plugins.evalset or name in text


@pytest.mark.parametrize("model", CRITERIA)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.eval_id)
def test_doing_what_is_expected_scores_the_best_there_is(model: type[Criterion], case: EvalCase):
    score = made(model).score(case, traced(case))

    if model.informational:
        assert score.status in (Status.PASSED, Status.SKIPPED)
    else:
        assert score.status is Status.PASSED
        assert model.interval is None or score.value == model.interval[model.better == "higher"]


@pytest.mark.parametrize("model", CRITERIA)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.eval_id)
def test_whatever_was_done_the_score_is_sound(model: type[Criterion], case: EvalCase):
    criterion = made(model)
    for other in CASES:
        if len(other.conversation or ()) != len(case.conversation or ()):
            continue
        score = criterion.score(case, traced(other))

        assert score == Score.model_validate_json(score.model_dump_json())
        assert score.criterion == model.type_name
        assert (score.informational, score.better) == (model.informational, model.better)
        if score.value is not None and model.interval:
            assert model.interval[0] <= score.value <= model.interval[1]


@pytest.mark.parametrize("model", CRITERIA)
def test_a_conversation_without_turns_is_skipped_and_never_passed(model: type[Criterion]):
    empty = EvalCase(eval_id="empty", conversation=())

    assert made(model).score(empty, traced(empty)).status is Status.SKIPPED


@pytest.mark.parametrize("model", CRITERIA)
def test_a_threshold_does_not_change_what_is_measured(model: type[Criterion]):
    assert "threshold" not in made(model).options()
