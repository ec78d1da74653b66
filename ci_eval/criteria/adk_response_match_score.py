"""ADK's response match: ROUGE-1 of the final response and the expected one."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic.alias_generators import to_camel

from ci_eval.criteria._adk_judged import INTERMEDIATE, of_no_effect
from ci_eval.criteria._rouge import rouge1_f
from ci_eval.criteria._turns import Turn, compared
from ci_eval.plugins.points import Criterion, criterion
from ci_eval.records.model import EvalCase, Invocation
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace


@criterion("adk/response_match_score")
class ResponseMatch(Criterion, alias_generator=to_camel):
    """ROUGE-1 F of the final response: the words it shares with the expected one.

    Words are stemmed; in scripts without spaces, each ideograph or letter is a word.  The value is
    the mean over the invocations that expect a response.  In ADK's own files, as in ADK 2.13.0, a
    missing reference scores 0, and so do two empty texts.
    """

    needs_reference = True
    compares = "response"
    counts_silence = True
    supports_scenario = False
    rules: ClassVar[Literal["adk", "adk@2.3"]] = "adk"
    """The definition of a word."""

    include_intermediate_responses_in_final: bool = False
    """ADK option that exists on every criterion; has no effect here."""

    def remarks(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the ADK options that are set but have no effect."""
        if self.include_intermediate_responses_in_final:
            yield of_no_effect(INTERMEDIATE)

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Score each invocation and return the mean."""
        return compared(self, case, trace, self._turn)

    @property
    def relevant_warnings(self) -> frozenset[str]:
        """Missing responses."""
        return frozenset({"adk/response_match_score"})

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
