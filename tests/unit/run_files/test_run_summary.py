"""What is kept in sight of a run."""

from pathlib import Path

from support.run_language import columns, make_run, meta, past, results

from ci_eval.baselines.file_store import FileStore
from ci_eval.records.findings import Counts, Noted
from ci_eval.records.results import JudgeUsage, Run
from ci_eval.run_files.run_summary import note, note_run
from ci_eval.run_files.score_table import Past
from ci_eval.runtime.context import RunContext

TEXT = "greets 1 0.5\nrefunds 0\nweather error\ntracks skip"


def test_a_run_is_noted_with_its_means_and_how_its_cases_ended() -> None:
    stored = Past(meta(commit="c", branch="main"), columns(TEXT))
    found = note(stored)
    counts = Counts(passed=1, failed=1, errors=1, skipped=1)
    assert (found.run_id, found.commit, found.branch) == ("now", "c", "main")
    assert found.cases == counts
    (group,) = found.groups
    assert (group.group.agent, group.group.evalset, group.group.criterion) == ("a", "e", "c")
    assert (group.value, group.cases, group.cost_usd) == (0.375, counts, None)


def test_a_run_and_its_values_are_noted_alike() -> None:
    assert note_run(make_run(TEXT, "past0")) == note(past(TEXT)[0])


def test_what_the_judges_took_is_added_up() -> None:
    def judged():
        for each in results("greets 1 1\nrefunds 1"):
            score = each.scores[0].model_copy(update={"judging": JudgeUsage(cost_usd=0.25)})
            yield each.model_copy(update={"scores": (score,)})

    assert note_run(Run(meta(), judged)).groups[0].cost_usd == 0.75


def test_what_was_not_measured_has_no_mean() -> None:
    (group,) = note_run(make_run("greets error")).groups
    assert group.value is None
    assert group.cases == Counts(errors=1)


def test_what_was_drawn_again_for_one_case_is_in_no_mean() -> None:
    def confirmed():
        for number, each in enumerate(results("greets 1 0 0")):
            yield each.model_copy(update={"confirms": number > 0})

    assert note_run(Run(meta(), confirmed)).groups[0].value == 1


def test_the_history_of_a_file_is_its_runs_in_short(tmp_path: Path) -> None:
    context = RunContext(env={}, root=tmp_path, now=lambda: 0.0)
    store = FileStore()
    assert store.history("suite", context) == []
    for run_id in ("old", "new"):
        store.save(make_run(TEXT, run_id), context)
    assert store.history("suite", context) == [note_run(make_run(TEXT, i)) for i in ("new", "old")]


def test_a_note_survives_json() -> None:
    found = note_run(make_run(TEXT))
    assert Noted.model_validate_json(found.model_dump_json(exclude_defaults=True)) == found
