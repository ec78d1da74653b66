"""Common options of agents that consist of a model, an instruction and canned tools."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import Field, field_validator

from ci_eval.formats.event_lists import as_response
from ci_eval.records.cases import (
    CannedResults,
    FunctionCall,
    FunctionResponse,
    Json,
    Record,
    ToolMocks,
)
from ci_eval.records.errors import TrialError, UsageError
from ci_eval.records.trials import Trial
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.path_checks import contained
from ci_eval.runtime.workers.canned_tools import Canned
from ci_eval.text.sanitize import one_line
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.yaml_files import read_text

SHOWN_CHARS = 200
"""How many characters of a call's arguments a message shows."""


class InstructionFile(Record):
    """An instruction in a file."""

    file: str
    """Path of the file, relative to the folder of the configuration."""


class Tool(Record):
    """A tool declaration."""

    name: str = Field(min_length=1)
    """Name of the tool."""
    description: str = ""
    """Description for the model."""
    parameters: dict[str, Json] | None = None
    """The JSON schema of its arguments; default: no arguments."""

    def declared(self, schema_key: str = "parameters") -> dict[str, Json]:
        """Return the declaration for the model, with the schema under `schema_key`."""
        schema = {} if self.parameters is None else {schema_key: self.parameters}
        return {"name": self.name, "description": self.description, **schema}


class Prompted(Record):
    """A model with an instruction, and tools with canned results."""

    instruction: str | InstructionFile = ""
    """The system instruction, or `{file: PATH}`. `{name}` is replaced by that value of the session
    state, as in ADK; `{name?}` may be missing from the state."""
    tools: tuple[Tool, ...] = ()
    """The tools that the model may call: each with `name`, `description` and `parameters`, a JSON
    schema."""
    results: CannedResults
    """Canned results of the tools by name, as in `tool_mocks` of a case, which takes precedence.
    Tools are never actually called: a call without a canned result is an error, regardless of
    `unmatched`."""
    max_calls: int = Field(default=10, ge=1)
    """Maximum number of requests to the model in one invocation."""

    @field_validator("tools")
    @classmethod
    def _names_differ(cls, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
        for name, count in Counter(tool.name for tool in tools).items():
            if count > 1:
                raise ValueError(f"two tools are named {name!r}")
        return tools

    def check(self, context: RunContext) -> Iterator[tuple[str, str]]:
        """Yield the errors in the instruction and the canned results."""
        try:
            self.instruction_text(context)
        except UsageError as exc:
            yield "instruction", str(exc)
        names = [tool.name for tool in self.tools]
        for name in self.results:
            if name not in names:
                yield "results", f"there is no tool {name!r} in `tools`{did_you_mean(name, names)}"

    def instruction_text(self, context: RunContext) -> str:
        """Return the instruction, before state values are inserted.

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
    """Insert values of the session's `state` into `instruction`; other braces are unchanged.

    Raises:
        TrialError: it names a value that the state does not have.

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
        hint = f"set it in the case's `session_input.state`, or write {{{name}?}}"
        raise TrialError("start", f"{message}; {hint}")

    return _BRACES.sub(value, instruction)


# --- Tools ------------------------------------------------------------------------------------


class CannedTools:
    """The canned tools of one conversation, with the counts of their calls."""

    def __init__(self, results: CannedResults, trial: Trial) -> None:
        given = ToolMocks(tools=results)
        if trial.case.tool_mocks:
            given = trial.case.tool_mocks.before(given)
        self._canned = Canned(given.model_dump(mode="json", exclude_unset=True)["tools"])

    def recall(self, calls: Iterable[FunctionCall]) -> None:
        """Count calls that were answered in an earlier process."""
        for call in calls:
            self._canned.find(call.name or "", call.args or {})

    def answer(self, call: FunctionCall) -> FunctionResponse:
        """Return the canned response to `call`.

        Raises:
            TrialError: there is none.

        """
        found = self._canned.find(call.name or "", call.args or {})
        if found is None:
            args = ", ".join(f"{name}={value!r}" for name, value in (call.args or {}).items())
            shown = f"{one_line(call.name or '', SHOWN_CHARS)}({one_line(args, SHOWN_CHARS)})"
            message = (
                f"the model called {shown}, which has no canned result; add one to "
                "`results` of the agent or `tool_mocks` of the case (this agent never really calls "
                "tools)"
            )
            raise TrialError("unmocked", message)
        response: dict[str, Any] = as_response(found.result)
        if found.error is not None:
            response = {"error": found.error}
        return FunctionResponse(id=call.id, name=call.name, response=response)
