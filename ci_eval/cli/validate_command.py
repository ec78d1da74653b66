"""Validation of files: detects the kind of a file and reports all its problems."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import click

from ci_eval.cli import console
from ci_eval.cli.command_inputs import context_of, require_config
from ci_eval.cli.error_codes import code_of
from ci_eval.cli.exit_codes import print_json
from ci_eval.cli.shared_options import config_option, json_option, run_python_option
from ci_eval.config.eval_config import read_eval_config
from ci_eval.config.load_config import gcs_options, load
from ci_eval.config.open_evalset import open_evalset, open_stored, reader_of
from ci_eval.formats.sniff import read_head, syntax_of
from ci_eval.llm.gateway.gateway import cassette_of
from ci_eval.plugins import points
from ci_eval.records.errors import CiEvalError, ExitCode, NothingSelectedError, Problem, UsageError
from ci_eval.records.evalset_facts import OpenedEvalSet
from ci_eval.run.participants import agents_with_gateway
from ci_eval.run.plan import Plan, plan
from ci_eval.run.requirements import absent, unread_expectations, wrong_cases
from ci_eval.run_files.file_names import CONFIG_FILE
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.storage.gcs import Storage
from ci_eval.runtime.storage.gs_uri import is_place
from ci_eval.text.json_text import parse_relaxed
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.templates import counted, terminal
from ci_eval.text.yaml_files import MAX_CONFIG, read_text

Kind = Literal["config", "evalset", "eval_config", "unknown"]
_YAML = (".yaml", ".yml")
_EVAL_CONFIG = {"criteria", "custom_metrics", "customMetrics"}


@click.command()
@click.argument("files", nargs=-1, type=click.Path())
@config_option
@run_python_option
@json_option
def validate(files: tuple[str, ...], config: str, *, run_python: bool, as_json: bool) -> int:
    """Check configurations, evalsets and ADK eval configs; errors name file and line."""

    def context_for(path: Path) -> RunContext:
        return replace(context_of(path), runs_python=run_python)

    found = [check(name, context_for) for name in files or (config,)]
    if as_json:
        print_json([each.as_json() for each in found])
    else:
        for each in found:
            console.say_problems(each.problems)
            click.echo(terminal(each.summary(), 5_000))
    wrong = any(p.severity == "error" for each in found for p in each.problems)
    return ExitCode.USAGE_ERROR if wrong else ExitCode.PASSED


@dataclass(frozen=True)
class Checked:
    """The result of checking a file."""

    file: str
    kind: Kind
    cases: int | None
    """Number of cases; `None` if unknown."""
    problems: tuple[Problem, ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as `validate --json` prints it."""
        return {
            "file": self.file,
            "kind": self.kind,
            "cases": self.cases,
            "problems": [
                {
                    "code": code_of(each.message),
                    "severity": each.severity,
                    "line": each.line,
                    "message": self._said(each),
                }
                for each in self.problems
            ],
        }

    def summary(self) -> str:
        """Return one line about it."""
        errors = sum(each.severity == "error" for each in self.problems)
        cases = f", {counted(self.cases, 'case')}" if self.cases is not None else ""
        found = counted(errors, "error") if errors else "ok"
        return f"{self.file}: {self.kind.replace('_', ' ')}{cases}: {found}"

    def _said(self, problem: Problem) -> str:
        """Return a problem's message, with its location if that is in another file."""
        if problem.file and problem.file != self.file:
            return str(problem)
        return ": ".join(filter(None, (problem.where, problem.message)))


def check(name: str, context_for: Callable[[Path], RunContext]) -> Checked:
    """Check the file or `gs://` URI `name`."""
    path = Path(name)
    kind: Kind = "evalset" if is_place(name) else _likely(path)
    try:
        if is_place(name):
            here = context_for(Path(CONFIG_FILE))
            return _evalset(open_stored(name, Storage(gcs_options(here), here.env)), name)
        require_config(path, name)
        head = _head(path, name)
        if reader_of(head, syntax_of(path)):
            kind = "evalset"
        elif path.suffix not in _YAML:
            kind = _kind(head)
        if kind == "config":
            return _config(path, name, context_for(path))
        if kind == "eval_config":
            return _eval_config(path, name)
        return _evalset(open_evalset(path, shown=name), name)
    except CiEvalError as exc:
        return Checked(name, kind, None, exc.problems)


