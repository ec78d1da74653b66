"""The pages in `docs/reference` are what the docstrings say.

`python -m pytest tests/docs --refresh-golden` writes them anew.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel
from support.error_reference import declared, error_classes, exit_codes, failure_kinds
from support.markdown_pages import DOCS, sections

from ci_eval.cli.reference import FACTS, KINDS, catalogue, facts, options_of
from ci_eval.cli.reference_pages import anchor, option_table, page, presets, table
from ci_eval.config.config_schema import ConfigFile, EvalSetSpec, GateOptions, MatrixRow, RunOptions
from ci_eval.config.load_config import load
from ci_eval.llm.judge_settings import JudgeOptions
from ci_eval.records.errors import FailureKind
from ci_eval.runtime.context import RunContext

FOLDER = DOCS / "reference"
MADE = "<!-- Made from docstrings: python -m pytest tests/docs --refresh-golden -->"

OPENINGS = {
    "criteria": """# Criteria

Criteria score cases. List them under `criteria:`, each with its threshold or with options;
[Which criterion](../which-criterion.md) helps to choose. A name without a prefix, such as
`response_match_score`, means ADK's criterion, unless the configuration has `dialect: agentflow`.

The table shows if a criterion compares with a *reference* (the expected conversation of a case),
needs *rubrics*, calls a model as its [*judge*](../judges.md), or can score the conversation of a
*simulated user*; and its range of *values*.""",
    "judges": """# Judges

