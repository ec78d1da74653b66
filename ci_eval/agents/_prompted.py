"""What agents share that are a model, told what to be, and tools that are not really called."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import Field, field_validator

from ci_eval.formats.events import as_response
from ci_eval.records.errors import TrialError, UsageError
from ci_eval.records.model import (
    CannedResults,
    FunctionCall,
    FunctionResponse,
    Json,
    Record,
    ToolMocks,
)
from ci_eval.records.trials import Trial
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.paths import contained
from ci_eval.runtime.workers.canned import Canned
from ci_eval.text.sanitize import one_line
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.yaml_files import read_text

SHOWN_CHARS = 200
"""How much of the arguments of a call a message shows."""


class InstructionFile(Record):
    """An instruction that stands in a file."""

    file: str
    """The file, from the folder of the configuration."""


class Tool(Record):
    """A tool as a model sees it."""

    name: str = Field(min_length=1)
    """What it is called."""
    description: str = ""
    """What it is good for."""
    parameters: dict[str, Json] | None = None
    """The JSON schema of its arguments; left out, it takes none."""

    def declared(self, schema_key: str = "parameters") -> dict[str, Json]:
        """Return it as a model is told of it, with the schema under `schema_key`."""
        schema = {} if self.parameters is None else {schema_key: self.parameters}
        return {"name": self.name, "description": self.description, **schema}


class Prompted(Record):
    """A model that is told what to be, and has tools with canned results."""

    instruction: str | InstructionFile = ""
    """What the model is told, or `{file: PATH}` of a text. `{name}` stands for what the session's
    state has under that name, as in ADK; `{name?}` may be missing there."""
    tools: tuple[Tool, ...] = ()
    """The tools that the model may call: each with `name`, `description` and `parameters`, a JSON
    schema."""
    results: CannedResults
    """What comes back from the tools, by their name, as in `tool_mocks` of a case, which comes
    first. Nothing is really called: a call for which nothing is given is an error, whatever
    `unmatched` says."""
    max_calls: int = Field(default=10, ge=1)
    """How often the model may be asked in one invocation."""

    @field_validator("tools")
    @classmethod
    def _names_differ(cls, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
        names = [tool.name for tool in tools]
        for name in dict.fromkeys(names):
            if names.count(name) > 1:
                raise ValueError(f"two tools are named {name!r}")
        return tools

    def wrong_prompt(self, context: RunContext) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the instruction and the canned results."""
        try:
            self.told(context)
        except UsageError as exc:
            yield "instruction", str(exc)
        names = [tool.name for tool in self.tools]
        for name in self.results:
            if name not in names:
                yield "results", f"there is no tool {name!r} in `tools`{did_you_mean(name, names)}"

    def told(self, context: RunContext) -> str:
        """Return the instruction, before anything is put into it.

        Raises:
            UsageError: its file cannot be read.

        """
        if isinstance(self.instruction, str):
            return self.instruction
        path = self.instruction.file
        return read_text(contained(context.root, path), shown=context.shown(path))


# --- The instruction --------------------------------------------------------------------------

_BRACES = re.compile(r"\{+(?P<name>[^{}]*)\}+")
_STATE_NAME = re.compile(r"(?:(?:app|user|temp):)?[^\W\d]\w*")


def filled_in(instruction: str, state: Mapping[str, Json]) -> str:
    """Return `instruction` with what the session's `state` has; other braces stay as they are.

    Raises:
        TrialError: it names what the state does not have.

    """

    def value(found: re.Match[str]) -> str:
        given = found["name"].strip()
        name = given.removesuffix("?")
        if not _STATE_NAME.fullmatch(name):
            return found[0]
        if name in state:
            return "" if state[name] is None else str(state[name])
        if given != name:
            return ""
        message = f"the instruction names {{{name}}}, which the session's state does not have"
        hint = f"give it in `session_input.state` of the case, or write {{{name}?}}"
        raise TrialError("start", f"{message}; {hint}")

    return _BRACES.sub(value, instruction)


# --- Tools ------------------------------------------------------------------------------------


class CannedTools:
    """The tools of one conversation: what they answer, and how often they were called."""

    def __init__(self, results: CannedResults, trial: Trial) -> None:
        given = ToolMocks(tools=results)
        if trial.case.tool_mocks:
            given = trial.case.tool_mocks.before(given)
        self._canned = Canned(given.model_dump(mode="json", exclude_unset=True)["tools"])

    def recall(self, calls: Iterable[FunctionCall]) -> None:
        """Take note of calls that were answered in an earlier session."""
        for call in calls:
            self._canned.find(call.name or "", call.args or {})

    def answer(self, call: FunctionCall) -> FunctionResponse:
        """Return what comes back from `call`.

        Raises:
            TrialError: nothing is given for it.

        """
        found = self._canned.find(call.name or "", call.args or {})
        if found is None:
            raise TrialError(
                "unmocked",
                f"the model called {_shown(call)}, for which there is no canned result; give one "
                "in `results` of the agent or in `tool_mocks` of the case, as nothing is really "
                "called here",
            )
        response: dict[str, Any] = as_response(found.result)
        if found.error is not None:
            response = {"error": found.error}
        return FunctionResponse(id=call.id, name=call.name, response=response)


def _shown(call: FunctionCall) -> str:
    args = ", ".join(f"{name}={value!r}" for name, value in (call.args or {}).items())
    return f"{one_line(call.name or '', SHOWN_CHARS)}({one_line(args, SHOWN_CHARS)})"
