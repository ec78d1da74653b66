"""The keys of ADK's and AgentFlow's eval configs, and how ci-eval treats them.

Tests compare these tables with the models of both.  A setting that ci-eval does not support is
never ignored silently: it causes an error or a warning.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ci_eval.records.cases import Json
from ci_eval.records.errors import Severity

ADK_KEYS = ("criteria", "custom_metrics", "user_simulator_config", "live_model_config")
AGENTFLOW_KEYS = (
    "criteria",
    "user_simulator_config",
    "parallel",
    "max_concurrency",
    "timeout",
    "verbose",
    "mock_mode",
    "reporter",
)
CRITERION_DEFAULTS: Mapping[str, Json] = {
    "threshold": 0.8,
    "match_type": "EXACT",
    "judge_model": "gemini-2.5-flash",
    "num_samples": 3,
    "rubrics": [],
    "keywords": [],
    "check_args": False,
    "enabled": True,
    "api_style": "responses",
}
"""The options that AgentFlow's `CriterionConfig` has for every criterion, used or not."""
SIMULATOR_DEFAULTS: Mapping[str, Json] = {"api_style": "responses"}
"""The options in its `UserSimulatorConfig` that ci-eval leaves to the provider."""


class Unheeded(NamedTuple):
    """A setting of an eval config that has no effect."""

    key: str
    """The key as spelled in the file."""
    message: str
    severity: Severity


def unheeded(value: Mapping[str, Json], *, is_agentflow: bool) -> Iterator[Unheeded]:
    """Yield the settings of an eval config that ci-eval does not support."""
    for key, said in value.items():
        if is_agentflow and key == "verbose" and said not in (False, None):
            message = "has no effect; run `ci-eval show` to see every case"
            yield Unheeded(key, message, "warning")
        elif is_agentflow and key == "reporter" and said is not None:
            message = "has no effect; choose the reports with `reports:` in ci-eval.yaml"
            yield Unheeded(key, message, "warning")
        elif not is_agentflow and snake(key) == "live_model_config" and said is not None:
            message = "live mode is not supported; remove the key to evaluate the text conversation"
            yield Unheeded(key, message, "error")


def replaced(options: dict[str, Json], judge: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Remove AgentFlow's default judge options from `options` where the block `judge` has its own.

    Yields each other option that replaces an option of the block, with a warning.
    """
    known = {
        "judge_model": judge.get("model") or judge.get("provider") or judge.get("jury"),
        "num_samples": judge.get("samples"),
    }
    for key, ours in known.items():
        if ours is None or options.get(key) in (None, ours):
            continue
        if options[key] == CRITERION_DEFAULTS[key]:
            del options[key]
        else:
            yield key, f"{options[key]!r} replaces {ours!r} of `judge:`; remove it to use that"


def snake(key: str) -> str:
    """Return a key in snake_case."""
    return re.sub(r"(?<!^)([A-Z])", lambda found: "_" + found[0].lower(), key)
