"""What `ci-eval adk` is given becomes a configuration."""

import json
import sys

import pytest
from support.git_repositories import git_init

from ci_eval.cli.adk.adk_eval_options import Options, agent_of, configured
from ci_eval.records.errors import UsageError
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import agent_environment

MEASURED = [
    "tool_call_count_v1",
    "inference_call_count_v1",
    "token_usage_v1",
    "invocation_duration_v1",
]


@pytest.fixture
def context(tmp_path, monkeypatch) -> RunContext:
    """A folder with an agent that has an evalset."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agents/shop").mkdir(parents=True)
    (tmp_path / "agents/shop/agent.py").write_text("root_agent = None\n")
    evalset = {"eval_set_id": "s", "eval_cases": []}
    (tmp_path / "agents/shop/s.evalset.json").write_text(json.dumps(evalset))
    return RunContext(env={"PATH": ""}, root=tmp_path, now=lambda: 0.0)


def options(**more) -> Options:
    return Options(
        **{"agent": "agents/shop", "sets": ("s",), "interpreter": sys.executable, **more}
    )


def environment(context: RunContext, **more) -> dict[str, str]:
    env = agent_of(options(**more), context)["env"]
    return agent_environment(context, env)


def test_the_agent_is_the_one_in_the_folder_and_called_like_it(context):
    config = configured(options(agent="agents/shop/"), context)

    (agent,) = config.agents.values()
    assert list(config.agents) == ["shop"]
    assert (agent.type_name, agent.adk) == ("adk", "agents/shop/")
    assert config.suite == "shop"
    assert config.shown == ""


def test_without_an_eval_config_adks_defaults_are_judged_and_its_measures_taken(context):
    config = configured(options(), context)

    thresholds = {name: each.threshold for name, each in config.criteria.items()}
    judged = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
    assert thresholds == judged | dict.fromkeys(MEASURED)
    assert all(each.type_name.startswith("adk/") for each in config.criteria.values())
    assert config.gate.mode == "threshold"


@pytest.mark.parametrize("given", [True, False])
def test_an_eval_config_that_is_given_or_lies_beside_takes_their_place(context, given):
    beside = context.root / "agents/shop/test_config.json"
    beside.write_text('{"criteria": {"response_match_score": 0.3}}')
    chosen = {"config_file": str(beside)} if given else {"sets": ("agents/shop/s.evalset.json",)}

    config = configured(options(**chosen), context)

    assert list(config.criteria) == ["response_match_score", *MEASURED]
    assert config.criteria["response_match_score"].threshold == 0.3


def test_an_eval_config_is_adks_where_nothing_else_tells(context):
    (context.root / "mine.json").write_text('{"criteria": {"safety_v1": {"threshold": 0.5}}}')

    config = configured(options(config_file="mine.json"), context)

    assert config.criteria["safety_v1"].type_name == "adk/safety_v1"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"config_file": "gone.json"}, "--config_file_path: gone.json cannot be read"),
        ({"interpreter": "no/python"}, "--interpreter: there is no program 'no/python'"),
        ({"agent": "agents", "sets": ("agents/shop/s.evalset.json",)}, "AGENT_DIR: agents has "),
    ],
)
def test_what_is_wrong_is_told_by_the_option(context, wrong, message):
    with pytest.raises(UsageError) as raised:
        configured(options(**wrong), context)

    assert str(raised.value.problems[0]).startswith(message)


def test_a_problem_with_a_criterion_names_it_and_its_file(context):
    text = '{"criteria": {"response_match_score": 0.5}}'
    (context.root / "mine.json").write_text(text)

    config = configured(options(config_file="mine.json"), context)

    found = config.document.problem("is wrong", ("criteria", "response_match_score"))
    assert str(found) == "mine.json: response_match_score: is wrong"


def test_the_agent_has_our_environment_but_for_what_acts_as_the_job(context):
    context = RunContext(
        {"PATH": "", "MY_KEY": "k", "GITHUB_TOKEN": "t"}, context.root, context.now
    )

    assert environment(context) == {"PATH": "", "MY_KEY": "k"}


def test_a_feature_that_is_enabled_and_disabled_is_disabled_as_in_adk(context):
    found = agent_of(options(enable=("A, B", "D"), disable=("C,", "D")), context)

    assert found["features"] == {"A": True, "B": True, "C": False, "D": False}


def test_the_interpreter_is_looked_for_where_none_is_named(context):
    own = context.root / "agents/.venv/bin/python"
    own.parent.mkdir(parents=True)
    own.symlink_to(sys.executable)
    git_init(context.root)

    assert agent_of(options(interpreter=None), context)["interpreter"] == str(own)
    assert agent_of(options(interpreter="python3"), context)["interpreter"] == "python3"
