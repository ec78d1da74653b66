"""Source files of a module and of its imports from the same repository."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

MAX_SOURCE = 1024 * 1024
"""The largest source file that is read, in bytes."""
_MAX_FILES = 1000
"""Maximum number of files that are followed."""
_UNCHECKED = (1).to_bytes(4, "little")
"""The flags of bytecode that is loaded whatever its source is (PEP 552)."""


def sources(module: str, folders: Sequence[Path]) -> tuple[Path, ...]:
    """Return the files of `module` and of the modules that it imports, each once.

    Modules are searched in `folders` only, so the standard library and installed packages are left
    out.  Imports inside functions count; computed imports are not found.
    """
    found: dict[Path, None] = {}
    waiting = [module]
    seen = {module}
    while waiting and len(found) < _MAX_FILES:
        name = waiting.pop()
        for path, package in _files(name, folders):
            if path not in found:
                found[path] = None
                new = [each for each in _imported(path, package) if each not in seen]
                seen.update(new)
                waiting += new
    return tuple(found)


def code_of(module: str, folders: Sequence[Path]) -> Mapping[Path, bytes]:
    """Return the content of the files in `folders` that `import module` would load.

    Bytecode that Python checks against its source is left out: imports write it.
    """
    found = {}
    for path in sources(module, folders):
        with suppress(OSError):  # what cannot be read is not loaded either
            found[path] = path.read_bytes()
    return {
        path: content
        for path, content in found.items()
        if path.parent.name != "__pycache__" or content[4:8] == _UNCHECKED
    }


def _files(module: str, folders: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Yield the files of a module and of the packages that contain it, each with its package."""
    parts = module.split(".")
    for folder in folders:
        for count in range(1, len(parts) + 1):
            path = folder.joinpath(*parts[:count])
            yield from ((each, ".".join(parts[:count])) for each in _forms(path, "__init__"))
            inner = ".".join(parts[: count - 1])
            yield from ((each, inner) for each in _forms(path.parent, path.name))


def _forms(folder: Path, name: str) -> Iterator[Path]:
    """Yield the files in a folder that Python may load as a module: source and bytecode.

    Committed bytecode need not match the source.
    """
    yield from filter(Path.is_file, (folder / f"{name}.py", folder / f"{name}.pyc"))
    if (cached := folder / "__pycache__").is_dir():
        yield from cached.glob(f"{name}.*.pyc")


def _imported(path: Path, package: str) -> Iterator[str]:
    """Yield the names of the modules that a file may import."""
    try:
        if path.stat().st_size > MAX_SOURCE:
            return
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: -(node.level - 1) or None] if node.level else []
            start = ".".join(filter(None, (*above, node.module)))
            if start:
                yield start
            yield from (".".join(filter(None, (start, each.name))) for each in node.names)
