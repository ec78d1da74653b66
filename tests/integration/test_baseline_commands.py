"""`ci-eval baseline …` and `ci-eval compare`, in a temporary project, by the command."""

import io
import json
import shutil
from pathlib import Path

import pytest
from support.git_repositories import Repo, make_hub
from support.project import CONFIG, GREETS, REFUNDS, TRACKS, Project, changed
from support.slow_params import some

WRONG_REFUND = changed(REFUNDS, "Order 7 is refunded.", ("refund", {"order": 8}))
RUN = "ci-eval-report/run.json"


@pytest.fixture
def project(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITLAB_CI", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    made = Project(tmp_path, capsys)
    made.add("baseline: {store: file}\n")
    return made


@pytest.fixture
def on_github(project, monkeypatch, tmp_path):
    """Let a workflow run the commands, for an event."""

    def runs_for(event, payload=None, **variables):
        (tmp_path / "event.json").write_text(json.dumps(payload or {}))
        monkeypatch.setenv("GITHUB_ACTIONS", "true")
        monkeypatch.setenv("GITHUB_EVENT_NAME", event)
        monkeypatch.setenv("GITHUB_EVENT_PATH", str(tmp_path / "event.json"))
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return project

    return runs_for


OPENED = {"action": "opened", "repository": {"default_branch": "main"}}


def stored(project):
    return project.folder / ".ci-eval/baseline.json"


# --- save -------------------------------------------------------------------------------------


def test_a_pull_request_stores_nothing_and_keeps_its_verdict(on_github):
    project = on_github("pull_request", OPENED)
    ended = project.ci_eval("run", "--baseline-save")

    assert ended.code == 0
    assert "not stored: this is a pull request" in ended.err
    automatic = project.ci_eval("run", "--baseline-save", "auto")
    assert automatic.code == 0
    assert "not stored: auto does not change the baseline file" in automatic.err
    assert not stored(project).exists()


def test_saving_from_a_pull_request_is_refused_with_the_way_out(on_github):
    project = on_github("pull_request", OPENED)
    project.ci_eval("run")
    ended = project.ci_eval("baseline", "save")

    assert ended.code == 4
    assert "a workflow that runs on pushes to 'main' stores merged code" in ended.err
    assert not stored(project).exists()
    assert project.ci_eval("baseline", "save", "--from-pull-request").code == 0
    assert stored(project).exists()


def test_a_push_to_the_default_branch_is_stored(on_github):
    project = on_github(
        "push", OPENED, GITHUB_REF_TYPE="branch", GITHUB_REF_NAME="main", GITHUB_HEAD_REF=""
    )

    assert project.ci_eval("run", "--baseline-save").code == 0
    assert stored(project).exists()


def test_a_store_that_cannot_be_written_changes_no_verdict_and_is_told(on_github):
    project = on_github(
        "push", OPENED, GITHUB_REF_TYPE="branch", GITHUB_REF_NAME="main", GITHUB_HEAD_REF=""
    )
    (project.folder / ".ci-eval").write_text("a file where a folder should be")
    ended = project.ci_eval("run", "--baseline-save", "--json")

    assert ended.code == 0
    assert "warning: .ci-eval/baseline.json: cannot be written" in ended.err
    assert "::warning" in ended.err
    assert ended.json["verdict"]["outcome"] == "passed"


def test_a_run_of_another_suite_is_refused(project):
    project.ci_eval("run")
    project.config(CONFIG.replace("name: shop", "name: bank") + "baseline: {store: file}\n")

    for command in ("save", "diff"):
        ended = project.ci_eval("baseline", command)
        assert ended.code == 4
        assert "the run belongs to suite 'shop', but ci-eval.yaml defines 'bank'" in ended.err
    assert not stored(project).exists()


@pytest.mark.parametrize("named", ["nowhere", "nowhere/run.json", "evals"])
def test_where_there_is_no_run_that_is_said(project, named):
    for command in ("save", "diff"):
        ended = project.ci_eval("baseline", command, named)
        assert ended.code == 4
        assert "no such file" in ended.err
        assert "run `ci-eval run` first, or name its output directory or run.json" in ended.err


def test_a_folder_stands_for_the_run_in_it(project):
    project.ci_eval("run", "--out", "elsewhere")

    saved = project.ci_eval("baseline", "save", "elsewhere")
    assert saved.code == 0
    assert saved.err.strip().endswith(f": {stored(project).relative_to(project.folder)}")
    assert "is already stored" in project.ci_eval("baseline", "save", "elsewhere/run.json").err


# --- show, prune ------------------------------------------------------------------------------


def test_an_empty_baseline_is_shown_as_that(project):
    ended = project.ci_eval("baseline", "show")

    assert ended.code == 0
    assert "no stored runs to compare 'shop' with" in ended.out
    assert project.ci_eval("baseline", "show", "--json").json == []


def test_the_stored_runs_are_shown_with_their_means_and_their_trend(project):
    project.traces(GREETS, WRONG_REFUND, TRACKS)
    project.ci_eval("run", "--baseline-save")
    project.traces(GREETS, REFUNDS, TRACKS)
    project.ci_eval("run", "--baseline-save")

    newest, oldest = project.ci_eval("baseline", "show", "--json").json
    assert (newest["cases"]["passed"], oldest["cases"]["failed"]) == (3, 1)
    assert newest["suite"] == "shop"
    assert (newest["distance"], newest["commit"]) == (None, None)
    assert 0 <= newest["age_s"] < 600
    shown = project.ci_eval("baseline", "show").out
    assert "1.000  +0.333  0.667 1.000" in shown
    assert "a change would be compared with 2 of 2 stored runs of 'shop'" in shown


@pytest.mark.parametrize("store", some(["branch", "git"], 1))
def test_on_main_what_a_change_would_be_compared_with_is_shown(project, store):
    project.config(CONFIG + f"baseline: {{store: {store}}}\n")
    repo = Repo(project.folder)
    repo.git("init", "--quiet", "--initial-branch=main")
    repo.commit("an agent")
    project.traces(GREETS, REFUNDS, TRACKS)
    saved = project.ci_eval("run", "--baseline-save")
    assert "stored " in saved.err, saved
    repo.commit("the stored run")

    (found,) = project.ci_eval("baseline", "show", "--json").json
    assert found["unused"] == ""
    assert "has one run" in project.ci_eval("gate", "power").err


@pytest.mark.slow
def test_on_main_a_run_says_that_the_stored_one_is_of_the_same_commit(project):
    project.config(CONFIG + "baseline: {store: branch}\n")
    repo = Repo(project.folder)
    repo.git("init", "--quiet", "--initial-branch=main")
    repo.commit("an agent")
    project.traces(GREETS, REFUNDS, TRACKS)
    repo.commit("its traces")
    project.ci_eval("run", "--baseline-save", "--out", "reports")
    ended = project.ci_eval("run", "--out", "reports")

    assert "no stored run fits this one (of this commit itself): judged by thresholds" in ended.out
    assert "No stored run fits this one." in (project.folder / "reports/comment.md").read_text()


def test_a_store_that_nothing_can_be_removed_from_says_so(project):
    project.ci_eval("run", "--baseline-save")
    before = stored(project).read_bytes()
    ended = project.ci_eval("baseline", "prune", "--keep", "1")

    assert ended.code == 4
    assert "nothing removed: the store 'file' does not support pruning" in ended.err
    assert stored(project).read_bytes() == before
    assert project.ci_eval("baseline", "prune").code == 4
    assert project.ci_eval("baseline", "prune", "--keep", "0").code == 4


def test_a_corrupt_baseline_is_told_by_every_command(project):
    project.ci_eval("run")
    stored(project).parent.mkdir()
    stored(project).write_text("{")

    for arguments in (
        ("baseline", "show"),
        ("baseline", "save"),
        ("baseline", "diff"),
        ("gate", "power"),
        ("gate", "explain", "-c", "ci-eval.yaml"),
    ):
        ended = project.ci_eval(*arguments)
        assert ended.code == 6, arguments
        assert ".ci-eval/baseline.json:1" in ended.err
    assert stored(project).read_text() == "{"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (("name: shop", "name: other"), "holds runs of another suite, 'shop'"),
        (
            ('"suite":"shop",', '"suite":"shop","gate":{"mode":"zzz"},'),
            "cannot be read: gate.mode: expected",
        ),
    ],
)
def test_what_cannot_be_compared_is_found_before_the_trials(project, changed, said):
    project.ci_eval("run", "--baseline-save")
    for path in (project.folder / "ci-eval.yaml", stored(project)):
        path.write_text(path.read_text().replace(*changed))
    ended = project.ci_eval("run", "--out", "second")

    assert ended.code == 6
    assert said in ended.err
    assert "trials" not in ended.err
    assert not (project.folder / "second/traces.jsonl").exists()


