"""Worker process: runs a Python callable under the interpreter with its dependencies.

ci-eval runs this file as `python worker.py FOLDER TARGET [ADAPTER OPTIONS]` and never imports it.
It needs only the standard library of Python 3.8.  TARGET is `module:callable`.  ADAPTER is a file
beside this one for a framework: its `adapted(target, options, load)` turns any TARGET into a
callable that takes a message; OPTIONS are JSON, and `load` imports a `module:name`.  Such a
callable may have `start_warnings`, `close(session)` and, if async, `end()`, which is awaited last.
Both sides write lines of JSON; `id` is the number of a conversation.

======================================== ==================================================
to the worker                            from the worker
======================================== ==================================================
(it starts)                              `{"ready": [warning…]}`, or `{"failed": str}`
`{"id", "message", "session"?,           `{"id", "reply", "seconds", "state"?, "output"}`, or
"history"?}`                             `{"id", "error": {"kind", "message"}, "output"}`
`{"cancel": id}`                         `{"id", "held": true}` if another call blocks the loop;
                                         `{"id", "output"}` from a thread, which continues
`{"close": id}`
(its input ends)                         (it ends)
======================================== ==================================================
"""

from __future__ import annotations

import faulthandler
import importlib
import inspect
import json
import os
import queue
import runpy
import signal
import sys
import threading
import time
from contextlib import suppress
from operator import attrgetter
from os.path import dirname
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    Runner: TypeAlias = "Loop | Threads"

MAX_REPLY_BYTES = 16 * 1024 * 1024 - 128 * 1024
"""The longest reply, in bytes; its line must have room for the output, too."""
GRACE_S = 5.0
"""How long a callable may continue after ci-eval has ended, and the process may take to end."""
_PACKAGE = "_ci_eval_workers"
"""The package of the files beside this one: `ci_eval` may be missing here, or another version."""
sys.modules[_PACKAGE] = _package = ModuleType(_PACKAGE)
_package.__path__ = [dirname(__file__)]

_output: Any = importlib.import_module(f"{_PACKAGE}.worker_output")
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def main() -> int:
    """Serve one callable until the end of input; return the exit code."""
    folder, target, *adapter = sys.argv[1:]
    wire = Wire()
    _set_up_process(folder, target)
    try:
        agent = Agent(_function(target, *adapter), folder)
    except BaseException as exc:  # noqa: BLE001  # a module may raise SystemExit, too
        wire.write({"failed": _faults().not_loaded(target, exc, folder)})
        return 1
    runner = Loop(agent, wire) if agent.is_async else Threads(agent, wire)
    wire.write({"ready": list(getattr(agent.function, "start_warnings", ()))})
    threading.Thread(target=_listen, args=(wire, runner), daemon=True).start()
    runner.run()
    return 0


def _set_up_process(folder: str, target: str) -> None:
    """Set up the process as if the callable's module had been started in `folder`."""
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # the folder of this file, whose modules the callable must not import
    sys.path.insert(0, folder)
    sys.argv[:] = [target.partition(":")[0]]
    # Neither the output just before a crash nor the location of the crash must be lost.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a file
    faulthandler.enable(all_threads=False)  # only the thread that crashed
    sys.stdout, sys.stderr = _output.Tee(sys.stdout), _output.Tee(sys.stderr)
    if "CI_EVAL_MODELS" in os.environ:  # noqa: TID251  # of the worker
        importlib.import_module(f"{_PACKAGE}.marked_calls").mark(_output.writing)


class Wire:
    """The two pipes to ci-eval, protected from code that reads stdin or prints."""

    def __init__(self) -> None:
        self.input = os.fdopen(os.dup(0), "rb")
        self._output = os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def write(self, message: dict[str, Any] | str) -> None:
        """Send `message`, which may already be JSON."""
        if os.getpid() != self._pid:
            # The callable forked, and this is the child, which must not reply.
            os._exit(0)
        line = message if isinstance(message, str) else _encode(message)
        rest = memoryview(line.encode("ascii") + b"\n")
        with self._lock:
            while rest:
                rest = rest[os.write(self._output, rest) :]


def _listen(wire: Wire, runner: Runner) -> None:
    """Handle messages until the end of input; then let the process end, or kill it."""
    try:
        for message in map(json.loads, wire.input):
            if "message" in message:
                runner.begin(message)
            elif "cancel" in message:
                runner.cancel(message["cancel"])
            else:
                runner.forget(message["close"])
    finally:
        runner.end()
        time.sleep(GRACE_S)
        if sys.platform != "win32" and os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)  # with its children
        os._exit(1)


