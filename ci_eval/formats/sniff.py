"""The beginning of a file in any syntax, enough to recognise its format."""

import csv
from pathlib import Path

from ci_eval.formats import known_formats
from ci_eval.plugins.plugin import Syntax
from ci_eval.records.cases import Json
from ci_eval.records.errors import EvalSetError, Problem, UsageError
from ci_eval.text.json_stream import MAX_ELEMENT_CHARS, JsonFile
from ci_eval.text.json_text import NotJsonError, parse_json
from ci_eval.text.yaml_files import read_yaml, reading

_BY_SUFFIX: dict[str, Syntax] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".csv": "csv",
}
ENDINGS = (".json", *_BY_SUFFIX)
"""The endings of files that may be evalsets."""
SURE_ENDINGS = (".evalset.json", ".test.json")
"""The endings that only evalsets have."""


def syntax_of(path: Path) -> Syntax:
    """Return the syntax for a file's suffix; JSON by default."""
    return _BY_SUFFIX.get(path.suffix.lower(), "json")


def without_ending(name: str) -> str:
    """Return the name of a file without its ending, if evalsets may have that ending."""
    endings = (*SURE_ENDINGS, *ENDINGS)
    ending = next((each for each in endings if name.lower().endswith(each)), "")
    return name[: len(name) - len(ending)]


def read_head(path: Path, *, shown: str) -> Json:
    """Return the beginning of the file at `path`.

    For an object, the object without the rest of long arrays; for a list, lines or a table, a list
    with the first element; for a row of a table, only its columns.

    Raises:
        EvalSetError: it does not have the syntax of its suffix.

    """
    try:
        match syntax_of(path):
            case "json":
                return JsonFile(path, shown=shown).head()
            case "jsonl":
                return _first_line(path, shown)
            case "yaml":
                return read_yaml(path, shown=shown).value
            case "csv":
                return _columns(path, shown)
    except UsageError as exc:
        problems = list(exc.problems)
        seems = known_formats.not_json(path) if problems[0].line else ""
        if seems:
            problems = [Problem(f"is not JSON but {seems}", shown, 1)]
        elif problems[0].line and path.suffix.lower() not in ENDINGS:
            known = ", ".join(ENDINGS)
            problems = [
                Problem(f"has the unknown ending {path.suffix!r}; known: {known}", shown, 1)
            ]
        raise EvalSetError(problems=problems) from exc


def is_json_lines(path: Path, *, shown: str) -> bool:
    """Return True if the first two lines of a file are JSON, each on its own."""
    with reading(path, shown=shown) as file:
        lines = [file.readline(MAX_ELEMENT_CHARS) for _ in range(2)]
    try:
        return bool(lines[1]) and all(isinstance(parse_json(line), dict) for line in lines)
    except NotJsonError:
        return False


def _first_line(path: Path, shown: str) -> list[Json]:
    with reading(path, shown=shown) as file:
        lines = iter(lambda: file.readline(MAX_ELEMENT_CHARS), "")
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    return [parse_json(line)]
                except NotJsonError as exc:
                    raise UsageError(str(exc), file=shown, line=number) from exc
    return []


def _columns(path: Path, shown: str) -> list[Json]:
    with reading(path, shown=shown) as file:
        rows = csv.reader(file)
        try:
            header = next(rows, [])
        except csv.Error as exc:
            raise UsageError(f"is not CSV: {exc}", file=shown, line=rows.line_num) from exc
    return [dict.fromkeys(header, "")] if header else []
