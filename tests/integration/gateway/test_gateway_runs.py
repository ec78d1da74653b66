"""Runs of agents whose calls of models pass the gateway: real processes, real HTTP on loopback."""

import json
import re

import pytest
from servers.loopback import DROPPED, Reply, as_json
from servers.models import KEYS, Models
from servers.openai import completion
from support.model_projects import CHAT, COMMAND, PYTHON, ModelProject
from support.slow_params import some

from ci_eval.llm.gateway import open_conversations

pytestmark = pytest.mark.processes
KINDS = {"python": PYTHON, "command": COMMAND}
CASSETTE = "{mode: record, cassette: models.jsonl}"
AUTO = "{mode: auto, cassette: models.jsonl}"


@pytest.mark.parametrize("concurrency", some([8, 1], 1))
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_recorded_is_replayed_without_provider_and_key(
    project: ModelProject, models: Models, kind: str, concurrency: int
):
    project.agent(KINDS[kind], CASSETTE, kind=kind)
    project.add(f"run: {{repeats: 3, concurrency: {concurrency}}}\n")
    project.with_keys(models)
    recorded = project.run()
    assert recorded.code == 0, recorded.err
    asked = len(models.requests)
    project.without_keys()

    replayed = project.run("--models", "replay", out="again")

    assert replayed.code == 0, replayed.err
    assert len(models.requests) == asked == 9
    assert project.responses("again") == project.responses()
    # Repeats stay samples: the provider never says the same twice.
    assert len({text for each in project.responses().values() for text in each}) == 9
    for name in ("ci/tokens", "ci/cost_usd", "ci/model_calls"):
        assert project.values(name, "again") == project.values(name)
    assert project.values("ci/tokens") == [18.0] * 9
    assert project.values("ci/model_calls") == [1.0] * 9
    assert project.values("ci/cost_usd")[0] == pytest.approx((11 * 0.4 + 7 * 1.6) / 1e6)


def test_a_mode_that_no_agent_has_is_refused(project, models):
    project.agent(PYTHON, "live")
    project.edit(", models: live", "")
    ended = project.run("--models", "replay")

    assert ended.code == 4
    assert "no agent has `models`" in ended.err
    assert not models.requests


def test_lines_that_a_merge_left_are_found(project, models):
    project.agent(PYTHON, CASSETTE)
    project.with_keys(models)
    project.run()
    assert project.ci_eval("models", "check").code == 0
    with (project.folder / "models.jsonl").open("a") as file:
        file.write("<<<<<<< HEAD\n=======\n")
    checked = project.ci_eval("models", "check")
    replayed = project.run("--models", "replay", out="again")

    assert checked.code == 1
    assert "2 lines without a call" in checked.err
    assert replayed.code == 0
    assert "warning: models.jsonl has 2 lines without a call; if they are left over" in replayed.err


def test_a_last_call_without_a_line_end_is_replayed(project, models):
    project.agent(PYTHON, CASSETTE)
    project.with_keys(models)
    project.run()
    path = project.folder / "models.jsonl"
    path.write_bytes(path.read_bytes().rstrip())
    project.without_keys()

    assert project.ci_eval("models", "check").code == 0
    assert project.run("--models", "replay").code == 0


@pytest.mark.parametrize("ends", [False, True])
def test_a_damaged_call_is_named_as_such(project, models, ends: bool):
    project.agent(PYTHON, CASSETTE)
    project.with_keys(models)
    project.run()
    path = project.folder / "models.jsonl"
    *lines, last = path.read_text().splitlines()
    damaged = last.replace('"answer":', '"answer"') if ends else last[:-9]
    path.write_text("\n".join([*lines, damaged, ""]))

    replayed = project.run("--models", "replay")
    checked = project.ci_eval("models", "check")

    assert replayed.code == 6
    which = "models.jsonl, which has 1 line without a call"
    assert f"this request is not recorded in {which}; record the case" in project.errors()["c2"][1]
    assert "warning: models.jsonl has 1 line without a call" in replayed.err
    assert checked.code == 1
    assert "models.jsonl: has 1 line without a call" in checked.err


def test_a_cassette_that_begins_with_a_merge_conflict_is_refused(project, models):
    project.agent(PYTHON, CASSETTE)
    (project.folder / "models.jsonl").write_text("<<<<<<< HEAD\n")
    project.with_keys(models)

    assert "models.jsonl has a merge conflict" in project.run("--models", "replay").err


