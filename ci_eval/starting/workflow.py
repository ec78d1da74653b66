"""The workflow that `ci-eval init` writes, as a text."""

import re
from collections.abc import Sequence

from ci_eval.cleaning import one_line
from ci_eval.editing.yaml_text import yaml_text
from ci_eval.starting.drafting import filled
from ci_eval.starting.trying import AskedModel

ACTION = "OWNER/ci-eval"
"""The repository of the action, on GitHub."""
_MAX_NOTE = 400
_OUTSIDE = "zizmor: ignore[secrets-outside-env] an environment could guard it"
_ENV_OF_AGENT = (
    "  # What the agent needs, from the secrets of the repository; `env:` in ci-eval.yaml",
    "  # passes it on. Pull requests from forks get no secrets.",
    "  # env:",
    "  #   GOOGLE_API_KEY: ${{ secrets.GOOGLE_API_KEY }}",
)


def workflow_name(folder: str) -> str:
    """Return the path of the workflow that evaluates `folder` of the repository."""
    kept = "".join(each if each.isascii() and each.isalnum() else "-" for each in folder)
    return f".github/workflows/{'-'.join(filter(None, ['ci-eval', *kept.split('-')]))}.yml"


def workflow_text(
    *, folder: str, install: str | None, needs_key: bool, asked: Sequence[AskedModel] = ()
) -> str:
    """Return the workflow that evaluates the configuration in `folder` of the repository.

    `install` is what pip has to install for the agent, `None` where it needs nothing;
    `needs_key` says whether the agent asks models of others, and `asked` whom criteria ask.
    """
    everything = ["**", "!docs/**", "!README.md", "!LICENSE"]
    # GitHub reads a path as a pattern.
    within = re.sub(r"[*?+!\[\]\\]", r"\\\g<0>", folder)
    paths = [f"{within}/**", workflow_name(folder)] if folder else everything
    # The action's container has what Gemini takes, and no extra.
    extras = sorted({each.judge.extra for each in asked} - {""})
    env = _env(asked, needs_key=needs_key)
    if install is None and not extras:
        steps = _action_step(folder, env)
    else:
        steps = _package_steps(folder, install, extras, env)
    values = {
        "@NAME@": _scalar(f"Evaluate {folder}".strip()),
        "@PATHS@": _indented(yaml_text(paths), 6),
        "@STEPS@": _indented("\n".join(steps), 6),
    }
    return filled("init/workflow.yml.in", values)


def _action_step(folder: str, env: Sequence[str]) -> list[str]:
    return [
        "# OWNER is who publishes ci-eval.",
        f"- uses: {ACTION}@v1 # zizmor: ignore[unpinned-uses] the tag of the newest release",
        *(["  with:", f"    working-directory: {_scalar(folder)}"] if folder else []),
        *env,
    ]


def _package_steps(
    folder: str, install: str | None, extras: Sequence[str], env: Sequence[str]
) -> list[str]:
    """Return the steps where packages are needed: ci-eval is installed beside them."""
    at = [f"  working-directory: {_scalar(folder)}"] if folder else []
    of_agent = [f"    .venv/bin/pip install {install}"]
    if not install:
        of_agent = [] if install is None else ["    # Install what the agent needs."]
    package = f"ci-eval[{','.join(extras)}]" if extras else "ci-eval"
    return [
        "- uses: actions/setup-python@5fda3b95a4ea91299a34e894583c3862153e4b97 # v7.0.0",
        "  with:",
        '    python-version: "3.12"',
        "",
        f"- name: Install {'ci-eval' if install is None else 'the agent and ci-eval'}",
        *at,
        "  run: |",
        "    python -m venv .venv",
        *of_agent,
        "    # OWNER is who publishes ci-eval.",
        f'    .venv/bin/pip install "{package} @ git+https://github.com/{ACTION}@v1"',
        "",
        "- name: Evaluate",
        *at,
        "  run: .venv/bin/ci-eval run",
        *env,
    ]


def _env(asked: Sequence[AskedModel], *, needs_key: bool) -> list[str]:
    """Return the `env:` of the step that evaluates, and what a secret alone cannot bring there."""
    secrets = dict.fromkeys(name for each in asked for name in each.judge.secrets)
    lines = [
        f"  # {one_line(each.told({}), _MAX_NOTE)}" for each in asked if not each.judge.secrets
    ]
    if secrets:
        lines += [
            "  # The keys of the judges, from the secrets of the repository. Pull requests from",
            "  # forks get no secrets: there, only answers in a committed cassette count.",
            "  env:",
            *(f"    {name}: ${{{{ secrets.{name} }}}} # {_OUTSIDE}" for name in secrets),
        ]
    if needs_key and secrets:
        lines.append(
            "    # What the agent needs goes here, too; `env:` in ci-eval.yaml passes it on."
        )
    elif needs_key:
        lines += _ENV_OF_AGENT
    return lines


def _indented(text: str, width: int) -> str:
    return "\n".join(" " * width + line if line else "" for line in text.splitlines())


def _scalar(text: str) -> str:
    return yaml_text(text).removesuffix("...\n").strip()
