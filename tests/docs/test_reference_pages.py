"""The pages in `docs/reference` are what the docstrings say.

`python -m pytest tests/docs --refresh-golden` writes them anew.
"""

from pathlib import Path

import pytest
from support.markdown_pages import DOCS, sections

from ci_eval.cli import reference_pages
from ci_eval.cli.reference import KINDS
from ci_eval.config.load import load
from ci_eval.runtime.context import RunContext

FOLDER = DOCS / "reference"
MADE = "<!-- Made from docstrings: python -m pytest tests/docs --refresh-golden -->"

OPENINGS = {
    "criteria": """# Criteria

What a case is scored by. A criterion stands under `criteria:` with its threshold, or with
options; which one to take is told in [which criterion](../which-criterion.md). A bare name
such as `response_match_score` means ADK's, unless `dialect: agentflow` says otherwise.

In the table: whether it compares with a *reference*, the expected conversation of a case;
whether it needs *rubrics*; whether a [*judge*](../judges.md), a model, is asked; whether it can
score a conversation that a *simulated* user led; and its *values*.""",
    "judges": """# Judges

Who is asked by criteria that ask a model: `judge: {provider: gemini, model: …}`. The keys below
stand beside those that hold for [all of them](config.md#under-judge); how judging works is told
in [judges](../judges.md).""",
    "simulators": """# Simulators

Who plays the users of scenarios: `simulator: {type: llm_backed, model: …}`. The keys below stand
there beside `type`, and beside `provider` with the options of a [judge](judges.md), where another
one is asked than for criteria. [Simulated users](../simulated-users.md) tells how it works.""",
    "evalsets": """# Evalset formats

The files that `evalsets:` may name. Nobody says which format a file has: its beginning tells.
How to write and edit them is told in [evalsets](../evalsets.md).""",
    "recordings": """# Recording formats

The files that a [`recorded`](agents.md#recorded) agent replays, beside the `traces.jsonl` of
ci-eval itself. Nobody says which format a file has: its beginning tells. How a recording finds
its case is told in [evalsets](../evalsets.md#recordings).""",
    "agents": """# Agent types

What is evaluated. An agent stands under `agents:` with a name of your own; the key that names
its type comes with it, as in `shop: {python: "shop:answer"}`.""",
    "baselines": """# Baseline stores

Where the runs to compare with are kept: `baseline: {store: file, path: …}`.""",
    "reporters": """# Reports

What is published, listed under `reports:`, by name or as `{name: options}`.""",
}
PRESETS = """# Presets

Ready sets of criteria, by name: `preset: regression`, a list of them, or `{name: options}`.
A criterion that is written out under `criteria:` takes the place of the same one in a preset.
The first five follow what ADK's documentation recommends, the others are AgentFlow's, with its
thresholds. Those with a *judge* ask a model."""
CONFIG = """# The configuration

The keys of `ci-eval.yaml`. An unknown key is an error that says what was probably meant, with
its line. What an agent takes is told in [agent types](agents.md), a criterion in
[criteria](criteria.md), a preset in [presets](presets.md), the baseline in
[baseline stores](baselines.md), a report in [reports](reporters.md).
`ci-eval schema` prints all of it as a JSON schema for your editor."""


def document(name: str) -> str:
    """Return the page that should be in the file of that name."""
    if name == "presets":
        parts = [PRESETS, *reference_pages.presets()]
    elif name == "config":
        parts = [CONFIG, *reference_pages.config_keys()]
    else:
        parts = [OPENINGS[name], reference_pages.contents(name), *reference_pages.pages(name)]
    return "\n\n".join(part.strip("\n") for part in (MADE, *parts)) + "\n"


def test_there_is_a_page_for_every_kind_of_plugin() -> None:
    assert set(OPENINGS) == set(KINDS)
    assert {path.stem for path in FOLDER.iterdir()} == {*KINDS, "presets", "config"}


@pytest.mark.parametrize("name", [*OPENINGS, "presets", "config"])
def test_a_reference_page_says_what_the_docstrings_say(
    name: str, request: pytest.FixtureRequest
) -> None:
    path = FOLDER / f"{name}.md"
    if request.config.getoption("--refresh-golden"):
        path.write_text(document(name), encoding="utf-8", newline="\n")
    assert path.read_text(encoding="utf-8") == document(name), f"write anew: {MADE[5:-4]}"


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
