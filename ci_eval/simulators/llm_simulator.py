"""ADK's simulated user."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from pydantic import field_validator

from ci_eval.formats.event_lists import USER
from ci_eval.formats.personas import STOP_SIGNAL, persona_of, persona_text
from ci_eval.llm.prompts import Prompts
from ci_eval.plugins.points import Panel, Simulator, simulator
from ci_eval.records.cases import Content, ConversationScenario, EvalCase, Invocation
from ci_eval.records.questions import Question, Wording
from ci_eval.simulators._simulator_calls import next_message
from ci_eval.simulators._simulator_history import written
from ci_eval.simulators._simulator_personas import shown

OWN = "custom_instructions"
PROMPT = "llm_backed"
_PROMPTS = Prompts(kind="simulator")
_NEEDED = ("stop_signal", "conversation_plan", "conversation_history")


@simulator("llm_backed")
class LlmBacked(Simulator):
    """A user who follows the plan of the scenario, as in ADK, until they write `</finished>`.

    The first message is the `starting_prompt` of the scenario, without a model call. For each
    later message, a model sees the `conversation_plan`, the `user_persona` if the scenario has one,
    and the conversation without thoughts. An answer that contains `</finished>`, in upper or lower
    case, ends the conversation, whatever else it contains, and so does such a starting prompt. The
    conversation also ends after `max_allowed_invocations` messages; it is then scored as usual.

    A persona is `EXPERT`, `NOVICE` or `EVALUATOR`, or a description: `{id, description, behaviors:
    [{name, description, behavior_instructions, violation_rubrics}]}`, all of which may contain
    `{{ stop_signal }}`. The prompt and the three personas have ci-eval's own wording.

    Unlike in ADK, an answer that is empty, cut off or blocked is requested once more before the
    trial is an error (`simulator`); ADK's default settings, which let Gemini think for up to 10240
    tokens, are not sent; and further lines of a message are indented, so that no agent can write a
    line that looks like the user's.
    """

    prompts: ClassVar[tuple[str, ...]] = (PROMPT, OWN)

    max_allowed_invocations: int = 20
    """Maximum number of messages from the user, including the first. With a negative number, only
    the general limit of 200 applies, at which the trial is an error."""
    custom_instructions: str | None = None
    """A Jinja template instead of the built-in prompt. It must use `{{ stop_signal }}`,
    `{{ conversation_plan }}` and `{{ conversation_history }}`, and `{{ persona }}` (with
    `description` and `behaviors`) if a scenario has one."""
    include_function_calls: bool = False
    """Whether to show tool calls and their results in the conversation."""

    @field_validator(OWN)
    @classmethod
    def _uses_required_variables(cls, value: str | None) -> str | None:
        missing = _PROMPTS.lacking(value, _NEEDED) if value is not None else ""
        if missing:
            raise ValueError(missing)
        return value

    def limit(self, case: EvalCase) -> int | None:
        """Return `max_allowed_invocations`; `None` if it is negative."""
        del case
        return None if self.max_allowed_invocations < 0 else self.max_allowed_invocations

    def faults(self, case: EvalCase) -> Iterator[str]:
        """Yield an error if the template does not use the persona of `case`."""
        scenario, template = case.conversation_scenario, self.custom_instructions
        if template is not None and scenario and scenario.user_persona is not None:
            missing = _PROMPTS.lacking(template, ("persona",))
            if missing:
                yield f"has a persona, but the simulator's `custom_instructions` {missing}"

    async def next_message(
        self, case: EvalCase, so_far: Sequence[Invocation], panel: Panel
    ) -> Content | None:
        """Return the starting prompt, or the model's message."""
        scenario = case.conversation_scenario
        if scenario is None:
            return None
        said = scenario.starting_prompt
        if so_far:
            said = await next_message(panel, self._question(scenario, so_far, panel))
        return None if STOP_SIGNAL in said.lower() else Content.of_text(said, role=USER)

    def _question(
        self, scenario: ConversationScenario, so_far: Sequence[Invocation], panel: Panel
    ) -> Question:
        plan, persona = scenario.conversation_plan, persona_of(scenario.user_persona)
        history = written(so_far, calls=self.include_function_calls)
        if self.custom_instructions is None:
            whom = persona_text(persona) if persona else ""
            return panel.question(PROMPT, {}, plan=plan, persona=whom, conversation=history)
        names = {"stop_signal": STOP_SIGNAL, **({"persona": shown(persona)} if persona else {})}
        wording = Wording(self.custom_instructions, names)
        data = {"conversation_plan": plan, "conversation_history": history}
        return panel.question(OWN, {}, wording=wording, **data)
