"""Storing of runs in the baseline, on request or after a run.

Later runs are compared with stored runs, so CI stores only runs of merged code: otherwise a pull
request could set its own baseline.  Outside CI, the user decides.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

import click

from ci_eval.cli import command_inputs, console
from ci_eval.config.config_schema import GateOptions
from ci_eval.config.validated_config import Config
from ci_eval.forge.lineage import default_branch, event, own_branch
from ci_eval.gate.case_counts import count_cases
from ci_eval.plugins.baseline_store import BaselineStore
from ci_eval.pull_requests import github_runner
from ci_eval.records.errors import BaselineError, UsageError
from ci_eval.records.findings import Totals
from ci_eval.run.collect import Collected
from ci_eval.run_files.report_phrases import listed, named_shards
from ci_eval.run_files.run_file import redacted
from ci_eval.runtime.context import RunContext, in_actions, in_gitlab
from ci_eval.text.templates import counted


def save(
    config: Config,
    given: str,
    context: RunContext,
    refusal: UsageError | None,
    *,
    may_ask: bool = False,
) -> None:
    """Store the run at `given`; with `may_ask`, ask before creating something on a remote.

    `refusal` is the policy's reason not to store it, if any.

    Raises:
        UsageError: it is not a run, is incomplete, or does not belong in the baseline.
        BaselineError: the stored runs cannot be read, or the store cannot be reached.

    """
    store = command_inputs.require_baseline(config)
    collected = command_inputs.stored_run(given)
    meta = collected.run.meta
    command_inputs.require_suite(config, meta)
    failed = _complete(collected, config.gate).failed
    if refusal:
        raise refusal
    if may_ask and (created := store.first_push(config.suite, context)):
        click.confirm(f"Create the {created}?", default=True, abort=True)
    saved = store.save(redacted(collected.run, context.secrets), context)
    stored = f"stored {meta.run_id}" if saved else f"{meta.run_id} is already stored"
    console.say(f"{stored}: {store.place(context)}")
    if saved and store.by_commit and meta.commit and not context.clone.is_unchanged:
        console.say(
            f"stored for commit {meta.commit[:10]}, although files have changed since: "
            "store it again once they are committed"
        )
    if saved and failed:
        console.say(f"{counted(failed, 'case')} failed in this run")


def save_after_run(config: Config, given: str, context: RunContext, *, auto: bool) -> None:
    """Store a run after its verdict; failures are warnings.

    With `auto`, only merged code is stored, and never in the work tree.
    """
    store = config.baseline
    if store is None or (auto and not store.stores):
        return
    if refusal := (why_not_unasked if auto else why_not)(store, context):
        console.say(str(refusal))
        return
    try:
        save(config, given, context, None)
    except (UsageError, BaselineError) as exc:
        warnings = [replace(each, severity="warning") for each in exc.problems]
        console.say_problems(warnings, exc.hint)
        # The runner reads both streams; on stdout there may be JSON.
        with redirect_stdout(sys.stderr):
            github_runner.annotate(warnings, context.env)


def _complete(collected: Collected, gate: GateOptions) -> Totals:
    """Return the outcomes of the cases of a complete run.

    Raises:
        UsageError: the run is incomplete.

    """
    meta = collected.run.meta
    cases = count_cases(meta, collected.tally.columns, gate)
    if meta.missing_shards:
        message = f"no report of {named_shards(meta.missing_shards)}"
    elif cases.errors > gate.max_errors:
        message = f"{cases.errors} of {cases.cases} cases could not be measured"
    elif meta.filtered:
        message = "the run covers only part of the suite"
    elif not cases.passed + cases.failed + cases.accepted:
        message = "the run measured nothing"
    elif cases.unmeasured:
        message = f"criteria with nothing to measure in any case: {listed([*cases.unmeasured])}"
    elif cases.unjudged:
        count = cases.unjudged.count
        message = f"{counted(count, 'case')} of {cases.cases} not judged by any blocking criterion"
    else:
        return cases
    raise UsageError(f"not stored: {message}")


# --- Runs that CI stores ----------------------------------------------------------------------

_OF_BRANCHES = ("push", "schedule", "workflow_dispatch", "repository_dispatch")
"""GitHub events whose checkout is on the branch that they name."""
_OF_PULL_REQUESTS = ("pull_request", "pull_request_target")
_OF_MERGE_REQUESTS = ("merge_request_event", "external_pull_request_event")


class _Occasion(NamedTuple):
    """The trigger of a CI run."""

    kind: Literal["branch", "pull_request", "queue", "tag", "other"]
    name: str = ""
    """The name of the branch or, for `other`, of the event."""


def why_not_unasked(store: BaselineStore, context: RunContext) -> UsageError | None:
    """Return why a run is not stored automatically.

    Besides the reasons of `why_not`: the store is a file in the work tree, or it is unknown
    whether the code is merged.
    """
    how = context.command("baseline", "save")
    if store.work_tree_file:
        return UsageError(
            f"not stored: auto does not change the baseline file in the work tree; `{how}` does"
        )
    if _occasion(context.env) is None:
        return UsageError(
            "not stored: outside GitHub and GitLab, auto cannot tell whether code is merged; "
            f"`{how}` stores the run anyway"
        )
    return why_not(store, context)


def why_not(
    store: BaselineStore, context: RunContext, *, from_pull_request: bool = False
) -> UsageError | None:
    """Return why a run does not belong in the baseline: CI runs it on unmerged code.

    `from_pull_request` allows runs of pull requests.
    """
    occasion = _occasion(context.env)
    if occasion is None or (occasion.kind == "pull_request" and from_pull_request):
        return None
    branches = tracked(store, context)
    shown = " or ".join(map(repr, branches)) or "a tracked branch"
    hint = f"a workflow that runs on pushes to {shown} stores merged code"
    match occasion.kind:
        case "pull_request":
            message = "this is a pull request, and the baseline only holds merged code"
            hint += "; to store it anyway, use --from-pull-request"
        case "queue":
            message = "merge queue entries are not merged yet"
        case "tag":
            message = "a tag was pushed, not a branch"
        case "other":
            message = f"the event {occasion.name!r} does not identify merged code"
        case "branch" if not branches:
            message = "the tracked branch is unknown"
            hint = "set `baseline: {branches: [main]}`"
        case "branch":
            if any(fnmatchcase(occasion.name, each) for each in branches):
                return None
            message = f"the branch {occasion.name!r} is not tracked, only {shown}"
            hint = "add it to `baseline: {branches: […]}`, by name or pattern"
    return UsageError(f"not stored: {message}", hint=hint)


def tracked(store: BaselineStore, context: RunContext) -> Sequence[str]:
    """Return the names or patterns of the branches whose runs are stored; none if unknown."""
    named = store.base or default_branch(context.clone)
    return store.branches or ((named,) if named else ())


def _occasion(env: Mapping[str, str]) -> _Occasion | None:
    """Return the trigger of the CI run; `None` outside any known CI."""
    if in_actions(env):
        return _on_github(env)
    if in_gitlab(env):
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
        case {"action": "closed", "pull_request": {"merged": True, "base": {"ref": str(branch)}}}:
            return branch
    return None


def _on_gitlab(env: Mapping[str, str]) -> _Occasion:
    # A child pipeline inherits the merge request of its parent.
    if env.get("CI_MERGE_REQUEST_IID") or env.get("CI_PIPELINE_SOURCE") in _OF_MERGE_REQUESTS:
        return _Occasion("pull_request")
    branch = env.get("CI_COMMIT_BRANCH")
    return _Occasion("branch", branch) if branch else _Occasion("tag")
