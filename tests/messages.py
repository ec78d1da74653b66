"""Every text with which ci-eval can tell a user that something is wrong, found in its source.

A *sink* is a parameter that a user gets to read: the message of an error, of a `Problem`, the
reason of a score. What is handed to one is a message; where that is a parameter itself, its
function is a sink, too, and so on until nothing new is found. What is not known before it runs
is shown as `…`.
"""

import ast
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1] / "ci_eval"
GAP = "…"
MOST = 60
"""How many texts one expression may stand for; more is a sign of a wrong turn."""

Parameter = tuple[int, str]
"""The position of a parameter in a call, and its name."""
SEEDS: dict[str, list[Parameter]] = {
    **dict.fromkeys(
        (
            *("CiEvalError", "UsageError", "ConfigError", "EvalSetError", "UnknownPluginError"),
            *("NothingSelectedError", "BaselineError", "BadAnswerError", "DisturbedError"),
            *("Problem", "NotJsonError", "ValueError", "ClickException", "BadParameter"),
        ),
        [(0, "message")],
    ),
    "TrialError": [(1, "message")],
    "Failure": [(1, "message")],
    "Reason": [(1, "message")],
    "unscored": [(1, "reason")],
    "scored": [(9, "reason")],
    "Score": [(9, "reason")],
    "Delta": [(9, "reason")],
}
"""Where messages end, by the name of what is called."""
TOLD = ("hindrance", "lacks", "faults", "check")
"""Methods of plugins whose answers are told to users."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Message(NamedTuple):
    """One text and where it is made."""

    text: str
    place: str
    """`module.py:line`."""


@dataclass
class Scope:
    """A function, or a module, with what its names can stand for."""

    module: str
    parameters: dict[str, int] = field(default_factory=dict)
    texts: frozenset[str] = frozenset()
    """The parameters that are declared to be texts."""
    values: dict[str, list[ast.expr]] = field(default_factory=dict)
    name: str = ""
    outer: "Scope | None" = None

    def of_classes(self, name: str) -> list[ast.expr]:
        """Return the values that the classes of this module give to the attribute `name`."""
        return self.outer.of_classes(name) if self.outer else self.values.get(f".{name}", [])


def collect(package: Path = PACKAGE) -> list[Message]:
    """Return all messages of the modules in `package`."""
    modules = {
        path.relative_to(package).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(package.rglob("*.py"))
    }
    return _Collector(modules).messages()


class _Collector:
    def __init__(self, modules: Mapping[str, ast.Module]) -> None:
        self._sinks = {name: list(places) for name, places in SEEDS.items()}
        self._calls: list[tuple[Scope, ast.Call]] = []
        self._functions: dict[str, list[tuple[Scope, Function]]] = {}
        self._constants: dict[str, list[ast.expr]] = {}
        for name, tree in modules.items():
            scope = Scope(name, values=_bindings(tree) | _attributes(tree))
            self._constants |= scope.values
            self._walk(tree, scope)

    def _walk(self, node: ast.AST, scope: Scope) -> None:
        for child in ast.iter_child_nodes(node):
            inner = scope
            if isinstance(child, Function):
                inner = Scope(
                    scope.module,
                    _parameters(child),
                    _texts_of(child),
                    _bindings(child),
                    child.name,
                    scope,
                )
                key = _key(child.name, scope.module)
                self._functions.setdefault(key, []).append((inner, child))
            elif isinstance(child, ast.Call):
                self._calls.append((scope, child))
            self._walk(child, inner)

    def messages(self) -> list[Message]:
        found: dict[Message, None] = {}
        known = -1
        while known != (known := sum(map(len, self._sinks.values()))):
            for scope, call in self._calls:
                for argument in self._told(call, scope.module):
                    for text in self._texts(argument, scope, sink=True):
                        found[Message(text, f"{scope.module}:{argument.lineno}")] = None
        for name in TOLD:
            for scope, function in self._functions.get(name, []):
                for answer in _answers(function):
                    said = answer.elts[-1] if isinstance(answer, ast.Tuple) else answer
                    for text in self._texts(said, scope):
                        found[Message(text, f"{scope.module}:{said.lineno}")] = None
        return [each for each in found if re.search(r"\w", each.text)]

    def _told(self, call: ast.Call, module: str) -> Iterator[ast.expr]:
        """Yield what `call` hands to a sink."""
        for position, name in self._sinks.get(_key(_called(call), module), ()):
            if position < len(call.args):
                yield call.args[position]
            yield from (each.value for each in call.keywords if each.arg == name)

    # --- What an expression can say ---------------------------------------------------------

    def _texts(
        self, node: ast.expr, scope: Scope, *, sink: bool = False, depth: int = 0
    ) -> set[str]:
        """Return the texts that `node` can be; a parameter makes its function a sink."""
        if depth > 8:
            return {GAP}

        def of(part: ast.expr, *, sink: bool = sink) -> set[str]:
            return self._texts(part, scope, sink=sink, depth=depth + 1)

        match node:
            case ast.Constant(value=str(text)):
                return {text}
            case ast.JoinedStr(values=parts):
                return _joined(of(part, sink=False) for part in parts)
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return of(value, sink=False) if _is_choice(value, scope) else {GAP}
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return _joined([of(left), of(right, sink=False)])
            case ast.IfExp(body=body, orelse=orelse):
                return of(body) | of(orelse)
            case ast.BoolOp(values=values):
                return set().union(*map(of, values))
            case ast.Name(id=name):
                return self._named(name, scope, sink=sink, depth=depth)
            case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=int(place))):
                return self._answered(call, scope, depth, place)
            case ast.Subscript(value=ast.Name(id=name)):
                return self._one_of(name, scope, depth)
            case ast.Call(func=ast.Attribute(value=value, attr="format")):
                return {re.sub(r"{\w*(:\w)?}", GAP, each) for each in of(value)}
            case ast.Call():
                return self._answered(node, scope, depth)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                values = scope.of_classes(name)
                return set().union(*map(of, values)) or {GAP}
        return {GAP}

    def _one_of(self, name: str, scope: Scope, depth: int) -> set[str]:
        """Return the texts in a dictionary."""
        found: set[str] = set()
        for each in (*scope.values.get(name, ()), *self._constants.get(name, ())):
            if isinstance(each, ast.Dict):
                for value in each.values:
                    found |= self._texts(value, scope, depth=depth + 1)
        return found or {GAP}

    def _named(self, name: str, scope: Scope | None, *, sink: bool, depth: int) -> set[str]:
        module = scope
        while scope is not None:
            if name in scope.values:
                values = scope.values[name]
                found = (self._texts(each, scope, sink=sink, depth=depth + 1) for each in values)
                return set().union(*found)
            if name in scope.parameters:
                if sink:
                    self._add_sink(scope, name)
                return {GAP}
            module, scope = scope, scope.outer
        constants = self._constants.get(name, ()) if name.isupper() else ()
        return {
            text for each in constants for text in self._texts(each, module, depth=depth + 1)
        } or {GAP}

    def _add_sink(self, scope: Scope, name: str) -> None:
        places = self._sinks.setdefault(_key(scope.name, scope.module), [])
        place = scope.parameters[name], name
        if place not in places and name in scope.texts and not scope.name.startswith("__"):
            places.append(place)

    def _answered(
        self, call: ast.Call, scope: Scope, depth: int, place: int | None = None
    ) -> set[str]:
        """Return what the called functions answer, where that is text, or have at a place."""
        found: set[str] = set()
        for inner, function in self._functions.get(_key(_called(call), scope.module), ()):
            for answer in _answers(function):
                said: ast.expr | None = answer
                if place is not None:
                    said = answer.elts[place] if isinstance(answer, ast.Tuple) else None
                if said is not None:
                    found |= self._texts(said, inner, depth=depth + 1)
        return found or {GAP}


def _key(name: str, module: str) -> str:
    """Return what tells a function from others: a private name belongs to its module."""
    return f"{module}:{name}" if name.startswith("_") else name


def _joined(parts: Iterable[set[str]]) -> set[str]:
    options = [sorted(part) for part in parts]
    found = {"".join(each) for each in itertools.islice(itertools.product(*options), MOST + 1)}
    if len(found) > MOST:
        return {"".join(each[0] if len(each) == 1 else GAP for each in options)}
    return {re.sub(f"{GAP}(?:{GAP})+", GAP, each) for each in found}


def _is_choice(node: ast.expr, scope: Scope) -> bool:
    """Say whether `node` is one of a few texts, which are worth telling apart."""
    match node:
        case ast.Constant():
            return True
        case ast.IfExp(body=body, orelse=orelse):
            return _is_choice(body, scope) and _is_choice(orelse, scope)
        case ast.JoinedStr():
            return True
        case ast.Name(id=name):
            return all(_is_choice(each, scope) for each in scope.values.get(name, [node][:0])) and (
                name in scope.values
            )
    return False


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _parameters(function: Function) -> dict[str, int]:
    given = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if given[:1] in (["self"], ["cls"]):
        given = given[1:]
    only = [each.arg for each in function.args.kwonlyargs]
    return {name: position for position, name in enumerate([*given, *only])}


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is in `node`, but not what is in functions inside it."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, Function | ast.Lambda):
            yield from _own(child)


def _texts_of(function: Function) -> frozenset[str]:
    given = function.args
    return frozenset(
        each.arg
        for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)
        if each.annotation and "str" in ast.unparse(each.annotation).split(" | ")
    )


def _attributes(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """Return the attributes of classes, with a dot before their names."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        for each in node.body if isinstance(node, ast.ClassDef) else ():
            match each:
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    found.setdefault(f".{name}", []).append(value)
    return found


