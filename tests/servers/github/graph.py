"""GitHub's GraphQL API on a `State`, held to the schema that GitHub publishes."""

import base64
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from graphql import (
    GraphQLError,
    GraphQLResolveInfo,
    GraphQLSchema,
    OperationDefinitionNode,
    build_schema,
    execute_sync,
    parse,
    validate,
)
from servers.github.described import FOLDER
from servers.github.rest import NOT_ACCESSIBLE, body_fault, may
from servers.github.shown import moment
from servers.github.state import REPOSITORY, Author, Comment, PullRequest, State
from servers.loopback import Reply, as_json

_TALK = ("issues", "pull-requests")
_MEMBERS = {"query", "variables", "operationName"}
_PAGE = 100


@cache
def _schema() -> GraphQLSchema:
    return build_schema((FOLDER / "schema.graphql").read_text(encoding="utf-8"))


def refusal(kind: str, message: str, path: list[str | int] | None = None) -> Reply:
    """Return an error as GitHub's GraphQL has it: with the status of what went well."""
    error = {"type": kind, **({"path": path} if path else {}), "message": message}
    return as_json({"data": dict.fromkeys(path[:1]) if path else None, "errors": [error]})


class _RefusedError(GraphQLError):
    """Something is not done, for a reason that has a type."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        super().__init__(message)


class Graph:
    """Answers queries and mutations."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.violations: list[str] = []
        """What fits no schema, in a query of ours or in an answer."""
        self._permissions: frozenset[str] = frozenset()

    def answer(self, body: Any, permissions: frozenset[str]) -> Reply:
        """Return GitHub's response to a request."""
        self._permissions = permissions
        found = list(_faults(body))
        self.violations += found
        if found:
            return as_json({"errors": [{"message": each} for each in found]})
        done = execute_sync(
            _schema(),
            parse(body["query"]),
            root_value=_Root(self),
            variable_values=body.get("variables"),
            operation_name=body.get("operationName"),
            field_resolver=_resolved,
            type_resolver=lambda value, *_: value.kind,
        )
        errors = [self._error(each) for each in done.errors or ()]
        data = {"data": done.data}
        return as_json({**data, "errors": errors} if errors else data)

    def _error(self, error: GraphQLError) -> dict[str, Any]:
        shown = {
            "path": error.path,
            "locations": [each._asdict() for each in error.locations or ()],
            "message": error.message,
        }
        cause = error.original_error
        if isinstance(cause, _RefusedError):
            return {"type": cause.kind, **shown}
        self.violations.append(f"GraphQL: {error}")
        return shown

    # --- What resolvers use -------------------------------------------------------------------

    @property
    def state(self) -> State:
        return self._state

    def require(self, level: str, names: tuple[str, ...] = _TALK) -> None:
        if not may(self._permissions, names, level):
            raise _RefusedError("FORBIDDEN", NOT_ACCESSIBLE)

    def found(self, node_id: str) -> "_Comment":
        """Return the comment with an id of GraphQL."""
        for each in self._state.comments:
            if each.node_id == node_id:
                return _Comment(self, each)
        message = f"Could not resolve to a node with the global id of '{node_id}'"
        raise _RefusedError("NOT_FOUND", message)


def _faults(body: Any) -> Iterator[str]:
    """Yield what is wrong with a request before it is executed."""
    if not isinstance(body, dict) or not body.keys() <= _MEMBERS or "query" not in body:
        yield "expected a `query` and `variables`"
        return
    try:
        document = parse(body["query"])
    except GraphQLError as exc:
        yield exc.message
        return
    yield from (each.message for each in validate(_schema(), document))
    declared = {
        each.variable.name.value
        for definition in document.definitions
        if isinstance(definition, OperationDefinitionNode)
        for each in definition.variable_definitions or ()
    }
    given = body.get("variables") or {}
    yield from (f"no variable ${name}" for name in given.keys() - declared)


