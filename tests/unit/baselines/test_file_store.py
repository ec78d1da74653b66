"""The baseline in a file: what was saved is loaded, and what is broken is never overwritten."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
from support.run_language import make_run, meta, results

from ci_eval.baselines._baseline_document import _Reader
from ci_eval.baselines.file_store import FileStore
from ci_eval.forge.lineage import Lineage
from ci_eval.records.cases import Status
from ci_eval.records.errors import BaselineError, UsageError
from ci_eval.records.results import InvocationScore, Run
from ci_eval.run_files.score_table import Past
from ci_eval.runtime.context import RunContext

STORE = FileStore(path="base/line.json")
NOT_ROOT = pytest.mark.skipif(
    os.name != "posix" or os.geteuid() == 0, reason="nothing is forbidden to root"
)


@pytest.fixture
def context(tmp_path: Path) -> RunContext:
    return RunContext(env={}, root=tmp_path, now=lambda: 0.0)


def path(context: RunContext) -> Path:
    return context.root / "base" / "line.json"


def written(context: RunContext, text: str) -> Path:
    path(context).parent.mkdir(exist_ok=True)
    path(context).write_text(text)
    return path(context)


def values(past: Past) -> dict[str, float | None]:
    return {case: cell.value for case, cell in past.columns.groups["a", "e", "c"].items()}


def cells(past: Past) -> object:
    return {
        key: [(case, astuple(cell)) for case, cell in column.items()]
        for key, column in past.columns.groups.items()
    }


def ids(store: FileStore, context: RunContext) -> list[str]:
    return [past.meta.run_id for past in store.load(Lineage(), "suite", context)]


def refusal(context: RunContext) -> list[str]:
    with pytest.raises(BaselineError) as caught:
        STORE.load(Lineage(), "suite", context)
    return str(caught.value).splitlines()


# --- Saving and loading ---------------------------------------------------------------------


def test_of_runs_that_are_saved_at_the_same_time_none_is_lost(context: RunContext) -> None:
    store = FileStore(path="base/line.json", window=20)
    runs = [make_run("greets 1", f"r{number}") for number in range(12)]
    with ThreadPoolExecutor(12) as threads:
        saved = [*threads.map(lambda run: store.save(run, context), runs)]

    assert all(saved)
    assert sorted(ids(store, context)) == sorted(run.meta.run_id for run in runs)


def test_a_file_of_another_suite_is_neither_compared_with_nor_overwritten(
    context: RunContext,
) -> None:
    STORE.save(make_run("greets 1", "r1"), context)
    before = path(context).read_bytes()
    said = "base/line.json: holds runs of another suite, 'suite'"

    with pytest.raises(BaselineError, match=said) as caught:
        STORE.load(Lineage(), "other", context)
    assert "set `name` to the earlier one" in caught.value.hint
    with pytest.raises(BaselineError, match=said):
        STORE.history("other", context)
    with pytest.raises(BaselineError, match=said):
        STORE.save(Run(meta("r2", suite="other"), lambda: results("greets 1")), context)
    assert path(context).read_bytes() == before
    assert ids(STORE, context) == ["r1"]


def test_nothing_was_stored_yet(context: RunContext) -> None:
    assert STORE.load(Lineage(), "suite", context) == []
    assert not path(context).parent.exists()


def test_what_is_saved_is_loaded(context: RunContext) -> None:
    assert STORE.save(make_run("greets 1 0.5\nrefunds error\nweather skip"), context) is True
    (past,) = STORE.load(Lineage(), "suite", context)
    assert past.meta == meta()
    assert values(past) == {"greets": 0.75, "refunds": None, "weather": None}
    assert past.columns.groups["a", "e", "c"]["refunds"].errors == 1


def test_the_newest_run_comes_first(context: RunContext) -> None:
    for number, value in enumerate((0.1, 0.2, 0.3)):
        STORE.save(make_run(f"greets {value}", f"run{number}"), context)
    found = STORE.load(Lineage(), "suite", context)
    assert [past.meta.run_id for past in found] == ["run2", "run1", "run0"]
    assert [values(past)["greets"] for past in found] == [0.3, 0.2, 0.1]


def test_a_run_is_stored_once(context: RunContext) -> None:
    STORE.save(make_run("greets 1"), context)
    before = path(context).read_bytes()
    assert STORE.save(make_run("greets 0"), context) is False
    assert path(context).read_bytes() == before


def test_the_oldest_runs_leave_the_window(context: RunContext) -> None:
    for number in range(8):
        STORE.save(make_run(f"greets 0.{number}", f"run{number}"), context)
    found = STORE.load(Lineage(), "suite", context)
    assert [past.meta.run_id for past in found] == [f"run{number}" for number in (7, 6, 5, 4, 3)]
    assert [values(past)["greets"] for past in found] == [0.7, 0.6, 0.5, 0.4, 0.3]


def test_a_window_may_become_smaller_or_larger(context: RunContext) -> None:
    for number in range(4):
        STORE.save(make_run("greets 1", f"run{number}"), context)
    small = STORE.model_copy(update={"window": 2})
    assert ids(small, context) == ["run3", "run2"]
    assert ids(STORE, context) == ["run3", "run2", "run1", "run0"]
    small.save(make_run("greets 1", "run4"), context)
    assert ids(STORE, context) == ["run4", "run3"]
    STORE.save(make_run("greets 1", "run5"), context)
    assert ids(STORE, context) == ["run5", "run4", "run3"]


def test_a_window_of_one_keeps_the_last_run(context: RunContext) -> None:
    one = STORE.model_copy(update={"window": 1})
    for number in range(3):
        one.save(make_run(f"greets 0.{number}", f"run{number}"), context)
    (past,) = one.load(Lineage(), "suite", context)
    assert (past.meta.run_id, values(past)) == ("run2", {"greets": 0.2})


def test_a_case_has_a_line_and_no_evidence(context: RunContext) -> None:
    part = InvocationScore(status=Status.FAILED, value=0.0, evidence={"actual": "secret"})

    def found() -> Any:
        for each in results("greets 0\nrefunds 1"):
            score = each.scores[0].model_copy(update={"invocations": (part,), "reason": "why"})
            yield each.model_copy(update={"scores": (score,), "line": 7})

    STORE.save(Run(meta(), found), context)
    text = path(context).read_text()
    assert "secret" not in text
    assert "why" not in text
    rows = [line for line in text.splitlines() if line.startswith("[0,")]
    assert ["greets" in rows[0], "refunds" in rows[1], len(rows)] == [True, True, 2]
    assert {"line", "error", "tags"}.isdisjoint(json.loads(text)["results"][0][1])


def test_two_saves_of_the_same_are_the_same_bytes(context: RunContext, tmp_path: Path) -> None:
    STORE.save(make_run("greets 1"), context)
    other = RunContext(env={}, root=tmp_path / "other", now=lambda: 0.0)
    STORE.save(make_run("greets 1"), other)
    assert path(context).read_bytes() == path(other).read_bytes()


# --- What cannot be read --------------------------------------------------------------------

GOOD_META = json.loads(meta().model_dump_json(exclude_defaults=True))
(GOOD_RESULT,) = (json.loads(each.model_dump_json()) for each in results("greets 1"))


def document(**changes: object) -> str:
    """Return a baseline, one member a line, with some of them otherwise or left out."""
    members = {"schema_version": 1, "runs": [GOOD_META], "results": [[0, GOOD_RESULT]], **changes}
    lines = (f'"{name}": {json.dumps(value)}' for name, value in members.items() if value != ...)
    return "{" + ",\n".join(lines) + "}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "base/line.json:1: is empty"),
        ("no json", "base/line.json:1: is neither a JSON object nor a list"),
        ("{}", "base/line.json:1: is not a baseline of ci-eval"),
        ("[]", "base/line.json:1: is not a baseline of ci-eval"),
        (document(schema_version=...), "base/line.json:1: is not a baseline of ci-eval"),
        (document(runs=..., results=...), "base/line.json:1: is not a baseline of ci-eval"),
        (document(results=...), "base/line.json:1: is not a baseline of ci-eval"),
        (
            document(schema_version=2),
            "base/line.json:1: has schema version 2; this version of ci-eval reads 1",
        ),
        (document(runs={}), "base/line.json:2: 'run_id' is missing"),
        (document(runs=[5]), "base/line.json:2: expected an object, found 5"),
        (document(results=5), "base/line.json:3: expected a run index and a result"),
        *(
            (document(results=[entry]), "base/line.json:3: expected a run index and a result")
            for entry in (
                *(GOOD_RESULT, [], [0], [1, GOOD_RESULT], [-1, GOOD_RESULT]),
                *([0.0, GOOD_RESULT], ["0", GOOD_RESULT], [[], GOOD_RESULT]),
            )
        ),
        (document(results=[[0, 5]]), "base/line.json:3: expected an object, found 5"),
        (
            document(results=[[0, {**GOOD_RESULT, "status": "great"}]]),
            ("base/line.json:3: status: input should be 'passed', 'failed', 'error' or 'skipped'"),
        ),
        (
            document(runs=[{**GOOD_META, "criteria": {}}]),
            "base/line.json:3: scores[0]: the run has no criterion 'c'",
        ),
        (document()[:-30], "base/line.json:3: "),
    ],
)
def test_what_is_broken_is_refused_and_never_overwritten(
    context: RunContext, text: str, said: str
) -> None:
    written(context, text)
    found = "\n".join(refusal(context))
    assert found.startswith(said)
    with pytest.raises(BaselineError):
        STORE.save(make_run("greets 1", "new"), context)
    assert path(context).read_text() == text
    assert list(path(context).parent.iterdir()) == [path(context)]


def test_a_baseline_that_is_whole_is_read(context: RunContext) -> None:
    written(context, document())
    assert ids(STORE, context) == ["now"]


def test_lines_that_we_wrote_are_read_as_they_are_validated(
    context: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run_id in ("r1", "r2"):
        STORE.save(
            make_run("greets@x 1 0 | 1\nrefunds@y error 0 ! 0\nweather skip", run_id), context
        )
    quick = STORE.load(Lineage(), "suite", context)
    assert _Reader(path(context), "")._quick_runs()
    monkeypatch.setattr(_Reader, "_quick_runs", lambda _: [])
    whole = STORE.load(Lineage(), "suite", context)

    assert [each.meta for each in quick] == [each.meta for each in whole]
    for one, other in zip(quick, whole, strict=True):
        assert cells(one) == cells(other)
        assert one.columns.evalsets["e"].contents == other.columns.evalsets["e"].contents


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"value":1.0', '"value":2.0'),
        ('"value":1.0', '"value":null'),
        ('"value":1.0', '"value":1e999'),
        ('"name":"c"', '"name":"d"'),
        ('"status":"passed"', '"status":"great"'),
        ("[0,{", "[1,{"),
        ("[0,{", "[-1,{"),
        ("[0,{", "[0,["),
        ("\n]}\n", "\n]\n"),
        ("\n]}\n", "\n]}\n]"),
        ("\n]}\n", "\n"),
        ("greets", "gr\udcffts"),
    ],
)
def test_a_line_that_is_wrong_is_refused_with_its_number(
    context: RunContext, monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    STORE.save(make_run("greets 1\nrefunds 1"), context)
    text = path(context).read_text(encoding="utf-8")
    assert old in text
    path(context).write_bytes(text.replace(old, new).encode(errors="surrogateescape"))
    said = refusal(context)
    assert said[0].startswith("base/line.json:")
    monkeypatch.setattr(_Reader, "_quick_runs", lambda _: [])
    assert refusal(context) == said


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"schema_version":1,\n', ""),
        ('\n],\n"results":[\n', '\n],"results":[ garbage\n"results":[\n'),
        ('\n],\n"results":[\n', '\n],"results":[],"runs":[{"bad":1}],\n"results":[\n'),
    ],
)
def test_a_head_that_is_wrong_is_refused(context: RunContext, old: str, new: str) -> None:
    STORE.save(make_run("greets 1\nrefunds 1"), context)
    text = path(context).read_text(encoding="utf-8")
    assert old in text
    path(context).write_text(text.replace(old, new), encoding="utf-8")
    assert refusal(context)[0].startswith("base/line.json:")


def test_no_result_is_lost_if_there_are_two_lists_of_them(
    context: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    STORE.save(make_run("greets 1\nrefunds 1"), context)
    text = path(context).read_text(encoding="utf-8")
    head, _, rest = text.partition('\n],\n"results":[\n')
    one = rest.splitlines()[0].rstrip(",")
    written(context, f'{head}\n],"results":[{one}],\n"results":[\n{rest}')
    quick = cells(STORE.load(Lineage(), "suite", context)[0])
    monkeypatch.setattr(_Reader, "_quick_runs", lambda _: [])
    assert quick == cells(STORE.load(Lineage(), "suite", context)[0])


def test_the_order_of_the_members_matters_only_as_far_as_it_must(context: RunContext) -> None:
    text = document()
    version, rest = text.removeprefix("{").split(",\n", 1)
    written(context, "{" + rest.removesuffix("}") + ",\n" + version + "}")
    assert ids(STORE, context) == ["now"]


def test_a_run_that_breaks_while_it_is_saved_leaves_the_baseline_as_it_was(
    context: RunContext,
) -> None:
    STORE.save(make_run("greets 1"), context)
    before = path(context).read_bytes()

    def broken() -> Any:
        yield from results("greets 1")
        raise UsageError("run.json:9: is not JSON")

    with pytest.raises(UsageError):
        STORE.save(Run(meta("next"), broken), context)
    assert path(context).read_bytes() == before
    assert list(path(context).parent.iterdir()) == [path(context)]


def test_a_place_that_cannot_be_written_to_is_named(context: RunContext) -> None:
    (context.root / "base").write_text("a file where a folder should be")
    with pytest.raises(UsageError) as caught:
        STORE.save(make_run("greets 1"), context)
    assert str(caught.value).startswith("base/line.json: cannot be written: ")


@NOT_ROOT
def test_a_folder_that_is_read_only_is_named(context: RunContext) -> None:
    (context.root / "base").mkdir(mode=0o500)
    with pytest.raises(UsageError, match=r"^base/line.json: cannot be written: Permission denied$"):
        STORE.save(make_run("greets 1"), context)


def test_a_link_that_leads_out_of_the_repository_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "suite"
    root.mkdir()
    (root / "base").symlink_to(tmp_path)
    context = RunContext(env={}, root=root, now=lambda: 0.0)
    for act in (
        lambda: STORE.load(Lineage(), "suite", context),
        lambda: STORE.save(make_run("greets 1"), context),
    ):
        with pytest.raises(BaselineError, match=r"is a symlink out of the repository$"):
            act()
    assert list(tmp_path.iterdir()) == [root]
