"""Client for one repository on GitHub: REST, and GraphQL where REST has no endpoint.

Versions, pages, redirects and rate limits follow
https://docs.github.com/en/rest/using-the-rest-api.  Responses are validated against a schema, and
the token is only sent to the address of the API.
"""

import asyncio
import re
import zipfile
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote, urlencode, urljoin

from ci_eval.forge.github_errors import RULES, graphql_error, require_success
from ci_eval.forge.rest import GONE, Host, HostError, checked, items, read, token_in
from ci_eval.records.cases import Json, Stored
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.http import Request, Response, address, connecting, shown_address

M = TypeVar("M", bound=Stored)

API = "https://api.github.com"
"""The API of github.com; `GITHUB_API_URL` names the API of an Enterprise Server."""
API_VERSION = "2022-11-28"
"""The API version in requests; all servers know it."""
TOKENS = ("INPUT_GITHUB-TOKEN", "GITHUB_TOKEN", "GH_TOKEN")
"""Variables that may hold the token: the action's input first, then what users set."""
DOWNLOAD_S = 300.0
"""Timeout of a download, in seconds."""
MAX_PAGES = 200
"""Maximum number of pages of a list."""
BROKEN_ARCHIVE = (zipfile.BadZipFile, zlib.error, EOFError, OverflowError, RuntimeError, ValueError)
"""Exceptions that reading a broken archive was observed to raise, apart from `OSError`."""
WRITE_INTERVAL_S = 1.0
"""Seconds between two changes, as GitHub asks (REST API, "Best practices": "Pause between
mutative requests")."""
_REDIRECTS = (301, 302, 303, 307, 308)
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,99}/(?!\.\.?$)[\w.-]{1,100}", re.ASCII)
_NEXT = re.compile(r'<([^<>]*)>[^<>,]*;\s*rel="?next"?')


@asynccontextmanager
async def connected(context: RunContext) -> AsyncIterator["GitHub"]:
    """Connect to the repository that the environment names.

    Raises:
        HostError: the environment names no repository, or has no token.

    """
    env = context.env
    api = (env.get("GITHUB_API_URL") or API).rstrip("/")
    try:
        address(api)
    except ValueError as exc:
        raise HostError(f"GITHUB_API_URL: {exc}") from exc
    graphql = _graphql(env, api)
    repository = _repository(env)
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {_token(env)}",
        "User-Agent": "ci-eval",
        "X-GitHub-Api-Version": API_VERSION,
    }
    async with connecting(env) as net:
        yield GitHub(Host(net, context, RULES), api, repository, headers, graphql)


def _graphql(env: Mapping[str, str], api: str) -> str:
    """Return the GraphQL endpoint; an Enterprise Server has `/api/v3` and `/api/graphql`."""
    try:
        return address(env.get("GITHUB_GRAPHQL_URL") or f"{api.removesuffix('/v3')}/graphql")
    except ValueError as exc:
        raise HostError(f"GITHUB_GRAPHQL_URL: {exc}") from exc


def _repository(env: Mapping[str, str]) -> str:
    named = env.get("GITHUB_REPOSITORY", "")
    if not named:
        hint = "outside of a workflow, set GITHUB_REPOSITORY=owner/name"
        raise HostError("no GitHub repository is configured", hint=hint)
    if not _REPOSITORY.fullmatch(named):
        raise HostError(f"GITHUB_REPOSITORY must be 'owner/name', found {named[:100]!r}")
    return named


def _token(env: Mapping[str, str]) -> str:
    hint = "set GITHUB_TOKEN; in a workflow, to ${{ github.token }}"
    return token_in(env, TOKENS, HostError("no GitHub token is set", hint=hint))


