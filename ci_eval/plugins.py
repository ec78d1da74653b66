"""Every extension point, on one page.

A plugin is a frozen pydantic model whose fields are its YAML keys and whose docstrings are
its reference.  It is inert: what needs a life (a process, a server) is opened from it and
closed again.  Put it in a module of the package named below, decorate it, and it is found.

========== ======================= ==========================================
point      package                 verb
========== ======================= ==========================================
agent      `ci_eval.agents`        `start(world)`, `open(trial)`, `send(…)`
evalset    `ci_eval.evalsets`      `sniff(head)`, `read(path, …)`
recording  `ci_eval.recordings`    `sniff(head)`, `read(path, …)`
criterion  `ci_eval.criteria`      `score(case, trace)`, `start(world)`
baseline   `ci_eval.baselines`     `load(world)`, `save(run, world)`
reporter   `ci_eval.reporters`     `render(report, results)`
========== ======================= ==========================================
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar

from pydantic import ConfigDict, model_validator

from ci_eval.columns import Past
from ci_eval.evalset_facts import OpenedEvalSet
from ci_eval.findings import Report
from ci_eval.heads import Syntax
from ci_eval.records import (
    Content,
    EvalCase,
    Invocation,
    Json,
    Record,
    Recording,
    Status,
    Trace,
    Trial,
)
from ci_eval.registry import Registry
from ci_eval.results import InvocationScore, Run, Score, TrialResult
from ci_eval.world import World


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


class Reader(Plugin):
    """One format of files, told by how they begin."""

    syntaxes: ClassVar[frozenset[Syntax]] = frozenset({"json"})
    """In which it may be written; the name of a file tells."""

    @classmethod
    @abstractmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Say whether a document that begins like `head` is of this format.

        `head` is what `heads.read_head` returns: the top-level object without its long
        arrays, or a list of the first element.
        """


R = TypeVar("R", bound=Reader)


class ReaderRegistry(PluginRegistry[R]):
    """A registry of formats, of which a file is of the first that says so."""

    def of(self, head: Json, syntax: Syntax) -> type[R] | None:
        """Return the format of a document of that syntax which begins like `head`."""
        readers = (self[name] for name in self)
        return next(
            (each for each in readers if syntax in each.syntaxes and each.sniff(head)), None
        )


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


class EvalSetReader(Reader):
    """One format of evalset files."""

    @abstractmethod
    def read(self, path: Path, *, shown: str) -> OpenedEvalSet:
        """Read the whole file at `path`, which the user calls `shown`.

        Raises:
            EvalSetError: with every problem of the file.

        """


# --- Recordings -----------------------------------------------------------------------------


class RecordingReader(Reader):
    """One format of files that hold conversations which took place."""

    @abstractmethod
    def read(self, path: Path, *, shown: str) -> Iterator[Recording]:
        """Yield every conversation of the file at `path`, which the user calls `shown`.

        Raises:
            UsageError: with every problem of the file.

        """


# --- Criteria -------------------------------------------------------------------------------

MAX_VALUE = 1e15
"""What is greater comes from an agent that reports nonsense, and would spoil every sum."""


