"""What agents have spent, and what their limits still allow."""

import asyncio

import pytest

from ci_eval.llm.gateway.gateway_options import ModelOptions
from ci_eval.llm.gateway.spending import count_spent, limit_before
from ci_eval.records.model_usage import ModelUsage

SPENT = ModelUsage(calls=10, replayed=2, retries=2, cost_usd=1.0)
"""Ten calls to the provider, for 80 cents."""


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
