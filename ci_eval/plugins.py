"""Every extension point, on one page.

A plugin is a frozen pydantic model whose fields are its YAML keys and whose docstrings are
its reference.  It is inert: what needs a life (a process, a server) is opened from it and
closed again.  Put it in a module of the package named below, decorate it, and it is found.

========== ======================= ==========================================
point      package                 verb
========== ======================= ==========================================
agent      `ci_eval.agents`        `start(world)`, `open(trial)`, `send(…)`
evalset    `ci_eval.evalsets`      `sniff(head)`, `read(path, …)`
criterion  `ci_eval.criteria`      `score(case, trace)`
baseline   `ci_eval.baselines`     `load(world)`, `save(run, world)`
reporter   `ci_eval.reporters`     `render(report, results)`
========== ======================= ==========================================
"""

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeVar

from pydantic import ConfigDict, model_validator

from ci_eval.columns import Columns
from ci_eval.errors import Problem
from ci_eval.findings import Report
from ci_eval.records import (
    Content,
    EvalCase,
    EvalSet,
    Invocation,
    Json,
    Record,
    Status,
    Trace,
    Trial,
)
from ci_eval.registry import Registry
from ci_eval.results import InvocationScore, Run, RunMeta, Score, TrialResult


@dataclass(frozen=True)
class World:
    """What the outside gives: the environment, the folder, the clock."""

    env: Mapping[str, str]
    """The environment of this process, as `cli` read it."""
    root: Path
    """The folder of the configuration; relative paths in it start here."""
    now: Callable[[], float]
    """Seconds since the epoch."""
    folder: str = ""
    """The same folder as the user named it; empty where that is the current one."""

    def shown(self, given: str) -> str:
        """Return what the user calls the file that the configuration calls `given`."""
        return os.path.normpath(Path(self.folder) / given)


class Plugin(Record):
    """Something that a user can name in YAML."""

    model_config: ClassVar[ConfigDict] = ConfigDict(populate_by_name=True)

    type_name: ClassVar[str] = ""
    """The name it was registered with."""


P = TypeVar("P", bound=Plugin)


class PluginRegistry(Registry[P]):
    """A registry that tells each plugin its name."""

    def __call__(self, name: str, *, override: bool = False) -> Callable[[type[P]], type[P]]:
        """Register the decorated class as `name`."""
        register = super().__call__(name, override=override)

        def named(cls: type[P]) -> type[P]:
            cls.type_name = name
            return register(cls)

        return named


# --- Agents ---------------------------------------------------------------------------------


class Session(Protocol):
    """One conversation with an agent."""

    @property
    def held(self) -> tuple[Invocation, ...] | None:
        """The whole conversation, where it already took place; `None` where it is to be held."""

    async def send(self, message: Content) -> Invocation:
        """Return what the agent did on `message`.

        Being cancelled means that the time is up: whatever runs for this message is killed.

        Raises:
            TrialError: it could not be observed.
            DisturbedError: it was cut off for another trial's sake, and may run again.

        """

    async def close(self) -> dict[str, Json] | None:
        """End the conversation and return the final session state, if there is one."""


class RunningAgent(Protocol):
    """An agent that is ready for conversations, several at a time."""

    async def open(self, trial: Trial, *, alone: bool = False) -> Session:
        """Begin the conversation of `trial`; `alone` keeps all others away from its process.

        Raises:
            TrialError: it cannot begin.

        """


class Agent(Plugin):
    """Something that can be asked."""

    @abstractmethod
    def start(self, world: World) -> AbstractAsyncContextManager[RunningAgent]:
        """Start the agent; leaving the context stops all that belongs to it."""

    def check(self, world: World) -> Iterator[tuple[str, str]]:
        """Yield the field and the message of each thing that can be seen to be wrong."""
        del world
        yield from ()


# --- Evalsets -------------------------------------------------------------------------------


@dataclass
class CaseFacts:
    """What the cases of an evalset offer to criteria."""

    cases: int = 0
    scenarios: int = 0
    """Cases that a simulated user leads."""
    with_rubrics: int = 0
    without_response: list[int | None] = field(default_factory=list)
    """The lines of the first cases that expect no response."""

    def add(self, case: EvalCase) -> None:
        """Count `case`."""
        self.cases += 1
        turns = case.conversation
        self.scenarios += turns is None
        self.with_rubrics += bool(case.rubrics or any(turn.rubrics for turn in turns or ()))
        lacking = turns is not None and not all(turn.response for turn in turns)
        if lacking and len(self.without_response) < MAX_LINES:
            self.without_response.append(case.line)


MAX_LINES = 20
"""How many lines a warning about many cases names at most."""


@dataclass(frozen=True)
class OpenedEvalSet:
    """An evalset that was read once, without an error, and can be read again."""

    header: EvalSet
    cases: Callable[[], Iterator[EvalCase]]
    """Yields the cases in the order of the file, each with its line."""
    facts: CaseFacts
    warnings: tuple[Problem, ...] = ()


