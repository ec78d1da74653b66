"""Check of a drafted configuration, like `validate` and the start of `run`."""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from ci_eval.config.load_config import load
from ci_eval.config.validated_config import Config
from ci_eval.plugins.points import Judge, JudgedCriterion
from ci_eval.records.errors import CiEvalError, Problem
from ci_eval.run.plan import plan
from ci_eval.run_files.file_names import CONFIG_FILE
from ci_eval.run_files.report_phrases import listed
from ci_eval.runtime.context import RunContext


@dataclass(frozen=True)
class AskedModel:
    """A model that criteria use."""

    name: str
    """The model, or the service that stands for it."""
    judge: Judge
    """How it is reached."""
    criteria: tuple[str, ...]
    """The criteria that use it, by their names in the configuration."""

    def told(self, env: Mapping[str, str]) -> str:
        """Name the criteria that use the model, and the keys that `env` lacks."""
        needed = self.judge.missing(env)
        rest = f" It needs {needed}." if needed else ""
        return f"{self.name} is used by {listed(self.criteria)}.{rest}"


class Tried(NamedTuple):
    """Result of checking a configuration."""

    errors: tuple[Problem, ...] = ()
    """Errors that prevent a run."""
    asked: tuple[AskedModel, ...] = ()
    """The models that it uses, if there are no errors."""


def try_out(config: str, context: RunContext) -> Tried:
    """Check the text `config`; API keys of models may be missing, as a workflow can have them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / CONFIG_FILE
        path.write_text(config, encoding="utf-8")
        try:
            loaded = load(path, shown=path.name, context=context)
            plan(loaded, context)
        except CiEvalError as exc:
            return Tried(tuple(each for each in exc.problems if each.severity == "error"))
    errors = tuple(_out_of_reach(loaded, context))
    return Tried(errors) if errors else Tried(asked=_asked(loaded))


def _out_of_reach(config: Config, context: RunContext) -> Iterator[Problem]:
    """Yield an error for each criterion of a service that is not set up; a key is not enough."""
    for name, criterion in _judged(config):
        for judge in config.judging.judges(criterion) if criterion.service else ():
            if missing := judge.missing(context.env):
                message = f"needs the service {criterion.service!r}, which lacks {missing}"
                yield Problem(message, where=f"criteria.{name}")


def _asked(config: Config) -> tuple[AskedModel, ...]:
    found: dict[str, AskedModel] = {}
    for name, criterion in _judged(config):
        for judge in config.judging.judges(criterion):
            model = criterion.service or str(judge.model)
            known = found.get(model, AskedModel(model, judge, ()))
            found[model] = replace(known, criteria=(*known.criteria, name))
    return tuple(found.values())


def _judged(config: Config) -> Iterator[tuple[str, JudgedCriterion]]:
    for name, criterion in config.criteria.items():
        if isinstance(criterion, JudgedCriterion):
            yield name, criterion
