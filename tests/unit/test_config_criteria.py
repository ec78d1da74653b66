"""The criteria of a configuration, and those of ADK's own `test_config.json`."""

import json
from pathlib import Path

import pytest

from ci_eval.config_criteria import read_criteria
from ci_eval.criteria.adk_efficiency import ToolCallCount
from ci_eval.criteria.adk_response_match_score import ResponseMatch, ResponseMatch23
from ci_eval.criteria.adk_tool_trajectory_avg_score import ToolTrajectory
from ci_eval.criterion_names import bare_names, resolve
from ci_eval.documents import MAX_CONFIG, parse_yaml
from ci_eval.errors import Problem, UnknownPluginError, UsageError
from ci_eval.eval_config import read_eval_config
from ci_eval.plugins import Criterion
from ci_eval.world import World

Read = tuple[dict[str, Criterion], list[str]]
KNOWN = sorted(set(bare_names()))
UNKNOWN = f"unknown criterion; known: {', '.join(KNOWN[:20])} and {len(KNOWN) - 20} more"


def world(folder: Path) -> World:
    return World(env={}, root=folder, now=lambda: 0.0)


def from_yaml(folder: Path, text: str, dialect: str = "adk") -> Read:
    document = parse_yaml("criteria:\n" + text, shown="c.yaml")
    read = read_criteria(document, dialect=dialect, world=world(folder))
    return read.found, said(read.problems)


def from_json(folder: Path, text: str, dialect: str = "adk") -> Read:
    (folder / "test_config.json").write_text(text)
    path = folder / "test_config.json"
    read = read_eval_config(path, shown="test_config.json", dialect=dialect)
    return read.criteria, said(read.problems)


def said(problems: list[Problem]) -> list[str]:
    """Return each problem without the name of the file."""
    return [
        "warning: " * (problem.severity == "warning")
        + str(problem).removeprefix(f"{problem.file}:")
        for problem in problems
    ]


# --- Names ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "dialect", "meant"),
    [
        ("response_match_score", "adk", ResponseMatch),
        ("response_match_score", "adk@2.3", ResponseMatch23),
        ("adk/response_match_score", "adk@2.3", ResponseMatch),
        ("adk@2.3/response_match_score", "adk", ResponseMatch23),
        ("tool_trajectory_avg_score", "adk", ToolTrajectory),
        ("tool_trajectory_avg_score", "adk@2.3", ToolTrajectory),
        ("tool_call_count_v1", "adk", ToolCallCount),
        ("adk/tool_call_count_v1", "adk@2.3", ToolCallCount),
    ],
)
def test_a_name_means_what_its_dialect_says(
    name: str, dialect: str, meant: type[Criterion]
) -> None:
    assert resolve(name, dialect) is meant


@pytest.mark.parametrize(
    ("name", "dialect", "message"),
    [
        ("tool_call_count_v1", "adk@2.3", "the dialect 'adk@2.3' does not know this criterion"),
        ("respnse_match_score", "adk", "unknown criterion. Did you mean 'response_match_score'?"),
        ("adk/respnse_match", "adk", "unknown criterion. Did you mean 'adk/response_match_score'?"),
        (
            "nice",
            "adk",
            UNKNOWN,
        ),
    ],
)
def test_a_name_that_means_nothing_is_refused(name: str, dialect: str, message: str) -> None:
    with pytest.raises(UnknownPluginError) as caught:
        resolve(name, dialect)
    assert str(caught.value) == message


# --- In a configuration ---------------------------------------------------------------------


