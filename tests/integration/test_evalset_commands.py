"""`ci-eval evalset …` as a user types it, and beside the commands of ADK that do the same.

The comparison with ADK runs where CI_EVAL_ADK_PYTHON names a Python that has google-adk 2.13.0
with its `eval` extra.
"""

import io
import json
import os
import subprocess
from pathlib import Path

import pytest
from support.project import GREETS, REFUNDS, TRACKS, Project, changed, problems

from ci_eval.records.errors import ExitCode

ADK = os.environ.get("CI_EVAL_ADK_PYTHON", "")
with_adk = pytest.mark.skipif(not ADK, reason="CI_EVAL_ADK_PYTHON names no Python with google-adk")


@pytest.fixture
def project(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, capsys)


def load(path):
    return json.loads(Path(path).read_text())


def ids(path):
    return [case["eval_id"] for case in load(path)["eval_cases"]]


def test_an_evalset_is_made_filled_listed_and_emptied(project):
    Path("agents/shop").mkdir(parents=True)

    created = project.ci_eval("evalset", "create", "agents/shop", "new")
    assert (created.code, created.out) == (0, "Eval set 'new' created for app 'shop'.\n")
    added = project.ci_eval("evalset", "add", "agents/shop", "new", "--prompt", "Hi", "--case", "a")
    assert (added.code, added.out) == (0, "Eval case 'a' added to eval set 'new'.\n")
    listed = project.ci_eval("evalset", "list", "agents", "--json")
    path = "agents/shop/new.evalset.json"
    assert listed.json == [{"id": "new", "path": path, "format": "adk", "cases": 1}]
    deleted = project.ci_eval("evalset", "delete", path, "--case", "a")
    assert (deleted.code, deleted.out) == (0, f"Eval case 'a' deleted from {path}.\n")
    assert ids(path) == []


def test_a_list_warns_of_files_that_may_be_broken_evalsets(project):
    Path("shop.yaml").write_text('cases:\n- {prompt: "Hi}\n')

    ended = project.ci_eval("evalset", "list")

    assert ended.code == ExitCode.PASSED
    assert len(ended.out.splitlines()) == 2
    (warned,) = [line for line in ended.err.splitlines() if line.startswith("warning: ")]
    assert warned.startswith("warning: shop.yaml:2: not listed: is not YAML: ")


def test_a_list_shows_every_evalset_and_names_those_that_are_broken(project):
    Path("own.yaml").write_text("cases: [{prompt: Hi}, {prompt: Ho}]")
    Path("bad.evalset.json").write_text('{"eval_set_id": "b",\n"eval_cases": 1}')

    ended = project.ci_eval("evalset", "list")

    assert ended.code == ExitCode.USAGE_ERROR
    assert ended.out.splitlines() == [
        "id     path                format  cases",
        "-      bad.evalset.json    -       -",
        "own    own.yaml            cases   2",
        "smoke  smoke.evalset.json  adk     3",
    ]
    assert problems(ended) == ["bad.evalset.json:2: eval_cases: expected a list of cases, found 1"]


def test_what_an_agent_did_becomes_what_is_expected(project):
    project.traces(GREETS, changed(REFUNDS, "Order 7 is gone.", ("refund", {"order": 70})), TRACKS)
    assert project.ci_eval("run").code == ExitCode.FAILED
    source = ("--from-traces", "ci-eval-report/traces.jsonl", "--case", "refunds")

    updated = project.ci_eval("evalset", "update", "smoke.evalset.json", *source)
    assert (updated.code, updated.err) == (0, "")
    assert project.ci_eval("run").code == ExitCode.PASSED
    assert ids("smoke.evalset.json") == ["greets", "refunds", "tracks"]

    project.ci_eval("evalset", "create", "other.evalset.json")
    added = project.ci_eval("evalset", "add", "other.evalset.json", *source, "--repeat", "1")
    assert added.code == 0
    assert "neither the tags nor the initial state" in added.err
    (kept,) = load("other.evalset.json")["eval_cases"]
    (turn,) = kept["conversation"]
    assert turn["final_response"]["parts"] == [{"text": "Order 7 is gone."}]
    assert turn["intermediate_data"]["tool_uses"] == [{"name": "refund", "args": {"order": 70}}]


