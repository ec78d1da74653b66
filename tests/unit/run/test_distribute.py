"""Trials on a cluster: what is lost runs again, and nothing counts twice."""

import asyncio
import pickle
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType

import pytest
from pydantic import Field

from ci_eval.agents.python_agent import Python
from ci_eval.config.config_schema import RunOptions
from ci_eval.plugins import points
from ci_eval.plugins.engine import LostError, Task
from ci_eval.plugins.points import Agent
from ci_eval.records.cases import (
    Content,
    ConversationScenario,
    EvalCase,
    FunctionCall,
    IntermediateData,
    Invocation,
    Json,
)
from ci_eval.records.errors import TrialError
from ci_eval.records.trials import Trace, Trial, TrialKey
from ci_eval.run.distribute import Distribution
from ci_eval.run.execute import Conduct, Part
from ci_eval.run.remote_batch import OBSERVED, Batch, Observed
from ci_eval.run_files.resume import Begun
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import Declared
from ci_eval.text.json_text import MAX_DEPTH


class Fixed(Agent):
    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[None]:
        yield None


class Portable(Fixed):
    is_portable = True


class Declaring(Portable):
    env: Declared = Field(default={"API_KEY": None, "MODE": "fast"})


class Machines:
    """A cluster that answers as the test says, and remembers the batches."""

    width = 4

    def __init__(self, play: Callable[[int, Batch], Iterator[Observed]] | None = None) -> None:
        self.play = play or (lambda _, batch: map(observed, numbers(batch)))
        self.batches: list[Batch] = []
        self.given: list[Mapping[str, str]] = []
        self.called = asyncio.Event()

    async def run(self, task: Task, folder: Path, env: Mapping[str, str]) -> AsyncIterator[bytes]:
        del folder
        batch = pickle.loads(pickle.dumps(task))
        assert isinstance(batch, Batch)
        self.batches.append(batch)
        self.given.append(env)
        self.called.set()
        for each in self.play(len(self.batches), batch):
            await asyncio.sleep(0)
            yield OBSERVED.dump_json((each,))


def numbers(batch: Batch) -> list[int]:
    return [number for number, _, _ in batch.trials]


def key(number: int) -> TrialKey:
    return TrialKey(agent="bot", evalset="e", case=f"case{number}")


def observed(number: int) -> Observed:
    return Observed(number=number, trace=Trace(key=key(number)))


def trials(count: int) -> list[Trial]:
    asked = Invocation(user_content=Content.of_text("hello", role="user"))
    return [
        Trial(key(number), EvalCase(eval_id=f"case{number}", conversation=(asked,)))
        for number in range(count)
    ]


class Landed:
    def __init__(self) -> None:
        self.traces: dict[int, Trace] = {}
        self.here: list[int] = []
        self.kept: list[Begun] = []


def distribute(
    machines: Machines,
    planned: Sequence[Trial],
    agent: Callable[[], Agent] = Portable,
    *,
    env: Mapping[str, str] | None = None,
    earlier: Trace | None = None,
    concurrency: int = 8,
    others: Mapping[str, Agent] = MappingProxyType({}),
    waits: bool = False,
) -> Landed:
    """Distribute trials; if this machine `waits`, it does nothing before others have some."""
    found = Landed()

    async def landed(number: int, trial: Trial, trace: Trace) -> None:
        assert number not in found.traces
        assert trial.key == trace.key
        found.traces[number] = trace

    async def here(index: int, to_try: tuple[int, Trial, object]) -> None:
        assert index == 0
        if waits:
            await machines.called.wait()
        found.here.append(to_try[0])
        await landed(to_try[0], to_try[1], Trace(key=to_try[1].key))

    context = RunContext(env=env or {}, root=Path(), now=lambda: 0.0)
    conduct = Conduct(RunOptions(), keep=lambda _, begun: found.kept.append(begun))
    to_try = iter([(number, trial, earlier) for number, trial in enumerate(planned)])
    part = Part(to_try, {"bot": agent(), **others}, conduct, context, landed, len(planned))
    asyncio.run(Distribution(machines, here, concurrency).run([part]))
    return found


def test_each_trial_lands_once():
    machines = Machines()
    found = distribute(machines, trials(100))

    assert sorted(found.traces) == [*range(100)]
    assert sorted(each for batch in machines.batches for each in numbers(batch)) == [*range(100)]
    assert found.here == []


