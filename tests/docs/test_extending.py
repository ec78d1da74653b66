"""The guide to plugins is followed: each example is installed, and used by a run of a project.

A block after "`name`:" is that file, and what several blocks say of `pyproject.toml` is one file.
Each line of a `sh` block is run, and must end with 0 unless `# exit code 1` says otherwise. Each
line of a `text` block must be one that the last command printed, where `…` stands for a part of
it; or one of the report that the words before the block name.
"""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.markdown_pages import ROOT, Block, Section, anchors, links, sections

from ci_eval.plugins.points import POINTS

PAGE = ROOT / ".github/EXTENDING.md"
COMMON, *EXAMPLES = sections(PAGE)
GROUPS = {point.package for point in POINTS}


def install(folder: Path) -> None:
    """Do what pip would: write down which distribution is there, and its entry points."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, points in project["entry-points"].items():
        assert group in GROUPS
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))


class Reader:
    """Someone who has the package in one folder, and the project that uses it in another."""

    def __init__(self, folder: Path) -> None:
        self._package = folder / "package"
        self._project = folder / "project"
        self._printed = ""
        for each in (self._package, self._project):
            each.mkdir()

    def write(self, block: Block, *, in_package: bool) -> None:
        """Write a file, or add to it."""
        path = (self._package if in_package else self._project) / block.file
        with path.open("a", encoding="utf-8") as file:
            file.write(block.text)

    def follow(self, section: Section) -> None:
        """Do all that a section says, from top to bottom."""
        installed = False
        for block in section.blocks:
            if block.language in ("python", "toml"):
                self.write(block, in_package=True)
            elif block.language == "sh":
                if not installed:
                    install(self._package)
                    installed = True
                for line in block.text.splitlines():
                    self._run(line)
            elif block.language == "text":
                self._compare(block.text)
            else:
                self.write(block, in_package=False)

    def _run(self, line: str) -> None:
        command, _, said = line.partition(" # exit code ")
        program, *arguments = shlex.split(command)
        assert program == "ci-eval"
        done = subprocess.run(
            [sys.executable, "-m", "ci_eval", *arguments],
            env={"PYTHONPATH": str(self._package)},
            cwd=self._project,
            capture_output=True,
            text=True,
        )
        self._printed = done.stdout + done.stderr
        assert done.returncode == int(said or 0), self._printed

    def _compare(self, text: str) -> None:
        report = self._project / "ci-eval-report/scores.jsonl"
        shown = report.read_text() if report.exists() else self._printed
        for line in text.splitlines():
            pattern = ".*".join(map(re.escape, line.split("…")))
            assert re.search(f"^{pattern}$", shown, re.MULTILINE), shown


@pytest.mark.slow
@pytest.mark.parametrize("section", EXAMPLES, ids=lambda each: each.title)
def test_an_example_is_installed_and_used(section: Section, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    for block in COMMON.blocks:
        reader.write(block, in_package=block.language == "toml")

    reader.follow(section)


def test_the_guide_has_an_example_for_each_point_that_it_names() -> None:
    assert [each.title for each in EXAMPLES] == [
        "Add a criterion",
        "Add an agent",
        "Add an evalset format",
        "Add a baseline store",
        "Add a reporter",
    ]


@pytest.mark.parametrize("section", EXAMPLES, ids=lambda each: each.title)
def test_an_example_is_complete(section: Section) -> None:
    """Its package has a module and an entry point, and its project is run."""
    assert {block.language for block in section.blocks} >= {"python", "toml", "yaml", "sh", "text"}
    (module,) = [block for block in section.blocks if block.language == "python"]
    shown = "".join(block.text for block in section.blocks if block.language == "sh")
    assert "\nci-eval run" in shown
    (points,) = [block for block in section.blocks if block.language == "toml"]
    (group,) = tomllib.loads(points.text)["project"]["entry-points"].values()
    assert list(group.values()) == [module.file.removesuffix(".py")]


@pytest.mark.parametrize(
    "command", [("check", "--ignore=INP001"), ("format", "--check")], ids=" ".join
)
def test_the_examples_have_the_style_of_the_project(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    for block in (block for section in EXAMPLES for block in section.blocks):
        if block.language == "python":
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff", *command, "--no-cache", "--quiet"]
    done = subprocess.run(
        [*ruff, f"--config={ROOT / 'pyproject.toml'}", tmp_path], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_every_link_of_the_guide_leads_somewhere() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for link in links(text):
        name, _, anchor = link.partition("#")
        assert (PAGE.parent / name).exists(), link
        assert not anchor or anchor in anchors(text), link