def test_a_criterion_is_a_threshold_or_options(tmp_path: Path) -> None:
    found, problems = from_yaml(
        tmp_path,
        """
  tool_trajectory_avg_score: {threshold: 1.0, match_type: in-order}
  response_match_score: 0.8
  tool_call_count_v1:
  lenient: {use: tool_trajectory_avg_score, threshold: 0, ignore_args: true}
""",
    )
    assert problems == []
    assert found == {
        "tool_trajectory_avg_score": ToolTrajectory(threshold=1.0, match_type="IN_ORDER"),
        "response_match_score": ResponseMatch(threshold=0.8),
        "tool_call_count_v1": ToolCallCount(),
        "lenient": ToolTrajectory(threshold=0.0, ignore_args=True),
    }
    assert list(found) == [
        "tool_trajectory_avg_score",
        "response_match_score",
        "tool_call_count_v1",
        "lenient",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("response_match_score:", "criteria.response_match_score: needs a threshold"),
        ("response_match_score: {}", "criteria.response_match_score: needs a threshold"),
        (
            "response_match_score: 1.1",
            "criteria.response_match_score: the threshold must lie between 0 and 1",
        ),
        (
            "response_match_score: -0.1",
            "criteria.response_match_score: the threshold must lie between 0 and 1",
        ),
        (
            "response_match_score: high",
            "criteria.response_match_score: expected a threshold or options, found 'high'",
        ),
        (
            "response_match_score: true",
            "criteria.response_match_score: expected a threshold or options, found true",
        ),
        (
            "response_match_score: [1]",
            "criteria.response_match_score: expected a threshold or options, found a list",
        ),
        (
            "response_match_score: {threshold: high}",
            "criteria.response_match_score.threshold: expected a number, found 'high'",
        ),
        (
            "response_match_score: {treshold: 1}",
            "criteria.response_match_score.treshold: unknown key. Did you mean 'threshold'?",
        ),
        (
            "tool_trajectory_avg_score: {threshold: 1, match_type: some}",
            (
                "criteria.tool_trajectory_avg_score.match_type: "
                "expected 'EXACT', 'IN_ORDER' or 'ANY_ORDER', found 'some'"
            ),
        ),
        (
            "tool_call_count_v1: 5",
            "criteria.tool_call_count_v1: only measures, so it takes no threshold",
        ),
        (
            "own: {use: respnse_match_score, threshold: 1}",
            "criteria.own.use: unknown criterion. Did you mean 'response_match_score'?",
        ),
        (
            "own: {use: 5, threshold: 1}",
            f"criteria.own.use: {UNKNOWN}",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    found, problems = from_yaml(tmp_path, f"  {text}\n")
    assert found == {}
    assert problems == [f"2: {message}"]


def test_a_configuration_may_take_adks_own_file(tmp_path: Path) -> None:
    (tmp_path / "tc.json").write_text(
        '{"criteria": {"response_match_score": 0.5, "tool_trajectory_avg_score": 1}}'
    )
    found, problems = from_yaml(tmp_path, "  response_match_score: 0.7\n  from: tc.json\n")
    assert problems == []
    assert found == {
        "response_match_score": ResponseMatch(threshold=0.7),
        "tool_trajectory_avg_score": ToolTrajectory(threshold=1.0),
    }


def test_problems_of_adks_file_are_named_in_it(tmp_path: Path) -> None:
    (tmp_path / "tc.json").write_text('{"criteria": {\n"nice": 0.5,}}')
    document = parse_yaml("criteria: {from: tc.json}", shown="c.yaml")
    problems = read_criteria(document, dialect="adk", world=world(tmp_path)).problems
    assert [str(problem) for problem in problems] == [
        "tc.json:2: a comma, which ADK refuses in JSON",
        f"tc.json:2: criteria.nice: {UNKNOWN}",
    ]


def test_adks_file_must_be_there_and_be_one_of_the_repository(tmp_path: Path) -> None:
    root = tmp_path / "suite"
    root.mkdir()
    (tmp_path / "tc.json").write_text("{}")
    (root / "link.json").symlink_to(tmp_path / "tc.json")
    for path, why in (
        ("no.json", "no such file"),
        ("link.json", "is a link that leads out of the repository"),
    ):
        document = parse_yaml(f"criteria:\n  from: {path}", shown="c.yaml")
        problems = read_criteria(document, dialect="adk", world=world(root)).problems
        assert [str(problem) for problem in problems] == [
            f"c.yaml:2: criteria.from: {path} cannot be read",
            f"{path}: {why}",
        ]
    _, problems_of_list = from_yaml(root, "  from: [a, b]\n")
    assert problems_of_list == ["2: criteria.from: expected a path, found a list"]


# --- ADK's own file -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "threshold"),
    [
        (0.8, 0.8),
        (1, 1.0),
        ("0.8", 0.8),
        (" 1e0 ", 1.0),
        (True, 1.0),
        (False, 0.0),
        ({"threshold": 0.5}, 0.5),
        ({"threshold": "0.5"}, 0.5),
        ({"threshold": True}, 1.0),
    ],
)
def test_a_threshold_is_whatever_adk_takes_for_one(
    tmp_path: Path, spec: object, threshold: float
) -> None:
    found, problems = from_json(tmp_path, json.dumps({"criteria": {"response_match_score": spec}}))
    assert found == {"response_match_score": ResponseMatch(threshold=threshold)}
    assert problems == []


@pytest.mark.parametrize(
    ("spec", "meant"),
    [
        ({"match_type": "IN_ORDER"}, {"match_type": "IN_ORDER"}),
        ({"matchType": "any order"}, {"match_type": "ANY_ORDER"}),
        ({"match_type": 0}, {"match_type": "EXACT"}),
        ({"matchType": 2}, {"match_type": "ANY_ORDER"}),
        ({"ignoreArgs": True}, {"ignore_args": True}),
        ({"include_intermediate_responses_in_final": True}, None),
    ],
)
def test_options_are_spelled_as_adk_spells_them(
    tmp_path: Path, spec: dict[str, object], meant: dict[str, object] | None
) -> None:
    text = json.dumps({"criteria": {"tool_trajectory_avg_score": {"threshold": 1, **spec}}})
    found, problems = from_json(tmp_path, text)
    expected = ToolTrajectory.model_validate({"threshold": 1, **(meant or spec)})
    assert found["tool_trajectory_avg_score"] == expected
    assert problems == []


def test_the_dialect_decides_there_too(tmp_path: Path) -> None:
    found, _ = from_json(tmp_path, '{"criteria": {"response_match_score": 1}}', "adk@2.3")
    assert found == {"response_match_score": ResponseMatch23(threshold=1.0)}


def test_options_that_adk_keeps_and_nothing_reads_are_warned_of(tmp_path: Path) -> None:
    found, problems = from_json(
        tmp_path,
        """{"criteria": {"response_match_score": {
"threshold": 1,
"use": "nothing",
"judge_model_options": {}}}}""",
    )
    assert found == {"response_match_score": ResponseMatch(threshold=1.0)}
    ignored = "an option that nothing reads, ignored"
    assert problems == [
        f"warning: 3: criteria.response_match_score.use: {ignored}",
        f"warning: 4: criteria.response_match_score.judge_model_options: {ignored}",
    ]


def test_options_that_look_misspelt_are_mistakes(tmp_path: Path) -> None:
    text = '{"criteria": {"tool_trajectory_avg_score": {"threshold": 1,\n"match_typ": 1}}}'
    found, problems = from_json(tmp_path, text)
    assert found == {}
    assert problems == [
        ("2: criteria.tool_trajectory_avg_score.match_typ: unknown key. Did you mean 'match_type'?")
    ]


def test_an_option_in_both_spellings_is_a_mistake(tmp_path: Path) -> None:
    options = '{"threshold": 1, "matchType": 1,\n"match_type": 0}'
    _, problems = from_json(tmp_path, f'{{"criteria": {{"tool_trajectory_avg_score": {options}}}}}')
    assert problems == [
        "2: criteria.tool_trajectory_avg_score.match_type: is given in two spellings"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "1: criteria: names no criteria, so nothing would be measured"),
        ('{"criteria": {}}', "1: criteria: names no criteria, so nothing would be measured"),
        ('{"criteria": null}', "1: criteria: names no criteria, so nothing would be measured"),
        (
            '{"criteria":\n["a"]}',
            "2: criteria: expected an object, found a list, so nothing would be measured",
        ),
        ("[1]", "1: expected an object, found a list"),
        (
            '{"criteria": {\n"mine": 1}, "custom_metrics": {"mine": {}}}',
            "2: criteria.mine: a metric of your own code, which this version does not run",
        ),
        (
            '{"criteria": {"mine": 1}, "customMetrics": {"mine": {}}}',
            "1: criteria.mine: a metric of your own code, which this version does not run",
        ),
        (
            '{"criteria": {"token_usage_v1": 1}}',
            "1: criteria.token_usage_v1: only measures, so it takes no threshold",
        ),
        (
            '{"criteria": {"response_match_score": null}}',
            "1: criteria.response_match_score: needs a threshold",
        ),
        (
            '{"criteria": {"response_match_score": "nan"}}',
            "1: criteria.response_match_score: expected a threshold or options, found 'nan'",
        ),
    ],
)
def test_what_adk_would_pass_over_in_silence_is_a_mistake(
    tmp_path: Path, text: str, message: str
) -> None:
    found, problems = from_json(tmp_path, text)
    assert found == {}
    assert problems == [message]


