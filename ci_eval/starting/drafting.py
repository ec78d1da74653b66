"""The files that `ci-eval init` writes, as texts."""

import json
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from ci_eval.editing.yaml_text import yaml_text
from ci_eval.records import Json, Recording
from ci_eval.starting.scoring import Scoring
from ci_eval.starting.sources import FoundAgent
from ci_eval.templating import one_line, source

ACTION = "OWNER/ci-eval"
"""The repository of the action, on GitHub."""
_WIDTH = 96
_MAX_NOTE = 400
_MAX_NOTES = 20

_HEAD = """\
# How the agent is evaluated. Written by `ci-eval init`; yours to keep and change.
# `ci-eval validate` finds what is wrong in it, `ci-eval list` shows all that can be named.
"""
_OPTIONS = """\
# run:
#   repeats: 3      # how often each case is tried: more than once shows how much answers vary
#   concurrency: 4  # how many conversations are held at once: fewer, where a provider limits you

baseline:
  # What a pull request is compared with. `ci-eval run --baseline-save` stores a run there; do
  # that on the main branch and commit the file. Until there is one, the thresholds above decide.
  store: file
  path: .ci-eval/baseline.json

gate:
  # `regression` blocks what got worse than the baseline, `threshold` what misses a threshold,
  # and `both` both.
  mode: regression
  # min_pass_rate: 0.9  # the share of cases that must pass, whatever the baseline says
"""


@dataclass(frozen=True)
class Draft:
    """What the configuration is to say."""

    suite: str
    agent_name: str
    agent: Mapping[str, Json]
    """As the configuration says it: the type, with its options."""
    agent_notes: tuple[str, ...]
    evalsets: Mapping[str, str]
    """Paths and patterns, by name."""
    evalset_notes: tuple[str, ...]
    scoring: Scoring


def config_text(draft: Draft) -> str:
    """Return the configuration."""
    scoring = draft.scoring
    head: dict[str, Json] = {"version": 1, "name": draft.suite}
    if scoring.dialect:
        head["dialect"] = scoring.dialect
    sections = (
        _HEAD + yaml_text(head),
        _section("agents", {draft.agent_name: dict(draft.agent)}, draft.agent_notes),
        _section("evalsets", dict(draft.evalsets), draft.evalset_notes),
        _section("criteria", dict(scoring.criteria), scoring.notes),
        _OPTIONS,
    )
    return "\n".join(sections)


def agent_text(found: FoundAgent | None) -> str:
    """Return `ci_eval_agent.py`: what runs the agent of ADK, else what the user has to fill in."""
    if found is None:
        return source("init/any_agent.py.in")
    imports, runner = _loading(found)
    return _filled("init/adk_agent.py.in", {"@IMPORTS@": imports, "@RUNNER@": runner})


def starter_text() -> str:
    """Return an evalset with one case, for a repository that has none."""
    return source("init/smoke.yaml.in")


def recording_text(recordings: Iterable[Recording]) -> str:
    """Return conversations as a recorded agent reads them, one a line."""
    lines = (each.model_dump_json(exclude_none=True, exclude_defaults=True) for each in recordings)
    return "".join(f"{line}\n" for line in lines)


def workflow_name(folder: str) -> str:
    """Return the path of the workflow that evaluates `folder` of the repository."""
    kept = "".join(each if each.isascii() and each.isalnum() else "-" for each in folder)
    return f".github/workflows/{'-'.join(filter(None, ['ci-eval', *kept.split('-')]))}.yml"


def workflow_text(*, folder: str, install: str | None, needs_key: bool) -> str:
    """Return the workflow that evaluates the configuration in `folder` of the repository.

    `install` is what pip has to install for the agent, `None` where it needs nothing;
    `needs_key` says whether it asks models of others.
    """
    everything = ["**", "!docs/**", "!README.md", "!LICENSE"]
    # GitHub reads a path as a pattern.
    within = re.sub(r"[*?+!\[\]\\]", r"\\\g<0>", folder)
    paths = [f"{within}/**", workflow_name(folder)] if folder else everything
    steps = _action_step(folder)
    if install is not None:
        steps = _package_steps(folder, install, needs_key=needs_key)
    filled = {
        "@NAME@": _scalar(f"Evaluate {folder}".strip()),
        "@PATHS@": _indented(yaml_text(paths), 6),
        "@STEPS@": _indented(steps, 6),
    }
    return _filled("init/workflow.yml.in", filled)


