"""Adapter for agents of Pydantic AI.

`worker.py` runs this file under the interpreter of the agent.  It imports nothing from
ci-eval, and needs pydantic-ai 2 or later: a capability observes models and tools, and returns
canned results.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from . import _adapter_conversations as conversations
from . import _adapter_reporting as reporting
from ._adapter_conversations import Load

if TYPE_CHECKING:
    from collections.abc import Callable


def adapted(target: str, options: dict[str, Any], load: Load) -> conversations.Conversations:
    """Return the conversations with the agent `target`.

    Raises:
        ModuleNotFoundError: Pydantic AI is not installed.
        TypeError: the target is not a Pydantic AI agent.

    """
    reporting.require("pydantic-ai-slim", least=(2, 0))
    found = conversations.Target(load(target), _agent, "an Agent of Pydantic AI")
    deps = conversations.context_of(options["deps"], load)
    return conversations.Conversations(found, partial(_Conversation, deps=deps))


def _agent(found: Any) -> Any:
    from pydantic_ai.agent import AbstractAgent

    return found if isinstance(found, AbstractAgent) else None


class _Conversation:
    """The messages so far, passed on from run to run."""

    def __init__(self, agent: Any, session: dict[str, Any], deps: Callable[..., Any]) -> None:
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        self._agent = agent
        self._session = session
        self._mocks = reporting.Mocks(session)
        memento = session.get("memento") or {}
        self._deps = deps(memento.get("state", session["state"]))
        history = memento.get("history", [])
        self._history: list[Any] = ModelMessagesTypeAdapter.validate_python(history)
        self._waits: dict[str, str] = memento.get("waits", {})

    async def send(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send `message`, and return the agent's reply."""
        from pydantic_ai import capture_run_messages

        run = _Run(self._agent.name or "agent", self._mocks)
        given = self._given(message)
        result = None
        with capture_run_messages() as messages, self._mocks:
            result = await self._agent.run(
                **given,
                deps=self._deps,
                message_history=self._history,
                capabilities=[run.capability()],
            )
        conversations.keep_state(self._session, self._deps)
        run.note(messages[len(self._history) :] if result is None else result.new_messages())
        if result is None:
            return run.reply()
        self._history = result.all_messages()
        waits = self._waiting(result.output)
        said = None if waits else reporting.as_text(result.output)
        return run.reply(said, said, waits=waits, memento=self._memento())

    def _given(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the input for the agent: a text, or answers to pending calls."""
        from pydantic_ai import DeferredToolResults, ToolDenied

        answers = conversations.answers_of(message)
        if not answers:
            return {"user_prompt": conversations.text_of(message)}
        approvals: dict[str, Any] = {}
        calls: dict[str, Any] = {}
        for identity, answer in answers.items():
            if self._waits.get(identity) == "approval":
                is_approved, why = conversations.approval(answer)
                denied = ToolDenied(why) if why else False
                approvals[identity] = is_approved or denied
            else:
                calls[identity] = answer
        return {"deferred_tool_results": DeferredToolResults(calls=calls, approvals=approvals)}

    def _waiting(self, output: Any) -> list[dict[str, Any]]:
        """Return the pending calls, for approval or for execution elsewhere."""
        from pydantic_ai import DeferredToolRequests

        self._waits = {}
        if not isinstance(output, DeferredToolRequests):
            return []
        kinds = {"approval": output.approvals, "call": output.calls}
        self._waits = {each.tool_call_id: kind for kind, calls in kinds.items() for each in calls}
        return [_call(each) for calls in kinds.values() for each in calls]

    def _memento(self) -> dict[str, Any]:
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        history = ModelMessagesTypeAdapter.dump_python(self._history, mode="json")
        return {"history": history, "waits": self._waits, "state": self._session["state"]}


def _call(part: Any) -> dict[str, Any]:
    return reporting.call(part.tool_call_id, part.tool_name, part.args)


class _Run(reporting.Observations):
    """Observations of one message."""

    def __init__(self, agent: str, mocks: reporting.Mocks) -> None:
        super().__init__(mocks)
        self._agent = agent
        self._details = self.agents[agent] = {"name": agent}
        self._outputs: set[str] = set()

    def note(self, messages: list[Any]) -> None:
        """Record the messages of a run."""
        for message in messages:
            if message.kind == "response":
                self.events.append(self._answer(message))
            else:
                self._note_request(message)

    def _answer(self, message: Any) -> dict[str, Any]:
        """Return the event of a model's response, without calls that are the final output."""
        texts = [each.content for each in message.parts if each.part_kind == "text"]
        thoughts = [each.content for each in message.parts if each.part_kind == "thinking"]
        calls = [each for each in message.parts if each.part_kind.endswith("tool-call")]
        used = message.usage
        return reporting.event(
            self._agent,
            text="".join(texts),
            thought="\n".join(filter(None, thoughts)),
            calls=[_call(each) for each in calls if each.tool_name not in self._outputs],
            usage=reporting.tokens(
                prompt=used.input_tokens or None,
                output=used.output_tokens or None,
                reasoning=(used.details or {}).get("reasoning_tokens"),
                cached=used.cache_read_tokens,
            ),
            model=message.model_name,
            finish=getattr(message, "finish_reason", None),
        )

    def _note_request(self, message: Any) -> None:
        """Record the results of tools."""
        for part in message.parts:
            name = getattr(part, "tool_name", None)
            if name is None or name in self._outputs:
                continue
            is_answer = getattr(part, "outcome", "retried") == "success"
            result = part.content if is_answer else {"error": reporting.as_json(part.content)}
            self.events.append(reporting.answered(self._agent, part.tool_call_id, name, result))

    def capability(self) -> Any:
        """Return the capability that observes the run."""
        from pydantic_ai.capabilities import AbstractCapability
        from pydantic_ai.exceptions import ToolFailed

        run, watch, mocks = self, self.watch, self.mocks

        class Watching(AbstractCapability):  # type: ignore[misc]  # Pydantic AI is not installed here
            async def wrap_model_request(
                self, _ctx: Any, *, request_context: Any, handler: Any
            ) -> Any:
                run._note_instructions(request_context.messages)
                run._note_tools(request_context.model_request_parameters)
                with watch.during("model"):
                    return await handler(request_context)

            async def wrap_tool_execute(
                self, _ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any
            ) -> Any:
                if tool_def.kind == "output":
                    return await handler(args)
                with watch.during("tool"):
                    given = mocks.find(call.tool_name, call.args)
                    if given is None:
                        return await handler(args)
                    if given.error is not None:
                        raise ToolFailed(given.error)
                    return given.result

        return Watching()

    def _note_instructions(self, messages: list[Any]) -> None:
        """Record the model's instructions: system prompts, and those of the last request."""
        requests = [each for each in messages if each.kind == "request"]
        parts = [part for each in requests for part in each.parts]
        texts = [each.content for each in parts if each.part_kind == "system-prompt"]
        texts += [each.instructions for each in requests[-1:] if each.instructions]
        self._details["instructions"] = "\n\n".join(texts)

    def _note_tools(self, parameters: Any) -> None:
        self._outputs.update(each.name for each in parameters.output_tools)
        self._details["tool_declarations"] = [
            reporting.declaration(each.name, each.description, each.parameters_json_schema)
            for each in parameters.function_tools
        ]
