"""`ci-eval.yaml`: what it means, and every mistake in it with its line."""

import json
import os
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from ci_eval.agents.recorded_agent import Recorded
from ci_eval.baselines.file_store import FileStore
from ci_eval.config.load_config import load
from ci_eval.config.validated_config import Config
from ci_eval.plugins import points
from ci_eval.records.errors import ConfigError, UsageError
from ci_eval.runtime.context import RunContext

MINIMAL = """\
agents:
  bot: {recorded: traces.jsonl}
evalsets:
  smoke: smoke.json
criteria:
  tool_trajectory_avg_score: 1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "traces.jsonl").write_text('{"eval_id": "a", "invocations": []}\n')
    return root


def loaded(folder: Path, text: str) -> Config:
    path = folder / "ci-eval.yaml"
    path.write_text(text)
    context = RunContext(env=dict(os.environ), root=folder, now=lambda: 0.0)
    return load(path, shown="ci-eval.yaml", context=context)


def refusal(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        loaded(folder, text)
    return [str(problem) for problem in caught.value.problems]


# --- What a configuration means -------------------------------------------------------------


def test_three_things_are_enough(folder: Path) -> None:
    config = loaded(folder, MINIMAL)
    assert config.suite == "shop"
    assert config.dialect == "adk"
    assert config.agents == {"bot": Recorded(recorded="traces.jsonl")}
    assert config.evalsets["smoke"].path == "smoke.json"
    assert config.criteria["tool_trajectory_avg_score"].threshold == 1.0
    assert (config.run.repeats, config.run.concurrency, config.run.timeout_s) == (1, 8, 120.0)
    assert config.baseline is None
    assert config.gate.mode is None
    assert list(config.reports) == ["junit", "markdown", "summary", "annotations", "html"]
    assert config.warnings == ()


def test_everything_can_be_said(folder: Path) -> None:
    config = loaded(
        folder,
        """\
version: 1
name: the shop
dialect: adk@2.3
agents:
  bot: {recorded: traces.jsonl}
evalsets:
  smoke: {path: smoke.json, cases: [a, b*]}
criteria:
  words: {use: response_match_score, threshold: 0.5}
run: {repeats: 3, concurrency: 2, timeout_s: 1.5, retries: 1}
baseline: {store: file, path: base.json, window: 2}
gate: {mode: both, min_pass_rate: 0.9, min_score: {words: 0.4}, on_vanished: fail}
reports: [junit]
matrix:
  - {agents: [bot], evalsets: [smoke]}
  - {criteria: [words]}
""",
    )
    assert config.suite == "the shop"
    assert config.evalsets["smoke"].cases == ("a", "b*")
    assert config.criteria["words"].type_name == "adk@2.3/response_match_score"
    assert config.run.model_dump() == {
        "repeats": 3,
        "concurrency": 2,
        "timeout_s": 1.5,
        "retries": 1,
        "engine": "local",
    }
    assert config.baseline == FileStore(path="base.json", window=2)
    assert config.gate.min_score == {"words": 0.4}
    assert config.gate.on_vanished == "fail"
    assert list(config.reports) == ["junit"]


def test_a_baseline_is_a_file_unless_it_says_otherwise(folder: Path) -> None:
    assert loaded(folder, MINIMAL + "baseline: {}\n").baseline == FileStore()


def test_words_that_yaml_1_1_took_for_booleans_still_set_switches(folder: Path) -> None:
    config = loaded(
        folder,
        MINIMAL.replace(
            "tool_trajectory_avg_score: 1",
            "tool_trajectory_avg_score: {threshold: 1, ignore_args: yes}",
        ),
    )
    assert config.criteria["tool_trajectory_avg_score"].options()["ignore_args"] is True


def test_values_that_occur_twice_may_be_written_once(folder: Path) -> None:
    text = MINIMAL + "  tool_call_count_v1:\nrun: &run {timeout_s: 5}\n"
    assert loaded(folder, text).run.timeout_s == 5.0


def test_without_a_matrix_all_meet_all(folder: Path) -> None:
    config = loaded(folder, MINIMAL)
    assert set(config.criteria_for("bot", "smoke")) == {"tool_trajectory_avg_score"}


def test_a_matrix_says_who_meets_whom(folder: Path) -> None:
    config = loaded(
        folder,
        """\
