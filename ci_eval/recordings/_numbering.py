"""Which of several conversations of a case is which repeat."""

from collections import Counter
from collections.abc import Iterable, Iterator

from ci_eval.records import Recording


def numbered(recordings: Iterable[Recording]) -> Iterator[Recording]:
    """Yield `recordings`, those of one case as its repeats 0, 1, 2 … in their order."""
    seen: Counter[str] = Counter()
    for each in recordings:
        if each.eval_id is None:
            yield each
            continue
        yield each.model_copy(update={"repeat": seen[each.eval_id]})
        seen[each.eval_id] += 1
