"""Scorers and simulated users of a run."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from ci_eval.llm import model_client
from ci_eval.llm.gateway.gateway import check_models
from ci_eval.llm.gateway.gateway_clients import CallingModels
from ci_eval.llm.gateway.gateway_options import ModelOptions
from ci_eval.llm.judge_settings import Simulation, provider_of
from ci_eval.llm.rate_limit import pace_of
from ci_eval.plugins.points import Scorer, Simulator, WorkerCriterion
from ci_eval.records.cases import Content, EvalCase, Invocation
from ci_eval.records.errors import TrialError, UsageError
from ci_eval.records.results import JudgeUsage
from ci_eval.records.trials import Trial, TrialKey
from ci_eval.run.conversation import Scripted, User, Users
from ci_eval.run.plan import Plan
from ci_eval.runtime.context import RunContext

MAX_INVOCATIONS = 200
"""Maximum number of invocations in a conversation without a limit."""


@dataclass
class Simulating:
    """Creates the users of a run, and counts their model usage."""

    simulation: Simulation
    asker: model_client.Asker
    _panels: dict[TrialKey, model_client.JudgePanel] = field(default_factory=dict)

    def __call__(self, trial: Trial) -> User:
        """Return the user of `trial`."""
        if trial.case.conversation_scenario is None:
            return Scripted(trial)
        panel = self._panels.get(trial.key)
        if panel is None:
            panel = self.asker.player(self.simulation, trial.key.repeat)
            self._panels[trial.key] = panel
        return Simulated(self.simulation.simulator, trial.case, panel)

    def apart(self) -> "Simulating":
        """Return separate users for other trials, which may have the same keys."""
        return Simulating(self.simulation, self.asker)

    def spent(self, key: TrialKey) -> JudgeUsage | None:
        """Return the usage of a finished trial's user; `None` if no model was called."""
        panel = self._panels.pop(key, None)
        return panel.usage if panel and panel.usage != JudgeUsage() else None


@dataclass(frozen=True)
class Simulated:
    """A user simulated by a model."""

    simulator: Simulator
    case: EvalCase
    panel: model_client.JudgePanel

    async def next_message(self, so_far: Sequence[Invocation]) -> Content | None:
        """Return the user's next message after `so_far`; `None` at the end.

        Raises:
            TrialError: the next message cannot be determined, or the conversation never ends.

        """
        limit = self.simulator.limit(self.case)
        if limit is not None and len(so_far) >= limit:
            return None
        if len(so_far) >= MAX_INVOCATIONS:
            message = f"the simulated user did not finish after {MAX_INVOCATIONS} invocations"
            raise TrialError("simulator", message)
        try:
            return await self.simulator.next_message(self.case, so_far, self.panel)
        except UsageError as exc:
            raise TrialError("simulator", f"the simulated user failed: {exc}") from exc


class Participants(NamedTuple):
    """Scorers and users, started."""

    scorers: Mapping[str, Scorer]
    """The criteria that had to be started, by their names in the configuration."""
    users: Users

    def apart(self) -> "Participants":
        """Return the same scorers, and users whose usage is counted on its own."""
        users = self.users
        return self._replace(users=users.apart() if isinstance(users, Simulating) else users)

    def spent(self, key: TrialKey) -> JudgeUsage | None:
        """Return the usage of the simulated user of a finished trial."""
        return self.users.spent(key) if isinstance(self.users, Simulating) else None


@asynccontextmanager
async def started(
    plan: Plan, context: RunContext, spent: JudgeUsage
) -> AsyncIterator[Participants]:
    """Start the criteria and the model client; leaving the context stops them.

    What is already `spent` counts towards the limits of model calls.
    """
    simulation = plan.simulation
    users: Users = Scripted
    async with AsyncExitStack() as stack:
        scorers: dict[str, Scorer] = {
            name: await stack.enter_async_context(criterion.start(context))
            for name, criterion in plan.criteria.items()
            if isinstance(criterion, WorkerCriterion)
        }
        if plan.judged or simulation:
            _limit_paces(plan)
            asking_all = model_client.asking(plan.config.judging, context, spent)
            asker = await stack.enter_async_context(asking_all)
            scorers |= {
                name: model_client.Judged(each, asker) for name, each in plan.judged.items()
            }
            users = Simulating(simulation, asker) if simulation else users
        yield Participants(scorers, users)


def _limit_paces(plan: Plan) -> None:
    """Make agents obey the limits of judges from the start."""
    judging, simulation = plan.config.judging, plan.simulation
    judges = [judge for each in plan.judged.values() for judge in judging.judges(each)]
    judges += [judging.player(simulation)] if simulation else []
    for each in judges:
        options = judging.options
        pace_of(provider_of(each)).limit(options.requests_per_minute, options.tokens_per_minute)


def check(plan: Plan, context: RunContext) -> None:
    """Check before the run that all models can be called.

    Raises:
        UsageError: a key is missing, or the cassette cannot be read.
        OSError: the cassette cannot be written.

    """
    for name, options in agents_with_gateway(plan, context):
        check_models(name, options, context)
    judged, simulation = [*plan.judged.values()], plan.simulation
    if judged or simulation:
        model_client.check(plan.config.judging, judged, context, simulation=simulation)


def agents_with_gateway(plan: Plan, context: RunContext) -> Iterator[tuple[str, ModelOptions]]:
    """Yield the agents whose model calls the gateway handles, with their options."""
    for name in dict.fromkeys(agent for agent, _ in plan.pairs):
        found: object = plan.config.agents[name]
        options = found.handled(context) if isinstance(found, CallingModels) else None
        if options:
            yield name, options
