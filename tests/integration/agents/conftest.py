"""A folder for each test."""

from pathlib import Path

import pytest
from support.agent_sessions import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)