def test_line_ends_of_windows_change_nothing(project, models):
    project.agent(PYTHON, AUTO)
    project.with_keys(models)
    project.run()
    path = project.folder / "models.jsonl"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    project.without_keys()

    assert project.ci_eval("models", "check").code == 0
    assert project.run("--models", "replay").code == 0


def test_a_cassette_is_the_same_whatever_the_order_of_the_calls(project, models):
    project.agent(PYTHON, CASSETTE)
    project.with_keys(models)
    path = project.folder / "models.jsonl"

    def recorded(concurrency: int) -> list[str]:
        models.asked.clear()
        assert project.run("--repeats", "1").code == 0
        return path.read_text().splitlines()

    project.add("run: {concurrency: 1}\n")
    first = recorded(1)
    project.edit("concurrency: 1", "concurrency: 8")

    assert recorded(8) == first
    assert first[0] == '{"ci-eval model cassette":1}'
    assert [json.loads(line)["case"] for line in first[1:]] == ["c0", "c1", "c2"]


def test_the_agent_never_sees_the_key(project, models):
    code = CHAT + (
        "\n\ndef answer(message):\n"
        "    seen = [name for name, value in os.environ.items() if 'the-real-key' in value]\n"
        "    return ask(message) + ' ' + ','.join(sorted(seen)) + os.environ['OPENAI_API_KEY']\n"
    )
    agent = 'python: "bot:answer", env: [OPENAI_API_KEY, OTHER, "*_KEY"]'
    project.agent(code, "live", kind=agent, cases=1)
    project.with_keys(models)
    project._patch.setenv("OTHER", f"bearer {KEYS['OPENAI_API_KEY']}")

    project.run()

    [[said]] = project.responses().values()
    assert said == "question 0 #1 ci-eval-placeholder-the-gateway-has-the-key"


def test_a_request_that_is_not_recorded_is_an_error_that_shows_the_nearest_one(project, models):
    project.agent(PYTHON, CASSETTE, cases=2)
    project.with_keys(models)
    project.run()
    project.without_keys()
    changed = PYTHON.replace("ask(message)", "ask(message, temperature=0.5)")
    (project.folder / "bot.py").write_text(changed)

    ended = project.run("--models", "replay")

    assert ended.code == 6
    kind, message = project.errors()["c0"]
    assert kind == "not_recorded"
    assert "this request is not recorded in models.jsonl" in message
    assert message.endswith("+ temperature: 0.5")
    difference = (project.folder / "out/comment.md").read_text().partition("```diff\n")[2]
    assert difference.partition("\n```")[0].endswith("+ temperature: 0.5")


def test_a_miss_on_a_fork_asks_for_a_run_of_a_maintainer(project, models):
    project.agent(PYTHON, CASSETTE, cases=1)
    project.with_keys(models)
    project.run()
    project.without_keys()
    project.set(CI_MERGE_REQUEST_SOURCE_PROJECT_ID="2", CI_MERGE_REQUEST_PROJECT_ID="1")
    changed = PYTHON.replace("ask(message)", "ask(message + '!')")
    (project.folder / "bot.py").write_text(changed)

    ended = project.run("--models", "replay")

    assert ended.code == 6
    assert "the agent 'bot' did not answer: openai gpt-4.1-mini: this request is not" in ended.out
    assert "a maintainer needs to record the case again" in project.errors()["c0"][1]
    comment = (project.folder / "out/comment.md").read_text()
    assert "\n**Next:** ask a maintainer to record the cases again, since pull" in comment
    assert "from forks get no keys. Do not merge until then: what" in comment
    assert "reproduce it" not in comment
    page = (project.folder / "out/report.html").read_text()
    assert "Ask a maintainer to record the cases again: " in page
    assert "<p>Reproduce it" not in page


def test_the_budget_of_a_shard_is_its_share_and_the_error_says_so(project, models):
    project.agent(PYTHON, "{mode: live, max_calls: 2}", cases=8)
    project.with_keys(models)

    project.run("--shard", "1/2")

    said = {message for _, message in project.errors().values()}
    share = "1 of 1 calls, the share of this shard"
    assert said == {f"the budget of the run is used up: {share}; raise `models.max_calls`"}


def test_an_agent_that_hides_a_miss_is_an_error_all_the_same(project, models):
    code = CHAT + (
        "\n\ndef answer(message):\n"
        "    try:\n        return ask(message)\n"
        "    except Exception:\n        return message\n"
    )
    project.agent(code, CASSETTE, cases=1)
    project.with_keys(models)
    project.run("--models", "record")
    (project.folder / "bot.py").write_text(code.replace("ask(message)", "ask(message + '!')"))

    assert project.run("--models", "replay").code == 6
    assert project.errors()["c0"][0] == "not_recorded"


