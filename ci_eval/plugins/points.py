"""Every extension point, on one page.

A plugin is a frozen pydantic model whose fields are its YAML keys and whose docstrings are
its reference.  It is inert: what needs a life (a process, a client) is opened from it and
closed again.  Put it in a module of the package named below, decorate it, and it is found.

========== ======================= ==========================================
point      package                 verb
========== ======================= ==========================================
agent      `ci_eval.agents`        `start(context)`, `open(trial)`, `send(…)`
evalset    `ci_eval.evalsets`      `sniff(head)`, `read(path, …)`
recording  `ci_eval.recordings`    `sniff(head)`, `read(path, …)`
criterion  `ci_eval.criteria`      `score(case, trace)`, `start(context)`
judge      `ci_eval.judges`        `start(context)`, `answer(question)`
simulator  `ci_eval.simulators`    `next_message(case, so_far, panel)`
baseline   `ci_eval.baselines`     `load(lineage, …)`, `save(run, …)`
reporter   `ci_eval.reporters`     `render(report, results)`
========== ======================= ==========================================
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, Self

from pydantic import Field

from ci_eval.plugins.baseline_store import BaselineStore
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.plugins.plugin import Plugin, PluginRegistry, Reader, ReaderRegistry
from ci_eval.records.evalset_facts import OpenedEvalSet
from ci_eval.records.findings import Report
from ci_eval.records.model import Content, EvalCase, Invocation, Json
from ci_eval.records.questions import Answer, Question, Seat, Wording
from ci_eval.records.results import Score, TrialResult
from ci_eval.records.trials import Recording, Trace, Trial
from ci_eval.runtime.context import RunContext

# --- Agents ---------------------------------------------------------------------------------


class Session(ABC):
    """One conversation with an agent."""

    @property
    def held(self) -> tuple[Invocation, ...] | None:
        """The whole conversation, where it already took place; `None` where it is to be held."""
        return None

    @property
    def memento(self) -> Json:
        """What it takes to go on from here in another session; `None` where nothing can."""
        return None

    @property
    def output(self) -> str:
        """What the agent has written to its standard streams: the beginning and the end."""
        return ""

    @abstractmethod
    async def send(self, message: Content) -> Invocation:
        """Return what the agent did on `message`.

        Where it stopped to be answered, the invocation says what it waits for, and the next
        message holds the answers, as function responses.  Being cancelled means that the time
        is up: whatever runs for this message is killed.

        Raises:
            TrialError: it could not be observed.
            DisturbedError: it was cut off for another trial's sake, and may run again.

        """

    async def close(self) -> dict[str, Json] | None:
        """End the conversation and return the final session state, if there is one."""
        return None


class RunningAgent(Protocol):
    """An agent that is ready for conversations, several at a time."""

    async def open(self, trial: Trial, *, alone: bool = False, memento: Json = None) -> Session:
        """Begin the conversation of `trial`; `alone` keeps all others away from its process.

        `memento` is that of a session of the same trial, which is gone on with.

        Raises:
            TrialError: it cannot begin.

        """


class Agent(Plugin):
    """Something that can be asked."""

    converses: ClassVar[bool] = True
    """Whether somebody has to talk to it; what took place already is only read."""
    takes_state: ClassVar[bool] = True
    """Whether a conversation can begin with the `session_input.state` of its case."""

    @abstractmethod
    def start(self, context: RunContext) -> AbstractAsyncContextManager[RunningAgent]:
        """Start the agent; leaving the context stops all that belongs to it."""

    def check(self, context: RunContext) -> Iterator[tuple[str, str]]:
        """Yield the field and the message of each thing that can be seen to be wrong."""
        del context
        yield from ()

    def missing(self, env: Mapping[str, str]) -> str:
        """Say what of ours, such as a key, it is to get and `env` lacks; nothing where it has all.

        It may do without.
        """
        del env
        return ""


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
    def start(self, context: RunContext) -> AbstractAsyncContextManager[Scorer]:
        """Start what scores; leaving the context stops all that belongs to it."""

    def check(self, context: RunContext) -> Iterator[tuple[str, str]]:
        """Yield the field and the message of each thing that can be seen to be wrong."""
        del context
        yield from ()

    def made_of(self, context: RunContext) -> Json:
        """Return what stands for the code: where it changed, scores are not compared."""
        del context
        return None


class Asked(NamedTuple):
    """What a judged criterion says itself of whom it asks; `None` where it leaves that open."""

    model: str | None = None
    samples: int | None = None
    settings: Mapping[str, Json] = {}


class Panel(Protocol):
    """The judges of one score: one, or a jury."""

    @property
    def judges(self) -> Sequence[Seat]:
        """Who is asked."""

    def question(
        self,
        prompt: str,
        schema: Mapping[str, Json],
        *,
        wording: Wording | None = None,
        **data: Json,
    ) -> Question:
        """Return the question that the file `prompt` of `templates/judge/` makes of `data`.

        Every text in `data` is somebody else's: it is fenced. `schema` is the JSON schema of
        the answer, empty where it is plain text. With a `wording` the question is put so, and the
        prompt gives the instructions alone.
        """

    def note_agreement(self, share: float) -> None:
        """Note which share of a jury's pairs of judges agreed on one thing."""


