"""Trials are tried so many at a time, again where that is allowed, and never end one another."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ci_eval.config_file import RunOptions
from ci_eval.errors import DisturbedError, TrialError
from ci_eval.execute import MAX_DISTURBANCES, Conduct, execute
from ci_eval.plugins import Session
from ci_eval.records import Content, EvalCase, Invocation
from ci_eval.trials import Trace, Trial, TrialKey
from ci_eval.world import World

Answer = Callable[["Scripted", Content], Awaitable[str]]


class Scripted:
    """An agent whose answers are a function of the test, and which counts what is asked of it."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.opened: list[bool] = []
        """Whether each conversation was to be alone."""
        self.closed = 0
        self.at_once = 0
        self.most_at_once = 0

    @asynccontextmanager
    async def start(self, world: World) -> AsyncIterator["Scripted"]:
        del world
        yield self

    async def open(
        self, trial: Trial, *, alone: bool = False, memento: object = None
    ) -> "Conversation":
        del trial, memento
        self.opened.append(alone)
        return Conversation(self)


class Conversation(Session):
    def __init__(self, agent: Scripted) -> None:
        self.agent = agent

    async def send(self, message: Content) -> Invocation:
        agent = self.agent
        agent.at_once += 1
        agent.most_at_once = max(agent.most_at_once, agent.at_once)
        try:
            said = await agent.answer(agent, message)
        finally:
            agent.at_once -= 1
        reply = Content.of_text(said, role="model")
        return Invocation(user_content=message, final_response=reply)

    async def close(self) -> dict[str, object]:
        self.agent.closed += 1
        return {"said": "goodbye"}


def trials(count: int, turns: int = 1) -> list[Trial]:
    asked = [
        Invocation(user_content=Content.of_text(f"turn {n}", role="user")) for n in range(turns)
    ]
    return [
        Trial(
            TrialKey(agent="bot", evalset="e", case=f"case{number}"),
            EvalCase(eval_id=f"case{number}", conversation=tuple(asked)),
        )
        for number in range(count)
    ]


def run(agent: Scripted, count: int = 1, turns: int = 1, **options: object) -> list[Trace]:
    """Return the traces in the order of the trials."""
    found: dict[int, Trace] = {}

    async def landed(number: int, trial: Trial, trace: Trace) -> None:
        assert trace.key == trial.key
        found[number] = trace

    world = World(env={}, root=Path(), now=lambda: 0.0)
    asyncio.run(
        execute(
            iter([(number, trial, None) for number, trial in enumerate(trials(count, turns))]),
            {"bot": agent},
            Conduct(RunOptions.model_validate(options)),
            world,
            landed,
        )
    )
    return [found[number] for number in sorted(found)]


async def hello(agent: Scripted, message: Content) -> str:
    del agent
    await asyncio.sleep(0)
    return f"hello, {message.text}"


def test_a_conversation_is_held_turn_by_turn():
    agent = Scripted(hello)
    (trace,) = run(agent, turns=2)

    assert [turn.response for turn in trace.invocations] == ["hello, turn 0", "hello, turn 1"]
    assert trace.error is None
    assert trace.attempts == 1
    assert trace.final_state == {"said": "goodbye"}
    assert agent.closed == 1


def test_so_many_are_under_way_at_once_and_no_more():
    async def slowly(agent: Scripted, message: Content) -> str:
        await asyncio.sleep(0.01)
        return message.text

    agent = Scripted(slowly)

    assert len(run(agent, count=20, concurrency=5)) == 20
    assert agent.most_at_once == 5


def test_what_takes_too_long_is_a_timeout_and_keeps_what_was_said():
    async def sticks(agent: Scripted, message: Content) -> str:
        if message.text == "turn 1":
            await asyncio.sleep(60)
        return message.text

    agent = Scripted(sticks)
    (trace,) = run(agent, turns=2, timeout_s=0.05)

    assert trace.error is not None
    assert (trace.error.kind, trace.error.message) == ("timeout", "not done after 0.05 s")
    assert [turn.response for turn in trace.invocations] == ["turn 0"]
    assert agent.closed == 1


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (TrialError("raised", "no money"), "raised", "no money"),
        (ValueError("a bug"), "internal", "ValueError: a bug"),
    ],
)
def test_an_error_is_that_trials_own(raised, kind, message):
    async def breaks(agent: Scripted, message: Content) -> str:
        if len(agent.opened) == 2:
            raise raised
        return message.text

    traces = run(Scripted(breaks), count=3, concurrency=1)

    assert [trace.error and trace.error.kind for trace in traces] == [None, kind, None]
    assert traces[1].error is not None
    assert traces[1].error.message == message


def test_what_fails_is_tried_again_as_often_as_is_allowed():
    async def fails_twice(agent: Scripted, message: Content) -> str:
        if len(agent.opened) < 3:
            raise TrialError("raised", "not yet")
        return message.text

    (trace,) = run(Scripted(fails_twice), retries=2)
    assert (trace.error, trace.attempts) == (None, 3)

    (trace,) = run(Scripted(fails_twice), retries=1)
    assert trace.error is not None
    assert trace.attempts == 2


def test_what_would_only_fail_again_is_not_tried_again():
    async def missing(agent: Scripted, message: Content) -> str:
        raise TrialError("not_recorded", "nothing there")

    agent = Scripted(missing)
    run(agent, retries=5)

    assert len(agent.opened) == 1


def test_a_trial_that_was_cut_off_runs_again_and_this_is_no_retry():
    async def cut_off_once(agent: Scripted, message: Content) -> str:
        if len(agent.opened) == 1:
            raise DisturbedError("a neighbour hung", alone=False)
        return message.text

    agent = Scripted(cut_off_once)
    (trace,) = run(agent)

    assert (trace.error, trace.attempts) == (None, 2)
    assert agent.opened == [False, False]


def test_where_the_culprit_is_unknown_each_runs_alone():
    async def dies_in_company(agent: Scripted, message: Content) -> str:
        if not agent.opened[-1]:
            raise DisturbedError("the worker died", alone=True)
        return message.text

    agent = Scripted(dies_in_company)
    (trace,) = run(agent)

    assert trace.error is None
    assert agent.opened == [False, True]


def test_what_is_cut_off_again_and_again_is_an_error():
    async def always(agent: Scripted, message: Content) -> str:
        raise DisturbedError("the worker died", alone=False)

    agent = Scripted(always)
    (trace,) = run(agent)

    assert trace.error is not None
    assert trace.error.kind == "crash"
    assert agent.opened == [False, False, True][:MAX_DISTURBANCES]


def test_a_scenario_cannot_be_held_without_a_simulated_user():
    case = EvalCase.model_validate(
        {
            "eval_id": "x",
            "conversation_scenario": {"starting_prompt": "Hi", "conversation_plan": "Ask."},
        }
    )
    found: list[Trace] = []
    agent = Scripted(hello)

    async def landed(_number: int, _trial: Trial, trace: Trace) -> None:
        found.append(trace)

    asyncio.run(
        execute(
            iter([(0, Trial(TrialKey(agent="bot", evalset="e", case="x"), case), None)]),
            {"bot": agent},
            Conduct(RunOptions()),
            World(env={}, root=Path(), now=lambda: 0.0),
            landed,
        )
    )

    assert found[0].error is not None
    assert found[0].error.kind == "unsupported"
    assert agent.closed == 1
