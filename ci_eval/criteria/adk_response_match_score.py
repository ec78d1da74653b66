"""ADK's response match: ROUGE-1 of the final response against the expected one."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from ci_eval.criteria._adk_judged import INTERMEDIATE, of_no_effect
from ci_eval.criteria._rouge import rouge1_f
from ci_eval.criteria._turns import Turn, compared
from ci_eval.plugins.points import Criterion, criterion
from ci_eval.records.model import EvalCase, Invocation
from ci_eval.records.results import Score
from ci_eval.records.stated import Expectation
from ci_eval.records.trials import Trace


@criterion("adk/response_match_score")
class ResponseMatch(Criterion):
    """ROUGE-1 F of the final response: how many words it shares with the expected one.

    Words are stemmed; ideographs and the letters of scripts without spaces count one by
    one.  The value is the mean over the invocations that expect a response.  In ADK's own files, as
    in ADK 2.13.0, a missing reference scores 0, and so do two empty texts.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(alias_generator=to_camel)
    needs_reference: ClassVar[bool] = True
    compares: ClassVar[Expectation | None] = "response"
    counts_silence: ClassVar[bool] = True
    supports_scenario: ClassVar[bool] = False
    rules: ClassVar[Literal["adk", "adk@2.3"]] = "adk"
    """Whose words are counted."""

    include_intermediate_responses_in_final: bool = False
    """Known to ADK on every criterion; changes nothing here."""

    def remarks(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the options of ADK that are set and change nothing."""
        if self.include_intermediate_responses_in_final:
            yield of_no_effect(INTERMEDIATE)

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Score each invocation and return the mean."""
        return compared(self, case, trace, self._turn)

    @property
    def relevant_warnings(self) -> frozenset[str]:
        """Responses that are missing."""
        return frozenset({"adk/response_match_score"})

    def _turn(self, expected: Invocation, actual: Invocation) -> Turn:
        value = rouge1_f(actual.response, expected.response, rules=self.rules)
        return Turn(value, {"expected": expected.response, "actual": actual.response})


@criterion("adk@2.3/response_match_score")
class ResponseMatch23(ResponseMatch):
    """ROUGE-1 F of the final response, with the words that ADK 2.3.0 saw.

    It knew the letters a to z and digits only: a text in another script scores 0 even
    against itself.
    """

    rules: ClassVar[Literal["adk", "adk@2.3"]] = "adk@2.3"
