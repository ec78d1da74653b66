"""`ci-eval init`: writes a configuration, a workflow, and other missing files."""

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import click

from ci_eval.cli.command_inputs import context_of
from ci_eval.cli.console import is_watched, out
from ci_eval.cli.init import config_text
from ci_eval.cli.init.config_text import Draft
from ci_eval.cli.init.first_agent import Candidate, candidates
from ci_eval.cli.init.first_config import decide
from ci_eval.cli.init.first_criteria import QUESTIONS, USUAL, Wanted, wanted
from ci_eval.cli.init.repository_survey import (
    Survey,
    environment_of,
    required_packages,
    survey,
    with_evalset,
)
from ci_eval.cli.init.workflow import Packages, workflow_name, workflow_text
from ci_eval.cli.published_source import installed_from
from ci_eval.config.criterion_names import resolve
from ci_eval.config.presets import PRESETS, expanded
from ci_eval.forge.lineage import default_branch
from ci_eval.records.errors import Problem, UsageError
from ci_eval.run_files.file_names import CONFIG_FILE
from ci_eval.run_files.report_phrases import listed
from ci_eval.runtime.clone import top_of
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.path_checks import contained
from ci_eval.text.templates import source

AGENT = "ci_eval_agent.py"
STARTER = "evals/smoke.yaml"
OF_AGENTFLOW = ("quick_check", "tool_usage", "response_quality", "safety_check")
"""Presets offered where AgentFlow is used."""
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
_CONFIG = ""
"""Represents an eval config among the questions."""


