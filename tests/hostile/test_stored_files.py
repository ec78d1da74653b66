"""Files that ci-eval reads back, with numbers that nobody measured: refused, with file and line."""

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from support.project import CASES, Project
from support.slow_params import some

from ci_eval.records.bounds import MAX_REPEAT, MAX_ROUND

STORED = "baseline: {store: file, path: baseline.json}\n"
HUGE: list[float] = [-1, 10**8, 10**20, 10**300]
"""Numbers of a round or a repeat that were seen to take all memory, or to end in a traceback."""


@pytest.fixture
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Project:
    """Return a project that was run and whose run is the baseline, too."""
    monkeypatch.chdir(tmp_path)
    found = Project(tmp_path, capsys)
    found.add(STORED)
    assert found.ci_eval("run", "--out", "before").code == 0
    assert found.ci_eval("baseline", "save", "before").code == 0
    assert found.ci_eval("run").code == 0
    return found


def change(file: str, edit: Callable[[Any], None]) -> None:
    """Change a document of JSON in place, each entry of a list on a line of its own."""
    path = Path(file)
    value = json.loads(path.read_text())
    edit(value)
    path.write_text(json.dumps(value, indent=0))


def line_of(file: str, text: str) -> int:
    """Return the line on which `text` stands first."""
    lines = Path(file).read_text().splitlines()
    return 1 + next(at for at, line in enumerate(lines) if text in line)


COMMANDS = {
    "ci-eval-report/run.json": [("report",), ("compare", "before", "ci-eval-report")],
    "baseline.json": [("run",), ("baseline", "show"), ("baseline", "diff"), ("report",)],
}


@pytest.mark.parametrize(
    ("field", "number"), some([("attempts", -1), *product(("round", "repeat"), HUGE)], 3)
)
@pytest.mark.parametrize("file", COMMANDS)
def test_a_count_that_cannot_be_is_refused_before_anything_is_made_of_it(
    project: Project, file: str, field: str, number: float
) -> None:
    def edit(document: Any) -> None:
        result = document["results"][0]
        result = result[1] if isinstance(result, list) else result
        (result["key"] if field == "repeat" else result)[field] = number

    change(file, edit)
    line = line_of(file, f'"{field}": {number}')
    for command in COMMANDS[file]:
        ended = project.ci_eval(*command)
        assert ended.code == (4 if "run.json" in file else 6), command
        assert f"{file}:{line}: " in ended.err, command
        assert f"{field}: must be at " in ended.err


def test_as_many_rounds_and_repeats_as_a_run_can_have_are_read(project: Project) -> None:
    def edit(document: Any) -> None:
        document["results"][0]["round"] = MAX_ROUND
        document["results"][0]["key"]["repeat"] = MAX_REPEAT

    change("ci-eval-report/run.json", edit)
    assert project.ci_eval("report").code in (0, 1, 6)
    assert project.read("comment.md")


@pytest.mark.parametrize("seconds", [1e308, -1e308])
def test_a_time_that_nobody_waited_for_is_refused(project: Project, seconds: float) -> None:
    file = "ci-eval-report/run.json"
    change(file, lambda run: [each.update(duration_s=seconds) for each in run["results"]])
    ended = project.ci_eval("report")
    assert ended.code == 4
    line = line_of(file, '"duration_s"')
    assert f"{file}:{line}: duration_s: must be at " in ended.err


@pytest.mark.parametrize("seconds", [1e308, -1e308])
def test_a_trace_that_took_such_a_time_is_not_taken_over(project: Project, seconds: float) -> None:
    traces = Path("ci-eval-report/traces.jsonl")
    rows = [json.loads(line) for line in traces.read_text().splitlines()]
    written = [json.dumps({**row, "duration_s": seconds}) + "\n" for row in rows]
    traces.write_text("".join(written))
    ended = project.ci_eval("run", "--resume")
    assert ended.code == 0
    assert "trials of the run before" not in ended.err
    assert all(each["duration_s"] < 60 for each in project.run_json()["results"])


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("interval", [0, 1e-300], "must be a lower and a higher number, found 0 and 1e-300"),
        ("interval", [1, 0], "must be a lower and a higher number, found 1 and 0"),
        ("threshold", 1e200, "must be at most 1e+15, found 1e+200"),
    ],
)
def test_a_criterion_that_nothing_can_be_divided_by_is_refused(
    project: Project, field: str, value: object, said: str
) -> None:
    def edit(document: Any) -> None:
        facts = document["runs"][0]["criteria"]["response_match_score"]
        facts[field] = value

    change("baseline.json", edit)
    ended = project.ci_eval("baseline", "show")
    assert ended.code == 6
    assert f"criteria.response_match_score.{field}: {said}" in ended.err
    assert ended.err.startswith("baseline.json:")


