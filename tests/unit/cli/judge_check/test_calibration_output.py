"""What a person sees of a calibration, line by line."""

import pytest

from ci_eval.cli.console import MAX_LISTED
from ci_eval.cli.judge_check.calibration import Judges, Required, calibrate
from ci_eval.cli.judge_check.calibration_output import MAX_RATIONALE, show
from ci_eval.cli.judge_check.human_labels import Item, Label, Labels
from ci_eval.cli.judge_check.judge_verdicts import Verdict
from ci_eval.records.results import JudgeUsage

JUDGES = Judges(criterion="answers", models=("gpt-4o", "gemini-2.5-pro"), samples=1)

NOTHING = Required()


@pytest.fixture
def shown(capsys):
    def work(*both: tuple[Item[str], Verdict], required: Required = NOTHING) -> list[str]:
        labels = Labels([item for item, _ in both])
        usage = JudgeUsage(calls=4, cached=2, input_tokens=9, cost_usd=0.5)
        show(calibrate(labels, [each for _, each in both], JUDGES, usage), required)
        out, err = capsys.readouterr()
        assert err == ""
        return out.splitlines()

    return work


def item(*scores: float, rubric: str | None = None, name: str = "a") -> Item[str]:
    return Item(name, 3, rubric, "thing", [Label(each >= 0.5, each) for each in scores])


def says(score: float, rationale: str = "") -> Verdict:
    return Verdict(score >= 0.5, score, "", rationale)


def test_who_was_asked_and_what_it_took(shown):
    lines = shown((item(1.0), says(1.0)))

    assert lines[0] == "answers (gpt-4o, gemini-2.5-pro; 1 sample) on 1 label"
    assert lines[-1] == "judges: 4 calls, 2 answers from the cache, 9 tokens, $0.50"


def test_each_rubric_has_a_line(shown):
    lines = shown(
        (item(1.0, rubric="short"), says(1.0)),
        (item(0.0, rubric="short"), says(0.0)),
        (item(1.0, rubric="polite"), says(0.0)),
    )

    # 1 added to each cell: kappa 1/3 with the error 2 √(2/3 · 1/3 / 6) = 0.385
    assert "rubric short: 2 of 2 agreed, kappa: 1.000 (-0.421 to 1.000)" in lines
    assert (
        "rubric polite: 0 of 1 agreed, kappa: not available, because all labels say pass" in lines
    )
    assert "- a (line 3), rubric polite: people say pass, the judge says fail" in lines


def test_grades_are_shown_with_how_far_apart_they_are(shown):
    lines = shown((item(0.25), says(0.75)), (item(0.75), says(0.75)))

    # apart by 0.5 and 0; standard error 0.25, t of one degree 12.706
    assert "2 scores: mean absolute difference 0.250 (0.000 to 3.427)" in lines
    assert "the judge scores higher by +0.250 (-2.927 to 3.427)" in lines
    assert "- a (line 3): people say fail (0.250), the judge says pass (0.750)" in lines


def test_people_who_disagree_are_shown(shown):
    lines = shown((item(1.0, 1.0, 0.0), says(1.0)), (item(1.0, 0.0, name="line 3"), says(1.0)))

    # one of the three pairs on the first, none of the one on the second assert
    any(line.startswith("people agree with each other in 1 of 4 pairs (25.0%)") for line in lines)
    assert lines[lines.index("people are divided on (1):") + 1] == "- line 3"


def test_long_lists_end_and_say_how_much_is_left(shown):
    lines = shown(*[(item(1.0), says(0.0))] * (MAX_LISTED + 2))

    at = lines.index(f"people and the judge differ on ({MAX_LISTED + 2}):")
    assert lines[at + MAX_LISTED].startswith("- a (line 3)")
    assert lines[at + MAX_LISTED + 1] == "… and 2 more; --json has all"


def test_a_rationale_is_one_short_line_that_steers_no_terminal(shown):
    lines = shown((item(1.0), says(0.0, "\x1b[31mred\nand " + "long " * 500)))

    [line] = [line for line in lines if line.startswith("- a (line 3)")]
    assert "\x1b" not in line
    assert "red" in line
    assert "and long" in line
    assert len(line) < MAX_RATIONALE + 100


@pytest.mark.parametrize(
    ("required", "ending"),
    [
        (NOTHING, ["no minimum set; see --min-kappa and --min-agreement"]),
        (
            Required(agreement=1.0),
            ["PASSED", "- agreement may be as low as 34.2%; more labels would narrow the interval"],
        ),
        (Required(agreement=0.3), ["PASSED"]),
        (
            Required(kappa=0.5),
            ["PASSED", "- kappa may be as low as -0.421; more labels would narrow the interval"],
        ),
    ],
)
def test_the_end_says_what_became_of_it(shown, required, ending):
    lines = shown((item(1.0), says(1.0)), (item(0.0), says(0.0)), required=required)
    lines = [line.replace("\N{MINUS SIGN}", "-") for line in lines]

    assert lines[-1 - len(ending) : -1] == ending
