"""Whole commands on evalsets, recordings, results and baselines in Cloud Storage."""

import gc
import json
import tempfile
from pathlib import Path

import pytest
from servers.gcs import FakeGcs, serving
from support.adk_command import Shop
from support.project import CASES, GREETS, REFUNDS, TRACKS, Project, changed, problems

from ci_eval.records.errors import ExitCode

SETS = "shop/evals/eval_sets"
SMOKE = f"{SETS}/smoke.evalset.json"
CONFIG = """\
version: 1
name: shop
agents:
  bot: {recorded: traces.jsonl}
evalsets:
  smoke: gs://b/shop/smoke
criteria:
  tool_trajectory_avg_score: 1.0
"""


@pytest.fixture
def fake(monkeypatch, tmp_path):
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with serving() as found:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", found.url)
        keep(found, *CASES)
        yield found
    if any(folder.iterdir()):
        gc.collect()  # what failed may still hold a copy
    assert list(folder.iterdir()) == [], "copies are left over"


@pytest.fixture
def project(tmp_path, capsys, monkeypatch, fake):
    monkeypatch.chdir(tmp_path)
    found = Project(tmp_path, capsys)
    found.config(CONFIG)
    return found


def keep(fake: FakeGcs, *cases: object, eval_set_id: str = "smoke") -> None:
    data = {"eval_set_id": eval_set_id, "eval_cases": list(cases)}
    fake.put("b", f"{SETS}/{eval_set_id}.evalset.json", json.dumps(data, indent=2))


def ids(fake: FakeGcs, name: str = SMOKE) -> list[str]:
    return [case["eval_id"] for case in json.loads(fake.text("b", name))["eval_cases"]]


# --- Runs -----------------------------------------------------------------------------------


def test_an_evalset_in_a_bucket_is_run_and_fetched_once(project, fake):
    ended = project.ci_eval("run")

    assert ended.code == ExitCode.PASSED, ended.err
    assert len(project.run_json()["results"]) == 3
    assert project.run_json()["meta"]["evalsets"]["smoke"]["path"] == f"gs://b/{SMOKE}"
    assert [path for _, path in fake.asked if path.startswith("/download")] == [
        f"/download/storage/v1/b/b/o/{SMOKE.replace('/', '%2F')}"
    ]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (f"gs://b/{SMOKE}", ["smoke"]),
        ("gs://b/shop/smoke:greets,refunds", ["smoke"]),
        (f"gs://b/{SMOKE}:greets,refunds", ["smoke"]),
        ("gs://b/shop/*", [f"smoke:{SETS.replace('/', '.')}.{name}" for name in ("old", "smoke")]),
        ("gs://b/**/smoke.*.json", [f"smoke:{SETS.replace('/', '.')}.smoke"]),
    ],
)
def test_evalsets_are_named_by_object_id_or_pattern(project, fake, given, names):
    keep(fake, GREETS, eval_set_id="old")
    project.config(CONFIG.replace("gs://b/shop/smoke", json.dumps(given)))
    found = project.ci_eval("plan", "--json").json["pairs"]

    assert [pair["evalset"] for pair in found] == names
    assert found[-1]["cases"] == (2 if ":greets" in given else 3)


