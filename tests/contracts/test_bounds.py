"""No number in a file that is read back is without bounds: sums and loops are made with them."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from ci_eval.baselines._runs_index import Index
from ci_eval.records.cases import EvalCase, Invocation
from ci_eval.records.findings import Report
from ci_eval.records.questions import Answer
from ci_eval.records.results import RunMeta, TrialResult
from ci_eval.records.trials import Recording, Trace, TrialKey
from ci_eval.run_files.resume import Begun

READ_BACK: tuple[type[BaseModel], ...] = (
    *(RunMeta, TrialResult, Report, Trace, TrialKey, Begun, Recording, Index, Answer),
    *(EvalCase, Invocation),
)


def unbounded(schema: Any, name: str = "") -> Iterator[str]:
    """Yield the names of the numbers that may be anything."""
    if isinstance(schema, list):
        for each in schema:
            yield from unbounded(each, name)
    if not isinstance(schema, dict):
        return
    if schema.get("type") in ("integer", "number") and not {"minimum", "maximum"} <= schema.keys():
        yield name
    for key, each in schema.items():
        inside = key in ("items", "anyOf", "prefixItems", "additionalProperties", "properties")
        yield from unbounded(each, name if inside else key)


@pytest.mark.parametrize("model", READ_BACK)
def test_every_number_of_a_record_has_bounds(model: type[BaseModel]) -> None:
    # What is compared with the one version there is needs none.
    assert {*unbounded(model.model_json_schema())} - {"schema_version", "line"} == set()


def test_all_bounds_can_be_summed_and_squared() -> None:
    for model in READ_BACK:
        for most in maxima(model.model_json_schema()):
            assert (1e6 * most) ** 2 < sys.float_info.max


def maxima(schema: Any) -> Iterator[float]:
    """Yield the bounds of all numbers."""
    if isinstance(schema, dict):
        yield from (float(schema[key]) for key in ("minimum", "maximum") if key in schema)
    for each in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(each, dict | list):
            yield from maxima(each)
