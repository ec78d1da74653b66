"""Content of the workflow that `ci-eval init` writes."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ci_eval.cli.evalset.yaml_text import yaml_text
from ci_eval.cli.init.drafting import filled
from ci_eval.cli.init.trying import AskedModel
from ci_eval.text.sanitize import one_line

ACTION = "OWNER/ci-eval"
"""The repository of the action, on GitHub."""
EXTRAS_OF_ACTION = frozenset({"gcs", "openai"})
"""The extras that the action has, in its container and on the job's machine: see `.ci/lock`."""
_NEWEST = "@v1 # zizmor: ignore[unpinned-uses] the tag of the newest release"
_MAX_NOTE = 400
_OUTSIDE = "zizmor: ignore[secrets-outside-env] an environment could guard it"
_ABOUT_KEYS = (
    "  # API keys of the judges, from the repository secrets. Pull requests from",
    "  # forks get no secrets: there, only answers in a committed cassette count.",
)
_AND_OF_AGENT = "    # What the agent needs goes here, too; `env:` in ci-eval.yaml passes it on."
_ENV_OF_AGENT = (
    "  # What the agent needs, from the secrets of the repository; `env:` in ci-eval.yaml",
    "  # passes it on. Pull requests from forks get no secrets.",
    "  # env:",
    "  #   GOOGLE_API_KEY: ${{ secrets.GOOGLE_API_KEY }}",
)


@dataclass(frozen=True)
class Packages:
    """Packages of the agent."""

    needed: str
    """What pip is given; empty where nothing in the repository says it."""
    own: bool
    """Whether the agent runs in the environment `.venv`, and not in that of the job."""


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

    `packages` is `None` where the agent needs none; `needs_key` says whether it asks models of
    others, and `asked` whom criteria ask.  What is pushed to `branch` is measured and stored.
    """
    within = _pattern(folder)
    everything = ["**", "!docs/**", "!README.md", "!LICENSE"]
    paths = [f"{within}/**", workflow_name(folder)] if folder else everything
    extras = sorted({each.judge.extra for each in asked} - EXTRAS_OF_ACTION - {""})
    job = _Job(folder, packages, tuple(extras), asked, needs_key)
    values = {
        "@NAME@": _scalar(f"Evaluate {folder}".strip()),
        "@PATHS@": _indented(yaml_text(paths), 6),
        "@PUSH@": "",
        "@IF@": "",
        "@STEPS@": _indented("\n".join(job.steps(comment=True)), 6),
        "@REPORT@": _scalar(f"{within}/ci-eval-report/report.json".lstrip("/")),
        "@BASELINE@": "",
    }
    if branch is not None:
        pushed = yaml_text({"push": {"branches": [_pattern(branch)], "paths": paths}})
        steps = _indented("\n".join(job.steps(comment=False)), 6)
        values["@PUSH@"] = _indented(pushed, 2) + "\n"
        values["@IF@"] = "    if: github.event_name == 'pull_request'\n"
        values["@BASELINE@"] = filled("init/baseline_job.yml.in", {"@STEPS@": steps})
    return filled("init/workflow.yml.in", values).rstrip("\n") + "\n"


@dataclass(frozen=True)
class _Job:
    """What both jobs do: the one for pull requests, and the one that stores."""

    folder: str
    packages: Packages | None
    extras: tuple[str, ...]
    asked: Sequence[AskedModel]
    needs_key: bool

    def steps(self, *, comment: bool) -> list[str]:
        """Return the lines of the steps after the checkout."""
        if self.extras:
            return [*self._python(), *self._command(comment=comment)]
        if self.packages:
            return [*self._python(), *self._action("/host", comment=comment)]
        return self._action("", comment=comment)

    def _python(self) -> list[str]:
        lines = [
            "- uses: actions/setup-python@5fda3b95a4ea91299a34e894583c3862153e4b97 # v7.0.0",
            "  with:",
            '    python-version: "3.12"',
            "",
        ]
        if self.packages is None:
            return lines
        pip = ".venv/bin/pip" if self.packages.own else "python -m pip"
        needed = self.packages.needed
        return [
            *lines,
            "- name: Install what the agent needs",
            *self._within("  "),
            "  run: |",
            *(["    python -m venv .venv"] if self.packages.own else []),
            f"    {pip} install {needed}" if needed else f"    # {pip} install …",
            "",
        ]

    def _action(self, variant: str, *, comment: bool) -> list[str]:
        """Return the step of the action; its `variant` beside the job's own packages is `/host`."""
        inputs = [*self._within("    "), *([] if comment else ['    comment: "off"'])]
        return [
            f"- uses: {ACTION}{variant}{_NEWEST}",
            *(["  with:", *inputs] if inputs else []),
            *self._env(),
        ]

    def _command(self, *, comment: bool) -> list[str]:
        """Return the steps where a judge takes packages that the action does not have."""
        package = f"ci-eval[{','.join(self.extras)}] @ git+https://github.com/{ACTION}@v1"
        posting = " --comment update" if comment else ""
        return [
            "# The action lacks packages that a judge needs.",
            "- name: Install ci-eval",
            "  run: |",
            '    python -m venv "$RUNNER_TEMP/ci-eval"',
            f'    "$RUNNER_TEMP/ci-eval/bin/pip" install "{package}"',
            "",
            "- name: Evaluate",
            *self._within("  "),
            f"""  run: '"$RUNNER_TEMP/ci-eval/bin/ci-eval" run{posting} --baseline-save auto'""",
            *self._env(
                "CI_EVAL_INTERPRETER: python # what the agent runs under, if it names no other",
                "GITHUB_TOKEN: ${{ github.token }} # for the comment and the baseline",
            ),
        ]

    def _env(self, *known: str) -> list[str]:
        """Return the `env:` of the step that evaluates, and what a secret cannot bring there."""
        secrets = dict.fromkeys(name for each in self.asked for name in each.judge.secrets)
        told = [each.told({}) for each in self.asked if not each.judge.secrets]
        lines = [f"  # {one_line(each, _MAX_NOTE)}" for each in told]
        if secrets:
            lines += _ABOUT_KEYS
        elif self.needs_key and not known:
            return lines + list(_ENV_OF_AGENT)
        entries = [*known, *(f"{name}: ${{{{ secrets.{name} }}}} # {_OUTSIDE}" for name in secrets)]
        if entries:
            lines += ["  env:", *(f"    {each}" for each in entries)]
        if self.needs_key:
            lines.append(_AND_OF_AGENT)
        return lines

    def _within(self, indent: str) -> list[str]:
        return [f"{indent}working-directory: {_scalar(self.folder)}"] if self.folder else []


def _pattern(path: str) -> str:
    """Return the pattern that fits just `path`, for GitHub reads one as a pattern."""
    return re.sub(r"[*?+!\[\]\\]", r"\\\g<0>", path)


def _indented(text: str, width: int) -> str:
    return "\n".join(" " * width + line if line else "" for line in text.splitlines())


def _scalar(text: str) -> str:
    """Return `text` in one line of YAML."""
    found = yaml_text(text).removesuffix("...\n").strip()
    # What has several lines that can be seen is quoted as in JSON, which YAML reads.
    return json.dumps(text, ensure_ascii=False) if "\n" in found else found
