"""What is taken as it is when a run goes on, and what runs again.

The rules are those by which a workflow of ADK 2.13.0 goes on with a node (its
`check_interception`): `decide` knows nothing but what was recorded.  Here an invocation is what
runs, and a human's answers are what it waits for.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Literal, NamedTuple

from ci_eval.records.model import Content, FunctionCall, Invocation, Json, Stored
from ci_eval.text.json_text import NotJsonError, parse_json


class Answered(Stored):
    """A call that somebody outside has answered."""

    call: FunctionCall
    response: dict[str, Json]
    """What the agent was sent."""


class Begun(Stored):
    """How far a conversation had come."""

    invocations: tuple[Invocation, ...]
    """All so far; the last one may wait for answers."""
    memento: Json = None
    """What it takes to go on behind them; `None` where the agent has to begin anew."""
    answered: tuple[Answered, ...] = ()
    """What a human had to answer so far, in order."""


# --- The table --------------------------------------------------------------------------------


class Node(NamedTuple):
    """What is about to run."""

    rerun_on_resume: bool = False
    """Whether it goes on with the answers it waited for; else these are its output."""
    wait_for_output: bool = False
    """Whether it is not done before it has an output."""
    is_workflow: bool = False
    """Whether it only holds others, which are decided one by one."""


class Recovered(NamedTuple):
    """What an earlier run recorded of it."""

    output: Content | Json = None
    route: Json = None
    """The way it chose to go on."""
    transfer_to_agent: str | None = None
    """The agent that it handed over to."""
    interrupts: frozenset[str] = frozenset()
    """The ids of all calls that it stopped for."""
    responses: Mapping[str, Json] = {}
    """What these were answered, by id."""
    failed: bool = False
    """Whether it ended in an error."""
    finished: bool = False
    """Whether it came to an end since it was last answered."""


class Ran(NamedTuple):
    """What this run did of it already."""

    status: Literal["running", "waiting", "completed", "failed"]
    output: Json = None
    route: Json = None
    transfer_to_agent: str | None = None
    interrupts: frozenset[str] = frozenset()
    is_static: bool = False
    """Whether it is a fixed part of a graph, which an earlier run alone decides."""


class Decision(NamedTuple):
    """What becomes of it."""

    should_run: bool
    output: Json = None
    """What it came to, where it does not run."""
    route: Json = None
    interrupts: frozenset[str] = frozenset()
    """What it goes on to wait for."""
    resume_inputs: Mapping[str, Json] | None = None
    """The answers that it runs with, by the ids of the calls."""
    transfer_to_agent: str | None = None


def decide(node: Node, recovered: Recovered | None = None, ran: Ran | None = None) -> Decision:
    """Return whether `node` runs, and what it came to where it does not."""
    if ran and not ran.is_static:
        if ran.status == "completed":
            return Decision(
                should_run=False,
                output=ran.output,
                route=ran.route,
                transfer_to_agent=ran.transfer_to_agent,
            )
        if ran.status == "failed":
            # What was recorded is older than the failure, so only the answers count.
            return _again(recovered)
        if ran.status == "waiting" and ran.interrupts:
            return Decision(should_run=False, interrupts=ran.interrupts)
    if recovered is None:
        return Decision(should_run=True)
    if node.is_workflow:
        return _again(recovered)
    found = _decide(node, recovered, is_dynamic=ran is not None and not ran.is_static)
    return found._replace(transfer_to_agent=recovered.transfer_to_agent)


def _decide(node: Node, recovered: Recovered, *, is_dynamic: bool) -> Decision:
    came_to = (recovered.output, recovered.route, recovered.transfer_to_agent)
    open_calls = recovered.interrupts - recovered.responses.keys()
    if open_calls:
        goes_on = node.rerun_on_resume and recovered.responses
        still = Decision(should_run=False, interrupts=open_calls)
        return _again(recovered) if goes_on else still
    if recovered.failed:
        return _again(recovered)
    if any(each is not None for each in came_to):
        output = output_of(recovered.output)
        return Decision(should_run=False, output=output, route=recovered.route)
    if recovered.interrupts and not node.rerun_on_resume:
        return Decision(should_run=False, output=_answers_as_output(recovered.responses))
    if node.wait_for_output or (node.rerun_on_resume and not recovered.finished):
        return _again(recovered)
    # What has a fixed place and came to nothing is done; a part made on the way was cut off.
    return Decision(should_run=is_dynamic and not node.rerun_on_resume)


def _again(recovered: Recovered | None) -> Decision:
    return Decision(should_run=True, resume_inputs=recovered.responses if recovered else None)


def _answers_as_output(responses: Mapping[str, Json]) -> Json:
    return next(iter(responses.values())) if len(responses) == 1 else dict(responses)


def output_of(recorded: Content | Json) -> Json:
    """Return a recorded output: of a message the text without thoughts, `None` if it is empty."""
    if not isinstance(recorded, Content):
        return recorded
    texts = (part.text or "" for part in recorded.parts or () if not part.thought)
    return "".join(texts).strip() or None


def unwrapped(response: Mapping[str, Json]) -> Json:
    """Return what a human answered: what stands under `result` where that is all.

    A text there that is JSON counts as what it says.
    """
    if response.keys() != {"result"}:
        return dict(response)
    value = response["result"]
    if isinstance(value, str):
        with suppress(NotJsonError):
            return parse_json(value)
    return value


# --- Invocations ------------------------------------------------------------------------------


def recovered(invocation: Invocation, responses: Mapping[str, Mapping[str, Json]]) -> Recovered:
    """Return what is known of an invocation, whose open calls `responses` answer, by id.

    What an agent says when it stops is not yet what the invocation comes to.
    """
    waits = bool(invocation.waits_for)
    return Recovered(
        output=None if waits else invocation.final_response,
        interrupts=frozenset(ids(invocation.waits_for)),
        responses={name: unwrapped(each) for name, each in responses.items()},
        finished=not waits,
    )


def ids(calls: tuple[FunctionCall, ...]) -> list[str]:
    """Return what open calls are told apart by, even where the agent gives no ids."""
    return [call.id or f"call-{number}" for number, call in enumerate(calls, 1)]
