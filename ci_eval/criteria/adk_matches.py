"""ADK's matches: the final response and the tool calls, each compared with the expected ones."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator
from pydantic.alias_generators import to_camel

from ci_eval.criteria._adk_judged import INTERMEDIATE, of_no_effect
from ci_eval.criteria._invocation_turns import Turn, compared
from ci_eval.criteria._rouge import rouge1_f
from ci_eval.plugins.points import Criterion, criterion
from ci_eval.records.cases import EvalCase, Invocation, Json, ToolCall
from ci_eval.records.evalset_facts import CaseFacts
from ci_eval.records.results import Score
from ci_eval.records.stated_expectations import SILENCE
from ci_eval.records.trials import Trace


class _Match(Criterion, alias_generator=to_camel):
    """A comparison of each invocation with the expected one, without a judge."""

    needs_reference = True
    counts_silence = True
    supports_scenario = False

    def scores_all(self, facts: CaseFacts) -> bool:
        """Return True if every case states the expectation that this criterion compares."""
        what = self.compares
        return what is not None and facts.expecting[what] == facts.cases

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Score each invocation and return the mean."""
        return compared(self, case, trace, self._turn)

    @abstractmethod
    def _turn(self, expected: Invocation, actual: Invocation) -> Turn:
        """Compare one invocation."""


@criterion("adk/response_match_score")
class ResponseMatch(_Match):
    """ROUGE-1 F of the final response: the words it shares with the expected one.

    Words are stemmed; in scripts without spaces, each ideograph or letter is a word.  The value is
    the mean over the invocations that expect a response.  In ADK's own files, as in ADK 2.13.0, a
    missing reference scores 0, and so do two empty texts.
    """

    compares = "response"
    rules: ClassVar[Literal["adk", "adk@2.3"]] = "adk"
    """The definition of a word."""

    include_intermediate_responses_in_final: bool = False
    """ADK option that exists on every criterion; has no effect here."""

    def remarks(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the ADK options that are set but have no effect."""
        if self.include_intermediate_responses_in_final:
            yield of_no_effect(INTERMEDIATE)

    def _turn(self, expected: Invocation, actual: Invocation) -> Turn:
        value = rouge1_f(actual.response, expected.response, rules=self.rules)
        return Turn(value, {"expected": expected.response, "actual": actual.response})


@criterion("adk@2.3/response_match_score")
class ResponseMatch23(ResponseMatch):
    """ROUGE-1 F of the final response, with the words of ADK 2.3.0.

    Only the letters a to z and digits count: a text in another script scores 0 even
    compared with itself.
    """

    rules = "adk@2.3"


_BY_NUMBER = ("EXACT", "IN_ORDER", "ANY_ORDER")


def _match_type(value: object) -> object:
    """Normalize a match type as ADK does, which also accepts `in-order` and the number 1."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(_BY_NUMBER):
        return _BY_NUMBER[value]
    if isinstance(value, str):
        word = value.strip().upper().replace("-", "_").replace(" ", "_")
        return word if word in _BY_NUMBER else value
    return value


@criterion("adk/tool_trajectory_avg_score")
class ToolTrajectory(_Match):
    """The share of invocations whose tool calls match the expected ones.

    An invocation scores 1 or 0; the value is the mean.  Calls match if name and arguments are
    equal; ids, results and texts are not compared, as in ADK 2.13.0.  An invocation that does not
    state the expected tool calls is skipped; in ADK's own files it expects none, as in ADK.
    """

    reads_tool_calls = True
    compares = "tool_calls"

    match_type: Annotated[
        Literal["EXACT", "IN_ORDER", "ANY_ORDER"], BeforeValidator(_match_type)
    ] = "EXACT"
    """`EXACT`: the same calls in the same order and no others. `IN_ORDER`: the expected calls in
    order, with others in between. `ANY_ORDER`: the expected calls, in any order, among others."""
    ignore_args: bool = False
    """Compare only the names."""
    missing_args: Literal["never", "empty", "any"] = "never"
    """What an expected call without `args` matches. `never`: only a call without `args`, as in ADK.
    `empty`: also one with empty arguments. `any`: any."""
    include_intermediate_responses_in_final: bool = False
    """ADK option that exists on every criterion; has no effect here."""

    @property
    def relevant_warnings(self) -> frozenset[str]:
        """Unstated tool calls; and calls without arguments, if they match only each other."""
        strict = self.missing_args == "never" and self.compares_args
        return (super().relevant_warnings if strict else frozenset()) | {SILENCE}

    @property
    def compares_args(self) -> bool:
        """Whether arguments are compared, too."""
        return not self.ignore_args

    def remarks(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the ADK options that are set but have no effect."""
        if self.include_intermediate_responses_in_final:
            yield of_no_effect(INTERMEDIATE)

    def _turn(self, expected: Invocation, actual: Invocation) -> Turn:
        if self._matches(expected.tool_calls, actual.tool_calls):
            return Turn(1.0)
        evidence = {
            "expected_tool_calls": _shown(expected.tool_calls),
            "actual_tool_calls": _shown(actual.tool_calls),
        }
        return Turn(0.0, evidence)

    def _matches(self, expected: Sequence[ToolCall], actual: Sequence[ToolCall]) -> bool:
        if self.match_type == "EXACT":
            return len(expected) == len(actual) and all(map(self._same, expected, actual))
        remaining = list(actual)
        for wanted in expected:
            found = next((i for i, call in enumerate(remaining) if self._same(wanted, call)), None)
            if found is None:
                return False
            del remaining[slice(0, found + 1) if self.match_type == "IN_ORDER" else found]
        return True

    def _same(self, expected: ToolCall, actual: ToolCall) -> bool:
        if expected.name != actual.name:
            return False
        if not self.compares_args or expected.args == actual.args:
            return True
        accepted = {"never": False, "empty": not actual.args, "any": True}[self.missing_args]
        return expected.args is None and accepted


@criterion("adk@2.3/tool_trajectory_avg_score")
class ToolTrajectory23(ToolTrajectory):
    """The share of invocations whose tool calls match, as in ADK 2.3.0.

    ADK 2.3.0 had no `ignore_args`: arguments are always compared, whatever its value.
    """

    @property
    def compares_args(self) -> bool:
        """Whether arguments are compared, too."""
        return True

    def remarks(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the ADK options that are set but have no effect."""
        yield from super().remarks()
        if self.ignore_args:
            yield ("ignore_args",), "has no effect: ADK 2.3 always compares arguments"


def _shown(calls: Sequence[ToolCall]) -> list[Json]:
    return [{"name": call.name, "args": call.args} for call in calls]
