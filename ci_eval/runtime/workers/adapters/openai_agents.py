"""Adapter for agents of the OpenAI Agents SDK.

`worker.py` runs this file by its path, under the interpreter of the agent.  It imports nothing of
ci-eval, and needs openai-agents 0.21 or later.
"""

from __future__ import annotations

import copy
import runpy
from contextvars import ContextVar
from os.path import dirname, join
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ci_eval.runtime.workers.adapters import _conversations as conversations
    from ci_eval.runtime.workers.adapters import _reporting as reporting
else:
    from types import SimpleNamespace

    def _run_file(name: str) -> Any:
        return SimpleNamespace(**runpy.run_path(join(dirname(__file__), name)))

    conversations, reporting = _run_file("_conversations.py"), _run_file("_reporting.py")

_current: ContextVar[Any] = ContextVar("_current", default=None)
"""The run of the current task."""


def adapted(
    target: str, options: dict[str, Any], load: Callable[[str], Any]
) -> conversations.Conversations:
    """Return the conversations with the agent `target`.

    Raises:
        ModuleNotFoundError: the OpenAI Agents SDK is not installed.
        TypeError: the target is not an agent of it.

    """
    reporting.require("openai-agents", least=(0, 21))
    from agents import set_tracing_disabled

    set_tracing_disabled(True)  # the parameter is positional; traces would go to OpenAI
    _patch_tools()
    found = conversations.Target(load(target), _agent, "an Agent of the OpenAI Agents SDK")
    context = conversations.context_of(options["context"], load)
    return conversations.Conversations(
        found, lambda agent, session: _Conversation(agent, session, options, context)
    )


def _agent(found: Any) -> Any:
    from agents import Agent

    return found if isinstance(found, Agent) else None


class _Conversation:
    """The items so far, passed on from run to run."""

    def __init__(
        self,
        agent: Any,
        session: dict[str, Any],
        options: dict[str, Any],
        context: Callable[[dict[str, Any]], Any],
    ) -> None:
        self._session = session
        self._first = self._agent = agent
        self._max_turns = options["max_turns"]
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
        from agents import Runner

        waiting = self._waiting
        run = _Run(self._mocks, waiting["calls"] if waiting else {})
        given = await self._given(message)
        token = _current.set(run)
        result = None
        try:
            with self._mocks:
                result = await Runner.run(
                    self._agent,
                    given,
                    context=self._context,
                    max_turns=self._max_turns,
                    hooks=run.hooks(),
                    run_config=_without_traces(),
                )
        finally:
            _current.reset(token)
        conversations.keep_state(self._session, self._context)
        if result is None:
            return {"invocation": run.invocation_fields(), **self._mocks.reply_fields}
        # The result of a resumed run includes everything from before.
        items, responses = (waiting["items"], waiting["responses"]) if waiting else (0, 0)
        run.note(result.new_items[items:], result.raw_responses[responses:])
        self._save_progress(result)
        waits = [_call(each) for each in result.interruptions]
        said = None if waits else _text(result.final_output)
        final = reporting.final_response(said) if said else None
        invocation = {**run.invocation_fields(said), "final_response": final, "waits_for": waits}
        return {"invocation": invocation, "memento": self._memento(), **self._mocks.reply_fields}

    async def _given(self, message: dict[str, Any]) -> Any:
        """Return the input for the runner: all messages, or the answers to pending calls."""
        from agents import RunState

        answers = conversations.answers_of(message)
        if not answers or self._waiting is None:
            text = conversations.text_of(message)
            return [*self._input, {"role": "user", "content": text}]
        state = await RunState.from_json(
            self._first, self._waiting["state"], context_override=self._context
        )
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


def _without_traces() -> Any:
    from agents import RunConfig

    return RunConfig(tracing_disabled=True)


def _call(item: Any) -> dict[str, Any]:
    """Return the tool call in an item."""
    return _called(reporting.as_json(item.raw_item))


