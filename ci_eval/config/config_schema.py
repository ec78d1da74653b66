"""Schema of `ci-eval.yaml`."""

import re
from datetime import date
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from ci_eval.config.criterion_names import Dialect
from ci_eval.records.bounds import MAX_SECONDS, Value
from ci_eval.records.cases import Record, ToolMocks
from ci_eval.runtime.storage.gcs import GcsOptions
from ci_eval.text.validation_messages import describe

REPORTS = ("junit", "markdown", "summary", "annotations", "html")
"""The reports published by default."""
Choice = Literal["pass", "warn", "fail"]


class RunOptions(Record):
    """Options for running the agents."""

    repeats: int = Field(default=1, ge=1, le=1000)
    """Number of trials of each case; the score of a case is the mean over its repeats."""
    concurrency: int = Field(default=8, ge=1, le=10_000)
    """Maximum number of concurrent trials."""
    timeout_s: float = Field(default=120.0, gt=0, le=MAX_SECONDS)
    """Timeout of a trial in seconds; a trial that exceeds it is killed and counts as an error."""
    retries: int = Field(default=0, ge=0, le=10)
    """Number of retries of a trial that could not be observed."""
    engine: str = "local"
    """The [engine](engines.md), such as `ray`; its options are keys of `run:`, too."""


def _day(value: object) -> object:
    """Refuse everything but a date: times, numbers, dates that do not exist."""
    if type(value) is date:
        return value
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise ValueError(f"must be a date such as 2027-01-31, found {describe(value)}")


class Excuse(Record):
    """An exception from blocking; a key that is left out means all.

    Agents, evalsets, criteria and cases are named as in the reports, or by patterns.
    """

    kind: ClassVar[Literal["accepted", "quarantined"]]
    needed: ClassVar[tuple[str, ...]]
    """Required keys, for an example."""

    case: str = Field(default="*", min_length=1)
    """The cases, by id or pattern."""
    criterion: str = "*"
    """The criteria."""
    evalset: str = "*"
    """The evalsets."""
    agent: str = "*"
    """The agents."""
    until: Annotated[date, BeforeValidator(_day)]
    """The expiry date: the last day on which it applies, such as 2027-01-31."""
    reason: str = ""
    """The reason."""

    @model_validator(mode="before")
    @classmethod
    def _has_keys(cls, value: object) -> object:
        if isinstance(value, str):
            needed = ", ".join(f"{key}: …" for key in cls.needed)
            example = f"{{case: {value[:100]}, {needed}, until: 2027-01-31}}"
            message = f"expected an object such as {example}, found {describe(value)}"
            raise ValueError(message)  # noqa: TRY004  # pydantic's
        return value

    @property
    def named(self) -> str:
        """The parts that are not `*`, joined with `/`; `every case` if all are."""
        parts = (self.agent, self.evalset, self.criterion, self.case)
        return "/".join(part for part in parts if part != "*") or "every case"


class Acceptance(Excuse):
    """An intended drop; it is shown, but does not block."""

    kind = "accepted"
    needed = ("reason",)

    reason: str = Field(min_length=1)
    """Why the drop is intended."""

    @model_validator(mode="after")
    def _accepts_something(self) -> Self:
        if (self.case, self.criterion) == ("*", "*"):
            raise ValueError("needs a 'case' or a 'criterion', otherwise everything would pass")
        return self


class Quarantine(Excuse):
    """Cases that are too flaky to block; they are still run and shown."""

    kind = "quarantined"
    needed = ("owner",)

    case: str = Field(min_length=1)
    """The cases, by id or pattern."""
    owner: str = Field(min_length=1)
    """Who is responsible for getting them out of quarantine."""


