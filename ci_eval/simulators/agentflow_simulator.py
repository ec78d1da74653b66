"""AgentFlow's simulated user."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from ci_eval.formats.event_lists import USER
from ci_eval.llm.model_answers import INTEGER, TEXT, json_object, many, strict
from ci_eval.plugins.points import Panel, Simulator, simulator
from ci_eval.records.cases import Content, EvalCase, Invocation, Json
from ci_eval.records.questions import UnreadableError
from ci_eval.records.scenario_settings import goals_of, max_turns_of
from ci_eval.simulators._simulator_calls import answered, next_message
from ci_eval.simulators._simulator_history import written

GOALS = "agentflow/goals"
MESSAGE = "agentflow/next_message"
FORM: Mapping[str, Json] = strict(reasoning=TEXT, reached=many(INTEGER))


@simulator("agentflow")
class AgentFlow(Simulator):
    """A user with goals, as in AgentFlow, who leaves when all of them are reached.

    The first message is the starting prompt of the scenario; if that is empty, a model writes it.
    After each answer of the agent, the model lists the goals that are reached. If some are left, it
    writes the next message: it sees the plan, the remaining goals, and the conversation with the
    tool calls. The goals are the texts under `goals` in the `metadata` of the case, or else the
    plan as the only goal. The conversation also ends after the case's maximum number of messages
    (`max_turns` in its `metadata`), or else `max_invocations`; it is then scored as usual.

    Unlike in AgentFlow, the trial is an error (`simulator`) if the model gives no answer, and no
    message is substituted; one question covers all goals; and for a scenario without `max_turns`,
    the simulator's limit applies, not always 10.
    """

    prompts: ClassVar[tuple[str, ...]] = (GOALS, MESSAGE)
    steps: ClassVar[int] = 2

    max_invocations: int = Field(default=10, ge=1)
    """Maximum number of messages from the user, including the first, if the case has none."""
    temperature: float | None = Field(default=0.7, ge=0, le=2)
    """Sampling temperature; `null` for models that do not accept one."""

    def call_settings(self) -> Mapping[str, Json]:
        """Return the settings with the temperature."""
        unset = {} if self.temperature is None else {"temperature": self.temperature}
        return {**unset, **self.settings}

    def options(self) -> dict[str, Json]:
        """Return the options that affect its messages; the temperature is a call setting."""
        return {key: value for key, value in super().options().items() if key != "temperature"}

    def limit(self, case: EvalCase) -> int:
        """Return the limit of the case, or else that of the options."""
        return max_turns_of(case) or self.max_invocations

    async def next_message(
        self, case: EvalCase, so_far: Sequence[Invocation], panel: Panel
    ) -> Content | None:
        """Return the starting prompt, or a message that pursues the remaining goals."""
        scenario = case.conversation_scenario
        if scenario is None:
            return None
        if not so_far and scenario.starting_prompt.strip():
            return Content.of_text(scenario.starting_prompt, role=USER)
        conversation = written(so_far, calls=True)
        left = await _open_goals(goals_of(case), conversation, panel) if so_far else goals_of(case)
        if so_far and not left:
            return None
        question = panel.question(
            MESSAGE,
            {},
            description=(case.model_extra or {}).get("description") or "",
            plan=scenario.conversation_plan,
            goals=list(left),
            conversation=conversation,
        )
        return Content.of_text(await next_message(panel, question), role=USER)


async def _open_goals(goals: Sequence[str], conversation: str, panel: Panel) -> list[str]:
    """Return the goals that are not reached yet."""
    if not goals:
        return []
    numbered: Json = [{"number": n, "goal": goal} for n, goal in enumerate(goals, 1)]
    question = panel.question(GOALS, FORM, goals=numbered, conversation=conversation)

    def read(text: str) -> frozenset[int]:
        return reached_in(text, len(goals))

    reached = await answered(panel, question, read, what="verdict on its goals")
    return [goal for n, goal in enumerate(goals, 1) if n not in reached]


def reached_in(text: str, goals: int) -> frozenset[int]:
    """Return the numbers of the goals that were reached according to an answer.

    Raises:
        UnreadableError: the answer cannot be parsed.

    """
    numbers = (json_object(text) or {}).get("reached")
    if not isinstance(numbers, list):
        raise UnreadableError("it holds no JSON object with a list under 'reached'")
    for each in numbers:
        if isinstance(each, bool) or not isinstance(each, int) or each not in range(1, goals + 1):
            raise UnreadableError("it holds no number of a goal under 'reached'", each)
    return frozenset(numbers)
