"""`ci-eval init` in repositories of several shapes: what it writes can be run at once."""

import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.git_repositories import clone, git_init, make_hub
from support.project import CASES, GREETS, REFUNDS, TRACKS, case, turn
from support.slow_params import some

from ci_eval.cli import published_source
from ci_eval.cli.command_inputs import load
from ci_eval.cli.init.repository_survey import survey
from ci_eval.cli.main import cli, main
from ci_eval.plugins.points import Criterion
from ci_eval.records.errors import ExitCode
from ci_eval.text.yaml_files import parse_yaml

AGENT = "from google.adk.agents import Agent\n\nroot_agent = Agent(name='shop', model='none')\n"
OLD = [{"query": "Refund 7", "expected_tool_use": [], "reference": "Order 7 is refunded."}]
CAMEL = {
    "evalSetId": "s",
    "evalCases": [
        {
            "evalId": "greets",
            "conversation": [
                {
                    "userContent": {"role": "user", "content": "Hello"},
                    "finalResponse": {"role": "assistant", "content": "How can I help?"},
                }
            ],
        }
    ],
}
Files = dict[str, Any]


def evalset(*cases: dict[str, Any]) -> dict[str, Any]:
    return {"eval_set_id": "s", "eval_cases": list(cases)}


def config(**criteria: Any) -> dict[str, Any]:
    return {"criteria": criteria}


LAYOUTS: dict[str, Files] = {
    "an agent with its evalset beside it": {
        "shop_agent/__init__.py": "from . import agent\n",
        "shop_agent/agent.py": AGENT,
        "shop_agent/smoke.evalset.json": evalset(*CASES),
        "eval/test_config.json": config(tool_trajectory_avg_score=1.0, response_match_score=0.5),
    },
    "a workspace of agents, each with its tests": {
        "workspace/agents/shop/shop/agent.py": AGENT,
        "workspace/agents/shop/tests/simple.test.json": OLD,
        "workspace/agents/shop/tests/ticket.test.json": evalset(GREETS),
        "workspace/agents/shop/tests/complex.test.json": evalset(REFUNDS, TRACKS),
        "workspace/agents/shop/tests/test_config.json": config(response_match_score=0.3),
    },
    "a program in another language": {
        "data/shop-app/smoke.evalset.json": CAMEL,
        "data/shop-app/smoke.metrics.json": [{"metricName": "m", "threshold": 1}],
        "main.go": "package main\n",
    },
    "a graph of AgentFlow": {
        "agentflow.json": {"agent": "graph.react:app"},
        "graph/react.py": "from agentflow.graph import StateGraph\n\napp = StateGraph()\n",
        "evals/shop.evalset.json": {
            "eval_set_id": "s",
            "name": "shop",
            "eval_cases": [
                {
                    "eval_id": "tracks",
                    "conversation": [
                        {
                            "user_content": {"role": "user", "content": "Where is 9?"},
                            "expected_tool_trajectory": [{"name": "track", "args": {"order": 9}}],
                            "expected_node_order": ["MAIN", "TOOL"],
                            "expected_final_response": {"role": "assistant", "content": "In Oslo."},
                        }
                    ],
                }
            ],
        },
        "evals/eval_config.json": config(
            tool_trajectory_avg_score={"threshold": 1.0, "match_type": "IN_ORDER"}
        ),
    },
    "cases that expect nothing": {
        "evals/prompts.csv": "prompt\nHello\nWhere is 9?\n",
        "app.py": "import langgraph\n",
    },
    "names that need care": {
        'über uns/it\'s "ours" [a]: #1.evalset.json': evalset(GREETS),
        'über uns/it\'s "ours" [b]: #1.evalset.json': evalset(TRACKS),
        'other/it\'s "ours" [a]: #1.evalset.json': evalset(REFUNDS),
        "evals/yes.evalset.json": evalset(case("more", turn("Bye", "Good bye."))),
        "evals/-1.evalset.json": evalset(case("minus", turn("Hi", "Hello there."))),
    },
    "a service wanted that is not set up, and nothing else": {
        "tests/eval/eval_config.json": config(safety_v1=0.8),
        "tests/eval/evalsets/basic.evalset.json": evalset(*CASES),
    },
    "an evalset that is broken": {
        "evals/good.evalset.json": evalset(GREETS),
        "evals/bad.evalset.json": {"eval_set_id": "s", "eval_cases": [{"eval_id": 1}]},
    },
}
JUDGED: Files = {  # as a template makes it
    "app/__init__.py": "",
    "app/agent.py": AGENT,
    "tests/eval/eval_config.json": config(
        tool_trajectory_avg_score={"threshold": 1.0, "matchType": "IN_ORDER"},
        rubric_based_final_response_quality_v1={
            "threshold": 0.8,
            "rubrics": [{"rubricId": "a", "rubricContent": {"textProperty": "It is kind."}}],
        },
    ),
    "tests/eval/evalsets/basic.evalset.json": evalset(GREETS, TRACKS),
    "pyproject.toml": "[project]\nname = 'shop'\n",
}
RUBRIC = "rubric_based_final_response_quality_v1"
KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION")


