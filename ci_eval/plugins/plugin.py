"""Base classes of all plugins: named in YAML, documented by their fields, found by name."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, TypeVar

from pydantic import ConfigDict

from ci_eval.plugins.registry import Registry
from ci_eval.records.cases import Json, Record

Syntax = Literal["json", "jsonl", "yaml", "csv"]
"""The syntax of a file, from its suffix."""


class Plugin(Record):
    """A component that users name in YAML."""

    model_config: ClassVar[ConfigDict] = ConfigDict(populate_by_name=True)

    type_name: ClassVar[str] = ""
    """The name it is registered with."""


class Reader(Plugin):
    """A file format, recognised by the beginning of a file."""

    syntaxes: ClassVar[frozenset[Syntax]] = frozenset({"json"})
    """The syntaxes that the format may use, by file suffix."""

    @classmethod
    @abstractmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Return True if a document that begins like `head` has this format.

        `head` comes from `sniff.read_head`: the top-level object without its long arrays, or a
        list of the first element.
        """


R = TypeVar("R", bound=Reader)


class ReaderRegistry(Registry[R]):
    """A registry of file formats; the first format that recognises a file reads it."""

    def of(self, head: Json, syntax: Syntax) -> type[R] | None:
        """Return the format of a document in `syntax` that begins like `head`, if any."""
        readers = (self[name] for name in self)
        known = (each for each in readers if syntax in each.syntaxes and each.sniff(head))
        return next(known, None)
