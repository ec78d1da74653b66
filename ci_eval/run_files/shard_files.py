"""Files of a suite whose cases are divided among several jobs: the plan, and each job's report.

A plan (`ci-eval plan --shards 4 --out plan.json`) names the cases of each shard; `shard.json` lies
beside the files of a run that was one shard.  Both begin with what all shards must have in common.
If a result is in doubt, `ci-eval merge --redraw-plan redraw.json` writes a plan for further trials.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from ci_eval.records.bounds import MAX_ROUND, Count, Repeat, Round, Seconds, Total
from ci_eval.records.cases import SCHEMA_VERSION, Stored
from ci_eval.records.trials import Place
from ci_eval.run_files.report_phrases import listed
from ci_eval.run_files.stored_document import parsed, validated
from ci_eval.text.sanitize import one_line
from ci_eval.text.yaml_files import read_text

MAX_SHARDS = 1000
"""Maximum number of shards of a suite."""
MAX_DIFFERENCES = 500
"""Maximum length of a text that names differences, in characters."""
_MAX_TEXT = 512 * 1024 * 1024
"""Maximum length of a plan, in characters: enough for several million cases."""


@dataclass(frozen=True)
class Shard:
    """One of the parts that a suite is divided into."""

    index: int
    """From 1."""
    total: int
    redraw: int = 0
    """The number of the redraw; 0 for the planned trials."""

    def __str__(self) -> str:
        of = f" of redraw {self.redraw}" if self.redraw else ""
        return f"{self.index}/{self.total}{of}"


class Manifest(Stored):
    """What the shards of a suite must have in common; long values as fingerprints."""

    suite: str
    version: str
    """Version of ci-eval."""
    commit: str | None = None
    """The commit that was checked out, if there is a repository."""
    configuration: str
    """The configuration file, and the selected agents and repeats."""
    evalsets: Mapping[str, str]
    criteria: Mapping[str, str]

    def differences(self, other: "Manifest") -> str:
        """Name the differences of `other`, for a message; empty if there are none."""
        return one_line(listed([*self._differences(other)]), MAX_DIFFERENCES)

    def _differences(self, other: "Manifest") -> Iterator[str]:
        if self.suite != other.suite:
            yield f"the suite ({other.suite!r} instead of {self.suite!r})"
        if self.version != other.version:
            yield f"the version of ci-eval ({other.version} instead of {self.version})"
        if self.commit != other.commit:
            yield f"the commit ({_short(other.commit)} instead of {_short(self.commit)})"
        if self.configuration != other.configuration:
            yield "the configuration, or the options that select from it"
        for what in ("evalset", "criterion"):
            plural = {"evalset": "evalsets", "criterion": "criteria"}[what]
            mine, theirs = getattr(self, plural), getattr(other, plural)
            names = sorted({*mine, *theirs})
            yield from (
                f"the {what} {name!r}" for name in names if mine.get(name) != theirs.get(name)
            )


def _short(commit: str | None) -> str:
    return commit[:7] if commit else "none"


class FurtherTrials(Stored):
    """Trials of one arm that were not planned."""

    rounds: tuple[Round, Round] = (0, 0)
    """The first round, and the one after the last."""
    pairs: tuple[tuple[str, str], ...] = ()
    """The agents and evalsets whose cases are all tried in these rounds."""
    confirming: Mapping[str, Mapping[str, Mapping[str, tuple[Repeat, Repeat]]]] = {}
    """The trials of single cases, by agent, evalset and id: the first, and one after the last."""


class PlannedRedraw(Stored):
    """A round of further trials that would settle a doubt."""

    number: Annotated[int, Field(ge=1, le=MAX_ROUND)] = 1
    """The number of this redraw, from 1."""
    reports: str
    """A fingerprint of the reports whose verdict is in doubt."""
    change: FurtherTrials = FurtherTrials()
    base: FurtherTrials = FurtherTrials()


class PlannedShard(Stored):
    """The cases of one shard."""

    trials: Count
    """The number of its trials; in a redraw, of both arms."""
    expected_s: Seconds | None = None
    """The expected duration in seconds; `None` if no stored run has a duration."""
    cases: Mapping[str, Mapping[str, tuple[str, ...]]]
    """The ids of the cases, by agent and evalset."""

    @property
    def places(self) -> Iterator[Place]:
        """Each case, with its agent."""
        for agent, evalsets in self.cases.items():
            for evalset, cases in evalsets.items():
                yield from (Place(agent, evalset, case) for case in cases)


class Chosen(Stored):
    """The options that select from a suite, as they are called on the command line."""

    agent: tuple[str, ...] = ()
    evalset: tuple[str, ...] = ()
    case: tuple[str, ...] = ()
    criterion: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    repeats: Annotated[int, Field(ge=1, le=1000)] | None = None

    @classmethod
    def by(cls, options: Mapping[str, Any]) -> "Chosen":
        """Return the selection in the options of a command."""
        return cls.model_validate({name: options[name] for name in cls.model_fields})

    def completed(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of a command, with these in place of those that are not given."""
        return {**options, **{name: options[name] or value for name, value in self}}


