"""Names for plugins: one registry for each extension point."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Generic, TypeVar

from ci_eval.errors import UnknownPluginError, UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
MAX_NAMED = 20
"""How many names a message lists."""


class Registry(Generic[T]):
    """Maps names to plugin classes, importing `package` when first asked.

    A plugin is a class decorated with the registry in a module of `package`, or
    in a module that an installed distribution names as an entry point of the
    group `package`.  Nothing else has to be edited to add one.
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self._package = package
        self._classes: dict[str, type[T]] = {}
        self._loaded = False
        self.overridden: dict[str, str] = {}
        """Names taken over by a plugin that declared it, with that plugin's module."""

    def __call__(self, name: str, *, override: bool = False) -> Callable[[type[T]], type[T]]:
        """Register the decorated class as `name`.

        A name that is taken is an error, unless the newcomer says `override`.
        """

        def register(cls: type[T]) -> type[T]:
            if name in self._classes:
                if not override:
                    raise ValueError(
                        f"two {self.kind} plugins are named {name!r}: "
                        f"{self._classes[name].__module__} and {cls.__module__}"
                    )
                self.overridden[name] = cls.__module__
            self._classes[name] = cls
            return cls

        return register

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(sorted(self._classes))

    def __contains__(self, name: object) -> bool:
        self._load()
        return name in self._classes

    def __getitem__(self, name: str) -> type[T]:
        self._load()
        try:
            return self._classes[name]
        except KeyError:
            raise UnknownPluginError(
                f"unknown {self.kind}{did_you_mean(name, self._classes)}"
            ) from None

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        package = importlib.import_module(self._package)
        for module in pkgutil.iter_modules(package.__path__):
            if not module.name.startswith("_"):
                importlib.import_module(f"{self._package}.{module.name}")
        for point in _entry_points().get(self._package, ()):
            try:
                point.load()
            except (ImportError, AttributeError) as exc:
                of = f" of {point.dist.name}" if point.dist else ""
                message = f"the {self.kind} plugin {point.value!r}{of} cannot be loaded: {exc}"
                raise UsageError(message) from exc


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence that names what was probably meant.

    >>> did_you_mean("respnse", ("response", "tools"))
    ". Did you mean 'response'?"
    >>> did_you_mean("x", ("response", "tools"))
    '; known: response, tools'
    """
    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    if close:
        return f". Did you mean {close[0]!r}?"
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"; known: {', '.join(names[:MAX_NAMED])}{more}" if names else ""


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
