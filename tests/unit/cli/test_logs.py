"""How much is logged, and that no secret is."""

import base64
import logging
import re
from pathlib import Path

import pytest

from ci_eval.cli.console import say_problems
from ci_eval.cli.logs import MAX_LINES, configure, is_quiet
from ci_eval.cli.main import main
from ci_eval.records.errors import Problem, UsageError
from ci_eval.text.redact import printing

FILES = {
    "shop.py": """
import os
def answer(_):
    lines = ["::error::injected", "##[group]injected"] * 5000
    raise RuntimeError(chr(27) + "[2J" + os.environ["SHOP_API_KEY"] + chr(10).join(lines))
""",
    "ci-eval.yaml": """
agents: {bot: {python: "shop:answer", env: [SHOP_API_KEY]}}
evalsets: {all: cases.yaml}
criteria: {response_match_score: 1}
""",
    "cases.yaml": "- {id: a, prompt: Hi, expected: Hello}\n",
}
LOGGER = logging.getLogger("ci_eval")
KEY = "Zk3vQ9pLx7Rt2WmN8bYc5HdJ4gFs6AuE1oTiKzVq0XyBnMlPwSrDhGjCfUeIaOt"


@pytest.fixture(autouse=True)
def level() -> None:
    configure({})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOP_API_KEY", "sk-blue-giraffe")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("env", "options", "expected"),
    [
        ({}, {}, logging.WARNING),
        ({"RUNNER_DEBUG": "1"}, {}, logging.DEBUG),
        ({"RUNNER_DEBUG": "0"}, {}, logging.WARNING),
        ({"CI_EVAL_LOG": "INFO", "RUNNER_DEBUG": "1"}, {}, logging.INFO),
        ({"CI_EVAL_LOG": "error"}, {"verbose": 1}, logging.INFO),
        ({}, {"verbose": 2}, logging.DEBUG),
        ({"RUNNER_DEBUG": "1"}, {"quiet": True}, logging.ERROR),
    ],
)
def test_options_win_over_variables(env, options, expected):
    configure(env, **options)

    assert LOGGER.level == expected


def test_an_unknown_level_is_refused():
    with pytest.raises(UsageError, match=r"unknown level 'infos'. Did you mean 'info'"):
        configure({"CI_EVAL_LOG": "infos"})


@pytest.mark.parametrize("arguments", [["-v", "run"], ["run", "-v"], ["-v", "run", "-v"]])
def test_the_options_stand_before_or_behind_the_command(
    project: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(arguments)
    said = capsys.readouterr().err

    assert "INFO ci_eval.run.pipeline: run " in said
    assert ("DEBUG" in said) == (arguments.count("-v") == 2)


def test_quiet_shows_results_and_no_progress(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["run", "-q"])
    said, progress = capsys.readouterr()

    assert is_quiet()
    assert progress == ""
    assert "INCOMPLETE" in said or "FAILED" in said


def test_what_is_logged_is_redacted_and_gives_no_terminal_a_command(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["run", "-vv"])
    said = capsys.readouterr().err

    assert "attempt 1: raised: RuntimeError" in said
    assert "[SHOP_API_KEY]" in said
    assert "giraffe" not in said
    assert "\x1b" not in said
    assert not re.search(r"^::|##\[", said, re.MULTILINE)


@pytest.mark.parametrize(
    "written",
    [
        f"first: {KEY[:30]}\n{KEY[30:]}",
        base64.encodebytes(KEY.encode() * 2).decode(),
        f"the worker died:\n…{KEY[2:]}\n{KEY}\n{KEY}\nzz",
        f"{'x' * 480} {KEY[:30]}\n{KEY[30:]}",
    ],
)
def test_a_secret_that_continues_on_the_next_line_is_redacted(
    written: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with printing({"SHOP_API_KEY": KEY}):
        logging.getLogger("ci_eval.test").warning("%s", written)
        say_problems([Problem(message=f"it failed:\n{written}")])
    said = capsys.readouterr().err.replace("\n", "")
    encoded = base64.b64encode(KEY.encode()).decode()

    assert "[SHOP_API_KEY]" in said
    assert not [at for at in range(55) if KEY[at : at + 8] in said]
    assert not [at for at in range(70) if encoded[at : at + 8] in said]


def test_a_long_message_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("ci_eval.test").warning("\n".join(["::error::line"] * 1000))
    lines = capsys.readouterr().err.splitlines()

    assert lines[-1] == "… and 900 more lines"
    assert len(lines) == MAX_LINES + 1
    assert not [line for line in lines if line.startswith("::")]


def test_log_lines_never_reach_stdout(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", "--json", "-vv"])

    assert capsys.readouterr().out.startswith("{")
