"""ADK's share of sentences that are supported, in a judge's eyes."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import ClassVar, NamedTuple, TypeVar

from ci_eval.criteria._adk_judged import AdkJudged
from ci_eval.criteria._judged_turns import JudgedTurn, mean, summed_up
from ci_eval.criteria._jury import names_of, note_agreement
from ci_eval.criteria._sentences import (
    POSITIVE,
    SEGMENTS,
    VERDICTS,
    letters,
    read_findings,
    read_sentences,
)
from ci_eval.criteria._shown import Moment, declared_tools, instructions, moments, steps
from ci_eval.plugins.points import Asked, Panel, criterion
from ci_eval.records.model import EvalCase, Invocation, Json
from ci_eval.records.questions import Question, Reading, Seat
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace

T = TypeVar("T")

SEGMENT = "adk/hallucinations_v1.segment"
VALIDATE = "adk/hallucinations_v1.validate"


class _Said(NamedTuple):
    """A text of an agent, and what happened before it."""

    text: str
    before: tuple[Moment, ...]


class _Share(NamedTuple):
    """Which share of the sentences of a text one judge finds supported."""

    value: float | None
    reason: str = ""
    sentences: tuple[dict[str, Json], ...] = ()


@criterion("adk/hallucinations_v1")
class Hallucinations(AdkJudged):
    """The share of an answer's sentences that instructions, tools and their results support.

    A judge first cuts the final response into sentences, then labels each of them, shown what
    came before: the instructions and the tools of the agents, the user's message, and what was
    said, called and returned in this invocation; as in ADK, earlier invocations are not shown.
    The value of a text is the share of sentences that are `supported` or `not_applicable`; an
    invocation has the mean over its texts, a case the mean over its invocations.  A text without
    a letter or a digit claims nothing and is not judged; an invocation without another is
    skipped.

    Each step is asked once: a `num_samples` above 1 changes nothing, as in ADK.  Of a jury, each
    judge cuts and labels by itself, and the mean of their values counts.

    Other than in ADK, the sentences must be those of the text, in its order, and nearly all of
    it; a sentence without a label, or with an unknown one, is asked for again and then makes the
    score an error instead of being left out, and so does a text that got no value; trajectories
    that were kept as lists (`tool_uses`, …) count as context, calls before texts, where ADK
    leaves them out; and what an agent said itself supports nothing that it says later.
    """

    prompts: ClassVar[tuple[str, ...]] = (SEGMENT, VALIDATE)
    default_samples: ClassVar[int] = 1
    steps: ClassVar[int] = 2

    evaluate_intermediate_nl_responses: bool = False
    """Judge what was said before the final response, too, each text by itself and with only what
    came before it."""

    def asked(self) -> Asked:
        """Return what `judge_model_options` say, with one sample whatever they say of that."""
        return super().asked()._replace(samples=1)

    def remarks(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield that samples change nothing, where several are asked for."""
        yield from super().remarks()
        if (self.judge_model_options.num_samples or 1) > 1:
            why = "`num_samples` changes nothing here: each step is asked once, as in ADK"
            yield ("judge_model_options", "num_samples"), why

    async def score(self, case: EvalCase, trace: Trace, panel: Panel) -> Score:
        """Return the mean over the invocations that say something."""
        del case
        turns = await asyncio.gather(*(self._judge(each, panel) for each in trace.invocations))
        return summed_up(self, turns, mean(turns))

    async def _judge(self, invocation: Invocation, panel: Panel) -> JudgedTurn:
        said = [each for each in self._texts(invocation) if letters(each.text)]
        found = await asyncio.gather(*(self._judge_text(each, invocation, panel) for each in said))
        if not found:
            return JudgedTurn(None)
        reason = next((each.reason for each in found if each.value is None), "")
        value = None if reason else mean(found)
        return JudgedTurn(value, reason, {"texts": [each.evidence for each in found]})

    def _texts(self, invocation: Invocation) -> Iterator[_Said]:
        """Yield the texts that are judged."""
        happened = moments(invocation)
        if self.evaluate_intermediate_nl_responses:
            for number, moment in enumerate(happened):
                looked_up = Moment(moment.by, grounding=moment.grounding)
                for text in moment.texts:
                    yield _Said(text, (*happened[:number], looked_up))
        yield _Said(invocation.response, tuple(happened))

    async def _judge_text(self, said: _Said, invocation: Invocation, panel: Panel) -> JudgedTurn:
        """Return the share of one text, the mean of the judges' shares."""
        shares = await asyncio.gather(
            *(_share(seat, said, invocation, panel) for seat in panel.judges)
        )
        passed = [None if each.value is None else self.status_of(each.value) for each in shares]
        note_agreement(panel, passed)
        evidence = _evidence(panel, shares)
        reason = next((each.reason for each in shares if each.value is None), "")
        values = [each.value for each in shares if each.value is not None]
        value = None if reason else sum(values) / len(values)
        return JudgedTurn(value, reason, {"value": value, **evidence})


async def _share(seat: Seat, said: _Said, invocation: Invocation, panel: Panel) -> _Share:
    """Return what one judge makes of one text."""
    question = panel.question(SEGMENT, SEGMENTS, text=said.text)
    cut = await _asked(seat, question, partial(read_sentences, text=said.text))
    if cut.value is None:
        return _Share(None, f"{seat.name}: {cut.reason}")
    question = panel.question(
        VALIDATE,
        VERDICTS,
        instructions=instructions([invocation]),
        tools=declared_tools([invocation]),
        user_prompt=invocation.user,
        steps=steps(said.before),
        sentences=[
            {"number": number, "sentence": each} for number, each in enumerate(cut.value, 1)
        ],
    )
    labelled = await _asked(seat, question, partial(read_findings, sentences=cut.value))
    if labelled.value is None:
        return _Share(None, f"{seat.name}: {labelled.reason}")
    good = sum(each.label in POSITIVE for each in labelled.value)
    found = zip(cut.value, labelled.value, strict=True)
    sentences = tuple({"sentence": text, **each._asdict()} for text, each in found)
    return _Share(good / len(sentences), sentences=sentences)


async def _asked(seat: Seat, question: Question, read: Callable[[str], T]) -> Reading[T]:
    """Return what is read; an answer that was kept and cannot be read is not kept for good."""
    found = await seat.ask(question, read)
    if found.value is None and found.cached:
        return await seat.ask(question, read, fresh=True)
    return found


def _evidence(panel: Panel, shares: list[_Share]) -> dict[str, Json]:
    if len(shares) == 1:
        return {"sentences": list(shares[0].sentences)}
    found = zip(names_of(panel), shares, strict=True)
    return {
        "jury": {
            name: {"value": each.value, "sentences": list(each.sentences)} for name, each in found
        }
    }
