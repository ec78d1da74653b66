"""Shared parts of the ways in which several judges reach one verdict."""

from collections.abc import Hashable, Sequence
from itertools import combinations

from ci_eval.plugins.points import Panel


def names_of(panel: Panel) -> list[str]:
    """Return the names of the judges, numbered if a name occurs twice."""
    names = [seat.name for seat in panel.judges]
    if len(set(names)) == len(names):
        return names
    return [f"{name} #{number}" for number, name in enumerate(names, 1)]


def note_agreement(panel: Panel, said: Sequence[Hashable | None]) -> None:
    """Record the share of pairs of judges that agree; `None` stands for no verdict."""
    pairs = list(combinations((each for each in said if each is not None), 2))
    if pairs:
        panel.note_agreement(sum(one == other for one, other in pairs) / len(pairs))
