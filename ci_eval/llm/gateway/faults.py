"""Injected faults: they simulate a provider's bad day, to test whether an agent survives it.

Which call fails, and how, follows from a seed and the call's place, so that runs are repeatable.
A fault does not count as an outage: the agent's reaction is scored like anything else.
"""

import asyncio
import hashlib
import math
import time
from typing import TYPE_CHECKING

from ci_eval.llm.gateway.cassette_lines import Place
from ci_eval.llm.gateway.gateway_options import Fault, Faults
from ci_eval.llm.gateway.open_conversations import Conversation
from ci_eval.llm.gateway.providers import error_body

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest as Request
    from aiohttp.web import StreamResponse

_STATUSES = {"429": 429, "500": 500}
_TEXT = "fault injected by ci-eval"
_LOOK_S = 0.2
"""Seconds between checks that the client is still waiting."""


def fault_of(faults: Faults, place: Place, attempt: int) -> Fault | None:
    """Return the fault for attempt number `attempt` (from 1) of a call; `None` for no fault."""
    text = f"{faults.seed} {place} {attempt}".encode()
    number = int.from_bytes(hashlib.sha256(text).digest()[:8]) / 2**64
    if number >= faults.rate:
        return None
    # Below the rate, the number is again uniformly distributed.
    return faults.kinds[int(number / faults.rate * len(faults.kinds))]


async def faulty(fault: Fault, request: "Request", conversation: Conversation) -> "StreamResponse":
    """Return a faulty answer, or break the connection."""
    from aiohttp.web import Response, json_response

    if fault in _STATUSES:
        status = _STATUSES[fault]
        headers = {"retry-after": "1"} if status == 429 else {}
        return json_response(error_body(_TEXT), status=status, headers=headers)
    if fault == "garbage":
        return Response(text=f"<html>{_TEXT}</html>", content_type="text/html")
    if fault == "timeout":
        await is_awaited(request, conversation, math.inf)
    if fault == "cut" and request.transport:
        request.transport.write(b'HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"cut": "')
        request.transport.close()
    return Response(status=499)  # no client waits for it


async def is_awaited(request: "Request", conversation: Conversation, seconds: float = 0.0) -> bool:
    """Wait; return False as soon as the client has left or the trial is over, else True."""
    until = time.monotonic() + seconds
    while not conversation.is_over and request.transport and not request.transport.is_closing():
        if (left := until - time.monotonic()) <= 0:
            return True
        await asyncio.sleep(min(left, _LOOK_S))
    return False
