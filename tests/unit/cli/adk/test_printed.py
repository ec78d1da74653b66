"""`ci-eval adk` prints and leaves what `adk eval` of ADK 2.13.0 does."""

import re

from support.adk_command import LEFT, PRINTED, blocks, head, without

CRITERIA = "Using evaluation criteria: criteria="
DEFAULTS = "{'tool_trajectory_avg_score': 1.0, 'response_match_score': 0.8}"
BY_CASE = {each["eval_id"]: each for each in LEFT["eval_case_results"]}


def test_every_case_is_printed_as_adk_prints_it(shop):
    ended = shop.adk("agents/shop", "smoke", "--print_detailed_results")

    assert blocks(ended.out) == blocks(PRINTED)
    assert head(ended.out) == head(PRINTED)
    assert head(PRINTED)[0] == CRITERIA + DEFAULTS
    assert ended.code == 1


def test_cases_come_in_the_order_of_the_file(shop):
    ended = shop.adk("agents/shop", "smoke", "--print_detailed_results")

    assert list(blocks(ended.out)) == ["greets", "tracks", "both", "long"]


def test_without_details_only_the_counts_are_printed(shop):
    ended = shop.adk("agents/shop", "agents/shop/smoke.evalset.json")

    assert ended.out.splitlines()[1:] == [
        "*" * 69,
        "Eval Run Summary",
        "smoke:",
        "  Tests passed: 2",
        "  Tests failed: 2",
    ]


def test_every_case_is_left_as_adk_leaves_it(shop):
    shop.adk("agents/shop", "smoke")

    (left,) = shop.left()
    # ADK names options that are not set, and sessions that are its own.
    own = ("include_intermediate_responses_in_final", "session_id", "session_details", "user_id")
    ours = {each["eval_id"]: without(each, *own) for each in left["eval_case_results"]}
    assert ours == {name: without(each, *own) for name, each in BY_CASE.items()}
    assert list(ours) == ["greets", "tracks", "both", "long"]


def test_a_result_is_called_as_adk_calls_it(shop):
    shop.adk("agents/shop", "smoke")

    (left,) = shop.left()
    (path,) = (shop.agent / ".adk/eval_history").iterdir()
    assert re.fullmatch(r"shop_smoke_\d+\.\d+", left["eval_set_result_id"])
    assert left["eval_set_result_name"] == left["eval_set_result_id"]
    assert path.name == f"{left['eval_set_result_id']}.evalset_result.json"
    assert left["eval_set_result_id"] == f"shop_smoke_{left['creation_timestamp']}"
    assert left["eval_set_id"] == "smoke"


def test_a_session_is_the_one_that_the_case_names(shop):
    shop.adk("agents/shop", "smoke")

    cases = {each["eval_id"]: each for each in shop.left()[0]["eval_case_results"]}
    assert cases["tracks"]["user_id"] == "someone"
    greets = cases["greets"]
    assert (greets["user_id"], greets["session_id"][:17]) == ("test_user_id", "adk-eval-session-")
    session = greets["session_details"]
    assert (session["id"], session["user_id"]) == (greets["session_id"], "test_user_id")
    assert [each["author"] for each in session["events"]] == ["user", "shop"]
    assert session["events"][1]["content"]["parts"][0]["text"]


def test_a_case_that_could_not_be_observed_has_failed_and_was_not_evaluated(shop):
    shop.traces([])

    ended = shop.adk("agents/shop", "smoke:greets,tracks", "--print_detailed_results")

    assert ended.code == 6
    assert "  Tests passed: 0\n  Tests failed: 2\n" in ended.out
    assert ended.out.count("Overall Eval Status: NOT_EVALUATED\n") == 2
    assert "not_recorded" in ended.err
    (left,) = shop.left()
    assert [each["final_eval_status"] for each in left["eval_case_results"]] == [3, 3]
    assert left["eval_case_results"][0]["overall_eval_metric_results"] == []
    assert left["eval_case_results"][0]["eval_metric_result_per_invocation"] == []
