"""Ids of cases made from scenarios that name an ADK persona.

ADK hashes a scenario together with the description of the persona, which only ADK has, so the
agent's google-adk computes the ids.
"""

import asyncio
from pathlib import Path

from ci_eval.cli.adk.adk_eval_interpreters import interpreter_of
from ci_eval.records.cases import EvalCase
from ci_eval.records.errors import TrialError
from ci_eval.runtime import isolation
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.workers.user_function import UnderPython
from ci_eval.runtime.workers.worker_pool import Adapter


def with_adk_ids(cases: list[EvalCase], agent: Path, context: RunContext) -> list[EvalCase]:
    """Return `cases`, with ADK's ids for those whose scenario names a persona.

    If no google-adk is found for the `agent`, they keep their ids, and a warning says so.
    """
    asked = {
        number: case.conversation_scenario.model_dump(mode="json")
        for number, case in enumerate(cases)
        if case.conversation_scenario and isinstance(case.conversation_scenario.user_persona, str)
    }
    if not asked:
        return cases
    host = UnderPython(interpreter=interpreter_of(agent.absolute(), context))
    isolation.close_memory()
    adapter, message = Adapter("adk_scenario_ids"), list(asked.values())
    try:
        ids = asyncio.run(host.ask_once("scenarios", context, adapter=adapter, message=message))
    except TrialError as exc:
        context.say(f"warning: the ids of scenarios with a persona differ from ADK's: {exc}")
        return cases
    found = dict(zip(asked, ids, strict=True))
    return [
        case.model_copy(update={"eval_id": found[number]}) if number in found else case
        for number, case in enumerate(cases)
    ]
