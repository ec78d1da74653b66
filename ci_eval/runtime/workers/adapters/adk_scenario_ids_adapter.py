"""Adapter for the ids that Google ADK gives to cases made from scenarios.

`worker.py` runs this file under the interpreter that has google-adk.  It imports
nothing from ci-eval.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def adapted(_target: str, _options: dict[str, Any], _load: object) -> Callable[[Any], list[str]]:
    """Return a function that returns the ids of scenarios.

    Raises:
        ImportError: google-adk is missing or too old.

    """
    from google.adk.evaluation.conversation_scenarios import ConversationScenario

    def ids(scenarios: list[dict[str, Any]]) -> list[str]:
        return [_digest(ConversationScenario.model_validate(each)) for each in scenarios]

    return ids


def _digest(scenario: Any) -> str:
    """Return the id as `adk eval_set add_eval_case` computes it."""
    text = json.dumps(scenario.model_dump(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
