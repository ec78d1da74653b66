"""A Python callable runs in workers, where all that it can do wrong stays its own."""

import ast
import asyncio
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pydantic import ValidationError
from support.agent_sessions import LONG_S, Place, Talk, converse, dies, passing, trial, until

from ci_eval.agents.python_agent import Python, _Running
from ci_eval.plugins.points import RunningAgent
from ci_eval.records.cases import Content, FunctionCall, Part, ToolCall
from ci_eval.records.errors import DisturbedError, TrialError
from ci_eval.runtime.workers import worker_link as _link
from ci_eval.runtime.workers import worker_pool as _pool

ENV = ["COVERAGE_*"]
"""So that what runs in workers is measured, too."""
GRACE_S = 60.0
"""What a cancelled call has here; it passes when a test has seen what it waits for."""


def python(place: Place, code: str, *, target: str = "weather:answer", **options: Any) -> Python:
    place.write("weather.py", code)
    return Python(python=target, **{"env": ENV, **options})


# --- How it is called -------------------------------------------------------------------------

SYNC = "def answer({}): return {}"
ASYNC = "async def answer({}): return {}"


@pytest.mark.parametrize("form", [SYNC, ASYNC])
def test_it_gets_the_text_and_returns_one(place: Place, form: str) -> None:
    agent = python(place, form.format("message", "message.upper()"))
    talk = place.talk(agent, "sunny?", "still?")
    assert talk.responses == ["SUNNY?", "STILL?"]
    assert talk.state is None


def test_it_may_tell_of_its_calls_and_their_cost(place: Place) -> None:
    agent = python(
        place,
        """
        import time
        def answer(message):
            time.sleep(0.05)
            call = {"name": "look", "args": {"at": "Rome"}, "result": {"sky": "clear"}}
            usage = {"input_tokens": 10, "output_tokens": 2, "cost_usd": 0.5}
            return {"response": "Sunny.", "tool_calls": [call], "usage": usage}
        """,
    )
    [found] = place.talk(agent, "sunny?").invocations
    assert found.tool_calls == (ToolCall("look", {"at": "Rome"}, {"sky": "clear"}),)
    assert found.cost_usd == 0.5
    assert found.duration is not None
    assert 0.05 <= found.duration < 50  # seconds, and no milliseconds


def test_a_message_that_is_more_than_text_is_given_whole(place: Place) -> None:
    agent = python(place, SYNC.format("message", "repr(message)"))
    call = Part(function_call=FunctionCall(name="look", args={}))
    talk = place.talk(agent, Content(role="user", parts=(call,)))
    asked = ast.literal_eval(talk.responses[0])
    assert asked == {"role": "user", "parts": [{"function_call": {"name": "look", "args": {}}}]}


REMEMBER = """
    import json
    {}def answer(message, *, session, history):
        session["state"]["seen"] = session["state"].get("seen", 0) + 1
        calls = [{{"name": "note", "args": {{"what": message}}}}]
        history.append("mine")
        return {{"response": json.dumps([session["id"], len(history)]), "tool_calls": calls}}
"""


@pytest.mark.parametrize("form", ["", "async "])
def test_history_and_session_come_to_those_who_name_them(place: Place, form: str) -> None:
    given = {"app_name": "shop", "user_id": "u", "state": {"cart": [1]}}
    agent = python(place, REMEMBER.format(form))
    for talk in place.talks(agent, [["a", "b", "c"]] * 2, session_input=given):
        found = [ast.literal_eval(response) for response in talk.responses]
        assert [length for _, length in found] == [1, 2, 3]
        assert len({identity for identity, _ in found}) == 1
        assert talk.state == {"cart": [1], "seen": 3}


def test_history_tells_what_was_said_and_called(place: Place) -> None:
    agent = python(
        place,
        """
        calls = []
        def answer(message, history):
            calls.append({"name": message, "args": {}})
            return {"response": repr(history), "tool_calls": calls} if history else "none"
        """,
    )
    talk = place.talk(agent, "a", "b", "c")
    seen = ast.literal_eval(talk.responses[2])
    assert seen[0] == {"message": "a", "response": "none", "tool_calls": []}
    assert seen[1]["message"] == "b"
    assert [call["name"] for call in seen[1]["tool_calls"]] == ["a", "b"]


