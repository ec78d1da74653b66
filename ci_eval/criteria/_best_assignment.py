"""Assignment of rows to columns with the highest total."""

from collections.abc import Sequence
from fractions import Fraction


def best_total(worth: Sequence[Sequence[float]]) -> Fraction:
    """Return the highest total if each row is paired with a different column, without rounding.

    If there are more rows than columns, the surplus rows stay unpaired.  This is the Hungarian
    method with shortest augmenting paths (Kuhn 1955; Jonker and Volgenant 1987); its time is
    proportional to the square of the smaller number times the larger.
    """
    if not worth or not worth[0]:
        return Fraction()
    if len(worth) > len(worth[0]):
        worth = [list(column) for column in zip(*worth, strict=True)]
    rows, columns = len(worth), len(worth[0])
    of_row, of_column = [0.0] * (rows + 1), [0.0] * (columns + 1)
    partner = [0] * (columns + 1)  # the row of each column; both count from 1, 0 means none
    for row in range(1, rows + 1):
        _augment(row, worth, of_row, of_column, partner)
    found = (worth[row - 1][column] for column, row in enumerate(partner[1:]) if row)
    return sum(map(Fraction, found), Fraction())


def _augment(
    row: int,
    worth: Sequence[Sequence[float]],
    of_row: list[float],
    of_column: list[float],
    partner: list[int],
) -> None:
    """Assign a column to `row`, moving other rows at the lowest cost."""
    columns = len(of_column) - 1
    partner[0] = row
    column = 0
    least = [float("inf")] * (columns + 1)
    came_from = [0] * (columns + 1)
    done = [False] * (columns + 1)
    while True:
        done[column] = True
        mine = partner[column]
        step, following = float("inf"), 0
        for other in range(1, columns + 1):
            if done[other]:
                continue
            cost = -worth[mine - 1][other - 1] - of_row[mine] - of_column[other]
            if cost < least[other]:
                least[other], came_from[other] = cost, column
            if least[other] < step:
                step, following = least[other], other
        for other in range(columns + 1):
            if done[other]:
                of_row[partner[other]] += step
                of_column[other] -= step
            else:
                least[other] -= step
        column = following
        if not partner[column]:
            break
    while column:
        partner[column] = partner[came_from[column]]
        column = came_from[column]
