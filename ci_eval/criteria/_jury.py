"""What is common to every way in which several judges come to one verdict."""

from collections.abc import Hashable, Sequence
from itertools import combinations

from ci_eval.plugins.points import Panel


def names_of(panel: Panel) -> list[str]:
    """Return the names of the judges, numbered where one judges twice."""
    names = [seat.name for seat in panel.judges]
    if len(set(names)) == len(names):
        return names
    return [f"{name} #{number}" for number, name in enumerate(names, 1)]


def note_agreement(panel: Panel, said: Sequence[Hashable | None]) -> None:
    """Note which share of the pairs of judges said the same; `None` is who said nothing."""
    pairs = list(combinations((each for each in said if each is not None), 2))
    if pairs:
        panel.note_agreement(sum(one == other for one, other in pairs) / len(pairs))
