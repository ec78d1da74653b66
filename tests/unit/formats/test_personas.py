"""Personas: ADK's three, those of one's own, and what is none."""

from typing import Any

import pytest

from ci_eval.formats.personas import described, fault, known, persona_of, persona_text

STOP = "</finished>"
HURRIED: dict[str, Any] = {
    "id": "hurried",
    "description": "In a hurry.",
    "behaviors": [
        {
            "name": "Short",
            "description": "Says little.",
            "behaviorInstructions": ["Write {{stop_signal}} soon."],
            "violation_rubrics": ["The message is long."],
        }
    ],
}


@pytest.mark.parametrize(("name", "behaviors"), [("EXPERT", 6), ("NOVICE", 5), ("EVALUATOR", 5)])
def test_a_persona_of_adks_has_as_many_behaviours_as_there(name: str, behaviors: int):
    persona = persona_of(name)

    assert persona
    assert persona.id == name
    assert len(persona.behaviors) == behaviors
    for each in persona.behaviors:
        assert each.behavior_instructions
        assert each.violation_rubrics
    assert "{{" not in str(persona.model_dump())


def test_only_an_expert_corrects_the_agent_and_helps_it():
    names = {name: {each.name for each in known()[name].behaviors} for name in known()}

    assert [name for name in known() if "Corrects the agent" in names[name]] == ["EXPERT"]
    assert [name for name in known() if "Helps once" in names[name]] == ["EXPERT"]
    assert [name for name in known() if "Answers everything" in names[name]] == ["NOVICE"]


def test_who_plays_it_is_told_what_to_do_and_a_judge_what_breaks_it():
    persona = persona_of(HURRIED)
    assert persona

    assert persona_text(persona).splitlines() == [
        "hurried",
        "In a hurry.",
        "Short",
        "Says little.",
        "- Write </finished> soon.",
    ]
    assert described(HURRIED, "a\\1b").splitlines() == [
        "hurried",
        "In a hurry.",
        "Short",
        "Says little.",
        "- Write a\\1b soon.",
        "- It breaks this where: The message is long.",
    ]
    assert described(None, STOP) == ""


def test_only_the_stop_signal_is_filled_in():
    persona = persona_of({**HURRIED, "description": "{{ 7 * 7 }} {{ stop_signal | upper }}"})
    assert persona
    assert persona.description == "{{ 7 * 7 }} {{ stop_signal | upper }}"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, ""),
        ("EXPERT", ""),
        (HURRIED, ""),
        ({**HURRIED, "more": 1}, ""),
        ("expert", "unknown persona 'expert'; known: EVALUATOR, EXPERT, NOVICE"),
        ("EXPRT", "unknown persona 'EXPRT'. Did you mean 'EXPERT'?"),
        ("", "unknown persona ''; known: EVALUATOR, EXPERT, NOVICE"),
        (5, "expected the name or the description of a persona, found 5"),
        (["EXPERT"], "expected the name or the description of a persona, found a list"),
        ({"id": "x", "description": "d"}, "'behaviors' is missing"),
        ({**HURRIED, "behaviors": [{}]}, "behaviors.0: 'name' is missing"),
        ({**HURRIED, "id": 5}, "id: expected text, found 5"),
    ],
)
def test_what_is_no_persona_is_told(value: Any, said: str):
    assert fault(value) == said
    assert (persona_of(value) is None) is (value is None or bool(said))
