"""Runs that are killed while they record are resumed without asking a provider twice."""

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
MOMENTS, SEED = 4, 7


@pytest.mark.slow
@pytest.mark.processes
def test_a_recording_that_was_killed_at_any_moment_loses_only_what_was_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    outcomes = importlib.import_module("kill_and_record").try_moments(MOMENTS, SEED)

    wrong = [each for each in outcomes if each.problems]
    assert not wrong, f"python benchmarks/kill_and_record.py {MOMENTS} {SEED}"
    assert sum(len(each.moments) for each in outcomes) >= MOMENTS
