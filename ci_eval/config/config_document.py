"""Base class of the readers of a configuration."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ci_eval.plugins.points import Agent, WorkerCriterion
from ci_eval.records.errors import Problem, Severity
from ci_eval.runtime.context import RunContext
from ci_eval.text.validation_messages import explain, validated
from ci_eval.text.yaml_files import Document, Loc

M = TypeVar("M", bound=BaseModel)


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

    def problem(self, message: str, loc: Loc = (), *, severity: Severity = "error") -> None:
        """Add a problem at `loc`."""
        self.problems.append(self.document.problem(message, loc, severity=severity))
