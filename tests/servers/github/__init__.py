"""A stand-in for GitHub and the host of its artifacts, which holds us to what GitHub publishes.

Requests and responses must fit the descriptions in `api`; one that does not is a
violation, which fails the test when it ends.  The prose that they leave out is in
https://docs.github.com/en/rest/using-the-rest-api (versions, pages, limits, permissions).
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from servers.github import graph, rest
from servers.github.described import Operations
from servers.github.faults import Fault
from servers.github.rest import SIGNATURE, refusal
from servers.github.state import (
    ACTIONS,
    FORK,
    FORK_ID,
    HUMAN,
    OTHER_BOT,
    REPOSITORY,
    REPOSITORY_ID,
    Comment,
    Issue,
    PullRequest,
    State,
    sha,
    zipped,
)
from servers.loopback import Loopback, Reply, Request, serving

from ci_eval.forge import github as client
from ci_eval.pull_requests import sticky_comment
from ci_eval.runtime.retry import Backoff

__all__ = [
    "ACTIONS",
    "EVERYTHING",
    "FORK",
    "FORK_ID",
    "HUMAN",
    "OTHER_BOT",
    "REPOSITORY",
    "REPOSITORY_ID",
    "SIGNATURE",
    "TOKEN",
    "Comment",
    "FakeGitHub",
    "Fault",
    "Issue",
    "PullRequest",
    "ViolationError",
    "github",
    "refusal",
    "sha",
    "zipped",
]

TOKEN = "ghs_the-right-token-of-this-test"
EVERYTHING = frozenset(
    {"actions: read", "checks: write", "contents: read", "issues: write", "pull-requests: write"}
)


class ViolationError(AssertionError):
    """A request or an answer is not as GitHub describes it."""


class Storage(Loopback):
    """The other host, where artifacts are; who shows it a token gets nothing."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__()
        self.files = files

    def reply(self, request: Request) -> Reply:
        if "authorization" in request.headers:
            return Reply(b"<Error><Code>InvalidAuthenticationInfo</Code></Error>", 400)
        if request.query.get("sig") != [SIGNATURE]:
            return Reply(b"<Error><Code>AuthenticationFailed</Code></Error>", 403)
        found = self.files.get(request.path)
        if found is None:
            return Reply(b"<Error><Code>BlobNotFound</Code></Error>", 404)
        return Reply(found, content_type="application/zip")


