"""AgentFlow's settings of a simulated user: goals and the maximum number of messages.

AgentFlow keeps them in a Python object; our cases keep them in `metadata`, where AgentFlow's
evalsets put everything without a key of its own.
"""

from collections.abc import Mapping

from ci_eval.records.cases import EvalCase, Json


def goals_of(case: EvalCase) -> tuple[str, ...]:
    """Return the goals or, if there are none, the plan of the scenario."""
    plan = case.conversation_scenario.conversation_plan if case.conversation_scenario else ""
    return stated_goals(case) or ((plan,) if plan.strip() else ())


def stated_goals(case: EvalCase) -> tuple[str, ...]:
    """Return the goals of the case, without duplicates."""
    given = of_metadata(case, "goals")
    goals = given if isinstance(given, list | tuple) else ()
    return tuple(dict.fromkeys(each for each in goals if isinstance(each, str) and each.strip()))


def max_turns_of(case: EvalCase) -> int | None:
    """Return the maximum number of user messages; `None` if the case sets none."""
    given = of_metadata(case, "max_turns")
    return given if isinstance(given, int) and not isinstance(given, bool) and given > 0 else None


def of_metadata(case: EvalCase, key: str) -> Json:
    """Return the value of `key` in the `metadata` of a case."""
    metadata = (case.model_extra or {}).get("metadata")
    return metadata.get(key) if isinstance(metadata, Mapping) else None
