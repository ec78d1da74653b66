"""Calls that are passed on to their provider."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pydantic_core import to_json

from ci_eval.llm.gateway.answers import CONTENT_TYPE, STREAM, Answer, WithoutKey, asks_for_usage
from ci_eval.llm.gateway.providers import Call
from ci_eval.runtime.http import Net, Request, chunks

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_UNANSWERED = frozenset({401, 402, 403, 404, 408, 409, 429})
"""Statuses, besides those from 500, that do not depend on the request's content: the provider is
busy or down, refuses the key, demands payment, or has no such model or address."""
_UNPAID = b"credit balance is too low"
"""Part of Anthropic's answer, with status 400, if no credit is left."""
_PASSED_BACK = ("retry-after", "retry-after-ms", "x-should-retry")
_JSON = "application/json"
_BYTES_PER_TOKEN = 4
_FILE = re.compile(rb'(?<=[",])[A-Za-z0-9+/_-]{2000,}={0,2}(?=")')
"""A text in base64; text of other kinds has blanks."""
_TOKENS_PER_FILE = 1_000


@dataclass
class Passing:
    """An answer of a provider, as it arrives."""

    call: Call
    response: "ClientResponse"
    request: Request
    without_key: WithoutKey
    drops_usage: bool
    """Whether the stream ends with a usage that the client did not request."""
    before: bytes | None = None
    """The whole body, if it has been read already."""
    received: list[bytes] = field(default_factory=list)

    @property
    def type(self) -> str:
        """The content type, corrected for servers that declare events as plain text, or none."""
        kind = self.response.content_type
        is_stream = self.call.is_streamed and self.response.status == 200 and kind != _JSON
        if is_stream:
            return STREAM
        return kind if CONTENT_TYPE.fullmatch(kind) else "application/octet-stream"

    @property
    def headers(self) -> dict[str, str]:
        """The headers for the client."""
        found = self.response.headers
        return {name: found[name] for name in _PASSED_BACK if name in found}

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives, without our key, and store it.

        Raises:
            TrialError: the connection was lost, or the body is too long.

        """
        if self.before is not None:
            self.received.append(self.before)
            yield self.before
            return
        async with aclosing(chunks(self.request, self.response)) as found:
            async for chunk in found:
                if known := self.without_key.feed(chunk):
                    self.received.append(known)
                    yield known
        if rest := self.without_key.end():
            self.received.append(rest)
            yield rest

    def answer(self) -> Answer:
        """Return the answer, which has been read whole."""
        return Answer(self.response.status, self.type, b"".join(self.received))


@asynccontextmanager
async def passed_on(
    call: Call, body: bytes, net: Net, env: Mapping[str, str]
) -> AsyncIterator[Passing]:
    """Call the provider with its key and the `body` of the call, and provide its answer.

    For a stream of chat completions, also request the usage, unless the server refuses that.

    Raises:
        TrialError: there is no response.

    """
    name = call.provider.key_variable(env)
    without_key = WithoutKey(env[name] if name else "", f"[{name}]")
    more = asks_for_usage(call)
    if more:
        request = _request(call, to_json(more), env)
        async with net.opened(request) as response:
            passing = Passing(call, response, request, without_key, drops_usage=True)
            refused = b""
            if response.status == 400:
                refused = b"".join([chunk async for chunk in passing.chunks()])
                passing = replace(passing, before=refused, received=[])
            if b"stream_options" not in refused:
                yield passing
                return
    request = _request(call, body, env)
    async with net.opened(request) as response:
        yield Passing(call, response, request, without_key, drops_usage=False)


def _request(call: Call, body: bytes, env: Mapping[str, str]) -> Request:
    key = call.provider.key(env)
    headers = {
        "content-type": _JSON,
        "accept-encoding": "identity",
        **call.versions,
        **(dict([key]) if key else {}),
    }
    return Request("POST", call.provider.upstream(env) + call.path, body, headers)


def failure(call: Call, answer: Answer, env: Mapping[str, str]) -> str:
    """Return why an answer does not come from the model; empty if it does."""
    status = answer.status
    if status in (401, 403) or (status == 400 and b"API_KEY_INVALID" in answer.body):
        name = call.provider.key_variable(env)
        return f"{call.shown}: the provider refuses the key in {name} (status {status})"
    said = f"{call.shown} answered with status {status}"
    if status == 400 and _UNPAID in answer.body:
        return f"{said}: the credit balance is too low"
    if 300 <= status < 400:
        return f"{said}, a redirect, which the gateway does not follow"
    if trouble := answer.trouble:
        return f"{said}, but {trouble}"
    return said if status in _UNANSWERED or status >= 500 else ""


def tokens_of(body: bytes) -> int:
    """Return the approximate number of input tokens in the body of a call.

    A file, such as an image, counts as much as a typical image, whatever its size in bytes.
    """
    files = _FILE.findall(body)
    text = len(body) - sum(map(len, files))
    return text // _BYTES_PER_TOKEN + len(files) * _TOKENS_PER_FILE + 1