def _filled(name: str, values: Mapping[str, str]) -> str:
    """Return the template `name` with its marks replaced; marks in a value stay what they are."""
    return re.sub("|".join(values), lambda mark: values[mark[0]], source(name))


def _section(key: str, value: Mapping[str, Json], notes: Iterable[str]) -> str:
    """Return a key of the configuration with `notes` as comments at its top."""
    first, _, rest = yaml_text({key: value}).partition("\n")
    return f"{first}\n{_comments(notes)}{rest}"


def _comments(notes: Iterable[str]) -> str:
    """Return `notes` as comments; whatever a file is called, it stays within its line."""
    listed = list(notes)
    more = [f"… and {len(listed) - _MAX_NOTES} more."] if len(listed) > _MAX_NOTES else []
    lines = [one_line(each, _MAX_NOTE) for each in (*listed[:_MAX_NOTES], *more)]
    return "".join(f"  # {line}\n" for each in lines for line in _wrapped(each))


def _wrapped(text: str) -> Iterable[str]:
    return textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def _indented(text: str, width: int) -> str:
    return "\n".join(" " * width + line if line else "" for line in text.splitlines())


# --- The agent's module -----------------------------------------------------------------------


def _loading(found: FoundAgent) -> tuple[str, str]:
    """Return the imports, and the lines that make the runner of ADK's agent."""
    app_name = "".join(each if each.isalnum() or each == "_" else "_" for each in found.name)
    imports = ["from pathlib import Path", ""]
    own = ["from dotenv import load_dotenv", "from google.adk.runners import InMemoryRunner"]
    lines = ["HERE = Path(__file__).parent"]
    if found.import_from:
        imports.insert(0, "import sys")
        lines.append(f"sys.path.insert(0, str(HERE / {_quoted(found.import_from)}))")
    env_file = PurePosixPath(found.folder, ".env").as_posix()
    lines.append(f"load_dotenv(HERE / {_quoted(env_file)})  # as ADK does")
    if found.target.endswith(".yaml"):
        own.insert(1, "from google.adk.agents.config_agent_utils import from_config")
        agent = f"from_config(str(HERE / {_quoted(found.target)}))"
    else:
        imports.insert(0, "import importlib")
        lines.append(f"module = importlib.import_module({_quoted(found.target)})")
        agent = "module.root_agent"
    if found.variable == "app":
        lines.append("runner = InMemoryRunner(app=module.app)")
    else:
        lines.append(f"agent = {agent}")
        lines.append(f"runner = InMemoryRunner(agent=agent, app_name={_quoted(app_name)})")
    return "\n".join((*imports, *own)), "\n".join(lines)


def _quoted(text: str) -> str:
    """Return `text` as a literal of Python, in the quotes that formatters like."""
    return json.dumps(text, ensure_ascii=False)


# --- The workflow's steps ---------------------------------------------------------------------


def _action_step(folder: str) -> str:
    lines = [
        "# OWNER is who publishes ci-eval.",
        f"- uses: {ACTION}@v1 # zizmor: ignore[unpinned-uses] the tag of the newest release",
        *(["  with:", f"    working-directory: {_scalar(folder)}"] if folder else []),
    ]
    return "\n".join(lines)


def _package_steps(folder: str, install: str, *, needs_key: bool) -> str:
    """Return the steps of an agent that needs packages: ci-eval is installed beside them."""
    at = [f"  working-directory: {_scalar(folder)}"] if folder else []
    key = [
        "  # What the agent needs, from the secrets of the repository; `env:` in ci-eval.yaml",
        "  # passes it on. Pull requests from forks get no secrets.",
        "  # env:",
        "  #   GOOGLE_API_KEY: ${{ secrets.GOOGLE_API_KEY }}",
    ]
    lines = [
        "- uses: actions/setup-python@5fda3b95a4ea91299a34e894583c3862153e4b97 # v7.0.0",
        "  with:",
        '    python-version: "3.12"',
        "",
        "- name: Install the agent and ci-eval",
        *at,
        "  run: |",
        "    python -m venv .venv",
        f"    .venv/bin/pip install {install}"
        if install
        else "    # Install what the agent needs.",
        "    # OWNER is who publishes ci-eval.",
        f'    .venv/bin/pip install "ci-eval @ git+https://github.com/{ACTION}@v1"',
        "",
        "- name: Evaluate",
        *at,
        "  run: .venv/bin/ci-eval run",
        *(key if needs_key else []),
    ]
    return "\n".join(lines)


def _scalar(text: str) -> str:
    return yaml_text(text).removesuffix("...\n").strip()
