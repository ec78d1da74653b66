"""AgentFlow's judged comparison of responses."""

from typing import ClassVar

from ci_eval.criteria._agentflow import last_expected, last_given
from ci_eval.criteria._agentflow_answers import as_observed
from ci_eval.criteria._agentflow_judged import AgentFlowJudged, Ask, first_and_last, shown
from ci_eval.criteria._forms import NUMBER, TEXT, strict
from ci_eval.criteria._scores import scored
from ci_eval.plugins.points import criterion
from ci_eval.records.model import EvalCase
from ci_eval.records.stated_expectations import UNSTATED, Expectation
from ci_eval.records.trials import Trace

PROMPT = "agentflow/response_match_score"
FORM = strict(reasoning=TEXT, score=NUMBER)


@criterion("agentflow/response_match_score")
class ResponseMatch(AgentFlowJudged):
    """How well the response matches the expected one, according to a judge.

    Compares the last invocation that expects a response.  The judge sees the user's message, the
    response, the expected one and, if there are several invocations, the conversation before; it
    gives a score from 0 to 1, and the mean over the samples counts.  A case that expects no
    response is skipped.
    """

    aliases: ClassVar[tuple[str, ...]] = ("response_match",)
    needs_reference: ClassVar[bool] = True
    compares: ClassVar[Expectation | None] = "response"
    supports_scenario: ClassVar[bool] = False
    prompts: ClassVar[tuple[str, ...]] = (PROMPT,)

    def needs(self, case: EvalCase) -> str:
        """Return a message if no response is expected, which the package would pass."""
        return passed_by_package(case) if self.semantics == "observed" else ""

    def documented(self, case: EvalCase, trace: Trace) -> Ask:
        """Ask how well the response matches the expected one."""
        expecting = [bool(turn.response) for turn in case.conversation or ()]
        last = max(n for n, expects in enumerate(expecting, 1) if expects)
        data = {**shown(trace.invocations[:last]), "expected_response": last_expected(case)}
        return Ask(PROMPT, FORM, scored(), data)

    def observed(self, case: EvalCase, trace: Trace) -> Ask:
        """Ask the same about the first message and the last response."""
        return asked_by_package(case, trace)


def asked_by_package(case: EvalCase, trace: Trace) -> Ask:
    """Return the question that the package asks in two criteria with the same code."""
    data = {**first_and_last(trace), "expected_response": last_given(case)}
    return Ask(PROMPT, FORM, as_observed(), data)


def passed_by_package(case: EvalCase) -> str:
    """Return a message if there is nothing to compare with; empty otherwise."""
    return "" if last_given(case) else UNSTATED["response"]
