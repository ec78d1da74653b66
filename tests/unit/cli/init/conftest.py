"""A repository to look at."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ci_eval.cli.init.repository_survey import Survey, survey
from ci_eval.runtime.context import RunContext


@pytest.fixture
def context(tmp_path) -> RunContext:
    return RunContext(env={}, root=tmp_path, now=lambda: 0.0)


@pytest.fixture
def repository(tmp_path) -> Callable[[dict[str, Any]], Survey]:
    """Write files, those of data as JSON, and look at what there is."""

    def made(files: dict[str, Any]) -> Survey:
        for name, value in files.items():
            path = Path(tmp_path, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(value if isinstance(value, str) else json.dumps(value))
        return survey(tmp_path)

    return made
