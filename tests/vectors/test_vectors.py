"""Every score is the one that ADK itself gives, to the last digits.

The files beside this one were made by ADK (`make_adk_vectors.py`).  More of the same kind
are tried where the environment variable CI_EVAL_VECTORS names a folder that has them.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ci_eval.plugins.points import criterion
from ci_eval.records.cases import Content, EvalCase, Invocation
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace, TrialKey

HERE = Path(__file__).parent
MORE = Path(os.environ["CI_EVAL_VECTORS"]) if "CI_EVAL_VECTORS" in os.environ else None
MATCH_TYPES = ("exact", "in_order", "any_order")
KEY = TrialKey(agent="a", evalset="e", case="c")


def close(value: float | None) -> Any:
    return value if value is None else pytest.approx(value, rel=0, abs=1e-12)


def rows(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def scored(
    name: str, expected: list[Invocation], actual: list[Invocation], **options: Any
) -> Score:
    case = EvalCase(eval_id="c", conversation=tuple(expected), of_adk=True)
    trace = Trace(key=KEY, invocations=tuple(actual))
    return criterion[name].model_validate(options).score(case, trace)


def files(*own: str, more: str) -> list[Path]:
    """Return files beside this one and, where there are more, the one called `more`."""
    return [HERE / name for name in own] + ([MORE / more] if MORE else [])


PAIRS = files(
    "adk-2.13.0.trajectory.jsonl", "adk-2.3.0.trajectory.jsonl", more="adk_invocation_pairs.jsonl"
)


@pytest.mark.parametrize("path", PAIRS, ids=lambda path: path.name)
def test_trajectories_match_where_adk_says_so(path):
    wrong = []
    for row in rows(path):
        pair = [[Invocation.model_validate(row[side])] for side in ("expected", "actual")]
        for match_type in MATCH_TYPES:
            found = scored(
                "adk/tool_trajectory_avg_score", *pair, threshold=1, match_type=match_type
            )
            if found.value != row["scores"][match_type]:
                wrong.append((row["id"], match_type))
            if "ignore_args" in row["scores"]:
                found = scored(
                    "adk/tool_trajectory_avg_score",
                    *pair,
                    threshold=1,
                    match_type=match_type,
                    ignore_args=True,
                )
                if found.value != row["scores"]["ignore_args"][match_type]:
                    wrong.append((row["id"], match_type, "ignore_args"))

    assert wrong == []


@pytest.mark.parametrize("path", PAIRS, ids=lambda path: path.name)
def test_responses_of_invocations_match_as_far_as_adk_says(path):
    name = f"adk{'@2.3' * ('2.3.0' in path.name)}/response_match_score"
    wrong = []
    for row in rows(path):
        pair = [[Invocation.model_validate(row[side])] for side in ("expected", "actual")]
        if scored(name, *pair, threshold=1).value != close(row["scores"]["rouge1"]):
            wrong.append(row["id"])

    assert wrong == []


@pytest.mark.parametrize(
    "path",
    files("adk-2.13.0.rouge.jsonl", "adk-2.3.0.rouge.jsonl", more="adk_rouge.jsonl"),
    ids=lambda path: path.name,
)
def test_texts_match_as_far_as_adk_says(path):
    def said(text: str) -> list[Invocation]:
        content = Content.of_text(text, role="model")
        return [Invocation(user_content=Content(parts=()), final_response=content)]

    wrong = []
    for row in rows(path):
        old = "2.3.0" in path.name or row.get("adk") == "2.3.0"
        name = f"adk{'@2.3' * old}/response_match_score"
        found = scored(name, said(row["reference"]), said(row["candidate"]), threshold=1)
        if found.value != close(row["fmeasure"]):
            wrong.append(row)

    assert wrong == []


@pytest.mark.parametrize(
    "metric",
    ["tool_call_count_v1", "inference_call_count_v1", "token_usage_v1", "invocation_duration_v1"],
)
def test_what_is_measured_is_what_adk_measures(metric):
    for row in rows(HERE / "adk-2.13.0.efficiency.jsonl"):
        adk = row["scores"][metric]
        actual = [Invocation.model_validate(each) for each in row["actual"]]
        found = scored(f"adk/{metric}", [], actual)

        assert found.value == close(adk["overall"]), row["id"]
        values = [part.value for part in found.invocations]
        assert values == [close(value) for value in adk["per_invocation"]], row["id"]


def test_tokens_are_counted_by_kind_as_adk_counts_them():
    kinds = ("input", "output", "cached", "reasoning", "tool_use")
    for row in rows(HERE / "adk-2.13.0.efficiency.jsonl"):
        details = row["scores"]["token_usage_v1"].get("token_usage_details")
        actual = [Invocation.model_validate(each) for each in row["actual"]]
        found = scored("adk/token_usage_v1", [], actual)
        for part, adk in zip(
            found.invocations, (details or {}).get("per_invocation", ()), strict=False
        ):
            counted = {kind: (adk or {}).get(f"{kind}_tokens") for kind in kinds}
            assert (part.evidence or {}) == {k: n for k, n in counted.items() if n is not None}
