"""The criteria that a configuration asks for: written out, in presets, and in other files."""

from pathlib import Path

import pytest

from ci_eval.config.criteria_section import read_criteria
from ci_eval.config.criterion_names import Dialect, bare_names
from ci_eval.criteria import adk_vertex, agentflow_responses
from ci_eval.criteria.adk_efficiency import ToolCallCount
from ci_eval.criteria.adk_matches import ResponseMatch, ResponseMatch23, ToolTrajectory
from ci_eval.criteria.agentflow_texts import RougeMatch
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.records.errors import Problem
from ci_eval.runtime.context import RunContext
from ci_eval.text.yaml_files import parse_yaml

Read = tuple[dict[str, AnyCriterion], list[str]]
KNOWN = sorted(set(bare_names()))
MISPLACED = "is no criterion: move this key to the top level of the file"
UNKNOWN = f"unknown criterion; known: {', '.join(KNOWN[:20])} and {len(KNOWN) - 20} more"


def context(folder: Path) -> RunContext:
    return RunContext(env={}, root=folder, now=lambda: 0.0)


def from_yaml(folder: Path, text: str, dialect: Dialect | None = "adk") -> Read:
    """Read the lines under `criteria:`, and what stands behind them."""
    document = parse_yaml("criteria:\n" + text, shown="c.yaml")
    read = read_criteria(document, dialect=dialect, context=context(folder))
    return read.found, said(read.problems)


def said(problems: list[Problem]) -> list[str]:
    """Return each problem without the name of the file."""
    return [
        "warning: " * (problem.severity == "warning")
        + str(problem).removeprefix(f"{problem.file}:")
        for problem in problems
    ]


# --- In a configuration ---------------------------------------------------------------------


def test_a_criterion_is_a_threshold_or_options(tmp_path: Path) -> None:
    found, problems = from_yaml(
        tmp_path,
        """
  tool_trajectory_avg_score: {threshold: 1.0, match_type: in-order}
  response_match_score: 0.8
  tool_call_count_v1:
  lenient: {use: tool_trajectory_avg_score, threshold: 0.1, ignore_args: true}
""",
    )
    assert problems == []
    assert found == {
        "tool_trajectory_avg_score": ToolTrajectory(threshold=1.0, match_type="IN_ORDER"),
        "response_match_score": ResponseMatch(threshold=0.8),
        "tool_call_count_v1": ToolCallCount(),
        "lenient": ToolTrajectory(threshold=0.1, ignore_args=True),
    }
    assert list(found) == [
        "tool_trajectory_avg_score",
        "response_match_score",
        "tool_call_count_v1",
        "lenient",
    ]


def test_a_threshold_that_every_score_reaches_is_warned_of(tmp_path: Path) -> None:
    _, problems = from_yaml(tmp_path, "\n  response_match_score: 0\n")
    (said,) = problems
    assert "every score meets the threshold 0, so no case can fail" in said


@pytest.mark.parametrize(
    ("options", "warned"),
    [
        ("{tier: block}", True),
        ("{tier: warn}", True),
        ("{tier: inform}", False),
        ("{}", False),
        ("{tier: block, max_growth: 0.2}", False),
        ("{tier: block, threshold: 500}", False),
    ],
)
def test_a_tier_without_a_limit_is_warned_of(tmp_path: Path, options: str, warned: bool) -> None:
    _, problems = from_yaml(tmp_path, f"\n  ci/tokens: {options}\n")
    assert [("so its tier" in each) for each in problems] == [True] * warned


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "response_match_score: '80%'",
            (
                "criteria.response_match_score: expected a threshold or options, found '80%'. "
                "Did you mean 0.8?"
            ),
        ),
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
            "criteria.tool_call_count_v1: takes no threshold; it is informational",
        ),
        (
            "own: {use: respnse_match_score, threshold: 1}",
            "criteria.own.use: unknown criterion. Did you mean 'response_match_score'?",
        ),
        ("own: {use: 5, threshold: 1}", f"criteria.own.use: {UNKNOWN}"),
        ("dialect: adk", f"criteria.dialect: {MISPLACED}"),
        ("judge: {samples: 3}", f"criteria.judge: {MISPLACED}"),
        (
            "run: {use: respnse_match_score}",
            "criteria.run.use: unknown criterion. Did you mean 'response_match_score'?",
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
    problems = read_criteria(document, dialect="adk", context=context(tmp_path)).problems
    assert [str(problem) for problem in problems] == [
        "tc.json:2: a trailing comma, which ADK does not accept in JSON",
        f"tc.json:2: criteria.nice: {UNKNOWN}",
    ]


def test_adks_file_must_be_there_and_be_one_of_the_repository(tmp_path: Path) -> None:
    root = tmp_path / "suite"
    root.mkdir()
    (tmp_path / "tc.json").write_text("{}")
    (root / "link.json").symlink_to(tmp_path / "tc.json")
    for path, why in (
        ("no.json", "no such file"),
        ("link.json", "is a symlink out of the repository"),
    ):
        document = parse_yaml(f"criteria:\n  from: {path}", shown="c.yaml")
        problems = read_criteria(document, dialect="adk", context=context(root)).problems
        assert [str(problem) for problem in problems] == [
            f"c.yaml:2: criteria.from: {path} cannot be read",
            f"{path}: {why}",
        ]
    _, problems_of_list = from_yaml(root, "  from: [a, b]\n")
    assert problems_of_list == ["2: criteria.from: expected a path, found a list"]


# --- Whose names they are -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "meant"),
    [
        (None, ResponseMatch),
        ("adk", ResponseMatch),
        ("adk@2.3", ResponseMatch23),
        ("agentflow", agentflow_responses.ResponseMatch),
    ],
)
def test_a_bare_name_is_read_in_the_dialect_and_a_qualified_one_as_it_is(
    tmp_path: Path, dialect: Dialect | None, meant: type[AnyCriterion]
) -> None:
    text = "  response_match_score: 0.5\n  adk/response_match_score: 0.5\n"
    found, problems = from_yaml(tmp_path, text, dialect)
    assert problems == []
    assert [type(each) for each in found.values()] == [meant, ResponseMatch]


