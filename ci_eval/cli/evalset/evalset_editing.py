"""Creation and case-by-case editing of a stored evalset.

It refuses the same edits, with the same messages, as ADK 2.13.0 (`LocalEvalSetsManager`).
"""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_eval.cli.evalset.command_files import File
from ci_eval.cli.evalset.conversion_losses import INCIDENTAL, losses
from ci_eval.cli.evalset.evalset_text_edits import Cases, cases_in
from ci_eval.cli.evalset.evalset_writers import FORMATS, document_text, read_back
from ci_eval.config.open_evalset import open_evalset
from ci_eval.formats.sniff import syntax_of
from ci_eval.records.cases import EvalCase, Json
from ci_eval.records.errors import EvalSetError, Problem, UsageError
from ci_eval.records.evalset_facts import EvalSet, OpenedEvalSet
from ci_eval.runtime.storage.adk_storage import check_id
from ci_eval.runtime.storage.gs_uri import is_place
from ci_eval.text.yaml_files import read_text

OLDER = ("adk_flat", "adk_legacy")
"""ADK's older formats, which parts of ADK still read."""
_EDITABLE = ("adk", "cases")


@dataclass(frozen=True)
class EvalSetFile:
    """An evalset in a file, which may not exist yet."""

    file: File
    eval_set_id: str
    """The id that the user gives, or else the one in the file's name."""
    app: str = ""
    """The agent whose evalset it is, in ADK's layout."""

    @property
    def path(self) -> Path:
        """The path to read."""
        return self.file.path

    @property
    def shown(self) -> str:
        """The file, as the user would name it."""
        return self.file.shown

    def create(self, now: float) -> None:
        """Write an evalset without cases.

        Raises:
            UsageError: ADK does not accept the id, or the file exists.

        """
        check_id(self.eval_set_id)
        if self.file.there:
            raise UsageError(self._taken(), file=self.shown)
        syntax = syntax_of(self.path)
        if syntax not in ("json", "yaml"):
            raise UsageError(f"{self.shown} cannot be empty; name it *.evalset.json or *.yaml")
        name = "adk" if syntax == "json" else "cases"
        more: dict[str, Json] = {"name": self.eval_set_id, "creation_timestamp": now}
        self.file.write(document_text(name, syntax, self.eval_set_id, (), more))

    def _taken(self) -> str:
        """Return ADK's message for an id that is taken, which differs for buckets."""
        if is_place(self.shown):
            of = f" for app `{self.app}`" if self.app else ""
            return f"Eval set `{self.eval_set_id}` already exists{of}."
        of = f" for app {self.app}" if self.app else ""
        return f"EvalSet {self.eval_set_id} already exists{of}."

    def open(self) -> OpenedEvalSet:
        """Read the evalset.

        Raises:
            EvalSetError: it does not exist, or is invalid; lists every problem.

        """
        if not self.path.exists():
            raise EvalSetError(f"Eval set `{self.eval_set_id}` not found.", file=self.shown)
        return open_evalset(self.path, shown=self.shown)

    def add(self, cases: Sequence[EvalCase]) -> list[Problem]:
        """Append `cases`; return warnings for what the format does not keep.

        Raises:
            UsageError: a case with one of the ids exists; then none is added.

        """
        with self.file.locked():
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
            text = self._in(self._text()).add(items)
            return self._save(text, header, [*there, *cases])

    def update(self, changed: Sequence[EvalCase]) -> list[Problem]:
        """Replace the cases with the same ids; return warnings for what the format does not keep.

        Raises:
            UsageError: no case has one of the ids; then none is replaced.

        """
        with self.file.locked():
            header, cases = self._editable()
            places = self._places(cases, [case.eval_id for case in changed], header)
            text = self._text()
            for position, case in zip(places, changed, strict=True):
                cases[position] = case
                item = FORMATS[header.format].case(case)
                text = self._in(text).replace(position, item)
            return self._save(text, header, cases)

    def delete(self, ids: Sequence[str]) -> None:
        """Delete the cases `ids`.

        Raises:
            UsageError: no case has one of the ids; then none is deleted.

        """
        with self.file.locked():
            header, cases = self._editable()
            text = self._text()
            for position in sorted(set(self._places(cases, ids, header)), reverse=True):
                text = self._in(text).remove(position)
                del cases[position]
            self._save(text, header, cases)

    def _places(self, cases: Sequence[EvalCase], ids: Sequence[str], header: EvalSet) -> list[int]:
        """Return the positions of the cases `ids`."""
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

    def _text(self) -> str:
        return read_text(self.path, shown=self.shown)

    def _in(self, text: str) -> Cases:
        return cases_in(text, syntax_of(self.path))

    def _editable(self) -> tuple[EvalSet, list[EvalCase]]:
        """Return the evalset and its cases, if its format can be edited."""
        opened = self.open()
        name = opened.header.format
        if name in _EDITABLE:
            return opened.header, list(opened.cases())
        if name in OLDER:
            how = f"`ci-eval evalset migrate {self.shown}` migrates it"
        else:
            how = f"`ci-eval evalset convert {self.shown} --to adk --out FILE` converts it"
        message = f"has the format {name!r}, whose cases cannot be edited"
        raise UsageError(message, file=self.shown, hint=how)

    def _save(self, text: str, header: EvalSet, meant: Sequence[EvalCase]) -> list[Problem]:
        """Write `text`, if it contains the cases `meant`."""
        try:
            after = read_back(text, name=self.path.name, shown=self.shown)
            kept, target = after.cases(), header.format
            lost = losses(meant, kept, shown=self.shown, target=target, ignoring=INCIDENTAL)
        except EvalSetError as exc:
            hint = "the edited file would have this error; nothing was written"
            raise EvalSetError(problems=exc.problems, hint=hint) from exc
        self.file.write(self._mark() + text)
        return lost

    def _mark(self) -> str:
        """Return the byte order mark of the file, if it has one, which `read_text` drops."""
        with self.path.open("rb") as file:
            has_mark = file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8
        return codecs.BOM_UTF8.decode() if has_mark else ""
