"""What kept something from being measured, and when it is not said."""

import pytest
from support.report_language import GROUP, make_meta

from ci_eval.gate.missing_credentials import lacked
from ci_eval.records.findings import GroupSummary
from ci_eval.records.results import JudgeUsage, RunMeta

FORKS = "; pull requests from forks get no secrets, see docs/forks.md"
KEYLESS = JudgeUsage(lacking=("A_KEY",))


def wants(what: str) -> RunMeta:
    return make_meta().model_copy(update={"lacking": {"support": what}})


def group(value: float | None, *, errors: int = 0, judging: JudgeUsage | None = None):
    return GroupSummary(group=GROUP, value=value, errors=errors, judging=judging)


def test_where_all_could_be_asked_nothing_is_lacking():
    assert lacked(make_meta(), [group(1.0), group(None, errors=2)], None) == ""


def test_an_agent_of_which_nothing_was_measured_lacks_what_it_was_to_get():
    said = lacked(wants("A_KEY"), [group(None, errors=2), group(None, errors=2)], None)
    assert said == f"the agent 'support' lacks A_KEY{FORKS}"


@pytest.mark.parametrize(
    "groups",
    [[group(0.5, errors=1)], [group(None, errors=1), group(0.0)], [group(None)], []],
    ids=["one case was measured", "one criterion was", "all was skipped", "nothing was asked"],
)
def test_an_agent_that_does_without_lacks_nothing(groups: list[GroupSummary]):
    assert lacked(wants("A_KEY"), groups, None) == ""


def test_a_judge_lacks_its_key_though_kept_answers_were_enough_for_some_cases():
    said = lacked(make_meta(), [group(0.5, errors=1, judging=KEYLESS)], None)
    assert said == f"the judge of quality lacks A_KEY{FORKS}"


def test_all_that_is_lacking_is_one_sentence_with_one_way_out():
    groups = [group(None, errors=1, judging=KEYLESS)]
    said = lacked(wants("B_KEY"), groups, KEYLESS)
    assert said == (
        "the agent 'support' lacks B_KEY, the judge of quality lacks A_KEY and the simulated user "
        f"of scenarios lacks A_KEY{FORKS}"
    )


def test_a_package_is_no_secret():
    usage = JudgeUsage(lacking=("the package openai",))
    said = lacked(make_meta(), [group(None, errors=1, judging=usage)], None)
    assert said == "the judge of quality lacks the package openai"


def test_what_is_lacking_is_kept_once_however_often_it_was_missed():
    both = KEYLESS + JudgeUsage(calls=1, lacking=("B_KEY", "A_KEY")) + KEYLESS
    assert both == JudgeUsage(calls=1, lacking=("A_KEY", "B_KEY"))
