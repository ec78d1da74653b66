from collections.abc import Iterator
from pathlib import Path

import pytest
from servers.loopback import serving
from servers.models import Models
from support.model_projects import ModelProject


@pytest.fixture
def project(tmp_path: Path, capsys, monkeypatch) -> ModelProject:
    return ModelProject(tmp_path, capsys, monkeypatch)


@pytest.fixture
def models() -> Iterator[Models]:
    found = Models()
    with serving(found):
        yield found
