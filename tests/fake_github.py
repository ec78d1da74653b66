"""A stand-in for GitHub's REST API and the host of its artifacts, as its reference describes them.

https://docs.github.com/en/rest: "Using the REST API" (versions, pagination, rate limits,
troubleshooting), "Actions/Artifacts", "Actions/Workflow runs", "Checks/Runs", "Commits/Commits".
"""

import io
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from loopback import Loopback, Reply, Request, as_json, serving

TOKEN = "ghs_the-right-token-of-this-test"
REPOSITORY = "octo/shop"
REPOSITORY_ID = 4711
FORK_ID = 4712
SIGNATURE = "sig-the-secret-of-an-address"
EVERYTHING = frozenset({"actions: read", "checks: write", "contents: read"})
_DOCS = "https://docs.github.com/rest"
_CONCLUSIONS = (
    *("action_required", "cancelled", "failure", "neutral", "success", "skipped", "stale"),
    "timed_out",
)
_MAX_TEXT = 65_535


def sha(number: int) -> str:
    """Return the name of a commit."""
    return f"{number:040x}"


def zipped(members: Mapping[str, bytes]) -> bytes:
    """Return an archive."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def refusal(status: int, message: str, **headers: str) -> Reply:
    """Return an error as GitHub has it."""
    body = {"message": message, "documentation_url": _DOCS, "status": str(status)}
    return as_json(body, status, headers=headers)


class Storage(Loopback):
    """The other host, where artifacts are; who shows it a token gets nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, bytes] = {}

    def reply(self, request: Request) -> Reply:
        if "authorization" in request.headers:
            return Reply(b"<Error><Code>InvalidAuthenticationInfo</Code></Error>", 400)
        if request.query.get("sig") != [SIGNATURE]:
            return Reply(b"<Error><Code>AuthenticationFailed</Code></Error>", 403)
        found = self.files.get(request.path)
        if found is None:
            return Reply(b"<Error><Code>BlobNotFound</Code></Error>", 404)
        return Reply(found, content_type="application/zip")