def test_annotations_name_no_file_of_the_repository_that_is_not_there(project, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    project.traces(changed(GREETS, "Go away."), REFUNDS, TRACKS)
    project.config(CONFIG + "  response_match_score: 0.9\n")
    ended = project.ci_eval("run")

    assert ended.code == ExitCode.FAILED
    assert "file=gs" not in ended.out


def test_resume_takes_over_what_did_not_change(project, fake):
    """As for files: the content of a case decides, not the object that it is in."""
    project.ci_eval("run")
    keep(fake, changed(GREETS, "Another answer."), REFUNDS, TRACKS)
    ended = project.ci_eval("run", "--resume")

    assert "2" in next(line for line in problems(ended) if "reused" in line)


def test_a_recording_in_a_bucket_is_replayed(project, fake):
    fake.put("b", "bot/traces.jsonl", (project.folder / "traces.jsonl").read_text())
    (project.folder / "traces.jsonl").unlink()
    project.config(CONFIG.replace("traces.jsonl", '"gs://b/bot/traces.jsonl"'))

    assert project.ci_eval("run").code == ExitCode.PASSED


def test_the_configuration_says_how_storage_is_reached(project, fake, monkeypatch):
    monkeypatch.delenv("STORAGE_EMULATOR_HOST")
    project.config(CONFIG.replace("traces.jsonl", '"gs://b/bot/traces.jsonl"'))
    project.add(f"gcs: {{endpoint: '{fake.url}', anonymous: true}}\n")
    project.add("baseline: {store: gcs, uri: gs://b/base}\n")
    fake.put("b", "bot/traces.jsonl", (project.folder / "traces.jsonl").read_text())

    assert project.ci_eval("run", "--baseline-save").code == ExitCode.PASSED
    assert project.ci_eval("evalset", "list", "gs://b/shop").code == ExitCode.PASSED
    assert project.ci_eval("validate", "gs://b/shop/smoke").code == ExitCode.PASSED
    assert [name for name in fake.names("b") if name.startswith("base/suites/shop/runs/none/")]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("gs://b/shop/none", "gs://b/shop/evals/eval_sets/none.evalset.json: no such object"),
        ("gs://b/none/*", "ci-eval.yaml:6: evalsets.smoke: 'gs://b/none/*' matches no object"),
        ("gs://nob/shop/*", "gs://nob/shop/evals/eval_sets/: no such bucket"),
        ("gs://b_/x", "gs://b_/x: is not an address of Cloud Storage, such as 'gs://bucket/name'"),
        ("gs://b/broken.json", "gs://b/broken.json:2: is not JSON: expecting value"),
        ("gs://b/shop/smoke:nope", "has no case 'nope'"),
    ],
)
def test_what_is_wrong_with_an_evalset_in_a_bucket_is_said(project, fake, given, message):
    fake.put("b", "broken.json", '{"eval_cases":\n]}')
    project.config(CONFIG.replace("gs://b/shop/smoke", json.dumps(given)))
    ended = project.ci_eval("run")

    assert ended.code == ExitCode.USAGE_ERROR
    assert message in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("gcs: {endpoint: ftp://x}", "ci-eval.yaml:9: gcs: expected an 'endpoint' such as"),
        ("gcs: {endpoint: 'https://x.example'}", "ci-eval.yaml:9: gcs: credentials are only sent"),
        ("gcs: {projekt: p}", "ci-eval.yaml:9: gcs.projekt: unknown key. Did you mean 'project'?"),
        ("baseline: {store: gcs}", "ci-eval.yaml:9: baseline: 'uri' is missing"),
        ("baseline: {store: gcs, uri: b/x}", "ci-eval.yaml:9: baseline.uri: is not an address of"),
    ],
)
def test_what_is_wrong_with_the_options_is_said(project, line, message):
    project.add(f"{line}\n")
    ended = project.ci_eval("run")

    assert ended.code == ExitCode.USAGE_ERROR
    assert message in ended.err


# --- Baselines ------------------------------------------------------------------------------


def test_a_run_is_stored_shown_and_compared_with(project, fake):
    project.add("baseline: {store: gcs, uri: gs://b/base}\n")

    assert project.ci_eval("run", "--baseline-save").code == ExitCode.PASSED
    run_id = project.run_json()["meta"]["run_id"]
    shown = project.ci_eval("baseline", "show", "--json").json
    assert [each["run_id"] for each in shown] == [run_id]
    (stored,) = (name for name in fake.names("b") if name.startswith("base/"))
    assert stored.endswith(f"/{run_id}.json")
    assert f"{run_id} is already stored" in project.ci_eval("baseline", "save").err


