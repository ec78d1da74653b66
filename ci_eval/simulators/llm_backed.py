"""ADK's simulated user."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from pydantic import field_validator

from ci_eval.formats.personas import STOP_SIGNAL, persona_of, told
from ci_eval.llm.prompts import Prompts
from ci_eval.plugins.points import Panel, Simulator, simulator
from ci_eval.records.model import Content, EvalCase, Invocation
from ci_eval.records.questions import Question, Wording
from ci_eval.simulators._asking import answered, as_it_is
from ci_eval.simulators._history import USER, written
from ci_eval.simulators._personas import shown

OWN = "custom_instructions"
PROMPT = "llm_backed"
_PROMPTS = Prompts(kind="simulator")
_NEEDED = ("stop_signal", "conversation_plan", "conversation_history")


@simulator("llm_backed")
class LlmBacked(Simulator):
    """A user who follows the plan of the scenario, as ADK has it, until it says `</finished>`.

    The first message is the `starting_prompt` of the scenario; nobody is asked for it. For each
    later one a model is shown the `conversation_plan`, the `user_persona` if the scenario has
    one, and what was said so far without thoughts. An answer that holds `</finished>`, in any
    case, ends the conversation, whatever else it holds, and so does a starting prompt that holds
    it. When `max_allowed_invocations` messages were sent, the conversation ends, too; what took
    place is scored all the same.

    A persona is `EXPERT`, `NOVICE` or `EVALUATOR`, or described: `{id, description, behaviors:
    [{name, description, behavior_instructions, violation_rubrics}]}`, all of which may name
    `{{ stop_signal }}`. The prompt and the three personas are in words of our own.

    Other than in ADK, an answer that is empty, cut off or held back is asked for once more, and
    is an error of the trial (`simulator`) only then; the settings of ADK's default, which let
    Gemini think for up to 10240 tokens, are left to the model; and the further lines of a message
    are set in, so that no agent can write a line that seems to be the user's.
    """

    prompts: ClassVar[tuple[str, ...]] = (PROMPT, OWN)

    max_allowed_invocations: int = 20
    """How many messages the user sends, the first one among them; a negative number for no limit
    but that of every conversation, 200, at which the trial is an error."""
    custom_instructions: str | None = None
    """A Jinja template in place of our prompt. It has to use `{{ stop_signal }}`,
    `{{ conversation_plan }}` and `{{ conversation_history }}`, and `{{ persona }}` (with
    `description` and `behaviors`) if a scenario has one."""
    include_function_calls: bool = False
    """Whether the conversation is shown with the calls of tools and what they returned."""

    @field_validator(OWN)
    @classmethod
    def _names_what_it_needs(cls, value: str | None) -> str | None:
        missing = _PROMPTS.lacking(value, _NEEDED) if value is not None else ""
        if missing:
            raise ValueError(missing)
        return value

    def limit(self, case: EvalCase) -> int | None:
        """Return `max_allowed_invocations`."""
        del case
        return None if self.max_allowed_invocations < 0 else self.max_allowed_invocations

    def faults(self, case: EvalCase) -> Iterator[str]:
        """Yield that the persona of `case` would never be heard of."""
        scenario, template = case.conversation_scenario, self.custom_instructions
        if template is not None and scenario and scenario.user_persona is not None:
            missing = _PROMPTS.lacking(template, ("persona",))
            if missing:
                yield f"has a persona, and the `custom_instructions` of the simulator: {missing}"

    async def next_message(
        self, case: EvalCase, so_far: Sequence[Invocation], panel: Panel
    ) -> Content | None:
        """Return the starting prompt, or what the model says."""
        scenario = case.conversation_scenario
        if scenario is None:
            return None
        if so_far:
            question = self._question(case, so_far, panel)
            said = await answered(panel, question, as_it_is, what="what comes next")
        else:
            said = scenario.starting_prompt
        return None if STOP_SIGNAL in said.lower() else Content.of_text(said, role=USER)

    def _question(self, case: EvalCase, so_far: Sequence[Invocation], panel: Panel) -> Question:
        scenario = case.conversation_scenario
        plan = scenario.conversation_plan if scenario else ""
        persona = persona_of(scenario.user_persona) if scenario else None
        history = written(so_far, calls=self.include_function_calls)
        if self.custom_instructions is None:
            whom = told(persona) if persona else ""
            return panel.question(PROMPT, {}, plan=plan, persona=whom, conversation=history)
        names = {"stop_signal": STOP_SIGNAL, **({"persona": shown(persona)} if persona else {})}
        wording = Wording(self.custom_instructions, names)
        data = {"conversation_plan": plan, "conversation_history": history}
        return panel.question(OWN, {}, wording=wording, **data)