def _resolved(source: Any, info: GraphQLResolveInfo, **arguments: Any) -> Any:
    name = info.field_name
    if isinstance(source, dict):
        return source[name]
    value = getattr(source, re.sub("(?=[A-Z])", "_", name).lower())
    if "input" in arguments:
        return value(arguments["input"])
    return value(**arguments) if callable(value) else value


# --- Objects, with the names of the schema ----------------------------------------------------


class _Root:
    kind = "Query"
    id = "Q_"

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def repository(self, owner: str, name: str, **_: Any) -> Any:
        if f"{owner}/{name}" != REPOSITORY:
            message = f"Could not resolve to a Repository with the name '{owner}/{name}'."
            raise _RefusedError("NOT_FOUND", message)
        return _Repository(self._graph)

    def node(self, **named: str) -> Any:
        self._graph.require("read")
        return self._graph.found(named["id"])

    @property
    def viewer(self) -> Any:
        return _Actor(self._graph.state.me, "User", whole=True)

    @property
    def rate_limit(self) -> Any:
        return {"cost": 1, "limit": 5000, "remaining": 4999, "resetAt": moment(0)}

    def add_comment(self, sent: Mapping[str, Any]) -> Any:
        self._graph.require("write")
        state = self._graph.state
        for pull in state.pulls.values():
            if pull.node_id == sent["subjectId"]:
                _require_body(sent["body"])
                made = state.add_comment(sent["body"], number=pull.number, author=state.me)
                return _Payload(sent, comment_edge=_Edge(_Comment(self._graph, made)))
        message = f"Could not resolve to a node with the global id of '{sent['subjectId']}'"
        raise _RefusedError("NOT_FOUND", message)

    def update_issue_comment(self, sent: Mapping[str, Any]) -> Any:
        self._graph.require("write")
        found = self._graph.found(sent["id"])
        _require_body(sent["body"])
        found.comment.edit(sent["body"], self._graph.state.tick())
        return _Payload(sent, issue_comment=found)

    def delete_issue_comment(self, sent: Mapping[str, Any]) -> Any:
        self._graph.require("write")
        self._graph.state.comments.remove(self._graph.found(sent["id"]).comment)
        return _Payload(sent)

    def minimize_comment(self, sent: Mapping[str, Any]) -> Any:
        return self._minimized(sent, sent["classifier"].lower().replace("_", "-"), "minimized")

    def unminimize_comment(self, sent: Mapping[str, Any]) -> Any:
        return self._minimized(sent, None, "unminimized")

    def _minimized(self, sent: Mapping[str, Any], why: str | None, name: str) -> Any:
        self._graph.require("write")
        found = self._graph.found(sent["subjectId"])
        found.comment.minimized = why
        return _Payload(sent, **{f"{name}_comment": found})


def _require_body(body: str) -> None:
    if fault := body_fault(body):
        raise _RefusedError("UNPROCESSABLE", fault)


class _Payload:
    def __init__(self, sent: Mapping[str, Any], **members: Any) -> None:
        self.client_mutation_id = sent.get("clientMutationId")
        self.subject = None
        self.comment_edge = None
        vars(self).update(members)


class _Repository:
    kind = "Repository"
    id = "R_kwDO4711"
    name_with_owner = REPOSITORY

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def pull_request(self, number: int) -> Any:
        self._graph.require("read", ("pull-requests",))
        if number not in self._graph.state.pulls:
            message = f"Could not resolve to a PullRequest with the number of {number}."
            raise _RefusedError("NOT_FOUND", message)
        return _PullRequest(self._graph, self._graph.state.pulls[number])