def test_a_steady_baseline_tells_the_power_of_several_looks(project: Project) -> None:
    project.ci_eval("baseline", "save")
    project.add("gate: {on_inconclusive: rerun}\n")
    ended = project.ci_eval("gate", "power", "--json", "--drop", "0.05")
    assert ended.code == 0, ended.err
    assert all(0 < each["level"] < 1 for each in ended.json["criteria"])


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"criteria": {}}, "the run has no criterion 'tool_trajectory_avg_score'"),
        ({"level": 0.0}, ""),
        ({"level": 1e-320, "cases": 1}, ""),
    ],
)
def test_a_report_that_contradicts_itself_is_explained_or_refused(
    project: Project, edit: dict[str, Any], said: str
) -> None:
    def contradict(report: Any) -> None:
        for delta in report["comparison"]["deltas"]:
            delta.update({"level": 0.01, "p_value": 0.5, "interval": [-0.5, 0.5], "steady": False})
            delta.update({key: value for key, value in edit.items() if key in delta})
        report["meta"].update({key: value for key, value in edit.items() if key == "criteria"})

    file = "ci-eval-report/report.json"
    change(file, contradict)
    ended = project.ci_eval("gate", "explain")
    assert ended.code == (4 if said else 0), ended.err
    if said:
        assert f"{file}: {said}" in ended.err


# --- Names ----------------------------------------------------------------------------------

LONG = "x" * 300
AGENT = "agents: {bot: {recorded: traces.jsonl}}\n"
CRITERIA = "criteria: {response_match_score: 0.5}\n"
EVALSETS = "evalsets: {smoke: smoke.evalset.json}\n"


@pytest.mark.parametrize(
    ("config", "where"),
    [
        (AGENT + CRITERIA + f"evalsets:\n  smoke: {LONG}.json\n", "4: evalsets.smoke"),
        (AGENT + CRITERIA + f"evalsets:\n  smoke: '{LONG}*.json'\n", "4: evalsets.smoke"),
        (AGENT + CRITERIA + f"evalsets:\n  smoke: '{LONG}.json:a,b'\n", "4: evalsets.smoke"),
        (EVALSETS + CRITERIA + f"agents:\n  bot: {{recorded: {LONG}}}\n", "4: agents.bot.recorded"),
        (EVALSETS + CRITERIA + f"agents:\n  bot: {{adk: {LONG}}}\n", "4: agents.bot.adk"),
        (
            EVALSETS + CRITERIA + f"agents:\n  bot:\n    command: [cat]\n    cwd: {LONG}\n",
            "6: agents.bot.cwd",
        ),
        (EVALSETS + AGENT + f"criteria:\n  from: {LONG}\n", "4: criteria.from"),
        (
            EVALSETS + AGENT + CRITERIA + f"baseline:\n  store: file\n  path: {LONG}\n",
            "6: baseline.path",
        ),
        (
            EVALSETS + AGENT + CRITERIA + f"baseline:\n  store: file\n  path: {'x/' * 2_000}\n",
            "6: baseline.path",
        ),
    ],
)
def test_a_name_that_no_file_can_have_is_refused_where_it_stands(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    config: str,
    where: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path, capsys)
    project.config(config)
    for command in ("validate", "run"):
        ended = project.ci_eval(command)
        assert ended.code == 4, ended.err
        assert f"ci-eval.yaml:{where}: " in ended.err
        assert "is not a path: " in ended.err


def test_a_list_of_cases_behind_a_path_may_be_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path, capsys)
    cases = [{**CASES[0], "eval_id": f"case-{'x' * 100}-{at}"} for at in range(4)]
    project.evalset(*cases)
    project.traces(*cases)
    names = ",".join(each["eval_id"] for each in cases[:3])
    project.config(AGENT + CRITERIA + f"evalsets: {{smoke: 'smoke.evalset.json:{names}'}}\n")
    assert project.ci_eval("run").code == 0
    assert len(project.run_json()["results"]) == 3