class FakeGitHub(State, Loopback):
    """One repository, and a token with `permissions`."""

    def __init__(self) -> None:
        State.__init__(self)
        Loopback.__init__(self)
        self.storage = Storage(self.files)
        self.permissions = EVERYTHING
        self.faults: list[Fault] = []
        """What goes wrong; the first that fits a request happens to it."""
        self.violations: list[str] = []
        """What was not as GitHub describes it; a test that wants that takes it from here."""
        self.is_faithful = True
        """Whether answers must fit; where they are those of nobody's GitHub, they must not."""
        self.is_enterprise = False
        """Whether it is an Enterprise Server, which has other addresses."""
        self.remaining = 4999
        self._rest = rest.Rest(self, lambda: self.api, lambda: self.storage.url)
        self._graph = graph.Graph(self)
        self._operations = Operations()
        self._state_lock = threading.RLock()

    @property
    def api(self) -> str:
        """Where REST is."""
        return f"{self.url}/api/v3" if self.is_enterprise else self.url

    @property
    def env(self) -> dict[str, str]:
        """What a workflow is told."""
        return {"GITHUB_API_URL": self.api, "GITHUB_REPOSITORY": REPOSITORY, "GITHUB_TOKEN": TOKEN}

    def asked(self, part: str = "") -> list[str]:
        """Return the paths that were asked for, from the repository on."""
        paths = [each.path.removeprefix(f"/repos/{REPOSITORY}/") for each in self.requests]
        return [path for path in paths if part in path]

    def writes(self) -> list[str]:
        """Return the requested changes: the method and the path, or the mutation."""
        found = []
        for each in self.requests:
            if each.path.endswith("/graphql"):
                query = each.body["query"].split("{", 2)
                if query[0].strip().startswith("mutation"):
                    found.append(query[1].partition("(")[0].strip())
            elif each.method != "GET":
                found.append(f"{each.method} {each.path.removeprefix(f'/repos/{REPOSITORY}/')}")
        return found

    # --- What is answered ---------------------------------------------------------------------

    def reply(self, request: Request) -> Reply:
        try:
            return self._replied(request)
        finally:
            # The server would only hang up.
            if (exc := sys.exception()) is not None:
                self.violations.append(f"the stand-in itself failed: {exc!r}")

    def _replied(self, request: Request) -> Reply:
        with self._state_lock:
            fault = next((each for each in self.faults if each.happens_to(request)), Fault())
        fault.before()
        reply = fault.reply
        if reply is None or fault.is_made:
            with self._state_lock:
                reply = self._answered(request)
            fault.after()
        reply = fault.reply or reply
        return replace(reply, delay_s=reply.delay_s + fault.delay_s)

    def _answered(self, request: Request) -> Reply:
        reply = self._refused(request) or self._found(request)
        self.remaining -= 1
        limits = {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": str(self.remaining)}
        headers = {**limits, "x-ratelimit-reset": "1767229200", **reply.headers}
        return replace(reply, headers=headers)

    def _refused(self, request: Request) -> Reply | None:
        headers = request.headers
        if not headers.get("user-agent"):
            return refusal(403, "Request forbidden by administrative rules.")
        if headers.get("x-github-api-version") != "2022-11-28":
            return refusal(400, "The version is not supported")
        if headers.get("accept") != "application/vnd.github+json":
            self.violations.append(f"accept: {headers.get('accept')}")
        if headers.get("authorization") != f"Bearer {TOKEN}":
            return refusal(401, "Bad credentials")
        return None

    def _found(self, request: Request) -> Reply:
        if request.path == ("/api/graphql" if self.is_enterprise else "/graphql"):
            reply = self._graph.answer(request.body, self.permissions)
            self.violations += self._graph.violations
            self._graph.violations.clear()
            return reply
        path = request.path.removeprefix("/api/v3" if self.is_enterprise else "")
        path = path.replace(f"/repositories/{REPOSITORY_ID}/", f"/repos/{REPOSITORY}/", 1)
        found = self._operations.found(request.method, path)
        if found is None:
            self.violations.append(f"{request.method} {request.path} is no operation of GitHub's")
            return refusal(404, "Not Found")
        operation, arguments = found
        if faults := list(operation.faults_of_request(request, arguments)):
            self.violations += [f"{operation.name}: {each}" for each in faults]
            return refusal(422, f"Invalid request.\n\n{faults[0]}")
        if {REPOSITORY} != {f"{arguments.get('owner', 'octo')}/{arguments.get('repo', 'shop')}"}:
            return refusal(404, "Not Found")
        reply = self._rest.answer(operation, request, arguments, self.permissions)
        if self.is_faithful:
            faults = list(operation.faults_of_reply(reply))
            self.violations += [f"{operation.name} answered: {each}" for each in faults]
        return reply


@contextmanager
def github(*, writes_apart_s: float = 0.0) -> Iterator[FakeGitHub]:
    """Let both hosts answer; no test waits between two changes as long as a job would.

    Raises:
        ViolationError: something was not as GitHub describes it.

    """
    fake = FakeGitHub()
    with (
        patch.object(client, "WRITE_INTERVAL_S", writes_apart_s),
        patch.object(sticky_comment, "BACKOFF", Backoff(0.0, 0.0)),
        serving(fake),
        serving(fake.storage),
    ):
        yield fake
    if fake.violations:
        raise ViolationError("\n".join(fake.violations))
