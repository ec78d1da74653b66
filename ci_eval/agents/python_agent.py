"""Python callables as agents."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from ci_eval.agents._agent_input import as_asked, opening, refuse_tool_mocks, session_ids, turn_of
from ci_eval.agents._agent_reply import to_invocation, unexpected
from ci_eval.agents._framework_agent import InWorkers, WorkerSession
from ci_eval.llm.gateway.gateway_clients import Models, behind_gateway
from ci_eval.plugins.points import RunningAgent, Session, agent
from ci_eval.records.cases import Content, Invocation, Json
from ci_eval.records.errors import BadAnswerError, TrialError
from ci_eval.records.trials import Trial
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.workers.user_function import PythonTarget
from ci_eval.runtime.workers.worker_pool import Lease, Pool, Size
from ci_eval.runtime.workers.worker_wire import shown


@agent("python")
class Python(InWorkers, PythonTarget):
    """A Python callable, `module:callable`, sync or async, in its own worker processes.

    It is called with the user's message (a text; ADK's content object if there is more than text)
    and, if its signature names them, with `history` (the previous turns: a list of
    `{"message", "response", "tool_calls"}`) and `session` (`{"id", "app_name", "user_id",
    "state"}`: one dictionary for the whole conversation, whose `state` it may change).  It
    returns a text, or `{"response": text, "tool_calls": [{"name", "args", "result"?}],
    "usage"?: {"input_tokens", "output_tokens", "cost_usd"}}`.

    If it needs an external answer to continue, it also returns `"waits_for": [{"name", "args",
    "id"?}]`.  The next message then has the answers: a content object with one
    `function_response` for each, `{"id", "name", "response"}`.

    A resumed run continues an unfinished conversation in another process, with the same `history`
    and `session`; see `resumable`.
    """

    threads: int | None = Field(default=None, ge=1)
    """Maximum number of concurrent conversations per worker; 1 for a callable that is not
    thread-safe. Default: as many as `run.concurrency` allows."""
    resumable: bool = True
    """Whether `history` and `session` are its whole state. Set `false` for a callable that keeps
    other state: a resumed run then starts its conversations over."""

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[RunningAgent]:
        """Start the workers; leaving the context stops them."""
        async with behind_gateway(self, context) as (agent, inner, models):
            size = Size(self.workers, self.threads, models.variables)
            async with agent.pool(inner, size) as pool:
                yield _Running(pool, session_ids(context), models, resumable=self.resumable)


@dataclass(frozen=True)
class _Running:
    """The workers of the callable."""

    pool: Pool
    session_ids: Iterator[str]
    models: Models
    resumable: bool

    async def open(self, trial: Trial, *, alone: bool = False, memento: Json = None) -> Session:
        refuse_tool_mocks(trial, "python")
        lease = await self.pool.open(alone=alone or self.models.needs_apart)
        held = memento or {
            "session": opening(trial, next(self.session_ids)),
            "state": None,
            "history": [],
        }
        found = _Conversation(lease, held, resumable=self.resumable)
        return self.models.session(found, trial, lease.link.env, lease.number)


class _Conversation(WorkerSession):
    """One conversation with the callable."""

    def __init__(self, lease: Lease, memento: dict[str, Any], *, resumable: bool) -> None:
        self._session = memento["session"]
        self._history: list[Json] = memento["history"]
        self._resumable = resumable
        known = {} if memento["state"] is None else {"state": memento["state"]}
        super().__init__(lease, {"session": self._session | known, "history": [*self._history]})
        self._state = memento["state"]

    @property
    def memento(self) -> Json:
        if not self._resumable:
            return None
        return {"session": self._session, "state": self._state, "history": self._history}

    async def send(self, message: Content) -> Invocation:
        asked = as_asked(message)
        try:
            answer = await self._ask(asked)
        except BadAnswerError as exc:
            raise unexpected(str(exc)) from exc
        if not isinstance(self._state, dict | None):
            raise TrialError("protocol", f"the agent left {shown(self._state)} as its state")
        reply, seconds = answer["reply"], answer["seconds"]
        found = to_invocation(message, reply, seconds=seconds, number=len(self._history) + 1)
        self._history.append(turn_of(asked, reply))
        return found
