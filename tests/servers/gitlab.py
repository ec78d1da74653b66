"""A stand-in for the notes of a merge request, and the issues of a project, on GitLab.

Parameters and fields are those of GitLab's published description of its API (the operations
`…ApiV4ProjectsIdMergeRequestsNoteableIdNotes…`, https://docs.gitlab.com/api/openapi/), and of the
pages https://docs.gitlab.com/api/notes/, https://docs.gitlab.com/api/issues/,
https://docs.gitlab.com/api/users/ and https://docs.gitlab.com/api/rest/.  A request with anything
else is not answered, and an answer with anything else is not made.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal
from unittest.mock import patch
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field
from servers.loopback import Loopback, Reply, Request, as_json, serving

from ci_eval.pull_requests import sticky_comment
from ci_eval.runtime.retry import Backoff

TOKEN = "glpat-the-right-token-of-this-test"
PROJECT = "4711"
PATH = "octo/shop"
NUMBER = 7
ME = 42
SHA = "c0ffee" + "0" * 34
_MAX_BODY = 1_000_000


class _Described(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ListQuery(_Described):
    """The parameters of a list of notes."""

    model_config = ConfigDict(strict=False)  # they are text
    order_by: Literal["created_at", "updated_at"] = "created_at"
    sort: Literal["asc", "desc"] = "desc"
    activity_filter: Literal["all_notes", "only_comments", "only_activity"] = "all_notes"
    page: int = Field(1, ge=1)
    per_page: int = Field(20, ge=1, le=100)


class NewNote(_Described):
    """The body of a request that makes a note."""

    body: str
    internal: bool = False
    created_at: str = ""
    merge_request_diff_head_sha: str = ""


class ChangedNote(_Described):
    """The body of a request that changes one."""

    body: str = Field(min_length=1)


class IssuesQuery(_Described):
    """The parameters of a list of issues; the others of GitLab are not used."""

    model_config = ConfigDict(strict=False)  # they are text
    state: Literal["all", "opened", "closed"] = "all"
    scope: Literal["created_by_me", "assigned_to_me", "all"] = "all"
    author_id: int
    order_by: Literal["created_at", "updated_at"] = "created_at"
    sort: Literal["asc", "desc"] = "desc"
    page: int = Field(1, ge=1)
    per_page: int = Field(20, ge=1, le=100)


class NewIssue(_Described):
    """The body of a request that makes an issue."""

    title: str = Field(min_length=1)
    description: str = Field("", max_length=1_048_576)
    labels: str = ""
    assignee_ids: list[int] = []


class ChangedIssue(_Described):
    """The body of a request that changes one."""

    description: str | None = None
    state_event: Literal["close", "reopen"] | None = None


class Author(_Described):
    """A user, as he is shown."""

    id: int
    username: str
    name: str
    state: str
    locked: bool
    avatar_url: str | None
    web_url: str


class Note(_Described):
    """A note, as it is shown."""

    id: int
    type: str | None
    body: str
    author: Author
    created_at: str
    updated_at: str
    system: bool
    noteable_id: int
    noteable_type: Literal["MergeRequest"]
    noteable_iid: int
    project_id: int
    resolvable: bool
    confidential: bool
    internal: bool
    imported: bool
    imported_from: str
    commands_changes: dict[str, Any]


class Issue(_Described):
    """An issue, as it is shown."""

    id: int
    iid: int
    project_id: int
    title: str
    description: str
    state: Literal["opened", "closed"]
    author: Author
    assignees: list[Author]
    labels: list[str]
    created_at: str
    updated_at: str
    closed_at: str | None
    web_url: str
    confidential: bool
    user_notes_count: int


def refusal(status: int, message: Any) -> Reply:
    """Return an error as GitLab has it."""
    return as_json({"message": message}, status)


def author(number: int) -> Author:
    """Return the user with that number."""
    name = f"user{number}"
    return Author(
        id=number,
        username=name,
        name=name,
        state="active",
        locked=False,
        avatar_url=None,
        web_url=f"https://gitlab.example/{name}",
    )


class FakeGitLab(Loopback):
    """One project with one merge request, and a token of a `role` and a `scope` in it."""

    def __init__(self) -> None:
        super().__init__()
        self.scope = "api"
        self.role: Literal["none", "guest", "reporter"] = "reporter"
        self.notes: list[Note] = []
        self.issues: list[Issue] = []
        self.said: list[tuple[int, str]] = []
        """The notes of issues, with the number of the issue."""
        self.users = {"mona": 2}
        """The ids of users, by name."""
        self.done: list[str] = []
        """The quick actions that were taken out of notes, and done."""

    @property
    def env(self) -> dict[str, str]:
        """What a job of a merge request is told."""
        return {
            "GITLAB_CI": "true",
            "CI_API_V4_URL": f"{self.url}/api/v4",
            "CI_COMMIT_SHA": SHA,
            "CI_MERGE_REQUEST_IID": str(NUMBER),
            "CI_MERGE_REQUEST_PROJECT_ID": PROJECT,
            "CI_MERGE_REQUEST_PROJECT_URL": f"https://gitlab.example/{PATH}",
            "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": PROJECT,
            "CI_PIPELINE_SOURCE": "merge_request_event",
            "CI_PROJECT_ID": PROJECT,
            "GITLAB_TOKEN": TOKEN,
        }

    def say(self, body: str, by: int = ME, *, system: bool = False) -> Note:
        """Let somebody write a note."""
        number = 100 + len(self.notes)
        note = Note(
            id=number,
            type=None,
            body=body,
            author=author(by),
            created_at=f"2026-01-01T00:{number // 60:02}:{number % 60:02}.000Z",
            updated_at="2026-01-01T00:00:00.000Z",
            system=system,
            noteable_id=9,
            noteable_type="MergeRequest",
            noteable_iid=NUMBER,
            project_id=int(PROJECT),
            resolvable=False,
            confidential=False,
            internal=False,
            imported=False,
            imported_from="none",
            commands_changes={},
        )
        self.notes.append(note)
        return note

    @property
    def schedule_env(self) -> dict[str, str]:
        """The variables of a job in a scheduled pipeline."""
        return {
            "GITLAB_CI": "true",
            "CI_API_V4_URL": f"{self.url}/api/v4",
            "CI_COMMIT_SHA": SHA,
            "CI_PIPELINE_SOURCE": "schedule",
            "CI_PIPELINE_URL": f"https://gitlab.example/{PATH}/-/pipelines/5",
            "CI_PROJECT_ID": PROJECT,
            "GITLAB_TOKEN": TOKEN,
        }

    def open_issue(self, new: NewIssue, by: int = ME) -> Issue:
        """Let somebody open an issue."""
        number = 1 + len(self.issues)
        made = Issue(
            id=900 + number,
            iid=number,
            project_id=int(PROJECT),
            title=new.title,
            description=new.description,
            state="opened",
            author=author(by),
            assignees=[author(each) for each in new.assignee_ids],
            labels=[each for each in new.labels.split(",") if each],
            created_at=f"2026-01-01T00:00:{number:02}.000Z",
            updated_at="2026-01-01T00:00:00.000Z",
            closed_at=None,
            web_url=f"https://gitlab.example/{PATH}/-/issues/{number}",
            confidential=False,
            user_notes_count=0,
        )
        self.issues.append(made)
        return made

    @property
    def bodies(self) -> list[str]:
        """What all notes say."""
        return [note.body for note in self.notes]

    # --- What is answered ---------------------------------------------------------------------

    def reply(self, request: Request) -> Reply:
        assert request.headers["user-agent"] == "ci-eval"
        token = request.headers.get("private-token")
        if token != TOKEN:
            return refusal(401, "401 Unauthorized")
        return self._users(request) or self._of_project(request)

    def _users(self, request: Request) -> Reply | None:
        if request.path == "/api/v4/user":
            return as_json({**author(ME).model_dump(), "created_at": "2026-01-01T00:00:00.000Z"})
        if request.path == "/api/v4/users":
            (name,) = request.query["username"]
            users = [author(self.users[name])] if name in self.users else []
            return as_json([each.model_dump() for each in users])
        return None

    def _of_project(self, request: Request) -> Reply:
        projects = "|".join((PROJECT, PATH.replace("/", "%2F")))
        at = rf"/api/v4/projects/({projects})/merge_requests/{NUMBER}/notes(?:/(\d+))?"
        found = re.fullmatch(at, request.path)
        at = rf"/api/v4/projects/({projects})/issues(?:/(\d+)(/notes)?)?"
        issue = re.fullmatch(at, request.path)
        if not (found or issue) or self.role == "none":
            return refusal(404, "404 Project Not Found")
        if self.role == "guest":
            return refusal(403, "403 Forbidden")
        if request.method != "GET" and self.scope != "api":
            said = "The request requires higher privileges than provided by the access token."
            refused = {"error": "insufficient_scope", "error_description": said, "scope": "api"}
            return as_json(refused, 403)
        if issue:
            return self._issue(request, issue[2], notes=bool(issue[3]))
        assert found
        return self._notes(request, found[2])

    def _issue(self, request: Request, number: str | None, *, notes: bool) -> Reply:
        if number is None and request.method == "GET":
            return self._listed_issues(request)
        if number is None:
            assert request.method == "POST", request.method
            made = self.open_issue(NewIssue.model_validate(request.body))
            return as_json(made.model_dump(), 201)
        found = next((each for each in self.issues if str(each.iid) == number), None)
        if found is None:
            return refusal(404, "404 Issue Not Found")
        if notes:
            assert request.method == "POST", request.method
            self.said.append((found.iid, NewNote.model_validate(request.body).body))
            return as_json({"id": len(self.said), "body": self.said[-1][1]}, 201)
        assert request.method == "PUT", request.method
        change = ChangedIssue.model_validate(request.body)
        if change.description is not None:
            found.description = change.description
        if change.state_event:
            found.state = "closed" if change.state_event == "close" else "opened"
        return as_json(found.model_dump())

    def _listed_issues(self, request: Request) -> Reply:
        given = {name: value for name, (value,) in request.query.items()}
        query = IssuesQuery.model_validate(given)
        found = [
            each
            for each in self.issues
            if query.state in ("all", each.state) and each.author.id == query.author_id
        ]
        found.sort(key=lambda each: each.iid, reverse=query.sort == "desc")
        return self._paged(request, found, query.page, query.per_page)

    def _notes(self, request: Request, number: str | None) -> Reply:
        if request.method == "GET" and number is None:
            return self._page(request)
        if request.method == "POST" and number is None:
            new = NewNote.model_validate(request.body)
            return self._saved(new.body, None)
        note = next((each for each in self.notes if str(each.id) == number), None)
        if note is None:
            return refusal(404, "404 Note Not Found")
        if note.author.id != ME:
            return refusal(403, "403 Forbidden")
        if request.method == "PUT":
            return self._saved(ChangedNote.model_validate(request.body).body, note)
        assert request.method == "DELETE", request.method
        assert request.body is None
        self.notes.remove(note)
        return Reply(status=204)

    def _saved(self, body: str, note: Note | None) -> Reply:
        if len(body) > _MAX_BODY:
            return refusal(400, {"note": [f"is too long (maximum is {_MAX_BODY} characters)"]})
        self.done += re.findall(r"^/[a-z]\w*.*$", body, re.MULTILINE)
        # Who looks for quick actions cuts the end off, too.
        body = body.replace("\r", "").rstrip()
        if note is None:
            return as_json(self.say(body).model_dump(), 201)
        note.body = body
        return as_json(note.model_dump())

    def _page(self, request: Request) -> Reply:
        query = ListQuery.model_validate({name: value for name, (value,) in request.query.items()})
        found = sorted(self.notes, key=lambda each: each.id, reverse=query.sort == "desc")
        if query.activity_filter == "only_comments":
            found = [each for each in found if not each.system]
        return self._paged(request, found, query.page, query.per_page)

    def _paged(
        self, request: Request, found: Sequence[_Described], page: int, per_page: int
    ) -> Reply:
        pages = max(1, -(-len(found) // per_page))
        following = str(page + 1) if page < pages else ""
        link = urlencode({"page": following, "per_page": per_page})
        headers = {
            "x-page": str(page),
            "x-per-page": str(per_page),
            "x-next-page": following,
            # A proxy in front of a server hides what it is called outside.
            "link": f'<http://internal.example{request.path}?{link}>; rel="next"' if link else "",
        }
        start = (page - 1) * per_page
        part = found[start : start + per_page]
        return as_json([each.model_dump() for each in part], headers=headers)


@contextmanager
def gitlab() -> Iterator[FakeGitLab]:
    """Let it answer; no test waits between two changes as long as a job would."""
    fake = FakeGitLab()
    with patch.object(sticky_comment, "BACKOFF", Backoff(0.0, 0.0)), serving(fake):
        yield fake