@click.command()
@click.argument("folder", default=".", metavar="[DIR]")
@click.option("--yes", is_flag=True, help="Do not prompt.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def init(folder: str, *, yes: bool, force: bool) -> None:
    """Inspect the repository in DIR, and write a configuration and a workflow for it.

    Agents, evalsets, eval configs and recordings are detected from files; nothing is imported
    or run. On a terminal, it asks which agent to evaluate, what matters most, and whether to write
    the workflow.
    """
    if not Path(folder).is_dir():
        raise UsageError(f"{folder} is not a directory; nothing written")
    root = Path(os.path.abspath(folder))  # noqa: PTH100  # keeps the names of links
    context = replace(context_of(root / CONFIG_FILE), folder="", config="")
    found = survey(context.root)
    for line in (*_configured_above(root), *_found(found)):
        out(line)
    asks = not yes and is_watched()
    names, draft = _write_all(found, context, asks=asks, force=force)
    for name in names:
        out(f"wrote {os.path.normpath(Path(folder) / name)}")
    out(f"will run {draft.agent_name} on {', '.join(draft.evalsets)} (see {CONFIG_FILE})")
    there = "" if os.path.normpath(folder) == "." else f"cd {shlex.quote(folder)} && "
    left = [*_to_do(names, found, draft), *(model.told(context.env) for model in draft.asked)]
    if left:
        out("to do:")
    for line in left:
        out(f"- {line}")
    if draft.asked:
        out(f"to estimate the cost: {there}ci-eval plan")
    out(f"next: {there}ci-eval run")


def _write_all(
    found: Survey, context: RunContext, *, asks: bool, force: bool
) -> tuple[Sequence[str], Draft]:
    """Decide what to write, write it, and return the names of the files and the draft."""
    candidate = _which_agent(list(candidates(found, context)), asks=asks)
    criteria = _what_matters(found) if asks else None
    has_workflow = not asks or click.confirm(
        "Write a workflow that evaluates pull requests?", default=True
    )
    workflow, folder = _workflow_place(found.root)
    texts = _beside(candidate)
    names = [CONFIG_FILE, *texts, *([workflow] if has_workflow else [])]
    _refuse_there(found.root, names, force=force)
    branch = default_branch(context.clone) if has_workflow else None
    with _all_or_none(found.root, names):
        _write(found.root, texts)  # they must exist when the draft is checked
        if not candidate.evalsets:
            found = with_evalset(found, STARTER)
            candidate = replace(candidate, evalsets=(STARTER,))
        draft = decide(found, candidate, criteria, context)
        draft = replace(draft, stores_itself=branch is not None)
        texts = {CONFIG_FILE: config_text.config_text(draft)}
        if has_workflow:
            texts[workflow] = workflow_text(
                folder=folder,
                packages=_packages(found, candidate),
                needs_key=candidate.source is not None,
                asked=draft.asked,
                branch=branch,
            )
        _write(found.root, texts)
    return names, draft


@contextmanager
def _all_or_none(root: Path, names: Sequence[str]) -> Iterator[None]:
    """Remove the new ones of the named files if not all can be written."""
    new = [path for name in names if not (path := root / name).exists()]
    try:
        yield
    except BaseException:
        for path in new:
            with suppress(OSError):
                path.unlink()
        raise


def _configured_above(root: Path) -> Iterator[str]:
    top = top_of(root)
    if top and top != root and (top / CONFIG_FILE).is_file():
        path = os.path.relpath(top / CONFIG_FILE, root)
        yield f"note: the repository already has {path}; this adds a suite for this folder"


def _to_do(names: Sequence[str], found: Survey, draft: Draft) -> Iterator[str]:
    """Yield what the user must do in the files that were written."""
    if "recorded" in draft.agent and found.sources.agents:
        agent = found.sources.agents[0]
        yield (
            f"{CONFIG_FILE}: a recording is replayed, so changes to the agent have no effect; to "
            f"run {agent.label}, replace `recorded: …` with `{agent.kind}: {agent.target}`"
        )
    if AGENT in names:
        yield f"{AGENT}: call your agent"
    if STARTER in names:
        yield f"{STARTER}: replace the example with questions and expected answers of your agent"
    workflow = next((name for name in names if name.endswith(".yml")), None)
    if workflow and installed_from() is None:
        yield f"{os.path.normpath(workflow)}: replace OWNER with the GitHub owner of ci-eval"


def _beside(candidate: Candidate) -> dict[str, str]:
    """Return the files that the configuration names and that have to be written."""
    texts: dict[str, str] = {}
    if candidate.recording is None and candidate.source is None:
        texts[AGENT] = source("init/any_agent.py.in")
    if candidate.recording and candidate.gathered:
        texts[candidate.recording] = config_text.recording_text(candidate.gathered)
    if not candidate.evalsets:
        texts[STARTER] = source("init/smoke.yaml.in")
    return texts


# --- Questions --------------------------------------------------------------------------------


def _which_agent(offered: Sequence[Candidate], *, asks: bool) -> Candidate:
    if not asks or len(offered) <= 2:  # one that was found, and one yet to be written
        return offered[0]
    click.echo("Which agent do you want to evaluate?")
    shown = [*offered[:-1][:_OFFERED], offered[-1]]
    _list(each.label for each in shown)
    number = click.prompt("Number", type=click.IntRange(1, len(shown)), default=1)
    return shown[int(number) - 1]


def _what_matters(found: Survey) -> Wanted | None:
    """Ask for the criteria; `None` stands for those of an eval config."""
    shown = {
        name: f"{name}{' (uses a model)' if resolve(criterion, 'adk').judged else ''}"
        for name, (criterion, _) in QUESTIONS.items()
    }
    usual = ",".join(map(str, USUAL))
    if "AgentFlow" in dict(found.sources.frameworks):
        shown |= {name: _preset_label(name) for name in OF_AGENTFLOW}
    if found.eval_configs:
        shown[_CONFIG] = f"The criteria in {found.eval_configs[0]}."
        usual = str(len(shown))
    click.echo("What do you want to know?")
    names = [*shown]
    _list(shown.values())
    chosen = {
        names[number - 1]
        for number in click.prompt("Numbers", default=usual, value_proc=_numbers(len(names)))
    }
    if chosen == {_CONFIG}:
        return None
    questions = [each for each in names if each in chosen & QUESTIONS.keys()]
    presets = [each for each in names if each in chosen & PRESETS.keys()]
    return wanted(questions, presets)._replace(beside_config=_CONFIG in chosen)


def _preset_label(name: str) -> str:
    specs = expanded(name, PRESETS[name].example)
    judged = any(resolve(each, "adk").judged for each in specs)
    said = (PRESETS[name].__doc__ or "").partition("\n")[0]
    return f"{name}: {said}{' (uses a model)' if judged else ''}"


def _numbers(most: int) -> Callable[[str], list[int]]:
    """Return a function that reads several numbers from 1 to `most`, such as `2,3`."""

    def read(given: str) -> list[int]:
        words = given.replace(",", " ").split()
        numbers = [int(each) for each in words if each.isdecimal() and 1 <= int(each) <= most]
        if not words or len(numbers) < len(words):
            raise click.BadParameter(f"expected numbers from 1 to {most}, such as 2,3")
        return numbers

    return read


def _list(labels: Iterable[str]) -> None:
    for number, label in enumerate(labels, 1):
        out(f"  {number}. {label}")


# --- Files ------------------------------------------------------------------------------------


def _workflow_place(root: Path) -> tuple[str, str]:
    """Return the workflow's path from `root`, and the path of `root` in its repository."""
    top = top_of(root) or root
    folder = "" if top == root else root.relative_to(top).as_posix()
    return Path(os.path.relpath(top, root), workflow_name(folder)).as_posix(), folder


def _packages(found: Survey, candidate: Candidate) -> Packages | None:
    """Return the packages that the workflow must install for the agent; `None` if none."""
    if candidate.recording:
        return None
    source = candidate.source
    folder = source.folder if source else ""
    needed = required_packages(found.root, folder)
    if not needed and source:
        needed = PACKAGES.get(source.kind, "")
    environment = environment_of(found.root, folder)
    quoted = shlex.quote(environment) if environment else ""
    return Packages(needed, quoted) if needed or quoted else None


def _refuse_there(root: Path, names: Sequence[str], *, force: bool) -> None:
    """Refuse to overwrite existing files.

    Raises:
        UsageError: a file exists; lists each of them.

    """
    there = [name for name in names if os.path.lexists(root / name)]
    if there and not force:
        message = "already exists; nothing written"
        problems = [Problem(message, name) for name in there]
        raise UsageError(problems=problems, hint="use --force to overwrite")


def _write(root: Path, texts: Mapping[str, str]) -> None:
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
        "files that cannot be read": [str(each) for each in found.unreadable],
    }
    for kind, names in kinds.items():
        if names:
            yield f"found {kind}: {listed(names, _NAMED)}"
    if not found.sources.agents and not found.recordings:
        yield "no agent found"
    if not found.evalsets:
        yield "no evalset found"
