"""What agents have spent, and what their limits still allow."""

import asyncio

import pytest

from ci_eval.llm.gateway.gateway_options import ModelOptions
from ci_eval.llm.gateway.spending import Spending, count_spent, exceeded, limit_before
from ci_eval.llm.gateway.upstream import tokens_of
from ci_eval.records.model_usage import ModelUsage

SPENT = ModelUsage(calls=10, replayed=2, retries=2, cost_usd=1.0)
"""Ten calls to the provider, for 80 cents."""


@pytest.mark.parametrize("before", ['"', '"data:image/png;base64,'])
def test_the_length_of_a_file_is_not_the_length_of_a_text(before: str):
    def tokens(text: str) -> int:
        return tokens_of(f'{{"a": "be kind", "b": {before}{text}"}}'.encode())

    assert tokens("iVBORw0KGgo" * 100_000 + "==") == tokens("iVBORw0KGgo" * 1_000) < 1_100
    assert tokens("Hello, you! " * 100_000) > 250_000


def test_a_refused_call_says_what_it_may_cost():
    options, none = ModelOptions(max_cost_usd=0.01), Spending()
    assert exceeded(options, none, none, 0.02) == (
        "the budget of the run is used up: $0.0000 spent, about $0.0200 for this call, of $0.01; "
        "raise `models.max_cost_usd`"
    )


@pytest.mark.parametrize(
    ("options", "calls", "limit"),
    [
        ({}, 100, ""),
        ({"max_calls": 15}, 5, ""),
        ({"max_calls": 15}, 6, "max_calls"),
        ({"max_cost_usd": 1.25}, 5, ""),
        ({"max_cost_usd": 1.25}, 6, "max_cost_usd"),
    ],
)
def test_calls_are_forbidden_that_would_exceed_a_limit(options, calls: int, limit: str):
    async def found() -> str:
        count_spent({"bot": SPENT})
        return limit_before("bot", ModelOptions(**options), calls)

    assert asyncio.run(found()) == limit
