"""Adapter for agents of the OpenAI Agents SDK.

`worker.py` runs this file under the interpreter of the agent.  It imports nothing from
ci-eval, and needs openai-agents 0.21 or later.
"""

from __future__ import annotations

import copy
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from . import _adapter_conversations as conversations
from . import _adapter_reporting as reporting
from ._adapter_conversations import Load

if TYPE_CHECKING:
    from collections.abc import Iterator

_current: ContextVar[Any] = ContextVar("_current", default=None)
"""The run of the current task."""


def adapted(target: str, options: dict[str, Any], load: Load) -> conversations.Conversations:
    """Return the conversations with the agent `target`.

    Raises:
        ModuleNotFoundError: the OpenAI Agents SDK is not installed.
        TypeError: the target is not an agent of this SDK.

    """
    reporting.require("openai-agents", least=(0, 21))
    from agents import set_tracing_disabled

    set_tracing_disabled(True)  # the parameter is positional; traces would go to OpenAI
    _patch_tools()
    found = conversations.Target(load(target), _agent, "an Agent of the OpenAI Agents SDK")
    context = conversations.context_of(options["context"], load)
    begin = partial(_Conversation, max_turns=options["max_turns"], context=context)
    return conversations.Conversations(found, begin)


def _agent(found: Any) -> Any:
    from agents import Agent

    return found if isinstance(found, Agent) else None


