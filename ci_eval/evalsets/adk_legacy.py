"""ADK's two older formats: a list of cases, and a list of turns (`*.test.json`)."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ci_eval.evalsets._reading import Problems, open_evalset
from ci_eval.evalsets.adk import OLD_KEYS, from_older, inside, note_oddities
from ci_eval.explain import explain
from ci_eval.json_walk import Element, JsonFile
from ci_eval.plugins import EvalSetReader, OpenedEvalSet, evalset
from ci_eval.records import EvalCase, Json
from ci_eval.registry import did_you_mean

_CASE_KEYS = ("name", "data", "initial_session")
_TURN_KEYS = (*OLD_KEYS, "mock_tool_output")


@evalset("adk_legacy")
class AdkLegacy(EvalSetReader):
    """ADK's list of cases: `[{"name", "data": [{"query", "reference", …}]}]`."""

    @classmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Say whether it is a list of objects with a name or data, or an empty list."""
        return head == [] or bool(_keys_of_first(head) & {"data", "name"})

    def read(self, path: Path, *, shown: str) -> OpenedEvalSet:
        """Read the file at `path`; as in ADK, its name is the id of the evalset."""

        def parse(problems: Problems) -> Iterator[EvalCase]:
            for position, (_, element) in enumerate(_elements(path, shown)):
                case = _case(element, problems, where=f"[{position}]")
                if case:
                    yield case

        return open_evalset(path, shown, self.type_name, parse, set_id=lambda: shown)


@evalset("adk_flat")
class AdkFlat(EvalSetReader):
    """ADK's list of turns, one case in all: `[{"query", "reference", …}]` in `*.test.json`."""

    @classmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Say whether it is a list of objects with a query."""
        return bool(_keys_of_first(head) & {"query", "expected_tool_use", "reference"})

    def read(self, path: Path, *, shown: str) -> OpenedEvalSet:
        """Read the file at `path`; as in ADK, its name is the id of its one case."""

        def parse(problems: Problems) -> Iterator[EvalCase]:
            elements = [element for _, element in _elements(path, shown)]
            turns = [
                _turn(element.value, element.line, problems, f"[{position}]")
                for position, element in enumerate(elements)
            ]
            case = {"eval_id": shown, "conversation": turns, "line": elements[0].line}
            if not problems.errors:
                yield from _validated(case, elements[0], problems, "")

        return open_evalset(path, shown, self.type_name, parse, set_id=lambda: shown)


def _elements(path: Path, shown: str) -> Iterator[tuple[str, Element]]:
    return JsonFile(path, shown=shown).walk(frozenset())


def _keys_of_first(head: Mapping[str, Json] | Sequence[Json] | None) -> set[str]:
    if isinstance(head, list) and head and isinstance(head[0], dict):
        return set(head[0])
    return set()


def _case(element: Element, problems: Problems, *, where: str) -> EvalCase | None:
    value = element.value
    if not isinstance(value, dict):
        problems.error("expected an object", element.line, where)
        return None
    for key in value.keys() - {*_CASE_KEYS}:
        message = f"unknown key, ignored{did_you_mean(key, _CASE_KEYS)}"
        problems.warning(message, element.line_of((key,)), where + inside((key,)))
    data = value.get("data")
    if not isinstance(value.get("name"), str) or not isinstance(data, list):
        problems.error("needs a text 'name' and a list 'data'", element.line, where)
        return None
    turns = [
        _turn(turn, element.line_of(("data", index)), problems, where + inside(("data", index)))
        for index, turn in enumerate(data)
    ]
    case = {"eval_id": value["name"], "conversation": turns, "line": element.line}
    if value.get("initial_session"):
        session = value["initial_session"]
        blank = {"app_name": "", "user_id": ""}
        case["session_input"] = {**blank, **session} if isinstance(session, dict) else session
    return next(_validated(case, element, problems, where), None)


def _turn(turn: Any, line: int, problems: Problems, where: str) -> Any:
    """Return one turn as an invocation, or note what it lacks."""
    if not isinstance(turn, dict):
        problems.error("expected an object", line, where)
        return None
    if "query" not in turn:
        problems.error("'query' is missing", line, where)
    for key in turn.keys() - {*_TURN_KEYS}:
        problems.warning(f"unknown key, ignored{did_you_mean(key, _TURN_KEYS)}", line, where)
    return {"user_content": {"parts": []}, **from_older(turn)}


def _validated(
    case: dict[str, Any], element: Element, problems: Problems, where: str
) -> Iterator[EvalCase]:
    try:
        checked = EvalCase.model_validate(case)
    except ValidationError as exc:
        for loc, message in explain(exc, EvalCase):
            problems.error(message, element.line, where + inside(loc))
    else:
        note_oddities(checked, element, problems, where)
        yield checked
