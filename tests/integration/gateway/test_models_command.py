"""`ci-eval models` shows, cleans and checks cassettes."""

import json

import pytest
from servers.models import Models
from support.model_projects import CHAT, PYTHON, ModelProject

pytestmark = pytest.mark.processes
CASSETTE = "{mode: record, cassette: models.jsonl}"


def recorded(project: ModelProject, models: Models, code: str = PYTHON, cases: int = 3) -> None:
    project.agent(code, CASSETTE, cases=cases)
    project.with_keys(models)
    project.run()


def test_show_lists_the_calls_of_each_trial(project: ModelProject, models: Models):
    recorded(project, models)

    shown = project.ci_eval("models", "show")
    case = project.ci_eval("models", "show", "--case", "c1")
    rows = project.ci_eval("models", "show", "--json").json
    unknown = [
        project.ci_eval("models", "show", *chosen)
        for chosen in (
            ("--case", "zz"),
            ("--agent", "bott", "--case", "c1"),
            ("--case=z", "--json"),
        )
    ]

    assert "models.jsonl: 3 calls" in shown.out
    assert "bot    smoke    c1    1       gpt-4.1-mini  1" in shown.out
    assert '\n      "content": "question 1"\n' in case.out
    assert "question 1 #1" in case.out
    assert "question 0" not in case.out
    assert [ended.code for ended in unknown] == [4, 4, 4]
    assert "no calls are recorded for the case 'zz'; known: c0, c1, c2" in unknown[0].err
    assert "no calls are recorded for the agent 'bott'. Did you mean 'bot'?" in unknown[1].err
    assert [(row["case"], row["number"], row["answer"]["status"]) for row in rows] == [
        (f"c{number}", 0, 200) for number in range(3)
    ]


def test_check_names_what_is_missing_and_what_is_not_used(project, models):
    recorded(project, models)
    assert project.ci_eval("models", "check").code == 0
    project.agent(PYTHON, CASSETTE, cases=2)
    unused = project.ci_eval("models", "check")
    project.agent(PYTHON, CASSETTE, cases=4)
    missing = project.ci_eval("models", "check")

    assert (unused.code, missing.code) == (1, 1)
    assert "models.jsonl: calls of 1 trial (c2) are not used" in unused.err
    assert "models.jsonl: no calls of 1 trial (c3); record them" in missing.err


def test_prune_removes_what_is_not_used(project, models):
    recorded(project, models)
    project.agent(PYTHON, CASSETTE, cases=2)

    assert "removed 1 call" in project.ci_eval("models", "prune").out
    assert project.ci_eval("models", "check").code == 0
    assert project.run("--models", "replay").code == 0


def test_further_repeats_of_planned_cases_are_only_noted(project, models):
    recorded(project, models)
    project.run("--repeats", "2")

    checked = project.ci_eval("models", "check")

    assert checked.code == 0
    assert "models.jsonl: calls of 3 trials (c0, c1, c2) are further repeats" in checked.err
    assert "removed 3 calls" in project.ci_eval("models", "prune").out
    assert "further repeats" not in project.ci_eval("models", "check").err


def test_check_names_calls_with_two_answers(project, models):
    recorded(project, models)
    path = project.folder / "models.jsonl"
    *_, last = lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, last, ""]))
    equal = project.ci_eval("models", "check")
    path.write_text("\n".join([*lines, last.replace("question 2 #1", "another answer"), ""]))
    text = path.read_text()
    ended = project.ci_eval("models", "check")
    pruned = project.ci_eval("models", "prune")

    assert (equal.code, ended.code, pruned.code) == (0, 1, 4)
    assert path.read_text() == text  # which of them is right is not for us to decide
    assert "models.jsonl: calls of 1 trial (c2) have two answers" in ended.err


def test_check_names_requests_that_were_edited(project, models):
    recorded(project, models)
    path = project.folder / "models.jsonl"
    path.write_text(path.read_text().replace('"content":"question 1"', '"content":"harmless"'))

    ended = project.ci_eval("models", "check")

    assert ended.code == 1
    assert "models.jsonl: requests of 1 trial (c1) have been edited; record them" in ended.err


def test_a_request_with_a_long_text_or_a_secret_does_not_count_as_edited(project, models):
    project.set(DB_PASSWORD="hunter2-hunter2-hunter2")
    code = CHAT + "\n\ndef answer(message):\n    ask('long ' * 2000)\n"
    code += "    return ask(message + os.environ['DB_PASSWORD'])\n"
    project.agent(code, CASSETTE, kind='python: "bot:answer", env: [DB_PASSWORD]', cases=1)
    project.with_keys(models)
    project.run()

    assert project.ci_eval("models", "check").code == 0


def test_check_names_trials_that_are_recorded_in_part(project, models):
    recorded(project, models)
    path = project.folder / "models.jsonl"
    head, first, *others = path.read_text().splitlines()
    trial = json.loads(first)["call"].partition("-")[0]
    path.write_text("\n".join([head, f'{{"anew":"{trial}"}}', first, *others, ""]))

    ended = project.ci_eval("models", "check")

    assert ended.code == 1
    assert "models.jsonl: calls of 1 trial (c0) are incomplete; record them again" in ended.err


@pytest.mark.parametrize(
    "key", ["AIzaSy" + "A" * 33, "hf_" + "a" * 34, f"eyJ{'a' * 20}.eyJ{'b' * 20}.{'c' * 20}"]
)
def test_check_finds_what_looks_like_a_key(project, models, key):
    recorded(project, models, CHAT + f"\n\ndef answer(message):\n    return ask({key!r})\n", 1)

    ended = project.ci_eval("models", "check")

    assert ended.code == 1
    assert "seem to contain a key" in ended.err


def test_a_configuration_without_cassettes_has_nothing_to_show(project):
    project.agent(PYTHON, "live")

    ended = project.ci_eval("models", "show")

    assert ended.code == 4
    assert "no agent of ci-eval.yaml records model calls" in ended.err


@pytest.mark.parametrize("variable", ["GOOGLE_GENAI_USE_VERTEXAI=true", "MISTRAL_API_KEY=k"])
def test_what_an_adk_agent_reads_from_its_file_is_checked(project, variable):
    folder = project.folder / "bot"
    folder.mkdir()
    (folder / "agent.py").write_text("root_agent = None\n")
    (folder / ".env").write_text(variable + "\n")
    project.agent("", "{mode: replay, cassette: models.jsonl}", kind="adk: bot")

    ended = project.ci_eval("validate")

    assert ended.code == 4
    assert f"but {variable.partition('=')[0]} makes the agent call it" in ended.err