@pytest.mark.parametrize(
    "code",
    [
        "def answer(message, **rest): return repr(rest)",
        "def answer(message, *rest): return repr(dict(rest))",
        "def answer(history): return '{}'",
    ],
)
def test_they_do_not_come_to_others(place: Place, code: str) -> None:
    assert place.talk(python(place, code), "a").responses == ["{}"]


@pytest.mark.parametrize(
    ("code", "target"),
    [
        ("class A:\n async def __call__(self, message): return 'yes'\nanswer = A()", "answer"),
        ("class A:\n def reply(self, message): return 'yes'\nagent = A()", "agent.reply"),
        ("from functools import partial\nanswer = partial(lambda w, m: w, 'yes')", "answer"),
        ("async def f(message): return 'yes'\nanswer = lambda message: f(message)", "answer"),
        ("class answer(dict):\n def __init__(self, m): self['response'] = 'yes'", "answer"),
        ("import operator\nanswer = operator.methodcaller('replace', 'a', 'yes')", "answer"),
        ("answer = str", "answer"),
    ],
)
def test_whatever_can_be_called_will_do(place: Place, code: str, target: str) -> None:
    [response] = place.talk(python(place, code, target=f"weather:{target}"), "a").responses
    assert response == ("a" if code == "answer = str" else "yes")


@pytest.mark.parametrize("env", [{}, {"PYTHONSAFEPATH": "1"}])
def test_it_finds_its_folder_and_its_neighbours_and_not_ours(
    place: Place, env: dict[str, str]
) -> None:
    place.write("neighbour.py", "HERE = True")
    place.write("input.txt", "read me")
    code = """
        import sys, neighbour
        def answer(message):
            assert sys.argv == ["weather"]
            assert not any("ci_eval/agents" in entry for entry in sys.path)
            return open("input.txt").read()
    """
    agent = python(place, code, env={**env, "COVERAGE_*": None})
    assert place.talk(agent, "a").responses == ["read me"]


def test_it_sees_the_environment_that_is_declared(place: Place) -> None:
    code = """
        import os
        def answer(message):
            return repr([os.environ.get(name) for name in message.split()])
    """
    agent = python(place, code, env={"MODEL": "small", "COVERAGE_*": None})
    talk = place.talk(agent, "MODEL PYTEST_VERSION")
    assert talk.responses == ["['small', None]"]


# --- How many at once -------------------------------------------------------------------------

COUNT = """
    import threading, time
    lock, now, most, threads = threading.Lock(), 0, 0, set()
    together = threading.Barrier({})
    def answer(message):
        global now, most
        with lock:
            now += 1
            most = max(most, now)
        together.wait(300)
        time.sleep(0.1)  # in which one too many could come
        threads.add(threading.current_thread().name)
        with lock:
            now -= 1
        return repr([most, sorted(threads)])
"""


def most_at_once(talks: list[Talk]) -> int:
    found: int = max(ast.literal_eval(talk.responses[0])[0] for talk in talks)
    return found


def test_sync_callables_run_in_as_many_threads_as_there_are_trials(place: Place) -> None:
    assert most_at_once(place.talks(python(place, COUNT.format(12)), [["a"]] * 12)) == 12


def test_threads_limits_them(place: Place) -> None:
    agent = python(place, COUNT.format(2), threads=2)
    assert most_at_once(place.talks(agent, [["a"]] * 4)) == 2


def test_one_thread_is_the_main_thread(place: Place) -> None:
    talks = place.talks(python(place, COUNT.format(1), threads=1), [["a"]] * 3)
    assert ast.literal_eval(talks[-1].responses[0]) == [1, ["MainThread"]]


def test_async_callables_share_a_loop(place: Place) -> None:
    code = """
        import asyncio
        together, missing = asyncio.Event(), 50
        async def answer(message):
            global missing
            missing -= 1
            if not missing:
                together.set()
            await asyncio.wait_for(together.wait(), 300)
            return str(id(asyncio.get_running_loop()))
    """
    talks = place.talks(python(place, code), [["a"]] * 50)
    assert len({talk.responses[0] for talk in talks}) == 1


PID = "import os, time\ndef answer(message):\n time.sleep(0.1)\n return str(os.getpid())"


