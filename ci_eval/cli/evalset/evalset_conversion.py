"""Conversion and migration of evalset files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_eval.cli.evalset.command_files import File, file_at
from ci_eval.cli.evalset.conversion_losses import losses
from ci_eval.cli.evalset.evalset_argument import evalset_files
from ci_eval.cli.evalset.evalset_editing import OLDER
from ci_eval.cli.evalset.evalset_writers import FORMATS, document_text, read_back
from ci_eval.config.open_evalset import open_evalset, reader_of
from ci_eval.formats.sniff import read_head, syntax_of, without_ending
from ci_eval.plugins.plugin import Syntax
from ci_eval.records.cases import EvalCase, Json, SessionInput
from ci_eval.records.errors import EvalSetError, Problem, UsageError
from ci_eval.records.evalset_facts import EvalSet, OpenedEvalSet
from ci_eval.runtime.storage.adk_storage import id_from
from ci_eval.text.json_text import read_json
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.yaml_files import Loc, read_text

_OF_A_SET = ("name", "description", "creation_timestamp", "metadata")
"""Keys of a file that describe the whole set, except the id."""


@dataclass(frozen=True)
class Written:
    """A file that is ready to be written."""

    file: File
    text: str
    cases: int
    warnings: tuple[Problem, ...]


def convert(source: str, to: str, out: str | None) -> Written:
    """Return the evalset `source` in the format `to`, for the file `out`.

    Without `out`, the file is beside `source` and has the suffix of that format.

    Raises:
        UsageError: `source` has errors, or cannot be written in that format.

    """
    if to not in FORMATS:
        raise UsageError(f"unknown format to write{did_you_mean(to, FORMATS)}")
    file, target = file_at(source), FORMATS[to]
    path = file.path
    opened = open_evalset(path, shown=source)
    made = file_at(out) if out else file.beside(without_ending(path.name) + target.suffix)
    aim = Path(made.shown)
    syntax = syntax_of(aim)
    if aim.suffix == "" or syntax not in target.syntaxes:
        known = ", ".join(target.syntaxes)
        raise UsageError(f"{made.shown} does not have an extension of {to!r}: {known}")
    _refuse_unspeakable(opened, to, source)
    more = _said_of_all(path, source, opened.header)
    set_id = _set_id(opened, path)
    cases = list(opened.cases())
    text = document_text(to, syntax, set_id, cases, more)
    after = read_back(text, name=aim.name, shown=made.shown)
    if after.header.format != to:
        message = f"would be read as {after.header.format!r}; another name may help"
        raise EvalSetError(message, file=made.shown)
    lost = losses(cases, after.cases(), shown=made.shown, target=to)
    lost += _lost_of_all(more, set_id, to, syntax, made.shown)
    noted = {each.message for each in opened.warnings}
    lost += (each for each in after.warnings if not each.concerns and each.message not in noted)
    left = (each for each in opened.warnings if not each.adk_refuses)
    return Written(made, text, len(cases), (*left, *lost))


def migrate(file: File, out: str | None, session: SessionInput | None) -> Written | None:
    """Return the evalset `file` in a form that ADK reads; `None` if ADK reads it as it is.

    This is ADK's current format, without the obvious mistakes that ADK rejects.

    The ids of cases are kept, so that baselines stay comparable.  `session` is the initial session
    of cases without their own.

    Raises:
        UsageError: it has errors, or is in none of ADK's formats.

    """
    path, source = file.path, file.shown
    opened = open_evalset(path, shown=source)
    is_current = opened.header.format == "adk"
    if is_current and not any(each.adk_refuses for each in opened.warnings):
        return None
    if not is_current and opened.header.format not in OLDER:
        message = f"has the format {opened.header.format!r}, which is not an older format of ADK"
        hint = f"`ci-eval evalset convert {source} --to adk` converts it"
        raise UsageError(message, file=source, hint=hint)
    # The same object is written, so that changes by others since it was read are noticed.
    made = file_at(out) if out and out != source else file
    cases = [_begun(case, session) for case in opened.cases()]
    set_id = _set_id(opened, path)
    more = _said_of_all(path, source, opened.header) if is_current else {"name": set_id}
    text = document_text("adk", "json", set_id, cases, more)
    after = read_back(text, name=Path(made.shown).name, shown=made.shown)
    lost = losses(cases, after.cases(), shown=made.shown, target="adk")
    lost += () if is_current else _unread(path, source)
    left = (each for each in opened.warnings if not each.adk_refuses)
    return Written(made, text, len(cases), (*left, *lost))


def migrate_folder(folder: str, session: SessionInput | None) -> list[Written]:
    """Return, migrated, each file in and below `folder` that ADK does not read as it is.

    Raises:
        UsageError: a file is invalid; lists every problem of all files.

    """
    found: list[Written] = []
    problems: list[Problem] = []
    for file in evalset_files(folder):
        try:
            if _is_of_adk(file.path, file.shown):
                written = migrate(file, None, session)
                found += [written] if written else []
        except UsageError as exc:
            problems += exc.problems
    if problems:
        raise EvalSetError(problems=problems, hint="nothing was migrated")
    return found


def save(written: Sequence[Written], *, backup: bool = False) -> None:
    """Write the files; with `backup`, keep the old ones as `NAME.bak`.

    Raises:
        UsageError: a backup exists, or a file cannot be written; then nothing is written.

    """
    problems = [problem for each in written for problem in each.file.unwritable()]
    replaced = written if backup else ()
    copies = [each.file.beside(f"{Path(each.file.shown).name}.bak") for each in replaced]
    problems += [Problem("already exists", copy.shown) for copy in copies if copy.there]
    if problems:
        raise UsageError(problems=problems, hint="nothing was written")
    for copy, each in zip(copies, replaced, strict=True):
        if each.file.there:
            copy.write(read_text(each.file.path, shown=each.file.shown))
    for each in written:
        each.file.write(each.text)


def _is_of_adk(path: Path, shown: str) -> bool:
    if syntax_of(path) != "json":
        return False
    reader = reader_of(read_head(path, shown=shown))
    return reader is not None and reader.type_name in ("adk", *OLDER)


def _begun(case: EvalCase, session: SessionInput | None) -> EvalCase:
    if session is None or case.session_input is not None:
        return case
    return case.model_copy(update={"session_input": session})


def _set_id(opened: OpenedEvalSet, path: Path) -> str:
    """Return the id of the set, which in ADK's older formats is the file's name."""
    if opened.header.format in OLDER:
        return id_from(path.name)
    return opened.header.eval_set_id


def _said_of_all(path: Path, shown: str, header: EvalSet) -> dict[str, Json]:
    head = read_head(path, shown=shown)
    if not isinstance(head, dict):
        return {}
    # In our own format the name is the id.
    keys = _OF_A_SET[header.format == "cases" :]
    return {key: head[key] for key in keys if head.get(key)}


def _lost_of_all(
    more: dict[str, Json], set_id: str, to: str, syntax: Syntax, aim: str
) -> list[Problem]:
    """Return a warning for each key of the whole set that the format does not keep."""
    kept = () if syntax == "jsonl" else FORMATS[to].keeps
    lost = [key for key in more if key not in kept and more[key] != set_id]
    if syntax == "jsonl" and set_id != Path(aim).stem:
        lost.append("eval_set_id")
    return [
        Problem(f"the format {to!r} does not keep {key!r}", aim, severity="warning") for key in lost
    ]


def _refuse_unspeakable(opened: OpenedEvalSet, to: str, shown: str) -> None:
    if to != "agentflow" or not opened.facts.scenarios:
        return
    found = [
        Problem(
            "is a scenario, which AgentFlow's files cannot hold", shown, case.line, case.eval_id
        )
        for case in opened.cases()
        if case.conversation is None
    ]
    raise EvalSetError(problems=found)


def _unread(path: Path, shown: str) -> list[Problem]:
    """Return a warning for each key of an older file that nobody reads, not even ADK."""
    document = read_json(path, shown=shown)
    turns: dict[Loc, Json] = {}
    for position, each in enumerate(document.value):
        if "data" in each:
            turns |= {(position, "data", at): turn for at, turn in enumerate(each["data"])}
        else:
            turns[position,] = each
    return [
        document.problem("is not kept", (*loc, "mock_tool_output"), severity="warning")
        for loc, turn in turns.items()
        if turn.get("mock_tool_output") is not None
    ]
