"""Mistakes of users, one a row: each names file, line, cause and way out, and has its exit code."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from ci_eval.cli.main import main

CONFIG = """\
version: 1
agents:
  home:
    python: home:answer
evalsets:
  smoke: evals/smoke.yaml
criteria:
  response_match_score: 0.8
"""
CASES = """\
cases:
  - id: lamp
    prompt: Turn on the lamp
    expected: The lamp is on.
"""
AGENT = """\
def answer(message):
    return "The lamp is on."
"""


class Mistake(NamedTuple):
    """A mistake in a project that is otherwise right."""

    name: str
    command: str
    said: Sequence[str]
    """Parts of stderr, in this order."""
    code: int = 4
    config: tuple[str, str] = ("", "")
    """A text in the configuration, and its replacement."""
    files: Mapping[str, str] = {}
    """Further files; an empty text removes one."""


MISTAKES = [
    # --- The command line -----------------------------------------------------------------------
    Mistake(
        "no configuration",
        "run",
        ["ci-eval.yaml: no such file; `ci-eval init` writes one, and `-c` names another"],
        files={"ci-eval.yaml": ""},
    ),
    Mistake(
        "a configuration with another ending",
        "run",
        ["ci-eval.yaml: no such file, but ci-eval.yml exists; name it with `-c ci-eval.yml`"],
        files={"ci-eval.yml": CONFIG, "ci-eval.yaml": ""},
    ),
    Mistake(
        "an option of another command",
        "baseline diff --out nowhere",
        ["no such option '--out'\n`ci-eval baseline diff --help` lists the options"],
    ),
    Mistake(
        "a text as a number",
        "run --repeats abc",
        ["--repeats: expected a whole number, found 'abc'\n"],
    ),
    Mistake(
        "a misspelt configuration",
        "run -c ci-evla.yaml",
        ["ci-evla.yaml: no such file. Did you mean 'ci-eval.yaml'?"],
    ),
    Mistake(
        "a misspelt file to validate",
        "validate ci-evla.yaml",
        ["ci-evla.yaml: no such file. Did you mean 'ci-eval.yaml'?"],
    ),
    Mistake("a folder for a configuration", "run -c evals", ["evals: is not a file"]),
    Mistake(
        "a configuration as an argument",
        "run foo.yaml",
        ["unexpected argument 'foo.yaml'", "use `ci-eval run -c foo.yaml`"],
    ),
    Mistake(
        "a misspelt option",
        "run --evalsets smoke",
        ["no such option '--evalsets'. Did you mean '--evalset'?", "`ci-eval run --help` lists"],
    ),
    Mistake("a misspelt command", "rnu", ["No such command 'rnu'. Did you mean 'run'?"]),
    Mistake(
        "a file as the output folder", "run --out home.py", ["home.py: is a file; name a folder"]
    ),
    Mistake(
        "a misspelt case beside one whose name has a line break",
        "run --case no",
        [r"no evalset has a case 'no'; known: la\nmp"],
        files={"evals/smoke.yaml": CASES.replace("lamp\n", r'"la\nmp"' + "\n", 1)},
    ),
    Mistake("a misspelt agent", "run --agent hom", ["unknown agent 'hom'. Did you mean 'home'?"]),
    Mistake(
        "a misspelt evalset",
        "run --evalset smok",
        ["unknown evalset 'smok'. Did you mean 'smoke'?"],
    ),
    Mistake(
        "a misspelt case",
        "run --case lampp",
        ["no evalset has a case 'lampp'. Did you mean 'lamp'?"],
    ),
    Mistake(
        "a misspelt criterion",
        "run --criterion response_match",
        ["unknown criterion 'response_match'. Did you mean 'response_match_score'?"],
    ),
    Mistake(
        "failed cases of no run",
        "run --failed",
        ["there is no ci-eval-report/run.json", "run once without --failed first"],
    ),
    Mistake(
        "a case of no run", "show lamp", ["ci-eval-report: no such file", "run `ci-eval run` first"]
    ),
    Mistake(
        "a tag that no case has",
        "run --tag slow",
        ["nothing to run: no case has the tag 'slow'"],
        code=5,
    ),
    # --- The configuration ----------------------------------------------------------------------
    Mistake(
        "a tab",
        "validate",
        ["ci-eval.yaml:4: is not YAML: a tab, where YAML needs spaces"],
        config=("    python", "\tpython"),
    ),
    Mistake(
        "a missing space after a colon",
        "validate",
        ["ci-eval.yaml:1: is not YAML: no space after 'version:'"],
        config=("version: 1", "version:1"),
    ),
    Mistake(
        "a missing space after a colon before the end",
        "validate",
        ["ci-eval.yaml:2: is not YAML: no space after 'name:'"],
        config=("agents:", "name:shop\nagents:"),
    ),
    Mistake(
        "a missing space in an agent",
        "validate",
        ["ci-eval.yaml:3: agents.home: needs a type; put a space after 'python:'"],
        config=("python: home", "python:home"),
    ),
    Mistake(
        "another file as the configuration",
        "run -c home.txt",
        ["home.txt: is not a YAML configuration"],
        files={"home.txt": "Hello\nname: [\n"},
    ),
    Mistake(
        "an evalset as the configuration",
        "run -c evals/smoke.yaml",
        ["evals/smoke.yaml:1: is an evalset, not a configuration; list it under `evalsets:`"],
    ),
    Mistake(
        "criteria as a list",
        "validate",
        ["criteria: expected a mapping such as `criteria: {response_match_score: 0.8}`, found a"],
        config=("  response", "  - response"),
    ),
    Mistake(
        "a threshold in quotes",
        "validate",
        ["criteria.response_match_score: ", "found '0.8'; remove the quotes"],
        config=("0.8", "'0.8'"),
    ),
    Mistake(
        "a boolean as a number",
        "validate",
        [
            "ci-eval.yaml:9: run.repeats: expected a whole number, found true",
            "ci-eval.yaml:10: gate.max_drop: expected a number, found false",
        ],
        config=("0.8\n", "0.8\nrun: {repeats: true}\ngate: {max_drop: false}\n"),
    ),
    Mistake(
        "a boolean as an option of an agent",
        "validate",
        ["ci-eval.yaml:5: agents.home.workers: expected a whole number, found true"],
        config=("home:answer", "home:answer\n    workers: true"),
    ),
    Mistake(
        "a rate with a percent sign",
        "validate",
        ["gate.min_pass_rate: expected a number, found '90%'. Did you mean 0.9?"],
        config=("0.8\n", "0.8\ngate: {min_pass_rate: 90%}\n"),
    ),
    Mistake(
        "a file as a callable",
        "validate",
        ["agents.home.python: expected 'module:callable', such as 'home:answer', found 'home.py'"],
        config=("home:answer", "home.py"),
    ),
    Mistake(
        "a file before the name of a callable",
        "validate",
        ["expected 'module:callable', such as 'home:answer', found 'home.py:answer'"],
        config=("home:answer", "home.py:answer"),
    ),
    Mistake(
        "an option of the run in an agent",
        "validate",
        ["ci-eval.yaml:5: agents.home.timeout: unknown key. Did you mean `run.timeout_s`?"],
        config=("home:answer", "home:answer\n    timeout: 5"),
    ),
    Mistake(
        "options in the wrong section",
        "validate",
        [
            "ci-eval.yaml:9: repeats: unknown key. Did you mean `run.repeats`?",
            "ci-eval.yaml:10: gate.window: unknown key. Did you mean `baseline.window`?",
        ],
        config=("0.8\n", "0.8\nrepeats: 3\ngate: {window: 2}\n"),
    ),
    Mistake(
        "misspelt criteria",
        "validate",
        ["ci-eval.yaml:7: criterias: unknown key. Did you mean 'criteria'?\nCE"],
        config=("criteria", "criterias"),
    ),
    Mistake(
        "a criterion that fits no case",
        "validate",
        [
            "ci-eval.yaml:9: criteria.tool_trajectory_avg_score: cannot score any case: ",
            "case 'lamp' does not state the expected tool calls",
            "; change the cases, or remove the criterion",
        ],
        config=("0.8\n", "0.8\n  tool_trajectory_avg_score: 1\n"),
    ),
    Mistake(
        "a misspelt key",
        "validate",
        ["ci-eval.yaml:5: evalset: unknown key. Did you mean 'evalsets'?"],
        config=("evalsets:", "evalset:"),
    ),
    Mistake(
        "a duplicate key",
        "validate",
        ["ci-eval.yaml:5: duplicate key 'agents'"],
        config=("evalsets:", "agents:"),
    ),
    Mistake(
        "a percentage as a threshold",
        "validate",
        ["ci-eval.yaml:8: criteria.response_match_score: ", "Did you mean 0.8?"],
        config=("0.8", "80"),
    ),
    Mistake(
        "a percentage as a rate",
        "validate",
        ["ci-eval.yaml:9: gate.min_pass_rate: must be at most 1, found 90. Did you mean 0.9?"],
        config=("0.8\n", "0.8\ngate: {min_pass_rate: 90}\n"),
    ),
    Mistake(
        "a misspelt type of criterion",
        "validate",
        ["ci-eval.yaml:8: criteria.respnse_match_score: ", "Did you mean 'response_match_score'?"],
        config=("response_match", "respnse_match"),
    ),
    Mistake(
        "a misspelt type of agent",
        "validate",
        ["ci-eval.yaml:3: agents.home: has no known agent type. Did you mean 'python'?"],
        config=("python:", "pyton:"),
    ),
    Mistake(
        "a callable without a colon",
        "validate",
        ["ci-eval.yaml:4: agents.home.python: expected 'module:callable'"],
        config=("home:answer", "home.answer"),
    ),
    # --- What a configuration names -------------------------------------------------------------
    Mistake(
        "an evalset in a bucket whose id leads out of its folder",
        "run",
        ["ci-eval.yaml:7: evalsets.nightly: eval_set_id '..' must not contain traversal segments."],
        config=("smoke: evals/smoke.yaml", 'smoke: evals/smoke.yaml\n  nightly: "gs://b/app/.."'),
    ),
    Mistake(
        "an object whose id leads out of its folder",
        "validate gs://b/app/..",
        ["eval_set_id '..' must not contain traversal segments."],
    ),
    Mistake(
        "a misspelt module",
        "validate",
        ["ci-eval.yaml:4: agents.home.python: there is no module 'hom'. Did you mean 'home'?"],
        config=("home:answer", "hom:answer"),
    ),
    Mistake(
        "a misspelt callable",
        "plan",
        ["ci-eval.yaml:4: agents.home.python: home.py has no 'anwser'. Did you mean 'answer'?"],
        config=("home:answer", "home:anwser"),
    ),
    Mistake(
        "a misspelt module in a package",
        "run",
        ["ci-eval.yaml:4: agents.home.python: ", "'app.suport'. Did you mean 'app.support'?"],
        config=("home:answer", "app.suport:answer"),
        files={"app/__init__.py": "\n", "app/support.py": AGENT},
    ),
    Mistake(
        "a misspelt folder of an ADK agent",
        "validate",
        ["ci-eval.yaml:4: agents.home.adk: ", "'agents/hom'. Did you mean 'agents/home'?"],
        config=("python: home:answer", "adk: agents/hom"),
        files={"agents/home/agent.py": "root_agent = None\n"},
    ),
    Mistake(
        "a folder without an ADK agent",
        "validate",
        ["ci-eval.yaml:4: agents.home.adk: evals has none of __init__.py, agent.py"],
        config=("python: home:answer", "adk: evals"),
    ),
    Mistake(
        "a misspelt graph",
        "validate",
        ["ci-eval.yaml:4: agents.home.langgraph: there is no module 'grap'. Did you mean 'graph'?"],
        config=("python: home:answer", "langgraph: grap:app"),
        files={"graph.py": "app = None\n"},
    ),
    Mistake(
        "an interpreter that does not exist",
        "validate",
        ["ci-eval.yaml:5: agents.home.interpreter: there is no program '.venv/bin/python'"],
        config=("home:answer", "home:answer\n    interpreter: .venv/bin/python"),
    ),
    Mistake(
        "a program that does not exist",
        "validate",
        ["ci-eval.yaml:4: agents.home.command: there is no program './agent.sh'"],
        config=("python: home:answer", "command: [./agent.sh]"),
    ),
    Mistake(
        "a recording that does not exist",
        "validate",
        ["ci-eval.yaml:4: agents.home.recorded: ", "traces.jsonl: no such file"],
        config=("python: home:answer", "recorded: traces.jsonl"),
    ),
    Mistake(
        "a misspelt evalset file",
        "validate",
        ["ci-eval.yaml:6: evalsets.smoke: there is no file 'evals/smok.yaml'. Did you mean 'evals"],
        config=("smoke.yaml", "smok.yaml"),
    ),
    Mistake(
        "a folder as an evalset",
        "validate",
        [
            "ci-eval.yaml:6: evalsets.smoke: 'evals' is a directory; name a file, ",
            "or use a pattern such as 'evals/*.yaml'",
        ],
        config=("evals/smoke.yaml", "evals"),
    ),
    Mistake(
        "a misspelt folder of an evalset",
        "validate",
        ["there is no file 'eval/smoke.yaml'. Did you mean 'evals/smoke.yaml'?"],
        config=("evals/smoke.yaml", "eval/smoke.yaml"),
    ),
    Mistake(
        "a pattern that fits no file",
        "validate",
        ["ci-eval.yaml:6: evalsets.smoke: 'evals/*.json' matches no file"],
        config=("evals/smoke.yaml", "evals/*.json"),
    ),
    Mistake(
        "a branch without a repository",
        "run",
        [
            "a baseline in a branch needs a git repository: ",
            "run in a git repository (`git init` creates one), or use `store: file`",
        ],
        code=6,
        config=("criteria", "baseline: {store: branch}\ncriteria"),
    ),
    Mistake(
        "a branch of a remote that does not answer",
        "run",
        ["cannot be read: ", "check the network; to run offline, pass a copy"],
        code=6,
        config=("criteria", "baseline: {store: branch}\ncriteria"),
        files={
            ".git/HEAD": "ref: refs/heads/main\n",
            ".git/objects/info/alternates": "\n",
            ".git/refs/heads/.keep": "\n",
            ".git/config": "[core]\n\trepositoryformatversion = 0\n"
            '[remote "origin"]\n\turl = https://127.0.0.1:9/shop.git\n',
        },
    ),
    Mistake(
        "a misspelt key in a case",
        "validate",
        ["evals/smoke.yaml:4: ", "expectd: unknown key. Did you mean 'expected'?"],
        files={"evals/smoke.yaml": CASES.replace("expected", "expectd")},
    ),
    Mistake(
        "a quote that is not closed",
        "validate",
        ["evals/smoke.yaml:3: is not YAML: a quote is opened here and never closed"],
        files={"evals/smoke.yaml": CASES.replace("Turn", '"Turn')},
    ),
    Mistake(
        "a colon in a text",
        "validate",
        ["evals/smoke.yaml:3: is not YAML: mapping", "put the text that contains ': ' in quotes"],
        files={"evals/smoke.yaml": CASES.replace("Turn", "Please: turn")},
    ),
    Mistake(
        "a wrong indentation",
        "validate",
        ["evals/smoke.yaml:4: is not YAML: mapping", "check the indentation"],
        files={"evals/smoke.yaml": CASES.replace("    expected", "      expected")},
    ),
    Mistake(
        "JSON Lines in a JSON file",
        "validate",
        ["evals/a.json:2: has several JSON values, one per line; name the file *.jsonl"],
        config=("smoke.yaml", "a.json"),
        files={"evals/a.json": '{"prompt": "a", "expected": "b"}\n' * 2},
    ),
    Mistake(
        "an evalset with an unknown ending",
        "validate",
        ["evals/a.txt:1: has the unknown ending '.txt'; known: .json, .jsonl, "],
        config=("smoke.yaml", "a.txt"),
        files={"evals/a.txt": CASES},
    ),
    # --- The agent ------------------------------------------------------------------------------
    Mistake(
        "a package that is not installed",
        "run",
        [
            "ERROR home · smoke · lamp: start: cannot load 'home:answer': ModuleNotFoundError: ",
            "No module named 'no_such_package' home.py:1: import no_such_package (install it for ",
            "or set `interpreter`)",
        ],
        code=6,
        files={"home.py": "import no_such_package\n\n" + AGENT},
    ),
    Mistake(
        "a module of the repository that does not exist",
        "run",
        ["start: cannot load 'shop:answer': ", "(there is no file shop/tools.py)"],
        code=6,
        config=("home:answer", "shop:answer"),
        files={"shop/__init__.py": "from shop.tools import *\n"},
    ),
    Mistake(
        "a variable that is not passed on",
        "run",
        ["start: ", "KeyError: 'SHOP_KEY'", "add `env: [SHOP_KEY]` to the agent)"],
        code=6,
        files={"home.py": "import os\n\nKEY = os.environ['SHOP_KEY']\n" + AGENT},
    ),
    Mistake(
        "a variable that a trial lacks",
        "run",
        ["raised: KeyError: 'SHOP_KEY' (home.py:4)", "add `env: [SHOP_KEY]` to the agent)"],
        code=6,
        files={"home.py": "import os\n\ndef answer(_):\n    os.environ['SHOP_KEY']\n"},
    ),
    Mistake(
        "a variable that is not set",
        "run",
        ["KeyError: 'NO_KEY'", "(the agent's `env:` lists NO_KEY, which is not set)"],
        code=6,
        config=("home:answer", "home:answer\n    env: [NO_KEY]"),
        files={"home.py": "import os\n\nKEY = os.environ['NO_KEY']\n" + AGENT},
    ),
    Mistake(
        "a syntax error in the agent",
        "run",
        ["agents.home.python: home.py has a syntax error in line 1: expected ':'"],
        files={"home.py": "def answer(message)\n    return ''\n"},
    ),
    Mistake(
        "an agent with another signature",
        "run",
        [
            "raised: TypeError: answer() takes 0 positional arguments but 1 was given; ",
            "it is called with one argument (home.py:1)",
        ],
        code=6,
        files={"home.py": "def answer():\n    return ''\n"},
    ),
    Mistake(
        "an agent that raises",
        "run",
        ["ERROR home · smoke · lamp: raised: ValueError: no such room (home.py:2)"],
        code=6,
        files={"home.py": "def answer(message):\n    raise ValueError('no such room')\n"},
    ),
    Mistake(
        "an agent that returns something else",
        "run",
        ["ERROR home · smoke · lamp: protocol: the agent answered 5; expected a text"],
        code=6,
        files={"home.py": "def answer(message):\n    return 5\n"},
    ),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SHOP_KEY", "secret-value")
    write(tmp_path, {"ci-eval.yaml": CONFIG, "evals/smoke.yaml": CASES, "home.py": AGENT})
    return tmp_path


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if not text:
            path.unlink()


def test_the_project_is_right_before_a_mistake_is_made(folder: Path) -> None:
    assert main(["run"]) == 0


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: each.name)
def test_a_mistake_is_explained(
    mistake: Mistake, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, {"ci-eval.yaml": CONFIG.replace(*mistake.config), **mistake.files})
    code = main(mistake.command.split())
    said = capsys.readouterr().err

    assert code == mistake.code, said
    at = 0
    for part in mistake.said:
        assert part in said[at:], said
        at = said.index(part, at) + len(part)
    assert "Traceback" not in said
    assert "secret-value" not in said
    if code == 4 and "No such command" not in said:  # which is click's own
        assert re.search(r"^CE\d{4}[^:]*: see `ci-eval explain CE[^`]*`$", said, re.MULTILINE)


def test_the_cause_is_the_first_thing_in_every_document(folder: Path) -> None:
    write(folder, {"home.py": "import no_such_package\n\n" + AGENT})
    assert main(["run"]) == 6

    cause = "the agent 'home' cannot start: cannot load 'home:answer': ModuleNotFoundError: "
    report = folder / "ci-eval-report"
    assert cause in (report / "report.json").read_text()
    assert cause in (report / "annotations.txt").read_text().splitlines()[0]
    headline = (report / "comment.md").read_text().splitlines()[2].replace("\u200b", "")
    assert cause in headline
    assert "No module named 'no_such_package'" in headline
