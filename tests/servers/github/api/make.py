"""Cuts the parts that ci-eval uses out of what GitHub publishes of its API.

    python tests/servers/github/api/make.py FOLDER [--check]

FOLDER is the `node_modules/@octokit` that `npm install @octokit/openapi @octokit/graphql-schema`
makes.  `--check` writes nothing, and fails where a file here is not what it would write.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphql import (
    DocumentNode,
    EnumTypeDefinitionNode,
    InputObjectTypeDefinitionNode,
    InterfaceTypeDefinitionNode,
    NamedTypeNode,
    ObjectTypeDefinitionNode,
    parse,
    print_ast,
)

HERE = Path(__file__).parent
REPO = "/repos/{owner}/{repo}"
OPERATIONS = {
    "/user": "get",
    f"{REPO}/actions/artifacts": "get",
    f"{REPO}/actions/artifacts/{{artifact_id}}/{{archive_format}}": "get",
    f"{REPO}/actions/runs/{{run_id}}": "get",
    f"{REPO}/actions/runs/{{run_id}}/artifacts": "get",
    f"{REPO}/actions/runs/{{run_id}}/attempts/{{attempt_number}}/jobs": "get",
    f"{REPO}/check-runs": "post",
    f"{REPO}/check-runs/{{check_run_id}}": "get patch",
    f"{REPO}/commits": "get",
    f"{REPO}/commits/{{commit_sha}}/pulls": "get",
    f"{REPO}/commits/{{ref}}/check-runs": "get",
    f"{REPO}/compare/{{basehead}}": "get",
    f"{REPO}/issues": "get post",
    f"{REPO}/issues/comments/{{comment_id}}": "delete get patch",
    f"{REPO}/issues/{{issue_number}}": "patch",
    f"{REPO}/issues/{{issue_number}}/comments": "get post",
    f"{REPO}/pulls": "get",
    f"{REPO}/pulls/{{pull_number}}": "get",
}
"""The operations of REST: their paths, and their methods."""
FIELDS = {
    "Query": "id node rateLimit repository viewer",
    "Mutation": "addComment deleteIssueComment minimizeComment unminimizeComment "
    "updateIssueComment",
    "Actor": "login",
    "AddCommentPayload": "clientMutationId subject commentEdge",
    "Bot": "databaseId id login",
    "DeleteIssueCommentPayload": "clientMutationId",
    "IssueComment": "author body createdAt databaseId fullDatabaseId id isMinimized "
    "minimizedReason updatedAt url userContentEdits viewerCanDelete viewerCanMinimize "
    "viewerCanUpdate viewerDidAuthor",
    "IssueCommentConnection": "edges nodes pageInfo totalCount",
    "IssueCommentEdge": "cursor node",
    "MinimizeCommentPayload": "clientMutationId minimizedComment",
    "Minimizable": "isMinimized minimizedReason viewerCanMinimize",
    "Node": "id",
    "PageInfo": "endCursor hasNextPage hasPreviousPage startCursor",
    "PullRequest": "comments headRefOid id number state url",
    "RateLimit": "cost limit remaining resetAt",
    "Repository": "id nameWithOwner pullRequest",
    "UnminimizeCommentPayload": "clientMutationId unminimizedComment",
    "UpdateIssueCommentPayload": "clientMutationId issueComment",
    "User": "databaseId id login",
    "UserContentEdit": "diff editedAt id",
    "UserContentEditConnection": "nodes",
}
"""The types of GraphQL, and their fields; inputs, enumerations and scalars follow from them."""
_UNUSED = ("deprecated", "description", "discriminator", "example", "examples", "externalDocs")
"""What says nothing of what is valid."""
_MAPS = ("properties", "schemas")
"""Keywords under which any name may stand."""


# --- REST -------------------------------------------------------------------------------------


def openapi(whole: dict[str, Any]) -> dict[str, Any]:
    """Return a description that holds `OPERATIONS` and the schemas they reach."""
    components = whole["components"]
    paths = {
        path: {method: _operation(whole["paths"][path][method], components) for method in methods}
        for path, methods in ((path, each.split()) for path, each in OPERATIONS.items())
    }
    schemas: dict[str, Any] = {}
    missing = {"basic-error", "validation-error", *_references(paths)}
    while missing:
        schemas |= {name: _schema(components["schemas"][name]) for name in missing}
        missing = set(_references(schemas)) - schemas.keys()
    info = {each: whole["info"][each] for each in ("title", "version", "license")}
    return {
        "openapi": whole["openapi"],
        "info": info,
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _operation(whole: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    parameters = [_resolved(each, components) for each in whole.get("parameters", ())]
    kept: dict[str, Any] = {
        "operationId": whole["operationId"],
        "parameters": [
            {name: each[name] for name in ("name", "in", "required") if name in each}
            | {"schema": _schema(each["schema"])}
            for each in parameters
        ],
        "responses": {
            status: _content(_resolved(each, components))
            for status, each in whole["responses"].items()
        },
    }
    if "requestBody" in whole:
        kept["requestBody"] = {**_content(whole["requestBody"]), "required": True}
    return kept


def _content(whole: dict[str, Any]) -> dict[str, Any]:
    found = whole.get("content", {}).get("application/json")
    return {"content": {"application/json": {"schema": _schema(found["schema"])}}} if found else {}


def _resolved(value: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in value:
        return value
    _, _, kind, name = value["$ref"].split("/")
    found: dict[str, Any] = components[kind][name]
    return found


def _schema(value: Any) -> Any:
    """Return a schema without what says nothing of what is valid."""
    if isinstance(value, list):
        return [_schema(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        return {"$ref": value["$ref"]}
    return {
        name: {key: _schema(item) for key, item in each.items()} if name in _MAPS else _schema(each)
        for name, each in value.items()
        if name not in _UNUSED and not name.startswith("x-")
    }


def _references(value: Any) -> Iterator[str]:
    """Yield the names of the schemas that `value` speaks of."""
    if isinstance(value, dict):
        if isinstance(target := value.get("$ref"), str):
            yield target.rpartition("/")[2]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _references(each)


# --- GraphQL ----------------------------------------------------------------------------------


def graphql(whole: DocumentNode) -> DocumentNode:
    """Return a schema that holds `FIELDS` and the types they reach."""
    types = {each.name.value: each for each in whole.definitions if hasattr(each, "name")}
    kept: dict[str, Any] = {}
    missing = set(FIELDS)
    while missing:
        kept |= {name: _type(types[name]) for name in missing}
        missing = {name for each in kept.values() for name in _named(each)} - kept.keys()
        missing &= types.keys()
    return DocumentNode(definitions=tuple(kept[name] for name in sorted(kept)))


def _type(whole: Any) -> Any:
    """Return a type with the fields that are used; inputs and enumerations are whole."""
    whole = _plain(whole)
    if isinstance(whole, EnumTypeDefinitionNode):
        return replace(whole, values=tuple(map(_plain, whole.values or ())))
    if isinstance(whole, InputObjectTypeDefinitionNode):
        return replace(whole, fields=tuple(map(_plain, whole.fields or ())))
    if not isinstance(whole, ObjectTypeDefinitionNode | InterfaceTypeDefinitionNode):
        return whole
    names = FIELDS[whole.name.value].split()
    fields = {each.name.value: _plain(each) for each in whole.fields or ()}
    return replace(
        whole,
        fields=tuple(
            replace(field, arguments=tuple(map(_plain, field.arguments or ())))
            for field in map(fields.__getitem__, names)
        ),
        interfaces=tuple(each for each in whole.interfaces or () if each.name.value in FIELDS),
    )


def _plain(node: Any) -> Any:
    return replace(node, description=None, directives=())


def _named(node: Any) -> Iterator[str]:
    """Yield the names of the types that a definition speaks of."""
    for each in getattr(node, "fields", None) or ():
        for of in (each, *(getattr(each, "arguments", None) or ())):
            yield _name(of.type)


def _name(node: Any) -> str:
    return node.name.value if isinstance(node, NamedTypeNode) else _name(node.type)


# --- Files ------------------------------------------------------------------------------------


def made(octokit: Path) -> dict[Path, str]:
    """Return the files and what is in them."""
    published = octokit / "openapi/generated/api.github.com.json"
    rest = openapi(json.loads(published.read_text(encoding="utf-8")))
    sdl = (octokit / "graphql-schema/schema.graphql").read_text(encoding="utf-8")
    return {
        HERE / "openapi.json": _lines(rest),
        HERE / "schema.graphql": print_ast(graphql(parse(sdl))) + "\n",
    }


def _lines(rest: dict[str, Any]) -> str:
    """Return JSON with a line for each path and each schema: short, and a change shows."""
    rows = [f'"{name}":{_short(rest[name])},' for name in ("openapi", "info")]
    rows += ['"paths":{', *_each(rest["paths"]), "},"]
    rows += ['"components":{"schemas":{', *_each(rest["components"]["schemas"]), "}}"]
    return "\n".join(["{", *rows, "}", ""])


def _each(values: dict[str, Any]) -> list[str]:
    rows = [f'"{name}":{_short(value)}' for name, value in sorted(values.items())]
    return [f"{row}," for row in rows[:-1]] + rows[-1:]


def _short(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def main() -> int:
    octokit = Path(sys.argv[1])
    stale = [
        path
        for path, text in made(octokit).items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    if "--check" in sys.argv:
        for path in stale:
            sys.stderr.write(f"{path.name} is not what make.py makes\n")
        return bool(stale)
    for path, text in made(octokit).items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
