"""What an agent writes belongs to the conversation in which it wrote it, and to no other."""

import asyncio
from typing import Any

import pytest
from support.agent_sessions import LONG_S, Place, passing, trial

from ci_eval.agents.command_agent import Command
from ci_eval.agents.python_agent import Python
from ci_eval.config.config_schema import RunOptions
from ci_eval.plugins.points import Agent, RunningAgent
from ci_eval.records.cases import Content, Invocation
from ci_eval.records.trials import Trace
from ci_eval.run.execute import Conduct, execute_trial
from ci_eval.runtime.workers import worker_link

ENV = ["COVERAGE_*"]


def traces(place: Place, agent: Agent, *messages: str, tries: int = 1) -> list[Trace]:
    """Observe conversations of one message each, all at once."""
    conduct = Conduct(RunOptions(timeout_s=LONG_S, retries=0))

    async def observed(running: RunningAgent, message: str) -> Trace:
        asked = trial(message)
        turn = Invocation(user_content=Content.of_text(message, role="user"))
        case = asked.case.model_copy(update={"conversation": (turn,)})
        return await execute_trial(running, asked._replace(case=case), conduct)

    async def hold(running: RunningAgent) -> list[Trace]:
        each = [observed(running, message) for message in messages for _ in range(tries)]
        return await asyncio.gather(*each)

    found: list[Trace] = place.run(agent, hold)
    return found


def python(place: Place, code: str, **options: Any) -> Python:
    place.write("weather.py", code)
    return Python(python="weather:answer", **{"env": ENV, **options})


INTERLEAVED = """
    import asyncio, logging, sys, time
    logging.basicConfig(format="%(levelname)s %(message)s", level="INFO")
    def say(number, message):
        print(number, message)
        logging.info("logged %s", message)
        sys.stderr.writelines([f"lines {message}\\n"])
        sys.stdout.buffer.write(f"bytes {message} \\xe9\\n".encode("latin-1"))
        sys.stdout.flush()
"""
SYNC = """
    def answer(message):
        for number in range(3):
            say(number, message)
            time.sleep(0.05)
        return "ok"
"""
ASYNC = """
    async def inner(number, message):
        say(number, message)
    async def answer(message):
        for number in range(3):
            await asyncio.create_task(inner(number, message))
            await asyncio.to_thread(print, "thread", message)
            await asyncio.sleep(0.05)
        return "ok"
"""


@pytest.mark.parametrize(("code", "threaded"), [(SYNC, ""), (ASYNC, "thread {}\n")])
def test_conversations_that_take_turns_each_get_their_own_lines(
    place: Place, code: str, threaded: str
) -> None:
    names = ["anna", "bob", "cleo", "dan"]
    for trace in traces(place, python(place, INTERLEAVED + code), *names):
        name = trace.key.case
        lines = "{} {}\nINFO logged {}\nlines {}\nbytes {} \ufffd\n" + threaded
        said = [lines.format(number, *[name] * 5) for number in range(3)]
        assert trace.error is None
        assert trace.output == "".join(said)


def test_a_flood_is_cut_to_its_beginning_and_its_end(place: Place) -> None:
    code = """
        import sys
        def answer(message):
            print("begin")
            for _ in range(100):
                sys.stdout.write("x" * (1 << 20))
            print("end")
            return "ok"
    """
    [trace] = traces(place, python(place, code), "a")
    assert trace.error is None
    assert len(trace.output) < 9000
    assert trace.output.startswith("begin\nxxx")
    assert trace.output.endswith("xxxend\n")
    assert f"[{(100 << 20) + 10 - 8000} characters left out]" in trace.output


def test_each_message_adds_to_the_output_of_its_conversation(place: Place) -> None:
    agent = python(place, "def answer(message):\n print(message)\n return 'ok'")

    async def hold(running: RunningAgent) -> str:
        session = await running.open(trial())
        for text in ("one", "two"):
            await session.send(Content.of_text(text, role="user"))
        await session.close()
        return session.output

    assert place.run(agent, hold) == "one\ntwo\n"


@pytest.mark.parametrize("form", ["", "async "])
def test_what_one_wrote_that_raised_is_kept(place: Place, form: str) -> None:
    code = f"{form}def answer(message):\n print('before')\n raise ValueError"
    [trace] = traces(place, python(place, code), "a")
    assert trace.error
    assert trace.output == "before\n"


@pytest.mark.parametrize(
    ("form", "wait"), [("", "time.sleep"), ("async ", "await asyncio.sleep")], ids=["sync", "async"]
)
def test_what_one_wrote_that_was_out_of_time_is_kept_and_no_one_elses(
    place: Place, form: str, wait: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"""
        import asyncio, time
        {form}def answer(message):
            print("begun", message)
            open(message, "w").close()
            {wait}(600)
    """
    monkeypatch.setattr(worker_link, "GRACE_S", LONG_S)
    paths = [place.root / name for name in ("anna", "bob")]
    agent = python(place, code)
    with passing(LONG_S, when=lambda: all(path.exists() for path in paths)):
        found = traces(place, agent, "anna", "bob")
    for trace in found:
        assert trace.error
        assert trace.error.kind == "timeout"
        assert trace.output == f"begun {trace.key.case}\n"


def test_what_one_wrote_that_crashed_is_kept(place: Place) -> None:
    code = "import os\ndef answer(message):\n print('before', message)\n os._exit(3)"
    for trace in traces(place, python(place, code), "anna", "bob"):
        assert trace.error
        assert trace.error.kind == "crash"
        assert trace.output == f"before {trace.key.case}\n"


def test_what_was_written_at_the_import_shows_why_it_did_not_start(place: Place) -> None:
    code = "print('no settings found')\nraise OSError('no key')\ndef answer(message): pass"
    [trace] = traces(place, python(place, code), "a")
    assert trace.error
    assert trace.error.kind == "start"
    first, *_, last = trace.error.message.splitlines()
    assert first == "cannot load 'weather:answer': OSError: no key"
    assert last == "no settings found"


def test_what_a_command_writes_to_standard_error_is_its_output(place: Place) -> None:
    code = """
        import json, sys
        for line in sys.stdin:
            sys.stderr.buffer.write(b"asked \\xff\\n")
            print(json.dumps("ok"), flush=True)
    """
    place.write("agent.py", code)
    [trace] = traces(place, Command(command=("python3", "agent.py")), "a")
    assert trace.error is None
    assert trace.output == "asked \ufffd\n"
