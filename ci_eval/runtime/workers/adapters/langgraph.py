"""Lets `worker.py` hold conversations with a graph of LangGraph.

`worker.py` runs this file by its path, under the interpreter of the graph, and imports nothing of
ci-eval, as it does itself.  It needs langgraph 1.0 or later.
"""

from __future__ import annotations

import runpy
from base64 import b64decode, b64encode
from contextvars import ContextVar
from os.path import dirname, join
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci_eval.runtime.workers.adapters import _holding as holding
    from ci_eval.runtime.workers.adapters import _langgraph_run as running
    from ci_eval.runtime.workers.adapters import _telling as telling
else:
    from types import SimpleNamespace

    def _beside(name: str) -> Any:
        return SimpleNamespace(**runpy.run_path(join(dirname(__file__), name)))

    holding, telling = _beside("_holding.py"), _beside("_telling.py")
    running = _beside("_langgraph_run.py")

INTERRUPT = "interrupt"
"""The call that a graph which was interrupted waits for."""

_mocks: ContextVar[Any] = ContextVar("_mocks", default=None)
"""The canned results of the conversation that the current task or thread belongs to."""


def adapted(
    target: str, options: dict[str, Any], load: Callable[[str], Any]
) -> holding.Conversations:
    """Return what holds conversations with the graph `target`.

    Raises:
        ModuleNotFoundError: there is no LangGraph.
        TypeError: the target is no graph.

    """
    telling.require("langgraph", least=(1, 0))
    _can_tools()

    def made_of(found: Any) -> Any:
        return _compiled(found, options["input"])

    graph = holding.Target(load(target), made_of, "a graph of LangGraph, compiled or not")
    return holding.Conversations(
        graph, lambda graph, session: _Conversation(graph, session, options)
    )


