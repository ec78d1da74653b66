"""AgentFlow's goals of a simulated user."""

from fractions import Fraction
from functools import partial

from ci_eval.criteria._agentflow_judged import AgentFlowJudged, Ask, read_observed
from ci_eval.criteria._judge_scores import each_in, object_in, rationale_in, short
from ci_eval.criteria._mean_of_samples import Sample
from ci_eval.criteria._response_text import said
from ci_eval.criteria._shown_to_judges import tool_calls
from ci_eval.llm.model_answers import INTEGER, NUMBER, TEXT, many, strict
from ci_eval.plugins.points import Asked, criterion
from ci_eval.records.cases import EvalCase, Invocation, Json
from ci_eval.records.questions import UnreadableError
from ci_eval.records.scenario_settings import goals_of, stated_goals
from ci_eval.records.trials import Trace

PROMPT = "agentflow/simulation_goals"
OVERALL = "agentflow/simulation_goals_overall"
_ENTRY = strict(number=INTEGER, reasoning=TEXT, reached={"type": "boolean"})
FORM = strict(goals=many(_ENTRY))
OVERALL_FORM = strict(reasoning=TEXT, score=NUMBER)


@criterion("agentflow/simulation_goals")
class SimulationGoals(AgentFlowJudged):
    """The share of the user's goals that the conversation reached, according to a judge.

    The goals are the texts under `goals` in the `metadata` of the case, or else the
    `conversation_plan` of its scenario as the only goal.  A case without either is skipped.  The
    judge sees the whole conversation with the tool calls, and decides for each goal whether it was
    reached; the mean of the samples' shares counts.  Observed semantics: the judge is called once
    and gives the share itself, and a `conversation_plan` is not a goal.
    """

    aliases = ("simulation_goals_match", "conversation_goals")
    prompts = (PROMPT, OVERALL)

    def asked(self) -> Asked:
        """Return the model and number of samples; the package asks only once."""
        samples = 1 if self.semantics == "observed" else self.num_samples
        return Asked(self.judge_model, samples)

    def lacks(self, case: EvalCase) -> str:
        """Return a message if the case has no goals; empty otherwise."""
        goals = stated_goals(case) if self.semantics == "observed" else goals_of(case)
        missing = "" if goals else "has no texts under `goals` in its `metadata`, and no plan"
        return super().lacks(case) or missing

    def documented(self, case: EvalCase, trace: Trace) -> Ask:
        """Ask for each goal whether it was reached."""
        goals = goals_of(case)
        numbered: Json = [{"number": n, "goal": goal} for n, goal in enumerate(goals, 1)]
        data = {"conversation": _whole(trace), "goals": numbered}
        return Ask(PROMPT, FORM, partial(read, goals=goals), data)

    def observed(self, case: EvalCase, trace: Trace) -> Ask:
        """Ask for the share."""
        data = {"conversation": _whole(trace), "goals": list(stated_goals(case))}
        return Ask(OVERALL, OVERALL_FORM, read_observed, data)

    def passed_over(self, trace: Trace) -> str:
        """Return an empty string: the package always asks."""
        del trace
        return ""


def read(text: str, *, goals: tuple[str, ...]) -> Sample:
    """Return the share of the goals that were reached according to an answer.

    Raises:
        UnreadableError: the answer does not cover each goal.

    """
    numbers = range(1, len(goals) + 1)
    found = each_in(object_in(text), "goals", "number", numbers)
    for number, each in found.items():
        if not isinstance(each.get("reached"), bool):
            raise UnreadableError(f"it holds neither true nor false under 'reached' for {number}")
    verdicts: Json = [
        {"goal": short(goal), "reached": each["reached"], "rationale": rationale_in(each)}
        for goal, each in zip(goals, found.values(), strict=True)
    ]
    reached = sum(each["reached"] for each in verdicts)
    return Sample(float(Fraction(reached, len(goals))), "", {"goals": verdicts})


def _whole(trace: Trace) -> Json:
    """Return the whole conversation, with the agent's tool calls."""
    return [_turn(invocation) for invocation in trace.invocations]


def _turn(invocation: Invocation) -> Json:
    calls = tool_calls(invocation)
    done = {"tool_calls": calls} if calls else {}
    return {"user": invocation.user, **done, "agent": said(invocation)}
