"""What one conversation writes to the standard streams that it shares with others.

`worker.py` runs this file by its path, under the agent's interpreter.  So it makes do with the
standard library of Python 3.8 and imports nothing of ci-eval.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

MAX_OUTPUT_CHARS = 4000
"""How much of the beginning, and how much of the end, of what a conversation writes is kept."""


class Output:
    """The beginning and the end of what one conversation writes."""

    def __init__(self) -> None:
        self._head = self._tail = ""
        self._size = 0

    def write(self, text: str) -> None:
        """Take what it goes on with."""
        self._size += len(text)
        room = MAX_OUTPUT_CHARS - len(self._head)
        self._head += text[:room]
        self._tail = (self._tail + text[room:][-MAX_OUTPUT_CHARS:])[-MAX_OUTPUT_CHARS:]

    @property
    def text(self) -> str:
        """What is kept, with a line that says how much is left out between."""
        left_out = self._size - len(self._head) - len(self._tail)
        gap = f"\n[{left_out} characters left out]\n" if left_out else ""
        return self._head + gap + self._tail


writing: ContextVar[Output | None] = ContextVar("writing", default=None)
"""What the current task or thread writes to; threads of the callable's own have none."""


class Tee:
    """A stream, of text or bytes, that shows each conversation's part of it to that, too."""

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
