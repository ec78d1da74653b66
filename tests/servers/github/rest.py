"""GitHub's REST API on a `State`, as https://docs.github.com/en/rest describes it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from servers.github import shown
from servers.github.described import Operation, filled
from servers.github.state import HUMAN, MAX_COMMENT, REPOSITORY, REPOSITORY_ID, Issue, State
from servers.loopback import Reply, Request, as_json

SIGNATURE = "sig-the-secret-of-an-address"
DOCS = "https://docs.github.com/rest"
NOT_ACCESSIBLE = "Resource not accessible by integration"
_MAX_TEXT = 65_535
_TALK = ("issues", "pull-requests")
_PERMISSIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "actions": (("actions",), "read"),
    "checks/create": (("checks",), "write"),
    "checks/update": (("checks",), "write"),
    "checks": (("checks",), "read"),
    "issues/create": (("issues",), "write"),
    "issues/create-comment": (_TALK, "write"),
    "issues/delete-comment": (_TALK, "write"),
    "issues/list-for-repo": (("issues",), "read"),
    "issues/update": (_TALK, "write"),
    "issues/update-comment": (_TALK, "write"),
    "issues": (_TALK, "read"),
    "pulls": (("pull-requests",), "read"),
    "repos": (("contents",), "read"),
    "repos/list-pull-requests-associated-with-commit": (("pull-requests",), "read"),
}
"""The permissions that an operation or its category takes: any of them, and how much of it."""


def refusal(status: int, message: str, *, errors: Any = None, **headers: str) -> Reply:
    """Return an error as GitHub has it."""
    body = {"message": message, "documentation_url": DOCS, "status": str(status)}
    if errors is not None:
        # Who names what is wrong says no status.
        del body["status"]
        body["errors"] = errors
    return as_json(body, status, headers=headers)


def invalid(resource: str, message: str, field: str = "data") -> Reply:
    """Return the response to invalid values."""
    error = {"resource": resource, "code": "unprocessable", "field": field, "message": message}
    return refusal(422, "Validation Failed", errors=[error])


def _unassigned(names: list[str]) -> Reply:
    error = {"resource": "Issue", "code": "invalid", "field": "assignees", "value": names}
    return refusal(422, "Validation Failed", errors=[error])


def body_fault(body: str) -> str:
    """Return the problem of a comment's body, if any."""
    if not body.strip():
        return "Body can't be blank"
    too_long = f"Body is too long (maximum is {MAX_COMMENT} characters)"
    return too_long if len(body) > MAX_COMMENT else ""


def may(permissions: frozenset[str], names: Iterable[str], level: str) -> bool:
    """Return True if a token with `permissions` has one of `names`."""
    enough = {f"{name}: {each}" for name in names for each in (level, "write")}
    return bool(enough & permissions)


def accepted(names: Iterable[str], level: str) -> str:
    """Return permissions as the header of an answer names them."""
    return "; ".join(f"{name.replace('-', '_')}={level}" for name in names)