agents:
  old: {recorded: traces.jsonl}
  new: {recorded: traces.jsonl}
evalsets: {smoke: smoke.json, full: full.json}
criteria: {tool_trajectory_avg_score: 1, response_match_score: 0.5}
matrix:
  - {agents: [new]}
  - {agents: [old], evalsets: [smoke], criteria: [response_match_score]}
  - {evalsets: []}
""",
    )
    both = {"tool_trajectory_avg_score", "response_match_score"}
    assert set(config.criteria_for("new", "smoke")) == both
    assert set(config.criteria_for("new", "full")) == both
    assert set(config.criteria_for("old", "smoke")) == {"response_match_score"}
    assert config.criteria_for("old", "full") == {}
    assert config.warnings == ()


def test_what_no_row_of_a_matrix_names_is_warned_of(folder: Path) -> None:
    agents = MINIMAL.replace("evalsets:", "  b2: {recorded: traces.jsonl}\nevalsets:")
    text = agents.replace("evalsets:", "evalsets:\n  two: smoke.json")
    rows = "matrix: [{agents: [bot], evalsets: [smoke]}]\n"
    assert [(each.where, each.message) for each in loaded(folder, text + rows).warnings] == [
        ("matrix", f"no row names the {name}, so it is never run; add it to one, or remove it")
        for name in ("agent 'b2'", "evalset 'two'")
    ]
    assert loaded(folder, f"{text}matrix: [{{agents: [bot, b2]}}]\n").warnings == ()


def test_a_configuration_cannot_be_changed(folder: Path) -> None:
    run = loaded(folder, MINIMAL).run
    with pytest.raises(ValidationError):
        run.repeats = 2  # type: ignore[misc]  # it is frozen


def test_a_configuration_may_be_json(folder: Path) -> None:
    text = (
        '{"agents": {"bot": {"recorded": "traces.jsonl"}}, "evalsets": {"e": "e.json"},'
        ' "criteria": {"response_match_score": 0.5}}'
    )
    assert loaded(folder, text).criteria["response_match_score"].threshold == 0.5


# --- Eval configs, presets, and what is switched off ----------------------------------------

WITHOUT_CRITERIA = MINIMAL.partition("criteria")[0]
EITHER = '{"criteria": {"response_match_score": {"threshold": 0.5}}}'
AGENTFLOW = {"criteria": {"rouge_match": {}, "safety": {"enabled": False}}, "timeout": 9}


def of_file(folder: Path, content: object, more: str = "") -> Config:
    """Load a configuration that takes its criteria from an eval config."""
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / "eval.json").write_text(text)
    return loaded(folder, WITHOUT_CRITERIA + "criteria: {from: eval.json}\n" + more)


@pytest.mark.parametrize(
    ("dialect", "meant"),
    [
        ("adk", "adk/response_match_score"),
        ("adk@2.3", "adk@2.3/response_match_score"),
        ("agentflow", "agentflow/response_match_score"),
    ],
)
def test_the_dialect_says_what_names_mean_here_and_in_a_file_of_either(
    folder: Path, dialect: str, meant: str
) -> None:
    written = loaded(
        folder, WITHOUT_CRITERIA + f"criteria: {{response_match_score: 1}}\ndialect: {dialect}\n"
    )
    read = of_file(folder, EITHER, f"dialect: {dialect}\n")
    for config in (written, read):
        assert config.criteria["response_match_score"].type_name == meant
        assert config.dialect == dialect


def test_a_file_of_either_needs_a_dialect_that_is_written(folder: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        of_file(folder, EITHER)
    [problem] = caught.value.problems
    assert (problem.file, problem.line) == ("eval.json", 1)
    assert "set `dialect: adk` or `dialect: agentflow`" in problem.message


def test_agentflows_file_says_how_to_run_unless_the_configuration_does(folder: Path) -> None:
    config = of_file(folder, AGENTFLOW)
    assert (config.run.timeout_s, config.run.concurrency, config.run.repeats) == (9, 1, 1)
    config = of_file(folder, AGENTFLOW, "run: {timeout_s: 120, repeats: 2}\n")
    assert (config.run.timeout_s, config.run.concurrency, config.run.repeats) == (120, 1, 2)
    config = of_file(folder, {**AGENTFLOW, "parallel": True}, "run: {concurrency: 8}\n")
    assert (config.run.timeout_s, config.run.concurrency) == (9, 8)
    config = of_file(folder, '{"criteria": {"response_match_score": 1}}')
    assert (config.run.timeout_s, config.run.concurrency) == (120, 8)


def test_nothing_is_executed_only_where_agentflows_file_asks_for_it(folder: Path) -> None:
    assert of_file(folder, {**AGENTFLOW, "mock_mode": True}).mock
    assert not of_file(folder, AGENTFLOW).mock
    assert not loaded(folder, MINIMAL).mock


def test_what_is_switched_off_is_remembered_and_scores_nothing(folder: Path) -> None:
    config = of_file(folder, AGENTFLOW)
    assert (set(config.criteria), config.disabled) == ({"rouge_match"}, ("safety",))
    assert set(config.criteria_for("bot", "smoke")) == {"rouge_match"}
    config = loaded(
        folder,
        MINIMAL
        + "  words: {use: response_match_score, threshold: 1, enabled: false}\n"
        + "matrix: [{criteria: [tool_trajectory_avg_score, words]}]\n",
    )
    assert config.disabled == ("words",)
    assert set(config.criteria_for("bot", "smoke")) == {"tool_trajectory_avg_score"}


@pytest.mark.parametrize("mode", ["regression", "both"])
def test_a_mode_that_compares_with_nothing_is_warned_of(folder: Path, mode: str) -> None:
    (warning,) = loaded(folder, f"{MINIMAL}gate: {{mode: {mode}}}\n").warnings
    assert "gate.mode: needs a `baseline` to compare with" in str(warning)
    assert loaded(folder, f"{MINIMAL}gate: {{mode: {mode}}}\nbaseline: {{}}\n").warnings == ()


def test_a_floor_of_what_is_switched_off_is_a_mistake(folder: Path) -> None:
    text = MINIMAL + "  words: {use: response_match_score, threshold: 1, enabled: false}\n"
    assert refusal(folder, text + "gate: {min_score: {words: 0.5}}\n") == [
        "ci-eval.yaml:8: gate.min_score.words: is disabled, so it has no mean"
    ]


def test_where_all_is_switched_off_nothing_would_be_measured(folder: Path) -> None:
    off = "  response_match_score: {threshold: 1, enabled: false}\n"
    assert refusal(folder, WITHOUT_CRITERIA + "criteria:\n" + off) == [
        "ci-eval.yaml:5: criteria: nothing would be measured; add criteria or a `preset`"
    ]


def test_a_preset_stands_in_for_criteria_and_can_be_referred_to(folder: Path) -> None:
    config = loaded(
        folder,
        WITHOUT_CRITERIA
        + "preset: regression\ngate: {min_score: {adk/response_match_score: 0.9}}\n"
        + "matrix: [{criteria: [adk/response_match_score]}]\n",
    )
    assert set(config.criteria) == {"adk/response_match_score", "adk/tool_trajectory_avg_score"}
    assert set(config.criteria_for("bot", "smoke")) == {"adk/response_match_score"}


def test_a_file_that_cannot_be_read_is_no_lack_of_criteria(folder: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        of_file(folder, '{"criteria": {}}}')
    assert [str(problem) for problem in caught.value.problems] == [
        "ci-eval.yaml:5: criteria.from: eval.json cannot be read",
        "eval.json:1: has extra text after the end",
    ]


# --- Mistakes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "ci-eval.yaml:1: is empty"),
        ("# nothing yet\n", "ci-eval.yaml:1: is empty"),
        ("{}", "ci-eval.yaml:1: is empty"),
        ("- a\n", "ci-eval.yaml:1: expected keys, found a list"),
        ("hello\n", "ci-eval.yaml:1: expected keys, found 'hello'"),
        ("5\n", "ci-eval.yaml:1: expected keys, found 5"),
        (
            "metrics_to_run: [A]\ncustom_metrics: []\n",
            (
                "ci-eval.yaml:1: is not a configuration of ci-eval: "
                "an object with 'metrics_to_run', 'custom_metrics'"
            ),
        ),
    ],
)
def test_what_is_no_configuration_is_told_so(folder: Path, text: str, said: str) -> None:
    assert refusal(folder, text) == [said]


def test_a_file_that_is_not_there_or_no_yaml_is_told_so(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"^ci-eval.yaml:1: is not YAML: "):
        loaded(folder, "a: [")
    context = RunContext(env={}, root=folder, now=lambda: 0.0)
    with pytest.raises(UsageError, match=r"^x.yaml: no such file$"):
        load(folder / "x.yaml", shown="x.yaml", context=context)


def test_each_part_must_be_there(folder: Path) -> None:
    assert refusal(folder, "version: 1\n") == [
        "ci-eval.yaml:1: 'agents' is missing",
        "ci-eval.yaml:1: 'evalsets' is missing",
        "ci-eval.yaml:1: 'criteria' or 'preset' is missing",
    ]
    for key, nothing in (("criteria", "{}"), ("preset", "[]"), ("preset", "{}")):
        assert refusal(folder, MINIMAL.partition("criteria")[0] + f"{key}: {nothing}\n") == [
            f"ci-eval.yaml:5: {key}: nothing would be measured; add criteria or a `preset`"
        ]
    assert refusal(folder, "agents: {}\nevalsets:\ncriteria: []\n") == [
        "ci-eval.yaml:1: agents: must not be empty",
        "ci-eval.yaml:2: evalsets: expected an object, found nothing",
        (
            "ci-eval.yaml:3: criteria: expected a mapping such as "
            "`criteria: {response_match_score: 0.8}`, found a list"
        ),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("version: 2", "version: expected 1, found 2"),
        ("dialect: adk2", "dialect: expected 'adk', 'adk@2.3' or 'agentflow', found 'adk2'"),
        ("name: ''", "name: must not be empty"),
        (f"name: {'x' * 101}", "name: must not be longer than 100 characters"),
        ("name: 5", "name: expected text, found 5"),
        ("criterias: {}", "criterias: unknown key. Did you mean 'criteria'?"),
        ("run: {repeat: 3}", "run.repeat: unknown key. Did you mean 'repeats'?"),
        ("run: {repeats: 0}", "run.repeats: must be at least 1, found 0"),
        ("run: {repeats: 1001}", "run.repeats: must be at most 1000, found 1001"),
        ("run: {timeout_s: 0}", "run.timeout_s: must be more than 0, found 0"),
        ("run: 5", "run: expected an object, found 5"),
        (
            "gate: {mode: strict}",
            "gate.mode: expected 'threshold', 'regression' or 'both', found 'strict'",
        ),
        (
            "gate: {min_pass_rate: 90}",
            "gate.min_pass_rate: must be at most 1, found 90. Did you mean 0.9?",
        ),
        (
            "gate: {min_score: {tool_trajectry_avg_score: 1}}",
            (
                "gate.min_score.tool_trajectry_avg_score: unknown name 'tool_trajectry_avg_score'. "
                "Did you mean 'tool_trajectory_avg_score'?"
            ),
        ),
        (
            "gate: {min_score: {tool_trajectory_avg_score: 80}}",
            "gate.min_score.tool_trajectory_avg_score: must lie between 0 and 1. Did you mean 0.8?",
        ),
        (
            "gate: {min_score: {tool_trajectory_avg_score: much}}",
            "gate.min_score.tool_trajectory_avg_score: expected a number, found 'much'",
        ),
        ("gate: {min_score: 1}", "gate.min_score: expected an object, found 1"),
        ("reports: [junt]", "reports[0]: unknown name 'junt'. Did you mean 'junit'?"),
        ("reports: [5]", "reports[0]: expected a name, or a name with options, found 5"),
        (
            "reports: [{junit: {profile: loose}}]",
            "reports[0].junit.profile: expected 'default' or 'strict', found 'loose'",
        ),
        ("reports: junit", "reports: expected a list, found 'junit'"),
        ("baseline: .ci-eval/x.json", "baseline: expected an object, found '.ci-eval/x.json'"),
        ("baseline: {store: fil}", "baseline.store: unknown baseline store. Did you mean 'file'?"),
        ("baseline: {window: 0}", "baseline.window: must be at least 1, found 0"),
        ("baseline: {path: ''}", "baseline.path: must not be empty"),
        ("baseline: {pth: x}", "baseline.pth: unknown key. Did you mean 'path'?"),
        ("matrix: []", "matrix: must not be empty"),
        ("matrix: {agents: [bot]}", "matrix: expected a list, found an object"),
        ("matrix: [bot]", "matrix[0]: expected an object, found 'bot'"),
        ("matrix: [{agent: [bot]}]", "matrix[0].agent: unknown key. Did you mean 'agents'?"),
        ("matrix: [{agents: bot}]", "matrix[0].agents: expected a list, found 'bot'"),
        (
            "matrix: [{agents: [bto]}]",
            "matrix[0].agents[0]: unknown name 'bto'. Did you mean 'bot'?",
        ),
        ("matrix: [{evalsets: [x]}]", "matrix[0].evalsets[0]: unknown name 'x'; known: smoke"),
        (
            "matrix: [{criteria: [x]}]",
            "matrix[0].criteria[0]: unknown name 'x'; known: tool_trajectory_avg_score",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line(folder: Path, line: str, said: str) -> None:
    assert refusal(folder, MINIMAL + line + "\n") == [f"ci-eval.yaml:7: {said}"]


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("", "agents.bot: needs a type; known: " + ", ".join(points.agent)),
        ("{}", "agents.bot: needs a type; known: " + ", ".join(points.agent)),
        ("traces.jsonl", "agents.bot: needs a type; known: " + ", ".join(points.agent)),
        ("{recordd: x}", "agents.bot: has no known agent type. Did you mean 'recorded'?"),
        (
            "{recorded: traces.jsonl, command: [x]}",
            "agents.bot: has several types: recorded, command",
        ),
        (
            "{recorded: traces.jsonl, window: 5}",
            "agents.bot.window: unknown key; known: gcs, recorded",
        ),
        ("{recorded: ''}", "agents.bot.recorded: must not be empty"),
        ("{recorded: x.jsonl}", "agents.bot.recorded: x.jsonl: no such file"),
        ('{recorded: "x\\0y"}', r"agents.bot.recorded: x\x00y: is not a path: it contains U+0000"),
    ],
)
def test_an_agent_has_exactly_one_type(folder: Path, agent: str, said: str) -> None:
    text = MINIMAL.replace("{recorded: traces.jsonl}", agent)
    assert refusal(folder, text) == [f"ci-eval.yaml:2: {said}"]


@pytest.mark.parametrize(
    ("evalset", "said"),
    [
        ("5", "evalsets.smoke: expected a path, found 5"),
        ("", "evalsets.smoke: expected a path, found nothing"),
        ("''", "evalsets.smoke.path: must not be empty"),
        ("{cases: [a]}", "evalsets.smoke: 'path' is missing"),
        ("{path: a, cases: a}", "evalsets.smoke.cases: expected a list, found 'a'"),
        (
            "{path: a, line: 5}",
            "evalsets.smoke.line: unknown key; known: cases, path, tags, tool_mocks",
        ),
    ],
)
def test_an_evalset_is_a_path(folder: Path, evalset: str, said: str) -> None:
    text = MINIMAL.replace("smoke.json", evalset)
    assert refusal(folder, text) == [f"ci-eval.yaml:4: {said}"]


@pytest.mark.parametrize("name", ["a/b", "a\tb", "", "\x7f", "a\x85b", "x" * 201])
@pytest.mark.parametrize("kind", ["bot", "smoke"])
def test_names_can_be_shown_and_joined(folder: Path, kind: str, name: str) -> None:
    quoted = '"' + name.encode("unicode_escape").decode() + '":'
    (said,) = refusal(folder, MINIMAL.replace(f"{kind}:", quoted))
    assert said.endswith(
        ": expected a name of 1 to 200 characters, without '/' or control characters"
    )
    assert said.startswith(f"ci-eval.yaml:{2 if kind == 'bot' else 4}: ")


@pytest.mark.parametrize("name", ["GPT-5 (old)", "gpt:5", "ärger", "🚀", "a b", "a.b"])
def test_names_may_hold_what_people_write(folder: Path, name: str) -> None:
    assert name in loaded(folder, MINIMAL.replace("bot:", f'"{name}":')).agents


def test_a_criterion_may_have_one_slash_in_its_name(folder: Path) -> None:
    spec = "{use: response_match_score, threshold: 1}"
    one, two = (
        MINIMAL.replace("tool_trajectory_avg_score: 1", f"{name}: {spec}")
        for name in ("own/words", "my/own/words")
    )
    assert "own/words" in loaded(folder, one).criteria
    (said,) = refusal(folder, two)
    assert said.startswith("ci-eval.yaml:6: criteria.my/own/words: expected a name of ")


def test_something_must_be_able_to_fail(folder: Path) -> None:
    text = MINIMAL.replace("tool_trajectory_avg_score: 1", "tool_call_count_v1:")
    message = "every criterion only informs or warns, so nothing could pass or fail"
    assert refusal(folder, text) == [f"ci-eval.yaml:5: criteria: {message}"]
    warns = text + "  response_match_score: {threshold: 1, tier: warn}\n"
    assert refusal(folder, warns) == [f"ci-eval.yaml:5: criteria: {message}"]
    assert loaded(folder, warns.replace("warn", "block"))
    (said,) = refusal(folder, text + "  response_match_score: 2\n")
    assert said.startswith("ci-eval.yaml:7: criteria.response_match_score: the threshold must ")


def test_all_mistakes_are_named_at_once_in_the_order_of_the_file(folder: Path) -> None:
    (folder / "tc.json").write_text('{"criteria":\n {"response_match_scor": 1}}')
    found = refusal(
        folder,
        """\
