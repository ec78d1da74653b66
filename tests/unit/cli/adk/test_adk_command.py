"""`ci-eval adk` and `run --adk-results`, on an agent that is a recording."""

import json

import pytest
from support.adk_command import LEFT, observed
from support.git_repositories import git_init
from support.project import GREETS, TRACKS, changed

from ci_eval.records.errors import ExitCode

HISTORY = "agents/shop/.adk/eval_history"


def evalset(name: str, *cases):
    return {"eval_set_id": name, "eval_cases": list(cases)}


def twice(shop) -> None:
    """Let the agent do the same in two repeats."""
    rows = [(each["eval_id"], observed(each)) for each in LEFT["eval_case_results"]]
    shop.traces(rows + rows)


def only(shop, *cases) -> None:
    """Let the agent do just what these cases expect."""
    shop.traces([(each["eval_id"], each["conversation"]) for each in cases])


def test_where_all_pass_the_code_says_so(shop):
    ended = shop.adk("agents/shop", "smoke:greets,tracks")

    assert ended.code == ExitCode.PASSED
    assert ended.out.endswith("smoke:\n  Tests passed: 2\n  Tests failed: 0\n")
    assert "reports: ci-eval-report" in ended.err


LED = {
    "eval_id": "leads",
    "conversation_scenario": {"starting_prompt": "Hi", "conversation_plan": "Be kind."},
}


@pytest.mark.parametrize(
    ("other", "seen"),
    [(LED, GREETS["conversation"]), ({"eval_id": "empty", "conversation": []}, [])],
)
def test_a_case_that_nothing_can_judge_has_failed_as_in_adk(shop, other, seen):
    shop.write("evals/a.json", evalset("a", GREETS, other))
    shop.traces([("greets", GREETS["conversation"]), (other["eval_id"], seen)])

    ended = shop.adk("agents/shop", "evals/a.json")

    assert ended.code == ExitCode.FAILED
    assert ended.out.endswith("a:\n  Tests passed: 1\n  Tests failed: 1\n")
    assert f"no blocking criterion judged 1 case: a/{other['eval_id']}" in ended.err


def test_where_nothing_at_all_can_be_judged_all_have_failed_as_in_adk(shop):
    shop.write("evals/a.json", evalset("a", LED))
    shop.traces([("leads", GREETS["conversation"])])

    ended = shop.adk("agents/shop", "evals/a.json")

    assert ended.code == ExitCode.FAILED
    assert ended.out.endswith("a:\n  Tests passed: 0\n  Tests failed: 1\n")


def test_an_evalset_without_cases_changes_nothing_as_in_adk(shop):
    shop.write("evals/a.json", evalset("a", GREETS))
    shop.write("evals/b.json", evalset("b"))
    only(shop, GREETS)

    assert shop.adk("agents/shop", "evals/a.json", "evals/b.json").code == ExitCode.PASSED


def test_our_reports_are_written_too(shop):
    shop.adk("agents/shop", "smoke:greets", "--out", "mine", "--record", "again.jsonl")

    run = json.loads((shop.folder / "mine/run.json").read_text())
    assert run["meta"]["agents"] == ["shop"]
    assert [each["key"]["case"] for each in run["results"]] == ["greets"]
    assert (shop.folder / "mine/comment.md").exists()
    assert json.loads((shop.folder / "again.jsonl").read_text())["eval_id"] == "greets"


def test_several_evalsets_are_counted_and_left_one_by_one(shop):
    shop.write("evals/a.json", evalset("first", GREETS))
    shop.write("evals/b.json", evalset("second", TRACKS))
    only(shop, GREETS, changed(TRACKS, "Hello!"))

    ended = shop.adk("agents/shop", "evals/a.json", "evals/b.json")

    assert ended.code == ExitCode.FAILED
    _, summary = ended.out.split("Eval Run Summary\n")
    assert summary == (
        "first:\n  Tests passed: 1\n  Tests failed: 0\n"
        "second:\n  Tests passed: 0\n  Tests failed: 1\n"
    )
    assert [each["eval_set_id"] for each in shop.left()] == ["first", "second"]


def test_two_evalsets_of_one_id_are_refused(shop):
    for name in "ab":
        shop.write(f"evals/{name}.json", evalset("same", GREETS))

    ended = shop.adk("agents/shop", "evals/a.json", "evals/b.json")

    assert ended.code == ExitCode.USAGE_ERROR
    assert ended.err.startswith("evals/b.json: has the same id 'same' as evals/a.json\nCE")