def test_a_repeat_that_is_not_recorded_is_an_error(project, models):
    project.agent(PYTHON, CASSETTE, cases=1)
    project.with_keys(models)
    project.run()

    project.run("--models", "replay", "--repeats", "2")

    ((kind, said),) = project.errors().values()
    assert kind == "not_recorded"
    assert "recorded only for repeat 1 in models.jsonl, and this is repeat 2" in said


def test_a_call_that_is_recorded_twice_with_different_answers_is_warned_of(project, models):
    project.agent(PYTHON, "{mode: record, cassette: models.jsonl}")
    project.with_keys(models)
    project.run()
    *lines, last = project.cassette()
    both = [*lines, last, last.replace("question 2 #1", "another answer"), ""]
    (project.folder / "models.jsonl").write_text("\n".join(both))

    ended = project.run("--models", "replay")

    assert "warning: models.jsonl has two answers to 1 call" in ended.err


def test_a_key_with_a_line_end_is_named_before_a_run(project, models):
    project.agent(PYTHON, "live")
    project.with_keys(models)
    project.set(OPENAI_API_KEY=KEYS["OPENAI_API_KEY"] + "\n")

    for command in ("validate", "run"):
        ended = project.ci_eval(command)
        assert ended.code == 4
        assert "the environment variable 'OPENAI_API_KEY' has a line end or the like" in ended.err


def test_a_provider_that_asks_to_wait_for_long_is_not_waited_for(project, models):
    project.agent(PYTHON, "live", cases=2)
    project.with_keys(models)
    busy = as_json({"error": {"message": "busy"}}, 429, headers={"retry-after": "86400"})
    models.script.extend([busy, busy])

    assert project.run().code == 6
    ((kind, said), _) = project.errors().values()
    assert (kind, "status 429, and asks to wait 86,400 s" in said) == ("connection", True)


@pytest.mark.slow
def test_auto_asks_only_for_what_is_missing(project, models):
    project.agent(PYTHON, AUTO, cases=2)
    project.with_keys(models)
    project.run()
    project.agent(PYTHON, AUTO, cases=3)

    assert project.run().code == 0
    assert len(models.requests) == 3
    project.without_keys()
    assert project.run().code == 0
    assert len(models.requests) == 3


TWO = CHAT + "\n\ndef answer(message):\n    return ask(message) + ask('tell me more')\n"


def test_auto_drops_the_calls_that_a_trial_no_longer_makes(project, models):
    project.agent(TWO, AUTO, cases=2)
    project.with_keys(models)
    project.run()
    before = project.cassette()
    project.agent(TWO.replace("ask(message)", "ask(message + '!')"), AUTO, cases=2)

    assert project.run("--case", "c0").code == 0

    after = project.cassette()
    assert len(models.requests) == 5
    assert len(after) == len(before) == 5
    assert sum("question 0!" in line for line in after) == 1
    assert not any('question 0"' in line for line in after)
    assert after[3:] == before[3:]  # other trials keep theirs


def test_auto_drops_nothing_if_a_trial_fails_halfway(project, models):
    project.agent(TWO, AUTO, cases=1)
    project.with_keys(models)
    project.run()
    fails = TWO.replace("ask(message)", "ask(message + '!')").replace("+ ask", "+ 1 / 0 + ask")
    project.agent(fails, AUTO, cases=1)

    assert project.run().code == 6

    assert len(project.cassette()) == 4


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("max_calls: 1", "the run is used up: 1 of 1 calls; raise `models.max_calls`"),
        ("max_cost_usd: 0.00035", "of $0.00035; raise `models.max_cost_usd`"),
        ("max_calls_per_trial: 0", "the budget of the trial is used up: 0 of 0 calls"),
        ("max_cost_usd_per_trial: 0.0", "raise `models.max_cost_usd_per_trial`"),
        ("allow: [gemini-*]", "the model 'gpt-4.1-mini' is not allowed by"),
    ],
)
def test_what_the_options_forbid_ends_a_trial_and_says_so(project, models, limit, said):
    project.agent(PYTHON, f"{{mode: live, {limit}}}", cases=3)
    project.add("run: {concurrency: 1}\n")
    project.with_keys(models)

    assert project.run().code == 6

    kind, message = project.errors()["c2"]
    assert kind == "models"
    assert said in message


