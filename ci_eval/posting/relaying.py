"""What another workflow run measured is told on its pull request, by a run that may write there.

Pull requests of forks are evaluated without secrets and with a token that only reads.  A second
workflow of the repository, on `workflow_run`, has a token that writes, and runs nothing of the
fork's.  Which pull request it is, which commit, and how the run ended, only GitHub is asked; the
report in the artifact is the word of a stranger.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ci_eval.errors import CiEvalError, UsageError
from ci_eval.findings import Report
from ci_eval.github import GitHub, connected
from ci_eval.github_answers import GitHubError
from ci_eval.lineage import event
from ci_eval.posting import artifacts, check_run, pull_request, unevaluated
from ci_eval.posting.after_run import Place, told
from ci_eval.posting.github_thread import GitHubThread
from ci_eval.posting.options import Options
from ci_eval.posting.pull_request import PullRequest
from ci_eval.posting.sticky import Posted
from ci_eval.posting.thread import PostingError
from ci_eval.publish import not_evaluated
from ci_eval.records import Stored
from ci_eval.reporters.markdown import Markdown, marker
from ci_eval.templating import code
from ci_eval.world import World

MAX_SUITES = 20
"""How many comments of ours a pull request may have: a fork names its suites as it likes."""
_EVENTS = ("pull_request", "pull_request_target")
_MEASURED = "Measured by the fork's own workflow run, so the code under test could have written it"
_OUTSIDE = (
    "name the reports to post, or run this in a workflow on `workflow_run`, as docs/forks.md shows"
)


class Told(NamedTuple):
    """What became of one report."""

    report: Report
    posted: Posted


@dataclass
class Relayed:
    """What became of all that a workflow run left."""

    told: list[Told] = field(default_factory=list)
    errors: list[CiEvalError] = field(default_factory=list)
    """Why others were not told."""
    notice: Posted | None = None
    """What became of the comment which says that there is no report."""


class _Repository(Stored):
    full_name: str


class WorkflowRun(Stored):
    """A workflow run, as GitHub tells of it."""

    id: int
    head_sha: str
    head_branch: str | None = None
    head_repository: _Repository | None = None
    """`None` where the fork is gone."""
    repository: _Repository
    event: str
    status: str | None = None
    conclusion: str | None = None
    run_attempt: int = 1
    name: str | None = None


def relay(options: Options, pattern: str, world: World) -> Relayed:
    """Tell of the reports in the artifacts of the run that this workflow was started by.

    Raises:
        UsageError: no workflow run started this.
        PostingError: GitHub cannot be asked, or refuses.

    """
    number, sha = _started_by(world.env)
    try:
        return asyncio.run(_relay(number, sha, options, pattern, world))
    except GitHubError as exc:
        raise posting_error(exc) from exc


def posting_error(error: PostingError | GitHubError) -> PostingError:
    """Return what a user is told."""
    if isinstance(error, PostingError):
        return error
    return PostingError(f"not published: {error}", hint=error.hint)


def _started_by(env: Mapping[str, str]) -> tuple[int, str]:
    """Return the run that the event is about, and its commit."""
    name = env.get("GITHUB_EVENT_NAME", "")
    if name != "workflow_run":
        found = f"the event is {name!r}" if name else "no workflow runs this"
        raise UsageError(f"there is no report to publish: {found}", hint=_OUTSIDE)
    match event(env):
        case {"workflow_run": {"id": int(number), "head_sha": str(sha)}}:
            return number, sha
    raise UsageError("GITHUB_EVENT_PATH tells of no workflow run", hint=_OUTSIDE)


async def _relay(number: int, sha: str, options: Options, pattern: str, world: World) -> Relayed:
    async with connected(world) as github:
        run = await github.one(f"actions/runs/{number}", WorkflowRun, needs=artifacts.NEEDS)
        here = world.env["GITHUB_REPOSITORY"]
        if (run.id, run.head_sha) != (number, sha) or run.repository.full_name != here:
            raise PostingError(f"the event is not about the workflow run {number} of {here}")
        if (why := _nothing_to_do(run)) is not None:
            world.say(f"nothing to publish: {why}")
            return Relayed()
        source = run.head_repository.full_name if run.head_repository else ""
        pulls = await pull_request.of_branch(github, source, run.head_branch or "", sha)
        if options.pull_request:
            pulls = [each for each in pulls if each.number == options.pull_request]
        if not pulls:
            world.say(
                f"nothing to publish: no open pull request ends with {sha[:10]}; a newer commit "
                "has a run of its own"
            )
            return Relayed()
        return await _Relay(github, run, pulls, options, world).all(pattern)


def _nothing_to_do(run: WorkflowRun) -> str | None:
    if run.event not in _EVENTS:
        return f"the workflow run was of the event {run.event!r}, not of a pull request"
    if run.status != "completed":
        return "the workflow run has not ended; publish on `types: [completed]`"
    return None


class _Relay:
    """Tells of one run."""

    def __init__(
        self,
        github: GitHub,
        run: WorkflowRun,
        pulls: list[PullRequest],
        options: Options,
        world: World,
    ) -> None:
        self._github = github
        self._run = run
        self._pulls = pulls
        self._options = options
        self._world = world
        self._threads = {each.number: GitHubThread(github, each.number) for each in pulls}
        self._known: dict[int, set[str]] = {}
        """The first lines of our comments, by the numbers of pull requests."""

    async def all(self, pattern: str) -> Relayed:
        relayed = Relayed()
        found = await artifacts.listed(self._github, self._run.id, pattern)
        is_readable = False
        async for left in artifacts.reports(self._github, found):
            if left.report is None:
                relayed.errors += [left.error] if left.error else []
                continue
            is_readable = True
            try:
                if (told := await self._tell(left.report)) is not None:
                    relayed.told.append(told)
            except (PostingError, GitHubError) as exc:
                relayed.errors.append(posting_error(exc))
                if isinstance(exc, GitHubError) or exc.is_refusal:
                    break  # it would be so with the others, too
        if is_readable or self._options.mode == "off":
            return relayed
        if len(self._pulls) == 1:
            relayed.notice = await self._tell_of_none(pattern, is_there=bool(found))
        else:
            self._say_of_several()
        return relayed

    async def _tell(self, report: Report) -> Told | None:
        pull = self._meant(report)
        if pull is None:
            self._say_of_several()
            return None
        await self._keep_few(pull, report.meta.suite)
        note = _note(report, pull, self._link)
        # What is shown as the commit is what GitHub says.
        meta = report.meta.model_copy(update={"commit": pull.head_sha})
        report = report.model_copy(update={"meta": meta})
        await self._check(report, pull)
        if self._options.mode == "off":
            return Told(report, Posted("off"))
        # Written as we write it: a template of the repository is not asked about strangers.
        posted = await told(report, self._place(pull), self._options, Markdown(), note=note)
        if unevaluated.first_line(self._name) in self._known[pull.number]:
            await unevaluated.clear(self._threads[pull.number], self._name)
        return Told(report, posted)

    async def _check(self, report: Report, pull: PullRequest) -> None:
        if not self._options.check_run:
            return
        if pull.is_fork:
            # It would be green where the fork says so.
            self._world.say("no check run: what a fork measured itself is no check of ours")
            return
        await check_run.make(self._github, report, pull.head_sha, self._link)

    def _meant(self, report: Report) -> PullRequest | None:
        """Return the pull request that a run is of, where one branch has several.

        Which of his own a stranger's report is told on, he may say: by the commit that merges it,
        which is what a workflow checks out.
        """
        if len(self._pulls) == 1:
            return self._pulls[0]
        merged = [each for each in self._pulls if each.merge_sha == report.meta.commit]
        return merged[0] if len(merged) == 1 else None

    async def _keep_few(self, pull: PullRequest, suite: str) -> None:
        if pull.number not in self._known:
            own = await self._threads[pull.number].own()
            self._known[pull.number] = {each.first_line for each in own}
        known = self._known[pull.number]
        if marker(suite) not in known and len(known) >= MAX_SUITES:
            message = f"no comment for the suite {suite!r}: {MAX_SUITES} suites are the most"
            raise PostingError(message)
        known |= {marker(suite)}

    def _say_of_several(self) -> None:
        numbers = pull_request.listed(self._pulls)
        self._world.say(f"not published: the run may be of any of the pull requests {numbers}")

    async def _tell_of_none(self, pattern: str, *, is_there: bool) -> Posted:
        why = (
            "left no report that can be read"
            if is_there
            else f"left no artifact {code(pattern)} with a report"
        )
        ended = code(self._run.conclusion or "unknown")
        why = f"the workflow run ended with {ended} and {why}"
        text = not_evaluated(why, link=self._link)
        return await unevaluated.tell(self._place(self._pulls[0]), self._name, text, self._options)

    def _place(self, pull: PullRequest) -> Place:
        thread = self._threads[pull.number]
        return Place(thread, pull.head_sha, self._run.id, self._run.run_attempt)

    @property
    def _name(self) -> str:
        """What the workflow is called."""
        return self._run.name or ""

    @property
    def _link(self) -> str:
        env = self._world.env
        server = env.get("GITHUB_SERVER_URL") or "https://github.com"
        return f"{server}/{env['GITHUB_REPOSITORY']}/actions/runs/{self._run.id}"


def _note(report: Report, pull: PullRequest, link: str) -> str:
    """Return what stands before a report, in Markdown."""
    said = [f"{_MEASURED} ([the run]({link}))."] if pull.is_fork else []
    commit = report.meta.commit
    if commit not in (None, pull.head_sha, pull.merge_sha):
        said.append(
            f"It names the commit {code(str(commit)[:10])}, which is neither the newest of this "
            "pull request nor its merge."
        )
    return f"<sub>{' '.join(said)}</sub>\n\n" if said else ""
