"""Output of one conversation to the standard streams that it shares with others.

`worker.py` imports this file under the agent's interpreter.  It needs only the standard
library of Python 3.8 and imports nothing from ci-eval.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

MAX_OUTPUT_CHARS = 4000
"""How many characters are kept of the beginning of a conversation's output, and also of its end."""


class Output:
    """The beginning and the end of one conversation's output."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        """The number of the conversation; 0 if it has none."""
        self._head = self._tail = ""
        self._size = 0

    def write(self, text: str) -> None:
        """Add text to the output."""
        self._size += len(text)
        room = MAX_OUTPUT_CHARS - len(self._head)
        self._head += text[:room]
        self._tail = (self._tail + text[room:][-MAX_OUTPUT_CHARS:])[-MAX_OUTPUT_CHARS:]

    @property
    def text(self) -> str:
        """The kept text, with a line that says how many characters are left out."""
        left_out = self._size - len(self._head) - len(self._tail)
        gap = f"\n[{left_out} characters left out]\n" if left_out else ""
        return self._head + gap + self._tail


writing: ContextVar[Output | None] = ContextVar("writing", default=None)
"""The output of the current task or thread; threads that the callable starts have none."""


class Tee:
    """A text or byte stream that also records each conversation's output."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        if hasattr(stream, "buffer"):
            self.buffer = Tee(stream.buffer)

    def write(self, data: Any) -> Any:
        """Write `data`."""
        written = self._stream.write(data)
        if (output := writing.get()) is not None:
            output.write(data if isinstance(data, str) else bytes(data).decode("utf-8", "replace"))
        return written

    def writelines(self, lines: Any) -> None:
        """Write all `lines`."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
