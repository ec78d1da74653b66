"""Children end with all they started, never fill memory, and see what they may see."""

import asyncio
import os
import signal
import sys
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.agent_sessions import ENVIRONMENT, dies, until
from support.traced_process import GET_TRACED, needs_tracing

from ci_eval.records.errors import TrialError
from ci_eval.runtime import processes
from ci_eval.runtime.processes import Child, Excerpt, Launch

HANGS_S = 120.0
"""After this long, a test hangs."""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine: what ends, ends because of what happened, not of the time."""
    monkeypatch.setattr(processes, "LINGER_S", 3 * HANGS_S)


@pytest.fixture
def impatient(patient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that is over has less time to close its pipes."""
    monkeypatch.setattr(processes, "LINGER_S", 0.2)


# --- Children ---------------------------------------------------------------------------------


class Heard:
    """What a child said, and whether it is gone."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.gone = asyncio.Event()
        self.times_gone = 0

    def note_gone(self) -> None:
        self.times_gone += 1
        self.gone.set()


def with_child(
    code: str, body: Callable[[Child, Heard], Awaitable[Any]], *, hears: bool = True
) -> tuple[Child, Heard]:
    """Run `body` with a Python child that executes `code`."""

    async def main() -> tuple[Child, Heard]:
        heard = Heard()
        argv = (sys.executable, "-S", "-c", code)
        launch = Launch(argv=argv, env=ENVIRONMENT, cwd=Path.cwd(), account=None)
        child = Child(heard.lines.append if hears else None, heard.note_gone)
        await child.start(launch)
        try:
            async with asyncio.timeout(HANGS_S):
                await body(child, heard)
        finally:
            async with asyncio.timeout(HANGS_S):
                await child.stop()
        return child, heard

    return asyncio.run(main())


async def until_gone(child: Child, heard: Heard) -> None:
    del child
    await heard.gone.wait()


async def until_over(child: Child, heard: Heard) -> None:
    """Wait for the end of a child that is gone for us before it is dead."""
    await heard.gone.wait()
    await until(lambda: child.exit_code is not None)


def test_lines_go_both_ways() -> None:
    async def body(child: Child, heard: Heard) -> None:
        child.write_line("one")
        child.write_line("two")
        child.end_input()
        await heard.gone.wait()

    code = "import sys; print(*reversed(sys.stdin.read().split()), sep='\\n', end='')"
    child, heard = with_child(code, body)
    assert heard.lines == [b"two", b"one"]
    assert heard.times_gone == 1
    assert child.exit_code == 0
    assert child.ending == "exited with code 0"
    assert child.stderr_tail == ""


def test_a_long_line_arrives_whole() -> None:
    _, heard = with_child("print('x' * 5_000_000); print('y')", until_gone)
    assert [len(line) for line in heard.lines] == [5_000_000, 1]


def test_a_line_without_end_gets_the_child_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "MAX_LINE_BYTES", 1 << 20)
    code = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
    child, heard = with_child(code, until_over)
    assert heard.lines == []
    assert heard.times_gone == 1
    assert child.ending == "wrote a line of more than 1 MiB"
    assert child.exit_code == -signal.SIGKILL


def test_nothing_is_written_to_one_that_is_gone() -> None:
    async def body(child: Child, heard: Heard) -> None:
        await heard.gone.wait()
        child.write_line("anybody?")
        child.end_input()
        await asyncio.sleep(0)

    with_child("pass", body)


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        ("raise SystemExit(7)", "exited with code 7"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "was killed by SIGSEGV"),
        ("import os; os.kill(os.getpid(), 40)", "was killed by signal 40"),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            "was killed by SIGKILL (out of memory?)",
        ),
    ],
)
def test_the_ending_names_code_or_signal(code: str, ending: str) -> None:
    child, _ = with_child(code, until_gone)
    assert child.ending == ending


@pytest.mark.usefixtures("impatient")
def test_one_that_closes_its_output_and_lives_on_is_not_waited_for() -> None:
    code = "import os, time; os.close(1); time.sleep(600)"
    child, _ = with_child(code, until_over)
    assert child.ending == "was killed by SIGKILL (out of memory?)"


def test_grandchildren_die_with_the_child() -> None:
    code = (
        "import subprocess, sys, time; "
        "p = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)']); "
        "print(p.pid, flush=True); time.sleep(600)"
    )

    async def body(child: Child, heard: Heard) -> None:
        await until(lambda: heard.lines)
        child.kill()
        await heard.gone.wait()

    child, heard = with_child(code, body)
    assert child.exit_code == -signal.SIGKILL
    assert dies(int(heard.lines[0]))


def test_what_a_child_leaves_behind_is_ended() -> None:
    code = (
        "import subprocess, sys; "
        "p = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)']); "
        "print(p.pid)"
    )
    child, heard = with_child(code, until_gone)
    assert child.exit_code == 0
    assert dies(int(heard.lines[0]))


@pytest.mark.usefixtures("impatient")
def test_a_grandchild_in_a_group_of_its_own_cannot_hold_us_up() -> None:
    code = (
        "import subprocess, sys; "
        "p = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)'], "
        "start_new_session=True); print(p.pid)"
    )
    _, heard = with_child(code, until_gone)
    os.kill(int(heard.lines[0]), signal.SIGKILL)  # it lives: it was not waited for


@pytest.mark.usefixtures("impatient")
def test_a_tracer_that_keeps_the_end_of_a_child_back_cannot_hold_us_up() -> None:
    needs_tracing()
    seen: list[int | None] = []

    async def body(child: Child, heard: Heard) -> None:
        await heard.gone.wait()
        await child.stop()
        seen.append(child.exit_code)
        os.kill(int(heard.lines[0]), signal.SIGKILL)
        await until(lambda: child.exit_code is not None)

    child, _ = with_child(GET_TRACED + "print(tracer.pid, flush=True); os._exit(3)", body)
    assert seen == [None]  # it went on before the tracer's end
    assert child.exit_code == 3


@pytest.mark.usefixtures("impatient")
def test_the_end_of_a_child_is_learned_where_the_kernel_does_not_announce_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: int) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse, raising=False)
    child, heard = with_child("print('last'); raise SystemExit(3)", until_gone)
    assert (child.exit_code, heard.lines) == (3, [b"last"])


def test_an_exit_code_that_is_lost_is_no_success() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        child, _ = with_child("pass", until_gone)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert child.exit_code == 255


def test_a_flood_on_standard_error_neither_blocks_nor_fills_memory() -> None:
    code = (
        "import sys; sys.stderr.write('first\\n')\n"
        "for _ in range(320): sys.stderr.write('x' * 65536)\n"
        "sys.stderr.write('\\nlast'); print('done')"
    )
    child, heard = with_child(code, until_gone)
    assert heard.lines == [b"done"]
    assert child.stderr.text.startswith("first\nxxx")
    assert child.stderr.text.endswith("xxx\nlast")
    assert len(child.stderr.text) < 17_000
    assert len(child.stderr_tail) < 2100


def test_a_child_that_ends_with_its_input_is_given_the_time() -> None:
    async def body(child: Child, heard: Heard) -> None:
        del heard
        await child.stop(grace_s=10 * HANGS_S)

    child, heard = with_child("import sys; sys.stdin.read(); print('bye')", body)
    assert child.exit_code == 0
    assert heard.lines == [b"bye"]


def test_one_that_does_not_is_killed() -> None:
    async def body(child: Child, heard: Heard) -> None:
        del heard
        await child.stop(grace_s=0.05)

    child, _ = with_child("import time; time.sleep(600)", body)
    assert child.exit_code == -signal.SIGKILL


def test_a_program_that_cannot_be_started_is_an_error_of_the_trial(tmp_path: Path) -> None:
    async def main() -> None:
        launch = Launch(argv=(str(tmp_path / "gone"),), env={}, cwd=tmp_path, account=None)
        await Child(lambda _: None, lambda: None).start(launch)

    with pytest.raises(TrialError, match=r"cannot start '.*gone': No such file") as caught:
        asyncio.run(main())
    assert caught.value.kind == "start"


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_an_excerpt_is_the_beginning_and_the_end(step: int) -> None:
    excerpt = Excerpt(4)
    data = b"abcdefghijkl"
    for start in range(0, len(data), step):
        excerpt.feed(data[start : start + step])
    assert excerpt.text == "abcd\n[4 bytes left out]\nijkl"


def test_a_short_excerpt_is_all_of_it() -> None:
    excerpt = Excerpt(4)
    excerpt.feed(b"abcdef\xff")
    assert excerpt.text == "abcdef\ufffd"


def test_what_nobody_hears_has_no_lines_and_may_be_closed(impatient: None) -> None:
    code = """
        import os, sys, time
        sys.stdout.write("first" + "x" * (17 << 20))
        sys.stdout.flush()
        os.close(1)
        time.sleep(0.5)  # longer than a child may live on that only has lines to write
        sys.stderr.write("last")
        os._exit(5)
    """
    child, heard = with_child(textwrap.dedent(code), until_gone, hears=False)
    assert (child.ending, heard.lines, heard.times_gone) == ("exited with code 5", [], 1)
    assert child.stderr.text.startswith("first")
    assert child.stderr.text.endswith("last")


@pytest.mark.parametrize(
    ("limit", "mark", "expected"),
    [(4, 0, "abcdefgh"), (4, 5, "fgh"), (4, 8, ""), (2, 7, "h"), (2, 2, "gh"), (2, 0, "gh")],
)
def test_what_came_since_is_told_as_far_as_its_end_was_kept(
    limit: int, mark: int, expected: str
) -> None:
    written = Excerpt(limit)
    for piece in (b"abc", b"de", b"fgh"):
        written.feed(piece)
    assert written.size == 8
    assert written.since(mark) == expected
