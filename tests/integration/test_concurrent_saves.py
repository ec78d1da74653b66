"""Runs that are stored at the same time, by processes of their own: none is lost."""

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
JOBS = 12


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["one_clone", "two_histories", "refused_twice"])
def test_whoever_stores_at_the_same_time_nothing_is_lost_and_no_clone_is_touched(
    scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    outcome = getattr(importlib.import_module("concurrent_saves"), scenario)(tmp_path / "all", JOBS)
    assert (outcome.saved, outcome.problems) == (JOBS, ())
