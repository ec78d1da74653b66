"""What ADK itself printed and left, and the commands on what its agent did there."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.commands import Ended

from ci_eval.cli.main import main

HERE = Path(__file__).parents[1] / "unit/cli/adk"
PRINTED = (HERE / "adk-2.13.0.printed.txt").read_text(encoding="utf-8")
LEFT = json.loads((HERE / "adk-2.13.0.evalset_result.json").read_text(encoding="utf-8"))


class Shop:
    """A folder with the agent `agents/shop`, which does again what it did when ADK evaluated it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.agent = folder / "agents/shop"
        self._capsys = capsys
        shutil.copytree(HERE / "shop", self.agent)
        self.traces([(each["eval_id"], observed(each)) for each in LEFT["eval_case_results"]])

    def traces(self, rows: list[tuple[str, Any]]) -> None:
        """Let the agent do this, by case; a case that is there again is its next repeat."""
        names = [name for name, _ in rows]
        lines = [
            {"eval_id": name, "repeat": names[:at].count(name), "invocations": turns}
            for at, (name, turns) in enumerate(rows)
        ]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (self.folder / "traces.jsonl").write_text(text)

    def write(self, name: str, value: Any) -> None:
        """Write a file of JSON."""
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(json.dumps(value))

    def adk(self, *arguments: str) -> Ended:
        """Run `ci-eval adk`."""
        return self.ci_eval("adk", *arguments)

    def ci_eval(self, *arguments: str) -> Ended:
        """Run a command."""
        self._capsys.readouterr()
        code = main(arguments)
        out, err = self._capsys.readouterr()
        return Ended(code, out, err)

    def left(self, folder: str = "agents/shop/.adk/eval_history") -> list[Any]:
        """Return ADK's result files."""
        found = sorted((self.folder / folder).glob("*.evalset_result.json"))
        return [json.loads(each.read_text(encoding="utf-8")) for each in found]


def observed(result: dict[str, Any]) -> list[Any]:
    """Return the agent's behavior in a case."""
    turns = result["eval_metric_result_per_invocation"]
    return [each["actual_invocation"] for each in turns]


def blocks(printed: str) -> dict[str, str]:
    """Return the output about each case."""
    _, *found = printed.split(f"\n{'*' * 68}\n")
    return {re.findall("Eval Id: (.*)", each)[0]: each.rstrip("\n") for each in found}


def head(printed: str) -> list[str]:
    """Return the output before the cases, without the names of unset values."""
    lines = printed.split(f"\n{'*' * 68}\n", maxsplit=1)[0].splitlines()
    return [re.sub(r" \w+=None", "", line) for line in lines]


def without(value: Any, *names: str) -> Any:
    """Return a value of JSON without some keys, and without objects that are empty."""
    if isinstance(value, list):
        return [without(each, *names) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {key: without(each, *names) for key, each in value.items() if key not in names}
    return {key: each for key, each in kept.items() if each != {}}