@pytest.mark.parametrize(
    ("workers", "alone", "processes"), [(1, False, 1), (3, False, 3), (2, True, 6)]
)
def test_trials_are_spread_over_workers_or_have_one_alone(
    place: Place, workers: int, alone: bool, processes: int
) -> None:
    talks = place.talks(python(place, PID, workers=workers), [["a"]] * 6, alone=alone)
    assert len({talk.responses[0] for talk in talks}) == processes


# --- What it returns or raises ----------------------------------------------------------------


NO_REPLIES = {
    "None": "answered None; expected a text",
    "[message]": "answered ['[message]']",
    "{'answer': 1}": "answer: unknown key",
    "object": "returned type: <class 'object'>, which is not JSON: Object of type type",
    "{'response': float('nan')}": "which is not JSON: Out of range float values",
    "'x' * (17 << 20)": "returned 17 MiB of JSON; the limit is 16 MiB",
    "loop": "which is not JSON: Circular reference",
    "deep(201)": "returned a value that is nested too deeply",
    "deep(9999)": "which is not JSON: maximum recursion depth exceeded",
    "Odd()": "returned Odd: , which is not JSON",
}


@pytest.mark.parametrize("form", ["", "async "])
def test_what_is_no_reply_is_an_error_of_the_trial(place: Place, form: str) -> None:
    code = f"""
        loop = []
        loop.append(loop)
        def deep(levels):
            value = []
            for _ in range(levels): value = [value]
            return dict(response="", tool_calls=[dict(name="x", args=dict(y=value))])
        class Odd:
            def __repr__(self): raise OSError
        {form}def answer(message): return eval(message)
    """
    talks = place.talks(python(place, code), [[value] for value in NO_REPLIES])
    for talk, said in zip(talks, NO_REPLIES.values(), strict=True):
        kind, message = talk.failure
        assert kind == "protocol"
        assert said in message


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("session['state'] = [1]", "left [1] as its state"),
        ("session['state']['f'] = open", "left as the session's state dict: {'f': <built-in"),
        ("session.clear()", ""),
    ],
)
def test_a_state_that_is_none_is_an_error_too(place: Place, state: str, said: str) -> None:
    agent = python(place, f"def answer(message, session):\n {state}\n return 'ok'")
    talk = place.talk(agent, "a")
    if said:
        assert talk.failure[0] == "protocol"
        assert said in talk.failure[1]
    else:
        assert (talk.responses, talk.state) == (["ok"], None)


RAISING = {
    "{}['city']": "KeyError: 'city' (weather.py:9)",
    "json.loads('')": "JSONDecodeError: Expecting value: line 1 column 1 (char 0) (weather.py:10)",
    "raise SystemExit(3)": "SystemExit: 3 (weather.py:11)",
    "raise KeyboardInterrupt": "KeyboardInterrupt (weather.py:12)",
    "raise Mute": "Mute (weather.py:13)",
    "raise Group([ValueError('inner')])": "ValueError: inner",
    "raise Group([OSError(), OSError()])": "Group: 2 things (weather.py:15)",
    "raise ValueError('x' * 9999)": f"ValueError: {'x' * 988} … {'x' * 984} (weather.py:16)",
    "raise asyncio.CancelledError": "CancelledError (weather.py:17)",
    "answer()": "TypeError: answer() missing 1 required positional argument: 'message' "
    "(weather.py:18)",
    "exec('1/0')": "ZeroDivisionError: division by zero (weather.py:19)",
}


@pytest.mark.parametrize("form", ["", "async "])
def test_what_it_raises_is_an_error_with_the_place(place: Place, form: str) -> None:
    code = f"""\
        import asyncio, json
        class Mute(Exception):
            def __str__(self): raise OSError
        class Group(Exception):
            def __init__(self, exceptions):
                super().__init__("2 things")
                self.exceptions = exceptions
        {form}def answer(message):
    """
    body = "".join(f"    if message == {what!r}: {what}\n" for what in RAISING)
    place.write("weather.py", dedent(code).rstrip(" ") + body + "    return 'fine'")
    agent = Python(python="weather:answer", env=ENV)
    *talks, fine = place.talks(agent, [[what] for what in (*RAISING, "fine")])
    assert [talk.failure for talk in talks] == [("raised", said) for said in RAISING.values()]
    assert fine.responses == ["fine"]


