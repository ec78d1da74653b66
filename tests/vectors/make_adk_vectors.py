"""Record what a version of ADK answers to invented texts and tool calls.

Run by hand, once for each version of ADK, under an interpreter that has that version:

    uv venv --python 3.12 adk && uv pip install --python adk 'google-adk[eval]==2.13.0'
    adk/bin/python tests/vectors/make_adk_vectors.py

and again with `2.3.0`. It calls no model and no network. The files are written beside it, named
after the version; the inputs depend on `SEED` alone, so that a second run changes nothing.
adk_inputs.py invents the inputs, README.md describes the rows.
"""

# A script for an environment of its own, whose generators are seeded.
# ADK is what it runs in
# Where the project is type-checked, ADK need not be there.
# mypy: disable-error-code="import-not-found"

import importlib.metadata
import itertools
import json
import logging
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from adk_inputs import (
    CALL_CHANGES,
    CHANGES,
    Json,
    changed_calls,
    invocation,
    measured_invocation,
    text_pair,
    tool_call,
)
from google.adk.evaluation.eval_case import Invocation
from google.adk.evaluation.eval_metrics import BaseCriterion, EvalMetric
from google.adk.evaluation.evaluator import EvaluationResult
from google.adk.evaluation.metric_evaluator_registry import DEFAULT_METRIC_EVALUATOR_REGISTRY

SEED: Final = 20_131
ROUGE_ROWS: Final = 620
TRAJECTORY_ROWS: Final = 620
EFFICIENCY_ROWS: Final = 80

# One turn in this many has a final text: the other file is for the texts.
TURNS_PER_TEXT: Final = 5

# Characters that JSON leaves alone in a string, and that some readers of lines break lines at.
LINE_BREAKS: Final = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}

EFFICIENCY_METRICS: Final = (
    "tool_call_count_v1",
    "inference_call_count_v1",
    "token_usage_v1",
    "invocation_duration_v1",
)


def _read(turns: Iterable[Json]) -> list[Invocation]:
    """Read invocations from JSON text, as ADK reads its files."""
    return [Invocation.model_validate_json(json.dumps(turn)) for turn in turns]


def _evaluate(
    metric: str, actual: list[Json], expected: list[Json] | None, **criterion: object
) -> EvaluationResult:
    """Have ADK evaluate turns as its evaluation service does."""
    setting = EvalMetric(metric_name=metric)
    if expected is not None:
        setting.threshold = 0.5
        setting.criterion = BaseCriterion.model_validate({"threshold": 0.5, **criterion})
    evaluator = DEFAULT_METRIC_EVALUATOR_REGISTRY.get_evaluator(setting)
    result = evaluator.evaluate_invocations(
        actual_invocations=_read(actual),
        expected_invocations=None if expected is None else _read(expected),
    )
    assert isinstance(result, EvaluationResult)
    return result


def _scores(result: EvaluationResult) -> list[Any]:
    return [turn.score for turn in result.per_invocation_results]


def rouge_rows() -> list[Json]:
    """Make the rows of `response_match_score`."""
    rng = random.Random(f"{SEED} rouge")
    changes: dict[tuple[str, str], str] = {}
    for change in itertools.cycle(CHANGES):
        changes.setdefault(text_pair(rng, change), change)
        if len(changes) == ROUGE_ROWS:
            break
    pairs = list(changes)
    actual, expected = (
        [{"userContent": {}, "finalResponse": {"parts": [{"text": pair[i]}]}} for pair in pairs]
        for i in (0, 1)
    )
    scores = _scores(_evaluate("response_match_score", actual, expected))
    return [
        {"id": f"r{n:04}", "change": change, "candidate": c, "reference": r, "fmeasure": score}
        for n, ((c, r), change, score) in enumerate(
            zip(pairs, changes.values(), scores, strict=True)
        )
    ]


def trajectory_rows(version: str) -> list[Json]:
    """Make the rows of `tool_trajectory_avg_score`, with the ROUGE score of the answers."""
    rng = random.Random(f"{SEED} trajectory")
    changes: list[str] = []
    actual: list[Json] = []
    expected: list[Json] = []
    for n in range(TRAJECTORY_ROWS):
        calls = [tool_call(rng) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4)))]
        changes.append(CALL_CHANGES[n % len(CALL_CHANGES)])
        done = changed_calls(rng, calls, changes[n])
        texts = text_pair(rng, "cut") if n % TURNS_PER_TEXT == 0 else (None, None)
        expected.append(invocation(rng, calls, texts[1]))
        actual.append(invocation(rng, done, texts[0]))

    def answers(**criterion: object) -> dict[str, list[Any]]:
        metric = "tool_trajectory_avg_score"
        return {
            match: _scores(_evaluate(metric, actual, expected, match_type=match, **criterion))
            for match in ("exact", "in_order", "any_order")
        }

    columns = answers() | {"rouge1": _scores(_evaluate("response_match_score", actual, expected))}
    # ADK 2.3 has no such option: it takes it, and does nothing with it.
    ignoring = answers(ignore_args=True) if not version.startswith("2.3.") else {}
    rows = []
    for n, (wanted, given) in enumerate(zip(expected, actual, strict=True)):
        scores: Json = {name: column[n] for name, column in columns.items()}
        if ignoring:
            scores["ignore_args"] = {name: column[n] for name, column in ignoring.items()}
        row = {"id": f"t{n:04}", "change": changes[n], "expected": wanted, "actual": given}
        rows.append(row | {"scores": scores})
    return rows


def efficiency_rows() -> list[Json]:
    """Make the rows of the four metrics that only inform, each of a case of some turns."""
    rng = random.Random(f"{SEED} efficiency")
    rows = []
    for n in range(EFFICIENCY_ROWS):
        turns = [measured_invocation(rng) for _ in range(rng.choice((0, 1, 1, 2, 3, 4)))]
        scores = {name: _told(_evaluate(name, turns, None)) for name in EFFICIENCY_METRICS}
        rows.append({"id": f"e{n:04}", "actual": turns, "scores": scores})
    return rows


def _told(result: EvaluationResult) -> Json:
    """Keep the scores and the details which a metric gives, overall and by turn."""
    told: Json = {"overall": result.overall_score, "per_invocation": _scores(result)}
    for kind in ("token_usage_details", "duration_details"):
        by_turn = [getattr(turn, kind) for turn in result.per_invocation_results]
        if any(by_turn):
            overall = getattr(result, f"overall_{kind}")
            told[kind] = {
                "overall": overall.model_dump(exclude_none=True),
                "per_invocation": [turn.model_dump(exclude_none=True) for turn in by_turn],
            }
    return told


def _write(name: str, rows: list[Json]) -> None:
    lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    path = Path(__file__).with_name(name)
    text = "".join(f"{line.translate(LINE_BREAKS)}\n" for line in lines)
    path.write_text(text, encoding="utf-8", newline="\n")


def main() -> None:
    """Write the files of the installed version of ADK."""
    # ADK warns about its experimental parts at every use.
    logging.disable(logging.WARNING)
    version = importlib.metadata.version("google-adk")
    _write(f"adk-{version}.rouge.jsonl", rouge_rows())
    _write(f"adk-{version}.trajectory.jsonl", trajectory_rows(version))
    if not version.startswith("2.3."):
        _write(f"adk-{version}.efficiency.jsonl", efficiency_rows())


if __name__ == "__main__":
    main()
