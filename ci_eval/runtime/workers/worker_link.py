"""Our end of the connection to a worker process; `worker.py` is the other end."""

import asyncio
import logging
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Self

from ci_eval.records.errors import BadAnswerError, DisturbedError, TrialError, failure_kind
from ci_eval.runtime.processes import Child, Launch
from ci_eval.runtime.workers.worker_wire import encode, read_json
from ci_eval.text.sanitize import one_line

_log = logging.getLogger(__name__)

START_TIMEOUT_S = 300.0
"""How long a worker may take to import its target."""
GRACE_S = 1.0
"""How long a cancelled call may take to end.  A thread cannot be stopped: it must report its output
within that time."""
_MAX_WARNINGS = 20
_MAX_WARNING = 2_000
"""Maximum number of start warnings of a worker, and the length of the longest."""
END_S = 5.0
"""How long an idle worker may take to end; generous for busy machines."""

_ANSWER = re.compile(rb'{"id":(\d+),"seconds":')
"""The beginning of a worker's line with a result."""
_TOO_OLD = re.compile(r'worker\.py", line \d+\n.*\n.*\nSyntaxError: ')
"""The traceback from a Python that is too old for the worker itself."""
_CRASHED_AT = re.compile(r'^  File "(.+)", line (\d+) in ', re.MULTILINE)
"""A frame printed by `faulthandler`; tracebacks have a comma before the `in`."""