def test_what_a_machine_lost_runs_again_and_only_that():
    def play(number: int, batch: Batch) -> Iterator[Observed]:
        yield observed(numbers(batch)[0])
        if number == 1:
            raise LostError("the machine died")
        yield from map(observed, numbers(batch)[1:])

    machines = Machines(play)
    found = distribute(machines, trials(4))

    assert [numbers(each) for each in machines.batches] == [[0, 1, 2, 3], [1, 2, 3]]
    assert {n: each.attempts for n, each in found.traces.items()} == {0: 1, 1: 2, 2: 2, 3: 2}


def test_a_trial_that_ends_each_process_is_an_error_and_its_neighbours_are_not():
    def play(_: int, batch: Batch) -> Iterator[Observed]:
        if 2 in numbers(batch):
            raise LostError("out of memory")
        yield from map(observed, numbers(batch))

    found = distribute(Machines(play), trials(4))

    assert {n for n, each in found.traces.items() if each.error} == {2}
    assert found.traces[2].attempts == 3
    assert found.traces[2].error
    assert found.traces[2].error.message == "lost 3 times, the last time because: out of memory"


def test_a_task_that_ends_early_has_lost_the_rest():
    machines = Machines(lambda number, batch: iter([observed(n) for n in numbers(batch)][-number:]))
    found = distribute(machines, trials(4))

    assert sorted(found.traces) == [0, 1, 2, 3]
    assert not any(each.error for each in found.traces.values())


def test_an_error_of_the_task_is_an_error_of_its_trials_and_runs_once():
    def play(_: int, batch: Batch) -> Iterator[Observed]:
        yield observed(numbers(batch)[0])
        raise TrialError("internal", "KeyError: 'x'")

    machines = Machines(play)
    found = distribute(machines, trials(3))

    assert [bool(found.traces[number].error) for number in range(3)] == [False, True, True]
    assert len(machines.batches) == 1


def test_what_only_this_machine_can_do_stays_here():
    scenario = ConversationScenario(starting_prompt="hi", conversation_plan="greet")
    simulated = EvalCase(eval_id="case1", conversation_scenario=scenario)
    planned = [trials(1)[0], Trial(key(1), simulated)]

    assert distribute(Machines(), planned).here == [1]
    assert sorted(distribute(Machines(), trials(30), Fixed).here) == [*range(30)]
    done = Trace(key=key(0))
    assert distribute(Machines(), trials(1), earlier=done).here == [0]


def test_other_machines_do_not_wait_until_this_one_is_done():
    elsewhere = [
        Trial(TrialKey(agent="other", evalset="e", case="x"), each.case) for each in trials(1)
    ]
    machines = Machines(
        lambda _, batch: (
            Observed(number=number, trace=Trace(key=trial.key)) for number, trial, _ in batch.trials
        )
    )

    planned = [*trials(100), *elsewhere]
    found = distribute(machines, planned, Fixed, others={"other": Portable()}, waits=True)

    assert sorted(found.here) == [*range(100)]
    assert [numbers(each) for each in machines.batches] == [[100]]


def test_agents_that_wait_for_a_server_stay_here():
    assert {name for name in points.agent if points.agent[name].is_portable} == {
        *("adk", "agentflow", "command", "langgraph", "openai_agents", "pydantic_ai", "python")
    }


@pytest.mark.parametrize("models", [{}, {"models": "replay"}])
def test_an_agent_stays_with_the_gateway_that_it_calls(models):
    found = distribute(Machines(), trials(3), partial(Python, python="bot:reply", **models))

    assert found.here == ([0, 1, 2] if models else [])
    assert sorted(found.traces) == [0, 1, 2]


def test_a_trace_that_nests_as_deep_as_it_may_comes_back():
    deep: Json = 1
    for _ in range(MAX_DEPTH):
        deep = [deep]
    seen = Invocation(
        user_content=Content.of_text("hello", role="user"),
        intermediate_data=IntermediateData(tool_uses=(FunctionCall(name="f", args={"x": deep}),)),
    )
    trace = Trace(key=key(0), invocations=(seen,))
    machines = Machines(lambda *_: iter([Observed(number=0, trace=trace)]))

    assert distribute(machines, trials(1)).traces[0].invocations == (seen,)


