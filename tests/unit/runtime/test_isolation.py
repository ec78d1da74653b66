"""Agents run as a user of their own where that can be; tests/container does it in earnest."""

import errno
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from support.git_repositories import git_init

from ci_eval.records.errors import UsageError
from ci_eval.runtime import isolation
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import agent_environment
from ci_eval.runtime.isolation import Account
from ci_eval.runtime.workspace import MAX_FILE, agent_workspace

pytestmark = pytest.mark.processes

UID = 58734 + os.getpid() % 1000 * 2
AGENT = Account(uid=UID, gid=UID + 1, home="/nowhere")
"""Another one in each process of tests: at the end of a run all that an account has is ended."""
OWNER = 1001

SYSTEM_PYTHON = "/usr/bin/python3"
"""One that every user can start, as that of the tests may not be."""

needs_root = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or not Path(SYSTEM_PYTHON).exists(),
    reason="only root can become somebody else, and then needs a Python for all",
)


NAMED = {isolation.INTERPRETER: "/opt/hostedtoolcache/bin/python"}


def context(root: Path, **env: str) -> RunContext:
    return RunContext(env=env, root=root, now=time.time)


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "account", lambda: AGENT)
    monkeypatch.setattr(RunContext, "agent_account", AGENT)


# --- Where there is no account ----------------------------------------------------------------


def test_without_the_account_agents_run_as_we_do(tmp_path: Path) -> None:
    assert isolation.account() is None
    assert isolation.child_options(None) == {}
    assert isolation.interpreter({}) == sys.executable
    before = tmp_path.stat().st_mode
    with agent_workspace(context(tmp_path), {}):
        assert list(tmp_path.iterdir()) == []
        assert tmp_path.stat().st_mode == before


def test_without_the_account_the_job_may_name_the_python_of_its_agents() -> None:
    assert isolation.interpreter(NAMED) == "/opt/hostedtoolcache/bin/python"
    assert isolation.interpreter({isolation.INTERPRETER: ""}) == sys.executable


def test_whoever_is_not_root_has_no_account_to_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getresuid", lambda: (1000, 1000, 1000), raising=False)
    monkeypatch.setattr(isolation, "ACCOUNT", "root")  # an account that there is
    assert isolation.account() is None


def test_whoever_is_not_root_becomes_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "setgroups", lambda _: pytest.fail("it changed who we are"))
    isolation.become_owner(tmp_path)


# --- Where there is one -----------------------------------------------------------------------


@pytest.mark.usefixtures("apart")
def test_agents_get_a_home_of_their_own_and_what_is_declared_stays() -> None:
    ours = {"HOME": "/github/home", "PATH": "/bin", "USER": "us", "KEY": "k"}
    own = RunContext(env=ours, root=Path(), now=time.time)
    assert agent_environment(own, {"KEY": None}) == {
        "HOME": "/nowhere",
        "PATH": f"/nowhere/.local/bin{os.pathsep}/bin",
        "USER": "ci-eval-agent",
        "LOGNAME": "ci-eval-agent",
        "KEY": "k",
    }
    assert agent_environment(own, {"HOME": "/data"})["HOME"] == "/data"


@pytest.mark.usefixtures("apart")
def test_code_that_names_no_interpreter_gets_one_without_ci_eval() -> None:
    asked = [isolation.interpreter(NAMED), "-I", "-c", "import ci_eval"]
    assert (
        "No module named 'ci_eval'" in subprocess.run(asked, capture_output=True, text=True).stderr
    )


