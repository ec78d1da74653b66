"""Agreement statistics between people and a judge."""

import math
from collections.abc import Iterable, Sequence

from ci_eval.records.cases import Record
from ci_eval.stats.intervals import Z95, mean_interval, wilson_interval


class Interval(Record):
    """An estimate with its 95 % confidence interval."""

    value: float
    low: float
    high: float


class Share(Record):
    """A count out of a total."""

    count: int
    of: int
    interval: Interval | None
    """The share, with Wilson's interval; `None` if the total is 0."""

    @classmethod
    def make(cls, count: int, of: int) -> "Share":
        """Return `count` of `of`."""
        found = wilson_interval(count, of)
        interval = Interval(value=count / of, low=found[0], high=found[1]) if found else None
        return cls(count=count, of=of, interval=interval)


class Table(Record):
    """Counts of the verdicts of people (first) and the judge (second)."""

    pass_pass: int = 0
    pass_fail: int = 0
    fail_pass: int = 0
    fail_fail: int = 0

    @classmethod
    def count(cls, said: Iterable[tuple[bool, bool]]) -> "Table":
        """Count pairs of verdicts of people and the judge."""
        pairs = list(said)
        return cls(
            pass_pass=pairs.count((True, True)),
            pass_fail=pairs.count((True, False)),
            fail_pass=pairs.count((False, True)),
            fail_fail=pairs.count((False, False)),
        )

    @property
    def rows(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The judge's verdicts where people said pass, and where they said fail."""
        return (self.pass_pass, self.pass_fail), (self.fail_pass, self.fail_fail)


class Agreement(Record):
    """How far a judge agrees with people."""

    table: Table
    agreed: Share
    """Of all items, those with the same verdict."""
    passed: Share
    """Of the items that people pass, those that the judge passes."""
    failed: Share
    """Of the items that people fail, those that the judge fails."""
    kappa: Interval | None
    """Cohen's kappa: 0 is chance, 1 is full agreement; `None` if it is undefined."""
    kappa_reason: str = ""
    """Why it is undefined."""

    @classmethod
    def of(cls, said: Iterable[tuple[bool, bool]]) -> "Agreement":
        """Return the agreement in pairs of verdicts of people and the judge."""
        table = Table.count(said)
        (both, missed), (let_pass, caught) = table.rows
        good, bad = both + missed, let_pass + caught
        one_sided = "pass" if good else "fail"
        reason = "" if good and bad else f"all labels say {one_sided}"
        return cls(
            table=table,
            agreed=Share.make(both + caught, good + bad),
            passed=Share.make(both, good),
            failed=Share.make(caught, bad),
            kappa=None if reason else _kappa_of(table),
            kappa_reason=reason if good or bad else "nothing was decided",
        )


def _kappa_of(table: Table) -> Interval:
    cells = [each for row in table.rows for each in row]
    value = kappa(cells)
    added = [each + 1 for each in cells]
    middle, error = kappa(added), kappa_error(added)
    low, high = max(-1.0, middle - Z95 * error), min(1.0, middle + Z95 * error)
    return Interval(value=value, low=min(value, low), high=max(value, high))


def kappa(cells: Sequence[float]) -> float:
    """Return Cohen's kappa of a table: pass-pass, pass-fail, fail-pass, fail-fail.

    (observed - expected) / (1 - expected), where `expected` is the agreement of two raters who say
    pass as often as these, but at random (Cohen, "A coefficient of agreement for nominal scales",
    1960).  For two verdicts that is 2 (ad - bc) / ((a + b)(b + d) + (a + c)(c + d)), which is
    rounded once.  The first rater must have given both verdicts; if the second always gives the
    same, kappa is 0.
    """
    both, missed, let_pass, caught = cells
    beyond_chance = 2 * (both * caught - missed * let_pass)
    return beyond_chance / (
        (both + missed) * (missed + caught) + (both + let_pass) * (let_pass + caught)
    )


def kappa_error(cells: Sequence[float]) -> float:
    """Return the standard error of `kappa`.

    The formula of Fleiss, Cohen and Everitt ("Large sample standard errors of kappa and weighted
    kappa", 1969) is for many labels.  With 1 added to each cell, as Agresti and Caffo ("Simple
    and effective confidence intervals for proportions and differences of proportions result from
    adding two successes and two failures", 2000) do for shares, it also works for few: summed over
    all tables of 10 to 50 labels, with kappas from 0 to 0.92, the 95 % interval contains the true
    kappa with a probability of 93 to 99 %; without the added 1, of 19 to 94 %.
    """
    observed, expected, chances = _agreements(cells)
    total = sum(cells)
    # How kappa changes with each cell; its variance is that of the slope of a random label.
    slopes = [
        (agrees * (1 - expected) - (1 - observed) * chance) / (1 - expected) ** 2
        for agrees, chance in zip((1, 0, 0, 1), chances, strict=True)
    ]
    shares = [each / total for each in cells]
    mean = sum(share * slope for share, slope in zip(shares, slopes, strict=True))
    square = sum(share * slope**2 for share, slope in zip(shares, slopes, strict=True))
    return math.sqrt(max(square - mean**2, 0.0) / total)


def _agreements(cells: Sequence[float]) -> tuple[float, float, list[float]]:
    """Return the observed and the expected agreement, and the effect of each cell on the latter."""
    total = sum(cells)
    both, missed, let_pass, caught = (each / total for each in cells)
    people, judge = (both + missed, let_pass + caught), (both + let_pass, missed + caught)
    expected = people[0] * judge[0] + people[1] * judge[1]
    return both + caught, expected, [judge[i] + people[j] for i in (0, 1) for j in (0, 1)]


class Distance(Record):
    """Differences between the scores of the judge and of people."""

    count: int
    error: Interval | None
    """The mean absolute difference, with Student's interval; `None` for a single score."""
    bias: Interval | None
    """The mean of the judge's score minus people's: above 0 the judge is more lenient."""

    @classmethod
    def of(cls, scores: Sequence[tuple[float, float]]) -> "Distance":
        """Return the differences between people's (first) and the judge's scores (second)."""
        apart = [judge - people for people, judge in scores]
        error = _mean([abs(each) for each in apart], least=0.0)
        return cls(count=len(apart), error=error, bias=_mean(apart))


def _mean(values: Sequence[float], *, least: float = -math.inf) -> Interval | None:
    found = mean_interval(values)
    if found is None:
        return None
    mean = math.fsum(values) / len(values)
    return Interval(value=mean, low=max(least, found[0]), high=found[1])
