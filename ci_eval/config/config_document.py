"""Base class of the readers of a configuration."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ci_eval.config.config_schema import GateOptions, RunOptions
from ci_eval.plugins.baseline_store import BaselineStore
from ci_eval.plugins.points import Agent, WorkerCriterion
from ci_eval.records.errors import Problem, Severity
from ci_eval.runtime.context import RunContext
from ci_eval.text.validation_messages import explain, validated
from ci_eval.text.yaml_files import Document, Loc

M = TypeVar("M", bound=BaseModel)
_KEYS_OF: Mapping[str, type[BaseModel]] = {
    "run": RunOptions,
    "gate": GateOptions,
    "baseline": BaselineStore,
}
"""The sections whose keys may be misplaced."""


class DocumentReader:
    """Reads a part of a configuration and collects its problems."""

    def __init__(self, document: Document, context: RunContext) -> None:
        self.document = document
        self.context = context
        self.problems: list[Problem] = []

    def validated(self, model: type[M], value: Any, loc: Loc) -> M | None:
        """Return `value`, which is at `loc`, as a `model`; `None` if it is invalid."""
        try:
            found = validated(model, value, context={"root": self.context.root})
        except ValidationError as exc:
            for inner, message in explain(exc, model):
                self.problem(message, (*loc, *inner))
            return None
        if isinstance(found, Agent | WorkerCriterion):
            for field, message in found.check(self.context):
                self.problem(message, (*loc, field))
        return found

    def placed(
        self, model: type[BaseModel], given: Any, loc: Loc, sections: Sequence[str] = (*_KEYS_OF,)
    ) -> Any:
        """Return a part of the configuration without keys that belong to one of the `sections`.

        These are noted as problems, with the place where they belong.
        """
        if not isinstance(given, dict):
            return given
        homes = {key: each for each in sections for key in _KEYS_OF[each].model_fields}
        kept = dict(given)
        for key in [each for each in given if each not in model.model_fields]:
            name = str(key)
            close = [name] if name in homes else get_close_matches(name, homes, n=1)
            if name in homes or (close and not get_close_matches(name, model.model_fields)):
                del kept[key]
                section, name = homes[close[0]], close[0]
                self.problem(f"unknown key. Did you mean `{section}.{name}`?", (*loc, key))
        return kept

    def problem(self, message: str, loc: Loc = (), *, severity: Severity = "error") -> None:
        """Add a problem at `loc`."""
        self.problems.append(self.document.problem(message, loc, severity=severity))