@pytest.mark.parametrize("limit", ["max_calls: 2", "max_cost_usd: 0.00035"])
def test_what_a_resumed_run_spent_counts_towards_its_limits(project, models, limit):
    project.agent(PYTHON, f"{{mode: live, {limit}}}", cases=4)
    project.add("run: {concurrency: 1}\n")
    project.with_keys(models)
    first = project.run()
    asked = len(models.requests)

    resumed = project.run("--resume")

    assert (first.code, resumed.code) == (6, 6)
    assert 0 < len(models.requests) == asked < 4
    project.edit(limit, "max_calls: 4")
    assert project.run("--resume").code == 0
    assert len(models.requests) == 4


@pytest.mark.slow
def test_a_resumed_recording_replays_nothing_of_an_earlier_one(project, models):
    project.agent(PYTHON, "{mode: record, cassette: m.jsonl, max_calls: 2}", cases=4)
    project.add("run: {concurrency: 1}\n")
    project.with_keys(models)
    project.edit("max_calls: 2", "max_calls: 4")
    assert project.run().code == 0
    project.edit("max_calls: 4", "max_calls: 2")
    assert project.run().code == 6
    project.edit("max_calls: 2", "max_calls: 4")

    assert project.run("--resume").code == 0

    assert len(models.requests) == 8
    assert '"anew"' not in (project.folder / "m.jsonl").read_text()


def test_an_unknown_price_cannot_be_limited(project, models):
    project.agent(PYTHON.replace("gpt-4.1-mini", "own-model"), "{mode: live, max_cost_usd: 1}")
    project.with_keys(models)

    project.run()

    assert "the price of 'own-model' is unknown" in project.errors()["c0"][1]
    assert models.requests == []


def test_an_unknown_price_is_shown_as_not_measured_with_the_way_out(project, models):
    project.agent(PYTHON.replace("gpt-4.1-mini", "own-model"), "live", cases=2)
    project.with_keys(models)
    models.script += [as_json({**completion("word", "stop"), "model": "own-model"})] * 2

    ended = project.run()

    assert re.search(r"ci/cost_usd +not measured", ended.out)
    assert "2 calls without a known price (set models.prices)" in ended.out
    assert "| `ci/cost_usd` | not measured |" in (project.folder / "out/comment.md").read_text()
    results = json.loads((project.folder / "out/run.json").read_text())["results"]
    reasons = [each["reason"] for row in results for each in row["scores"] if each.get("reason")]
    assert reasons == ["model calls without a known price: 'own-model'; set `models.prices`"] * 2


UNPAID = as_json({"error": {"message": "Your credit balance is too low to access the API."}}, 400)
BUSY = as_json({"error": {"message": "busy"}}, 503)


def test_a_failed_call_that_the_agent_repeats_is_a_retry(project, models):
    code = CHAT + (
        "\n\ndef answer(message):\n"
        "    try:\n        return ask(message)\n"
        "    except Exception:\n        return ask(message)\n"
    )
    project.agent(code, CASSETTE, cases=1)
    project.with_keys(models)
    models.script.append(BUSY)

    assert project.run().code == 0

    assert "1 retry" in (project.folder / "out/comment.md").read_text()
    trace = json.loads((project.folder / "out/traces.jsonl").read_text().splitlines()[-1])
    metered = trace["invocations"][0]["metered"]
    assert (metered["calls"], metered["retries"]) == (1, 1)
    assert project.run("--models", "replay", out="again").code == 0
    assert project.responses("again") == project.responses()


@pytest.mark.parametrize(
    "reply",
    [as_json({}, 401), as_json({"error": {"details": [{"reason": "API_KEY_INVALID"}]}}, 400)],
)
def test_a_key_that_the_provider_refuses_is_named_and_nothing_recorded(project, models, reply):
    project.agent(PYTHON, CASSETTE, cases=1)
    project.with_keys(models)
    models.script.append(reply)

    ended = project.run()

    refused = f"the provider refuses the key in OPENAI_API_KEY (status {reply.status})"
    said = f"openai gpt-4.1-mini: {refused}"
    assert ended.code == 6
    assert said in project.errors()["c0"][1]
    assert (
        f"the agent 'bot' did not answer: {said}"
        in (project.folder / "out/report.json").read_text()
    )
    assert len(project.cassette()) == 1


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (BUSY, "openai gpt-4.1-mini answered with status 503"),
        (UNPAID, "openai gpt-4.1-mini answered with status 400: the credit balance is too low"),
        (DROPPED, "could not be reached"),
    ],
)
def test_an_outage_is_an_error_even_if_the_agent_answers(project, models, reply: Reply, said):
    code = CHAT + (
        "\n\ndef answer(message):\n"
        "    try:\n        return ask(message)\n"
        "    except Exception:\n        return message\n"
    )
    project.agent(code, CASSETTE, cases=1)
    project.with_keys(models)
    models.script.append(reply)

    assert project.run().code == 6

    kind, message = project.errors()["c0"]
    assert kind == "connection"
    assert said in message


