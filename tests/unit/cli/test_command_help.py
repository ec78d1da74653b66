"""The help of commands: an example of each, and summaries that are whole."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ci_eval.cli import main
from ci_eval.cli.command_help import EXAMPLES


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield each command that is no group, with the words that call it."""
    for name in main.COMMANDS:
        yield from within(name, main.command(name))


def within(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for inner, each in command.commands.items():
            yield from within(f"{name} {inner}", each)
    else:
        yield name, command


def test_each_command_has_an_example() -> None:
    assert {name for name, _ in commands()} == EXAMPLES.keys() - {"evalset"}


@pytest.mark.parametrize(("name", "command"), list(commands()))
def test_an_example_is_shown_and_can_be_given(
    name: str, command: click.Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("agents/shop").mkdir(parents=True)
    with click.Context(command) as context:
        _, _, shown = command.get_help(context).partition("Example: ")
    assert [each.strip() for each in shown.split("\n")] == EXAMPLES[name].split("\n")
    for line in EXAMPLES[name].split("\n"):
        called, *words = shlex.split(line.partition(" >")[0], comments=True)
        assert [called, *words[: len(name.split())]] == ["ci-eval", *name.split()]
        command.make_context(name, words[len(name.split()) :]).close()


@pytest.mark.parametrize("name", ["baseline", "evalset", "gate", "judge"])
def test_no_summary_is_cut(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main([name, "--help"]) == 0
    assert "..." not in capsys.readouterr().out.partition("Commands:")[2]


@pytest.mark.parametrize("words", [[], ["baseline"]])
def test_a_missing_command_prints_the_whole_help(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main([*words, "--help"]) == 0
    wanted = capsys.readouterr().out
    assert main.main(words) in {0, 4}  # as click does
    assert capsys.readouterr() == (wanted, "")


def test_a_shell_can_complete_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"COMPLETE": "bash_source"}.items():
        monkeypatch.setenv(f"_CI_EVAL_{name}", value)
    assert main.main([]) == 0
    assert "complete" in capsys.readouterr().out
