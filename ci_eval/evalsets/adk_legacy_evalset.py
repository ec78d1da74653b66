"""ADK's two older formats: a list of cases, and a list of turns (`*.test.json`)."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from ci_eval.evalsets._evalset_reading import Notes, Problems, notes_on, open_evalset
from ci_eval.evalsets.adk_evalset import from_older, note_oddities, note_silence
from ci_eval.formats.known_formats import first_object
from ci_eval.plugins.points import EvalSetReader, evalset
from ci_eval.records.cases import EvalCase, Json, Record
from ci_eval.records.evalset_facts import OpenedEvalSet
from ci_eval.text.json_stream import Element, JsonFile
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.yaml_files import Loc


class _Older(Record, extra="ignore"):
    """A part of the older formats; as in ADK, unknown keys are ignored."""


class _ToolUse(_Older):
    tool_name: str
    tool_input: dict[str, Json] | None


class _Said(_Older):
    author: str
    text: str | None


class _Turn(_Older):
    query: str
    reference: str | None = ""
    expected_tool_use: tuple[_ToolUse, ...] = ()
    expected_intermediate_agent_responses: tuple[_Said, ...] = ()
    mock_tool_output: Json = None


class _Session(_Older):
    app_name: str = ""
    user_id: str = ""
    state: dict[str, Json] = Field(default_factory=dict)


class _Case(_Older):
    name: str
    data: tuple[_Turn, ...]
    initial_session: _Session | None = None


@evalset("adk_legacy")
class AdkLegacy(EvalSetReader):
    """ADK's list of cases: `[{"name", "data": [{"query", "reference", …}]}]`."""

    @classmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Return True for a list of objects with a name or data, or an empty list."""
        return head == [] or bool(first_object(head).keys() & {"data", "name"})

    def read(self, path: Path, *, shown: str) -> OpenedEvalSet:
        """Read the file at `path`; as in ADK, its name is the id of the evalset."""

        def parse(problems: Problems) -> Iterator[EvalCase]:
            for position, element in enumerate(_elements(path, shown)):
                yield from _case(element, notes_on(element, (position,), problems))

        return open_evalset(path, shown, self.type_name, parse, set_id=lambda: path.name)


@evalset("adk_flat")
class AdkFlat(EvalSetReader):
    """ADK's list of turns, a single case: `[{"query", "reference", …}]` in `*.test.json`."""

    @classmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Return True for a list of objects with a query."""
        return bool(first_object(head).keys() & {"query", "expected_tool_use", "reference"})

    def read(self, path: Path, *, shown: str) -> OpenedEvalSet:
        """Read the file at `path`; as in ADK, its name is the id of its one case."""

        def parse(problems: Problems) -> Iterator[EvalCase]:
            elements = list(_elements(path, shown))

            def spot(loc: Loc) -> tuple[int, str]:
                _, position, *rest = loc
                return notes_on(elements[int(position)], (position,), problems).spot(rest)

            notes = Notes(problems, spot)
            turns = [
                _checked(_Turn, element.value, notes, ("data", position))
                for position, element in enumerate(elements)
            ]
            if not problems.errors:
                conversation = [from_older(turn) for turn in turns if turn is not None]
                case = {"eval_id": path.name, "conversation": conversation}
                yield from _converted(case, elements[0].line, notes)

        return open_evalset(path, shown, self.type_name, parse, set_id=lambda: path.name)


def _elements(path: Path, shown: str) -> Iterator[Element]:
    return (element for _, element in JsonFile(path, shown=shown).walk(frozenset()))


def _case(element: Element, notes: Notes) -> Iterator[EvalCase]:
    value = _checked(_Case, element.value, notes, ())
    if value is None:
        return
    for position, turn in enumerate(element.value["data"]):
        _note_unknown(_Turn, turn, notes, ("data", position))
    case = {"eval_id": value["name"], "conversation": list(map(from_older, value["data"]))}
    if element.value.get("initial_session"):
        case["session_input"] = value["initial_session"]
    yield from _converted(case, element.line, notes)


def _converted(case: dict[str, Any], line: int, notes: Notes) -> Iterator[EvalCase]:
    checked = EvalCase.model_validate({**case, "line": line, "of_adk": True})
    note_oddities(checked, notes, turns="data")
    yield checked


def _checked(model: type[_Older], value: Any, notes: Notes, loc: Loc) -> dict[str, Any] | None:
    """Return `value` validated by `model`, or note its problems."""
    read = notes.validated(model, value, loc)
    if read is None:
        return None
    _note_unknown(model, value, notes, loc)
    turns = {(*loc, "data", at): each for at, each in enumerate(getattr(read, "data", ()))}
    for place, part in ({tuple(loc): read} | turns).items():
        if isinstance(part, _Turn) and "expected_tool_use" not in part.model_fields_set:
            note_silence(notes, place)
    return read.model_dump()


def _note_unknown(model: type[BaseModel], value: dict[str, Any], notes: Notes, loc: Loc) -> None:
    for key in value:
        if key not in model.model_fields:
            ending = did_you_mean(key, model.model_fields)
            notes.warning(f"unknown key, ignored{ending}", (*loc, key))
