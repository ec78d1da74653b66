"""Calls to one provider, within the budget and its rate limits, with retries."""

import asyncio
import logging
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass

from ci_eval.llm.judge_settings import DEFAULT_CONCURRENCY, JudgeOptions, price, provider_of
from ci_eval.llm.prices import Price
from ci_eval.llm.rate_limit import RateLimiter, pace_of
from ci_eval.plugins.points import Judge, JudgeClient
from ci_eval.records.errors import JudgeError
from ci_eval.records.questions import Answer, Question
from ci_eval.records.results import JudgeUsage
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.retry import Backoff

_log = logging.getLogger(__name__)

CHARS_PER_TOKEN = 4
"""Approximate characters per token in English; only used for estimates."""
USUAL_OUTPUT_TOKENS = 200
"""Estimated output tokens of an answer until the first one has arrived."""
BACKOFF = Backoff(first_s=0.5, longest_s=30.0, jitter=0.5)
MAX_REFUSALS = 5
"""Refusals after which a model that never answered is not called again."""


class Meter:
    """Usage of all calls for one score."""

    def __init__(self) -> None:
        self.usage = JudgeUsage()

    def add(self, usage: JudgeUsage) -> None:
        """Add the usage of one call."""
        self.usage += usage


@dataclass
class Budget:
    """Limits of a run, and how much of them is used."""

    max_calls: int | None
    max_cost_usd: float | None
    calls: int = 0
    cost_usd: float = 0.0
    _pending_usd: float = 0.0
    """Estimated cost of the calls in progress, in US dollars."""

    def begin(self, estimate_usd: float) -> None:
        """Count a call before it is made.

        Raises:
            JudgeError: the call would exceed a limit.

        """
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise JudgeError(f"the {self.max_calls} calls of `judge.max_calls` are used up")
        spent = self.cost_usd + self._pending_usd
        if self.max_cost_usd is not None and spent + estimate_usd > self.max_cost_usd:
            message = (
                f"${self.cost_usd:.4f} of the ${self.max_cost_usd:g} in `judge.max_cost_usd` "
                "is spent, and the next call would exceed the limit"
            )
            raise JudgeError(message)
        self.calls += 1
        self._pending_usd += estimate_usd

    def end(self, estimate_usd: float, cost_usd: float) -> None:
        """Replace the estimate for a call by its actual cost."""
        self._pending_usd -= estimate_usd
        self.cost_usd += cost_usd


@dataclass
class ModelState:
    """Price and record of one model."""

    price: Price | None
    answers: int = 0
    output_tokens: int = 0
    refusals: int = 0
    hopeless: str = ""
    """Reason not to call it again; empty if there is none."""

    def add(self, answer: Answer) -> None:
        """Count an answer."""
        self.answers += 1
        self.output_tokens += answer.output_tokens

    def refuse(self, error: JudgeError) -> None:
        """Count a failed call, and decide whether more calls are hopeless."""
        self.refusals += not error.passing
        if error.hopeless or (not self.answers and self.refusals >= MAX_REFUSALS):
            self.hopeless = str(error)

    def estimate(self, tokens: int) -> float:
        """Return the likely cost of a call with `tokens` input tokens, in US dollars."""
        usual = self.output_tokens / self.answers if self.answers else USUAL_OUTPUT_TOKENS
        return self.price.of(tokens, round(usual)) if self.price else 0.0

    def usage(self, answer: Answer) -> JudgeUsage:
        """Return the usage of the call that returned `answer`."""
        used = answer.input_tokens, answer.output_tokens
        cost = {"cost_usd": self.price.of(*used)} if self.price else {"unpriced": 1}
        return JudgeUsage(calls=1, input_tokens=used[0], output_tokens=used[1], **cost)


