"""Agents whose model calls go through the gateway, and their conversations."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar
from urllib.parse import urlsplit

from pydantic import field_validator

from ci_eval.llm.gateway.gateway import Gateway, gateway_for, only_replays
from ci_eval.llm.gateway.gateway_options import ModelOptions, unreachable
from ci_eval.llm.gateway.gateway_options import Models as ModelOptionsOrMode
from ci_eval.llm.gateway.open_conversations import Conversation
from ci_eval.llm.gateway.providers import ADDRESS, KEYS, PROVIDERS, held
from ci_eval.plugins.points import Agent, Session
from ci_eval.records.cases import Content, Invocation, Json, Record
from ci_eval.records.errors import DisturbedError, TrialError
from ci_eval.records.trials import Trial
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import Declared, agent_environment, looked_up, unset
from ci_eval.runtime.http import address
from ci_eval.runtime.trial_clock import TrialClock
from ci_eval.text.redact import MIN_CHARS


class CallingModels(Record):
    """An agent that calls models by itself, in a process that we start."""

    models: ModelOptionsOrMode | None = None
    """The model gateway: records, replays, meters and limits the agent's model calls, and hides
    the keys from it. A mode alone, such as `models: replay`, or options. Default: the agent calls
    its models directly."""

    @field_validator("models", mode="before")
    @classmethod
    def _says_how(cls, value: object) -> object:
        if value is None:
            raise ValueError(
                "is empty; write `models: auto`, another mode or options, or remove it"
            )
        return value

    @property
    def declared(self) -> Declared:
        """The variables that the configuration adds to the agent's environment."""
        found: Declared = getattr(self, "env", {})
        return found

    def handled(self, context: RunContext) -> ModelOptions | None:
        """Return the gateway's options in this run; `None` if the agent does not use it."""
        return self.models and self.models.in_mode(context.models_mode)

    def file_variables(self, context: RunContext) -> Mapping[str, str]:
        """Return the variables that the agent itself reads from a file."""
        del context
        return {}

    def missing(self, env: Mapping[str, str]) -> str:
        """Return the declared variables that are not set, as text."""
        elsewhere = () if self.models is None else KEYS  # the gateway has them
        own = {name: value for name, value in self.declared.items() if name not in elsewhere}
        return unset(own, env)

    def wrong_models(self, context: RunContext) -> Iterator[tuple[str, str]]:
        """Yield errors: services that the gateway cannot replay, wrong addresses of providers."""
        options = self.handled(context)
        if options and options.mode != "replay":
            for provider in (PROVIDERS[name] for name in options.providers):
                key = provider.key_variable(context.env)
                if key and not (context.env[key].isascii() and context.env[key].isprintable()):
                    yield "models", f"the environment variable {key!r} has a line end or the like"
                if not _can_be_extended(provider.upstream(context.env)):
                    variable = provider.address_variable(context.env)
                    found = f"the environment variable {variable!r} is not an address such as"
                    yield "models", f"{found} {provider.address!r}, without a login or a query"
        elif options:
            for service, variable in self._unreachable(context):
                message = f"calls to {service} cannot be replayed, but {variable} makes the agent"
                yield "models", f"{message} call it; remove the variable or choose another mode"

    def unmetered(self, context: RunContext) -> Iterator[str]:
        """Yield warnings about services that the agent calls without the gateway."""
        options = self.handled(context)
        if options and options.mode != "replay":
            for service, variable in self._unreachable(context):
                message = f"calls to {service} are neither recorded nor counted"
                yield f"{message}, but {variable} makes the agent call it"

    def _unreachable(self, context: RunContext) -> Iterator[tuple[str, str]]:
        declared = self.declared.items()
        variables = {
            **self.file_variables(context),
            **agent_environment(context, self.declared),
            # Whether set or not.
            **{name: "1" for name, value in declared if value is None and "*" not in name},
        }
        yield from unreachable(variables).items()


def _can_be_extended(url: str) -> bool:
    """Return True if an address can get a path, and requests to it a key."""
    try:
        parts = urlsplit(address(url))
    except ValueError:
        return False
    return not (parts.query or parts.fragment or "@" in parts.netloc)


def with_models(
    agents: Mapping[str, Agent], changed: Callable[[str, ModelOptions], ModelOptions]
) -> dict[str, Agent]:
    """Return the agents with changed gateway options; `changed` gets each agent's name."""
    found = dict(agents)
    for name, agent in agents.items():
        if options := gateway_options(agent):
            found[name] = agent.model_copy(update={"models": changed(name, options)})
    return found


def gateway_options(agent: object) -> ModelOptions | None:
    """Return an agent's gateway options; `None` if it has none."""
    return agent.models if isinstance(agent, CallingModels) else None


def calls_directly(agent: object) -> bool:
    """Return True if an agent calls models without the gateway, which it could use."""
    return isinstance(agent, CallingModels) and agent.models is None


def replays(agent: object, env: Mapping[str, str]) -> bool:
    """Return True if an agent gets only recorded answers of models."""
    options = gateway_options(agent)
    return options is not None and only_replays(options, env)


