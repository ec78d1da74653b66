"""`ci-eval gate …`, in a temporary project, by the command."""

import json

import pytest
from support.git_repositories import Repo
from support.project import CASES, CONFIG, GREETS, REFUNDS, TRACKS, Project, changed

WRONG_REFUND = changed(REFUNDS, "Order 7 is refunded.", ("refund", {"order": 8}))


@pytest.fixture
def project(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITLAB_CI", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    made = Project(tmp_path, capsys)
    made.add("baseline: {store: file}\n")
    return made


@pytest.fixture
def regressed(project):
    for _ in range(2):
        project.ci_eval("run", "--baseline-save")
    project.traces(GREETS, WRONG_REFUND, TRACKS)
    assert project.ci_eval("run").code == 1
    return project


# --- a change that weakens its own gate -------------------------------------------------------


def test_repeats_beyond_the_configuration_are_no_promise(project):
    project.add("gate: {on_loosened: fail}\n")
    project.traces(*CASES, *CASES)
    assert project.ci_eval("run", "--repeats", "2", "--baseline-save").code == 0

    assert project.ci_eval("run").code == 0

    project.add("run: {repeats: 2}\n")
    assert project.ci_eval("run", "--baseline-save").code == 0
    ended = project.ci_eval("run", "--repeats", "1")
    assert ended.code == 1
    assert "this change weakens its own gate: --repeats: 2 → 1" in ended.out
    project.config(CONFIG + "baseline: {store: file}\ngate: {on_loosened: fail}\n")
    ended = project.ci_eval("run")
    assert ended.code == 1
    assert "this change weakens its own gate: run.repeats: 2 → 1" in ended.out


# --- explain ----------------------------------------------------------------------------------


def test_a_verdict_is_explained_from_its_report_alone(regressed):
    (regressed.folder / "ci-eval.yaml").unlink()
    (regressed.folder / ".ci-eval/baseline.json").unlink()
    ended = regressed.ci_eval("gate", "explain")

    assert ended.code == 0
    assert "FAILED (compared with the baseline)" in ended.out
    assert "- blocks: tool_trajectory_avg_score on smoke with bot regressed" in ended.out
    assert "compared with the baseline: 2 runs" in ended.out
    assert "single cases: 1 proven, 0 suspected, 0 exempt" in ended.out
    assert "blocks while 1 case is broken" in ended.out
    assert ended.err == ""


@pytest.mark.parametrize("named", ["ci-eval-report", "ci-eval-report/report.json"])
def test_a_report_is_named_by_its_folder_or_its_file(regressed, named):
    found = regressed.ci_eval("gate", "explain", named, "--json").json

    assert found["verdict"]["outcome"] == "failed"
    assert found["criteria"][0]["level"]["false_block"] == 0.02
    assert found["comparison"]["baseline_runs"]


def test_a_run_without_a_report_is_judged_again(regressed):
    (regressed.folder / "ci-eval-report/report.json").unlink()

    for arguments in ((), ("ci-eval-report/run.json",), ("-c", "ci-eval.yaml")):
        ended = regressed.ci_eval("gate", "explain", *arguments)
        assert ended.code == 0
        assert "FAILED" in ended.out


def test_another_configuration_judges_otherwise(regressed):
    text = CONFIG + "baseline: {store: file}\ngate: {mode: threshold, min_pass_rate: 0.5}\n"
    (regressed.folder / "other.yaml").write_text(text)
    ended = regressed.ci_eval("gate", "explain", "-c", "other.yaml")

    assert "PASSED (compared with the thresholds)" in ended.out
    assert "nothing was compared with a baseline" in ended.out
    assert "pass rate: 0.667, required 0.5" in ended.out
    assert "FAILED" in regressed.ci_eval("gate", "explain").out


def test_what_another_configuration_made_of_a_run_is_explained_by_that_one(regressed):
    regressed.add("gate: {max_drop: 0.9}\n")
    regressed.ci_eval("report", "-c", "ci-eval.yaml")

    assert regressed.ci_eval("gate", "explain", "--json").json["gate"]["max_drop"] == 0.9


@pytest.mark.parametrize("command", [("gate", "explain"), ("report",)])
def test_without_a_configuration_nothing_is_reevaluated(regressed, command):
    (regressed.folder / "ci-eval.yaml").unlink()
    assert "FAILED" in regressed.ci_eval("gate", "explain").out
    (regressed.folder / "ci-eval-report/report.json").unlink()
    ended = regressed.ci_eval(*command)

    assert ended.code == 4
    assert "no configuration was found to reevaluate the run of ci-eval-report" in ended.err
    assert not (regressed.folder / "ci-eval-report/report.json").exists()


def test_a_run_is_reevaluated_with_its_own_configuration(regressed):
    path = regressed.folder / "ci-eval.yaml"
    path.rename(regressed.folder / "other.yaml")
    regressed.ci_eval("run", "-c", "other.yaml", "--out", "second")
    path.write_text(CONFIG.replace("shop", "third"))

    assert regressed.ci_eval("report", "second").code == 1  # compared with its own baseline
    (regressed.folder / "other.yaml").unlink()
    ended = regressed.ci_eval("report", "second")
    assert ended.code == 4
    assert "the run belongs to suite 'shop', but ci-eval.yaml defines 'third'" in ended.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "report.json:1: is not JSON"),
        ("[]", "report.json:1: is not a report of ci-eval"),
        ('{"schema_version": 1}', "report.json:1: is not a report of ci-eval"),
        ('{"verdict": {}, "schema_version": 99}', "report.json:1: has schema version 99"),
        ('{"verdict": {},\n"schema_version": 1}', "report.json:1: verdict: 'outcome' is missing"),
    ],
)
def test_what_is_no_report_is_told(project, text, message):
    project.ci_eval("run")
    (project.folder / "ci-eval-report/report.json").write_text(text)
    ended = project.ci_eval("gate", "explain")

    assert ended.code == 4
    assert message in ended.err