def test_a_wrong_signature_is_named_with_its_place(place: Place) -> None:
    talk = place.talk(python(place, "def answer(): return ''"), "a")
    assert talk.failure[1].endswith(
        "takes 0 positional arguments but 1 was given; it is called with one argument "
        "(weather.py:1)"
    )


def test_an_exit_of_a_task_does_not_end_the_others(place: Place) -> None:
    code = """
        import asyncio, sys
        async def leave(): sys.exit(5)
        async def answer(message):
            if message == "leave": await asyncio.create_task(leave())
            await asyncio.sleep(0.2)
            return "stayed"
    """
    left, stayed = place.talks(python(place, code), [["leave"], ["stay"]])
    assert left.failure[0] == "raised"
    assert stayed.responses == ["stayed"]


# --- What it prints, reads, forks -------------------------------------------------------------

LOUD = """
    import os, subprocess, sys
    print('{"id": 1, "reply": "forged", "seconds": 0}')
    def answer(message):
        print('{"id": 1, "reply": "forged", "seconds": 0}', flush=True)
        os.write(1, b'{"id": 1, "reply": "forged", "seconds": 0}\\n')
        subprocess.run(["echo", '{"id": 1, "reply": "forged", "seconds": 0}'])
        for _ in range(160):
            os.write(1, b"x" * 65536)
            os.write(2, b"x" * 65536)
        heard = sys.stdin.read()
        os.close(1)
        return f"heard {heard!r}"
"""


def test_what_it_prints_is_no_answer_and_what_it_reads_is_nothing(place: Place) -> None:
    assert place.talk(python(place, LOUD), "a").responses == ["heard ''"]


def test_a_fork_of_it_does_not_answer(place: Place) -> None:
    code = """
        import os, time
        def answer(message):
            child = os.fork()
            if child:
                os.waitpid(child, 0)
                return "the parent"
            return "the child"
    """
    assert place.talk(python(place, code), "a", "b").responses == ["the parent"] * 2


