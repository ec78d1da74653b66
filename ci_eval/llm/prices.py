"""What models cost, as far as it is known here."""

import re
from collections.abc import Mapping

from pydantic import Field

from ci_eval.records.model import Record


class Price(Record):
    """What a model costs, in US dollars for a million tokens."""

    input: float = Field(ge=0)
    """What it reads."""
    output: float = Field(ge=0)
    """What it writes, thoughts too."""

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """Return the dollars for so many tokens."""
        return (self.input * input_tokens + self.output * output_tokens) / 1e6


_LISTED: dict[str, tuple[float, float]] = {
    "gemini-2.0-flash": (0.10, 0.40),
    "gemini-2.0-flash-lite": (0.075, 0.30),
    "gemini-2.5-flash": (0.30, 2.50),
    "gemini-2.5-flash-lite": (0.10, 0.40),
    "gemini-2.5-pro": (1.25, 10.00),
    "gemini-3-flash": (0.50, 3.00),
    "gemini-3-pro": (2.00, 12.00),
    "gemini-3.1-flash-lite": (0.25, 1.50),
    "gemini-3.1-pro": (2.00, 12.00),
    "gemini-3.5-flash": (1.50, 9.00),
    "gpt-4.1": (2.00, 8.00),
    "gpt-4.1-mini": (0.40, 1.60),
    "gpt-4.1-nano": (0.10, 0.40),
    "gpt-4o": (2.50, 10.00),
    "gpt-4o-mini": (0.15, 0.60),
    "gpt-5": (1.25, 10.00),
    "gpt-5-mini": (0.25, 2.00),
    "gpt-5-nano": (0.05, 0.40),
    "o3": (2.00, 8.00),
    "o4-mini": (1.10, 4.40),
}
"""List prices of text, without discounts for caches and batches and without the surcharge for
very long inputs, as said of ai.google.dev/gemini-api/docs/pricing and openai.com/api/pricing in
2025 and 2026. They change; `judge.prices` takes their place."""


def price_of(model: str, given: Mapping[str, Price]) -> Price | None:
    """Return what `model` costs: as `given`, else as listed; `None` where nobody knows.

    A dated version of a model, such as `gpt-4o-2024-11-20`, and its preview cost what it costs.
    """
    if model in given:
        return given[model]
    known = {name: Price(input=cost[0], output=cost[1]) for name, cost in _LISTED.items()}
    short = model.removeprefix("models/")
    names = [name for name in known if short == name or _is_version_of(short, name)]
    return known[max(names, key=len)] if names else None


def _is_version_of(model: str, name: str) -> bool:
    return bool(re.fullmatch(re.escape(name) + r"-(preview(-[0-9-]+)?|[0-9-]+)", model))
