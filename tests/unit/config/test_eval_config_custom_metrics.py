"""Metrics of the user's own code in eval configs of ADK; none of the code is there to be run."""

import json
from pathlib import Path
from typing import Any

import pytest

from ci_eval.config.criterion_names import Dialect
from ci_eval.config.eval_config import EvalConfigFile, dialect_of, read_eval_config
from ci_eval.config.load_config import load
from ci_eval.config.validated_config import Config
from ci_eval.criteria.adk_custom_metric import CustomMetric
from ci_eval.records.errors import ConfigError
from ci_eval.runtime.context import RunContext

RANGE = {"interval": {"min_value": -10, "max_value": 10}}


def read(
    folder: Path, content: Any, dialect: Dialect | None = None, interpreter: str | None = None
) -> EvalConfigFile:
    path = folder / "test_config.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_eval_config(path, shown=path.name, dialect=dialect, interpreter=interpreter)


def said(file: EvalConfigFile) -> list[str]:
    """Return each problem without the name of the file."""
    return [
        "warning: " * (problem.severity == "warning")
        + str(problem).removeprefix("test_config.json:")
        for problem in file.problems
    ]


def test_a_metric_keeps_its_name_and_the_rest_of_its_criterion_goes_to_its_code(
    tmp_path: Path,
) -> None:
    found = read(
        tmp_path,
        {
            "criteria": {
                "response_match_score": 0.8,
                "plan": {"threshold": 0.6, "judge": {"model": "m"}, "stepLimit": 3},
                "polite": 1,
            },
            "custom_metrics": {
                "plan": {"code_config": {"name": "tests.eval.metrics.plan_quality"}},
                "polite": {"code_config": {"name": "shop.polite"}, "description": "Kind words."},
            },
        },
        interpreter=".venv/bin/python",
    )
    assert said(found) == []
    assert list(found.criteria) == ["response_match_score", "plan", "polite"]
    assert found.criteria["plan"] == CustomMetric(
        code="tests.eval.metrics.plan_quality",
        metric_name="plan",
        threshold=0.6,
        criterion={"judge": {"model": "m"}, "stepLimit": 3},
        interpreter=".venv/bin/python",
    )
    assert found.criteria["polite"] == CustomMetric(
        code="shop.polite", metric_name="polite", threshold=1, interpreter=".venv/bin/python"
    )


@pytest.mark.parametrize(
    ("info", "bounds"),
    [
        (None, (0, 1)),
        ({"metric_name": "mine", "metric_value_info": RANGE}, (-10, 10)),
        ({"metricName": "x", "metricValueInfo": RANGE, "description": "Mine."}, (-10, 10)),
        ({"metricValueInfo": {"interval": {"minValue": 1, "maxValue": 5}}}, (1, 5)),
        ({"metric_name": "mine", "metric_value_info": {}}, None),
    ],
)
def test_its_values_are_those_that_its_metric_info_says(
    tmp_path: Path, info: Any, bounds: tuple[float, float] | None
) -> None:
    entry = {"codeConfig": {"name": "shop.mine"}, "metricInfo": info}
    found = read(tmp_path, {"criteria": {"mine": 1}, "customMetrics": {"mine": entry}})
    assert said(found) == []
    assert found.criteria["mine"].bounds == bounds


CODE = '{"code_config": {"name": "shop.mine"}}'