# --- The results of ADK ---------------------------------------------------------------------


def test_results_are_left_where_adk_looks_for_them_in_a_bucket(project, fake):
    ended = project.ci_eval("run", "--adk-results", "gs://b/only/the/bucket/counts")
    (name,) = (each for each in fake.names("b") if "eval_history" in each)
    left = json.loads(fake.text("b", name))

    assert ended.code == ExitCode.PASSED
    assert f"results: gs://b/{name}" in ended.err
    assert name == f"bot/evals/eval_history/{left['eval_set_result_id']}.evalset_result.json"
    assert [each["eval_id"] for each in left["eval_case_results"]] == [
        "greets",
        "refunds",
        "tracks",
    ]


def test_where_results_cannot_be_kept_nothing_is_run(project):
    ended = project.ci_eval("run", "--adk-results", "gs://nob")

    assert ended.code == ExitCode.USAGE_ERROR
    assert "gs://nob/bot/evals/eval_history/: no such bucket" in ended.err
    assert not (project.folder / "ci-eval-report/run.json").exists()


def test_adk_reads_evalsets_by_id_and_leaves_results_in_the_bucket(
    tmp_path, capsys, monkeypatch, fake
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "ci_eval.cli.adk.adk_eval_options.agent_of", lambda *_: {"recorded": "traces.jsonl"}
    )
    shop = Shop(tmp_path, capsys)
    local = next(shop.agent.glob("*.evalset.json"))
    fake.put("b", f"{SETS}/kept.evalset.json", local.read_text())
    ended = shop.adk("agents/shop", "kept", "--eval_storage_uri", "gs://b")
    (name,) = (each for each in fake.names("b") if "eval_history" in each)

    assert "Eval Run Summary" in ended.out
    assert name.startswith("shop/evals/eval_history/shop_")
    assert shop.left() == []
    for uri, message in (
        ("s3://b", "Unsupported evals storage URI: s3://b. Supported URIs: gs://<bucket name>"),
        ("gs://B", "is not an address of Cloud Storage"),
        ("gs://nob", "no such object"),
    ):
        refused = shop.adk("agents/shop", "kept", "--eval_storage_uri", uri)
        assert (refused.code, message in refused.err) == (ExitCode.USAGE_ERROR, True)


# --- `evalset` ------------------------------------------------------------------------------


def test_an_evalset_in_a_bucket_is_made_filled_listed_and_emptied(project, fake):
    made = project.ci_eval("evalset", "create", "gs://b/shop", "new")
    again = project.ci_eval("evalset", "create", "gs://b/shop", "new")
    project.ci_eval("evalset", "add", "gs://b/shop", "new", "--prompt", "Hi", "--case", "a")
    project.ci_eval("evalset", "add", "gs://b/shop/new", "--prompt", "Ho", "--case", "b")
    deleted = project.ci_eval("evalset", "delete", f"gs://b/{SETS}/new.evalset.json", "--case", "a")
    listed = project.ci_eval("evalset", "list", "gs://b/shop", "--json")

    assert made.out == "Eval set 'new' created for app 'shop'.\n"
    assert "Eval set `new` already exists for app `shop`." in again.err
    assert deleted.code == ExitCode.PASSED, deleted.err
    assert ids(fake, f"{SETS}/new.evalset.json") == ["b"]
    assert [(row["id"], row["cases"]) for row in listed.json] == [("new", 1), ("smoke", 3)]


def test_what_somebody_else_changed_meanwhile_is_not_lost(project, fake):
    before = fake.text("b", SMOKE)
    theirs = before.replace("greets", "theirs")
    fake.before_insert = [("b", SMOKE, theirs.encode())]
    ended = project.ci_eval("evalset", "delete", "gs://b/shop", "smoke", "--case", "greets")

    assert ended.code == ExitCode.USAGE_ERROR
    assert f"gs://b/{SMOKE}: was changed by another writer in the meantime" in ended.err
    assert fake.text("b", SMOKE) == theirs
    assert project.ci_eval(
        "evalset", "delete", "gs://b/shop", "smoke", "--case", "theirs"
    ).code == (ExitCode.PASSED)


