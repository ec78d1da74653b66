"""Short descriptions of errors in user code: the exception, and where it was raised.

`worker.py` and the adapters import this file under the agent's interpreter.  It needs
only the standard library of Python 3.8 and imports nothing from ci-eval.
"""

from __future__ import annotations

import importlib
import linecache
import os
import sys
import traceback
from os.path import dirname
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

MAX_MESSAGE_CHARS = 2000
SHOWN_CHARS = 200
"""How many characters of a value a message shows."""
MAX_FRAMES = 3
"""Maximum number of traceback lines shown for a failed import."""

_OURS = ("<frozen", dirname(__file__) + os.sep, importlib.__file__)
_INSTALLED = ("site-packages" + os.sep, "dist-packages" + os.sep)


def raised(exc: BaseException, folder: str, function: Any = None) -> str:
    """Return the exception and, in parentheses, its innermost line of code in `folder`.

    Without such a line, it names the innermost line of any code.  If no code of `function` ran, its
    signature is wrong.
    """
    inner: Any = getattr(exc, "exceptions", ())
    if len(inner) == 1:
        # An exception group with one member adds no information.
        return raised(inner[0], folder)
    traces = [_frames(each.__traceback__) for each in _causes(exc)]
    own = [[at for at in trace if _is_own(at[0], folder)] for trace in traces]
    for name, line in next(filter(None, own), traces[-1])[-1:]:
        return f"{_named(exc)} ({_shortened(name, folder)}:{line})"
    code = getattr(function, "__code__", None)
    if code and isinstance(exc, TypeError) and not code.co_filename.startswith(_OURS):
        place = f"{_shortened(code.co_filename, folder)}:{code.co_firstlineno}"
        return f"{_named(exc)}; it is called with one argument ({place})"
    return _named(exc)


def not_loaded(target: str, exc: BaseException, folder: str) -> str:
    """Return why `target` could not be loaded, with the last lines of the traceback."""
    lines = [
        f"\n  {_shortened(name, folder)}:{line}: {linecache.getline(name, line).strip()}"
        for name, line in _frames(exc.__traceback__)[-MAX_FRAMES:]
    ]
    message = _safely(str, exc) if _is_ours(exc) else _named(exc)
    if isinstance(exc, SyntaxError) and exc.filename:
        message = f"{type(exc).__name__}: {exc.msg}"
        place = f"{_shortened(exc.filename, folder)}:{exc.lineno}"
        lines.append(f"\n  {place}: {(exc.text or '').strip()}")
    if isinstance(exc, ModuleNotFoundError) and exc.name:
        lines.append(f"\n  ({_remedy(exc.name, folder)})")
    return f"cannot load {target!r}: {bounded(message)}" + "".join(lines)


def _remedy(module: str, folder: str) -> str:
    """Return the remedy for a missing module; in the user's own packages, a file is missing."""
    *package, name = module.split(".")
    places = [os.path.join(each or os.getcwd(), *package) for each in sys.path]
    found = [each for each in places if package and os.path.isdir(each)]
    if found and all(_is_own(each, folder) for each in found):
        return f"there is no file {os.path.join(_shortened(found[0], folder), name)}.py"
    return f"install it for {sys.executable}, or set `interpreter`"


def in_short(value: Any) -> str:
    """Return the type of `value` and the beginning of its `repr`."""
    shown = cut(_safely(repr, value))
    return "None" if value is None else f"{type(value).__name__}: {shown}"


def cut(shown: str) -> str:
    """Return the beginning of a text that a message shows."""
    return shown if len(shown) <= SHOWN_CHARS else shown[:SHOWN_CHARS] + "…"


def bounded(message: str) -> str:
    """Return `message`, with the middle cut out if it is too long."""
    half = MAX_MESSAGE_CHARS // 2
    is_short = len(message) <= MAX_MESSAGE_CHARS
    return message if is_short else f"{message[:half]} … {message[-half:]}"


def _causes(exc: BaseException) -> list[BaseException]:
    """Return `exc` and its causes, innermost first, as frameworks wrap errors."""
    found = [exc]
    while found[0].__cause__ is not None and found[0].__cause__ not in found:
        found.insert(0, found[0].__cause__)
    return found


def _named(exc: BaseException) -> str:
    text = _safely(str, exc)
    return type(exc).__name__ + (f": {text}" if text else "")


def _safely(show: Callable[[Any], str], value: Any) -> str:
    try:
        return show(value)
    except Exception:  # noqa: BLE001  # a method of user code
        return ""


def _frames(trace: TracebackType | None) -> list[tuple[str, int]]:
    """Return file and line of each frame that belongs neither to us nor to the import system."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(trace)]
    return [at for at in frames if not at[0].startswith(_OURS)]


def _is_ours(exc: BaseException) -> bool:
    """Return True if one of our own files raised `exc`, whose message is then complete."""
    at = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(exc.__traceback__)]
    return bool(at) and at[-1].startswith(_OURS[1])


def _is_own(name: str, folder: str) -> bool:
    return name.startswith(folder + os.sep) and not any(each in name for each in _INSTALLED)


def _shortened(name: str, folder: str) -> str:
    """Return the path relative to `folder` or to the installed packages."""
    for each in _INSTALLED:
        if each in name:
            return name.rpartition(each)[2]
    return os.path.relpath(name, folder) if _is_own(name, folder) else name
