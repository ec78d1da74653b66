"""What the system refuses is named, and what the machine lacks is nobody's mistake."""

import errno
import os

import pytest

from ci_eval.cli.exit_codes import naming_files
from ci_eval.records.errors import ExitCode, MachineError, UsageError


@pytest.mark.parametrize("name", ["ENOSPC", "EDQUOT", "ENOMEM", "EAGAIN", "EMFILE", "ENFILE"])
@pytest.mark.parametrize(("file", "at"), [(None, ""), ("run.json", " at run.json")])
def test_what_the_machine_lacks_ends_without_a_verdict(
    name: str, file: str | None, at: str
) -> None:
    code = getattr(errno, name)
    with pytest.raises(MachineError) as caught, naming_files():
        raise OSError(code, os.strerror(code), file)
    assert str(caught.value) == f"out of system resources{at}: {os.strerror(code)}"
    assert caught.value.exit_code == ExitCode.INCOMPLETE


def test_a_limit_of_threads_is_the_machines() -> None:
    with pytest.raises(MachineError, match="out of system resources: "), naming_files():
        raise RuntimeError("can't start new thread")
    with pytest.raises(RuntimeError, match="another"), naming_files():
        raise RuntimeError("another")


def test_a_file_that_the_system_refuses_is_named() -> None:
    with pytest.raises(UsageError, match=r"^x cannot be accessed: Permission den"), naming_files():
        raise OSError(errno.EACCES, "Permission denied", "x")


def test_what_is_neither_stays_a_bug() -> None:
    with pytest.raises(OSError, match="Bad file"), naming_files():
        raise OSError(errno.EBADF, "Bad file descriptor")
