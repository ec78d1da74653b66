"""The configuration before a change, which may be anything."""

import json
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from support.run_language import meta

from ci_eval.config.config_schema import ConfigFile
from ci_eval.config.load_config import load
from ci_eval.gate.earlier_config import read_earlier
from ci_eval.gate.weakened_by_change import weaker
from ci_eval.runtime.context import RunContext
from ci_eval.text.yaml_files import parse_yaml

WHOLE = {
    "name": "shop",
    "agents": {"a": {"python": "m:f", "interpreter": sys.executable}},
    "evalsets": {"e": "e.json"},
    "criteria": {"response_match_score": 0.5, "off": {"use": "ci/tool_errors", "enabled": False}},
    "run": {"repeats": 3},
    "gate": {"max_drop": 0.1},
    "baseline": {"store": "gcs", "uri": "gs://a/b", "window": 3},
    "gcs": {"project": "p"},
    "matrix": [{"agents": ["a"]}],
}
NONSENSE: list[Any] = [
    None,
    1,
    True,
    "x",
    [],
    [1],
    [[]],
    {},
    {"x": 1},
    {"from": 1},
    {"x": {"y": []}},
]


def read(tmp_path: Path, value: Any) -> Any:
    document = parse_yaml(json.dumps(value), shown="ci-eval.yaml")
    context = RunContext(env={}, root=tmp_path, now=lambda: 0.0)
    return read_earlier(document, "HEAD", "ci-eval.yaml", context)


def test_its_parts_are_read(tmp_path):
    found = read(tmp_path, WHOLE)

    assert found.run.repeats == 3
    assert found.gate.max_drop == 0.1
    assert found.store == {"store": "gcs", "uri": "gs://a/b", "window": 3, "gcs": {"project": "p"}}
    assert list(found.criteria) == list(found.facts) == ["response_match_score"]
    assert found.matrix[0].agents == ("a",)
    assert found.unread == ""


@pytest.mark.parametrize("key", ConfigFile.model_fields)
def test_nonsense_in_it_is_ignored(key, tmp_path):
    now = {name: WHOLE[name] for name in ("agents", "evalsets", "criteria")}
    (tmp_path / "now.yaml").write_text(json.dumps(now))
    context = RunContext(env={}, root=tmp_path, now=lambda: 0.0)
    config = load(tmp_path / "now.yaml", shown="now.yaml", context=context)
    inner = ("provider", "type", "jury", "prompts", "interpreter", "cassette")
    given = [*NONSENSE, *({name: value} for name, value in product(inner, NONSENSE))]
    for value in given:
        before = read(tmp_path, WHOLE | {key: value})
        if before:
            # Whatever is said, nothing is raised.
            assert all(isinstance(each, str) for each in weaker(config, before, meta()))


@pytest.mark.parametrize("key", ["gate", "run", "matrix"])
def test_one_that_gave_no_verdict_is_not_compared(key, tmp_path):
    assert read(tmp_path, WHOLE | {key: "nonsense"}) is None


def test_a_store_that_is_unknown_has_a_name(tmp_path):
    assert read(tmp_path, WHOLE | {"baseline": {"store": "lost"}}).store == {"store": "lost"}
    assert read(tmp_path, WHOLE | {"baseline": {"window": "x"}}).store == {"store": "file"}
