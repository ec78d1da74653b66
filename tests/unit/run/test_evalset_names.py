"""Paths of evalsets, with a list of cases behind them."""

import pytest

from ci_eval.formats.sniff import ENDINGS
from ci_eval.run.evalset_names import without_cases


@pytest.mark.parametrize("ending", ENDINGS)
def test_cases_may_follow_every_ending_of_an_evalset(ending: str) -> None:
    assert without_cases(f"e/smoke{ending}:greets, refunds") == (
        f"e/smoke{ending}",
        ["greets", "refunds"],
    )


def test_what_only_looks_like_a_list_of_cases_is_part_of_the_path() -> None:
    assert without_cases("e/at 10:00/smoke.json") == ("e/at 10:00/smoke.json", [])
    assert without_cases("notes:a") == ("notes:a", [])
