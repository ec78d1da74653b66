"""Adapter for agents of Google ADK, 2.3 or later.

`worker.py` runs this file under the agent's interpreter.  From ci-eval, it imports only files
beside it.

The reply is `{"events", "behind", "rules", "app_details", "duration", "model_duration"?,
"tool_duration"?, "error"?, "used"?}`.  The events are ADK's, as JSON: the user's message and the
agent's actions; `behind` is the number of events reported before.  `rules` names the rules that
turn them into an invocation.  A memento is `{"events", "state"}`: all events of the conversation,
and its state.
"""

from __future__ import annotations

import copy
import gc
import sys
import time
from contextlib import nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from . import _adapter_reporting as reporting
from . import _adk_adapter_loading as loading
from . import _adk_adapter_plugin as plugin

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

OLDEST = (2, 3)
"""The oldest supported google-adk, and the only one with its own rules."""


def adapted(target: str, options: dict[str, Any], _load: Callable[[str], Any]) -> Conversations:
    """Return the conversations with the agent in the folder or module `target`.

    Raises:
        ImportError: google-adk is missing or too old.
        ValueError: there is no such agent.

    """
    reporting.require("google-adk", least=OLDEST)
    unknown = list(loading.switch_features(options.get("features") or {}))
    rules = "adk" if loading.version() > OLDEST else "adk@2.3"
    # Loaded modules stay alive: garbage collection in them, now or later, would waste time.
    gc.disable()
    # A run creates many objects and frees them at its end; an agent may set other thresholds.
    gc.set_threshold(20_000, 50, 50)
    try:
        app, agent = loading.find(target, options.get("agent"))
        _skip_missing_a2a()
        return Conversations(app, agent, rules, unknown)
    finally:
        gc.freeze()
        gc.enable()


def _skip_missing_a2a() -> None:
    """Mark A2A as missing if it is; else ADK would search for it in every run, for 0.5 ms."""
    if find_spec("a2a") is None:
        sys.modules.setdefault("google.adk.agents.remote_a2a_agent", None)  # type: ignore[arg-type]  # as Python does


class Conversations:
    """Any number of concurrent conversations with an agent.

    They share the agent and one `Runner`, which is only closed when the worker ends, because
    closing it closes the connections of the agent's toolsets for all.  Each conversation has its
    own sessions, artifacts and memory, so that none sees another's data.
    """

    def __init__(self, app: Any, agent: Any, rules: str, start_warnings: list[str]) -> None:
        self.start_warnings = start_warnings
        self._rules = rules
        self._runner = _runner(app, agent)
        self._open: dict[int, Conversation] = {}

    async def __call__(self, message: dict[str, Any], *, session: dict[str, Any]) -> dict[str, Any]:
        """Send `message`, and return the agent's reply."""
        conversation = self._open.get(id(session))
        if conversation is None:
            conversation = self._open[id(session)] = Conversation(self._runner, session)
            await conversation.begin(session.get("memento"))
        reply = await conversation.send(message)
        session["state"] = await conversation.state()
        return {"rules": self._rules, **reply}

    def close(self, session: dict[str, Any]) -> None:
        """Close a conversation."""
        self._open.pop(id(session), None)

    async def end(self) -> None:
        """Close the agent's connections."""
        await self._runner.close()


def _runner(app: Any, agent: Any) -> Any:
    from google.adk.runners import Runner
    from google.adk.sessions.in_memory_session_service import InMemorySessionService

    if app is None:
        given = {"agent": agent, "plugins": [plugin.plugin()]}
    else:
        update = {"plugins": [*app.plugins, plugin.plugin()], "root_agent": agent}
        given = {"app": app.model_copy(update=update)}
    return Runner(**given, app_name="ci_eval", session_service=InMemorySessionService())


class Conversation:
    """One conversation."""

    def __init__(self, runner: Any, session: dict[str, Any]) -> None:
        from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
        from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
        from google.adk.sessions.in_memory_session_service import InMemorySessionService

        self._runner = copy.copy(runner)
        self._runner.app_name = session["app_name"]
        self._runner.session_service = InMemorySessionService()
        self._runner.artifact_service = InMemoryArtifactService()
        self._runner.memory_service = InMemoryMemoryService()
        self._names = {"user_id": session["user_id"], "session_id": session["id"]}
        self._opening = session.get("state") or {}
        self._mocks = reporting.Mocks(session)
        self._invocation = ""
        self._reported = 0

    async def begin(self, memento: dict[str, Any] | None) -> None:
        """Begin with the given state, or continue from `memento`."""
        from google.adk.events.event import Event

        state = memento["state"] if memento else self._opening
        service, names = self._runner.session_service, self._names
        session = await service.create_session(
            app_name=self._runner.app_name, state=copy.deepcopy(state), **names
        )
        # ADK strips the id.
        self._names = {**names, "session_id": session.id}
        events = memento["events"] if memento else []
        self._reported = len(events)
        for event in events:
            self._invocation = event.get("invocation_id", "")
            await service.append_event(session, Event.model_validate(event))

    async def state(self) -> dict[str, Any]:
        """Return the current session state as JSON."""
        from google.adk.sessions.base_session_service import GetSessionConfig
        from pydantic_core import to_jsonable_python

        session = await self._runner.session_service.get_session(
            app_name=self._runner.app_name,
            config=GetSessionConfig(num_recent_events=0),
            **self._names,
        )
        # It keeps NaN and infinity, which `as_json` replaces.
        found: dict[str, Any] = reporting.as_json(to_jsonable_python(session.state, fallback=str))
        return found

    async def send(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send `message`, and return the agent's reply."""
        run = plugin.Run(self._mocks)
        plugin.current.set(run)
        events: list[Any] = []
        reply: dict[str, Any] = {}
        at, started = time.time(), time.monotonic()
        with _busy() as busy, self._mocks:
            await self._run(message, events)
        reply["duration"] = round(time.monotonic() - started, 3)
        if busy is not None:
            reply["model_duration"] = round(busy.model_seconds(), 3)
            reply["tool_duration"] = round(busy.tool_seconds(), 3)
        reply["events"] = _dumped(message, events, at)
        reply["behind"] = self._reported
        self._reported += len(reply["events"])
        reply["app_details"] = {"agent_details": run.agent_details(events)}
        return {**reply, **self._mocks.reply_fields}

    async def _run(self, message: dict[str, Any], events: list[Any]) -> None:
        """Run the agent, adding to `events`."""
        from google.genai import types

        content = types.Content.model_validate(message)
        given = dict(self._names)
        resumes = any(part.function_response for part in content.parts or ())
        config = self._runner.resumability_config
        if resumes and config and config.is_resumable:
            given["invocation_id"] = self._invocation
        async for event in self._runner.run_async(new_message=content, **given):
            self._invocation = event.invocation_id
            events.append(event)


def _busy() -> AbstractContextManager[Any]:
    """Return ADK's collector of the times of models and tools, if it has one."""
    try:
        from google.adk.telemetry._instrumentation import collect_busy_intervals
    except ImportError:
        return nullcontext()
    return collect_busy_intervals()  # type: ignore[no-any-return]  # from another environment


def _dumped(message: dict[str, Any], events: list[Any], at: float) -> list[dict[str, Any]]:
    if not events:
        return []
    user_event = {"invocation_id": events[0].invocation_id, "author": "user", "content": message}
    dumped = [each.model_dump(mode="json", exclude_defaults=True, fallback=str) for each in events]
    return [{**user_event, "timestamp": at}, *dumped]