class _PullRequest:
    kind = "PullRequest"

    def __init__(self, graph: Graph, pull: PullRequest) -> None:
        self._graph = graph
        self.id = pull.node_id
        self.number = pull.number
        self.head_ref_oid = pull.head
        self.url = f"https://github.com/{REPOSITORY}/pull/{pull.number}"
        self.state = "MERGED" if pull.merged else pull.state.upper()

    def comments(self, **page: Any) -> Any:
        own = [each for each in self._graph.state.comments if each.number == self.number]
        order = page.get("orderBy")
        if order:
            own.sort(key=lambda each: each.updated, reverse=order["direction"] == "DESC")
        return _Connection(self._graph, own, page, by_id=not order)


class _Connection:
    """A part of a list, as its cursors say."""

    def __init__(
        self, graph: Graph, all_of: list[Comment], page: Mapping[str, Any], *, by_id: bool
    ) -> None:
        sizes = [page[name] for name in ("first", "last") if page.get(name) is not None]
        if len(sizes) != 1:
            message = (
                "You must provide a `first` or `last` value to properly paginate the "
                "`comments` connection."
            )
            raise GraphQLError(message)
        if not 1 <= sizes[0] <= _PAGE:
            message = (
                f"Requesting {sizes[0]} records on the `comments` connection exceeds the `first` "
                f"limit of {_PAGE} records."
            )
            raise GraphQLError(message)
        start, end = 0, len(all_of)
        if page.get("after"):
            start = _position(all_of, page["after"], by_id=by_id, behind=True)
        if page.get("before"):
            end = _position(all_of, page["before"], by_id=by_id, behind=False)
        if page.get("first"):
            end = min(end, start + page["first"])
        else:
            start = max(start, end - page["last"])
        self.nodes = [_Comment(graph, each) for each in all_of[start:end]]
        self.edges = [_Edge(each) for each in self.nodes]
        self.total_count = len(all_of)
        self.page_info = {
            "hasNextPage": end < len(all_of),
            "hasPreviousPage": start > 0,
            "startCursor": self.edges[0].cursor if self.edges else None,
            "endCursor": self.edges[-1].cursor if self.edges else None,
        }


def _position(all_of: list[Comment], cursor: str, *, by_id: bool, behind: bool) -> int:
    """Return where a page begins or ends; what a cursor stood for may have been deleted."""
    number = int(base64.b64decode(cursor).decode().removeprefix("cursor:v2:"))
    if by_id:
        return sum(each.id < number + behind for each in all_of)
    return [each.id for each in all_of].index(number) + behind


class _Edge:
    def __init__(self, node: "_Comment") -> None:
        self.node = node
        self.cursor = base64.b64encode(f"cursor:v2:{node.comment.id}".encode()).decode()


class _Actor:
    def __init__(self, author: Author, kind: str, *, whole: bool = False) -> None:
        self.kind = kind
        self.id = f"U_{author.id}"
        # An app goes by its plain name, but where it looks at itself.
        self.login = author.login if whole else author.login.removesuffix("[bot]")
        self.database_id = author.id


class _Comment:
    kind = "IssueComment"
    viewer_can_delete = viewer_can_minimize = viewer_can_update = True

    def __init__(self, graph: Graph, comment: Comment) -> None:
        self.comment = comment
        self.id = comment.node_id
        # Newer ones are no whole numbers of 32 bits, which this is.
        self.database_id = comment.id if comment.id < 1 << 31 else None
        self.full_database_id = str(comment.id)
        self.body = comment.body
        self.created_at = moment(comment.created)
        self.updated_at = moment(comment.updated)
        self.url = (
            f"https://github.com/{REPOSITORY}/pull/{comment.number}#issuecomment-{comment.id}"
        )
        author = comment.author
        self.author = _Actor(author, author.type) if author else None
        self.viewer_did_author = author == graph.state.me

    def user_content_edits(self, **page: Any) -> Any:
        edits = [{"diff": each} for each in reversed(self.comment.edits)]
        return {"nodes": edits[: page["first"]]}

    @property
    def is_minimized(self) -> bool:
        return self.comment.minimized is not None

    @property
    def minimized_reason(self) -> str | None:
        return self.comment.minimized
