"""Isolation of agents: protected memory on Linux, and a separate user in our image.

The image has the account `ci-eval-agent`, and another one for agents of the merge base, so that
agents of the change can neither see nor disturb them.  A ci-eval process that starts there as root
continues as the owner of the workspace, with only the capabilities to start and kill processes of
these accounts.  It regains root (by the saved user id) only before the first agent starts and
after the last one has ended.  Without such accounts, or if we are not root, agents run as our own
user without any of this.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from ci_eval.records.errors import MachineError, UsageError

ACCOUNT = "ci-eval-agent"
BASE_ACCOUNT = "ci-eval-base-agent"
"""The users that agents of the change and of the merge base run as; the Dockerfile creates them."""
INTERPRETER = "CI_EVAL_INTERPRETER"
"""The variable with the default Python interpreter of agents; ignored in our image."""

# From linux/prctl.h and linux/capability.h.
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_CAPABILITY_VERSION_3 = 0x20080522
_CAP_KILL, _CAP_SETGID, _CAP_SETUID = 5, 6, 7
_AGENT_CAPABILITIES = 1 << _CAP_KILL | 1 << _CAP_SETGID | 1 << _CAP_SETUID

_KILL_TIMEOUT_S = 60.0  # a killed process may take long on a busy machine


class Account(NamedTuple):
    """A user of the system."""

    uid: int
    gid: int
    home: str
    name: str = ACCOUNT


def account(*, of_base: bool = False) -> Account | None:
    """Return the user that agents (or those of the merge base) run as; `None` if it is our own."""
    if sys.platform != "linux" or os.getresuid()[2] != 0:
        return None
    return _known_account(BASE_ACCOUNT if of_base else ACCOUNT)


def belongs_to_agents(path: Path) -> bool:
    """Return True if an account of agents, if any, owns `path`."""
    agents = filter(None, map(_known_account, (ACCOUNT, BASE_ACCOUNT)))
    try:
        return path.lstat().st_uid in {agent.uid for agent in agents}
    except OSError:
        return False


@cache
def _known_account(name: str) -> Account | None:
    if sys.platform != "linux":
        return None
    import pwd

    try:
        found = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(found.pw_uid, found.pw_gid, found.pw_dir, name)


def child_options(agent: Account | None) -> dict[str, Any]:
    """Return the `subprocess` options that start a child as the user `agent`."""
    if agent is None:
        return {}
    return {"user": agent.uid, "group": agent.gid, "extra_groups": [], "umask": 0o022}


def ending_with_us() -> dict[str, Any]:
    """Return the `subprocess` options that, on Linux, kill a child when we end.

    They are for programs that do not read their input; workers end when their input is closed.
    """
    if sys.platform != "linux":
        return {}
    # Looked up before the fork: the child must not take a lock that one of our threads may hold.
    prctl = ctypes.CDLL(None).prctl
    return {"preexec_fn": partial(prctl, _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)}


def environment(ours: Mapping[str, str], agent: Account | None) -> dict[str, str]:
    """Return the environment variables that differ for the user `agent`."""
    if agent is None:
        return {}
    own = f"{agent.home}/.local/bin"  # where `pip install --user` puts programs
    path = os.pathsep.join(filter(None, (own, ours.get("PATH"))))
    return {"HOME": agent.home, "USER": agent.name, "LOGNAME": agent.name, "PATH": path}


def admit_alone(folder: Path, agent: Account | None) -> None:
    """Let only the user `agent` enter one of our folders."""
    if agent is None or sys.platform == "win32":
        return
    with as_root():
        os.chown(folder, -1, agent.gid)
    folder.chmod(0o710)


def interpreter(ours: Mapping[str, str]) -> str:
    """Return the default Python interpreter of agents.

    In our image it is one without ci-eval.  Elsewhere it is the one named by our environment,
    `ours` (without the container, the action names the job's Python there), or our own.
    """
    if account() is None:
        return ours.get(INTERPRETER) or sys.executable
    return str(Path(sys.base_prefix, "bin", "python3"))


# --- Ourselves --------------------------------------------------------------------------------


def close_memory() -> None:
    """On Linux, keep other processes of our user from reading our memory and environment."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def become_owner(workspace: Path) -> None:
    """Continue as the owner of `workspace` if a container runs us as root.

    Later steps and the runner can then change and remove the files that we write.

    Raises:
        UsageError: the container lacks a capability.

    """
    if sys.platform != "linux" or os.geteuid() != 0:
        return
    owner = workspace.stat()
    try:
        # No program can make agents root, not even with a set-user-ID bit.
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        os.setgroups([])
        if owner.st_uid != 0:
            os.setresgid(owner.st_gid, owner.st_gid, owner.st_gid)
            os.setresuid(owner.st_uid, owner.st_uid, 0)
            _set_capabilities(_AGENT_CAPABILITIES)
    except PermissionError as exc:
        message = f"agents cannot be isolated from ci-eval: {exc.strerror}"
        raise UsageError(message, hint="run the container with its usual capabilities") from exc


def _set_capabilities(kept: int) -> None:
    """Set the effective capabilities to the bits in `kept`, and leave the permitted ones."""
    # The version and the process; then the effective, permitted and inheritable bits, the lower 32
    # of each before the upper ones.
    header, data = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.capget(header, data)
    data[0], data[3] = kept, 0
    if done != 0 or libc.capset(header, data) != 0:
        error = ctypes.get_errno()
        raise PermissionError(error, os.strerror(error))


@contextmanager
def as_root() -> Iterator[None]:
    """Be root temporarily, while nothing else may run."""
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
            _set_capabilities(_AGENT_CAPABILITIES)


# --- Ending agents --------------------------------------------------------------------------------


def kill_group(pid: int, kill: Callable[[], None]) -> None:
    """Kill a child that leads a process group, with its children; on Windows, `kill` it alone."""
    if sys.platform == "win32":  # pragma: no cover  # not tested there
        kill()
    else:
        # No process may be left, or (macOS) only zombies.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def end_all(agent: Account) -> None:
    """Kill every process of the account, and return once none is running.

    Raises:
        MachineError: some survive.

    """
    until = time.monotonic() + _KILL_TIMEOUT_S
    _kill_all(agent)
    while _any_runs(agent):
        if time.monotonic() > until:
            message = f"agent processes are still running {_KILL_TIMEOUT_S:g} s after SIGKILL"
            hint = "rerun the job; if it happens again, see the kernel log"
            raise MachineError(message, hint=hint)
        time.sleep(0.01)


def _kill_all(agent: Account) -> None:
    """Send SIGKILL to every process of the account.

    A single call signals all of them at once, so that none can escape by forking.  We do not fork
    for it either: the process limit may be reached, and agents could kill a helper that runs as
    their user.  The kernel compares the sender's effective user id with the receiver's real and
    saved ones.  Our real and saved ids are not the agents', so agents cannot kill us.
    """
    if sys.platform != "linux":
        return
    nobody = agent.uid + 1  # processes with this real user would be killed, too
    with as_root():
        real = os.getresuid()[0]
        os.setresuid(nobody, agent.uid, 0)
        try:
            _set_capabilities(0)  # CAP_KILL would kill all processes
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            return  # none is left
        finally:
            os.seteuid(0)
            os.setresuid(real, 0, 0)


def _any_runs(agent: Account) -> bool:
    """Return True if a process of the account is running, not just a zombie."""
    try:
        found = [each for each in Path("/proc").iterdir() if each.name.isdecimal()]
        return any(_runs(each / "status", agent) for each in found)
    except OSError:  # for instance, too many open files: unknown
        return True


def _runs(status: Path, agent: Account) -> bool:
    try:
        lines = status.read_text(errors="replace").split("\n")
    except (FileNotFoundError, ProcessLookupError):  # it ended in the meantime
        return False
    found = dict(line.partition(":\t")[::2] for line in lines)
    # A zombie, or dead; but if only the first thread has ended, others may be running.
    has_ended = found["State"][:1] in "ZX" and int(found["Threads"]) <= 1
    return not has_ended and str(agent.uid) in found["Uid"].split()
