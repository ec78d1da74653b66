"""Cases of agents-cli (Google's CLI for agents on its platform), with or without answers.

A dataset and a trace have the same shape, `{"eval_cases": [{"eval_case_id", …}]}`: a case has
a message in `prompt`, or a conversation in `agent_data.turns[].events`.  A dataset may have an
expected answer in `reference`, and a trace has the agent's answers in `responses`.
"""

from collections.abc import Mapping

from pydantic import Field, field_validator, model_validator

from ci_eval.formats.event_lists import USER
from ci_eval.formats.known_formats import first_object
from ci_eval.records.cases import Content, InvocationEvent, Json, Stored


class _Turn(Stored):
    events: tuple[InvocationEvent, ...] = ()


class _AgentData(Stored):
    turns: tuple[_Turn, ...] = ()


class _Response(Stored):
    response: Content | None = None


class AgentsCliCase(Stored):
    """One case of agents-cli."""

    eval_case_id: str | None = Field(default=None, min_length=1)
    prompt: Content | None = None
    agent_data: _AgentData | None = None
    responses: tuple[_Response, ...] | None = None
    reference: _Response | None = None
    """The expected answer to the last message."""

    @field_validator("reference", mode="before")
    @classmethod
    def _may_be_a_text(cls, value: Json) -> Json | _Response:
        is_text = isinstance(value, str)
        return _Response(response=Content.of_text(value, role="model")) if is_text else value

    @model_validator(mode="after")
    def _is_asked_something(self) -> "AgentsCliCase":
        if not any(event.author == USER for event in self.events()):
            raise ValueError("has neither a 'prompt' nor a user message in 'agent_data'")
        return self

    def events(self) -> list[InvocationEvent]:
        """Return the conversation: the prompt, the events, and the answer.

        An answer that is only in `responses` is appended.
        """
        turns = self.agent_data.turns if self.agent_data else ()
        events = [event for turn in turns for event in turn.events]
        if self.prompt and not any(event.author == USER for event in events):
            events.insert(0, InvocationEvent(author=USER, content=self.prompt))
        answer = next((each.response for each in self.responses or () if each.response), None)
        if answer and events and events[-1].author == USER:
            events.append(InvocationEvent(author="agent", content=answer))
        return events


def is_agents_cli(head: Json) -> bool:
    """Return True if a document that begins like `head` has cases of agents-cli."""
    case = _first_case(head)
    is_adk = bool({"eval_id", "evalId"} & case.keys())
    return not is_adk and bool({"eval_case_id", "prompt", "agent_data", "responses"} & case.keys())


def is_answered(head: Json) -> bool:
    """Return True if the cases have answers, which makes them a trace rather than a dataset."""
    return bool(_first_case(head).get("responses"))


def _first_case(head: Json) -> Mapping[str, Json]:
    return first_object(head.get("eval_cases")) if isinstance(head, Mapping) else {}
