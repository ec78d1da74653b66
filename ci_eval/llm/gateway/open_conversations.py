"""Conversations behind the gateway, and the processes that hold them.

Each process has an address with a secret of its own.  A worker holds several conversations, and
marks each call with the number of its conversation.  A call without a mark belongs to the only
conversation of its process.  If there are several, or if the marked one is over (a task that it
started may work for others), none can be trusted, and each is repeated alone.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from ci_eval.llm.gateway.cassette_lines import digest_of_trial
from ci_eval.llm.gateway.spending import Spending
from ci_eval.records.errors import DisturbedError, FailureKind, TrialError
from ci_eval.records.model_usage import ModelUsage
from ci_eval.records.trials import TrialKey
from ci_eval.runtime.trial_clock import TrialClock

MARK = "x-ci-eval-conversation"
"""The header with the number of the conversation; `marked_calls.py` sets it in workers."""


SETTLE_S = 30.0
"""The longest wait for a provider's answers after the agent's own: clients leave a stream at its
last event, and agents cancel calls that they no longer need, such as those that a guardrail stops.
Such answers are paid for, and recorded."""


MAX_WAIT_S = 3600.0
"""How long a trial's clock stands still at most while its calls wait: otherwise, an agent that
always has a waiting call would never time out."""


Slot = tuple[str, int]
"""A request, and its number among equal ones."""


class RefusedCallError(Exception):
    """The gateway does not answer a call, so the trial is not observed."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        self.kind: FailureKind = kind
        super().__init__(message)


@dataclass
class Conversation:
    """The calls of one conversation."""

    key: TrialKey
    usages: list[ModelUsage] = field(default_factory=list)
    """The usage of each call since `take_usage`."""
    spent: Spending = field(default_factory=Spending)
    error: TrialError | None = None
    """Why the trial is not observed, whatever the agent answers."""
    failed: dict[Slot, str] = field(default_factory=dict)
    """The calls that a provider has not answered so far, and how they failed."""
    given_up: Counter[Slot] = field(default_factory=Counter)
    """How many attempts of these calls failed, or were left by their clients."""
    underway: dict[Slot, "Attempt"] = field(default_factory=dict)
    """The calls that a provider is answering."""
    numbered: Counter[str] = field(default_factory=Counter)
    """How many numbers were assigned to each request."""
    released: dict[str, set[int]] = field(default_factory=dict)
    """The assigned numbers that are free again."""
    tries: Counter[str] = field(default_factory=Counter)
    """How often each request was made, failed attempts included."""
    is_recorded: bool = False
    """Whether any of its calls was recorded."""
    is_held_again: bool = False
    """Whether an interrupted run recorded its beginning, which is now replayed."""
    streams: set[asyncio.Future[None]] = field(default_factory=set)
    """Answers that are being passed on."""
    waits: list[str] = field(default_factory=list)
    """The calls that are waiting for their turn, as shown in messages."""
    clock: TrialClock | None = None
    is_over: bool = False

    def __post_init__(self) -> None:
        self.trial = digest_of_trial(self.key)

    @property
    def usage(self) -> ModelUsage:
        """The usage since `take_usage`."""
        return sum(self.usages, ModelUsage())

    def take(self, request: str) -> int:
        """Return the number of a new request among equal ones.

        If a client has left without any answer, an equal request is another attempt of its call.
        """
        if free := self.released.get(request):
            number = min(free)
            free.discard(number)
            return number
        for slot, attempt in self.underway.items():
            if slot[0] == request and attempt.is_given_up:
                attempt.is_repeated = True
                del self.underway[slot]
                self.given_up[slot] += 1
                return slot[1]
        self.numbered[request] += 1
        return self.numbered[request] - 1

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Note that an answer is being passed on; it is counted at its end."""
        ended = asyncio.get_running_loop().create_future()
        self.streams.add(ended)
        try:
            yield
        finally:
            self.streams.discard(ended)
            ended.set_result(None)

    @contextmanager
    def waiting(self, shown: str) -> Iterator[None]:
        """Stop the trial's clock while the call `shown` waits for its turn."""
        self.waits.append(shown)
        clock = self.clock if self.clock and self.clock.stopped_s < MAX_WAIT_S else None
        try:
            with clock.stopped() if clock else nullcontext():
                yield
        finally:
            self.waits.remove(shown)

    async def settle(self) -> None:
        """Wait for the end of answers that the agent no longer reads."""
        if self.streams:
            await asyncio.wait(self.streams, timeout=SETTLE_S)

    def release(self, request: str, number: int) -> None:
        """Free the number of a request for its next attempt."""
        self.released.setdefault(request, set()).add(number)

    def begin(self, slot: Slot, shown: str, has_left: Callable[[], bool]) -> "Attempt":
        """Note that a call was passed on to its provider."""
        self.underway[slot] = Attempt(self, slot, shown, has_left)
        return self.underway[slot]

    def fail(self, request: str, number: int, why: str) -> None:
        """Note that a call was not answered; the agent may repeat it."""
        self.release(request, number)
        self.failed[request, number] = why
        self.given_up[request, number] += 1

    def succeed(self, request: str, number: int, usage: ModelUsage) -> None:
        """Note that a call was answered."""
        self.failed.pop((request, number), None)
        if retries := self.given_up.pop((request, number), 0):
            usage = usage.model_copy(update={"retries": retries})
        self.usages.append(usage)

    def take_usage(self) -> ModelUsage:
        """Return the usage since `take_usage` was last called."""
        usage = self.usage
        self.usages.clear()
        return usage

    def refuse(self, error: TrialError) -> None:
        """Make the trial end in an error; the first error counts."""
        self.error = self.error or error

    def check(self) -> None:
        """Raise the error of the conversation, if there is one.

        Raises:
            TrialError: a call was refused, or never answered.
            DisturbedError: its calls cannot be distinguished from those of other conversations.

        """
        if self.error:
            raise self.error
        late = (each for each in self.underway.values() if each.is_given_up)
        for why in (*self.failed.values(), *map(given_up, self.waits), *map(unanswered, late)):
            raise TrialError("connection", why)

    def check_end(self) -> None:
        """Raise an error if a call is still being answered when the conversation has ended.

        Raises:
            TrialError: its answer would be missing from the recording.

        """
        for each in self.underway.values():
            raise TrialError("connection", unanswered(each))


