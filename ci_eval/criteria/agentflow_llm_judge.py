"""AgentFlow's judgement of overall response quality."""

from typing import ClassVar

from ci_eval.criteria import agentflow_response_match_score as response_match
from ci_eval.criteria._agentflow_judged import AgentFlowJudged, Ask, shown
from ci_eval.criteria._forms import NUMBER, TEXT, strict
from ci_eval.criteria._scores import scored
from ci_eval.plugins.points import criterion
from ci_eval.records.model import EvalCase
from ci_eval.records.trials import Trace

PROMPT = "agentflow/llm_judge"
FORM = strict(reasoning=TEXT, score=NUMBER)


@criterion("agentflow/llm_judge")
class Quality(AgentFlowJudged):
    """How relevant, helpful and coherent the response is, according to a judge.

    The judge sees the last user message, the response and, if there are several invocations, the
    conversation before; it gives a score from 0 to 1, and the mean over the samples counts.  An
    expected response is not shown: use `agentflow/response_match_score` to compare with it.
    Observed semantics: like that criterion, the package compares with it here, too.
    """

    aliases: ClassVar[tuple[str, ...]] = ("final_response_match_v2",)
    prompts: ClassVar[tuple[str, ...]] = (PROMPT, response_match.PROMPT)

    def needs(self, case: EvalCase) -> str:
        """Return a message if no response is expected, which the package would pass."""
        return response_match.passed_by_package(case) if self.semantics == "observed" else ""

    def documented(self, case: EvalCase, trace: Trace) -> Ask:
        """Ask how good the last response is."""
        del case
        return Ask(PROMPT, FORM, scored(), shown(trace.invocations))

    def observed(self, case: EvalCase, trace: Trace) -> Ask:
        """Ask how well the response matches the expected one."""
        return response_match.asked_by_package(case, trace)
