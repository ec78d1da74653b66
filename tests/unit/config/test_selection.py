"""Which cases are meant: by id, by pattern, by tags."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.config.selection import Meant, PlannedEvalSet, Selection
from ci_eval.records.cases import EvalCase
from ci_eval.records.evalset_facts import CaseFacts, EvalSet, OpenedEvalSet

IDS = st.text("ab[]*?!-", max_size=5)


def made(name: str, *tags: str) -> EvalCase:
    return EvalCase(eval_id=name, conversation=(), tags=tags)


def fits(case: str, patterns: list[list[str]]) -> bool:
    return Meant(tuple(map(tuple, patterns)), frozenset())(made(case))


@pytest.mark.parametrize(
    ("case", "patterns", "meant"),
    [
        ("refund_1", [], True),
        ("refund_1", [["refund_1"]], True),
        ("refund_1", [["refund_*"]], True),
        ("refund_1", [["track", "refund_?"]], True),
        ("refund_1", [["refund"]], False),
        ("refund_1", [["REFUND_1"]], False),
        ("refund_1", [["refund_*"], ["*_2"]], False),
        ("refund_1", [["refund_*"], ["*_1"]], True),
        ("refund_1", [[]], False),
        ("a[1]", [["a[1]"]], True),
        ("a1", [["a[1]"]], True),
    ],
)
def test_a_case_fits_where_it_fits_a_pattern_of_each_group(
    case: str, patterns: list[list[str]], meant: bool
) -> None:
    assert fits(case, patterns) is meant


@given(IDS, st.lists(st.lists(IDS, max_size=3), max_size=3))
def test_more_patterns_mean_more_cases_and_more_groups_fewer(
    case: str, patterns: list[list[str]]
) -> None:
    assert fits(case, [[*group, case] for group in patterns])
    if fits(case, patterns):
        assert fits(case, patterns[1:])
        assert fits(case, [[*group, "other"] for group in patterns])


def test_a_case_needs_every_tag() -> None:
    case = made("a", "slow", "billing")
    for tags, meant in (((), True), (("slow",), True), (("slow", "billing"), True)):
        assert Meant((), frozenset(tags))(case) is meant
    for tags in (("slow", "new"), ("Slow",), ("",)):
        assert not Meant((), frozenset(tags))(case)


def test_tags_and_ids_must_both_fit() -> None:
    meant = Meant((("a*",),), frozenset({"slow"}))
    cases = (made("a", "slow"), made("ab"), made("b", "slow"), made("ac", "slow"))
    header = EvalSet(eval_set_id="e", path="e.json", format="adk")
    opened = OpenedEvalSet(header, lambda: iter(cases), CaseFacts())
    planned = PlannedEvalSet(opened, "e.json", meant, meant, 2)
    assert [each.eval_id for each in planned.cases()] == ["a", "ac"]
    assert [each.eval_id for each in planned.cases()] == ["a", "ac"]  # and can be read again


def test_a_selection_is_true_where_it_leaves_something_out() -> None:
    assert not Selection()
    for name in ("agents", "evalsets", "cases", "criteria", "tags"):
        assert Selection(**{name: ("x",)})
    assert Selection(places=frozenset())