def test_a_case_comes_from_stdin(project, monkeypatch):
    def given(data):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))

    new = {**GREETS, "eval_id": "new", "note": "mine"}
    given(json.dumps(new).encode())
    assert project.ci_eval("evalset", "add", "smoke.evalset.json", "--file", "-").code == 0
    assert load("smoke.evalset.json")["eval_cases"][-1] == {
        **new,
        "conversation": [{**new["conversation"][0], "intermediate_data": {}}],
    }

    for data, said in (
        (b"prompt: Hi\nexpcted: Ho\n", "stdin:2: "),
        (b"prompt: \xff\n", "stdin:1: byte 0xff is not UTF-8"),
        (b"", "stdin:1: "),
    ):
        given(data)
        ended = project.ci_eval("evalset", "add", "smoke.evalset.json", "--file", "-")
        assert ended.code == ExitCode.USAGE_ERROR
        assert problems(ended)[0].startswith(said)


def test_one_case_of_several_is_copied(project):
    project.ci_eval("evalset", "create", "other.yaml")
    source = ("--file", "smoke.evalset.json", "--case")

    assert project.ci_eval("evalset", "add", "other.yaml", *source, "refunds").code == 0
    ended = project.ci_eval("evalset", "add", "other.yaml", *source, "no")
    assert problems(ended) == ["smoke.evalset.json contains no case 'no'"]
    listed = project.ci_eval("evalset", "list").out
    assert listed.splitlines()[1] == "other  other.yaml          cases   1"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "smoke.evalset.json"), "give one of --file, --prompt, --from-traces"),
        (("add", "smoke.evalset.json", "--prompt", "a", "--file", "b"), "give one of --file"),
        (
            ("add", "smoke.evalset.json", "--file", "b", "--expected", "c"),
            "has no effect without --prompt",
        ),
        (("add", ".", "smoke", "--prompt", "a", "--agent", "b"), "--agent has no effect without"),
        (
            ("update", ".", "smoke", "--file", "b", "--evalset", "c"),
            "has no effect without --from-traces",
        ),
        (("add", "smoke.evalset.json", "--from-traces", "traces.jsonl"), "needs --case"),
        (
            (*("add", ".", "smoke", "--case", "greets", "--repeat", "0"), "--from-traces", "x"),
            "Invalid value for '--repeat': 0 is not in the range",
        ),
        (("add", ".", "smoke", "--prompt", "a", "--repeat", "1"), "--repeat has no effect without"),
        (("add", "smoke.evalset.json", "--prompt", "a", "--case", ""), "--case is empty"),
        (("update", ".", "smoke", "--file", "smoke.evalset.json", "--case", ""), "--case is empty"),
        (("add", "gone.json", "--prompt", "a"), "gone.json: Eval set `gone` not found."),
        (("add", "smoke.evalset.json", "--file", "gone.json"), "gone.json: no such file"),
        (("update", "smoke.evalset.json"), "give one of --file, --from-traces"),
        (
            ("update", "smoke.evalset.json", "--from-traces", "traces.jsonl", "--case", "no"),
            "traces.jsonl: holds no conversation of the case 'no'",
        ),
        (("delete", "smoke.evalset.json"), "Missing option '--case'."),
        (("delete", "smoke.evalset.json", "--case", "no"), "Eval case `no` not found"),
        (("create", ".", "a-b"), "Invalid Eval Set ID."),
        (("create", "a.csv"), "a.csv cannot be empty; name it *.evalset.json or *.yaml"),
        (("create", "a.jsonl"), "a.jsonl cannot be empty"),
        (("create", "nowhere/a.json"), "nowhere/a.json: its directory does not exist"),
        (("convert", "smoke.evalset.json", "--to", "adk"), "already exists"),
        (("migrate", ".", "--out", "x.json"), "--out needs a single file"),
        (("migrate", "x.json", "--out", "traces.jsonl"), "traces.jsonl already exists"),
        (("list", "nowhere"), "Eval directory for app `nowhere` not found."),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(project, arguments, said):
    before = Path("smoke.evalset.json").read_bytes()
    ended = project.ci_eval("evalset", *arguments)

    assert ended.code == ExitCode.USAGE_ERROR
    assert said in ended.err
    assert "Traceback" not in ended.err
    assert Path("smoke.evalset.json").read_bytes() == before
    assert not list(Path().glob(".*.draft"))


