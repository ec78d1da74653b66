"""The engine in `run:`; its options stand beside the general options of `run:`."""

from typing import Any

from ci_eval.config.config_document import DocumentReader
from ci_eval.config.config_schema import RunOptions
from ci_eval.plugins import points
from ci_eval.plugins.engine import Engine
from ci_eval.records.errors import UnknownPluginError


def without_engine(raw: Any) -> Any:
    """Return the value of `run:` without the options of its engine."""
    if not isinstance(raw, dict) or raw.get("engine") not in points.engine:
        return raw
    theirs = points.engine[raw["engine"]].model_fields
    return {key: value for key, value in raw.items() if _is_of_all_runs(key, theirs)}


def _is_of_all_runs(key: Any, theirs: Any) -> bool:
    return key in RunOptions.model_fields or key not in theirs


def read_engine(reader: DocumentReader, raw: Any) -> Engine:
    """Return the engine that `run:` names, with its options.

    Problems are added to those of `reader`.
    """
    given = raw if isinstance(raw, dict) else {}
    name = given.get("engine", "local")
    try:
        model = points.engine[str(name)]
    except UnknownPluginError as exc:
        reader.problem(str(exc), ("run", "engine"))
        return points.engine["local"]()
    options = {
        key: value for key, value in given.items() if not _is_of_all_runs(key, model.model_fields)
    }
    return reader.validated(model, options, ("run",)) or points.engine["local"]()


def engine_named(name: str, engine: Engine) -> Engine:
    """Return the engine called `name`; `engine` itself if that is its name.

    Raises:
        UsageError: there is no such engine.

    """
    try:
        model = points.engine[name]
    except UnknownPluginError as exc:
        raise UnknownPluginError(str(exc), where=f"--engine {name}") from exc
    return engine if isinstance(engine, model) else model()