class JudgedCriterion(AnyCriterion):
    """A measure that asks a model."""

    judged: ClassVar[bool] = True
    prompts: ClassVar[tuple[str, ...]] = ()
    """The files of `templates/judge/` that it asks with, without their suffix."""
    default_model: ClassVar[str] = "gemini-2.5-flash"
    """Who is asked where nobody says."""
    default_samples: ClassVar[int] = 5
    """How often, where nobody says."""
    steps: ClassVar[int] = 1
    """How many questions one after the other an answer takes."""
    service: ClassVar[str] = ""
    """The judge, by its registered name, that alone can answer; empty where any model can."""

    def asked(self) -> Asked:
        """Return what its own options say of whom it asks."""
        return Asked()

    @abstractmethod
    async def score(self, case: EvalCase, trace: Trace, panel: Panel) -> Score:
        """Score what `trace` shows on `case`, as `panel` judges it."""


# --- Judges ---------------------------------------------------------------------------------


class JudgeClient(Protocol):
    """A connection to a provider of models."""

    async def answer(self, question: Question) -> Answer:
        """Ask the question's model once, and return the answer, whatever it is worth.

        Being cancelled ends the call.

        Raises:
            JudgeError: there is no answer; says whether there may be one later.

        """


class Judge(Plugin):
    """A model that can be asked, and how it is reached."""

    model: str | None = Field(default=None, min_length=1)
    """The model's name; left out, the one that a criterion names."""
    settings: Mapping[str, Json] = Field(default_factory=dict)
    """Settings of a call, as google-genai's `GenerateContentConfig` names them: `temperature`,
    `top_p`, `max_output_tokens`, `seed` …"""

    free: ClassVar[bool] = False
    """Whether asking it costs nothing."""
    extra: ClassVar[str] = ""
    """The extra of ci-eval that it needs to be installed; empty where it needs none."""
    secrets: ClassVar[tuple[str, ...]] = ()
    """The environment variables with which a workflow usually hands a key on."""

    def script(self) -> Json:
        """Return what, beside model and settings, decides its answers."""
        return None

    @classmethod
    def recognises(cls, model: str) -> bool:
        """Say whether a model of this name is certainly one of this provider's."""
        del model
        return False

    def serves(self, model: str) -> bool:
        """Say whether `model` can be reached by it for certain, as it is set."""
        return self.recognises(model)

    def missing(self, env: Mapping[str, str]) -> str:
        """Say what, such as a key, the environment lacks; nothing where it has all."""
        del env
        return ""

    @abstractmethod
    def start(self, context: RunContext) -> AbstractAsyncContextManager[JudgeClient]:
        """Connect, whatever the model; leaving the context closes the connection."""


# --- Simulators -----------------------------------------------------------------------------


class Simulator(Plugin):
    """Plays the user of a scenario; what was said so far is all that it knows."""

    model: str | None = Field(default=None, min_length=1)
    """The model that is asked; left out, that of `judge:`, or else `gemini-2.5-flash`."""
    settings: Mapping[str, Json] = Field(default_factory=dict)
    """Settings of a call, as google-genai's `GenerateContentConfig` names them: `temperature`,
    `top_p`, `thinking_config` … Those of `judge:` are not used."""

    default_model: ClassVar[str] = "gemini-2.5-flash"
    """Who is asked where nobody says."""
    prompts: ClassVar[tuple[str, ...]] = ()
    """The files of `templates/simulator/` that it asks with, without their suffix."""
    steps: ClassVar[int] = 1
    """How many questions a message takes, at most."""

    def options(self) -> dict[str, Json]:
        """Return what, beside who is asked, decides what it says."""
        return self.model_dump(mode="json", exclude={"model", "settings"})

    def call_settings(self) -> Mapping[str, Json]:
        """Return the settings of a call, as the options have them."""
        return self.settings

    @abstractmethod
    def limit(self, case: EvalCase) -> int | None:
        """Return how many messages the user of `case` sends at most; `None` for no limit."""

    def faults(self, case: EvalCase) -> Iterator[str]:
        """Yield why the user of `case` cannot be played."""
        del case
        yield from ()

    @abstractmethod
    async def next_message(
        self, case: EvalCase, so_far: Sequence[Invocation], panel: Panel
    ) -> Content | None:
        """Return what the user says after `so_far`; `None` where there is nothing left to say.

        It is not asked for more than `limit` messages.

        Raises:
            TrialError: of the kind `simulator`; nobody knows what the user would say.

        """


# --- Reporters ------------------------------------------------------------------------------


class Reporter(Plugin):
    """A document made of a report: a pure function."""

    file: ClassVar[str]
    """The name of the document in the output folder."""

    def prepared(self, context: RunContext) -> Self:
        """Return itself with what its options name at hand, before anything is run.

        Raises:
            UsageError: a file that they name cannot be used.

        """
        del context
        return self

    @abstractmethod
    def render(self, report: Report, results: Callable[[], Iterator[TrialResult]]) -> Iterator[str]:
        """Yield the document in pieces."""


agent: PluginRegistry[Agent] = PluginRegistry("agent type", "ci_eval.agents")
evalset: ReaderRegistry[EvalSetReader] = ReaderRegistry("evalset format", "ci_eval.evalsets")
recording: ReaderRegistry[RecordingReader] = ReaderRegistry(
    "recording format", "ci_eval.recordings"
)
criterion: PluginRegistry[AnyCriterion] = PluginRegistry("criterion", "ci_eval.criteria")
judge: PluginRegistry[Judge] = PluginRegistry("judge", "ci_eval.judges")
simulator: PluginRegistry[Simulator] = PluginRegistry("simulator", "ci_eval.simulators")
baseline: PluginRegistry[BaselineStore] = PluginRegistry("baseline store", "ci_eval.baselines")
reporter: PluginRegistry[Reporter] = PluginRegistry("reporter", "ci_eval.reporters")

POINTS: tuple[PluginRegistry[Any], ...] = (
    agent,
    evalset,
    recording,
    criterion,
    judge,
    simulator,
    baseline,
    reporter,
)
"""Every registry, in the order in which `list` shows them."""
