"""The baseline in artifacts: which is taken, what is passed over, and what an archive may hold."""

import io
import json
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from servers.github import FORK_ID, SIGNATURE, TOKEN, FakeGitHub, github, refusal, sha, zipped
from servers.loopback import Reply
from support.run_language import make_run, meta, results

from ci_eval.baselines import artifact_store as module
from ci_eval.baselines._baseline_document import with_run
from ci_eval.baselines.artifact_store import ArtifactStore
from ci_eval.forge.lineage import Lineage
from ci_eval.records.errors import BaselineError, UsageError
from ci_eval.records.results import Run
from ci_eval.run_files.run_file import writing_run
from ci_eval.runtime.context import RunContext

pytestmark = pytest.mark.processes

STORE = ArtifactStore()
LINEAGE = Lineage(ancestors=(sha(9), sha(8), sha(7)), base="main", own=sha(10))
GREETS = "greets 1 0.5"


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with github() as found:
        yield found


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def context(fake: FakeGitHub, tmp_path: Path, said: list[str]) -> RunContext:
    return RunContext(fake.env, tmp_path, lambda: 0.0, say=said.append)


def run(run_id: str, commit: str | None = None, text: str = GREETS, **more: Any) -> Run:
    return Run(meta(run_id, commit=commit, **more), lambda: results(text))


def document(run_id: str, commit: str | None = None, **more: Any) -> bytes:
    made = run(run_id, commit, **more)
    return "".join(with_run(made, (), Path(), "", window=1)).encode()


def run_json(folder: Path, made: Run) -> bytes:
    with writing_run(folder / "made.json", made.meta) as write:
        for each in made.results():
            write(each)
    return (folder / "made.json").read_bytes()


def stored(fake: FakeGitHub, number: int, **more: Any) -> int:
    """Store the run `run9` on commit 9, and so on."""
    content = document(f"run{number}", sha(number))
    return fake.add_artifact({"baseline.json": content}, sha(number), **more)


def ids(context: RunContext, store: ArtifactStore = STORE, lineage: Lineage = LINEAGE) -> list[str]:
    return [past.meta.run_id for past in store.load(lineage, "suite", context)]


def refusal_of(context: RunContext, store: ArtifactStore = STORE) -> BaselineError:
    with pytest.raises(BaselineError) as caught:
        store.load(LINEAGE, "suite", context)
    assert TOKEN not in f"{caught.value} {caught.value.hint}"
    assert SIGNATURE not in f"{caught.value} {caught.value.hint}"
    return caught.value


# --- Which is taken ---------------------------------------------------------------------------


def test_where_there_is_none_nothing_is_loaded(context: RunContext, said: list[str]) -> None:
    assert ids(context) == []
    assert said == []


def test_the_nearest_ancestor_comes_first(fake: FakeGitHub, context: RunContext) -> None:
    for number in (7, 9, 8):
        stored(fake, number)
    found = STORE.load(LINEAGE, "suite", context)
    assert [past.meta.run_id for past in found] == ["run9", "run8", "run7"]
    assert found[0].columns.groups["a", "e", "c"]["greets"].units == ((1.0, 0.5),)


def test_no_more_are_downloaded_than_the_window_takes(
    fake: FakeGitHub, context: RunContext
) -> None:
    for number in (7, 8, 9):
        stored(fake, number)
    assert ids(context, ArtifactStore(window=2)) == ["run9", "run8"]
    assert len(fake.storage.requests) == 2


def test_a_run_of_the_same_commit_is_no_baseline_of_it(
    fake: FakeGitHub, context: RunContext
) -> None:
    stored(fake, 10)
    assert ids(context) == []


def test_without_an_ancestor_the_newest_of_the_base_branch_are_taken(
    fake: FakeGitHub, context: RunContext
) -> None:
    for number, branch in ((1, "main"), (2, "feature"), (3, "main")):
        stored(fake, number, branch=branch)
    assert ids(context) == ["run3", "run1"]


