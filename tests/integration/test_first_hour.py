"""The first hour of a user, with an agent in a repository: no step needs a page to be read.

`init --yes`, `run`, `baseline save`, a change that breaks the agent, a run that blocks and shows
why, `show`, the repair, a green run.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from support.commands import run_command
from support.git_repositories import ENV, Repo

PLAIN = """\
HOURS = {"monday": "9 to 18", "saturday": "10 to 14"}


def answer(message):
    day = next((day for day in HOURS if day in message.lower()), None)
    if day is None:
        return "Which day do you mean?"
    text = f"On {day.title()} we are open from {HOURS[day]}."
    return {"response": text, "tool_calls": [{"name": "hours", "args": {"day": day}}]}
"""
ADK = '''\
from google.adk.agents import Agent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types

HOURS = {"monday": "9 to 18", "saturday": "10 to 14"}


def hours(day: str) -> dict:
    """Return the opening hours of a day."""
    return {"day": day, "hours": HOURS[day]}


class Scripted(BaseLlm):
    """Stands for a model: it looks the day up, then says what it found."""

    async def generate_content_async(self, llm_request, stream=False):
        part = llm_request.contents[-1].parts[0]
        if part.function_response:
            found = part.function_response.response
            text = f"On {found['day'].title()} we are open from {found['hours']}."
            part = types.Part(text=text)
        else:
            day = next((day for day in HOURS if day in part.text.lower()), None)
            part = types.Part(text="Which day do you mean?")
            if day:
                call = types.FunctionCall(name="hours", args={"day": day})
                part = types.Part(function_call=call)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


root_agent = Agent(name="shop", model=Scripted(model="scripted"), tools=[hours])
'''
AGENTFLOW = '''\
import json

from agentflow.core.graph import StateGraph, ToolNode
from agentflow.core.state import AgentState, Message
from agentflow.utils.constants import END

HOURS = {"monday": "9 to 18", "saturday": "10 to 14"}


def hours(day: str) -> dict:
    """Return the opening hours of a day."""
    return {"day": day, "hours": HOURS[day]}


def talk(state: AgentState) -> Message:
    """Stand for a model: look the day up, then say what was found."""
    last = state.context[-1]
    if last.role == "tool":
        found = json.loads(last.text())[0]
        text = f"On {found['day'].title()} we are open from {found['hours']}."
        return Message.text_message(text, role="assistant")
    day = next((day for day in HOURS if day in last.text().lower()), None)
    if day is None:
        return Message.text_message("Which day do you mean?", role="assistant")
    message = Message.text_message("", role="assistant")
    call = {"name": "hours", "arguments": json.dumps({"day": day})}
    message.tools_calls = [{"id": f"call-{len(state.context)}", "function": call}]
    return message


def route(state: AgentState) -> str:
    return "TOOL" if getattr(state.context[-1], "tools_calls", None) else END


graph = StateGraph()
graph.add_node("MAIN", talk)
graph.add_node("TOOL", ToolNode([hours]))
graph.add_conditional_edges("MAIN", route, {"TOOL": "TOOL", END: END})
graph.add_edge("TOOL", "MAIN")
graph.set_entry_point("MAIN")
app = graph.compile()
'''
CASES = """\
cases:
  - id: monday
    prompt: When are you open on Monday?
    expected: On Monday we are open from 9 to 18.
    expected_tools: [{name: hours, args: {day: monday}}]
  - id: saturday
    prompt: And on Saturday?
    expected: On Saturday we are open from 10 to 14.
    expected_tools: [{name: hours, args: {day: saturday}}]
  - id: unclear
    prompt: Are you open?
    expected: Which day do you mean?
    expected_tools: []
