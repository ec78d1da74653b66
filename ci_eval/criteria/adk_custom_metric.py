"""ADK's custom metrics: code of the user's, called as ADK calls it."""

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from ci_eval.plugins.points import Scorer, WorkerCriterion, criterion
from ci_eval.records.bounds import MIN_SPAN, Value
from ci_eval.records.errors import BadAnswerError, TrialError
from ci_eval.records.model import (
    AdkRecord,
    EvalCase,
    Invocation,
    Json,
    Record,
    Rubric,
    Status,
    Stored,
)
from ci_eval.records.results import InvocationScore, Score
from ci_eval.records.trials import Trace
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.workers.calls import call
from ci_eval.runtime.workers.pool import Adapter, Pool
from ci_eval.runtime.workers.target import UnderPython, digest_of

ADAPTER = Adapter("adk_metric")
"""What turns our JSON into google.adk's objects, in the worker."""
_CODE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")


def _is_dotted(value: str) -> str:
    if not _CODE.fullmatch(value):
        expected = "expected 'module.name', such as 'tests.metrics.polite'"
        raise ValueError(f"{expected}, found {value!r}")
    return value


Code = Annotated[str, AfterValidator(_is_dotted)]
"""A function or a class, `module.name`."""


class Interval(AdkRecord):
    """The values that a metric may have."""

    min_value: Value
    """The least one."""
    open_at_min: bool = False
    """Whether values come near to it, and never reach it."""
    max_value: Value
    """The greatest one."""
    open_at_max: bool = False
    """Whether values come near to it, and never reach it."""

    @model_validator(mode="after")
    def _is_an_interval(self) -> Self:
        if self.max_value - self.min_value < MIN_SPAN:
            raise ValueError("'min_value' must be less than 'max_value'")
        return self

    def holds(self, value: float) -> bool:
        """Say whether `value` is one of them."""
        low = self.min_value < value if self.open_at_min else self.min_value <= value
        return low and (value < self.max_value if self.open_at_max else value <= self.max_value)


class MetricValueInfo(AdkRecord):
    """What is known of a metric's values."""

    interval: Interval | None = None
    """The values that it may have; left out, any number."""


class MetricInfo(AdkRecord):
    """What is known of a metric, as ADK's `MetricInfo` has it."""

    metric_value_info: MetricValueInfo
    """What is known of its values."""
    metric_name: str | None = None
    """Not read: ADK, too, puts the metric's own name in its place."""
    description: str | None = None
    """For readers."""
    requires_threshold: bool = True
    """Not read: whether there is a threshold says it."""


_USUAL = MetricInfo(metric_value_info={"interval": {"min_value": 0, "max_value": 1}})


class AdkMetric(Record):
    """A metric as ADK's files name it."""

    code: Code
    """The function or class, `module.name`, as `code_config` of ADK names it; modules are found
    from the folder of the configuration, which is the working directory, and on `PYTHONPATH`."""
    criterion: dict[str, Json] = Field(default_factory=dict)
    """What `eval_metric.criterion` has beside the threshold."""
    metric_info: MetricInfo = _USUAL
    """What ADK knows of the metric: its interval is `metric_value_info: {interval: {min_value,
    max_value}}`, and from 0 to 1 where this is left out."""
    metric_name: str | None = None
    """What the code is told that the metric is called; left out, the name of the code."""

    @field_validator("criterion")
    @classmethod
    def _has_no_threshold(cls, value: dict[str, Json]) -> dict[str, Json]:
        if "threshold" in value:
            raise ValueError("'threshold' belongs beside 'criterion', not into it")
        return value

    @property
    def allowed(self) -> Interval | None:
        """The values that the metric may have."""
        return self.metric_info.metric_value_info.interval


