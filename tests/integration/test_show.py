"""One case of the last run, shown whole."""

import os
import re

import pytest
from support.project import CASES, GREETS, REFUNDS, TRACKS, Project, changed


@pytest.fixture
def project(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, capsys)


WRONG = changed(REFUNDS, "Order 8 is refunded.", ("refund", {"order": 8}))


def test_a_case_is_shown_with_conversation_calls_scores_and_evidence(project):
    project.traces(GREETS, WRONG, TRACKS)
    project.ci_eval("run")

    ended = project.ci_eval("show", "refunds")
    assert ended.code == 0
    *lines, last = ended.out.splitlines()
    assert re.fullmatch(r"from the run \S+ in ci-eval-report, \d+ m?s ago", last)
    assert lines == [
        "FAILED refunds: bot on smoke  smoke.evalset.json:30",
        "  User",
        "  │ Refund 7",
        "  Tool calls",
        "  │ refund(order=8)",
        "  Expected tool calls",
        "  │ refund(order=7)",
        "  Response",
        "  │ Order 8 is refunded.",
        "  Expected response",
        "  │ Order 7 is refunded.",
        "  FAILED tool_trajectory_avg_score 0.000 (needs ≥ 1)",
        "  Tool calls (- expected, + actual)",
        "  │ - refund(order=7)",
        "  │ + refund(order=8)",
        "  PASSED response_match_score 0.750 (needs ≥ 0.5)",
        "",
    ]
    assert ended.err == ""


def test_a_run_whose_time_is_not_ours_is_shown_without_its_age(project):
    project.traces(GREETS, REFUNDS, TRACKS)
    project.ci_eval("run")
    path = project.folder / "ci-eval-report" / "run.json"
    text = re.sub(r'"created":\s*"[^"]*"', '"created": "long ago"', path.read_text())
    path.write_text(text)

    ended = project.ci_eval("show", "refunds")

    assert ended.code == 0
    assert re.fullmatch(r"from the run \S+ in ci-eval-report", ended.out.splitlines()[-1])


def test_a_case_that_could_not_be_observed_is_shown_with_its_error(project):
    project.traces(GREETS, REFUNDS, {"eval_id": "tracks", "error": "no network\nat line 3"})
    project.ci_eval("run")

    lines = project.ci_eval("show", "tracks").out.splitlines()
    assert lines[0].startswith("ERROR tracks: bot on smoke")
    assert "  │ no network" in lines
    assert "  │ at line 3" in lines
    asked = lines.index("  User")
    assert lines[asked + 1].startswith("  │ ")
    assert "  Expected response" in lines[asked:]


def test_of_a_run_that_did_not_finish_it_is_said_how_to_go_on(project):
    project.ci_eval("run")
    (project.folder / "ci-eval-report/run.json").unlink()

    ended = project.ci_eval("show", "greets")

    assert ended.code == 4
    assert "the run did not finish; `ci-eval run --resume` continues it" in ended.err


@pytest.mark.parametrize("path", ["/etc/hostname", "../elsewhere.json", "pipe"])
def test_a_stored_run_that_names_another_file_is_shown_without_it(project, path):
    project.ci_eval("run")
    os.mkfifo(project.folder / "pipe")
    stored = project.folder / "ci-eval-report/run.json"
    stored.write_text(stored.read_text().replace("smoke.evalset.json", path))

    ended = project.ci_eval("show", "greets")

    assert ended.code == 0
    assert "expected values are unknown: " in ended.out


def test_of_an_evalset_that_changed_since_the_run_nothing_is_shown(project):
    project.ci_eval("run")
    project.evalset(changed(GREETS, "Something else."), REFUNDS, TRACKS)

    said = project.ci_eval("show", "greets").out

    assert "Something else." not in said
    assert "expected values are unknown: smoke.evalset.json:4 has changed since\n" in said


def test_a_pattern_selects_cases_and_repeats_that_are_alike_are_shown_once(project):
    project.traces(*(each for case in CASES for each in (case, case)))
    project.ci_eval("run", "--repeats", "2")

    lines = project.ci_eval("show", "*r*").out.splitlines()
    heads = [line.split()[1] for line in lines if line.startswith("PASSED ") and "bot on" in line]
    assert heads == ["greets:", "refunds:", "tracks:"]
    assert len([line for line in lines if line.startswith("PASSED repeats 1, 2, which are")]) == 3


def test_text_has_the_first_cases_and_json_all_with_their_traces(project, monkeypatch):
    monkeypatch.setattr("ci_eval.cli.show_command.MAX_CASES", 2)
    project.traces(GREETS, REFUNDS, TRACKS)
    project.ci_eval("run")

    assert "… and 1 more case\n" in project.ci_eval("show", "*").out

    rows = project.ci_eval("show", "*", "--json").json
    assert len(rows) == 3
    assert all(row["trace"]["invocations"] for row in rows)


def test_the_change_since_the_baseline_is_shown(project):
    project.add("baseline: {store: file}\n")
    for _ in range(2):
        project.ci_eval("run", "--baseline-save")
    project.traces(GREETS, WRONG, TRACKS)
    project.ci_eval("run")

    said = project.ci_eval("show", "refunds").out
    assert "baseline: tool_trajectory_avg_score 1.000 before, 0.000 now" in said


def test_the_result_and_the_trace_are_json(project):
    project.ci_eval("run")

    where = ("--agent", "bot", "--evalset", "smoke")
    (found,) = project.ci_eval("show", "greets", *where, "--json").json
    assert found["result"]["key"]["case"] == "greets"
    assert found["trace"]["invocations"][0]["user_content"]["parts"] == [{"text": "Hello"}]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("greet",), "the run has no case 'greet'. Did you mean 'greets'?\n"),
        (("greets", "--agent", "bott"), "the run has no agent 'bott'. Did you mean 'bot'?\n"),
        (("greets", "--evalset", "smok"), "the run has no evalset 'smok'. Did you mean 'smoke'?\n"),
        (
            ("greets", "--out", "elsewhere"),
            (
                "elsewhere: no such file\n"
                "run `ci-eval run` first, or name its output directory or run.json\n"
            ),
        ),
    ],
)
def test_what_does_not_exist_is_named(project, arguments, said):
    project.ci_eval("run")

    ended = project.ci_eval("show", *arguments)
    assert (ended.code, ended.out) == (4, "")
    assert ended.err.startswith(f"{said}CE")


def test_a_run_without_traces_or_report_shows_its_scores(project):
    project.ci_eval("run")
    for name in ("traces.jsonl", "report.json"):
        (project.folder / "ci-eval-report" / name).unlink()

    shown = project.ci_eval("show", "greets").out
    assert "PASSED response_match_score 1.000 (needs ≥ 0.5)" in shown
    assert "conversations are not shown: there is no ci-eval-report/traces.jsonl\n" in shown


def test_a_run_named_by_its_file_is_shown_with_its_conversations(project):
    project.ci_eval("run")
    named = project.ci_eval("show", "greets", "--out", "ci-eval-report/run.json").out

    assert named.splitlines()[:-1] == project.ci_eval("show", "greets").out.splitlines()[:-1]
