"""One repository on GitHub, through its REST API, and its GraphQL API where REST does not reach.

Versions, pages, redirects and limits are as https://docs.github.com/en/rest/using-the-rest-api
describes them.  What comes back is checked against a schema before anybody sees it, and the token
goes to the address of the API alone.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar
from urllib.parse import quote, urlencode, urljoin

from ci_eval.forge.github_errors import (
    GONE,
    GitHubError,
    graphql_error,
    is_unwell,
    limited,
    require_success,
    said_by,
)
from ci_eval.forge.rest import Host, Manners, checked, items, read
from ci_eval.records.model import Json, Stored
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.http import Net, Request, Response, address, connecting, shown_address

M = TypeVar("M", bound=Stored)

API = "https://api.github.com"
"""Where github.com is asked; an Enterprise Server says in `GITHUB_API_URL` where it is."""
API_VERSION = "2022-11-28"
"""The version of the API that is asked for; all servers know it."""
TOKENS = ("INPUT_GITHUB-TOKEN", "GITHUB_TOKEN", "GH_TOKEN")
"""Where a token is looked for: the input of the action, then what workflows and people set."""
DOWNLOAD_S = 300.0
"""How long a file may take."""
MAX_PAGES = 200
"""How many pages a list may have."""
WRITES_APART_S = 1.0
"""How long after the last change the next one is asked for, as GitHub asks (REST API, "Best
practices": "Pause between mutative requests")."""
_REDIRECTS = (301, 302, 303, 307, 308)
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,99}/(?!\.\.?$)[\w.-]{1,100}", re.ASCII)
_NEXT = re.compile(r'<([^<>]*)>[^<>,]*;\s*rel="?next"?')


@asynccontextmanager
async def connected(context: RunContext) -> AsyncIterator["GitHub"]:
    """Be ready to ask about the repository that the environment names.

    Raises:
        GitHubError: it names none, or has no token.

    """
    env = context.env
    api = (env.get("GITHUB_API_URL") or API).rstrip("/")
    try:
        address(api)
    except ValueError as exc:
        raise GitHubError(f"GITHUB_API_URL: {exc}") from exc
    graphql = _graphql(env, api)
    repository = _repository(env)
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {_token(env)}",
        "User-Agent": "ci-eval",
        "X-GitHub-Api-Version": API_VERSION,
    }
    async with connecting(env) as net:
        yield GitHub(net, context, (api, repository), headers, graphql)


def _graphql(env: Mapping[str, str], api: str) -> str:
    """Return where GraphQL is: an Enterprise Server has `/api/v3` and `/api/graphql`."""
    try:
        return address(env.get("GITHUB_GRAPHQL_URL") or f"{api.removesuffix('/v3')}/graphql")
    except ValueError as exc:
        raise GitHubError(f"GITHUB_GRAPHQL_URL: {exc}") from exc


def _repository(env: Mapping[str, str]) -> str:
    named = env.get("GITHUB_REPOSITORY", "")
    if not named:
        raise GitHubError(
            "no repository on GitHub is named",
            hint="workflows are told of theirs; elsewhere set GITHUB_REPOSITORY=owner/name",
        )
    if not _REPOSITORY.fullmatch(named):
        raise GitHubError(f"GITHUB_REPOSITORY is {named[:100]!r}, and not like 'owner/name'")
    return named


def _token(env: Mapping[str, str]) -> str:
    name = next((each for each in TOKENS if env.get(each)), None)
    if name is None:
        raise GitHubError(
            "there is no token to ask GitHub with",
            hint="set GITHUB_TOKEN, in a workflow to ${{ github.token }}",
        )
    # Who tries to send any other shows it in his errors.
    if not re.fullmatch(r"[!-~]+", env[name]):
        raise GitHubError(f"{name} holds no token: a space, a line break or a letter that none has")
    return env[name]