def test_an_ancestor_keeps_others_of_the_base_branch_out(
    fake: FakeGitHub, context: RunContext
) -> None:
    stored(fake, 7)
    stored(fake, 3)
    assert ids(context) == ["run7"]


def test_a_fork_is_no_baseline_whatever_its_branch_and_its_commit(
    fake: FakeGitHub, context: RunContext
) -> None:
    stored(fake, 9, repository=FORK_ID)
    stored(fake, 3, repository=FORK_ID)
    fake.is_faithful = False
    for strange in (None, {}, {"head_sha": sha(9)}, {"head_sha": sha(9), "repository_id": None}):
        stored(fake, 9, workflow_run=strange)
    assert ids(context) == []
    assert fake.storage.requests == []


def test_another_name_is_another_baseline(fake: FakeGitHub, context: RunContext) -> None:
    stored(fake, 9, name="other")
    assert ids(context) == []
    assert ids(context, ArtifactStore(name="other")) == ["run9"]


def test_an_ancestor_on_a_later_page_is_found(fake: FakeGitHub, context: RunContext) -> None:
    stored(fake, 8)
    for _ in range(120):
        fake.add_artifact(b"", sha(1), branch="feature")
    assert ids(context) == ["run8"]
    assert len(fake.asked("actions/artifacts")) == 3


def test_pages_without_end_are_not_read(
    fake: FakeGitHub, context: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_LISTED", 100)
    stored(fake, 8)
    for _ in range(120):
        fake.add_artifact(b"", sha(1), branch="feature")
    assert ids(context) == []
    assert len(fake.requests) == 1


def test_outside_of_a_repository_the_newest_are_taken(
    fake: FakeGitHub, context: RunContext
) -> None:
    for number in (3, 4):
        stored(fake, number)
    assert ids(context, lineage=Lineage(base="main")) == ["run4", "run3"]


# --- What is passed over ----------------------------------------------------------------------


def test_what_has_expired_is_passed_over_and_said(
    fake: FakeGitHub, context: RunContext, said: list[str]
) -> None:
    stored(fake, 9, expired=True)
    gone = stored(fake, 8)
    fake.storage.files.pop(f"/{gone}.zip")
    stored(fake, 7)
    assert ids(context) == ["run7"]
    assert said == ["2 artifacts 'ci-eval-baseline' skipped: 2 expired"]
    assert fake.asked("/zip") == [f"actions/artifacts/{gone}/zip", "actions/artifacts/102/zip"]


@pytest.mark.parametrize("status", [404, 410])
def test_what_expires_meanwhile_is_passed_over(
    fake: FakeGitHub, context: RunContext, status: int
) -> None:
    stored(fake, 9)
    stored(fake, 8)
    listing = fake.reply

    def reply(request: Any) -> Reply:
        if request.path.endswith("/100/zip"):
            return refusal(status, "Artifact has expired")
        return listing(request)

    fake.reply = reply  # type: ignore[method-assign]  # stands in for the other
    assert ids(context) == ["run8"]


def test_where_all_ancestors_have_expired_the_base_branch_is_looked_at(
    fake: FakeGitHub, context: RunContext
) -> None:
    stored(fake, 9, expired=True)
    stored(fake, 3)
    assert ids(context) == ["run3"]


def test_another_workflow_is_passed_over(
    fake: FakeGitHub, context: RunContext, said: list[str]
) -> None:
    stored(fake, 9, workflow=".github/workflows/re-evaluate.yml")
    stored(fake, 8, workflow=".github/workflows/evaluate.yml@refs/heads/main")
    assert ids(context, ArtifactStore(workflow="evaluate.yml")) == ["run8"]
    assert said == ["1 artifact 'ci-eval-baseline' skipped: 1 of another workflow"]
    whole = ArtifactStore(workflow=".github/workflows/evaluate.yml")
    assert ids(context, whole) == ["run8"]


def test_what_says_that_it_is_of_something_else_is_passed_over(
    fake: FakeGitHub, context: RunContext, said: list[str]
) -> None:
    other = document("other", sha(9), suite="other")
    fake.add_artifact({"baseline.json": other}, sha(9))
    fake.add_artifact({"baseline.json": document("moved", sha(8))}, sha(9))
    fake.add_artifact({"baseline.json": document("nowhere", None)}, sha(8))
    assert ids(context) == ["nowhere"]
    (line,) = said
    assert line == (
        "2 artifacts 'ci-eval-baseline' skipped: "
        "1 of a commit other than its workflow's, 1 of another suite"
    )


def test_the_run_of_a_report_will_do(fake: FakeGitHub, context: RunContext) -> None:
    content = run_json(context.root, run("whole", sha(9)))
    fake.add_artifact({"run.json": content, "junit.xml": b"<x/>"}, sha(9))
    assert ids(context) == ["whole"]


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("greets 1\nrefunds error", {}),
        ("greets skip", {}),
        (GREETS, {"filtered": True}),
        (GREETS, {"shard": "1/2"}),
        (GREETS, {"missing_shards": ("1/2",)}),
    ],
)
def test_an_incomplete_run_is_passed_over(
    fake: FakeGitHub, context: RunContext, said: list[str], text: str, more: dict[str, Any]
) -> None:
    content = run_json(context.root, run("part", sha(9), text, **more))
    fake.add_artifact({"run.json": content}, sha(9))
    assert ids(context) == []
    assert said == ["1 artifact 'ci-eval-baseline' skipped: 1 incomplete"]


