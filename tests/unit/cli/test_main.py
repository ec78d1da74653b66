"""The commands are imported when they are needed."""

import subprocess
import sys

import pytest

from ci_eval.cli.main import COMMANDS, command, main
from ci_eval.records.errors import ExitCode


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_the_name_it_is_listed_by_and_is_logged(name: str) -> None:
    found = command(name)

    assert found.name == name
    assert [each.name for each in found.params].count("verbose") == 1
    assert command(name) is found


@pytest.mark.processes
@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_does_not_wait_for_what_is_heavy(arguments: list[str]) -> None:
    code = f"import sys; from ci_eval.cli.main import main; assert main({arguments}) == 0; "
    code += "sys.exit(any(name in sys.modules for name in ('pydantic', 'yaml', 'rich')))"

    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_an_unknown_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gatee"]) == ExitCode.USAGE_ERROR
    assert capsys.readouterr().err == "No such command 'gatee'. Did you mean 'gate'?\n"