def test_nothing_to_explain_is_told(project):
    ended = project.ci_eval("gate", "explain")

    assert ended.code == 4
    assert "ci-eval-report: no such file" in ended.err
    assert project.ci_eval("gate", "explain", "--json").json["error"] == "UsageError"


def test_names_in_a_report_steer_no_terminal_and_no_runner(regressed):
    path = regressed.folder / "ci-eval-report/report.json"
    path.write_text(path.read_text().replace('"refunds"', '"\\u001b[31m\\n::error::x"'))
    ended = regressed.ci_eval("gate", "explain")

    assert ended.code == 0
    assert "\x1b" not in ended.err
    assert "\n::" not in ended.err


# --- power ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args", [("compare", "a", "b", "--max-drop"), ("gate", "power", "--drop")], ids=" ".join
)
def test_what_is_no_number_is_in_no_range(project, args):
    ended = project.ci_eval(*args, "nan")

    assert (ended.code, "'nan' is not a number" in ended.err) == (4, True)


def test_power_needs_a_baseline_with_runs(project):
    ended = project.ci_eval("gate", "power")

    assert ended.code == 4
    assert "no run of 'shop' is stored" in ended.err
    project.config(CONFIG)
    assert "has no baseline" in project.ci_eval("gate", "power").err


def test_one_run_tells_nothing_of_how_much_cases_vary(project):
    project.ci_eval("run", "--baseline-save")
    ended = project.ci_eval("gate", "power")

    assert ended.code == 4
    assert "the baseline has one run, with each case run once" in ended.err
    assert "run each case at least twice" in ended.err


def test_a_suite_that_never_varied_sees_every_flip(project):
    for _ in range(2):
        project.ci_eval("run", "--baseline-save")
    ended = project.ci_eval("gate", "power", "--drop", "0.1", "--run", "ci-eval-report")

    assert ended.code == 0
    assert "these cases always scored the same before: one case that drops is enough" in ended.out
    assert ": the suite as it is\n" in ended.out
    assert "is proven, because it always scored the same before" in ended.out
    assert "a run as planned: 3 trials, agents unknown" in ended.out
    assert "judges $0.00" in ended.out
    found = project.ci_eval("gate", "power", "--json").json
    assert {each["steady"] for each in found["criteria"]} == {True}
    assert json.dumps(found["cost"]["agents_usd"]) == "null"


def test_without_a_stored_run_nothing_is_said_to_be_compared(project):
    project.ci_eval("run")
    ended = project.ci_eval("gate", "explain")

    assert ended.out.startswith("PASSED (no baseline to compare with)")


def test_a_part_of_a_suite_is_compared_as_such(project):
    project.ci_eval("run", "--out", "whole")
    project.ci_eval("run", "--case", "greets", "--out", "part")
    ended = project.ci_eval("compare", "whole", "part", "--gate")

    assert ended.code == 0
    assert ended.out.endswith("PASSED, for the part of the suite that was run\n")