def _called(raw: dict[str, Any]) -> dict[str, Any]:
    kind = str(raw.get("type") or "tool")
    details = {
        key: raw[key] for key in raw if key not in {"id", "call_id", "status", "type", "name"}
    }
    name = raw.get("name") or kind.replace("_call", "")  # the provider's tools, named by their kind
    return reporting.call(raw.get("call_id") or raw.get("id"), name, raw.get("arguments", details))


def _text(output: Any) -> str:
    """Return a final output as text; as JSON if it is not text."""
    if output is None or isinstance(output, str):
        return output or ""
    return reporting.json_text(output)


_CALLS = {"tool_call_item", "handoff_call_item"}
"""The items that are calls."""


class _Run:
    """Observations of one message."""

    def __init__(self, mocks: reporting.Mocks, names: dict[str, str]) -> None:
        """Store the names of the tools whose calls are answered now."""
        self.mocks = mocks
        """The canned results of the conversation."""
        self._agents: dict[str, dict[str, Any]] = {}
        self._events: list[dict[str, Any]] = []
        self._hook_events: list[dict[str, Any]] = []
        """The events from hooks, for a run without a result."""
        self._last = ""
        self._names = dict(names)
        self._watch = reporting.Watch()

    def invocation_fields(self, said: str | None = None) -> dict[str, Any]:
        """Return the fields of the invocation, whose final response is `said`."""
        last = self._last if said else None
        return {
            "intermediate_data": reporting.trajectory(self._events or self._hook_events, last),
            "app_details": {"agent_details": self._agents} if self._agents else None,
            "finish_reason": reporting.last_finish_reason(self._events or self._hook_events),
            **self._watch.durations,
        }

    def declare(self, agent: str, tools: list[Any]) -> None:
        """Record the tools of an agent."""
        functions = [each for each in tools if hasattr(each, "params_json_schema")]
        declared = [
            reporting.declaration(each.name, each.description, each.params_json_schema)
            for each in functions
        ]
        self._details(agent)["tool_declarations"] = declared

    def _details(self, agent: str) -> dict[str, Any]:
        return self._agents.setdefault(agent, {"name": agent})

    def note(self, items: list[Any], responses: list[Any]) -> None:
        """Record all items of a run; the items of one model response are one event."""
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
                    self._events.append(self._event(item, response))
                    left = [each for each in left if each is not response]
                _add(self._events[-1], item.raw_item)
            current = response
        for each in left:
            # It had no effect, but its tokens count.
            self._events.append(reporting.event("agent", usage=_usage(each)))
        last = reporting.as_json(items[-1].raw_item) if items else {}
        self._last = _said(last) if last.get("type") == "message" else ""

    def _note_response(self, agent: Any, response: Any) -> None:
        """Record a model's response."""
        model = agent.model if isinstance(agent.model, str) else None
        event = reporting.event(
            agent.name, usage=_usage(response), model=model, finish=_finish(response)
        )
        self._hook_events.append(event)
        for raw in response.output:
            _add(self._hook_events[-1], raw)

    def _event(self, item: Any, response: Any) -> dict[str, Any]:
        model = item.agent.model if isinstance(item.agent.model, str) else None
        usage = _usage(response) if response else None
        finish = _finish(response) if response else None
        return reporting.event(item.agent.name, usage=usage, model=model, finish=finish)

    def _note_output(self, item: Any) -> None:
        raw = reporting.as_json(item.raw_item)
        output = getattr(item, "output", raw.get("output"))
        agent = getattr(item, "source_agent", item.agent).name
        identity = raw.get("call_id")
        self._events.append(reporting.answered(agent, identity, self._names.get(identity), output))

    def hooks(self) -> Any:
        """Return hooks that record models and tools."""
        from agents import RunHooks

        run, watch = self, self._watch

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
                run._hook_events.append(reporting.answered(agent.name, call_id, tool.name, result))

        return Hooks()


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