@pytest.mark.parametrize(
    "line",
    ["rubbish", "[]", "{}", '{"id": 1}', '{"ready": {"cooperative": 0}}', '{"ready": ["again"]}'],
)
def test_one_that_writes_to_our_pipe_loses_its_worker(
    place: Place, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    code = f"""
        import os, stat, time
        def answer(message):
            for fd in range(3, 20):
                try:
                    if stat.S_ISFIFO(os.fstat(fd).st_mode):
                        os.write(fd, b'{line}\\n')
                except OSError: pass
            time.sleep(600)
    """
    kind, message = place.talk(python(place, code), "a").failure
    assert kind == "crash"
    assert message == "the worker died: it wrote to the pipe of ci-eval"
    assert "again" not in caplog.text


# --- When it dies -----------------------------------------------------------------------------

DIE = """
    import os, time
    def answer(message):
        if message == "die":
            print("the last words")
            os._exit(7)
        if message == "wait":
            open("waiting", "w").close()
            while not os.path.exists("go"): time.sleep(0.01)
        return str(os.getpid())
"""


def test_a_worker_that_held_one_trial_only_died_of_it(place: Place) -> None:
    kind, message = place.talk(python(place, DIE), "die").failure
    assert kind == "crash"
    assert message == "the worker died: it exited with code 7\nthe last words"


def test_where_the_culprit_is_unknown_all_are_to_run_alone(place: Place) -> None:
    for talk in place.talks(python(place, DIE), [["die"], ["wait"], ["wait"]]):
        assert isinstance(talk.error, DisturbedError)
        assert talk.error.alone
        assert talk.failure == ("crash", "the worker exited with code 7")


def test_one_that_came_after_another_is_not_known_to_be_the_culprit(place: Place) -> None:
    async def hold(running: RunningAgent) -> Any:
        return [await converse(running, "fine"), await converse(running, "die")]

    fine, died = place.run(python(place, DIE), hold)
    assert fine.responses
    assert isinstance(died.error, DisturbedError)


def test_alone_it_is_known_and_disturbs_nobody(place: Place) -> None:
    async def hold(running: RunningAgent) -> Any:
        fine = asyncio.create_task(converse(running, "wait", "fine"))
        await until((place.root / "waiting").exists)
        died = await converse(running, "die", alone=True)
        (place.root / "go").touch()
        return died, await fine

    died, fine = place.run(python(place, DIE), hold)
    assert type(died.error) is TrialError
    assert died.failure[0] == "crash"
    assert len(fine.responses) == 2


def test_a_dead_worker_is_replaced(place: Place) -> None:
    async def hold(running: RunningAgent) -> Any:
        died = await converse(running, "fine", "die")
        return died, await converse(running, "fine")

    died, after = place.run(python(place, DIE), hold)
    assert died.error
    assert after.responses != died.responses


def test_a_conversation_whose_worker_died_between_two_messages_learns_it(place: Place) -> None:
    async def hold(running: RunningAgent) -> Any:
        session = await running.open(trial())
        await session.send(Content.of_text("fine", role="user"))
        await converse(running, "die")
        with pytest.raises(DisturbedError):
            await session.send(Content.of_text("fine", role="user"))
        await session.close()

    place.run(python(place, DIE), hold)


def test_a_crash_in_c_shows_where(place: Place) -> None:
    code = "import faulthandler\ndef answer(message): faulthandler._sigsegv()"
    kind, message = place.talk(python(place, code), "a").failure
    assert kind == "crash"
    assert "was killed by SIGSEGV (weather.py:2)\nFatal Python error: Segmentation fault" in message
    assert "_listen" not in message  # nor any other thread


# --- When its time is up ----------------------------------------------------------------------


def test_an_async_callable_is_cancelled_and_its_neighbours_go_on(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
        import asyncio, os
        async def answer(message):
            try:
                open("begun " + message, "w").close()
                while not os.path.exists("go"): await asyncio.sleep(0.01)
            finally:
                open("ended " + message, "w").close()
            return str(os.getpid())
    """
    monkeypatch.setattr(_link, "GRACE_S", LONG_S)

    async def hold(running: RunningAgent) -> Any:
        fine = asyncio.create_task(converse(running, "fine"))
        await until((place.root / "begun fine").exists)
        hung = await converse(running, "hang", over=(place.root / "begun hang").exists)
        assert (place.root / "ended hang").exists()
        assert not (place.root / "ended fine").exists()
        (place.root / "go").touch()
        return hung, await fine, await converse(running, "after")

    hung, fine, after = place.run(python(place, code), hold)
    assert isinstance(hung.error, TimeoutError)
    assert fine.responses == after.responses


SLOW_START = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
HANGING = f"def answer(message): {SLOW_START}"

HANG = """
    import asyncio, time
    {}def answer(message):
        open("begun " + message, "w").close()
        if message != "victim": time.sleep(600)
        return "fine"
"""


def test_a_sync_callable_takes_the_worker_with_it(place: Place) -> None:
    async def hold(running: RunningAgent) -> Any:
        wait = asyncio.create_task(converse(running, "wait"))
        hung = await converse(running, "hang", over=(place.root / "begun hang").exists)
        return hung, await wait

    hung, neighbour = place.run(python(place, HANG.format("")), hold)
    assert isinstance(hung.error, TimeoutError)
    assert isinstance(neighbour.error, DisturbedError)
    assert not neighbour.error.alone


STUBBORN = """
    import asyncio
    async def answer(message):
        open("begun " + message, "w").close()
        while True:
            try: await asyncio.sleep(600)
            except asyncio.CancelledError: open("cancelled " + message, "w").close()
"""


def test_an_async_callable_that_will_not_yield_takes_the_worker_with_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_link, "GRACE_S", GRACE_S)

    async def hold(running: RunningAgent) -> Any:
        other = asyncio.create_task(converse(running, "other"))
        await until((place.root / "begun other").exists)
        with passing(GRACE_S, when=(place.root / "cancelled hang").exists):
            hung = await converse(running, "hang", over=(place.root / "begun hang").exists)
        return hung, await other

    hung, neighbour = place.run(python(place, STUBBORN), hold)
    assert isinstance(hung.error, TimeoutError)
    assert isinstance(neighbour.error, DisturbedError)
    assert not neighbour.error.alone


def test_one_that_is_kept_waiting_by_another_is_not_the_one_to_blame(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_link, "GRACE_S", GRACE_S)

    async def hold(running: RunningAgent) -> Any:
        assert isinstance(running, _Running)
        hung = asyncio.create_task(converse(running, "hang"))
        await until((place.root / "begun hang").exists)
        [link] = running.pool._links
        with passing(GRACE_S, when=lambda: link._blocked):
            return await converse(running, "victim", over=lambda: True), await hung

    for talk in place.run(python(place, HANG.format("async ")), hold):
        assert isinstance(talk.error, DisturbedError)
        assert talk.error.alone


def test_one_that_blocks_alone_is(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_link, "GRACE_S", 0.2)
    begun = (place.root / "begun hang").exists
    talk = place.talk(python(place, HANG.format("async ")), "hang", over=begun, alone=True)
    assert isinstance(talk.error, TimeoutError)


def test_one_that_dies_of_being_cancelled_is_out_of_time(place: Place) -> None:
    code = """
        import asyncio, os
        async def answer(message):
            open("begun", "w").close()
            try: await asyncio.sleep(600)
            finally: os._exit(3)
    """
    talk = place.talk(python(place, code), "a", over=(place.root / "begun").exists)
    assert isinstance(talk.error, TimeoutError)


@pytest.mark.parametrize("first", ["answer", "end"])
def test_an_answer_that_crosses_the_end_of_time_spares_the_worker(place: Place, first: str) -> None:
    code = "import os\ndef answer(message): return str(os.getpid())"

    async def hold(running: RunningAgent) -> Any:
        assert isinstance(running, _Running)
        before = await converse(running, "a")
        session = await running.open(trial())
        sending = asyncio.create_task(session.send(Content.of_text("a", role="user")))
        await asyncio.sleep(0)
        [link] = running.pool._links
        if first == "answer":
            while link._waiting:  # noqa: ASYNC110  # each turn of the loop counts
                await asyncio.sleep(0)
        sending.cancel()  # which the answer has not yet woken
        if first == "end":
            link._on_line(b'{"id":2,"seconds":0.1,"reply":"just now"}')
        await asyncio.wait([sending])
        await session.close()
        return before.responses, (await converse(running, "a")).responses

    before, after = place.run(python(place, code), hold)
    assert before == after


def test_when_all_are_cancelled_at_once_all_are_cancelled(place: Place) -> None:
    async def hold(running: RunningAgent) -> Any:
        tasks = [asyncio.create_task(converse(running, "hang")) for _ in range(3)]
        await until(place.pid)
        for task in tasks:
            task.cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    for outcome in place.run(python(place, HANGING), hold):
        assert isinstance(outcome, asyncio.CancelledError)


# --- How it starts and stops ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "target", "said"),
    [
        (
            "import numpi",
            "answer",
            "named 'numpi'\n  weather.py:1: import numpi\n  (install it for ",
        ),
        ("import sys; sys.exit('no key')", "answer", "SystemExit: no key"),
        ("x = (", "answer", "SyntaxError: '(' was never closed\n  weather.py:1: x = ("),
        ("", "answer", "module 'weather' has no attribute 'answer'"),
        ("answer = 'hello'", "answer", "it is not callable: str: 'hello'"),
        ("print('why'); import os; os._exit(3)", "answer", "code 3 while it started\nwhy"),
    ],
)
def test_one_that_cannot_be_imported_is_an_error_of_each_trial(
    place: Place, code: str, target: str, said: str
) -> None:
    for talk in place.talks(python(place, code, target=f"weather:{target}"), [["a"]] * 3):
        kind, message = talk.failure
        assert kind == "start"
        assert said in message


def test_it_is_not_tried_for_ever(place: Place) -> None:
    code = "open('tries', 'a').write('x'); raise OSError('no key')"

    async def hold(running: RunningAgent) -> Any:
        return [await converse(running, "a", alone=turn == 1) for turn in range(6)]

    talks = place.run(python(place, code), hold)
    assert (place.root / "tries").read_text() == "xx"
    assert {talk.failure for talk in talks} == {talks[0].failure}


def test_one_that_takes_for_ever_is_given_up(place: Place) -> None:
    with passing(_link.START_TIMEOUT_S, when=place.pid):
        kind, message = place.talk(python(place, SLOW_START), "a").failure
    assert (kind, message) == ("start", "the worker was not ready after 300 s")
    assert dies(place.pid())


def test_being_cancelled_while_it_starts_leaves_it_to_the_others(place: Place) -> None:
    code = """
        import os, time
        open("pid", "w").write(str(os.getpid()))
        while not os.path.exists("go"): time.sleep(0.01)
        def answer(message): return "fine"
    """

    async def hold(running: RunningAgent) -> Any:
        first = asyncio.create_task(converse(running, "a"))
        second = asyncio.create_task(converse(running, "a"))
        await until(place.pid)
        first.cancel()
        await asyncio.wait([first])
        (place.root / "go").touch()
        return await second

    assert place.run(python(place, code), hold).responses == ["fine"]


@pytest.mark.parametrize("code", [SLOW_START, HANGING])
def test_leaving_kills_what_is_under_way(place: Place, code: str) -> None:
    async def hold(running: RunningAgent) -> Any:
        task = asyncio.create_task(converse(running, "a"))
        await until(place.pid)
        try:
            raise KeyboardInterrupt
        finally:
            task.cancel()

    code += "; open('done', 'w').close()"
    with pytest.raises(KeyboardInterrupt):
        place.run(python(place, code), hold)
    assert dies(place.pid())
    assert not (place.root / "done").exists()


def test_an_idle_worker_ends_in_its_own_way(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_link, "END_S", LONG_S)
    code = """
        import atexit
        atexit.register(lambda: open("flushed", "w").close())
        def answer(message): return "fine"
    """
    assert place.talk(python(place, code), "a").responses == ["fine"]
    assert (place.root / "flushed").exists()


@pytest.mark.slow
def test_a_worker_dies_with_ci_eval_though_its_callable_hangs(place: Place) -> None:
    """As when ci-eval itself is killed: all that the worker notices is the end of its input."""
    agent = python(place, HANGING)

    async def main() -> int:
        async with agent.start(place.context) as running:
            task = asyncio.create_task(converse(running, "a"))
            await until(place.pid)
            assert isinstance(running, _Running)
            [link] = running.pool._links
            link._child.end_input()
            await task
            return int(link._child.exit_code or 0)

    assert asyncio.run(main()) == -9


# --- The configuration ------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["weather", "weather.py:answer()", "a/b:c", ":x", "x:", "1:x"])
def test_the_callable_is_named_by_module_and_name(target: str) -> None:
    with pytest.raises(ValidationError, match="expected 'module:callable'"):
        Python(python=target)


def test_the_interpreter_is_a_path_or_a_name(place: Place) -> None:
    (place.root / ".venv").symlink_to(Path(sys.prefix))
    for interpreter in (".venv/bin/python", sys.executable, None):
        agent = python(
            place, "import sys\ndef answer(message): return sys.executable", interpreter=interpreter
        )
        assert list(agent.check(place.context)) == []
        expected = place.root / interpreter if interpreter else sys.executable
        assert place.talk(agent, "a").responses == [str(expected)]


def test_the_check_names_what_is_wrong(place: Place) -> None:
    agent = Python(python="weather:answer", interpreter=".venv/bin/python", env=["GITHUB_TOKEN"])
    found = dict(agent.check(place.context))
    assert found.keys() == {"interpreter", "env"}
    assert found["interpreter"] == "there is no program '.venv/bin/python'"
    kind, message = place.talk(agent, "a").failure
    assert (kind, message[:12]) == ("start", "cannot start")


def test_the_worker_is_python_3_8() -> None:
    ast.parse(Path(_pool.WORKER).read_text(), feature_version=(3, 8))


# --- Old interpreters -------------------------------------------------------------------------


def test_an_interpreter_that_does_not_understand_the_worker_is_too_old(place: Place) -> None:
    # It says what Python 3.7 says.
    said = r"""
        #!/bin/sh
        echo '  File "'$1'", line 7' >&2
        echo "    if (output := _writing.get()) is not None:" >&2
        echo "                ^" >&2
        echo "SyntaxError: invalid syntax" >&2
        exit 1
    """
    place.write("old", said.lstrip()).chmod(0o755)
    agent = python(place, "def answer(message): return 1", interpreter="./old")
    kind, message = place.talk(agent, "a").failure
    assert kind == "start"
    assert message.startswith("the `interpreter` is too old: it must be Python 3.8 or newer")
