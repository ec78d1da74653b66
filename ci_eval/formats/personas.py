"""Personas of simulated users: ADK's three by name, and those described in cases.

They are used by the model that plays the user, which gets the instructions, and by the judge of
simulated users, which also gets the violations.  The names are ADK's; the texts are ci-eval's.
"""

import re
from collections.abc import Iterator, Mapping

from pydantic import ValidationError

from ci_eval.records.model import AdkRecord, Json
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.validation_messages import describe, explain

STOP_SIGNAL = "</finished>"
"""Text with which ADK's simulated user ends the conversation."""
_NAMED_SIGNAL = re.compile(r"\{\{\s*stop_signal\s*\}\}")


class Behavior(AdkRecord, extra="ignore"):
    """One behaviour of a persona, with its violations."""

    name: str
    description: str
    behavior_instructions: tuple[str, ...]
    """Instructions for the model that plays the persona."""
    violation_rubrics: tuple[str, ...]
    """Violations of the behaviour, for a judge."""


class Persona(AdkRecord, extra="ignore"):
    """A kind of user."""

    id: str
    description: str
    behaviors: tuple[Behavior, ...]


def fault(value: Json) -> str:
    """Return the error in the `user_persona` of a scenario; empty if there is none."""
    if value is None or (isinstance(value, str) and value in KNOWN):
        return ""
    if isinstance(value, str):
        return f"unknown persona {value[:80]!r}{did_you_mean(value[:80], KNOWN)}"
    if not isinstance(value, Mapping):
        return f"expected the name or the description of a persona, found {describe(value)}"
    try:
        Persona.model_validate(value)
    except ValidationError as exc:
        loc, message = next(explain(exc, Persona))
        return ".".join(map(str, loc)) + f": {message}" if loc else message
    return ""


def persona_of(value: Json, stop_signal: str = STOP_SIGNAL) -> Persona | None:
    """Return the persona with this name or description; `None` if it is invalid.

    `{{ stop_signal }}` is replaced in its texts; nothing else is.
    """
    known = KNOWN.get(value) if isinstance(value, str) else None
    if known is None and fault(value):
        return None
    given = known.model_dump() if known else value
    return Persona.model_validate(_with_signal(given, stop_signal)) if given is not None else None


def _with_signal(value: Json, stop_signal: str) -> Json:
    if isinstance(value, str):
        return _NAMED_SIGNAL.sub(lambda _: stop_signal, value)
    if isinstance(value, Mapping):
        return {key: _with_signal(each, stop_signal) for key, each in value.items()}
    return [_with_signal(each, stop_signal) for each in value] if _is_list(value) else value


def _is_list(value: Json) -> bool:
    return isinstance(value, list | tuple)


def persona_text(persona: Persona, *, to_judge: bool = False) -> str:
    """Return the text of `persona`, one item per line; for a judge, with the violations."""
    return "\n".join(_lines(persona, to_judge=to_judge))


def _lines(persona: Persona, *, to_judge: bool) -> Iterator[str]:
    yield from filter(None, (persona.id, persona.description))
    for each in persona.behaviors:
        yield from filter(None, (each.name, each.description))
        yield from (f"- {line}" for line in each.behavior_instructions)
        if to_judge:
            yield from (f"- It breaks this where: {line}" for line in each.violation_rubrics)


def described(value: Json, stop_signal: str) -> str:
    """Return the persona's text for a judge; empty without a persona."""
    persona = persona_of(value, stop_signal)
    return persona_text(persona, to_judge=True) if persona else ""


# --- ADK's personas, in ci-eval's words -------------------------------------------------------


def _behavior(name: str, description: str, do: tuple[str, ...], never: tuple[str, ...]) -> Behavior:
    return Behavior(
        name=name, description=description, behavior_instructions=do, violation_rubrics=never
    )


