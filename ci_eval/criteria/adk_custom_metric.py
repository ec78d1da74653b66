"""ADK's custom metrics: user code, called as ADK calls it."""

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from ci_eval.plugins.points import Scorer, WorkerCriterion, criterion
from ci_eval.records.bounds import MIN_SPAN, Value
from ci_eval.records.cases import (
    AdkRecord,
    EvalCase,
    Invocation,
    Json,
    Record,
    Rubric,
    Status,
    Stored,
)
from ci_eval.records.errors import BadAnswerError, TrialError
from ci_eval.records.results import InvocationScore, Score
from ci_eval.records.trials import Trace
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.workers.user_function import UnderPython
from ci_eval.runtime.workers.worker_pool import Adapter, Pool

_CODE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")


def _is_dotted(value: str) -> str:
    if not _CODE.fullmatch(value):
        expected = "expected 'module.name', such as 'tests.metrics.polite'"
        raise ValueError(f"{expected}, found {value!r}")
    return value


Code = Annotated[str, AfterValidator(_is_dotted)]
"""A function or a class, `module.name`."""


class Interval(AdkRecord):
    """The range of a metric's values."""

    min_value: Value
    """Lower bound."""
    open_at_min: bool = False
    """Whether the lower bound itself is excluded."""
    max_value: Value
    """Upper bound."""
    open_at_max: bool = False
    """Whether the upper bound itself is excluded."""

    @model_validator(mode="after")
    def _is_an_interval(self) -> Self:
        if self.max_value - self.min_value < MIN_SPAN:
            raise ValueError("'min_value' must be less than 'max_value'")
        return self

    def holds(self, value: float) -> bool:
        """Return True if `value` lies in the range."""
        low = self.min_value < value if self.open_at_min else self.min_value <= value
        return low and (value < self.max_value if self.open_at_max else value <= self.max_value)


class MetricValueInfo(AdkRecord):
    """Description of a metric's values."""

    interval: Interval | None = None
    """Range of the values. Default: any number."""


class MetricInfo(AdkRecord):
    """Description of a metric, as in ADK's `MetricInfo`."""

    metric_value_info: MetricValueInfo
    """Description of its values."""
    metric_name: str | None = None
    """Ignored: ADK, too, replaces it with the metric's own name."""
    description: str | None = None
    """Text for readers."""
    requires_threshold: bool = True
    """Ignored: the presence of a threshold decides."""


_USUAL = MetricInfo(metric_value_info={"interval": {"min_value": 0, "max_value": 1}})


class AdkMetric(Record):
    """A metric as named in ADK's files."""

    code: Code
    """Function or class, `module.name`, as in ADK's `code_config`. Modules are imported from the
    configuration's directory, which is the working directory, and from `PYTHONPATH`."""
    criterion: dict[str, Json] = Field(default_factory=dict)
    """The options of `eval_metric.criterion` other than the threshold."""
    metric_info: MetricInfo = _USUAL
    """ADK's description of the metric; its range is `metric_value_info: {interval: {min_value,
    max_value}}` (default: 0 to 1)."""
    metric_name: str | None = None
    """Metric name passed to the code (default: the name of the code)."""

    @field_validator("criterion")
    @classmethod
    def _has_no_threshold(cls, value: dict[str, Json]) -> dict[str, Json]:
        if "threshold" in value:
            raise ValueError("'threshold' belongs beside 'criterion', not inside it")
        return value

    @property
    def allowed(self) -> Interval | None:
        """Range of the metric's values."""
        return self.metric_info.metric_value_info.interval


@criterion("adk/custom_metric")
class CustomMetric(UnderPython, AdkMetric, WorkerCriterion):
    """A metric of your own written for ADK: a function or an `Evaluator` class.

    A function is called as in ADK 2.13.0, `(eval_metric, actual_invocations,
    expected_invocations, conversation_scenario)` with google-adk objects, sync or async; its
    `eval_metric.threshold` is `None`, and `eval_metric.criterion` has the threshold and the
    options of `criterion`.  A class is created with `eval_metric=`, and its
    `evaluate_invocations` is called.  The code runs in a separate process; sync code runs in
    threads, several trials at once.

    The score is the `overall_score` of the `EvaluationResult`.  ci-eval compares it with the
    threshold itself, so that repeats and baselines are comparable.  In ADK, the code itself returns
    `PASSED` or `FAILED`; if that contradicts the threshold, the score is an error.  Also errors:
    `NOT_EVALUATED`, a result without a score, a score outside the range of `metric_info`, a result
    that does not cover each invocation, and exceptions.  Without a threshold, the score is only
    measured and shown.

    The `custom_metrics` of an eval config named in `criteria: {from: …}` become criteria of this
    kind.  They run under the `interpreter` of the configuration's agents, if all agents that set
    one set the same.  If the module changed, scores are not compared with those of a baseline.
    """

    takes_threshold = "optionally"
    shorthand = "code"
    example: ClassVar[Mapping[str, Json]] = {"code": "tests.metrics.polite"}

    lower_is_better: bool = False
    """Whether lower values are better, so that cases pass up to the threshold."""
    timeout_s: float = Field(default=300.0, gt=0)
    """Timeout of one call in seconds; exceeding it is an error."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Bounds of the range in `metric_info`."""
        return (self.allowed.min_value, self.allowed.max_value) if self.allowed else None

    @property
    def direction(self) -> Literal["higher", "lower"]:
        """The better direction, from `lower_is_better`."""
        return "lower" if self.lower_is_better else "higher"

    def options(self) -> dict[str, Json]:
        """Return the options that affect the value, not where and how long it runs."""
        return self.model_dump(mode="json", include={*AdkMetric.model_fields, "lower_is_better"})

    @property
    def module(self) -> str:
        """The module of the code."""
        return self.code.rpartition(".")[0]

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[Scorer]:
        """Start a worker for the first trial; leaving the context ends it."""
        target = ":".join(self.code.rsplit(".", 1))
        # Converts ci-eval's JSON into google.adk objects, in the worker.
        adapter, check = Adapter("adk_metric"), self.code_check(self.module, context)
        async with self.pool_of(target, context, adapter=adapter, check=check) as pool:
            yield _Metric(self, pool)


