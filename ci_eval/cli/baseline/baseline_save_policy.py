"""Policy for which CI runs are stored in the baseline.

Later runs are compared with stored runs, so these must be of merged code: otherwise a pull
request could set its own baseline.  Outside CI the user decides.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from ci_eval.forge.lineage import default_branch, event, own_branch
from ci_eval.plugins.baseline_store import BaselineStore
from ci_eval.records.errors import UsageError
from ci_eval.runtime.context import RunContext, in_actions

_OF_BRANCHES = ("push", "schedule", "workflow_dispatch", "repository_dispatch")
"""GitHub events whose checkout is on the branch that they name."""
_OF_PULL_REQUESTS = ("pull_request", "pull_request_target")
_OF_MERGE_REQUESTS = ("merge_request_event", "external_pull_request_event")


class _Occasion(NamedTuple):
    """The trigger of a CI run."""

    kind: Literal["branch", "pull_request", "queue", "tag", "other"]
    name: str = ""
    """The name of the branch or, for `other`, of the event."""


def check(
    store: BaselineStore,
    context: RunContext,
    *,
    from_pull_request: bool = False,
    automatic: bool = False,
) -> None:
    """Reject a CI run of unmerged code.

    `from_pull_request` lets those of pull requests through.  Nobody asked for what is `automatic`,
    so it also leaves files in the work tree alone, and code that may not be merged.

    Raises:
        UsageError: the run does not belong into the baseline.

    """
    if automatic and store.work_tree_file:
        raise UsageError(
            "not stored: auto does not change the baseline file in the work tree; "
            "`ci-eval baseline save` does"
        )
    occasion = _occasion(context.env)
    if automatic and occasion is None:
        raise UsageError(
            "not stored: outside GitHub and GitLab, auto cannot know whether code is merged; "
            "`ci-eval baseline save` stores the run anyway"
        )
    if occasion is None or (occasion.kind == "pull_request" and from_pull_request):
        return
    branches = tracked(store, context)
    shown = " or ".join(map(repr, branches)) or "a tracked branch"
    later = f"a workflow that runs on pushes to {shown} stores merged code"
    match occasion.kind:
        case "pull_request":
            raise UsageError(
                "not stored: this is a pull request, and the baseline only holds merged code",
                hint=f"{later}; to store it anyway, use --from-pull-request",
            )
        case "queue":
            raise UsageError("not stored: merge queue entries are not merged yet", hint=later)
        case "tag":
            raise UsageError("not stored: a tag was pushed, not a branch", hint=later)
        case "other":
            message = f"not stored: the event {occasion.name!r} does not identify merged code"
            raise UsageError(message, hint=later)
    if not branches:
        message = "not stored: the tracked branch is unknown"
        raise UsageError(message, hint="set `baseline: {branches: [main]}`")
    if not any(fnmatchcase(occasion.name, each) for each in branches):
        raise UsageError(
            f"not stored: the branch {occasion.name!r} is not tracked, only {shown}",
            hint="add it to `baseline: {branches: […]}`, by name or pattern",
        )


def tracked(store: BaselineStore, context: RunContext) -> Sequence[str]:
    """Return the names or patterns of the branches whose runs are stored; none if unknown."""
    named = store.base or default_branch(context.clone)
    return store.branches or ((named,) if named else ())


def _occasion(env: Mapping[str, str]) -> _Occasion | None:
    """Return the trigger of the CI run; `None` outside any known CI."""
    if in_actions(env):
        return _on_github(env)
    if env.get("GITLAB_CI") == "true":
        return _on_gitlab(env)
    return None


def _on_github(env: Mapping[str, str]) -> _Occasion:
    name = env.get("GITHUB_EVENT_NAME", "")
    if name in _OF_PULL_REQUESTS:
        into = _merged_into(event(env))
        return _Occasion("branch", into) if into else _Occasion("pull_request")
    if name == "merge_group":
        return _Occasion("queue")
    if name not in _OF_BRANCHES:
        return _Occasion("other", name)
    branch = own_branch(env)
    return _Occasion("branch", branch) if branch else _Occasion("tag")


def _merged_into(payload: Mapping[str, object]) -> str | None:
    """Return the branch that the event's pull request was merged into; `None` if it was not."""
    match payload:
        case {
            "action": "closed",
            "pull_request": {"merged": True, "base": {"ref": str(branch)}},
        }:
            return branch
    return None


def _on_gitlab(env: Mapping[str, str]) -> _Occasion:
    # A child pipeline inherits the merge request of its parent.
    if env.get("CI_MERGE_REQUEST_IID") or env.get("CI_PIPELINE_SOURCE") in _OF_MERGE_REQUESTS:
        return _Occasion("pull_request")
    branch = env.get("CI_COMMIT_BRANCH")
    return _Occasion("branch", branch) if branch else _Occasion("tag")
