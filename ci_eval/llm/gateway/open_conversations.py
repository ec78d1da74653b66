"""Conversations behind the gateway, and the processes that hold them.

Each process has an address with a secret of its own.  A worker holds several conversations, and
marks its calls with their number.  A call without a mark belongs to the only conversation of its
process; if there are several, none of them can be trusted, and each is held again, alone.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from ci_eval.llm.gateway.model_cassette import digest_of_trial
from ci_eval.llm.gateway.spending import Spending
from ci_eval.records.errors import DisturbedError, FailureKind, TrialError
from ci_eval.records.model_usage import ModelUsage
from ci_eval.records.trials import TrialKey
from ci_eval.runtime.trial_clock import TrialClock

MARK = "x-ci-eval-conversation"
"""The header with the number of the conversation; `marked_calls.py` sets it in workers."""


SETTLE_S = 5.0
"""The longest wait for the end of a stream after the agent's answer: clients leave a stream at its
last event, which comes before its end."""


MAX_WAIT_S = 3600.0
"""How long the time of a trial stands still at most while its calls wait: an agent that always has
one that waits would else never end."""


class RefusedCallError(Exception):
    """The gateway does not answer a call, so that the trial is not observed."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        self.kind: FailureKind = kind
        super().__init__(message)


@dataclass
class Conversation:
    """The calls of one conversation."""

    key: TrialKey
    usage: ModelUsage = field(default_factory=ModelUsage)
    """The usage since `take_usage`."""
    spent: Spending = field(default_factory=Spending)
    error: TrialError | None = None
    """Why the trial is not observed, whatever the agent answers."""
    failed: dict[str, str] = field(default_factory=dict)
    """The requests that a provider has not answered so far, and how they failed."""
    numbered: Counter[str] = field(default_factory=Counter)
    """How many numbers each request has been given."""
    released: dict[str, set[int]] = field(default_factory=dict)
    """Those of them that are free again."""
    tries: Counter[str] = field(default_factory=Counter)
    """How often each request was made, failed tries included."""
    is_recorded: bool = False
    """Whether any of its calls was recorded."""
    is_held_again: bool = False
    """Whether an interrupted run has recorded the beginning, which is replayed."""
    streams: set[asyncio.Future[None]] = field(default_factory=set)
    """Answers that are being passed on."""
    waits: list[str] = field(default_factory=list)
    """The calls that wait for their turn, for messages."""
    clock: TrialClock | None = None
    is_over: bool = False

    def __post_init__(self) -> None:
        self.trial = digest_of_trial(self.key)

    def take(self, request: str) -> int:
        """Return the number of one more request, among those equal to it."""
        if free := self.released.get(request):
            number = min(free)
            free.discard(number)
            return number
        self.numbered[request] += 1
        return self.numbered[request] - 1

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Note that an answer is being passed on, and counted at its end."""
        ended = asyncio.get_running_loop().create_future()
        self.streams.add(ended)
        try:
            yield
        finally:
            self.streams.discard(ended)
            ended.set_result(None)

    @contextmanager
    def waiting(self, shown: str) -> Iterator[None]:
        """Stop the trial's time, while the call `shown` waits for its turn."""
        self.waits.append(shown)
        clock = self.clock if self.clock and self.clock.stopped_s < MAX_WAIT_S else None
        try:
            with clock.stopped() if clock else nullcontext():
                yield
        finally:
            self.waits.remove(shown)

    async def settle(self) -> None:
        """Wait until answers have ended that the agent has got all it needs of."""
        if self.streams:
            await asyncio.wait(self.streams, timeout=SETTLE_S)

    def release(self, request: str, number: int) -> None:
        """Let another try of a request have its number."""
        self.released.setdefault(request, set()).add(number)

    def fail(self, request: str, number: int, why: str) -> None:
        """Note that a request was not answered; the agent may repeat it."""
        self.release(request, number)
        self.failed[request] = why

    def succeed(self, request: str, usage: ModelUsage) -> None:
        """Note that a request was answered."""
        if self.failed.pop(request, None) is not None:
            usage = usage.model_copy(update={"retries": 1})
        self.usage += usage

    def take_usage(self) -> ModelUsage:
        """Return the usage since the last call of this."""
        usage, self.usage = self.usage, ModelUsage()
        return usage

    def refuse(self, error: TrialError) -> None:
        """Let the trial end in an error; the first one counts."""
        self.error = self.error or error

    def check(self) -> None:
        """Raise the error of the conversation, if there is one.

        Raises:
            TrialError: a call was refused, or was not answered at last.
            DisturbedError: its calls cannot be told from those of others.

        """
        if self.error:
            raise self.error
        for why in (*self.failed.values(), *map(given_up, self.waits)):
            raise TrialError("connection", why)


def given_up(shown: str) -> str:
    """Return the message about a call that the agent did not wait for."""
    return f"{shown}: the agent gave up before the limits a minute allowed the call"


@dataclass
class Process:
    """One process of an agent."""

    base: str
    """The address of the gateway for it, which holds its secret."""
    conversations: dict[int, Conversation] = field(default_factory=dict)
    """Those that are not over, by number."""

    def of(self, mark: str | None) -> Conversation | None:
        """Return the conversation of a call with this mark; `None` if it is over.

        Raises:
            RefusedCallError: it may be any of several.

        """
        if mark is not None and mark.isdecimal() and len(mark) < 20:
            return self.conversations.get(int(mark))
        if len(self.conversations) > 1:
            message = "a call of a model cannot be told from those of other trials"
            for each in self.conversations.values():
                each.refuse(DisturbedError(message, alone=True))
            raise RefusedCallError("models", message)
        return next(iter(self.conversations.values()), None)


def new_secret() -> str:
    """Return a secret that nobody guesses."""
    return secrets.token_urlsafe(32)
