"""Lets `worker.py` hold conversations with an agent of the OpenAI Agents SDK.

`worker.py` runs this file by its path, under the interpreter of the agent, and imports nothing of
ci-eval, as it does itself.  It needs openai-agents 0.21 or later.
"""

from __future__ import annotations

import copy
import runpy
from contextvars import ContextVar
from os.path import dirname, join
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ci_eval.runtime.workers.adapters import _holding as holding
    from ci_eval.runtime.workers.adapters import _telling as telling
else:
    from types import SimpleNamespace

    def _beside(name: str) -> Any:
        return SimpleNamespace(**runpy.run_path(join(dirname(__file__), name)))

    holding, telling = _beside("_holding.py"), _beside("_telling.py")

_current: ContextVar[Any] = ContextVar("_current", default=None)
"""The run that the current task belongs to."""


def adapted(
    target: str, options: dict[str, Any], load: Callable[[str], Any]
) -> holding.Conversations:
    """Return what holds conversations with the agent `target`.

    Raises:
        ModuleNotFoundError: there is no OpenAI Agents SDK.
        TypeError: the target is no agent of it.

    """
    telling.require("openai-agents", least=(0, 21))
    from agents import set_tracing_disabled

    set_tracing_disabled(True)  # so it is called; traces go to OpenAI
    _can_tools()
    found = holding.Target(load(target), _agent, "an Agent of the OpenAI Agents SDK")
    context = holding.context_of(options["context"], load)
    return holding.Conversations(
        found, lambda agent, session: _Conversation(agent, session, options, context)
    )


def _agent(found: Any) -> Any:
    from agents import Agent

    return found if isinstance(found, Agent) else None


