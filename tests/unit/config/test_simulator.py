"""The `simulator:` of a configuration and ADK's and AgentFlow's `user_simulator_config`."""

import json
from pathlib import Path
from typing import Any

import pytest

from ci_eval.config.eval_config import EvalConfigFile, read_eval_config
from ci_eval.config.load_config import load
from ci_eval.config.validated_config import Config
from ci_eval.judges.openai_judge import OpenAI
from ci_eval.records.errors import ConfigError
from ci_eval.runtime.context import RunContext
from ci_eval.simulators.agentflow_simulator import AgentFlow
from ci_eval.simulators.llm_simulator import LlmBacked

OWN = "{{ stop_signal }}{{ conversation_plan }}{{ conversation_history }}"


def loaded(folder: Path, text: str, *, agent: str = "{python: 'bot:answer'}") -> Config:
    (folder / "bot.py").touch()
    path = folder / "ci-eval.yaml"
    head = f"agents: {{bot: {agent}}}\nevalsets: {{e: e.json}}\n"
    criteria = "" if "criteria:" in text else "criteria: {ci/latency_s: 5}\n"
    path.write_text(head + criteria + text)
    context = RunContext(env={}, root=folder, now=lambda: 0.0)
    return load(path, shown="ci-eval.yaml", context=context)


def refusal(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        loaded(folder, text)
    return [str(problem) for problem in caught.value.problems]


# --- In a configuration ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "simulator"),
    [
        ("", LlmBacked()),
        ("dialect: adk@2.3\n", LlmBacked()),
        ("dialect: agentflow\n", AgentFlow()),
        ("simulator:\n", LlmBacked()),
        ("simulator: {}\n", LlmBacked()),
        ("simulator: {type: agentflow}\n", AgentFlow()),
        ("dialect: agentflow\nsimulator: {max_invocations: 4}\n", AgentFlow(max_invocations=4)),
        ("dialect: agentflow\nsimulator: {type: llm_backed}\n", LlmBacked()),
        (
            "simulator: {model: gpt-4o, max_allowed_invocations: 4, settings: {top_p: 1}}\n",
            LlmBacked(model="gpt-4o", max_allowed_invocations=4, settings={"top_p": 1}),
        ),
    ],
)
def test_who_plays_the_users_of_scenarios(tmp_path: Path, text: str, simulator: Any):
    found = loaded(tmp_path, text).simulation
    assert found
    assert (found.simulator, found.own) == (simulator, None)


@pytest.mark.parametrize(
    "text",
    [
        "simulator: {provider: openai, model: llama, base_url: 'http://localhost:8000/v1'}\n",
        "simulator: {model: gpt-llama, base_url: 'http://localhost:8000/v1'}\n",
    ],
)
def test_a_provider_of_its_own_stands_beside_its_options(tmp_path: Path, text: str):
    found = loaded(tmp_path, f"judge: {{model: gemini-2.5-pro}}\n{text}")

    assert found.simulation
    assert isinstance(found.simulation.own, OpenAI)
    player = found.judging.player(found.simulation)
    assert isinstance(player, OpenAI)
    assert player.base_url == "http://localhost:8000/v1"
    assert player.model in ("llama", "gpt-llama")


def test_where_nothing_is_said_it_is_asked_as_judges_are(tmp_path: Path):
    found = loaded(tmp_path, "judge: {model: gemini-2.5-pro, settings: {temperature: 0}}\n")
    assert found.simulation
    player = found.judging.player(found.simulation)
    assert (player.type_name, player.model, player.settings) == ("gemini", "gemini-2.5-pro", {})


def test_nobody_is_played_where_all_conversations_took_place(tmp_path: Path):
    (tmp_path / "traces.jsonl").touch()
    assert loaded(tmp_path, "", agent="{recorded: traces.jsonl}").simulation is None


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("5", ["simulator: expected an object, found 5"]),
        ("[llm_backed]", ["simulator: expected an object, found a list"]),
        (
            "{type: llm_audio}",
            ["simulator.type: unknown simulator 'llm_audio'. Did you mean 'llm_backed'?"],
        ),
        (
            "{type: [x]}",
            ["simulator.type: unknown simulator \"['x']\"; known: agentflow, llm_backed"],
        ),
        (
            "{max_invocations: 3}",
            ["simulator.max_invocations: unknown key. Did you mean 'max_allowed_invocations'?"],
        ),
        (
            "{max_allowed_invocations: many, custom_instructions: x}",
            [
                "simulator.max_allowed_invocations: expected a whole number, found 'many'",
                (
                    "simulator.custom_instructions: does not use {{ stop_signal }}, "
                    "{{ conversation_plan }}, {{ conversation_history }}"
                ),
            ],
        ),
        (
            "{model: foo}",
            [
                (
                    "simulator: cannot infer the provider of model 'foo'; set "
                    "`simulator: {provider: …}`, one of gemini, openai, scripted, vertex"
                )
            ],
        ),
        (
            "{provider: nobody}",
            ["simulator.provider: unknown judge 'nobody'; known: gemini, openai, scripted, vertex"],
        ),
        (
            "{provider: openai, model: m, base_url: 5}",
            ["simulator.base_url: expected text, found 5"],
        ),
        (
            "{settings: {temperature: hot}}",
            ["simulator: settings: temperature: expected a number, found 'hot'"],
        ),
        ("{model: 5}", ["simulator.model: expected text, found 5"]),
    ],
)
def test_what_is_wrong_with_it_has_its_line(tmp_path: Path, block: str, said: list[str]):
    found = refusal(tmp_path, f"simulator: {block}\n")
    assert found == [f"ci-eval.yaml:4: {each}" for each in said]