def _faults() -> Any:
    """Return the module `worker_faults`, loaded on demand."""
    return importlib.import_module(f"{_PACKAGE}.worker_faults")


# --- The callable -----------------------------------------------------------------------------


def _load(name: str) -> Any:
    """Import the object `module:name`."""
    module, _, path = name.partition(":")
    return attrgetter(path)(importlib.import_module(module))


def _function(target: str, adapter: str = "", options: str = "") -> Callable[..., Any]:
    """Return the callable, or what `adapter` makes of the target."""
    if adapter:
        found = runpy.run_path(adapter, run_name=f"{_PACKAGE}.adapters.main")
        return found["adapted"](target, json.loads(options), _load)  # type: ignore[no-any-return]  # as the adapters say
    found = _load(target)
    if not callable(found):
        raise TypeError(f"it is not callable: {_faults().in_short(found)}")
    return found  # type: ignore[no-any-return]  # just checked


class Conversation(NamedTuple):
    """Input and output of the callable in one conversation."""

    session: dict[str, Any]
    history: list[Any]
    output: Any


class Agent:
    """The callable, and its conversations."""

    def __init__(self, function: Callable[..., Any], folder: str) -> None:
        self.function = function
        self.is_async = _is_async(function)
        self._folder = folder
        self._extras = _extras(function)
        self._close = getattr(function, "close", None)
        self.end = getattr(function, "end", None)
        self._conversations: dict[int, Conversation] = {}

    def arguments(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the callable's arguments besides the message."""
        number = request["id"]
        if "session" in request:
            given = request["session"], request.get("history", []), _output.Output(number)
            self._conversations[number] = Conversation(*given)
        known = self._conversations[number]
        _output.writing.set(known.output)
        extras = {"session": known.session, "history": list(known.history)}
        return {name: extras[name] for name in self._extras}

    def forget(self, number: int) -> None:
        """Forget a conversation that has ended."""
        ended = self._conversations.pop(number, None)
        if self._close and ended:
            self._close(ended.session)

    def so_far(self, number: int) -> str:
        """Return the line with the output so far."""
        return _encode({"id": number, "output": self._written(number)})

    def _written(self, number: int) -> str:
        known = self._conversations.get(number)
        return str(known.output.text) if known else ""

    def answer(self, request: dict[str, Any], value: Any, seconds: float) -> str:
        """Return the line with the callable's result."""
        number = request["id"]
        given = {"reply": ("returned", value)}
        if "session" in self._extras:
            state = self._conversations[number].session.get("state")
            given["state"] = ("left as the session's state", state)
        line = f'{{"id":{number},"seconds":{seconds:.6f}'
        for name, (did, part) in given.items():
            try:
                line += f',"{name}":{_encode(part)}'
            except (TypeError, ValueError, RecursionError) as exc:  # noqa: PERF203  # it ends the loop
                message = f"{did} {_faults().in_short(part)}, which is not JSON: {exc}"
                return self._error(request, "protocol", message)
        if len(line) > MAX_REPLY_BYTES:
            message = f"returned {len(line) >> 20} MiB of JSON; the limit is 16 MiB"
            return self._error(request, "protocol", message)
        if "history" in self._extras:
            self._note(request, value)
        return f'{line},"output":{_encode(self._written(number))}}}'

    def raised(self, request: dict[str, Any], exc: BaseException) -> str:
        """Return the line with the callable's exception."""
        return self._error(request, "raised", _faults().raised(exc, self._folder, self.function))

    def _error(self, request: dict[str, Any], kind: str, message: str) -> str:
        number = request["id"]
        error = {"kind": kind, "message": _faults().bounded(message)}
        return _encode({"id": number, "error": error, "output": self._written(number)})

    def _note(self, request: dict[str, Any], value: Any) -> None:
        """Add a turn to the history, as a copy that the callable cannot change."""
        reply = value if isinstance(value, dict) else {"response": value}
        answer = {"response": reply.get("response"), "tool_calls": reply.get("tool_calls") or []}
        turn = _encode({"message": request["message"], **answer})
        self._conversations[request["id"]].history.append(json.loads(turn))


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(type(function), "__call__", None)  # noqa: B004  # it is known to be callable
    )


