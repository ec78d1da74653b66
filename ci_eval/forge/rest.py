"""Requests to GitHub and GitLab: rate limits, retries and validated responses.

This module holds the whole retry policy: `MAX_WAIT_S` bounds one wait, `PATIENCE_S` all waits
together.  If a rate limit lasts longer, the request fails at once, as do later requests.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from pydantic import ValidationError

from ci_eval.records.cases import Json, Stored
from ci_eval.records.errors import TrialError
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.http import Net, Request, Response
from ci_eval.runtime.retry import Backoff, retry_after
from ci_eval.text.json_text import NotJsonError, parse_json
from ci_eval.text.validation_messages import described

M = TypeVar("M", bound=Stored)

ANSWER_S = 60.0
"""Timeout of one request, in seconds."""
MAX_WAIT_S = 90.0
"""The longest single wait, in seconds; hosts ask for 60 if their responses state no time."""
PATIENCE_S = 150.0
"""The longest total wait of one connection, in seconds."""
BACKOFF = Backoff(first_s=1.0, longest_s=10.0, factor=4.0)
RETRIES = 3
"""Maximum number of retries of one request."""
GONE = (404, 410)
"""Statuses of a resource that does not exist, or no longer does."""
_SERVER_ERRORS = (500, 502, 503, 504)


class HostError(Exception):
    """A request to the host failed or was refused."""

    def __init__(self, message: str, *, hint: str = "", status: int | None = None) -> None:
        self.hint = hint
        """What the user can do about it, if known."""
        self.status = status
        """The HTTP status, if the host answered."""
        super().__init__(message)


class LimitedError(HostError):
    """A rate limit lasts longer than we wait; the request was not executed."""


def is_server_error(response: Response) -> bool:
    """Return True if the server failed, so that a retry may succeed."""
    return response.status in _SERVER_ERRORS


class HostRules(NamedTuple):
    """How to read the responses of one kind of host."""

    name: str
    limit_s: Callable[[Response, float], float | None]
    """Returns the seconds to wait, given the response and the time; `None` without a rate limit."""
    error_detail: Callable[[Response], str]
    """Returns the message of an error response, to be appended to ours."""
    is_server_error: Callable[[Response], bool] = is_server_error
    """Returns True if the server failed, so that a retry may succeed."""


@dataclass
class Host:
    """Sends requests, and retries those that hit a rate limit or a server error."""

    net: Net
    context: RunContext
    rules: HostRules
    patience_s: float = field(default_factory=lambda: PATIENCE_S)
    """The time left for waiting."""
    closed: tuple[float, str] = (0.0, "")
    """When the host accepts requests again, on the run context's clock, and the host's message."""

    async def send(self, request: Request, *, again: bool, within_s: float = ANSWER_S) -> Response:
        """Return the final response, whatever its status.

        With `again`, a request is also retried if it may have been executed.

        Raises:
            LimitedError: a rate limit lasts longer than we wait.
            HostError: the host does not answer, or its server fails.

        """
        until, why = self.closed
        if (left_s := until - self.context.now()) > 0:
            raise _limited_error(why, left_s)
        pauses = BACKOFF.pauses(RETRIES)
        while True:
            response, said = await self._attempt(request, within_s)
            limited_s = self.rules.limit_s(response, self.context.now()) if response else None
            pause_s = next(pauses, None)
            if response and limited_s is not None:
                said = f"{self.rules.name} rate limit exceeded{self.rules.error_detail(response)}"
                if pause_s is None or limited_s > min(MAX_WAIT_S, self.patience_s):
                    self._close(response, said, limited_s)
                    raise _limited_error(said, limited_s)
                await self._wait(limited_s, said)
                continue
            if response and not (again and self.rules.is_server_error(response)):
                return response
            if pause_s is None or not again or pause_s > self.patience_s:
                raise HostError(said)
            await self._wait(pause_s, said)

    def _close(self, response: Response, said: str, limited_s: float) -> None:
        """Fail further requests at once; a limit with status 200 concerns GraphQL alone."""
        if response.status != 200:
            self.closed = (self.context.now() + limited_s, said)

    async def _attempt(self, request: Request, within_s: float) -> tuple[Response | None, str]:
        """Return the response, if any, and a message about it."""
        try:
            async with asyncio.timeout(within_s):
                response = await self.net.send(request)
        except TimeoutError:
            return None, f"{request.shown} did not answer within {within_s:g} s"
        except TrialError as exc:
            if exc.kind != "connection":
                raise HostError(str(exc)) from exc
            return None, str(exc)
        # A failed GraphQL response with status 200 gives the reason in its errors.
        detail = self.rules.error_detail(response)
        shown = f"200{detail}" if response.status == 200 else response.shown
        return response, f"{request.shown} answered {shown}"

    async def _wait(self, pause_s: float, said: str) -> None:
        """Wait before a retry."""
        self.patience_s -= pause_s
        self.context.say(f"{said}; retrying in {pause_s:.0f} s")
        await asyncio.sleep(pause_s)


def _limited_error(said: str, left_s: float) -> LimitedError:
    return LimitedError(f"{said}; try again in {left_s:.0f} s")


def token_in(env: Mapping[str, str], names: Sequence[str], missing: HostError) -> str:
    """Return the token in the first of the variables `names` that is set.

    Raises:
        HostError: none is set (`missing` is raised), or the value is not a token.

    """
    name = next((each for each in names if env.get(each)), None)
    if name is None:
        raise missing
    # Otherwise, the HTTP library would print the value in its errors.
    if not re.fullmatch(r"[!-~]+", env[name]):
        raise HostError(f"{name} is not a token: it has spaces, line breaks or invalid characters")
    return env[name]


def named_limit_s(response: Response, now: float, prefix: str) -> float | None:
    """Return the seconds to wait for a rate limit, if the response names them.

    `prefix` begins the names of the host's headers about rate limits.
    """
    headers = response.headers
    if (pause_s := retry_after(headers, now)) is not None:
        return pause_s
    reset = headers.get(f"{prefix}-Reset", "")
    if headers.get(f"{prefix}-Remaining") == "0" and re.fullmatch("[0-9]{1,12}", reset):
        return max(0.0, int(reset) - now)
    return None


def json_object(response: Response) -> dict[str, Json]:
    """Return the JSON object in a response; an empty one if there is none."""
    try:
        value = parse_json(response.text)
    except NotJsonError:
        return {}
    return value if isinstance(value, dict) else {}


def read(response: Response) -> Json:
    """Return a response as JSON.

    Raises:
        HostError: it is not JSON.

    """
    try:
        return response.json()
    except TrialError as exc:
        raise HostError(str(exc)) from exc


def items(response: Response, member: str = "") -> list[Json]:
    """Return the list in a response: the whole of it, or its `member`.

    Raises:
        HostError: there is no list.

    """
    value = read(response)
    found = value.get(member) if member and isinstance(value, dict) else value
    if not isinstance(found, list):
        raise HostError(f"{response.request.shown} did not return a list")
    return found


def checked(item: Json, kind: type[M], response: Response) -> M:
    """Return a part of a response, validated as a `kind`.

    Raises:
        HostError: it does not fit the schema.

    """
    try:
        return kind.model_validate(item)
    except ValidationError as exc:
        where = response.request.quoted(next(described(exc, kind)))
        message = f"{response.request.shown} returned unexpected data: {where}"
        raise HostError(message) from exc
