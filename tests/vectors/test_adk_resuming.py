"""What was seen of ADK 2.13.0 deciding whether a node of a workflow runs again.

CI_EVAL_VECTORS names a folder with `adk_streaming_observations.json`.  The inputs stand here, by
the names of the observations.
"""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ci_eval.records.cases import Content, Part
from ci_eval.run_files.resume import Node, Ran, Recovered, decide

FOLDER = os.environ.get("CI_EVAL_VECTORS")
FILE = "adk_streaming_observations.json"
PREFIX = "ri."


class Asked(NamedTuple):
    """What was to be decided."""

    node: Node = Node()
    recovered: Recovered | None = None
    ran: Ran | None = None


RERUNS = Node(rerun_on_resume=True)
BOTH, ONE = frozenset({"a", "b"}), frozenset({"a"})
SPOKEN = Content(parts=(Part(text="think", thought=True), Part(text=" hi ")))
ASKED = {
    "fresh": Asked(),
    "cur_completed": Asked(ran=Ran("completed", "o")),
    "cur_waiting": Asked(ran=Ran("waiting", interrupts=frozenset({"i1"}))),
    "cur_failed_recovered_output": Asked(Node(), Recovered("old"), Ran("failed")),
    "unresolved_none_resolved": Asked(RERUNS, Recovered(interrupts=ONE)),
    "unresolved_some_rerun": Asked(RERUNS, Recovered(interrupts=BOTH, responses={"a": 1})),
    "unresolved_some_norerun": Asked(Node(), Recovered(interrupts=BOTH, responses={"a": 1})),
    "completed_output": Asked(Node(), Recovered(5, "r")),
    "completed_content": Asked(Node(), Recovered(SPOKEN)),
    "resolved_norerun_one": Asked(Node(), Recovered(interrupts=ONE, responses={"a": "yes"})),
    "resolved_norerun_two": Asked(
        Node(), Recovered(interrupts=BOTH, responses={"a": "y", "b": "n"})
    ),
    "resolved_rerun": Asked(RERUNS, Recovered(interrupts=ONE, responses={"a": "yes"})),
    "no_outcome_static": Asked(Node(), Recovered()),
    "no_outcome_dynamic": Asked(Node(), Recovered(), Ran("running")),
    "no_outcome_wait": Asked(Node(wait_for_output=True), Recovered()),
    "no_outcome_rerun": Asked(RERUNS, Recovered()),
    "transfer_only": Asked(Node(), Recovered(transfer_to_agent="bob")),
}


def seen() -> dict[str, Any]:
    """Return the observations by the names above."""
    if not FOLDER:
        pytest.skip("CI_EVAL_VECTORS names no folder")
    found = json.loads((Path(FOLDER) / FILE).read_text(encoding="utf-8"))["2.13.0"]
    return {
        name.removeprefix(PREFIX): value for name, value in found.items() if name.startswith(PREFIX)
    }


def test_every_observation_has_its_input():
    assert seen().keys() == ASKED.keys()


@pytest.mark.parametrize("name", ASKED)
def test_a_decision_is_that_of_adk(name):
    found = decide(*ASKED[name])

    assert {
        "run": found.should_run,
        "output": found.output,
        "route": found.route,
        "interrupts": sorted(found.interrupts),
        "resume": None if found.resume_inputs is None else dict(found.resume_inputs),
        "transfer": found.transfer_to_agent,
    } == seen()[name]