# --- diff, compare ----------------------------------------------------------------------------


@pytest.fixture
def two_runs(project):
    project.ci_eval("run", "--baseline-save", "--out", "before")
    project.traces(GREETS, WRONG_REFUND, TRACKS)
    project.ci_eval("run", "--out", "after")
    return project


def test_a_stored_run_is_not_compared_with_itself(project):
    project.ci_eval("run", "--baseline-save")
    ended = project.ci_eval("baseline", "diff")

    assert ended.code == 0
    assert "the baseline has no other run to compare with" in ended.out
    assert project.ci_eval("baseline", "diff", "--json").json is None


@pytest.mark.parametrize("stored", [1, 2])
def test_the_report_of_a_run_stays_the_same_once_it_is_stored(project, stored):
    for _ in range(stored):
        assert project.ci_eval("run", "--baseline-save").code == 0
    names = ("comment.md", "junit.xml", "report.json", "summary.md")
    before = [project.read(name) for name in names]

    assert project.ci_eval("report").code == 0

    assert [project.read(name) for name in names] == before


def test_what_changed_is_told_case_by_case(two_runs):
    two_runs.evalset(GREETS, changed(REFUNDS, "Something else."))
    two_runs.traces(GREETS, REFUNDS)
    two_runs.ci_eval("run", "--out", "after")
    ended = two_runs.ci_eval("baseline", "diff", "after")

    assert ended.code == 0
    assert "- case tracks on smoke" in ended.out
    assert "- case smoke/refunds: its content changed" in ended.out
    assert "compared with the baseline: 1 run" in ended.out