run: {timeout_s: -1}
agents:
  bot: {recorded: nope.jsonl}
  "a/b": {recorded: traces.jsonl}
evalsets:
  smoke: {pth: x}
criteria:
  from: tc.json
  respnse_match_score: 1
  tool_trajectory_avg_score: 2
matrix: [{agents: [bot, nobody]}]
reports: [postcard]
""",
    )
    places = [re.match(r"(.*?):(\d+): ([\w.\[\]/]+)", line) for line in found]
    assert [(place[1], int(place[2]), place[3]) for place in places if place] == [
        ("ci-eval.yaml", 1, "run.timeout_s"),
        ("ci-eval.yaml", 3, "agents.bot.recorded"),
        ("ci-eval.yaml", 4, "agents.a/b"),
        ("ci-eval.yaml", 6, "evalsets.smoke.pth"),
        ("ci-eval.yaml", 9, "criteria.respnse_match_score"),
        ("ci-eval.yaml", 10, "criteria.tool_trajectory_avg_score"),
        ("ci-eval.yaml", 11, "matrix[0].agents[1]"),
        ("ci-eval.yaml", 12, "reports[0]"),
        ("tc.json", 2, "criteria.response_match_scor"),
    ]


def test_a_reference_to_a_part_that_is_wrong_itself_is_no_second_mistake(folder: Path) -> None:
    text = MINIMAL.replace("traces.jsonl", "nope.jsonl") + "matrix: [{agents: [bot]}]\n"
    assert refusal(folder, text) == [
        "ci-eval.yaml:2: agents.bot.recorded: nope.jsonl: no such file"
    ]


def test_a_path_to_a_file_of_the_machine_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    (folder / "link.jsonl").symlink_to(tmp_path / "secret")
    assert refusal(folder, MINIMAL.replace("traces", "link")) == [
        ("ci-eval.yaml:2: agents.bot.recorded: link.jsonl: is a symlink out of the repository")
    ]
