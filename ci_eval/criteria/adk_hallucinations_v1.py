"""ADK's hallucination check: the share of sentences that a judge finds supported."""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from ci_eval.criteria import _judged_sentences
from ci_eval.criteria._adk_judged import AdkJudged
from ci_eval.criteria._invocation_turns import Turn, averaged, mean
from ci_eval.criteria._jury import names_of, note_agreement
from ci_eval.criteria._shown_to_judges import Moment, declared_tools, instructions, moments, steps
from ci_eval.llm.model_answers import ask_once
from ci_eval.plugins.points import Asked, Panel, criterion
from ci_eval.records.cases import EvalCase, Invocation, Json
from ci_eval.records.questions import Seat
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace

SEGMENT = "adk/hallucinations_v1.segment"
VALIDATE = "adk/hallucinations_v1.validate"


class _Said(NamedTuple):
    """A text of an agent, and the messages before it."""

    text: str
    before: tuple[Moment, ...]


@criterion("adk/hallucinations_v1")
class Hallucinations(AdkJudged):
    """The share of a response's sentences that instructions, tools and their results support.

    A judge first splits the final response into sentences, then labels each of them, given the
    context: the instructions and the tools of the agents, the user's message, and the texts, calls
    and results of this invocation; as in ADK, earlier invocations are not shown.  The value of a
    text is the share of sentences that are `supported` or `not_applicable`; the value of an
    invocation is the mean over its texts, and that of a case the mean over its invocations.  A text
    without letters or digits is not judged; an invocation with no other text is skipped.

    Each step has one sample: `num_samples` above 1 has no effect, as in ADK.  In a jury, each
    judge splits and labels by itself, and the mean of their values counts.

    Differences from ADK: the sentences must be those of the text, in order, and cover nearly all of
    it.  If a sentence has no label or an unknown one, the judge is asked again; if that fails, the
    score is an error instead of leaving the sentence out, and so it is if a text has no value.
    Trajectories recorded as lists (`tool_uses`, …) count as context, calls before texts, whereas
    ADK ignores them.  An agent's own texts do not support its later ones.
    """

    prompts = (SEGMENT, VALIDATE)
    default_samples = 1
    steps = 2

    evaluate_intermediate_nl_responses: bool = False
    """Also judge the texts before the final response, each by itself and with only the context that
    precedes it."""

    def asked(self) -> Asked:
        """Return the options of `judge_model_options`, always with one sample."""
        return super().asked()._replace(samples=1)

    def remarks(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield a remark if several samples are requested, which has no effect."""
        yield from super().remarks()
        if (self.judge_model_options.num_samples or 1) > 1:
            why = "`num_samples` has no effect here: each step has one sample, as in ADK"
            yield ("judge_model_options", "num_samples"), why

    async def score(self, case: EvalCase, trace: Trace, panel: Panel) -> Score:
        """Return the mean over the invocations that contain text."""
        del case
        turns = await asyncio.gather(*(self._judge(each, panel) for each in trace.invocations))
        return averaged(self, turns)

    async def _judge(self, invocation: Invocation, panel: Panel) -> Turn:
        said = [each for each in self._texts(invocation) if _judged_sentences.letters(each.text)]
        found = await asyncio.gather(*(self._judge_text(each, invocation, panel) for each in said))
        if not found:
            return Turn(None)
        reason = next((each.reason for each in found if each.value is None), "")
        value = None if reason else mean(found)
        return Turn(value, {"texts": [each.evidence for each in found]}, reason)

    def _texts(self, invocation: Invocation) -> Iterator[_Said]:
        """Yield the texts to judge."""
        happened = moments(invocation)
        if self.evaluate_intermediate_nl_responses:
            for number, moment in enumerate(happened):
                looked_up = Moment(moment.by, grounding=moment.grounding)
                for text in moment.texts:
                    yield _Said(text, (*happened[:number], looked_up))
        yield _Said(invocation.response, tuple(happened))

    async def _judge_text(self, said: _Said, invocation: Invocation, panel: Panel) -> Turn:
        """Return the score of one text: the mean of the judges' shares."""
        asking = (_share(seat, said, invocation, panel) for seat in panel.judges)
        shares = await asyncio.gather(*asking)
        passed = [None if each.value is None else self.status_of(each.value) for each in shares]
        note_agreement(panel, passed)
        evidence = _evidence(panel, shares)
        reason = next((each.reason for each in shares if each.value is None), "")
        value = None if reason else mean(shares)
        return Turn(value, {"value": value, **evidence}, reason)


async def _share(seat: Seat, said: _Said, invocation: Invocation, panel: Panel) -> Turn:
    """Return the share of a text's sentences that one judge finds supported."""
    question = panel.question(SEGMENT, _judged_sentences.SEGMENTS, text=said.text)
    cut = await ask_once(seat, question, partial(_judged_sentences.read_sentences, text=said.text))
    if cut.value is None:
        return Turn(None, {"sentences": []}, f"{seat.name}: {cut.reason}")
    question = panel.question(
        VALIDATE,
        _judged_sentences.VERDICTS,
        instructions=instructions([invocation]),
        tools=declared_tools([invocation]),
        user_prompt=invocation.user,
        steps=steps(said.before),
        sentences=[{"number": at, "sentence": each} for at, each in enumerate(cut.value, 1)],
    )
    read = partial(_judged_sentences.read_findings, sentences=cut.value)
    labelled = await ask_once(seat, question, read)
    if labelled.value is None:
        return Turn(None, {"sentences": []}, f"{seat.name}: {labelled.reason}")
    good = sum(each.label in _judged_sentences.POSITIVE for each in labelled.value)
    found = zip(cut.value, labelled.value, strict=True)
    sentences: list[Json] = [{"sentence": text, **each._asdict()} for text, each in found]
    return Turn(good / len(sentences), {"sentences": sentences})


def _evidence(panel: Panel, shares: list[Turn]) -> dict[str, Json]:
    if len(shares) == 1:
        return shares[0].evidence or {}
    found = zip(names_of(panel), shares, strict=True)
    return {"jury": {name: {"value": each.value, **(each.evidence or {})} for name, each in found}}
