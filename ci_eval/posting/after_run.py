"""Tells of a run on the pull request it is of; a verdict stands whatever becomes of that."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

from ci_eval.findings import Report
from ci_eval.github import connected
from ci_eval.github_answers import GitHubError
from ci_eval.lineage import event
from ci_eval.posting import pull_request, sticky, wording
from ci_eval.posting.github_thread import GitHubThread
from ci_eval.posting.options import Options, calls_for
from ci_eval.posting.sections import Section
from ci_eval.posting.sticky import Posted
from ci_eval.posting.thread import PostingError, Thread
from ci_eval.world import World

MAX_TEXT = 60_000
"""Characters of what one job says: GitHub takes 65,536 in all."""


class Place(NamedTuple):
    """Where a report is told."""

    thread: Thread
    commit: str
    """The newest commit of the change."""
    run: int
    attempt: int


def post(report: Report, options: Options, world: World) -> Posted:
    """Tell of a run, or say why it is not told."""
    if options.is_off:
        return Posted("off")
    try:
        return asyncio.run(_post(report, options, world))
    except PostingError as exc:
        if exc.is_refusal and _of_stranger(world.env):
            world.say(f"no comment: {exc}; a workflow with `ci-eval publish` writes it for forks")
            return Posted("deferred")
        world.say(f"no comment: {exc}")
        if exc.hint:
            world.say(exc.hint)
        return Posted("failed")


async def _post(report: Report, options: Options, world: World) -> Posted:
    async with _opened(options, world) as place:
        if place is None:
            world.say("no comment: there is no open pull request of this commit")
            return Posted("none")
        return await told(report, place, options)


async def told(report: Report, place: Place, options: Options) -> Posted:
    """Let the comment of the suite say what `report` says.

    Raises:
        PostingError: it was not written, or nobody knows.

    """
    section = Section(
        suite=report.meta.suite,
        job=report.meta.job,
        outcome=report.verdict.outcome,
        text=wording.text(report, min(MAX_TEXT, place.thread.limit)),
        commit=place.commit,
        run=place.run,
        attempt=place.attempt,
    )
    wanted = calls_for(report, options.when)
    return await sticky.post(place.thread, section, options, wanted=wanted)


@asynccontextmanager
async def _opened(options: Options, world: World) -> AsyncIterator[Place | None]:
    """Be ready to write where CI says that the change is talked about."""
    env = world.env
    try:
        async with connected(world) as github:
            found = await pull_request.find(github, env, options.pull_request)
            if found is None:
                yield None
                return
            thread = GitHubThread(github, found.number)
            yield Place(thread, found.head_sha, *_counted(env))
    except GitHubError as exc:
        is_refusal = exc.status in (401, 403, 404)
        raise PostingError(str(exc), hint=exc.hint, is_refusal=is_refusal) from exc


def _counted(env: Mapping[str, str]) -> tuple[int, int]:
    """Return the number and the attempt of the workflow run."""
    run, attempt = env.get("GITHUB_RUN_ID", ""), env.get("GITHUB_RUN_ATTEMPT", "")
    return int(run) if run.isdecimal() else 0, int(attempt) if attempt.isdecimal() else 1


def _of_stranger(env: Mapping[str, str]) -> bool:
    """Say whether the event is of somebody who gets a token that only reads."""
    if env.get("GITHUB_ACTOR") == "dependabot[bot]":
        return True
    match event(env):
        case {
            "pull_request": {"head": {"repo": {"full_name": str(head)}}},
            "repository": {"full_name": str(base)},
        }:
            return head != base
    return False