class EvalSetReader(Plugin):
    """One format of evalset files."""

    @classmethod
    @abstractmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Say whether a document that begins like `head` is of this format.

        `head` is the top-level object without its long arrays, or a list of the first
        elements of the top-level array.
        """

    @abstractmethod
    def read(self, path: Path, *, shown: str) -> OpenedEvalSet:
        """Read the whole file at `path`, which the user calls `shown`.

        Raises:
            EvalSetError: with every problem of the file.

        """


# --- Criteria -------------------------------------------------------------------------------


class Criterion(Plugin):
    """A measure of one trial, computed without asking a model."""

    needs_reference: ClassVar[bool] = False
    """Whether it compares with the expected conversation."""
    needs_response: ClassVar[bool] = False
    """Whether an expected response that is missing makes it score 0."""
    needs_rubrics: ClassVar[bool] = False
    """Whether it judges rubrics."""
    judged: ClassVar[bool] = False
    """Whether it asks a model, which costs money."""
    supports_scenario: ClassVar[bool] = True
    """Whether it can score a conversation that a simulated user led."""
    interval: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    """The least and the greatest value; `None` for a measure without bounds."""
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    informational: ClassVar[bool] = False
    """Measured and shown, never judged; takes no threshold."""
    absent_in: ClassVar[frozenset[str]] = frozenset()
    """Dialects that do not know it."""

    threshold: float | None = None
    """The value from which on a case passes (up to which, where lower is better)."""

    @model_validator(mode="after")
    def _threshold_fits(self) -> Self:
        if self.informational:
            if self.threshold is not None:
                raise ValueError("only measures, so it takes no threshold")
            return self
        if self.threshold is None:
            raise ValueError("needs a threshold")
        if self.interval and not self.interval[0] <= self.threshold <= self.interval[1]:
            low, high = self.interval
            raise ValueError(f"the threshold must lie between {low:g} and {high:g}")
        return self

    @abstractmethod
    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Score what `trace` shows on `case`."""

    def options(self) -> dict[str, Json]:
        """Return what, beside the type, decides the value: all options but the threshold."""
        return self.model_dump(mode="json", exclude={"threshold"})

    def scored(
        self, value: float | None, invocations: Iterable[InvocationScore] = (), *, reason: str = ""
    ) -> Score:
        """Return the score `value`, or a skipped one where there is none."""
        return Score(
            criterion=self.type_name,
            name=self.type_name,
            status=self.status_of(value),
            value=value,
            better=self.better,
            threshold=self.threshold,
            reason=reason,
            informational=self.informational,
            invocations=tuple(invocations),
        )

    def unscored(self, status: Status, reason: str) -> Score:
        """Return a score without a value: `skipped` or `error`."""
        return self.scored(None).model_copy(update={"status": status, "reason": reason})

    def status_of(self, value: float | None) -> Status:
        """Return the status that `value` has against the threshold."""
        if value is None:
            return Status.SKIPPED
        if self.threshold is None:
            return Status.PASSED
        good = value >= self.threshold if self.better == "higher" else value <= self.threshold
        return Status.PASSED if good else Status.FAILED


# --- Baselines ------------------------------------------------------------------------------


class Past(NamedTuple):
    """One run of a baseline, with its values."""

    meta: RunMeta
    columns: Columns


class BaselineStore(Plugin):
    """A place that keeps the runs to compare with."""

    @abstractmethod
    def load(self, world: World) -> Sequence[Past]:
        """Return the stored runs, newest first; none where nothing was ever stored.

        Raises:
            BaselineError: what is stored cannot be read.

        """

    @abstractmethod
    def save(self, run: Run, world: World) -> bool:
        """Store `run`; say `False` where a run with this id was there already."""


# --- Reporters ------------------------------------------------------------------------------


class Reporter(Plugin):
    """A document made of a report: a pure function."""

    file: ClassVar[str]
    """The name of the document in the output folder."""

    @abstractmethod
    def render(self, report: Report, results: Callable[[], Iterator[TrialResult]]) -> Iterator[str]:
        """Yield the document in pieces."""


agent: PluginRegistry[Agent] = PluginRegistry("agent type", "ci_eval.agents")
evalset: PluginRegistry[EvalSetReader] = PluginRegistry("evalset format", "ci_eval.evalsets")
criterion: PluginRegistry[Criterion] = PluginRegistry("criterion", "ci_eval.criteria")
baseline: PluginRegistry[BaselineStore] = PluginRegistry("baseline store", "ci_eval.baselines")
reporter: PluginRegistry[Reporter] = PluginRegistry("reporter", "ci_eval.reporters")

POINTS: tuple[PluginRegistry[Any], ...] = (agent, evalset, criterion, baseline, reporter)
"""Every registry, in the order in which `list` shows them."""
