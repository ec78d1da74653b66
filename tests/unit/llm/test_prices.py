"""Costs of calls, against what `genai-prices` computes for each."""

import pytest

from ci_eval.llm.prices import Tokens, cost_of

CALLS = [
    Tokens(0, 0),
    Tokens(7, 3),
    Tokens(5_000, 700, cached=4_000, written=500),
    Tokens(200_000, 700, cached=100_000),
    Tokens(200_001, 700, cached=100_000, written=50_000),
    Tokens(900_000, 1, cached=900_000),
    Tokens(250_000, 700, cached=1_000, written=500, written_1h=200, audio=20_000),
]


@pytest.mark.parametrize("provider", ["google", "openai", "anthropic"])
def test_each_call_costs_what_the_list_says_also_of_models_with_dearer_long_prompts(provider: str):
    from genai_prices import Usage, calc_price
    from genai_prices.data import providers

    models = next(each.models for each in providers if each.id == provider)
    compared = 0
    for model in models:
        for tokens in CALLS:
            found = cost_of([model.id], tokens, {}, provider=provider)
            usage = Usage(
                input_tokens=tokens.input,
                cache_read_tokens=tokens.cached,
                cache_write_tokens=tokens.written,
                cache_write_1h_tokens=tokens.written_1h,
                input_audio_tokens=tokens.audio,
                cache_audio_read_tokens=0,
                output_tokens=tokens.output,
            )
            if found is not None:
                listed = calc_price(usage, model.id, provider_id=provider).total_price
                assert found == pytest.approx(float(listed)), model.id
                compared += 1
    assert compared > len(models)
