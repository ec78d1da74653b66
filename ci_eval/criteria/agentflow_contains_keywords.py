"""AgentFlow's keywords: which of them are in the last response."""

import re
import unicodedata
from collections.abc import Mapping
from typing import ClassVar, Self

from pydantic import model_validator

from ci_eval.criteria._agentflow import AgentFlowCriterion
from ci_eval.plugins.points import criterion
from ci_eval.records.model import EvalCase, Json, Status
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace


@criterion("agentflow/contains_keywords")
class ContainsKeywords(AgentFlowCriterion):
    """The share of the keywords that are in the last response.

    Capitals do not count, and neither do variants of a character that Unicode holds compatible,
    such as full-width letters.  Observed semantics: only capitals do not count; without any
    keyword every case is skipped.
    """

    example: ClassVar[Mapping[str, Json]] = {"keywords": ["refund", "7 days"]}

    keywords: tuple[str, ...]
    """What the response should contain. One that is there twice counts twice."""
    whole_word: bool = False
    """Find keywords as words only: `art` is not in `party`. Not for scripts without spaces."""

    @model_validator(mode="after")
    def _some_to_look_for(self) -> Self:
        if self.semantics == "documented":
            if not self.keywords:
                raise ValueError("needs keywords, since without any every response would pass")
            if not all(_folded(word).strip() for word in self.keywords):
                raise ValueError("an empty keyword is in every response")
        elif self.whole_word:
            raise ValueError("the published package knows no 'whole_word'")
        return self

    def lacks(self, case: EvalCase) -> str:
        """Say that there is nothing to look for."""
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
    """Return `text` without differences of capitals and of compatible characters."""
    # Folding can undo the normalisation, so that it is done once more.
    folded = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", folded)


def _bounded(word: str) -> str:
    """Return a pattern that finds `word` where no letter or digit continues it."""
    before = r"(?<!\w)" if re.match(r"\w", word) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", word) else ""
    return before + re.escape(word) + after