Models that score for criteria: `judge: {provider: gemini, model: …}`. The keys below are set
beside those of [all judges](config.md#under-judge). [Judges](../judges.md) describes how judging
works.""",
    "simulators": """# Simulators

Simulated users of scenarios: `simulator: {type: llm_backed, model: …}`. Set the keys below beside
`type`; to use another model than the criteria do, add `provider` and the options of a
[judge](judges.md). [Simulated users](../simulated-users.md) describes how they work.""",
    "evalsets": """# Evalset formats

Formats of the files under `evalsets:`. The format is recognized from the beginning of the file.
[Evalsets](../evalsets.md) describes how to write and edit them.""",
    "recordings": """# Recording formats

Formats of the files that a [`recorded`](agents.md#recorded) agent replays, besides the
`traces.jsonl` of ci-eval. The format is recognized from the beginning of the file.
[Evalsets](../evalsets.md#recordings) describes how recordings are matched with cases.""",
    "agents": """# Agent types

Agents are what is evaluated. Give each a name under `agents:`; one of its keys names its type,
as in `shop: {python: "shop:answer"}`.""",
    "baselines": """# Baseline stores

Stores of the runs to compare with: `baseline: {store: file, path: …}`.""",
    "engines": """# Engines

Where trials are run: `run: {engine: ray, address: auto}`, or `--engine ray`. Set the keys below
beside those of [all runs](config.md#under-run). [Trials on a Ray cluster](../ray.md) describes
how to use one.""",
    "reporters": """# Reports

Reports to publish: list them under `reports:`, by name or as `{name: options}`.""",
}
PRESETS = """# Presets

Ready-made sets of criteria: `preset: regression`, a list of names, or `{name: options}`. A
criterion under `criteria:` replaces the same criterion of a preset. The first five follow the
recommendations of ADK's documentation, the others are AgentFlow's, with its thresholds. Those with
a *judge* call a model."""
CONFIG = """# The configuration

The keys of `ci-eval.yaml`. For an unknown key, the error names the line and suggests a known key.
The options of [agent types](agents.md), [criteria](criteria.md), [presets](presets.md),
[baseline stores](baselines.md) and [reports](reporters.md) have pages of their own. `ci-eval
schema` prints everything as a JSON schema for your editor."""
OTHERS = ("presets", "config", "errors")
ERRORS = """# Errors

What each kind of error means, and what to do. [Troubleshooting](../troubleshooting.md) explains
single messages."""


PARTS: dict[str, type[BaseModel]] = {
    "At the top": ConfigFile,
    "Under `evalsets:`, each": EvalSetSpec,
    "Under `judge:`": JudgeOptions,
    "Under `run:`": RunOptions,
    "Under `gate:`": GateOptions,
    "Under `matrix:`, each row": MatrixRow,
}
"""The parts of a configuration that are not plugins."""


def contents(kind: str) -> str:
    """Return a table of all plugins of a kind, with links to their sections."""
    heads = ("Name", *(FACTS if kind == "criteria" else ()), "What it is")
    rows = [
        (f"[`{each['name']}`](#{anchor(each['name'])})", *facts(each), each["summary"])
        for each in catalogue(kind, options=False)[kind]
    ]
    return table(heads, rows)


def config_keys() -> Iterator[str]:
    """Yield a table of keys for each part of a configuration that is not a plugin."""
    for heading, model in PARTS.items():
        keys = option_table(options_of(model)).replace("Option", "Key", 1)
        yield f"## {heading}\n\n{keys}\n"


def document(name: str) -> str:
    """Return the page that should be in the file of that name."""
    if name == "presets":
        parts = [PRESETS, *presets()]
    elif name == "config":
        parts = [CONFIG, *config_keys()]
    elif name == "errors":
        parts = [ERRORS, exit_codes(), error_classes(), failure_kinds()]
    else:
        parts = [OPENINGS[name], contents(name), *(page(name, each) for each in KINDS[name])]
    return "\n\n".join(part.strip("\n") for part in (MADE, *parts)) + "\n"


def test_there_is_a_page_for_every_kind_of_plugin() -> None:
    assert set(OPENINGS) == set(KINDS)
    assert {path.stem for path in FOLDER.iterdir()} == {*KINDS, *OTHERS}


@pytest.mark.parametrize("name", [*OPENINGS, *OTHERS])
def test_a_reference_page_says_what_the_docstrings_say(
    name: str, request: pytest.FixtureRequest
) -> None:
    path = FOLDER / f"{name}.md"
    if request.config.getoption("--refresh-golden"):
        path.write_text(document(name), encoding="utf-8", newline="\n")
    assert path.read_text(encoding="utf-8") == document(name), f"write anew: {MADE[5:-4]}"


@pytest.mark.parametrize("kind", KINDS)
def test_the_contents_link_to_the_page_of_every_plugin(kind: str) -> None:
    links = re.findall(r"\(#([^)]+)\)", contents(kind))
    headings = re.findall(
        r"^## (.+)$", "\n".join(page(kind, name) for name in KINDS[kind]), re.MULTILINE
    )

    assert links == [anchor(heading) for heading in headings]
    assert len(set(links)) == len(links)


def test_the_keys_of_a_configuration_are_told_with_their_defaults() -> None:
    text = "\n".join(config_keys())

    assert "| `retries` | `0` | Number of retries of a trial that could not be observed" in text
    assert "| `gate` |  | What blocks a merge. |" in text


EXAMPLES = [
    (f"{section.page}: {section.title}", block.text)
    for name in ("criteria", "presets")
    for section in sections(FOLDER / f"{name}.md")
    for block in section.blocks
]


@pytest.mark.parametrize("example", [text for _, text in EXAMPLES], ids=[at for at, _ in EXAMPLES])
def test_an_example_is_a_part_of_a_configuration(example: str, tmp_path: Path) -> None:
    # Some only measure, and something must be able to fail.
    judging = "  also: {use: ci/contains, text: yes}\n" if example.startswith("criteria:") else ""
    path = tmp_path / "ci-eval.yaml"
    path.write_text(f'agents: {{a: {{python: "a:a"}}}}\nevalsets: {{e: e}}\n{example}{judging}')

    assert load(path, shown="shown", context=RunContext({}, tmp_path, lambda: 0.0)).criteria


def test_every_error_says_its_cause_and_the_way_out() -> None:
    silent = [each.__name__ for each, cause, way_out in declared() if not (cause and way_out)]

    assert silent == []


def test_every_kind_of_failed_trial_has_its_cause_and_the_way_out() -> None:
    listed = re.findall(r"^- `(\w+)`: [^.]+\. [A-Z]", failure_kinds(), re.MULTILINE)

    assert listed == sorted(get_args(FailureKind))
