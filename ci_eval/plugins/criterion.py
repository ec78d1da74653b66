"""What all criteria declare, whatever they are made of."""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from ci_eval.plugins.plugin import Plugin
from ci_eval.records.bounds import MAX_VALUE, Value
from ci_eval.records.model import EvalCase, Invocation, Json, Status
from ci_eval.records.results import InvocationScore, Score, Tier
from ci_eval.records.stated import UNSTATED, Expectation, states


class AnyCriterion(Plugin):
    """A measure of one trial: what all kinds of criteria declare."""

    aliases: ClassVar[tuple[str, ...]] = ()
    """What files may call it, too, beside the part of its name after the `/`."""
    needs_reference: ClassVar[bool] = False
    """Whether it compares with the expected conversation."""
    compares: ClassVar[Expectation | None] = None
    """What it compares with; an invocation that does not state it is skipped."""
    counts_silence: ClassVar[bool] = False
    """Whether it scores, as ADK does, what a case of ADK's own files does not state."""
    needs_rubrics: ClassVar[bool] = False
    """Whether it judges rubrics."""
    reads_tool_calls: ClassVar[bool] = False
    """Whether it depends on which tools were called; where that was not seen, it is an error."""
    judged: ClassVar[bool] = False
    """Whether it asks a model, which costs money."""
    supports_scenario: ClassVar[bool] = True
    """Whether it can score a conversation that a simulated user led."""
    interval: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    """The least and the greatest value; `None` for a measure without bounds."""
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    takes_threshold: ClassVar[Literal["always", "optionally", "never"]] = "always"
    """Whether it is judged by a threshold; without one it is measured and shown, never judged."""
    shorthand: ClassVar[str] = "threshold"
    """The option that is meant where an assertion gives a value instead of options."""
    reads_assertions: ClassVar[bool] = False
    """Whether it checks what cases assert of themselves."""
    example: ClassVar[Mapping[str, Json]] = {}
    """Options for the example on its reference page, where it cannot do without."""
    absent_in: ClassVar[frozenset[str]] = frozenset()
    """Dialects that do not know it."""

    threshold: Value | None = None
    """The value from which on a case passes (up to which, where lower is better)."""
    enabled: bool = True
    """Whether it is used. One that is switched off is not missed in a comparison."""
    tier: Tier | None = None
    """What it does when it got worse or a case fails: `block`, `warn`, or `inform`, which only
    shows it. Left out, it blocks where it has a threshold, and warns where it has `max_growth`
    alone."""
    max_growth: float | None = Field(default=None, ge=0, le=100)
    """For a measure such as time or cost, the share by which it may get worse: with 0.2 an agent
    that takes 20 % more than in the baseline is let through."""

    @model_validator(mode="after")
    def _threshold_fits(self) -> Self:
        if self.max_growth is not None and self.bounds:
            raise ValueError("has an interval, so gate.max_drop says how much it may get worse")
        if self.threshold is None:
            if self.takes_threshold == "always":
                raise ValueError("needs a threshold")
            return self
        if self.takes_threshold == "never":
            raise ValueError("only measures, so it takes no threshold")
        if self.bounds and not self.bounds[0] <= self.threshold <= self.bounds[1]:
            low, high = self.bounds
            raise ValueError(f"the threshold must lie between {low:g} and {high:g}")
        return self

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The `interval`, as its options narrow or widen it."""
        return self.interval

    @property
    def direction(self) -> Literal["higher", "lower"]:
        """What is `better`, as its options have it."""
        return self.better

    @property
    def informational(self) -> bool:
        """Whether it is measured and shown, and never judged."""
        return self.threshold is None or self.tier == "inform"

    @property
    def judges(self) -> bool:
        """True if it decides whether a case passes: it has a threshold, and blocks."""
        return not self.informational and self.tier in (None, "block")

    def skip_reason(self, case: EvalCase) -> str:
        """Say why `case` cannot be scored; nothing where it can.

        A case that cannot be scored is skipped, with this as the reason.
        """
        if case.conversation is None and not self.supports_scenario:
            return "needs a written conversation, not a scenario"
        return self.unstated(case) or self.lacks(case)

    @property
    def compared(self) -> Expectation | None:
        """What it `compares` with, as its options have it."""
        return self.compares

    def measures(self, case: EvalCase, turn: Invocation) -> bool:
        """Return True if there is something to compare with in the invocation `turn` of `case`."""
        what = self.compared
        return what is None or states(turn, what) or (self.counts_silence and case.of_adk)

    def unstated(self, case: EvalCase) -> str:
        """Return that no invocation of `case` states what it is compared with, if that is so."""
        if case.conversation == ():
            return "has no invocation"
        what = self.compared
        if what is None or any(self.measures(case, turn) for turn in case.conversation or ()):
            return ""
        return UNSTATED[what]

    def lacks(self, case: EvalCase) -> str:
        """Say what `case` does not have that the score needs; nothing where it has all."""
        return self.unstated(case)

    @property
    def relevant_warnings(self) -> frozenset[str]:
        """What readers warn of for its sake, as far as it matters to it as it is set."""
        # What concerns a criterion concerns it by the rules of an older version, too.
        return frozenset({self.type_name.replace("@2.3/", "/")})

    def remarks(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield which of its options, by its path, changes nothing as it is set, and why."""
        yield from ()

    def faults(self, case: EvalCase) -> Iterator[str]:
        """Yield what is wrong with what `case` says for this criterion alone."""
        del case
        yield from ()

    def options(self) -> dict[str, Json]:
        """Return what, beside the type, decides the value: all options but the threshold."""
        return self.model_dump(mode="json", exclude={"threshold", "enabled", "tier", "max_growth"})

    def scored(
        self,
        value: float | None,
        invocations: Iterable[InvocationScore] = (),
        *,
        reason: str = "",
        evidence: dict[str, Json] | None = None,
    ) -> Score:
        """Return the score `value`, or a skipped one where there is none.

        `evidence` tells what was compared over the whole conversation; it is kept where the
        score did not pass.
        """
        if value is not None and abs(value) > MAX_VALUE:
            return self.unscored(Status.ERROR, f"{value:g} is more than can be a measurement")
        status = self.status_of(value)
        keep = status is Status.FAILED or self.informational
        return Score(
            criterion=self.type_name,
            name=self.type_name,
            status=status,
            value=value,
            better=self.direction,
            threshold=self.threshold,
            reason=reason,
            informational=self.informational,
            evidence=evidence if keep else None,
            invocations=tuple(invocations),
        )

    def unscored(self, status: Status, reason: str) -> Score:
        """Return a score without a value: `skipped` or `error`."""
        return self.scored(None).model_copy(update={"status": status, "reason": reason})

    def status_of(self, value: float | None) -> Status:
        """Return the status that `value` has against the threshold."""
        if value is None:
            return Status.SKIPPED
        if self.threshold is None:
            return Status.PASSED
        good = value >= self.threshold if self.direction == "higher" else value <= self.threshold
        return Status.PASSED if good else Status.FAILED
