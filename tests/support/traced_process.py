"""Code of a process that has itself traced by one that never takes note of its end."""

import subprocess
import sys
from functools import cache

import pytest

_TRACER = """
import ctypes, sys, time
libc = ctypes.CDLL(None)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
if libc.ptrace(0x4206, int(sys.argv[1]), None, None) == 0:  # PTRACE_SEIZE
    print("traced", flush=True)
    time.sleep(60)
"""

GET_TRACED = f"""
import ctypes, os, subprocess, sys
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(2**64 - 1), 0, 0, 0)  # anybody may
tracer = subprocess.Popen(
    [sys.executable, "-S", "-c", {_TRACER!r}, str(os.getpid())],
    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    start_new_session=True,
)
is_traced = tracer.stdout.readline() == b"traced\\n"
"""
"""The tracer's number is `tracer.pid` then; it ends by itself, long after each test."""


@cache
def _can_be_traced() -> bool:
    code = GET_TRACED + "tracer.kill(); sys.exit(not is_traced)"
    return subprocess.run([sys.executable, "-S", "-c", code], check=False).returncode == 0


def needs_tracing() -> None:
    """Skip a test where no process can be traced."""
    if sys.platform != "linux" or not _can_be_traced():
        pytest.skip("no process can be traced")
