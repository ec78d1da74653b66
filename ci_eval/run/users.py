"""Users of a run: scripted by the case, or simulated."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ci_eval.llm.judge_settings import Simulation
from ci_eval.llm.model_client import Asker, JudgePanel
from ci_eval.plugins.points import Simulator
from ci_eval.records.cases import Content, EvalCase, Invocation
from ci_eval.records.errors import TrialError, UsageError
from ci_eval.records.results import JudgeUsage
from ci_eval.records.trials import Trial, TrialKey
from ci_eval.run.conversation import Scripted, User

MAX_INVOCATIONS = 200
"""Maximum number of invocations in a conversation without a limit."""


@dataclass
class Simulating:
    """Creates the users of a run, and counts their model usage."""

    simulation: Simulation
    asker: Asker
    _panels: dict[TrialKey, JudgePanel] = field(default_factory=dict)

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
    panel: JudgePanel

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
