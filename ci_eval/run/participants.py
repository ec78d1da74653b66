"""Scorers and simulated users of a run."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

from ci_eval.llm import model_client
from ci_eval.llm.gateway.calling_agents import CallingModels
from ci_eval.llm.gateway.gateway import check_models
from ci_eval.llm.judge_settings import provider_of
from ci_eval.llm.rate_limit import pace_of
from ci_eval.plugins.points import Scorer, WorkerCriterion
from ci_eval.records.results import JudgeUsage
from ci_eval.records.trials import TrialKey
from ci_eval.run.conversation import Scripted, Users
from ci_eval.run.plan import Plan
from ci_eval.run.users import Simulating
from ci_eval.runtime.context import RunContext


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
    for name in dict.fromkeys(agent for agent, _ in plan.pairs):
        found: object = plan.config.agents[name]
        options = found.handled(context) if isinstance(found, CallingModels) else None
        if options:
            check_models(name, options, context)
    judged, simulation = [*plan.judged.values()], plan.simulation
    if judged or simulation:
        model_client.check(plan.config.judging, judged, context, simulation=simulation)
