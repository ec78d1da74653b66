"""Adapter for graphs of AgentFlow (10xGraph).

`worker.py` runs this file under the interpreter of the graph.  It imports nothing from
ci-eval, and needs 10xscale-agentflow 0.10 or 10xgraph.

AgentFlow's own collector uses callbacks in a container that the whole process shares.  With
concurrent conversations it mixes up or loses events; it never sees tool nodes or tools that raise,
and gets no text from plain functions.  So this adapter makes each node report its result, when it
ends, to the run of the current task.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any
from uuid import uuid4

from . import _adapter_conversations as conversations
from . import _adapter_reporting as reporting
from ._adapter_conversations import Load

INTERRUPT = "interrupt"
"""The name of the pending call of an interrupted graph."""

_current: ContextVar[Any] = ContextVar("_current", default=None)
"""The run of the current task."""


def adapted(target: str, options: dict[str, Any], load: Load) -> conversations.Conversations:
    """Return the conversations with the graph `target`.

    Raises:
        ModuleNotFoundError: AgentFlow is not installed.
        TypeError: the target is not a graph.

    """
    reporting.require("10xscale-agentflow", "10xgraph")
    _patch_nodes_and_tools()
    found = conversations.Target(load(target), _compiled, "a graph of AgentFlow, compiled or not")
    return conversations.Conversations(found, partial(_Conversation, options=options))


def _compiled(found: Any) -> Any:
    from agentflow.core.graph import CompiledGraph, StateGraph

    compiled = found.compile() if isinstance(found, StateGraph) else found
    return compiled if isinstance(compiled, CompiledGraph) else None


class _Conversation:
    """One thread of a graph."""

    def __init__(self, graph: Any, session: dict[str, Any], options: dict[str, Any]) -> None:
        self._graph = graph
        self._session = session
        self._mocks = reporting.Mocks(session)
        memento = session.get("memento") or {}
        # A unique thread: a store may outlive the run, and repeats may share a session id.
        thread = memento.get("thread") or f"{session['id']}-{uuid4().hex[:8]}"
        own = {"user_id": session["user_id"], "thread_id": thread}
        self._config = {**options["config"], **session.get("config", {}), **own}
        self._kept: dict[str, Any] | None = memento.get("state")
        self._begun = bool(memento)
        self._waits: list[dict[str, Any]] = memento.get("waits", [])
        self._names: dict[str, str] = memento.get("names", {})

    async def send(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send `message`, and return the graph's reply."""
        from agentflow.utils import ResponseGranularity

        await self._restore()
        given = self._given(message)
        run = _Run(self._mocks, self._names)
        _current.set(run)
        result = None
        with self._mocks:
            config = dict(self._config)
            result = await self._graph.ainvoke(given, config, ResponseGranularity.FULL)
        if result is None:
            return run.reply()
        state = result["state"]
        self._session["state"] = self._state(state)
        self._waits = _waits(state)
        memento = self._memento(state)
        run.ended(self._waits)
        return run.reply(run.last_text, run.last_text, waits=self._waits, memento=memento)

    def close(self) -> None:
        """Remove the thread from the graph's checkpointer, if it is in memory."""
        if self._in_memory:
            cleanup = asyncio.ensure_future(self._checkpointer.aclean_thread(self._config))
            _cleanups.add(cleanup)
            cleanup.add_done_callback(_cleanups.discard)

    @property
    def _checkpointer(self) -> Any:
        return self._graph._checkpointer  # noqa: SLF001  # no public name

    @property
    def _in_memory(self) -> bool:
        from agentflow.storage.checkpointer import InMemoryCheckpointer

        return isinstance(self._checkpointer, InMemoryCheckpointer)

    def _given(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the input for the graph."""
        from agentflow.core.state import Message

        answers = conversations.answers_of(message)
        if not answers:
            given = {"messages": [Message.text_message(conversations.text_of(message))]}
            state = {} if self._begun else self._session.get("state") or {}
            self._begun = True
            return {**given, "state": state} if state else given
        if any(each["name"] == INTERRUPT for each in self._waits):
            # At a breakpoint, the graph waits for no value, only to be resumed.
            is_asking = any("value" in each["args"] for each in self._waits)
            return {"resume": next(iter(answers.values()))} if is_asking else {}
        return {"messages": [_result(key, answer) for key, answer in answers.items()]}

    def _state(self, state: Any) -> dict[str, Any]:
        own = {"context", "context_summary", "execution_meta"}
        found = reporting.as_json(state.model_dump(exclude=own))
        return {**(self._session.get("state") or {}), **found}

    def _memento(self, state: Any) -> dict[str, Any]:
        """Return the state, or only the thread's name if a store has the state."""
        known = {"waits": self._waits, "names": self._names}
        if not self._in_memory:
            return {**known, "thread": self._config["thread_id"]}
        return {**known, "state": reporting.as_json(state.model_dump())}

    async def _restore(self) -> None:
        """Restore the state of a memento."""
        if self._kept is not None:
            state = type(self._graph._state).model_validate(self._kept)  # noqa: SLF001  # no public name
            await self._checkpointer.aput_state(self._config, state)
            self._kept = None


_cleanups: set[Any] = set()
"""Running cleanup tasks; the event loop itself only keeps weak references to tasks."""


def _result(call_id: str, answer: Any) -> Any:
    """Return the message with the answer to a tool call."""
    from agentflow.core.state import Message, ToolResultBlock

    block = ToolResultBlock(call_id=call_id, output=reporting.as_text(answer))
    return Message.tool_message([block])


def _waits(state: Any) -> list[dict[str, Any]]:
    """Return the pending calls of the graph: an interrupt, a breakpoint, or remote tools."""
    from agentflow.utils.interrupt import pending_interrupt

    if not state.is_interrupted():
        return []
    pending = pending_interrupt(state)
    if pending is not None:
        args = {"value": reporting.as_json(pending.value)}
        args.update({"message": pending.message} if pending.message else {})
        return [{"id": pending.id, "name": INTERRUPT, "args": args}]
    blocks = [block for each in state.context[-8:] for block in each.content]
    remote = [each for each in blocks if each.type == "remote_tool_call"]
    if remote:
        return [reporting.call(each.id, each.name, each.args) for each in remote]
    node = state.execution_meta.interrupted_node
    return [{"id": INTERRUPT, "name": INTERRUPT, "args": {"node": node}}]


# --- A run ------------------------------------------------------------------------------------


class _Run(reporting.Observations):
    """Observations of one message."""

    def __init__(self, mocks: reporting.Mocks, names: dict[str, str]) -> None:
        """Store the tools' names by the ids of the calls so far, which the run extends."""
        super().__init__(mocks)
        self.nodes: list[str] = []
        self.last_text: str | None = None
        """The text of the last message, if it calls no tool."""
        self._names = names

    async def note(self, node: str, agent: Any, result: Any) -> None:
        """Record that `node` has ended, with the messages of its result."""
        self.nodes.append(node)
        if hasattr(agent, "system_prompt"):
            self.agents[node] = await _details(node, agent)
        messages = result.get("messages") if isinstance(result, dict) else result
        for message in messages if isinstance(messages, list) else ():
            if getattr(message, "role", "") == "assistant":
                self._note_answer(node, message)
            elif getattr(message, "role", "") == "tool":
                self._note_results(node, message)

    def _note_answer(self, node: str, message: Any) -> None:
        calls = [_call(each) for each in message.tools_calls or ()]
        self._names.update({each["id"]: each["name"] for each in calls})
        blocks = [each for each in message.content if each.type == "reasoning"]
        text = "".join(each.text for each in message.content if each.type == "text")
        event = reporting.event(
            node,
            text=text,
            thought=message.reasoning or "\n".join(each.summary for each in blocks),
            calls=calls,
            usage=message.usages and _tokens(message.usages),
            model=message.metadata.get("model"),
            finish=message.metadata.get("finish_reason"),
        )
        self.events.append(event)
        self.last_text = None if calls else text

    def _note_results(self, node: str, message: Any) -> None:
        for block in message.content:
            if block.type == "tool_result":
                name = self._names.get(block.call_id) or message.metadata.get("function_name")
                output = _plain(block.output)
                result = {"error": output} if block.is_error else output
                self.events.append(reporting.answered(node, block.call_id, name, result))


def _call(given: dict[str, Any]) -> dict[str, Any]:
    """Return a tool call of a message in OpenAI's format."""
    function = given.get("function") or given
    return reporting.call(given.get("id"), function.get("name"), function.get("arguments"))


def _tokens(used: Any) -> dict[str, Any] | None:
    return reporting.tokens(
        prompt=used.prompt_tokens,
        output=used.completion_tokens,
        reasoning=used.reasoning_tokens,
        cached=used.cache_read_input_tokens,
    )


def _plain(output: Any) -> Any:
    """Return a tool's result; AgentFlow wraps results in lists and values in objects."""
    found = reporting.as_json(output)
    if isinstance(found, list) and all(isinstance(each, dict) for each in found):
        values = [each["content"] if each.keys() == {"content"} else each for each in found]
        return values[0] if len(found) == 1 and values == found else values
    return found


async def _details(node: str, agent: Any) -> dict[str, Any]:
    """Return the instructions and tools of an agent."""
    prompt = [str(each.get("content") or "") for each in agent.system_prompt]
    tools = getattr(agent, "_tool_node", None)
    declared = await tools.all_tools(tags=agent.tools_tags) if tools else []
    functions = [each.get("function") or each for each in declared]
    return {
        "name": node,
        "instructions": "\n".join(filter(None, prompt)),
        "tool_declarations": [
            reporting.declaration(each.get("name"), each.get("description"), each.get("parameters"))
            for each in functions
        ],
    }


# --- Patches of AgentFlow ---------------------------------------------------------------------


def _patch_nodes_and_tools() -> None:
    """Make nodes report their results, and tools use canned results."""
    from agentflow.core.graph import ToolNode
    from agentflow.core.graph.base_agent import BaseAgent
    from agentflow.core.graph.node import Node

    execute, invoke = Node.execute, ToolNode.invoke

    async def observed_execute(self: Any, *args: Any, **kwargs: Any) -> Any:
        run = _current.get()
        if run is None:
            return await execute(self, *args, **kwargs)
        with run.watch.during("model") if isinstance(self.func, BaseAgent) else nullcontext():
            result = await execute(self, *args, **kwargs)
        await run.note(self.name, self.func, result)
        return result

    async def canned_invoke(self: Any, name: str, args: Any, *more: Any, **named: Any) -> Any:
        run = _current.get()
        if run is None:
            return await invoke(self, name, args, *more, **named)
        given = run.mocks.find(name, args)
        if given is not None:
            return _canned(self, given, named.get("tool_call_id") or (*more, "")[0])
        with run.watch.during("tool"):
            return await invoke(self, name, args, *more, **named)

    Node.execute, ToolNode.invoke = observed_execute, canned_invoke


def _canned(tools: Any, given: Any, call_id: str) -> Any:
    """Return the message of a tool with a canned result or error."""
    from agentflow.core.state import Message, ToolResultBlock

    if given.error is not None:
        failed = {"call_id": call_id, "output": given.error, "is_error": True, "status": "failed"}
        return Message.tool_message([ToolResultBlock(**failed)])
    blocks = tools._build_internal_result_blocks(given.result, call_id)  # noqa: SLF001  # as for its own tools
    return Message.tool_message(blocks)
