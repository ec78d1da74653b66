"""The baseline in a bucket: an object for each run, chosen by its name, never overwritten."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import ValidationError
from servers.gcs import FakeGcs, serving
from support.run_language import FACTS, meta, results

from ci_eval.baselines.gcs_store import GcsStore
from ci_eval.forge.lineage import Lineage
from ci_eval.records.errors import BaselineError, UsageError
from ci_eval.records.results import Run
from ci_eval.runtime.context import RunContext

STORE = GcsStore(uri="gs://b/base")
RUNS = "base/suites/suite/runs"


@pytest.fixture
def fake():
    with serving() as found:
        found.buckets["b"] = {}
        yield found


@pytest.fixture
def context(fake: FakeGcs) -> RunContext:
    return RunContext(env={"STORAGE_EMULATOR_HOST": fake.url}, root=Path(), now=lambda: 0.0)


def run(run_id: str, day: int = 1, text: str = "greets 1 0.5", **more: object) -> Run:
    created = f"2026-01-{day:02}T00:00:00+00:00"
    return Run(meta(run_id, created=created, **more), lambda: results(text, facts=FACTS))


def ids(lineage: Lineage, context: RunContext, store: GcsStore = STORE) -> list[str]:
    return [past.meta.run_id for past in store.load(lineage, "suite", context)]


def test_nothing_was_stored_yet(context):
    assert STORE.load(Lineage(), "suite", context) == []


def test_what_is_saved_is_loaded(fake, context):
    given = run("r1", commit="c1", branch="main")

    assert STORE.save(given, context) is True
    assert fake.names("b") == [f"{RUNS}/c1/r1.json"]
    (past,) = STORE.load(Lineage(), "suite", context)
    assert past.meta == given.meta
    assert [*past.columns.groups["a", "e", "c"]["greets"].observations] == [1, 0.5]


def test_a_run_is_stored_once(fake, context):
    STORE.save(run("r1"), context)
    before = fake.text("b", f"{RUNS}/none/r1.json")

    assert STORE.save(run("r1", text="greets 0"), context) is False
    assert fake.text("b", f"{RUNS}/none/r1.json") == before


def test_who_comes_second_at_the_same_moment_stores_nothing(fake, context):
    fake.before_insert = [("b", f"{RUNS}/none/r1.json", b"theirs")]

    assert STORE.save(run("r1"), context) is False
    assert fake.text("b", f"{RUNS}/none/r1.json") == "theirs"


def test_of_many_at_the_same_time_none_is_lost(fake, context):
    with ThreadPoolExecutor(12) as pool:
        saved = list(
            pool.map(lambda n: STORE.save(run(f"r{n:02}", n + 1, commit="c"), context), range(12))
        )

    assert saved == [True] * 12
    found = ids(Lineage(), context, GcsStore(uri="gs://b/base", window=100))
    assert found == [f"r{n:02}" for n in reversed(range(12))]


def test_the_nearest_commits_come_first_and_only_they_are_read(fake, context):
    for day, (run_id, commit) in enumerate(
        [("old", "c3"), ("near", "c1"), ("nearer", "c0"), ("other", "x"), ("own", "me")], 1
    ):
        STORE.save(run(run_id, day, commit=commit), context)
    fake.put("b", f"{RUNS}/x/other.json", "not read, so not broken")
    lineage = Lineage(ancestors=("c0", "c1", "c2", "c3"), base="main", own="me")

    assert ids(lineage, context) == ["nearer", "near", "old"]
    assert ids(lineage, context, GcsStore(uri="gs://b/base", window=2)) == ["nearer", "near"]


def test_without_a_known_commit_the_newest_of_the_base_branch_count(context):
    STORE.save(run("r1", 1, commit="x1", branch="main"), context)
    STORE.save(run("r2", 2, commit="x2", branch="größe"), context)
    STORE.save(run("r3", 3, commit="x3", branch="main"), context)
    STORE.save(run("r4", 4, commit="x4"), context)

    assert ids(Lineage(ancestors=("c0",), base="main"), context) == ["r3", "r1"]
    assert ids(Lineage(ancestors=("c0",), base="größe"), context) == ["r2"]
    assert ids(Lineage(ancestors=("c0",), base="gone"), context) == []


def test_suites_do_not_meet_whatever_they_are_called(fake, context):
    names = ["suite", "suite/runs", "..", "su.ite", "größe", "x" * 100, "é" * 99, "é" * 98 + "e"]
    for name in names:
        STORE.save(run("r1", suite=name), context)

    assert len(fake.names("b")) == len(names)
    for name in names:
        (past,) = STORE.load(Lineage(), name, context)
        assert past.meta.suite == name


def test_a_prefix_is_not_needed(fake, context):
    GcsStore(uri="gs://b").save(run("r1"), context)

    assert fake.names("b") == ["suites/suite/runs/none/r1.json"]
    assert ids(Lineage(), context, GcsStore(uri="gs://b/")) == ["r1"]


def test_the_newest_runs_are_told_of_in_short(context):
    for day in range(1, 24):
        STORE.save(run(f"r{day}", day, text="greets 1\nrefunds 0", branch="main"), context)
    found = STORE.history("suite", context)

    assert [each.run_id for each in found] == [f"r{day}" for day in range(23, 3, -1)]
    assert (found[0].branch, found[0].cases.passed, found[0].cases.failed) == ("main", 1, 1)
    assert STORE.history("other", context) == []


# --- What is broken -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("", "is empty"),
        ("{}", "is not a baseline of ci-eval"),
        ('{"schema_version": 99, "runs": [], "results": []}', "has schema version 99"),
        (
            '{"schema_version": 1, "runs": [], "results": []}',
            "does not hold the run that its name implies",
        ),
    ],
)
def test_what_is_broken_is_an_error_and_is_left_as_it_is(fake, context, broken, message):
    name = f"{RUNS}/none/r1.json"
    fake.put("b", name, broken)

    for use in (
        lambda: STORE.load(Lineage(), "suite", context),
        lambda: STORE.save(run("r1"), context),
    ):
        with pytest.raises(BaselineError, match=f"gs://b/{name}.*{message}"):
            use()
    assert fake.text("b", name) == broken


def test_an_object_that_holds_another_run_than_its_name_says_is_an_error(fake, context):
    STORE.save(run("r1"), context)
    STORE.save(run("r1", suite="elsewhere"), context)
    elsewhere = "base/suites/elsewhere/runs/none/r1.json"
    fake.put("b", elsewhere, fake.text("b", f"{RUNS}/none/r1.json"))

    with pytest.raises(BaselineError, match="does not hold the run that its name implies"):
        STORE.load(Lineage(), "elsewhere", context)


def test_what_others_put_there_is_left_alone(fake, context):
    STORE.save(run("r1"), context)
    others = [
        f"{RUNS}/README.md",
        f"{RUNS}/c/deep/r.json",
        f"{RUNS}/c/notes.txt",
        f"{RUNS}x/c/r.json",
    ]
    for name in others:
        fake.put("b", name, "not ours")

    assert ids(Lineage(), context) == ["r1"]
    assert STORE.prune("suite", 0, context) == 1
    assert fake.names("b") == sorted(others)


def test_a_run_whose_object_tells_nothing_is_as_old_as_the_object(fake, context):
    STORE.save(run("r1", 31, commit="c1"), context)
    STORE.save(run("r2", 30, commit="c1"), context)
    for name in fake.names("b"):
        if "r1" in name:
            fake.put("b", name, fake.text("b", name))

    assert ids(Lineage(), context) == ["r2", "r1"]


def test_a_store_that_cannot_be_reached_is_an_incomplete_baseline_and_a_refused_save(context):
    gone = GcsStore(uri="gs://nob/base")
    with pytest.raises(BaselineError, match=r"^gs://nob/base/suites/suite/runs/: no such bucket"):
        gone.load(Lineage(), "suite", context)
    with pytest.raises(UsageError, match="no such bucket"):
        gone.save(run("r1"), context)


@pytest.mark.parametrize("uri", ["b/base", "gs://", "s3://b"])
def test_the_uri_is_checked(uri):
    with pytest.raises(ValidationError, match="is not an address of Cloud Storage"):
        GcsStore(uri=uri)


# --- Pruning --------------------------------------------------------------------------------


def test_all_but_the_newest_are_removed_whichever_commit_they_are_of(fake, context):
    for day, commit in enumerate(["c2", "c1", "c2", "c0"], 1):
        STORE.save(run(f"r{day}", day, commit=commit), context)
    STORE.save(run("r1", suite="other"), context)

    assert STORE.prune("suite", 3, context) == 1
    assert STORE.prune("suite", 3, context) == 0
    assert ids(Lineage(), context) == ["r4", "r3", "r2"]
    assert "base/suites/other/runs/none/r1.json" in fake.names("b")


def test_what_a_change_is_compared_with_stays_before_newer_runs(fake, context):
    store = GcsStore(uri="gs://b/base", base="main")
    for day, branch in enumerate(["main", "change", "change"], 1):
        store.save(run(f"r{day}", day, commit=f"c{day}", branch=branch), context)

    assert store.prune("suite", 2, context) == 1
    assert fake.names("b") == [f"{RUNS}/c1/r1.json", f"{RUNS}/c3/r3.json"]
