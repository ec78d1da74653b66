"""What keeps agents apart from us: our memory on Linux, and in our image a user of their own.

The image has the account `ci-eval-agent`.  Who started there as root goes on as the owner of the
workspace, with no more power than to start and to end processes of that account; the way back to
root (the saved user id) is for the moments before the first and after the last agent.  Wherever
there is no such account, or we are not root, agents run as we do, and none of this happens.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ci_eval.records.errors import MachineError, UsageError

ACCOUNT = "ci-eval-agent"
"""Whom agents run as; the Dockerfile makes it."""
INTERPRETER = "CI_EVAL_INTERPRETER"
"""The variable that names the Python for code that names none; our image does not heed it."""

# From linux/prctl.h and linux/capability.h.
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_CAPABILITY_VERSION_3 = 0x20080522
_CAP_KILL, _CAP_SETGID, _CAP_SETUID = 5, 6, 7
_OVER_AGENTS = 1 << _CAP_KILL | 1 << _CAP_SETGID | 1 << _CAP_SETUID

_SECONDS_TO_DIE = 60.0  # what a killed process may take on a machine with much to do


class Account(NamedTuple):
    """A user of the system."""

    uid: int
    gid: int
    home: str


def account() -> Account | None:
    """Return whom agents run as; `None` where they run as we do."""
    return None if sys.platform != "linux" or os.getresuid()[2] != 0 else _known_account()


def belongs_to_agents(path: Path) -> bool:
    """Return whether what is at `path` belongs to the account of agents, where there is one."""
    agent = _known_account()
    try:
        return agent is not None and path.lstat().st_uid == agent.uid
    except OSError:
        return False


@cache
def _known_account() -> Account | None:
    if sys.platform != "linux":
        return None
    import pwd

    try:
        found = pwd.getpwnam(ACCOUNT)
    except KeyError:
        return None
    return Account(found.pw_uid, found.pw_gid, found.pw_dir)


def child_options() -> dict[str, Any]:
    """Return what starts a child as the account of agents, in the words of `subprocess`."""
    agent = account()
    if agent is None:
        return {}
    return {"user": agent.uid, "group": agent.gid, "extra_groups": [], "umask": 0o022}


def environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that are otherwise for the account of agents."""
    agent = account()
    if agent is None:
        return {}
    own = f"{agent.home}/.local/bin"  # where pip puts programs that are installed for one user
    path = os.pathsep.join(filter(None, (own, ours.get("PATH"))))
    return {"HOME": agent.home, "USER": ACCOUNT, "LOGNAME": ACCOUNT, "PATH": path}


def interpreter(ours: Mapping[str, str]) -> str:
    """Return the Python for code that names none.

    In our image it is one that does not have ci-eval.  Elsewhere it is ours, or what `ours`, our
    environment, says: on the job's own machine the action names the Python of the job.
    """
    if account() is None:
        return ours.get(INTERPRETER) or sys.executable
    return str(Path(sys.base_prefix, "bin", "python3"))


# --- Ourselves --------------------------------------------------------------------------------


def close_memory() -> None:
    """Let no other process of our user read our memory and environment, where Linux runs us."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def become_owner(workspace: Path) -> None:
    """Go on as the owner of `workspace`, where a container runs us as root.

    What we write can then be changed and removed by later steps and by the runner.

    Raises:
        UsageError: the container was not given what it takes.

    """
    if sys.platform != "linux" or os.geteuid() != 0:
        return
    owner = workspace.stat()
    try:
        # No program that agents start can make them root: not by a set-user-ID bit either.
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        os.setgroups([])
        if owner.st_uid != 0:
            os.setresgid(owner.st_gid, owner.st_gid, owner.st_gid)
            os.setresuid(owner.st_uid, owner.st_uid, 0)
            _keep_power(_OVER_AGENTS)
    except PermissionError as exc:
        message = f"agents cannot be kept apart from ci-eval: {exc.strerror}"
        raise UsageError(message, hint="run the container with its usual capabilities") from exc


def _keep_power(kept: int) -> None:
    """Have, of all capabilities, those whose bits are set in `kept`, without being root."""

    class Header(ctypes.Structure):
        _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))

    class Data(ctypes.Structure):
        _fields_ = tuple(
            (name, ctypes.c_uint32) for name in ("effective", "permitted", "inherited")
        )

    libc = ctypes.CDLL(None, use_errno=True)
    header, data = Header(_CAPABILITY_VERSION_3, 0), (Data * 2)()
    done = libc.capget(ctypes.byref(header), data)
    data[0].effective, data[1].effective = kept, 0
    if done != 0 or libc.capset(ctypes.byref(header), data) != 0:
        error = ctypes.get_errno()
        raise PermissionError(error, os.strerror(error))


@contextmanager
def as_root() -> Iterator[None]:
    """Be root for a while in which nothing else may run."""
    if sys.platform == "win32":  # it has none
        yield
        return
    before = os.geteuid()
    os.seteuid(0)
    try:
        yield
    finally:
        if before != 0:
            os.seteuid(before)
            _keep_power(_OVER_AGENTS)


# --- Their end ------------------------------------------------------------------------------------


def end_all(agent: Account) -> None:
    """Kill every process of the account, and return when none of them runs.

    Raises:
        MachineError: the system does not end them.

    """
    until = time.monotonic() + _SECONDS_TO_DIE
    _kill_all(agent)
    while _any_runs(agent):
        if time.monotonic() > until:
            message = f"processes of agents still run {_SECONDS_TO_DIE:g} s after SIGKILL"
            hint = "run the job again, and look for what holds them up in the kernel's log"
            raise MachineError(message, hint=hint)
        time.sleep(0.01)


def _kill_all(agent: Account) -> None:
    """Send SIGKILL to every process of the account.

    One call signals all of them at once, so that none can get away by forking.  Nothing is forked
    for it either: there may be no room for another process, and agents could kill a helper that
    runs as they do.  The effective user of a sender says whom it may signal, but the real and the
    saved one of a receiver who may signal it.  So these are not the agents': we cannot be killed.
    """
    if sys.platform != "linux":
        return
    nobody = agent.uid + 1  # whoever has this real user would be killed, too
    with as_root():
        real = os.getresuid()[0]
        os.setresuid(nobody, agent.uid, 0)
        try:
            _keep_power(0)  # CAP_KILL would kill everybody
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            return  # none is left
        finally:
            os.seteuid(0)
            os.setresuid(real, 0, 0)


def _any_runs(agent: Account) -> bool:
    """Return whether a process of the account is more than an entry that waits for its parent."""
    try:
        found = [each for each in Path("/proc").iterdir() if each.name.isdecimal()]
        return any(_runs(each / "status", agent) for each in found)
    except OSError:  # too many files are open, say: then nothing is known
        return True


def _runs(status: Path, agent: Account) -> bool:
    try:
        lines = status.read_text(errors="replace").split("\n")
    except (FileNotFoundError, ProcessLookupError):  # it ended while we looked
        return False
    found = dict(line.partition(":\t")[::2] for line in lines)
    # A zombie, or dead; but of one whose first thread has ended, others may run.
    is_over = found["State"][:1] in "ZX" and int(found["Threads"]) <= 1
    return not is_over and str(agent.uid) in found["Uid"].split()
