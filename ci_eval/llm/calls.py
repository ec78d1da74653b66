"""Calls of one provider: within the budget, at its pace, and again where they fail in passing."""

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass

from ci_eval.llm.judge_settings import DEFAULT_CONCURRENCY, JudgeOptions, price
from ci_eval.llm.prices import Price
from ci_eval.llm.rate_limit import Pace
from ci_eval.plugins.points import Judge, JudgeClient
from ci_eval.records.errors import JudgeError
from ci_eval.records.questions import Answer, Question
from ci_eval.records.results import JudgeUsage
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.retry import Backoff

CHARS_PER_TOKEN = 4
"""What a token has in English, roughly; only estimates rest on it."""
USUAL_OUTPUT_TOKENS = 200
"""What an answer is taken to have before there was one."""
BACKOFF = Backoff(first_s=0.5, longest_s=30.0, jitter=0.5)
MAX_REFUSALS = 5
"""How many questions a provider may refuse, before it answered any, until it is asked no more."""


class Meter:
    """What asking took, added up for one score."""

    def __init__(self) -> None:
        self.usage = JudgeUsage()

    def add(self, usage: JudgeUsage) -> None:
        """Add what one thing took."""
        self.usage += usage


@dataclass
class Budget:
    """What a run may spend."""

    max_calls: int | None
    max_cost_usd: float | None
    calls: int = 0
    cost_usd: float = 0.0
    _under_way: float = 0.0
    """What the calls that are under way will cost, as estimated."""

    def begin(self, estimate_usd: float) -> None:
        """Count a call that is about to be made.

        Raises:
            JudgeError: there is nothing left for it.

        """
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise JudgeError(f"the {self.max_calls} calls of `judge.max_calls` are used up")
        spent = self.cost_usd + self._under_way
        if self.max_cost_usd is not None and spent + estimate_usd > self.max_cost_usd:
            message = (
                f"${self.cost_usd:.4f} of the ${self.max_cost_usd:g} of `judge.max_cost_usd` "
                "are spent, and the next call would be too much"
            )
            raise JudgeError(message)
        self.calls += 1
        self._under_way += estimate_usd

    def end(self, estimate_usd: float, cost_usd: float) -> None:
        """Note what a call cost that was thought to cost `estimate_usd`."""
        self._under_way -= estimate_usd
        self.cost_usd += cost_usd


@dataclass
class Standing:
    """How one model has been doing."""

    price: Price | None
    answers: int = 0
    output_tokens: int = 0
    refusals: int = 0
    hopeless: str = ""
    """Why it is not worth asking any more."""

    def add(self, answer: Answer) -> None:
        """Note an answer."""
        self.answers += 1
        self.output_tokens += answer.output_tokens

    def refuse(self, error: JudgeError) -> None:
        """Note that it will not have a question, and perhaps none of them."""
        self.refusals += not error.passing
        if error.hopeless or (not self.answers and self.refusals >= MAX_REFUSALS):
            self.hopeless = str(error)

    def estimate(self, tokens: int) -> float:
        """Return what a call with so many tokens is likely to cost, in dollars."""
        usual = self.output_tokens / self.answers if self.answers else USUAL_OUTPUT_TOKENS
        return self.price.of(tokens, round(usual)) if self.price else 0.0

    def usage(self, answer: Answer) -> JudgeUsage:
        """Return what a call took."""
        used = answer.input_tokens, answer.output_tokens
        return JudgeUsage(
            calls=1,
            input_tokens=used[0],
            output_tokens=used[1],
            cost_usd=self.price.of(*used) if self.price else 0.0,
            unpriced=0 if self.price else 1,
        )


