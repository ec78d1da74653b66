"""A plugin of Google ADK that watches a run from inside; `adk.py` runs this file."""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from typing import Any

REQUEST = "ci_eval_request"
"""Where a model's response says which request it answers."""
STEERING = frozenset(
    {
        *("transfer_to_agent", "exit_loop", "finish_task", "task_completed", "set_model_response"),
        *("adk_request_confirmation", "adk_request_credential", "adk_request_input"),
    }
)
"""The tools with which ADK steers its agents; they are never canned."""


class Run:
    """What is seen of one run: of what an agent does on one message."""

    def __init__(self, mocks: Any) -> None:
        self.mocks = mocks
        """The canned results of the conversation, as `_telling.Mocks` keeps them."""
        self._requests: list[Any] = []
        self._latest: dict[str, int] = {}

    def asked(self, agent: str, request: Any) -> None:
        """Note that `agent` asks its model."""
        self._latest[agent] = len(self._requests)
        self._requests.append(request)

    def answered(self, agent: str, response: Any) -> None:
        """Let the response say which request it answers: the latest of `agent`."""
        if agent in self._latest:
            response.custom_metadata = dict(
                response.custom_metadata or {}, **{REQUEST: self._latest[agent]}
            )

    def agent_details(self, events: list[Any]) -> dict[str, Any]:
        """Return what each author of `events` was told and could call, at its first response."""
        details: dict[str, Any] = {}
        for event in events:
            number = (event.custom_metadata or {}).get(REQUEST)
            if number is not None and event.author not in details:
                # Read now, as ADK does: callbacks of the agent may have changed it since.
                details[event.author] = _details(event.author, self._requests[number].config)
        return details


current: ContextVar[Run | None] = ContextVar("current", default=None)
"""The run that this task, and whatever it starts, belongs to."""


def _details(name: str, config: Any) -> dict[str, Any]:
    told = config.system_instruction
    return {
        "name": name,
        "instructions": told if isinstance(told, str) else _text(told),
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
    """Return the plugin, which serves all runs of a process."""
    from google.adk.plugins.base_plugin import BasePlugin
    from google.genai import types

    # The same as when ADK evaluates (`EnsureRetryOptionsPlugin`).
    retry = types.HttpRetryOptions(
        attempts=7,
        initial_delay=5.0,
        max_delay=120.0,
        exp_base=2.0,
        http_status_codes=[408, 429, 500, 502, 503, 504],
    )

    class Watching(BasePlugin):  # type: ignore[misc]  # of another environment
        """Notes what models are asked, and gives canned results."""

        async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
            """Note a request, and see to it that it is retried."""
            run = current.get()
            if run is not None:
                run.asked(callback_context.agent_name, llm_request)
            config = llm_request.config or types.GenerateContentConfig()
            config.http_options = config.http_options or types.HttpOptions()
            config.http_options.retry_options = config.http_options.retry_options or retry
            llm_request.config = config

        async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
            """Note a response."""
            run = current.get()
            if run is not None:
                run.answered(callback_context.agent_name, llm_response)

        async def before_tool_callback(
            self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any
        ) -> dict[str, Any] | None:
            """Return the canned result of a call, where one is due."""
            run = current.get()
            if run is None or not run.mocks or tool.name in STEERING:
                return None
            given = run.mocks.find(tool.name, tool_args)
            return given and await _response(given, tool, tool_args, tool_context)

    return Watching("ci_eval")


async def _response(given: Any, tool: Any, args: dict[str, Any], context: Any) -> dict[str, Any]:
    """Return what ADK is to take for the answer of the tool."""
    refused = await _refused(tool, args, context)
    if refused is not None:
        return refused
    if given.error is not None:
        return {"error": given.error}
    if given.result is None and tool.is_long_running:
        return {}  # with which ADK waits, as it does where such a tool returns nothing
    return given.result if isinstance(given.result, dict) else {"result": given.result}


async def _refused(tool: Any, args: dict[str, Any], context: Any) -> dict[str, Any] | None:
    """Return what keeps the tool from being called, where something does.

    A canned result stands for what the tool does; what the agent does before it calls the tool is
    the agent's own: its callbacks, which ADK would leave out now, and the asking for confirmation.
    """
    agent = context._invocation_context.agent  # noqa: SLF001  # there is no other way
    for callback in getattr(agent, "canonical_before_tool_callbacks", ()):
        answer = callback(tool=tool, args=args, tool_context=context)
        answer = await answer if inspect.isawaitable(answer) else answer
        if answer:
            return answer  # type: ignore[no-any-return]  # as ADK asks of it
    return await _unconfirmed(tool, args, context)


async def _unconfirmed(tool: Any, args: dict[str, Any], context: Any) -> dict[str, Any] | None:
    """Ask for confirmation where the tool needs it, as ADK's `FunctionTool` does."""
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
