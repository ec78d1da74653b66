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

from ci_eval.forge.github import GitHub, connected
from ci_eval.forge.github_errors import GitHubError
from ci_eval.forge.lineage import event
from ci_eval.pull_requests import artifacts, check_run, pull_request, sticky, unevaluated
from ci_eval.pull_requests.after_run import Place, section
from ci_eval.pull_requests.github_runner import not_evaluated
from ci_eval.pull_requests.github_thread import GitHubThread
from ci_eval.pull_requests.options import Options, calls_for
from ci_eval.pull_requests.pull_request import PullRequest
from ci_eval.pull_requests.sections import Outcome, Section, apart, name_in_line, read
from ci_eval.pull_requests.sticky import Posted
from ci_eval.pull_requests.thread import Comment, PostingError
from ci_eval.records.errors import CiEvalError, UsageError
from ci_eval.records.findings import Report
from ci_eval.records.model import Stored
from ci_eval.reporters.markdown import Markdown, marker
from ci_eval.runtime.context import RunContext
from ci_eval.text.templates import code

MAX_SUITES = 20
"""How many comments of ours a pull request may have: a fork names its suites as it likes."""
_EVENTS = ("pull_request", "pull_request_target")
_MEASURED = "Measured by the fork's own workflow run, so the code under test could have written it"
_OUTSIDE = (
    "name the reports to post, or run this in a workflow on `workflow_run`, as docs/forks.md shows"
)


class Told(NamedTuple):
    """What became of one report; of the report itself, which may be long, as much as is said."""

    suite: str
    job: str
    outcome: Outcome
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


def relay(options: Options, pattern: str, context: RunContext) -> Relayed:
    """Tell of the reports in the artifacts of the run that this workflow was started by.

    Raises:
        UsageError: no workflow run started this.
        PostingError: GitHub cannot be asked, or refuses.

    """
    number, sha = _started_by(context.env)
    try:
        return asyncio.run(_relay(number, sha, options, pattern, context))
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


async def _relay(
    number: int, sha: str, options: Options, pattern: str, context: RunContext
) -> Relayed:
    async with connected(context) as github:
        run = await github.one(f"actions/runs/{number}", WorkflowRun, needs=artifacts.NEEDS)
        here = context.env["GITHUB_REPOSITORY"]
        if (run.id, run.head_sha) != (number, sha) or run.repository.full_name != here:
            raise PostingError(f"the event is not about the workflow run {number} of {here}")
        if (why := _nothing_to_do(run)) is not None:
            context.say(f"nothing to publish: {why}")
            return Relayed()
        source = run.head_repository.full_name if run.head_repository else ""
        pulls = await pull_request.of_branch(github, source, run.head_branch or "", sha)
        if options.pull_request:
            pulls = [each for each in pulls if each.number == options.pull_request]
        if not pulls:
            context.say(
                f"nothing to publish: no open pull request ends with {sha[:10]}; a newer commit "
                "has a run of its own"
            )
            return Relayed()
        return await _Relay(github, run, pulls, options, context).all(pattern)


def _nothing_to_do(run: WorkflowRun) -> str | None:
    if run.event not in _EVENTS:
        return f"the workflow run was of the event {run.event!r}, not of a pull request"
    if run.status != "completed":
        return "the workflow run has not ended; publish on `types: [completed]`"
    return None


@dataclass
class _Suite:
    """What the jobs of a run say of one suite."""

    pull: PullRequest
    name: str
    sections: list[Section] = field(default_factory=list)
    is_wanted: bool = False
    """Whether any of them calls for a comment."""


