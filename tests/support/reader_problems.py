"""What readers of evalsets say, for tests that read one file."""

from collections.abc import Callable

from ci_eval.evalsets._evalset_reading import ADK_RESPONSES
from ci_eval.records.cases import EvalCase
from ci_eval.records.errors import EvalSetError
from ci_eval.records.evalset_facts import OpenedEvalSet
from ci_eval.records.stated_expectations import SILENCE


def told(read: Callable[[], OpenedEvalSet], name: str, *, silence: bool = False) -> list[str]:
    """Return the problems of the file `name` that `read` opens, without its name.

    Only with `silence` are those among them that are about what ADK counts where nothing is stated.
    """
    try:
        problems = read().warnings
    except EvalSetError as exc:
        problems = exc.problems
    return [
        "warning: " * (problem.severity == "warning") + str(problem).removeprefix(f"{name}:")
        for problem in problems
        if silence or problem.concerns not in (SILENCE, ADK_RESPONSES)
    ]


def talk(case: EvalCase) -> list[tuple[str, str]]:
    """Return the texts of each turn, of the user and of the agent."""
    return [(turn.user, turn.response) for turn in case.conversation or ()]


def in_lines(*lines: str) -> str:
    """Return an evalset of JSON whose cases begin on line 2."""
    return '{"eval_set_id": "s", "eval_cases": [\n' + "\n".join(lines) + "]}"
