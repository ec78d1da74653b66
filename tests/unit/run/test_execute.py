"""Trials are tried so many at a time, again where that is allowed, and never end one another."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support import jumping_clock

from ci_eval.config.config_schema import RunOptions
from ci_eval.plugins.points import Session
from ci_eval.records.cases import Content, EvalCase, FunctionCall, Invocation
from ci_eval.records.errors import DisturbedError, TrialError
from ci_eval.records.trials import Trace, Trial, TrialKey
from ci_eval.run.execute import MAX_DISTURBANCES, Conduct, Part, execute, execute_trial
from ci_eval.run_files.resume import Begun
from ci_eval.runtime.context import RunContext

Answer = Callable[["Scripted", Content], Awaitable[str]]


class Scripted:
    """An agent whose answers are a function of the test, and which counts what is asked of it."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.opened: list[bool] = []
        """Whether each conversation was to be alone."""
        self.mementos: list[object] = []
        """What each conversation was to go on from."""
        self.asked: list[str] = []
        self.closed = 0
        self.at_once = 0
        self.most_at_once = 0

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator["Scripted"]:
        del context
        yield self

    async def open(
        self, trial: Trial, *, alone: bool = False, memento: object = None
    ) -> "Conversation":
        del trial
        self.opened.append(alone)
        self.mementos.append(memento)
        return Conversation(self)


