"""AgentFlow's ROUGE match: the words of the last response compared with the expected ones."""

import re
from typing import ClassVar

from ci_eval.criteria._agentflow import AgentFlowCriterion, last_expected, last_given
from ci_eval.criteria._rouge import rouge1_f, words
from ci_eval.plugins.points import criterion
from ci_eval.records.model import EvalCase, Status
from ci_eval.records.results import Score
from ci_eval.records.stated_expectations import UNSTATED, Expectation
from ci_eval.records.trials import Trace


@criterion("agentflow/rouge_match")
class RougeMatch(AgentFlowCriterion):
    """ROUGE-1 F of the last response: the words it shares with the last expected one.

    Words count as often as they occur and are split as for `adk/response_match_score`, but not
    stemmed.  A case whose expected responses have no words is skipped.  Observed semantics: words
    are sets, split at punctuation and white space, and two texts without words score 1.
    """

    needs_reference: ClassVar[bool] = True
    compares: ClassVar[Expectation | None] = "response"
    supports_scenario: ClassVar[bool] = False

    def lacks(self, case: EvalCase) -> str:
        """Return a message if no words are expected; empty otherwise."""
        if unstated := super().lacks(case):
            return unstated
        if self.semantics == "observed":
            return "" if last_given(case) else UNSTATED["response"]
        there = words(last_expected(case), rules="agentflow")
        return "" if there else "expects a response without words"

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Score the last response."""
        if not trace.invocations:
            return self.unscored(Status.ERROR, "no response was observed")
        actual = trace.invocations[-1].response
        if self.semantics == "observed":
            expected = last_given(case)
            value = _observed(actual, expected)
        else:
            expected = last_expected(case)
            value = rouge1_f(actual, expected, rules="agentflow")
        return self.scored(value, evidence={"expected": expected, "actual": actual})


def _observed(actual: str, expected: str) -> float:
    done, wanted = _observed_words(actual), _observed_words(expected)
    if not done or not wanted:
        return float(not done and not wanted)
    precision, recall = len(done & wanted) / len(done), len(done & wanted) / len(wanted)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _observed_words(text: str) -> set[str]:
    return set(re.sub(r"[^\w\s]", " ", text.lower()).split())
