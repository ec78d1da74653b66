"""Shared parts of AgentFlow's judged criteria.

Names, options and defaults are those of AgentFlow's documentation; the other names used by its
configurations are aliases.  `tests/vectors` compares the observed semantics with the package.
"""

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ci_eval.criteria._judge_scores import rationale_in, texts_in
from ci_eval.criteria._mean_of_samples import Sample, mean_of
from ci_eval.criteria._response_text import said
from ci_eval.plugins.points import Asked, JudgedCriterion, Panel
from ci_eval.records.bounds import Samples, Value
from ci_eval.records.cases import EvalCase, Invocation, Json, Status
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace

UNREADABLE = Sample(0.5, "the answer is not JSON, and the package scores it 0.5")


class Ask(NamedTuple):
    """A question about a case, and the parser of its answer."""

    prompt: str
    """File in `templates/judge/`, without its suffix."""
    form: Mapping[str, Json]
    """JSON schema of the answer."""
    read: Callable[[str], Sample]
    data: Mapping[str, Json]


class AgentFlowJudged(JudgedCriterion):
    """Base class of AgentFlow's judged criteria: the mean of the samples counts."""

    default_samples = 3

    threshold: Value | None = 0.8
    """Cases with at least this value pass."""
    judge_model: str | None = None
    """Model name; defaults to the one in the configuration."""
    num_samples: Samples | None = None
    """Number of samples per question. 3 in AgentFlow."""
    api_style: Literal["responses", "chat"] = "responses"
    """AgentFlow's choice of OpenAI API. Has no effect: `judge: {api: …}` sets it for all
    criteria."""
    semantics: Literal["documented", "observed"] = "documented"
    """`observed` does what the published package 10xscale-agentflow 0.10.1 does instead. The judge
    sees the first user message and the last response; an agent without a response passes with 1;
    an answer that is not JSON scores 0.5, and scores may be below 0 or above 1. Unlike in the
    package, a missing answer is an error."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The range of values; unbounded in observed semantics, which accept any number."""
        return None if self.semantics == "observed" else self.interval

    def asked(self) -> Asked:
        """Return the model and samples of `judge_model` and `num_samples`."""
        return Asked(self.judge_model, self.num_samples)

    def options(self) -> dict[str, Json]:
        """Return the options that affect the value; the judge is recorded separately."""
        elsewhere = {"judge_model", "num_samples", "api_style"}
        return {key: value for key, value in super().options().items() if key not in elsewhere}

    def unknown(self, case: EvalCase, trace: Trace) -> str:
        """Return which observation the documented score needs but is missing; empty if none is."""
        del case, trace
        return ""

    @abstractmethod
    def documented(self, case: EvalCase, trace: Trace) -> Ask:
        """Return the question according to the documentation."""

    @abstractmethod
    def observed(self, case: EvalCase, trace: Trace) -> Ask:
        """Return the question that the package asks."""

    def passed_over(self, trace: Trace) -> str:
        """Return why the package scores 1 without a call; empty if it calls the judge."""
        return "" if trace.invocations[-1].response else "there is no response"

    async def score(self, case: EvalCase, trace: Trace, panel: Panel) -> Score:
        """Return the mean of the judges' scores for the whole case."""
        if not trace.invocations:
            return self.unscored(Status.ERROR, "no response was observed")
        if self.semantics == "observed":
            skipped = self.passed_over(trace)
            if skipped:
                return self.scored(1.0, reason=f"{skipped}, so the package passes the case")
            return await self._judged(self.observed(case, trace), panel, unread=UNREADABLE)
        unknown = self.unknown(case, trace)
        if unknown:
            return self.unscored(Status.ERROR, unknown)
        return await self._judged(self.documented(case, trace), panel)

    async def _judged(self, ask: Ask, panel: Panel, unread: Sample | None = None) -> Score:
        """Return the score, with the judges' answers as evidence."""
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
    """Return the last of these invocations and the conversation before it."""
    *before, last = invocations
    return {
        "conversation": [{"user": each.user, "agent": said(each)} for each in before],
        "question": last.user,
        "response": said(last),
    }


def first_and_last(trace: Trace) -> dict[str, Json]:
    """Return the part of a conversation that the package shows."""
    first, last = trace.invocations[0], trace.invocations[-1]
    return {"conversation": [], "question": first.user, "response": last.response}


# --- Answers, parsed like the package ----------------------------------------------------------


def read_observed(text: str, *, united: str = "", categories: Sequence[str] = ()) -> Sample:
    """Parse an answer as leniently as the package.

    An answer that is not JSON scores 0.5, a missing score is 0, and scores outside of [0, 1] are
    accepted.  JSON that is not an object, or whose score is not a number, does not count.

    `united` names a list beside the score; the package merges these lists into a set, so there is
    no score if that is impossible.  If one of an answer's `categories` is not a number, its list is
    ignored.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return UNREADABLE
    if not isinstance(found, dict):
        return Sample(None, "the answer is not a JSON object")
    score = _float(found.get("score", 0.0))
    if score is None:
        return Sample(None, "its score is not a number")
    details = {united: texts_in(found, united)} if united else {}
    is_left_out = not united or not _have_numbers(found, categories)
    fatal = "" if is_left_out else _not_united(found, united)
    return Sample(score, rationale_in(found), details, fatal)


def _float(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _have_numbers(found: Mapping[str, Json], categories: Sequence[str]) -> bool:
    given = found.get("categories", {})
    if not isinstance(given, dict):
        return not categories
    return all(_float(given.get(name, 1.0)) is not None for name in categories)


def _not_united(found: Mapping[str, Json], key: str) -> str:
    """Return why the list under `key` cannot become a set; empty if it can."""
    value = found.get(key, [])
    if isinstance(value, str | dict):
        return ""
    if isinstance(value, list) and not any(isinstance(each, list | dict) for each in value):
        return ""
    return f"the values under {key!r} cannot be merged into a set, as the package does"