SURVIVES = (
    f"{CHAT}\n\ndef answer(message):\n    try:\n        return ask(message)\n"
    "    except OSError:\n        return message\n"
)
QUEUE = """
import asyncio

queue = None

async def serve():
    while True:
        message, asked = await queue.get()
        try:
            asked.set_result(await asyncio.to_thread(ask, message))
        except OSError:
            asked.set_result("Hello")

async def answer(message):
    global queue
    if queue is None:
        queue = asyncio.Queue()
        asyncio.create_task(serve())
    asked = asyncio.get_running_loop().create_future()
    await queue.put((message, asked))
    return await asked
"""


@pytest.mark.slow
def test_a_task_of_another_conversation_hides_no_call(project, models):
    project.agent(CHAT + QUEUE, "{mode: live}", cases=4)
    project.add("run: {concurrency: 1}\n")
    project.with_keys(models)

    project.run()
    assert project.values("ci/model_calls") == [1.0] * 4


@pytest.mark.slow
def test_calls_without_a_mark_are_told_apart_by_processes(project, models):
    code = CHAT + (
        "import threading\n\n\ndef answer(message):\n"
        "    found = []\n"
        "    thread = threading.Thread(target=lambda: found.append(ask(message)))\n"
        "    thread.start()\n    thread.join()\n"
        "    return found[0]\n"
    )
    project.agent(code, CASSETTE, cases=4)
    project.add("run: {concurrency: 4}\n")
    project.with_keys(models)

    assert project.run().code == 0
    project.without_keys()
    assert project.run("--models", "replay", out="again").code == 0
    assert project.responses("again") == project.responses()
    assert project.values("ci/model_calls") == [1.0] * 4


def test_without_a_cassette_or_a_key_nothing_is_run(project, models):
    project.agent(PYTHON, "{mode: replay, cassette: models.jsonl}")
    ended = project.run()
    assert ended.code == 4
    assert "agent 'bot' cannot be replayed: there is no models.jsonl" in ended.err
    ended = project.ci_eval("validate")
    assert ended.code == 0
    assert "models.jsonl: no such file; record it with `ci-eval run --models rec" in ended.err

    ended = project.run("--models", "record")
    assert ended.code == 4
    assert "agent 'bot' calls models, but none of these is set" in ended.err


def test_validate_finds_a_cassette_that_is_none(project):
    project.agent(PYTHON, "{mode: replay, cassette: bot.py}")

    ended = project.ci_eval("validate")

    assert ended.code == 4
    assert "ci-eval.yaml:1: agents.bot.models: bot.py is not a ci-eval model cas" in ended.err


def test_options_that_are_left_empty_are_refused_also_in_another_file(project):
    project.agent(PYTHON, "null")
    config = project.folder / "ci-eval.yaml"
    config.rename(project.folder / "other.yaml")

    ended = project.ci_eval("validate", "-c", "other.yaml")

    assert ended.code == 4
    assert "other.yaml:1: agents.bot.models: is empty; write `models: auto`" in ended.err


@pytest.mark.parametrize("variable", ["MISTRAL_API_KEY", "AWS_BEARER_TOKEN_BEDROCK"])
def test_validate_names_what_cannot_be_replayed(project, variable):
    agent = f'python: "bot:answer", env: [{variable}]'
    project.agent(PYTHON, "{mode: replay, cassette: models.jsonl}", kind=agent)

    ended = project.ci_eval("validate")
    project.edit("mode: replay", "mode: auto")
    warned = project.ci_eval("validate")

    assert (ended.code, warned.code) == (4, 0)
    assert re.search(r"ci-eval.yaml:1: .*cannot be replayed, but " + variable, ended.err)
    assert f"are neither recorded nor counted, but {variable} makes" in warned.err


def test_recording_while_the_provider_is_down_keeps_what_was_recorded(project, models):
    project.agent(PYTHON, CASSETTE, cases=2)
    project.with_keys(models)
    project.run("--models", "record")
    recorded = (project.folder / "models.jsonl").read_text()
    project.set(OPENAI_BASE_URL="http://127.0.0.1:1/v1")

    ended = project.run("--models", "record", out="again")

    assert ended.code == 6
    assert (project.folder / "models.jsonl").read_text() == recorded
    assert project.run("--models", "replay", out="replayed").code == 0


