"""Content of the workflow that `ci-eval init` writes."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ci_eval.cli.evalset.readable_yaml import yaml_text
from ci_eval.cli.init.config_text import filled
from ci_eval.cli.init.drafted_config_check import AskedModel
from ci_eval.cli.published_source import Source, installed_from, page_url
from ci_eval.text.sanitize import one_line

EXTRAS_OF_ACTION = frozenset({"gcs", "openai"})
"""The extras that the action has, in its container and on the job's machine: see `.ci/lock`."""
_UNKNOWN = Source("OWNER/ci-eval", "v1")
"""The action with a placeholder for its owner, and the tag of the newest release."""
_MAX_NOTE = 400


@dataclass(frozen=True)
class Packages:
    """Packages of the agent."""

    needed: str
    """Arguments of pip; empty if nothing in the repository gives them."""
    environment: str
    """The virtual environment that the agent runs in; empty if it is that of the job."""


def workflow_name(folder: str) -> str:
    """Return the path of the workflow that evaluates `folder` of the repository."""
    kept = "".join(each if each.isascii() and each.isalnum() else "-" for each in folder)
    return f".github/workflows/{'-'.join(filter(None, ['ci-eval', *kept.split('-')]))}.yml"


def workflow_text(
    *,
    folder: str,
    packages: Packages | None,
    needs_key: bool,
    asked: Sequence[AskedModel] = (),
    branch: str | None = None,
) -> str:
    """Return the workflow that evaluates the configuration in `folder` of the repository.

    `packages` is `None` if the agent needs none; `needs_key` is set if the agent may need an API
    key; `asked` are the models that criteria use.  Pushes to `branch` are measured and stored.
    """
    source, within = installed_from(), _pattern(folder)
    everything = ["**", "!docs/**", "!README.md", "!LICENSE"]
    paths = [f"{within}/**", workflow_name(folder)] if folder else everything
    pushed = {"push": {"branches": [_pattern(branch or "")], "paths": paths}}
    return filled(
        "init/workflow.yml.in",
        action=source or _UNKNOWN,
        is_known=source is not None,
        forks_page=page_url("docs/forks.md", {}) or "the guide `forks` of ci-eval",
        name=_scalar(f"Evaluate {folder}".strip()),
        folder=_scalar(folder) if folder else "",
        paths=_indented(yaml_text(paths), 6),
        push=_indented(yaml_text(pushed), 2) if branch is not None else "",
        report=_scalar(f"{within}/ci-eval-report/report.json".lstrip("/")),
        page=_scalar(f"{within}/ci-eval-report/report.html".lstrip("/")),
        packages=packages,
        extras=sorted({each.judge.extra for each in asked} - EXTRAS_OF_ACTION - {""}),
        notes=[one_line(each.told({}), _MAX_NOTE) for each in asked if not each.judge.secrets],
        secrets=[*dict.fromkeys(name for each in asked for name in each.judge.secrets)],
        needs_key=needs_key,
    )


def _pattern(path: str) -> str:
    """Return a pattern that matches only `path`, because GitHub reads paths as patterns."""
    return re.sub(r"[*?+!\[\]\\]", r"\\\g<0>", path)


def _indented(text: str, width: int) -> str:
    return "\n".join(" " * width + line if line else "" for line in text.splitlines())


def _scalar(text: str) -> str:
    """Return `text` as one line of YAML."""
    found = yaml_text(text).removesuffix("...\n").strip()
    # If YAML needs several lines, the text is quoted as in JSON, which YAML reads.
    return json.dumps(text, ensure_ascii=False) if "\n" in found else found
