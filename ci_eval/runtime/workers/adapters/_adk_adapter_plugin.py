"""Plugin for Google ADK that observes runs and returns canned tool results.

`adk_adapter.py` runs it.
"""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from typing import Any

REQUEST = "ci_eval_request"
"""The metadata key that links a model's response to its request."""
CONTROL_TOOLS = frozenset(
    {
        *("transfer_to_agent", "exit_loop", "finish_task", "task_completed", "set_model_response"),
        *("adk_request_confirmation", "adk_request_credential", "adk_request_input"),
    }
)
"""ADK's tools for control flow, which never get canned results."""


class Run:
    """Observations of one run: what an agent does on one message."""

    def __init__(self, mocks: Any) -> None:
        self.mocks = mocks
        """The canned results of the conversation, a `_adapter_reporting.Mocks`."""
        self._requests: list[Any] = []
        self._latest: dict[str, int] = {}

    def note_request(self, agent: str, request: Any) -> None:
        """Record a request of `agent` to its model."""
        self._latest[agent] = len(self._requests)
        self._requests.append(request)

    def note_response(self, agent: str, response: Any) -> None:
        """Link the response to the latest request of `agent`."""
        if agent in self._latest:
            known = response.custom_metadata or {}
            response.custom_metadata = {**known, REQUEST: self._latest[agent]}

    def agent_details(self, events: list[Any]) -> dict[str, Any]:
        """Return the instructions and tools of each author of `events`, at its first response."""
        details: dict[str, Any] = {}
        for event in events:
            number = (event.custom_metadata or {}).get(REQUEST)
            if number is not None and event.author not in details:
                # Read now, as ADK does, because the agent's callbacks may have changed it.
                details[event.author] = _details(event.author, self._requests[number].config)
        return details


current: ContextVar[Run | None] = ContextVar("current", default=None)
"""The run of the current task and of tasks that it starts."""


def _details(name: str, config: Any) -> dict[str, Any]:
    instruction = config.system_instruction
    return {
        "name": name,
        "instructions": instruction if isinstance(instruction, str) else _text(instruction),
        "tool_declarations": [
            tool.model_dump(mode="json", exclude_none=True)
            for tool in config.tools or []
            if hasattr(tool, "model_dump")
        ],
    }


def _text(content: Any) -> str:
    parts = getattr(content, "parts", None) or ()
    return "\n".join(part.text for part in parts if part.text)


def plugin() -> Any:
    """Return the plugin, shared by all runs of a process."""
    from google.adk.plugins.base_plugin import BasePlugin
    from google.genai import types

    # As in ADK's evaluation (`EnsureRetryOptionsPlugin`).
    retry = types.HttpRetryOptions(
        attempts=7,
        initial_delay=5.0,
        max_delay=120.0,
        exp_base=2.0,
        http_status_codes=[408, 429, 500, 502, 503, 504],
    )

    class Watching(BasePlugin):  # type: ignore[misc]  # from another environment
        """Records requests to models, and returns canned results."""

        async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
            """Record a request, and enable retries."""
            if run := current.get():
                run.note_request(callback_context.agent_name, llm_request)
            config = llm_request.config or types.GenerateContentConfig()
            config.http_options = config.http_options or types.HttpOptions()
            config.http_options.retry_options = config.http_options.retry_options or retry
            llm_request.config = config

        async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
            """Record a response."""
            if run := current.get():
                run.note_response(callback_context.agent_name, llm_response)

        async def before_tool_callback(
            self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any
        ) -> dict[str, Any] | None:
            """Return the canned result of a call, if any."""
            run = current.get()
            if run is None or not run.mocks or tool.name in CONTROL_TOOLS:
                return None
            given = run.mocks.find(tool.name, tool_args)
            return given and await _response(given, tool, tool_args, tool_context)

    return Watching("ci_eval")


async def _response(given: Any, tool: Any, args: dict[str, Any], context: Any) -> dict[str, Any]:
    """Return the tool's response for ADK."""
    blocked = await _blocked(tool, args, context)
    if blocked is not None:
        return blocked
    if given.error is not None:
        return {"error": given.error}
    if given.result is None and tool.is_long_running:
        return {}  # ADK then waits, as if the tool had returned nothing
    return given.result if isinstance(given.result, dict) else {"result": given.result}


async def _blocked(tool: Any, args: dict[str, Any], context: Any) -> dict[str, Any] | None:
    """Return the response that prevents the tool call, if any.

    A canned result only replaces the tool.  What precedes the call still happens: the agent's
    callbacks, which ADK would now skip, and the request for confirmation.
    """
    agent = context._invocation_context.agent  # noqa: SLF001  # no public way
    for callback in getattr(agent, "canonical_before_tool_callbacks", ()):
        answer = callback(tool=tool, args=args, tool_context=context)
        answer = await answer if inspect.isawaitable(answer) else answer
        if answer:
            return answer  # type: ignore[no-any-return]  # as ADK requires
    return await _unconfirmed(tool, args, context)


async def _unconfirmed(tool: Any, args: dict[str, Any], context: Any) -> dict[str, Any] | None:
    """Request confirmation if the tool needs it, as ADK's `FunctionTool` does."""
    needs = getattr(tool, "_require_confirmation", False)
    if callable(needs):
        needs = needs(**args)
        needs = await needs if inspect.isawaitable(needs) else needs
    if not needs:
        return None
    given = context.tool_confirmation
    if given is None:
        context.request_confirmation(hint=f"Please approve or reject the call of {tool.name}().")
        context.actions.skip_summarization = True
        return {"error": "This tool call requires confirmation, please approve or reject."}
    return None if given.confirmed else {"error": "This tool call is rejected."}
