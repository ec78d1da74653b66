"""Output of `adk eval` (ADK 2.13.0): counts and, with details, every case.

The lines, their order and their widths are ADK's (`google/adk/cli/cli_eval.py`).  Agents and
evalsets are not trusted: every line is made harmless, and long values are cut.
"""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from ci_eval.cli.adk.case_results import (
    CaseResult,
    EvalStatus,
    InvocationResult,
    MetricResult,
    criterion_of,
)
from ci_eval.cli.adk.details import RubricScore
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.records.model import Invocation, Record, ToolCall
from ci_eval.text.templates import terminal

MAX_LINES = 200
"""Maximum number of lines shown of a value."""
_STARS = "*" * 69
_FEWER_STARS = "*" * 68
_DASHES = "-" * 69
_VALUE_AT = 30
"""The column where values begin, behind a name that is not longer."""
_WIDTH = 80
"""Column at which values wrap."""
_BREAKDOWN_AT = 20
_TOKENS = (
    ("total_tokens", 1),
    ("input_tokens", 2),
    ("prompt_tokens", 3),
    ("cached_tokens", 4),
    ("tool_use_tokens", 3),
    ("output_tokens", 2),
    ("candidates_tokens", 3),
    ("reasoning_tokens", 3),
)
"""The kinds of tokens with the depth of each: it is a part of what stands above it, further out."""
_SECONDS = (
    ("total_seconds", 1),
    ("model_seconds", 2),
    ("tool_seconds", 2),
    ("framework_seconds", 2),
)


class Counts(NamedTuple):
    """How the cases of an evalset ended; what is not passed has failed, as ADK counts."""

    passed: int = 0
    failed: int = 0

    def with_case(self, *, passed: bool) -> "Counts":
        """Return the counts with one more case."""
        return Counts(self.passed + passed, self.failed + (not passed))


def criteria_line(criteria: Mapping[str, AnyCriterion]) -> str:
    """Return the line that says what is judged."""
    judged = {
        name: said if said.keys() > {"threshold"} else each.threshold
        for name, each in criteria.items()
        if each.threshold is not None
        for said in (criterion_of(each),)
    }
    return _line(f"Using evaluation criteria: criteria={judged!r}", limit=2_000)


def counts_lines(counts: Mapping[str, Counts]) -> Iterator[str]:
    """Yield the lines about each evalset, by its id."""
    yield _STARS
    yield "Eval Run Summary"
    for eval_set_id, each in counts.items():
        yield _line(f"{eval_set_id}:")
        yield f"  Tests passed: {each.passed}"
        yield f"  Tests failed: {each.failed}"


def case_lines(case: CaseResult) -> Iterator[str]:
    """Yield the lines about one case."""
    yield _FEWER_STARS
    yield _line(f"Eval Set Id: {case.eval_set_id}")
    yield _line(f"Eval Id: {case.eval_id}")
    yield f"Overall Eval Status: {case.final_eval_status.name}"
    for metric in case.overall_eval_metric_results:
        yield _DASHES
        yield from _metric_lines(metric)
    invocations = case.eval_metric_result_per_invocation
    if not invocations:
        return
    yield _DASHES
    yield "Invocation Details:"
    for number, invocation in enumerate(invocations, 1):
        yield ""
        yield f"Invocation {number} of {len(invocations)}"
        for name, value in _fields(invocation):
            yield from _field_lines(name, value)
    yield from ("", "")


def _metric_lines(metric: MetricResult) -> Iterator[str]:
    yield _line(
        f"Metric: {metric.metric_name}, Status: {metric.eval_status.name}, "
        f"Score: {metric.score}, Threshold: {metric.threshold}"
    )
    details = metric.details
    if details.token_usage_details:
        yield "Token breakdown:"
        yield from _breakdown(details.token_usage_details, _TOKENS, "_tokens", _count)
    if details.duration_details:
        yield "Duration breakdown:"
        yield from _breakdown(details.duration_details, _SECONDS, "_seconds", _seconds)
    if details.rubric_scores:
        yield "Rubric Scores:"
        for each in details.rubric_scores:
            yield _line(f"Rubric: {each.rubric_id}, {_verdict(each)}", limit=2_000)


def _breakdown(
    details: Record,
    rows: Iterable[tuple[str, int]],
    ending: str,
    shown: Callable[[float | None], str],
) -> Iterator[str]:
    for name, depth in rows:
        label = f"{'  ' * depth}{name.removesuffix(ending).replace('_', ' ')}:"
        yield f"{label:<{_BREAKDOWN_AT}}{shown(getattr(details, name))}"


def _fields(invocation: InvocationResult) -> Iterator[tuple[str, str]]:
    """Yield the names and texts that are shown of an invocation."""
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
    """Yield a value behind its name; each line of it wraps by itself."""
    lines = [
        wrapped
        for line in value.splitlines()[: MAX_LINES + 1] or ["(none)"]
        for wrapped in textwrap.wrap(line[: MAX_LINES * _WIDTH], _WIDTH) or [""]
    ]
    if len(lines) > MAX_LINES:
        lines[MAX_LINES:] = ["…"]
    head = f"  {_line(name)}: ".ljust(_VALUE_AT)
    for number, line in enumerate(lines):
        indent = " " * (len(line) - len(line.lstrip(" ")))
        yield f"{' ' * len(head) if number else head}{indent}{_line(line)}"


def _line(text: str, *, limit: int = 500) -> str:
    return terminal(text, limit)