def test_a_conversion_says_what_is_lost_and_runs_the_same(project):
    project.evalset(GREETS, REFUNDS, {**TRACKS, "note": "mine"})
    ended = project.ci_eval("evalset", "convert", "smoke.evalset.json", "--to", "cases")

    assert (ended.code, ended.out) == (0, "smoke.yaml: 3 cases written.\n")
    assert problems(ended) == [
        "warning: smoke.yaml: the format 'cases' does not keep 'note' of 'tracks'"
    ]
    project.ci_eval("run")
    scores = project.scores()
    config = Path("ci-eval.yaml").read_text()
    project.config(config.replace("smoke.evalset.json", "smoke.yaml"))
    project.ci_eval("run")
    assert project.scores() == scores


def test_a_folder_is_migrated_with_a_backup(project):
    old = [{"query": "Hello", "reference": "Hello, how can I help?"}]
    Path("old.test.json").write_text(json.dumps(old))
    Path("session.json").write_text('{"app_name": "shop", "state": {"n": 1}}')
    ended = project.ci_eval(
        "evalset", "migrate", ".", "--backup", "--initial-session", "session.json"
    )

    assert (ended.code, ended.out) == (0, "old.test.json: 1 case migrated.\n")
    (case,) = load("old.test.json")["eval_cases"]
    assert case["session_input"] == {"app_name": "shop", "user_id": "", "state": {"n": 1}}
    assert load("old.test.json.bak") == old
    again = project.ci_eval("evalset", "migrate", ".")
    assert (again.code, again.out) == (
        0,
        ".: nothing to migrate; only files in ADK formats are migrated.\n",
    )


# --- Beside ADK -------------------------------------------------------------------------------

AGENT = 'from google.adk.agents import Agent\nroot_agent = Agent(name="shop", model="none")\n'
SCENARIOS = [
    {"starting_prompt": "Hällo 😀", "conversation_plan": "Say bye."},
    {"startingPrompt": "B", "conversationPlan": "C"},
    {"starting_prompt": "B", "conversation_plan": "C"},
]
SESSION = {"app_name": "shop", "user_id": "u", "state": {"n": None}}
ADDING = ("--scenarios_file", "scenarios.json", "--session_input_file", "session.json")
LOADS = """
import json, sys
from google.adk.evaluation.local_eval_sets_manager import LocalEvalSetsManager
found = LocalEvalSetsManager(sys.argv[1]).get_eval_set(sys.argv[2], sys.argv[3])
print(json.dumps(found.model_dump(mode="json", exclude_defaults=True)))
"""


@pytest.fixture
def shop(project):
    """An agent of ADK's, with what its commands make cases of."""
    for name in ("shop", "ours/shop"):
        Path(name).mkdir(parents=True)
        Path(name, "__init__.py").write_text("from . import agent\n")
        Path(name, "agent.py").write_text(AGENT)
    Path("scenarios.json").write_text(json.dumps({"scenarios": SCENARIOS}))
    Path("session.json").write_text(json.dumps(SESSION))
    return project


def adk(*arguments):
    command = [str(Path(ADK).with_name("adk")), "eval_set", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=900)


def loaded_by_adk(folder, app, eval_set_id):
    command = [ADK, "-c", LOADS, folder, app, eval_set_id]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def untimed(text):
    return [line for line in text.splitlines() if "creation_timestamp" not in line]


