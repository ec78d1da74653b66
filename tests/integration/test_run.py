"""The line from end to end, in a temporary project, by the command."""

import copy
import errno
import json
import os
import shutil

import cmarkgfm
import pytest
from support.git_repositories import git_init
from support.project import (
    CASES,
    CONFIG,
    GREETS,
    REFUNDS,
    TRACKS,
    Project,
    case,
    changed,
    content,
    turn,
)

WRONG_REFUND = changed(REFUNDS, "Order 7 is refunded.", ("refund", {"order": 8}))


@pytest.fixture
def project(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    return Project(tmp_path, capsys)


def test_a_run_in_which_every_case_passes(project):
    ended = project.ci_eval("run")

    assert ended.code == 0
    assert ended.out.startswith("✔ PASSED")
    assert ended.err == "3 trials\n"
    assert {path.name for path in (project.folder / "ci-eval-report").iterdir()} == {
        "run.json",
        "traces.jsonl",
        "report.json",
        "report.html",
        "junit.xml",
        "comment.md",
        "summary.md",
        "annotations.txt",
        ".gitignore",
    }
    assert project.scores()["greets"] == {
        "tool_trajectory_avg_score": 1.0,
        "response_match_score": 1.0,
    }


def test_a_case_below_a_threshold_fails_the_run(project):
    project.traces(GREETS, WRONG_REFUND, TRACKS)
    ended = project.ci_eval("run")

    assert ended.code == 1
    assert "FAILED bot · smoke · refunds: tool_trajectory_avg_score 0.000 < 1" in ended.err
    assert "1 of 3 cases failed (pass rate 66.7%, required 100.0%)" in ended.out


def test_the_results_stand_in_the_order_of_the_evalset(project):
    project.traces(*reversed(CASES))
    project.ci_eval("run")

    results = project.run_json()["results"]
    assert [result["key"]["case"] for result in results] == ["greets", "refunds", "tracks"]
    assert [result["line"] for result in results] == sorted(result["line"] for result in results)


def test_a_result_says_what_tools_need(project):
    project.traces(GREETS, WRONG_REFUND, TRACKS)
    project.ci_eval("run")
    run = project.run_json()
    result = run["results"][1]
    score = result["scores"][0]

    assert run["schema_version"] == 1
    assert run["meta"]["suite"] == "shop"
    assert result["key"] == {"agent": "bot", "evalset": "smoke", "case": "refunds", "repeat": 0}
    assert result["status"] == "failed"
    assert result["error"] is None
    assert score["criterion"] == "adk/tool_trajectory_avg_score"
    assert score["name"] == "tool_trajectory_avg_score"
    assert (score["value"], score["threshold"], score["better"]) == (0.0, 1.0, "higher")
    assert score["informational"] is False
    assert score["invocations"] == [
        {
            "status": "failed",
            "value": 0.0,
            "evidence": {
                "expected_tool_calls": [{"name": "refund", "args": {"order": 7}}],
                "actual_tool_calls": [{"name": "refund", "args": {"order": 8}}],
            },
        }
    ]


# --- Nothing unmeasured is green --------------------------------------------------------------


def test_a_case_that_was_not_recorded_leaves_no_verdict(project):
    project.traces(GREETS, REFUNDS)
    ended = project.ci_eval("run")

    assert ended.code == 6
    assert "ERROR bot · smoke · tracks: not_recorded" in ended.err
    result = project.run_json()["results"][2]
    assert result["error"]["kind"] == "not_recorded"
    assert {score["status"] for score in result["scores"]} == {"error"}


def test_a_recorded_error_is_an_error(project):
    project.traces(GREETS, REFUNDS, {"eval_id": "tracks", "error": "the key expired"})
    ended = project.ci_eval("run")

    assert ended.code == 6
    assert "the key expired" in ended.err


def test_a_run_that_fails_whatever_is_missing_fails(project):
    project.traces(GREETS, WRONG_REFUND)

    assert project.ci_eval("run").code == 1


def test_a_recording_that_breaks_off_is_an_error(project):
    two = case("greets", turn("Hello", "Hello!"), turn("Bye", "Goodbye!"))
    project.evalset(two)
    project.traces(case("greets", turn("Hello", "Hello!")))
    ended = project.ci_eval("run")

    assert ended.code == 6
    assert "the recording has 1 invocations, but the case has 2" in ended.err


def test_an_empty_evalset_selects_nothing(project):
    project.evalset()
    ended = project.ci_eval("run")

    assert ended.code == 5
    assert "nothing to run: the evalsets contain no cases" in ended.err


def test_a_case_without_turns_is_not_green(project):
    project.evalset({"eval_id": "empty", "conversation": []})
    project.traces({"eval_id": "empty", "invocations": []})
    ended = project.ci_eval("run")

    assert ended.code == 4
    assert "cannot score any case: case 'empty' has no invocation" in ended.err


def test_errors_are_no_passes_wherever_a_number_is_read(project, monkeypatch):
    names = [f"case{number}" for number in range(10)]
    project.evalset(*({**GREETS, "eval_id": name} for name in names))
    project.traces({"eval_id": names[0], "invocations": [turn("Hello", "Nope")]})
    project.config(CONFIG.replace("  tool_trajectory_avg_score: 1.0\n", ""))
    project.add("gate: {min_pass_rate: 0.9, floors: point, max_errors: 9}\n")
    (project.folder / "outputs").touch()
    monkeypatch.setenv("GITHUB_OUTPUT", str(project.folder / "outputs"))
    ended = project.ci_eval("run")

    assert ended.code == 6
    said = "1 of 10 cases failed and 9 could not be measured (pass rate between 0.0% and 90.0%"
    assert said in ended.out
    assert "0/1, 9 not measured" in ended.out
    outputs = (project.folder / "outputs").read_text()
    assert "\n0.0000\n" in outputs
    assert "\nincomplete\n" in outputs
    comment = project.read("comment.md")
    assert "0 of 10 cases passed · 1 failed · 9 not measured" in comment
    assert "0/1 passed<br><sub>9 not measured</sub>" in comment
    junit = project.read("junit.xml")
    assert junit.count("<failure") == 1
    assert junit.count("<error") == 9
    explained = project.ci_eval("gate", "explain")
    assert "pass rate: 0.000, required 0.9" in explained.out


def test_a_dataset_of_agents_cli_that_states_nothing_does_not_pass(project):
    asked = {"role": "user", "parts": [{"text": "Hi"}]}
    cases = [{"eval_case_id": "hi", "prompt": asked}]
    path = project.folder / "smoke.evalset.json"
    path.write_text(json.dumps({"eval_cases": cases}))
    project.traces({"eval_id": "hi", "invocations": [turn("Hi", "Hello!")]})
    ended = project.ci_eval("run")

    assert ended.code == 4
    assert "cannot score any case: case 'hi' does not state the expected tool calls" in ended.err


def test_a_trajectory_is_compared_only_where_one_is_stated(project):
    rows = ("{id: open, prompt: Hello}", "{id: none, prompt: Hi, expected_tools: []}")
    text = "".join(f"- {row}\n" for row in rows)
    (project.folder / "smoke.yaml").write_text(f"cases:\n{text}")
    config = CONFIG.replace("smoke.evalset.json", "smoke.yaml")
    config = config.replace("  response_match_score: 0.5\n", "")
    says = "  says: {use: ci/regex, pattern: ., threshold: 1}\n"
    project.config(f"{config}{says}")
    project.traces(
        {"eval_id": "open", "invocations": [turn("Hello", "x", ("f", {}))]},
        {"eval_id": "none", "invocations": [turn("Hi", "x", ("f", {}))]},
    )
    ended = project.ci_eval("run")

    assert ended.code == 1
    assert project.scores() == {
        "open": {"tool_trajectory_avg_score": None, "says": 1.0},
        "none": {"tool_trajectory_avg_score": 0.0, "says": 1.0},
    }


def test_an_evalset_without_cases_beside_a_full_one_is_refused_by_its_name(project):
    project.evalset(name="other")
    project.config(CONFIG.replace("criteria:", "  other: other.evalset.json\ncriteria:"))
    ended = project.ci_eval("run")

    assert ended.code == 4
    assert "other.evalset.json:1: no case of evalset 'other' is selected" in ended.err


def test_a_case_that_nothing_can_judge_is_refused_before_anything_is_run(project):
    scenario = {"starting_prompt": "Hi", "conversation_plan": "Ask for a refund."}
    project.evalset(GREETS, {"eval_id": "leads", "conversation_scenario": scenario})
    ended = project.ci_eval("run")

    assert ended.code == 4
    assert "smoke.evalset.json:30: case 'leads': no blocking criterion can judge" in ended.err
    assert not (project.folder / "ci-eval-report" / "traces.jsonl").exists()


def test_a_case_that_turns_out_to_be_judged_by_nothing_leaves_no_verdict(project):
    project.config(CONFIG.partition("criteria:")[0] + "criteria: {ci/tool_errors: 1}\n")
    called = copy.deepcopy(REFUNDS["conversation"][0])
    answer = {"name": "refund", "response": {"result": "ok"}}
    called["intermediate_data"]["tool_responses"] = [answer]
    project.traces({"eval_id": "refunds", "invocations": [called]}, GREETS, TRACKS)
    project.evalset(GREETS, REFUNDS)
    ended = project.ci_eval("run")

    assert ended.code == 6
    assert "no blocking criterion judged 1 case: smoke/greets" in ended.out
    project.add("gate: {allow_unjudged: [{case: greets, evalset: smoke}]}\n")
    ended = project.ci_eval("run")
    assert ended.code == 0
    assert "allowed by gate.allow_unjudged: no blocking criterion judged 1 case" in ended.out
    assert "unjudged: no blocking criterion judged" in project.read("comment.md")


def test_a_scenario_is_scored_only_from_a_recording(project):
    scenario = {"starting_prompt": "Hi", "conversation_plan": "Ask for a refund."}
    project.evalset(GREETS, {"eval_id": "leads", "conversation_scenario": scenario})
    project.traces(GREETS, {"eval_id": "leads", "invocations": [turn("Hi", "Hello!")]})
    project.add("  tool_call_count_v1:\ngate: {allow_unjudged: [leads]}\n")
    ended = project.ci_eval("run")

    assert ended.code == 0
    scores = project.run_json()["results"][1]["scores"]
    assert [score["status"] for score in scores] == ["skipped", "skipped", "passed"]


def test_a_criterion_that_no_case_can_be_scored_by_is_an_error_of_the_configuration(project):
    scenario = {"starting_prompt": "Hi", "conversation_plan": "Ask for a refund."}
    project.evalset({"eval_id": "leads", "conversation_scenario": scenario})
    ended = project.ci_eval("run")

    assert ended.code == 4
    assert "criteria.response_match_score: cannot score any case" in ended.err


# --- Repeats ----------------------------------------------------------------------------------


def test_a_case_is_scored_by_the_mean_over_its_repeats(project):
    rows = [
        {"eval_id": "greets", "repeat": repeat, "invocations": GREETS["conversation"]}
        for repeat in range(2)
    ]
    rows.append({"eval_id": "greets", "repeat": 2, "invocations": [turn("Hello", "Nope")]})
    project.evalset(GREETS)
    project.traces(*rows)
    project.config(project.folder.joinpath("ci-eval.yaml").read_text() + "run: {repeats: 3}\n")
    ended = project.ci_eval("run", "--json")

    assert ended.code == 0
    assert ended.json["totals"]["trials"] == 3
    assert ended.json["totals"]["cases"] == 1
    assert ended.json["groups"][1]["value"] == pytest.approx(2 / 3)


# --- Selection --------------------------------------------------------------------------------


def test_a_part_of_the_suite_can_be_run(project):
    ended = project.ci_eval("run", "--case", "re*", "--criterion", "response_match_score")

    assert ended.code == 0
    assert project.scores() == {"refunds": {"response_match_score": 1.0}}


def test_a_case_that_is_nowhere_is_an_error(project):
    ended = project.ci_eval("run", "--case", "refund")

    assert ended.code == 4
    assert "no evalset has a case 'refund'" in ended.err


def test_only_cases_with_every_tag_are_run(project):
    project.evalset(
        {**GREETS, "tags": ["quick"]}, {**REFUNDS, "tags": ["quick", "billing"]}, TRACKS
    )

    assert project.ci_eval("run", "--tag", "quick").code == 0
    assert set(project.scores()) == {"greets", "refunds"}
    assert project.ci_eval("run", "--tag", "quick", "--tag", "billing").code == 0
    assert set(project.scores()) == {"refunds"}
    ended = project.ci_eval("run", "--tag", "slow")
    assert (ended.code, "nothing to run: no case has the tag 'slow'" in ended.err) == (5, True)


def test_tags_of_the_command_narrow_those_of_the_configuration(project):
    project.evalset({**GREETS, "tags": ["quick"]}, {**REFUNDS, "tags": ["quick", "billing"]})
    project.config(
        CONFIG.replace("smoke.evalset.json", "{path: smoke.evalset.json, tags: [quick]}")
    )

    assert project.ci_eval("plan", "--json").json["trials"] == 2
    assert project.ci_eval("plan", "--json", "--tag", "billing").json["trials"] == 1


# --- What did not pass, again -----------------------------------------------------------------


def test_what_did_not_pass_is_run_again_and_nothing_else(project):
    project.traces(GREETS, WRONG_REFUND)  # so that one fails, and one is an error
    assert project.ci_eval("run").code == 1
    # What is run now can be seen from the recording: it has nothing else.
    project.traces(REFUNDS, TRACKS)
    ended = project.ci_eval("run", "--failed")

    assert ended.code == 0
    assert set(project.scores()) == {"refunds", "tracks"}
    assert project.run_json()["meta"]["filtered"] is True


def test_what_fails_again_can_be_run_again(project):
    project.traces(GREETS, WRONG_REFUND)
    project.ci_eval("run")
    project.traces(WRONG_REFUND, TRACKS)
    assert project.ci_eval("run", "--failed").code == 1
    project.traces(REFUNDS)

    assert project.ci_eval("run", "--failed").code == 0
    assert set(project.scores()) == {"refunds"}


def test_only_agents_of_which_something_did_not_pass_are_run_again(project):
    project.config(CONFIG.replace("agents:\n", "agents:\n  old: {recorded: old.jsonl}\n"))
    project.traces(*CASES, name="old.jsonl")
    project.traces(GREETS, WRONG_REFUND, TRACKS)
    assert project.ci_eval("run").code == 1
    assert project.ci_eval("run", "--failed").code == 1

    run = project.run_json()
    assert run["meta"]["agents"] == ["bot"]
    assert [(each["key"]["agent"], each["key"]["case"]) for each in run["results"]] == [
        ("bot", "refunds")
    ]


def test_where_everything_passed_there_is_nothing_to_run_again(project):
    project.ci_eval("run")
    before = project.read("run.json")
    ended = project.ci_eval("run", "--failed")

    assert ended.code == 5
    assert "nothing to rerun: everything passed in ci-eval-report/run.json" in ended.err
    assert project.read("run.json") == before


def test_where_nothing_was_run_nothing_passed(project):
    for shard in ("1/4", "2/4", "3/4", "4/4"):
        if "0 trials" in project.ci_eval("run", "--shard", shard).out:
            break
    ended = project.ci_eval("run", "--failed")

    assert ended.code == 5
    assert "nothing to rerun: no case was run in ci-eval-report/run.json" in ended.err


def test_without_a_run_nothing_can_be_run_again(project):
    ended = project.ci_eval("run", "--failed")

    assert ended.code == 4
    assert "there is no ci-eval-report/run.json, so the failed cases are unknown" in ended.err
    assert "run once without --failed first" in ended.err


def test_what_is_no_run_cannot_be_run_again(project):
    (project.folder / "ci-eval-report").mkdir()
    (project.folder / "ci-eval-report" / "run.json").write_text("{}")
    ended = project.ci_eval("run", "--failed")

    assert ended.code == 4
    assert "ci-eval-report/run.json:1: " in ended.err


def test_what_did_not_pass_may_be_gone(project):
    project.traces(GREETS, WRONG_REFUND, TRACKS)
    project.ci_eval("run")
    project.evalset(GREETS, TRACKS)
    ended = project.ci_eval("run", "--failed")

    assert ended.code == 5
    assert "the failed cases are no longer in the suite" in ended.err


# --- Eval configs, presets and what is switched off -------------------------------------------


def from_agentflow(project, **more):
    config = {"criteria": {"rouge_match": {"threshold": 0.5}, "trajectory": {}}, **more}
    (project.folder / "eval.json").write_text(json.dumps(config))
    project.config(CONFIG.partition("criteria:")[0] + "criteria: {from: eval.json}\n")


def test_the_eval_config_of_agentflow_is_enough(project):
    from_agentflow(project, parallel=True, max_concurrency=2)
    project.traces(GREETS, WRONG_REFUND, TRACKS)

    assert project.ci_eval("run").code == 0
    assert project.scores()["refunds"] == {"rouge_match": 1.0, "trajectory": 1.0}


def test_a_mock_run_executes_nothing_and_is_never_green(project):
    from_agentflow(project, mock_mode=True)
    plan, validated = project.ci_eval("plan"), project.ci_eval("validate")
    ended = project.ci_eval("run")

    assert (plan.code, validated.code) == (0, 0)
    assert "3 trials" in plan.out
    assert ended.code == 5
    assert "nothing was run, because of `mock_mode` in the eval config" in ended.err
    assert not (project.folder / "ci-eval-report" / "run.json").exists()


def test_a_criterion_that_is_switched_off_does_not_score_and_is_not_missed(project):
    project.add("baseline: {store: file}\ngate: {on_vanished: fail}\n")
    for _ in range(2):
        assert project.ci_eval("run", "--baseline-save").code == 0
    text = project.folder.joinpath("ci-eval.yaml").read_text()
    off = "response_match_score: {threshold: 0.5, enabled: false}"
    project.config(text.replace("response_match_score: 0.5", off))

    assert project.ci_eval("run").code == 0
    assert project.scores()["greets"] == {"tool_trajectory_avg_score": 1.0}
    assert project.run_json()["meta"]["disabled"] == ["response_match_score"]
    project.config(text.replace("  response_match_score: 0.5\n", ""))
    assert project.ci_eval("run").code == 1


def test_where_every_criterion_is_switched_off_nothing_is_run(project):
    project.config(
        CONFIG.partition("criteria:")[0] + "criteria:\n  rouge_match: {enabled: false}\n"
    )
    ended = project.ci_eval("run")

    assert ended.code == 4
    assert "nothing would be measured" in ended.err


def test_a_preset_is_enough(project):
    project.config(CONFIG.partition("criteria:")[0] + "preset: regression\n")

    assert project.ci_eval("run").code == 0
    assert set(project.scores()["greets"]) == {
        "adk/tool_trajectory_avg_score",
        "adk/response_match_score",
    }


# --- Baselines --------------------------------------------------------------------------------


def test_a_regression_blocks(project):
    project.add("baseline: {store: file}\n")
    for _ in range(2):
        assert project.ci_eval("run", "--baseline-save").code == 0
    project.traces(GREETS, WRONG_REFUND, TRACKS)
    ended = project.ci_eval("run")

    assert ended.code == 1
    assert "tool_trajectory_avg_score on smoke with bot regressed" in ended.out
    assert "'refunds'" in ended.out
    assert "ci_eval.Regression" in project.read("junit.xml")


def test_a_flip_after_one_stored_run_only_warns(project):
    project.add("baseline: {store: file}\n")
    project.ci_eval("run", "--baseline-save")
    project.traces(GREETS, WRONG_REFUND, TRACKS)
    ended = project.ci_eval("run")

    assert ended.code == 0
    assert "fails now; too few trials to rule out noise ('refunds')" in ended.out


def test_an_incomplete_run_is_no_baseline(project):
    project.add("baseline: {store: file}\n")
    project.traces(GREETS)
    project.ci_eval("run")
    ended = project.ci_eval("baseline", "save", "ci-eval-report/run.json")

    assert ended.code == 4
    assert "not stored: 2 of 3 cases could not be measured" in ended.err

    assert not (project.folder / ".ci-eval").exists()


def test_a_run_in_which_a_criterion_measures_nothing_is_not_stored(project):
    project.add("baseline: {store: file}\n")
    (project.folder / "checks.py").write_text("def price(trace):\n    return None\n")
    config = project.folder / "ci-eval.yaml"
    price = "criteria:\n  ci/python: {python: 'checks:price'}\n"
    config.write_text(config.read_text().replace("criteria:\n", price))

    ended = project.ci_eval("run", "--baseline-save")

    assert ended.code == 6
    told = "not stored: criteria with nothing to measure in any case: ci/python"
    assert told in ended.err


def test_a_part_of_a_suite_is_no_baseline(project):
    project.add("baseline: {store: file}\n")
    project.ci_eval("run", "--case", "greets")

    assert project.ci_eval("baseline", "save").code == 4


def test_a_failed_run_is_a_baseline_all_the_same(project):
    project.add("baseline: {store: file}\n")
    project.traces(GREETS, WRONG_REFUND, TRACKS)
    assert project.ci_eval("run").code == 1

    assert project.ci_eval("baseline", "save").code == 0
    assert "is already stored" in project.ci_eval("baseline", "save").err
    assert project.ci_eval("run").code == 0
    shown = project.ci_eval("baseline", "show", "--json").json
    assert [run["suite"] for run in shown] == ["shop"]


def test_a_corrupt_baseline_is_an_error_and_stays_as_it_is(project):
    project.add("baseline: {store: file, path: base.json}\n")
    path = project.folder / "base.json"
    path.write_text('{"schema_version": 1, "runs": [\n')
    ended = project.ci_eval("run", "--baseline-save")

    assert ended.code == 6
    assert "base.json:2: is not JSON" in ended.err
    assert path.read_text() == '{"schema_version": 1, "runs": [\n'
    assert not (project.folder / "ci-eval-report" / "run.json").exists()


def test_a_run_with_an_invalid_configuration_leaves_no_report_of_an_earlier_run(project):
    assert project.ci_eval("run").code == 0
    project.add("colour: blue\n")

    assert project.ci_eval("run").code == 4

    left = {each.name for each in (project.folder / "ci-eval-report").iterdir()}
    assert left == {".gitignore", "run.json", "traces.jsonl"}  # for --failed and --resume


def test_without_a_baseline_there_is_nothing_to_save_or_show(project):
    project.ci_eval("run")

    for arguments in (["save"], ["show"], ["diff"]):
        ended = project.ci_eval("baseline", *arguments)
        assert ended.code == 4
        assert "has no baseline" in ended.err


def test_a_run_is_compared_with_the_baseline_or_with_another_run(project):
    project.add("baseline: {store: file}\n")
    project.ci_eval("run", "--baseline-save")
    shutil.copy(project.folder / "ci-eval-report/run.json", project.folder / "before.json")
    project.traces(GREETS, WRONG_REFUND, TRACKS)
    project.ci_eval("run")

    for ended in (
        project.ci_eval("baseline", "diff", "--json"),
        project.ci_eval("compare", "before.json", "ci-eval-report/run.json", "--json"),
    ):
        assert ended.code == 0
        (change,) = ended.json["changes"]
        assert (change["case"], change["change"]) == ("refunds", "newly_failing")
    assert "baseline" in project.ci_eval("baseline", "diff").out


# --- Resuming, recording, reporting -----------------------------------------------------------


def test_a_resumed_run_tries_only_what_is_missing(project):
    project.traces(GREETS, REFUNDS)
    assert project.ci_eval("run").code == 6
    # What was observed is not asked for again: the recording of it is gone.
    project.traces(TRACKS)
    ended = project.ci_eval("run", "--resume")

    assert ended.code == 0
    assert set(project.scores()) == {"greets", "refunds", "tracks"}


def test_a_resumed_run_tries_a_case_again_whose_content_changed(project):
    project.ci_eval("run")
    project.evalset(changed(GREETS, "Something else"), REFUNDS, TRACKS)
    project.traces(changed(GREETS, "Something else"))

    assert project.ci_eval("run", "--resume").code == 0


def test_a_journal_that_was_cut_off_is_resumed(project):
    project.ci_eval("run")
    path = project.folder / "ci-eval-report" / "traces.jsonl"
    path.write_bytes(path.read_bytes()[:-40])

    assert project.ci_eval("run", "--resume").code == 0
    assert len(path.read_text().splitlines()) == 3


def test_recorded_traces_give_the_same_scores(project):
    project.traces(GREETS, WRONG_REFUND, TRACKS)
    project.ci_eval("run", "--record", "again.jsonl")
    before = project.scores()
    project.config(project.folder.joinpath("ci-eval.yaml").read_text().replace("traces", "again"))

    assert project.ci_eval("run").code == 1
    assert project.scores() == before


def test_the_traces_of_a_run_can_be_scored_again(project):
    project.ci_eval("run")
    shutil.copy(project.folder / "ci-eval-report/traces.jsonl", project.folder / "traces.jsonl")

    assert project.ci_eval("run").code == 0


def test_a_stored_run_is_reported_again(project):
    project.traces(GREETS, WRONG_REFUND, TRACKS)
    project.ci_eval("run")
    comment = project.read("comment.md")
    for name in ("comment.md", "junit.xml"):
        (project.folder / "ci-eval-report" / name).unlink()

    assert project.ci_eval("report").code == 1
    assert project.read("comment.md") == comment
    assert project.ci_eval("report", "--out", "elsewhere", "--json").json["verdict"]["outcome"] == (
        "failed"
    )
    # `show` needs the run, which is where it was.
    assert "next: ci-eval show refunds\n" in project.ci_eval("report", "--out", "elsewhere").out
    (project.folder / "ci-eval-report").rename(project.folder / "kept")
    printed = project.ci_eval("report", "kept/run.json", "--out", "elsewhere").out
    assert "reports: elsewhere\nnext: ci-eval show refunds --out kept\n" in printed


def test_what_the_gate_leaves_out_is_not_listed_as_failing(project):
    lost = changed(TRACKS, "Order 9 is in Oslo.")
    project.traces(GREETS, WRONG_REFUND, lost)
    project.add("gate: {quarantine: [{case: refunds, owner: me, until: 2999-01-01}]}\n")
    ended = project.ci_eval("run")

    assert ended.code == 1
    assert "next: ci-eval show tracks\n" in ended.out
    assert "FAILED refunds" not in ended.out
    comment = project.read("comment.md")
    assert "1 of 3 cases passed · 1 failed · 1 quarantined\n" in comment
    top, heading, listed = comment.partition("#### 1 case failed")
    assert heading
    assert "tracks" in listed
    assert "refunds" not in listed.partition("<!-- ci-eval:more -->")[0]
    said = "- smoke/refunds did not pass or got worse; quarantined until 2999-01-01 (owner: me)\n"
    assert all(said in text for text in (top, project.read("summary.md"), ended.out))
    assert "1 below a threshold · 1 quarantined" in project.read("report.html")


def test_a_score_and_the_baseline_beside_it_are_of_the_same_cases(project):
    project.add("baseline: {store: file}\n")
    project.traces(GREETS, WRONG_REFUND, TRACKS)
    project.add("gate: {quarantine: [{case: refunds, owner: me, until: 2999-01-01}]}\n")
    project.ci_eval("run", "--baseline-save")
    ended = project.ci_eval("run")

    assert "tool_trajectory_avg_score  0.667  1.000      0.667     2/3\n" in ended.out
    row = "`tool_trajectory_avg_score` | 0.667 | ≥&nbsp;1 | 0.667 | ±0.000, unchanged |"
    assert row in project.read("comment.md")
    assert project.read("report.html").count('<td class="num">0.667</td>') == 2
    assert 'name="baseline.tool_trajectory_avg_score" value="0.66' in project.read("junit.xml")


@pytest.mark.parametrize("text", ["{}", "[]", '{"schema_version": 2}', "nonsense", ""])
def test_what_is_no_run_is_an_error(project, text):
    (project.folder / "run.json").write_text(text)
    ended = project.ci_eval("report", "run.json")

    assert ended.code == 4
    assert ended.err.startswith("run.json:1: ")


def test_a_report_may_have_options(project):
    project.traces(GREETS, WRONG_REFUND, TRACKS)
    project.ci_eval("run")
    assert 'file="smoke.evalset.json"' in project.read("junit.xml")
    project.add("reports: [{junit: {profile: strict}}]\n")

    for arguments in (["run"], ["report"]):
        project.ci_eval(*arguments)
        assert "file=" not in project.read("junit.xml")


# --- The other commands -----------------------------------------------------------------------


def test_a_plan_runs_nothing(project):
    ended = project.ci_eval("plan", "--json")

    assert ended.code == 0
    assert ended.json == {
        "suite": "shop",
        "trials": 3,
        "base_trials": 0,
        "most_trials": 3,
        "pairs": [
            {
                "agent": "bot",
                "evalset": "smoke",
                "cases": 3,
                "repeats": 1,
                "criteria": ["tool_trajectory_avg_score", "response_match_score"],
            }
        ],
        "judging": [],
        "quotas": [],
    }
    assert "3 trials" in project.ci_eval("plan").out
    assert not (project.folder / "ci-eval-report").exists()


def test_a_matrix_narrows_what_is_crossed(project):
    project.config(
        project.folder.joinpath("ci-eval.yaml").read_text()
        + "matrix: [{evalsets: [smoke], criteria: [response_match_score]}]\n"
    )
    (pair,) = project.ci_eval("plan", "--json").json["pairs"]

    assert pair["criteria"] == ["response_match_score"]


def test_validate_checks_what_is_there(project):
    ended = project.ci_eval("validate")

    assert ended.code == 0
    assert ended.out == "ci-eval.yaml: config, 3 cases: ok\n"


def test_with_json_stdout_holds_nothing_else_on_errors_too(project):
    project.config("agents: 3\n")

    for arguments in (["run", "--json"], ["plan", "--json"], ["baseline", "show", "--json"]):
        ended = project.ci_eval(*arguments)
        assert ended.code == 4
        assert ended.json["error"] == "ConfigError"
        assert ended.json["problems"][0]["file"] == "ci-eval.yaml"
    assert project.ci_eval("validate", "--json").json[0]["problems"]


def test_a_command_that_is_not_there_is_a_usage_error(project):
    assert project.ci_eval("evaluate").code == 4
    assert project.ci_eval("run", "--repeats", "0").code == 4
    assert project.ci_eval("run", "-c", "nowhere.yaml").code == 4


def test_help_and_version(project):
    assert "Exit codes" in project.ci_eval("--help").out
    assert project.ci_eval("--version").out.strip() == "0.1.0"


def test_an_errors_line_is_annotated_in_a_workflow(project, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    project.add("gates: {}\n")
    ended = project.ci_eval("run")

    assert ended.code == 4
    assert "ci-eval.yaml:10: gates: unknown key. Did you mean 'gate'?" in ended.err
    assert "::error file=ci-eval.yaml,line=10" in ended.out


def test_a_workflow_gets_its_outputs_summary_and_annotations(project, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.setenv(name, str(project.folder / name))
    project.traces(GREETS, WRONG_REFUND, TRACKS)
    ended = project.ci_eval("run")

    assert ended.code == 1
    assert "failed" in (project.folder / "GITHUB_OUTPUT").read_text()
    summary = (project.folder / "GITHUB_STEP_SUMMARY").read_text()
    assert summary.strip() == project.read("summary.md").strip()
    assert "::error file=smoke.evalset.json,line=" in ended.out


@pytest.mark.parametrize(
    ("config", "verdict", "code"),
    [("agents: 3\n", "usage-error", 4), (CONFIG, "nothing-selected", 5)],
)
def test_a_run_without_a_report_has_outputs_too(project, monkeypatch, config, verdict, code):
    monkeypatch.setenv("GITHUB_OUTPUT", str(project.folder / "outputs"))
    project.config(config)
    project.evalset()

    assert project.ci_eval("run").code == code
    assert f"\n{verdict}\n" in (project.folder / "outputs").read_text()


def test_a_folder_that_cannot_be_used_is_a_usage_error_to_later_steps(project, monkeypatch):
    monkeypatch.setenv("GITHUB_OUTPUT", str(project.folder / "outputs"))
    ended = project.ci_eval("run", "--out", "ci-eval.yaml")
    assert ended.code == 4
    assert "ci-eval.yaml: is a file; name a folder" in ended.err
    assert "\nusage-error\n" in (project.folder / "outputs").read_text()


def test_a_run_from_elsewhere_names_files_so_that_they_are_found(project, monkeypatch):
    """Messages as seen from here; annotations and reports from the top of the repository."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    git_init(project.folder)
    inner = project.folder / "agents" / "shop"
    inner.mkdir(parents=True)
    for name in ("ci-eval.yaml", "smoke.evalset.json"):
        (project.folder / name).rename(inner / name)
    project.traces(GREETS, WRONG_REFUND, TRACKS)
    (project.folder / "traces.jsonl").rename(inner / "traces.jsonl")
    monkeypatch.chdir(project.folder / "agents")
    ended = project.ci_eval("run", "-c", "shop/ci-eval.yaml")

    assert ended.code == 1
    assert "::error file=agents/shop/smoke.evalset.json,line=" in ended.out
    comment = project.folder / "agents/ci-eval-report/comment.md"
    assert "`ci-eval run --case refunds -c shop/ci-eval.yaml`" in comment.read_text()

    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
    monkeypatch.setenv("GITHUB_RUN_ID", "1")
    project.ci_eval("run", "-c", "shop/ci-eval.yaml")
    assert "`ci-eval run --case refunds -c agents/shop/ci-eval.yaml`" in comment.read_text()

    (inner / "smoke.evalset.json").write_text("[1]")
    ended = project.ci_eval("run", "-c", "shop/ci-eval.yaml")
    assert ended.code == 4
    assert ended.err.startswith("shop/smoke.evalset.json:1: ")


# --- Hostile content --------------------------------------------------------------------------


def test_whatever_an_agent_says_stays_data(project):
    hostile = "\x1b[31m@octocat <script>alert(1)</script> ![x](http://evil/) | `x`\n::error::no"
    trace = changed(GREETS, hostile, ("steal", {"a": hostile}))
    project.traces(trace, REFUNDS, TRACKS)
    ended = project.ci_eval("run")

    assert ended.code == 1
    assert "\x1b" not in ended.err + project.read("comment.md") + project.read("junit.xml")
    shown = cmarkgfm.github_flavored_markdown_to_html(project.read("comment.md"))
    assert not any(tag in shown for tag in ("<script", "<img", "<a "))
    assert json.loads(project.read("report.json"))["verdict"]["outcome"] == "failed"


@pytest.mark.parametrize(
    "given", [["--out", "ci-eval.yaml/x"], ["--record", "nowhere/traces.jsonl"]]
)
def test_what_cannot_be_written_is_the_users_to_mend(project, given):
    ended = project.ci_eval("run", *given)

    assert ended.code == 4
    assert "cannot be accessed: " in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    "written",
    ["ci_eval.run_files.run_file.result_line", "ci_eval.run_files.journal.Journal._append"],
)
def test_a_disk_that_fills_during_a_run_is_the_machines_matter(project, monkeypatch, written):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(written, full)
    ended = project.ci_eval("run")

    assert ended.code == 6
    assert "out of system resources: No space left on device\n" in ended.err


def test_a_folder_is_no_place_for_a_recording(project):
    ended = project.ci_eval("run", "--record", ".")

    assert (ended.code, ended.err.splitlines()[0]) == (4, ".: is not a file")
    assert not (project.folder / "ci-eval-report/traces.jsonl").exists()


def test_a_link_to_a_recording_stays_a_link(project):
    link = project.folder / "tape.jsonl"
    link.symlink_to("tapes.jsonl")

    assert project.ci_eval("run", "--record", "tape.jsonl").code == 0
    assert link.is_symlink()
    assert (project.folder / "tapes.jsonl").stat().st_size


def test_no_document_is_written_through_a_link(project, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "precious"
    outside.write_text("precious")
    report = project.folder / "ci-eval-report"
    report.mkdir()
    for name in ("run.json", "report.json", "junit.xml", "comment.md", "traces.jsonl"):
        (report / name).symlink_to(outside)

    assert project.ci_eval("run").code == 0
    assert outside.read_text() == "precious"
    assert project.scores()


def test_half_a_character_is_no_text(project):
    project.traces(changed(GREETS, "\ud800"), REFUNDS, TRACKS)
    ended = project.ci_eval("run")

    assert ended.code == 4
    assert "traces.jsonl:1: \\ud800 is an unpaired surrogate (half a character)" in ended.err


@pytest.mark.parametrize(
    ("link", "arguments"),
    [
        ("ci-eval-report", []),
        ("out", ["--out", "out/report"]),
        ("record.jsonl", ["--record", "record.jsonl"]),
        ("records", ["--record", "records/new.jsonl"]),
        ("results", ["--adk-results", "results"]),
        (".ci-eval", []),
        (".ci-eval/cache", []),
        (".ci-eval/setup", []),
    ],
)
def test_nothing_is_written_where_a_link_leads_out_of_the_repository(
    project, tmp_path_factory, link, arguments
):
    git_init(project.folder)
    outside = tmp_path_factory.mktemp("outside")
    (project.folder / link).parent.mkdir(exist_ok=True)
    (project.folder / link).symlink_to(outside)
    ended = project.ci_eval("run", *arguments)

    assert ended.code == 4
    assert f"{arguments[1] if arguments else link}: is a symlink out" in ended.err
    assert list(outside.iterdir()) == []


def test_reports_of_a_stored_run_are_not_written_where_a_link_leads_out(project, tmp_path_factory):
    git_init(project.folder)
    project.ci_eval("run")
    outside = tmp_path_factory.mktemp("outside")
    (project.folder / "elsewhere").symlink_to(outside)
    ended = project.ci_eval("report", "--out", "elsewhere")

    assert ended.code == 4
    assert "elsewhere: is a symlink out of the repository" in ended.err
    assert list(outside.iterdir()) == []


def test_an_evalset_behind_a_link_out_of_the_repository_is_not_read(project, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "secret.json"
    outside.write_text("[]")
    (project.folder / "smoke.evalset.json").unlink()
    (project.folder / "smoke.evalset.json").symlink_to(outside)
    ended = project.ci_eval("run")

    assert ended.code == 4
    assert "smoke.evalset.json: is a symlink out of the repository" in ended.err


def test_a_message_that_is_more_than_text_is_a_conversation_too(project):
    image = {"role": "user", "parts": [{"inline_data": {"data": "aGk=", "mime_type": "image/png"}}]}
    seen = {"user_content": image, "final_response": content("A cat.", "model")}
    project.evalset(case("looks", seen))
    project.traces(case("looks", {**seen, "intermediate_data": {"tool_uses": []}}))

    assert project.ci_eval("run").code == 0


def test_results_come_in_the_order_of_the_configuration_whichever_ends_first(project):
    """The first agent is the slower one."""
    (project.folder / "bots.py").write_text(
        "import os, time\ndef slow(message):\n"
        "    while not os.path.exists('quick'): time.sleep(0.01)\n    return message\n"
        "def quick(message):\n    open('quick', 'w').close()\n    return message\n"
    )
    (project.folder / "e.yaml").write_text("[{id: a, prompt: x, expected: x}]")
    (project.folder / "ci-eval.yaml").write_text(
        "agents: {slow: {python: 'bots:slow'}, quick: {python: 'bots:quick'}}\n"
        "evalsets: {e: e.yaml}\ncriteria: {ci/exact_match: 1}\n"
    )

    assert project.ci_eval("run").code == 0
    agents = [result["key"]["agent"] for result in project.run_json()["results"]]
    report = json.loads((project.folder / "ci-eval-report/report.json").read_text())
    assert agents == ["slow", "quick"]
    assert [each["group"]["agent"] for each in report["groups"]] == ["slow", "quick"]


def test_the_time_of_agents_that_were_recorded_is_the_recorded_one(project):
    said = {"parts": [{"text": "x"}]}
    turn = {"user_content": said, "final_response": said, "duration": 2.5}
    (project.folder / "t.jsonl").write_text(
        json.dumps({"eval_id": "a", "invocations": [turn]}) + "\n"
    )
    (project.folder / "e.yaml").write_text("[{id: a, prompt: x, expected: x}]")
    (project.folder / "ci-eval.yaml").write_text(
        "agents: {bot: {recorded: t.jsonl}}\nevalsets: {e: e.yaml}\ncriteria: {ci/exact_match: 1}\n"
    )

    assert project.ci_eval("run").code == 0
    assert [each["duration_s"] for each in project.run_json()["results"]] == [2.5]


@pytest.mark.parametrize("option", ["-x", "--maxfail=1"])
def test_no_trial_begins_after_enough_did_not_pass(project, option):
    cases = [{**REFUNDS, "eval_id": f"refunds{number}"} for number in range(200)]
    project.evalset(*cases)
    project.traces(*({**changed(each, "No."), "eval_id": each["eval_id"]} for each in cases))
    ended = project.ci_eval("run", option)

    assert ended.code == 1
    count = len(project.run_json()["results"])
    assert 1 <= count < 200
    assert f"- stopped after {count} trial" in ended.out
    assert project.run_json()["meta"]["filtered"]


def test_where_enough_pass_all_trials_run(project):
    ended = project.ci_eval("run", "-x")

    assert ended.code == 0
    assert len(project.run_json()["results"]) == 3
    assert "stopped" not in ended.err


def test_failed_cases_alone_run_again_under_either_name(project):
    project.traces(GREETS, changed(REFUNDS, "No."), TRACKS)
    for option in ("--failed", "--last-failed"):
        project.ci_eval("run")
        project.ci_eval("run", option)
        assert [each["key"]["case"] for each in project.run_json()["results"]] == ["refunds"]
