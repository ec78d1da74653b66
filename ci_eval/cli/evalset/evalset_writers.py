"""Writers for the formats of evalset files.

A writer may omit what its format cannot store: the result is read again and compared with the
original cases (`losses`), so that every loss is reported.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ci_eval.cli.evalset.conversion_losses import call_ids
from ci_eval.cli.evalset.readable_yaml import yaml_text
from ci_eval.config.open_evalset import open_evalset
from ci_eval.plugins.plugin import Syntax
from ci_eval.records.cases import (
    OWN_FIELDS,
    Content,
    EvalCase,
    IntermediateData,
    Invocation,
    Json,
    Rubric,
)
from ci_eval.records.errors import UsageError
from ci_eval.records.evalset_facts import OpenedEvalSet
from ci_eval.records.scenario_settings import of_metadata
from ci_eval.records.stated_expectations import states

# --- ADK --------------------------------------------------------------------------------------


def adk_case(case: EvalCase) -> dict[str, Json]:
    """Return `case` as ADK writes it: without fields that are missing or have their default."""
    own = {"conversation": {"__all__": {*OWN_FIELDS}}}
    found = case.model_dump(mode="json", exclude_defaults=True, exclude=own)
    return found | _canned(case)


def _canned(case: EvalCase) -> dict[str, Json]:
    """Return the canned results of `case`; `null` counts as a result."""
    names = {"tool_mocks", "human_answers"} & case.model_fields_set
    return _without_empty(case.model_dump(mode="json", exclude_unset=True, include=names))


def _without_empty(values: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in values.items() if value}


# --- Our own ----------------------------------------------------------------------------------


def own_case(case: EvalCase) -> dict[str, Json]:
    """Return `case` in the format of files with `cases:`."""
    turns = [_own_turn(turn) for turn in case.conversation or ()]
    asked = turns[0] if len(turns) == 1 else {"turns": turns}
    before = {
        "tags": list(case.tags),
        "state": case.session_input.state if case.session_input else None,
        "scenario": _own_scenario(case),
    }
    after = {
        **{key: of_metadata(case, key) for key in ("context", "reference_facts")},
        "final_state": case.final_session_state,
        "rubrics": [
            {
                "id": rubric.rubric_id,
                "text": rubric.rubric_content.text_property,
                **({} if rubric.type == Rubric.of_response else {"type": rubric.type}),
            }
            for rubric in case.rubrics or ()
        ],
        "assert": [dict(each) for each in case.assertions],
        **_canned(case),
        "rerun_on_resume": case.rerun_on_resume,
    }
    conversation = {} if case.conversation_scenario else asked
    return {"id": case.eval_id, **_without_empty(before), **conversation, **_without_empty(after)}


def _own_scenario(case: EvalCase) -> Json:
    scenario = case.conversation_scenario
    if scenario is None:
        return None
    more = {key: of_metadata(case, key) for key in ("goals", "max_turns")}
    given = _without_empty({"persona": scenario.user_persona, **more})
    return {"start": scenario.starting_prompt, "plan": scenario.conversation_plan, **given}


def _own_turn(turn: Invocation) -> dict[str, Json]:
    found: dict[str, Json] = {"prompt": turn.user}
    if turn.final_response is not None:
        found["expected"] = turn.response
    if states(turn, "tool_calls"):
        found["expected_tools"] = [
            call.name if call.args is None else {"name": call.name, "args": call.args}
            for call in turn.tool_calls
        ]
    if turn.nodes is not None:
        found["expected_nodes"] = list(turn.nodes)
    return found


# --- AgentFlow --------------------------------------------------------------------------------


def agentflow_case(case: EvalCase) -> dict[str, Json]:
    """Return `case` as AgentFlow's `EvalSet.save` writes it, without empty fields."""
    found: dict[str, Json] = {"eval_id": case.eval_id}
    extra = case.model_extra or {}
    found |= {key: extra[key] for key in ("name", "description") if key in extra}
    found["conversation"] = [_agentflow_turn(turn) for turn in case.conversation or ()]
    if case.session_input:
        kept = {"app_name", "user_id", "state"} | (case.session_input.model_extra or {}).keys()
        found["session_input"] = case.session_input.model_dump(mode="json", include=kept)
    if case.tags:
        found["tags"] = list(case.tags)
    if "metadata" in extra:
        found["metadata"] = extra["metadata"]
    return found


