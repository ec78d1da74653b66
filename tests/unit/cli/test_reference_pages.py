"""Pages are made from what plugins, presets and configurations say of themselves."""

import re

import pytest

from ci_eval.cli import reference_pages
from ci_eval.cli.main import main
from ci_eval.config.presets import PRESETS
from ci_eval.records.errors import ExitCode, UsageError


def test_a_page_tells_what_it_is_its_facts_an_example_and_its_options() -> None:
    heading, summary, *_ = reference_pages.page("criteria", "ci/forbidden_tools").split("\n\n")
    *_, facts, example, options = reference_pages.page("criteria", "ci/forbidden_tools").split(
        "\n\n"
    )

    assert heading == "## `ci/forbidden_tools`"
    assert summary.startswith("The share of forbidden tools")
    assert facts == ("reference: no · rubrics: no · judge: no · simulation: yes · values: 0 to 1")
    assert 'ci/forbidden_tools: {tools: ["delete_*", "send_email"]}' in example
    assert [row.split(" | ")[0] for row in options.splitlines()[2:]] == [
        "| `tools`",
        "| `threshold`",
        "| `enabled`",
        "| `tier`",
    ]


def test_an_unknown_plugin_is_an_error_that_names_what_was_meant() -> None:
    with pytest.raises(UsageError, match=r"criteria has no 'ci/regexp'\. Did you mean 'ci/regex'"):
        reference_pages.page("criteria", "ci/regexp")
    assert [main(["list", "criteria", name, "--json"]) for name in ("ci/regexp", "ci/regex")] == [
        ExitCode.USAGE_ERROR,
        ExitCode.PASSED,
    ]


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("`ci/tool_order`", "citool_order"),
        ("`adk@2.3/response_match_score`", "adk23response_match_score"),
        ("Under `run:`, each", "under-run-each"),
    ],
)
def test_an_anchor_is_the_one_of_github(heading: str, anchor: str) -> None:
    assert reference_pages.anchor(heading) == anchor


def test_a_preset_is_told_with_its_criteria_and_its_options() -> None:
    (page,) = [each for each in reference_pages.presets() if each.startswith("## `tool_usage`\n")]

    assert (
        "| [`agentflow/tool_trajectory_avg_score`]"
        "(criteria.md#agentflowtool_trajectory_avg_score) | no "
        '| `threshold: 1.0`, `match_type: "EXACT"`, `check_args: true` |'
    ) in page
    assert "| `strict` | `true` | Whether to forbid calls of other tools. |" in page


def test_every_preset_has_a_page_with_an_example() -> None:
    text = "\n".join(reference_pages.presets())
    told = re.findall(r"## `(\w+)`\n.*?```yaml\npreset: {?(\w+)", text, re.DOTALL)

    assert told == [(name, name) for name in PRESETS]
