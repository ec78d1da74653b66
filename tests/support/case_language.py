"""Short ways to say what a case expects and what an agent did, for tests of criteria."""

from typing import Any

from support.project import turn

from ci_eval.plugins.points import Criterion
from ci_eval.records.cases import EvalCase
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace, TrialKey

KEY = TrialKey(agent="a", evalset="e", case="c")
SCENARIO = EvalCase.model_validate(
    {
        "eval_id": "c",
        "conversation_scenario": {"starting_prompt": "Hi", "conversation_plan": "Say bye."},
    }
)
Turn = str | list[Any] | dict[str, Any]
"""A response; or tool calls, each a name or a name with arguments; or an invocation."""


def invocation(what: Turn) -> dict[str, Any]:
    if isinstance(what, str):
        return turn("?", what)
    if isinstance(what, dict):
        return {"user_content": {}, **what}
    return turn("?", "", *((call, {}) if isinstance(call, str) else call for call in what))


def expecting(*turns: Turn, **more: Any) -> EvalCase:
    """Return a case that expects these invocations."""
    conversation = [invocation(each) for each in turns]
    return EvalCase.model_validate({"eval_id": "c", "conversation": conversation, **more})


def did(*turns: Turn, **more: Any) -> Trace:
    """Return the trace of an agent that did this."""
    invocations = [invocation(each) for each in turns]
    return Trace.model_validate({"key": KEY, "invocations": invocations, **more})


def value_of(criterion: Criterion, case: EvalCase, *turns: Turn) -> float:
    """Return the criterion's value for an agent that did this; there must be one."""
    value = criterion.score(case, did(*turns)).value
    assert value is not None
    return value


def on_response(criterion: Criterion, *responses: str) -> Score:
    """Return the score of an agent that said this, whatever was expected."""
    return criterion.score(expecting(*responses), did(*responses))


def value_on(criterion: Criterion, *responses: str) -> float:
    """Return the value of that score; there has to be one."""
    return value_of(criterion, expecting(*responses), *responses)
