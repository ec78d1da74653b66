"""Every text with which ci-eval can tell a user that something is wrong, found in its source.

A *sink* is a parameter that a user gets to read: the message of an error, of a `Problem`, the
reason of a score. What is handed to one is a message; where that is a parameter itself, its
function is a sink, too, and so on until nothing new is found. What is not known before it runs
is shown as `…`.
"""

import ast
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from support.scopes import Function, Scope, answers, children

PACKAGE = Path(__file__).parents[2] / "ci_eval"
GAP = "…"
MOST = 60
"""How many texts one expression may stand for; more is a sign of a wrong turn."""
DEEPEST = 8
"""How many steps are taken from an expression to the texts that it stands for."""

Parameter = tuple[int, str]
"""The position of a parameter in a call, and its name."""
SEEDS: dict[str, Parameter] = {
    **dict.fromkeys(
        (
            *("CiEvalError", "UsageError", "ConfigError", "EvalSetError", "UnknownPluginError"),
            *("NothingSelectedError", "BaselineError", "BadAnswerError", "DisturbedError"),
            *("JudgeError", "UnreadableError", "RefusedError", "StatusError", "ExpressionError"),
            *("HostError", "LimitedError", "PostingError"),
            *("MachineError",),
            *("Problem", "UnjudgedCase", "NotJsonError", "ValueError"),
        ),
        (0, "message"),
    ),
    **dict.fromkeys(
        ("TrialError", "RefusedCallError", "Failure", "Reason", "failed", "Unheeded", "Fault"),
        (1, "message"),
    ),
    **dict.fromkeys(("scored", "Score", "Delta"), (9, "reason")),
    **dict.fromkeys(("unscored", "Reading", "Verdict", "Mean"), (1, "reason")),
    "Turn": (2, "reason"),
    "Sample": (1, "rationale"),
    "unexpected": (0, "what"),
    "runtime/workers/worker.py:_error": (2, "message"),
}
"""Where messages end, by the name of what is called."""
TOLD = (
    *("skip_reason", "lacks", "faults", "check", "remarks", "absent"),
    *(
        "wrong_address",
        "wrong_start",
        "wrong_headers",
        "wrong_variable",
        "wrong_gateway",
        "wrong_models",
        "unmetered",
    ),
    *("criteria/adk_custom_metric.py:_faults", "criteria/_agentflow_judged.py:_not_united"),
    *("not_loaded", "of_no_effect"),
)
"""Functions whose answers are told to users: of plugins, and of the process of an agent."""


class Message(NamedTuple):
    """One text and where it is made."""

    text: str
    place: str
    """`module.py:line`."""