def left_out_hint(message: str, agent: object) -> str:
    """Return a hint to append to an agent's error, if `models.providers` caused it."""
    options, name = gateway_options(agent), looked_up(message)
    if options is None:
        return ""
    left_out = (each for each in PROVIDERS.values() if each.name not in options.providers)
    for provider in left_out:
        if name in provider.client_variables:
            added = f"add `{provider.name}` to `models.providers`"
            return f"\n  (the agent gets no {name} for a provider that is left out; {added})"
    return ""


@dataclass(frozen=True)
class Models:
    """The gateway of a started agent; without one, the agent calls its models directly."""

    gateway: Gateway | None = None
    given: Mapping[str, str | None] = field(default_factory=dict)
    """The variables that the agent gets without the gateway, and those that it declares."""

    @property
    def needs_apart(self) -> bool:
        """Whether each conversation needs a process of its own."""
        return self.gateway is not None and self.gateway.needs_apart

    def variables(self) -> dict[str, str]:
        """Return the variables that point one more process to the gateway."""
        if self.gateway is None:
            return {}
        return self.gateway.variables(self.gateway.process(), self.given)

    def session(self, inner: Session, trial: Trial, env: Mapping[str, str], number: int) -> Session:
        """Return a session whose calls are metered.

        `env` is the environment of its process; `number` is the mark of its calls.
        """
        if self.gateway is None:
            return inner
        process = self.gateway.at(env[ADDRESS])
        conversation = self.gateway.open(process, number, trial.key, again=trial.again)
        return _Metered(inner, conversation, self.gateway, process.conversations, number)


A = TypeVar("A", bound=CallingModels)
V = TypeVar("V", str, str | None)


@asynccontextmanager
async def behind_gateway(
    agent: A, context: RunContext
) -> AsyncIterator[tuple[A, RunContext, Models]]:
    """Provide the agent and its context without model keys, and the gateway that holds the keys.

    Raises:
        UsageError: the cassette cannot be read.

    """
    options = agent.handled(context)
    if options is None:
        yield agent, context, Models()
        return
    keys = [*held(context.env)]
    inner = replace(context, env=_without(keys, context.env))
    declared = _without(keys, agent.declared)
    given = {**agent.declared, **agent_environment(inner, declared)}
    async with gateway_for(options, context) as gateway:
        yield agent.model_copy(update={"env": declared}), inner, Models(gateway, given)


def _without(keys: Sequence[str], variables: Mapping[str, V]) -> dict[str, V]:
    """Return the variables that neither are key variables nor contain one of the keys."""
    return {
        name: value
        for name, value in variables.items()
        if name not in KEYS and not any(_holds(value or "", key) for key in keys)
    }


def _holds(value: str, key: str) -> bool:
    # A short key is a placeholder, and appears in paths.
    return value == key or (len(key) >= MIN_CHARS and key in value)


@dataclass
class _Metered(Session):
    """A conversation whose model calls are metered."""

    _inner: Session
    _conversation: Conversation
    _gateway: Gateway
    _open_ones: dict[int, Conversation]
    _number: int
    _stopped_s: float = 0.0
    """How long the trial's clock had been stopped when the message was sent, in seconds."""

    @property
    def memento(self) -> Json:
        return None if self._gateway.has_cassette else self._inner.memento

    @property
    def output(self) -> str:
        return self._inner.output

    def timed_by(self, clock: TrialClock) -> None:
        self._conversation.clock = clock
        self._inner.timed_by(clock)

    def complete(self) -> None:
        if self._gateway.has_cassette:
            self._conversation.check_end()
        self._gateway.complete(self._conversation)
        self._inner.complete()

    async def send(self, message: Content) -> Invocation:
        self._stopped_s = self._stopped_so_far_s
        try:
            found = await self._inner.send(message)
        except DisturbedError:
            raise
        except TrialError as exc:
            await self._conversation.settle()
            self._check(exc.seen)
            exc.seen = exc.seen and self._metered(exc.seen)
            raise
        await self._conversation.settle()
        self._check(found)
        return self._metered(found)

    async def close(self) -> dict[str, Json] | None:
        try:
            return await self._inner.close()
        finally:
            self._conversation.is_over = True
            self._open_ones.pop(self._number, None)

    def _check(self, seen: Invocation | None) -> None:
        """Raise the error of the conversation, with what was observed."""
        try:
            self._conversation.check()
        except DisturbedError:
            raise
        except TrialError as exc:
            exc.seen = seen and self._metered(seen)
            raise

    @property
    def _stopped_so_far_s(self) -> float:
        clock = self._conversation.clock
        return clock.stopped_s if clock else 0.0

    def _metered(self, seen: Invocation) -> Invocation:
        """Return the invocation with its usage, and without the time for which calls waited."""
        waited = self._stopped_so_far_s - self._stopped_s
        took = {
            name: max(seconds - waited, 0.0)
            for name in ("duration", "model_duration")
            if (seconds := getattr(seen, name)) is not None
        }
        return seen.model_copy(update={"metered": self._conversation.take_usage(), **took})
