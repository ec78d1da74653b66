"""Conversations: user messages, human answers and agent responses."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ci_eval.formats.event_lists import USER
from ci_eval.plugins.points import Session
from ci_eval.records.cases import (
    Content,
    EvalCase,
    FunctionCall,
    FunctionResponse,
    Invocation,
    Part,
)
from ci_eval.records.errors import TrialError
from ci_eval.records.trials import Trial
from ci_eval.run.human_answers import Human, joined, settled, to_be_confirmed
from ci_eval.run_files.report_phrases import listed
from ci_eval.run_files.resume import Answered, Begun, Node, decide, ids, recovered
from ci_eval.runtime.workers.canned_tools import equal
from ci_eval.text.sanitize import one_line

MAX_ANSWERS = 25
"""Maximum number of human answers in one invocation."""


class User(Protocol):
    """The user of a conversation."""

    async def next_message(self, so_far: Sequence[Invocation]) -> Content | None:
        """Return the user's next message after `so_far`; `None` at the end of the conversation.

        Raises:
            TrialError: the message cannot be determined.

        """


Users = Callable[[Trial], User]
"""Creates the user of a trial."""


class Scripted:
    """A user who sends the messages of the case, whatever the agent does."""

    def __init__(self, trial: Trial) -> None:
        if trial.case.conversation is None:
            message = "a scenario needs a simulated user, or a recording to score"
            raise TrialError("unsupported", message)
        self._turns = trial.case.conversation

    async def next_message(self, so_far: Sequence[Invocation]) -> Content | None:
        """Return the message of the next invocation of the case."""
        if len(so_far) == len(self._turns):
            return None
        message = self._turns[len(so_far)].user_content
        return _addressed(message, so_far[-1].waits_for) if so_far else message


Keep = Callable[[Begun], None]
"""Stores the progress of a conversation."""


@dataclass
class Conversation:
    """One conversation with an agent."""

    session: Session
    """The session; if the conversation continues an earlier run, opened from its memento."""
    case: EvalCase
    user: User
    seen: list[Invocation]
    """The invocations observed so far; `hold` appends to them."""
    keep: Keep = lambda _: None
    """Called before each message except the first, and when the agent waits in vain."""

    def __post_init__(self) -> None:
        self._human = Human(self.case)
        self._answered: list[Answered] = []
        self._kept: Invocation | None = None

    async def hold(self, begun: Begun | None = None) -> None:
        """Run the conversation to its end, continuing what was `begun`.

        Raises:
            TrialError: the agent could not be observed, or waits for an answer that never comes.

        """
        if begun:
            await self._take_up(begun)
        while (message := await self.user.next_message(self.seen)) is not None:
            if self.session.memento is not None:
                self._keep_so_far()
            self._refuse_waiting(message)
            found = _marked_unseen(await self.session.send(message))
            self.seen.append(await self._followed(found))
        self._refuse_waiting(None)

    async def _take_up(self, begun: Begun) -> None:
        """Continue from what an earlier run observed."""
        self.seen += begun.invocations
        self._kept = begun.invocations[-1]
        for each in begun.answered:
            # Repeated calls get successive answers.
            self._human.answer(each.call)
        self._answered += begun.answered
        if self._kept.waits_for:
            message = await self.user.next_message(self.seen)
            if _waiting(self.seen, message):
                self.seen.append(await self._resumed(self.seen.pop()))

    def _keep_so_far(self) -> None:
        if self.seen and self.seen[-1] is not self._kept:
            self._kept = self.seen[-1]
            begun = Begun(
                invocations=tuple(self.seen),
                memento=self.session.memento,
                answered=tuple(self._answered),
            )
            self.keep(begun)

    def _refuse_waiting(self, message: Content | None) -> None:
        """Raise an error if the agent waits for something other than `message`."""
        waiting = _waiting(self.seen, message)
        if waiting:
            self._keep_so_far()
            said = f"the agent waits for an answer to {listed([*map(_shown, waiting)])}"
            raise TrialError("waiting", f"{said}; add it to `human_answers` of the case")

    async def _resumed(self, last: Invocation) -> Invocation:
        """Resume an invocation that waited when the earlier run ended."""
        answers = {
            name: self._response(call)
            for name, call in zip(ids(last.waits_for), last.waits_for, strict=True)
            if self._human.knows(call)
        }
        given = {name: each.response or {} for name, each in answers.items()}
        decision = decide(Node(rerun_on_resume=self.case.rerun_on_resume), recovered(last, given))
        if decision.interrupts:
            return last
        message = _message_of(answers.values())
        if decision.should_run:
            return await self._followed(await self._answer(last, message))
        return settled(last, message, decision.output)

    async def _followed(self, found: Invocation) -> Invocation:
        """Answer the agent as often as it asks, and return the joined invocation."""
        for _ in range(MAX_ANSWERS):
            if not found.waits_for or not all(map(self._human.knows, found.waits_for)):
                return found
            message = _message_of(map(self._response, found.waits_for))
            found = await self._answer(found, message)
        said = f"the agent asked for human input more than {MAX_ANSWERS} times in one invocation"
        raise TrialError("waiting", said, seen=found)

    async def _answer(self, found: Invocation, message: Content) -> Invocation:
        """Send the answer `message`, and return the joined invocation."""
        try:
            return joined(found, message, _marked_unseen(await self.session.send(message)))
        except TrialError as exc:
            exc.seen = joined(found, message, exc.seen) if exc.seen else found
            raise

    def _response(self, call: FunctionCall) -> FunctionResponse:
        response = self._human.answer(call) or {}
        self._answered.append(Answered(call=call, response=response))
        return FunctionResponse(id=call.id, name=call.name, response=response)


def _marked_unseen(found: Invocation) -> Invocation:
    """Return `found`, marked as `unseen` if the agent does not report its tool calls."""
    reports = found.intermediate_data is not None
    return found if reports else found.model_copy(update={"unseen": True})


def can_go_on(begun: Begun, case: EvalCase) -> bool:
    """Return True if a conversation of `case` can continue from `begun`.

    The answers given so far must equal those that the case gives now; and without a memento, no
    message to the agent may be left.
    """
    human = Human(case)
    if not begun.invocations or not all(
        equal(human.answer(each.call), each.response) for each in begun.answered
    ):
        return False
    if begun.memento is not None:
        return True
    is_over = case.conversation is not None and len(begun.invocations) == len(case.conversation)
    return is_over and not case.rerun_on_resume


def _waiting(seen: Sequence[Invocation], message: Content | None) -> list[FunctionCall]:
    """Return the calls that the agent waits for and that `message` does not answer."""
    answered = {part.function_response.id for part in _parts(message) if part.function_response}
    return [call for call in (seen[-1].waits_for if seen else ()) if call.id not in answered]


def _shown(call: FunctionCall) -> str:
    about = to_be_confirmed(call)
    name, args = about or (call.name or "a call", call.args or {})
    given = ", ".join(f"{key}={value!r}" for key, value in args.items())
    shown = f"{one_line(name, 100)}({one_line(given, 200)})"
    return f"whether to call {shown}" if about else shown


def _parts(content: Content | None) -> tuple[Part, ...]:
    return (content.parts if content else None) or ()


def _message_of(responses: Iterable[FunctionResponse]) -> Content:
    return Content(role=USER, parts=tuple(Part(function_response=each) for each in responses))


def _addressed(message: Content, calls: Sequence[FunctionCall]) -> Content:
    """Return `message` with the ids of the waiting calls in its answers; a case lacks these ids."""
    left = list(calls)
    parts = []
    for part in _parts(message):
        answer = part.function_response
        fitting = next((call for call in left if answer and call.name == answer.name), None)
        if answer and fitting:
            left.remove(fitting)
            answer = answer.model_copy(update={"id": fitting.id})
            parts.append(part.model_copy(update={"function_response": answer}))
        else:
            parts.append(part)
    return message.model_copy(update={"parts": tuple(parts)}) if calls else message