class Unjudged(Record):
    """Cases that may go without a blocking criterion; a key that is left out means all.

    A plain text is a case.
    """

    case: str = Field(default="*", min_length=1)
    """The cases, by id or pattern; `*` also allows an evalset without cases."""
    evalset: str = "*"
    """The evalsets, by name or pattern."""
    agent: str = "*"
    """The agents, by name or pattern."""
    reason: str = ""
    """Why nothing needs to judge them."""

    @model_validator(mode="before")
    @classmethod
    def _case_alone(cls, value: object) -> object:
        return {"case": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if (self.case, self.evalset) == ("*", "*"):
            raise ValueError("needs a 'case' or an 'evalset', otherwise nothing would be judged")
        return self

    @property
    def named(self) -> str:
        """The parts that are not `*`, joined with `/`."""
        parts = (self.agent, self.evalset, self.case)
        return "/".join(part for part in parts if part != "*")


_LEAST_REDRAWN = 30
"""Number of further trials that any budget allows, except a budget of 1: enough to prove that a
single case broke, even in a suite of a few trials."""
_MAX_LOOKS = 3
"""Maximum number of looks at repeats of the change alone: further looks find little more."""


class GateOptions(Record):
    """What blocks a merge."""

    mode: Literal["threshold", "regression", "both"] | None = None
    """`threshold`: every case must reach its thresholds. `regression`: nothing may be worse than
    the baseline. `both`: both of these. Default: `regression` if a baseline is configured, else
    `threshold`."""
    min_pass_rate: float | None = Field(default=None, ge=0, le=1)
    """The share of cases that must pass, whatever the cases with an error would have shown.
    Default: in `threshold` mode, every measured case must pass."""
    min_score: dict[str, Value] = Field(default_factory=dict)
    """The minimum mean, by criterion."""
    floors: Literal["interval", "point"] = "interval"
    """How to judge `min_pass_rate` and `min_score`. `interval`: block only if chance is ruled out
    at the rate `false_block` (exact binomial interval); otherwise a value below is inconclusive.
    `point`: use the measured value."""
    false_block: float = Field(default=0.02, gt=0, lt=1)
    """The maximum probability of blocking a change that made nothing worse, over all tests
    together; likewise of blocking a suite whose true values are at its floors, over all floors."""
    max_drop: float = Field(default=0.02, ge=0, le=1)
    """Smaller drops of the mean never block; as a share of the criterion's interval, or of the
    baseline's mean if the measure is unbounded. A single case that breaks can block."""
    max_errors: int = Field(default=0, ge=0)
    """Maximum number of cases with an error; with more, there is no verdict. An error never counts
    as a pass: there is also no verdict if it could decide a floor or hide a drop. Within the limit,
    a case that ends in an error in every trial only causes a warning, even if it passed before."""
    allow_unjudged: tuple[Unjudged, ...] = ()
    """Cases that may go without a blocking criterion: ids or patterns, or objects that also name
    the evalset. Any other such case leaves the suite without a verdict."""
    on_missing: Literal["threshold", "pass", "warn", "fail"] = "threshold"
    """What to do if the configured baseline does not exist yet, or nothing in it is comparable:
    judge by thresholds, pass, warn, or fail."""
    on_inconclusive: Literal["pass", "warn", "fail", "rerun"] = "rerun"
    """What to do if a result is inconclusive, because it may be noise. `rerun` runs more repeats of
    the inconclusive parts, and warns if they stay inconclusive."""
    confirm: Literal["both", "candidate", "off"] = "both"
    """How `rerun` settles a doubt. `both`: also run the agents of the merge base in the same job,
    and compare with them; if that is impossible, the report says why, and only more repeats of the
    change are run. `candidate`: only run more repeats of the change. `off`: neither. The store
    `merge_base` runs the merge base in any case."""
    rerun_budget: float = Field(default=10.0, ge=1, le=100)
    """The maximum number of trials with `rerun`, of the change and of the merge base together, as
    a multiple of the planned trials; at least 30 more than planned, unless it is 1."""
    on_vanished: Choice = "fail"
    """What to do if this run lacks a case or criterion of the baseline."""
    on_loosened: Literal["warn", "fail"] = "warn"
    """What to do if a change weakens its own gate. Lowering this from `fail` still fails."""
    accept: tuple[Acceptance, ...] = ()
    """Intended drops, each with a reason and an expiry date."""
    quarantine: tuple[Quarantine, ...] = ()
    """Flaky cases that do not block for now, each with an owner and an expiry date."""

    def budget(self, planned: int) -> int:
        """Return the maximum number of trials of both arms; `planned` is that of the run alone."""
        least = planned + _LEAST_REDRAWN if self.rerun_budget > 1 else planned
        return max(int(planned * self.rerun_budget), least)

    @property
    def never_confirms(self) -> str:
        """The setting that keeps further trials from settling a doubt; empty if there is none."""
        settings = {
            "gate.rerun_budget: 1": self.rerun_budget <= 1,
            "gate.confirm: off": self.confirm == "off",
            f"gate.on_inconclusive: {self.on_inconclusive}": self.on_inconclusive != "rerun",
            "gate.mode: threshold": self.mode == "threshold",
        }
        return next((setting for setting, is_set in settings.items() if is_set), "")

    @property
    def looks(self) -> int:
        """The maximum number of looks at the data: 1 without further trials."""
        return 1 if self.never_confirms else min(int(self.rerun_budget), _MAX_LOOKS)


class EvalSetSpec(Record):
    """An evalset and a selection of its cases."""

    path: str = Field(min_length=1)
    """A file or a glob, relative to the directory of the configuration. `file.json:case1,case2`
    selects cases. `file.py` or `file.py:name` is an EvalSet of AgentFlow that Python code builds;
    by default, only `ci-eval run` runs this code, under the interpreter of an agent."""
    cases: tuple[str, ...] = ()
    """Use only these cases. Default: all."""
    tags: tuple[str, ...] = ()
    """Use only cases that have all of these tags."""
    tool_mocks: ToolMocks | None = None
    """Tools to mock; mocks in a case take precedence."""


class MatrixRow(Record):
    """One combination to run; a key that is left out means all."""

    agents: tuple[str, ...] | None = None
    """The agents."""
    evalsets: tuple[str, ...] | None = None
    """The evalsets; a pattern means all files that it matches."""
    criteria: tuple[str, ...] | None = None
    """The criteria."""

    def covers(self, **names: str) -> bool:
        """Return True if all `names` (`agents=…`, `evalsets=…`, `criteria=…`) are included."""
        return all(
            listed is None or name in listed
            for listed, name in ((getattr(self, kind), name) for kind, name in names.items())
        )


def _by_name(value: object) -> object:
    if not isinstance(value, list):
        return value
    example = "`criteria: {response_match_score: 0.8}`"
    raise ValueError(f"expected a mapping such as {example}, found a list")


class ConfigFile(Record):
    """The keys of `ci-eval.yaml`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    version: Literal[1] = 1
    """The version of this format."""
    name: str | None = Field(default=None, min_length=1, max_length=100)
    """Name of the suite, which also names the comment and the baseline. Default: the name of the
    directory, or of the remote repository at the top of a clone; followed by `-nightly` for
    `nightly.yaml`."""
    dialect: Dialect = "adk"
    """The dialect of criterion names without a prefix."""
    agents: dict[str, Any] = Field(min_length=1)
    """The agents to evaluate, by name."""
    evalsets: dict[str, Any] = Field(min_length=1)
    """The evalsets to use, by name: a path, or `{path, cases, tags, tool_mocks}`."""
    criteria: Annotated[dict[str, Any], BeforeValidator(_by_name)] = Field(default_factory=dict)
    """The criteria to score by: a threshold, or options; `from` reads an eval config of ADK or
    AgentFlow, or takes the EvalConfig of AgentFlow that `file.py` or `file.py:name` builds."""
    preset: Any = None
    """Predefined sets of criteria, by name: one, a list, or `{name: options}`."""
    judge: dict[str, Any] | None = None
    """The judge for criteria that call a model: a provider, its model and its options."""
    simulator: dict[str, Any] | None = None
    """The simulated user for scenarios: a `type`, its options, and a provider with its options.
    Default: `llm_backed` (with `dialect: agentflow`: `agentflow`), with the model of the judge."""
    run: RunOptions = RunOptions()
    """Options for running the agents."""
    baseline: dict[str, Any] | None = None
    """The store of the runs to compare with."""
    gcs: GcsOptions = GcsOptions()
    """Options for Google Cloud Storage, for `gs://` evalsets, recordings and baselines."""
    gate: GateOptions = GateOptions()
    """What blocks a merge."""
    reports: tuple[Any, ...] = REPORTS
    """The reports to publish, as names or as `{name: options}`. All documents are always written to
    the output directory."""
    matrix: tuple[MatrixRow, ...] = ()
    """The combinations of agents, evalsets and criteria to run. Default: all combinations."""
