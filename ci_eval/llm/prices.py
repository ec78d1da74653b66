"""Prices of models: list prices from `genai-prices`, unless the user gives their own."""

import re
from collections.abc import Mapping
from functools import cache

from pydantic import Field

from ci_eval.records.cases import Record

_OTHER_UNITS = re.compile(r"audio|image|live|realtime|transcribe|tts")
"""Models with these words in their names bill sounds and images apart, at several times the text
price, so the tokens that we count would cost too little."""


class Price(Record):
    """Price of a model, in US dollars per million tokens."""

    input: float = Field(ge=0)
    """Per million input tokens."""
    output: float = Field(ge=0)
    """Per million output tokens, thoughts included."""

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """Return the cost of a call, in US dollars."""
        return (self.input * input_tokens + self.output * output_tokens) / 1e6


def price_of(model: str, given: Mapping[str, Price]) -> Price | None:
    """Return the price of `model`: from `given`, else its list price, else `None`."""
    return given.get(model) or _list_price(model.removeprefix("models/"))


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
