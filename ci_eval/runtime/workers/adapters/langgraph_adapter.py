"""Adapter for graphs of LangGraph.

`worker.py` runs this file under the interpreter of the graph.  It imports nothing from
ci-eval, and needs langgraph 1.0 or later.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from contextvars import ContextVar
from functools import partial
from typing import Any
from uuid import uuid4

from . import _adapter_conversations as conversations
from . import _adapter_reporting as reporting
from . import _langgraph_adapter_run as running
from ._adapter_conversations import Load

INTERRUPT = "interrupt"
"""The name of the pending call of an interrupted graph."""

_mocks: ContextVar[Any] = ContextVar("_mocks", default=None)
"""The canned results of the current task's or thread's conversation."""


def adapted(target: str, options: dict[str, Any], load: Load) -> conversations.Conversations:
    """Return the conversations with the graph `target`.

    Raises:
        ModuleNotFoundError: LangGraph is not installed.
        TypeError: the target is not a graph.

    """
    reporting.require("langgraph", least=(1, 0))
    _patch_tools()

    compiled = partial(_compiled, message=options["input"])
    found = conversations.Target(load(target), compiled, "a graph of LangGraph, compiled or not")
    return conversations.Conversations(found, partial(_Conversation, options=options))


def _compiled(found: Any, message: str) -> Any:
    """Return the compiled graph, or `None`; `message` is the state key for the user's message.

    Raises:
        TypeError: the state of the graph has no such key.

    """
    from langgraph.graph import StateGraph
    from langgraph.graph.state import CompiledStateGraph

    compiled = found.compile() if isinstance(found, StateGraph) else found
    if not isinstance(compiled, CompiledStateGraph):
        return None
    keys = sorted(compiled.builder.channels)
    if message not in keys:
        known = ", ".join(keys)
        found = f"the state of the graph has no key {message!r}, only {known}"
        raise TypeError(f"{found}; set `input` to the key for the user's message")
    return compiled


class _Conversation:
    """One thread of a graph."""

    def __init__(self, graph: Any, session: dict[str, Any], options: dict[str, Any]) -> None:
        """Begin a thread, or continue that of the session's memento."""
        self._session = session
        self._input, self._output = options["input"], options["output"] or options["input"]
        self._keys = set(graph.builder.channels)
        # Without a checkpointer, a graph keeps no state between messages.
        self._graph = graph if graph.checkpointer else graph.copy({"checkpointer": _saver()})
        self._in_memory = isinstance(self._graph.checkpointer, type(_saver()))
        self._mocks = reporting.Mocks(session)
        memento = session.get("memento") or {}
        # A unique thread: a store may outlive the run, and repeats may share a session id.
        self._thread = memento.get("thread") or f"{session['id']}-{uuid4().hex[:8]}"
        self._config = _config(options["config"], self._thread, session["user_id"])
        self._begun = bool(memento)
        for kept in memento.get("checkpoints", ()):
            _restore(self._graph.checkpointer, self._thread, kept)
        self._calls = set(memento.get("calls", ()))

    async def send(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send `message`, and return the graph's reply."""
        before = await self._graph.aget_state(self._config)
        run = running.Run(self._mocks, self._calls, before.values)
        given = self._given(message, before)
        _mocks.set(self._mocks)
        is_done = False
        with self._mocks:
            await run.follow(self._graph, given, self._config)
            is_done = True
        snapshot = await self._graph.aget_state(self._config)
        self._session["state"] = self._state(snapshot.values)
        if not is_done:
            return run.reply()
        waits, said = _waits(snapshot), run.last_text
        if not waits and self._output != "messages":
            found = snapshot.values.get(self._output)
            said = None if found is None else running.text_of(found)
        run.ended(waits)
        return run.reply(said, run.last_text, waits=waits, memento=self._memento())

    def close(self) -> None:
        """Delete the thread, if the checkpointer is in memory."""
        if self._in_memory:
            self._graph.checkpointer.delete_thread(self._thread)

    def _given(self, message: dict[str, Any], before: Any) -> Any:
        """Return the input for the graph, whose state is `before`."""
        from langchain_core.messages import HumanMessage
        from langgraph.types import Command

        answers = conversations.answers_of(message)
        if answers:
            waits = {call["id"] for call in _waits(before)}
            # A breakpoint takes no value, only a resume.
            known = {key: answers[key] for key in waits & answers.keys() if key != INTERRUPT}
            return Command(resume=known) if known else None
        text = conversations.text_of(message)
        said = [HumanMessage(text)] if self._input == "messages" else text
        state = {} if self._begun else self._session.get("state") or {}
        self._begun = True
        values = {key: value for key, value in state.items() if key in self._keys}
        return {**values, self._input: said}

    def _state(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the state as JSON, without messages."""
        kept = {name: reporting.as_json(values[name]) for name in values if name != "messages"}
        return {**(self._session.get("state") or {}), **kept}

    def _memento(self) -> dict[str, Any]:
        """Return the thread's checkpoints, or only its name if a store has them."""
        if not self._in_memory:
            return {"thread": self._thread, "calls": sorted(self._calls)}
        kept = _checkpoints(self._graph.checkpointer, self._thread)
        return {"checkpoints": kept, "calls": sorted(self._calls)}


def _config(configured: dict[str, Any], thread: str, user: str) -> dict[str, Any]:
    """Return the graph's config for `thread`."""
    own = configured.get("configurable", {})
    return {**configured, "configurable": {"user_id": user, **own, "thread_id": thread}}


def _waits(snapshot: Any) -> list[dict[str, Any]]:
    """Return the pending calls of the graph: its interrupts, or a breakpoint."""
    calls: list[dict[str, Any]] = [
        {"id": each.id, "name": INTERRUPT, "args": {"value": reporting.as_json(each.value)}}
        for each in snapshot.interrupts
    ]
    if not calls and snapshot.next:
        calls = [{"id": INTERRUPT, "name": INTERRUPT, "args": {"before": list(snapshot.next)}}]
    return calls


# --- Threads in memory ------------------------------------------------------------------------


def _saver() -> Any:
    from langgraph.checkpoint.memory import InMemorySaver

    return InMemorySaver()


def _checkpoints(saver: Any, thread: str) -> list[list[str]]:
    """Return the last checkpoint of each graph in `thread`, serialized by LangGraph."""
    found: dict[str, Any] = {}
    for each in saver.list({"configurable": {"thread_id": thread}}):
        space = each.config["configurable"]["checkpoint_ns"]
        found.setdefault(space, (each.checkpoint, each.metadata, each.pending_writes))
    written = [(space, *saver.serde.dumps_typed(kept)) for space, kept in found.items()]
    return [[space, kind, b64encode(data).decode("ascii")] for space, kind, data in written]


def _restore(saver: Any, thread: str, kept: list[str]) -> None:
    """Restore a checkpoint returned by `_checkpoints`."""
    space, kind, data = kept
    checkpoint, metadata, writes = saver.serde.loads_typed((kind, b64decode(data)))
    config = {"configurable": {"thread_id": thread, "checkpoint_ns": space}}
    at = saver.put(config, checkpoint, metadata, checkpoint["channel_versions"])
    for task, channel, value in writes or ():
        saver.put_writes(at, [(channel, value)], task)


# --- Canned tools -----------------------------------------------------------------------------


def _patch_tools() -> None:
    """Make every tool look for a canned result before it runs, in any node."""
    from langchain_core.tools import BaseTool

    run, arun = BaseTool.run, BaseTool.arun

    def canned_run(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        return run(_canned_tool(self, tool_input), tool_input, *args, **kwargs)

    async def canned_arun(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        return await arun(_canned_tool(self, tool_input), tool_input, *args, **kwargs)

    BaseTool.run, BaseTool.arun = canned_run, canned_arun


def _canned_tool(tool: Any, tool_input: Any) -> Any:
    """Return a tool that looks like `tool` but returns the canned result, or `tool` itself.

    LangChain runs it like any other: it checks arguments, handles errors and invokes callbacks.
    """
    mocks = _mocks.get()
    if not mocks:
        return tool
    args = tool_input if isinstance(tool_input, dict) else {"input": tool_input}
    # Values injected by LangGraph, such as the state, are not arguments of the call.
    given = mocks.find(tool.name, {name: args[name] for name in args if name in tool.args})
    return tool if given is None else _with_outcome(tool, given)


def _with_outcome(tool: Any, given: Any) -> Any:
    """Return a tool like `tool` with a fixed outcome."""
    from langchain_core.tools import BaseTool, ToolException

    class Canned(BaseTool):  # type: ignore[misc]  # LangChain is not installed here
        def _run(self, *_args: Any, **_kwargs: Any) -> Any:
            if given.error is not None:
                raise ToolException(given.error)
            return given.result

    return Canned(
        name=tool.name,
        description=tool.description,
        args_schema=tool.args_schema,
        handle_tool_error=tool.handle_tool_error,
        handle_validation_error=tool.handle_validation_error,
    )