# --- What cannot be read ----------------------------------------------------------------------


def encrypted() -> bytes:
    data = bytearray(zipped({"baseline.json": b"{}"}))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    return bytes(data)


def bzipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("baseline.json", "{}")
    return file.getvalue()


def twice() -> bytes:
    archive = zipped({"baseline.json": b"{}", "BASELINE.json": b"{}"})
    return archive.replace(b"BASELINE", b"baseline")


NO_ARCHIVE = "artifact 100: is not a readable ZIP archive"


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        (b"", NO_ARCHIVE),
        (b"garbage", NO_ARCHIVE),
        (zipped({"baseline.json": document("a")})[:-40], NO_ARCHIVE),
        (encrypted(), NO_ARCHIVE),
        (bzipped(), NO_ARCHIVE),
        (zipped({}), "artifact 100: expected one baseline.json or run.json, found 0"),
        (
            zipped({"a/baseline.json": b"{}", "../baseline.json": b"{}", "/run.json": b"{}"}),
            "artifact 100: expected one baseline.json or run.json, found 0",
        ),
        (
            zipped({"baseline.json": b"{}", "run.json": b"{}"}),
            "artifact 100: expected one baseline.json or run.json, found 2",
        ),
        (twice(), "artifact 100: expected one baseline.json or run.json, found 2"),
        (zipped({"baseline.json": b""}), "artifact 100/baseline.json:1: is empty"),
        (
            zipped({"baseline.json": b"{}"}),
            "artifact 100/baseline.json:1: is not a baseline of ci-eval",
        ),
        (
            zipped({"baseline.json": b'{"schema_version":1,\n"runs":[],\n"results":[]}'}),
            "artifact 100/baseline.json: holds no run",
        ),
        (zipped({"run.json": b"{}"}), "artifact 100/run.json:1: is not a run of ci-eval"),
        (
            zipped({"baseline.json": document("a").replace(b'"value":0.5', b'"value":"x"')}),
            "artifact 100/baseline.json:7: scores[0].value: ",
        ),
    ],
)
def test_what_is_broken_is_an_error_that_names_it(
    fake: FakeGitHub, context: RunContext, archive: bytes, message: str
) -> None:
    fake.add_artifact(archive, sha(9))
    stored(fake, 8)
    error = refusal_of(context)
    assert str(error).startswith(message)
    assert error.hint == "delete artifact 100, or store the baseline under another `name`"


