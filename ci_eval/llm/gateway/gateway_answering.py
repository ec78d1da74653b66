"""One model call, from the client's request to its answer: replayed or passed on."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pydantic_core import to_json

from ci_eval.forge.lineage import from_fork
from ci_eval.llm.gateway.answers import STREAM, Answer, WithoutUsage, asks_for_usage, used
from ci_eval.llm.gateway.cassette_lines import Place, digest_of_trial, shortened
from ci_eval.llm.gateway.faults import fault_of, faulty, is_awaited
from ci_eval.llm.gateway.gateway_options import ModelOptions
from ci_eval.llm.gateway.model_cassette import ModelCassette, UnfitError
from ci_eval.llm.gateway.nearest_request import nearest
from ci_eval.llm.gateway.open_conversations import Attempt, Conversation, RefusedCallError, given_up
from ci_eval.llm.gateway.providers import Call
from ci_eval.llm.gateway.request_digest import digest_of, normalised
from ci_eval.llm.gateway.spending import exceeded, limiter_of, of_run, overspent
from ci_eval.llm.gateway.upstream import Passing, failure, passed_on, tokens_of
from ci_eval.llm.prices import Tokens, cost_of
from ci_eval.llm.rate_limit import RateLimiter
from ci_eval.records.cases import Json
from ci_eval.records.errors import TrialError
from ci_eval.records.model_usage import ModelUsage
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.http import Net
from ci_eval.runtime.retry import retry_after
from ci_eval.text.patterns import fits_any
from ci_eval.text.templates import counted

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest as Request
    from aiohttp.web import StreamResponse

_USUAL_OUTPUT_TOKENS = 200
"""Assumed output of a call in progress, to estimate its cost."""
_MAX_PAUSE_S = 120.0
"""The longest pause that a provider may impose on all its callers; a longer one is a failure."""
_MAX_REPEATS = 10
"""Number of repeats among which a request is searched that is not recorded for its own."""
_VARIABLE = re.compile(r"- .*\[[A-Z][A-Z0-9_]*(?::[0-9a-f]{4})?\]")
"""A line of a recorded request with the name of a variable instead of its value."""
_PRICED_AS = {"gemini": "google"}
"""Names of providers in the price list, where they differ."""


class Asked(NamedTuple):
    """A call, and its place in a cassette."""

    call: Call
    conversation: Conversation
    request: dict[str, Json]
    """The normalised request."""
    place: Place


class _Outcome(NamedTuple):
    """The answer to a call that was passed on."""

    response: "StreamResponse"
    answer: Answer
    usage: ModelUsage
    failure: str
    """Why it is no answer of the model; empty if it is one."""


@dataclass(frozen=True)
class Answering:
    """Answers the calls of one agent."""

    _options: ModelOptions
    _context: RunContext
    _cassette: ModelCassette
    _net: Net

    async def answer(
        self, request: "Request", call: Call, conversation: Conversation, base: str
    ) -> "StreamResponse":
        """Return the answer to a call; `base` is the address of the gateway for its process.

        Raises:
            RefusedCallError: it is not answered.
            TrialError: the provider could not be reached, or a pattern took too long.

        """
        options = self._options
        if options.allow and not fits_any(call.model, options.allow):
            message = f"the model {call.model!r} is not allowed by `models.allow`"
            raise RefusedCallError("models", message)
        whole = normalised(call, options.ignore, base)
        digest = digest_of(whole)
        # What was found needs no search for secrets, which is slow.
        is_found = self._cassette.numbers(conversation.trial, digest)
        if options.mode != "live" and not is_found:
            whole = self._cassette.cleaned(whole)
            digest = digest_of(whole)
        place = Place(conversation.trial, digest, conversation.take(digest))
        asked = Asked(call, conversation, whole, place)
        conversation.tries[digest] += 1
        is_replayed = options.mode in ("replay", "auto") or conversation.is_held_again
        answer = self._cassette.answer(place) if is_replayed else None
        if options.mode == "replay" and answer is None:
            raise RefusedCallError("not_recorded", self._miss(asked))
        faults = options.faults
        fault = faults and fault_of(faults, place, conversation.tries[digest])
        if fault:
            conversation.usages.append(ModelUsage(faults=1))
        if faults and fault == "slow" and await is_awaited(request, conversation, faults.slow_s):
            fault = None
        if fault:
            conversation.release(digest, place.number)
            return await faulty(fault, request, conversation)
        if answer:
            conversation.succeed(digest, place.number, self._usage(call, answer, replayed=1))
            return _whole(answer, call)
        if call.provider.key(self._context.env) is None:
            raise self._lacks_key(asked)
        with conversation.streaming():
            return await self._pass_on(request, asked)

    # --- Replay ---------------------------------------------------------------------------------

    def _miss(self, asked: Asked) -> str:
        """Return the message about an unrecorded request, with the nearest recorded one."""
        place, cassette, key = asked.place, self._cassette, asked.conversation.key
        shown, what_to_do = asked.call.shown, "record the case again"
        if from_fork(self._context.env):
            what_to_do = "a maintainer needs to record the case again"
        where = cassette.shown + (f", which {cassette.damage}" if cassette.damage else "")
        if known := len(cassette.numbers(place.trial, place.request)):
            often = f"{shown}: this request is recorded only {counted(known, 'time')}"
            return f"{often} for this trial in {where}; {what_to_do}"
        if repeats := [*self._repeats(asked)]:
            only = f"{shown}: this request is recorded only for repeat {', '.join(repeats)}"
            return f"{only} in {where}, and this is repeat {key.repeat + 1}; {what_to_do}"
        message = f"{shown}: this request is not recorded in {where}"
        recorded = [each.request for each in cassette.calls(place.trial)]
        lines = [*self._nearest(asked, recorded)]
        if not lines:
            return f"{message}, nor is any request of this trial; {what_to_do}"
        differs = "\n".join(lines)
        hint = "if only a changing value such as a date differs, add it to `models.ignore` first"
        if any(map(_VARIABLE.match, lines)):
            hint = "a name in brackets stands for the value that the variable had when recording"
        return f"{message}; {what_to_do}; {hint}\n{differs}"

    def _repeats(self, asked: Asked) -> Iterator[str]:
        """Yield the other repeats of the case for which a request is recorded."""
        for repeat in range(_MAX_REPEATS):
            trial = digest_of_trial(asked.conversation.key.model_copy(update={"repeat": repeat}))
            if self._cassette.numbers(trial, asked.place.request):
                yield str(repeat + 1)

    def _nearest(self, asked: Asked, recorded: list[dict[str, Json]]) -> Iterator[str]:
        others = recorded or (each.request for each in self._cassette.calls())
        if lines := [*nearest(shortened(asked.request), others)]:
            where = "in this trial" if recorded else "in other trials"
            yield f"nearest recorded request {where} (-), this request (+):"
            yield from lines

    def _lacks_key(self, asked: Asked) -> RefusedCallError:
        needed = f"{' or '.join(asked.call.provider.keys)} is not set"
        if self._options.mode == "auto":
            return RefusedCallError("not_recorded", f"{needed}, and {self._miss(asked)}")
        return RefusedCallError("models", f"{asked.call.shown} was not called: {needed}")

    # --- Calls of providers -----------------------------------------------------------------------

    async def _pass_on(self, request: "Request", asked: Asked) -> "StreamResponse":
        """Call the provider; pass on, count and record its answer."""
        conversation, place = asked.conversation, asked.place
        attempt = conversation.begin(
            (place.request, place.number),
            asked.call.shown,
            lambda: not request.transport or request.transport.is_closing(),
        )
        try:
            passed = await self._ask(request, asked, attempt)
        except TrialError as exc:
            attempt.fail(str(exc))
            raise
        if passed.failure:
            attempt.fail(passed.failure)
            return passed.response
        attempt.succeed(passed.usage)
        is_kept = not (attempt.is_repeated or conversation.is_over)
        if is_kept and self._options.mode != "live":
            self._record(asked, passed.answer)
        return passed.response

    async def _ask(self, request: "Request", asked: Asked, attempt: Attempt) -> "_Outcome":
        call, conversation = asked.call, asked.conversation
        run = of_run(asyncio.get_running_loop(), conversation.key.agent)
        # Serialized anew: a provider may resolve duplicate keys differently from us.
        body = to_json(call.body)
        tokens = tokens_of(body)
        estimate = self._estimate(call, tokens)
        limiter = limiter_of(call.provider.name)
        async with _turn(limiter, tokens, asked):
            if not await is_awaited(request, conversation):
                raise TrialError("connection", given_up(call.shown))
            is_shard = self._context.cassettes is not None
            spent = conversation.spent
            if why := exceeded(self._options, run, spent, estimate, is_shard=is_shard):
                raise RefusedCallError("models", why)
            began, cost = time.monotonic(), estimate
            for each in (run, conversation.spent):
                each.begin(estimate)
            try:
                async with passed_on(call, body, self._net, self._context.env) as passing:
                    response = await _passed(request, passing, attempt)
                answer = passing.answer()
                usage = self._usage(call, answer, seconds=time.monotonic() - began)
                cost = estimate if usage.unpriced else usage.cost_usd
            finally:
                for each in (run, conversation.spent):
                    each.end(estimate, cost)
        if why := overspent(self._options, run, conversation.spent, is_shard=is_shard):
            conversation.refuse(TrialError("models", why))
        why = failure(call, answer, self._context.env)
        if answer.status == 429:
            pause = retry_after(passing.response.headers, self._context.now()) or 0.0
            if pause > _MAX_PAUSE_S:
                why = f"{why}, and asks to wait {pause:,.0f} s"
            else:
                limiter.throttled(began, pause)
        if not why:
            limiter.succeeded()
        return _Outcome(response, answer, usage, why)

    def _record(self, asked: Asked, answer: Answer) -> None:
        conversation, shown = asked.conversation, self._cassette.shown
        try:
            self._cassette.add(conversation.key, asked.place, asked.request, answer)
            conversation.is_recorded = True
        except (OSError, UnfitError) as exc:
            message = f"an answer could not be recorded in {shown}: {exc}"
            conversation.refuse(TrialError("models", message))

    def _estimate(self, call: Call, tokens: int) -> float:
        """Return the likely cost of a call with this number of input tokens, in US dollars.

        Without a limit, the result is 0, because looking up prices takes time.

        Raises:
            RefusedCallError: the price is unknown.

        """
        if call.is_free or not self._options.has_cost_limit:
            return 0.0
        cost = self._cost(call, "", Tokens(tokens, _USUAL_OUTPUT_TOKENS))
        if cost is None:
            message = f"the price of {call.model!r} is unknown, so its cost cannot be limited"
            raise RefusedCallError("models", f"{message}; add it to `models.prices`")
        return cost

    def _cost(self, call: Call, served: str, tokens: Tokens) -> float | None:
        provider = _PRICED_AS.get(call.provider.name, call.provider.name)
        return cost_of((served, call.model), tokens, self._options.prices, provider=provider)

    def _usage(
        self, call: Call, answer: Answer, *, replayed: int = 0, seconds: float = 0.0
    ) -> ModelUsage:
        """Return the usage of an answer."""
        found = used(call, answer)
        tokens, failed = found.tokens, answer.status >= 400
        missing = int(tokens is None and not failed)  # providers do not charge for errors
        cost: float | None = None if missing else 0.0
        if failed or tokens is None:
            tokens = Tokens(0, 0)
        elif not call.is_free:
            cost = self._cost(call, found.model, tokens)
        return ModelUsage(
            calls=1,
            replayed=replayed,
            errors=int(failed),
            input_tokens=tokens.input,
            cached_tokens=tokens.cached,
            output_tokens=tokens.output,
            thought_tokens=0 if failed else found.thoughts,
            uncounted=missing,
            cost_usd=cost or 0.0,
            unpriced=int(cost is None),
            seconds=round(seconds, 6),
            models=(found.model,) if found.model else (),
        )


@asynccontextmanager
async def _turn(limiter: RateLimiter, tokens: int, asked: Asked) -> AsyncIterator[None]:
    """Wait for a call's turn; the trial's clock stands still meanwhile."""
    async with AsyncExitStack() as stack:
        with asked.conversation.waiting(asked.call.shown):
            await stack.enter_async_context(limiter.slot(tokens))
        yield


# --- What the client gets -------------------------------------------------------------------------


def _whole(answer: Answer, call: Call) -> "StreamResponse":
    """Return a recorded answer."""
    from aiohttp.web import Response

    body = answer.body
    if answer.is_stream and asks_for_usage(call):
        dropping = WithoutUsage()
        body = dropping.feed(body) + dropping.end()
    # Recorded texts are UTF-8, and some clients assume another charset if none is named.
    charset = "utf-8" if answer.type.startswith("text/") else None
    return Response(status=answer.status, body=body, content_type=answer.type, charset=charset)


async def _passed(request: "Request", passing: Passing, attempt: Attempt) -> "StreamResponse":
    """Pass an answer on as it arrives; read all of it even if the client leaves."""
    from aiohttp.web import Response, StreamResponse

    status, headers = passing.response.status, passing.headers
    kind, charset = passing.type, passing.response.charset
    if kind != STREAM:
        body = b"".join([chunk async for chunk in passing.chunks()])
        return Response(
            status=status, headers=headers, body=body, content_type=kind, charset=charset
        )
    response = StreamResponse(status=status, headers=headers)
    response.content_type, response.charset = kind, charset
    dropping = WithoutUsage() if passing.drops_usage else None
    is_there = attempt.is_begun = await _arrives(response.prepare(request))
    try:
        async for chunk in passing.chunks():
            if known := dropping.feed(chunk) if dropping else chunk:
                is_there = is_there and await _arrives(response.write(known))
    except TrialError:
        if request.transport:
            request.transport.abort()  # so that the client does not mistake it for the end
        raise
    if is_there and dropping and (rest := dropping.end()):
        await _arrives(response.write(rest))
    return response


async def _arrives(sending: Awaitable[object]) -> bool:
    """Send a part of a stream; return False if the client has left."""
    try:
        await sending
    except ConnectionError:
        return False
    return True