@pytest.mark.parametrize(
    ("criterion", "entry", "problems"),
    [
        ("1", "{}", ["3: custom_metrics.mine: 'code_config' is missing"]),
        ("1", "5", ["3: custom_metrics.mine: expected an object, found 5"]),
        (
            "1",
            '{"code_config": {"name": "mine", "args": 1}}',
            ["3: custom_metrics.mine.code_config.args: unknown key; known: name"],
        ),
        (
            "1",
            '{"code_config": {"name": "mine"}}',
            [
                (
                    "3: custom_metrics.mine.code_config.name: expected 'module.name', such as "
                    "'tests.metrics.polite', found 'mine'"
                )
            ],
        ),
        (
            "1",
            '{"code_config": {"name": "shop.mine"}, "metric": {"max_value": 5}}',
            [
                (
                    "warning: 3: custom_metrics.mine.metric: unknown key, which ADK ignores. "
                    "Did you mean 'metric_info'?"
                )
            ],
        ),
        (
            "1",
            '{"code_config": {"name": "shop.mine"}, "metric_info": {"description": "x"}}',
            ["3: custom_metrics.mine.metric_info: 'metric_value_info' is missing"],
        ),
        (
            "1",
            (
                '{"code_config": {"name": "shop.mine"}, "metric_info": {"metric_value_info": '
                '{"interval": {"min_value": 2, "max_value": 1}}}}'
            ),
            [
                (
                    "3: custom_metrics.mine.metric_info.metric_value_info.interval: "
                    "'min_value' must be less than 'max_value'"
                )
            ],
        ),
        ("4", CODE, ["2: criteria.mine: the threshold must lie between 0 and 1"]),
        ("{}", CODE, ["2: criteria.mine: needs a threshold"]),
        ("null", CODE, ["2: criteria.mine: needs a threshold"]),
        ('"high"', CODE, ["2: criteria.mine: expected a threshold or options, found 'high'"]),
        ('{"threshold": "x"}', CODE, ["2: criteria.mine: expected a number, found 'x'"]),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(
    tmp_path: Path, criterion: str, entry: str, problems: list[str]
) -> None:
    found = read(
        tmp_path,
        f'{{"criteria": {{\n"mine": {criterion}}}, "custom_metrics": {{\n"mine": {entry}}}}}',
    )
    assert said(found) == problems
    assert ("mine" in found.criteria) == all(each.startswith("warning") for each in problems)


@pytest.mark.parametrize("value", ['"x"', "[]", "5"])
def test_metrics_that_are_no_object_are_a_mistake(tmp_path: Path, value: str) -> None:
    found = read(
        tmp_path, f'{{"criteria": {{"response_match_score": 1}}, "customMetrics": {value}}}'
    )
    [problem] = said(found)
    assert problem.startswith("1: customMetrics: expected an object, found ")


def test_a_metric_that_no_criterion_names_is_never_run(tmp_path: Path) -> None:
    entries = {"polite": {"code_config": {"name": "shop.polite"}}}
    found = read(tmp_path, {"criteria": {"response_match_score": 1}, "custom_metrics": entries})
    assert list(found.criteria) == ["response_match_score"]
    assert said(found) == [
        (
            "warning: 1: custom_metrics.polite: no criterion has this name, so it never runs; "
            "known: response_match_score"
        )
    ]


def test_one_with_the_name_of_a_criterion_takes_its_place_as_in_adk_and_says_so(
    tmp_path: Path,
) -> None:
    entries = {"response_match_score": {"code_config": {"name": "shop.match"}}}
    found = read(tmp_path, {"criteria": {"response_match_score": 0.5}, "custom_metrics": entries})
    assert isinstance(found.criteria["response_match_score"], CustomMetric)
    assert said(found) == [
        (
            "warning: 1: custom_metrics.response_match_score: replaces ADK's criterion "
            "of the same name, as in ADK"
        )
    ]


@pytest.mark.parametrize("name", ["", "a\nb", "a/b/c", "x" * 201])
def test_a_name_that_reports_could_not_show_is_refused(tmp_path: Path, name: str) -> None:
    entries = {name: {"code_config": {"name": "shop.mine"}}}
    found = read(tmp_path, {"criteria": {name: 1}, "custom_metrics": entries})
    [problem] = said(found)
    assert "expected a name of 1 to 200 characters, without '/' or control characters" in problem
    assert found.criteria == {}


def test_in_a_file_of_agentflow_they_mean_nothing(tmp_path: Path) -> None:
    content = {
        "criteria": {"mine": {"threshold": 1}},
        "custom_metrics": {"mine": {"code_config": {"name": "shop.mine"}}},
        "mock_mode": False,
    }
    assert dialect_of(content) is None
    found = read(tmp_path, content, "agentflow")
    assert found.criteria == {}
    unread, unknown = said(found)
    assert unread.startswith("warning: 1: custom_metrics: unknown key, which AgentFlow ignores")
    assert unknown.startswith("1: criteria.mine: unknown criterion")


# --- In a configuration -----------------------------------------------------------------------


def loaded(folder: Path, agents: str, criteria: str) -> Config:
    for name in ("one", "two"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    (folder / "traces.jsonl").touch()
    content = {
        "criteria": {"mine": 1},
        "custom_metrics": {"mine": {"code_config": {"name": "shop.mine"}}},
    }
    (folder / "test_config.json").write_text(json.dumps(content))
    path = folder / "ci-eval.yaml"
    path.write_text(f"agents: {{{agents}}}\nevalsets: {{e: e.json}}\ncriteria: {criteria}\n")
    context = RunContext(env={}, root=folder, now=lambda: 0.0)
    return load(path, shown=path.name, context=context)


ONE = "{python: 'shop:answer', interpreter: ./one}"
TWO = "{python: 'shop:answer', interpreter: ./two}"
OURS = "{python: 'shop:answer'}"
RECORDED = "{recorded: traces.jsonl}"


@pytest.mark.parametrize(
    ("agents", "interpreter"),
    [
        (f"a: {ONE}", "./one"),
        (f"a: {ONE}, b: {ONE}, c: {OURS}, d: {RECORDED}", "./one"),
        (f"a: {ONE}, b: {TWO}", None),
        (f"a: {OURS}", None),
        (f"a: {RECORDED}", None),
    ],
)
def test_it_runs_under_the_interpreter_that_the_agents_agree_on(
    tmp_path: Path, agents: str, interpreter: str | None
) -> None:
    config = loaded(tmp_path, agents, "{from: test_config.json}")
    [found] = config.criteria.values()
    assert isinstance(found, CustomMetric)
    assert found.interpreter == interpreter


def test_one_that_is_written_out_takes_its_place(tmp_path: Path) -> None:
    written = "{use: adk/custom_metric, code: shop.mine, threshold: 0.5, interpreter: ./two}"
    config = loaded(tmp_path, f"a: {ONE}", f"{{from: test_config.json, mine: {written}}}")
    assert config.criteria == {
        "mine": CustomMetric(code="shop.mine", threshold=0.5, interpreter="./two")
    }


def test_a_floor_for_its_mean_lies_in_its_own_interval(tmp_path: Path) -> None:
    values = "metric_info: {metric_value_info: {interval: {min_value: 1, max_value: 5}}}"
    written = f"{{use: adk/custom_metric, code: shop.mine, threshold: 4, {values}}}"
    floor = "\ngate: {min_score: {mine: 4.5}}"
    assert loaded(tmp_path, f"a: {ONE}", f"{{mine: {written}}}{floor}").gate.min_score
    with pytest.raises(ConfigError, match="must lie between 1 and 5"):
        loaded(tmp_path, f"a: {ONE}", f"{{mine: {written}}}{floor}".replace("4.5", "0.9"))
