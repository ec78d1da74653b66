"""What was seen of ADK's simulated user in 2.3.0 and 2.13.0 holds for ours.

CI_EVAL_VECTORS names a folder with `adk_observations.json`. Of each experiment it has the statuses
in their order, with the messages; what the model answered there is told here.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support.simulated_conversations import played, scenario

from ci_eval.simulators.llm_simulator import LlmBacked

FOLDER = os.environ.get("CI_EVAL_VECTORS")
SEEN: dict[str, dict[str, Any]] = (
    json.loads((Path(FOLDER) / "adk_observations.json").read_text(encoding="utf-8"))
    if FOLDER
    else {}
)
pytestmark = pytest.mark.skipif(not FOLDER, reason="CI_EVAL_VECTORS names no folder")
VERSIONS = ["2.13.0", "2.3.0"]

EXPERIMENTS: list[tuple[str, LlmBacked, str, list[str]]] = [
    ("sim.basic", LlmBacked(), "hi", ["next", "ok </Finished>"]),
    ("sim.limit2", LlmBacked(max_allowed_invocations=2), "hi", ["a"]),
    ("sim.empty", LlmBacked(), "hi", ["", ""]),
    ("sim.start_has_stop", LlmBacked(), "hi </finished>", []),
    ("sim.limit0", LlmBacked(max_allowed_invocations=0), "hi", []),
    ("sim.camel_cfg", LlmBacked(max_allowed_invocations=1), "hi", []),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("name", "user", "start", "answers"), EXPERIMENTS, ids=[each[0] for each in EXPERIMENTS]
)
def test_the_same_is_said_and_ends_alike(
    version: str, name: str, user: LlmBacked, start: str, answers: list[str]
):
    left = iter(answers)
    found = played(user, scenario(start), lambda _: next(left))

    *said, end = SEEN[version][name]
    assert [["success", message] for message in found.messages] == said
    assert next(left, None) is None
    if isinstance(end, str):
        assert end.startswith("RuntimeError")
        assert found.error
    else:
        assert end[0] in ("stop_signal_detected", "turn_limit_reached")
        assert found.error is None


@pytest.mark.parametrize("version", VERSIONS)
def test_instructions_that_lack_a_name_are_refused_as_there(version: str):
    assert "custom_instructions must contain" in SEEN[version]["sim.custom_missing"]
    with pytest.raises(ValidationError, match="does not use"):
        LlmBacked(custom_instructions="only {{ stop_signal }}")


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_that_was_seen_is_left_out(version: str):
    seen = {name for name in SEEN[version] if name.startswith("sim.")}
    assert seen == {*(each[0] for each in EXPERIMENTS), "sim.custom_missing"}