@with_adk
def test_the_same_commands_leave_the_same_files(shop):
    for both in (("create", "{}", "new"), ("create", "{}", "new"), ("create", "{}", "a-b")):
        theirs = adk(*(each.format("shop") for each in both))
        ours = shop.ci_eval("evalset", *(each.format("ours/shop") for each in both))
        assert bool(ours.code) == bool(theirs.returncode)
        assert ours.out == theirs.stdout
        assert theirs.stderr.partition("Error: ")[2].strip() in ours.err
    for _ in range(2):
        theirs = adk("add_eval_case", "shop", "new", *ADDING)
        ours = shop.ci_eval("evalset", "add", "ours/shop", "new", *ADDING)
        assert (ours.code, ours.out) == (theirs.returncode, theirs.stdout)

    files = (Path("ours/shop/new.evalset.json"), Path("shop/new.evalset.json"))
    ours_text, theirs_text = (untimed(path.read_text()) for path in files)
    assert ours_text == theirs_text


@with_adk
def test_scenarios_with_a_persona_of_adk_have_its_ids(shop, monkeypatch):
    monkeypatch.setenv("PATH", str(Path(ADK).parent), prepend=os.pathsep)
    named = [
        {**each, "user_persona": persona} for each in SCENARIOS for persona in ("NOVICE", None)
    ]
    Path("scenarios.json").write_text(json.dumps({"scenarios": named}))
    adk("create", "shop", "new")
    shop.ci_eval("evalset", "create", "ours/shop", "new")

    theirs = adk("add_eval_case", "shop", "new", *ADDING)
    ours = shop.ci_eval("evalset", "add", "ours/shop", "new", *ADDING)

    assert (ours.code, ours.out) == (theirs.returncode, theirs.stdout)


def test_without_adk_the_ids_of_scenarios_with_a_persona_are_warned_of(shop, monkeypatch):
    monkeypatch.setenv("PATH", "")
    Path("scenarios.json").write_text(
        json.dumps({"scenarios": [{**SCENARIOS[0], "user_persona": "NOVICE"}]})
    )
    shop.ci_eval("evalset", "create", "shop", "new")

    added = shop.ci_eval("evalset", "add", "shop", "new", "--scenarios_file", "scenarios.json")

    assert "warning: the ids of scenarios with a persona differ from ADK's: " in added.err
    assert len(load("shop/new.evalset.json")["eval_cases"]) == 1


@with_adk
def test_what_is_written_is_read_by_adk_as_it_was_meant(shop):
    rich = {
        **changed(REFUNDS, "Done.", ("refund", {"order": None})),
        "session_input": {**SESSION, "mine": 1},
        "final_session_state": {"paid": True},
        "tags": ["slow"],
        "rubrics": [{"rubric_id": "r", "rubric_content": {"text_property": "kind"}}],
    }
    shop.evalset(GREETS, rich, name="rich")
    shop.ci_eval("evalset", "create", "shop", "new")
    shop.ci_eval("evalset", "add", "shop", "new", "--file", "rich.evalset.json")
    shop.ci_eval("evalset", "add", "shop", "new", *ADDING)

    cases = loaded_by_adk(".", "shop", "new")["eval_cases"]
    assert cases == load("shop/new.evalset.json")["eval_cases"]
    assert [case["eval_id"] for case in cases][:2] == ["greets", "refunds"]
    assert cases[1]["tags"] == ["slow"]
    assert cases[1]["session_input"] == rich["session_input"]


@with_adk
def test_an_older_file_is_migrated_to_what_adk_reads_from_it(shop):
    turn = {
        "query": "Refund 7",
        "expected_tool_use": [{"tool_name": "refund", "tool_input": {"order": 7}}],
        "expected_intermediate_agent_responses": [{"author": "helper", "text": "wait"}],
        "reference": "Done.",
    }
    older = [{"name": "a", "data": [turn], "initial_session": {"state": {"n": 1}}}]
    for name in ("old", "new"):
        Path(f"shop/{name}.evalset.json").write_text(json.dumps(older))
    assert shop.ci_eval("evalset", "migrate", "shop/new.evalset.json").code == 0

    theirs, ours = (loaded_by_adk(".", "shop", name)["eval_cases"] for name in ("old", "new"))
    for case in theirs:
        del case["creation_timestamp"]
        for each in case["conversation"]:
            del each["creation_timestamp"], each["invocation_id"]
    assert ours == theirs
