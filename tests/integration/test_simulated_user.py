"""Whole runs in which a model plays the user: a real client against a Gemini on this machine."""

import json
import textwrap
import time
from collections.abc import Iterator

import pytest
from servers.gemini import KEY, FakeGemini, answer
from servers.loopback import Reply, Request, as_json, closed_port, serving
from servers.openai import FakeOpenAI, completion
from support.agent_sessions import LONG_S, passing
from support.project import Project, case, turn

# google-genai extends a class of aiohttp that does not want to be extended.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")

CONFIG = """\
agents: {bot: {python: "bot:answer"}}
evalsets: {smoke: smoke.evalset.json}
criteria: {ci/regex: {pattern: "^Answer", threshold: 1}}
"""
BOT = """
    import time

    def answer(message, *, session):
        number = session["state"]["number"] = session["state"].get("number", 0) + 1
        if "slowly" in message:
            open("asked", "w").close()
            time.sleep(600)
        return f"Answer {number} to {message}"
"""
TALK = {
    "eval_id": "talk",
    "conversation_scenario": {"starting_prompt": "Hello", "conversation_plan": "Ask twice."},
}


class Users(FakeGemini):
    """Says something after each of the agent's answers but the `last`; waits for `delay_s`."""

    last = 3
    delay_s = 0.0
    says = "Message"

    def think(self) -> object:
        """Be done with thinking."""

    def reply(self, request: Request) -> Reply:
        reply = super().reply(request)
        if reply.status != 200:
            return reply
        text = request.body["contents"][0]["parts"][0]["text"]
        form = request.body["generationConfig"].get("responseJsonSchema")
        self.think()
        number = text.count("agent: Answer")
        over = number >= self.last
        if form:
            said = json.dumps({"reasoning": "so", "reached": [1] if over else []})
        else:
            said = "Thanks </finished>" if over else f"{self.says} {number + 1}"
        return as_json(answer(said), delay_s=self.delay_s)


@pytest.fixture
def users() -> Iterator[Users]:
    with serving(provider := Users()):
        yield provider