class GitHub:
    """Asks GitHub about one repository, one request at a time, as it wants to be asked.

    `needs` always names the permission of the token that a request takes, such as `checks: read`.
    A path is below the repository, or from the root of the API where it begins with a slash.
    """

    def __init__(
        self,
        net: Net,
        context: RunContext,
        place: tuple[str, str],
        headers: Mapping[str, str],
        graphql: str,
    ) -> None:
        self._host = Host(net, context, Manners("GitHub", limited, said_by, is_unwell))
        self._api, self.repository = place
        """Where the API is; the owner and the name of the repository."""
        self._graphql = graphql
        self._headers = headers
        self._next_change_at = 0.0
        """When the next change may be asked for, on the clock of the event loop."""

    async def listed(
        self, path: str, kind: type[M], *, needs: str, member: str = "", **query: str | int
    ) -> AsyncGenerator[M, None]:
        """Yield what the pages at `path` list, page by page as it is taken.

        A page is a list, or an object that holds one as its `member`.

        Raises:
            GitHubError: it cannot be read, or is something else.

        """
        url = f"{self._at(path)}?{urlencode({'per_page': 100, **query})}"
        for _ in range(MAX_PAGES):
            response = await self._asked(Request("GET", url), needs)
            for each in items(response, member):
                yield checked(each, kind, response)
            url = self._following(response)
            if not url:
                return
        raise GitHubError(f"{shown_address(url)} has more than {MAX_PAGES} pages")

    async def one(self, path: str, kind: type[M], *, needs: str) -> M:
        """Return the one thing at `path`.

        Raises:
            GitHubError: it cannot be read, or is something else.

        """
        response = await self._asked(Request("GET", self._at(path)), needs)
        return checked(read(response), kind, response)

    async def post(
        self, path: str, body: Json, kind: type[M], *, needs: str, repeatable: bool = False
    ) -> M:
        """Make something new at `path` and return it; `repeatable` says that twice does no harm.

        Raises:
            GitHubError: it was not made, or nobody knows.

        """
        request = Request("POST", self._at(path), body)
        response = await self._changed(request, needs, again=repeatable)
        return checked(read(response), kind, response)

    async def patch(self, path: str, body: Json, *, needs: str, repeatable: bool = True) -> None:
        """Change what is at `path`.

        Raises:
            GitHubError: it was not changed, or nobody knows.

        """
        await self._changed(Request("PATCH", self._at(path), body), needs, again=repeatable)

    async def delete(self, path: str, *, needs: str) -> None:
        """Remove what is at `path`; that it is not there is no error.

        Raises:
            GitHubError: it was not removed, or nobody knows.

        """
        try:
            await self._changed(Request("DELETE", self._at(path)), needs)
        except GitHubError as exc:
            if exc.status not in GONE:
                raise

    async def graphql(
        self,
        query: str,
        variables: Mapping[str, Json],
        kind: type[M],
        *,
        needs: str,
        repeatable: bool = True,
    ) -> M:
        """Return the `data` that a query or a mutation of GraphQL answers.

        Raises:
            GitHubError: it answers errors, or something else, or cannot be asked.

        """
        body: Json = {"query": query, "variables": dict(variables)}
        asked = self._changed if query.lstrip().startswith("mutation") else self._asked
        response = await asked(Request("POST", self._graphql, body), needs, again=repeatable)
        answer = read(response)
        if not isinstance(answer, dict):
            raise GitHubError(f"{response.request.shown} answered no object")
        if errors := answer.get("errors"):
            raise graphql_error(errors, response, needs)
        return checked(answer.get("data"), kind, response)

    async def download(self, path: str, *, needs: str) -> bytes | None:
        """Return the file at `path`; `None` where it is gone.

        GitHub says where the file is, and that host is not told the token.

        Raises:
            GitHubError: it cannot be read.

        """
        request = Request("GET", self._at(path), headers=self._headers)
        response = await self._host.send(request, again=True)
        if response.status in _REDIRECTS:
            request = Request("GET", _target(response), headers={"User-Agent": "ci-eval"})
            response = await self._host.send(request, again=True, within_s=DOWNLOAD_S)
            if response.status not in (200, *GONE):
                # What the other host says may hold the key that is in the address.
                raise GitHubError(f"{request.shown} answered {response.status}")
        if response.status in GONE:
            return None
        require_success(response, needs)
        return response.body

    def _at(self, path: str) -> str:
        if path.startswith("/"):
            return self._api + quote(path)
        return f"{self._api}/repos/{self.repository}/{quote(path)}"

    def _following(self, response: Response) -> str:
        """Return the address of the next page, which is told the token; nothing at the end."""
        found = _NEXT.search(response.headers.get("Link", ""))
        if not found:
            return ""
        # The address of a next page may name the repository by its number.
        if not found[1].startswith(f"{self._api}/"):
            shown = shown_address(found[1])
            raise GitHubError(f"{response.request.shown} goes on elsewhere, at {shown}")
        return found[1]

    async def _changed(self, request: Request, needs: str, *, again: bool = True) -> Response:
        """Ask for a change, not too soon after the last one."""
        now = asyncio.get_running_loop().time
        if (left_s := self._next_change_at - now()) > 0:
            await asyncio.sleep(left_s)
        try:
            return await self._asked(request, needs, again=again)
        finally:
            self._next_change_at = now() + WRITES_APART_S

    async def _asked(self, request: Request, needs: str, *, again: bool = True) -> Response:
        request = request._replace(headers=self._headers)
        response = await self._host.send(request, again=again)
        require_success(response, needs)
        return response


def _target(response: Response) -> str:
    """Return where a redirect leads; never from what is encrypted to what is not."""
    here = response.request.url
    there = urljoin(here, response.headers.get("Location", ""))
    if not there.startswith(("https://", here.partition("://")[0] + "://")):
        raise GitHubError(f"{response.request.shown} leads to {shown_address(there)}")
    return there
