"""Calibration of a judge against human labels, and its requirements."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from ci_eval.cli.judge_check.agreement import Agreement, Distance, Interval, Share
from ci_eval.cli.judge_check.human_labels import Item, Labels
from ci_eval.cli.judge_check.judge_verdicts import Verdict
from ci_eval.records.cases import Record
from ci_eval.records.results import JudgeUsage
from ci_eval.text.templates import percent, score

Outcome = Literal["passed", "failed", "incomplete"]


class Judges(Record):
    """The criterion, and the models that it asked."""

    criterion: str
    """Its name in the configuration."""
    models: tuple[str, ...] = ()
    """Empty if unknown, as for a stored run."""
    samples: int | None = None
    """Samples of each model; `None` if unknown, as for a stored run."""


class Differing(Record):
    """An item on which people and the judge differ."""

    id: str
    line: int
    rubric_id: str | None = None
    people: bool
    """Whether people pass it."""
    people_score: float | None = None
    judge: bool
    judge_score: float | None = None
    rationale: str = ""
    """The judge's reason."""


class Open(Record):
    """An item that people or the judge did not decide."""

    id: str
    line: int
    rubric_id: str | None = None
    reason: str


class Calibration(Record):
    """How well a judge agrees with people."""

    judges: Judges
    labelled: int
    """Number of labelled items."""
    agreement: Agreement
    """Over all items that both decided."""
    rubrics: dict[str, Agreement]
    """The same for each rubric with labels."""
    distance: Distance | None
    """Differences of the scores; `None` if people give none between 0 and 1."""
    people: Share | None
    """Of the pairs of people who labelled the same item, those who agree; `None` if no pairs."""
    divided: tuple[Open, ...]
    """Items that as many people pass as fail; they are not compared."""
    undecided: tuple[Open, ...]
    """Items that the judge could not decide."""
    differing: tuple[Differing, ...]
    others: int
    """Number of ignored labels on other criteria."""
    judging: JudgeUsage
    """The model usage."""


class _Pair(NamedTuple):
    """An item that people and the judge decided."""

    item: Item[Any]
    people: bool
    judge: bool
    verdict: Verdict


def calibrate(
    labels: Labels[Any], verdicts: Sequence[Verdict], judges: Judges, judging: JudgeUsage
) -> Calibration:
    """Return how far `verdicts`, one for each item of `labels`, agree with people."""
    both = list(zip(labels.items, verdicts, strict=True))
    pairs = [
        _Pair(item, item.passes, verdict.passes, verdict)
        for item, verdict in both
        if item.passes is not None and verdict.passes is not None
    ]
    same, of = map(sum, zip(*(item.pairs for item in labels.items), strict=True))
    rubrics = dict.fromkeys(each.item.rubric for each in pairs if each.item.rubric is not None)
    return Calibration(
        judges=judges,
        labelled=len(labels.items),
        agreement=_agreement(pairs),
        rubrics={
            name: _agreement([each for each in pairs if each.item.rubric == name])
            for name in rubrics
        },
        distance=_distance(pairs),
        people=Share.make(same, of) if of else None,
        divided=tuple(
            _open(item, "people are evenly divided") for item in labels.items if item.passes is None
        ),
        undecided=tuple(
            _open(item, verdict.reason) for item, verdict in both if verdict.passes is None
        ),
        differing=tuple(_differing(each) for each in pairs if each.people != each.judge),
        others=labels.others,
        judging=judging,
    )


def _agreement(pairs: Sequence[_Pair]) -> Agreement:
    return Agreement.of([(each.people, each.judge) for each in pairs])


def _distance(pairs: Sequence[_Pair]) -> Distance | None:
    """Return the differences of scores; `None` if all of people's are 0 or 1."""
    scores = [
        (each.item.value, each.verdict.value)
        for each in pairs
        if each.item.value is not None and each.verdict.value is not None
    ]
    graded = any(people not in (0.0, 1.0) for people, _ in scores)
    return Distance.of(scores) if graded else None


def _open(item: Item[Any], reason: str) -> Open:
    return Open(id=item.name, line=item.line, rubric_id=item.rubric, reason=reason)


def _differing(pair: _Pair) -> Differing:
    return Differing(
        id=pair.item.name,
        line=pair.item.line,
        rubric_id=pair.item.rubric,
        people=pair.people,
        people_score=pair.item.value,
        judge=pair.judge,
        judge_score=pair.verdict.value,
        rationale=pair.verdict.rationale,
    )


class Required(NamedTuple):
    """The requirements on a judge."""

    kappa: float | None = None
    agreement: float | None = None
    undecided: float = 0.1
    """Maximum share of items that the judge may leave undecided; if a kappa or an agreement is
    required, also of those on which either the judge or people are undecided."""

    @property
    def says_nothing(self) -> bool:
        """Whether every judge that reaches verdicts meets them."""
        return self.kappa is None and self.agreement is None


def decide(found: Calibration, required: Required) -> tuple[Outcome, list[str]]:
    """Decide if a judge is good enough, and list the requirements that it misses.

    Estimates count, not the bounds of their intervals: the number of labels is the team's choice,
    and the intervals show its effect.
    """
    missing = list(_unmeasured(found, required))
    if missing:
        return "incomplete", missing
    low = list(_too_low(found.agreement, required))
    return ("failed" if low else "passed"), low


def _unmeasured(found: Calibration, required: Required) -> Iterator[str]:
    undecided, agreement = len(found.undecided), found.agreement
    most = required.undecided * found.labelled + 1e-9  # 29 of 100 are 0.29
    if undecided > most:
        yield (
            f"the judge could not decide {undecided} of {found.labelled}, "
            f"at most {percent(required.undecided)} allowed"
        )
    elif agreement.agreed.interval is None:
        yield "no item was decided by both people and the judge"
    elif not required.says_nothing and found.labelled - agreement.agreed.of > most:
        yield (
            f"only {agreement.agreed.of} of {found.labelled} were decided by both people and the "
            f"judge, at most {percent(required.undecided)} may be undecided"
        )
    elif required.kappa is not None and agreement.kappa is None:
        yield f"kappa cannot be computed: {agreement.kappa_reason}"


def _too_low(found: Agreement, required: Required) -> Iterator[str]:
    for each in _demands(found, required):
        if each.found.value < each.wanted:
            reached = each.shown(each.found.value, each.wanted)
            wanted = each.shown(each.wanted, each.found.value)
            yield f"{each.name} is {reached}, required {wanted}"


def doubts(found: Agreement, required: Required) -> Iterator[str]:
    """Yield the requirements that are met, but might be missed with other labels."""
    for each in _demands(found, required):
        if each.found.low < each.wanted <= each.found.value:
            low = each.shown(each.found.low, each.wanted)
            yield f"{each.name} may be as low as {low}; more labels would narrow the interval"


class _Demand(NamedTuple):
    """A requirement and the measured value."""

    name: str
    wanted: float
    found: Interval
    shown: Callable[[float, float], str]


def _demands(found: Agreement, required: Required) -> Iterator[_Demand]:
    agreed, kappa = found.agreed.interval, found.kappa
    if required.agreement is not None and agreed:
        yield _Demand("agreement", required.agreement, agreed, percent)
    if required.kappa is not None and kappa:
        yield _Demand("kappa", required.kappa, kappa, score)