@dataclass(eq=False)
class Attempt:
    """An attempt of a call.  What becomes of it counts unless the client has repeated it."""

    conversation: Conversation
    slot: Slot
    shown: str
    """The call, as shown in messages."""
    has_left: Callable[[], bool]
    """Returns True if the client has closed the connection."""
    is_begun: bool = False
    """Whether the client got a part of the answer: clients leave a stream at its last event."""
    is_repeated: bool = False

    @property
    def is_given_up(self) -> bool:
        """True if the client has left without any answer."""
        return not self.is_begun and self.has_left()

    def fail(self, why: str) -> None:
        """Note that the call was not answered."""
        if not self.is_repeated:
            del self.conversation.underway[self.slot]
            self.conversation.fail(*self.slot, why)

    def succeed(self, usage: ModelUsage) -> None:
        """Note that the call was answered."""
        if not self.is_repeated:
            del self.conversation.underway[self.slot]
            self.conversation.succeed(*self.slot, usage)


def given_up(shown: str) -> str:
    """Return the message about a call that the agent did not wait for."""
    return f"{shown}: the agent gave up before the rate limit allowed the call"


def unanswered(attempt: Attempt) -> str:
    """Return the message about a call whose answer took longer than the agent's own."""
    return f"{attempt.shown}: its answer was not complete {SETTLE_S:g} s after the agent's answer"


def called_early(shown: str) -> str:
    """Return the message about a call that belongs to no conversation."""
    return f"{shown} was called before the conversation, for example by an import"


@dataclass
class Process:
    """One process of an agent."""

    base: str
    """The gateway's address for this process, which contains its secret."""
    conversations: dict[int, Conversation] = field(default_factory=dict)
    """The open conversations, by number."""
    has_begun: bool = False
    """Whether any conversation was opened."""
    early: str = ""
    """A call before the first conversation, which makes all of them errors; empty if none."""

    def outside(self, shown: str) -> str:
        """Return why the call `shown`, made outside any conversation, is not answered.

        What a call before the first conversation is for, such as an index, is missing from all.
        """
        if self.has_begun:
            return "the conversation is over"
        self.early = shown
        return called_early(shown)

    def of(self, mark: str | None) -> Conversation | None:
        """Return the conversation of a call with this mark; `None` if no conversation is open.

        Raises:
            RefusedCallError: it may be a call of several conversations.

        """
        number = int(mark) if mark and mark.isdecimal() and len(mark) < 20 else None
        if number is not None and (found := self.conversations.get(number)):
            return found
        if len(self.conversations) > (1 if number is None else 0):
            message = "cannot tell which trial a model call belongs to"
            for each in self.conversations.values():
                each.refuse(DisturbedError(message, alone=True))
            raise RefusedCallError("models", message)
        return next(iter(self.conversations.values()), None)
