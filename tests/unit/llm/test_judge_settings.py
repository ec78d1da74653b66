from pathlib import Path

import pytest

from ci_eval.criteria.adk_final_response_match_v2 import FinalResponseMatch
from ci_eval.judges.gemini_judge import Gemini
from ci_eval.judges.openai_judge import OpenAI
from ci_eval.judges.scripted_judge import Scripted
from ci_eval.llm.judge_settings import JudgeOptions, Judging, identity
from ci_eval.llm.prices import Price, price_of
from ci_eval.plugins.points import Judge, JudgedCriterion

SCRIPTED = Scripted.model_validate({"answers": [{"answer": "yes"}]})


def criterion(**options) -> JudgedCriterion:
    return FinalResponseMatch.model_validate({"threshold": 0.5, "judge_model_options": options})


def judging(default: Judge | None = None, **options) -> Judging:
    return Judging(JudgeOptions.model_validate(options), default)


def one(asked: JudgedCriterion, found: Judging) -> tuple[str, str | None]:
    (judge,) = found.judges(asked)
    return judge.type_name, judge.model


@pytest.mark.parametrize(
    ("model", "default", "expected"),
    [
        (None, None, ("gemini", "gemini-2.5-flash")),
        ("gemini-2.5-pro", None, ("gemini", "gemini-2.5-pro")),
        ("gpt-4o", None, ("openai", "gpt-4o")),
        ("o3-mini", None, ("openai", "o3-mini")),
        (None, Gemini(model="gemini-x"), ("gemini", "gemini-x")),
        (None, OpenAI(model="llama"), ("openai", "llama")),
        ("gpt-4o", Gemini(model="gemini-x"), ("openai", "gpt-4o")),
        ("llama", OpenAI(model="gpt-4o"), ("openai", "llama")),
        (
            "gemini-2.5-pro",
            OpenAI(model="m", base_url="http://gateway/v1"),
            ("openai", "gemini-2.5-pro"),
        ),
        ("gpt-4o", SCRIPTED, ("scripted", "scripted")),
    ],
)
def test_who_judges(model, default, expected):
    assert one(criterion(judge_model=model), judging(default)) == expected


def test_a_model_of_nobody_in_particular_needs_a_provider():
    with pytest.raises(ValueError, match=r"cannot infer the provider of model 'llama3'.*gemini"):
        judging().judges(criterion(judge_model="llama3"))


@pytest.mark.parametrize(
    ("own", "block", "expected"), [(None, None, 5), (None, 7, 7), (3, 7, 3), (3, None, 3)]
)
def test_how_often_they_are_asked(own, block, expected):
    found = judging(samples=block)
    assert found.samples(criterion(num_samples=own)) == expected


def test_settings_of_the_criterion_come_before_those_of_the_block():
    block = Gemini(model="gemini-x", settings={"temperature": 0, "seed": 1})
    (judge,) = judging(block).judges(criterion(judge_model_config={"temperature": 0.5}))
    assert judge.settings == {"temperature": 0.5, "seed": 1}


def test_a_setting_is_the_same_in_both_spellings():
    block = Gemini(model="gemini-x", settings={"max_output_tokens": 10})
    (judge,) = judging(block).judges(criterion(judge_model_config={"maxOutputTokens": 20}))
    assert judge.settings == {"max_output_tokens": 20}


def test_settings_of_a_criterion_are_checked_before_anything_runs():
    found = judging(Gemini(model="gemini-x"))
    wrong = criterion(judge_model_config={"temprature": 0})
    assert list(found.problems(criterion(judge_model_config={"temperature": 0}))) == []
    (problem,) = found.problems(wrong)
    assert "temprature" in problem


def test_a_verdict_is_comparable_only_where_judge_samples_and_prompt_are_the_same(tmp_path: Path):
    plain = judging().made_of(criterion())
    assert plain == judging(Gemini(base_url="http://127.0.0.1:1")).made_of(criterion())
    for other in (
        judging(Gemini(model="gemini-x")).made_of(criterion()),
        judging(Gemini(settings={"seed": 1})).made_of(criterion()),
        judging(samples=3).made_of(criterion()),
    ):
        assert other != plain


def test_the_words_of_a_scripted_judge_are_what_it_is():
    other = Scripted.model_validate({"answers": [{"answer": "no"}]})
    assert identity(SCRIPTED) != identity(other)


@pytest.mark.parametrize(
    ("said", "trials", "calls"), [(None, 8, 16), (None, 50, 50), (4, 50, 4), (None, 5000, 1000)]
)
def test_as_many_calls_are_made_at_once_as_trials_unless_something_is_said(said, trials, calls):
    assert judging(concurrency=said).beside(trials).concurrency == calls


def test_money_cannot_be_limited_where_nobody_knows_the_price():
    unknown = judging(OpenAI(model="llama"), max_cost_usd=1)
    (problem,) = unknown.problems(criterion())
    assert "the price of 'llama' is unknown" in problem
    known = judging(
        OpenAI(model="llama"), max_cost_usd=1, prices={"llama": {"input": 1, "output": 2}}
    )
    assert list(known.problems(criterion())) == []
    assert list(judging(SCRIPTED, max_cost_usd=1).problems(criterion())) == []


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gpt-4o", Price(input=2.5, output=10)),
        ("gpt-4o-2024-11-20", Price(input=2.5, output=10)),
        ("gpt-4o-mini", Price(input=0.15, output=0.6)),
        ("models/gemini-2.5-flash", Price(input=0.3, output=2.5)),
        ("gemini-2.5-flash-lite", Price(input=0.1, output=0.4)),
        ("gemini-2.5-flash-image", None),
        ("gemini-3-flash-preview", Price(input=0.5, output=3)),
        ("gemini-2.5-flash-preview-09-2025", Price(input=0.3, output=2.5)),
        ("gemini-2.5-flash-preview-tts", None),
        ("gpt-4o-audio-preview", None),
        ("llama", None),
    ],
)
def test_what_a_model_costs(model, expected):
    assert price_of(model, {}) == expected


def test_a_price_that_is_given_comes_first():
    given = Price(input=1, output=2)
    assert price_of("gpt-4o", {"gpt-4o": given}) == given
    assert given.of(1_000_000, 500_000) == 2.0
