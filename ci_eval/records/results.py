"""What a run measured: a score for each criterion, a result for each trial."""

from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple, Self

from pydantic import model_validator

from ci_eval.records.bounds import Count, Interval, Repeats, Round, Seconds, Total, Value
from ci_eval.records.evalset_facts import EvalSet
from ci_eval.records.model import Json, Status, Stored
from ci_eval.records.trials import Failure, TrialKey


class InvocationScore(Stored):
    """The part of one invocation in a score."""

    status: Status
    value: Value | None = None
    evidence: dict[str, Json] | None = None
    """What was compared; kept where it did not pass."""


class JudgeUsage(Stored):
    """What asking models took."""

    calls: Count = 0
    """Requests that were sent, those that failed too."""
    cached: Count = 0
    """Answers that were kept from an earlier time."""
    input_tokens: Count = 0
    output_tokens: Count = 0
    cost_usd: Total = 0.0
    """What the calls cost, as far as the prices of the models are known."""
    unpriced: Count = 0
    """Calls of models whose price is not known, so that `cost_usd` lacks them."""
    agreements: Count = 0
    """How many things a jury was asked."""
    agreement: Total = 0.0
    """The sum, over these, of the shares of pairs of judges that agreed."""
    lacking: tuple[str, ...] = ()
    """What the environment lacked, such as a key, where nobody could be asked."""

    def __add__(self, other: "JudgeUsage") -> "JudgeUsage":
        mine, theirs = self.__dict__, other.__dict__
        both = {name: mine[name] + theirs[name] for name in mine}
        both["lacking"] = tuple(dict.fromkeys(both["lacking"]))
        return JudgeUsage.model_construct(**both)

    @property
    def agreed(self) -> float | None:
        """The share of pairs of a jury's judges that agreed; `None` where there was no jury."""
        return self.agreement / self.agreements if self.agreements else None


class Score(Stored):
    """What one criterion says of one trial."""

    criterion: str
    """The qualified type, such as `adk/response_match_score`."""
    name: str
    """The user's own name for it, or the type again."""
    status: Status
    value: Value | None = None
    better: Literal["higher", "lower"] = "higher"
    threshold: Value | None = None
    reason: str = ""
    """Why it was not measured, or what the value says."""
    informational: bool = False
    """Measured and shown, and never judged."""
    evidence: dict[str, Json] | None = None
    """What was compared, where that is the conversation as a whole; kept where it did not pass."""
    invocations: tuple[InvocationScore, ...] = ()
    judging: JudgeUsage | None = None
    """What it took to ask models, where it asked any."""

    @model_validator(mode="after")
    def _measured_means_a_value(self) -> Self:
        if (self.status in (Status.PASSED, Status.FAILED)) != (self.value is not None):
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
    """Of the case's content: equal only where the same thing was asked and expected."""
    output: str = ""
    """What the agent wrote to its standard streams; kept where the trial did not pass."""
    cut_off: tuple[str, ...] = ()
    """For each response that ended before it was whole: why, such as `MAX_TOKENS`."""
    simulation: JudgeUsage | None = None
    """What it took to ask what the user says, where a model plays one."""
    round: Round = 0
    """0 for what was planned; 1 and so on for all cases drawn again because a verdict was in
    doubt."""
    confirms: bool = False
    """Whether it was drawn because this very case had failed: it is evidence for that alone, and
    no part of any mean."""


# --- One run --------------------------------------------------------------------------------


Tier = Literal["block", "warn", "inform"]
"""What a criterion does when it got worse: it blocks, it warns, or it is only shown."""


class CriterionFacts(Stored):
    """What a run says of a criterion it used."""

    criterion: str
    better: Literal["higher", "lower"] = "higher"
    threshold: Value | None = None
    interval: Interval | None = None
    """The least and the greatest value there is; `None` for a measure without bounds."""
    informational: bool = False
    tier: Tier = "block"
    """What it does when it got worse."""
    max_growth: Value | None = None
    """The share by which a measure may get worse; `None` where nothing tests it."""
    fingerprint: str = ""
    """Of the options that change the value; the threshold is not among them."""

    @property
    def judges(self) -> bool:
        """True if it decides whether a case passes: it has a threshold, and blocks."""
        return not self.informational and self.tier == "block"


class RunMeta(Stored):
    """What holds for a whole run."""

    run_id: str
    suite: str
    created: str
    """When the run began, in UTC, ISO 8601."""
    version: str
    """Of ci-eval."""
    config: str = ""
    """The configuration file, as the user named it."""
    commit: str | None = None
    """The commit that was checked out, where there is a repository."""
    branch: str | None = None
    """The branch that was checked out; `None` for a pull request."""
    job: str = ""
    """What CI calls the job, which tells it from others of the suite for the same commit."""
    gate: Mapping[str, Json] = {}
    """What was to block, as it was set."""
    store: Mapping[str, Json] = {}
    """Where the runs to compare with were to be found, as it was set."""
    agents: tuple[str, ...] = ()
    evalsets: Mapping[str, EvalSet] = {}
    criteria: Mapping[str, CriterionFacts] = {}
    repeats: Repeats = 1
    filtered: bool = False
    """Whether only a part of the suite was selected."""
    disabled: tuple[str, ...] = ()
    """Criteria that are switched off, and so are not missed."""
    overrides: Mapping[str, str] = {}
    """Plugins that took the name of another, with their modules."""
    warnings: tuple[str, ...] = ()
    lacking: Mapping[str, str] = {}
    """What agents were to get of the environment, such as keys, and it had not: by agent."""


class Run(NamedTuple):
    """One run: what holds for all of it, and its results, which can be read again."""

    meta: RunMeta
    results: Callable[[], Iterator[TrialResult]]
