"""What the names in Python source can stand for, as far as it can be seen without running it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Scope:
    """A function, or a module, with what its names can stand for."""

    module: str
    """The path of the module."""
    values: dict[str, list[ast.expr]]
    """For each name all that is ever assigned to it; for `.name`, attributes of classes."""
    name: str = ""
    """Of the function; empty for a module."""
    parameters: dict[str, int] = field(default_factory=dict)
    """The positions of the parameters in a call."""
    texts: frozenset[str] = frozenset()
    """The parameters that are declared to be texts."""
    outer: "Scope | None" = None

    @classmethod
    def of_module(cls, module: str, tree: ast.Module) -> "Scope":
        """Return the scope of a whole module."""
        return cls(module, _bindings(tree) | _attributes(tree))

    def inner(self, function: Function) -> "Scope":
        """Return the scope of a function in this one."""
        arguments = function.args
        given = [*arguments.posonlyargs, *arguments.args]
        if given and given[0].arg in ("self", "cls"):
            given = given[1:]
        given += arguments.kwonlyargs
        return Scope(
            self.module,
            _bindings(function),
            function.name,
            {each.arg: position for position, each in enumerate(given)},
            frozenset(each.arg for each in given if _is_text(each)),
            self,
        )

    def owner(self, name: str) -> "Scope | None":
        """Return the scope that `name` belongs to, this one or one further out."""
        if name in self.values or name in self.parameters:
            return self
        return self.outer.owner(name) if self.outer else None


def answers(function: Function) -> Iterator[ast.expr]:
    """Yield all that a function returns or yields."""
    for node in _own(function):
        if isinstance(node, ast.Return | ast.Yield) and node.value is not None:
            yield node.value


def _is_text(parameter: ast.arg) -> bool:
    said = parameter.annotation
    return said is not None and "str" in ast.unparse(said).split(" | ")


_LEAVES = (ast.Name, ast.Constant)


def children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes right below `node` that say something: most of them only say `Load`."""
    if isinstance(node, _LEAVES):
        return []
    return [each for each in ast.iter_child_nodes(node) if each._fields]


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is in `node`, but not what is in functions inside it."""
    waiting = children(node)[::-1]
    while waiting:
        child = waiting.pop()
        yield child
        if not isinstance(child, Function | ast.Lambda):
            waiting.extend(children(child)[::-1])


def _attributes(tree: ast.Module) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        for each in node.body if isinstance(node, ast.ClassDef) else ():
            match each:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ):
                    found.setdefault(f".{name}", []).append(value)
    return found


def _bindings(node: ast.AST) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for child in _own(node):
        for name, value in _bound(child):
            found.setdefault(name, []).append(value)
    return found


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that a statement gives a value, each with the value."""
    match node:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            | ast.NamedExpr(target=ast.Name(id=name), value=value)
            | ast.For(target=ast.Name(id=name), iter=ast.Call() as value)
            | ast.comprehension(target=ast.Name(id=name), iter=ast.Call() as value)
        ):
            yield name, value
        case (
            ast.Assign(targets=[ast.Tuple(elts=names)], value=value)
            | ast.For(target=ast.Tuple(elts=names), iter=value)
            | ast.comprehension(target=ast.Tuple(elts=names), iter=value)
        ):
            yield from _unpacked(names, value)
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
            before = ast.Name(id="", ctx=ast.Load())
            yield name, ast.copy_location(ast.BinOp(before, ast.Add(), value), node)


def _unpacked(names: list[ast.expr], value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(value, ast.IfExp):
        yield from _unpacked(names, value.body)
        value = value.orelse
    for place, name in enumerate(names):
        each: ast.expr = ast.Subscript(value, ast.Constant(place), ast.Load())
        if isinstance(value, ast.Tuple) and place < len(value.elts):
            each = value.elts[place]
        if isinstance(name, ast.Name):
            yield name.id, ast.copy_location(each, value)
