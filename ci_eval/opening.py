"""An evalset in whatever format it has, opened by the reader that understands it."""

from pathlib import Path

from ci_eval import foreign, plugins
from ci_eval.errors import EvalSetError, Problem
from ci_eval.evalset_facts import OpenedEvalSet
from ci_eval.heads import Syntax, read_head, syntax_of
from ci_eval.plugins import EvalSetReader
from ci_eval.records import Json


def open_evalset(path: Path, *, shown: str) -> OpenedEvalSet:
    """Read the evalset at `path` in whatever format it has.

    Raises:
        EvalSetError: it is no evalset, or one with errors.

    """
    head = read_head(path, shown=shown)
    reader = reader_of(head, syntax_of(path))
    if reader is None:
        found = _described(head, syntax_of(path))
        message = f"is no evalset that is known here ({', '.join(plugins.evalset)}): found {found}"
        raise EvalSetError(problems=[Problem(message, shown, 1)])
    return reader().read(path, shown=shown)


def reader_of(head: Json, syntax: Syntax = "json") -> type[EvalSetReader] | None:
    """Return the reader of evalsets that begin like `head`, if there is one."""
    return None if foreign.recognised(head) else plugins.evalset.of(head, syntax)


def _described(head: Json, syntax: Syntax) -> str:
    """Return what a document that is no evalset seems to be."""
    reader = plugins.recording.of(head, syntax)
    if reader is None or foreign.recognised(head):
        return foreign.described(head)
    return f"a recording ({reader.type_name}); an agent `{{recorded: FILE}}` replays it"
