"""Keys of a configuration that are in the wrong section."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel

from ci_eval.config.config_document import DocumentReader
from ci_eval.config.config_schema import GateOptions, RunOptions
from ci_eval.plugins.baseline_store import BaselineStore
from ci_eval.text.yaml_files import Loc

_KEYS_OF: Mapping[str, type[BaseModel]] = {
    "run": RunOptions,
    "gate": GateOptions,
    "baseline": BaselineStore,
}


def placed(
    reader: DocumentReader,
    model: type[BaseModel],
    given: Any,
    loc: Loc,
    sections: Sequence[str] = tuple(_KEYS_OF),
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
            reader.problem(f"unknown key. Did you mean `{section}.{name}`?", (*loc, key))
    return kept
