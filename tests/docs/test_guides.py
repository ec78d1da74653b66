"""What the guides show is done: files are written, commands run, and links lead somewhere.

A section is done from top to bottom in a folder of its own, a copy of `examples/shop`. A block
after "`name`:" becomes that file; each line of a `sh` block is run, and must end with 0 unless
`# exit code 1` says otherwise; each line of a `text` block must be one that the command before it
printed, where `…` stands for a part of it.
"""

import json
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.copied_examples import copy_examples
from support.markdown_pages import (
    DOCS,
    GUIDES,
    PAGES,
    ROOT,
    Block,
    Section,
    anchors,
    headings,
    links,
    sections,
)

from ci_eval.cli.main import main
from ci_eval.cli.reference import KINDS
from ci_eval.cli.reference_pages import anchor
from ci_eval.config.config_schema import ConfigFile
from ci_eval.llm.gateway.gateway_options import ModelOptions
from ci_eval.text.yaml_files import parse_yaml

SECTIONS = [section for path in GUIDES for section in sections(path)]
SHOP = {"agents": {"bot": {"python": "shop:answer"}}, "evalsets": {"shop": "evals/shop.yaml"}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the example, in which commands are run."""
    copy_examples(tmp_path / "examples")
    monkeypatch.chdir(tmp_path / "examples/shop")
    return tmp_path / "examples/shop"


def test_the_guide_to_the_gateway_has_a_row_for_each_option() -> None:
    page = (DOCS / "model-gateway.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]*`) \|", page.partition("## A first")[0], re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", " ".join(rows)))

    assert named == {*ModelOptions.model_fields, "replay", "record", "live"}


class Reader:
    """Someone who does what a section says."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._printed = ""

    def do(self, block: Block) -> None:
        """Do what a block says, or check that it is sound."""
        if block.file:
            self._write(Path(block.file), block.text)
        elif block.language == "sh":
            for line in block.text.splitlines():
                self._run(line)
        elif block.language == "text":
            for line in block.text.splitlines():
                shown = ".*".join(map(re.escape, line.split("…")))
                assert re.search(f"^{shown}$", self._printed, re.MULTILINE), self._printed
        elif block.language == "yaml":
            self._check(parse_yaml(block.text, shown="the guide").value)
        else:
            assert block.language == "json", f"nothing checks blocks of {block.language!r}"
            json.loads(block.text)

    def _write(self, path: Path, text: str) -> None:
        assert path.suffix, f"{path} is no file: the words before the block end like a name"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def _run(self, line: str) -> None:
        words, _, said = line.partition("#")
        code = int(re.sub(r"\D", "", said) or 0) if "exit code" in said else 0
        for command in words.split("&&"):
            program, *arguments = shlex.split(command)
            if program == "cp":
                shutil.copy(*arguments)
                continue
            assert program == "ci-eval", f"nothing runs {program!r}"
            self._capsys.readouterr()
            ended = main(arguments)
            self._printed = "".join(self._capsys.readouterr())
            assert ended == code, self._printed

    def _check(self, value: Any) -> None:
        """Check a part of a configuration, or a workflow."""
        if not isinstance(value, Mapping) or not value.keys() <= ConfigFile.model_fields.keys():
            _check_steps(value)
            return
        criteria = (
            {} if {"criteria", "preset"} & value.keys() else {"criteria": {"ci/latency_s": 1}}
        )
        path = Path("shown.yaml")
        path.write_text(json.dumps({**SHOP, **criteria, **value}))
        self._capsys.readouterr()
        assert main(["validate", str(path)]) == 0, self._capsys.readouterr().err


def _check_steps(workflow: Any) -> None:
    """Check that a workflow gives the action only inputs that it has."""
    action = parse_yaml((ROOT / "action.yml").read_text(), shown="action.yml").value
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    uses = [step for step in steps if re.search("ci-eval(/host)?@", step.get("uses", ""))]
    assert uses, "a workflow without the action"
    for step in uses:
        assert step.get("with", {}).keys() <= action["inputs"].keys()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("section", SECTIONS, ids=lambda each: f"{each.page}: {each.title}")
def test_a_section_can_be_followed(section: Section, capsys: pytest.CaptureFixture[str]) -> None:
    reader = Reader(capsys)
    for block in section.blocks:
        reader.do(block)


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda each: each.name)
def test_every_link_leads_to_something_that_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for link in links(text):
        if re.match(r"https?://", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link


def test_the_index_names_every_page() -> None:
    linked = {(DOCS / link).resolve() for link in links((DOCS / "README.md").read_text())}

    assert {path for path in PAGES if path != DOCS / "README.md"} <= linked


@pytest.mark.parametrize("kind", ["evalsets", "recordings"])
def test_the_guide_to_evalsets_names_every_format(kind: str) -> None:
    linked = links((DOCS / "evalsets.md").read_text(encoding="utf-8"))

    assert {f"reference/{kind}.md#{anchor(name)}" for name in KINDS[kind]} <= set(linked)


def test_the_cookbook_lists_its_recipes() -> None:
    text = (DOCS / "cookbook.md").read_text(encoding="utf-8")
    contents, _, recipes = text.partition("\n## ")

    listed = re.findall(r"^- \[(.+)\]", contents, re.MULTILINE)
    assert listed == headings(f"\n## {recipes}")
