"""Names of Python objects in a configuration: `module:name`."""

from typing import Annotated

from pydantic import AfterValidator


def _named(value: str) -> str:
    module, _, name = value.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        raise ValueError(f"expected 'module:name', such as 'app.agents:support', found {value!r}")
    return value


ObjectName = Annotated[str, AfterValidator(_named)]
"""A module and an object in it; modules are imported from the folder of the configuration."""