def test_an_evalset_that_is_given_by_id_keeps_that_id(shop):
    shop.write("agents/shop/copy.evalset.json", evalset("smoke", GREETS))
    only(shop, GREETS)

    ended = shop.adk("agents/shop", "copy", "smoke:greets")

    assert "copy:\n  Tests passed: 1\n" in ended.out
    assert [each["eval_set_id"] for each in shop.left()] == ["copy", "smoke"]
    as_file = shop.adk("agents/shop", "agents/shop/copy.evalset.json")
    assert "smoke:\n  Tests passed: 1\n" in as_file.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "smoke"], "Directory 'nowhere' does not exist"),
        (["agents/shop", "smoke:nope"], "has no case 'nope'"),
        (["agents/shop"], "no evalset given; nothing was run"),
        (["agents/shop", "smoke", "--eval_storage_uri", "s3://b"], "Supported URIs: gs://"),
        (["agents/shop", "smoke", "--log_level", "loud"], "'loud' is not one of"),
        (["agents/shop", "smoke", "--config_file_path", "x.json"], "x.json cannot be read"),
        (
            ["agents/shop", "agents/shop/agent.py"],
            "agent.py is Python, which this command does not run",
        ),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_left(shop, arguments, message):
    ended = shop.adk(*arguments)

    assert ended.code == ExitCode.USAGE_ERROR
    assert message in ended.err
    assert "Traceback" not in ended.err
    assert not (shop.folder / HISTORY).exists()


def test_options_are_spelt_as_adk_spells_them_or_as_others_are(shop):
    config = shop.folder / "c.json"
    config.write_text('{"criteria": {"response_match_score": 0.1}}')

    for option in ("--config_file_path=c.json", "--config-file-path=c.json"):
        ended = shop.adk("agents/shop", "smoke:greets", option)

        assert ended.out.splitlines()[0] == (
            "Using evaluation criteria: criteria={'response_match_score': 0.1}"
        )


def test_options_of_criteria_are_told(shop):
    criteria = {"tool_trajectory_avg_score": {"threshold": 0.5, "matchType": "IN_ORDER"}}
    shop.write("c.json", {"criteria": criteria})

    ended = shop.adk("agents/shop", "smoke:greets", "--config_file_path", "c.json")

    assert ended.out.splitlines()[0] == (
        "Using evaluation criteria: criteria="
        "{'tool_trajectory_avg_score': {'threshold': 0.5, 'match_type': 'IN_ORDER'}}"
    )


def test_a_workflow_learns_the_verdict(shop, monkeypatch):
    outputs = shop.folder / "outputs"
    outputs.write_text("")
    monkeypatch.setenv("GITHUB_OUTPUT", str(outputs))

    shop.adk("agents/shop", "smoke:greets")
    shop.adk("agents/shop", "gone")

    assert outputs.read_text().count("verdict") == 2
    assert "usage-error" in outputs.read_text()


def test_nothing_is_left_outside_of_the_repository(shop, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    git_init(shop.folder)
    (shop.agent / ".adk").symlink_to(outside)

    ended = shop.adk("agents/shop", "smoke:greets")

    assert ended.code == ExitCode.USAGE_ERROR
    assert "symlink out of the repository" in ended.err
    assert list(outside.iterdir()) == []


def test_an_id_becomes_no_path(shop):
    shop.write("evals/a.json", evalset("../../x\\y\n" + "z" * 300, GREETS))
    only(shop, GREETS)

    ended = shop.adk("agents/shop", "evals/a.json")

    assert ended.code == ExitCode.PASSED
    (path,) = (shop.folder / HISTORY).iterdir()
    assert path.name.startswith("shop_.._.._x_y_zzz")
    assert len(path.name) < 255


CONFIG = """\
version: 1
agents:
  one: {recorded: traces.jsonl}
  two: {recorded: traces.jsonl}
evalsets: {smoke: agents/shop/smoke.evalset.json}
criteria: {response_match_score: 0.8, ci/regex: {pattern: Order, threshold: 1.0}}
run: {repeats: 2}
"""


def test_a_run_leaves_results_of_each_agent_where_it_is_asked_to(shop):
    twice(shop)
    (shop.folder / "ci-eval.yaml").write_text(CONFIG)

    ended = shop.ci_eval("run", "--adk-results", "shown")

    assert ended.code == ExitCode.FAILED
    for agent in ("one", "two"):
        (left,) = shop.left(f"shown/{agent}/.adk/eval_history")
        assert f"results: shown/{agent}/.adk/eval_history/{agent}_smoke_" in ended.err
        assert left["eval_set_id"] == "smoke"
        ids = [each["eval_id"] for each in left["eval_case_results"]]
        assert ids == [name for name in ("greets", "tracks", "both", "long") for _ in "ab"]
        metrics = left["eval_case_results"][0]["overall_eval_metric_results"]
        assert [each["metric_name"] for each in metrics] == ["response_match_score", "ci/regex"]
    assert not (shop.folder / HISTORY).exists()


def test_results_that_a_run_left_can_be_replayed(shop):
    twice(shop)
    (shop.folder / "ci-eval.yaml").write_text(CONFIG)
    shop.ci_eval("run", "--adk-results", "shown")
    (path,) = (shop.folder / "shown/one/.adk/eval_history").iterdir()
    again = CONFIG.replace("traces.jsonl", str(path))
    (shop.folder / "ci-eval.yaml").write_text(again)

    ended = shop.ci_eval("run", "--out", "again")

    assert ended.code == ExitCode.FAILED
    first, second = (
        json.loads((shop.folder / out / "run.json").read_text())["results"]
        for out in ("ci-eval-report", "again")
    )
    assert [each["scores"] for each in first] == [each["scores"] for each in second]
    assert len(first) == 2 * 2 * len(LEFT["eval_case_results"])
