"""Agents of frameworks, which run in worker processes with an adapter for the framework.

An adapter (`ci_eval/runtime/workers/adapters`) gets `{"message": Content, "session"?}` and returns
`{"invocation": {…}, "error"?: {"kind", "message"}, "memento"?, "used"?}`: the fields of ADK's
`Invocation` without the user's content and its times, an error that followed, the data to continue
in another process, and how often canned results were used.  The session is `{"id", "app_name",
"user_id", "state", "tool_mocks"?, "memento"?}`; its last state is the final state.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, ValidationError

from ci_eval.agents._agent_input import opening, session_ids
from ci_eval.llm.gateway.gateway_clients import CallingModels, Models, behind_gateway
from ci_eval.plugins.points import Agent, RunningAgent, Session
from ci_eval.records.cases import Content, Invocation, Json
from ci_eval.records.errors import BadAnswerError, TrialError, failure_kind
from ci_eval.records.trials import Trial
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.workers.user_function import TARGET, UnderPython
from ci_eval.runtime.workers.worker_pool import Adapter, Lease, Pool, Size
from ci_eval.text.validation_messages import explain
from ci_eval.text.yaml_files import dotted


def _named(value: str) -> str:
    module, _, name = value.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        raise ValueError(f"expected 'module:name', such as 'app.agents:support', found {value!r}")
    return value


ObjectName = Annotated[str, AfterValidator(_named)]
"""A module and an object in it; modules are imported from the folder of the configuration."""


class InWorkers(CallingModels, UnderPython, Agent):
    """An agent in its own worker processes."""

    is_portable: ClassVar[bool] = True

    workers: int = Field(default=1, ge=1, le=256)
    """Number of worker processes; more than one only helps if Python code is the bottleneck."""

    def check(self, context: RunContext) -> Iterator[tuple[str, str]]:
        """Yield the errors in the interpreter, the environment and the models."""
        yield from super().check(context)
        yield from self.wrong_models(context)


class Framework(InWorkers):
    """An agent of a framework.

    Its adapter's file and the field with the target are named after its type.  The other fields
    that a subclass adds are the adapter's options.
    """

    @property
    def target(self) -> str:
        """The target for the adapter: the agent, as its framework names it."""
        return str(getattr(self, self.type_name))

    def targets(self) -> Iterator[tuple[str, str]]:
        """Yield the field of the agent, unless its target is a folder."""
        if TARGET.fullmatch(self.target):
            yield self.type_name, self.target

    def invocation(self, message: Content, reply: Mapping[str, Json], seconds: float) -> Invocation:
        """Convert the adapter's reply to `message`, which took `seconds`, to an invocation.

        Raises:
            TrialError: the reply is invalid.

        """
        return validated({"duration": seconds, **reply.get("invocation", {})}, message)

    def opening(self, trial: Trial, session_id: str) -> dict[str, Any]:
        """Return the initial session of the conversation of `trial`."""
        return opening(trial, session_id)

    def memento(self, earlier: Json, reply: Mapping[str, Json], state: Json) -> Json:
        """Return the data to continue after `reply`; `earlier` is the previous memento."""
        del earlier, state
        return reply.get("memento")

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[RunningAgent]:
        """Start the workers; leaving the context stops them."""
        options = type(self).model_fields.keys() - Framework.model_fields.keys() - {self.type_name}
        adapter = Adapter(self.type_name, self.model_dump(mode="json", include=options))
        async with behind_gateway(self, context) as (agent, inner, models):
            pooled = agent.pool_of(
                self.target,
                inner,
                adapter=adapter,
                size=Size(self.workers, variables=models.variables),
            )
            async with pooled as pool:
                yield _Running(self, pool, session_ids(context), models)


def validated(fields: Mapping[str, Json], message: Content) -> Invocation:
    """Validate the invocation of an adapter.

    Raises:
        TrialError: it is invalid, because the adapter does not fit the version of the framework.

    """
    try:
        return Invocation.model_validate({**fields, "user_content": message})
    except ValidationError as exc:
        loc, why = next(iter(explain(exc, Invocation)))
        what = f"the agent's framework returned invalid data at {dotted(loc)}: {why}"
        raise TrialError("protocol", what) from None


@dataclass(frozen=True)
class _Running:
    """The workers of an agent."""

    agent: Framework
    pool: Pool
    session_ids: Iterator[str]
    models: Models

    async def open(self, trial: Trial, *, alone: bool = False, memento: Json = None) -> Session:
        lease = await self.pool.open(alone=alone or self.models.needs_apart)
        session = self.agent.opening(trial, next(self.session_ids))
        if trial.case.tool_mocks:
            session["tool_mocks"] = trial.case.tool_mocks.model_dump(mode="json")
        if memento is not None:
            session["memento"] = memento["of_agent"]
            if trial.case.tool_mocks:
                session["tool_mocks"]["used"] = memento["used"]
        found = _Conversation(self.agent, lease, session)
        return self.models.session(found, trial, lease.link.env, lease.number)


class WorkerSession(Session):
    """One conversation in a worker."""

    def __init__(self, lease: Lease, opening: dict[str, Json]) -> None:
        self._lease = lease
        self._opening = opening
        self._state: dict[str, Json] | None = None

    @property
    def output(self) -> str:
        return self._lease.output

    async def _ask(self, message: Json) -> dict[str, Any]:
        """Return the worker's answer to `message`, which the opening accompanies the first time."""
        request = {"message": message, **self._opening}
        self._opening = {}
        answer = await self._lease.ask(request)
        self._state = answer.get("state")
        return answer

    async def close(self) -> dict[str, Json] | None:
        await self._lease.end()
        return self._state


class _Conversation(WorkerSession):
    """One conversation with an agent of a framework."""

    def __init__(self, agent: Framework, lease: Lease, session: dict[str, Any]) -> None:
        super().__init__(lease, {"session": session})
        self._agent = agent
        self._memento: Json = session.get("memento")
        self._used: Json = session.get("tool_mocks", {}).get("used", [])

    @property
    def memento(self) -> Json:
        if self._memento is None:
            return None
        return {"of_agent": self._memento, "used": self._used}

    async def send(self, message: Content) -> Invocation:
        try:
            answer = await self._ask(message.model_dump(mode="json", exclude_none=True))
        except BadAnswerError as exc:
            raise TrialError("protocol", f"the agent's framework {exc}") from exc
        reply = answer["reply"]
        self._memento = self._agent.memento(self._memento, reply, self._state)
        self._used = reply.get("used", self._used)
        found = self._agent.invocation(message, reply, answer["seconds"])
        if reply.get("error"):
            kind = failure_kind(reply["error"]["kind"])
            raise TrialError(kind, reply["error"]["message"], seen=found)
        return found
