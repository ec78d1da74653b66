"""What all plugins are: named in YAML, described by their fields, found by their name."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Literal, TypeVar

from pydantic import ConfigDict

from ci_eval.plugins.registry import Registry
from ci_eval.records.model import Json, Record

Syntax = Literal["json", "jsonl", "yaml", "csv"]
"""How a file is written, as the end of its name says."""


class Plugin(Record):
    """Something that a user can name in YAML."""

    model_config: ClassVar[ConfigDict] = ConfigDict(populate_by_name=True)

    type_name: ClassVar[str] = ""
    """The name it was registered with."""


P = TypeVar("P", bound=Plugin)


class PluginRegistry(Registry[P]):
    """A registry that tells each plugin its name."""

    def __call__(self, name: str, *, override: bool = False) -> Callable[[type[P]], type[P]]:
        """Register the decorated class as `name`."""
        register = super().__call__(name, override=override)

        def named(cls: type[P]) -> type[P]:
            cls.type_name = name
            return register(cls)

        return named


class Reader(Plugin):
    """One format of files, told by how they begin."""

    syntaxes: ClassVar[frozenset[Syntax]] = frozenset({"json"})
    """In which it may be written; the name of a file tells."""

    @classmethod
    @abstractmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Say whether a document that begins like `head` is of this format.

        `head` is what `sniff.read_head` returns: the top-level object without its long
        arrays, or a list of the first element.
        """


R = TypeVar("R", bound=Reader)


class ReaderRegistry(PluginRegistry[R]):
    """A registry of formats, of which a file is of the first that says so."""

    def of(self, head: Json, syntax: Syntax) -> type[R] | None:
        """Return the format of a document of that syntax which begins like `head`."""
        readers = (self[name] for name in self)
        return next(
            (each for each in readers if syntax in each.syntaxes and each.sniff(head)), None
        )