SCRIPT = """
    import asyncio, json, os, resource, subprocess, sys
    from pathlib import Path
    from ci_eval.runtime import isolation, workspace
    from ci_eval.runtime.processes import Child, Launch
    from ci_eval.runtime.context import RunContext
    {first}

    agent = isolation.Account(*{agent!r})
    isolation.account = lambda: agent
    RunContext.agent_account = agent
    root = Path({root!r})
    os.environ["KEY"] = "a-secret"

    async def run(code, *, kill=False):
        lines, over = [], asyncio.Event()
        child = Child(lines.append, over.set)
        code = "def tried(do):\\n try: return do() or 'done'\\n" \\
            " except OSError as exc: return type(exc).__name__\\n" + code
        program = {program!r}
        await child.start(Launch((program, "-I", "-c", code), {{}}, root, agent))
        if kill:
            while not lines: await asyncio.sleep(0.01)
            await child.stop()
        else:
            await over.wait()
            await child.stop()
        return [json.loads(line) for line in lines] or child.stderr.text

    found, said, files = {{}}, [], {{}}
    isolation.become_owner(root)
    env = {{"GITHUB_WORKSPACE": str(root)}}
    context = RunContext(env=env, root=root, now=None, say=said.append)
    {body}
    print(json.dumps(found))
"""


@pytest.fixture
def workspace() -> Iterator[Path]:
    """A folder of the owner's, which others may enter: those of pytest are root's alone."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        root = Path(folder, "workspace")
        (root / ".git").mkdir(parents=True)
        (root / "kept").write_text("kept")
        for path in (root, root / ".git"):
            path.chmod(0o755)  # whatever our umask is
        for path in (root, *root.rglob("*")):
            os.chown(path, OWNER, OWNER)
        yield root


def as_action(root: Path, body: str, first: str = "") -> Any:
    """Run `body` in a process that becomes the owner of `root`; return what it found.

    `first` is run before: the owner may not be able to read the packages of the tests.
    """
    fields = {"program": SYSTEM_PYTHON, "body": textwrap.dedent(body), "first": first}
    code = textwrap.dedent(SCRIPT).format(agent=tuple(AGENT), root=str(root), **fields)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_root
def test_the_owner_can_start_and_end_agents_and_is_no_longer_root(workspace: Path) -> None:
    found = as_action(
        workspace,
        """
        who = "import os, json; print(json.dumps([os.getresuid(), os.getresgid(), os.getgroups()]))"
        found["agent"] = asyncio.run(run(who))
        sleeping = "import time; print(1, flush=True); time.sleep(60)"
        found["ended"] = asyncio.run(run(sleeping, kill=True))
        found["we"] = [os.getresuid(), os.getresgid(), os.getgroups()]
        power = Path("/proc/thread-self/status").read_text().partition("CapEff:")[2].split()[0]
        found["power"] = int(power, 16)
        (root / "ours").touch()
        found["file"] = (root / "ours").stat().st_uid
        """,
    )
    assert found["agent"] == [[[AGENT.uid] * 3, [AGENT.gid] * 3, []]]
    assert found["ended"] == [1]
    assert found["we"] == [[OWNER, OWNER, 0], [OWNER] * 3, []]
    assert found["power"] == 0b11100000  # CAP_KILL, CAP_SETGID, CAP_SETUID
    assert found["file"] == OWNER


@needs_root
def test_agents_cannot_read_end_or_change_what_is_not_theirs(workspace: Path) -> None:
    found = as_action(
        workspace,
        """
        code = '''import json, os
        us = os.getppid()
        print(json.dumps([
            tried(lambda: open(f"/proc/{us}/environ").read()),
            tried(lambda: os.kill(us, 9)),
            tried(lambda: os.setuid(0)),
            tried(lambda: os.listdir(".git")),
            tried(lambda: open("kept", "a")),
            tried(lambda: os.remove("kept")),
            tried(lambda: os.mkdir(".ci-eval/mine")),
            tried(lambda: os.mkdir("mine")),
        ]))'''.replace("\\n        ", "\\n")
        with workspace.agent_workspace(context, files):
            found["tried"] = asyncio.run(run(code))
        """,
    )
    assert found["tried"] == [["PermissionError"] * 7 + ["done"]]


BUILDS = """
import json, os, subprocess
def tried(do):
    try: return do() or "done"
    except OSError as exc: return type(exc).__name__
