"""A small project in a temporary folder, as a user would have it, and the command run in it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.commands import Ended

from ci_eval.cli.main import main

CONFIG = """\
version: 1
name: shop
agents:
  bot: {recorded: traces.jsonl}
evalsets:
  smoke: smoke.evalset.json
criteria:
  tool_trajectory_avg_score: 1.0
  response_match_score: 0.5
"""


def content(text: str, role: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"text": text}]}


def turn(asked: str, answered: str, *calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Return an invocation in ADK's JSON."""
    uses = [{"name": name, "args": args} for name, args in calls]
    return {
        "user_content": content(asked, "user"),
        "final_response": content(answered, "model"),
        "intermediate_data": {"tool_uses": uses},
    }


def case(eval_id: str, *turns: dict[str, Any]) -> dict[str, Any]:
    return {"eval_id": eval_id, "conversation": list(turns)}


GREETS = case("greets", turn("Hello", "Hello, how can I help?"))
REFUNDS = case("refunds", turn("Refund 7", "Order 7 is refunded.", ("refund", {"order": 7})))
TRACKS = case("tracks", turn("Where is 9?", "Order 9 is in Oslo.", ("track", {"order": 9})))
CASES = (GREETS, REFUNDS, TRACKS)
_AS_WRITTEN = json.dumps(CASES)


class Project:
    """A folder with a configuration, an evalset and what a recorded agent did."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert json.dumps(CASES) == _AS_WRITTEN, "a test changed the cases that all tests share"
        self.folder = folder
        self._capsys = capsys
        self.config(CONFIG)
        self.evalset(*CASES)
        self.traces(*CASES)

    def config(self, text: str) -> None:
        (self.folder / "ci-eval.yaml").write_text(text)

    def add(self, text: str) -> None:
        """Add lines to the configuration."""
        path = self.folder / "ci-eval.yaml"
        path.write_text(path.read_text() + text)

    def evalset(self, *cases: dict[str, Any], name: str = "smoke") -> None:
        data = {"eval_set_id": name, "eval_cases": list(cases)}
        (self.folder / f"{name}.evalset.json").write_text(json.dumps(data, indent=1))

    def traces(self, *cases: dict[str, Any], name: str = "traces.jsonl") -> None:
        """Record that the agent did what these cases expect, or the rows as they are."""
        rows = [
            {"eval_id": each["eval_id"], "invocations": each["conversation"]}
            if "conversation" in each
            else each
            for each in cases
        ]
        (self.folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    def ci_eval(self, *arguments: str) -> Ended:
        """Run the command in this process."""
        self._capsys.readouterr()
        code = main(arguments)
        out, err = self._capsys.readouterr()
        return Ended(code, out, err)

    def read(self, name: str) -> str:
        """Return a document of the report."""
        return (self.folder / "ci-eval-report" / name).read_text()

    def run_json(self) -> Any:
        return json.loads(self.read("run.json"))

    def scores(self) -> dict[str, dict[str, float | None]]:
        """Return the values of the last run, by case and criterion."""
        return {
            result["key"]["case"]: {score["name"]: score["value"] for score in result["scores"]}
            for result in self.run_json()["results"]
        }


def changed(original: dict[str, Any], answered: str, *calls: Any) -> dict[str, Any]:
    """Return a case whose last turn went otherwise."""
    *before, last = original["conversation"]
    asked = last["user_content"]["parts"][0]["text"]
    return case(original["eval_id"], *before, turn(asked, answered, *calls))


def problems(ended: Ended) -> Sequence[str]:
    """Return the lines on stderr, without the codes of the errors."""
    return [line for line in ended.err.splitlines() if ": see `ci-eval explain CE" not in line]
