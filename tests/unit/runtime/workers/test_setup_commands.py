"""A setup is done once for all that have the same, again when it has to be, and fails clearly."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError
from support.agent_sessions import ENVIRONMENT, dies, is_dead, passing, until
from support.slow_params import some

from ci_eval.records.errors import TrialError
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.workers.setup_commands import TIMEOUT_S, Command, Setup

pytestmark = pytest.mark.processes

NOTE = "import sys; open('done', 'a').write(sys.argv[1])"
PYTHON = "python3"


class Folder:
    """A folder with a configuration, and what was said of what is done in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.said: list[str] = []
        self.context = RunContext(env=ENVIRONMENT, root=root, now=time.time, say=self.said.append)

    def setup(self, *commands: tuple[str, ...], interpreter: str | None = None) -> Setup:
        return Setup(commands, interpreter, {}, self.context)

    def noting(self, what: str = "x", *more: str) -> Setup:
        return self.setup((PYTHON, "-c", NOTE, what, *more))

    @property
    def done(self) -> str:
        path = self.root / "done"
        return path.read_text() if path.exists() else ""

    def pid(self) -> int:
        """Return the number that a command wrote into the file `pid`; 0 if it has not yet."""
        path = self.root / "pid"
        return int(path.read_text() or 0) if path.exists() else 0


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def do(*setups: Setup) -> list[Any]:
    """Do them all at once, in one run; return the errors."""

    async def run() -> list[Any]:
        return await asyncio.gather(*(each.done() for each in setups), return_exceptions=True)

    return [each for each in asyncio.run(run()) if each is not None]


def failure(each: Setup) -> str:
    [error] = do(each)
    assert isinstance(error, TrialError)
    assert error.kind == "start"
    return str(error)


def test_a_file_of_any_length_counts_without_being_read(folder: Folder) -> None:
    with (folder.root / "requirements.txt").open("wb") as file:
        file.truncate(1 << 43)  # no machine reads that
    for _ in range(2):
        assert do(folder.noting()) == []
    assert folder.done == "x"
    os.utime(folder.root / "requirements.txt", (1, 1))
    assert do(folder.noting()) == []
    assert folder.done == "xx"


# --- How commands are written -----------------------------------------------------------------