def _extras(function: Callable[..., Any]) -> list[str]:
    """Return the optional arguments that the callable declares after the message."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []  # a builtin without a signature
    named = [p.name for p in parameters if p.kind == p.KEYWORD_ONLY] + [
        p.name for p in parameters[1:] if p.kind == p.POSITIONAL_OR_KEYWORD
    ]
    return [name for name in ("history", "session") if name in named]


# --- Running the callable ---------------------------------------------------------------------


class Threads:
    """Runs the callable in the main thread, and in more threads for concurrent calls."""

    def __init__(self, agent: Agent, wire: Wire) -> None:
        self._agent = agent
        self._wire = wire
        self._requests: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 1
        self._calls = 0

    def begin(self, request: dict[str, Any]) -> None:
        """Queue `request`."""
        with self._lock:
            self._calls += 1
            too_few = self._calls > self._threads
            self._threads += too_few
        self._requests.put(request)
        if too_few:
            threading.Thread(target=self.run, daemon=True).start()

    def cancel(self, number: int) -> None:
        """Report the output; ci-eval then stops the process, as a thread cannot be stopped."""
        self._wire.write(self._agent.so_far(number))

    def forget(self, number: int) -> None:
        """Forget a conversation."""
        self._agent.forget(number)

    def run(self) -> None:
        """Answer requests until `end`."""
        for request in iter(self._requests.get, None):
            line = self._call(request)
            with self._lock:
                self._calls -= 1
            self._wire.write(line)

    def end(self) -> None:
        """End every idle thread."""
        for _ in range(self._threads):
            self._requests.put(None)

    def _call(self, request: dict[str, Any]) -> str:
        extras = self._agent.arguments(request)
        started = time.perf_counter()
        try:
            value = self._agent.function(request["message"], **extras)
            if inspect.isawaitable(value):
                value = _awaited(value)
        except BaseException as exc:  # noqa: BLE001  # any exception is the trial's error
            return self._agent.raised(request, exc)
        return self._agent.answer(request, value, time.perf_counter() - started)


def _awaited(value: Awaitable[Any]) -> Any:
    import asyncio

    async def result() -> Any:
        return await value

    return asyncio.run(result())


class Loop:
    """Runs the callable on one event loop, in the main thread."""

    def __init__(self, agent: Agent, wire: Wire) -> None:
        import asyncio

        self._agent = agent
        self._wire = wire
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._ended = False

    def begin(self, request: dict[str, Any]) -> None:
        """Queue `request`."""
        self._loop.call_soon_threadsafe(self._begin, request)

    def cancel(self, number: int) -> None:
        """Cancel a request; report if another one blocks the loop.

        All requests wait while a task runs without yielding.  The first one to time out is then
        not the cause, and only this thread can detect that.
        """
        import asyncio

        running = asyncio.current_task(self._loop)
        if running is not None and running is not self._tasks.get(number):
            self._wire.write({"id": number, "held": True})
        self._loop.call_soon_threadsafe(self._cancel, number)

    def forget(self, number: int) -> None:
        """Forget a conversation, in the thread that runs its task."""
        self._loop.call_soon_threadsafe(self._agent.forget, number)

    def run(self) -> None:
        """Answer requests until `end`, even if a task of the agent raises SystemExit."""
        import asyncio

        while not self._ended:
            with suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_forever()
        if self._agent.end is not None:
            with suppress(BaseException):  # errors are no longer read
                self._loop.run_until_complete(asyncio.wait_for(self._agent.end(), GRACE_S))

    def end(self) -> None:
        """Make `run` return."""
        self._ended = True
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _begin(self, request: dict[str, Any]) -> None:
        self._tasks[request["id"]] = self._loop.create_task(self._call(request))

    def _cancel(self, number: int) -> None:
        if number in self._tasks:
            self._tasks[number].cancel()

    async def _call(self, request: dict[str, Any]) -> None:
        extras = self._agent.arguments(request)
        started = time.perf_counter()
        try:
            value = await self._agent.function(request["message"], **extras)
        except BaseException as exc:  # noqa: BLE001  # any exception is the trial's error
            line = self._agent.raised(request, exc)
        else:
            line = self._agent.answer(request, value, time.perf_counter() - started)
        del self._tasks[request["id"]]
        self._wire.write(line)


if __name__ == "__main__":
    sys.exit(main())