def collect(package: Path = PACKAGE) -> list[Message]:
    """Return all messages of the modules in `package`."""
    found = _Collector()
    for path in sorted(package.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found.read(tree, Scope.of_module(path.relative_to(package).as_posix(), tree))
    return [each for each in dict.fromkeys(found.messages()) if re.search(r"\w", each.text)]


class _Collector:
    def __init__(self) -> None:
        self.answers: dict[str, list[tuple[Scope, ast.expr]]] = {}
        """What functions return or yield, by the names of the functions."""
        self.constants: dict[str, list[ast.expr]] = {}
        """What stands for the names of modules; a private one belongs to its module alone."""
        self._sinks: dict[str, set[Parameter]] = {name: {place} for name, place in SEEDS.items()}
        self._calls: list[tuple[Scope, ast.Call]] = []

    def read(self, node: ast.AST, scope: Scope) -> None:
        """Take note of all functions and calls."""
        if isinstance(node, ast.Module):
            for name, values in scope.values.items():
                self.constants.setdefault(_key(name, scope.module), []).extend(values)
        for child in children(node):
            inner = scope
            if isinstance(child, Function):
                inner = scope.inner(child)
                key = _key(child.name, scope.module)
                self.answers.setdefault(key, []).extend((inner, each) for each in answers(child))
            elif isinstance(child, ast.Call):
                self._calls.append((scope, child))
            self.read(child, inner)

    def messages(self) -> Iterator[Message]:
        """Yield all messages, some of them several times."""
        known = 0
        while known < (known := sum(map(len, self._sinks.values()))):
            for scope, call in self._calls:
                for told in self._told(call, scope.module):
                    yield from self._said(told, scope, is_told=True)
        for name in TOLD:
            for scope, answer in self.answers.get(name, ()):
                last = answer.elts[-1] if isinstance(answer, ast.Tuple) else answer
                yield from self._said(last, scope)

    def _said(self, node: ast.expr, scope: Scope, *, is_told: bool = False) -> Iterator[Message]:
        for text in _Texts(self, scope, is_told=is_told).visit(node):
            yield Message(text, f"{scope.module}:{node.lineno}")

    def _told(self, call: ast.Call, module: str) -> Iterator[ast.expr]:
        """Yield what `call` hands to a sink."""
        called, given = _called(call), call.args
        if called == "partial" and isinstance(given[0], ast.Name):
            called, given = given[0].id, given[1:]
        for position, name in sorted(self._sinks.get(_key(called, module), ())):
            if position < len(given):
                yield given[position]
            yield from (each.value for each in call.keywords if each.arg == name)

    def add_sink(self, scope: Scope, parameter: str) -> None:
        """Take note that who calls the function of `scope` hands a message over."""
        if parameter in scope.texts and not scope.name.startswith("__"):
            sinks = self._sinks.setdefault(_key(scope.name, scope.module), set())
            sinks.add((scope.parameters[parameter], parameter))


def _key(name: str, module: str) -> str:
    """Return the key that distinguishes a name: a private one belongs to its module."""
    return f"{module}:{name}" if name.startswith("_") else name


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


@dataclass(frozen=True)
class _Texts(ast.NodeVisitor):
    """Finds the texts that an expression can be."""

    found: _Collector
    scope: Scope
    is_told: bool = False
    """Whether a user reads the expression, so that a parameter makes its function a sink."""
    depth: int = 0

    def visit(self, node: ast.AST) -> set[str]:
        """Return the texts that `node` can be."""
        if self.depth > DEEPEST:
            return {GAP}
        texts: set[str] = replace(self, depth=self.depth + 1)._visit(node)
        return texts or {GAP}

    def _visit(self, node: ast.AST) -> set[str]:
        return super().visit(node) or set()

    def generic_visit(self, node: ast.AST) -> set[str]:
        """Return nothing: such an expression is not understood."""
        del node
        return set()

    def _any(self, nodes: Iterable[ast.expr]) -> set[str]:
        return set().union(*map(self.visit, nodes))

    def _part(self) -> "_Texts":
        return replace(self, is_told=False)

    def visit_Constant(self, node: ast.Constant) -> set[str]:  # as `ast` names it
        """Return the text."""
        return {node.value} if isinstance(node.value, str) else set()

    def visit_JoinedStr(self, node: ast.JoinedStr) -> set[str]:
        """Return the texts that an f-string can be."""
        return _joined(map(self._part().visit, node.values))

    def visit_FormattedValue(self, node: ast.FormattedValue) -> set[str]:
        """Return the inserted value, if it is one of a few texts worth distinguishing."""
        is_plain = node.conversion == -1 and node.format_spec is None
        return self.visit(node.value) if is_plain and self._is_choice(node.value) else set()

    def visit_BinOp(self, node: ast.BinOp) -> set[str]:
        """Return two texts as one."""
        if not isinstance(node.op, ast.Add):
            return set()
        return _joined([self.visit(node.left), self._part().visit(node.right)])

    def visit_IfExp(self, node: ast.IfExp) -> set[str]:
        """Return both sides."""
        return self._any([node.body, node.orelse])

    def visit_BoolOp(self, node: ast.BoolOp) -> set[str]:
        """Return all that `or` chooses from."""
        return self._any(node.values)

    def visit_Name(self, node: ast.Name) -> set[str]:
        """Return all that is assigned to it; a parameter is what callers hand over."""
        owner = self.scope.owner(node.id)
        if owner is None:
            return self._any(self.found.constants.get(node.id, ()) if node.id.isupper() else ())
        if self.is_told and node.id in owner.parameters and node.id not in owner.values:
            self.found.add_sink(owner, node.id)
        return replace(self, scope=owner)._any(owner.values.get(node.id, ()))

    def visit_Attribute(self, node: ast.Attribute) -> set[str]:
        """Return the type that the classes of the module declare for it."""
        owner = self.scope.owner(f".{node.attr}")
        return self._any(owner.values[f".{node.attr}"]) if owner else set()

    def visit_Subscript(self, node: ast.Subscript) -> set[str]:
        """Return the values of a dictionary, or of one position of a function's results."""
        match node:
            case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=int(place))):
                return self._answered(call, place)
            case ast.Subscript(value=ast.Name(id=name)):
                return self._any(self._held(name))
        return set()

    def visit_Call(self, node: ast.Call) -> set[str]:
        """Return the results of the called functions."""
        match node.func:
            case ast.Attribute(value=value, attr="format"):
                return {re.sub(r"{\w*(:\w)?}", GAP, each) for each in self.visit(value)}
            case ast.Attribute(value=ast.Constant(value="; "), attr="join"):
                return self._listed(node.args[0])
        return self._answered(node)

    def _listed(self, node: ast.expr) -> set[str]:
        """Return the messages in a list, each by itself."""
        match node:
            case ast.Name(id=name) if owner := self.scope.owner(name):
                reader = replace(self, scope=owner)
                return set().union(*map(reader._listed, owner.values.get(name, ())))
            case ast.ListComp(elt=each) | ast.GeneratorExp(elt=each):
                return self.visit(each)
            case ast.BinOp(left=left, right=right):
                return self._listed(left) | self._listed(right)
            case ast.Call(func=ast.Name(id="sorted"), args=[given]):
                return self._listed(given)
            case ast.Call():
                return self._answered(node)
        return set()

    def _answered(self, call: ast.Call, place: int | None = None) -> set[str]:
        found: set[str] = set()
        for scope, answer in self.found.answers.get(_key(_called(call), self.scope.module), ()):
            reader = replace(self, scope=scope, is_told=False)
            if place is None:
                found |= reader.visit(answer)
            elif isinstance(answer, ast.Tuple):
                found |= reader.visit(answer.elts[place])
        return found

    def _held(self, name: str) -> list[ast.expr]:
        """Return the values of the dictionaries that `name` can stand for."""
        owner = self.scope.owner(name)
        held = (owner.values if owner else self.found.constants).get(name, ())
        return [value for each in held if isinstance(each, ast.Dict) for value in each.values]

    def _is_choice(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant() | ast.JoinedStr():
                return True
            case ast.IfExp(body=body, orelse=orelse):
                return self._is_choice(body) and self._is_choice(orelse)
            case ast.Name(id=name):
                owner = self.scope.owner(name)
                values = owner.values.get(name, []) if owner else []
                return bool(values) and all(map(self._is_choice, values))
            case ast.Subscript(value=ast.Name(id=name)):
                values = self._held(name)
                return bool(values) and all(map(self._is_choice, values))
        return False


def _joined(parts: Iterable[set[str]]) -> set[str]:
    options = [sorted(part) for part in parts]
    found = {"".join(each) for each in itertools.islice(itertools.product(*options), MOST + 1)}
    if len(found) > MOST:
        return {"".join(each[0] if len(each) == 1 else GAP for each in options)}
    return {re.sub(f"{GAP}(?:{GAP})+", GAP, each) for each in found}
