"""Loading Google ADK agents as `adk eval` does, with a few additions; run by `adk_adapter.py`."""

from __future__ import annotations

import asyncio
import importlib
import os
import re
import sys
from importlib import metadata, util
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = ("app", "root_agent", "get_agent_async")
"""The names under which a module may define its agent."""


def version() -> tuple[int, ...]:
    """Return the major and minor version of google-adk."""
    return tuple(map(int, re.findall(r"\d+", metadata.version("google-adk"))[:2]))


def switch_features(features: dict[str, bool]) -> Iterator[str]:
    """Enable or disable features of ADK; yield a warning for each that ADK does not have."""
    from google.adk.features import FeatureName, override_feature_enabled

    for name, is_enabled in features.items():
        try:
            override_feature_enabled(FeatureName(name), is_enabled)
        except ValueError:  # noqa: PERF203  # each name by itself
            known = ", ".join(each.value for each in FeatureName)
            installed = metadata.version("google-adk")
            yield f"google-adk {installed} has no feature {name!r}; known features: {known}"


def find(target: str, name: str | None) -> tuple[Any, Any]:
    """Return the `App` at `target`, or `None`, and its root agent, or the agent named `name`.

    `target` is a folder or a module.

    Raises:
        ValueError: there is no such agent.

    """
    folder = os.path.abspath(target)
    is_folder = os.path.isdir(folder)
    _read_env(folder if is_folder else os.path.abspath(target.replace(".", os.sep)))
    app, root = _in_folder(folder, target) if is_folder else _in_module(target)
    return app, _named(root, name) if name else root


def _read_env(folder: str) -> None:
    """Set the variables of the nearest `.env` in `folder` or above that are not set yet.

    Raises:
        ValueError: it is not UTF-8.

    """
    disabled = os.environ.get("ADK_DISABLE_LOAD_DOTENV", "")  # noqa: TID251  # the agent's own
    if disabled.lower() in {"1", "true"}:
        return
    from dotenv import load_dotenv

    while not os.path.isfile(os.path.join(folder, ".env")):
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            return
    path = os.path.join(folder, ".env")
    try:
        load_dotenv(path)
    except UnicodeDecodeError:
        raise ValueError(f"{os.path.relpath(path)} is not UTF-8; save it as such") from None


def _in_folder(folder: str, target: str) -> tuple[Any, Any]:
    entries = set(os.listdir(folder))
    if "root_agent.yaml" in entries and "agent.py" not in entries:
        from google.adk.agents import config_agent_utils

        return None, config_agent_utils.from_config(os.path.join(folder, "root_agent.yaml"))
    if not entries & {"agent.py", "__init__.py"}:
        raise ValueError(f"{target} has none of __init__.py, agent.py and root_agent.yaml")
    # Agents may import neighbouring packages, as with `adk web`.
    sys.path.append(os.path.dirname(folder))
    return _in_package(_package(folder, has_init="__init__.py" in entries), target)


def _package(folder: str, *, has_init: bool) -> ModuleType:
    """Import `folder` as the package `agent`, the name that `adk eval` gives every agent."""
    if has_init:
        init = os.path.join(folder, "__init__.py")
        spec = util.spec_from_file_location("agent", init)
        module = util.module_from_spec(spec)  # type: ignore[arg-type]  # the file exists
        sys.modules["agent"] = module
        spec.loader.exec_module(module)  # type: ignore[union-attr]  # and is Python
        return module
    module = ModuleType("agent")
    module.__path__ = [folder]
    sys.modules["agent"] = module
    return module


def _in_module(target: str) -> tuple[Any, Any]:
    top = target.partition(".")[0]
    if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", target) or not util.find_spec(top):
        raise ValueError(f"there is neither a folder nor a module {target!r}")
    return _in_package(importlib.import_module(target), target)


def _in_package(package: ModuleType, target: str) -> tuple[Any, Any]:
    """Return the app and agent of a package's module `agent`, or of the package itself."""
    holders: list[Any] = [package]
    inner = getattr(package, "agent", None)
    if isinstance(inner, ModuleType) or hasattr(inner, "root_agent"):  # every agent has a root
        holders.insert(0, inner)
    elif hasattr(package, "__path__") and not _has_agent(package):
        holders.insert(0, _submodule(package))
    holder = next(filter(_has_agent, holders), None)
    if holder is None:
        raise ValueError(f"{target} has no `app`, `root_agent` or `get_agent_async`")
    return _app_and_agent(holder)


def _submodule(package: ModuleType) -> ModuleType:
    name = package.__name__ + ".agent"
    return importlib.import_module(name) if util.find_spec(name) else package


def _has_agent(module: Any) -> bool:
    return any(hasattr(module, name) for name in NAMES)


def _app_and_agent(module: Any) -> tuple[Any, Any]:
    from google.adk.apps.app import App

    app = getattr(module, "app", None)
    if isinstance(app, App):
        return app, app.root_agent
    if hasattr(module, "root_agent"):
        return None, _checked(module.root_agent, "root_agent")
    if not hasattr(module, "get_agent_async"):
        raise ValueError(f"`app` is not an App of google-adk: {type(app).__name__}")

    async def created() -> Any:
        return await module.get_agent_async()

    found = asyncio.run(created())
    return None, _checked(found[0] if isinstance(found, tuple) else found, "get_agent_async")


def _checked(found: Any, name: str) -> Any:
    from google.adk.workflow import BaseNode

    if not isinstance(found, BaseNode):
        raise ValueError(f"`{name}` is not an agent of google-adk: {type(found).__name__}")  # noqa: TRY004  # as the others
    return found


def _named(root: Any, name: str) -> Any:
    found = root.find_agent(name) if hasattr(root, "find_agent") else None
    if found is None:
        known = ", ".join(_names(root))
        raise ValueError(f"there is no agent {name!r} under the root agent; found {known}")
    return found


def _names(agent: Any) -> list[str]:
    below = getattr(agent, "sub_agents", None) or ()
    return [agent.name, *(name for each in below for name in _names(each))]
