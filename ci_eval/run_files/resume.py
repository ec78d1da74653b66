"""Resuming a run: which invocations are reused and which run again.

The rules are those of ADK 2.13.0 for resuming a node of a workflow (its `check_interception`);
`decide` depends only on the records.  Here a node is an invocation, which waits for a human's
answers.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from ci_eval.records.cases import Content, FunctionCall, Invocation, Json, Stored
from ci_eval.text.json_text import json_or_text


class Answered(Stored):
    """A call with its external answer."""

    call: FunctionCall
    response: dict[str, Json]
    """The answer that the agent got."""


class Begun(Stored):
    """The progress of an unfinished conversation."""

    invocations: tuple[Invocation, ...]
    """All invocations so far; the last one may wait for answers."""
    memento: Json = None
    """State to continue from; `None` if the agent has to start over."""
    answered: tuple[Answered, ...] = ()
    """The human's answers so far, in order."""


# --- Decision table ---------------------------------------------------------------------------


class Node(NamedTuple):
    """A node that is about to run."""

    rerun_on_resume: bool = False
    """Whether it continues with the answers it waited for; otherwise they are its output."""
    wait_for_output: bool = False
    """Whether it is only done once it has an output."""
    is_workflow: bool = False
    """Whether it only contains other nodes, which are decided one by one."""


class Recovered(NamedTuple):
    """The record of a node from an earlier run."""

    output: Content | Json = None
    route: Json = None
    """The route it chose."""
    transfer_to_agent: str | None = None
    """The agent it transferred to."""
    interrupts: frozenset[str] = frozenset()
    """The ids of all calls at which it stopped."""
    responses: Mapping[str, Json] = {}
    """The answers to these calls, by id."""
    failed: bool = False
    """Whether it ended in an error."""
    finished: bool = False
    """Whether it finished after the last answer."""


class Ran(NamedTuple):
    """The state of a node in this run."""

    status: Literal["running", "waiting", "completed", "failed"]
    output: Json = None
    route: Json = None
    transfer_to_agent: str | None = None
    interrupts: frozenset[str] = frozenset()
    is_static: bool = False
    """Whether it is a fixed part of a graph, for which only the earlier run counts."""


class Decision(NamedTuple):
    """Whether a node runs, and with what; otherwise its recorded outcome."""

    should_run: bool
    output: Json = None
    """Its output, if it does not run."""
    route: Json = None
    interrupts: frozenset[str] = frozenset()
    """The calls that it still waits for."""
    resume_inputs: Mapping[str, Json] | None = None
    """The answers that it runs with, by call id."""
    transfer_to_agent: str | None = None


def decide(node: Node, recovered: Recovered | None = None, ran: Ran | None = None) -> Decision:
    """Decide whether `node` runs; if not, return its outcome."""
    if ran and not ran.is_static:
        if ran.status == "completed":
            found = Decision(should_run=False, output=ran.output, route=ran.route)
            return found._replace(transfer_to_agent=ran.transfer_to_agent)
        if ran.status == "failed":
            # The record is older than the failure, so only the answers are used.
            return _run_again(recovered)
        if ran.status == "waiting" and ran.interrupts:
            return Decision(should_run=False, interrupts=ran.interrupts)
    if recovered is None:
        return Decision(should_run=True)
    if node.is_workflow:
        return _run_again(recovered)
    found = _decide(node, recovered, is_dynamic=ran is not None and not ran.is_static)
    return found._replace(transfer_to_agent=recovered.transfer_to_agent)


def _decide(node: Node, recovered: Recovered, *, is_dynamic: bool) -> Decision:
    open_calls = recovered.interrupts - recovered.responses.keys()
    if open_calls:
        continues = node.rerun_on_resume and recovered.responses
        waits = Decision(should_run=False, interrupts=open_calls)
        return _run_again(recovered) if continues else waits
    if recovered.failed:
        return _run_again(recovered)
    outcome = (recovered.output, recovered.route, recovered.transfer_to_agent)
    if any(each is not None for each in outcome):
        output = output_of(recovered.output)
        return Decision(should_run=False, output=output, route=recovered.route)
    if recovered.interrupts and not node.rerun_on_resume:
        answers = recovered.responses
        only = next(iter(answers.values())) if len(answers) == 1 else dict(answers)
        return Decision(should_run=False, output=only)
    if node.wait_for_output or (node.rerun_on_resume and not recovered.finished):
        return _run_again(recovered)
    # A static node without an outcome is done; a dynamic one was interrupted.
    return Decision(should_run=is_dynamic and not node.rerun_on_resume)


def _run_again(recovered: Recovered | None) -> Decision:
    return Decision(should_run=True, resume_inputs=recovered.responses if recovered else None)


def output_of(recorded: Content | Json) -> Json:
    """Return a recorded output; for a message, its text without thoughts, or `None` if empty."""
    if not isinstance(recorded, Content):
        return recorded
    texts = (part.text or "" for part in recorded.parts or () if not part.thought)
    return "".join(texts).strip() or None


def unwrapped(response: Mapping[str, Json]) -> Json:
    """Return a human's answer: the value of `result` if that is the only key, parsed if JSON."""
    if response.keys() != {"result"}:
        return dict(response)
    value = response["result"]
    return json_or_text(value) if isinstance(value, str) else value


# --- Invocations ------------------------------------------------------------------------------


def recovered(invocation: Invocation, responses: Mapping[str, Mapping[str, Json]]) -> Recovered:
    """Return the record of an invocation; `responses` answer its open calls, by id.

    The message with which an agent stops to wait is not yet the output of the invocation.
    """
    waits = bool(invocation.waits_for)
    return Recovered(
        output=None if waits else invocation.final_response,
        interrupts=frozenset(ids(invocation.waits_for)),
        responses={name: unwrapped(each) for name, each in responses.items()},
        finished=not waits,
    )


def ids(calls: tuple[FunctionCall, ...]) -> list[str]:
    """Return the ids of open calls; generates ids if the agent gives none."""
    return [call.id or f"call-{number}" for number, call in enumerate(calls, 1)]
