"""Required and forbidden tools, the order of tool calls, and errors in their results."""

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field

from ci_eval.criteria._share_score import NotEmpty, Texts, share
from ci_eval.criteria._tool_trajectory import OfTrajectory, answers_of, calls_of, is_called, shown
from ci_eval.plugins.points import criterion
from ci_eval.records.cases import EvalCase, Invocation, Json, Status, ToolCall
from ci_eval.records.results import Score


@criterion("ci/required_tools")
class RequiredTools(OfTrajectory):
    """The share of required tools that were called at least once in the conversation.

    1 if each of them was called, 0 if none was; arguments, order and further calls do not matter.
    The required tools are those in `tools`, or else those whose calls the case expects; without
    either, the case is skipped. A trace without a record of tool calls is an error.
    """

    needs_reference = True
    shorthand = "tools"

    tools: Texts | None = None
    """A tool, or a list of tools, instead of those that the cases expect. `*` matches anything:
    any tool that starts with `get_` satisfies `get_*`."""

    def lacks(self, case: EvalCase) -> str:
        """Return a message if no tool call is expected; empty otherwise."""
        return "" if self._required(case) else "expects no tool call"

    def judged_by(self, case: EvalCase, invocations: Sequence[Invocation]) -> Score:
        """Look for each required tool."""
        required, calls = self._required(case), calls_of(invocations)
        if not required:
            return self.scored(None, reason=self.lacks(case))
        missing = [name for name in required if not any(is_called(call, name) for call in calls)]
        value = share(name not in missing for name in required)
        return self.scored(value, evidence={"missing_tools": missing, "called": _names(calls)})

    def _required(self, case: EvalCase) -> list[str]:
        if self.tools:
            return list(dict.fromkeys(self.tools))
        expected = calls_of(case.conversation or ())
        return list(dict.fromkeys(call.name for call in expected if call.name))


@criterion("ci/forbidden_tools")
class ForbiddenTools(OfTrajectory):
    """The share of forbidden tools that were never called in the conversation.

    1 if none of them was called, 0 if each was. A trace without a record of tool calls is an
    error, because calls may have gone unnoticed.
    """

    shorthand = "tools"
    example: ClassVar = {"tools": ["delete_*", "send_email"]}

    tools: Texts
    """A tool, or a list of tools. `*` matches anything: `delete_*` forbids every tool that starts
    with `delete_`."""

    def judged_by(self, case: EvalCase, invocations: Sequence[Invocation]) -> Score:
        """Look for calls of forbidden tools."""
        del case
        forbidden, calls = list(dict.fromkeys(self.tools)), calls_of(invocations)
        wrong = [call for call in calls if any(is_called(call, name) for name in forbidden)]
        value = share(not any(is_called(call, name) for call in wrong) for name in forbidden)
        return self.scored(value, evidence={"forbidden_calls": shown(wrong)})


def _as_chains(value: object) -> object:
    flat = isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
    return (value,) if flat and value else value


def _checked(chains: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    if any(len(chain) < 2 for chain in chains):
        raise ValueError("needs at least two tools in order")
    order: TopologicalSorter[str] = TopologicalSorter()
    for first, then in (pair for chain in chains for pair in pairwise(chain)):
        order.add(then, first)
    try:
        order.prepare()
    except CycleError as exc:
        raise ValueError(f"is a circular order: {' > '.join(exc.args[1])}") from exc
    return chains


_Chains = Annotated[
    tuple[tuple[NotEmpty, ...], ...],
    BeforeValidator(_as_chains, json_schema_input_type=Sequence[str] | Sequence[Sequence[str]]),
    Field(min_length=1),
    AfterValidator(_checked),
]


@criterion("ci/tool_order")
class ToolOrder(OfTrajectory):
    """The share of steps, from one tool to the next, that were taken in the right order.

    `[search, book, pay]` has two steps. A step holds if both tools were called in the conversation
    and the first call of the former came before the first call of the latter. Other calls may come
    in between, and tools may be called again. Several lists form a partial order: tools that no
    list connects may come in any order.

    1 if every step holds, 0 if none does. With `if_called`, a step whose second tool was not called
    is left out, and a case without any step left is skipped. A trace without a record of tool calls
    is an error.
    """

    shorthand = "order"
    example: ClassVar = {"order": ["find_order", "refund"]}

    order: _Chains
    """Tools, first to last; or a list of such lists."""
    if_called: bool = False
    """Require only that no tool is called before its predecessor, not that each is called."""

    def judged_by(self, case: EvalCase, invocations: Sequence[Invocation]) -> Score:
        """Compare the first calls of the tools of each step."""
        del case
        calls = calls_of(invocations)
        first = {call.name: len(calls) - at for at, call in enumerate(reversed(calls), 1)}
        steps = dict.fromkeys(pair for chain in self.order for pair in pairwise(chain))
        looked_at = [step for step in steps if step[1] in first or not self.if_called]
        if not looked_at:
            return self.scored(None, reason="no tool with a predecessor was called")
        holding = [
            former in first and latter in first and first[former] < first[latter]
            for former, latter in looked_at
        ]
        broken: list[Json] = [
            " > ".join(step) for step, holds in zip(looked_at, holding, strict=True) if not holds
        ]
        evidence: dict[str, Json] = {"broken_steps": broken, "called": _names(calls)}
        return self.scored(share(holding), evidence=evidence)


def _names(calls: Sequence[ToolCall]) -> list[Json]:
    return [each["name"] for each in shown(calls)]


_FAILED = frozenset({"error", "failed", "failure"})
_MAX_SHOWN = 20
"""Maximum number of failed calls in the evidence."""


@criterion("ci/tool_errors")
class ToolErrors(OfTrajectory):
    """The share of tool results in the conversation that are not errors.

    1 if no call failed, 0 if all did. A call failed if its result has a non-empty `error` or
    `exception`, `isError` or `is_error` true, `success` false, or a `status` of `error`, `failed`
    or `failure`; if its `result` is such an object; or if its `result` is a text that begins with
    `Error:`.

    Calls without a recorded result do not count. If tools were called but no result was recorded,
    or the trace has no record of tool calls, the score is an error; a conversation without tool
    calls is skipped.
    """

    def judged_by(self, case: EvalCase, invocations: Sequence[Invocation]) -> Score:
        """Look for errors in the results."""
        del case
        answers = [each for invocation in invocations for each in answers_of(invocation)]
        if not answers and not calls_of(invocations):
            return self.scored(None, reason="no tool was called")
        if not answers:
            reason = "tools were called, but the trace has no record of their results"
            return self.unscored(Status.ERROR, reason)
        wrong = [each for each in answers if has_failed(each.response)]
        failed = [{"name": each.name, "answer": each.response} for each in wrong[:_MAX_SHOWN]]
        value = (len(answers) - len(wrong)) / len(answers)
        return self.scored(value, evidence={"failed_calls": failed})


def has_failed(answer: Json) -> bool:
    """Return True if a tool result is an error."""
    if not isinstance(answer, Mapping):
        return False
    result = answer.get("result")
    if isinstance(result, str):
        return result.lstrip().lower().startswith("error:") or _tells_of_error(answer)
    return _tells_of_error(answer) or (isinstance(result, Mapping) and _tells_of_error(result))


def _tells_of_error(answer: Mapping[str, Json]) -> bool:
    status = answer.get("status")
    is_failed = isinstance(status, str) and status.strip().lower() in _FAILED
    is_marked = any(answer.get(key) is True for key in ("isError", "is_error"))
    has_error = any(answer.get(key) for key in ("error", "exception"))
    return is_failed or is_marked or has_error or answer.get("success") is False
