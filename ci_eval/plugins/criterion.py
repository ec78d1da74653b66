"""Base class of all criteria."""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from ci_eval.plugins.plugin import Plugin
from ci_eval.records.bounds import MAX_VALUE, Value
from ci_eval.records.cases import EvalCase, Invocation, Json, Status
from ci_eval.records.evalset_facts import CaseFacts
from ci_eval.records.results import InvocationScore, Score, Tier, meets
from ci_eval.records.stated_expectations import UNSTATED, Expectation, states
from ci_eval.text.suggest import as_share


class AnyCriterion(Plugin):
    """A measure of one trial; the base class of every kind of criterion."""

    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names that files may use, besides the part of its name after the `/`."""
    needs_reference: ClassVar[bool] = False
    """Whether it compares with the expected conversation."""
    compares: ClassVar[Expectation | None] = None
    """The expectation it compares with; invocations that do not state it are skipped."""
    counts_silence: ClassVar[bool] = False
    """Whether it scores an expectation that a case from ADK's files omits, as ADK does."""
    needs_rubrics: ClassVar[bool] = False
    """Whether it judges rubrics."""
    reads_tool_calls: ClassVar[bool] = False
    """Whether it needs the observed tool calls; if they are unknown, the score is an error."""
    judged: ClassVar[bool] = False
    """Whether it calls a model, which costs money."""
    supports_scenario: ClassVar[bool] = True
    """Whether it can score a conversation with a simulated user."""
    interval: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    """The lowest and the highest possible value; `None` if unbounded."""
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    takes_threshold: ClassVar[Literal["always", "optionally", "never"]] = "always"
    """Whether it takes a threshold; without one it is informational."""
    shorthand: ClassVar[str] = "threshold"
    """The option that an assertion sets if it gives a plain value instead of options."""
    reads_assertions: ClassVar[bool] = False
    """Whether it checks the assertions that cases contain."""
    example: ClassVar[Mapping[str, Json]] = {}
    """Required options, for the example on its reference page."""
    absent_in: ClassVar[frozenset[str]] = frozenset()
    """Dialects that lack it."""

    threshold: Value | None = None
    """The lowest value with which a case passes (the highest, if lower is better)."""
    enabled: bool = True
    """Whether to use it. A comparison does not report a disabled criterion as missing."""
    tier: Tier | None = None
    """Effect of a failed case or a regression: `block` the merge, `warn`, or `inform` (only show
    it). Default: `block` with a threshold, `warn` with `max_growth` alone."""
    max_growth: float | None = Field(default=None, ge=0, le=100)
    """For an unbounded measure such as time or cost, the relative increase that is tolerated:
    0.2 lets an agent take 20 % more than in the baseline."""

    @model_validator(mode="after")
    def _threshold_fits(self) -> Self:
        if self.max_growth is not None and self.bounds:
            raise ValueError(
                "`max_growth` is for unbounded measures only; use gate.max_drop for this one"
            )
        if self.threshold is None:
            if self.takes_threshold == "always":
                raise ValueError("needs a threshold")
            return self
        if self.takes_threshold == "never":
            raise ValueError("takes no threshold; it is informational")
        if self.bounds and not self.bounds[0] <= self.threshold <= self.bounds[1]:
            low, high = self.bounds
            share = as_share(self.threshold, high)
            raise ValueError(f"the threshold must lie between {low:g} and {high:g}{share}")
        return self

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The `interval`, adjusted to its options."""
        return self.interval

    @property
    def direction(self) -> Literal["higher", "lower"]:
        """Which values are `better`, given its options."""
        return self.better

    @property
    def informational(self) -> bool:
        """True if it is measured and shown but never decides anything."""
        return self.threshold is None or self.tier == "inform"

    @property
    def judges(self) -> bool:
        """True if it decides whether a case passes: it has a threshold, and blocks."""
        return not self.informational and self.tier in (None, "block")

    def skip_reason(self, case: EvalCase) -> str:
        """Return the reason to skip `case`; empty if it can be scored."""
        if case.conversation is None and not self.supports_scenario:
            return "needs a written conversation, not a scenario"
        return self.unstated(case) or self.lacks(case)

    def scores_all(self, facts: CaseFacts) -> bool:
        """Return True if `facts` prove that it can score every case of an evalset.

        The cases are then not read again to find out.
        """
        del facts
        return False

    @property
    def compared(self) -> Expectation | None:
        """The expectation it `compares` with, given its options."""
        return self.compares

    def may_compare(self, what: Expectation) -> bool:
        """Return True if it compares with that expectation, or may do so."""
        if self.compared is None and self.needs_reference:
            return True
        is_read = self.judged or self.compared == "reply"
        return self.compared == what or (what == "response" and is_read)

    def measures(self, case: EvalCase, turn: Invocation) -> bool:
        """Return True if the invocation `turn` of `case` states what to compare with."""
        what = self.compared
        return what is None or states(turn, what) or (self.counts_silence and case.of_adk)

    def unstated(self, case: EvalCase) -> str:
        """Return why no invocation of `case` can be compared; empty if one can."""
        if case.conversation == ():
            return "has no invocation"
        what = self.compared
        if what is None or any(self.measures(case, turn) for turn in case.conversation or ()):
            return ""
        return UNSTATED[what]

    def not_observed(self, observed: Iterable[Invocation]) -> str:
        """Return the reason if it needs tool calls and they were not observed; else empty."""
        is_hidden = self.reads_tool_calls and any(each.unseen for each in observed)
        return (
            "the agent does not report its tool calls, so they cannot be scored"
            if is_hidden
            else ""
        )

    def lacks(self, case: EvalCase) -> str:
        """Return the part of `case` that the score needs and is missing; empty if none."""
        return self.unstated(case)

    @property
    def relevant_warnings(self) -> frozenset[str]:
        """Topics of readers' warnings that matter to it, given its options."""
        # A warning that concerns a criterion also concerns its `@2.3` variant.
        return frozenset({self.type_name.replace("@2.3/", "/")})

    def remarks(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the path of each option that has no effect as configured, and the reason."""
        yield from ()

    def faults(self, case: EvalCase) -> Iterator[str]:
        """Yield the errors in the parts of `case` that only this criterion reads."""
        del case
        yield from ()

    def options(self) -> dict[str, Json]:
        """Return the options that decide the value: all but the threshold and the like."""
        return self.model_dump(mode="json", exclude={"threshold", "enabled", "tier", "max_growth"})

    def scored(
        self,
        value: float | None,
        invocations: Iterable[InvocationScore] = (),
        *,
        reason: str = "",
        evidence: dict[str, Json] | None = None,
    ) -> Score:
        """Return a score with `value`, or a skipped one if it is `None`.

        `evidence` holds the expected and actual values of the whole conversation; it is kept if
        the score failed or is informational.
        """
        if value is not None and abs(value) > MAX_VALUE:
            return self.unscored(Status.ERROR, f"{value:g} is out of range for a measurement")
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
        """Return the status of `value`, compared with the threshold."""
        if value is None:
            return Status.SKIPPED
        good = meets(value, self.threshold, self.direction)
        return Status.PASSED if good else Status.FAILED
