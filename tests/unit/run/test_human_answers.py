import pytest

from ci_eval.records.cases import Content, Invocation
from ci_eval.records.model_usage import ModelUsage
from ci_eval.run.human_answers import joined, settled

ASKED = Content.of_text("Refund it.", role="user")
ANSWER = Content.of_text("yes", role="user")


def invocation(usage: ModelUsage | None) -> Invocation:
    return Invocation(user_content=ASKED, metered=usage)


@pytest.mark.parametrize("usage", [None, ModelUsage(calls=1, input_tokens=3)])
def test_calls_of_models_before_and_after_an_answer_are_counted_together(usage: ModelUsage | None):
    before, after = invocation(usage), invocation(usage)
    assert joined(before, ANSWER, after).metered == (usage and usage + usage)
    assert settled(before, ANSWER, "done").metered == usage
