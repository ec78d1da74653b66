"""Registries of plugins: one for each extension point."""

import importlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

from ci_eval.records.errors import UnknownPluginError, UsageError
from ci_eval.text.suggest import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Named(Protocol):
    """A class that knows the name it is registered with."""

    type_name: ClassVar[str]


T = TypeVar("T", bound=Named)


class Registry(Generic[T]):
    """A map from names to plugin classes; imports modules of `package` lazily.

    A plugin is a class decorated with the registry, `@registry("name")`, in a module of
    `package`, or in a module that an installed distribution names as an entry point of the
    group `package`.  No other file needs an edit.  The names are read from the source text of
    the modules, so that unused plugins are never imported.
    """

    def __init__(self, kind: str, package: str, decorator: str) -> None:
        self.kind = kind
        self._decorator = decorator
        self.package = package
        self._classes: dict[str, type[T]] = {}
        self._modules: dict[str, str] | None = None
        """The module of each plugin of `package`, imported or not; `None` until scanned."""
        self._loaded = False
        self.overridden: dict[str, str] = {}
        """Names that a plugin replaced with `override`, with that plugin's module."""

    def __call__(self, name: str, *, override: bool = False) -> Callable[[type[T]], type[T]]:
        """Register the decorated class as `name`, and set its `type_name`.

        Raises:
            ValueError: the name is taken and `override` is not set.

        """

        def register(cls: type[T]) -> type[T]:
            cls.type_name = name
            owner = self._owner(name)
            if owner in ("", cls.__module__):
                self._classes[name] = cls
            elif override:
                self.overridden[name] = cls.__module__
                self._classes[name] = cls
            elif name not in self.overridden or cls.__module__ != self._files()[name]:
                raise self._duplicate(name, owner, cls.__module__)
            return cls

        return register

    def _owner(self, name: str) -> str:
        """Return the module that registered `name`; empty if the name is free."""
        found = self._classes.get(name)
        return found.__module__ if found else self._files().get(name, "")

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(sorted({*self._classes, *self._files()}))

    def __contains__(self, name: object) -> bool:
        self._load()
        return name in self._classes or name in self._files()

    def __getitem__(self, name: str) -> type[T]:
        if name not in self:
            raise UnknownPluginError(f"unknown {self.kind}{did_you_mean(name, self)}")
        if name not in self._classes:
            importlib.import_module(self._files()[name])
        return self._classes[name]

    def _duplicate(self, name: str, one: str, other: str) -> ValueError:
        return ValueError(f"two {self.kind} plugins are named {name!r}: {one} and {other}")

    def _files(self) -> dict[str, str]:
        """Return the modules of the package by the plugin names they register."""
        if self._modules is None:
            self._modules = {}
            for folder in importlib.import_module(self.package).__path__:
                for file in sorted(Path(folder).glob("[!_]*.py")):
                    module = f"{self.package}.{file.stem}"
                    for name in self._registered_in(file):
                        other = self._modules.setdefault(name, module)
                        if other != module:
                            raise self._duplicate(name, other, module)
        return self._modules

    def _registered_in(self, file: Path) -> Iterator[str]:
        """Yield the names that a module registers; parsing all modules would take too long."""
        for line in file.read_text(encoding="utf-8").splitlines():
            called, opened, argument = line.partition("(")
            if not opened or called not in (f"@{self._decorator}", f"@points.{self._decorator}"):
                continue
            quote = argument[:1]
            if quote not in ("'", '"') or argument.count(quote) < 2:
                message = f"{file}: the name in `{line}` must be a string on the same line"
                raise ValueError(message)
            yield argument.split(quote)[1]

    def _load(self) -> None:
        """Import the plugins of installed distributions."""
        if self._loaded:
            return
        self._loaded = True
        for point in _entry_points().get(self.package, ()):
            try:
                point.load()
            except (ImportError, AttributeError) as exc:
                of = f" of {point.dist.name}" if point.dist else ""
                message = f"the {self.kind} plugin {point.value!r}{of} cannot be loaded: {exc}"
                raise UsageError(message) from exc


@cache
def _entry_points() -> dict[str, list["EntryPoint"]]:
    """Return every entry point, by group; scanning distributions is slow."""
    from importlib.metadata import distributions

    found: dict[str, list[EntryPoint]] = {}
    for distribution in distributions():
        for point in distribution.entry_points:
            if point.group.startswith("ci_eval."):
                found.setdefault(point.group, []).append(point)
    return found
