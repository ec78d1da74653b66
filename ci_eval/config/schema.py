"""The keys of `ci-eval.yaml` and what each means."""

import re
from datetime import date
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from ci_eval.config.criterion_names import Dialect
from ci_eval.records.bounds import MAX_SECONDS, Value
from ci_eval.records.model import Record, ToolMocks
from ci_eval.storage.gcs import GcsOptions
from ci_eval.text.validation_messages import describe

REPORTS = ("junit", "markdown", "summary", "annotations")
"""What is published where nothing else is said."""
Choice = Literal["pass", "warn", "fail"]


class RunOptions(Record):
    """How the agents are run."""

    repeats: int = Field(default=1, ge=1, le=1000)
    """How often each case is tried; a case is scored by the mean over its repeats."""
    concurrency: int = Field(default=8, ge=1, le=10_000)
    """How many trials may be under way at once."""
    timeout_s: float = Field(default=120.0, gt=0, le=MAX_SECONDS)
    """Seconds that one trial may take; it is killed then, and is an error."""
    retries: int = Field(default=0, ge=0, le=10)
    """How often a trial that could not be observed is started again."""


def _day(value: object) -> object:
    """Refuse what is no day: a time, a count of seconds, a day that no calendar has."""
    if type(value) is date:
        return value
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise ValueError(f"must be a day such as 2027-01-31, found {describe(value)}")


class Excuse(Record):
    """What is excused from blocking; a part that is left out means all.

    Agents, evalsets, criteria and cases are named as in the reports, or by patterns.
    """

    kind: ClassVar[Literal["accepted", "quarantined"]]

    case: str = Field(default="*", min_length=1)
    """The cases, by id or pattern."""
    criterion: str = "*"
    """The criteria they are judged by."""
    evalset: str = "*"
    """The evalsets they are in."""
    agent: str = "*"
    """The agents they are tried with."""
    until: Annotated[date, BeforeValidator(_day)]
    """The last day on which it holds, such as 2027-01-31."""
    reason: str = ""
    """Why."""

    @property
    def named(self) -> str:
        """What it speaks of, as far as it is named."""
        parts = (self.agent, self.evalset, self.criterion, self.case)
        return "/".join(part for part in parts if part != "*")


class Acceptance(Excuse):
    """A drop that is meant; it is shown, and does not block."""

    kind = "accepted"

    reason: str = Field(min_length=1)
    """Why it is meant."""

    @model_validator(mode="after")
    def _accepts_something(self) -> Self:
        if (self.case, self.criterion) == ("*", "*"):
            raise ValueError("names neither a 'case' nor a 'criterion', so everything would pass")
        return self


class Quarantine(Excuse):
    """Cases that are too flaky to decide anything; they are tried and shown."""

    kind = "quarantined"

    case: str = Field(min_length=1)
    """The cases, by id or pattern."""
    owner: str = Field(min_length=1)
    """Who sees to it that they leave the quarantine."""


