"""AgentFlow's judged criteria: what they share.

Their names, options and defaults are those of AgentFlow's documentation; the other names that
its configurations use are the aliases.  `tests/vectors` holds the observed semantics to the
package.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple

from pydantic import Field

from ci_eval.criteria._agentflow_answers import UNREADABLE
from ci_eval.criteria._means import Sample, mean_of
from ci_eval.criteria._responses import said
from ci_eval.plugins.points import Asked, JudgedCriterion, Panel
from ci_eval.records.bounds import Value
from ci_eval.records.model import EvalCase, Invocation, Json, Status
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace

NOTHING_SAID = "the agent gave no response, so there is nothing to judge"


class Ask(NamedTuple):
    """What is asked of a case, and how the answer is read."""

    prompt: str
    """The file of `templates/judge/`, without its suffix."""
    form: Mapping[str, Json]
    """The JSON schema of the answer."""
    read: Callable[[str], Sample]
    data: Mapping[str, Json]


class AgentFlowJudged(JudgedCriterion):
    """What AgentFlow's judged criteria have in common: the mean over the samples counts."""

    default_samples: ClassVar[int] = 3

    threshold: Value | None = 0.8
    """The value from which on a case passes."""
    judge_model: str | None = None
    """The model's name; left out, the one that the configuration names."""
    num_samples: int | None = Field(default=None, ge=1)
    """How often the same is asked. 3 in AgentFlow."""
    api_style: Literal["responses", "chat"] = "responses"
    """Known to AgentFlow as the interface of OpenAI's that is used. Here `judge: {api: …}` says
    so for all criteria; this changes nothing."""
    semantics: Literal["documented", "observed"] = "documented"
    """`observed`: what the published package 10xscale-agentflow 0.10.1 computes instead. It
    shows the judge the first message of the user and the last response; it passes an agent that
    gave no response, with 1; an answer that is no JSON scores 0.5, and a score may lie
    outside of 0 and 1. Other than there, no answer at all is an error."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The interval; none as observed, where any number that a judge gives is taken."""
        return None if self.semantics == "observed" else self.interval

    def asked(self) -> Asked:
        """Return what `judge_model` and `num_samples` say."""
        return Asked(self.judge_model, self.num_samples)

    def options(self) -> dict[str, Json]:
        """Return what decides the value; who judges is told elsewhere."""
        elsewhere = {"judge_model", "num_samples", "api_style"}
        return {key: value for key, value in super().options().items() if key not in elsewhere}

    def lacks(self, case: EvalCase) -> str:
        """Say that there is nothing to judge, or to judge by."""
        return super().lacks(case) or self.needs(case)

    def needs(self, case: EvalCase) -> str:
        """Say what `case` does not have that the score needs."""
        del case
        return ""

    def unknown(self, case: EvalCase, trace: Trace) -> str:
        """Say what was not observed that the documented score needs."""
        del case, trace
        return ""

    @abstractmethod
    def documented(self, case: EvalCase, trace: Trace) -> Ask:
        """Return what is asked as the documentation promises."""

    @abstractmethod
    def observed(self, case: EvalCase, trace: Trace) -> Ask:
        """Return what is asked as the package computes."""

    def passed_over(self, case: EvalCase, trace: Trace) -> str:
        """Say why the package scores 1 without asking anybody; nothing where it asks."""
        del case
        return "" if trace.invocations[-1].response else "there is no response"

    async def score(self, case: EvalCase, trace: Trace, panel: Panel) -> Score:
        """Return the mean of what the judges give the whole case."""
        if not trace.invocations:
            return self.unscored(Status.ERROR, "no response was observed")
        if self.semantics == "observed":
            skipped = self.passed_over(case, trace)
            if skipped:
                return self.scored(1.0, reason=f"{skipped}, which the package passes")
            return await self._judged(self.observed(case, trace), panel, unread=UNREADABLE)
        unknown = self.unknown(case, trace)
        if unknown:
            return self.unscored(Status.ERROR, unknown)
        return await self._judged(self.documented(case, trace), panel)

    async def _judged(self, ask: Ask, panel: Panel, unread: Sample | None = None) -> Score:
        """Return the score, with what the judges said, whether it passed or not."""
        question = panel.question(ask.prompt, ask.form, **ask.data)
        mean = await mean_of(panel, question, ask.read, passes=self._passes, unread=unread)
        if mean.value is None:
            score = self.unscored(Status.ERROR, f"no verdict was reached: {mean.reason}")
        else:
            score = self.scored(mean.value)
        return score.model_copy(update={"evidence": mean.evidence})

    def _passes(self, value: float) -> bool:
        return self.status_of(value) is Status.PASSED


def shown(invocations: Sequence[Invocation]) -> dict[str, Json]:
    """Return the last of these invocations, and the conversation before it."""
    *before, last = invocations
    return {
        "conversation": [{"user": each.user, "agent": said(each)} for each in before],
        "question": last.user,
        "response": said(last),
    }


def first_and_last(trace: Trace) -> dict[str, Json]:
    """Return what the package shows of a conversation."""
    first, last = trace.invocations[0], trace.invocations[-1]
    return {"conversation": [], "question": first.user, "response": last.response}


def silent(trace: Trace) -> str:
    """Say that the agent said nothing in the whole conversation, where that is so."""
    return "" if any(said(each) for each in trace.invocations) else NOTHING_SAID
