"""Names of evalsets, and paths with a list of cases behind them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.config.criterion_names import NAME
from ci_eval.config.evalset_names import free_name, unique_names, without_cases
from ci_eval.formats.sniff import ENDINGS


@pytest.mark.parametrize("ending", ENDINGS)
def test_cases_may_follow_every_ending_of_an_evalset(ending: str) -> None:
    assert without_cases(f"e/smoke{ending}:greets, refunds") == (
        f"e/smoke{ending}",
        ["greets", "refunds"],
    )


def test_what_only_looks_like_a_list_of_cases_is_part_of_the_path() -> None:
    assert without_cases("e/at 10:00/smoke.json") == ("e/at 10:00/smoke.json", [])
    assert without_cases("notes:a") == ("notes:a", [])


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["a/x.evalset.json", "b/x.test.json", "x.yaml"], ["x", "x-2", "x-3"]),
        (["X.JSON", "..json", "archive.v2.json"], ["X", "evals", "archive.v2"]),
    ],
)
def test_evalsets_are_called_as_their_files_and_no_two_alike(
    paths: list[str], names: list[str]
) -> None:
    assert list(unique_names(paths).values()) == names


@given(
    st.lists(
        st.text(st.characters(exclude_characters="/\0", exclude_categories=["C", "Z"]), min_size=1),
        unique=True,
    )
)
def test_every_file_gets_a_name_that_a_configuration_takes(paths: list[str]) -> None:
    names = unique_names(paths).values()

    assert len({*names}) == len(paths)
    assert all(NAME.fullmatch(each) for each in names)


def test_a_name_that_is_taken_gets_the_next_number() -> None:
    assert free_name("evals", ["evals", "evals-2"]) == "evals-3"