@pytest.fixture
def project(tmp_path, capsys, monkeypatch, users) -> Project:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", users.url)
    for name in ("GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    made = Project(tmp_path, capsys)
    (tmp_path / "bot.py").write_text(textwrap.dedent(BOT))
    made.config(CONFIG)
    made.evalset(TALK)
    return made


def said(project: Project) -> list[list[str]]:
    """Return the messages of the users of all trials, in the order of their repeats."""
    rows = [json.loads(line) for line in project.read("traces.jsonl").splitlines()]
    rows.sort(key=lambda row: (row["eval_id"], row["repeat"]))
    return [
        [each["user_content"]["parts"][0]["text"] for each in row["invocations"]] for row in rows
    ]


@pytest.mark.slow
def test_a_model_plays_the_user_and_it_is_said_what_that_cost(project: Project, users: Users):
    ended = project.ci_eval("run")

    assert ended.code == 0, ended.err
    assert said(project) == [["Hello", "Message 2", "Message 3"]]
    assert len(users.requests) == 3
    for request in users.requests:
        assert "responseMimeType" not in request.body["generationConfig"]
        assert "Ask twice." in request.body["contents"][0]["parts"][0]["text"]
    spent = "3 calls, 0 answers from the cache, 69 tokens, $0.0000999"
    assert f"simulated users: {spent}" in ended.out
    assert "judges:" not in ended.err
    assert "- 3 calls for simulated users, 0 answers from the cache, " in project.read("comment.md")
    assert json.loads(project.read("report.json"))["simulation"]["calls"] == 3
    [result] = project.run_json()["results"]
    assert result["simulation"]["output_tokens"] == 36


@pytest.mark.slow
def test_the_same_again_asks_nobody_and_neither_does_a_resumed_run(project: Project, users: Users):
    project.ci_eval("run")
    first, asked = said(project), len(users.requests)

    again = project.ci_eval("run", "--judge-mode", "replay")
    assert (again.code, said(project), len(users.requests)) == (0, first, asked)
    assert "simulated users: 0 calls, 3 answers from the cache" in again.out

    resumed = project.ci_eval("run", "--resume", "--judge-mode", "off")
    assert (resumed.code, said(project), len(users.requests)) == (0, first, asked)
    assert "simulated users" not in resumed.err


def test_another_user_makes_another_case_of_it(project: Project, users: Users):
    project.ci_eval("run")
    project.add("simulator: {max_allowed_invocations: 2}\n")
    project.ci_eval("run", "--resume")

    assert said(project)[-1] == ["Hello", "Message 2"]


def test_each_repeat_is_played_by_itself(project: Project, users: Users):
    ended = project.ci_eval("run", "--repeats", "3")

    assert ended.code == 0
    assert len(said(project)) == 3
    assert len(users.requests) == 9


def test_the_conversation_ends_at_the_limit_and_is_scored(project: Project, users: Users):
    users.last = 1000
    project.add("simulator: {max_allowed_invocations: 4}\n")
    ended = project.ci_eval("run")

    assert ended.code == 0
    assert len(said(project)[0]) == 4
    assert len(users.requests) == 3


def test_agentflows_user_leaves_when_its_goals_are_reached(project: Project, users: Users):
    project.evalset({**TALK, "metadata": {"goals": ["Get two answers."]}})
    project.add("dialect: agentflow\n")
    ended = project.ci_eval("run")

    assert ended.code == 0, ended.err
    assert said(project) == [["Hello", "Message 2", "Message 3"]]
    forms = ["responseJsonSchema" in each.body["generationConfig"] for each in users.requests]
    assert forms == [True, False, True, False, True]
    assert all(each.body["generationConfig"]["temperature"] == 0.7 for each in users.requests)


class Llama(FakeOpenAI):
    """Says one more thing."""

    needs_key = False

    def reply(self, request: Request) -> Reply:
        reply = super().reply(request)
        over = "Answer 2" in request.body["messages"][-1]["content"]
        said = completion("</finished>" if over else "More")
        return as_json(said) if reply.status == 200 else reply


@pytest.mark.slow
def test_any_provider_plays_a_user(project: Project, users: Users):
    with serving(llama := Llama()):
        url = f"{llama.url}/v1"
        project.add(
            f"simulator: {{provider: openai, model: llama, api: chat, base_url: '{url}'}}\n"
        )
        ended = project.ci_eval("run")

    assert ended.code == 0, ended.err
    assert said(project) == [["Hello", "More"]]
    assert users.requests == []
    assert all("response_format" not in each.body for each in llama.requests)


# --- What goes wrong --------------------------------------------------------------------------


def test_a_model_that_is_down_is_an_error_and_nothing_is_said_in_its_place(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", f"http://127.0.0.1:{closed_port()}")
    project.add("judge: {attempts: 1}\n")
    ended = project.ci_eval("run")

    assert ended.code == 6
    assert said(project) == [["Hello"]]
    [result] = project.run_json()["results"]
    assert result["error"]["kind"] == "simulator"
    assert "the simulated user gave no next message" in ended.err


def test_without_a_key_the_run_does_not_begin(
    project: Project, monkeypatch: pytest.MonkeyPatch, users: Users
):
    monkeypatch.delenv("GOOGLE_API_KEY")
    ended = project.ci_eval("run")

    assert ended.code == 4
    assert "the simulated user of scenarios lacks GOOGLE_API_KEY" in ended.err
    project.evalset(case("plain", turn("Hello", "Answer")))
    assert project.ci_eval("run").code == 0
    assert users.requests == []


def test_a_budget_holds_for_users_and_judges_together(project: Project, users: Users):
    project.add("judge: {max_calls: 2}\n")
    ended = project.ci_eval("run")

    assert ended.code == 6
    assert len(users.requests) == 2
    assert "the 2 calls of `judge.max_calls` are used up" in ended.err


@pytest.mark.slow
def test_what_a_user_thinks_takes_none_of_the_agents_time(project: Project, users: Users):
    users.delay_s = 0.8
    began = time.perf_counter()
    ended = project.ci_eval("run")
    took = time.perf_counter() - began

    assert ended.code == 0, ended.err
    [result] = project.run_json()["results"]
    assert len(users.requests) > 1
    assert result["duration_s"] <= took - users.delay_s * len(users.requests)


def test_nor_does_it_count_for_its_limit(project: Project, users: Users):
    project.add("run: {timeout_s: 30}\njudge: {timeout_s: 300}\n")
    with passing(40, when=lambda: users.requests) as passed:
        users.think = lambda: passed.wait(LONG_S)
        ended = project.ci_eval("run")

    assert ended.code == 0, ended.err


def test_an_agent_that_is_slow_is_still_stopped_in_time(project: Project, users: Users):
    scenario = {"starting_prompt": "Hello", "conversation_plan": "Ask twice."}
    project.evalset({"eval_id": "talk", "conversation_scenario": scenario})
    project.add("run: {timeout_s: 300}\n")
    users.says = "Now slowly"
    with passing(300, when=(project.folder / "asked").exists):
        ended = project.ci_eval("run")

    assert ended.code == 6
    [result] = project.run_json()["results"]
    assert result["error"] == {
        "kind": "timeout",
        "message": "timed out after 300 s, the limit in `run.timeout_s`",
    }
    assert len(users.requests) == 1


def test_a_recorded_conversation_needs_nobody_to_play_its_user(
    project: Project, monkeypatch: pytest.MonkeyPatch, users: Users
):
    ended = project.ci_eval("run", "--record", "traces.jsonl")
    assert ended.code == 0
    asked = len(users.requests)
    monkeypatch.delenv("GOOGLE_API_KEY")
    project.config(CONFIG.replace('{python: "bot:answer"}', "{recorded: traces.jsonl}"))
    ended = project.ci_eval("run")

    assert ended.code == 0, ended.err
    assert len(users.requests) == asked


def test_what_is_wrong_is_said_before_anything_runs(project: Project, users: Users):
    project.add(
        "simulator: {custom_instructions: "
        "'{{ stop_signal }}{{ conversation_plan }}{{ conversation_history }}'}\n"
    )
    scenario = TALK["conversation_scenario"] | {"user_persona": "EXPERT"}
    project.evalset({"eval_id": "talk", "conversation_scenario": scenario})
    ended = project.ci_eval("run")
    assert ended.code == 4
    assert "smoke.evalset.json:" in ended.err
    assert "case 'talk': has a persona, but the simulator's `custom_instructions`" in ended.err

    project.evalset({"eval_id": "talk", "conversation_scenario": scenario | {"user_persona": "ME"}})
    ended = project.ci_eval("run")
    assert ended.code == 4
    assert "conversation_scenario.user_persona: unknown persona 'ME'" in ended.err
    assert users.requests == []


# --- What it would take -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("added", "calls"),
    [
        ("", [1, 19]),
        ("simulator: {max_allowed_invocations: 1}\n", [0, 0]),
        ("simulator: {max_allowed_invocations: 3}\n", [1, 2]),
        ("simulator: {max_allowed_invocations: -1}\n", [1, 199]),
        ("simulator: {type: agentflow}\n", [1, 18]),
        ("run: {repeats: 4}\n", [4, 76]),
    ],
)
def test_a_plan_says_what_users_would_take(project: Project, users: Users, added: str, calls: list):
    project.evalset(TALK, case("plain", turn("Hello", "Answer")))
    project.add(added)
    [found] = project.ci_eval("plan", "--json").json["judging"]

    assert (found["criterion"], found["models"]) == ("simulator", ["gemini-2.5-flash"])
    assert found["calls"] == calls
    assert found["input_tokens"][0] <= found["input_tokens"][1]
    assert users.requests == []
