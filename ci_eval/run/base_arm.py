"""The base arm: the agents of the merge base, run in the same job on the same cases.

The day, a provider or a broken fixture affects the scores of both arms alike, so a difference
between them is due to the change.  The merge base alone defines its agents: its files are checked
out from the clone into a separate work tree, and its configuration there says how to run them.  The
change decides which cases are tried and how they are scored; a case takes part if the merge base
has it with the same content.
"""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ci_eval.config import handed_secrets
from ci_eval.config import load_config as configuration
from ci_eval.forge.lineage import target_branch, unrelated
from ci_eval.forge.missing_commit import why_missing
from ci_eval.llm.gateway.gateway_clients import gateway_options, replays, with_models
from ci_eval.llm.gateway.gateway_options import ModelOptions
from ci_eval.plugins.points import Agent
from ci_eval.records.errors import CiEvalError, NothingSelectedError
from ci_eval.run.plan import Plan, plan
from ci_eval.run.shared_environments import share
from ci_eval.runtime.checkout import check_out
from ci_eval.runtime.clone import NO_CLONE
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import moved
from ci_eval.runtime.git import GitError
from ci_eval.runtime.isolation import account, admit_alone
from ci_eval.runtime.path_checks import contained
from ci_eval.runtime.workspace import agent_workspace
from ci_eval.text.sanitize import one_line

MAX_REASON = 300
"""How many characters of the reason for a missing base arm are shown."""

_ABSOLUTE = re.compile(r"(?<![\w.-])/[^\"'\s:;,|&()<>\\]+")
_SEPARATE = "a running server needs `base`, a started one `{port}` in its address"
_DEEPEN = "check out with `fetch-depth: 0`, or run `git fetch --unshallow`"
_UNNAMED = "name the base branch in `baseline.base`, and fetch it"


class NoBaseArmError(Exception):
    """The agents of the merge base cannot be run; the message says why.

    `is_new` is True if the merge base has nothing to run yet.
    """

    def __init__(self, message: str, *, is_new: bool = False) -> None:
        super().__init__(message)
        self.is_new = is_new


@dataclass(frozen=True)
class BaseArm:
    """The agents of the merge base and what they are tried on."""

    plan: Plan
    """The plan of the change with the agents of the merge base, limited to what both have."""
    context: RunContext
    commit: str
    tree: Path
    """The folder with its files."""
    gone: Mapping[str, tuple[str, ...]]
    """The cases of the merge base that the change lacks, by evalset."""
    gone_groups: tuple[tuple[str, str, str], ...]
    """What the merge base scores and the change does not: agent, evalset and criterion."""
    changed_cases: Mapping[str, tuple[str, ...]]
    """The cases of the merge base whose content the change changed, by evalset."""
    alike: frozenset[str]
    """The agents whose model calls are replayed, with the same answers as in the change."""


