"""What the README and the contributor guide promise, done."""

import inspect
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.copied_examples import copy_examples
from support.markdown_pages import sections

from ci_eval.cli.main import main
from ci_eval.records.errors import ExitCode
from ci_eval.run.pipeline import run
from ci_eval.text.yaml_files import parse_yaml

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = (ROOT / "docs/results.md").read_text(encoding="utf-8")
GUIDE = (ROOT / ".github/CONTRIBUTING.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A copy of the examples, in which the commands of the README can be run."""
    copy_examples(tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def arguments(command: str) -> list[str]:
    return command.removeprefix(".venv/bin/ci-eval ").split()


def commands() -> list[str]:
    lines = [line for block in blocks(README, "sh") for line in block.splitlines()]
    return [line for line in lines if line.startswith(".venv/bin/ci-eval ")]


def test_the_main_job_runs_and_prints_what_the_readme_shows(copy, capsys):
    assert main(arguments(commands()[0])) == ExitCode.PASSED

    (shown,) = blocks(README, "text")
    assert shown in capsys.readouterr().out


def test_the_run_that_got_worse_fails_and_names_the_case(copy, capsys):
    assert main(arguments(commands()[1])) == ExitCode.FAILED
    assert "'cairo'" in capsys.readouterr().out


def test_the_configuration_in_the_readme_is_valid(copy, capsys):
    (config,) = [each for each in blocks(README, "yaml") if each.startswith("version: 1")]
    weather = copy / "examples/weather"
    (weather / "shown.yaml").write_text(config)

    assert main(["validate", str(weather / "shown.yaml")]) == 0, capsys.readouterr().err


def test_every_exit_code_is_explained():
    rows = dict(re.findall(r"^\| (\d) \| ([\w ]*?) *\|", RESULTS, re.MULTILINE))

    assert {int(code) for code in rows} == {int(code) for code in ExitCode}


def test_every_output_is_explained(copy):
    main(["run", "-c", "examples/weather/ci-eval.yaml"])

    for path in (copy / "ci-eval-report").iterdir():
        assert f"`{path.name}`" in RESULTS


def test_the_readme_stays_short():
    assert len(README.splitlines()) <= 180


def test_the_workflow_in_the_readme_is_one():
    (workflow,) = [each for each in blocks(README, "yaml") if "uses:" in each]
    steps = parse_yaml(workflow, shown="README").value["jobs"]["evaluate"]["steps"]

    assert steps[-1]["with"] == {"config": "ci-eval.yaml"}


def test_the_guide_shows_the_layers_that_are_checked():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = project["tool"]["importlinter"]["contracts"]
    shown = GUIDE.split("stands below it.\n\n", 1)[1].split("\n\n", 1)[0]

    assert [re.split(r"  +", line.strip())[0] for line in shown.splitlines()] == contract["layers"]


def test_the_guide_shows_the_stages_of_the_pipeline():
    stages = re.findall(r"^\| `(\w+)` \|.*\| `(\S+\.py)` \|$", GUIDE, re.MULTILINE)
    assert len(stages) == 8
    for name, module in stages:
        defined = (ROOT / "ci_eval" / module).read_text(encoding="utf-8")
        assert re.search(rf"^(async )?def {name}\(", defined, re.MULTILINE), name
    body = inspect.getsource(run).split('"""')[2]
    names = [name for name, _ in stages[2:]]
    assert re.findall("|".join(f"{name}(?=_|\\()" for name in names), body) == names


@pytest.mark.slow
def test_a_criterion_is_added_in_one_file(tmp_path, monkeypatch, capsys):
    """Its fields, docstrings and name are all that the other commands need."""
    (module,) = [
        block.text
        for section in sections(ROOT / ".github/EXTENDING.md")
        for block in section.blocks
        if block.file == "brevity.py"
    ]
    (tmp_path / "brevity.py").write_text(module)
    info = tmp_path / "brevity-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brevity\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[ci_eval.criteria]\nbrevity = brevity\n")
    copy_examples(tmp_path / "weather", "weather")
    config = tmp_path / "weather/ci-eval.yaml"
    config.write_text(config.read_text() + "  ci/brevity: {threshold: 1.0, wrods: 4}\n")

    def ci_eval(*given: str) -> subprocess.CompletedProcess[str]:
        """Run the command where the distribution is installed."""
        return subprocess.run(
            [sys.executable, "-m", "ci_eval", *given],
            env={"PYTHONPATH": str(tmp_path)},
            cwd=config.parent,
            capture_output=True,
            text=True,
        )

    listed = json.loads(ci_eval("list", "criteria", "--json").stdout)["criteria"]
    (entry,) = [each for each in listed if each["name"] == "ci/brevity"]
    assert entry["options"]["words"]["description"] == "More than this are too many."
    assert (
        "ci/brevity" in json.loads(ci_eval("schema").stdout)["properties"]["criteria"]["properties"]
    )

    page = ci_eval("list", "criteria", "ci/brevity").stdout
    assert page.startswith("## `ci/brevity`\n\nThe share of invocations that are answered")
    assert "| `words` | `50` | More than this are too many. |" in page

    wrong = ci_eval("validate")
    line = len(config.read_text().splitlines())
    assert wrong.returncode == 4
    assert (
        f"ci-eval.yaml:{line}: criteria.ci/brevity.wrods: unknown key. Did you mean 'words'?"
        in wrong.stderr
    )

    config.write_text(config.read_text().replace("wrods", "words"))
    done = ci_eval("run")
    assert done.returncode == 1
    assert "ci/brevity 0.000 < 1" in done.stderr