def test_an_agent_elsewhere_gets_the_variables_it_declares_and_no_others():
    machines = Machines()
    distribute(machines, trials(1), Declaring, env={"API_KEY": "s3cret", "OTHER": "no"})

    assert machines.given == [{"API_KEY": "s3cret", "PYTHONPATH": ""}]
    assert "s3cret" not in repr(machines.batches)


def test_a_key_of_an_agent_that_stays_here_goes_nowhere():
    machines = Machines()
    keeper = Python(python="bot:reply", models="replay", env={"API_KEY": None})
    distribute(machines, trials(1), env={"API_KEY": "s3cret"}, others={"keeper": keeper})

    assert machines.given == [{"PYTHONPATH": ""}]


def test_a_conversation_that_is_not_over_is_kept():
    begun = Begun(invocations=())
    machines = Machines(lambda *_: iter([observed(0).model_copy(update={"begun": begun})]))

    assert distribute(machines, trials(1)).kept == [begun]


@pytest.mark.parametrize(
    ("seconds", "left", "expected"),
    [
        (0.1, 10_000, 500),  # never more
        (1.0, 10_000, 60),  # a minute
        (30.0, 10_000, 16),  # four for each that runs at a time
        (1.0, 40, 12),  # a part of the rest
        (0.1, 80, 20),  # two seconds
        (0.1, 8, 4),  # but no more than others get
        (30.0, 4, 4),
    ],
)
def test_a_batch_is_as_long_as_it_should_be(seconds, left, expected):
    distribution = Distribution(Machines(), lambda *_: asyncio.sleep(0), 8)

    assert distribution.size(left) == 4
    distribution._trials, distribution._seconds = 1, seconds
    assert distribution.size(left) == expected


def traces(folder: Path, code: str, *prompts: str, **env: str) -> dict[int, Trace]:
    """Run a batch of a Python agent that gets KEY and API_KEY, and return its result."""
    (folder / "bot.py").write_text(code)
    agent = Python(python="bot:reply", env={"API_KEY": None, "KEY": None})
    asked = [Invocation(user_content=Content.of_text(each, role="user")) for each in prompts]
    to_try = tuple(
        (n, Trial(key(n), EvalCase(eval_id=f"case{n}", conversation=(each,))), None)
        for n, each in enumerate(asked)
    )
    batch = Batch(
        to_try,
        {"bot": agent},
        RunOptions(),
        folder="",
        root=Path("/of/the/job"),
        of_base=False,
        foreign=None,
        width=2,
    )
    found = [each for line in batch(folder, env) for each in OBSERVED.validate_json(line)]
    assert sorted(each.number for each in found) == [*range(len(prompts))]
    return {each.number: each.trace for each in found}


def test_a_batch_runs_elsewhere_as_it_would_here(tmp_path):
    code = (
        "import os\n"
        "def reply(message):\n"
        "    if message == 'no': raise ValueError('no')\n"
        "    return os.environ['API_KEY'] + os.getcwd()\n"
    )
    found = traces(tmp_path, code, "yes", "no", "yes", API_KEY="k")

    assert found[0].invocations[0].response == f"k{tmp_path}"
    assert found[0].key == key(0)
    assert found[1].error
    assert found[1].error.kind == "raised"


def test_an_agent_elsewhere_gets_no_key_of_the_machine_that_the_job_lacks(tmp_path, monkeypatch):
    monkeypatch.setenv("API_KEY", "of the machine")
    monkeypatch.setenv("KEY", "of the machine")
    code = "import os\ndef reply(message):\n    return os.environ.get(message, 'none')\n"

    found = traces(tmp_path, code, "API_KEY", "KEY", API_KEY="of the job")

    assert [found[n].invocations[0].response for n in range(2)] == ["of the job", "none"]


def test_folders_on_pythons_path_are_those_of_the_copy(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "found_there.py").write_text("said = 'yes'\n")
    code = "def reply(message):\n    import found_there\n    return found_there.said\n"

    found = traces(tmp_path, code, "hello", PYTHONPATH="/of/the/job/lib")

    assert not found[0].error
    assert found[0].invocations[0].response == "yes"
