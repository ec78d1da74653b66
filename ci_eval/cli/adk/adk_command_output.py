"""Output of `adk eval` (ADK 2.13.0): counts and, with details, every case.

The lines, their order and their widths are ADK's (`google/adk/cli/cli_eval.py`).  Agents and
evalsets are not trusted: every line is sanitized, and long values are truncated.
"""

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping

from ci_eval.cli.adk.adk_eval_result_schema import (
    CaseResult,
    EvalStatus,
    InvocationResult,
    MetricResult,
    criterion_of,
)
from ci_eval.cli.adk.adk_eval_score_details import RubricScore
from ci_eval.cli.console import text_lines
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.records.cases import Invocation, ToolCall
from ci_eval.text.templates import terminal

MAX_LINES = 200
"""Maximum number of lines shown of a value."""
_VALUE_AT = 30
"""Minimum column of values, which follow their name."""
_WIDTH = 80
"""Column at which values wrap."""


def criteria_line(criteria: Mapping[str, AnyCriterion]) -> str:
    """Return the line with the criteria."""
    judged = {
        name: said if said.keys() > {"threshold"} else each.threshold
        for name, each in criteria.items()
        if each.threshold is not None
        for said in (criterion_of(each),)
    }
    return terminal(f"Using evaluation criteria: criteria={judged!r}", 2_000)


def counts_lines(counts: Mapping[str, Counter[bool]]) -> Iterator[str]:
    """Yield the lines about each evalset; `True` maps to its passed cases, `False` to the others.

    As in ADK, all that did not pass have failed.
    """
    yield "*" * 69
    yield "Eval Run Summary"
    for eval_set_id, each in counts.items():
        yield terminal(f"{eval_set_id}:")
        yield f"  Tests passed: {each[True]}"
        yield f"  Tests failed: {each[False]}"


def case_lines(case: CaseResult) -> list[str]:
    """Return the lines about one case."""
    return text_lines(
        "adk_case.txt.j2",
        case=case,
        count=_count,
        seconds=_seconds,
        verdict=_verdict,
        field_lines=_invocation_lines,
    )


def _invocation_lines(invocation: InvocationResult) -> list[str]:
    return [line for field in _fields(invocation) for line in _field_lines(*field)]


def _fields(invocation: InvocationResult) -> Iterator[tuple[str, str]]:
    """Yield the names and values shown of an invocation."""
    actual, expected = invocation.actual_invocation, invocation.expected_invocation
    yield "prompt", actual.user
    if expected:
        yield "expected_response", expected.response
    yield "actual_response", actual.response
    if expected:
        yield "expected_tool_calls", _calls(expected)
    yield "actual_tool_calls", _calls(actual)
    for metric in invocation.eval_metric_results:
        yield metric.metric_name, _cell(metric)
        for each in metric.details.rubric_scores or ():
            yield "rubric", f"{each.rubric_id}\n{_verdict(each)}"


def _calls(invocation: Invocation) -> str:
    return "\n".join(map(_call, invocation.tool_calls))


def _call(call: ToolCall) -> str:
    args = [f"{name}={value!r}" for name, value in (call.args or {}).items()]
    return f"{call.name}(\n  " + ",\n  ".join(args) + ")" if args else f"{call.name}()"


def _cell(metric: MetricResult) -> str:
    """Describe the result of one metric for an invocation."""
    if metric.eval_status is not EvalStatus.INFORMATIONAL:
        return f"{metric.eval_status.name} ({metric.score})"
    if metric.score is None:
        return "n/a"
    tokens, spent = metric.details.token_usage_details, metric.details.duration_details
    if tokens:
        parts = f"in {_count(tokens.input_tokens)}, out {_count(tokens.output_tokens)}"
        return f"{metric.score:g} ({parts})"
    if spent is None:
        return f"{metric.score:g}"
    if spent.model_seconds is None:
        return f"{metric.score:.2f}s"
    parts = (
        f"model {_seconds(spent.model_seconds)}, tool {_seconds(spent.tool_seconds)}, "
        f"framework {_seconds(spent.framework_seconds)}"
    )
    return f"{metric.score:.2f}s ({parts})"


def _verdict(rubric: RubricScore) -> str:
    return f"Score: {rubric.score}, Reasoning: {rubric.rationale}"


def _count(value: float | None) -> str:
    return "n/a" if value is None else f"{value:g}"


def _seconds(value: float | None) -> str:
    return "n/a" if value is None else f"{value:g}s"


def _field_lines(name: str, value: str) -> Iterator[str]:
    """Yield the lines of a name and its value; each line of the value wraps separately."""
    lines = [
        wrapped
        for line in value.splitlines()[: MAX_LINES + 1] or ["(none)"]
        for wrapped in textwrap.wrap(line[: MAX_LINES * _WIDTH], _WIDTH) or [""]
    ]
    if len(lines) > MAX_LINES:
        lines[MAX_LINES:] = ["…"]
    head = f"  {terminal(name)}: ".ljust(_VALUE_AT)
    for number, line in enumerate(lines):
        indent = " " * (len(line) - len(line.lstrip(" ")))
        yield f"{' ' * len(head) if number else head}{indent}{terminal(line)}"