def test_what_unfolds_to_too_much_is_an_error(
    fake: FakeGitHub, context: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_UNPACKED", 3 << 20)
    bomb = zipped({"baseline.json": b" " * (4 << 20)})
    assert len(bomb) < 10_000
    fake.add_artifact(bomb, sha(9))
    said = "artifact 100/baseline.json: unpacks to more than 3 MiB"
    assert str(refusal_of(context)) == said


def test_a_length_that_lies_makes_no_difference(fake: FakeGitHub, context: RunContext) -> None:
    archive = bytearray(zipped({"baseline.json": b" " * 100_000}))
    at = archive.index(b"PK\x01\x02")
    struct.pack_into("<I", archive, at + 24, 10)
    fake.add_artifact(bytes(archive), sha(9))
    assert str(refusal_of(context)).startswith("artifact 100")


GOOD = zipped({"baseline.json": document("good")})


@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=8))
def test_no_archive_makes_anything_but_a_clear_error(changes: list[tuple[int, int]]) -> None:
    data = bytearray(GOOD)
    for at, byte in changes:
        data[at] = byte
    try:
        assert module._read(bytes(data), "artifact 1").meta.run_id
    except BaselineError as exc:
        assert str(exc)  # noqa: PT017  # it may also be read


@pytest.mark.parametrize("permissions", [{"checks: write", "contents: read"}, set()])
def test_a_missing_permission_is_named(
    fake: FakeGitHub, context: RunContext, permissions: set[str]
) -> None:
    fake.permissions = frozenset(permissions)
    error = refusal_of(context)
    assert str(error).startswith("the baseline was not loaded: GitHub refuses http")
    assert str(error).endswith(": Resource not accessible by integration")
    assert error.hint == "the token needs `permissions: {actions: read}`"


def test_to_read_is_enough_to_load(fake: FakeGitHub, context: RunContext) -> None:
    fake.permissions = frozenset({"actions: read"})
    stored(fake, 9)
    assert ids(context, ArtifactStore(workflow="evaluate.yml")) == ["run9"]


# --- Saving -----------------------------------------------------------------------------------


def test_what_is_saved_is_what_is_loaded_once_it_was_uploaded(
    fake: FakeGitHub, context: RunContext, said: list[str]
) -> None:
    assert STORE.save(run("now", sha(9)), context) is True
    (path,) = (context.root / ".ci-eval/artifact").iterdir()
    assert path.name == "baseline.json"
    (line,) = said
    assert line == (
        "written to .ci-eval/artifact; upload it with actions/upload-artifact: "
        "`name: ci-eval-baseline`, `path: .ci-eval/artifact`, `include-hidden-files: true`"
    )
    fake.add_artifact({path.name: path.read_bytes()}, sha(9))
    (past,) = STORE.load(LINEAGE, "suite", context)
    assert past.meta == meta("now", commit=sha(9))
    assert past.columns.groups["a", "e", "c"]["greets"].units == ((1.0, 0.5),)


def test_saving_asks_nobody_and_replaces_what_was_not_uploaded(
    fake: FakeGitHub, context: RunContext
) -> None:
    context = replace(context, env={})
    store = ArtifactStore(path="out/base")
    for run_id in ("one", "two"):
        store.save(make_run(GREETS, run_id), context)
    found = json.loads((context.root / "out/base/baseline.json").read_text())
    assert [each["run_id"] for each in found["runs"]] == ["two"]
    assert fake.requests == []


def test_a_folder_that_cannot_be_is_named(context: RunContext) -> None:
    (context.root / "out").write_text("")
    with pytest.raises(UsageError, match=r"^out/base: cannot be written: "):
        ArtifactStore(path="out/base").save(make_run(GREETS), context)