class Rest:
    """Answers what is asked of one repository."""

    def __init__(self, state: State, url: Callable[[], str], storage: Callable[[], str]) -> None:
        self._state = state
        self._url = url
        self._storage = storage

    def answer(
        self,
        operation: Operation,
        request: Request,
        arguments: Mapping[str, str],
        permissions: frozenset[str],
    ) -> Reply:
        """Return GitHub's response to a request that fits its description."""
        headers = {}
        category = operation.name.partition("/")[0]
        wanted = _PERMISSIONS.get(operation.name) or _PERMISSIONS.get(category)
        if wanted:
            headers["X-Accepted-GitHub-Permissions"] = accepted(*wanted)
            if not may(permissions, *wanted):
                return refusal(403, NOT_ACCESSIBLE, **headers)
        name = operation.name.replace("/", "_").replace("-", "_")
        work: Callable[..., Any] = getattr(self, f"_{name}")
        found = work(request, **{key: each for key, each in arguments.items() if key not in _REPO})
        reply = found if isinstance(found, Reply) else self._filled(found, operation)
        return replace(reply, headers={**headers, **reply.headers})

    def _filled(self, value: Any, operation: Operation) -> Reply:
        status = 201 if operation.method == "POST" else 200
        links: dict[str, str] = {}
        if isinstance(value, _Page):
            value, links = value.value, value.headers
        return as_json(filled(operation.answers(status) or {}, value), status, headers=links)

    def _at(self, path: str) -> str:
        return f"{self._url()}/repos/{REPOSITORY}/{path}"

    # --- People and comments ------------------------------------------------------------------

    def _users_get_authenticated(self, _: Request) -> Any:
        if self._state.me.type == "Bot":
            return refusal(403, NOT_ACCESSIBLE)
        return shown.user(self._state.me)

    def _issues_list_comments(self, request: Request, issue_number: str) -> Any:
        if int(issue_number) not in self._state.pulls:
            return refusal(404, "Not Found")
        found = [each for each in self._state.comments if each.number == int(issue_number)]
        return self._page(request, found, lambda each: shown.comment(each, self._at))

    def _issues_get_comment(self, _: Request, comment_id: str) -> Any:
        found = self._state.comment(int(comment_id))
        return shown.comment(found, self._at) if found else refusal(404, "Not Found")

    def _issues_create_comment(self, request: Request, issue_number: str) -> Any:
        number = int(issue_number)
        pull = self._state.pulls.get(number)
        if pull is None and number not in self._state.issues:
            return refusal(404, "Not Found")
        if pull and pull.locked:
            return refusal(403, "Unable to create comment because issue is locked.")
        if fault := body_fault(request.body["body"]):
            return invalid("IssueComment", fault)
        made = self._state.add_comment(request.body["body"], number=number, author=self._state.me)
        return shown.comment(made, self._at)

    def _issues_update_comment(self, request: Request, comment_id: str) -> Any:
        found = self._state.comment(int(comment_id))
        if found is None:
            return refusal(404, "Not Found")
        if fault := body_fault(request.body["body"]):
            return invalid("IssueComment", fault)
        found.edit(request.body["body"], self._state.tick())
        return shown.comment(found, self._at)

    def _issues_delete_comment(self, _: Request, comment_id: str) -> Reply:
        found = self._state.comment(int(comment_id))
        if found is None:
            return refusal(404, "Not Found")
        self._state.comments.remove(found)
        return Reply(status=204)

    # --- Issues -------------------------------------------------------------------------------

    def _issues_list_for_repo(self, request: Request) -> Any:
        """Return issues and pull requests, as GitHub does."""
        query, state = _first(request), self._state
        every = [*state.issues.values(), *state.pulls.values()]
        found = [
            each
            for each in every
            if query.get("state", "open") in ("all", each.state)
            and query.get("creator", self._creator(each)) == self._creator(each)
        ]
        found.sort(key=lambda each: each.number, reverse=query.get("direction", "desc") == "desc")
        return self._page(request, found, self._shown_issue)

    def _issues_create(self, request: Request) -> Any:
        sent = request.body
        if unknown := {*sent.get("assignees", ())} - self._state.collaborators:
            return _unassigned(sorted(unknown))
        if fault := body_fault(sent.get("body", "x")):
            return invalid("Issue", fault, "body")
        made = self._state.add_issue(
            sent.get("body", ""),
            author=self._state.me,
            title=sent["title"],
            labels=sent.get("labels", []),
            assignees=sent.get("assignees", []),
        )
        return self._shown_issue(made)

    def _issues_update(self, request: Request, issue_number: str) -> Any:
        found = self._state.issues.get(int(issue_number))
        if found is None:
            return refusal(404, "Not Found")
        sent = request.body
        if fault := body_fault(sent.get("body", "x")):
            return invalid("Issue", fault, "body")
        found.body = sent.get("body", found.body)
        found.state = sent.get("state", found.state)
        found.reason = sent.get("state_reason", found.reason)
        return self._shown_issue(found)

    def _creator(self, each: Any) -> str:
        return each.author.login if isinstance(each, Issue) else HUMAN.login

    def _shown_issue(self, each: Any) -> dict[str, Any]:
        return (
            shown.issue(each, self._at)
            if isinstance(each, Issue)
            else shown.as_issue(each, self._at)
        )

    # --- Pull requests and commits ------------------------------------------------------------

    def _pulls_list(self, request: Request) -> Any:
        query = _first(request)
        found = [
            each
            for each in sorted(self._state.pulls.values(), key=lambda each: -each.number)
            if query.get("state", "open") in ("all", each.state)
            and query.get("head", name := f"{each.owner}:{each.branch}") == name
            and query.get("base", each.base) == each.base
        ]
        return self._page(request, found, lambda each: shown.pull(each, self._at))

    def _pulls_get(self, _: Request, pull_number: str) -> Any:
        found = self._state.pulls.get(int(pull_number))
        return shown.pull(found, self._at) if found else refusal(404, "Not Found")

    def _repos_list_pull_requests_associated_with_commit(
        self, request: Request, commit_sha: str
    ) -> Any:
        state = self._state
        if commit_sha in state.missing:
            return refusal(422, f"No commit found for SHA: {commit_sha}")
        is_merged = commit_sha in state.branches["main"]
        found = [
            each
            for each in state.pulls.values()
            if commit_sha in (each.head, each.merge_commit, *each.commits)
            and (each.repository == REPOSITORY or state.finds_forks_by_commit)
            and (each.merged if is_merged else each.state == "open")
        ]
        return self._page(request, found, lambda each: shown.pull(each, self._at))

    def _repos_list_commits(self, request: Request) -> Any:
        found = self._state.history(_first(request)["sha"])
        if found is None:
            return refusal(404, "Not Found")
        return self._page(
            request, found, lambda each: shown.commit(each, self._state.parents(each))
        )

    def _repos_compare_commits_with_basehead(self, request: Request, basehead: str) -> Any:
        base, _, head = basehead.partition("...")
        behind, ahead = self._state.history(base), self._state.history(head)
        merged = next((each for each in ahead or () if each in (behind or ())), None)
        if not behind or not ahead or merged is None:
            return refusal(404, "Not Found")
        counts = ahead.index(merged), behind.index(merged)
        kinds = {(True, True): "diverged", (True, False): "ahead", (False, True): "behind"}
        return {
            "base_commit": shown.commit(behind[0]),
            "merge_base_commit": shown.commit(merged),
            "status": kinds.get((counts[0] > 0, counts[1] > 0), "identical"),
            "ahead_by": counts[0],
            "behind_by": counts[1],
            "total_commits": counts[0],
            "commits": [shown.commit(each) for each in reversed(ahead[: counts[0]])],
        }

    # --- Checks -------------------------------------------------------------------------------

    def _checks_list_for_ref(self, request: Request, ref: str) -> Any:
        if ref in self._state.missing:
            return refusal(422, f"No commit found for SHA: {ref}")
        query = _first(request)
        found = [
            each
            for each in self._state.check_runs
            if each["head_sha"] == ref and query.get("check_name", each["name"]) == each["name"]
        ]
        if query.get("filter", "latest") == "latest":
            newest = {each["name"]: each for each in reversed(found)}
            found = [each for each in found if newest[each["name"]] is each]
        return self._page(request, found, self._shown_check_run, "check_runs")

    def _checks_get(self, _: Request, check_run_id: str) -> Any:
        found = self._kept(check_run_id)
        return self._shown_check_run(found) if found else refusal(404, "Not Found")

    def _checks_create(self, request: Request) -> Any:
        sent = request.body
        if sent["head_sha"] in self._state.missing:
            return refusal(422, f"No commit found for SHA: {sent['head_sha']}")
        if fault := _check_run_fault(sent):
            return fault
        number = self._state.made_check_run(sent, "github-actions")
        return self._shown_check_run(self._kept(str(number)) or {})

    def _checks_update(self, request: Request, check_run_id: str) -> Any:
        found = self._kept(check_run_id)
        if found is None:
            return refusal(404, "Not Found")
        if fault := _check_run_fault(request.body):
            return fault
        self._state.changed_check_run(found, request.body)
        return self._shown_check_run(found)

    def _kept(self, number: str) -> dict[str, Any] | None:
        found = (each for each in self._state.check_runs if each["id"] == int(number))
        return next(found, None)

    def _shown_check_run(self, kept: dict[str, Any]) -> dict[str, Any]:
        return shown.check_run(kept, len(self._state.annotations[kept["id"]]), self._at)

    # --- Workflows and artifacts --------------------------------------------------------------

    def _actions_list_artifacts_for_repo(self, request: Request) -> Any:
        return self._artifacts(request, self._state.artifacts)

    def _actions_list_workflow_run_artifacts(self, request: Request, run_id: str) -> Any:
        if int(run_id) not in self._state.runs:
            return refusal(404, "Not Found")
        found = [
            each
            for each in self._state.artifacts
            if (each["workflow_run"] or {}).get("id") == int(run_id)
        ]
        return self._artifacts(request, found)

    def _artifacts(self, request: Request, found: list[dict[str, Any]]) -> Any:
        name = _first(request).get("name")
        chosen = [each for each in found if name in (None, each["name"])]
        return self._page(request, chosen, lambda each: shown.artifact(each, self._at), "artifacts")

    def _actions_download_artifact(
        self, _: Request, artifact_id: str, archive_format: str
    ) -> Reply:
        found = [each for each in self._state.artifacts if each["id"] == int(artifact_id)]
        if not found or archive_format != "zip":
            return refusal(404, "Not Found")
        if found[0]["expired"]:
            return refusal(410, "Artifact has expired")
        query = urlencode({"sig": SIGNATURE})
        there = f"{self._storage()}/{artifact_id}.zip?{query}"
        return Reply(status=302, headers={"Location": there})

    def _actions_get_workflow_run(self, _: Request, run_id: str) -> Any:
        found = self._state.runs.get(int(run_id))
        return shown.workflow_run(found, self._state.pulls) if found else refusal(404, "Not Found")

    def _actions_list_jobs_for_workflow_run_attempt(
        self, request: Request, run_id: str, attempt_number: str
    ) -> Any:
        found = self._state.runs.get(int(run_id))
        if found is None or int(attempt_number) > found.attempt:
            return refusal(404, "Not Found")
        of = {"run_id": found.id, "head_sha": found.head}
        return self._page(request, found.jobs, lambda each: {**of, **each}, "jobs")

    # --- Pages --------------------------------------------------------------------------------

    def _page(
        self,
        request: Request,
        found: list[Any],
        show: Callable[[Any], dict[str, Any]],
        member: str = "",
    ) -> "_Page":
        query = _first(request)
        size, page = int(query.get("per_page", "30")), int(query.get("page", "1"))
        part = [show(each) for each in found[(page - 1) * size : page * size]]
        _, _, path = request.path.partition("/repo")
        path = f"/repo{path}".replace(f"/repos/{REPOSITORY}/", f"/repositories/{REPOSITORY_ID}/")
        links = []
        if page > 1:
            links += [("prev", page - 1), ("first", 1)]
        if page * size < len(found):
            links += [("next", page + 1), ("last", -(-len(found) // size))]
        told = (
            f'<{self._url()}{path}?{urlencode({**query, "page": number})}>; rel="{name}"'
            for name, number in links
        )
        value = {"total_count": len(found), member: part} if member else part
        return _Page(value, {"Link": ", ".join(told)} if links else {})


_REPO = ("owner", "repo")


class _Page:
    def __init__(self, value: Any, headers: dict[str, str]) -> None:
        self.value = value
        self.headers = headers


def _first(request: Request) -> dict[str, str]:
    return {name: values[0] for name, values in request.query.items()}


def _check_run_fault(sent: dict[str, Any]) -> Reply | None:
    """Return the response that refuses a check run that fits its description."""
    output = sent.get("output", {})
    texts = (output.get(part, "") for part in ("summary", "text"))
    if any(len(each.encode()) > _MAX_TEXT for each in texts):
        return refusal(422, "Invalid request. Only 65535 characters are allowed.")
    if sent.get("status") == "completed" and "conclusion" not in sent:
        return refusal(422, "Invalid request. A completed check run has a conclusion.")
    return None