@pytest.mark.parametrize(
    ("mode", "url"),
    [
        *(("auto", "not-a-url"), ("replay", "not-a-url"), ("auto", "https://not-a-url:99999/v1")),
        *(("auto", "https://me:not-a-url@localhost/v1"), ("auto", "https://localhost?not-a-url")),
    ],
)
def test_a_wrong_address_of_a_provider_is_named_before_a_run(project, mode, url):
    project.agent(PYTHON, f"{{mode: {mode}, cassette: models.jsonl}}")
    project.set(OPENAI_BASE_URL=url)

    ended = project.ci_eval("validate")

    assert ended.code == (0 if mode == "replay" else 4)
    said = "agents.bot.models: the environment variable 'OPENAI_BASE_URL' is not an address such as"
    assert (f"{said} 'https://api.openai.com/v1'" in ended.err) is (mode == "auto")
    assert "not-a-url" not in ended.err


def test_an_agent_that_got_nothing_but_errors_is_warned_of(project, models):
    catches = (
        "\n\ndef answer(message):\n    try:\n        return ask(message)\n"
        "    except OSError:\n        return message\n"
    )
    project.agent(CHAT + catches, CASSETTE, cases=2)
    project.with_keys(models)
    models.script += [as_json({"error": {"message": "unknown parameter"}}, 400)] * 2

    ended = project.run()

    said = "agent 'bot': every model call returned an error, so no model answer"
    assert ended.code == 0
    assert said in ended.err
    assert "2 model calls, 0 tokens, $0.00, 2 answers with an error" in ended.out
    assert said in project.run("--models", "replay", out="again").err


def test_an_agent_that_passes_the_gateway_by_is_warned_of(project, models):
    project.agent("def answer(message):\n    return message\n", "live", cases=1)
    project.with_keys(models)

    shown = project.run()
    comment = (project.folder / "out/comment.md").read_text()
    project.edit("ci/tokens: {}", "ci/tokens: 100")
    judged = project.run()
    part = project.run("--case", "c0")

    assert (shown.code, judged.code, part.code) == (0, 6, 0)
    assert "no model call passed the gateway" in comment
    assert "criteria with nothing to measure in any case: ci/tokens with bot" in judged.out


def test_calls_that_get_a_fault_have_passed_the_gateway(project, models):
    project.agent(SURVIVES, "{mode: live, faults: {rate: 1, kinds: [500]}}")
    project.edit("ci/model_calls: {}", "ci/model_calls: 5")
    project.with_keys(models)

    ended = project.run()

    assert ended.code == 0, ended.out
    assert "3 injected faults" in ended.out
    assert "passed the gateway" not in ended.err
    assert "every model call returned an error" not in ended.err


def test_no_fault_hides_that_a_call_is_not_recorded(project, models):
    project.agent(SURVIVES, CASSETTE, cases=1)
    project.with_keys(models)
    assert project.run().code == 0
    faults = CASSETTE.replace("}", ", faults: {rate: 1, kinds: [500]}}")
    project.agent(SURVIVES, faults, cases=2)

    assert project.run("--models", "replay").code == 6
    assert {case: kind for case, (kind, _) in project.errors().items()} == {"c1": "not_recorded"}


@pytest.mark.parametrize("env", ["", ", env: [OPENAI_BASE_URL, OPENAI_API_KEY]"])
def test_a_variable_of_a_provider_that_is_left_out_is_explained(project, models, env: str):
    project.agent(PYTHON, "{mode: live, providers: [gemini]}", kind=f'python: "bot:answer"{env}')
    project.with_keys(models)

    project.run()

    assert "(the agent gets no OPENAI_" in project.errors()["c0"][1]
    assert "add `openai` to `models.providers`)" in project.errors()["c0"][1]
    assert "`env" not in project.errors()["c0"][1]


def test_a_secret_in_a_conversation_is_not_recorded(project, models):
    project.agent(PYTHON.replace("ask(message)", "ask(os.environ['DB_PASSWORD'])"), CASSETTE)
    project.edit('"bot:answer"', '"bot:answer", env: [DB_PASSWORD]')
    project.with_keys(models)
    project._patch.setenv("DB_PASSWORD", "hunter2-hunter2-hunter2")

    project.run()

    text = (project.folder / "models.jsonl").read_text()
    assert "hunter2" not in text
    assert "[DB_PASSWORD]" in text