@contextmanager
def base_arm(planned: Plan, context: RunContext, commit: str | None) -> Iterator[BaseArm]:
    """Check out the merge base `commit`, and remove its work tree at the end.

    Raises:
        NoBaseArmError: its agents cannot be run.

    """
    folder = Path(tempfile.mkdtemp(prefix="ci-eval-base-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        admit_alone(folder, account(of_base=True))
        try:
            arm = _prepared(planned, context, _available(planned, context, commit), folder / "tree")
            files = handed_secrets.files(arm.plan.config, arm.context)
            room = stack.enter_context(agent_workspace(arm.context, files))
        except (CiEvalError, GitError, OSError) as exc:
            is_new = isinstance(exc, NothingSelectedError)
            raise NoBaseArmError(one_line(str(exc), MAX_REASON), is_new=is_new) from exc
        yield replace(arm, context=room)


def _available(planned: Plan, context: RunContext, commit: str | None) -> str:
    """Return the commit, if the clone has it."""
    clone = context.clone
    if missing := clone.missing:
        raise NoBaseArmError(missing)
    if commit is None:
        store = planned.config.baseline
        branch = target_branch(context.env) or (store.base if store else None)
        if other := unrelated(clone, branch):
            raise NoBaseArmError(f"this branch shares no commit with {other!r}")
        if not (clone.head and clone.view.parents(clone.head)):
            message = "there is no earlier commit yet; later commits will be compared"
            raise NoBaseArmError(message, is_new=True)
        named = f"fetch the branch {branch!r}" if branch else _UNNAMED
        if clone.is_shallow:
            named = f"the clone is shallow; {_DEEPEN}"
        raise NoBaseArmError(f"the merge base is unknown; {named}")
    if why := why_missing(context, commit):
        raise NoBaseArmError(why)
    return commit


def _prepared(planned: Plan, context: RunContext, commit: str, tree: Path) -> BaseArm:
    try:
        within = context.clone.inside(".")
        check_out(context.clone, commit, tree)
    except GitError as exc:
        raise NoBaseArmError(f"the merge base cannot be checked out: {exc}") from exc
    _pretend_clone(tree, commit)
    own = _own_context(context, tree, tree / within)
    shared = [*share(planned.config.agents.values(), context, commit, tree, own.root)]
    if shared:
        searched = os.pathsep.join(filter(None, (*shared, own.env.get("PYTHONPATH"))))
        own = replace(own, env={**own.env, "PYTHONPATH": searched})
    path = own.root / planned.config.path.name
    if not path.is_file():
        where = f"{context.clone.inside(planned.config.path.name)} is not in the merge base"
        message = f"{where} {commit[:7]}; changes are compared once it is merged"
        hint = "if this change moves it, merge the move alone first"
        raise NoBaseArmError(f"{message}, so {hint}", is_new=True)
    config = configuration.load(path, shown=f"{commit[:7]}:{planned.config.shown}", context=own)
    own = handed_secrets.with_secrets(own, config)
    before = plan(config, own, repeats=1)
    options_of = partial(_of_base, planned, own.models_mode)
    agents = with_models(_agents(planned, before, context), options_of)
    pairs = {pair: criteria for pair, criteria in planned.pairs.items() if pair[0] in agents}
    known = {trial.key.place: trial.fingerprint for trial in before.trials()}
    trials = replace(planned, pairs=pairs, repeats=1).trials()
    now = {trial.key.place: trial.fingerprint for trial in trials}
    places = frozenset(place for place, content in now.items() if known.get(place) == content)
    changed: dict[str, set[str]] = {}
    for place in (now.keys() & known.keys()) - places:
        changed.setdefault(place.evalset, set()).add(place.case)
    pairs = {pair: each for pair, each in pairs.items() if any(pair == p[:2] for p in places)}
    run = planned.config.run.model_copy(update={"timeout_s": config.run.timeout_s})
    mixed = replace(planned.config, agents=agents, run=run)
    names = () if planned.filtered else {**planned.evalsets, **before.evalsets}
    gone = {name: found for name in names if (found := _gone(planned, before, name))}
    is_shard = planned.places is not None and not planned.filtered
    is_whole = not (is_shard or planned.filtered)
    groups = tuple(_gone_groups(planned, before)) if is_whole else ()
    if not (places or is_shard or gone or groups):  # what a shard lacks, its merge finds out
        message = "no agent can run any case that the merge base also has"
        raise NoBaseArmError(message, is_new=planned.filtered)
    alike = frozenset(
        name
        for name, agent in agents.items()
        if _answers(agent, own) == _answers(planned.config.agents[name], context) != ""
    )
    arm = replace(planned, config=mixed, pairs=pairs, places=places)
    changed_cases = {name: tuple(sorted(cases)) for name, cases in changed.items()}
    return BaseArm(arm, own, commit, tree, gone, groups, changed_cases, alike)


def _answers(agent: Agent, context: RunContext) -> str:
    """Return a digest of the model answers that an agent gets; empty if there are none to replay.

    Raises:
        UsageError: the path of its cassette leads out of the repository.
        OSError: the cassette cannot be read.

    """
    options = gateway_options(agent)
    if options is None or not replays(agent, context.env):
        return ""
    cassette = contained(context.root, options.cassette)
    if not cassette.exists():
        return ""
    with cassette.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _path_of_change(agent: Agent, context: RunContext) -> str:
    """Return an absolute path in the agent's options that leads into the work tree of the change.

    Virtual environments do not count, as they hold dependencies.  Empty if there is none.
    """
    top = Path(os.path.realpath(context.clone.top or os.devnull))
    for found in _ABSOLUTE.findall(agent.model_dump_json(by_alias=True)):
        path = Path(os.path.normpath(found))
        is_inside = Path(os.path.realpath(path)).is_relative_to(top)
        is_inside |= path.is_relative_to(context.clone.top or os.devnull)  # a link to a Python
        if is_inside and not any((each / "pyvenv.cfg").is_file() for each in path.parents):
            return str(path)
    return ""


def _gone(planned: Plan, before: Plan, evalset: str) -> tuple[str, ...]:
    """Return the cases that the merge base has in an evalset and the change lacks."""
    if evalset not in before.evalsets:
        return ()
    known = planned.evalsets.get(evalset)
    now = {each.eval_id for each in known.cases()} if known else set()
    cases = (each.eval_id for each in before.evalsets[evalset].cases())
    return tuple(each for each in cases if each not in now)


def _gone_groups(planned: Plan, before: Plan) -> Iterator[tuple[str, str, str]]:
    """Yield each agent, evalset and criterion of the merge base that the change does not run."""
    for pair, criteria in before.pairs.items():
        kept = planned.pairs.get(pair, {})
        yield from ((*pair, name) for name in criteria if name not in kept)


def _of_base(planned: Plan, mode: str, name: str, options: ModelOptions) -> ModelOptions:
    """Return the options of an agent of the merge base, with the mode and limits of the run."""
    return options.in_mode(mode).within(gateway_options(planned.config.agents[name]))


def _pretend_clone(tree: Path, commit: str) -> None:
    """Make the tree look like the top of a repository, so that paths may lead anywhere in it."""
    (tree / ".git" / "objects").mkdir(parents=True)
    (tree / ".git" / "refs").mkdir()
    (tree / ".git" / "HEAD").write_text(f"{commit}\n", encoding="utf-8")


def _own_context(context: RunContext, tree: Path, root: Path) -> RunContext:
    top, env = str(context.clone.top), dict(context.env)
    if path := env.get("PYTHONPATH"):
        # Modules of the change must not be imported into its base.
        env["PYTHONPATH"] = moved(path, top, str(tree))
    return replace(context, env=env, root=root, clone=NO_CLONE, change=context, cassettes=None)


def _agents(planned: Plan, before: Plan, context: RunContext) -> Mapping[str, Agent]:
    """Return the agents of the merge base that the change has, too; none if it renamed all."""
    found = {name: before.config.agents.get(name) for name, _ in planned.pairs}
    agents, reasons = dict[str, Agent](), list[str]()
    for name, agent in found.items():
        own = agent.of_base() if agent else None
        if own and (path := _path_of_change(own, context)):
            reasons.append(f"{name!r} names {path}, which has the code of the change")
        elif own:
            agents[name] = own
        elif agent and agent.converses:
            reasons.append(f"{name!r} cannot run beside the change; {_SEPARATE}")
    if not agents and any(found.values()):
        raise NoBaseArmError("; ".join(reasons) or "all agents only replay recordings")
    for reason in reasons:
        context.say(f"not compared with the merge base: {reason}")
    return agents