def test_a_file_of_either_is_read_in_the_dialect_that_is_written(tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text('{"criteria": {"safety_v1": {"threshold": 0.5}}}')
    for dialect, meant in (("adk", adk_vertex.Safety), ("agentflow", agentflow_responses.Safety)):
        found, problems = from_yaml(tmp_path, "  from: e.json\n", dialect)
        assert problems == []
        assert found == {"safety_v1": meant(threshold=0.5)}
    found, problems = from_yaml(tmp_path, "  from: e.json\n", None)
    assert found == {}
    assert len(problems) == 1
    assert "set `dialect: adk` or `dialect: agentflow`" in problems[0]


# --- Presets --------------------------------------------------------------------------------


def test_presets_may_be_named_alone_in_a_list_or_with_options(tmp_path: Path) -> None:
    quick = {"agentflow/rouge_match": RougeMatch(threshold=0.5)}
    both = {
        "adk/tool_trajectory_avg_score": ToolTrajectory(threshold=1.0),
        "adk/response_match_score": ResponseMatch(threshold=0.8),
    }
    for text, meant in (
        ("quick_check", quick),
        ("[quick_check, regression]", quick | both),
        ("{quick_check: , regression: {}}", quick | both),
    ):
        found, problems = from_yaml(tmp_path, f"preset: {text}\n")
        assert problems == []
        assert found == meant


def test_what_is_written_out_or_in_a_file_takes_the_place_of_the_same_in_a_preset(
    tmp_path: Path,
) -> None:
    (tmp_path / "e.json").write_text('{"criteria": {"response_match_score": 0.3}}')
    found, problems = from_yaml(
        tmp_path,
        "  calls: {use: tool_trajectory_avg_score, threshold: 0.5}\n"
        "  from: e.json\n"
        "preset: [regression, quick_check]\n",
    )
    assert problems == []
    assert found == {
        "agentflow/rouge_match": RougeMatch(threshold=0.5),
        "response_match_score": ResponseMatch(threshold=0.3),
        "calls": ToolTrajectory(threshold=0.5),
    }


def test_of_a_preset_a_criterion_can_be_switched_off(tmp_path: Path) -> None:
    text = "  response_match_score: {threshold: 0.8, enabled: false}\npreset: regression\n"
    found, problems = from_yaml(tmp_path, text)
    assert problems == []
    assert {name: each.enabled for name, each in found.items()} == {
        "adk/tool_trajectory_avg_score": True,
        "response_match_score": False,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("regresion", "preset: unknown preset. Did you mean 'regression'?"),
        ("[regresion]", "preset[0]: unknown preset. Did you mean 'regression'?"),
        ("5", "preset: expected the name of a preset, found 5"),
        ("[[regression]]", "preset[0]: expected the name of a preset, found a list"),
        ("{quick_check: 5}", "preset.quick_check: expected options, found 5"),
        (
            "{tool_usage: {treshold: 1}}",
            "preset.tool_usage.treshold: unknown key. Did you mean 'threshold'?",
        ),
        ("{tool_usage: {threshold: 2}}", "preset.tool_usage.threshold: must be at most 1, found 2"),
        ("quality", "preset: 'rubrics' is missing"),
        ("{tool_heavy: {rubrics: []}}", "preset.tool_heavy.rubrics: must not be empty"),
        ("custom", "preset: the preset 'custom' without a threshold measures nothing"),
    ],
)
def test_a_mistake_in_a_preset_is_named_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    found, problems = from_yaml(tmp_path, f"preset: {text}\n")
    assert found == {}
    assert problems == [f"2: {message}"]


# --- Code of the user's ---------------------------------------------------------------------


def test_what_can_be_seen_to_be_wrong_with_code_of_the_users_is_named(tmp_path: Path) -> None:
    text = "  ci/python: {python: 'checks:f', interpreter: no-such-python, env: [GITHUB_TOKEN]}\n"
    _, problems = from_yaml(tmp_path, text)
    interpreter, env = sorted(problems, reverse=True)
    assert interpreter == "2: criteria.ci/python.interpreter: there is no program 'no-such-python'"
    assert env.startswith("2: criteria.ci/python.env: ")
    assert "GITHUB_TOKEN" in env