class Line:
    """The connection to one provider, with what is known of how it is doing."""

    def __init__(
        self, judge: Judge, options: JudgeOptions, context: RunContext, stack: AsyncExitStack
    ) -> None:
        self._judge = judge
        self._options = options
        self._world = context
        self._stack = stack
        self._client: asyncio.Task[JudgeClient] | None = None
        self._standings: dict[str, Standing] = {}
        self._pace = Pace(
            concurrency=options.concurrency or DEFAULT_CONCURRENCY,
            requests_per_minute=options.requests_per_minute,
            tokens_per_minute=options.tokens_per_minute,
        )
        self._failing_since: float | None = None
        self._last_failure = ""

    async def call(self, question: Question, meter: Meter, budget: Budget) -> Answer:
        """Return the answer to `question`, asked as often as it takes.

        Raises:
            JudgeError: there is none, after all that is allowed.

        """
        tokens = (len(question.instructions) + len(question.prompt)) // CHARS_PER_TOKEN + 1
        pauses = BACKOFF.pauses(f"{question.sample} {question.prompt}")
        for attempt in range(1, self._options.attempts + 1):
            started = time.monotonic()
            try:
                async with self._pace.turn(tokens):
                    started = time.monotonic()
                    return await self._attempt(question, tokens, meter, budget)
            except JudgeError as exc:
                last = exc
            if not last.passing:
                raise last
            self._note_failure(started, last)
            if attempt < self._options.attempts:
                await asyncio.sleep(self._pause_s(next(pauses), last))
        raise JudgeError(f"{last}; asked {self._options.attempts} times")

    async def _attempt(
        self, question: Question, tokens: int, meter: Meter, budget: Budget
    ) -> Answer:
        client = await self._connected(meter)
        standing = self._standing(question.model)
        left = self._time_left(standing)
        estimate = standing.estimate(tokens)
        budget.begin(estimate)
        usage = JudgeUsage(calls=1)
        try:
            async with asyncio.timeout(left):
                answer = await client.answer(question)
            usage = standing.usage(answer)
        except TimeoutError:
            # That the time is up, which all calls together have, says less than what went before.
            cut_short = left < self._options.timeout_s and self._failing_since is not None
            message = f"no answer within {left:.3g} s"
            raise JudgeError(self._last_failure if cut_short else message, passing=True) from None
        except JudgeError as exc:
            standing.refuse(exc)
            raise
        finally:
            budget.end(estimate, usage.cost_usd)
            meter.add(usage)
        standing.add(answer)
        self._failing_since = None
        self._pace.went_well()
        return answer

    def _standing(self, model: str) -> Standing:
        if model not in self._standings:
            asked = self._judge.model_copy(update={"model": model})
            self._standings[model] = Standing(price(asked, self._options.prices))
        return self._standings[model]

    async def _connected(self, meter: Meter) -> JudgeClient:
        if self._client is None:
            missing = self._judge.missing(self._world.env)
            if missing:
                meter.add(JudgeUsage(lacking=(missing,)))
                raise JudgeError(f"the judge lacks {missing}")
            self._client = asyncio.ensure_future(
                self._stack.enter_async_context(self._judge.start(self._world))
            )
        return await asyncio.shield(self._client)

    def _time_left(self, standing: Standing) -> float:
        """Return how long a call may take now.

        Raises:
            JudgeError: it is not worth making any more.

        """
        if standing.hopeless:
            raise JudgeError(standing.hopeless)
        if self._failing_since is None:
            return min(self._options.timeout_s, self._options.patience_s)
        left = self._failing_since + self._options.patience_s - time.monotonic()
        if left <= 0:
            patience = f"{self._options.patience_s:g} s"
            message = f"taken to be down: no good answer for {patience}; {self._last_failure}"
            raise JudgeError(message)
        return min(self._options.timeout_s, left)

    def _note_failure(self, started: float, error: JudgeError) -> None:
        self._last_failure = str(error)
        if self._failing_since is None:
            self._failing_since = started
        if error.throttled:
            self._pace.too_much(started, error.after_s)

    def _pause_s(self, pause_s: float, error: JudgeError) -> float:
        """Return the seconds until the next attempt: as the provider asks, within our patience."""
        pause_s = max(pause_s, error.after_s or 0.0)
        if self._failing_since is None:
            return pause_s
        left_s = self._failing_since + self._options.patience_s - time.monotonic()
        return max(0.0, min(pause_s, left_s))
