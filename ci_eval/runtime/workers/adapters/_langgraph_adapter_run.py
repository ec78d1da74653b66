"""Observing a LangGraph graph on one message; run by `langgraph_adapter.py`.

The messages that nodes put into the state become events; everything else about models and tools,
such as token usage, comes from LangChain's callbacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _adapter_reporting as reporting

if TYPE_CHECKING:
    from collections.abc import Iterator


class Run(reporting.Observations):
    """Observations of one message."""

    def __init__(self, mocks: reporting.Mocks, calls: set[str], before: dict[str, Any]) -> None:
        """Store the ids of the calls so far, which the run extends, and the state."""
        super().__init__(mocks)
        self.nodes: list[str] = []
        self._calls = calls
        # A node with a subgraph passes on all messages of the subgraph so far.
        self._known = {each.id for each in _messages(before) if each.id}
        self._model_events: dict[str, dict[str, Any]] = {}
        self._models: dict[Any, str] = {}
        """The nodes of the running models."""
        self._tools: dict[Any, tuple[str, dict[str, Any]]] = {}
        """The nodes and calls of the running tools."""
        self._unconfirmed: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
        self._seen: list[Any] = []
        self._unnamed: list[tuple[str, Any]] = []
        self.last_text: str | None = None
        """The text of the last message, if it calls no tool."""

    async def follow(self, graph: Any, given: Any, config: dict[str, Any]) -> None:
        """Invoke `graph`, and record what happens."""
        config = {**config, "callbacks": [_callbacks(self)]}
        updates = graph.astream(given, config, stream_mode="updates", subgraphs=True)
        async for space, update in updates:
            for node, written in update.items():
                if not node.startswith("__"):
                    self._note(_path(space) + node, written)

    def _note(self, node: str, written: Any) -> None:
        self.nodes.append(node)
        for message in _messages(written):
            is_new = not any(each is message for each in self._seen)
            if is_new and message.id not in self._known:
                self._known.update(filter(None, [message.id]))
                self._seen.append(message)
                if not self._is_from_subgraph(node, message):
                    self._note_message(node, message)

    def _is_from_subgraph(self, node: str, message: Any) -> bool:
        """Return True if a subgraph of `node` already reported it, before it got its id."""
        if message.id is None:
            self._unnamed.append((node, message))
        for number, (inner, said) in enumerate(self._unnamed):
            if inner.startswith(node + "/") and _same(said, message):
                del self._unnamed[number]
                return True
        return False

    def _note_message(self, node: str, message: Any) -> None:
        if message.type == "tool":
            self.last_text = text_of(message.content)
            is_error = message.status == "error"
            result = {"error": self.last_text} if is_error else _plain(message.content)
            call_id = message.tool_call_id
            self.events.append(reporting.answered(node, call_id, message.name, result))
        elif message.type == "ai":
            event = _event(node, message)
            # At the position of the model's call, if any, which is before its tools were called.
            place = self._model_events.get(message.id or "")
            if place is None:
                self.events.append(event)
            else:
                place.update({**event, "usage_metadata": place["usage_metadata"]})
            self._calls.update(each["id"] or "" for each in message.tool_calls)
            self.last_text = None if message.tool_calls else text_of(message.content)

    def reply(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the reply, with the calls of tools that no message contains."""
        for call_id, event, content in self._unconfirmed:
            if call_id not in self._calls:
                event["content"] = content
        return super().reply(*args, **kwargs)

    # --- LangChain's callbacks ---

    def model_began(self, key: Any, node: str, prompt: list[Any], declared: list[Any]) -> None:
        """Record the start of a model call, with its instructions and tools."""
        self._models[key] = node
        self.watch.begin("model", key)
        instructions = [text_of(each.content) for each in prompt if each.type == "system"]
        if instructions or declared:
            self.agents[node] = {
                "name": node,
                "instructions": "\n".join(instructions),
                "tool_declarations": _declared(declared),
            }

    def model_ended(self, key: Any, message: Any) -> None:
        """Record a model's token usage, which counts even if its message is discarded."""
        self.watch.end(key)
        node = self._models.pop(key, "")
        if message is not None:
            event = {**_event(node, message), "content": None}
            self._model_events[message.id or ""] = event
            self.events.append(event)

    def tool_began(self, key: Any, node: str, call: dict[str, Any]) -> None:
        """Record a tool call, in case no message turns out to contain it."""
        self._tools[key] = (node, call)
        self.watch.begin("tool", key)
        self._note_unconfirmed(call["id"], reporting.event(node, calls=[call]))

    def tool_ended(self, key: Any, result: Any) -> None:
        """Record a tool's result, in case no message turns out to contain it."""
        self.watch.end(key)
        if key in self._tools:
            node, call = self._tools.pop(key)
            event = reporting.answered(node, call["id"], call["name"], result)
            self._note_unconfirmed(call["id"], event)

    def tool_interrupted(self, key: Any) -> None:
        """Forget a tool call that will be repeated after an interrupt."""
        self.watch.end(key)
        if key in self._tools:
            _, call = self._tools.pop(key)
            self._unconfirmed = [each for each in self._unconfirmed if each[0] != call["id"]]

    def _note_unconfirmed(self, call_id: str, event: dict[str, Any]) -> None:
        self._unconfirmed.append((call_id, event, event["content"]))
        event["content"] = None
        self.events.append(event)


