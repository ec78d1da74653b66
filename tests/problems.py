"""What readers of evalsets say, for tests that read one file."""

from collections.abc import Callable

from ci_eval.errors import EvalSetError
from ci_eval.evalset_facts import OpenedEvalSet
from ci_eval.records import EvalCase


def told(read: Callable[[], OpenedEvalSet], name: str) -> list[str]:
    """Return the problems of the file `name` that `read` opens, without its name."""
    try:
        problems = read().warnings
    except EvalSetError as exc:
        problems = exc.problems
    return [
        "warning: " * (problem.severity == "warning") + str(problem).removeprefix(f"{name}:")
        for problem in problems
    ]


def talk(case: EvalCase) -> list[tuple[str, str]]:
    """Return what was said in each turn, by the user and by the agent."""
    return [(turn.user, turn.response) for turn in case.conversation or ()]


def in_lines(*lines: str) -> str:
    """Return an evalset of JSON whose cases begin on line 2."""
    return '{"eval_set_id": "s", "eval_cases": [\n' + "\n".join(lines) + "]}"
