"""Errors for users."""

from ci_eval.records.errors import EvalSetError, Problem, UsageError


def test_an_error_always_has_a_problem_so_that_whoever_collects_them_loses_none() -> None:
    problem = Problem("is empty", "smoke.yaml", 1)
    assert UsageError("no such file").problems == (Problem("no such file"),)
    assert EvalSetError(problems=[problem]).problems == (problem,)
    assert str(EvalSetError(problems=[problem])) == "smoke.yaml:1: is empty"