class Unjudged(Record):
    """Cases that no criterion which blocks needs to measure; a part that is left out means all.

    A text alone is a case.
    """

    case: str = Field(default="*", min_length=1)
    """The cases, by id or pattern; `*` also allows an evalset without cases."""
    evalset: str = "*"
    """The evalsets they are in, by name or pattern."""
    agent: str = "*"
    """The agents they are tried with, by name or pattern."""
    reason: str = ""
    """Why nothing needs to judge them."""

    @model_validator(mode="before")
    @classmethod
    def _case_alone(cls, value: object) -> object:
        return {"case": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if (self.case, self.evalset) == ("*", "*"):
            raise ValueError("names neither a 'case' nor an 'evalset', so nothing need be judged")
        return self

    @property
    def named(self) -> str:
        """What it speaks of, as far as it is named."""
        parts = (self.agent, self.evalset, self.case)
        return "/".join(part for part in parts if part != "*")


class GateOptions(Record):
    """What blocks a merge."""

    mode: Literal["threshold", "regression", "both"] | None = None
    """`threshold`: each case must reach its thresholds. `regression`: nothing may be worse than
    the baseline. `both`: both. Left out: `regression` where a baseline is configured."""
    min_pass_rate: float | None = Field(default=None, ge=0, le=1)
    """The share of cases that must pass, whatever a case with an error would have shown. Left out,
    every case that was measured must pass in `threshold` mode."""
    min_score: dict[str, Value] = Field(default_factory=dict)
    """For a criterion, the mean that must be reached."""
    floors: Literal["interval", "point"] = "interval"
    """How `min_pass_rate` and `min_score` are judged. `interval`: what was measured must be below
    for certain; below and uncertain is inconclusive. `point`: as it was measured."""
    false_block: float = Field(default=0.02, gt=0, lt=1)
    """The probability of blocking a change that made nothing worse, over all tests together."""
    max_drop: float = Field(default=0.02, ge=0, le=1)
    """A drop of less than this share of the criterion's interval never blocks; of the baseline's
    mean, where a measure has no interval."""
    max_errors: int = Field(default=0, ge=0)
    """How many cases may end in an error before no verdict is given. An error is never a pass:
    there is no verdict either where it could decide a floor, or hide a drop."""
    allow_unjudged: tuple[Unjudged, ...] = ()
    """Cases that no criterion which blocks needs to measure: ids or patterns, or objects that name
    the evalset, too. Without it, such a case leaves no verdict."""
    on_missing: Literal["threshold", "pass", "warn", "fail"] = "threshold"
    """A configured baseline that is not there yet, or of which nothing can be compared: judge by
    thresholds, pass, only warn, or fail."""
    on_inconclusive: Literal["pass", "warn", "fail", "rerun"] = "warn"
    """What is in doubt, because it may be noise. `rerun` draws more repeats of what is in doubt,
    and warns where that did not decide it."""
    rerun_budget: float = Field(default=3.0, ge=1, le=100)
    """How many times the planned trials a run may come to with `rerun`, those included."""
    on_vanished: Choice = "warn"
    """A case or criterion that the baseline has and this run has not."""
    accept: tuple[Acceptance, ...] = ()
    """Drops that are meant, each with a reason and the last day on which it is let through."""
    quarantine: tuple[Quarantine, ...] = ()
    """Flaky cases that decide nothing for now, each with an owner and a last day."""

    @property
    def looks(self) -> int:
        """How often at most it is looked at what was drawn: once, but with `rerun`."""
        return int(self.rerun_budget) if self.on_inconclusive == "rerun" else 1


class EvalSetSpec(Record):
    """Where an evalset is, and which of its cases are meant."""

    path: str = Field(min_length=1)
    """A file or a glob, from the folder of the configuration; `file.json:case1,case2` too."""
    cases: tuple[str, ...] = ()
    """Only these cases; all where empty."""
    tags: tuple[str, ...] = ()
    """Only cases that have all of these tags."""
    tool_mocks: ToolMocks | None = None
    """Tools that are not really called; what a case says itself comes first."""


class MatrixRow(Record):
    """One combination to run; what is left out means all."""

    agents: tuple[str, ...] | None = None
    """Which agents take part."""
    evalsets: tuple[str, ...] | None = None
    """On which evalsets; a pattern means all files that it fits."""
    criteria: tuple[str, ...] | None = None
    """By which criteria they are scored."""

    def covers(self, **names: str) -> bool:
        """Say whether each of `names` (`agents=…`, `evalsets=…`, `criteria=…`) is meant."""
        return all(
            listed is None or name in listed
            for listed, name in ((getattr(self, kind), name) for kind, name in names.items())
        )


class ConfigFile(Record):
    """The keys of `ci-eval.yaml`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    version: Literal[1] = 1
    """The version of this format."""
    name: str | None = Field(default=None, min_length=1, max_length=100)
    """The suite: names the comment and the baseline; the folder's name if left out."""
    dialect: Dialect = "adk"
    """Whose meaning a criterion's name has when it is written without a prefix."""
    agents: dict[str, Any] = Field(min_length=1)
    """What is evaluated, by name."""
    evalsets: dict[str, Any] = Field(min_length=1)
    """What they are evaluated on, by name: a path, or `{path, cases, tags, tool_mocks}`."""
    criteria: dict[str, Any] = Field(default_factory=dict)
    """What they are scored by: a threshold, or options; `from` reads the eval config of ADK or
    AgentFlow."""
    preset: Any = None
    """Ready sets of criteria, by name: one, a list, or `{name: options}`."""
    judge: dict[str, Any] | None = None
    """Who judges where a criterion asks a model: a provider, its model and its options."""
    simulator: dict[str, Any] | None = None
    """Who plays the users of scenarios: a `type`, its options, and a provider with its own;
    left out, `llm_backed` (with `dialect: agentflow`, `agentflow`), asked as judges are."""
    run: RunOptions = RunOptions()
    """How the agents are run."""
    baseline: dict[str, Any] | None = None
    """Where the runs to compare with are kept."""
    gcs: GcsOptions = GcsOptions()
    """How Google Cloud Storage is reached, for `gs://` evalsets, recordings and baselines."""
    gate: GateOptions = GateOptions()
    """What blocks a merge."""
    reports: tuple[Any, ...] = REPORTS
    """What is published, as names or as `{name: options}`; every document is written to the
    output folder in any case."""
    matrix: tuple[MatrixRow, ...] = ()
    """Which agents, evalsets and criteria belong together; all with all where left out."""