class Holder(BaseModel):
    setup: tuple[Command, ...]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("uv sync --frozen", ("uv", "sync", "--frozen")),
        ("sh -c 'a && b' # no comment", ("sh", "-c", "a && b", "#", "no", "comment")),
        (["pip", "install", "a b"], ("pip", "install", "a b")),
        ("echo $HOME *", ("echo", "$HOME", "*")),
    ],
)
def test_a_command_is_a_text_or_a_list(written: Any, meant: tuple[str, ...]) -> None:
    assert Holder.model_validate({"setup": [written]}).setup == (meant,)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("echo 'a", "is not a valid shell command line: No closing quotation"),
        ("", "at least 1 item"),
        ([], "at least 1 item"),
        ([1], "valid string"),
        ({"uv": "sync"}, "valid tuple"),
    ],
)
def test_what_is_no_command_is_told(written: Any, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Holder.model_validate({"setup": [written]})


# --- When it is done --------------------------------------------------------------------------


def test_commands_run_one_after_the_other_in_the_folder_with_the_agents_environment(
    folder: Folder,
) -> None:
    code = "import os; open('done', 'a').write(os.environ['MODEL'] + str('HIDDEN' in os.environ))"
    context = replace(folder.context, env={**ENVIRONMENT, "HIDDEN": "1"})
    commands = ((PYTHON, "-c", code), (PYTHON, "-c", NOTE, ", then"))
    assert do(Setup(commands, None, {"MODEL": "small"}, context)) == []
    assert folder.done == "smallFalse, then"


def test_whoever_watches_is_told_what_runs_and_how_long_it_took(folder: Folder) -> None:
    do(folder.setup((PYTHON, "-c", "print('a b')")))
    first, last = folder.said
    assert first == """running setup: python3 -c 'print('"'"'a b'"'"')'"""
    assert last.startswith("setup finished in ")
    assert last.endswith(" s")


def test_the_same_is_done_once_and_different_ones_one_after_the_other(folder: Folder) -> None:
    code = (
        "import time; f = open('done', 'a'); f.write('('); f.flush(); time.sleep(0.2); f.write(')')"
    )
    same = [folder.setup((PYTHON, "-c", code)) for _ in range(3)]
    assert do(*same, folder.setup((PYTHON, "-c", code, "other"))) == []
    assert folder.done == "()()"


def test_it_is_not_done_again_in_a_later_run(folder: Folder) -> None:
    for _ in range(3):
        do(folder.noting())
    assert folder.done == "x"
    assert len(folder.said) == 2


@pytest.mark.parametrize(
    "name",
    some(["uv.lock", "requirements-dev.txt", "poetry.lock", "pyproject.toml", "setup.cfg"], 2),
)
def test_it_is_done_again_when_what_it_is_made_of_changes(folder: Folder, name: str) -> None:
    for content in ("a", "a", "b", "a"):
        (folder.root / name).write_text(content)
        do(folder.noting())
    # Back at the first state it is done again, too: what is installed is the second's.
    assert folder.done == "xxx"


def test_files_that_the_commands_name_count(folder: Folder) -> None:
    (folder.root / "deps").mkdir()
    for content in ("a", "b"):
        (folder.root / "deps" / "agent.txt").write_text(content)
        do(folder.noting("x", "deps/agent.txt"))
    assert folder.done == "xx"


def test_other_files_do_not_count(folder: Folder) -> None:
    for content in ("a", "b"):
        (folder.root / "agent.py").write_text(content)
        do(folder.noting())
    assert folder.done == "x"


def test_a_lock_file_that_it_writes_itself_is_no_reason_to_do_it_again(folder: Folder) -> None:
    code = "open('uv.lock', 'a').write('x')"
    for _ in range(2):
        do(folder.setup((PYTHON, "-c", code)))
    assert (folder.root / "uv.lock").read_text() == "x"


def test_it_is_done_again_where_the_interpreter_it_made_is_gone(folder: Folder) -> None:
    code = "import os, sys; os.path.exists('py') or os.symlink(sys.executable, 'py')"
    commands = ((PYTHON, "-c", code), (PYTHON, "-c", NOTE, "x"))
    for _ in range(2):
        do(folder.setup(*commands, interpreter="./py"))
    assert folder.done == "x"
    (folder.root / "py").unlink()
    do(folder.setup(*commands, interpreter="./py"))
    assert folder.done == "xx"


# --- When it fails ----------------------------------------------------------------------------


def test_a_failure_is_one_error_for_all_that_have_the_same(folder: Folder) -> None:
    code = f"{NOTE}; print('looking', flush=True); sys.exit('no such package')"
    same = [folder.setup((PYTHON, "-c", code, "x"), (PYTHON, "-c", NOTE, "never")) for _ in "ab"]
    one, other = do(*same)
    assert str(one) == str(other)
    assert str(one).startswith("the setup failed: python3 -c 'import sys;")
    assert str(one).endswith("exited with code 1\nlooking\nno such package")
    assert folder.done == "x"


def test_what_failed_is_tried_again_in_the_next_run(folder: Folder) -> None:
    code = f"{NOTE}; sys.exit(not __import__('os').path.exists('ready'))"
    assert len(do(folder.setup((PYTHON, "-c", code, "x")))) == 1
    (folder.root / "ready").touch()
    assert do(folder.setup((PYTHON, "-c", code, "x"))) == []
    assert folder.done == "xx"


def test_what_worked_before_and_fails_now_does_not_count_as_done(folder: Folder) -> None:
    code = f"{NOTE}; sys.exit(open('uv.lock').read() == 'bad')"
    for content in ("good", "bad", "good"):
        (folder.root / "uv.lock").write_text(content)
        do(folder.setup((PYTHON, "-c", code, "x")))
    assert folder.done == "xxx"


def test_a_program_that_is_not_there_is_named(folder: Folder) -> None:
    said = failure(folder.setup(("uv-that-is-not-there", "sync")))
    assert said == (
        "the setup failed: cannot start 'uv-that-is-not-there': No such file or directory"
    )


def test_it_reads_nothing(folder: Folder) -> None:
    said = failure(folder.setup((PYTHON, "-c", "input('Proceed? ')")))
    assert "EOFError: EOF when reading a line" in said


def test_a_flood_of_output_is_cut(folder: Folder) -> None:
    code = "import sys\nfor _ in range(160): print('x' * 65536)\nsys.exit('the end')"
    said = failure(folder.setup((PYTHON, "-c", code)))
    assert len(said) < 2500
    assert said.endswith("the end")


SLEEPING = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"


def test_it_has_a_time_limit_and_is_killed(folder: Folder) -> None:
    with passing(TIMEOUT_S, when=folder.pid):
        said = failure(folder.setup((PYTHON, "-c", SLEEPING)))
    assert said == "the setup timed out after 1800 s"
    assert dies(folder.pid())


def run_until(happened: Callable[[], object], *waiting: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        tasks = [asyncio.ensure_future(each()) for each in waiting]
        await until(happened)
        tasks[0].cancel()
        await asyncio.wait(tasks)

    asyncio.run(run())


def test_it_ends_when_nobody_is_left_who_may_need_it(folder: Folder) -> None:
    one, other = (folder.setup((PYTHON, "-c", SLEEPING)) for _ in range(2))

    async def run() -> None:
        async with one.in_use():
            async with other.in_use():
                await let_go(one, when=folder.pid)
            assert not is_dead(folder.pid())
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())
    assert dies(folder.pid())


def test_what_was_ended_is_done_again_where_it_is_needed_again(folder: Folder) -> None:
    is_first = "not os.path.exists('pid')"
    code = f"import os; if_first = 600 * ({is_first}); {SLEEPING.replace('600', 'if_first')}"
    setup = folder.setup((PYTHON, "-c", code))

    async def run() -> None:
        async with setup.in_use():
            await let_go(setup, when=folder.pid)
        async with setup.in_use():
            await setup.done()

    asyncio.run(run())
    assert folder.said[-1].startswith("setup finished in ")


async def let_go(setup: Setup, when: Callable[[], object]) -> None:
    waiting = asyncio.ensure_future(setup.done())
    await until(when)
    waiting.cancel()
    await asyncio.wait([waiting])


def test_one_that_stops_waiting_does_not_end_it_for_the_others(folder: Folder) -> None:
    code = f"{NOTE}; __import__('time').sleep(0.2); open('end', 'w')"
    same = folder.setup((PYTHON, "-c", code, "x"))
    run_until(lambda: folder.done, same.done, same.done)
    assert (folder.root / "end").exists()


def test_a_folder_that_cannot_hold_the_note_is_told(folder: Folder) -> None:
    (folder.root / ".ci-eval").touch()
    said = failure(folder.noting())
    assert said == "the setup cannot be recorded in '.ci-eval/setup': Not a directory"
