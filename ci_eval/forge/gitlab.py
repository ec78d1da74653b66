"""One project on GitLab, through its REST API.

Pages, limits and errors are as https://docs.gitlab.com/api/rest/ describes them, permissions as
https://docs.gitlab.com/api/notes/ and https://docs.gitlab.com/ci/jobs/ci_job_token/ do.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar
from urllib.parse import quote, urlencode

from ci_eval.forge.rest import Host, HostError, Manners, checked, items, read
from ci_eval.records.model import Json, Stored
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.http import Net, Request, Response, address, connecting, retry_after
from ci_eval.text.json_text import NotJsonError, parse_json

M = TypeVar("M", bound=Stored)

API = "https://gitlab.com/api/v4"
"""Where gitlab.com is asked; jobs are told by `CI_API_V4_URL` where their GitLab is."""
TOKENS = ("CI_EVAL_GITLAB_TOKEN", "GITLAB_TOKEN")
"""Where a token is looked for; `CI_JOB_TOKEN` is none of them, for it may only read notes."""
MAX_PAGES = 200
"""How many pages a list may have."""
GONE = (404, 410)
_LIMITED_S = 60.0
"""How long to wait after a limit that does not say so: those of notes are for each minute."""


@asynccontextmanager
async def connected(context: RunContext, project: str) -> AsyncIterator["GitLab"]:
    """Be ready to ask about a project, by its number or its path.

    Raises:
        HostError: the environment has no token, or a wrong address.

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
            # What the runner trusts in order to clone; nobody else's server is asked with it.
            net = await stack.enter_async_context(
                connecting(env, env.get("CI_SERVER_TLS_CA_FILE", ""))
            )
        except OSError as exc:
            raise HostError(f"CI_SERVER_TLS_CA_FILE: {exc.strerror or exc}") from exc
        yield GitLab(net, context, api, project, headers)


def _token(env: Mapping[str, str]) -> str:
    name = next((each for each in TOKENS if env.get(each)), None)
    if name is None:
        raise HostError(
            "there is no token to write on GitLab with",
            hint="set the variable GITLAB_TOKEN to a project access token with the scope `api` and "
            "the role Reporter: what jobs have by themselves, CI_JOB_TOKEN, only reads notes",
            status=401,
        )
    # Who tries to send any other shows it in his errors.
    if not re.fullmatch(r"[!-~]+", env[name]):
        raise HostError(f"{name} holds no token: a space, a line break or a letter that none has")
    return env[name]


class GitLab:
    """Asks GitLab about one project, as it wants to be asked.

    A path is below the project, or from the root of the API where it begins with a slash.
    """

    def __init__(
        self, net: Net, context: RunContext, api: str, project: str, headers: Mapping[str, str]
    ) -> None:
        self._host = Host(net, context, Manners("GitLab", limited, _said_by))
        self._api = api
        self._project = f"{api}/projects/{quote(project, safe='')}/"
        self._headers = headers

    async def listed(self, path: str, kind: type[M], **query: str | int) -> AsyncGenerator[M, None]:
        """Yield what the pages at `path` list, page by page as it is taken.

        Raises:
            HostError: it cannot be read, or is something else.

        """
        page = 1
        for _ in range(MAX_PAGES):
            found = urlencode({**query, "per_page": 100, "page": page})
            response = await self._asked(Request("GET", f"{self._at(path)}?{found}"))
            for each in items(response):
                yield checked(each, kind, response)
            # The address in `Link` may be of another name of the server; its number is enough.
            following = response.headers.get("X-Next-Page", "")
            if not re.fullmatch("[0-9]{1,9}", following) or int(following) <= page:
                return
            page = int(following)
        raise HostError(f"{response.request.shown} has more than {MAX_PAGES} pages")

    async def one(self, path: str, kind: type[M]) -> M:
        """Return the one thing at `path`.

        Raises:
            HostError: it cannot be read, or is something else.

        """
        response = await self._asked(Request("GET", self._at(path)))
        return checked(read(response), kind, response)

    async def post(self, path: str, body: Json, kind: type[M]) -> M:
        """Make something new at `path` and return it.

        Raises:
            HostError: it was not made, or nobody knows.

        """
        response = await self._asked(Request("POST", self._at(path), body), again=False)
        return checked(read(response), kind, response)

    async def put(self, path: str, body: Json) -> None:
        """Change what is at `path`; what others changed in the meantime is overwritten.

        Raises:
            HostError: it was not changed, or nobody knows.

        """
        # Sent twice it could overwrite what another job wrote in between.
        await self._asked(Request("PUT", self._at(path), body), again=False)

    async def delete(self, path: str) -> None:
        """Remove what is at `path`; that it is not there is no error.

        Raises:
            HostError: it was not removed, or nobody knows.

        """
        try:
            await self._asked(Request("DELETE", self._at(path)))
        except HostError as exc:
            if exc.status not in GONE:
                raise

    def _at(self, path: str) -> str:
        return self._api + path if path.startswith("/") else self._project + path

    async def _asked(self, request: Request, *, again: bool = True) -> Response:
        request = request._replace(headers=self._headers)
        response = await self._host.send(request, again=again)
        _require_success(response)
        return response


def limited(response: Response, now: float) -> float | None:
    """Return how long to wait as GitLab's limits say; `None` where there is none in the way.

    The limit of notes tells in no header when it ends
    (https://docs.gitlab.com/administration/settings/user_and_ip_rate_limits/).
    """
    if response.status != 429:
        return None
    if (pause_s := retry_after(response.headers, now)) is not None:
        return pause_s
    reset = response.headers.get("RateLimit-Reset", "")
    if response.headers.get("RateLimit-Remaining") == "0" and re.fullmatch("[0-9]{1,12}", reset):
        return max(0.0, int(reset) - now)
    return _LIMITED_S


def _require_success(response: Response) -> None:
    """Go on only where all went well; else say what the token lacks, where it may be that."""
    status, shown, said = response.status, response.request.shown, _said_by(response)
    if 200 <= status < 300:
        return
    role = "the token needs the role Reporter or a higher one, in the project of the merge request"
    if status == 401:
        message, hint = f"GitLab does not know the token{said}", "it may have ended or been revoked"
    elif status == 403 and "scope" in response.text:
        message, hint = f"GitLab refuses {shown}{said}", "the token needs the scope `api`"
    elif status == 403:
        message, hint = f"GitLab refuses {shown}{said}", role
    elif status in GONE:
        message, hint = f"GitLab has no {shown}, or not for this token", role
    else:
        message, hint = f"{shown} answered {status}{said}", ""
    raise HostError(message, hint=hint, status=status)


def _said_by(response: Response) -> str:
    """Return what an error says of itself, to be put behind ours."""
    try:
        value = parse_json(response.text)
    except NotJsonError:
        return ""
    names = ("error_description", "message", "error")
    found = [value.get(name) for name in names] if isinstance(value, dict) else []
    said = next((each for each in found if isinstance(each, str)), None)
    return f": {response.request.quoted(said)}" if said else ""
