"""Tells of a run on the pull request it is of; a verdict stands whatever becomes of that."""

import asyncio
import re
from collections.abc import Mapping
from typing import NamedTuple

from ci_eval.errors import Problem
from ci_eval.findings import Report
from ci_eval.github import GitHub, connected
from ci_eval.github_answers import GitHubError
from ci_eval.lineage import event
from ci_eval.posting import check_run, gitlab_thread, pull_request, sticky
from ci_eval.posting.github_thread import GitHubThread
from ci_eval.posting.options import Options, calls_for
from ci_eval.posting.sections import Section
from ci_eval.posting.sticky import Posted
from ci_eval.posting.thread import PostingError, Thread
from ci_eval.publish import annotate
from ci_eval.reporters.markdown import Markdown
from ci_eval.world import World

MAX_TEXT = 60_000
"""Characters of what one job says: GitHub takes 65,536 in all."""


class Place(NamedTuple):
    """Where a report is told."""

    thread: Thread
    commit: str
    """The newest commit of the change."""
    run: int
    """The number of the workflow run or pipeline that measured."""
    attempt: int
    """Which attempt of it, or which job: the newer has the larger number."""


def post(
    report: Report, options: Options, world: World, document: Markdown | None = None
) -> Posted:
    """Tell of a run as `document` writes it, or say why it is not told."""
    writes = document or Markdown()
    tell = _on_gitlab if world.env.get("GITLAB_CI") == "true" else _on_github
    try:
        return asyncio.run(tell(report, options, world, writes))
    except PostingError as exc:
        return _not_posted(exc, world)


def _not_posted(exc: PostingError, world: World) -> Posted:
    """Say why; a token that only reads is no fault of the person whose fork it is."""
    if exc.is_refusal and _of_stranger(world.env):
        world.say(
            f"no comment yet: {exc}; what a fork measured is posted by somebody who may, with "
            "`ci-eval publish`"
        )
        return Posted("deferred")
    _warn(f"no comment: {exc}", exc.hint, world)
    return Posted("failed")


async def _on_github(report: Report, options: Options, world: World, writes: Markdown) -> Posted:
    env = world.env
    try:
        async with connected(world) as github:
            found = await pull_request.find(github, env, options.pull_request)
            if options.check_run:
                commit = found.head_sha if found else env.get("GITHUB_SHA", "")
                await _check_run(github, report, commit, world)
            if options.mode == "off":
                return Posted("off")
            if found is None:
                world.say("no comment: there is no open pull request of this commit")
                return Posted("none")
            place = Place(
                GitHubThread(github, found.number),
                found.head_sha,
                run=_number(env, "GITHUB_RUN_ID"),
                attempt=_number(env, "GITHUB_RUN_ATTEMPT"),
            )
            return await told(report, place, options, writes)
    except GitHubError as exc:
        is_refusal = exc.status in (401, 403, 404)
        raise PostingError(str(exc), hint=exc.hint, is_refusal=is_refusal) from exc


async def _on_gitlab(report: Report, options: Options, world: World, writes: Markdown) -> Posted:
    if options.mode == "off":
        return Posted("off")
    async with gitlab_thread.opened(world, options.pull_request) as found:
        if found is None:
            world.say("no comment: there is no open merge request of this commit")
            return Posted("none")
        thread, merge_request = found
        place = Place(
            thread,
            merge_request.commit,
            run=_number(world.env, "CI_PIPELINE_ID"),
            attempt=_number(world.env, "CI_JOB_ID"),
        )
        return await told(report, place, options, writes)


async def _check_run(github: GitHub, report: Report, commit: str, world: World) -> None:
    """Make the check run; the comment does not depend on it."""
    env = world.env
    server, repository = env.get("GITHUB_SERVER_URL", ""), env.get("GITHUB_REPOSITORY", "")
    run = env.get("GITHUB_RUN_ID", "")
    details = f"{server}/{repository}/actions/runs/{run}" if server and run else ""
    try:
        await check_run.make(github, report, commit, details)
    except GitHubError as exc:
        _warn(f"no check run: {exc}", exc.hint, world)


def _warn(message: str, hint: str, world: World) -> None:
    world.say(message)
    if hint:
        world.say(hint)
    annotate([Problem(f"{message}; {hint}" if hint else message, severity="warning")], world.env)


async def told(
    report: Report, place: Place, options: Options, writes: Markdown, *, note: str = ""
) -> Posted:
    """Let the comment of the suite say what `report` says, with a `note` below the decision.

    Raises:
        PostingError: it was not written, or nobody knows.

    """
    room = min(MAX_TEXT, place.thread.limit) - len(note) - 2
    text = writes.body(report, lambda found: len(found) <= room)
    if note:
        decision, _, rest = text.partition("\n\n")
        text = f"{decision}\n\n{note.strip()}\n\n{rest}"
    section = Section(
        suite=report.meta.suite,
        job=report.meta.job,
        outcome=report.verdict.outcome,
        text=text,
        commit=place.commit,
        run=place.run,
        attempt=place.attempt,
    )
    wanted = calls_for(report, options.when)
    return await sticky.post(place.thread, section, options, wanted=wanted)


def _number(env: Mapping[str, str], name: str) -> int:
    """Return a number that CI counts upwards; 0 where it tells none."""
    return int(env[name]) if re.fullmatch("[0-9]{1,18}", env.get(name, "")) else 0


def _of_stranger(env: Mapping[str, str]) -> bool:
    """Say whether the event is of somebody who gets a token that only reads."""
    if env.get("GITHUB_ACTOR") == "dependabot[bot]":
        return True
    if gitlab_thread.is_of_fork(env):
        return True
    match event(env):
        case {
            "pull_request": {"head": {"repo": {"full_name": str(head)}}},
            "repository": {"full_name": str(base)},
        }:
            return head != base
    return False
