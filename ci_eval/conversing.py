"""One conversation: what the user says next, what a human answers, and what the agent does."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from ci_eval.dialogue import USER, as_response
from ci_eval.errors import TrialError
from ci_eval.plugins import Session
from ci_eval.records import (
    CannedResults,
    Content,
    EvalCase,
    FunctionCall,
    FunctionResponse,
    IntermediateData,
    Invocation,
    InvocationEvent,
    InvocationEvents,
    Json,
    Part,
)
from ci_eval.trials import Trial
from ci_eval.workers.canned import Canned, Given

MAX_ANSWERS = 25
"""How often in one invocation an agent may stop to be answered."""
CONFIRMATION = "adk_request_confirmation"
"""The call with which ADK asks whether a tool may be called, which it names in its arguments."""


class User(Protocol):
    """Who talks to the agent."""

    async def next_message(self, so_far: Sequence[Invocation]) -> Content | None:
        """Return what the user says after `so_far`; `None` where there is nothing left to say.

        Raises:
            TrialError: nobody knows what the user would say.

        """


Users = Callable[[Trial], User]
"""Makes the user of a trial."""


class Scripted:
    """A user who says what the case has written down, whatever the agent does."""

    def __init__(self, trial: Trial) -> None:
        if trial.case.conversation is None:
            message = "a scenario needs a simulated user; it can only be scored from a recording"
            raise TrialError("unsupported", message)
        self._turns = trial.case.conversation

    async def next_message(self, so_far: Sequence[Invocation]) -> Content | None:
        """Return the message of the next invocation of the case."""
        if len(so_far) == len(self._turns):
            return None
        message = self._turns[len(so_far)].user_content
        return _addressed(message, so_far[-1].waits_for) if so_far else message


async def converse(session: Session, case: EvalCase, user: User, seen: list[Invocation]) -> None:
    """Hold the conversation until the user has nothing left to say, adding to `seen`.

    Raises:
        TrialError: the agent could not be observed, or waits for an answer that nobody gives.

    """
    human = Canned(_plain(case.human_answers))
    while (message := await user.next_message(seen)) is not None:
        _refuse_waiting(seen, message)
        seen.append(await _invocation(session, message, human))
    _refuse_waiting(seen, None)


async def _invocation(session: Session, message: Content, human: Canned) -> Invocation:
    """Return what the agent does on `message`, with what it does on a human's answers."""
    found = await session.send(message)
    for _ in range(MAX_ANSWERS):
        answer = _answer(found.waits_for, human)
        if answer is None:
            return found
        try:
            found = joined(found, answer, await session.send(answer))
        except TrialError as exc:
            exc.seen = joined(found, answer, exc.seen) if exc.seen else found
            raise
    message_ = f"the agent stopped to be answered more than {MAX_ANSWERS} times in one invocation"
    raise TrialError("waiting", message_, seen=found)


def _refuse_waiting(seen: Sequence[Invocation], message: Content | None) -> None:
    """Refuse to go on with an agent that waits for something else than `message`."""
    answered = {part.function_response.id for part in _parts(message) if part.function_response}
    waiting = [call for call in (seen[-1].waits_for if seen else ()) if call.id not in answered]
    if waiting:
        asked = ", ".join(f"{call.name}({_shown(call.args)})" for call in waiting)
        message_ = f"the agent waits for an answer to {asked}"
        raise TrialError("waiting", f"{message_}; `human_answers` of the case give none")


def _shown(args: dict[str, Json] | None) -> str:
    text = ", ".join(f"{name}={value!r}" for name, value in (args or {}).items())
    return text if len(text) <= 200 else text[:200] + "…"


def _parts(content: Content | None) -> tuple[Part, ...]:
    return (content.parts if content else None) or ()


# --- Answers ----------------------------------------------------------------------------------


def _plain(canned: CannedResults) -> dict[str, list[dict[str, Json]]]:
    """Return canned results as `Canned` takes them."""
    return {
        name: [each.model_dump(mode="json", exclude_unset=True) for each in entries]
        for name, entries in canned.items()
    }


def _answer(calls: Sequence[FunctionCall], human: Canned) -> Content | None:
    """Return the message that answers all of `calls`; `None` where there are none, or too few."""
    parts = []
    for call in calls:
        given = _given(call, human)
        if given is None:
            return None
        response = {"error": given.error} if given.error is not None else _response(call, given)
        answer = FunctionResponse(id=call.id, name=call.name, response=response)
        parts.append(Part(function_response=answer))
    return Content(role=USER, parts=tuple(parts)) if parts else None


def _given(call: FunctionCall, human: Canned) -> Given | None:
    found = human.find(call.name or "", call.args or {})
    if found is None and call.name == CONFIRMATION:
        meant = (call.args or {}).get("originalFunctionCall") or {}
        found = human.find(meant.get("name") or "", meant.get("args") or {})
    return found


def _response(call: FunctionCall, given: Given) -> dict[str, Json]:
    if call.name == CONFIRMATION and isinstance(given.result, bool):
        return {"confirmed": given.result}
    return as_response(given.result)


def _addressed(message: Content, calls: Sequence[FunctionCall]) -> Content:
    """Return `message` with the ids of the waiting calls in its answers, which cannot know them."""
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


def joined(first: Invocation, answer: Content, then: Invocation) -> Invocation:
    """Return one invocation of what an agent did before and after it was answered."""
    events = (
        *_events(first),
        *_spoken(first),
        InvocationEvent(author=USER, content=answer),
        *_events(then),
    )
    return then.model_copy(
        update={
            "invocation_id": first.invocation_id,
            "user_content": first.user_content,
            "creation_timestamp": first.creation_timestamp,
            "intermediate_data": InvocationEvents(invocation_events=events),
            "app_details": first.app_details or then.app_details,
            "nodes": (first.nodes or ()) + (then.nodes or ()) or None,
            **{name: _sum(first, then, name) for name in _SUMMED},
        }
    )


_SUMMED = ("duration", "model_duration", "tool_duration", "cost_usd")


def _sum(first: Invocation, then: Invocation, name: str) -> float | None:
    known = [each for each in (getattr(first, name), getattr(then, name)) if each is not None]
    return sum(known) if known else None


def _events(invocation: Invocation) -> Iterator[InvocationEvent]:
    """Yield what happened before the final response, as events whatever it was kept as."""
    data = invocation.intermediate_data
    if not isinstance(data, IntermediateData):
        yield from invocation.events or ()
        return
    calls = tuple(Part(function_call=call) for call in data.tool_uses)
    if calls:
        yield InvocationEvent(author="agent", content=Content(role="model", parts=calls))
    answers = tuple(Part(function_response=each) for each in data.tool_responses)
    if answers:
        yield InvocationEvent(author="agent", content=Content(role=USER, parts=answers))
    for author, parts in data.intermediate_responses:
        yield InvocationEvent(author=author, content=Content(role="model", parts=parts))


def _spoken(invocation: Invocation) -> Iterator[InvocationEvent]:
    """Yield what was said when the agent stopped, without the calls that are events already."""
    said = tuple(part for part in _parts(invocation.final_response) if part.text)
    if said:
        yield InvocationEvent(author="agent", content=Content(role="model", parts=said))