def _compiled(found: Any, message: str) -> Any:
    """Return the graph, compiled, or `None`; `message` is the key that the message belongs to.

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
        there = ", ".join(keys)
        found = f"the state of the graph has no {message!r}, only {there}"
        raise TypeError(f"{found}; say with `input` where the user's message belongs")
    return compiled


class _Conversation:
    """One thread of a graph."""

    def __init__(self, graph: Any, session: dict[str, Any], options: dict[str, Any]) -> None:
        """Begin a thread, or go on with that of the session's memento."""
        self._session = session
        self._input, self._output = options["input"], options["output"] or options["input"]
        self._keys = set(graph.builder.channels)
        # Without one, a graph keeps nothing from one message to the next.
        self._graph = graph if graph.checkpointer else graph.copy({"checkpointer": _saver()})
        self._in_memory = isinstance(self._graph.checkpointer, type(_saver()))
        self._mocks = telling.Mocks(session)
        memento = session.get("memento") or {}
        # A thread of its own: a store may outlive the run, and repeats may share their session.
        thread = memento.get("thread") or f"{session['id']}-{uuid4().hex[:8]}"
        self._config = _config(options["config"], thread, session["user_id"])
        self._begun = bool(memento)
        for kept in memento.get("checkpoints", ()):
            _restore(self._graph.checkpointer, thread, kept)
        self._calls = set(memento.get("calls", ()))

    async def send(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return what the graph does on `message`."""
        before = await self._graph.aget_state(self._config)
        run = running.Run(self._calls, before.values)
        given = self._given(message, before)
        token = _mocks.set(self._mocks)
        is_done = False
        try:
            with self._mocks:
                await run.follow(self._graph, given, self._config)
                is_done = True
        finally:
            _mocks.reset(token)
        snapshot = await self._graph.aget_state(self._config)
        self._session["state"] = self._state(snapshot.values)
        if not is_done:
            return {"invocation": run.told(), **self._mocks.told}
        waits = _waits(snapshot)
        said = run.said if waits else self._spoken(run, snapshot.values)
        final = telling.spoken(said) if said else None
        invocation = {**run.told(run.said), "final_response": final, "waits_for": waits}
        return {"invocation": invocation, "memento": self._memento(), **self._mocks.told}

    def close(self) -> None:
        """Forget the thread, where it is only kept in memory."""
        if self._in_memory:
            self._graph.checkpointer.delete_thread(self._thread)

    @property
    def _thread(self) -> str:
        thread: str = self._config["configurable"]["thread_id"]
        return thread

    def _given(self, message: dict[str, Any], before: Any) -> Any:
        """Return what the graph is invoked with, which has come to `before`."""
        from langchain_core.messages import HumanMessage
        from langgraph.types import Command

        answers = holding.answers_of(message)
        if answers:
            waits = {call["id"] for call in _waits(before)}
            # A breakpoint waits for nothing but to be passed.
            known = {key: answers[key] for key in waits & answers.keys() if key != INTERRUPT}
            return Command(resume=known) if known else None
        text = holding.said_in(message)
        said = [HumanMessage(text)] if self._input == "messages" else text
        state = {} if self._begun else self._session.get("state") or {}
        self._begun = True
        values = {key: value for key, value in state.items() if key in self._keys}
        return {**values, self._input: said}

    def _spoken(self, run: running.Run, values: dict[str, Any]) -> str | None:
        if self._output == "messages":
            return run.said
        found = values.get(self._output)
        return None if found is None else running.in_words(found)

    def _state(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return what JSON can hold of the state, which messages are no part of."""
        kept = {name: value for name, value in values.items() if name != "messages"}
        kept = {name: telling.as_json(value) for name, value in kept.items()}
        return {**(self._session.get("state") or {}), **kept}

    def _memento(self) -> dict[str, Any]:
        """Return what the thread has come to, or only its name where a store has the rest."""
        if not self._in_memory:
            return {"thread": self._thread, "calls": sorted(self._calls)}
        kept = _checkpoints(self._graph.checkpointer, self._thread)
        return {"checkpoints": kept, "calls": sorted(self._calls)}


def _config(configured: dict[str, Any], thread: str, user: str) -> dict[str, Any]:
    """Return with what a graph is invoked in `thread`."""
    own = configured.get("configurable", {})
    return {**configured, "configurable": {"user_id": user, **own, "thread_id": thread}}


def _waits(snapshot: Any) -> list[dict[str, Any]]:
    """Return the calls that the graph waits for: its interrupts, or a breakpoint."""
    calls: list[dict[str, Any]] = [
        {"id": each.id, "name": INTERRUPT, "args": {"value": telling.as_json(each.value)}}
        for each in snapshot.interrupts
    ]
    if not calls and snapshot.next:
        calls = [{"id": INTERRUPT, "name": INTERRUPT, "args": {"before": list(snapshot.next)}}]
    return calls


# --- Threads that are kept in memory ----------------------------------------------------------


def _saver() -> Any:
    from langgraph.checkpoint.memory import InMemorySaver

    return InMemorySaver()


def _checkpoints(saver: Any, thread: str) -> list[list[str]]:
    """Return the last checkpoint of each graph in `thread`, as LangGraph writes them."""
    found: dict[str, Any] = {}
    for each in saver.list({"configurable": {"thread_id": thread}}):
        space = each.config["configurable"]["checkpoint_ns"]
        found.setdefault(space, (each.checkpoint, each.metadata, each.pending_writes))
    written = {space: saver.serde.dumps_typed(kept) for space, kept in found.items()}
    return [
        [space, kind, b64encode(data).decode("ascii")] for space, (kind, data) in written.items()
    ]


def _restore(saver: Any, thread: str, kept: list[str]) -> None:
    """Put a checkpoint back that `_checkpoints` returned."""
    space, kind, data = kept
    checkpoint, metadata, writes = saver.serde.loads_typed((kind, b64decode(data)))
    config = {"configurable": {"thread_id": thread, "checkpoint_ns": space}}
    at = saver.put(config, checkpoint, metadata, checkpoint["channel_versions"])
    for task, channel, value in writes or ():
        saver.put_writes(at, [(channel, value)], task)


# --- Tools that are not really called ---------------------------------------------------------


def _can_tools() -> None:
    """Let every tool look for a canned result before it runs, in whatever node it is called."""
    from langchain_core.tools import BaseTool

    run, arun = BaseTool.run, BaseTool.arun

    def canned_run(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        stand_in = _stand_in(self, tool_input)
        return run(stand_in or self, tool_input, *args, **kwargs)

    async def canned_arun(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        stand_in = _stand_in(self, tool_input)
        return await arun(stand_in or self, tool_input, *args, **kwargs)

    BaseTool.run, BaseTool.arun = canned_run, canned_arun


def _stand_in(tool: Any, tool_input: Any) -> Any:
    """Return a tool that looks like `tool` and has the canned answer; `None` where there is none.

    LangChain runs it as any other: it checks the arguments, handles the error, calls back.
    """
    mocks = _mocks.get()
    if not mocks:
        return None
    args = tool_input if isinstance(tool_input, dict) else {"input": tool_input}
    # What LangGraph puts in itself, such as the state, is no argument of the call.
    given = mocks.find(tool.name, {name: args[name] for name in args if name in tool.args})
    return None if given is None else _Stand.of(tool, given)


class _Stand:
    """Makes tools that answer what they are told to."""

    @staticmethod
    def of(tool: Any, given: Any) -> Any:
        from langchain_core.tools import BaseTool, ToolException

        class Stand(BaseTool):  # type: ignore[misc]  # LangChain is not installed here
            def _run(self, *_args: Any, **_kwargs: Any) -> Any:
                if given.error is not None:
                    raise ToolException(given.error)
                return given.result

        return Stand(
            name=tool.name,
            description=tool.description,
            args_schema=tool.args_schema,
            handle_tool_error=tool.handle_tool_error,
            handle_validation_error=tool.handle_validation_error,
        )
