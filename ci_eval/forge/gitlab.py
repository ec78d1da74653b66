"""Client for one project on GitLab, through its REST API.

Pages, rate limits and errors follow https://docs.gitlab.com/api/rest/, permissions
https://docs.gitlab.com/api/notes/ and https://docs.gitlab.com/ci/jobs/ci_job_token/.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote, urlencode

from ci_eval.forge import rest
from ci_eval.forge.rest import Host, HostError, HostRules, checked, items, read
from ci_eval.records.cases import Json, Stored
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.http import Request, Response, address, connecting

M = TypeVar("M", bound=Stored)

API = "https://gitlab.com/api/v4"
"""The API of gitlab.com; in a job, `CI_API_V4_URL` names the API of its GitLab server."""
TOKENS = ("CI_EVAL_GITLAB_TOKEN", "GITLAB_TOKEN")
"""Variables that may hold the token; not `CI_JOB_TOKEN`, which can only read notes."""
MAX_PAGES = 200
"""Maximum number of pages of a list."""
_LIMITED_S = 60.0
"""Seconds to wait if a rate limit states no time: the limits on notes are per minute."""


@asynccontextmanager
async def connected(context: RunContext, project: str) -> AsyncIterator["GitLab"]:
    """Connect to a project, by its id or its path.

    Raises:
        HostError: the environment has no token, or an invalid address.

    """
    env = context.env
    api = (env.get("CI_API_V4_URL") or API).rstrip("/")
    try:
        address(api)
    except ValueError as exc:
        raise HostError(f"CI_API_V4_URL: {exc}") from exc
    headers = {"PRIVATE-TOKEN": _token(env), "User-Agent": "ci-eval"}
    async with AsyncExitStack() as stack:
        try:
            # The certificate authority that the runner trusts; used for this server alone.
            net = await stack.enter_async_context(
                connecting(env, env.get("CI_SERVER_TLS_CA_FILE", ""))
            )
        except OSError as exc:
            raise HostError(f"CI_SERVER_TLS_CA_FILE: {exc.strerror or exc}") from exc
        host = Host(net, context, HostRules("GitLab", limit_s, _error_detail))
        yield GitLab(host, api, project, headers)


def _token(env: Mapping[str, str]) -> str:
    missing = HostError(
        "no GitLab token is set",
        hint="set the variable GITLAB_TOKEN to a project access token with the scope `api` and "
        "the role Reporter; the job's own CI_JOB_TOKEN can only read notes",
        status=401,
    )
    return rest.token_in(env, TOKENS, missing)


@dataclass
class GitLab:
    """Client for one project.

    A path is relative to the project, or to the root of the API if it begins with a slash.
    """

    host: Host
    api: str
    """The address of the API."""
    project: str
    """The id or the path of the project."""
    headers: Mapping[str, str]

    async def listed(self, path: str, kind: type[M], **query: str | int) -> AsyncGenerator[M, None]:
        """Yield the items of the pages at `path`, requesting each page when it is needed.

        Raises:
            HostError: a page cannot be read, or does not fit the schema.

        """
        page = 1
        for _ in range(MAX_PAGES):
            found = urlencode({**query, "per_page": 100, "page": page})
            response = await self._send(Request("GET", f"{self._url(path)}?{found}"))
            for each in items(response):
                yield checked(each, kind, response)
            # `Link` may contain another host name of the server; the page number is enough.
            next_page = response.headers.get("X-Next-Page", "")
            if not re.fullmatch("[0-9]{1,9}", next_page) or int(next_page) <= page:
                return
            page = int(next_page)
        raise HostError(f"{response.request.shown} has more than {MAX_PAGES} pages")

    async def one(self, path: str, kind: type[M]) -> M:
        """Return the resource at `path`.

        Raises:
            HostError: it cannot be read, or does not fit the schema.

        """
        response = await self._send(Request("GET", self._url(path)))
        return checked(read(response), kind, response)

    async def post(self, path: str, body: Json, kind: type[M]) -> M:
        """Create a resource at `path` and return it.

        Raises:
            HostError: it was not created, or the outcome is unknown.

        """
        response = await self._send(Request("POST", self._url(path), body), again=False)
        return checked(read(response), kind, response)

    async def put(self, path: str, body: Json) -> None:
        """Change the resource at `path`, overwriting concurrent changes.

        Raises:
            HostError: it was not changed, or the outcome is unknown.

        """
        # A retry could overwrite what another job wrote in between.
        await self._send(Request("PUT", self._url(path), body), again=False)

    async def delete(self, path: str) -> None:
        """Delete the resource at `path`, if it exists.

        Raises:
            HostError: it was not deleted, or the outcome is unknown.

        """
        try:
            await self._send(Request("DELETE", self._url(path)))
        except HostError as exc:
            if exc.status not in rest.GONE:
                raise

    def _url(self, path: str) -> str:
        if path.startswith("/"):
            return self.api + path
        return f"{self.api}/projects/{quote(self.project, safe='')}/{path}"

    async def _send(self, request: Request, *, again: bool = True) -> Response:
        request = request._replace(headers=self.headers)
        response = await self.host.send(request, again=again)
        _require_success(response)
        return response


def limit_s(response: Response, now: float) -> float | None:
    """Return the seconds to wait for GitLab's rate limit; `None` if it was not exceeded.

    The limit on notes has no header that says when it ends
    (https://docs.gitlab.com/administration/settings/user_and_ip_rate_limits/).
    """
    if response.status != 429:
        return None
    pause_s = rest.named_limit_s(response, now, "RateLimit")
    return _LIMITED_S if pause_s is None else pause_s


def _require_success(response: Response) -> None:
    """Raise unless the request succeeded, with a hint if the token may lack a permission."""
    status, shown, detail = response.status, response.request.shown, _error_detail(response)
    if 200 <= status < 300:
        return
    role = "the token needs at least the role Reporter in the target project"
    if status == 401:
        message = f"GitLab does not accept the token{detail}"
        hint = "it may have expired or been revoked"
    elif status == 403 and "scope" in response.text:
        message, hint = f"GitLab refuses {shown}{detail}", "the token needs the scope `api`"
    elif status == 403:
        message, hint = f"GitLab refuses {shown}{detail}", role
    elif status in rest.GONE:
        message, hint = f"GitLab has no {shown}, or the token has no access to it", role
    else:
        message, hint = f"{shown} answered {status}{detail}", ""
    raise HostError(message, hint=hint, status=status)


def _error_detail(response: Response) -> str:
    """Return the message of an error response, to be appended to ours."""
    value = rest.json_object(response)
    found = map(value.get, ("error_description", "message", "error"))
    message = next((each for each in found if isinstance(each, str)), None)
    return f": {response.request.quoted(message)}" if message else ""
