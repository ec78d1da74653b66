"""New cases from a file, a prompt, or ADK's scenarios."""

import asyncio
import hashlib
import json
import re
from pathlib import Path
from typing import TypeVar

from ci_eval.cli.adk.adk_eval_options import interpreter_of
from ci_eval.cli.evalset.evalset_writers import read_back
from ci_eval.config.open_evalset import open_evalset, reader_of
from ci_eval.formats.sniff import read_head, syntax_of
from ci_eval.records.cases import AdkRecord, ConversationScenario, EvalCase, Json, SessionInput
from ci_eval.records.errors import TrialError, UsageError
from ci_eval.runtime import isolation
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.workers.user_function import UnderPython
from ci_eval.runtime.workers.worker_pool import Adapter
from ci_eval.text.json_text import parse_strict, read_json
from ci_eval.text.validation_messages import read_document
from ci_eval.text.yaml_files import parse_yaml, read_text


def from_prompt(prompt: str, expected: str | None, eval_id: str | None, *, now: float) -> EvalCase:
    """Return a case for a prompt, with the defaults of our own format, including the id.

    Raises:
        UsageError: the prompt is empty, or the id is invalid.

    """
    if not prompt.strip():
        raise UsageError("the prompt must not be empty")
    given = {"id": eval_id or None, "prompt": prompt, "expected": expected}
    value = {key: said for key, said in given.items() if said is not None}
    (case,) = read_back(json.dumps(value), name="case.jsonl", shown="").cases()
    return case.model_copy(update={"creation_timestamp": now})


def from_file(path: Path, *, shown: str) -> list[EvalCase]:
    """Return the single case in a file, in ADK's format or ours, or all cases of an evalset.

    Raises:
        UsageError: the file is invalid; lists every problem.

    """
    head, syntax = read_head(path, shown=shown), syntax_of(path)
    if not isinstance(head, dict) or reader_of(head, syntax):
        return list(open_evalset(path, shown=shown).cases())
    text = read_text(path, shown=shown)
    if not {"eval_id", "evalId"} & head.keys():
        # A list of this one case, with the same line numbers.
        listed = _as_item(text) if syntax == "yaml" else f"[{text}]"
        return list(read_back(listed, name=f"case.{syntax}", shown=shown).cases())
    parse = parse_yaml if syntax == "yaml" else parse_strict
    return [read_document(parse(text, shown=shown), EvalCase)]


def _as_item(text: str) -> str:
    """Return a YAML document as the element of a list."""
    return re.sub(r"(?m)^  (?! *(?:#|$))", "- ", re.sub(r"(?m)^", "  ", text), count=1)


# --- ADK's way --------------------------------------------------------------------------------


class _Scenarios(AdkRecord):
    """The file of `adk eval_set add_eval_case --scenarios_file`."""

    scenarios: tuple[ConversationScenario, ...] = ()


def from_scenarios(name: str, session: SessionInput | None, *, now: float) -> list[EvalCase]:
    """Return a case for each scenario in the file `name`, with the id that ADK gives it.

    The id is the beginning of the SHA-256 of the scenario as JSON with sorted keys.  A
    persona without a description is hashed by its name; see `with_adk_ids`.

    Raises:
        UsageError: the file is invalid, with every problem, or has no scenario.

    """
    scenarios = _read(_Scenarios, name).scenarios
    if not scenarios:
        raise UsageError(f"{name} contains no scenarios")
    return [
        EvalCase(
            eval_id=_digest(scenario.model_dump(mode="json")),
            conversation_scenario=scenario,
            session_input=session,
            creation_timestamp=now,
        )
        for scenario in scenarios
    ]


def read_session(name: str) -> SessionInput:
    """Return the session in the file `name`, in the format of ADK's `--session_input_file`.

    Raises:
        UsageError: the file is invalid; lists every problem.

    """
    return _read(SessionInput, name)


class _InitialSession(SessionInput):
    app_name: str = ""
    user_id: str = ""


def read_initial_session(name: str) -> SessionInput | None:
    """Return the initial session of older tests; `None` if the file `name` sets no field.

    As in ADK, missing fields are empty.

    Raises:
        UsageError: the file is invalid; lists every problem.

    """
    found = _read(_InitialSession, name)
    return SessionInput(**found.model_dump()) if found.model_fields_set else None


M = TypeVar("M", bound=AdkRecord)


def _read(model: type[M], name: str) -> M:
    return read_document(read_json(Path(name), shown=name), model)


def _digest(value: Json) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]


def with_adk_ids(cases: list[EvalCase], agent: Path, context: RunContext) -> list[EvalCase]:
    """Return `cases`, with ADK's ids for those whose scenario names a persona.

    ADK hashes a scenario together with the description of the persona, which only ADK has, so the
    agent's google-adk computes the ids.  If none is found for the `agent`, the cases keep their
    ids, and a warning says so.
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
