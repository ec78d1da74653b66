"""Packages that take long to import, imported by the tests that use them, not to collect all."""

import importlib
from typing import Any


class Later:
    """Stands for a module, which is imported when a test first asks for a part of it."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pytest looks for `__wrapped__` and the like when it collects
            raise AttributeError(name)
        return getattr(importlib.import_module(self._module), name)
