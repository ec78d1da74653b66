"""Lets `worker.py` hold conversations with an agent of Google ADK, 2.3 or later.

`worker.py` runs this file by its path, under the agent's interpreter, and imports nothing of
ci-eval, as it does itself; this file runs some of its neighbours in the same way.

The reply is `{"events", "behind", "rules", "app_details", "duration", "model_duration"?,
"tool_duration"?, "error"?, "used"?}`.  The events are ADK's, as JSON: the user's message and what
the agent did; `behind` so many were told of before.  `rules` says whose rules make an invocation of
them.  A memento is `{"events", "state"}`: all events of the conversation, and its state.
"""

from __future__ import annotations

import copy
import gc
import runpy
import sys
import time
from contextlib import nullcontext
from importlib.util import find_spec
from os.path import dirname, join
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ci_eval.runtime.workers.adapters import _adk_finding as finding
    from ci_eval.runtime.workers.adapters import _adk_plugin as plugin
    from ci_eval.runtime.workers.adapters import _telling as telling
else:
    from types import SimpleNamespace

    def _beside(name: str) -> Any:
        return SimpleNamespace(**runpy.run_path(join(dirname(__file__), name)))

    finding, plugin = _beside("_adk_finding.py"), _beside("_adk_plugin.py")
    telling = _beside("_telling.py")

OLDEST = (2, 3)
"""The first google-adk that is known here, and the only one with rules of its own."""


def adapted(target: str, options: dict[str, Any], _load: Callable[[str], Any]) -> Conversations:
    """Return what talks to the agent in the folder, or in the module, `target`.

    Raises:
        ImportError: there is no google-adk, or it is too old.
        ValueError: there is no such agent.

    """
    telling.require("google-adk", least=OLDEST)
    rules = "adk" if finding.version() > OLDEST else "adk@2.3"
    # What is loaded stays: to look for garbage in it, now and ever after, would take its time.
    gc.disable()
    # A run makes many objects, and lets go of them at its end; an agent may decide otherwise.
    gc.set_threshold(20_000, 50, 50)
    try:
        app, agent = finding.find(target, options.get("agent"))
        _note_what_is_missing()
        return Conversations(app, agent, rules)
    finally:
        gc.freeze()
        gc.enable()


def _note_what_is_missing() -> None:
    """Let ADK know at once that there is no A2A: it looks in every run, for half a millisecond."""
    if find_spec("a2a") is None:
        sys.modules.setdefault("google.adk.agents.remote_a2a_agent", None)  # type: ignore[arg-type]  # as Python has it


class Conversations:
    """An agent, and the conversations that are held with it: any number at once.

    They have one agent in common, and one `Runner`, which is not closed before the worker ends:
    to close it is to close the connections of the agent's toolsets, whoever uses them.  Sessions,
    artifacts and memory are each conversation's own, so that none sees what another one wrote.
    """

    def __init__(self, app: Any, agent: Any, rules: str) -> None:
        self._rules = rules
        self._runner = _runner(app, agent)
        self._held: dict[int, Conversation] = {}

    async def __call__(self, message: dict[str, Any], *, session: dict[str, Any]) -> dict[str, Any]:
        """Return what the agent does on `message`."""
        held = self._held.get(id(session))
        if held is None:
            held = self._held[id(session)] = Conversation(self._runner, session)
            await held.begin(session.get("memento"))
        reply = await held.send(message)
        session["state"] = await held.state()
        return {"rules": self._rules, **reply}

    def close(self, session: dict[str, Any]) -> None:
        """Let go of a conversation."""
        self._held.pop(id(session), None)

    async def end(self) -> None:
        """Close what the agent has open."""
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
        self._mocks = telling.Mocks(session)
        self._invocation = ""
        self._told = 0

    async def begin(self, memento: dict[str, Any] | None) -> None:
        """Begin with the state that was given, or where `memento` left off."""
        from google.adk.events.event import Event

        state = memento["state"] if memento else self._opening
        service, names = self._runner.session_service, self._names
        session = await service.create_session(
            app_name=self._runner.app_name, state=copy.deepcopy(state), **names
        )
        # ADK strips the id.
        self._names = {**names, "session_id": session.id}
        events = memento["events"] if memento else []
        self._told = len(events)
        for event in events:
            self._invocation = event.get("invocation_id", "")
            await service.append_event(session, Event.model_validate(event))

    async def state(self) -> dict[str, Any]:
        """Return the state that the session has now, as JSON."""
        from google.adk.sessions.base_session_service import GetSessionConfig
        from pydantic_core import to_jsonable_python

        session = await self._runner.session_service.get_session(
            app_name=self._runner.app_name,
            config=GetSessionConfig(num_recent_events=0),
            **self._names,
        )
        # Numbers that are none are left to us.
        found: dict[str, Any] = telling.as_json(to_jsonable_python(session.state, fallback=str))
        return found

    async def send(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return what the agent does on `message`."""
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
        reply["behind"] = self._told
        self._told += len(reply["events"])
        reply["app_details"] = {"agent_details": run.agent_details(events)}
        return {**reply, **self._mocks.told}

    async def _run(self, message: dict[str, Any], events: list[Any]) -> None:
        """Run the agent, adding to `events`."""
        from google.genai import types

        content = types.Content.model_validate(message)
        given = dict(self._names)
        resumes = any(part.function_response for part in content.parts or ())
        if resumes and self._is_resumable:
            given["invocation_id"] = self._invocation
        async for event in self._runner.run_async(new_message=content, **given):
            self._invocation = event.invocation_id
            events.append(event)

    @property
    def _is_resumable(self) -> bool:
        config = self._runner.resumability_config
        return bool(config and config.is_resumable)


def _busy() -> AbstractContextManager[Any]:
    """Return what collects the times of models and tools; nothing where ADK does not tell."""
    try:
        from google.adk.telemetry._instrumentation import collect_busy_intervals
    except ImportError:
        return nullcontext()
    return collect_busy_intervals()  # type: ignore[no-any-return]  # of another environment


def _dumped(message: dict[str, Any], events: list[Any], at: float) -> list[dict[str, Any]]:
    if not events:
        return []
    asked = {"invocation_id": events[0].invocation_id, "author": "user", "content": message}
    dumped = [each.model_dump(mode="json", exclude_defaults=True, fallback=str) for each in events]
    return [{**asked, "timestamp": at}, *dumped]