class _Relay:
    """Tells of one run."""

    def __init__(
        self,
        github: GitHub,
        run: WorkflowRun,
        pulls: list[PullRequest],
        options: Options,
        context: RunContext,
    ) -> None:
        self._github = github
        self._run = run
        self._pulls = pulls
        self._options = options
        self._world = context
        self._threads = {each.number: GitHubThread(github, each.number) for each in pulls}
        self._own: dict[int, list[Comment]] = {}
        """The comments that were ours before, by the numbers of pull requests."""
        self._known: dict[int, set[str]] = {}
        """The first lines of our comments, likewise."""
        self._suites: dict[tuple[int, str], _Suite] = {}
        """What is to be told, by the numbers of pull requests and the names of suites."""
        self._makes_checks = options.check_run

    async def all(self, pattern: str) -> Relayed:
        relayed = Relayed()
        found = await artifacts.listed(self._github, self._run.id, pattern)
        is_readable = await self._take(found, relayed)
        for each in self._suites.values():
            try:
                relayed.told += await self._tell(each)
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

    async def _take(self, found: list[artifacts.Artifact], relayed: Relayed) -> bool:
        """Take what is to be told from artifacts; say whether any report could be read."""
        is_readable = False
        try:
            async for left in artifacts.reports(self._github, found):
                if left.report is None:
                    relayed.errors += [left.error] if left.error else []
                    continue
                is_readable = True
                await self._take_one(left.report, relayed)
        except GitHubError as exc:
            if not is_readable:
                raise
            # What was read is told all the same.
            relayed.errors.append(posting_error(exc))
        return is_readable

    async def _take_one(self, report: Report, relayed: Relayed) -> None:
        pull = self._meant(report)
        if pull is None:
            self._say_of_several()
            return
        note = _note(report, pull, self._run, self._link)
        # What is shown as the commit is what GitHub says.
        meta = report.meta.model_copy(update={"commit": pull.head_sha})
        report = report.model_copy(update={"meta": meta})
        await self._check(report, pull, relayed)
        name = report.meta.suite
        suite = self._suites.setdefault((pull.number, name), _Suite(pull, name))
        # Written as we write it: a template of the repository is not asked about strangers.
        suite.sections.append(section(report, self._place(pull), Markdown(), note=note))
        suite.is_wanted |= calls_for(report, self._options.when)

    async def _tell(self, suite: "_Suite") -> list[Told]:
        posted, number = Posted("off"), suite.pull.number
        if self._options.mode != "off":
            await self._keep_few(suite)
            posted = await self._post(suite)
            if unevaluated.first_line(self._name) in self._known[number]:
                await unevaluated.clear(self._threads[number], self._name)
        return [Told(suite.name, each.job, each.outcome, posted) for each in suite.sections]

    async def _post(self, suite: "_Suite") -> Posted:
        """Write what is not told yet.

        The jobs of the repository itself may write, and write as its template says; what they did
        is left as it is.
        """
        sections, said = apart(suite.sections), dict[tuple[str, int, str], str]()
        for each in () if suite.pull.is_fork else self._own[suite.pull.number]:
            found = () if each.hidden else read(suite.name, each.body)
            said |= {(one.job, one.run, one.outcome): each.url for one in found}
        keys = [(name_in_line(each.job), each.run, each.outcome) for each in sections]
        left = [each for each, key in zip(sections, keys, strict=True) if key not in said]
        if not left:
            return Posted("unchanged", said[keys[0]])
        thread = self._threads[suite.pull.number]
        return await sticky.post(thread, left, self._options, wanted=suite.is_wanted)

    async def _check(self, report: Report, pull: PullRequest, relayed: Relayed) -> None:
        """Make the check run; the comment does not depend on it."""
        if not self._makes_checks:
            return
        if pull.is_fork:
            # It would be green where the fork says so.
            self._world.say("no check run: what a fork measured itself is no check of ours")
            return
        try:
            await check_run.make(self._github, report, pull.head_sha, self._link)
        except GitHubError as exc:
            relayed.errors.append(PostingError(f"no check run: {exc}", hint=exc.hint))
            self._makes_checks = False  # it would be so with the others, too

    def _meant(self, report: Report) -> PullRequest | None:
        """Return the pull request that a run is of, where one branch has several.

        Which of his own a stranger's report is told on, he may say: by the commit that merges it,
        which is what a workflow checks out.
        """
        if len(self._pulls) == 1:
            return self._pulls[0]
        merged = [each for each in self._pulls if each.merge_sha == report.meta.commit]
        return merged[0] if len(merged) == 1 else None

    async def _keep_few(self, suite: "_Suite") -> None:
        number, name = suite.pull.number, suite.name
        if number not in self._known:
            self._own[number] = await self._threads[number].own()
            self._known[number] = {each.first_line for each in self._own[number]}
        known = self._known[number]
        if marker(name) not in known and len(known) >= MAX_SUITES:
            message = f"no comment for the suite {name!r}: {MAX_SUITES} suites are the most"
            raise PostingError(message)
        known |= {marker(name)}

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


def _note(report: Report, pull: PullRequest, run: WorkflowRun, link: str) -> str:
    """Return what stands before a report, in Markdown."""
    said = [f"{_MEASURED} ([the run]({link}))."] if pull.is_fork else []
    if report.verdict.outcome == "passed" and run.conclusion != "success":
        said.append(
            f"The workflow run itself ended with {code(run.conclusion or 'unknown')}, so another "
            "job of it may have left no report."
        )
    commit = report.meta.commit
    if commit not in (None, pull.head_sha, pull.merge_sha):
        said.append(
            f"It names the commit {code(str(commit)[:10])}, which is neither the newest of this "
            "pull request nor its merge."
        )
    return f"<sub>{' '.join(said)}</sub>\n\n" if said else ""