@dataclass
class Caller:
    """Makes all calls to one provider over one connection."""

    _judge: Judge
    _options: JudgeOptions
    _context: RunContext
    _stack: AsyncExitStack

    def __post_init__(self) -> None:
        options = self._options
        self._client: asyncio.Task[JudgeClient] | None = None
        self._states: dict[str, ModelState] = {}
        self._limiter = RateLimiter(
            concurrency=options.concurrency or DEFAULT_CONCURRENCY,
            pace=pace_of(provider_of(self._judge)),
        )
        self._failing_since: float | None = None
        self._last_failure = ""

    async def call(self, question: Question, meter: Meter, budget: Budget) -> Answer:
        """Return the answer to `question`, retrying transient failures.

        Raises:
            JudgeError: none of the allowed attempts got an answer.

        """
        tokens = (len(question.instructions) + len(question.prompt)) // CHARS_PER_TOKEN + 1
        pauses = BACKOFF.pauses(seed=f"{question.sample} {question.prompt}")
        for attempt in range(1, self._options.attempts + 1):
            started = time.monotonic()
            try:
                async with self._limiter.slot(tokens):
                    started = time.monotonic()
                    answer = await self._attempt(question, tokens, meter, budget)
            except JudgeError as exc:
                _log.debug("%s: attempt %d failed: %s", question.model, attempt, exc)
                last = exc
            else:
                _log.debug("%s answered in %.1f s", question.model, time.monotonic() - started)
                return answer
            if not last.passing:
                raise last
            self._note_failure(started, last)
            if attempt < self._options.attempts:
                await asyncio.sleep(self._pause_s(next(pauses), last))
        raise JudgeError(f"{last}; gave up after {self._options.attempts} attempts")

    async def _attempt(
        self, question: Question, tokens: int, meter: Meter, budget: Budget
    ) -> Answer:
        client = await self._connected(meter)
        state = self._state(question.model)
        left = self._time_left(state)
        estimate = state.estimate(tokens)
        budget.begin(estimate)
        usage = JudgeUsage(calls=1)
        try:
            async with asyncio.timeout(left):
                answer = await client.answer(question)
            usage = state.usage(answer)
        except TimeoutError:
            # An earlier failure is more informative than the shared timeout.
            cut_short = left < self._options.timeout_s and self._failing_since is not None
            message = f"no answer within {left:.3g} s"
            raise JudgeError(self._last_failure if cut_short else message, passing=True) from None
        except JudgeError as exc:
            state.refuse(exc)
            raise
        finally:
            budget.end(estimate, usage.cost_usd)
            meter.add(usage)
        state.add(answer)
        self._failing_since = None
        self._limiter.succeeded()
        return answer

    def _state(self, model: str) -> ModelState:
        if model not in self._states:
            asked = self._judge.model_copy(update={"model": model})
            self._states[model] = ModelState(price(asked, self._options.prices))
        return self._states[model]

    async def _connected(self, meter: Meter) -> JudgeClient:
        if self._client is None:
            missing = self._judge.missing(self._context.env)
            if missing:
                meter.add(JudgeUsage(lacking=(missing,)))
                raise JudgeError(f"the judge lacks {missing}")
            self._client = asyncio.ensure_future(
                self._stack.enter_async_context(self._judge.start(self._context))
            )
        return await asyncio.shield(self._client)

    def _time_left(self, state: ModelState) -> float:
        """Return the seconds that a call may take now.

        Raises:
            JudgeError: the model or the provider is considered unavailable.

        """
        if state.hopeless:
            raise JudgeError(state.hopeless)
        if self._failing_since is None:
            return min(self._options.timeout_s, self._options.patience_s)
        left = self._patience_left_s(self._failing_since)
        if left <= 0:
            silence = f"no successful response for {self._options.patience_s:g} s"
            raise JudgeError(f"considered unavailable: {silence}; {self._last_failure}")
        return min(self._options.timeout_s, left)

    def _note_failure(self, started: float, error: JudgeError) -> None:
        self._last_failure = str(error)
        if self._failing_since is None:
            self._failing_since = started
        if error.throttled:
            # The provider may ask for a longer pause than we are willing to wait.
            left_s = max(0.0, self._patience_left_s(self._failing_since))
            self._limiter.throttled(started, min(error.after_s or 0.0, left_s))

    def _pause_s(self, pause_s: float, error: JudgeError) -> float:
        """Return the seconds until the next attempt: the provider's wish, within our patience."""
        pause_s = max(pause_s, error.after_s or 0.0)
        if self._failing_since is None:
            return pause_s
        return max(0.0, min(pause_s, self._patience_left_s(self._failing_since)))

    def _patience_left_s(self, failing_since: float) -> float:
        return failing_since + self._options.patience_s - time.monotonic()
