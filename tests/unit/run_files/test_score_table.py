"""How observations of a case become one status."""

import pytest
from support.run_language import FACTS, columns, results

from ci_eval.records.cases import Status
from ci_eval.records.findings import Counts
from ci_eval.records.results import CriterionFacts
from ci_eval.run_files.score_cell import Cell, best_of
from ci_eval.run_files.score_table import Columns

LOWER = FACTS.model_copy(update={"better": "lower"})
UNBOUNDED = FACTS.model_copy(update={"interval": None})


def of_case(*values: float | None) -> Cell:
    words = ["error" if value is None else str(value) for value in values]
    return columns(f"x {' '.join(words)}").groups["a", "e", "c"]["x"]


def cell(*values: float | None, facts: CriterionFacts = FACTS) -> Status:
    return of_case(*values).status(facts)


def test_a_case_passes_when_the_mean_of_its_repeats_does():
    assert cell(1.0, 0.0) is Status.PASSED
    assert cell(1.0, 0.0, 0.0) is Status.FAILED


def test_the_mean_of_equal_values_is_that_value():
    found = of_case(0.1, 0.1, 0.1)

    assert found.value == 0.1
    assert not found.varied


def test_an_error_makes_the_case_an_error_unless_nothing_could_save_it():
    assert cell(1.0, None) is Status.ERROR
    assert cell(0.0, None) is Status.ERROR  # had it been 1, the mean would be 0.5
    assert cell(0.0, 0.0, None) is Status.FAILED
    assert cell(None) is Status.ERROR


def test_what_nothing_bounds_could_always_be_saved():
    assert cell(0.0, 0.0, None, facts=UNBOUNDED) is Status.ERROR


def test_lower_may_be_better():
    assert cell(0.4, facts=LOWER) is Status.PASSED
    assert cell(0.6, facts=LOWER) is Status.FAILED
    assert best_of(LOWER) == 0.0
    assert best_of(UNBOUNDED) is None


def test_without_a_threshold_everything_is_good_enough():
    assert FACTS.model_copy(update={"threshold": None}).passes(0.0)


def test_nothing_measured_is_skipped_and_never_passed():
    found = columns("a skip")

    assert dict(found.statuses({"c": FACTS})) == {("a", "e", "a"): Status.SKIPPED}


def test_a_case_passes_when_every_criterion_that_judges_does():
    found = Columns.of(
        [
            *results("x 1\ny 1\nz 1", criterion="c"),
            *results("x 1\ny 0\nz error", criterion="d"),
            *results("x 0", criterion="only_informs"),
        ]
    )
    informs = FACTS.model_copy(update={"informational": True})

    criteria = {"c": FACTS, "d": FACTS, "only_informs": informs}

    assert {place[2]: status for place, status in found.statuses(criteria)} == {
        "x": Status.PASSED,
        "y": Status.FAILED,
        "z": Status.ERROR,
    }
    assert found.ended(criteria) == Counts(passed=1, failed=1, errors=1)


@pytest.mark.parametrize(
    ("statuses", "worst"),
    [
        ([], Status.SKIPPED),
        ([Status.SKIPPED, Status.PASSED], Status.PASSED),
        ([Status.PASSED, Status.FAILED], Status.FAILED),
        ([Status.FAILED, Status.ERROR], Status.ERROR),
    ],
)
def test_the_worst_status_counts(statuses, worst):
    assert Status.worst(statuses) is worst


# --- Rounds, and trials that confirm ----------------------------------------------------------


def words(text: str) -> Cell:
    return columns(f"x {text}").groups["a", "e", "c"]["x"]


def test_the_repeats_of_a_round_stand_together():
    assert words("1 0 | 0 0 | 1 1").units == ((1.0, 0.0), (0.0, 0.0), (1.0, 1.0))


def test_a_round_that_measured_nothing_is_empty():
    assert words("skip | 1 | error").units == ((), (1.0,))


def test_trials_that_confirm_count_for_that_alone():
    found = words("1 0 ! 0 0 error")

    assert (found.value, found.units) == (0.5, ((1.0, 0.0),))
    assert (found.confirming, found.unconfirmed, found.errors) == ((0.0, 0.0), 1, 0)


@pytest.mark.parametrize(
    ("text", "lacking"),
    [
        ("1 1", False),
        ("1 error", True),
        # It fails whatever was missing, and may have got worse because of what is.
        ("0 0 error", True),
        ("0 ! 0 error", True),
        # It is not suspected, so nothing was to be confirmed.
        ("1 ! 1 error", False),
        ("0 skip", False),
    ],
)
def test_what_is_missing_and_could_change_what_is_found(text, lacking):
    assert words(text).lacks(FACTS) is lacking


def test_a_case_lacks_something_under_what_may_block_alone():
    found = Columns.of(
        [
            *results("x 0 0 error\ny 1\nz 1", criterion="blocks"),
            *results("x error\ny error\nz 1", criterion="grows"),
            *results("x error\ny error\nz error", criterion="warns"),
            *results("x error\ny error\nz error", criterion="informs"),
        ]
    )
    informs = FACTS.model_copy(update={"informational": True})
    facts = {
        "blocks": FACTS,
        "grows": informs.model_copy(update={"max_growth": 0.2}),
        "warns": FACTS.model_copy(update={"tier": "warn"}),
        "informs": informs,
    }

    assert found.incomplete(facts) == 2
    assert found.incomplete(facts, {("a", "e", "grows"): {"y"}}) == 1
