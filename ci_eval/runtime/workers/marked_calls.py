"""Marks the model calls of each conversation, so that the gateway can tell them apart.

`worker.py` imports this file under the agent's interpreter, if the agent's models are
behind the gateway.  It needs only the standard library of Python 3.8 and imports nothing from
ci-eval.  HTTP clients are patched when the agent imports them: they add a header to requests to
the gateway, and to no others.  Calls from a thread that the agent starts itself are not marked.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import ContextVar
    from types import ModuleType

HEADER = "x-ci-eval-conversation"


def mark(writing: ContextVar[Any]) -> None:
    """Mark all calls from now on; the value of `writing` has the number of the conversation."""
    place = os.environ["CI_EVAL_MODELS"].split("/")[2]  # noqa: TID251  # of the worker

    def value() -> str:
        current = writing.get()
        return "" if current is None or not current.number else str(current.number)

    changes = {
        "httpx": _change_httpx,
        "httpx2": _change_httpx,
        "aiohttp.client": _change_aiohttp,
        "http.client": _change_http,  # under urllib, urllib3 and requests
    }
    for name in [each for each in changes if each in sys.modules]:
        changes.pop(name)(sys.modules[name], place, value)
    sys.meta_path.insert(0, _Finder(changes, place, value))


class _Finder:
    """Finds modules as usual, and patches HTTP clients once they are loaded."""

    def __init__(
        self, changes: dict[str, Callable[..., None]], place: str, value: Callable[[], str]
    ) -> None:
        self._changes = changes
        self._place = place
        self._value = value

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the specification of a module."""
        change = self._changes.pop(name, None)
        if change is None:
            return None  # also if another finder asks all finders, this one among them
        finders = (getattr(each, "find_spec", None) for each in sys.meta_path if each is not self)
        found = (find(name, path, target) for find in finders if find)
        spec: Any = next((each for each in found if each is not None), None)
        if spec is None or spec.loader is None:
            self._changes[name] = change
        else:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                change(module, self._place, self._value)

            spec.loader.exec_module = exec_module
        return spec


def _change_httpx(module: Any, place: str, value: Callable[[], str]) -> None:
    for client in (module.Client, module.AsyncClient):
        _change_send(client, place, value)


def _change_send(client: Any, place: str, value: Callable[[], str]) -> None:
    send = client.send

    def marked(self: Any, request: Any, *args: Any, **options: Any) -> Any:
        found = value()
        if found and request.url.netloc == place.encode():
            request.headers[HEADER] = found
        return send(self, request, *args, **options)

    client.send = marked


def _change_aiohttp(module: Any, place: str, value: Callable[[], str]) -> None:
    request = module.ClientSession._request  # noqa: SLF001  # every request passes it

    async def marked(self: Any, method: str, url: Any, **options: Any) -> Any:
        found = value()
        if found and str(self._build_url(url)).startswith("http://" + place + "/"):
            headers = module.CIMultiDict(options.get("headers") or ())
            headers[HEADER] = found
            options["headers"] = headers
        return await request(self, method, url, **options)

    module.ClientSession._request = marked  # noqa: SLF001  # as above


def _change_http(module: Any, place: str, value: Callable[[], str]) -> None:
    endheaders = module.HTTPConnection.endheaders

    def marked(self: Any, *args: Any, **options: Any) -> Any:
        found = value()
        if found and f"{self.host}:{self.port}" == place:
            self.putheader(HEADER, found)
        return endheaders(self, *args, **options)

    module.HTTPConnection.endheaders = marked