def test_a_misspelt_key_is_named_beside_what_it_leaves_out(tmp_path: Path) -> None:
    _, problems = from_json(tmp_path, '{\n"criterias": {"response_match_score": 1}}')
    assert problems == [
        ("warning: 2: criterias: unknown key, which ADK ignores. Did you mean 'criteria'?"),
        "1: criteria: names no criteria, so nothing would be measured",
    ]


def test_keys_that_adk_has_and_we_do_not_read_are_no_surprise(tmp_path: Path) -> None:
    _, problems = from_json(
        tmp_path,
        """{"criteria": {"response_match_score": 1},
"userSimulatorConfig": {}, "live_model_config": {}, "custom_metrics": null,
"notes": "x"}""",
    )
    assert problems == [
        (
            "warning: 3: notes: unknown key, which ADK ignores; known: criteria, "
            "custom_metrics, live_model_config, user_simulator_config"
        )
    ]


def test_comments_and_trailing_commas_are_read(tmp_path: Path) -> None:
    found, problems = from_json(
        tmp_path,
        """// what we want
{"criteria": {
  "response_match_score": 0.5, // words
}}
""",
    )
    assert found == {"response_match_score": ResponseMatch(threshold=0.5)}
    assert problems == [
        "warning: 1: a comment, which ADK refuses in JSON",
        "warning: 3: a comment, which ADK refuses in JSON",
        "warning: 3: a comma, which ADK refuses in JSON",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "tc.json:1: is not JSON: expecting value"),
        ('{"criteria": {\n}}}', "tc.json:2: goes on after its end"),
        ('{"criteria": {\n"a" 1}}', "tc.json:2: is not JSON: expecting ':' delimiter"),
        (
            " " * (MAX_CONFIG + 1),
            "tc.json: is longer than 1 MiB, which is the most for such a file",
        ),
    ],
)
def test_a_file_that_is_no_json_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "tc.json").write_text(text)
    with pytest.raises(UsageError) as caught:
        read_eval_config(tmp_path / "tc.json", shown="tc.json", dialect="adk")
    assert str(caught.value) == message
