"""Our own criteria from the configuration to the report, by the command."""

import pytest
from support.project import REFUNDS, TRACKS, Project, case, turn

CONFIG = """\
version: 1
name: shop
agents:
  bot: {recorded: traces.jsonl}
evalsets:
  smoke: smoke.evalset.json
criteria:
"""


@pytest.fixture
def project(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    made = Project(tmp_path, capsys)
    made.evalset(REFUNDS, TRACKS)
    return made


def test_a_line_each_is_enough(project):
    project.config(
        CONFIG
        + """\
  ci/contains: {text: Order}
  no_card_number: {use: ci/regex, pattern: '\\d{16}', absent: true}
  ci/required_tools:
  ci/forbidden_tools: {tools: delete_*}
  ci/tool_arguments: 1
  ci/tool_calls:
  ci/numeric: {pick: first}
"""
    )
    wrong = case("tracks", turn("Where is 9?", "No idea: 5.", ("track", {"order": 5})))
    project.traces(REFUNDS, wrong)
    ended = project.ci_eval("run")

    assert ended.code == 1
    assert project.scores() == {
        "refunds": {
            "ci/contains": 1.0,
            "no_card_number": 1.0,
            "ci/required_tools": 1.0,
            "ci/forbidden_tools": 1.0,
            "ci/tool_arguments": 1.0,
            "ci/tool_calls": 1.0,
            "ci/numeric": 1.0,
        },
        "tracks": {
            "ci/contains": 0.0,
            "no_card_number": 1.0,
            "ci/required_tools": 1.0,
            "ci/forbidden_tools": 1.0,
            "ci/tool_arguments": 0.0,
            "ci/tool_calls": 1.0,
            "ci/numeric": 0.0,
        },
    }


def test_what_is_wrong_with_options_is_told_with_its_line(project):
    project.config(
        CONFIG
        + """\
  ci/regex: {pattern: "("}
  ci/json_schema:
    schema: {type: objec}
  ci/tool_arguments:
    args:
      refund: {order: igore}
  ci/numeric: {value: 7, tolerance: -1}
"""
    )
    ended = project.ci_eval("run")

    assert ended.code == 4
    for told in (
        "ci-eval.yaml:8: criteria.ci/regex.pattern: is not a regular expression",
        "ci-eval.yaml:10: criteria.ci/json_schema.schema: is not a JSON Schema: $.type",
        "ci-eval.yaml:13: criteria.ci/tool_arguments.args.refund.order.match: expected 'exact'",
        "ci-eval.yaml:14: criteria.ci/numeric.tolerance: must be at least 0, found -1",
    ):
        assert told in ended.err


def test_what_cases_assert_decides_whether_they_pass(project):
    project.config(CONFIG + "  ci/assertions:\n")
    project.evalset(
        {**REFUNDS, "assertions": [{"contains": "refunded"}, {"required_tools": "refund"}]},
        {
            **TRACKS,
            "assertions": [{"contains": "Bergen"}, {"numeric": {"value": 9, "pick": "any"}}],
        },
    )
    project.traces(REFUNDS, TRACKS)
    ended = project.ci_eval("run")

    assert ended.code == 1
    assert project.scores() == {"refunds": {"ci/assertions": 1.0}, "tracks": {"ci/assertions": 0.5}}
    assert "Bergen" in project.read("junit.xml")


def test_an_assertion_that_cannot_be_checked_stops_the_run(project):
    project.config(CONFIG + "  ci/assertions:\n")
    project.evalset(REFUNDS, {**TRACKS, "assertions": [{"contians": "Oslo"}]})
    ended = project.ci_eval("run")

    assert ended.code == 4
    assert "assertion 1 ('contians'): unknown criterion. Did you mean 'contains'?" in ended.err
    assert "case 'tracks'" in ended.err
