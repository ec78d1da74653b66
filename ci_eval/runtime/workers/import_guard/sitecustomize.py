"""Refuses to import code of the change into processes of the base arm.

After an installation in development mode (`pip install --editable .`), Python finds the code of the
change wherever it runs, so the base arm would run the change again.  When it starts, Python imports
the first `sitecustomize` on its path, and `PYTHONPATH` of the base arm begins with this folder.
Installed packages are still importable, because an environment may be in the work tree.

This file needs only the standard library of Python 3.8 and imports nothing from ci-eval.
"""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# This runs in an agent's process, which gets no run context.
_FOREIGN = os.path.realpath(os.environ.get("CI_EVAL_FOREIGN", os.devnull)) + os.sep  # noqa: TID251
"""The work tree of the change."""
_OURS = os.path.dirname(os.path.dirname(os.path.realpath(__file__))) + os.sep
"""The folder of workers, which may be in the same work tree while ci-eval is developed."""
_INSTALLED = {"site-packages", "dist-packages"}


class _Guard:
    """Finds modules as the other finders do, unless they belong to the change."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        for finder in sys.meta_path:
            find = None if finder is _Guard else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                origin = os.path.realpath(spec.origin or os.sep)
                if origin.startswith(_FOREIGN) and not _is_installed(origin):
                    raise ImportError(f"{name} belongs to the work tree of the change: {origin}")
                return spec
        return None


def _is_installed(path: str) -> bool:
    own = os.path.realpath(sys.base_prefix) + os.sep
    return path.startswith((own, _OURS)) or bool(_INSTALLED & set(path.split(os.sep)))


def _import_next() -> None:
    """Import the next `sitecustomize`, which this file hides, if there is one."""
    ours = sys.modules.pop(__name__)
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [each for each in sys.path if os.path.abspath(each or os.curdir) != here]
    with suppress(ImportError):
        importlib.import_module(__name__)
    sys.modules.setdefault(__name__, ours)


if __name__ == "sitecustomize":
    sys.meta_path.insert(0, _Guard)
    _import_next()
