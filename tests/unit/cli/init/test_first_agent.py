"""Which agent is offered first, and which evalsets are its own."""

import json
import os

from support.project import GREETS, REFUNDS, TRACKS

from ci_eval.cli.init.first_agent import Candidate, candidates
from ci_eval.cli.init.repository_survey import Survey
from ci_eval.runtime.context import RunContext

AGENT = "root_agent = 1\n"


def evalset(*cases):
    return {"eval_set_id": "s", "eval_cases": list(cases)}


def lines(*cases, **more):
    return "".join(
        json.dumps({"eval_id": each["eval_id"], "invocations": each["conversation"], **more}) + "\n"
        for each in cases
    )


def result(each, *, failed=False):
    turns = [
        {"actual_invocation": turn, "expected_invocation": turn} for turn in each["conversation"]
    ]
    observed = [] if failed else turns
    entry = {"eval_id": each["eval_id"], "eval_metric_result_per_invocation": observed}
    return {"eval_set_result_id": "r", "eval_case_results": [entry]}


def offered(found: Survey, context: RunContext) -> list[Candidate]:
    return list(candidates(found, context))


def test_a_recording_comes_before_an_agent_of_adk_and_that_before_a_function(repository, context):
    found = repository(
        {
            "a.evalset.json": evalset(GREETS),
            "traces.jsonl": lines(GREETS),
            "shop/agent.py": AGENT,
            "bot.py": "def answer(message): ...",
        }
    )

    kinds = [(each.recording, each.source and each.source.kind) for each in offered(found, context)]

    assert kinds == [("traces.jsonl", None), (None, "adk"), (None, "python"), (None, None)]


def test_a_recording_is_offered_with_the_evalsets_it_holds_as_a_whole(repository, context):
    found = repository(
        {
            "a.evalset.json": evalset(GREETS, REFUNDS),
            "b.evalset.json": evalset(GREETS, TRACKS),
            "traces.jsonl": lines(GREETS, REFUNDS),
        }
    )

    first = offered(found, context)[0]

    assert first.evalsets == ("a.evalset.json",)
    assert first.left_out == ("b.evalset.json: the recording contains 1 of its 2 cases",)


def test_a_recording_that_holds_no_evalset_as_a_whole_is_not_offered(repository, context):
    found = repository({"a.evalset.json": evalset(GREETS, TRACKS), "t.jsonl": lines(GREETS)})

    assert [each.recording for each in offered(found, context)] == [None]


def test_a_recording_in_which_the_agent_failed_is_not_offered(repository, context):
    failed = json.dumps({"eval_id": "greets", "error": "it crashed"}) + "\n"
    found = repository({"a.evalset.json": evalset(GREETS), "t.jsonl": failed})

    assert [each.recording for each in offered(found, context)] == [None]


def test_a_recording_of_another_evalset_is_not_offered(repository, context):
    traces = lines(GREETS, evalset="other")
    found = repository({"a.evalset.json": evalset(GREETS), "t.jsonl": traces})

    assert [each.recording for each in offered(found, context)] == [None]


def test_a_recording_that_is_broken_is_not_offered(repository, context):
    broken = lines(GREETS) + "{\n"
    found = repository({"a.evalset.json": evalset(GREETS), "t.jsonl": broken})

    assert [each.recording for each in offered(found, context)] == [None]


def test_of_equal_recordings_the_newest_comes_first(repository, context, tmp_path):
    files = {
        "a.evalset.json": evalset(GREETS),
        "new.jsonl": lines(GREETS),
        "old.jsonl": lines(GREETS),
    }
    found = repository(files)
    os.utime(tmp_path / "old.jsonl", (1, 1))

    assert [each.recording for each in offered(repository({}), context)][:2] == [
        "new.jsonl",
        "old.jsonl",
    ]
    assert found.root == tmp_path


def test_results_of_adk_of_one_case_each_are_gathered_the_newest_of_each(
    repository, context, tmp_path
):
    history = "shop/.adk/eval_history"
    old = {**GREETS, "conversation": REFUNDS["conversation"]}
    repository(
        {
            "a.evalset.json": evalset(GREETS, TRACKS),
            f"{history}/1.evalset_result.json": result(old),
            f"{history}/2.evalset_result.json": result(GREETS),
            f"{history}/3.evalset_result.json": result(TRACKS),
            f"{history}/4.evalset_result.json": result(TRACKS, failed=True),
        }
    )
    for number in (1, 2, 3, 4):
        os.utime(tmp_path / f"{history}/{number}.evalset_result.json", (number, number))

    first = offered(repository({}), context)[0]

    assert (first.recording, first.evalsets) == ("traces/shop.jsonl", ("a.evalset.json",))
    said = {each.eval_id: (each.invocations or ())[0].user for each in first.gathered}
    assert said == {"tracks": "Where is 9?", "greets": "Hello"}


def test_evalsets_belong_to_the_agent_that_lies_nearest(repository, context):
    found = repository(
        {
            "agents/shop/agent.py": AGENT,
            "agents/desk/agent.py": AGENT,
            "agents/desk/tests/d.test.json": evalset(GREETS),
            "agents/shop/s.test.json": evalset(GREETS),
            "evals/both.evalset.json": evalset(GREETS),
        }
    )

    desk, shop, _ = offered(found, context)

    assert desk.evalsets == ("agents/desk/tests/d.test.json", "evals/both.evalset.json")
    assert shop.evalsets == ("agents/shop/s.test.json", "evals/both.evalset.json")
    assert desk.left_out == ("agents/shop/s.test.json: belongs to the agent in agents/shop",)


def test_an_agent_with_evalsets_comes_before_one_without(repository, context):
    files = {"a/agent.py": AGENT, "b/agent.py": AGENT, "b/b.evalset.json": evalset(GREETS)}

    first, second, _ = offered(repository(files), context)

    assert (first.evalsets, second.evalsets) == (("b/b.evalset.json",), ())