nowhere = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
left = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True, **nowhere)
raise ValueError(json.dumps([os.getuid(), left.pid, *map(tried, (
    lambda: open(f"/proc/{os.getppid()}/environ").read(),
    lambda: os.listdir(".git"),
    lambda: open("kept", "a"),
    lambda: os.mkdir("made"),
))]))
"""


@pytest.mark.slow
@needs_root
@pytest.mark.parametrize(
    ("setup", "may_create"), [("()", "PermissionError"), ("[['/bin/true']]", "done")]
)
def test_a_python_file_that_builds_evals_runs_as_an_agent(
    workspace: Path, setup: str, may_create: str
) -> None:
    (workspace / "conf.py").write_text(BUILDS)
    found = as_action(
        workspace,
        f"""
        host = python_files.UnderPython(interpreter={SYSTEM_PYTHON!r}, setup={setup})
        file = python_files.PythonFile("conf.py", "")
        try:
            with python_files.as_json(file, "EvalSet", host, context):
                pass
        except python_files.TrialError as exc:
            found["told"] = str(exc)
        """,
        first="import encodings.utf_8_sig; from ci_eval.config import python_files",
    )
    first = found["told"].splitlines()[0]
    told = json.loads(first.removeprefix("cannot load 'conf.py': ValueError: "))
    assert told == [AGENT.uid, told[1], *["PermissionError"] * 3, may_create]
    status = Path(f"/proc/{told[1]}/status")
    assert not status.exists() or "Z (zombie)" in status.read_text()


@pytest.mark.slow
@needs_root
def test_at_the_end_nothing_runs_and_what_was_made_is_the_groups(workspace: Path) -> None:
    found = as_action(
        workspace,
        """
        code = '''import json, os, subprocess
        os.umask(0o077)
        os.makedirs("made/deep")
        open("made/deep/program", "w")
        os.chmod("made/deep/program", 0o4700)
        os.symlink("/etc/passwd", "made/link")
        left = subprocess.Popen(["sleep", "60"], start_new_session=True)
        print(json.dumps(left.pid))'''.replace("\\n        ", "\\n")
        modes = lambda: [oct(path.stat().st_mode & 0o7777) for path in (root, root / ".git")]
        found["before"] = modes()
        with workspace.agent_workspace(context, files):
            [pid] = asyncio.run(run(code))
            found["during"] = modes()
            found["alive"] = Path(f"/proc/{pid}").exists()
            status = Path(f"/proc/{pid}/status")
            workspace._hand_over, hand_over = lambda *given: (
                found.update(dead=not status.exists() or "Z (zombie)" in status.read_text()),
                list(hand_over(*given)),
            )[1], workspace._hand_over
        found["after"] = modes()
        found["made"] = [
            [path.name, path.lstat().st_uid, path.lstat().st_gid, oct(path.lstat().st_mode)]
            for path in sorted([root / "made", *(root / "made").rglob("*")])
        ]
        found["passwd"] = os.stat("/etc/passwd").st_gid
        """,
    )
    assert found["before"] == found["after"] == ["0o755", "0o755"]
    assert found["during"] == ["0o1757", "0o750"]
    assert found["alive"]
    assert found["dead"]
    assert found["made"] == [
        ["made", AGENT.uid, OWNER, "0o40770"],
        ["deep", AGENT.uid, OWNER, "0o40770"],
        ["program", AGENT.uid, OWNER, "0o100770"],
        ["link", AGENT.uid, OWNER, "0o120777"],
    ]
    assert found["passwd"] == 0


@needs_root
def test_nothing_is_changed_that_an_agent_only_left_a_way_to(workspace: Path) -> None:
    outside = workspace.parent / "outside"
    outside.mkdir()
    (outside / "key").write_text("a key")
    (outside / "key").chmod(0o600)
    outside.chmod(0o700)
    found = as_action(
        workspace,
        f"""
        outside = Path({str(outside)!r})
        code = '''import json, os
        os.symlink({str(outside)!r}, "folder")
        os.symlink({str(outside / "key")!r}, "file")
        os.symlink("/proc", "proc")
        os.symlink("loop", "loop")
        os.mkfifo("pipe")
        os.makedirs("made/module/cache")
        open("made/module/cache/go.mod", "w")
        for folder in ("made/module/cache", "made/module", "made"):
            os.chmod(folder, 0o555)
        os.mkdir("inside")
        os.symlink({str(outside)!r}, "inside/folder")
        print(json.dumps([
            tried(lambda: os.link("kept", "inside/kept")),
            tried(lambda: os.link(".git/config", "inside/config")),
        ]))'''.replace("\\n        ", "\\n")
        with workspace.agent_workspace(context, files):
            found["tried"] = asyncio.run(run(code))
        found["said"] = said
        found["modes"] = [
            oct((root / "made" / each).stat().st_mode)
            for each in (".", "module", "module/cache", "module/cache/go.mod")
        ]
        found["pipe"] = oct((root / "pipe").lstat().st_mode)
        found["kept"] = oct((root / "kept").stat().st_mode)
        import shutil
        shutil.rmtree(root / "made")
        """,
    )
    assert found["said"] == []
    assert (outside.stat().st_mode & 0o7777, outside.stat().st_gid) == (0o700, 0)
    assert ((outside / "key").stat().st_mode & 0o7777, (outside / "key").stat().st_gid) == (
        0o600,
        0,
    )
    assert found["modes"] == ["0o40775", "0o40775", "0o40775", "0o100664"]
    assert found["pipe"] == "0o10664"
    assert found["kept"] == "0o100644"


@needs_root
def test_a_git_folder_at_any_depth_is_closed_and_opened_again(workspace: Path) -> None:
    (workspace / "deps/lib/.git").mkdir(parents=True)
    (workspace / "deps/lib/.git/config").write_text("a token")
    (workspace / "deps/lib/sub/.git").mkdir(parents=True)
    (workspace / "deps/link").symlink_to(workspace / "deps/lib")
    for path in (workspace, *workspace.rglob("*")):
        os.lchown(path, OWNER, OWNER)
    found = as_action(
        workspace,
        """
        code = '''import json
        print(json.dumps([
            tried(lambda: open("deps/lib/.git/config").read()),
            tried(lambda: open("deps/link/.git/config").read()),
            tried(lambda: os.listdir("deps/lib/sub/.git")),
        ]))'''.replace("\\n        ", "\\n").replace("import json", "import json, os")
        with workspace.agent_workspace(context, files):
            found["tried"] = asyncio.run(run(code))
        found["after"] = oct((root / "deps/lib/.git").stat().st_mode)
        """,
    )
    assert found["tried"] == [["PermissionError"] * 3]
    assert found["after"] == "0o40755"


@needs_root
def test_a_file_that_a_handed_variable_names_can_be_read_by_agents_while_they_run(
    workspace: Path,
) -> None:
    closed = workspace.parent / "closed"
    closed.mkdir(mode=0o700)
    (closed / "credentials.json").write_text("{}")
    (closed / "credentials.json").chmod(0o600)
    for path in (closed, closed / "credentials.json"):
        os.chown(path, OWNER, OWNER)
    found = as_action(
        workspace,
        f"""
        files["CREDENTIALS"] = Path({str(closed / "credentials.json")!r})
        files["OPEN"] = root / "kept"
        with workspace.agent_workspace(context, files) as around:
            given = around.env["CREDENTIALS"]
            code = f"import json; print(json.dumps(open({{given!r}}).read()))"
            found["read"] = asyncio.run(run(code))
            found["ours"] = Path(given).read_text()
            found["mode"] = oct(Path(given).stat().st_mode)
        found["open"] = "OPEN" in around.env
        found["left"] = Path(given).exists()
        """,
    )
    assert found == {"read": ["{}"], "ours": "{}", "mode": "0o100440", "open": False, "left": False}


@needs_root
def test_a_file_that_is_too_long_to_be_handed_over_is_refused(workspace: Path) -> None:
    (workspace.parent / "long").write_bytes(bytes(MAX_FILE + 1))
    (workspace.parent / "long").chmod(0o600)
    os.chown(workspace.parent / "long", OWNER, OWNER)
    found = as_action(
        workspace,
        f"""
        from ci_eval.records.errors import UsageError
        files["LONG"] = Path({str(workspace.parent / "long")!r})
        try:
            with workspace.agent_workspace(context, files):
                found["said"] = "it ran"
        except UsageError as exc:
            found["said"] = str(exc)
        found["mode"] = oct((root / ".git").stat().st_mode)
        """,
    )
    assert found["said"].startswith("LONG names ")
    assert found["said"].endswith("for agents, which has more than 1 MiB")
    assert found["mode"] == "0o40755"


@needs_root
@pytest.mark.parametrize("target", ["/proc/self/environ", "secret"])
def test_a_link_is_not_handed_over(workspace: Path, target: str) -> None:
    (workspace.parent / "secret").write_text("a secret")
    (workspace.parent / "secret").chmod(0o600)
    (workspace / "credentials.json").symlink_to(workspace.parent / target)
    (workspace / "folder").symlink_to(workspace.parent)
    found = as_action(
        workspace,
        """
        from ci_eval.records.errors import UsageError
        for name in ("credentials.json", "folder/secret"):
            files["CREDENTIALS"] = root / name
            try:
                with workspace.agent_workspace(context, files):
                    found[name] = "it ran"
            except UsageError as exc:
                found[name] = str(exc).rpartition(" ")[2]
        """,
    )
    assert found == {"credentials.json": "symlink", "folder/secret": "symlink"}


@needs_root
def test_a_file_that_only_root_could_read_is_not_handed_over(workspace: Path) -> None:
    (workspace.parent / "roots").write_text("a secret")
    (workspace.parent / "roots").chmod(0o600)
    found = as_action(
        workspace,
        """
        from ci_eval.records.errors import UsageError
        files["ROOTS"] = root.parent / "roots"
        try:
            with workspace.agent_workspace(context, files):
                found["said"] = "it ran"
        except UsageError as exc:
            found["said"] = str(exc)
        """,
    )
    assert found["said"].endswith("which cannot be read: Permission denied")


@needs_root
def test_what_cannot_be_handed_over_is_said_and_changes_nothing(workspace: Path) -> None:
    found = as_action(
        workspace,
        """
        code = "import os; os.mkdir('made'); print(1)"
        with workspace.agent_workspace(context, files):
            asyncio.run(run("import os\\n" + code))
            real, os.chown = os.chown, lambda *_, **__: (_ for _ in ()).throw(OSError(30, "no"))
        os.chown = real
        found["said"] = said
        """,
    )
    assert found["said"] == ["cannot take over the agents' files in .: 'made': no"]


def test_a_folder_of_ours_that_leads_out_of_the_repository_is_refused(tmp_path: Path) -> None:
    git_init(tmp_path / "repo")
    (tmp_path / "repo/.ci-eval").symlink_to(tmp_path)
    with (
        pytest.raises(UsageError, match="is a symlink out of the repository"),
        agent_workspace(context(tmp_path / "repo"), {}),
    ):
        pytest.fail("it ran")


@needs_root
def test_a_process_runs_until_it_is_dead_and_not_until_somebody_asks_for_its_end() -> None:
    child = subprocess.Popen(["/bin/sleep", "60"], user=AGENT.uid)
    assert isolation._any_runs(AGENT)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert "Z (zombie)" in Path(f"/proc/{child.pid}/status").read_text()
    assert not isolation._any_runs(AGENT)
    child.wait()


KILLER = '''import os, subprocess, sys
code = """
import os
open("left", "x")
while True:
    try:
        os.kill(-1, 9)
    except OSError:
        pass