class Conversation(Session):
    memento = "kept"

    def __init__(self, agent: Scripted) -> None:
        self.agent = agent

    async def send(self, message: Content) -> Invocation:
        agent = self.agent
        agent.asked.append(message.text)
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

    context = RunContext(env={}, root=Path(), now=lambda: 0.0)
    given = RunOptions.model_validate(options)
    to_try = iter([(number, trial, None) for number, trial in enumerate(trials(count, turns))])
    jumping_clock.run(
        execute(
            [Part(to_try, {"bot": agent}, Conduct(given), context, landed)],
            concurrency=given.concurrency,
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
        await asyncio.sleep(1)
        return message.text

    agent = Scripted(slowly)

    assert len(run(agent, count=20, concurrency=5)) == 20
    assert agent.most_at_once == 5


def test_what_takes_too_long_is_a_timeout_and_keeps_what_was_said():
    async def sticks(agent: Scripted, message: Content) -> str:
        if message.text == "turn 1":
            await asyncio.sleep(3600)
        return message.text

    agent = Scripted(sticks)
    (trace,) = run(agent, turns=2, timeout_s=30)

    assert trace.error is not None
    assert (trace.error.kind, trace.error.message) == (
        "timeout",
        "timed out after 30 s, the limit in `run.timeout_s`",
    )
    assert trace.duration_s == 30
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

    context = RunContext(env={}, root=Path(), now=lambda: 0.0)
    to_try = iter([(0, Trial(TrialKey(agent="bot", evalset="e", case="x"), case), None)])
    jumping_clock.run(
        execute(
            [Part(to_try, {"bot": agent}, Conduct(RunOptions()), context, landed)], concurrency=1
        )
    )

    assert found[0].error is not None
    assert found[0].error.kind == "unsupported"
    assert agent.closed == 1


# --- Going on with what an earlier run began ----------------------------------------------------


def begun(count: int, *, waits: bool = False, memento: object = "from before") -> Begun:
    """Return `count` invocations of a trial, of a second each."""
    found = [
        Invocation(
            user_content=Content.of_text(f"turn {number}", role="user"),
            final_response=Content.of_text(f"before {number}", role="model"),
            duration=1.0,
        )
        for number in range(count)
    ]
    if waits:
        found[-1] = found[-1].model_copy(update={"waits_for": (FunctionCall(name="approve"),)})
    return Begun(invocations=tuple(found), memento=memento)


def go_on(agent: Scripted, earlier: Begun) -> Trace:
    """Try a trial of three messages of which an earlier run has begun a part."""
    (trial,) = trials(1, turns=3)
    return jumping_clock.run(execute_trial(agent, trial, Conduct(RunOptions()), earlier))


def test_a_trial_goes_on_behind_what_was_begun_and_its_time_counts():
    agent = Scripted(hello)
    trace = go_on(agent, begun(2))

    assert agent.mementos == ["from before"]
    assert agent.asked == ["turn 2"]
    assert [each.response for each in trace.invocations] == [
        "before 0",
        "before 1",
        "hello, turn 2",
    ]
    assert trace.duration_s == 2
    assert (trace.error, trace.attempts) == (None, 1)


@pytest.mark.parametrize("error", [TrialError("raised", "lost"), TrialError("start", "lost")])
def test_who_cannot_go_on_begins_anew_and_this_is_no_retry(error):
    async def remembers_nothing(agent: Scripted, message: Content) -> str:
        if agent.mementos[-1]:
            raise error
        return message.text

    agent = Scripted(remembers_nothing)
    trace = go_on(agent, begun(2))

    assert agent.mementos == ["from before", None]
    assert [each.response for each in trace.invocations] == ["turn 0", "turn 1", "turn 2"]
    assert (trace.error, trace.attempts) == (None, 2)


def test_what_fails_from_its_beginning_too_is_an_error():
    async def fails(agent: Scripted, message: Content) -> str:
        raise TrialError("raised", "no money")

    agent = Scripted(fails)
    trace = go_on(agent, begun(1))

    assert trace.error is not None
    assert trace.error.message == "no money"
    assert agent.asked == ["turn 1", "turn 0"]
    assert trace.invocations == ()


def test_what_was_begun_of_another_agent_that_leaves_no_memento_begins_anew():
    agent = Scripted(hello)
    trace = go_on(agent, begun(2, memento=None))

    assert agent.asked == ["turn 0", "turn 1", "turn 2"]
    assert len(trace.invocations) == 3


def test_what_waits_on_is_believed_and_nobody_is_asked():
    agent = Scripted(hello)
    trace = go_on(agent, begun(2, waits=True))

    assert trace.error is not None
    assert trace.error.kind == "waiting"
    assert agent.asked == []
    assert len(trace.invocations) == 2
    assert agent.closed == 1


def test_a_trial_that_was_cut_off_goes_on_from_the_same_place():
    async def cut_off_once(agent: Scripted, message: Content) -> str:
        if len(agent.opened) == 1:
            raise DisturbedError("a neighbour hung", alone=False)
        return message.text

    agent = Scripted(cut_off_once)
    trace = go_on(agent, begun(2))

    assert agent.mementos == ["from before", "from before"]
    assert trace.invocations[-1].response == "turn 2"
    assert trace.error is None


def test_what_is_not_over_is_handed_on_as_it_comes():
    kept: list[tuple[str, int]] = []

    def keep(trial: Trial, so_far: Begun) -> None:
        kept.append((trial.key.case, len(so_far.invocations)))

    conduct = Conduct(RunOptions(), keep=keep)
    jumping_clock.run(execute_trial(Scripted(hello), trials(1, 3)[0], conduct))

    assert kept == [("case0", 1), ("case0", 2)]


# --- The time that a user takes ---------------------------------------------------------------


class Thoughtful:
    """A user who says so many things, and thinks before each of them."""

    def __init__(self, messages: int, thought_s: float) -> None:
        self.messages = messages
        self.thought_s = thought_s

    async def next_message(self, so_far: Sequence[Invocation]) -> Content | None:
        await asyncio.sleep(self.thought_s)
        if len(so_far) == self.messages:
            return None
        return Content.of_text(f"turn {len(so_far)}", role="user")


def test_while_a_user_thinks_the_clock_of_the_trial_stands_still():
    agent = Scripted(hello)
    conduct = Conduct(RunOptions(timeout_s=20), lambda _: Thoughtful(3, thought_s=10))
    trace = jumping_clock.run(execute_trial(agent, trials(1)[0], conduct))

    assert trace.error is None
    assert len(trace.invocations) == 3
    assert trace.duration_s == 0


def test_the_time_of_the_agent_adds_up_whatever_its_user_takes():
    async def slow(agent: Scripted, message: Content) -> str:
        await asyncio.sleep(10)
        return message.text

    conduct = Conduct(RunOptions(timeout_s=25), lambda _: Thoughtful(9, thought_s=7))
    trace = jumping_clock.run(execute_trial(Scripted(slow), trials(1)[0], conduct))

    assert trace.error
    assert trace.error.kind == "timeout"
    assert len(trace.invocations) == 2
    assert trace.duration_s == 25