def _agentflow_turn(turn: Invocation) -> dict[str, Json]:
    found: dict[str, Json] = {}
    if turn.invocation_id:
        found["invocation_id"] = turn.invocation_id
    found["user_content"] = {"role": "user", "content": turn.user}
    if states(turn, "tool_calls"):
        found["expected_tool_trajectory"] = list(_agentflow_calls(turn))
    if turn.nodes is not None:
        found["expected_node_order"] = list(turn.nodes)
    if isinstance(turn.intermediate_data, IntermediateData):
        said = turn.intermediate_data.intermediate_responses
        texts = [Content(parts=parts).text for _, parts in said]
        if texts:
            found["expected_intermediate_responses"] = [
                {"role": "assistant", "content": text} for text in texts
            ]
    if turn.final_response is not None:
        found["expected_final_response"] = {"role": "assistant", "content": turn.response}
    return found


def _agentflow_calls(turn: Invocation) -> Iterator[dict[str, Json]]:
    for call, identity in zip(turn.tool_calls, call_ids(turn), strict=True):
        found: dict[str, Json] = {"name": call.name, "args": call.args or {}}
        if identity is not None:
            found["call_id"] = identity
        if call.result is not None:
            found["result"] = call.result
        yield found


# --- All of them ------------------------------------------------------------------------------


class Format(NamedTuple):
    """How a format of evalset files is written."""

    case: Callable[[EvalCase], dict[str, Json]]
    """Converts a case to the format."""
    syntaxes: tuple[Syntax, ...]
    """The supported syntaxes; the first is the default."""
    suffix: str
    """The suffix of the names of such files."""
    id_key: str = "eval_set_id"
    cases_key: str = "eval_cases"
    head: tuple[str, ...] = ("name", "description")
    """Keys of the whole set, before its cases."""
    tail: tuple[str, ...] = ()
    """Keys of the whole set, after its cases."""
    always: Mapping[str, Json] = {}
    """Keys of the tail that are always written, and their default."""

    @property
    def keeps(self) -> tuple[str, ...]:
        """The keys of the whole set that are written, except its id."""
        return self.head + self.tail

    def document(self, set_id: str, cases: Sequence[Json], more: Mapping[str, Json]) -> Json:
        """Return the whole document; `more` holds the keys of the whole set in the source."""
        kept = {key: more[key] for key in self.keeps if more.get(key)}
        head = {key: kept[key] for key in self.head if key in kept}
        return {self.id_key: set_id, **head, self.cases_key: cases, **self.always, **kept}


FORMATS = {
    "adk": Format(adk_case, ("json",), ".evalset.json", tail=("creation_timestamp",)),
    "cases": Format(
        *(own_case, ("yaml", "json", "jsonl"), ".yaml"),
        id_key="name",
        cases_key="cases",
        head=("description",),
    ),
    # `metadata` tells AgentFlow's files from ADK's if no case does.
    "agentflow": Format(
        *(agentflow_case, ("json",), ".evalset.json"), tail=("metadata",), always={"metadata": {}}
    ),
}
"""The formats that can be written."""


def document_text(
    name: str, syntax: Syntax, set_id: str, cases: Iterable[EvalCase], more: Mapping[str, Json]
) -> str:
    """Return the text of an evalset in the format `name`.

    Raises:
        UsageError: the format does not support that syntax.

    """
    target = FORMATS[name]
    if syntax not in target.syntaxes:
        known = ", ".join(target.syntaxes)
        raise UsageError(f"the format {name!r} cannot be written as {syntax}, only as {known}")
    items = [target.case(case) for case in cases]
    if syntax == "jsonl":
        return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)
    value = target.document(set_id, items, more)
    if syntax == "yaml":
        return yaml_text(value)
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def read_back(text: str, *, name: str, shown: str) -> OpenedEvalSet:
    """Return the evalset that results from reading `text` as a file called `name`.

    Raises:
        EvalSetError: the text is not an evalset.

    """
    with TemporaryDirectory(prefix="ci-eval-") as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8", newline="")
        opened = open_evalset(path, shown=shown)
        cases = tuple(opened.cases())
    return OpenedEvalSet(opened.header, cases.__iter__, opened.facts, opened.warnings)