class ShardPlan(Stored):
    """The division of a suite into shards."""

    schema_version: int = SCHEMA_VERSION
    manifest: Manifest
    chosen: Chosen = Chosen()
    """The options that the plan was made with."""
    redraw: PlannedRedraw | None = None
    """The further trials to run; `None` for the planned ones."""
    shards: tuple[PlannedShard, ...] = Field(min_length=1, max_length=MAX_SHARDS)

    @property
    def way_to_make(self) -> str:
        """The hint of a message that says how to make such a plan."""
        command = "merge REPORT… --redraw-plan" if self.redraw else "plan --shards N --out"
        return f"create a new plan: `ci-eval {command} FILE`"

    def redraw_of(self, shard: Shard) -> "ShardRedraw | None":
        """Return the further trials of a shard; `None` if it has planned ones."""
        trials = self.shards[shard.index - 1].trials
        return ShardRedraw(self.redraw, trials, self.way_to_make) if self.redraw else None


class ShardRedraw(NamedTuple):
    """The further trials of one shard."""

    redraw: PlannedRedraw
    """The redraw of all shards."""
    trials: int
    """The number of trials of this shard."""
    way_to_make: str


class ShardReport(Stored):
    """The facts of a finished shard; its results are in the `run.json` beside it."""

    schema_version: int = SCHEMA_VERSION
    manifest: Manifest
    run_id: str = ""
    """The id of the run in the `run.json` beside it; older versions of ci-eval did not write it."""
    index: int = Field(ge=1, le=MAX_SHARDS)
    total: int = Field(ge=1, le=MAX_SHARDS)
    assignment: str = ""
    """The fingerprint of the plan that assigned the cases; empty if they were assigned by id."""
    redraw: PlannedRedraw | None = None
    """The redraw that the shard is a part of."""
    trials: Count
    base_trials: Count = 0
    """Trials of the merge base."""
    unmeasured: Count = 0
    """Trials that ended in an error."""
    duration_s: Total = 0.0
    """Seconds from its first trial to its last."""
    recordings: Mapping[str, Count] = {}
    """The number of lines in each of its cassettes."""
    workflow_run: str = ""
    """The page of the workflow run or pipeline; empty outside of CI."""
    attempt: Count = 1
    """The number of times that this workflow run was started."""
    unconfirmed: str = ""
    """Why the agents of the merge base could not be run, if they had to be."""
    base_is_new: bool = False
    """Whether the merge base has nothing to run yet."""

    @property
    def shard(self) -> Shard:
        """Its number, and the number of shards."""
        return Shard(self.index, self.total, self.redraw.number if self.redraw else 0)

    @property
    def division(self) -> tuple[int, str, PlannedRedraw | None]:
        """What it has in common with the other shards."""
        return self.total, self.assignment, self.redraw


def read_plan(path: Path, *, shown: str) -> ShardPlan:
    """Read a plan.

    Raises:
        UsageError: the file is not a valid plan, or has another version.

    """
    text = read_text(path, shown=shown, most=_MAX_TEXT)
    found = parsed(text, shown=shown, what="plan of shards", key="shards")
    return validated(found, ShardPlan, shown=shown)


def read_shard_report(path: Path, *, shown: str) -> ShardReport:
    """Read the facts of a finished shard.

    Raises:
        UsageError: the file is not valid, or has another version.

    """
    found = parsed(read_text(path, shown=shown), shown=shown, what="shard", key="manifest")
    return validated(found, ShardReport, shown=shown)
