"""What a case says of its simulated user beside ADK's scenario: AgentFlow's goals and limit.

AgentFlow keeps them in an object of Python; here they stand in the `metadata` of a case, where
its evalsets keep what has no key of its own.
"""

from collections.abc import Mapping

from ci_eval.records.model import EvalCase, Json


def goals_of(case: EvalCase) -> tuple[str, ...]:
    """Return the goals, or the plan of the scenario in their place."""
    plan = case.conversation_scenario.conversation_plan if case.conversation_scenario else ""
    return stated_goals(case) or ((plan,) if plan.strip() else ())


def stated_goals(case: EvalCase) -> tuple[str, ...]:
    """Return the goals of the case, each once."""
    given = of_metadata(case, "goals")
    goals = given if isinstance(given, list | tuple) else ()
    return tuple(dict.fromkeys(each for each in goals if isinstance(each, str) and each.strip()))


def max_turns_of(case: EvalCase) -> int | None:
    """Return how many messages the user of this case may send; `None` where it does not say."""
    given = of_metadata(case, "max_turns")
    return given if isinstance(given, int) and not isinstance(given, bool) and given > 0 else None


def of_metadata(case: EvalCase, key: str) -> Json:
    """Return what AgentFlow's evalsets keep under `key` in the `metadata` of a case."""
    metadata = (case.model_extra or {}).get("metadata")
    return metadata.get(key) if isinstance(metadata, Mapping) else None
