"""Under observed semantics every score is the one that AgentFlow itself gives.

The files beside this one were made by the package (`make_agentflow_vectors.py`).  Where the
environment variable CI_EVAL_AGENTFLOW_PYTHON names an interpreter that has the package, they are
made once more, and others from another seed are compared as well.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.judged_scores import drawn, judged

from ci_eval.config.criterion_names import resolve
from ci_eval.plugins.points import JudgedCriterion, criterion
from ci_eval.records.cases import EvalCase
from ci_eval.records.trials import Trace, TrialKey

HERE = Path(__file__).parent
KINDS = ("calls", "nodes", "texts", "judged")
LEAST = {"calls": 400, "nodes": 400, "texts": 400, "judged": 200}
"""How many rows there are at least."""
PYTHON = os.environ.get("CI_EVAL_AGENTFLOW_PYTHON", "")
UNMEASURED = -1.0
"""What the package scores though a case has nothing to compare with; it is skipped here."""
KEY = TrialKey(agent="a", evalset="e", case="c")


def file_of(kind: str) -> str:
    return f"agentflow-0.10.1.{kind}.jsonl"


def turn(**more: Any) -> dict[str, Any]:
    return {"user_content": {"parts": [{"text": "Hi"}]}, **more}


def observed(
    name: str, expected: list[dict[str, Any]], actual: list[dict[str, Any]], **options: Any
) -> float | None:
    case = EvalCase.model_validate({"eval_id": "c", "conversation": expected})
    trace = Trace.model_validate({"key": KEY, "invocations": actual})
    model = criterion[f"agentflow/{name}"].model_validate({"semantics": "observed", **options})
    return UNMEASURED if model.skip_reason(case) else model.score(case, trace).value


def calls(row: Any) -> Iterator[tuple[str, float | None, float]]:
    sides = [
        [turn(intermediate_data={"tool_uses": uses}) for uses in row[side]]
        for side in ("expected", "actual")
    ]
    scores = row["scores"]
    yield "names", observed("tool_name_match_score", *sides), scores["names"]
    for kind, check_args in (("calls", False), ("with_args", True)):
        for match_type, score in scores[kind].items():
            options = {"match_type": match_type, "check_args": check_args}
            value = observed("tool_trajectory_avg_score", *sides, **options)
            yield f"{kind} {match_type}", value, score


def nodes(row: Any) -> Iterator[tuple[str, float | None, float]]:
    sides = [[turn(nodes=each) for each in row[side]] for side in ("expected", "actual")]
    for match_type, score in row["scores"].items():
        value = observed("node_order_match_score", *sides, match_type=match_type)
        yield match_type, value, score


def texts(row: Any) -> Iterator[tuple[str, float | None, float]]:
    def said(text: str | None) -> dict[str, Any]:
        return turn() if text is None else turn(final_response={"parts": [{"text": text}]})

    expected = list(map(said, row["expected"]))
    actual = [*map(said, ["Hello"] * (len(expected) - 1)), said(row["response"])]
    yield "rouge", observed("rouge_match", expected, actual), row["scores"]["rouge_match"]
    value = observed("contains_keywords", expected, actual, keywords=row["keywords"])
    yield "keywords", value, row["scores"]["contains_keywords"]


def judge(row: Any) -> Iterator[tuple[str, float | None, float | None]]:
    name = row["criterion"]
    model = resolve(name, "agentflow")
    assert issubclass(model, JudgedCriterion)
    options = {**model.example, "semantics": "observed", "num_samples": len(row["answers"])}
    turns = row["expected"]
    conversation = [
        turn() if text is None else turn(final_response={"parts": [{"text": text}]})
        for text in turns
    ]
    metadata = {"goals": row["goals"]}
    case = EvalCase.model_validate(
        {"eval_id": "c", "conversation": conversation, "metadata": metadata}
    )
    done = [turn()] * (len(turns) - 1)
    said = turn(final_response={"parts": [{"text": row["response"]}]})
    trace = Trace.model_validate({"key": KEY, "invocations": [*done, said]})
    found = model.model_validate(options)
    if found.skip_reason(case):
        return
    score = judged(found, case, trace, drawn(*row["answers"])).score
    assert score.status != "skipped"
    yield name, score.value, row["score"]


def differing(path: Path, kind: str) -> list[Any]:
    """Return the scores of a file that are not ours."""
    compared = {"calls": calls, "nodes": nodes, "texts": texts, "judged": judge}[kind]
    rows = list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
    assert len(rows) >= LEAST[kind]
    found = [(row["id"], *each) for row in rows for each in compared(row)]
    scored = [each for each in found if each[2] != UNMEASURED]
    assert len(scored) > len(found) / 2
    return [
        (name, what, ours, theirs)
        for name, what, ours, theirs in scored
        if ours != (theirs if theirs is None else pytest.approx(theirs, rel=0, abs=1e-12))
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_every_score_is_the_one_that_agentflow_gives(kind: str) -> None:
    assert differing(HERE / file_of(kind), kind) == []


@pytest.mark.skipif(not PYTHON, reason="CI_EVAL_AGENTFLOW_PYTHON names no interpreter")
@pytest.mark.parametrize("seed", ["101", "102"])
def test_the_package_itself_agrees(seed: str, tmp_path: Path) -> None:
    script = HERE / "make_agentflow_vectors.py"
    subprocess.run([PYTHON, script, tmp_path, seed], check=True, timeout=900)

    for kind in KINDS:
        made = tmp_path / file_of(kind)
        assert differing(made, kind) == []
        # The seed of the files beside this one is 101.
        same = made.read_bytes() == (HERE / file_of(kind)).read_bytes()
        assert same is (seed == "101")
    dump = "agentflow-0.10.1.evalset.json"
    assert (tmp_path / dump).read_bytes() == (HERE / dump).read_bytes()