class AnyCriterion(Plugin):
    """A measure of one trial: what all kinds of criteria declare."""

    aliases: ClassVar[tuple[str, ...]] = ()
    """What files may call it, too, beside the part of its name after the `/`."""
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
    takes_threshold: ClassVar[Literal["always", "optionally", "never"]] = "always"
    """Whether it is judged by a threshold; without one it is measured and shown, never judged."""
    shorthand: ClassVar[str] = "threshold"
    """The option that is meant where an assertion gives a value instead of options."""
    reads_assertions: ClassVar[bool] = False
    """Whether it checks what cases assert of themselves."""
    example: ClassVar[Mapping[str, Json]] = {}
    """Options for the example on its reference page, where it cannot do without."""
    absent_in: ClassVar[frozenset[str]] = frozenset()
    """Dialects that do not know it."""

    threshold: float | None = None
    """The value from which on a case passes (up to which, where lower is better)."""
    enabled: bool = True
    """Whether it is used. One that is switched off is not missed in a comparison."""

    @model_validator(mode="after")
    def _threshold_fits(self) -> Self:
        if self.threshold is None:
            if self.takes_threshold == "always":
                raise ValueError("needs a threshold")
            return self
        if self.takes_threshold == "never":
            raise ValueError("only measures, so it takes no threshold")
        if self.interval and not self.interval[0] <= self.threshold <= self.interval[1]:
            low, high = self.interval
            raise ValueError(f"the threshold must lie between {low:g} and {high:g}")
        return self

    @property
    def informational(self) -> bool:
        """Whether it is measured and shown, and never judged."""
        return self.threshold is None

    def hindrance(self, case: EvalCase) -> str:
        """Say why `case` cannot be scored; nothing where it can.

        A case that cannot be scored is skipped, with this as the reason.
        """
        if case.conversation is None and not self.supports_scenario:
            return "needs a written conversation, not a scenario"
        return self.lacks(case)

    def lacks(self, case: EvalCase) -> str:
        """Say what `case` does not have that the score needs; nothing where it has all."""
        del case
        return ""

    @property
    def minds(self) -> bool:
        """Whether what readers warn of for its sake matters to it as it is set."""
        return True

    def faults(self, case: EvalCase) -> Iterator[str]:
        """Yield what is wrong with what `case` says for this criterion alone."""
        del case
        yield from ()

    def options(self) -> dict[str, Json]:
        """Return what, beside the type, decides the value: all options but the threshold."""
        return self.model_dump(mode="json", exclude={"threshold", "enabled"})

    def scored(
        self,
        value: float | None,
        invocations: Iterable[InvocationScore] = (),
        *,
        reason: str = "",
        evidence: dict[str, Json] | None = None,
    ) -> Score:
        """Return the score `value`, or a skipped one where there is none.

        `evidence` tells what was compared over the whole conversation; it is kept where the
        score did not pass.
        """
        if value is not None and abs(value) > MAX_VALUE:
            return self.unscored(Status.ERROR, f"{value:g} is more than can be a measurement")
        status = self.status_of(value)
        keep = status is Status.FAILED or self.informational
        return Score(
            criterion=self.type_name,
            name=self.type_name,
            status=status,
            value=value,
            better=self.better,
            threshold=self.threshold,
            reason=reason,
            informational=self.informational,
            evidence=evidence if keep else None,
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


class Criterion(AnyCriterion):
    """A measure that is computed at once, from the case and the trace alone."""

    @abstractmethod
    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Score what `trace` shows on `case`."""


class Scorer(Protocol):
    """A criterion that is ready to score, several trials at a time."""

    async def score(self, case: EvalCase, trace: Trace) -> Score:
        """Score what `trace` shows on `case`."""


class WorkerCriterion(AnyCriterion):
    """A measure by code of the user's, which runs in a process of its own, never in ours."""

    @abstractmethod
    def start(self, world: World) -> AbstractAsyncContextManager[Scorer]:
        """Start what scores; leaving the context stops all that belongs to it."""

    def check(self, world: World) -> Iterator[tuple[str, str]]:
        """Yield the field and the message of each thing that can be seen to be wrong."""
        del world
        yield from ()

    def made_of(self, world: World) -> Json:
        """Return what stands for the code: where it changed, scores are not compared."""
        del world
        return None


class JudgedCriterion(AnyCriterion):
    """A measure that asks a model."""

    judged: ClassVar[bool] = True


# --- Baselines ------------------------------------------------------------------------------


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
evalset: ReaderRegistry[EvalSetReader] = ReaderRegistry("evalset format", "ci_eval.evalsets")
recording: ReaderRegistry[RecordingReader] = ReaderRegistry(
    "recording format", "ci_eval.recordings"
)
criterion: PluginRegistry[AnyCriterion] = PluginRegistry("criterion", "ci_eval.criteria")
baseline: PluginRegistry[BaselineStore] = PluginRegistry("baseline store", "ci_eval.baselines")
reporter: PluginRegistry[Reporter] = PluginRegistry("reporter", "ci_eval.reporters")

POINTS: tuple[PluginRegistry[Any], ...] = (agent, evalset, recording, criterion, baseline, reporter)
"""Every registry, in the order in which `list` shows them."""
