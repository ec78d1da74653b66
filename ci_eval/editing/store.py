"""One evalset where it is kept: found, made, and edited case by case.

Locally that is a file: any file, or `AGENT_DIR/ID.evalset.json`, where ADK's tools look for the
evalset `ID` of an agent.  What is refused, and in which words, is as ADK 2.13.0 has it
(`LocalEvalSetsManager`).
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ci_eval.documents import read_text
from ci_eval.editing import splicing
from ci_eval.editing.losses import INCIDENTAL, losses
from ci_eval.editing.writing import FORMATS, document_text, read_back
from ci_eval.errors import EvalSetError, Problem, UsageError
from ci_eval.evalset_facts import OpenedEvalSet
from ci_eval.heads import Syntax, read_head, syntax_of
from ci_eval.opening import open_evalset, reader_of
from ci_eval.records import EvalCase, EvalSet, Json
from ci_eval.run_file import replacing

SUFFIX = ".evalset.json"
"""How the names of ADK's evalsets end."""
OLDER = ("adk_flat", "adk_legacy")
"""The formats that ADK calls older, and still reads in places."""
MAX_FILES = 10_000
"""In how many files of a folder evalsets are looked for."""
_ID = re.compile(r"[a-zA-Z0-9_]+")
_EVALSET_NAMES = (SUFFIX, ".test.json")
_SUFFIXES = (".json", ".jsonl", ".ndjson", ".yaml", ".yml", ".csv")
_EDITABLE = ("adk", "cases")
_NOT_OURS = ("node_modules", "__pycache__", "site-packages")


@dataclass(frozen=True)
class EvalSetFile:
    """An evalset in a file, which may not be there yet."""

    path: Path
    shown: str
    """The file, as the user would name it."""
    eval_set_id: str
    """What the user, or the file's name, calls the evalset."""
    app: str = ""
    """The agent whose evalset it is, in ADK's layout."""

    def create(self, now: float) -> None:
        """Write an evalset without cases.

        Raises:
            UsageError: the id is none that ADK takes, or the file is there.

        """
        check_id(self.eval_set_id)
        if self.path.exists() or self.path.is_symlink():
            of = f" for app {self.app}" if self.app else ""
            message = f"EvalSet {self.eval_set_id} already exists{of}."
            raise UsageError(problems=[Problem(message, self.shown)])
        syntax = syntax_of(self.path)
        if syntax not in ("json", "yaml"):
            raise UsageError(f"{self.shown} cannot be empty; name it *.evalset.json or *.yaml")
        name = "adk" if syntax == "json" else "cases"
        more: dict[str, Json] = {"name": self.eval_set_id, "creation_timestamp": now}
        write(self.path, document_text(name, syntax, self.eval_set_id, (), more))

    def open(self) -> OpenedEvalSet:
        """Read it.

        Raises:
            EvalSetError: it is not there, or with every problem of the file.

        """
        if not self.path.exists():
            message = f"Eval set `{self.eval_set_id}` not found."
            raise EvalSetError(problems=[Problem(message, self.shown)])
        return open_evalset(self.path, shown=self.shown)

    def add(self, cases: Sequence[EvalCase]) -> list[Problem]:
        """Add `cases` behind those that are there; warn of what the format does not keep.

        Raises:
            UsageError: a case of such an id is there; then nothing is added.

        """
        header, there = self._editable()
        known = {case.eval_id for case in there}
        problems = []
        for case in cases:
            if case.eval_id in known:
                of = f"already exists in `{header.eval_set_id}` eval set."
                problems.append(Problem(f"Eval id `{case.eval_id}` {of}", self.shown))
            known.add(case.eval_id)
        if problems:
            raise EvalSetError(problems=problems)
        items = [FORMATS[header.format].case(case) for case in cases]
        text = splicing.add(self._text(), self._syntax, items)
        return self._save(text, header, [*there, *cases])

    def update(self, changed: Sequence[EvalCase]) -> list[Problem]:
        """Put cases in the places of those with their ids; warn of what the format does not keep.

        Raises:
            UsageError: there is none of such an id; then nothing is replaced.

        """
        header, cases = self._editable()
        places = self._places(cases, [case.eval_id for case in changed], header)
        text = self._text()
        for position, case in zip(places, changed, strict=True):
            cases[position] = case
            item = FORMATS[header.format].case(case)
            text = splicing.replace(text, self._syntax, position, item)
        return self._save(text, header, cases)

    def delete(self, ids: Sequence[str]) -> None:
        """Take the cases `ids` out.

        Raises:
            UsageError: there is none of such an id; then nothing is taken out.

        """
        header, cases = self._editable()
        text = self._text()
        for position in sorted(set(self._places(cases, ids, header)), reverse=True):
            text = splicing.remove(text, self._syntax, position)
            del cases[position]
        self._save(text, header, cases)

    def _places(self, cases: Sequence[EvalCase], ids: Sequence[str], header: EvalSet) -> list[int]:
        """Return where the cases of these `ids` are."""
        places = {case.eval_id: position for position, case in enumerate(cases)}
        of = f"not found in eval set `{header.eval_set_id}`."
        problems = [
            Problem(f"Eval case `{each}` {of}", self.shown)
            for each in dict.fromkeys(ids)
            if each not in places
        ]
        if problems:
            raise EvalSetError(problems=problems)
        return [places[each] for each in ids]

    @property
    def _syntax(self) -> Syntax:
        return syntax_of(self.path)

    def _text(self) -> str:
        return read_text(self.path, shown=self.shown)

    def _editable(self) -> tuple[EvalSet, list[EvalCase]]:
        """Return the evalset with its cases, if it is one whose cases can be edited."""
        opened = self.open()
        name = opened.header.format
        if name in _EDITABLE:
            return opened.header, list(opened.cases())
        if name in OLDER:
            how = f"`ci-eval evalset migrate {self.shown}` brings it into the present one"
        else:
            how = f"`ci-eval evalset convert {self.shown} --to adk --out FILE` writes it as one"
        message = f"is of the format {name!r}, in which cases are not edited"
        raise UsageError(problems=[Problem(message, self.shown)], hint=how)

    def _save(self, text: str, header: EvalSet, meant: Sequence[EvalCase]) -> list[Problem]:
        """Write `text`, if its cases are those that are `meant`."""
        try:
            after = read_back(text, name=self.path.name, shown=self.shown)
            lost = losses(
                meant,
                after.cases(),
                shown=self.shown,
                target=header.format,
                ignoring=INCIDENTAL,
            )
        except EvalSetError as exc:
            hint = "this is what the file would hold; nothing was written"
            raise EvalSetError(problems=exc.problems, hint=hint) from exc
        write(self.path, text)
        return lost


