"""ADK's comparison of final responses by a judge."""

import asyncio
from collections.abc import Mapping

from ci_eval.criteria._adk_judged import AdkJudged, final_text
from ci_eval.criteria._invocation_turns import Turn, averaged, pairs
from ci_eval.criteria._judge_answers import label_in, object_with, one
from ci_eval.criteria._majority_of_samples import Vote, Votes, judge_validity
from ci_eval.llm.model_answers import TEXT, one_of, strict, text_of
from ci_eval.plugins.points import Panel, criterion
from ci_eval.records.cases import EvalCase, Invocation, Json
from ci_eval.records.questions import UnreadableError
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace

PROMPT = "adk/final_response_match_v2"
SCHEMA: Mapping[str, Json] = strict(
    reasoning=TEXT, is_the_agent_response_valid=one_of("valid", "invalid")
)
_PARTLY = ("almost", "partially_valid", "partially")
_MEANINGS: Mapping[str, Mapping[str, str]] = {
    "is_the_agent_response_valid": {
        **dict.fromkeys(("valid", "true"), "valid"),
        **dict.fromkeys(("invalid", "false", *_PARTLY), "invalid"),
    },
    "is_the_agent_response_invalid": {
        **dict.fromkeys(("valid", "false", "no"), "valid"),
        **dict.fromkeys(("invalid", "true", "yes", *_PARTLY), "invalid"),
    },
}
"""The meanings of the labels of ADK's judges, by their keys."""


@criterion("adk/final_response_match_v2")
class FinalResponseMatch(AdkJudged):
    """The share of final responses that, according to a judge, say the same as the expected one.

    For each invocation the judge sees the user's message, the response and the expected one,
    and answers `valid` or `invalid`; the majority of the samples counts, and a tie is
    `invalid`.  An invocation that expects no response is skipped, whereas ADK compares it with an
    empty text.  Unlike in ADK, an invocation without a verdict makes the score an error instead of
    being left out.  The answer must be a JSON object with one verdict: ADK takes the first label
    that it finds, even one that the judge only quotes, and reads any word under
    `is_the_agent_response_invalid`, except `invalid` and `true`, as valid.
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
    """Parse the verdict in an answer: a label under one of the keys that ADK's judges use.

    Raises:
        UnreadableError: there is no label, an unknown one, or conflicting ones.

    """
    found = object_with(text, "|".join(_MEANINGS))
    labels = {key: label for key in _MEANINGS if (label := label_in(found, key))}
    meanings = [_MEANINGS[key].get(label, label) for key, label in labels.items()]
    meaning = one(meanings, expected="`valid` or `invalid`")
    if meaning not in ("valid", "invalid"):
        raise UnreadableError("its verdict is neither `valid` nor `invalid`", meaning)
    return {"valid": Vote(meaning == "valid", text_of(found, "reasoning"))}
