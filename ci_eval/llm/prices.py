"""Prices of models: list prices from `genai-prices`, unless the user gives their own."""

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from pydantic import Field

from ci_eval.records.cases import Record
from ci_eval.text.patterns import fits_any

_OTHER_UNITS = re.compile(r"audio|image|live|realtime|transcribe|tts")
"""Models with these words in their names bill audio and images separately, at several times the
price of text, so a cost from our token counts would be too low."""

_MILLION = 1_000_000


class Price(Record):
    """Price of a model, in US dollars per million tokens."""

    input: float = Field(ge=0)
    """Per million input tokens."""
    output: float = Field(ge=0)
    """Per million output tokens, thoughts included."""

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """Return the cost of a call, in US dollars."""
        return (self.input * input_tokens + self.output * output_tokens) / 1e6


class Tokens(NamedTuple):
    """Tokens of one call, as providers bill them."""

    input: int
    """Input tokens, cached ones included."""
    output: int
    """Output tokens, thoughts included."""
    cached: int = 0
    """Input tokens that were read from the provider's cache."""
    written: int = 0
    """Input tokens that were written to that cache, for longer included."""
    written_1h: int = 0
    """Input tokens that were written to that cache for an hour."""
    audio: int = 0
    """Input tokens of audio, cached ones not included."""


def cost_of(
    names: Iterable[str], tokens: Tokens, given: Mapping[str, Price], *, provider: str
) -> float | None:
    """Return the cost of a call of the first model in `names` with a price; else `None`.

    The keys of `given` are names of models, or patterns.  `provider` is the id of the provider in
    `genai-prices`.
    """
    each = [name.removeprefix("models/") for name in names if name]
    for name in each:
        if price := _given(name, given):
            return price.of(tokens.input, tokens.output)
    costs = (_list_cost(name, tokens, provider) for name in each)
    return next((cost for cost in costs if cost is not None), None)


def _given(model: str, given: Mapping[str, Price]) -> Price | None:
    fitting = (price for pattern, price in given.items() if fits_any(model, [pattern]))
    return given.get(model) or next(fitting, None)


def _list_cost(model: str, tokens: Tokens, provider: str) -> float | None:
    """Return the cost at today's list prices, including those of cached tokens."""
    found = next((each for each in _rates(model, provider) if tokens.input >= each.least), None)
    if found is None:
        return None
    cached = min(tokens.cached, tokens.input)
    written = min(tokens.written, tokens.input - cached)
    longer = min(tokens.written_1h, written)
    audio = min(tokens.audio, tokens.input - cached - written)
    cost = found.input * (tokens.input - cached - written - audio) + found.cached * cached
    cost += found.written * (written - longer) + found.written_1h * longer + found.audio * audio
    return cost + found.output * tokens.output


class _Rates(NamedTuple):
    """Dollars per token, in calls with at least `least` input tokens."""

    least: int
    input: float
    cached: float
    written: float
    written_1h: float
    audio: float
    output: float


@lru_cache(maxsize=1024)  # bounded: the names come from answers, and may be anything
def _rates(model: str, provider: str) -> tuple[_Rates, ...]:
    """Return today's list prices, for the longest prompts first; empty if they are unknown.

    They are derived from the costs of sample calls, once per model: calculating the cost of each
    call with genai-prices takes as long as replaying the call.
    """
    from genai_prices import Usage, calc_price
    from genai_prices.types import TieredPrices

    def cost(**tokens: int) -> float:
        return float(calc_price(Usage(**tokens), model, provider_id=provider).total_price)

    if _OTHER_UNITS.search(model):
        return ()
    try:
        listed = vars(calc_price(Usage(), model, provider_id=provider).model_price).values()
    except LookupError:
        return ()
    tiers = (tier for each in listed if isinstance(each, TieredPrices) for tier in each.tiers)
    found = []
    for least in sorted({1, *(tier.start + 1 for tier in tiers)}, reverse=True):
        read = cost(input_tokens=least)
        found.append(
            _Rates(
                least if least > 1 else 0,
                read / least,
                cost(input_tokens=least, cache_read_tokens=least) / least,
                cost(input_tokens=least, cache_write_tokens=least) / least,
                cost(input_tokens=least, cache_write_tokens=least, cache_write_1h_tokens=least)
                / least,
                cost(input_tokens=least, input_audio_tokens=least) / least,
                (cost(input_tokens=least, output_tokens=_MILLION) - read) / _MILLION,
            )
        )
    return tuple(found)


def price_of(model: str, given: Mapping[str, Price]) -> Price | None:
    """Return the price of `model`: from `given`, else its list price, else `None`."""
    return _given(model, given) or _list_price(model.removeprefix("models/"))


@cache
def _list_price(model: str) -> Price | None:
    """Return today's list price of text, without discounts and surcharges for long prompts.

    The list comes with the installed version of `genai-prices`; nothing is downloaded.
    """
    from genai_prices import Usage, calc_price
    from genai_prices.types import TieredPrices

    if _OTHER_UNITS.search(model):
        return None
    try:
        listed = calc_price(Usage(), model).model_price
    except LookupError:
        return None
    prices = [
        price.base if isinstance(price, TieredPrices) else price
        for price in (listed.input_mtok, listed.output_mtok)
    ]
    if None in prices:
        return None
    return Price.model_validate(dict(zip(("input", "output"), prices, strict=True)))