def located(place: str, eval_set_id: str | None) -> EvalSetFile:
    """Return the evalset that a command names: by a file, or by an agent's folder and an id.

    Raises:
        UsageError: the folder is not there, or the id is none.

    """
    path = Path(place)
    if eval_set_id is None:
        if path.is_dir():
            raise UsageError(f"{place} is a folder: say which evalset of it, by its id")
        return EvalSetFile(path, place, id_from(path.name))
    if not path.is_dir():
        what = "a file, which holds one evalset" if path.exists() else "not there"
        raise UsageError(f"{place} is {what}; an id is for the folder of an agent")
    if eval_set_id in ("", ".", "..") or re.search(r"[/\\\0]|^[A-Za-z]:", eval_set_id):
        raise UsageError(f"eval_set_id {eval_set_id!r} must not contain path separators.")
    shown = str(path / f"{eval_set_id}{SUFFIX}")
    return EvalSetFile(Path(shown), shown, eval_set_id, app=path.resolve().name)


def id_from(name: str) -> str:
    """Return the id of an evalset in a file called `name`, where nothing else says it."""
    stem = name
    for suffix in (*_EVALSET_NAMES, *_SUFFIXES):
        if stem.endswith(suffix):
            stem = stem.removesuffix(suffix)
            break
    return re.sub(r"[^a-zA-Z0-9_]+", "_", stem).strip("_") or "evalset"


def check_id(eval_set_id: str) -> None:
    """Refuse an id that ADK would not create an evalset with.

    Raises:
        UsageError: it has other characters than letters, digits and `_`.

    """
    if not _ID.fullmatch(eval_set_id):
        raise UsageError(
            "Invalid Eval Set ID. Eval Set ID should have the `^[a-zA-Z0-9_]+$` format",
            hint=f"{eval_set_id!r} could be {id_from(eval_set_id)!r}",
        )


def unwritable(path: Path) -> list[Problem]:
    """Return why no file is put at `path`, if something speaks against it."""
    if path.is_symlink():
        return [Problem("is a link, which is not written through; name the file itself", str(path))]
    if path.exists() and not path.is_file():
        return [Problem("is not a file", str(path))]
    return [] if path.parent.is_dir() else [Problem("its folder is not there", str(path))]


def write(path: Path, text: str) -> None:
    """Put a file with `text` at `path`, in one piece; what was there stays where that fails.

    Raises:
        UsageError: there is a link, or the folder is not there.

    """
    problems = unwritable(path)
    if problems:
        raise UsageError(problems=problems)
    mode = path.stat().st_mode if path.exists() else None
    with replacing(path) as file:
        file.write(text)
    if mode is not None:
        path.chmod(mode & 0o777)


def evalset_files(folder: Path, shown: str) -> Iterator[tuple[Path, str]]:
    """Yield the files in and below `folder` that are evalsets, or are named like ones.

    Hidden folders are left out, and those of installed packages.

    Raises:
        UsageError: there is no such folder, or it holds too many files.

    """
    if not folder.is_dir():
        message = f"Eval directory for app `{folder.name}` not found."
        raise UsageError(problems=[Problem(message, shown)])
    for path in _files(folder, shown):
        if path.name.endswith(_EVALSET_NAMES) or _is_evalset(path):
            yield path, str(Path(shown) / path.relative_to(folder))


def _files(folder: Path, shown: str) -> list[Path]:
    found: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", *_NOT_OURS))]
        found += [Path(parent, name) for name in names if name.lower().endswith(_SUFFIXES)]
        if len(found) > MAX_FILES:
            message = f"holds more than {MAX_FILES} files that may be evalsets; name a folder in it"
            raise UsageError(problems=[Problem(message, shown)])
    return sorted(path for path in found if path.is_file())


def _is_evalset(path: Path) -> bool:
    """Say whether a file begins like an evalset that holds something."""
    with suppress(UsageError):
        head = read_head(path, shown=path.name)
        return bool(head) and reader_of(head, syntax_of(path)) is not None
    return False
