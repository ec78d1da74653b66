"""`ci-eval judge check` as a user types it: a scripted judge, compared with labels."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.project import Project, case, changed, problems, turn

from ci_eval.records.errors import ExitCode

CONFIG = """\
version: 1
agents:
  bot: {recorded: traces.jsonl}
evalsets:
  smoke: smoke.evalset.json
judge:
  mode: "off"
  provider: scripted
  answers:
    - contains: BAD
      answer: {reasoning: The amount differs., is_the_agent_response_valid: invalid}
    - {contains: ODD, answer: I cannot say.}
    - {contains: GOOD, answer: {reasoning: Same., is_the_agent_response_valid: valid}}
    - criterion: adk/rubric_based_final_response_quality_v1
      answer:
        verdicts:
          - {rubric_id: short, rationale: Two words., verdict: "yes"}
          - {rubric_id: polite, rationale: No greeting., verdict: "no"}
"""
MATCH = "criteria: {final_response_match_v2: 0.5}\n"
RUBRICS = """\
criteria:
  rubric_based_final_response_quality_v1:
    threshold: 0.5
    rubrics:
      - {rubric_id: short, rubric_content: {text_property: The answer is short.}}
      - {rubric_id: polite, rubric_content: {text_property: The answer is polite.}}
"""


@pytest.fixture
def project(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = Project(tmp_path, capsys)
    found.config(CONFIG + MATCH)
    return found


def write(*rows: dict[str, Any]) -> None:
    Path("labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def said(response: str, label: Any, **more: Any) -> dict[str, Any]:
    return {"user": "Refund 7", "response": response, "expected": "25 EUR", "label": label, **more}


GOOD, CAUGHT, LENIENT = said("GOOD", "pass"), said("BAD", "fail"), said("GOOD", "fail")
STRICT, UNDECIDED = said("BAD", "pass", id="refund-7"), said("ODD", "pass", id="odd")


def test_what_people_and_the_judge_say_is_counted_and_differences_are_shown(project):
    write(GOOD, GOOD, GOOD, CAUGHT, LENIENT, STRICT)

    ended = project.ci_eval("judge", "check", "labels.jsonl")

    assert ended.code == ExitCode.PASSED
    lines = ended.out.splitlines()
    assert lines[0] == "final_response_match_v2 (scripted; 5 samples) on 6 labels"
    assert [line.split() for line in lines[3:6]] == [
        ["people:", "pass", "3", "1", "75.0%", "30.1%", "to", "95.4%"],
        ["people:", "fail", "1", "1", "50.0%", "9.5%", "to", "90.5%"],
        ["all", "4", "2", "66.7%", "30.0%", "to", "90.3%"],
    ]
    # expected 4/6 * 4/6 + 2/6 * 2/6 = 5/9; (6/9 - 5/9) / (4/9) = 1/4
    assert any(line.startswith("kappa: 0.250 (") for line in lines)
    assert lines[lines.index("people and the judge differ on (2):") + 1 :][:2] == [
        "- line 5: people say fail, the judge says pass: Same.",
        "- refund-7 (line 6): people say pass, the judge says fail: The amount differs.",
    ]


def test_all_of_it_is_there_as_json(project):
    write(GOOD, CAUGHT, STRICT, said("GOOD", ["pass", "fail"]))

    found = project.ci_eval("judge", "check", "labels.jsonl", "--json").json

    assert found["outcome"] == "passed"
    assert found["agreement"]["table"] == {
        "pass_pass": 1,
        "pass_fail": 1,
        "fail_pass": 0,
        "fail_fail": 1,
    }
    assert found["differing"][0]["id"] == "refund-7"
    assert found["divided"][0]["line"] == 4
    assert (found["people"]["count"], found["people"]["of"]) == (0, 1)
    # four different questions; three of five samples decide
    assert found["judging"]["calls"] == 12


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), ExitCode.PASSED),
        (("--min-agreement", "0.66", "--min-kappa", "0.25"), ExitCode.PASSED),
        (("--min-agreement", "0.67"), ExitCode.FAILED),
        (("--min-kappa", "0.26"), ExitCode.FAILED),
        (("--min-kappa", "2"), ExitCode.USAGE_ERROR),
    ],
)
def test_how_good_it_must_be_decides_the_exit_code(project, options, code):
    write(GOOD, GOOD, GOOD, CAUGHT, LENIENT, STRICT)

    assert project.ci_eval("judge", "check", "labels.jsonl", *options).code == code


def test_what_the_judge_could_not_decide_is_shown_and_too_much_of_it_is_no_verdict(project):
    write(GOOD, CAUGHT, UNDECIDED)

    ended = project.ci_eval("judge", "check", "labels.jsonl", "--min-agreement", "0.1")

    assert ended.code == ExitCode.INCOMPLETE
    assert "the judge could not decide (1):" in ended.out.splitlines()
    assert "- odd (line 3): no verdict was reached: scripted: it holds no verdict" in ended.out
    assert "- the judge could not decide 1 of 3, at most 10.0% allowed" in ended.out.splitlines()
    allowed = project.ci_eval("judge", "check", "labels.jsonl", "--max-undecided", "0.5")
    assert allowed.code == ExitCode.PASSED


def test_labels_that_all_say_the_same_show_no_kappa(project):
    write(GOOD, STRICT)

    ended = project.ci_eval("judge", "check", "labels.jsonl", "--min-kappa", "0.1")

    assert ended.code == ExitCode.INCOMPLETE
    assert "kappa: not available, because all labels say pass" in ended.out.splitlines()


def test_each_rubric_is_checked_with_one_question_for_all(project):
    project.config(CONFIG.replace("GOOD", "NEVER") + RUBRICS)
    one = {"id": "a", "user": "Refund 7", "response": "Yes, 25."}
    write(
        {**one, "rubric_id": "short", "label": True},
        {**one, "rubric_id": "polite", "label": True},
        {**one, "label": 0.75},
    )

    found = project.ci_eval("judge", "check", "labels.jsonl", "--json").json

    assert {name: each["agreed"]["count"] for name, each in found["rubrics"].items()} == {
        "short": 1,
        "polite": 0,
    }
    assert [(each["rubric_id"], each["rationale"]) for each in found["differing"]] == [
        ("polite", "No greeting.")
    ]
    # the whole score is 1/2, and the threshold is 0.5
    assert found["agreement"]["agreed"]["count"] == 2
    assert found["judging"]["calls"] == 3


def test_conversations_of_several_turns_are_labelled_in_the_words_of_adk(project):
    expected = [turn("Hello", "Hi"), turn("Refund 7", "25 EUR")]
    took_place = [turn("Hello", "GOOD"), turn("Refund 7", "BAD")]
    write({"id": "c", "conversation": expected, "invocations": took_place, "label": 0.25})

    [one] = project.ci_eval("judge", "check", "labels.jsonl", "--json").json["differing"]

    assert (one["people_score"], one["judge_score"], one["judge"]) == (0.25, 0.5, True)


def test_what_a_recording_holds_can_be_labelled_where_nothing_is_compared(project):
    project.config(CONFIG + RUBRICS)
    row = {"eval_id": "refunds", "invocations": [turn("Refund 7", "Yes, 25.")]}
    write({**row, "label": True})

    found = project.ci_eval("judge", "check", "labels.jsonl", "--json").json

    assert found["agreement"]["table"]["pass_pass"] == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"user": "q", "expected": "x"}, "'response' is missing"),
        ({"response": "q", "expected": "x"}, "'user' is missing"),
        ({}, "labels.jsonl:2: 'user' is missing\nlabels.jsonl:2: 'response' is missing"),
        ({"user": "q", "response": "x"}, "'expected' is missing, but adk/final_response"),
        ({"invocations": [turn("q", "x")]}, "'conversation' is missing, but adk/final_"),
        ({"invocations": [], "conversation": []}, "has no invocation, so there is nothing"),
        ({"invocations": [turn("q", "x")], "user": "q"}, "so 'user' is not allowed"),
        ({"conversation": [turn("q", "x")]}, "but no 'invocations' (actual)"),
        ({"case": "refunds"}, "refers to a case of a run; pass the run with --run"),
        (
            {"invocations": [turn("q", "x")], "conversation": [turn("q", "x"), turn("r", "y")]},
            "expects 2 invocations, but 1 took place",
        ),
        (said("x", 1, rubric_id="short"), "has no rubric 'short' for this line"),
        (said("x", 1, rubrics=[{"id": 1}]), "rubrics[0]: "),
        (
            {
                "invocations": [turn("q", "x")],
                "conversation_scenario": {"starting_prompt": "q", "conversation_plan": "p"},
            },
            "cannot judge it: needs a written conversation, not a scenario",
        ),
    ],
)
def test_a_line_that_cannot_be_judged_is_refused_before_anybody_is_asked(project, row, message):
    write(GOOD, {"label": True, **row})

    ended = project.ci_eval("judge", "check", "labels.jsonl")

    assert ended.code == ExitCode.USAGE_ERROR
    assert problems(ended)[0].startswith("labels.jsonl:2: ")
    assert message in ended.err


def test_a_rubric_that_is_not_there_is_named_with_what_was_meant(project):
    project.config(CONFIG + RUBRICS)
    write({"user": "q", "response": "x", "rubric_id": "shrt", "label": True})

    ended = project.ci_eval("judge", "check", "labels.jsonl")

    assert ended.code == ExitCode.USAGE_ERROR
    assert "has no rubric 'shrt' for this line. Did you mean 'short'?" in ended.err


def test_a_file_without_labels_is_nothing_to_do(project):
    write()

    assert project.ci_eval("judge", "check", "labels.jsonl").code == ExitCode.NOTHING_SELECTED


def test_a_file_that_is_not_there_is_said(project):
    ended = project.ci_eval("judge", "check", "labels.jsonl")

    assert (ended.code, problems(ended)) == (ExitCode.USAGE_ERROR, ["labels.jsonl: no such file"])


@pytest.mark.parametrize(
    ("criteria", "options", "message"),
    [
        ("criteria: {response_match_score: 0.5}\n", (), "has no criterion that uses a model"),
        (
            "criteria: {final_response_match_v2: 0.5, safety_v1: 0.5}\n",
            (),
            "ci-eval.yaml has several criteria that use a model",
        ),
        (
            MATCH,
            ("--criterion", "final_response_match"),
            "no criterion 'final_response_match' that uses a model. Did you mean 'final_response_m",
        ),
    ],
)
def test_the_criterion_must_be_one_that_asks(project, criteria, options, message):
    project.config(CONFIG + criteria)
    write(GOOD)

    ended = project.ci_eval("judge", "check", "labels.jsonl", *options)

    assert ended.code == ExitCode.USAGE_ERROR
    assert message in ended.err


def test_a_criterion_is_named_as_the_configuration_does_or_by_its_type(project):
    project.config(
        CONFIG + "criteria:\n  answers: {use: adk/final_response_match_v2, threshold: 0.5}\n"
        "  response_match_score: 0.5\n"
    )
    write(GOOD, said("GOOD", "fail", criterion="something_else"))

    for name in ("answers", "final_response_match_v2", "adk/final_response_match_v2"):
        ended = project.ci_eval("judge", "check", "labels.jsonl", "--criterion", name)
        assert ended.code == ExitCode.PASSED
        assert "1 label on other criteria ignored" in ended.out.splitlines()


ASKED, OTHER = case("asked", turn("Refund 7", "25 EUR")), case("other", turn("Refund 8", "30 EUR"))


@pytest.fixture
def run(project):
    """A run in which `asked` is judged valid, and `other` is not."""
    project.evalset(ASKED, OTHER)
    project.traces(changed(ASKED, "GOOD"), changed(OTHER, "BAD"))
    project.ci_eval("run")
    return ("judge", "check", "labels.jsonl", "--run", "ci-eval-report/run.json")


def test_labels_may_point_into_a_run_where_nothing_is_asked(project, run):
    project.config("nothing that could be used")
    write(
        {"case": "asked", "label": True},
        {"case": "other", "evalset": "smoke", "agent": "bot", "repeat": 0, "label": 1},
    )

    ended = project.ci_eval(*run)

    assert ended.code == ExitCode.PASSED
    assert "- line 2: people say pass, the judge says fail: The amount differs." in ended.out
    assert "calls" not in ended.err


def test_a_pointer_must_lead_to_one_trial(project, run):
    write(
        {"case": "asked", "label": True},
        {"case": "nowhere", "label": True},
        {"case": "asked", "agent": "other", "label": True},
    )
    ended = project.ci_eval(*run)
    assert ended.code == ExitCode.USAGE_ERROR
    message = "the run has no such trial of {} scored by final_response_match_v2"
    assert problems(ended) == [
        "labels.jsonl:2: " + message.format("'nowhere'"),
        "labels.jsonl:3: " + message.format("'asked'"),
    ]

    project.ci_eval("run", "--repeats", "2")
    write({"case": "asked", "label": True})
    ended = project.ci_eval(*run)
    assert problems(ended) == [
        (
            "labels.jsonl:1: matches 2 trials of 'asked'; choose one with "
            "`evalset`, `agent` or `repeat`"
        )
    ]


def test_a_run_in_which_nobody_was_asked_is_refused(project):
    project.config(CONFIG + "criteria: {response_match_score: 0.5}\n")
    project.ci_eval("run")
    write({"case": "greets", "label": True})

    ended = project.ci_eval("judge", "check", "labels.jsonl", "--run", "ci-eval-report")

    assert ended.code == ExitCode.USAGE_ERROR
    assert "run.json has no criterion that uses a model" in ended.err


def test_a_criterion_without_a_threshold_passes_nothing(project):
    project.config(CONFIG + "criteria: {final_response_match_v2: 0.5}\n")
    project.evalset(ASKED)
    project.traces(changed(ASKED, "GOOD"))
    project.ci_eval("run")
    path = Path("ci-eval-report/run.json")
    path.write_text(path.read_text().replace('"threshold":0.5', '"threshold":null'))
    write({"case": "asked", "label": True})

    ended = project.ci_eval("judge", "check", "labels.jsonl", "--run", str(path))

    assert ended.code == ExitCode.USAGE_ERROR
    assert "has no threshold, so pass and fail are undefined" in ended.err


def test_answers_are_kept_and_not_asked_for_twice(project):
    project.config((CONFIG + MATCH).replace('mode: "off"', "mode: auto"))
    write(GOOD, CAUGHT)
    first = project.ci_eval("judge", "check", "labels.jsonl", "--json").json
    again = project.ci_eval("judge", "check", "labels.jsonl", "--json").json

    assert (first["judging"]["calls"], first["judging"]["cached"]) == (6, 0)
    assert (again["judging"]["calls"], again["judging"]["cached"]) == (0, 6)
    assert first["agreement"] == again["agreement"]
