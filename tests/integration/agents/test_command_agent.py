"""A command is asked in lines of JSON, and whatever else it does is a clear error."""

import json
import sys
from typing import Any

import pytest
from support.agent_sessions import Place, dies, trial, until

from ci_eval.agents import command_agent as command_module
from ci_eval.agents.command_agent import Command
from ci_eval.plugins.points import RunningAgent
from ci_eval.records.cases import Content, FunctionCall, Part, ToolCall
from ci_eval.records.errors import TrialError
from ci_eval.runtime import processes

ECHO = """
    import json, sys
    for line in sys.stdin:
        asked = json.loads(line)
        print("hearing", asked["message"], file=sys.stderr)
        print(json.dumps({
            "response": json.dumps(asked),
            "tool_calls": [{"name": "echo", "args": {}, "result": len(asked["history"])}],
        }), flush=True)
"""


def command(place: Place, code: str, **options: Any) -> Command:
    """Return an agent that is a Python script."""
    script = place.write("agent.py", code)
    return Command(command=(sys.executable, "-S", str(script)), **options)


@pytest.mark.parametrize("per", ["session", "message"])
def test_each_message_comes_with_the_history_and_the_session(place: Place, per: str) -> None:
    talk = place.talk(command(place, ECHO, per=per), "hello", "and now?")
    assert talk.error is None
    first, second = map(json.loads, talk.responses)
    session = {
        "id": "ci-eval-1700000000000000-1",
        "app_name": "weather",
        "user_id": "ci-eval",
        "state": {},
    }
    assert first == {"message": "hello", "history": [], "session": session}
    [turn] = second["history"]
    assert turn["message"] == "hello"
    assert json.loads(turn["response"]) == first
    assert turn["tool_calls"] == [{"name": "echo", "args": {}, "result": 0}]
    assert talk.invocations[1].tool_calls == (ToolCall("echo", {}, {"result": 1}),)
    assert talk.invocations[1].duration
    assert talk.state is None


def test_the_session_of_the_case_is_passed_on(place: Place) -> None:
    given = {"app_name": "shop", "user_id": "u1", "state": {"cart": [1]}, "session_id": "s1"}
    talk = place.talk(command(place, ECHO), "hello", session_input=given)
    assert json.loads(talk.responses[0])["session"] == {
        "id": "s1",
        "app_name": "shop",
        "user_id": "u1",
        "state": {"cart": [1]},
    }


def test_a_message_that_is_more_than_text_is_passed_on_whole(place: Place) -> None:
    call = Part(function_call=FunctionCall(name="look", args={}))
    talk = place.talk(command(place, ECHO), Content(role="user", parts=(call,)))
    asked = json.loads(talk.responses[0])["message"]
    assert asked == {"role": "user", "parts": [{"function_call": {"name": "look", "args": {}}}]}


def test_one_process_a_session_and_several_sessions_at_once(place: Place) -> None:
    code = """
        import json, os, sys, time
        os.makedirs("here", exist_ok=True)
        for line in sys.stdin:
            open(f"here/{os.getpid()}", "w").close()
            while len(os.listdir("here")) < 4: time.sleep(0.01)
            print(json.dumps(str(os.getpid())), flush=True)
    """
    talks = place.talks(command(place, code), [["a", "b"]] * 4)
    assert all(len(set(talk.responses)) == 1 for talk in talks)
    assert len({talk.responses[0] for talk in talks}) == 4


def test_a_process_a_message_reads_to_the_end_of_its_input(place: Place) -> None:
    code = "import json, os, sys; json.load(sys.stdin); print(json.dumps(str(os.getpid())), end='')"
    talk = place.talk(command(place, code, per="message"), "a", "b")
    assert len(set(talk.responses)) == 2


@pytest.mark.parametrize("per", ["session", "message"])
@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        (
            "print('no key', file=sys.stderr); sys.exit(3)",
            "crash",
            "code 3 without an answer\nno key",
        ),
        ("os.abort()", "crash", "was killed by SIGABRT without an answer"),
        ("input()", "protocol", "exited with code 0 without an answer; expected a text, or"),
        ("input(); print('Thinking')", "protocol", "answered 'Thinking': is not JSON: "),
        ("input(); print('{\"response\": NaN}')", "protocol", "is not JSON: NaN is not a number"),
        ("input(); print(); print('[1]')", "protocol", "answered [1]; expected a text"),
        ("input(); print('1\\n2\\n3')", "protocol", "more than one line: '1', then '2'"),
        ("input(); print('x' * (17 << 20))", "protocol", "wrote a line of more than 16 MiB with"),
    ],
)
def test_anything_but_one_line_of_json_is_an_error(
    place: Place, per: str, code: str, kind: str, said: str
) -> None:
    talk = place.talk(command(place, f"import os, sys; {code}", per=per), "hello")
    found, message = talk.failure
    assert found == kind
    assert said in message