def test_another_value_of_an_ordinary_variable_is_another_request(project, models):
    code = "\n\ndef answer(message):\n    ask(os.environ['SHOP_PROMPT'])\n    return message\n"
    project.agent(CHAT + code, CASSETTE)
    project.edit('"bot:answer"', '"bot:answer", env: [SHOP_PROMPT]')
    project.with_keys(models)
    project.set(SHOP_PROMPT="Be kind to all customers.")
    recorded = project.run()
    assert recorded.code == 0, recorded.err
    assert "the name of a variable instead of its value: SHOP_PROMPT;" in recorded.err
    assert "Be kind" not in "".join(project.cassette())
    project.without_keys()

    assert project.run("--models", "replay").code == 0
    project.set(SHOP_PROMPT="Be rude to all customers.")
    assert project.run("--models", "replay").code == 6
    [kind, message] = project.errors()["c0"]
    assert kind == "not_recorded"
    assert "a name in brackets stands for the value that the variable had" in message


def test_an_ordinary_word_in_a_secret_variable_is_named(project, models):
    project.agent(PYTHON, CASSETTE, cases=1)
    project.with_keys(models)
    project.set(AUTH_PLAN="question 0")
    recorded = project.run()
    assert recorded.code == 0, recorded.err
    assert "the name of a variable instead of its value: AUTH_PLAN;" in recorded.err
    project.without_keys()
    project.set(AUTH_PLAN=None)

    assert project.run("--models", "replay").code == 6
    assert "a name in brackets stands for" in project.errors()["c0"][1]


def test_a_placeholder_for_a_key_hides_no_other_variable(project, models):
    code = "import os\n\n\ndef answer(message):\n    return os.environ['HOME_OF_E']\n"
    agent = 'python: "bot:answer", env: [HOME_OF_E, NO_PROXY]'
    project.agent(code, "live", kind=agent, cases=1)
    project.with_keys(models)
    project._patch.setenv("ANTHROPIC_API_KEY", "e")
    project._patch.setenv("HOME_OF_E", "here")

    project.run()

    assert [*project.responses().values()] == [["here"]]


def test_addresses_that_need_no_proxy_are_kept(project, models):
    code = "import os\n\n\ndef answer(message):\n    return os.environ['NO_PROXY']\n"
    project.agent(code, "live", cases=1)
    project.with_keys(models)
    project._patch.setenv("NO_PROXY", "intranet.example")
    project._patch.setenv("HTTP_PROXY", "http://127.0.0.1:9")

    project.run()

    [[said]] = project.responses().values()
    assert {"intranet.example", "127.0.0.1"} <= {*said.split(",")}


def test_a_proxy_gets_no_call(project, models):
    project.agent(PYTHON, "live", cases=1)
    project.with_keys(models)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        project._patch.setenv(name, "http://127.0.0.1:9")

    assert project.run().code == 0


@pytest.mark.slow
def test_reports_compare_the_calls_of_models_with_the_baseline(project, models):
    project.agent(PYTHON, CASSETTE, cases=2)
    project.add("baseline: {store: file, path: base.json}\n")
    project.with_keys(models)

    def document(name: str) -> str:
        text = (project.folder / "out" / name).read_text()
        return text.replace("\u200b", "").replace("<span>&#36;</span>", "$")

    first = project.run("--baseline-save", "always").out
    same = project.run("--models", "replay").out
    documents = [document(each) for each in ("comment.md", "summary.md", "report.html")]
    project.run("--models", "record", "--repeats", "2")
    twice = document("comment.md")

    cost = "2 model calls, 36 tokens, $0.0000312"
    assert f"agents: {cost}\n" in first
    line = "2 model calls (2 replayed), 36 tokens, $0.0000312; baseline: $0.0000312"
    assert f"agents: {line}\n" in same
    assert all(line in each for each in documents)
    each = "$0.0000156 a trial"
    assert f"- 4 model calls, 72 tokens, $0.0000624; {each}, baseline: {each}\n" in twice


def test_a_baseline_that_was_not_metered_is_not_compared(project, models):
    project.agent("def answer(message):\n    return message\n", "live", cases=2)
    project.edit(", models: live", "")
    project.edit(", ci/model_calls: {}", "")
    project.add("baseline: {store: file, path: base.json}\ngate: {confirm: 'off'}\n")
    project.with_keys(models)
    unmetered = project.run("--baseline-save", "always").out
    (project.folder / "bot.py").write_text(PYTHON)
    project.edit('"bot:answer"', '"bot:answer", models: live')

    assert "model call" not in unmetered
    assert "agents: 2 model calls, 36 tokens, $0.0000312\n" in project.run().out


