"""Suites in git whose agents are replayed: both arms, changed cassettes, resumed runs."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from servers.loopback import as_json
from servers.models import Models
from servers.openai import completion
from support.agent_sessions import waits_for
from support.git_repositories import ENV
from support.git_suites import Suite
from support.model_projects import CHAT, PYTHON, SERVER
from support.slow_params import some

pytestmark = pytest.mark.processes
CONFIG = """\
name: shop
agents: {bot: {python: "bot:answer", models: {mode: auto, cassette: models.jsonl}}}
evalsets: {smoke: evals/smoke.csv}
criteria: {response_match_score: 0.1}
run: {concurrency: 1}
"""
COMPARED = CONFIG + "baseline: {store: merge_base}\n"
CHANGED = CHAT + "\n\ndef answer(message):\n    return ask(message + '!')\n"


def evalset(count: int) -> str:
    return "id,prompt,expected\n" + "".join(
        f"c{n},question {n},question {n}\n" for n in range(count)
    )


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path / "shop")


def begin(suite: Suite, models: Models, config: str, *, agent: str = PYTHON) -> None:
    """Commit an agent with its cassette, and begin a branch."""
    ignored = "ci-eval-report\n.ci-eval\n__pycache__\n"
    files = {"bot.py": agent, "ci-eval.yaml": config, ".gitignore": ignored}
    suite.commit("agent", **{**files, "evals/smoke.csv": evalset(3)})
    suite.ci_eval("run", "--models", "record", **models.environment())
    suite.commit("cassette")
    suite.git("checkout", "--quiet", "-b", "change")


@pytest.mark.slow
def test_each_arm_is_replayed_from_its_own_cassette(suite: Suite, models: Models):
    begin(suite, models, COMPARED)
    (suite.folder / "bot.py").write_text(CHANGED)
    suite.ci_eval("run", "--models", "record", **models.environment())
    suite.commit("change")
    asked = len(models.requests)

    ended = suite.ci_eval("run", "--models", "replay")

    assert ended.code == 0, ended.err
    assert len(models.requests) == asked
    base = json.loads(suite.base_run.read_text())["results"]
    assert [each.get("error") for each in base] == [None] * 3
    assert suite.report()["comparison"]["base_trials"] == 3
    comment = (suite.folder / "ci-eval-report/comment.md").read_text()
    first = comment.partition("| Criterion")[0]
    assert "agent bot: its model cassette models.jsonl is part of this change" in first
    # The merge base is the baseline, also for costs.
    metered = suite.report()["metered"]
    assert (metered["trials"], metered["baseline_trials"]) == (3, 3)
    assert metered["baseline"]["calls"] == metered["baseline"]["replayed"] == 3


@pytest.mark.slow
@pytest.mark.parametrize("mode", some(["replay", "auto"], 1))  # there is no key
def test_code_that_breaks_what_both_arms_replay_is_blocked(suite: Suite, models: Models, mode: str):
    begin(suite, models, COMPARED)
    broken = CHAT + "\n\ndef answer(message):\n    return ask(message) and 'crashed'\n"
    suite.commit("change", **{"bot.py": broken})
    asked = len(models.requests)

    ended = suite.ci_eval("run", "--models", mode)

    assert ended.code == 1, ended.out
    assert "worse than the merge base in the same job" in ended.out
    assert len(models.requests) == asked


@pytest.mark.slow
def test_code_that_breaks_what_was_recorded_anew_is_not_proven_by_replays(
    suite: Suite, models: Models
):
    begin(suite, models, COMPARED)
    broken = CHANGED.replace("+ '!')", "+ '!') and 'crashed'")
    (suite.folder / "bot.py").write_text(broken)
    suite.ci_eval("run", "--models", "record", **models.environment())
    suite.commit("change")

    ended = suite.ci_eval("run", "--models", "replay")

    # All of three cases broke, but each was recorded once in each arm.
    assert ended.code == 6, ended.out
    assert suite.report()["comparison"]["base_trials"] == 3


@pytest.mark.slow
def test_a_change_without_a_new_cassette_has_no_verdict(suite: Suite, models: Models):
    begin(suite, models, COMPARED)
    suite.commit("change", **{"bot.py": CHANGED})

    ended = suite.ci_eval("run", "--models", "replay")

    assert ended.code == 6
    assert "this request is not recorded" in ended.out
    assert "part of this change" not in (suite.folder / "ci-eval-report/comment.md").read_text()


@pytest.mark.slow
def test_patterns_that_are_added_are_told(suite: Suite, models: Models):
    begin(suite, models, COMPARED)
    suite.commit("ignore", **{"ci-eval.yaml": COMPARED.replace("auto,", "auto, ignore: ['.*'],")})

    suite.ci_eval("run", "--models", "replay")

    comment = (suite.folder / "ci-eval-report/comment.md").read_text()
    assert "agent bot: models.ignore" in comment.partition("| Criterion")[0]


TWICE = CHAT + (
    "\n\ndef answer(message):\n"
    "    first = ask(message)\n"
    "    return ask(message) + ' after ' + first\n"
)


def kill_while_recording(suite: Suite, models: Models, *, calls: int) -> None:
    """Record, and kill the run while it waits for the answer to a call."""
    delays = (*[0] * (calls - 1), 600)
    answers = [completion(f"question {number}") for number in range(calls)]
    models.script += map(lambda body, delay: as_json(body, delay_s=delay), answers, delays)
    variables = {**ENV, "PATH": os.environ["PATH"], **models.environment()}
    command = [sys.executable, "-m", "ci_eval", "run", "--models", "record"]
    with subprocess.Popen(
        command,
        cwd=suite.folder,
        env=variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as child:
        assert waits_for(lambda: len(models.requests) == calls)
        os.killpg(child.pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_killed_recording_is_resumed_without_asking_twice(suite: Suite, models: Models):
    files = {"bot.py": PYTHON, "ci-eval.yaml": CONFIG, "evals/smoke.csv": evalset(5)}
    suite.commit("agent", **files)
    kill_while_recording(suite, models, calls=3)

    ended = suite.ci_eval("run", "--models", "record", "--resume", **models.environment())

    assert ended.code == 0, ended.err
    assert "reused 2 trials" in ended.err
    assert len(models.requests) == 6  # the third had no answer
    assert suite.ci_eval("run", "--models", "replay").code == 0
    assert suite.ci_eval("models", "check").code == 0


@pytest.mark.slow
def test_a_conversation_that_was_killed_is_held_again_with_its_recorded_answers(
    suite: Suite, models: Models
):
    suite.commit(
        "agent", **{"bot.py": TWICE, "ci-eval.yaml": CONFIG, "evals/smoke.csv": evalset(2)}
    )
    kill_while_recording(suite, models, calls=4)

    ended = suite.ci_eval("run", "--models", "record", "--resume", **models.environment())

    assert ended.code == 0, ended.err
    assert len(models.requests) == 5  # the fourth had no answer
    traces = suite.folder / "ci-eval-report/traces.jsonl"
    assert '"question 1 #1 after question 2"' in traces.read_text()
    assert suite.ci_eval("run", "--models", "replay").code == 0
    assert '"question 1 #1 after question 2"' in traces.read_text()


@pytest.mark.slow
def test_a_recording_that_is_not_resumed_begins_anew(suite: Suite, models: Models):
    suite.commit(
        "agent", **{"bot.py": TWICE, "ci-eval.yaml": CONFIG, "evals/smoke.csv": evalset(2)}
    )
    kill_while_recording(suite, models, calls=4)

    assert suite.ci_eval("run", "--models", "record", **models.environment()).code == 0
    assert len(models.requests) == 8


WAITS = (
    CHAT
    + """