def _bindings(node: ast.AST) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for child in _own(node):
        match child:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found.setdefault(name, []).append(value)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=value):
                _unpack(names, value, found)
            case ast.For(target=ast.Tuple(elts=names), iter=value):
                _unpack(names, value, found)
            case ast.For(target=ast.Name(id=name), iter=ast.Call() as value):
                found.setdefault(name, []).append(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found.setdefault(name, []).append(value)
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                found.setdefault(name, []).append(value)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                base = found.get(name, [])[:1]
                added = [ast.BinOp(left=each, op=ast.Add(), right=value) for each in base]
                found.setdefault(name, []).extend(ast.copy_location(each, child) for each in added)
    return found


def _unpack(names: list[ast.expr], value: ast.expr, found: dict[str, list[ast.expr]]) -> None:
    if isinstance(value, ast.IfExp):
        _unpack(names, value.body, found)
        value = value.orelse
    for place, name in enumerate(names):
        each: ast.expr = ast.Subscript(value=value, slice=ast.Constant(place), ctx=ast.Load())
        if isinstance(value, ast.Tuple) and place < len(value.elts):
            each = value.elts[place]
        if isinstance(name, ast.Name):
            found.setdefault(name.id, []).append(ast.copy_location(each, value))


def _answers(function: Function) -> Iterator[ast.expr]:
    for child in _own(function):
        if isinstance(child, ast.Return | ast.Yield) and child.value is not None:
            yield child.value
