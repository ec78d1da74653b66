"""Every shipped example does what it says."""

from pathlib import Path

import pytest
from support.copied_examples import copy_examples

from ci_eval.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"
EXPECTED = {"weather": 0, "judged": 0, "plain_python": 0, "regression": 1, "shop": 0}


@pytest.fixture
def examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return copy_examples(tmp_path / "examples")


def test_every_example_is_tried():
    assert {path.parent.name for path in EXAMPLES.glob("*/ci-eval.yaml")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_ends_as_it_says(examples, name, capsys):
    config = f"examples/{name}/ci-eval.yaml"

    assert main(["validate", config]) == 0, capsys.readouterr().err
    assert main(["run", "-c", config]) == EXPECTED[name]


def test_the_regression_was_none_before(examples, capsys):
    config = examples / "regression/ci-eval.yaml"
    config.write_text(config.read_text().replace("after.jsonl", "before.jsonl"))

    assert main(["run", "-c", "examples/regression/ci-eval.yaml"]) == 0
