"""AgentFlow's judged hallucination check."""

from typing import ClassVar

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
from ci_eval.criteria._shown import tool_calls
from ci_eval.criteria._trajectory import is_captured
from ci_eval.plugins.points import criterion
from ci_eval.records.model import EvalCase, Json
from ci_eval.records.scenarios import of_metadata
from ci_eval.records.trials import Trace

PROMPT = "agentflow/hallucinations_v1"
FORM = strict(reasoning=TEXT, hallucinations=TEXTS, score=NUMBER)
_NO_SOURCES = (
    "no sources to check against: the agent did not report its tool calls, and the `metadata` of "
    "the case has no `context`"
)


@criterion("agentflow/hallucinations_v1")
class Hallucinations(AgentFlowJudged):
    """How well the agent's statements are supported by its sources, according to a judge.

    Its sources are the results of its tool calls, the user's messages, and the `context` in the
    `metadata` of the case.  The judge sees these and the whole conversation; it gives the share of
    supported claims in all that the agent said, and lists the others; the mean over the samples
    counts.  An agent that said nothing at all is an error, and so is one that did not report its
    tool calls, unless there is a `context`.
    """

    aliases: ClassVar[tuple[str, ...]] = ("hallucination",)
    prompts: ClassVar[tuple[str, ...]] = (PROMPT,)

    def unknown(self, case: EvalCase, trace: Trace) -> str:
        """Return a message if the agent said nothing, or its sources are unknown."""
        has_sources = is_captured(trace) or of_metadata(case, "context")
        return silent(trace) or ("" if has_sources else _NO_SOURCES)

    def documented(self, case: EvalCase, trace: Trace) -> Ask:
        """Ask for the share of supported claims."""
        data = shown(trace.invocations)
        return Ask(PROMPT, FORM, scored("hallucinations"), {**data, **_sources(case, trace)})

    def observed(self, case: EvalCase, trace: Trace) -> Ask:
        """Ask the same about the first message and the last response."""
        data = {**first_and_last(trace), **_sources(case, trace)}
        return Ask(PROMPT, FORM, as_observed(united="hallucinations"), data)


def _sources(case: EvalCase, trace: Trace) -> dict[str, Json]:
    """Return the agent's sources other than the user's messages."""
    calls = [tool_calls(each) for each in trace.invocations]
    context = of_metadata(case, "context") or ""
    return {"tool_calls": calls if any(calls) else [], "context": context}