# --- Calls that the agent does not wait for -------------------------------------------------------


@pytest.fixture
def unsettled(monkeypatch):
    """Wait only a short time for answers after the agent's own."""
    monkeypatch.setattr(open_conversations, "SETTLE_S", 0.2)


IMPATIENT = CHAT.replace("urlopen(request)", "urlopen(request, timeout=0.3)") + (
    "\n\ndef answer(message):\n"
    "    try:\n"
    "        return ask(message)\n"
    "    except OSError:\n"
    "        return message\n"
)
BACKGROUND = CHAT + (
    "\n\ndef answer(message):\n"
    "    import threading, time\n"
    "    threading.Thread(target=ask, args=(message,)).start()\n"
    "    time.sleep(0.5)\n"
    "    return message\n"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "mode", "is_error"),
    [
        (IMPATIENT, "live", True),
        (IMPATIENT, "record", True),
        (BACKGROUND, "live", False),
        (BACKGROUND, "record", True),
    ],
    ids=["given up", "given up, recorded", "in the background", "in the background, recorded"],
)
@pytest.mark.usefixtures("unsettled")
def test_a_call_that_outlasts_the_agent_is_not_hidden(
    project, models, code: str, mode: str, is_error: bool
):
    project.agent(code, f"{{mode: {mode}, cassette: models.jsonl}}", cases=1)
    project.with_keys(models)
    models.script.append(as_json(completion("late"), delay_s=3))

    ended = project.run()

    assert ended.code == (6 if is_error else 0), ended.err
    assert len(models.requests) == 1
    if is_error:
        late = "its answer was not complete 0.2 s after the agent's answer"
        assert late in project.errors()["c0"][1]


def test_agents_with_one_cassette_keep_the_marks_of_each_others_unfinished_trials(
    project, models, monkeypatch
):
    code = CHAT + "\n\ndef answer(message):\n    return ask(message) + ask('fails')\n"
    project.agent(code, CASSETTE, cases=1)
    other = f', other: {{python: "bot:answer", models: {CASSETTE}}}'
    project.edit("}}\nevalsets", f"}}{other}}}\nevalsets")
    project.with_keys(models)
    said = models.reply

    def reply(request):
        is_broken = request.body["messages"][-1]["content"] == "fails"
        return as_json({"error": {"message": "busy"}}, 500) if is_broken else said(request)

    monkeypatch.setattr(models, "reply", reply)
    assert project.run().code == 6

    checked = project.ci_eval("models", "check")
    assert checked.code == 1
    assert "calls of 2 trials" in checked.err
    assert "incomplete" in checked.err


def test_a_secret_in_an_answer_is_replaced_with_a_warning_and_found_again(project, models):
    code = CHAT + "\n\ndef answer(message):\n    return ask('again: ' + ask(message))\n"
    project.agent(code, CASSETTE, cases=1)
    project.with_keys(models)
    project.set(AUTH_MODE="disabled-by-hand")
    answers = ("question 0, disabled-by-hand", "question 0")
    models.script += [as_json(completion(each)) for each in answers]
    recorded = project.run()

    assert recorded.code == 0, recorded.err
    warning = "1 answer in models.jsonl had the value of a secret; replays give the agent"
    assert f"warning: {warning}" in recorded.err
    assert "disabled-by-hand" not in "".join(project.cassette())
    project.without_keys()
    for mode in ("disabled-by-hand", None):
        project.set(AUTH_MODE=mode)
        assert project.run("--models", "replay", out="again").code == 0
        assert project.responses("again") == {("c0", 0): ["question 0"]}


def test_an_agent_without_models_is_named_where_a_mode_is_set(project, models):
    project.agent(PYTHON, AUTO, cases=1)
    project.edit("}}\nevalsets", '}, direct: {python: "bot:answer"}}\nevalsets')
    project.with_keys(models)

    warning = "--models record does not apply to agent 'direct', which has no `models`"
    assert f"warning: {warning}" in project.run("--models", "record").err
    assert warning not in project.run("--models", "record", "--agent", "bot").err


def test_a_run_without_a_key_leaves_no_empty_cassette(project):
    project.agent(PYTHON, AUTO)

    assert project.run().code == 4
    assert not (project.folder / "models.jsonl").exists()