def _likely(path: Path) -> Kind:
    """Return the kind that the name of a file suggests."""
    if path.suffix in _YAML:
        return "config"
    if path.name.endswith("_config.json"):
        return "eval_config"
    return "evalset" if path.name.endswith(("evalset.json", ".test.json")) else "unknown"


def _head(path: Path, name: str) -> Any:
    """Return the beginning of a document, which may be JSON with comments."""
    try:
        return read_head(path, shown=name)
    except UsageError as strict:
        if syntax_of(path) != "json" or _likely(path) == "evalset":
            raise
        try:
            return parse_relaxed(read_text(path, shown=name, most=MAX_CONFIG), shown=name)[0].value
        except UsageError as relaxed:
            # The relaxed parser got further, so it found the real error.
            if _line(relaxed) > _line(strict):
                raise
        raise


def _line(error: UsageError) -> int:
    return error.problems[0].line or 0


def _kind(head: Any) -> Kind:
    if not isinstance(head, dict):
        return "unknown"
    if {"agents", "evalsets"} & head.keys():
        return "config"
    if _EVAL_CONFIG & head.keys() or _looks_like_config(head):
        return "eval_config"
    return "unknown"


def _looks_like_config(head: dict[str, Any]) -> bool:
    """Return True if an object looks like an eval config with a misspelt key."""
    return len(head) == 1 and did_you_mean(next(iter(head)), _EVAL_CONFIG).startswith(".")


def _config(path: Path, name: str, context: RunContext) -> Checked:
    loaded = load(path, shown=name, context=context)
    if loaded.not_run:
        unchecked = (replace(each, severity="warning") for each in loaded.not_run)
        return Checked(name, "config", None, (*loaded.warnings, *unchecked))
    try:
        planned = plan(loaded, context)
    except NothingSelectedError as exc:
        empty = Problem(str(exc), name, severity="warning")
        return Checked(name, "config", 0, (*loaded.warnings, empty))
    except CiEvalError as exc:
        return Checked(name, "config", None, exc.problems)
    cases = sum(planned.evalsets[name].count for name in {each for _, each in planned.pairs})
    problems = (
        *absent(loaded, planned.pairs, context),
        *_cassettes(planned, context),
        *planned.warnings,
        *unread_expectations(loaded, planned.evalsets, planned.pairs),
    )
    return Checked(name, "config", cases, problems)


def _cassettes(planned: Plan, context: RunContext) -> Iterator[Problem]:
    """Yield the cassettes of agents that cannot be read, or have yet to be recorded."""
    document = planned.config.document
    for agent, options in agents_with_gateway(planned, context):
        place = ("agents", agent, "models")
        try:
            exists = cassette_of(options, context).exists
        except UsageError as exc:
            yield document.problem(str(exc), place)
            continue
        if options.mode == "replay" and not exists:
            how = context.command("run", "--models", "record")
            message = f"{context.shown(options.cassette)}: no such file; record it with `{how}`"
            yield document.problem(message, place, severity="warning")


def _eval_config(path: Path, name: str) -> Checked:
    """Check an eval config on its own; its dialect may be set in a configuration."""
    read = read_eval_config(path, shown=name, dialect=None)
    if read.unclear:
        # Only problems in both dialects are errors.
        read = read_eval_config(path, shown=name, dialect="adk")
        message = (
            "ADK and AgentFlow read this differently; set `dialect:` where a configuration uses it"
        )
        read.problems.append(Problem(message, name, 1, severity="warning"))
    return Checked(name, "eval_config", None, tuple(read.problems))


def _evalset(opened: OpenedEvalSet, name: str) -> Checked:
    problems = opened.warnings
    if opened.facts.with_assertions:
        for model in map(points.criterion.__getitem__, points.criterion):
            if model.reads_assertions:
                problems += tuple(wrong_cases(model(), opened.facts, opened.cases(), name))
    if not opened.facts.cases:
        problems += (Problem("contains no cases", name, 1, severity="warning"),)
    return Checked(name, "evalset", opened.facts.cases, problems)