"""


class Shop(NamedTuple):
    """An agent in a repository, and what breaks it."""

    file: str
    text: str
    python: str = ""
    """The variable that names a Python which has its framework."""
    more: Mapping[str, str] = {}


SHOPS = {
    "python": Shop("shop/agent.py", PLAIN, more={"shop/__init__.py": ""}),
    "adk": Shop("shop/agent.py", ADK, "CI_EVAL_ADK_PYTHON", {"shop/__init__.py": ""}),
    "agentflow": Shop(
        "graph/react.py",
        AGENTFLOW,
        "CI_EVAL_AGENTFLOW_PYTHON",
        {"agentflow.json": '{"agent": "graph.react:app"}'},
    ),
}
BROKEN = ('"Which day do you mean?"', '"Sorry, that is not my department."')


class User:
    """Someone at a terminal, in a repository."""

    def __init__(self, folder: Path) -> None:
        self.repo = Repo(folder)

    def ci_eval(self, *arguments: str, code: int = 0) -> str:
        """Run the command as a user does, and return all that it printed."""
        env = ENV | {"PYTHONDONTWRITEBYTECODE": "1"}
        done = run_command(*arguments, folder=self.repo.folder, env=env)
        printed = done.out + done.err
        assert done.code == code, printed
        assert "Traceback" not in printed
        return printed

    def edit(self, file: str, before: str, after: str) -> None:
        """Replace a text in a file, and commit."""
        path = self.repo.folder / file
        text = path.read_text()
        assert before in text
        self.repo.commit("a change", **{file: text.replace(before, after)})


@pytest.fixture(params=SHOPS)
def shop(request: pytest.FixtureRequest) -> Shop:
    found = SHOPS[request.param]
    if found.python and found.python not in os.environ:
        pytest.skip(f"{found.python} names no Python")
    return found


def test_from_an_agent_in_a_repository_to_a_run_that_blocks(shop: Shop, tmp_path: Path) -> None:
    user = User(tmp_path / "shop")
    user.repo.commit("an agent", **{shop.file: shop.text}, **shop.more)
    if shop.python:
        python = Path(os.environ[shop.python])
        user.repo.write(".gitignore", ".venv\n")
        (user.repo.folder / ".venv").symlink_to(python.parent.parent)

    printed = user.ci_eval("init", "--yes")
    assert "found agents: " in printed
    assert "to do:\n- evals/smoke.yaml: replace the example" in printed
    assert "next: ci-eval run" in printed
    user.repo.write("evals/smoke.yaml", CASES)
    printed = user.ci_eval("validate")
    assert "2 cases expect tool calls, which no criterion reads" in printed
    config = user.repo.folder / "ci-eval.yaml"
    added = "criteria:\n  tool_trajectory_avg_score: 1.0"
    config.write_text(config.read_text().replace("criteria:", added))

    assert "✔ PASSED" in user.ci_eval("run")
    user.repo.commit("evaluate the agent")
    assert "ci-eval-report" not in user.repo.git("ls-files"), "it ignores itself"
    assert "stored " in user.ci_eval("baseline", "save")
    assert "would be compared with 1 of 1 stored run of " in user.ci_eval("baseline", "show")

    user.repo.git("switch", "--quiet", "--create", "change")
    user.edit(shop.file, *BROKEN)
    printed = user.ci_eval("run", code=1)
    assert "FAILED unclear  evals/smoke.yaml:10\n  User: Are you open?\n" in printed
    assert "✘ FAILED" in printed
    assert "fails with this change, passes with the merge base in the same job" in printed
    assert "next: ci-eval show unclear" in printed
    shown = user.ci_eval("show", "unclear")
    assert "  │ Sorry, that is not my department." in shown
    comment = (user.repo.folder / "ci-eval-report/comment.md").read_text()
    assert "**shop failed:** 1 case broke: `unclear` (response).\n" in comment
    report = json.loads((user.repo.folder / "ci-eval-report/report.json").read_text())
    assert report["verdict"]["outcome"] == "failed"

    user.edit(shop.file, *reversed(BROKEN))
    assert "✔ PASSED" in user.ci_eval("run")