class FakeGitHub(Loopback):
    """One repository, and a token with `permissions`."""

    def __init__(self) -> None:
        super().__init__()
        self.storage = Storage()
        self.permissions = EVERYTHING
        self.artifacts: list[dict[str, Any]] = []
        self.workflows: dict[int, str] = {}
        """The files of workflows, by their runs."""
        self.check_runs: list[dict[str, Any]] = []
        self.branches: dict[str, list[str]] = {"main": []}
        """The commits of branches, the newest first."""
        self.missing: set[str] = set()
        """Commits that were not pushed."""
        self.remaining = 4999

    @property
    def env(self) -> dict[str, str]:
        """What a workflow is told."""
        return {
            "GITHUB_API_URL": self.url,
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_TOKEN": TOKEN,
        }

    def asked(self, part: str = "") -> list[str]:
        """Return the paths that were asked for, from the repository on."""
        paths = [each.path.removeprefix(f"/repos/{REPOSITORY}/") for each in self.requests]
        return [path for path in paths if part in path]

    # --- What is there ------------------------------------------------------------------------

    def add_artifact(
        self,
        content: bytes | Mapping[str, bytes],
        head_sha: str,
        *,
        name: str = "ci-eval-baseline",
        branch: str = "main",
        repository: int = REPOSITORY_ID,
        workflow: str = ".github/workflows/evaluate.yml",
        **more: Any,
    ) -> int:
        """Add an artifact, the newest, and return its id."""
        number = 100 + len(self.artifacts)
        archive = content if isinstance(content, bytes) else zipped(content)
        self.storage.files[f"/{number}.zip"] = archive
        self.workflows[1000 + number] = workflow
        url = f"{self.url}/repos/{REPOSITORY}/actions/artifacts/{number}"
        self.artifacts.insert(
            0,
            {
                "id": number,
                "node_id": "MDg6QXJ0aWZhY3Qx",
                "name": name,
                "size_in_bytes": len(archive),
                "url": url,
                "archive_download_url": f"{url}/zip",
                "expired": False,
                "created_at": f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z",
                "expires_at": "2026-04-01T00:00:00Z",
                "updated_at": "2026-01-01T00:00:00Z",
                "workflow_run": {
                    "id": 1000 + number,
                    "repository_id": REPOSITORY_ID,
                    "head_repository_id": repository,
                    "head_branch": branch,
                    "head_sha": head_sha,
                },
                **more,
            },
        )
        return number

    def add_check_run(
        self,
        commit: str,
        text: str | None,
        *,
        name: str = "ci-eval baseline",
        slug: str = "github-actions",
    ) -> int:
        """Add a check run that somebody made, and return its id."""
        sent = {"name": name, "head_sha": commit}
        output = {"title": None, "summary": None, "text": text}
        return self._made(sent, output, slug)

    def _made(self, sent: dict[str, Any], output: dict[str, Any], slug: str) -> int:
        number = 500 + len(self.check_runs)
        self.check_runs.insert(
            0,
            {
                "id": number,
                "head_sha": sent["head_sha"],
                "node_id": "MDg6Q2hlY2tSdW40",
                "external_id": sent.get("external_id", ""),
                "url": f"{self.url}/repos/{REPOSITORY}/check-runs/{number}",
                "status": sent.get("status", "queued"),
                "conclusion": sent.get("conclusion"),
                "started_at": "2026-01-01T00:00:00Z",
                "completed_at": "2026-01-01T00:00:00Z",
                "output": {**output, "annotations_count": 0, "annotations_url": ""},
                "name": sent["name"],
                "check_suite": {"id": 5},
                "app": {"id": 15368, "slug": slug, "name": "GitHub Actions"},
                "pull_requests": [],
            },
        )
        return number

    # --- What is answered ---------------------------------------------------------------------

    def reply(self, request: Request) -> Reply:
        reply = self._refused(request) or self._found(request)
        self.remaining -= 1
        limits = {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": str(self.remaining)}
        headers = {**limits, "x-ratelimit-reset": "1767229200", **reply.headers}
        return Reply(reply.body, reply.status, reply.content_type, headers)

    def _refused(self, request: Request) -> Reply | None:
        headers = request.headers
        if not headers.get("user-agent"):
            return refusal(403, "Request forbidden by administrative rules.")
        if headers.get("x-github-api-version") != "2022-11-28":
            return refusal(400, "The version is not supported")
        assert headers["accept"] == "application/vnd.github+json"
        if headers.get("authorization") != f"Bearer {TOKEN}":
            return refusal(401, "Bad credentials")
        return None

    def _found(self, request: Request) -> Reply:
        by_number = f"/repositories/{REPOSITORY_ID}/"
        for prefix in (f"/repos/{REPOSITORY}/", by_number):
            if request.path.startswith(prefix):
                path = request.path.removeprefix(prefix)
                for pattern, permission, answer in self._routes(request):
                    if found := re.fullmatch(pattern, path):
                        return self._permitted(permission) or answer(request, *found.groups())
        return refusal(404, "Not Found")

    def _routes(self, request: Request) -> Iterator[tuple[str, str, Callable[..., Reply]]]:
        if request.body is not None:
            yield "check-runs", "checks: write", self._create_check_run
            return
        yield "actions/artifacts", "actions: read", self._list_artifacts
        yield r"actions/artifacts/(\d+)/zip", "actions: read", self._download
        yield r"actions/runs/(\d+)", "actions: read", self._workflow_run
        yield r"commits/([^/]+)/check-runs", "checks: read", self._list_check_runs
        yield "commits", "contents: read", self._list_commits

    def _permitted(self, permission: str) -> Reply | None:
        enough = {permission, permission.replace("read", "write")}
        if enough & self.permissions:
            return None
        return refusal(403, "Resource not accessible by integration")

    def _list_artifacts(self, request: Request) -> Reply:
        found = [each for each in self.artifacts if [each["name"]] == request.query["name"]]
        return self._page(request, found, {"name"}, member="artifacts")

    def _download(self, request: Request, number: str) -> Reply:
        for each in self.artifacts:
            if each["id"] == int(number):
                if each["expired"]:
                    return refusal(410, "Artifact has expired")
                there = f"{self.storage.url}/{number}.zip?{urlencode({'sig': SIGNATURE})}"
                return Reply(status=302, headers={"Location": there})
        return refusal(404, "Not Found")

    def _workflow_run(self, request: Request, number: str) -> Reply:
        path = self.workflows[int(number)]
        return as_json({"id": int(number), "path": path, "conclusion": "success"})

    def _list_check_runs(self, request: Request, commit: str) -> Reply:
        if commit in self.missing:
            return refusal(422, f"No commit found for SHA: {commit}")
        assert request.query["filter"] == ["all"]
        names = request.query["check_name"]
        found = [
            each
            for each in self.check_runs
            if (each["head_sha"], [each["name"]]) == (commit, names)
        ]
        return self._page(request, found, {"check_name", "filter"}, member="check_runs")

    def _list_commits(self, request: Request) -> Reply:
        (branch,) = request.query["sha"]
        if branch not in self.branches:
            return refusal(404, "Not Found")
        found = [{"sha": each, "commit": {"message": "m"}} for each in self.branches[branch]]
        return self._page(request, found, {"sha"})

    def _create_check_run(self, request: Request) -> Reply:
        sent = request.body
        known = {"name", "head_sha", "status", "conclusion", "external_id", "output"}
        assert sent.keys() <= known, sent.keys() - known
        if sent["head_sha"] in self.missing:
            return refusal(422, f"No commit found for SHA: {sent['head_sha']}")
        assert sent["status"] == "completed"
        assert sent["conclusion"] in _CONCLUSIONS
        output = sent["output"]
        assert output.keys() == {"title", "summary", "text"}
        if any(len(output[part].encode()) > _MAX_TEXT for part in ("summary", "text")):
            return refusal(422, "Invalid request. Only 65535 characters are allowed.")
        number = self._made(sent, output, "github-actions")
        return as_json({"id": number}, 201)

    def _page(self, request: Request, found: list[Any], known: set[str], member: str = "") -> Reply:
        assert request.query.keys() <= known | {"per_page", "page"}
        query = {name: values[0] for name, values in request.query.items()}
        size, page = min(int(query.get("per_page", "30")), 100), int(query.get("page", "1"))
        part = found[(page - 1) * size : page * size]
        path = request.path.replace(f"/repos/{REPOSITORY}/", f"/repositories/{REPOSITORY_ID}/")
        links = []
        if page > 1:
            links.append(("prev", page - 1))
        if page * size < len(found):
            links += [("next", page + 1), ("last", -(-len(found) // size))]
        shown = (
            f'<{self.url}{path}?{urlencode({**query, "page": number})}>; rel="{name}"'
            for name, number in links
        )
        headers = {"Link": ", ".join(shown)} if links else {}
        body = {"total_count": len(found), member: part} if member else part
        return as_json(body, headers=headers)


@contextmanager
def github() -> Iterator[FakeGitHub]:
    """Let both hosts answer."""
    fake = FakeGitHub()
    with serving(fake), serving(fake.storage):
        yield fake