# --- In eval configs ------------------------------------------------------------------------


def read(folder: Path, content: dict[str, Any], **more: Any) -> tuple[EvalConfigFile, list[str]]:
    path = folder / "test_config.json"
    # Nothing tells whose file it is but what the test puts into it, and its name.
    criteria = {"response_match_score": {"threshold": 0.5}}
    path.write_text(json.dumps({"criteria": criteria, **content}, indent=1))
    found = read_eval_config(path, shown=path.name, dialect=None, **more)
    return found, [f"{each.severity}: {each}" for each in found.problems]


@pytest.mark.parametrize(
    ("key", "given", "simulator"),
    [
        ("user_simulator_config", None, None),
        ("user_simulator_config", {}, None),
        ("user_simulator_config", {"model": "m"}, LlmBacked(model="m")),
        ("user_simulator_config", {"type": None, "model": "m"}, LlmBacked(model="m")),
        (
            "userSimulatorConfig",
            {"type": "llm_backed", "maxAllowedInvocations": 1, "includeFunctionCalls": True},
            LlmBacked(max_allowed_invocations=1, include_function_calls=True),
        ),
        (
            "user_simulator_config",
            {"model_configuration": {"temperature": 0}, "custom_instructions": OWN},
            LlmBacked(settings={"temperature": 0}, custom_instructions=OWN),
        ),
    ],
)
def test_adks_user_is_read_in_both_spellings(tmp_path: Path, key: str, given: Any, simulator: Any):
    found, said = read(tmp_path, {key: given})
    assert (found.simulator, said) == (simulator, [])


def test_agentflows_user_is_read_and_what_agentflow_does_not_read_is_told(tmp_path: Path):
    given = {
        "model": "gemini-2.5-pro",
        "max_invocations": 4,
        "temperature": 0.2,
        "thinking_enabled": False,
        "thinking_budget": 10240,
        "api_style": "responses",
    }
    found, said = read(tmp_path, {"user_simulator_config": given, "parallel": True})

    assert found.simulator == AgentFlow(model="gemini-2.5-pro", max_invocations=4, temperature=0.2)
    ending = "unused option, ignored"
    assert said == [
        f"warning: test_config.json:11: user_simulator_config.thinking_enabled: {ending}",
        f"warning: test_config.json:12: user_simulator_config.thinking_budget: {ending}",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (5, "7: user_simulator_config: expected an object, found 5"),
        (
            {"type": "llm_audio", "model": "m"},
            (
                "8: user_simulator_config.type: only 'llm_backed' users are supported, "
                "found 'llm_audio'"
            ),
        ),
        (
            {"maxAllowedInvocations": "x"},
            "8: user_simulator_config.maxAllowedInvocations: expected a whole number, found 'x'",
        ),
        (
            {"model_configuration": 5},
            "8: user_simulator_config.model_configuration: expected an object, found 5",
        ),
        (
            {"custom_instructions": "{{ stop_signal }}"},
            (
                "8: user_simulator_config.custom_instructions: does not use "
                "{{ conversation_plan }}, {{ conversation_history }}"
            ),
        ),
        (
            {"max_alowed_invocations": 3},
            (
                "8: user_simulator_config.max_alowed_invocations: unknown key. Did you mean "
                "'max_allowed_invocations'?"
            ),
        ),
    ],
)
def test_what_is_wrong_in_it_has_its_line(tmp_path: Path, given: Any, said: str):
    found, problems = read(tmp_path, {"user_simulator_config": given})
    assert problems == [f"error: test_config.json:{said}"]
    assert found.simulator is None


def test_the_configuration_comes_before_the_eval_config(tmp_path: Path):
    read(tmp_path, {"user_simulator_config": {"max_allowed_invocations": 3}})
    there = loaded(tmp_path, "criteria: {from: test_config.json}\n").simulation
    here = loaded(
        tmp_path, "criteria: {from: test_config.json}\nsimulator: {model: gemini-2.5-pro}\n"
    ).simulation

    assert there
    assert here
    assert there.simulator == LlmBacked(max_allowed_invocations=3)
    assert here.simulator == LlmBacked(model="gemini-2.5-pro")


def test_a_model_of_the_eval_config_that_nobody_has_is_told(tmp_path: Path):
    read(tmp_path, {"user_simulator_config": {"model": "foo"}})
    [said] = refusal(tmp_path, "criteria: {from: test_config.json}\n")
    assert said.startswith(
        "ci-eval.yaml:3: criteria.from: user_simulator_config: cannot infer the provider of model"
    )
