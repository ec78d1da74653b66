"""Adapter for EvalSets and EvalConfigs of AgentFlow (10xGraph) that a Python file builds.

`worker.py` runs this file under the agent's interpreter.  It imports nothing from
ci-eval, and from AgentFlow only what the Python file imports itself.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from operator import attrgetter
from os.path import abspath, basename
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_PACKAGES = ("agentflow", "tenxgraph")
_ENTRY_POINTS = {"EvalSet": ("get_eval_set",), "EvalConfig": ("get_eval_config", "EVAL_CONFIG")}
"""The names that `agentflow eval` prefers, by type."""


def adapted(target: str, options: dict[str, Any], load: object) -> Callable[[Any], Any]:
    """Return a function that returns what the file `target` builds, as JSON.

    `options` are the `type` of the value and its `name` in the file; without a name, it must be
    the only one.
    """
    del load
    kind = options["type"]
    module = _module(target)
    found = _value(module, options["name"] or _only_name(module, kind, target), kind)
    dumped = found.model_dump(mode="json")
    if "reporter" not in found.model_fields_set:
        dumped.pop("reporter", None)  # the default, which has no effect here
    for case, each in zip(getattr(found, "eval_cases", ()), dumped.get("eval_cases", ())):
        if "eval_id" not in case.model_fields_set:
            del each["eval_id"]  # random, so no run could be compared with another

    def answer(_: Any) -> Any:
        return dumped

    return answer


def _module(path: str) -> ModuleType:
    """Run the file at `path` as an import would, and return the module."""
    dotted = path[: -len(".py")].replace("/", ".")
    name = dotted if all(map(str.isidentifier, dotted.split("."))) else basename(path)[:-3]
    spec = importlib.util.spec_from_file_location(name, abspath(path))
    if spec is None or spec.loader is None:
        raise ImportError(f"is not a Python file: {path!r}")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _only_name(module: ModuleType, kind: str, path: str) -> str:
    """Return the name of the only value or function for a `kind`, as `agentflow eval` finds it."""
    for name in _ENTRY_POINTS[kind]:
        if hasattr(module, name):
            return name
    # A value with several names counts once, by the first of them.
    known: dict[int, str] = {}
    for name, value in vars(module).items():
        if name[0] != "_" and (_is_a(value, kind) or _returns(value, kind, module)):
            known.setdefault(id(value), name)
    found = list(known.values())
    if not found:
        message = f"it defines no {kind}, and no function annotated with `-> {kind}`"
        raise LookupError(message)
    if len(found) > 1:
        named = ", ".join(found)
        message = f"it defines several of type {kind}: {named}; name one, as in '{path}:{found[0]}'"
        raise LookupError(message)
    return found[0]


def _value(module: ModuleType, name: str, kind: str) -> Any:
    """Return the value `name`, or the result of the function of that name."""
    found = attrgetter(name)(module)
    if not _is_a(found, kind) and callable(found):
        found = found()
    if not _is_a(found, kind):
        message = f"{name!r} must be or return an AgentFlow {kind}; found {type(found).__name__}"
        raise TypeError(message)
    return found


def _is_a(value: Any, kind: str) -> bool:
    return any(
        each.__name__ == kind and each.__module__.partition(".")[0] in _PACKAGES
        for each in type(value).__mro__
    )


def _returns(value: Any, kind: str, module: ModuleType) -> bool:
    """Return True if a function of the module, annotated with `-> kind`, needs no argument."""
    if not inspect.isfunction(value) or value.__module__ != module.__name__:
        return False
    signature = inspect.signature(value)
    given = signature.return_annotation
    written = given if isinstance(given, str) else getattr(given, "__name__", "")
    if written.strip("'\"").rpartition(".")[2] != kind:
        return False
    parameters = signature.parameters.values()
    return all(each.default is not each.empty for each in parameters)
