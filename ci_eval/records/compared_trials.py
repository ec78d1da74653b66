"""A stored trial as a comparison reads it: without evidence and invocations.

These are skipped, which takes a tenth of the time; the other fields have the same types and bounds
as those of `TrialResult`.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from ci_eval.records.bounds import MAX_COUNT, MAX_REPEAT, MAX_ROUND, MAX_SECONDS, MAX_VALUE
from ci_eval.records.cases import Status
from ci_eval.records.model_usage import ModelUsage
from ci_eval.records.model_versions import ServedModel
from ci_eval.records.results import JudgeUsage, RunMeta, Score, TrialResult
from ci_eval.records.trials import Failure, Place

Interval = tuple[float, float]
_MEASURED = (Status.PASSED, Status.FAILED)
_Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]
_Value = Annotated[float, msgspec.Meta(ge=-MAX_VALUE, le=MAX_VALUE)]


class _Key(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    agent: str
    evalset: str
    case: str
    repeat: Annotated[int, msgspec.Meta(ge=0, le=MAX_REPEAT)] = 0

    @property
    def place(self) -> Place:
        """The agent, the evalset and the case."""
        return Place(self.agent, self.evalset, self.case)


class ComparedScore(msgspec.Struct, frozen=True):
    """The fields of `Score`, without evidence and invocations."""

    criterion: str
    name: str
    status: Status
    value: _Value | None = None
    better: Literal["higher", "lower"] = "higher"
    threshold: _Value | None = None
    reason: str = ""
    informational: bool = False
    judging: JudgeUsage | None = None


class ComparedTrial(msgspec.Struct, frozen=True):
    """The fields of `TrialResult`."""

    key: _Key
    status: Status
    error: Failure | None = None
    scores: tuple[ComparedScore, ...] = ()
    duration_s: Annotated[float, msgspec.Meta(ge=0, le=MAX_SECONDS)] = 0.0
    attempts: _Count = 1
    line: _Count | None = None
    case_fingerprint: str = ""
    tags: tuple[str, ...] = ()
    output: str = ""
    messages: tuple[str, ...] = ()
    cut_off: tuple[str, ...] = ()
    simulation: JudgeUsage | None = None
    metered: ModelUsage | None = None
    round: Annotated[int, msgspec.Meta(ge=0, le=MAX_ROUND)] = 0
    confirms: bool = False
    models: tuple[ServedModel, ...] = ()
    mocked: tuple[str, ...] = ()


AnyScore = Score | ComparedScore
AnyTrial = TrialResult | ComparedTrial


def _record(kind: Any, value: Any) -> Any:
    """Validate a value that has a pydantic model."""
    return kind.model_validate(value)


_Entry = tuple[Annotated[int, msgspec.Meta(ge=0)], ComparedTrial]
_trial_in = msgspec.json.Decoder(ComparedTrial, dec_hook=_record).decode
_entry_in = msgspec.json.Decoder(_Entry, dec_hook=_record).decode


def intervals(meta: RunMeta) -> Mapping[str, Interval]:
    """Return the interval of each criterion; all values if it is unbounded."""
    every = -MAX_VALUE, MAX_VALUE
    return {name: facts.interval or every for name, facts in meta.criteria.items()}


def compared_trial(text: str, within: Mapping[str, Interval]) -> ComparedTrial | None:
    """Return the trial in a line; `None` if a `TrialResult` might reject it."""
    try:
        trial = _trial_in(text)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return trial if _fits(trial, within) else None


def compared_entry(
    text: str, within: Sequence[Mapping[str, Interval]]
) -> tuple[int, ComparedTrial] | None:
    """Return the index of the run and the trial in a line of a baseline; `None` if in doubt."""
    try:
        run, trial = _entry_in(text)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return (run, trial) if run < len(within) and _fits(trial, within[run]) else None


def _fits(trial: ComparedTrial, within: Mapping[str, Interval]) -> bool:
    """Return True if the values of a trial agree with their statuses and intervals."""
    for score in trial.scores:
        value, interval = score.value, within.get(score.name)
        is_measured = score.status in _MEASURED
        if interval is None or is_measured != (value is not None):
            return False
        if value is not None and not interval[0] <= value <= interval[1]:
            return False
    return True