class _Conversation:
    """A list of what was said and done, handed on from run to run."""

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
        self._mocks = telling.Mocks(session)
        memento = session.get("memento") or {}
        self._context = context(memento.get("state", session["state"]))
        self._input: list[Any] = memento.get("input", [])
        self._waiting: dict[str, Any] | None = memento.get("waiting")
        if "agent" in memento:
            names = {each.name: each for each in _reachable(agent)}
            self._agent = names.get(memento["agent"], agent)

    async def send(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return what the agent does on `message`."""
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
        holding.keep_state(self._session, self._context)
        if result is None:
            return {"invocation": run.told(), **self._mocks.told}
        # Of a run that was resumed it tells from the beginning.
        items, responses = (waiting["items"], waiting["responses"]) if waiting else (0, 0)
        run.note(result.new_items[items:], result.raw_responses[responses:])
        self._go_on(result)
        waits = [_call(each) for each in result.interruptions]
        said = None if waits else _text(result.final_output)
        final = telling.spoken(said) if said else None
        invocation = {**run.told(said), "final_response": final, "waits_for": waits}
        return {"invocation": invocation, "memento": self._memento(), **self._mocks.told}

    async def _given(self, message: dict[str, Any]) -> Any:
        """Return what the runner is given: all that was said, or the answers that it waits for."""
        from agents import RunState

        answers = holding.answers_of(message)
        if not answers or self._waiting is None:
            text = holding.said_in(message)
            return [*self._input, {"role": "user", "content": text}]
        state = await RunState.from_json(
            self._first, self._waiting["state"], context_override=self._context
        )
        for each in state.get_interruptions():
            answer = answers.get(_call(each)["id"])
            is_approved, why = holding.approval(answer)
            if is_approved:
                state.approve(each)
            else:
                state.reject(each, **({"rejection_message": why} if why else {}))
        return state

    def _go_on(self, result: Any) -> None:
        """Take note of where the conversation is now."""
        self._agent = result.last_agent
        self._waiting = None
        if not result.interruptions:
            self._input = telling.as_json(result.to_input_list())
            return
        state = result.to_state().to_json(context_serializer=lambda _: {})
        counts = {"items": len(result.new_items), "responses": len(result.raw_responses)}
        calls = {call["id"]: call["name"] for call in map(_call, result.interruptions)}
        self._waiting = {"state": state, "calls": calls, **counts}

    def _memento(self) -> dict[str, Any]:
        known = {"input": self._input, "waiting": self._waiting, "agent": self._agent.name}
        return {**known, "state": self._session["state"]}


def _finish(response: Any) -> str | None:
    """Return `incomplete` for an answer that was cut off; the SDK does not tell why."""
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
    """Return the call of a tool that an item tells of."""
    return _called(telling.as_json(item.raw_item))


def _called(raw: dict[str, Any]) -> dict[str, Any]:
    kind = str(raw.get("type") or "tool")
    told = {key: raw[key] for key in raw if key not in {"id", "call_id", "status", "type", "name"}}
    name = raw.get("name") or kind.replace("_call", "")  # tools of the provider, by their kind
    return telling.call(raw.get("call_id") or raw.get("id"), name, raw.get("arguments", told))


def _text(output: Any) -> str:
    """Return a final output as a text: JSON, where it is something else."""
    if output is None or isinstance(output, str):
        return output or ""
    return telling.json_text(output)


_CALLS = {"tool_call_item", "handoff_call_item"}
"""The items that are calls."""


class _Run:
    """What happens on one message."""

    def __init__(self, mocks: telling.Mocks, names: dict[str, str]) -> None:
        """Take the names of the tools whose calls are answered now."""
        self.mocks = mocks
        """The canned results of the conversation."""
        self._agents: dict[str, dict[str, Any]] = {}
        self._events: list[dict[str, Any]] = []
        self._heard: list[dict[str, Any]] = []
        """What the hooks told: the events of a run that gives no result."""
        self._last = ""
        self._names = dict(names)
        self._watch = telling.Watch()

    def told(self, said: str | None = None) -> dict[str, Any]:
        """Return the fields of the invocation, whose final response is `said`."""
        told = self._last if said else None
        return {
            "intermediate_data": telling.trajectory(self._events or self._heard, told),
            "app_details": {"agent_details": self._agents} if self._agents else None,
            "finish_reason": telling.ending(self._events or self._heard),
            **self._watch.durations,
        }

    def declare(self, agent: str, tools: list[Any]) -> None:
        """Note which tools an agent has."""
        functions = [each for each in tools if hasattr(each, "params_json_schema")]
        declared = [
            telling.declaration(each.name, each.description, each.params_json_schema)
            for each in functions
        ]
        self._details(agent)["tool_declarations"] = declared

    def _details(self, agent: str) -> dict[str, Any]:
        return self._agents.setdefault(agent, {"name": agent})

    def note(self, items: list[Any], responses: list[Any]) -> None:
        """Note all items of a run: what a model said at once is one event."""
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
            # Nothing came of it, but it was paid for.
            self._events.append(telling.event("agent", usage=_usage(each)))
        last = telling.as_json(items[-1].raw_item) if items else {}
        self._last = _said(last) if last.get("type") == "message" else ""

    def _hear(self, agent: Any, response: Any) -> None:
        """Note what a model answered."""
        model = agent.model if isinstance(agent.model, str) else None
        told = telling.event(
            agent.name, usage=_usage(response), model=model, finish=_finish(response)
        )
        self._heard.append(told)
        for raw in response.output:
            _add(self._heard[-1], raw)

    def _event(self, item: Any, response: Any) -> dict[str, Any]:
        model = item.agent.model if isinstance(item.agent.model, str) else None
        usage = _usage(response) if response else None
        finish = _finish(response) if response else None
        return telling.event(item.agent.name, usage=usage, model=model, finish=finish)

    def _note_output(self, item: Any) -> None:
        raw = telling.as_json(item.raw_item)
        output = getattr(item, "output", raw.get("output"))
        agent = getattr(item, "source_agent", item.agent).name
        identity = raw.get("call_id")
        self._events.append(telling.answered(agent, identity, self._names.get(identity), output))

    def hooks(self) -> Any:
        """Return hooks that tell of models and tools."""
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
                run._hear(agent, response)

            async def on_tool_start(self, context: Any, _agent: Any, tool: Any) -> None:
                watch.begin("tool", getattr(context, "tool_call_id", tool.name))

            async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
                call_id = getattr(context, "tool_call_id", tool.name)
                watch.end(call_id)
                run._heard.append(telling.answered(agent.name, call_id, tool.name, result))

        return Hooks()


def _add(event: dict[str, Any], given: Any) -> None:
    """Add what a model gave to the event of its answer: a message, a thought or a call."""
    part: dict[str, Any] | None = None
    raw = telling.as_json(given)
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
    """Return the text of a message, or with what the model refused to give one."""
    return "".join(each.get("text") or each.get("refusal") or "" for each in raw["content"])


def _usage(response: Any) -> dict[str, Any] | None:
    used = response.usage
    if not used.total_tokens and not used.input_tokens and not used.output_tokens:
        return None  # providers that do not tell are counted as nothing
    return telling.tokens(
        prompt=used.input_tokens,
        output=used.output_tokens,
        reasoning=used.output_tokens_details.reasoning_tokens,
        cached=used.input_tokens_details.cached_tokens,
    )


# --- Tools that are not really called ---------------------------------------------------------


def _can_tools() -> None:
    """Let every agent tell of its tools, and let these look for a canned result."""
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

    stand_in = copy.copy(tool)
    stand_in.on_invoke_tool = invoke
    return stand_in


async def _failed(tool: Any, context: Any, error: Exception) -> Any:
    """Return what the model is told of an error in `tool`, as the SDK has it; or raise it."""
    from agents.tool import maybe_invoke_function_tool_failure_error_function as told

    found = await told(function_tool=tool, context=context, error=error)
    if found is None:
        raise error
    return found
