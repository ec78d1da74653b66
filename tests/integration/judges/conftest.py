"""Providers on this machine."""

from collections.abc import Iterator

import pytest
from servers.gemini import FakeGemini
from servers.loopback import serving
from servers.openai import FakeOpenAI


@pytest.fixture
def gemini() -> Iterator[FakeGemini]:
    with serving(provider := FakeGemini()):
        yield provider


@pytest.fixture
def openai() -> Iterator[FakeOpenAI]:
    with serving(provider := FakeOpenAI()):
        yield provider