def test_a_process_that_fails_after_its_answer_has_not_answered(place: Place) -> None:
    code = "import sys; input(); print('\"sunny\"', flush=True); sys.exit('lost it')"
    kind, message = place.talk(command(place, code, per="message"), "hello").failure
    assert (kind, message) == ("crash", "the agent exited with code 1 after its answer\nlost it")


def test_one_that_closes_its_output_without_an_answer_says_so(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "LINGER_S", 0.1)
    code = "import os, time; os.close(1); time.sleep(600)"
    kind, message = place.talk(command(place, code), "hello").failure
    assert kind == "protocol"
    assert "closed its standard output without an answer" in message


def test_a_line_that_answers_nothing_is_not_taken_for_the_next_answer(place: Place) -> None:
    code = """
        import os, sys, time
        for line in sys.stdin:
            print('"one"', flush=True)
            while not os.path.exists("go"): time.sleep(0.01)
            print("by the way", flush=True)
    """

    async def hold(running: RunningAgent) -> Any:
        session: Any = await running.open(trial())
        try:
            await session.send(Content.of_text("hello", role="user"))
            (place.root / "go").touch()
            await until(lambda: session.process._lines)
            await session.send(Content.of_text("and now?", role="user"))
        finally:
            await session.close()

    with pytest.raises(TrialError, match="wrote 'by the way' without a request"):
        place.run(command(place, code), hold)


def test_the_dead_cannot_be_asked(place: Place) -> None:
    code = "input(); print('\"bye\"', flush=True); raise SystemExit(4)"

    async def hold(running: RunningAgent) -> Any:
        session: Any = await running.open(trial())
        try:
            await session.send(Content.of_text("hello", role="user"))
            await session.process._ended.wait()
            await session.send(Content.of_text("and now?", role="user"))
        finally:
            await session.close()

    with pytest.raises(TrialError, match="exited with code 4 without an answer"):
        place.run(command(place, code), hold)


@pytest.mark.parametrize("per", ["session", "message"])
def test_when_the_time_is_up_the_process_is_killed_with_its_children(
    place: Place, per: str
) -> None:
    code = """
        import os, subprocess, sys, time
        child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
        open("pids", "w").write(f"{os.getpid()} {child.pid}")
        time.sleep(600)
    """
    pids = place.write("pids", "")
    talk = place.talk(command(place, code, per=per), "hello", over=pids.read_text)
    assert isinstance(talk.error, TimeoutError)
    assert [dies(int(pid)) for pid in pids.read_text().split()] == [True, True]


def test_leaving_ends_processes_that_nobody_closed(place: Place) -> None:
    code = 'import os, time; open("pid", "w").write(str(os.getpid())); time.sleep(600)'

    async def hold(running: RunningAgent) -> None:
        await running.open(trial())
        await until(place.pid)

    place.run(command(place, code), hold)
    assert dies(place.pid())


def test_one_that_stays_when_its_input_ends_does_not_hold_us_up(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_module, "GRACE_S", 0.2)
    code = """
        import os, time
        open("pid", "w").write(str(os.getpid()))
        input()
        print('"sunny"', flush=True)
        time.sleep(600)
        open("done", "w").close()
    """
    assert place.talk(command(place, code), "hello").responses == ["sunny"]
    assert dies(place.pid())
    assert not (place.root / "done").exists()


def test_folder_and_environment_are_as_configured(place: Place) -> None:
    place.write(
        "agent.sh",
        """\
        #!/bin/sh
        read line
        echo "\\"$(pwd) $MODEL\\""
    """,
    ).chmod(0o755)
    (place.root / "inner").mkdir()
    agent = Command(command=("./agent.sh",), cwd="inner", env={"MODEL": "small"})
    talk = place.talk(agent, "hello")
    assert talk.responses == [f"{place.root}/inner small"]


def test_a_program_that_is_gone_is_an_error_of_each_trial(place: Place) -> None:
    kind, message = place.talk(Command(command=("no-such-agent",)), "hello").failure
    assert kind == "start"
    assert "cannot start 'no-such-agent'" in message


def test_the_check_names_what_is_wrong(place: Place) -> None:
    agent = Command(command=("./agent.sh",), cwd="gone", env=["GITHUB_TOKEN"])
    found = dict(agent.check(place.context))
    assert found.keys() == {"env", "command", "cwd"}
    assert found["command"] == "there is no program './agent.sh'"
    assert found["cwd"] == "there is no folder 'gone'"
    assert list(Command(command=("sh",)).check(place.context)) == []

    place.write("agent.sh", "#!/bin/sh\n")
    assert dict(agent.check(place.context))["command"] == "'./agent.sh' is not executable"