def test_two_report_folders_are_compared(two_runs):
    ended = two_runs.ci_eval("compare", "before", "after")

    assert ended.code == 0
    assert "worse (1):" in ended.out
    assert "refunds (tool_trajectory_avg_score on smoke with bot): fails now" in ended.out
    assert "compared with before: 1 run" in ended.out


def test_the_verdict_is_the_exit_code_where_that_is_asked_for(two_runs):
    two_runs.config(CONFIG + "gate: {on_inconclusive: fail}\n")
    strict = two_runs.ci_eval("compare", "before", "after", "-c", "ci-eval.yaml", "--gate")

    assert two_runs.ci_eval("compare", "before", "after", "-c", "ci-eval.yaml").code == 0
    assert strict.code == 1
    assert "FAILED" in strict.out
    assert two_runs.ci_eval("compare", "before", "after", "--gate").code == 0


def test_what_counts_can_be_said_in_the_command(two_runs):
    loose = two_runs.ci_eval("compare", "before", "after", "--max-drop", "0.5", "--json").json
    plain = two_runs.ci_eval("compare", "before", "after", "--json").json
    wide = two_runs.ci_eval("compare", "before", "after", "--false-block", "0.5", "--json").json

    assert [each["level"] for each in wide["deltas"]] > [each["level"] for each in plain["deltas"]]
    assert plain["verdict"]["outcome"] == "passed"
    assert loose["changes"] == plain["changes"]
    for wrong in (("--max-drop", "2"), ("--false-block", "0"), ("--false-block", "1")):
        assert two_runs.ci_eval("compare", "before", "after", *wrong).code == 4


def test_a_run_beside_itself_is_no_comparison(two_runs):
    shutil.copytree(two_runs.folder / "before", two_runs.folder / "copy")
    ended = two_runs.ci_eval("compare", "before", "copy", "--gate")

    assert ended.code == 4
    assert "before and copy are the same run" in ended.err


def test_runs_that_have_nothing_in_common_are_no_comparison(two_runs):
    two_runs.config(CONFIG.replace("bot:", "other:"))
    two_runs.ci_eval("run", "--out", "other")
    ended = two_runs.ci_eval("compare", "before", "other", "--gate")

    assert ended.code == 4
    assert "have no agent, evalset and criterion in common" in ended.err
    assert "(other on smoke by" in ended.err


@pytest.fixture
def with_hub(project, monkeypatch, tmp_path_factory):
    """A repository with a remote that has no data branch yet, at a terminal, after a run."""
    hub = make_hub(tmp_path_factory.mktemp("hubs"))
    project.config(CONFIG + "baseline: {store: branch}\n")
    repo = Repo(project.folder)
    repo.git("init", "--quiet", "--initial-branch=main")
    repo.git("remote", "add", "origin", hub.as_uri())
    repo.commit("an agent")
    project.ci_eval("run")
    monkeypatch.setattr("ci_eval.cli.console.is_watched", lambda: True)
    return repo


@pytest.mark.parametrize(
    ("answer", "arguments"), some([("n\n", ()), ("y\n", ()), ("", ("--yes",))], 1)
)
def test_on_a_terminal_the_first_push_to_a_remote_is_asked_for(
    project, with_hub, monkeypatch, answer, arguments
):
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    ended = project.ci_eval("baseline", "save", *arguments)
    stores = answer != "n\n"

    assert ("Create the branch 'ci-eval-data' of 'origin'?" in ended.out) is bool(answer)
    assert bool(with_hub.git("ls-remote", "--heads", "origin", "ci-eval-data")) is stores
    assert ended.code == (0 if stores else 2)
    assert "stored for commit" not in ended.err
    if stores:  # then the branch is there
        config = with_hub.folder / "ci-eval.yaml"
        config.write_text(config.read_text() + "# not committed\n")
        project.ci_eval("run")
        again = project.ci_eval("baseline", "save")
        assert "Create" not in again.out
        assert "although files have changed since: store it again once they are" in again.err


def test_a_command_to_run_next_names_the_configuration(project):
    Path("ci-eval.yaml").rename("my suite.yaml")

    said = project.ci_eval("baseline", "show", "-c", "my suite.yaml").out
    refused = project.ci_eval("gate", "power", "-c", "my suite.yaml").err
    unasked = project.ci_eval("run", "-c", "my suite.yaml", "--baseline-save", "auto").err

    assert "store one with `ci-eval run --baseline-save -c 'my suite.yaml'`" in said
    assert "store a run: `ci-eval run --baseline-save -c 'my suite.yaml'`" in refused
    assert "`ci-eval baseline save -c 'my suite.yaml'` does" in unasked