class _Result(Stored):
    """The metric's result for one invocation."""

    score: float | None
    status: Literal["PASSED", "FAILED", "NOT_EVALUATED", "INFORMATIONAL"]
    rubrics: tuple[dict[str, Json], ...]


class _Results(_Result):
    """The metric's result for a conversation, and for each of its invocations."""

    invocations: tuple[_Result, ...]


@dataclass(frozen=True)
class _Metric:
    """The metric, in its worker."""

    criterion: CustomMetric
    pool: Pool

    async def score(self, case: EvalCase, trace: Trace) -> Score:
        """Return the metric's score of one trial."""
        name = self.criterion.code
        reply = await self._reply(_message(self.criterion, case, trace))
        if "unexpected" in reply:
            found = reply["unexpected"]
            raise TrialError("protocol", f"{name} returned {found}; expected an EvaluationResult")
        results = _Results.model_validate(reply)
        wrong = next(_faults(self.criterion, results, len(trace.invocations)), "")
        if wrong:
            raise TrialError("protocol", f"{name} {wrong}")
        parts = map(_part, results.invocations)
        return self.criterion.scored(results.score, parts, evidence=_evidence(results))

    async def _reply(self, message: dict[str, Json]) -> dict[str, Json]:
        metric = self.criterion
        try:
            reply: dict[str, Json] = await self.pool.call(
                message, name=metric.code, timeout_s=metric.timeout_s
            )
        except BadAnswerError as exc:
            raise TrialError("protocol", f"{metric.code} {exc}") from exc
        except TrialError as exc:
            if exc.kind != "start":
                raise
            where = metric.interpreter or "the Python of ci-eval"
            hint = (
                f"it was looked for under {where}, in the configuration's directory and on "
                "PYTHONPATH; google-adk and the metric's dependencies must be installed there"
            )
            raise TrialError("start", f"{exc}\n{hint}") from exc
        return reply


# --- Input of the metric ----------------------------------------------------------------------


def _message(metric: CustomMetric, case: EvalCase, trace: Trace) -> dict[str, Json]:
    expected, scenario = case.conversation, case.conversation_scenario
    judged = [_with_rubrics(turn, at, case) for at, turn in enumerate(trace.invocations)]
    return {
        "metric": {
            "metric_name": metric.metric_name or metric.code.rpartition(".")[2],
            "threshold": metric.threshold,
            "criterion": {**metric.criterion, "threshold": metric.threshold},
            "custom_function_path": metric.code,
        },
        "actual": _dumped(judged),
        "expected": None if expected is None else _dumped(expected),
        "scenario": scenario and scenario.model_dump(mode="json", exclude_none=True),
    }


def _with_rubrics(turn: Invocation, at: int, case: EvalCase) -> Invocation:
    """Return an observed invocation with the rubrics of the case and of the expected invocation."""
    expected = (case.conversation or ())[at : at + 1]
    lists = (turn.rubrics, case.rubrics, *(each.rubrics for each in expected))
    rubrics: dict[str, Rubric] = {each.rubric_id: each for some in lists for each in some or ()}
    return turn.model_copy(update={"rubrics": tuple(rubrics.values()) or None})


def _dumped(invocations: Iterable[Invocation]) -> list[Json]:
    return [each.model_dump(mode="json", exclude_none=True) for each in invocations]


# --- Output of the metric ---------------------------------------------------------------------

_STATUSES = {
    "PASSED": Status.PASSED,
    "FAILED": Status.FAILED,
    "NOT_EVALUATED": Status.SKIPPED,
    "INFORMATIONAL": Status.PASSED,
}
"""Status of an invocation, for information only."""


def _faults(metric: CustomMetric, found: _Results, turns: int) -> Iterator[str]:
    """Yield why the returned value is not a score, as verb phrases."""
    status, score = found.status, found.score
    if status == "NOT_EVALUATED":
        yield "returned NOT_EVALUATED, so nothing was measured"
    elif score is None:
        yield f"returned {status} without a score"
    elif metric.allowed and not metric.allowed.holds(score):
        low, high = metric.allowed.min_value, metric.allowed.max_value
        yield (
            f"returned {score:g}, which is not between {low:g} and {high:g}, "
            "the range in `metric_info`"
        )
    elif metric.threshold is not None and status == "INFORMATIONAL":
        yield "returned INFORMATIONAL, which cannot pass or fail; remove the threshold"
    elif metric.threshold is not None and _STATUSES[status] is not metric.status_of(score):
        verb = "passes" if status == "FAILED" else "fails"
        yield (
            f"returned {score:g} and {status}, but {score:g} {verb} the threshold "
            f"{metric.threshold:g}; have it use `eval_metric.criterion.threshold`, or set "
            "`lower_is_better: true`"
        )
    if len(found.invocations) != turns and status != "INFORMATIONAL":
        yield f"returned {len(found.invocations)} results for {turns} invocations"


def _part(found: _Result) -> InvocationScore:
    status = _STATUSES[found.status]
    shown = _evidence(found) if status is Status.FAILED and found.rubrics else None
    return InvocationScore(status=status, value=found.score, evidence=shown)


def _evidence(found: _Result) -> dict[str, Json]:
    rubrics = {"rubrics": list(found.rubrics)} if found.rubrics else {}
    return {"status": found.status, **rubrics}
