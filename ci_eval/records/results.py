"""Results of a run: a score for each criterion, a result for each trial."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from pydantic import model_validator

from ci_eval.records.bounds import Count, Interval, Repeats, Round, Seconds, Total, Value
from ci_eval.records.cases import Json, Status, Stored
from ci_eval.records.evalset_facts import EvalSet
from ci_eval.records.model_usage import ModelUsage
from ci_eval.records.model_versions import ServedModel, merged
from ci_eval.records.trials import Failure, TrialKey

if TYPE_CHECKING:
    from ci_eval.records.compared_trials import AnyTrial

_MEASURED = (Status.PASSED, Status.FAILED)


class InvocationScore(Stored):
    """The score of one invocation."""

    status: Status
    value: Value | None = None
    evidence: dict[str, Json] | None = None
    """The expected and actual values; kept if it did not pass."""


class JudgeUsage(Stored):
    """Calls, tokens and cost of models."""

    calls: Count = 0
    """Requests sent, including failed ones."""
    cached: Count = 0
    """Answers from the cache."""
    input_tokens: Count = 0
    output_tokens: Count = 0
    cost_usd: Total = 0.0
    """Cost of the calls to models with a known price."""
    unpriced: Count = 0
    """Calls to models without a known price, not included in `cost_usd`."""
    unreadable: Count = 0
    """Samples whose answer could not be read; they did not vote."""
    agreements: Count = 0
    """Number of items that a jury judged."""
    agreement: Total = 0.0
    """The sum over these items of the share of pairs of judges that agreed."""
    lacking: tuple[str, ...] = ()
    """Missing credentials and the like, without which no model could be called."""
    models: tuple[ServedModel, ...] = ()
    """The model versions that answered; at most 50."""

    def __add__(self, other: "JudgeUsage") -> "JudgeUsage":
        mine, theirs = self.__dict__, other.__dict__
        both = {name: mine[name] + theirs[name] for name in mine}
        both["lacking"] = tuple(dict.fromkeys(both["lacking"]))
        both["models"] = merged(both["models"])
        return JudgeUsage.model_construct(**both)

    @property
    def agreed(self) -> float | None:
        """The share of pairs of a jury's judges that agreed; `None` without a jury."""
        return self.agreement / self.agreements if self.agreements else None


class Score(Stored):
    """The score of one trial under one criterion."""

    criterion: str
    """The qualified type, such as `adk/response_match_score`."""
    name: str
    """The user's name for the criterion, or the type again."""
    status: Status
    value: Value | None = None
    better: Literal["higher", "lower"] = "higher"
    threshold: Value | None = None
    reason: str = ""
    """Why it was not measured, or an explanation of the value."""
    informational: bool = False
    """Whether it is measured and shown, but never decides anything."""
    evidence: dict[str, Json] | None = None
    """The expected and actual values of the whole conversation; kept if it did not pass."""
    invocations: tuple[InvocationScore, ...] = ()
    judging: JudgeUsage | None = None
    """Usage of judge models, if it called any."""

    @model_validator(mode="after")
    def _measured_means_a_value(self) -> Self:
        if (self.status in _MEASURED) != (self.value is not None):
            raise ValueError("a score has a value exactly when it passed or failed")
        return self


class TrialResult(Stored):
    """One trial with its scores."""

    key: TrialKey
    status: Status
    error: Failure | None = None
    scores: tuple[Score, ...] = ()
    duration_s: Seconds = 0.0
    attempts: Count = 1
    line: Count | None = None
    """The line of the case in its evalset."""
    case_fingerprint: str = ""
    """Fingerprint of the case: equal only for the same messages and expectations."""
    tags: tuple[str, ...] = ()
    """The tags of the case."""
    output: str = ""
    """The agent's stdout and stderr; kept if the trial did not pass."""
    messages: tuple[str, ...] = ()
    """The user's messages, long ones shortened; kept if the trial did not pass."""
    cut_off: tuple[str, ...] = ()
    """The finish reason of each incomplete response, such as `MAX_TOKENS`."""
    simulation: JudgeUsage | None = None
    """Usage of the model for the simulated user, if any."""
    metered: ModelUsage | None = None
    """Usage of the agent's models, if its calls pass the model gateway."""
    round: Round = 0
    """0 for planned trials; 1, 2 … for reruns of all cases after an inconclusive verdict."""
    confirms: bool = False
    """Whether it was drawn to confirm that this case fails; if so, it is evidence for that alone
    and is part of no mean."""
    models: tuple[ServedModel, ...] = ()
    """The model versions that answered the agent, if its trace names them; at most 50."""
    mocked: tuple[str, ...] = ()
    """The tools that the case mocks; at most 50."""


# --- One run --------------------------------------------------------------------------------


Tier = Literal["block", "warn", "inform"]
"""Effect of a regression: block the merge, warn, or only show it."""