class _Conversation:
    """The items so far, passed on from run to run."""

    def __init__(self, agent: Any, session: dict[str, Any], max_turns: int, context: Any) -> None:
        """Store what the runner needs; `context` returns the tools' context for a state."""
        self._session = session
        self._first = self._agent = agent
        self._max_turns = max_turns
        self._mocks = reporting.Mocks(session)
        memento = session.get("memento") or {}
        self._context = context(memento.get("state", session["state"]))
        self._input: list[Any] = memento.get("input", [])
        self._waiting: dict[str, Any] | None = memento.get("waiting")
        if "agent" in memento:
            names = {each.name: each for each in _reachable(agent)}
            self._agent = names.get(memento["agent"], agent)

    async def send(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send `message`, and return the agent's reply."""
        from agents import RunConfig, Runner

        waiting = self._waiting
        run = _Run(self._mocks, waiting["calls"] if waiting else {})
        given = await self._given(message)
        _current.set(run)
        result = None
        with self._mocks:
            result = await Runner.run(
                self._agent,
                given,
                context=self._context,
                max_turns=self._max_turns,
                hooks=run.hooks(),
                run_config=RunConfig(tracing_disabled=True),
            )
        conversations.keep_state(self._session, self._context)
        if result is None:
            return run.reply()
        # The result of a resumed run includes everything from before.
        items, responses = (waiting["items"], waiting["responses"]) if waiting else (0, 0)
        last = run.note(result.new_items[items:], result.raw_responses[responses:])
        self._save_progress(result)
        waits = [_call(each) for each in result.interruptions]
        is_final = not waits and result.final_output is not None
        said = reporting.as_text(result.final_output) if is_final else None
        return run.reply(said, said and last, waits=waits, memento=self._memento())

    async def _given(self, message: dict[str, Any]) -> Any:
        """Return the input for the runner: all messages, or the answers to pending calls."""
        from agents import RunState

        answers = conversations.answers_of(message)
        if not answers or self._waiting is None:
            text = conversations.text_of(message)
            return [*self._input, {"role": "user", "content": text}]
        saved = self._waiting["state"]
        state = await RunState.from_json(self._first, saved, context_override=self._context)
        for each in state.get_interruptions():
            answer = answers.get(_call(each)["id"])
            is_approved, why = conversations.approval(answer)
            if is_approved:
                state.approve(each)
            else:
                state.reject(each, **({"rejection_message": why} if why else {}))
        return state

    def _save_progress(self, result: Any) -> None:
        """Store the progress of the conversation."""
        self._agent = result.last_agent
        self._waiting = None
        if not result.interruptions:
            self._input = reporting.as_json(result.to_input_list())
            return
        state = result.to_state().to_json(context_serializer=lambda _: {})
        counts = {"items": len(result.new_items), "responses": len(result.raw_responses)}
        calls = {call["id"]: call["name"] for call in map(_call, result.interruptions)}
        self._waiting = {"state": state, "calls": calls, **counts}

    def _memento(self) -> dict[str, Any]:
        known = {"input": self._input, "waiting": self._waiting, "agent": self._agent.name}
        return {**known, "state": self._session["state"]}


def _finish(response: Any) -> str | None:
    """Return `incomplete` for a response that was cut off; the SDK does not report why."""
    states = [getattr(each, "status", None) for each in response.output]
    return "incomplete" if "incomplete" in states else None


def _reachable(agent: Any) -> Iterator[Any]:
    """Yield `agent` and all agents that it can hand over to."""
    from agents import Agent

    found: list[Any] = []
    left = [agent]
    while left:
        each = left.pop()
        if isinstance(each, Agent) and not any(each is other for other in found):
            found.append(each)
            left += each.handoffs
    yield from found


def _call(item: Any) -> dict[str, Any]:
    """Return the tool call in an item."""
    return _called(reporting.as_json(item.raw_item))


def _called(raw: dict[str, Any]) -> dict[str, Any]:
    kind = str(raw.get("type") or "tool")
    known = {"id", "call_id", "status", "type", "name"}
    details = {key: raw[key] for key in raw if key not in known}
    name = raw.get("name") or kind.replace("_call", "")  # the provider's tools, named by their kind
    return reporting.call(raw.get("call_id") or raw.get("id"), name, raw.get("arguments", details))


_CALLS = {"tool_call_item", "handoff_call_item"}
"""The items that are calls."""


class _Run(reporting.Observations):
    """Observations of one message: from hooks, until the result's items replace their events."""

    def __init__(self, mocks: reporting.Mocks, names: dict[str, str]) -> None:
        """Store the names of the tools whose calls are answered now."""
        super().__init__(mocks)
        self._names = dict(names)

    def declare(self, agent: str, tools: list[Any]) -> None:
        """Record the tools of an agent."""
        self._details(agent)["tool_declarations"] = [
            reporting.declaration(each.name, each.description, each.params_json_schema)
            for each in tools
            if hasattr(each, "params_json_schema")
        ]

    def _details(self, agent: str) -> dict[str, Any]:
        return self.agents.setdefault(agent, {"name": agent})

    def note(self, items: list[Any], responses: list[Any]) -> str:
        """Record all items of a run, and return the text of the last one, if it is a message.

        The items of one model response are one event.
        """
        observed, self.events = self.events, []
        used = {id(each): response for response in responses for each in response.output}
        left = list(responses)
        current: Any = None
        calls = (_call(each) for each in items if each.type in _CALLS)
        self._names.update({call["id"]: call["name"] for call in calls})
        for item in items:
            response = used.get(id(item.raw_item))
            if item.type in {"tool_call_output_item", "handoff_output_item"}:
                self._note_output(item)
            elif item.type != "tool_approval_item":
                if response is None or response is not current:
                    self.events.append(_event(item.agent, response))
                    left = [each for each in left if each is not response]
                _add(self.events[-1], item.raw_item)
            current = response
        # Responses that had no effect; but their tokens count.
        self.events += [reporting.event("agent", usage=_usage(each)) for each in left]
        self.events = self.events or observed
        last = reporting.as_json(items[-1].raw_item) if items else {}
        return _said(last) if last.get("type") == "message" else ""

    def _note_response(self, agent: Any, response: Any) -> None:
        """Record a model's response."""
        event = _event(agent, response)
        self.events.append(event)
        for raw in response.output:
            _add(event, raw)

    def _note_output(self, item: Any) -> None:
        raw = reporting.as_json(item.raw_item)
        output = getattr(item, "output", raw.get("output"))
        agent = getattr(item, "source_agent", item.agent).name
        identity = raw.get("call_id")
        self.events.append(reporting.answered(agent, identity, self._names.get(identity), output))

    def hooks(self) -> Any:
        """Return hooks that record models and tools."""
        from agents import RunHooks

        run, watch = self, self.watch

        class Hooks(RunHooks):  # type: ignore[misc]  # the SDK is not installed here
            async def on_llm_start(
                self, _context: Any, agent: Any, system_prompt: Any, _items: Any
            ) -> None:
                watch.begin("model", "model")
                run._details(agent.name)["instructions"] = system_prompt or ""

            async def on_llm_end(self, _context: Any, agent: Any, response: Any) -> None:
                watch.end("model")
                run._note_response(agent, response)

            async def on_tool_start(self, context: Any, _agent: Any, tool: Any) -> None:
                watch.begin("tool", getattr(context, "tool_call_id", tool.name))

            async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
                call_id = getattr(context, "tool_call_id", tool.name)
                watch.end(call_id)
                run.events.append(reporting.answered(agent.name, call_id, tool.name, result))

        return Hooks()


def _event(agent: Any, response: Any) -> dict[str, Any]:
    """Return the event of a model's response, if any, without its output."""
    model = agent.model if isinstance(agent.model, str) else None
    usage = _usage(response) if response else None
    finish = _finish(response) if response else None
    return reporting.event(agent.name, usage=usage, model=model, finish=finish)


def _add(event: dict[str, Any], given: Any) -> None:
    """Add an output of a model to the event of its response: a message, a thought or a call."""
    part: dict[str, Any] | None = None
    raw = reporting.as_json(given)
    kind = str(raw.get("type"))
    if kind == "message":
        text = _said(raw)
        part = {"text": text} if text else None
    elif kind == "reasoning":
        text = "\n".join(each["text"] for each in raw.get("summary") or ())
        part = {"text": text, "thought": True} if text else None
    elif kind.endswith("_call") and kind != "tool_search_call":
        part = {"function_call": _called(raw)}
    if part:
        content = event["content"] or {"role": "model", "parts": []}
        event["content"] = {**content, "parts": [*content["parts"], part]}


def _said(raw: dict[str, Any]) -> str:
    """Return the text of a message, or the model's refusal."""
    return "".join(each.get("text") or each.get("refusal") or "" for each in raw["content"])


def _usage(response: Any) -> dict[str, Any] | None:
    used = response.usage
    if not used.total_tokens and not used.input_tokens and not used.output_tokens:
        return None  # providers that report no usage
    return reporting.tokens(
        prompt=used.input_tokens,
        output=used.output_tokens,
        reasoning=used.output_tokens_details.reasoning_tokens,
        cached=used.input_tokens_details.cached_tokens,
    )


# --- Canned tools -----------------------------------------------------------------------------


def _patch_tools() -> None:
    """Record the tools of every agent, and make them look for canned results."""
    from agents import FunctionTool
    from agents.agent import AgentBase

    all_tools = AgentBase.get_all_tools

    async def canned_tools(self: Any, run_context: Any) -> list[Any]:
        tools = await all_tools(self, run_context)
        run = _current.get()
        if run is None:
            return list(tools)
        run.declare(self.name, tools)
        if not run.mocks:
            return list(tools)
        return [_canned(run, each) if isinstance(each, FunctionTool) else each for each in tools]

    AgentBase.get_all_tools = canned_tools


def _canned(run: _Run, tool: Any) -> Any:
    """Return a copy of `tool` that looks for a canned result first."""

    async def invoke(context: Any, arguments: str) -> Any:
        given = run.mocks.find(tool.name, arguments)
        if given is None:
            return await tool.on_invoke_tool(context, arguments)
        if given.error is not None:
            return await _failed(tool, context, RuntimeError(given.error))
        return given.result

    canned = copy.copy(tool)
    canned.on_invoke_tool = invoke
    return canned


async def _failed(tool: Any, context: Any, error: Exception) -> Any:
    """Return the SDK's message to the model about an error in `tool`, or raise the error."""
    from agents.tool import maybe_invoke_function_tool_failure_error_function as failure_message

    found = await failure_message(function_tool=tool, context=context, error=error)
    if found is None:
        raise error
    return found