"""
subprocess.Popen([sys.executable, "-c", code], start_new_session=True).wait()
'''


@pytest.mark.slow
@needs_root
def test_agents_that_kill_all_they_can_are_ended_and_nobody_else(workspace: Path) -> None:
    """The end needs no process that they could kill, and none at all: a limit forbids it."""
    bystander = subprocess.Popen(["/bin/sleep", "60"], user=OWNER)
    found = as_action(
        workspace,
        f"""
        code = {KILLER!r}
        ours = subprocess.Popen(["/bin/sleep", "60"])
        with workspace.agent_workspace(context, files):
            asyncio.run(run(code))
            found["began"] = (root / "left").exists()
            found["alive"] = isolation._any_runs(agent)
            resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        found["left"] = isolation._any_runs(agent)
        found["ours"] = ours.poll()
        found["we"] = [os.getresuid(), os.getresgid()]
        power = Path("/proc/thread-self/status").read_text().partition("CapEff:")[2].split()[0]
        found["power"] = int(power, 16)
        ours.kill()
        """,
    )
    assert found == {
        "began": True,
        "alive": True,
        "left": False,
        "ours": None,
        "we": [[OWNER, OWNER, 0], [OWNER] * 3],
        "power": 0b11100000,
    }
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


@needs_root
def test_what_is_closed_to_agents_stays_closed_while_one_runs(workspace: Path) -> None:
    found = as_action(
        workspace,
        """
        from ci_eval.records.errors import MachineError
        isolation._KILL_TIMEOUT_S = 0.1
        kill, isolation._kill_all = isolation._kill_all, lambda agent: None
        try:
            with workspace.agent_workspace(context, files):
                theirs = isolation.child_options(agent)
                left = subprocess.Popen(["/bin/sleep", "60"], cwd="/", **theirs)
        except MachineError as exc:
            found["said"], found["code"] = str(exc), exc.exit_code
        found["mode"] = oct((root / ".git").stat().st_mode)
        kill(agent)
        found["left"] = left.wait()
        """,
    )
    assert found == {
        "said": "agent processes are still running 0.1 s after SIGKILL",
        "code": 6,
        "mode": "0o40750",
        "left": -9,
    }


@needs_root
def test_a_process_whose_first_thread_has_ended_still_runs() -> None:
    code = """
        import ctypes, threading, time
        threading.Thread(target=time.sleep, args=(60,)).start()
        ctypes.CDLL(None).syscall({exit}, 0)  # of this thread alone
    """
    number = {"x86_64": 60, "aarch64": 93}[os.uname().machine]
    code = textwrap.dedent(code).format(exit=number)
    child = subprocess.Popen([SYSTEM_PYTHON, "-I", "-c", code], user=AGENT.uid)
    status = Path(f"/proc/{child.pid}/status")
    try:
        while "Z (zombie)" not in status.read_text():
            assert child.poll() is None
            time.sleep(0.01)
        assert isolation._any_runs(AGENT)
    finally:
        isolation.end_all(AGENT)
    child.wait()


def test_nobody_is_taken_to_have_ended_where_nothing_can_be_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: Path) -> None:
        raise OSError(errno.ENFILE, "Too many open files in system")

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert isolation._any_runs(AGENT)


# --- On every Linux ---------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has it")
def test_what_closed_its_memory_still_starts_children_that_are_as_usual() -> None:
    code = """
        import ctypes, subprocess, sys
        from ci_eval.runtime.isolation import close_memory
        close_memory()
        get = "import ctypes; print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
        print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), flush=True)
        subprocess.run([sys.executable, "-c", get])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["0", "1"], done.stderr


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() == 0, reason="root may read the memory of all"
)
def test_no_process_of_the_same_user_can_read_our_environment() -> None:
    code = """
        import os, subprocess
        from ci_eval.runtime.isolation import close_memory
        close_memory()
        subprocess.run(["cat", f"/proc/{os.getpid()}/environ"])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == ""
    assert "Permission denied" in done.stderr
