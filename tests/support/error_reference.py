"""The reference of errors, made from what their classes declare in docstrings."""

import ast
import importlib
import inspect
import itertools
import pkgutil
from collections.abc import Iterator
from functools import cache

import ci_eval
from ci_eval.records import errors
from ci_eval.records.errors import CiEvalError, ExitCode

WAY_OUT = "What to do: "


@cache
def _documented() -> dict[str, str]:
    """Return the docstrings below assignments in the module of errors."""
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(inspect.getsource(errors))):
        statements = node.body if isinstance(node, ast.Module | ast.ClassDef) else []
        for assigned, text in itertools.pairwise(statements):
            if isinstance(assigned, ast.Assign) and isinstance(text, ast.Expr):
                found[ast.unparse(assigned.targets[0])] = inspect.cleandoc(
                    ast.literal_eval(text.value)
                )
    return found


def exit_codes() -> str:
    """Return the table of exit codes."""
    rows = [f"| {code.value} | `{code.name}` | {_documented()[code.name]} |" for code in ExitCode]
    return "\n".join(("## Exit codes", "", "| code | | meaning |", "| --- | --- | --- |", *rows))


def declared() -> Iterator[tuple[type[CiEvalError], str, str]]:
    """Yield each class of errors that end a command, with its cause and the way out."""
    for module in pkgutil.walk_packages(ci_eval.__path__, "ci_eval."):
        if ".workers.adapters" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    waiting = CiEvalError.__subclasses__()
    for each in waiting:
        waiting += each.__subclasses__()
        cause, _, way_out = inspect.cleandoc(each.__doc__ or "").partition(f"\n\n{WAY_OUT}")
        yield each, " ".join(cause.split()), " ".join(way_out.split())


def error_classes() -> str:
    """Return the table of errors that end a command."""
    rows = [
        f"| `{each.__name__}` | {each.exit_code.value} | {cause} | {_sentence(way_out)} |"
        for each, cause, way_out in sorted(declared(), key=lambda row: row[0].__name__)
    ]
    head = (
        *("## Errors that end a command", ""),
        *("With `--json`, `error` names the class.", ""),
        *("| class | exit code | cause | what to do |", "| --- | --- | --- | --- |"),
    )
    return "\n".join((*head, *rows))


def failure_kinds() -> str:
    """Return the list of the kinds of trials that could not be observed."""
    head = (
        *("## Trials that could not be observed", ""),
        *("Such a trial has the status `error`; `run.json` and the reports name the kind.", ""),
    )
    _, _, kinds = _documented()["FailureKind"].partition("\n\n")
    return "\n".join((*head, kinds))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
