"""`ci-eval init`: writes a configuration, a workflow, and other missing files."""

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click

from ci_eval.cli.console import is_watched
from ci_eval.cli.init import config_text
from ci_eval.cli.init.config_text import Draft
from ci_eval.cli.init.first_agent import Candidate, candidates
from ci_eval.cli.init.first_config import decide, runs_module
from ci_eval.cli.init.repository_survey import (
    Survey,
    required_packages,
    survey,
    with_evalset,
)
from ci_eval.cli.init.workflow import (
    Packages,
    installed_action,
    workflow_name,
    workflow_text,
)
from ci_eval.cli.load import context_of
from ci_eval.config.criterion_names import resolve
from ci_eval.config.presets import PRESETS, expanded
from ci_eval.forge.lineage import default_branch
from ci_eval.records.errors import ExitCode, Problem, UsageError
from ci_eval.run_files.file_names import CONFIG_FILE
from ci_eval.runtime.clone import top_of
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.path_checks import contained
from ci_eval.text.templates import source, terminal

AGENT = "ci_eval_agent.py"
STARTER = "evals/smoke.yaml"
GUIDE = ("regression", "correctness", "quality", "tool_heavy", "high_risk")
"""Presets offered, besides AgentFlow's where AgentFlow is used."""
GUIDE_OF_AGENTFLOW = ("quick_check", "tool_usage", "response_quality", "safety_check")
PACKAGES = {
    "adk": "google-adk",
    "agentflow": "10xscale-agentflow",
    "langgraph": "langgraph",
    "openai_agents": "openai-agents",
    "pydantic_ai": "pydantic-ai",
}
"""Default packages for the agents of a framework."""
_NAMED = 3
"""Maximum number of files named per kind; the rest are counted."""
_OFFERED = 20