def test_what_was_not_measured_is_not_shown_as_the_best_possible(project):
    project.ci_eval("run", "--out", "whole", "--baseline-save")
    project.traces(GREETS)
    project.ci_eval("run", "--out", "one")
    project.traces()
    project.ci_eval("run", "--out", "none")

    for some in (("compare", "whole", "one"), ("baseline", "diff", "one")):
        assert {line.split()[-1] for line in table(project.ci_eval(*some).out)} == {"incomplete"}
    for every in (("compare", "whole", "none"), ("baseline", "diff", "none")):
        lines = table(project.ci_eval(*every).out)
        assert {line.partition("1.000")[2].split()[0] for line in lines} == {"-"}
        assert all(line.endswith("not measured") for line in lines)
    explained = project.ci_eval("gate", "explain", "one").out
    assert "bot: incomplete\n- before 1.000, now 1.000: ≤ 0.000, over 3 cases in both, with 2" in (
        explained
    )
    assert "with 2 unmeasured cases as the best possible" in explained
    explained = project.ci_eval("gate", "explain", "none").out
    assert "bot: not measured\n- before 1.000, now not measured (3 cases)\n\n" in explained
    page = (project.folder / "none/report.html").read_text()
    assert "±0.000" not in page


def table(text: str) -> list[str]:
    """Return the rows of the table at the beginning of a comparison."""
    return text.partition("\n\n")[0].splitlines()[1:]


def test_what_is_asked_of_power_must_make_sense(project):
    for wrong in (("--drop", "0"), ("--drop", "2"), ("--power", "1"), ("--run", "nowhere")):
        assert project.ci_eval("gate", "power", *wrong).code == 4


# --- What a change makes of its own measure ---------------------------------------------------


def test_thresholds_instead_of_a_comparison_are_told_by_the_stored_run(project):
    project.ci_eval("run", "--baseline-save")
    project.add("gate: {mode: threshold}\n")
    ended = project.ci_eval("run")

    assert ended.code == 0
    told = "gate.mode: regression → threshold"
    assert f"this change weakens its own gate: {told}" in ended.out
    comment = (project.folder / "ci-eval-report/comment.md").read_text()
    assert f"weakens its own gate:** `{told}`" in comment.partition("| |")[0]
    assert "<sub>Judged by thresholds alone, as `gate.mode` is `threshold`.</sub>" in comment
    assert "No baseline" not in comment
    page = (project.folder / "ci-eval-report/report.html").read_text()
    assert "judged by thresholds alone, as <code>gate.mode</code>" in page


@pytest.mark.slow
def test_a_baseline_that_comes_with_the_change_is_told_first(project):
    repo = Repo(project.folder)
    repo.git("init", "--quiet", "--initial-branch=main")
    project.ci_eval("run", "--baseline-save")
    repo.commit()
    repo.on("work")
    project.traces(GREETS, WRONG_REFUND, TRACKS)
    (project.folder / ".ci-eval/baseline.json").unlink()
    project.ci_eval("run", "--baseline-save")
    repo.commit()
    ended = project.ci_eval("run")

    assert ended.code == 0
    comment = (project.folder / "ci-eval-report/comment.md").read_text()
    told = "baseline: .ci-eval/baseline.json is part of this change"
    assert told in ended.out
    assert told in comment.partition("| |")[0]


@pytest.mark.parametrize(("chosen", "code"), [("warn", 0), ("fail", 1)])
def test_a_recording_that_comes_with_the_change_warns_or_blocks(project, chosen, code):
    repo = Repo(project.folder)
    repo.git("init", "--quiet", "--initial-branch=main")
    project.add(f"gate: {{on_loosened: {chosen}}}\n")
    project.traces(GREETS, WRONG_REFUND, TRACKS)
    repo.commit()
    repo.on("work")
    # Neither a better recording nor the key's removal is quiet.
    project.traces(*CASES)
    text = (project.folder / "ci-eval.yaml").read_text()
    project.config(text.replace("gate: {on_loosened: fail}\n", ""))
    repo.commit()
    ended = project.ci_eval("run")

    assert ended.code == code
    comment = (project.folder / "ci-eval-report/comment.md").read_text()
    told = "agent bot: its recording traces.jsonl is part of this change"
    assert told in ended.out
    assert told in comment.partition("| |")[0]
