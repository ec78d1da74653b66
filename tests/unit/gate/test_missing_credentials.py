"""What kept something from being measured, and when it is not said."""

import pytest
from support.report_language import GROUP, make_meta

from ci_eval.gate.missing_credentials import lacked
from ci_eval.records.findings import GroupSummary
from ci_eval.records.results import JudgeUsage, RunMeta
from ci_eval.records.trials import Failure

FORK = "; pull requests from forks get no secrets"
REFUSED = {"support": Failure(kind="raised", message="KeyError: 'A_KEY' (shop.py:3)")}
KEYLESS = JudgeUsage(lacking=("A_KEY",))


def wants(what: str) -> RunMeta:
    return make_meta().model_copy(update={"lacking": {"support": what}})


def group(value: float | None, *, errors: int = 0, judging: JudgeUsage | None = None):
    return GroupSummary(group=GROUP, value=value, errors=errors, judging=judging)


def test_where_all_could_be_asked_nothing_is_lacking():
    assert lacked(make_meta(), [group(1.0), group(None, errors=2)], None, REFUSED) == ""


def test_an_agent_of_which_nothing_was_measured_lacks_what_it_was_to_get():
    said = lacked(wants("A_KEY"), [group(None, errors=2), group(None, errors=2)], None, REFUSED)
    assert said == "the agent 'support' lacks A_KEY"


@pytest.mark.parametrize(
    "groups",
    [[group(0.5, errors=1)], [group(None, errors=1), group(0.0)], [group(None)], []],
    ids=["one case was measured", "one criterion was", "all was skipped", "nothing was asked"],
)
def test_an_agent_that_does_without_lacks_nothing(groups: list[GroupSummary]):
    assert lacked(wants("A_KEY"), groups, None, REFUSED) == ""


def test_a_judge_lacks_its_key_though_kept_answers_were_enough_for_some_cases():
    said = lacked(make_meta(), [group(0.5, errors=1, judging=KEYLESS)], None, REFUSED)
    assert said == "the judge of quality lacks A_KEY"


def test_all_that_is_lacking_is_one_sentence_with_one_way_out():
    groups = [group(None, errors=1, judging=KEYLESS)]
    said = lacked(wants("A_KEY"), groups, KEYLESS, REFUSED)
    assert said == (
        "the agent 'support' lacks A_KEY, the judge of quality lacks A_KEY and the simulated user "
        "of scenarios lacks A_KEY"
    )


def test_a_package_is_no_secret():
    usage = JudgeUsage(lacking=("the package openai",))
    said = lacked(make_meta(), [group(None, errors=1, judging=usage)], None, REFUSED)
    assert said == "the judge of quality lacks the package openai"


def test_what_is_lacking_is_kept_once_however_often_it_was_missed():
    both = KEYLESS + JudgeUsage(calls=1, lacking=("B_KEY", "A_KEY")) + KEYLESS
    assert both == JudgeUsage(calls=1, lacking=("A_KEY", "B_KEY"))


NOT_MEASURED = [group(None, errors=1)]


def test_what_keeps_an_agent_from_starting_comes_before_a_key_that_it_lacks():
    failure = Failure(kind="start", message="cannot load 'shop:answer': SyntaxError\n  shop.py:3")
    said = lacked(wants("A_KEY"), NOT_MEASURED, None, {"support": failure})
    assert said == "the agent 'support' cannot start: cannot load 'shop:answer': SyntaxError"


def test_an_agent_without_an_answer_says_why():
    failure = Failure(kind="connection", message="http://shop: connection refused")
    said = lacked(make_meta(), NOT_MEASURED, None, {"support": failure})
    assert said == "the agent 'support' did not answer: http://shop: connection refused"


@pytest.mark.parametrize(
    ("message", "is_named"),
    [
        ("AuthenticationError: 401", True),
        ("PermissionDenied: no valid credentials", True),
        ("ValueError: no such room", False),
    ],
)
def test_a_key_is_named_only_where_the_provider_refused(message: str, *, is_named: bool):
    failure = Failure(kind="raised", message=message)
    said = lacked(wants("A_KEY"), NOT_MEASURED, None, {"support": failure})
    assert said == ("the agent 'support' lacks A_KEY" if is_named else "")


def test_a_variable_that_is_no_secret_explains_no_refusal():
    failure = Failure(kind="connection", message="the provider refuses the key (status 401)")
    said = lacked(wants("PREFIX"), NOT_MEASURED, None, {"support": failure})
    assert said == f"the agent 'support' did not answer: {failure.message}"


def test_forks_are_named_only_in_the_run_of_a_fork():
    meta = wants("A_KEY").model_copy(update={"from_fork": True})
    assert lacked(meta, NOT_MEASURED, None, REFUSED) == f"the agent 'support' lacks A_KEY{FORK}"


def test_forks_are_not_named_for_what_an_agent_says_itself():
    meta = make_meta().model_copy(update={"from_fork": True})
    failures = {"support": Failure(kind="start", message="the plan lacks a step")}
    said = lacked(meta, [group(None, errors=1)], None, failures)
    assert said == "the agent 'support' cannot start: the plan lacks a step"