def answer(message, history, session):
    if not isinstance(message, str):
        return ask("Say that it is approved.")
    return {"response": ask(message), "waits_for": [{"name": "approve"}]}
"""
)
TALKS = """\
{"name": "smoke", "cases": [{"id": "c0", "turns": [{"prompt": "Refund it."}], "human_answers": {},
  "rerun_on_resume": true}]}
"""


@pytest.mark.slow
def test_a_recording_that_waited_for_a_human_is_resumed_without_asking_twice(
    suite: Suite, models: Models
):
    config = CONFIG.replace("evals/smoke.csv", "evals/smoke.json")
    config = config.replace("response_match_score: 0.1", "ci/model_calls: 2")
    suite.commit("agent", **{"bot.py": WAITS, "ci-eval.yaml": config, "evals/smoke.json": TALKS})
    waited = suite.ci_eval("run", "--models", "record", **models.environment())
    assert (waited.code, len(models.requests)) == (6, 1)
    answered = TALKS.replace("{}", '{"approve": {"result": "yes"}}')
    (suite.folder / "evals/smoke.json").write_text(answered)

    ended = suite.ci_eval("run", "--models", "record", "--resume", **models.environment())

    assert ended.code == 0, ended.err
    assert len(models.requests) == 2
    assert suite.ci_eval("run", "--models", "replay").code == 0
    [result] = json.loads((suite.folder / "ci-eval-report/run.json").read_text())["results"]
    assert result["scores"][0]["value"] == 2  # before the answer, and after it


@pytest.mark.slow
def test_both_arms_share_the_limits_of_the_change(suite: Suite, models: Models):
    begin(suite, models, COMPARED)
    limited = COMPARED.replace("auto,", "live, max_calls: 4, requests_per_minute: 6000,")
    suite.commit("limit", **{"ci-eval.yaml": limited, "bot.py": CHANGED})
    asked = len(models.requests)

    suite.ci_eval("run", "--models", "live", **models.environment())

    # Three of the change, and one of the merge base, whose own options have no limit.
    assert len(models.requests) == asked + 4
    errors = [each.get("error") for each in json.loads(suite.base_run.read_text())["results"]]
    refused = [each for each in errors if each]
    assert [each["kind"] for each in refused] == ["models"] * 2
    assert "the budget of the run is used up: 4 of 4 calls" in refused[0]["message"]


@pytest.mark.slow
def test_a_shard_keeps_nothing_that_the_base_arm_records(suite: Suite, models: Models):
    files = {"bot.py": PYTHON, "ci-eval.yaml": COMPARED, "evals/smoke.csv": evalset(3)}
    suite.commit("agent", **files, **{".gitignore": "shard\nmerged\n__pycache__\n"})
    suite.git("checkout", "--quiet", "-b", "change")
    suite.commit("change", **{"bot.py": CHANGED})

    shard = ("--shard", "1/1", "--out", "shard")
    assert suite.ci_eval("run", *shard, **models.environment()).code == 0
    merged = suite.ci_eval("merge", "shard", "--out", "merged", **models.environment())

    assert merged.code == 0, merged.err
    assert len(models.requests) == 6
    rows = (suite.folder / "models.jsonl").read_text().splitlines()[1:]
    texts = [json.loads(row)["request"]["messages"][0]["content"] for row in rows]
    assert texts == [f"question {number}!" for number in range(3)]


@pytest.mark.slow
def test_a_server_of_each_arm_has_a_gateway_of_its_own(suite: Suite, models: Models):
    kind = (
        f'http: "http://127.0.0.1:{{port}}/chat", start: ["{sys.executable}", bot.py, "{{port}}"]'
    )
    begin(suite, models, COMPARED.replace('python: "bot:answer"', kind), agent=SERVER)
    suite.commit("change", **{"bot.py": SERVER.replace("ask(text)", "ask(text + '!')")})
    suite.ci_eval("run", "--models", "record", **models.environment())
    asked = len(models.requests)

    ended = suite.ci_eval("run", "--models", "replay")

    assert ended.code == 0, ended.err
    assert len(models.requests) == asked
    base = json.loads(suite.base_run.read_text())["results"]
    assert [each["metered"]["calls"] for each in base] == [1] * 3


@pytest.mark.slow
def test_a_budget_that_is_used_up_leaves_the_verdict_undecided(suite: Suite, models: Models):
    config = COMPARED.replace("auto,", "live, max_calls: 20,")
    suite.commit(
        "agent", **{"bot.py": PYTHON, "ci-eval.yaml": config, "evals/smoke.csv": evalset(8)}
    )
    suite.git("checkout", "--quiet", "-b", "change")
    breaks = "\n\ndef answer(message):\n    return ask(message).replace('question 3', 'broken')\n"
    suite.commit("change", **{"bot.py": CHAT + breaks})

    ended = suite.ci_eval("run", **models.environment())

    assert ended.code == 0, ended.out
    assert "NOT DECIDED: to decide it, raise models.max_calls of bot" in ended.out
    assert len(models.requests) <= 20
    assert suite.report()["totals"]["errors"] == 0
    assert suite.report()["comparison"]["base_trials"] == 8