def _path(space: tuple[str, ...]) -> str:
    """Return the path of a subgraph: its parent nodes, each followed by a slash."""
    return "".join(each.partition(":")[0] + "/" for each in space)


def _messages(written: Any) -> Iterator[Any]:
    """Yield the messages in a node's output, under any key."""
    from langchain_core.messages import BaseMessage
    from langgraph.types import Command

    if isinstance(written, BaseMessage):
        yield written
    elif isinstance(written, Command):
        yield from _messages(written.update)
    elif isinstance(written, dict):
        for key, each in written.items():
            yield from _messages(_converted(each) if key == "messages" else each)
    elif isinstance(written, (list, tuple)):
        for each in written:
            yield from _messages(each)


def _converted(written: Any) -> Any:
    """Convert messages in any form that LangGraph accepts, such as dictionaries, to objects."""
    from langchain_core.messages import convert_to_messages

    try:
        return convert_to_messages(written if isinstance(written, list) else [written])
    except (LookupError, NotImplementedError, TypeError, ValueError):
        return written  # the graph has its own format


def _same(one: Any, other: Any) -> bool:
    """Return True if two messages are equal except for their ids."""
    return bool(one.model_copy(update={"id": None}) == other.model_copy(update={"id": None}))


def _event(author: str, message: Any) -> dict[str, Any]:
    used = getattr(message, "usage_metadata", None) or {}
    meta = message.response_metadata or {}
    return reporting.event(
        author,
        text=text_of(message.content),
        calls=[
            reporting.call(each["id"], each["name"], each["args"]) for each in message.tool_calls
        ],
        usage=reporting.tokens(
            prompt=used.get("input_tokens"),
            output=used.get("output_tokens"),
            reasoning=(used.get("output_token_details") or {}).get("reasoning"),
            cached=(used.get("input_token_details") or {}).get("cache_read"),
        ),
        model=meta.get("model_name") or meta.get("model"),
        fingerprint=meta.get("system_fingerprint"),
        finish=meta.get("finish_reason") or meta.get("stop_reason") or meta.get("done_reason"),
    )


def _plain(content: Any) -> Any:
    """Return the content of a message; as plain text, if it has nothing else."""
    if isinstance(content, list) and any(_block(each) is None for each in content):
        return content
    return text_of(content)


def text_of(content: Any) -> str:
    """Return the text of a message or its content, or of anything else as JSON."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_block(each) or "" for each in content)
    text = getattr(content, "content", None)
    return reporting.as_text(content) if text is None else text_of(text)


def _block(block: Any) -> str | None:
    """Return the text of a content block; `None` for other blocks."""
    if isinstance(block, str):
        return block
    text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
    return text if isinstance(text, str) else None


def _declared(tools: list[Any]) -> list[Any]:
    """Return tool declarations in ADK's format, converted from OpenAI's or unchanged."""
    found = []
    for declared in map(reporting.as_json, tools):
        function = declared.get("function") if isinstance(declared, dict) else None
        is_openai = isinstance(function, dict)
        found.append({"function_declarations": [function]} if is_openai else declared)
    return found


def _callbacks(run: Run) -> Any:
    """Return a callback handler that reports models and tools to `run`, by LangChain's run ids."""
    from langchain_core.callbacks import AsyncCallbackHandler
    from langgraph.errors import GraphBubbleUp

    class Handler(AsyncCallbackHandler):  # type: ignore[misc]  # LangChain is not installed here
        async def on_chat_model_start(
            self, _serialized: Any, messages: Any, *, run_id: Any, **more: Any
        ) -> None:
            declared = (more.get("invocation_params") or {}).get("tools") or []
            run.model_began(run_id, _node(more), messages[0], declared)

        async def on_llm_start(self, *_: Any, run_id: Any, **more: Any) -> None:
            run.model_began(run_id, _node(more), [], [])

        async def on_llm_end(self, response: Any, *, run_id: Any, **_: Any) -> None:
            generated = (response.generations or [[]])[0]
            message = getattr(generated[0], "message", None) if generated else None
            run.model_ended(run_id, message)

        async def on_llm_error(self, _error: Any, *, run_id: Any, **_: Any) -> None:
            run.model_ended(run_id, None)

        async def on_tool_start(self, serialized: Any, input_str: str, **more: Any) -> None:
            name = (serialized or {}).get("name") or more.get("name") or "tool"
            call_id = more.get("tool_call_id") or str(more["run_id"])
            call = reporting.call(call_id, name, more.get("inputs") or input_str)
            run.tool_began(more["run_id"], _node(more), call)

        async def on_tool_end(self, output: Any, *, run_id: Any, **_: Any) -> None:
            has_content = hasattr(output, "content")
            run.tool_ended(run_id, _plain(output.content) if has_content else output)

        async def on_tool_error(self, error: Any, *, run_id: Any, **_: Any) -> None:
            if isinstance(error, GraphBubbleUp):
                run.tool_interrupted(run_id)
            else:
                run.tool_ended(run_id, {"error": str(error)})

    return Handler()


def _node(details: dict[str, Any]) -> str:
    """Return the path of the node in which a callback happens, with its parent nodes."""
    metadata = details.get("metadata") or {}
    spaces = str(metadata.get("langgraph_checkpoint_ns") or "").split("|")
    path = "/".join(each.partition(":")[0] for each in spaces if each)
    return path or str(metadata.get("langgraph_node") or "agent")
