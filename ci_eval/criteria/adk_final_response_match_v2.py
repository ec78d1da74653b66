"""ADK's comparison of final responses by a judge."""

import asyncio
from collections.abc import Mapping

from ci_eval.criteria._adk_judged import AdkJudged, final_text
from ci_eval.criteria._invocation_turns import Turn, averaged, pairs
from ci_eval.criteria._judge_answers import labels_in, one
from ci_eval.criteria._majority_of_samples import Vote, Votes, judge_validity
from ci_eval.llm.model_answers import TEXT, json_object, one_of, strict, text_of
from ci_eval.plugins.points import Panel, criterion
from ci_eval.records.cases import EvalCase, Invocation, Json
from ci_eval.records.questions import UnreadableError
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace

PROMPT = "adk/final_response_match_v2"
SCHEMA: Mapping[str, Json] = strict(
    reasoning=TEXT, is_the_agent_response_valid=one_of("valid", "invalid")
)
_YES = frozenset({"valid", "true"})
_NO = frozenset({"invalid", "false", "almost", "partially_valid", "partially"})


@criterion("adk/final_response_match_v2")
class FinalResponseMatch(AdkJudged):
    """The share of final responses that, according to a judge, say the same as the expected one.

    For each invocation the judge sees the user's message, the response and the expected one,
    and answers `valid` or `invalid`; the majority of the samples counts, and a tie is
    `invalid`.  An invocation that expects no response is skipped, whereas ADK compares it with an
    empty text.  Unlike in ADK, an invocation without a verdict makes the score an error instead of
    being left out; an answer with conflicting verdicts is unreadable, whereas ADK takes the first;
    and JSON may have any spacing.
    """

    needs_reference = True
    reads_intermediate = True
    compares = "response"
    supports_scenario = False
    prompts = (PROMPT,)

    async def score(self, case: EvalCase, trace: Trace, panel: Panel) -> Score:
        """Return the share of the invocations that are valid."""
        judging = (self._judge(case, *pair, panel) for pair in pairs(case, trace))
        turns = await asyncio.gather(*judging)
        return averaged(self, turns)

    def measures(self, case: EvalCase, turn: Invocation) -> bool:
        """Return True if there is text to compare with."""
        del case
        return bool(final_text(turn, whole=self.include_intermediate_responses_in_final).strip())

    async def _judge(
        self, case: EvalCase, expected: Invocation, actual: Invocation, panel: Panel
    ) -> Turn:
        if not self.measures(case, expected):
            return Turn(None)
        whole = self.include_intermediate_responses_in_final
        question = panel.question(
            PROMPT,
            SCHEMA,
            user_prompt=expected.user,
            expected_response=final_text(expected, whole=whole),
            response=final_text(actual, whole=whole),
        )
        return await judge_validity(panel, question, read)


def read(text: str) -> Votes:
    """Parse the verdict in an answer: a label under the key that ADK's judges use.

    Raises:
        UnreadableError: there is no label, or an unknown one.

    """
    found = json_object(text) or {}
    label = _labelled(text, found, "is_the_agent_response_valid")
    turned = "" if label else _labelled(text, found, "is_the_agent_response_invalid")
    if turned:
        # Any other value of the "invalid" key means valid, as in ADK.
        return {"valid": Vote(turned not in ("true", "invalid"), text_of(found, "reasoning"))}
    if label not in _YES | _NO:
        said = one([label] if label else [], expected="`valid` or `invalid`")
        raise UnreadableError(f"the verdict {said[:40]!r} is neither `valid` nor `invalid`")
    return {"valid": Vote(label in _YES, text_of(found, "reasoning"))}


def _labelled(text: str, found: Mapping[str, Json], key: str) -> str:
    """Return the label under `key`; empty if the key is missing."""
    value = found.get(key)
    if isinstance(value, list) and value:
        value = one([str(each) for each in value], expected="one")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    labels = labels_in(text, key, r'[^"\]^\s]*')
    return one([each.rstrip(",}") for each in labels], expected="one") if labels else ""
