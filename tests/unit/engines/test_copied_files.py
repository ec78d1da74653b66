"""Copies of a folder hold no secrets, and nothing from outside of it."""

import os
from pathlib import Path

import pytest

from ci_eval.engines._copied_files import mirror


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("of this machine")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "data").write_text("of others")
    (tmp_path / "agent").mkdir()
    return tmp_path / "agent"


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def mirrored(folder: Path) -> tuple[dict[str, str], list[str]]:
    """Return the content of the files that are copied, and the links that are not."""
    copy = folder.parent / "copy"
    lacking = [*mirror(folder, copy, left_out=folder / "report")]
    files = (path for path in copy.rglob("*") if path.is_file())
    return {str(path.relative_to(copy)): path.read_text() for path in files}, sorted(lacking)


def test_files_are_copied_but_for_secrets_and_what_is_of_one_machine(folder):
    kept = ("bot.py", "sub/more.py", "environment.py", ".gitignore", "sub/report/kept")
    write(folder, *kept, "report/run.json", "sub/node_modules/x.js", ".git/config")
    write(folder, ".env", ".env.local", "sub/.envrc", "gha-creds-0a1b.json", ".venv/pyvenv.cfg")

    assert mirrored(folder) == ({name: name for name in kept}, [])


def test_links_to_files_inside_are_copied_as_files(folder):
    write(folder, "prompts/a.md")
    (folder / "current.md").symlink_to("prompts/a.md")
    (folder / "prompts" / "absolute.md").symlink_to(folder / "prompts" / "a.md")

    found, lacking = mirrored(folder)

    assert (found["current.md"], found["prompts/absolute.md"]) == ("prompts/a.md",) * 2
    assert lacking == []


@pytest.mark.parametrize(
    "target",
    [
        "../secret",
        "../elsewhere",
        "../elsewhere/data",
        ".git/config",
        ".env",
        ".",
        "itself",
        "nowhere",
        "sub",
        "/dev/zero",
        "/proc/self/environ",
    ],
)
def test_no_link_takes_anything_from_outside_or_leads_in_circles(folder, target):
    write(folder, "bot.py", ".git/config", ".env", "sub/more.py")
    (folder / "itself").symlink_to(target)

    assert mirrored(folder) == ({"bot.py": "bot.py", "sub/more.py": "sub/more.py"}, ["itself"])


def test_a_pipe_is_not_waited_for(folder):
    write(folder, "bot.py")
    os.mkfifo(folder / "pipe")

    assert mirrored(folder) == ({"bot.py": "bot.py"}, ["pipe"])


def test_a_name_that_is_no_text_is_not_copied(folder):
    write(folder, "bot.py", "größe.md")
    Path(os.fsdecode(os.fsencode(folder) + b"/bad\xff")).touch()
    Path(os.fsdecode(os.fsencode(folder) + b"/folder\xff")).mkdir()

    found, lacking = mirrored(folder)

    assert found == {"bot.py": "bot.py", "größe.md": "größe.md"}
    assert lacking == ["bad\udcff", "folder\udcff"]


def test_the_folder_may_be_a_link_itself(folder):
    write(folder, "bot.py", "report/run.json")
    (folder.parent / "other").symlink_to(folder)

    assert mirrored(folder.parent / "other") == ({"bot.py": "bot.py"}, [])
