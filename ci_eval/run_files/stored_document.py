"""JSON documents that ci-eval writes and reads; those that it reads may be untrusted."""

from pathlib import Path
from typing import TypeVar

from ci_eval.records.cases import Stored
from ci_eval.records.errors import UsageError
from ci_eval.run_files.run_file import check_version, replacing
from ci_eval.text.json_stream import Element
from ci_eval.text.json_text import RESULT_DEPTH, JsonText, parse_strict
from ci_eval.text.validation_messages import read_document

M = TypeVar("M", bound=Stored)


def write_record(record: Stored, path: Path) -> None:
    """Write a record as an indented document, or leave the file as it is."""
    with replacing(path) as file:
        file.write(record.model_dump_json(indent=1) + "\n")


def parsed(text: str, *, shown: str, what: str, key: str) -> JsonText:
    """Parse `text` as an object that has `key`; `what` names the kind of document in a message.

    Raises:
        UsageError: it is not such an object.

    """
    # A report contains results, at a greater depth.
    document = parse_strict(text, shown=shown, max_depth=RESULT_DEPTH + 10)
    if not isinstance(document.value, dict) or key not in document.value:
        raise UsageError(f"is not a {what} of ci-eval", file=shown, line=1)
    return document


def validated(document: JsonText, model: type[M], *, shown: str) -> M:
    """Return the record in a document.

    Raises:
        UsageError: it has another version, or is not valid.

    """
    check_version(Element(document.value.get("schema_version"), 1, ""), shown)
    return read_document(document, model)
