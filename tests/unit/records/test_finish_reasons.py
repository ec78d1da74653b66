"""Responses that ended before they were whole."""

from typing import Any

import pytest

from ci_eval.records.cases import Invocation
from ci_eval.records.finish_reasons import unless_ordinary


@pytest.mark.parametrize(
    ("reason", "kept"),
    [
        *(
            (each, None)
            for each in (
                *("STOP", "stop", "tool_calls", "tool_use", "end_turn", "stop_sequence"),
                *("function_call", "FinishReason.STOP", "FINISH_REASON_UNSPECIFIED", "", None),
            )
        ),
        ("MAX_TOKENS", "MAX_TOKENS"),
        ("FinishReason.MAX_TOKENS", "MAX_TOKENS"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("SAFETY", "SAFETY"),
        ("x" * 500, "x" * 100),
    ],
)
def test_an_ordinary_end_says_nothing(reason: Any, kept: str | None) -> None:
    assert unless_ordinary(reason) == kept
    given = {"user_content": {"parts": []}, "finish_reason": reason}
    assert Invocation.model_validate(given).finish_reason == kept


def test_what_is_no_reason_is_refused() -> None:
    with pytest.raises(ValueError, match="finish_reason"):
        Invocation.model_validate({"user_content": {"parts": []}, "finish_reason": 5})
