"""Errors for users."""

import pytest

from ci_eval.records.errors import EvalSetError, Problem, UsageError, visible


def test_an_error_always_has_a_problem_so_that_whoever_collects_them_loses_none() -> None:
    problem = Problem("is empty", "smoke.yaml", 1)
    assert UsageError("no such file").problems == (Problem("no such file"),)
    assert EvalSetError(problems=[problem]).problems == (problem,)
    assert str(EvalSetError(problems=[problem])) == "smoke.yaml:1: is empty"


@pytest.mark.parametrize("sign", ["\n", "\r", "\x1b", "\x85", "\u2028"])
def test_a_name_of_a_place_cannot_break_a_line(sign: str) -> None:
    said = str(Problem("is empty", f"a{sign}b.yaml", 3, f"agents.a{sign}b"))
    assert said.isprintable()
    assert said.count(repr(sign)[1:-1]) == 2
    assert visible("naïve café 日本語") == "naïve café 日本語"
