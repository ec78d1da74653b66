"""The baseline of a run, and the summaries of stored runs."""

from support.run_language import past

from ci_eval.forge.lineage import Lineage
from ci_eval.run.baseline_choice import Baseline
from ci_eval.run_files.run_summary import note

RUNS = past("greets 1", "greets 0")


def test_the_nearest_run_is_in_the_history_of_every_store() -> None:
    nearest, other = map(note, RUNS)
    assert Baseline(RUNS).history == (nearest,)
    assert Baseline(RUNS, history=[other]).history == (other, nearest)
    assert Baseline(RUNS, history=[other, nearest]).history == (other, nearest)
    assert Baseline((), history=[other]).history == (other,)


def test_why_no_stored_run_is_used_is_said_once() -> None:
    stored = [each.model_copy(update={"commit": "c1"}) for each in map(note, RUNS)]
    lineage = Lineage(ancestors=("c0",), own="c1")
    assert Baseline((), lineage, stored).unused == "of this commit itself"
    assert Baseline(RUNS, lineage, stored).unused == Baseline(()).unused == ""
