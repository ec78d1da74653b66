"""What every reader of recordings does the same."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from ci_eval.records.errors import Problem, UsageError
from ci_eval.records.trials import Recording
from ci_eval.text.yaml_files import MAX_TEXT

MAX_PROBLEMS = 100
"""How many problems of a file are told at most."""


def refuse_long(path: Path, *, shown: str) -> None:
    """Refuse a file that is too long to be held in memory, which recordings are.

    Raises:
        UsageError: it is longer than `MAX_TEXT`.

    """
    if path.stat().st_size > MAX_TEXT:
        message = (
            f"is longer than {MAX_TEXT >> 20} MiB, which is the most for a recording of another "
            "tool; split it, one agent for each part"
        )
        raise UsageError(problems=[Problem(message, shown, 1)])


def numbered(recordings: Iterable[Recording]) -> Iterator[Recording]:
    """Yield `recordings`, those of one case as its repeats 0, 1, 2 … in their order."""
    seen: Counter[str] = Counter()
    for each in recordings:
        if each.eval_id is None:
            yield each
            continue
        yield each.model_copy(update={"repeat": seen[each.eval_id]})
        seen[each.eval_id] += 1
