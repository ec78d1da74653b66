"""ADK's judged check of the simulated user."""

import asyncio
from collections.abc import Mapping, Sequence

from ci_eval.criteria._adk_judged import AdkJudged
from ci_eval.criteria._invocation_turns import Turn, averaged
from ci_eval.criteria._judge_answers import label_in, object_with
from ci_eval.criteria._majority_of_samples import Vote, Votes, judge_validity
from ci_eval.formats.personas import described
from ci_eval.llm.model_answers import TEXT, strict, text_of
from ci_eval.plugins.points import Panel, criterion
from ci_eval.records.cases import ConversationScenario, EvalCase, Invocation, Json
from ci_eval.records.questions import UnreadableError
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace

PROMPT = "adk/per_turn_user_simulator_quality_v1"
SCHEMA: Mapping[str, Json] = strict(reasoning=TEXT, is_valid={"type": "boolean"})
_YES = frozenset({"valid", "true"})
_NO = frozenset({"invalid", "false", "almost", "partially_valid", "partially valid", "partially"})


@criterion("adk/per_turn_user_simulator_quality_v1")
class SimulatorQuality(AdkJudged):
    """The share of a simulated user's messages that follow the conversation plan.

    The first message is valid if it is the scenario's `starting_prompt`, apart from surrounding
    white space; no judge is called.  For each later message, a judge sees the plan, the persona,
    the conversation so far and the message; the majority of the samples counts, and a tie is
    invalid.  Finally the judge decides whether the conversation may end where it did; if not, the
    last message counts as invalid, too.  The value is the share of valid messages.

    Unlike in ADK, a message without a verdict makes the score an error instead of counting as
    invalid, and so does an end without a verdict, unless the last message is invalid anyway; an
    answer with conflicting verdicts is unreadable, whereas ADK takes the first; and the threshold
    does not affect the value.
    """

    prompts = (PROMPT,)

    stop_signal: str = "</finished>"
    """Text with which the simulated user ends the conversation."""

    def lacks(self, case: EvalCase) -> str:
        """Return a message if `case` has no scenario; empty otherwise."""
        needed = "needs a scenario, which a simulated user plays"
        return "" if case.conversation_scenario else needed

    async def score(self, case: EvalCase, trace: Trace, panel: Panel) -> Score:
        """Return the share of the messages that are valid."""
        scenario, turns = case.conversation_scenario, trace.invocations
        if scenario is None or not turns:
            return averaged(self, ())
        messages = [turn.user for turn in turns[1:]] + [self.stop_signal]
        judging = (
            self._judge(scenario, turns[:number], message, panel)
            for number, message in enumerate(messages, 1)
        )
        *later, end = await asyncio.gather(*judging)
        judged = [_first(scenario, turns[0]), *later]
        judged[-1] = _ended(judged[-1], end)
        return averaged(self, judged)

    async def _judge(
        self,
        scenario: ConversationScenario,
        before: Sequence[Invocation],
        message: str,
        panel: Panel,
    ) -> Turn:
        """Judge whether `message` is valid after the turns `before`."""
        question = panel.question(
            PROMPT,
            SCHEMA,
            plan=scenario.conversation_plan,
            persona=described(scenario.user_persona, self.stop_signal),
            stop_signal=self.stop_signal,
            history=[{"user": turn.user, "agent": turn.response} for turn in before],
            message=message,
        )
        return await judge_validity(panel, question, read)


def _first(scenario: ConversationScenario, turn: Invocation) -> Turn:
    """Compare the first message with the scenario's starting prompt."""
    same = turn.user.strip() == scenario.starting_prompt.strip()
    evidence = None if same else {"expected": scenario.starting_prompt, "actual": turn.user}
    return Turn(float(same), evidence)


def _ended(last: Turn, end: Turn) -> Turn:
    """Combine the verdict on the last message with that on the end."""
    evidence = {**(last.evidence or {}), "end": {"valid": end.value, **(end.evidence or {})}}
    value, reason = last.value, last.reason
    if last.value != 0 and end.value != 1:
        value, reason = end.value, end.reason
    return Turn(value, evidence, reason)


def read(text: str) -> Votes:
    """Parse the verdict in an answer, under the key that ADK's judges use.

    Raises:
        UnreadableError: there is no verdict, or an unknown one.

    """
    found = object_with(text, "is_valid")
    label = label_in(found, "is_valid").lower()
    if label in _YES | _NO:
        return {"valid": Vote(label in _YES, text_of(found, "reasoning"))}
    if not label:
        raise UnreadableError("it holds no verdict; expected `is_valid`, true or false")
    raise UnreadableError("its verdict is neither `true` nor `false`", label)
