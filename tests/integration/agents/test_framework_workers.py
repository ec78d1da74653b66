"""Workers that run a framework by its adapter die, hang and start as others do."""

import asyncio
import os
from pathlib import Path
from typing import Any, ClassVar

import pytest
from support.agent_sessions import LONG_S, Place, Talk, converse, dies, passing, until

from ci_eval.agents._framework_agent import Framework
from ci_eval.plugins.points import RunningAgent
from ci_eval.records.errors import DisturbedError
from ci_eval.runtime.workers import worker_link

ENV = ["COVERAGE_*"]
ADAPTER = Path(__file__).with_name("fake")
"""The adapter beside this file, without `_adapter.py`."""


class Fake(Framework):
    """An agent of a framework that a file beside this one stands for."""

    type_name: ClassVar[str] = str(ADAPTER)

    named: str = "agent:made"

    @property
    def target(self) -> str:
        return self.named


def fake(place: Place, **options: Any) -> Fake:
    place.write(
        "agent.py",
        """
        import asyncio, os, time
        with open("starts", "a") as file: file.write("x")
        async def made(text, session):
            if text == "die": os._exit(7)
            if text == "block":
                open("pid", "w").write(str(os.getpid()))
                time.sleep(600)
            if text == "hang":
                open("pid", "w").write(str(os.getpid()))
                await asyncio.sleep(600)
            if text == "raise": return {}["city"]
            await asyncio.sleep(0.05)
            session["state"]["seen"] = session["state"].get("seen", 0) + 1
            return f"{os.getpid()}"
        """,
    )
    return Fake(env=ENV, **options)


def starts(place: Place) -> int:
    return len((place.root / "starts").read_text())


def test_the_start_is_paid_once_for_many_conversations(place: Place) -> None:
    talks = place.talks(fake(place), [["a", "b"]] * 20)
    assert [talk.state for talk in talks] == [{"seen": 2}] * 20
    assert starts(place) == 1


def test_several_workers_share_the_work(place: Place) -> None:
    talks = place.talks(fake(place, workers=3), [["a"]] * 6)
    assert len({talk.responses[0] for talk in talks}) == starts(place) == 3


def test_one_that_dies_takes_only_the_conversations_it_held_and_is_replaced(place: Place) -> None:
    async def hold(running: RunningAgent) -> list[Talk]:
        together = [converse(running, text) for text in ("die", "a")]
        return [*await asyncio.gather(*together), await converse(running, "a")]

    died, neighbour, later = place.run(fake(place), hold)
    for talk in (died, neighbour):
        assert isinstance(talk.error, DisturbedError)
    assert later.responses
    assert starts(place) == 2


def test_alone_it_is_known_which_conversation_it_died_of(place: Place) -> None:
    talk = place.talk(fake(place), "die", alone=True)
    assert talk.failure == ("crash", "the worker died: it exited with code 7")


def test_one_that_hangs_is_cancelled_and_the_worker_goes_on(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_link, "GRACE_S", LONG_S)

    async def hold(running: RunningAgent) -> list[Talk]:
        return [await converse(running, "hang", over=place.pid), await converse(running, "a")]

    hung, after = place.run(fake(place), hold)
    assert isinstance(hung.error, TimeoutError)
    assert after.responses
    assert starts(place) == 1


@pytest.mark.parametrize("place_of_it", [0, 3, 6])
def test_all_that_one_keeps_from_going_on_run_again_however_many_they_are(
    place: Place, place_of_it: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_link, "GRACE_S", 60.0)
    said = ["a"] * 6
    said.insert(place_of_it, "block")

    async def hold(running: Any) -> list[Talk]:
        def all_are_held() -> bool:
            if not place.pid():
                return False
            [worker] = running.pool._links
            waiting = {*worker._waiting}
            return waiting == {*worker._cancelled} and len(waiting - worker._blocked) == 1

        with passing(60.0, when=all_are_held):
            return await asyncio.gather(*(converse(running, each, over=place.pid) for each in said))

    talks: list[Talk] = place.run(fake(place), hold)
    blocking = talks.pop(place_of_it)
    assert isinstance(blocking.error, TimeoutError)
    for talk in talks:
        assert talk.responses or isinstance(talk.error, DisturbedError)


@pytest.mark.slow
def test_one_that_blocks_is_killed(place: Place) -> None:
    talk = place.talk(fake(place), "block", over=place.pid, alone=True)
    assert isinstance(talk.error, TimeoutError)
    assert dies(place.pid())


def test_what_it_raises_is_told_with_the_place_in_the_users_code(place: Place) -> None:
    kind, message = place.talk(fake(place), "raise").failure
    assert (kind, message) == ("raised", "KeyError: 'city' (agent.py:12)")


def test_it_lets_go_of_conversations_that_are_over(place: Place) -> None:
    place.talks(fake(place), [["a"]] * 3)
    assert (place.root / "closed").read_text() == "xxx"


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("agent:lost", "cannot load 'agent:lost': module 'agent' has no attribute 'lost'"),
        ("lost:made", "ModuleNotFoundError: No module named 'lost'"),
    ],
)
def test_one_that_cannot_be_loaded_says_so_for_each_trial(
    place: Place, named: str, said: str
) -> None:
    for talk in place.talks(fake(place, named=named), [["a"]] * 3):
        kind, message = talk.failure
        assert kind == "start"
        assert said in message


def test_a_set_up_comes_first_and_once_for_agents_that_share_it(place: Place) -> None:
    code = "import os, sys; os.symlink(sys.executable, 'py'); open('done', 'a').write('x')"
    setup = (("python3", "-c", code),)
    agents = [fake(place, setup=setup, interpreter="./py") for _ in range(2)]
    assert [list(agent.check(place.context)) for agent in agents] == [[], []]

    async def both() -> list[Talk]:
        async with agents[0].start(place.context) as one, agents[1].start(place.context) as other:
            return await asyncio.gather(converse(one, "a"), converse(other, "a"))

    assert all(talk.responses for talk in asyncio.run(both()))
    assert (place.root / "done").read_text() == "x"


def test_a_set_up_that_fails_is_the_error_of_each_trial(place: Place) -> None:
    setup = (("python3", "-c", "open('done', 'a').write('x'); raise SystemExit('no network')"),)
    for talk in place.talks(fake(place, setup=setup), [["a"]] * 4):
        kind, message = talk.failure
        assert kind == "start"
        assert message.startswith("the setup failed: python3 -c ")
        assert message.endswith("exited with code 1\nno network")
    assert (place.root / "done").read_text() == "x"


def test_when_the_run_is_interrupted_the_set_up_ends(place: Place) -> None:
    code = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    agent = fake(place, setup=(("python3", "-c", code),))

    async def hold(running: RunningAgent) -> None:
        talk = asyncio.create_task(converse(running, "a"))
        await until(place.pid)
        talk.cancel()
        await asyncio.wait([talk])

    place.run(agent, hold)
    assert dies(place.pid())


def test_workers_find_their_own_process_group(place: Place) -> None:
    pid = int(place.talk(fake(place), "a").responses[0])
    assert pid != os.getpid()
    assert dies(pid)