def write(root: Path, files: Files) -> None:
    for name, value in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value, indent=1))


def record(root: Path) -> None:
    """Record that an agent did all that the evalsets expect, and said something in any case."""
    lines = {
        each.eval_id: {
            "eval_id": each.eval_id,
            "invocations": [
                {
                    "final_response": {"parts": [{"text": "Well."}]},
                    "intermediate_data": {},
                    **turn.model_dump(mode="json", exclude_none=True),
                }
                for turn in each.conversation
            ],
        }
        for found in survey(root).evalsets
        for each in found.opened.cases()
        if each.conversation is not None
    }
    path = root / "traces" / "recorded.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines.values()))
    os.utime(path, (2e9, 2e9))


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Callable[[Files], Path]:
    """Make a repository of files, and stand in it, where no model can be reached."""
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)

    def made(files: Files) -> Path:
        root = tmp_path / "shop"
        git_init(root)
        write(root, files)
        monkeypatch.chdir(root)
        return root

    return made


def written(root: Path) -> Any:
    return parse_yaml((root / "ci-eval.yaml").read_text(), shown="ci-eval.yaml").value


@pytest.mark.parametrize("layout", some(LAYOUTS, 3))
def test_with_a_recording_the_first_run_passes(repository, layout, capsys):
    root = repository(LAYOUTS[layout])
    record(root)

    assert main(["init", "--yes"]) == 0
    assert main(["validate"]) == 0, capsys.readouterr().err
    assert main(["run"]) == ExitCode.PASSED, capsys.readouterr().err

    (agent,) = written(root)["agents"].values()
    assert agent == {"recorded": "traces/recorded.jsonl"}


def test_whoever_has_an_agent_is_told_that_only_its_recording_is_replayed(repository, capsys):
    root = repository(LAYOUTS["a graph of AgentFlow"])
    record(root)

    assert main(["init", "--yes"]) == 0

    assert (
        "- ci-eval.yaml: a recording is replayed, so changes to the agent have no effect; to run "
        "the agent graph.react:app of AgentFlow, replace `recorded: …` with "
        "`agentflow: graph.react:app`\n"
    ) in capsys.readouterr().out
    config = root / "ci-eval.yaml"
    recorded = "recorded: traces/recorded.jsonl"
    config.write_text(config.read_text().replace(recorded, "agentflow: graph.react:app"))
    assert main(["validate"]) == 0, capsys.readouterr().err


LED = {
    "eval_id": "leads",
    "conversation_scenario": {"starting_prompt": "Hi", "conversation_plan": "Be kind."},
}


