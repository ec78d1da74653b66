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
        found = foreign.described(head)
        message = f"is no evalset that is known here ({', '.join(plugins.evalset)}): found {found}"
        raise EvalSetError(problems=[Problem(message, shown, 1)])
    return reader().read(path, shown=shown)


def reader_of(head: Json, syntax: Syntax = "json") -> type[EvalSetReader] | None:
    """Return the reader of evalsets that begin like `head`, if there is one."""
    if foreign.recognised(head):
        return None
    readers = (plugins.evalset[name] for name in plugins.evalset)
    return next((each for each in readers if syntax in each.syntaxes and each.sniff(head)), None)
