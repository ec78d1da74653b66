"""AgentFlow's measures of the last response without a judge: its keywords, and its words."""

import re
import unicodedata
from collections.abc import Mapping
from typing import ClassVar, Self

from pydantic import model_validator

from ci_eval.criteria._agentflow_criterion import AgentFlowCriterion, last_expected, last_given
from ci_eval.criteria._rouge import rouge1_f, words
from ci_eval.plugins.points import criterion
from ci_eval.records.cases import EvalCase, Json, Status
from ci_eval.records.results import Score
from ci_eval.records.stated_expectations import UNSTATED
from ci_eval.records.trials import Trace


@criterion("agentflow/contains_keywords")
class ContainsKeywords(AgentFlowCriterion):
    """The share of the keywords that the last response contains.

    Case is ignored, and so are differences between characters that are compatible in Unicode, such
    as full-width letters.  Observed semantics: only case is ignored; without keywords, every case
    is skipped.
    """

    example: ClassVar[Mapping[str, Json]] = {"keywords": ["refund", "7 days"]}

    keywords: tuple[str, ...]
    """Texts that the response should contain. Duplicates count twice."""
    whole_word: bool = False
    """Match whole words only: `art` does not match `party`. Not for scripts without spaces."""

    @model_validator(mode="after")
    def _valid_keywords(self) -> Self:
        if self.semantics == "documented":
            if not self.keywords:
                raise ValueError("needs keywords; without any, every response would pass")
            if not all(_folded(word).strip() for word in self.keywords):
                raise ValueError("an empty keyword matches every response")
        elif self.whole_word:
            raise ValueError("the published package has no option 'whole_word'")
        return self

    def lacks(self, case: EvalCase) -> str:
        """Return a message if there are no keywords; empty otherwise."""
        del case
        return "" if self.keywords else "no keywords are given"

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Look for the keywords in the last response."""
        del case
        if not trace.invocations:
            return self.unscored(Status.ERROR, "no response was observed")
        response = trace.invocations[-1].response
        fold = str.lower if self.semantics == "observed" else _folded
        text = fold(response)
        missing = [word for word in self.keywords if not self._is_in(text, fold(word))]
        found = len(self.keywords) - len(missing)
        value = found / len(self.keywords) if self.keywords else 1.0
        return self.scored(value, evidence={"missing_keywords": missing, "response": response})

    def _is_in(self, text: str, word: str) -> bool:
        return re.search(_bounded(word), text) is not None if self.whole_word else word in text


def _folded(text: str) -> str:
    """Return `text` without differences of case and of compatible characters."""
    # Case folding can undo the normalisation, so it is repeated.
    folded = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", folded)


def _bounded(word: str) -> str:
    """Return a pattern that finds `word` as a whole word."""
    before = r"(?<!\w)" if re.match(r"\w", word) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", word) else ""
    return before + re.escape(word) + after


@criterion("agentflow/rouge_match")
class RougeMatch(AgentFlowCriterion):
    """ROUGE-1 F of the last response: the words it shares with the last expected one.

    Words count as often as they occur and are split as for `adk/response_match_score`, but not
    stemmed.  A case whose expected responses have no words is skipped.  Observed semantics: words
    are sets, split at punctuation and white space, and two texts without words score 1.
    """

    needs_reference = True
    compares = "response"
    supports_scenario = False

    def lacks(self, case: EvalCase) -> str:
        """Return a message if no words are expected; empty otherwise."""
        if unstated := super().lacks(case):
            return unstated
        if self.semantics == "observed":
            return "" if last_given(case) else UNSTATED["response"]
        there = words(last_expected(case), rules="agentflow")
        return "" if there else "expects a response without words"

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Score the last response."""
        if not trace.invocations:
            return self.unscored(Status.ERROR, "no response was observed")
        actual = trace.invocations[-1].response
        if self.semantics == "observed":
            expected = last_given(case)
            value = _observed(actual, expected)
        else:
            expected = last_expected(case)
            value = rouge1_f(actual, expected, rules="agentflow")
        return self.scored(value, evidence={"expected": expected, "actual": actual})


def _observed(actual: str, expected: str) -> float:
    done, wanted = _observed_words(actual), _observed_words(expected)
    if not done or not wanted:
        return float(not done and not wanted)
    precision, recall = len(done & wanted) / len(done), len(done & wanted) / len(wanted)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _observed_words(text: str) -> set[str]:
    return set(re.sub(r"[^\w\s]", " ", text.lower()).split())