class Link:
    """One worker process and its conversations.

    When the worker is lost, each of its conversations gets an error.  If the cause is unknown,
    all of them must be rerun, each alone.
    """

    def __init__(self) -> None:
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._conversations: set[int] = set()
        self._served = 0
        self._outputs: dict[int, str] = {}
        self._cancelled: dict[int, asyncio.Future[None]] = {}
        """The cancelled calls, done once the worker has reported their output."""
        self._blocked: set[int] = set()
        self._folder = ""
        self.env: Mapping[str, str] = {}
        """The environment of the worker."""
        self._lost: Callable[[], TrialError] | None = None
        self._child = Child(self._on_line, self._on_end)

    @classmethod
    async def start(cls, launch: Launch) -> Self:
        """Start a worker and wait until it is ready.

        Raises:
            TrialError: it cannot be started.

        """
        link = cls()
        link._folder = f"{launch.cwd}{os.sep}"
        link.env = launch.env
        deadline = asyncio.get_running_loop().time() + START_TIMEOUT_S
        await link._child.start(launch)
        try:
            async with asyncio.timeout_at(deadline):
                await link._ready
        except TimeoutError:
            await link._child.stop()
            message = f"the worker was not ready after {START_TIMEOUT_S:g} s"
            raise TrialError("start", message + link._child.stderr_tail) from None
        except TrialError as exc:
            await link._child.stop(grace_s=END_S)  # it has reported the error, and is about to end
            raise TrialError(exc.kind, str(exc) + link._child.stderr_tail) from None
        except asyncio.CancelledError:
            await link._child.stop()
            raise
        _log.info("worker started for %s under %s", launch.argv[3], launch.argv[0])
        return link

    @property
    def alive(self) -> bool:
        """Whether it accepts conversations."""
        return self._lost is None

    @property
    def is_over(self) -> bool:
        """Whether its process has ended."""
        return self._child.exit_code is not None

    def begin(self, number: int) -> None:
        """Register conversation `number`."""
        self._conversations.add(number)
        self._served += 1

    def finish(self, number: int) -> str:
        """Remove conversation `number`, and return its output."""
        self._conversations.discard(number)
        written = self._outputs.pop(number, "")
        if self.alive:
            self._child.write_line(encode({"close": number}))
        if written or self.alive or self._served > 1:
            return written
        # A worker that died could not report the output; all of stderr is from this conversation.
        return self._child.stderr.text

    async def ask(self, number: int, request: dict[str, Any]) -> dict[str, Any]:
        """Send `request` in conversation `number`, and return the reply.

        Cancelling it ends the call, and the worker if necessary.

        Raises:
            BadAnswerError: the result is not JSON.
            TrialError: the call failed because of this conversation.
            DisturbedError: the call failed, perhaps because of another conversation.

        """
        if self._lost:
            raise self._lost()
        answered = self._expect(number)
        self._child.write_line(encode({"id": number, **request}))
        try:
            answer = await answered
        except asyncio.CancelledError:
            if number in self._waiting:
                await self._cancel(number)
            raise
        return _checked(answer)

    async def stop(self) -> None:
        """Stop the worker, at once if it is busy."""
        busy = self._conversations or not self.alive
        self._lost = self._lost or partial(TrialError, "crash", "the worker was stopped")
        await self._child.stop(grace_s=0 if busy else END_S)

    def _expect(self, number: int) -> asyncio.Future[dict[str, Any]]:
        self._waiting[number] = asyncio.get_running_loop().create_future()
        return self._waiting[number]

    async def _cancel(self, number: int) -> None:
        """Cancel the call of conversation `number`, which timed out.

        Raises:
            DisturbedError: another conversation may have blocked this one.

        """
        loop = asyncio.get_running_loop()
        yielded, until = self._expect(number), loop.time() + GRACE_S
        self._cancelled[number] = loop.create_future()
        try:
            self._child.write_line(encode({"cancel": number}))
            # Other calls that timed out at the same moment report their output, too.
            while waiting := [each for each in self._cancelled.values() if not each.done()]:
                if (left := until - loop.time()) <= 0:
                    break
                await asyncio.wait(waiting, timeout=left)
        finally:
            self._cancelled.pop(number).cancel()
            if not yielded.done():
                del self._waiting[number]
                message = "its worker was stopped because a trial in it timed out without yielding"
                self._lose(partial(DisturbedError, message, alone=number in self._blocked))
            is_lost = not yielded.done() or yielded.exception() is not None
        if is_lost and self._lost and number in self._blocked:
            raise self._lost()

    def _lose(self, error: Callable[[], TrialError]) -> None:
        """Kill the worker; pending calls get an `error`."""
        if self._lost is None:
            self._lost = error
            self._child.kill()
        for answered in self._waiting.values():
            if not answered.done():
                answered.set_exception(self._lost())
        self._waiting.clear()
        for number in self._cancelled:
            self._note_cancelled(number)

    # --- Messages of the worker ---------------------------------------------------------------

    def _on_line(self, line: bytes) -> None:
        try:
            message = read_json(line)
        except ValueError as exc:
            number = _ANSWER.match(line)
            error = {"kind": "protocol", "message": f"returned a value that {exc}"}
            message = {"id": int(number[1]), "error": error} if number else None
        try:
            self._take(message)
        except (LookupError, TypeError, asyncio.InvalidStateError):
            # Only an agent that searched for our pipe could have written this.
            self._child.fault = "wrote to the pipe of ci-eval"
            self._on_end()

    def _take(self, message: Any) -> None:
        match message:
            case {"ready": list(warnings)}:
                self._ready.set_result(None)
                for warning in warnings[:_MAX_WARNINGS]:
                    said = one_line(str(warning), _MAX_WARNING)
                    _log.warning("the agent started with a warning: %s", said)
            case {"failed": why}:
                self._ready.set_exception(TrialError("start", why))
            case {"id": number, "held": _}:
                if len(self._conversations) > 1:
                    self._blocked.add(number)
            case {"id": number, "error": _} | {"id": number, "reply": _, "seconds": _}:
                self._note_output(number, message)
                answered = self._waiting.pop(number, None)
                if answered and not answered.done():
                    answered.set_result(message)
                self._note_cancelled(number)
            case {"id": number, "output": _}:
                self._note_output(number, message)
                self._note_cancelled(number)
            case _:
                raise TypeError("not a message of a worker")

    def _note_cancelled(self, number: int) -> None:
        if number in self._cancelled and not self._cancelled[number].done():
            self._cancelled[number].set_result(None)

    def _note_output(self, number: int, message: dict[str, Any]) -> None:
        if number in self._conversations:
            self._outputs[number] = str(message.get("output", ""))

    def _on_end(self) -> None:
        died = f"the worker {self._child.ending}"
        if not self._ready.done():
            message = f"{died} while it started{self._place}"
            if _TOO_OLD.search(self._child.stderr.text):
                message = "the `interpreter` is too old: it must be Python 3.8 or newer"
            self._ready.set_exception(TrialError("start", message))
        elif self._served == 1:
            # It never served another conversation, so the cause is certain.
            ending = self._child.ending + self._place
            message = f"the worker died: it {ending}{self._child.stderr_tail}"
            self._lose(partial(TrialError, "crash", message))
        else:
            self._lose(partial(DisturbedError, died, alone=True))

    @property
    def _place(self) -> str:
        """The innermost line of the agent's code when the interpreter crashed."""
        for name, line in _CRASHED_AT.findall(self._child.stderr.text):
            if name.startswith(self._folder) and "site-packages" not in name:
                return f" ({name.removeprefix(self._folder)}:{line})"
        return ""


def _checked(answer: dict[str, Any]) -> dict[str, Any]:
    error = answer.get("error")
    if error is None:
        return answer
    if error["kind"] == "protocol":
        raise BadAnswerError(error["message"])
    raise TrialError(failure_kind(error["kind"]), error["message"])