def test_only_the_case_is_changed_in_the_text_of_an_object(project, fake):
    project.traces(changed(GREETS, "Good day!"))
    ended = project.ci_eval(
        *("evalset", "update", "gs://b/shop", "smoke", "--case", "greets"),
        *("--from-traces", "traces.jsonl"),
    )

    assert ended.code == ExitCode.PASSED, ended.err
    assert ids(fake) == ["greets", "refunds", "tracks"]
    assert "Good day!" in fake.text("b", SMOKE)


def test_an_evalset_is_converted_out_of_a_bucket_and_into_it(project, fake):
    out = project.ci_eval(
        "evalset", "convert", "gs://b/shop/smoke", "--to", "cases", "--out", "x.yaml"
    )
    back = project.ci_eval(
        *("evalset", "convert", "x.yaml", "--to", "adk"), *("--out", "gs://b/x.evalset.json")
    )
    beside = project.ci_eval("evalset", "convert", "gs://b/x.evalset.json", "--to", "cases")
    again = project.ci_eval("evalset", "convert", "gs://b/x.evalset.json", "--to", "cases")

    assert out.out == "x.yaml: 3 cases written.\n"
    assert back.out == "gs://b/x.evalset.json: 3 cases written.\n"
    assert ids(fake, "x.evalset.json") == ["greets", "refunds", "tracks"]
    assert beside.out == "gs://b/x.yaml: 3 cases written.\n"
    assert again.err.startswith("gs://b/x.yaml already exists")


RESULT = {
    "eval_set_result_id": "shop_smoke_1",
    "eval_set_id": "smoke",
    "creation_timestamp": 1.0,
    "eval_case_results": [
        {
            "eval_id": "greets",
            "final_eval_status": 2,
            "overall_eval_metric_results": [
                {
                    "metric_name": "response_match_score",
                    "score": 0.25,
                    "threshold": 0.8,
                    "eval_status": 2,
                }
            ],
        }
    ],
}


@pytest.mark.parametrize("is_older", [False, True])
def test_stored_results_are_listed_and_shown(project, fake, is_older):
    text = json.dumps(json.dumps(RESULT)) if is_older else json.dumps(RESULT)
    fake.put("b", "shop/evals/eval_history/shop_smoke_1.evalset_result.json", text)

    listed = project.ci_eval("evalset", "results", "list", "gs://b/shop")
    shown = project.ci_eval("evalset", "results", "show", "gs://b/shop", "shop_smoke_1")
    wrong = project.ci_eval("evalset", "results", "show", "gs://b/shop", "shop_smoke_2")
    gone = project.ci_eval("evalset", "results", "list", "gs://nob/shop")

    (line,) = listed.out.splitlines()
    assert line.startswith("shop_smoke_1 · smoke · ")
    assert line.endswith(" ago · 0 passed, 1 failed")
    assert shown.out.splitlines() == [
        "FAILED greets",
        "  FAILED response_match_score 0.250 (threshold 0.8)",
    ]
    assert (wrong.code, "Did you mean 'shop_smoke_1'?" in wrong.err) == (4, True)
    assert (gone.code, "no such bucket" in gone.err) == (4, True)