class CriterionFacts(Stored):
    """The settings of a criterion in a run."""

    criterion: str
    better: Literal["higher", "lower"] = "higher"
    threshold: Value | None = None
    interval: Interval | None = None
    """The lowest and the highest possible value; `None` if unbounded."""
    informational: bool = False
    tier: Tier = "block"
    """Effect of a regression."""
    max_growth: Value | None = None
    """The relative increase that is tolerated; `None` if not tested."""
    fingerprint: str = ""
    """Fingerprint of the options that change the value, without the threshold."""

    @property
    def judges(self) -> bool:
        """True if it decides whether a case passes: it has a threshold, and blocks."""
        return not self.informational and self.tier == "block"

    def passes(self, value: float) -> bool:
        """Return True if `value` meets the threshold, or if there is none."""
        return meets(value, self.threshold, self.better)


def meets(value: float, threshold: float | None, better: Literal["higher", "lower"]) -> bool:
    """Return True if `value` meets `threshold`, or if that is `None`."""
    if threshold is None:
        return True
    return value >= threshold if better == "higher" else value <= threshold


class RunMeta(Stored):
    """Metadata of a run."""

    run_id: str
    suite: str
    created: str
    """Start time, UTC, ISO 8601."""
    version: str
    """Version of ci-eval."""
    config: str = ""
    """The configuration file, as the user named it."""
    config_from_top: str = ""
    """The same file from the top of the repository, where readers of reports from CI run commands;
    empty outside of CI."""
    commit: str | None = None
    """The commit that was checked out, if there is a repository."""
    branch: str | None = None
    """The branch that was checked out; `None` for a pull request."""
    job: str = ""
    """The CI job's name; distinguishes jobs that run the same suite on the same commit."""
    step: str = ""
    """The workflow, the configuration and the selection; distinguish jobs and steps of one name."""
    url: str = ""
    """The page of the workflow run or pipeline; empty outside of CI."""
    page_url: str = ""
    """The address that `report.html` will have as an artifact; empty if unknown."""
    gate: Mapping[str, Json] = {}
    """The configuration of the gate."""
    store: Mapping[str, Json] = {}
    """The configuration of the baseline store."""
    agents: tuple[str, ...] = ()
    evalsets: Mapping[str, EvalSet] = {}
    criteria: Mapping[str, CriterionFacts] = {}
    repeats: Repeats = 1
    """Number of planned trials of each case."""
    configured_repeats: Repeats | None = None
    """`run.repeats` of the configuration, which `--repeats` overrides; `None` in older runs."""
    modified: bool = False
    """Whether tracked files differed from the commit."""
    untracked: tuple[str, ...] = ()
    """Files and folders of the work tree that agents may need and git does not track; in a run of
    the merge base, those that were copied for it."""
    without_change: bool = False
    """Whether the job was started on a schedule, by hand or through the API."""
    filtered: bool = False
    """Whether only a part of the suite was selected."""
    disabled: tuple[str, ...] = ()
    """Disabled criteria; not reported as missing."""
    overrides: Mapping[str, str] = {}
    """Plugins that replaced another one of the same name, with their modules."""
    warnings: tuple[str, ...] = ()
    recordings: tuple[str, ...] = ()
    """The agents that only replay recordings, so that none of their trials can be repeated."""
    lacking: Mapping[str, str] = {}
    """Missing environment variables such as credentials, by agent."""
    shard: str = ""
    """The shard that it is, such as `3/7`; empty for a whole suite. A shard decides nothing."""
    missing_shards: tuple[str, ...] = ()
    """The shards without a report, such as `3/7`, if the run was merged from shards."""
    gone: Mapping[str, tuple[str, ...]] = {}
    """In a run of the merge base: its cases that the change lacks, by evalset."""
    gone_groups: tuple[tuple[str, str, str], ...] = ()
    """In a run of the merge base: what it scores and the change does not, by agent, evalset and
    criterion."""
    changed_cases: Mapping[str, tuple[str, ...]] = {}
    """In a run of the merge base: its cases that have other content in the change, by evalset."""
    from_fork: bool = False
    """Whether it evaluates a pull request from a fork, which gets no secrets."""
    weakened: tuple[str, ...] = ()
    """How the change weakens its own gate, compared with its merge base."""


class Run(NamedTuple):
    """One run: its metadata, and its results, which can be read repeatedly."""

    meta: RunMeta
    results: Callable[[], Iterator[TrialResult]]
    traces: Path | None = None
    """The file of its conversations, if the run has files."""
    quick: "Callable[[], Iterator[AnyTrial]] | None" = None
    """Reads only what a comparison needs, if the run has files: in a quarter of the time."""
    redact: Callable[[Any], Any] = lambda record: record
    """Redacts a record of these files, which may hold secrets that were unknown to the run."""

    def compared_trials(self) -> "Iterator[AnyTrial]":
        """Return what a comparison needs of the results."""
        return self.quick() if self.quick else self.results()