@dataclass
class GitHub:
    """Client for one repository, one request at a time, as GitHub's guidelines ask.

    `needs` names the permission that a request needs, such as `checks: read`.  A path is relative
    to the repository, or to the root of the API if it begins with a slash.
    """

    host: Host
    api: str
    """The address of the API."""
    repository: str
    """Its `owner/name`."""
    headers: Mapping[str, str]
    graphql_url: str
    next_change_at: float = 0.0
    """The earliest time of the next change, on the clock of the event loop."""

    async def listed(
        self,
        path: str,
        kind: type[M],
        *,
        needs: str,
        member: str = "",
        most: int | None = None,
        **query: str | int,
    ) -> AsyncGenerator[M, None]:
        """Yield at most `most` items of the pages at `path`, requesting each when it is needed.

        A page is a list, or an object that holds one as its `member`.

        Raises:
            HostError: a page cannot be read, or does not fit the schema.

        """
        url = f"{self._url(path)}?{urlencode({'per_page': 100, **query})}"
        count = 0
        for _ in range(MAX_PAGES):
            response = await self._send(Request("GET", url), needs)
            for each in items(response, member):
                yield checked(each, kind, response)
                count += 1
                if count == most:
                    return
            url = self._next_page(response)
            if not url:
                return
        raise HostError(f"{shown_address(url)} has more than {MAX_PAGES} pages")

    async def one(self, path: str, kind: type[M], *, needs: str) -> M:
        """Return the resource at `path`.

        Raises:
            HostError: it cannot be read, or does not fit the schema.

        """
        response = await self._send(Request("GET", self._url(path)), needs)
        return checked(read(response), kind, response)

    async def post(
        self, path: str, body: Json, kind: type[M], *, needs: str, repeatable: bool = False
    ) -> M:
        """Create a resource at `path` and return it; `repeatable` if creating two does no harm.

        Raises:
            HostError: it was not created, or the outcome is unknown.

        """
        request = Request("POST", self._url(path), body)
        response = await self._send_change(request, needs, again=repeatable)
        return checked(read(response), kind, response)

    async def patch(self, path: str, body: Json, *, needs: str) -> None:
        """Change the resource at `path`, overwriting concurrent changes.

        Raises:
            HostError: it was not changed, or the outcome is unknown.

        """
        # A retry could overwrite what another job wrote in between.
        await self._send_change(Request("PATCH", self._url(path), body), needs, again=False)

    async def delete(self, path: str, *, needs: str) -> None:
        """Delete the resource at `path`, if it exists.

        Raises:
            HostError: it was not deleted, or the outcome is unknown.

        """
        try:
            await self._send_change(Request("DELETE", self._url(path)), needs)
        except HostError as exc:
            if exc.status not in GONE:
                raise

    async def graphql(
        self, query: str, variables: Mapping[str, Json], kind: type[M], *, needs: str
    ) -> M:
        """Return the `data` of a GraphQL query or mutation.

        Raises:
            HostError: the request fails, returns errors, or does not fit the schema.

        """
        body: Json = {"query": query, "variables": dict(variables)}
        send = self._send_change if query.lstrip().startswith("mutation") else self._send
        response = await send(Request("POST", self.graphql_url, body), needs)
        answer = read(response)
        if not isinstance(answer, dict):
            raise HostError(f"{response.request.shown} did not return an object")
        if errors := answer.get("errors"):
            raise graphql_error(errors, response, needs)
        return checked(answer.get("data"), kind, response)

    async def download(self, path: str, *, needs: str) -> bytes | None:
        """Return the file at `path`; `None` if it is gone.

        GitHub redirects to another host, which does not get the token.

        Raises:
            HostError: it cannot be read.

        """
        request = Request("GET", self._url(path), headers=self.headers)
        response = await self.host.send(request, again=True)
        if response.status in _REDIRECTS:
            request = Request("GET", _target(response), headers={"User-Agent": "ci-eval"})
            response = await self.host.send(request, again=True, within_s=DOWNLOAD_S)
            if response.status not in (200, *GONE):
                # The body may repeat the key in the address.
                raise HostError(f"{request.shown} answered {response.status}")
        if response.status in GONE:
            return None
        require_success(response, needs)
        return response.body

    def _url(self, path: str) -> str:
        if path.startswith("/"):
            return self.api + quote(path)
        return f"{self.api}/repos/{self.repository}/{quote(path)}"

    def _next_page(self, response: Response) -> str:
        """Return the address of the next page, which gets the token; empty at the end."""
        found = _NEXT.search(response.headers.get("Link", ""))
        if not found:
            return ""
        # The address of the next page may contain the id of the repository instead of its name.
        if not found[1].startswith(f"{self.api}/"):
            shown = shown_address(found[1])
            raise HostError(f"the next page of {response.request.shown} is elsewhere, at {shown}")
        return found[1]

    async def _send_change(self, request: Request, needs: str, *, again: bool = True) -> Response:
        """Send a change, not too soon after the last one."""
        now = asyncio.get_running_loop().time
        if (left_s := self.next_change_at - now()) > 0:
            await asyncio.sleep(left_s)
        try:
            return await self._send(request, needs, again=again)
        finally:
            self.next_change_at = now() + WRITE_INTERVAL_S

    async def _send(self, request: Request, needs: str, *, again: bool = True) -> Response:
        request = request._replace(headers=self.headers)
        response = await self.host.send(request, again=again)
        require_success(response, needs)
        return response


def _target(response: Response) -> str:
    """Return the target of a redirect; refuse one from HTTPS to HTTP."""
    source = response.request.url
    target = urljoin(source, response.headers.get("Location", ""))
    if not target.startswith(("https://", source.partition("://")[0] + "://")):
        raise HostError(f"{response.request.shown} redirects to {shown_address(target)}")
    return target