@click.command()
@click.argument("folder", default=".", metavar="[DIR]")
@click.option("--yes", is_flag=True, help="Do not prompt.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def init(folder: str, *, yes: bool, force: bool) -> int:
    """Inspect the repository in DIR, and write a configuration and a workflow for it.

    Agents, evalsets, eval configs and recordings are detected from files; nothing is imported
    or run. On a terminal it asks which agent to evaluate, what matters most, and whether to write
    the workflow.
    """
    if not Path(folder).is_dir():
        raise UsageError(f"{folder} is not a directory; nothing written")
    root = Path(os.path.abspath(folder))  # noqa: PTH100  # a link stays what it is called
    context = replace(context_of(root / CONFIG_FILE), folder="")
    found = survey(context.root)
    for line in _found(found):
        _say(line)
    asks = not yes and is_watched()
    names, draft = _write_all(found, context, asks=asks, force=force)
    for name in names:
        _say(f"wrote {os.path.normpath(Path(folder) / name)}")
    _say(f"will run {draft.agent_name} on {', '.join(draft.evalsets)} (see {CONFIG_FILE})")
    there = "" if os.path.normpath(folder) == "." else f"cd {shlex.quote(folder)} && "
    left = [*_to_do(names), *(model.told(context.env) for model in draft.asked)]
    if left:
        _say("to do:")
    for line in left:
        _say(f"- {line}")
    if draft.asked:
        _say(f"to estimate the cost: {there}ci-eval plan")
    _say(f"next: {there}ci-eval run")
    return ExitCode.PASSED


def _write_all(
    found: Survey, context: RunContext, *, asks: bool, force: bool
) -> tuple[Sequence[str], Draft]:
    """Decide what to write, write it, and return the names of the files with the decision."""
    candidate = _which_agent(list(candidates(found, context)), asks=asks)
    preset = _what_matters(found) if asks else None
    wanted = not asks or click.confirm(
        "Write a workflow that evaluates pull requests?", default=True
    )
    workflow, folder = _workflow_place(found.root)
    texts = _beside(candidate)
    names = [CONFIG_FILE, *texts, *([workflow] if wanted else [])]
    _refuse_there(found.root, names, force=force)
    _write(found.root, texts)  # the configuration is tried with them
    if not candidate.evalsets:
        found = with_evalset(found, STARTER)
        candidate = replace(candidate, evalsets=(STARTER,))
    branch = default_branch(context.clone) if wanted else None
    draft = replace(decide(found, candidate, preset, context), stores_itself=branch is not None)
    texts = {CONFIG_FILE: config_text.config_text(draft)}
    if wanted:
        texts[workflow] = workflow_text(
            folder=folder,
            packages=_packages(found, candidate),
            needs_key=candidate.source is not None,
            asked=draft.asked,
            branch=branch,
        )
    _write(found.root, texts)
    return names, draft


def _to_do(names: Sequence[str]) -> Iterator[str]:
    """Yield what the user must do in the files that were written."""
    if AGENT in names:
        yield f"{AGENT}: call your agent"
    if STARTER in names:
        yield f"{STARTER}: replace the example by what your agent is asked, and should answer"
    workflow = next((name for name in names if name.endswith(".yml")), None)
    if workflow and not installed_action().is_known:
        yield f"{os.path.normpath(workflow)}: replace OWNER by the GitHub owner of ci-eval"


def _beside(candidate: Candidate) -> dict[str, str]:
    """Return the files that the configuration names, as far as they have to be written."""
    texts: dict[str, str] = {}
    if runs_module(candidate):
        texts[AGENT] = source("init/any_agent.py.in")
    if candidate.recording and candidate.gathered:
        texts[candidate.recording] = config_text.recording_text(candidate.gathered)
    if not candidate.evalsets:
        texts[STARTER] = source("init/smoke.yaml.in")
    return texts


# --- Questions --------------------------------------------------------------------------------


def _which_agent(offered: Sequence[Candidate], *, asks: bool) -> Candidate:
    if not asks or len(offered) <= 2:  # one that was found, and the one that is yet to be written
        return offered[0]
    click.echo("Which agent do you want to evaluate?")
    shown = [*offered[:-1][:_OFFERED], offered[-1]]
    return shown[_chosen([each.label for each in shown])]


def _what_matters(found: Survey) -> str | None:
    """Return the preset that the user chooses; `None` for what an eval config says."""
    names: list[str | None] = [*GUIDE]
    if "AgentFlow" in dict(found.sources.frameworks):
        names += GUIDE_OF_AGENTFLOW
    if found.eval_configs:
        names.insert(0, None)
    labels = []
    for name in names:
        if name is None:
            labels.append(f"What {found.eval_configs[0]} says.")
            continue
        specs = expanded(name, PRESETS[name].example)
        judged = any(resolve(each, "adk").judged for each in specs)
        said = (PRESETS[name].__doc__ or "").partition("\n")[0]
        labels.append(f"{name}: {said}{' (uses a model)' if judged else ''}")
    click.echo("What matters most?")
    return names[_chosen(labels)]


def _chosen(labels: Sequence[str]) -> int:
    for number, label in enumerate(labels, 1):
        _say(f"  {number}. {label}")
    number = click.prompt("Number", type=click.IntRange(1, len(labels)), default=1)
    return int(number) - 1


# --- Files ------------------------------------------------------------------------------------


def _workflow_place(root: Path) -> tuple[str, str]:
    """Return where the workflow goes, from `root`, and where `root` is in its repository."""
    top = top_of(root) or root
    folder = "" if top == root else root.relative_to(top).as_posix()
    return Path(os.path.relpath(top, root), workflow_name(folder)).as_posix(), folder


def _packages(found: Survey, candidate: Candidate) -> Packages | None:
    """Return the packages that the workflow must install for the agent; `None` if none."""
    if candidate.recording:
        return None
    source = candidate.source
    needed = required_packages(found.root, source.folder if source else "")
    if not needed and source:
        needed = PACKAGES.get(source.kind, "")
    own = found.interpreter is not None
    return Packages(needed, own) if needed or own else None


def _refuse_there(root: Path, names: Sequence[str], *, force: bool) -> None:
    """Reject overwriting of existing files.

    Raises:
        UsageError: with each that is there.

    """
    there = [name for name in names if os.path.lexists(root / name)]
    if there and not force:
        message = "already exists; nothing written"
        problems = [Problem(message, name) for name in there]
        raise UsageError(problems=problems, hint="use --force to overwrite")


def _write(root: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        path = contained(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            path.unlink()  # the link is replaced, not the file that it leads to
        path.write_text(text, encoding="utf-8")


# --- Words ------------------------------------------------------------------------------------


def _found(found: Survey) -> Iterator[str]:
    """Yield the findings, one line per kind."""
    agents = [f"{each.target} ({each.framework})" for each in found.sources.agents]
    kinds = {
        "agents": agents,
        "evalsets": [f"{each.path} ({each.opened.facts.cases})" for each in found.evalsets],
        "eval configs": found.eval_configs,
        "recordings": found.recordings,
        "other frameworks": [f"{name} ({file})" for name, file in found.sources.other_frameworks],
        "evalsets that cannot be read": [str(each) for each in found.unreadable],
    }
    for kind, names in kinds.items():
        if names:
            more = f" … and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            yield f"found {kind}: {', '.join(names[:_NAMED])}{more}"
    if not found.sources.agents and not found.recordings:
        yield "no agent found"
    if not found.evalsets:
        yield "no evalset found"


def _say(line: str) -> None:
    click.echo(terminal(line))
