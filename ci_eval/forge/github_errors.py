"""GitHub's error responses: rate limits, missing permissions and GraphQL errors."""

import re

from ci_eval.forge import rest
from ci_eval.forge.rest import GONE, HostError, HostRules
from ci_eval.records.cases import Json
from ci_eval.runtime.http import Response

_LIMITED_S = 60.0
"""Seconds to wait if a rate limit states no time: the minimum that GitHub asks for."""
_GRAPHQL_STATUSES = {
    "FORBIDDEN": 403,
    "INSUFFICIENT_SCOPES": 403,
    "NOT_FOUND": 404,
    "UNKNOWN": 400,
    "UNPROCESSABLE": 422,
}
"""The HTTP status that REST would have returned, by type of GraphQL error."""
_PERMISSION = re.compile(r"\b([a-z_]{1,50})=(read|write|admin)\b")
_NOT_A_PERMISSION = re.compile("is locked|was archived|SAML|IP allow list")
"""Parts of GitHub's messages about refusals that no permission would prevent."""
_MAX_DETAILS = 3
_MAX_NAMED = 500
"""Maximum length that is read of the header with permissions, in characters."""


def limit_s(response: Response, now: float) -> float | None:
    """Return the seconds to wait for GitHub's rate limit; `None` if it was not exceeded."""
    if response.status not in (403, 429) and not _is_graphql_limit(response):
        return None
    if (pause_s := rest.named_limit_s(response, now, "X-RateLimit")) is not None:
        return pause_s
    is_limit = response.status in (200, 429) or "rate limit" in response.text.casefold()
    return _LIMITED_S if is_limit else None


def is_server_error(response: Response) -> bool:
    """Return True if the server failed, which GraphQL may report with status 200."""
    if rest.is_server_error(response):
        return True
    first = _graphql_failure(response)
    return first is not None and _kind(first) not in _GRAPHQL_STATUSES


def _is_graphql_limit(response: Response) -> bool:
    """Return True if GraphQL's rate limit was exceeded, reported with status 200."""
    first = _graphql_failure(response)
    if first is None:
        return False
    is_secondary = "secondary rate limit" in str(first.get("message")).casefold()
    return is_secondary or _kind(first) in ("RATE_LIMIT", "RATE_LIMITED")


def _first_error(errors: Json) -> dict[str, Json] | None:
    first = errors[0] if isinstance(errors, list) and errors else None
    return first if isinstance(first, dict) else None


def _graphql_failure(response: Response) -> dict[str, Json] | None:
    """Return the first error of a GraphQL response with status 200, if any."""
    is_graphql = response.status == 200 and response.request.url.endswith("/graphql")
    if not is_graphql or '"errors"' not in response.text:
        return None
    return _first_error(rest.json_object(response).get("errors"))


def _kind(error: dict[str, Json]) -> str:
    """Return the type of a GraphQL error.

    An older server's error about an unknown query has no type, only `extensions`.
    """
    return str(error.get("type") or ("UNKNOWN" if "extensions" in error else ""))


def graphql_error(errors: Json, response: Response, needs: str) -> HostError:
    """Return the first GraphQL error as an exception."""
    first = _first_error(errors) or {}
    detail = response.request.quoted(str(first.get("message", "no message")))
    status = _GRAPHQL_STATUSES.get(_kind(first))
    return HostError(
        f"GitHub refuses {response.request.shown}: {detail}",
        hint=_permission(needs, response) if status in (403, 404) else "",
        status=status,
    )


def _permission(needs: str, response: Response) -> str:
    """Return a hint with the missing permission: `needs`, unless GitHub names others."""
    named = response.headers.get("X-Accepted-GitHub-Permissions", "")
    accepted = [found for each in named[:_MAX_NAMED].split(";") if (found := _granted(each))]
    if not any(_covers(needs, each) for each in accepted):
        needs = "}` or `{".join(map(", ".join, accepted)) or needs
    hint = f"the token needs `permissions: {{{needs}}}`"
    return hint + (", which pull requests from forks never get" if needs.endswith("write") else "")


def _granted(named: str) -> list[str]:
    """Return permissions in workflow syntax; GitHub's is `issues=write,contents=read`.

    See https://docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api, "Resource
    not accessible".
    """
    return [
        f"{name.replace('_', '-')}: {level}"
        for name, level in _PERMISSION.findall(named)
        if name != "metadata"  # every token has it
    ]


def _covers(needs: str, accepted: list[str]) -> bool:
    """Return True if `needs` is enough for a request; a write permission includes reading."""
    return accepted in ([needs], [needs.replace(": write", ": read")])


def require_success(response: Response, needs: str) -> None:
    """Raise unless the request succeeded, with a hint if the token may lack a permission."""
    status, shown = response.status, response.request.shown
    if 200 <= status < 300:
        return
    detail = error_detail(response)
    hint = _permission(needs, response)
    if status == 401:
        message = f"GitHub does not accept the token{detail}"
        hint = "in a workflow, use ${{ github.token }}"
    elif status == 403:
        message = f"GitHub refuses {shown}{detail}"
        hint = "" if _NOT_A_PERMISSION.search(detail) else hint
    elif status in GONE:
        message = f"GitHub has no {shown}, or the token has no access to it"
    elif 300 <= status < 400:
        message, hint = f"{shown} answered {response.shown}", "was the repository renamed?"
    else:
        message, hint = f"{shown} answered {status}{detail}", ""
    raise HostError(message, hint=hint, status=status)


def error_detail(response: Response) -> str:
    """Return the message and the details of an error response, to be appended to ours."""
    value = rest.json_object(response)
    errors = value.get("errors")
    details = errors if isinstance(errors, list) else []
    parts = [value.get("message")]
    parts += [each.get("message") for each in details[:_MAX_DETAILS] if isinstance(each, dict)]
    shown = ": ".join(each for each in parts if isinstance(each, str))
    return f": {response.request.quoted(shown)}" if shown else ""


RULES = HostRules("GitHub", limit_s, error_detail, is_server_error)