@criterion("adk/custom_metric")
class CustomMetric(UnderPython, AdkMetric, WorkerCriterion):
    """A metric of your own that was written for ADK, a function or an `Evaluator` class.

    A function is called as ADK 2.13.0 calls it, `(eval_metric, actual_invocations,
    expected_invocations, conversation_scenario)` with objects of google-adk, sync or async; its
    `eval_metric.threshold` is `None`, and `eval_metric.criterion` has the threshold and the
    options of `criterion`.  A class is made with `eval_metric=` and its `evaluate_invocations`
    called.  It runs in a process of its own; sync code runs in threads, several trials at once.

    The score is the `overall_score` of the `EvaluationResult`, judged by the threshold here, so
    that repeats and baselines can be compared.  Since in ADK the code itself says `PASSED` or
    `FAILED`, a score on the other side of the threshold is an error that says so, and neither
    passes nor fails.  What was not evaluated is an error, too, and so are a result without a
    score, one outside the interval of `metric_info`, one that has not a result for each
    invocation, and what the code raises.  Without a threshold it is measured and shown.

    The `custom_metrics` of an eval config that `criteria: {from: …}` names become criteria of
    this kind.  They run under the `interpreter` of the configuration's agents, where those that
    name one agree.  Where the module changed, scores are not compared with those of a baseline.
    """

    takes_threshold: ClassVar[Literal["always", "optionally", "never"]] = "optionally"
    shorthand: ClassVar[str] = "code"
    example: ClassVar[Mapping[str, Json]] = {"code": "tests.metrics.polite"}

    lower_is_better: bool = False
    """Whether it passes up to the threshold, not from it on."""
    timeout_s: float = Field(default=300.0, gt=0)
    """Seconds that one call may take; it is an error then."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The ends of the interval in `metric_info`."""
        return (self.allowed.min_value, self.allowed.max_value) if self.allowed else None

    @property
    def direction(self) -> Literal["higher", "lower"]:
        """What is better, as `lower_is_better` says."""
        return "lower" if self.lower_is_better else "higher"

    def options(self) -> dict[str, Json]:
        """Return what decides the value; where and how long it runs does not."""
        return self.model_dump(mode="json", include={*AdkMetric.model_fields, "lower_is_better"})

    def made_of(self, context: RunContext) -> Json:
        """Return a digest of the module, where that is one of the repository's."""
        return digest_of(self.code.rpartition(".")[0], context)

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[Scorer]:
        """Start a worker when the first trial is to be scored; leaving the context ends it."""
        target = ":".join(self.code.rsplit(".", 1))
        async with self.pool_of(target, context, adapter=ADAPTER) as pool:
            yield _Metric(self, pool)


class _Result(Stored):
    """What the metric says of one invocation."""

    score: float | None
    status: Literal["PASSED", "FAILED", "NOT_EVALUATED", "INFORMATIONAL"]
    rubrics: tuple[dict[str, Json], ...]


class _Results(_Result):
    """What the metric says of a conversation, and of each invocation in it."""

    invocations: tuple[_Result, ...]


@dataclass(frozen=True)
class _Metric:
    """The metric, in its worker."""

    criterion: CustomMetric
    pool: Pool

    async def score(self, case: EvalCase, trace: Trace) -> Score:
        """Return what the metric says of one trial."""
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
            reply: dict[str, Json] = await call(
                self.pool, message, name=metric.code, timeout_s=metric.timeout_s
            )
        except BadAnswerError as exc:
            raise TrialError("protocol", f"{metric.code} {exc}") from exc
        except TrialError as exc:
            if exc.kind != "start" or "`interpreter`" in str(exc):
                raise  # it says all
            where = metric.interpreter or "the Python of ci-eval"
            hint = (
                f"it was looked for under {where}, from the folder of the configuration and on "
                "PYTHONPATH; `interpreter` names a Python that has google-adk and what it imports"
            )
            raise TrialError("start", f"{exc}\n{hint}") from exc
        return reply


# --- What the metric is told ------------------------------------------------------------------


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
    """Return an observed invocation with the rubrics that ADK adds to it: the case's, and its."""
    expected = (case.conversation or ())[at : at + 1]
    lists = (turn.rubrics, case.rubrics, *(each.rubrics for each in expected))
    rubrics: dict[str, Rubric] = {each.rubric_id: each for some in lists for each in some or ()}
    return turn.model_copy(update={"rubrics": tuple(rubrics.values()) or None})


def _dumped(invocations: Iterable[Invocation]) -> list[Json]:
    return [each.model_dump(mode="json", exclude_none=True) for each in invocations]


# --- What it says -----------------------------------------------------------------------------

_STATUSES = {
    "PASSED": Status.PASSED,
    "FAILED": Status.FAILED,
    "NOT_EVALUATED": Status.SKIPPED,
    "INFORMATIONAL": Status.PASSED,
}
"""The status of an invocation; nothing is decided by it."""


def _faults(metric: CustomMetric, found: _Results, turns: int) -> Iterator[str]:
    """Yield why there is no score in what the metric returned, as verbs."""
    status, score = found.status, found.score
    if status == "NOT_EVALUATED":
        yield "returned NOT_EVALUATED, so nothing was measured"
    elif score is None:
        yield f"returned {status} without a score"
    elif metric.allowed and not metric.allowed.holds(score):
        low, high = metric.allowed.min_value, metric.allowed.max_value
        yield (
            f"returned {score:g}, which is not between {low:g} and {high:g}; "
            "`metric_info` says what it may be"
        )
    elif metric.threshold is not None and status == "INFORMATIONAL":
        yield "returned INFORMATIONAL, so it is not judged: take the threshold away"
    elif metric.threshold is not None and _STATUSES[status] is not metric.status_of(score):
        verb = "passes" if status == "FAILED" else "fails"
        yield (
            f"returned {score:g} and {status}, but {score:g} {verb} the threshold "
            f"{metric.threshold:g}; let it judge by `eval_metric.criterion.threshold`, or say "
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
