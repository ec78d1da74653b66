"""AgentFlow's judged fact check."""

from typing import ClassVar

from ci_eval.criteria._agentflow import last_given
from ci_eval.criteria._agentflow_answers import as_observed
from ci_eval.criteria._agentflow_judged import (
    AgentFlowJudged,
    Ask,
    first_and_last,
    shown,
    silent,
)
from ci_eval.criteria._forms import NUMBER, TEXT, TEXTS, strict
from ci_eval.criteria._scores import scored
from ci_eval.plugins.points import criterion
from ci_eval.records.model import EvalCase, Json
from ci_eval.records.scenarios import of_metadata
from ci_eval.records.trials import Trace

PROMPT = "agentflow/factual_accuracy_v1"
FORM = strict(reasoning=TEXT, errors=TEXTS, score=NUMBER)


@criterion("agentflow/factual_accuracy_v1")
class FactualAccuracy(AgentFlowJudged):
    """How correct the facts are that the agent states, according to a judge.

    The judge sees the whole conversation, the expected responses and the `reference_facts` in
    the `metadata` of the case, if there are any; otherwise it relies on its own knowledge.  It
    gives the share of correct facts in all that the agent said, and lists the wrong ones; the mean
    over the samples counts.  An agent that said nothing at all is an error.
    """

    aliases: ClassVar[tuple[str, ...]] = ("factual_accuracy", "factual_accuracy_score")
    prompts: ClassVar[tuple[str, ...]] = (PROMPT,)

    def unknown(self, case: EvalCase, trace: Trace) -> str:
        """Return a message if the agent said nothing."""
        del case
        return silent(trace)

    def documented(self, case: EvalCase, trace: Trace) -> Ask:
        """Ask for the share of correct facts."""
        turns = [turn for turn in case.conversation or () if turn.response]
        expected: Json = [{"user": turn.user, "expected": turn.response} for turn in turns]
        data = {**shown(trace.invocations), **_known(case, expected)}
        return Ask(PROMPT, FORM, scored("errors"), data)

    def observed(self, case: EvalCase, trace: Trace) -> Ask:
        """Ask the same about the first message and the last response."""
        expected = last_given(case)
        data = {**first_and_last(trace), **_known(case, expected)}
        return Ask(PROMPT, FORM, as_observed(united="errors"), data)


def _known(case: EvalCase, expected: Json) -> dict[str, Json]:
    """Return the reference for the fact check."""
    facts = of_metadata(case, "reference_facts") or ""
    return {"expected_responses": expected, "reference_facts": facts}
