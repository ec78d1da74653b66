"""Commands of ci-eval, each in a process of its own.

The process is forked from one that has imported everything, which takes a third of the time that a
new interpreter takes. Between two changes on a host it does not wait: nobody else writes there, and
the length of pauses has tests of its own.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import ci_eval
from ci_eval.__main__ import main
from ci_eval.forge import github
from ci_eval.pull_requests import sticky_comment
from ci_eval.records.errors import ExitCode
from ci_eval.runtime.retry import Backoff

HEAVY = ("aiohttp", "genai_prices", "jinja2.sandbox", "numpy", "regex", "rich", "yaml")
"""What a command imports only when it needs it."""


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run_command(*args: str, folder: Path, env: Mapping[str, str]) -> Ended:
    """Run a command in `folder`, with these variables and no others.

    A new interpreter runs it if PYTHONPATH is set, which says what can be imported.
    """
    if "PYTHONPATH" in env:
        command = [sys.executable, "-m", "ci_eval", *args]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        return Ended(done.returncode, done.stdout, done.stderr)
    server, lock = _server()
    with tempfile.TemporaryDirectory(prefix="ci-eval-output-") as output, lock:
        paths = [f"{output}/out", f"{output}/err"]
        request = {"args": args, "folder": str(folder), "env": dict(env), "paths": paths}
        print(json.dumps(request), file=server.stdin, flush=True)
        code = int(server.stdout.readline())
        return Ended(code, *(Path(each).read_text(encoding="utf-8") for each in paths))


@cache
def _server() -> tuple[Any, threading.Lock]:
    server = subprocess.Popen(
        [sys.executable, __file__],
        env={"PATH": os.environ["PATH"]},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    atexit.register(server.communicate)
    return server, threading.Lock()


def _serve() -> None:
    for each in pkgutil.walk_packages(ci_eval.__path__, "ci_eval."):
        if ".workers." not in each.name:
            importlib.import_module(each.name)
    for name in HEAVY:
        importlib.import_module(name)
    _compile_templates()
    github.WRITE_INTERVAL_S = 0.0
    sticky_comment.BACKOFF = Backoff(0.0, 0.0)
    gc.freeze()  # or each process would copy what it only looks through
    for line in sys.stdin:
        if child := os.fork():
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            sys.stdout.write(f"{code}\n")
            sys.stdout.flush()
        else:
            _run(**json.loads(line))


def _compile_templates() -> None:
    from ci_eval.text.html_templates import environment

    for name in environment().list_templates(filter_func=lambda name: name.endswith(".html.j2")):
        environment().get_template(name)


def _run(args: list[str], folder: str, env: dict[str, str], paths: list[str]) -> None:
    """Run a command in this process, and end it."""
    for number, path in enumerate([os.devnull, *paths]):
        opened = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["ci-eval", *args]
    code: Any = ExitCode.INTERNAL_ERROR
    try:
        main()
    except SystemExit as exc:
        code = exc.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        atexit._run_exitfuncs()  # removes temporary directories, as at the end of a real command
        os._exit(code)  # to free all that was imported would take longest


if __name__ == "__main__":
    _serve()
