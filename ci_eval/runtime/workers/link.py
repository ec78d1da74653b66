"""Our end of the line to one worker process; `worker.py` is the other."""

import asyncio
import os
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from ci_eval.records.errors import BadAnswerError, DisturbedError, TrialError, failure_kind
from ci_eval.runtime.processes import Child, Launch
from ci_eval.runtime.workers.wire import encode, read_json

START_TIMEOUT_S = 300.0
"""How long a worker may take to import what it is to run."""
GRACE_S = 1.0
"""How long a call that was cancelled may take to end; or, in a thread, which cannot be ended, to
say what it wrote."""
END_S = 5.0
"""How long an idle worker may take to end: machines with much to do are slow."""

_ANSWER = re.compile(rb'{"id":(\d+),"seconds":')
"""How a worker begins a line with what a callable returned."""
_TOO_OLD = re.compile(r'worker\.py", line \d+\n.*\n.*\nSyntaxError: ')
"""How a Python says that it does not understand the worker itself."""
_CRASHED_AT = re.compile(r'^  File "(.+)", line (\d+) in ', re.MULTILINE)
"""How `faulthandler` tells of a frame; tracebacks have a comma before the `in`."""


class Link:
    """One worker process and the conversations that it holds.

    When it is lost, every conversation on it learns that by an error of its own.  Where it
    cannot be known which of them was the cause, all are told to run again, each alone.
    """

    def __init__(self) -> None:
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._conversations: set[int] = set()
        self._served = 0
        self._outputs: dict[int, str] = {}
        self._told: dict[int, asyncio.Future[None]] = {}
        """Of the calls that are called off: whether the worker has said what became of them."""
        self._held: set[int] = set()
        self._folder = ""
        self._lost: Callable[[], TrialError] | None = None
        self._child = Child(self._hear, self._gone)

    @classmethod
    async def start(cls, launch: Launch) -> Self:
        """Start a worker and wait until it is ready.

        Raises:
            TrialError: it cannot start.

        """
        link = cls()
        link._folder = f"{launch.cwd}{os.sep}"
        late = asyncio.get_running_loop().time() + START_TIMEOUT_S
        await link._child.start(launch)
        try:
            async with asyncio.timeout_at(late):
                await link._ready
        except TimeoutError:
            await link._child.stop()
            message = f"the worker was not ready after {START_TIMEOUT_S:g} s"
            raise TrialError("start", message + link._child.last_words) from None
        except TrialError as exc:
            await link._child.stop(grace_s=END_S)  # it has said why, and is about to end
            raise TrialError(exc.kind, str(exc) + link._child.last_words) from None
        except asyncio.CancelledError:
            await link._child.stop()
            raise
        return link

    @property
    def alive(self) -> bool:
        """Whether it can take conversations."""
        return self._lost is None

    @property
    def is_over(self) -> bool:
        """Whether its process has ended."""
        return self._child.exit_code is not None

    def begin(self, number: int) -> None:
        """Count conversation `number` among those that it holds."""
        self._conversations.add(number)
        self._served += 1

    def finish(self, number: int) -> str:
        """Let go of conversation `number`, and return what it has written."""
        self._conversations.discard(number)
        written = self._outputs.pop(number, "")
        if self.alive:
            self._child.write_line(encode({"close": number}))
        if written or self.alive or self._served > 1:
            return written
        # Whoever took the worker down could not hand on what it wrote; it is all from this one.
        return self._child.stderr.text

    async def ask(self, number: int, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to `request` in conversation `number`.

        When it is cancelled, the call is ended, and the worker with it where need be.

        Raises:
            BadAnswerError: what was returned is no JSON.
            TrialError: there is no answer, because of this conversation.
            DisturbedError: there is no answer, perhaps because of another one.

        """
        if self._lost:
            raise self._lost()
        answered = self._expect(number)
        self._child.write_line(encode({"id": number, **request}))
        try:
            answer = await answered
        except asyncio.CancelledError:
            if number in self._waiting:
                await self._call_off(number)
            raise
        return _checked(answer)

    async def stop(self) -> None:
        """End the worker, at once where it is busy."""
        busy = self._conversations or not self.alive
        self._lost = self._lost or partial(TrialError, "crash", "the worker was stopped")
        await self._child.stop(grace_s=0 if busy else END_S)

    def _expect(self, number: int) -> asyncio.Future[dict[str, Any]]:
        self._waiting[number] = asyncio.get_running_loop().create_future()
        return self._waiting[number]

    async def _call_off(self, number: int) -> None:
        """End the call of conversation `number`, which is out of time.

        Raises:
            DisturbedError: another conversation may have kept this one from going on.

        """
        loop = asyncio.get_running_loop()
        yielded, until = self._expect(number), loop.time() + GRACE_S
        self._told[number] = loop.create_future()
        try:
            self._child.write_line(encode({"cancel": number}))
            # Others that are out of time at the same moment have last words, too.
            while waiting := [each for each in self._told.values() if not each.done()]:
                if (left := until - loop.time()) <= 0:
                    break
                await asyncio.wait(waiting, timeout=left)
        finally:
            self._told.pop(number).cancel()
            if not yielded.done():
                del self._waiting[number]
                self._out_of_time(number)
            is_lost = not yielded.done() or yielded.exception() is not None
        if is_lost and self._lost and number in self._held:
            raise self._lost()

    def _out_of_time(self, number: int) -> None:
        message = "its worker was stopped, because a trial in it was out of time and did not yield"
        self._lose(partial(DisturbedError, message, alone=number in self._held))

    def _lose(self, error: Callable[[], TrialError]) -> None:
        """Give the worker up; whoever waits for an answer gets an `error` instead."""
        if self._lost is None:
            self._lost = error
            self._child.kill()
        for answered in self._waiting.values():
            if not answered.done():
                answered.set_exception(self._lost())
        self._waiting.clear()
        for number in self._told:
            self._tell(number)

    # --- What the worker says -----------------------------------------------------------------

    def _hear(self, line: bytes) -> None:
        try:
            message = read_json(line)
        except ValueError as exc:
            number = _ANSWER.match(line)
            message = {"id": int(number[1]), **_error(f"returned what {exc}")} if number else None
        try:
            self._take(message)
        except (LookupError, TypeError, asyncio.InvalidStateError):
            # Only an agent that went looking for our pipe could have written this.
            self._child.fault = "wrote to the pipe of ci-eval"
            self._gone()

    def _take(self, message: Any) -> None:
        if not isinstance(message, dict):
            raise TypeError("none of the messages of a worker")
        if "ready" in message:
            self._ready.set_result(None)
        elif "failed" in message:
            self._ready.set_exception(TrialError("start", message["failed"]))
        elif "held" in message:
            if len(self._conversations) > 1:
                self._held.add(message["id"])
        elif "error" in message or {"reply", "seconds"} <= message.keys():
            self._note_output(message)
            answered = self._waiting.pop(message["id"], None)
            if answered and not answered.done():
                answered.set_result(message)
            self._tell(message["id"])
        elif "output" in message:
            self._note_output(message)
            self._tell(message["id"])
        else:
            raise TypeError("none of the messages of a worker")

    def _tell(self, number: int) -> None:
        if number in self._told and not self._told[number].done():
            self._told[number].set_result(None)

    def _note_output(self, message: dict[str, Any]) -> None:
        if message["id"] in self._conversations:
            self._outputs[message["id"]] = str(message.get("output", ""))

    def _gone(self) -> None:
        died = f"the worker {self._child.ending}"
        if not self._ready.done():
            message = f"{died} while it started{self._place}"
            if _TOO_OLD.search(self._child.stderr.text):
                message = "the `interpreter` is too old: Python 3.8 is the least that is needed"
            self._ready.set_exception(TrialError("start", message))
        elif self._served == 1:
            # It never served another, so there is no doubt.
            ending = self._child.ending + self._place
            message = f"the worker died: it {ending}{self._child.last_words}"
            self._lose(partial(TrialError, "crash", message))
        else:
            self._lose(partial(DisturbedError, died, alone=True))

    @property
    def _place(self) -> str:
        """Where the code in its folder was when Python itself broke down."""
        for name, line in _CRASHED_AT.findall(self._child.stderr.text):
            if name.startswith(self._folder) and "site-packages" not in name:
                return f" ({name.removeprefix(self._folder)}:{line})"
        return ""


def _error(message: str) -> dict[str, Any]:
    return {"error": {"kind": "protocol", "message": message}}


def _checked(answer: dict[str, Any]) -> dict[str, Any]:
    error = answer.get("error")
    if error is None:
        return answer
    if error["kind"] == "protocol":
        raise BadAnswerError(error["message"])
    raise TrialError(failure_kind(error["kind"]), error["message"])
