"""Who talks to an agent in a run, and what that took."""

import asyncio
from pathlib import Path

import pytest
from support.case_language import expecting
from support.scripted_judge import asker, judge
from support.simulated_conversations import played, saying, scenario

from ci_eval.judges.scripted_judge import Scripted as ScriptedJudge
from ci_eval.llm.judge_settings import JudgeOptions, Judging, Simulation
from ci_eval.records.trials import Trial, TrialKey
from ci_eval.run.conversation import Scripted
from ci_eval.run.participants import Simulating
from ci_eval.simulators.agentflow_simulator import AgentFlow
from ci_eval.simulators.llm_simulator import LlmBacked

KEY = TrialKey(agent="a", evalset="e", case="c")


def test_a_written_conversation_is_said_as_it_is_written(tmp_path: Path):
    async def work() -> None:
        async with asker(tmp_path, judge(saying())) as found:
            simulating = Simulating(Simulation(LlmBacked()), found)
            assert isinstance(simulating(Trial(KEY, expecting("a"))), Scripted)
            assert simulating.spent(KEY) is None

    asyncio.run(work())


def test_what_a_user_took_is_counted_over_all_tries_of_its_trial(tmp_path: Path):
    async def work() -> None:
        async with asker(tmp_path, judge(lambda _: "on"), mode="off") as found:
            simulating = Simulating(Simulation(LlmBacked(max_allowed_invocations=3)), found)
            trial = Trial(KEY, scenario())
            for _ in range(2):
                user, so_far = simulating(trial), []
                while message := await user.next_message(so_far):
                    so_far.append(
                        expecting("x").conversation[0].model_copy(update={"user_content": message})
                    )
            spent = simulating.spent(KEY)
            assert spent
            assert (spent.calls, spent.input_tokens) == (4, 400)
            assert simulating.spent(KEY) is None

    asyncio.run(work())


def test_what_was_said_once_is_not_asked_again(tmp_path: Path):
    first = played(LlmBacked(), scenario(), saying("one", "</finished>"), folder=tmp_path)
    again = played(LlmBacked(), scenario(), saying(), folder=tmp_path)

    assert first.messages == again.messages == ["Hi", "one"]
    assert first.usage
    assert again.usage
    assert (first.usage.calls, first.usage.cached) == (2, 0)
    assert (again.usage.calls, again.usage.cached) == (0, 2)


def test_each_repeat_is_asked_for_itself(tmp_path: Path):
    def play(repeat: int, *answers: str) -> list[str]:
        user = LlmBacked()
        return played(user, scenario(), saying(*answers), folder=tmp_path, repeat=repeat).messages

    assert play(0, "one", "</finished>") == ["Hi", "one"]
    assert play(1, "two", "</finished>") == ["Hi", "two"]
    assert play(0) == ["Hi", "one"]
    assert play(1) == ["Hi", "two"]


def test_an_answer_that_was_kept_and_is_none_is_asked_for_anew(tmp_path: Path):
    bad = played(LlmBacked(), scenario(), lambda _: "", folder=tmp_path)
    good = played(LlmBacked(), scenario(), saying("one", "</finished>"), folder=tmp_path)

    assert bad.error
    assert good.messages == ["Hi", "one"]


def test_where_nothing_is_asked_a_missing_answer_is_an_error(tmp_path: Path):
    played(LlmBacked(), scenario(), saying("one", "</finished>"), folder=tmp_path)
    found = played(LlmBacked(), scenario("Ho"), saying(), folder=tmp_path, mode="replay")

    assert found.error
    assert "the answer is not in " in str(found.error)


# --- Whom it is asked of ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("simulator", "default", "model"),
    [
        (LlmBacked(), None, "gemini-2.5-flash"),
        (AgentFlow(), None, "gemini-2.5-flash"),
        (LlmBacked(model="gpt-4o"), None, "gpt-4o"),
        (LlmBacked(), judge(saying(), model="m"), "m"),
        (LlmBacked(model="n"), judge(saying(), model="m"), "n"),
        (LlmBacked(model="n"), ScriptedJudge(answers=[{"answer": "x"}]), "scripted"),
    ],
)
def test_the_model_is_its_own_or_that_of_the_judges(simulator, default, model: str):
    player = Judging(JudgeOptions(), default).player(Simulation(simulator))
    assert player.model == model


def test_the_settings_of_judges_are_not_its_own():
    default = judge(saying(), settings={"temperature": 0})
    simulation = Simulation(LlmBacked(settings={"topP": 0.5}))

    assert Judging(JudgeOptions(), default).player(simulation).settings == {"top_p": 0.5}


def test_a_model_that_nobody_knows_is_a_problem_and_so_is_one_without_a_price():
    def problems(user: LlmBacked, **options: float) -> list[str]:
        judging = Judging(JudgeOptions.model_validate(options))
        return list(judging.unplayable(Simulation(user)))

    assert problems(LlmBacked()) == []
    [unknown] = problems(LlmBacked(model="foo"))
    assert unknown.startswith(
        "cannot infer the provider of model 'foo'; set `simulator: {provider: …}`, one of "
    )
    assert problems(LlmBacked(), max_cost_usd=1) == []
    [unpriced] = problems(LlmBacked(model="gemini-99"), max_cost_usd=1)
    assert "the price of 'gemini-99' is unknown" in unpriced


@pytest.mark.parametrize(
    "other",
    [
        LlmBacked(max_allowed_invocations=3),
        LlmBacked(model="gemini-2.5-pro"),
        LlmBacked(settings={"temperature": 0}),
        LlmBacked(include_function_calls=True),
        AgentFlow(),
    ],
)
def test_another_user_makes_other_conversations(other):
    judging = Judging(JudgeOptions())
    same, changed = (judging.playing(Simulation(each)) for each in (LlmBacked(), other))

    assert same == judging.playing(Simulation(LlmBacked()))
    assert changed != same