_STEP_BY_STEP = _behavior(
    "Goes through the plan in full",
    "Goes through the plan with all the details that it gives.",
    (
        "Once the agent has done what you asked for, ask for what the plan has next.",
        "Leave out what the agent has done already.",
        "Say what you want together with every detail of it that the plan gives.",
    ),
    (
        "It asks again for what was done.",
        "It wants what the plan does not have, or agrees to something else that the agent offers.",
        "It makes up a detail, such as a number or an address.",
        "It keeps details back until the agent asks for them.",
        "It asks for two things of the plan at once.",
    ),
)
_GOAL_FIRST = _behavior(
    "Names its goal alone",
    "Names its goal, and leaves the details to the agent until it asks.",
    (
        "Once the agent has done what you asked for, name the goal that the plan has next.",
        "Leave out what the agent has done already.",
        "Give no details of a goal before the agent asks for them.",
    ),
    (
        "It asks again for what was done.",
        "It wants what neither the plan nor the agent brought up, or makes up a detail.",
        "It gives a detail that the agent has not asked for.",
        "It asks for two things of the plan at once.",
    ),
)
_ONLY_RELEVANT = _behavior(
    "Answers what matters",
    "Answers what the agent asks only where it has to do with the plan.",
    (
        "Answer a question that the plan has an answer to, and add nothing to the answer.",
        "Where a question has nothing to do with the plan, say so, and come back to your request.",
    ),
    (
        "It answers a question that has nothing to do with the plan.",
        "It does not answer a question that the plan has an answer to.",
        "It tells more than was asked.",
    ),
)
_ANSWERS_ALL = _behavior(
    "Answers everything",
    "Answers whatever the agent asks.",
    (
        "Answer every question of the agent.",
        "Where the plan has no answer, say something that fits the plan, or that you do not know.",
    ),
    ("It leaves a question of the agent without an answer.",),
)
_CORRECTS = _behavior(
    "Corrects the agent",
    "Corrects the agent where it is wrong.",
    ("Where the agent says or assumes what contradicts the plan or makes no sense, correct it.",),
    ("The agent is wrong, and the message passes over it.",),
)
_NEVER_CORRECTS = _behavior(
    "Leaves mistakes alone",
    "Never corrects the agent.",
    ("Where the agent says what is wrong or makes no sense, write `{{ stop_signal }}`.",),
    ("It corrects a mistake or an assumption of the agent.",),
)
_HELPS_ONCE = _behavior(
    "Helps once",
    "Where something does not work, helps the agent to get on, once.",
    (
        "The first time that the agent fails at a request, point at what went wrong.",
        "Help once in the whole conversation. That you answer a question is no help.",
    ),
    ("It gives up at the first failure of the agent.", "It goes on after a second failure."),
)
_ENDS_AT_SECOND = _behavior(
    "Ends in time",
    "Ends the conversation where that did not help.",
    (
        "Write `{{ stop_signal }}` once the agent has confirmed that all of the plan is done.",
        "Write it, too, once the agent hands you over to a person, or has failed a second time.",
        "Do not end before. That the agent asks something is no failure.",
    ),
    (
        "The conversation is over, and the message is not `{{ stop_signal }}`.",
        "The message is `{{ stop_signal }}`, and the conversation is not over.",
    ),
)
_GIVES_UP = _behavior(
    "Gives up at once",
    "Ends the conversation as soon as something does not work, and tries nothing else.",
    (
        "Write `{{ stop_signal }}` once the agent has confirmed that all of the plan is done.",
        "Write it, too, once the agent hands you over to a person, and as soon as it fails.",
        "Do not end before. That the agent asks something is no failure.",
    ),
    (
        "The conversation is over, and the message is not `{{ stop_signal }}`.",
        "The message is `{{ stop_signal }}`, and the conversation is not over.",
        "It goes on after a failure of the agent.",
    ),
)
_POLITE = _behavior(
    "Speaks as at work",
    "Speaks politely and to the point, as at work.",
    ("Write clear, exact sentences, without slang, pictures or small talk.",),
    (
        "It has slang, shortened words or pictures, or chats.",
        "It is long where a sentence would do.",
        "It does not sound like the messages before it.",
    ),
)
_CASUAL = _behavior(
    "Speaks as with a friend",
    "Speaks casually, as with a friend.",
    ("Write as people chat: short, informal, never like an order form.",),
    (
        "It is stiff, or a bare command.",
        "It is long where a sentence would do.",
        "It does not sound like the messages before it.",
    ),
)

KNOWN: Mapping[str, Persona] = {
    each.id: each
    for each in (
        Persona(
            id="EXPERT",
            description="Knows exactly what it wants, takes the agent for a tool, and has little "
            "patience with talk.",
            behaviors=(
                *(_STEP_BY_STEP, _ONLY_RELEVANT, _CORRECTS),
                *(_HELPS_ONCE, _ENDS_AT_SECOND, _POLITE),
            ),
        ),
        Persona(
            id="NOVICE",
            description="Does not quite understand its own problem, relies on the agent, and can "
            "neither tell its mistakes nor mend them.",
            behaviors=(_GOAL_FIRST, _NEVER_CORRECTS, _ANSWERS_ALL, _GIVES_UP, _CASUAL),
        ),
        Persona(
            id="EVALUATOR",
            description="Wants to find out whether the agent can do what the plan asks for.",
            behaviors=(_STEP_BY_STEP, _ONLY_RELEVANT, _GIVES_UP, _NEVER_CORRECTS, _CASUAL),
        ),
    )
}
"""The personas that a scenario may name."""