def test_a_broken_result_is_named_and_the_others_are_listed(project, tmp_path):
    history = tmp_path / "shop/.adk/eval_history"
    history.mkdir(parents=True)
    (history / "a.evalset_result.json").write_text("[1")
    (history / "b.evalset_result.json").write_text('{"eval_case_results": [{}]}')
    (history / "c.evalset_result.json").write_text(json.dumps(RESULT))

    ended = project.ci_eval("evalset", "results", "list", "shop")

    assert ended.code == ExitCode.USAGE_ERROR
    assert [line.split()[0] for line in ended.out.splitlines()] == ["c"]
    assert "a.evalset_result.json:1: is not JSON: " in ended.err
    assert "b.evalset_result.json:1: 'eval_set_id' is missing" in ended.err
    assert project.ci_eval("evalset", "results", "list", "shop/x").code == ExitCode.USAGE_ERROR


LEGACY = [{"name": "old", "data": [{"query": "Hi", "reference": "Hello"}]}]


def test_older_evalsets_of_a_bucket_are_migrated_where_they_are(project, fake):
    fake.put("b", "old/a.test.json", json.dumps(LEGACY))
    fake.put("b", "old/deep/b.evalset.json", json.dumps(LEGACY))
    fake.put("b", "old/notes.json", "not looked at")
    ended = project.ci_eval("evalset", "migrate", "gs://b/old", "--backup")

    assert ended.out.splitlines() == [
        "gs://b/old/a.test.json: 1 case migrated.",
        "gs://b/old/deep/b.evalset.json: 1 case migrated.",
    ]
    assert ids(fake, "old/a.test.json") == ["old"]
    assert json.loads(fake.text("b", "old/a.test.json.bak")) == LEGACY
    assert project.ci_eval("evalset", "migrate", "gs://b/old").out == (
        "gs://b/old: nothing to migrate; only files in ADK formats are migrated.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create", "gs://b/shop", "a-b"], "Invalid Eval Set ID."),
        (["create", "gs://b/shop", "../x"], "eval_set_id '../x' must not contain path separators."),
        (["create", "gs://b/team/shop", "x"], "app_name 'team/shop' must not contain path"),
        (["create", "gs://b", "x"], "app_name must not be empty."),
        (["create", "gs://nob/shop", "x"], "no such bucket"),
        (["delete", "gs://b/shop", "none", "--case", "a"], "Eval set `none` not found."),
        (["delete", "gs://b/shop", "smoke", "--case", "a"], "Eval case `a` not found in eval set"),
        (
            ["delete", "gs://b/shop", "--case", "a"],
            "gs://b/shop is a directory; add the id of an evalset",
        ),
        (["list", "gs://nob"], "gs://nob/: no such bucket"),
        (["list", "gs://"], "is not an address of Cloud Storage"),
        (["convert", "gs://b/none.json", "--to", "cases"], "gs://b/none.json: no such file"),
        (["migrate", "gs://b/none.json"], "gs://b/none.json: no such file"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_changed(project, fake, arguments, message):
    before = dict(fake.buckets["b"])
    ended = project.ci_eval("evalset", *arguments)

    assert ended.code == ExitCode.USAGE_ERROR
    assert message in ended.err
    assert fake.buckets["b"] == before


def test_a_broken_evalset_of_a_bucket_is_listed_with_what_is_wrong(project, fake):
    fake.put("b", f"{SETS}/bad.evalset.json", "{")
    ended = project.ci_eval("evalset", "list", "gs://b")

    assert ended.code == ExitCode.USAGE_ERROR
    assert f"gs://b/{SETS}/bad.evalset.json:1: " in ended.err
    assert "smoke" in ended.out


def test_an_object_is_validated_by_its_address(project, fake):
    fake.put("b", "bad.evalset.json", '{"eval_set_id": "x", "eval_cases": [{"eval_id": 5}]}')
    good = project.ci_eval("validate", "gs://b/shop/smoke")
    bad = project.ci_eval("validate", "gs://b/bad.evalset.json", "gs://b/none.json")

    assert good.out == "gs://b/shop/smoke: evalset, 3 cases: ok\n"
    assert bad.code == ExitCode.USAGE_ERROR
    assert "gs://b/none.json: no such object" in bad.err
    assert "Traceback" not in bad.err
    assert not Path("gs:").exists()