@pytest.mark.parametrize("own", [True, False], ids=["with an eval config", "without one"])
def test_cases_that_nothing_could_judge_are_seen_to(repository, own, capsys):
    more = {"evals/test_config.json": config(response_match_score=0.5)} if own else {}
    unstated = turn("Hello", "Hi")
    del unstated["intermediate_data"]
    root = repository(
        {
            "evals/r1.evalset.json": evalset(case("greets", unstated)),
            "evals/r2.evalset.json": evalset(LED, {"eval_id": "empty", "conversation": []}),
            **more,
        }
    )

    assert main(["init", "--yes"]) == 0
    found = written(root)
    assert {"response_match_score", "from"} & found["criteria"].keys()
    assert "says_something" in found["criteria"]
    assert found["gate"]["allow_unjudged"] == ["empty"]
    assert found["evalsets"] == {"evals": "evals/*.evalset.json"}
    assert main(["validate"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("layout", some(LAYOUTS, 3))
def test_without_one_the_first_run_is_incomplete_and_never_green(repository, layout, capsys):
    root = repository(LAYOUTS[layout])

    assert main(["init", "--yes"]) == 0
    assert main(["validate"]) == 0, capsys.readouterr().err
    assert main(["run"]) == ExitCode.INCOMPLETE

    (agent,) = written(root)["agents"].values()
    named = agent.get("python") == "ci_eval_agent:answer"
    assert (root / "ci_eval_agent.py").exists() == named
    assert named or agent.keys() & {"adk", "agentflow"}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_configuration_names_every_evalset_that_can_be_read(repository, layout):
    root = repository(LAYOUTS[layout])
    found = {each.path for each in survey(root).evalsets}
    main(["init", "--yes"])

    paths = written(root)["evalsets"].values()

    matched = {
        each.relative_to(root).as_posix()
        for path in paths
        for each in ([root / path] if (root / path).exists() else root.glob(path))
    }
    assert matched == found


def judged_by_script(root: Path, verdict: str) -> None:
    """Let a script answer in the place of the model."""
    verdicts = [{"rubric_id": "a", "rationale": "It says so.", "verdict": verdict}]
    judge = {"provider": "scripted", "mode": "off", "answers": [{"answer": {"verdicts": verdicts}}]}
    with (root / "ci-eval.yaml").open("a") as file:
        file.write(f"\njudge: {json.dumps(judge)}\n")


@pytest.mark.parametrize(("verdict", "code"), [("yes", ExitCode.PASSED), ("no", ExitCode.FAILED)])
def test_with_a_recording_it_is_the_judge_who_decides(repository, verdict, code, capsys):
    root = repository(JUDGED)
    record(root)

    assert main(["init", "--yes"]) == 0
    judged_by_script(root, verdict)
    assert main(["run"]) == code, capsys.readouterr().err

    assert written(root)["criteria"] == {"from": "tests/eval/eval_config.json"}


@pytest.mark.parametrize("recorded", [True, False])
def test_without_a_key_nothing_is_run_and_the_key_is_named(repository, recorded, capsys):
    root = repository(JUDGED)
    if recorded:
        record(root)

    assert main(["init", "--yes"]) == 0
    assert main(["validate"]) == 0
    assert main(["plan"]) == 0
    capsys.readouterr()
    assert main(["run"]) == ExitCode.USAGE_ERROR

    lacking = f"the judge of adk/{RUBRIC} lacks GOOGLE_API_KEY or GEMINI_API_KEY"
    assert lacking in capsys.readouterr().err


def test_each_eval_config_judges_the_evalsets_beside_it(repository, capsys):
    root = repository(
        {
            "shop/agent.py": AGENT,
            "shop/fast/a.evalset.json": evalset(GREETS),
            "shop/fast/b.evalset.json": evalset(TRACKS),
            "shop/fast/test_config.json": config(
                tool_trajectory_avg_score=1.0, response_match_score=0.9
            ),
            "shop/slow/c.evalset.json": evalset(REFUNDS),
            "shop/slow/test_config.json": config(response_match_score=0.2),
        }
    )

    assert main(["init", "--yes"]) == 0
    assert main(["validate"]) == 0, capsys.readouterr().err
    made = written(root)
    assert made["criteria"] == {
        "tool_trajectory_avg_score": 1.0,
        "response_match_score": 0.9,
        "response_match_score-slow": {"use": "response_match_score", "threshold": 0.2},
    }
    assert made["matrix"] == [
        {"evalsets": ["fast"], "criteria": ["tool_trajectory_avg_score", "response_match_score"]},
        {"evalsets": ["slow"], "criteria": ["response_match_score-slow"]},
    ]


def test_an_agent_of_adk_may_be_in_the_package_itself(repository):
    root = repository({"shop/__init__.py": AGENT, "shop/smoke.evalset.json": evalset(GREETS)})

    main(["init", "--yes"])

    assert written(root)["agents"]["shop"]["adk"] == "shop"


@pytest.mark.parametrize(
    ("file", "installed"),
    [
        ("agents/shop/requirements.txt", "install -r agents/shop/requirements.txt"),
        ("agents/pyproject.toml", "install -e ./agents"),
        ("requirements.txt", "install -r requirements.txt"),
        ("other/requirements.txt", "install google-adk"),
    ],
)
def test_the_dependencies_are_those_nearest_to_the_agent(repository, file, installed):
    root = repository(
        {"agents/shop/agent.py": AGENT, "a.evalset.json": evalset(GREETS), file: "google-adk\n"}
    )

    main(["init", "--yes"])

    assert f" {installed}\n" in (root / ".github/workflows/ci-eval.yml").read_text()


@pytest.mark.parametrize(
    ("installed", "uses"),
    [
        (
            {
                "url": "https://github.com/acme/ci-eval.git",
                "vcs_info": {"vcs": "git", "commit_id": "0123456789abcdef" * 2 + "01234567"},
            },
            f"acme/ci-eval@{'0123456789abcdef' * 2}01234567\n",
        ),
        ({"url": "file:///src/ci-eval", "dir_info": {}}, "OWNER/ci-eval@v1 # zizmor: ignore"),
        (None, "OWNER/ci-eval@v1 # zizmor: ignore"),
    ],
)
def test_the_action_is_the_one_that_ci_eval_was_installed_from(
    repository, monkeypatch, capsys, installed, uses
):
    """As pip and uv record it: https://peps.python.org/pep-0610/."""

    class Distribution:
        def read_text(self, name):
            assert name == "direct_url.json"
            return json.dumps(installed) if installed else None

    monkeypatch.setattr(published_source, "distribution", lambda name: Distribution())
    root = repository(LAYOUTS["a graph of AgentFlow"])

    main(["init", "--yes"])

    text = (root / ".github/workflows/ci-eval.yml").read_text()
    assert f"uses: {uses}".replace("@", "/host@") in text
    is_known = uses.startswith("acme")
    assert ("OWNER" in text) is not is_known
    assert ("replace OWNER" in capsys.readouterr().out) is not is_known


def test_a_configuration_at_the_top_of_the_repository_is_named(repository, capsys):
    root = repository({"ci-eval.yaml": "name: whole\n", "part/bot.py": "def reply(m): return m\n"})

    main(["init", str(root / "part"), "--yes"])

    note = "note: the repository already has ../ci-eval.yaml; this adds a suite for this folder\n"
    assert note in capsys.readouterr().out


def test_who_is_asked_and_what_that_takes_is_said_where_it_is_needed(repository, capsys):
    root = repository(JUDGED)

    main(["init", "--yes"])

    asked = f"gemini-2.5-flash is used by {RUBRIC}. It needs GOOGLE_API_KEY or GEMINI_API_KEY."
    assert capsys.readouterr().out.splitlines()[-3:] == [
        f"- {asked}",
        "to estimate the cost: ci-eval plan",
        "next: ci-eval run",
    ]
    config = (root / "ci-eval.yaml").read_text()
    assert asked in " ".join(config.replace("\n  #", "").split())
    assert "\n# judge:\n" in config
    workflow = parse_yaml((root / ".github/workflows/ci-eval.yml").read_text(), shown="w").value
    *_, step, _, _, _ = workflow["jobs"]["evaluate"]["steps"]
    assert step["env"] == {"GOOGLE_API_KEY": "${{ secrets.GOOGLE_API_KEY }}"}


def test_a_service_that_is_not_set_up_is_left_out_with_what_it_lacks(repository):
    root = repository(LAYOUTS["a service wanted that is not set up, and nothing else"])

    main(["init", "--yes"])

    text = " ".join((root / "ci-eval.yaml").read_text().replace("\n  #", "").split())
    assert "Left out: safety_v1: needs the service 'vertex', which lacks " in text
    assert "GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION" in text
    assert "env:" not in (root / ".github/workflows/ci-eval.yml").read_text()


def test_a_repository_with_nothing_gets_an_example_to_fill_in(repository, capsys):
    root = repository({"README.md": "# Shop\n"})

    assert main(["init", "--yes"]) == 0
    assert "next: ci-eval run" in capsys.readouterr().out
    assert main(["validate", "ci-eval.yaml", "evals/smoke.yaml"]) == 0
    assert main(["run"]) == ExitCode.INCOMPLETE
    assert "call your agent in `answer`" in capsys.readouterr().err

    (root / "ci_eval_agent.py").write_text(
        "def answer(message):\n    return 'I can help you with questions about our product.'\n"
    )
    assert main(["run"]) == ExitCode.PASSED


def test_a_function_of_plain_python_is_run_as_it_is(repository, capsys):
    files = {
        "bot.py": "def reply(message):\n    return f'You said {message}.'\n",
        "evals/small.csv": "prompt,expected\nHello,You said Hello.\n",
    }
    root = repository(files)

    assert main(["init", "--yes"]) == 0
    assert main(["run"]) == ExitCode.PASSED, capsys.readouterr().err
    assert written(root)["agents"] == {"bot": {"python": "bot:reply"}}
    assert not (root / "ci_eval_agent.py").exists()


def test_the_cases_own_assertions_are_checked(repository):
    files = {"evals/a.yaml": "cases:\n- {prompt: Hi, assert: [{contains: Hello}]}\n"}
    root = repository(files)

    main(["init", "--yes"])

    assert written(root)["criteria"] == {"ci/assertions": 1.0}


def test_what_is_there_is_never_overwritten_without_force(repository, capsys):
    root = repository({"ci-eval.yaml": "mine", ".github/workflows/ci-eval.yml": "mine, too"})

    assert main(["init", "--yes"]) == ExitCode.USAGE_ERROR

    err = capsys.readouterr().err
    assert "ci-eval.yaml: already exists" in err
    assert ".github/workflows/ci-eval.yml: already exists" in err
    assert "--force" in err
    assert (root / "ci-eval.yaml").read_text() == "mine"
    assert not (root / "ci_eval_agent.py").exists()

    assert main(["init", "--yes", "--force"]) == 0
    assert written(root)["version"] == 1


def test_force_replaces_a_link_and_not_what_it_leads_to(repository, tmp_path):
    root = repository({})
    outside = tmp_path / "outside.yaml"
    outside.write_text("mine")
    (root / "ci-eval.yaml").symlink_to(outside)

    main(["init", "--yes", "--force"])

    assert outside.read_text() == "mine"


def test_nothing_is_written_through_a_folder_that_leads_out(repository, tmp_path, capsys):
    root = repository({})
    (tmp_path / "outside").mkdir()
    (root / ".github").symlink_to(tmp_path / "outside")

    assert main(["init", "--yes"]) == ExitCode.USAGE_ERROR
    assert "symlink out of the repository" in capsys.readouterr().err
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_part_of_a_repository_gets_a_workflow_at_the_top(repository):
    root = repository({"services/shop/evals/a.evalset.json": evalset(GREETS)})

    assert main(["init", "services/shop", "--yes"]) == 0

    workflow = (root / ".github/workflows/ci-eval-services-shop.yml").read_text()
    on = parse_yaml(workflow, shown="w").value["on"]["pull_request"]["paths"]
    assert on == ["services/shop/**", ".github/workflows/ci-eval-services-shop.yml"]
    assert "working-directory: services/shop" in workflow
    assert (root / "services/shop/ci-eval.yaml").exists()


def test_where_the_main_branch_is_known_the_workflow_stores_what_was_merged(
    tmp_path, monkeypatch, capsys
):
    hub = make_hub(tmp_path)
    repo = clone(hub, tmp_path / "clone")
    repo.write("evals/a.evalset.json", json.dumps(evalset(GREETS)))
    repo.commit()
    repo.on("trunk")
    repo.git("push", "--quiet", "origin", "trunk")
    repo.git("remote", "set-head", "origin", "trunk")
    monkeypatch.chdir(repo.folder)

    assert main(["init", "--yes"]) == 0
    assert main(["validate"]) == 0, capsys.readouterr().err

    workflow = (repo.folder / ".github/workflows/ci-eval.yml").read_text()
    assert parse_yaml(workflow, shown="w").value["on"]["push"]["branches"] == ["trunk"]
    assert written(repo.folder)["baseline"] == {"store": "branch"}


def test_where_no_branch_is_known_the_baseline_is_a_file(repository):
    root = repository({"evals/a.evalset.json": evalset(GREETS)})

    main(["init", "--yes"])

    workflow = (root / ".github/workflows/ci-eval.yml").read_text()
    assert list(parse_yaml(workflow, shown="w").value["jobs"]) == ["evaluate"]
    assert written(root)["baseline"] == {"store": "file", "path": ".ci-eval/baseline.json"}


@pytest.mark.parametrize(
    "file",
    [
        *("cases.csv", "tests/shop_cases.csv", "data/golden.csv"),
        *("data/questions.csv", "test-set.csv", "ground_truth/shop.csv"),
    ],
)
def test_an_evalset_is_found_by_its_name_outside_of_a_folder_for_evals(repository, capsys, file):
    repository({file: "id,prompt,expected\nadd,Add 2 and 3.,It is 5.\n"})

    assert main(["init", "--yes"]) == 0

    assert f"found evalsets: {file} (1)" in capsys.readouterr().out


def test_without_a_terminal_nothing_is_asked(repository, monkeypatch):
    repository({})
    monkeypatch.setattr("click.prompt", lambda *_, **__: pytest.fail("asked"))

    assert main(["init"]) == 0


def test_what_was_found_and_written_is_said(repository, capsys):
    repository(LAYOUTS["a graph of AgentFlow"])

    main(["init", "--yes"])

    assert capsys.readouterr().out.splitlines() == [
        "found agents: graph.react:app (AgentFlow)",
        "found evalsets: evals/shop.evalset.json (1)",
        "found eval configs: evals/eval_config.json",
        "wrote ci-eval.yaml",
        "wrote .github/workflows/ci-eval.yml",
        "will run react on evals (see ci-eval.yaml)",
        "to do:",
        "- .github/workflows/ci-eval.yml: replace OWNER with the GitHub owner of ci-eval",
        "next: ci-eval run",
    ]


def test_where_no_agent_is_found_the_frameworks_are_named_and_a_module_is_to_be_filled_in(
    repository, capsys
):
    root = repository(LAYOUTS["cases that expect nothing"])

    main(["init", "--yes"])

    assert capsys.readouterr().out.splitlines() == [
        "found evalsets: evals/prompts.csv (2)",
        "found other frameworks: LangGraph (app.py)",
        "no agent found",
        "wrote ci-eval.yaml",
        "wrote ci_eval_agent.py",
        "wrote .github/workflows/ci-eval.yml",
        "will run agent on evals (see ci-eval.yaml)",
        "to do:",
        "- ci_eval_agent.py: call your agent",
        "- .github/workflows/ci-eval.yml: replace OWNER with the GitHub owner of ci-eval",
        "next: ci-eval run",
    ]
    assert "Found LangGraph in app.py: ci_eval_agent.py can call it." in (
        (root / "ci-eval.yaml").read_text()
    )


def test_a_folder_may_be_named_from_beside_it(repository, monkeypatch):
    root = repository({"a/evals/a.evalset.json": evalset(GREETS), "b/x": ""})
    monkeypatch.chdir(root / "b")

    assert main(["init", "../a", "--yes"]) == 0
    assert (root / ".github/workflows/ci-eval-a.yml").exists()
    assert written(root / "a")["evalsets"] == {"evals": "evals/*.evalset.json"}


def test_a_folder_that_is_not_there_is_refused(repository, capsys):
    repository({})

    assert main(["init", "nowhere", "--yes"]) == ExitCode.USAGE_ERROR
    assert "nowhere is not a directory" in capsys.readouterr().err


# --- Questions --------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch):
    """Answer the questions as somebody at a terminal would."""

    def answer(*answers: str) -> str:
        monkeypatch.setattr("ci_eval.cli.init.init_command.is_watched", lambda: True)
        result = CliRunner().invoke(cli, ["init"], input="".join(f"{each}\n" for each in answers))
        assert result.exception is None, result.output
        return result.output

    return answer


def test_at_a_terminal_the_agent_the_purpose_and_the_workflow_are_asked_for(repository, asked):
    files = {
        "evals/a.evalset.json": evalset(*CASES),
        "shop/agent.py": AGENT,
        "desk/agent.py": AGENT,
    }
    root = repository(files)

    output = asked("2", "4, 7", "n")

    assert "1. the ADK agent in desk" in output
    assert list(written(root)["agents"]) == ["shop"]
    assert "4. Does it mean the same, in whatever words? (uses a model)" in output
    assert written(root)["criteria"] == {"final_response_match_v2": 0.8, "hallucinations_v1": 0.8}
    assert not (root / ".github").exists()


def test_where_there_is_one_agent_only_the_purpose_and_the_workflow_are_asked_for(
    repository, asked
):
    root = repository({"shop/agent.py": AGENT})

    output = asked("1", "n")

    assert "Which agent" not in output
    assert list(written(root)["agents"]) == ["shop"]


def test_of_many_agents_some_are_offered_and_the_last_is_one_to_write(repository, asked):
    files = {f"agents/a{number:02}/agent.py": AGENT for number in range(30)}
    root = repository(files)

    output = asked("21", "", "")

    assert "20. the ADK agent in agents/a19" in output
    assert "21. another agent" in output
    assert "22. " not in output
    assert list(written(root)["agents"]) == ["agent"]


def test_where_agentflow_is_its_presets_are_offered_too(repository, asked):
    root = repository(LAYOUTS["a graph of AgentFlow"])

    output = asked("10", "n")

    assert "10. quick_check: AgentFlow's" in output
    assert "14. The criteria in evals/eval_config.json." in output
    assert written(root)["criteria"] == {"rouge_match": 0.5, "node_order_match_score": 1.0}


def test_questions_can_be_added_to_what_an_eval_config_says(repository, asked):
    root = repository(LAYOUTS["an agent with its evalset beside it"])

    output = asked("0", "10 x", "10,7", "n")

    assert output.count("expected numbers from 1 to 10, such as 2,3") == 2
    assert written(root)["criteria"] == {"from": "eval/test_config.json", "hallucinations_v1": 0.8}


def test_a_repository_of_agentflow_has_its_dialect(repository):
    layout = LAYOUTS["a graph of AgentFlow"]
    root = repository({name: each for name, each in layout.items() if "config" not in name})

    assert main(["init", "--yes"]) == 0

    assert written(root)["dialect"] == "agentflow"
    assert written(root)["criteria"] == {
        "adk/tool_trajectory_avg_score": 1.0,
        "adk/response_match_score": 0.8,
        "node_order_match_score": 1.0,
    }


def test_an_evalset_is_for_the_agent_that_its_sessions_name(repository):
    session = {"app_name": "shop", "user_id": "u"}
    root = repository(
        {
            "agents/desk/agent.py": AGENT,
            "agents/desk/a.evalset.json": evalset({**GREETS, "session_input": session}),
            "agents/shop/agent.py": AGENT,
        }
    )

    assert main(["init", "--yes"]) == 0

    assert list(written(root)["agents"]) == ["shop"]
    assert list(written(root)["evalsets"].values()) == ["agents/desk/*.evalset.json"]


def test_the_environment_is_the_nearest_one(repository):
    root = repository({"agents/shop/agent.py": AGENT, "agents/shop/requirements.txt": "dep\n"})
    python = root / "agents/shop/.venv/bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to("/usr/bin/env")

    assert main(["init", "--yes"]) == 0

    assert written(root)["agents"]["shop"]["interpreter"] == "agents/shop/.venv/bin/python"
    workflow = (root / ".github/workflows/ci-eval.yml").read_text()
    assert "python -m venv agents/shop/.venv\n" in workflow
    assert "agents/shop/.venv/bin/pip install -r agents/shop/requirements.txt" in workflow


def test_an_eval_config_of_agents_cli_is_named(repository, capsys):
    metrics = (
        "metrics_to_run: [quality]\ncustom_metrics:\n- {name: quality, prompt_template: Rate}\n"
    )
    repository(
        {"shop/agent.py": AGENT, "tests/eval/eval_config.yaml": f"# of the scaffold\n{metrics}"}
    )

    assert main(["init", "--yes"]) == 0

    said = "tests/eval/eval_config.yaml:2: is an eval config of agents-cli, which is not read;"
    assert f"found files that cannot be read: {said}" in capsys.readouterr().out


def test_recordings_that_are_not_used_are_named(repository):
    root = repository({**LAYOUTS["an agent with its evalset beside it"]})
    line = json.dumps({"eval_id": "another", "invocations": [{"user_content": {"parts": []}}]})
    write(root, {f"traces/r{number}.jsonl": line + "\n" for number in range(7)})

    assert main(["init", "--yes"]) == 0

    text = (root / "ci-eval.yaml").read_text()
    assert "# 7 recordings not used: traces/r" in text


def test_every_answer_has_a_default(repository, asked):
    root = repository({**LAYOUTS["an agent with its evalset beside it"]})

    asked("", "", "")

    assert list(written(root)["agents"]) == ["shop_agent"]
    assert written(root)["criteria"] == {"from": "eval/test_config.json"}
    assert (root / ".github/workflows/ci-eval.yml").exists()


def test_nothing_is_written_if_the_draft_is_refused(repository):
    cases = "id,prompt,expected,assert.contains\nadd,Add 2 and 3.,It is 5.,5\n"
    root = repository({"evals/sums.csv": cases})

    assert main(["init", "--yes"]) == ExitCode.USAGE_ERROR

    assert {each.name for each in root.iterdir()} == {".git", "evals"}


def test_with_yes_nothing_is_asked(repository, asked, monkeypatch):
    repository({})
    monkeypatch.setattr("click.prompt", lambda *_, **__: pytest.fail("asked"))
    monkeypatch.setattr("click.confirm", lambda *_, **__: pytest.fail("asked"))
    monkeypatch.setattr("ci_eval.cli.init.init_command.is_watched", lambda: True)

    assert main(["init", "--yes"]) == 0


# --- Agents of ADK, and repositories of others --------------------------------------------------

SCRIPTED = '''\
from google.adk.agents import Agent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types


def track(order: int) -> dict:
    """Return where an order is."""
    return {"place": "Oslo"}


class Scripted(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        part = llm_request.contents[-1].parts[0]
        said = types.Part(text="Hello, how can I help?")
        if part.function_response:
            said = types.Part(text=f"Order 9 is in {part.function_response.response['place']}.")
        elif "9" in part.text:
            said = types.Part(function_call=types.FunctionCall(name="track", args={"order": 9}))
        used = types.GenerateContentResponseUsageMetadata(prompt_token_count=7)
        content = types.Content(role="model", parts=[said])
        yield LlmResponse(content=content, usage_metadata=used)


root_agent = Agent(name="shop", model=Scripted(model="scripted"), tools=[track])
'''


@pytest.mark.skipif("CI_EVAL_ADK_PYTHON" not in os.environ, reason="needs a Python with google-adk")
@pytest.mark.parametrize(
    "more",
    ["", "\nfrom google.adk.apps import App\napp = App(name='shop', root_agent=root_agent)\n"],
)
def test_an_agent_of_adk_is_run_as_it_is(repository, more, capsys):
    both = case("both", GREETS["conversation"][0], TRACKS["conversation"][0])
    root = repository(
        {
            "agents/shop/__init__.py": "from . import agent\n",
            "agents/shop/agent.py": SCRIPTED + more,
            "agents/shop/smoke.evalset.json": evalset(GREETS, TRACKS, both),
        }
    )
    python = Path(os.environ["CI_EVAL_ADK_PYTHON"])
    (root / ".venv").symlink_to(python.parent.parent)

    assert main(["init", "--yes"]) == 0
    assert main(["run"]) == ExitCode.PASSED, capsys.readouterr().err

    traces = [
        json.loads(line) for line in (root / "ci-eval-report/traces.jsonl").read_text().splitlines()
    ]
    events = traces[1]["invocations"][0]["intermediate_data"]["invocation_events"]
    answer = events[1]["content"]["parts"][0]["function_response"]["response"]
    assert answer == {"place": "Oslo"}
    assert written(root)["agents"]["shop"]["adk"] == "agents/shop"
    assert not (root / "ci_eval_agent.py").exists()


ANSWERING = {
    "langgraph": """
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph

builder = StateGraph(MessagesState)
builder.add_node("talk", lambda _: {"messages": [AIMessage("Hello, how can I help?")]})
builder.add_edge(START, "talk")
graph = builder.compile()
""",
    "pydantic_ai": """
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

graph = Agent(TestModel(custom_output_text="Hello, how can I help?"))
""",
}


@pytest.mark.skipif(
    "CI_EVAL_FRAMEWORKS_PYTHON" not in os.environ,
    reason="CI_EVAL_FRAMEWORKS_PYTHON names no Python with langgraph and pydantic-ai",
)
@pytest.mark.parametrize("framework", ANSWERING)
def test_an_agent_of_another_framework_is_run_as_it_is(repository, framework, capsys):
    root = repository({"flow.py": ANSWERING[framework], "evals/a.evalset.json": evalset(GREETS)})
    (root / ".venv").symlink_to(Path(os.environ["CI_EVAL_FRAMEWORKS_PYTHON"]).parent.parent)

    assert main(["init", "--yes"]) == 0
    assert main(["run"]) == ExitCode.PASSED, capsys.readouterr().err

    assert written(root)["agents"]["flow"][framework] == "flow:graph"


def corpus() -> Iterable[Path]:
    folder = os.environ.get("CI_EVAL_CORPUS")
    return sorted(each for each in Path(folder).iterdir() if each.is_dir()) if folder else ()


@pytest.fixture
def copied(repository) -> Callable[[Path], Path]:
    """Copy a repository of somebody else, as it is now: `@…` holds older versions of files."""

    def copy(original: Path) -> Path:
        root = repository({})
        older = shutil.ignore_patterns("@*")
        shutil.copytree(
            original, root, dirs_exist_ok=True, ignore=older, copy_function=shutil.copyfile
        )
        return root

    return copy


def run_computed(root: Path) -> int | None:
    """Run with what takes neither a model nor code of theirs; `None` where all takes that."""
    criteria = load(str(root / "ci-eval.yaml"))[0].criteria
    names = [name for name, each in criteria.items() if isinstance(each, Criterion)]
    if any(each.judged for each in criteria.values()):
        assert main(["run"]) == ExitCode.USAGE_ERROR  # there is no key
    return main(["run", *(f"--criterion={name}" for name in names)]) if names else None


@pytest.mark.parametrize("original", corpus(), ids=lambda each: each.name)
def test_repositories_of_others_get_a_configuration_that_is_valid(copied, original, capsys):
    root = copied(original)

    assert main(["init", "--yes"]) == 0, capsys.readouterr().err
    assert main(["validate"]) == 0, capsys.readouterr().err
    (agent,) = written(root)["agents"].values()
    cases = [each for found in survey(root).evalsets for each in found.opened.cases()]
    if any(each.conversation is None for each in cases):
        assert run_computed(root) in (ExitCode.USAGE_ERROR, None)  # users are simulated by a model
    elif "python" in agent:
        assert run_computed(root) in (ExitCode.INCOMPLETE, None)


@pytest.mark.parametrize("original", corpus(), ids=lambda each: each.name)
def test_repositories_of_others_pass_where_all_that_is_expected_was_recorded(
    copied, original, capsys
):
    root = copied(original)
    cases = [each for found in survey(root).evalsets for each in found.opened.cases()]
    if not any(each.conversation for each in cases):
        pytest.skip("has no written conversation")
    record(root)

    assert main(["init", "--yes"]) == 0, capsys.readouterr().err
    code = run_computed(root)

    assert written(root)["agents"].popitem()[1] == {"recorded": "traces/recorded.jsonl"}
    names = [each.eval_id for each in cases]
    if code is None:
        return
    if len({*names}) == len(names):
        assert code == ExitCode.PASSED, capsys.readouterr().err
    else:  # a line cannot tell cases of the same name apart
        assert code in (ExitCode.PASSED, ExitCode.FAILED)
