"""All extension points.

A plugin is a frozen pydantic model whose fields are YAML keys.  It holds no resources.

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
engine     `ci_eval.engines`       `start(context, folders)`, `run(task, …)`
========== ======================= ==========================================
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol, Self

from pydantic import Field

from ci_eval.plugins.baseline_store import BaselineStore
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.plugins.engine import Engine
from ci_eval.plugins.plugin import Plugin, Reader, ReaderRegistry
from ci_eval.plugins.registry import Registry
from ci_eval.records.cases import Content, EvalCase, Invocation, Json
from ci_eval.records.evalset_facts import OpenedEvalSet
from ci_eval.records.findings import Report
from ci_eval.records.questions import Answer, Question, Seat, Wording
from ci_eval.records.results import Run, Score, TrialResult
from ci_eval.records.trials import Recording, Trace, Trial
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.trial_clock import TrialClock
from ci_eval.runtime.workers.user_function import digest_of


class Session(ABC):
    """One conversation with an agent."""

    @property
    def held(self) -> tuple[Invocation, ...] | None:
        """The whole conversation if it was recorded; `None` if it is yet to be held."""
        return None

    @property
    def memento(self) -> Json:
        """State with which another session can continue from here; `None` if unsupported."""
        return None

    @property
    def output(self) -> str:
        """The agent's stdout and stderr so far: the beginning and the end."""
        return ""

    def timed_by(self, clock: TrialClock) -> None:
        """Set the clock of the trial, to stop it while others keep the agent waiting."""
        del clock

    def complete(self) -> None:  # noqa: B027  # most sessions need not know
        """Note that the conversation was held to its end; `close` follows."""

    @abstractmethod
    async def send(self, message: Content) -> Invocation:
        """Send `message` and return the resulting invocation.

        If the agent stops to wait for input, the invocation lists the calls it waits for, and the
        next message answers them with function responses.  Cancellation means a timeout: whatever
        runs for this message is killed.

        Raises:
            TrialError: the invocation could not be observed.
            DisturbedError: another trial interrupted it; it may run again.

        """

    async def close(self) -> dict[str, Json] | None:
        """End the conversation and return the final session state, if any."""
        return None


class RunningAgent(Protocol):
    """A started agent; holds several conversations concurrently."""

    async def open(self, trial: Trial, *, alone: bool = False, memento: Json = None) -> Session:
        """Begin the conversation of `trial`; `alone` gives it a process of its own.

        `memento` comes from an earlier session of the same trial, which this one continues.

        Raises:
            TrialError: the conversation cannot begin.

        """


class Agent(Plugin):
    """An agent under test."""

    converses: ClassVar[bool] = True
    """Whether it needs a user to talk to; a recording does not."""
    is_portable: ClassVar[bool] = False
    """Whether its processes can run on other machines; false if it waits for a server."""
    takes_state: ClassVar[bool] = True
    """Whether a conversation can start from the `session_input.state` of its case."""
    model_option: ClassVar[str] = ""
    """The option with its model; empty if only traces name it."""

    @abstractmethod
    def start(self, context: RunContext) -> AbstractAsyncContextManager[RunningAgent]:
        """Start the agent; leaving the context stops all its processes."""

    def check(self, context: RunContext) -> Iterator[tuple[str, str]]:
        """Yield the field and the message of each problem that is visible before the run."""
        del context
        yield from ()

    def of_base(self) -> Self | None:
        """Return the agent of the base arm, given its options there; `None` if it has none."""
        return self if self.converses else None

    def missing(self, env: Mapping[str, str]) -> str:
        """Return variables, such as a key, that `env` lacks; the agent may work without them."""
        del env
        return ""


class EvalSetReader(Reader):
    """A format of evalset files."""

    @abstractmethod
    def read(self, path: Path, *, shown: str) -> OpenedEvalSet:
        """Read the whole file at `path`; messages call it `shown`.

        Raises:
            EvalSetError: the file is invalid; lists every problem.

        """


class RecordingReader(Reader):
    """A format of files that hold recorded conversations."""

    verbatim: ClassVar[bool] = True
    """Whether recordings hold the user's own words; `False` if they may be a model's input."""

    @abstractmethod
    def read(self, path: Path, *, shown: str) -> Iterator[Recording]:
        """Yield every conversation of the file at `path`; messages call it `shown`.

        Raises:
            UsageError: the file is invalid; lists every problem.

        """


class Criterion(AnyCriterion):
    """A measure computed from the case and the trace alone, synchronously."""

    @abstractmethod
    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Score `trace` on `case`."""


class Scorer(Protocol):
    """A started criterion; scores several trials concurrently."""

    async def score(self, case: EvalCase, trace: Trace) -> Score:
        """Score `trace` on `case`."""


class WorkerCriterion(AnyCriterion):
    """A measure in the user's own code, which runs in a separate process, never in ours."""

    @abstractmethod
    def start(self, context: RunContext) -> AbstractAsyncContextManager[Scorer]:
        """Start the scorer; leaving the context stops all its processes."""

    def check(self, context: RunContext) -> Iterator[tuple[str, str]]:
        """Yield the field and the message of each problem that is visible before the run."""
        del context
        yield from ()

    @property
    def module(self) -> str:
        """The module of the code; empty if there is none."""
        return ""

    def made_of(self, context: RunContext) -> Json:
        """Return a fingerprint of the code; if it changes, scores are not comparable."""
        return digest_of(self.module, context) if self.module else None


class Asked(NamedTuple):
    """The judge settings in a criterion's own options; `None` where unset."""

    model: str | None = None
    samples: int | None = None
    settings: Mapping[str, Json] = {}


class Panel(Protocol):
    """The judges of one score: one, or a jury."""

    @property
    def judges(self) -> Sequence[Seat]:
        """The judges, one seat each."""

    def question(
        self,
        prompt: str,
        schema: Mapping[str, Json],
        *,
        wording: Wording | None = None,
        **data: Json,
    ) -> Question:
        """Return a question: the template `prompt` of `templates/judge/`, filled with `data`.

        Every text in `data` is untrusted and gets fenced. `schema` is the JSON schema of the
        answer, empty for plain text. A `wording` replaces the text of the question; the template
        then gives only the instructions.
        """

    def note_agreement(self, share: float) -> None:
        """Record the share of a jury's pairs of judges that agreed on one item."""


class JudgedCriterion(AnyCriterion):
    """A measure that calls a model."""

    judged: ClassVar[bool] = True
    prompts: ClassVar[tuple[str, ...]] = ()
    """The templates in `templates/judge/` that it uses, without their suffix."""
    default_model: ClassVar[str] = "gemini-2.5-flash"
    """The model to ask if none is configured."""
    default_samples: ClassVar[int] = 5
    """The number of samples if none is configured."""
    steps: ClassVar[int] = 1
    """The number of consecutive questions per sample."""
    service: ClassVar[str] = ""
    """The registered name of the only judge that can answer; empty if any model can."""

    def asked(self) -> Asked:
        """Return the judge settings in its own options."""
        return Asked()

    @abstractmethod
    async def score(self, case: EvalCase, trace: Trace, panel: Panel) -> Score:
        """Score `trace` on `case` with the verdicts of `panel`."""


class JudgeClient(Protocol):
    """A connection to a model provider."""

    async def answer(self, question: Question) -> Answer:
        """Send the question to its model once and return the raw answer; cancellation ends it.

        Raises:
            JudgeError: there is no answer; says whether a retry may help.

        """


class Judge(Plugin):
    """A model that judges, and its provider."""

    model: str | None = Field(default=None, min_length=1)
    """Name of the model. Default: the model that the criterion names."""
    settings: Mapping[str, Json] = Field(default_factory=dict)
    """Call settings, named as in google-genai's `GenerateContentConfig`: `temperature`, `top_p`,
    `max_output_tokens`, `seed` …"""

    free: ClassVar[bool] = False
    """Whether calls cost nothing."""
    extra: ClassVar[str] = ""
    """The extra of ci-eval that must be installed; empty if none."""
    secrets: ClassVar[tuple[str, ...]] = ()
    """The environment variables in which workflows usually pass its credentials."""

    def script(self) -> Json:
        """Return the options that change its answers, besides model and settings."""
        return None

    @classmethod
    def recognises(cls, model: str) -> bool:
        """Return True if a model of this name certainly belongs to this provider."""
        del model
        return False

    def serves(self, model: str) -> bool:
        """Return True if it can certainly reach `model`, given its options."""
        return self.recognises(model)

    def missing(self, env: Mapping[str, str]) -> str:
        """Return the missing credentials and the like; empty if `env` has everything."""
        del env
        return ""

    @abstractmethod
    def start(self, context: RunContext) -> AbstractAsyncContextManager[JudgeClient]:
        """Connect to the provider; leaving the context closes the connection."""


class Simulator(Plugin):
    """A simulated user for scenarios; it knows only the conversation so far."""

    model: str | None = Field(default=None, min_length=1)
    """Name of the model. Default: the model of `judge:`, else `gemini-2.5-flash`."""
    settings: Mapping[str, Json] = Field(default_factory=dict)
    """Call settings, named as in google-genai's `GenerateContentConfig`: `temperature`, `top_p`,
    `thinking_config` … The settings of `judge:` are not used."""

    default_model: ClassVar[str] = "gemini-2.5-flash"
    """The model to ask if none is configured."""
    prompts: ClassVar[tuple[str, ...]] = ()
    """The templates in `templates/simulator/` that it uses, without their suffix."""
    steps: ClassVar[int] = 1
    """The maximum number of questions per message."""

    def options(self) -> dict[str, Json]:
        """Return the options that decide its messages, besides model and settings."""
        return self.model_dump(mode="json", exclude={"model", "settings"})

    def call_settings(self) -> Mapping[str, Json]:
        """Return the call settings, given its options."""
        return self.settings

    @abstractmethod
    def limit(self, case: EvalCase) -> int | None:
        """Return the maximum number of user messages in `case`; `None` for no limit."""

    def faults(self, case: EvalCase) -> Iterator[str]:
        """Yield the reasons why the user of `case` cannot be simulated."""
        del case
        yield from ()

    @abstractmethod
    async def next_message(
        self, case: EvalCase, so_far: Sequence[Invocation], panel: Panel
    ) -> Content | None:
        """Return the user's next message after `so_far`; `None` to end the conversation.

        Never called for more than `limit` messages.

        Raises:
            TrialError: of the kind `simulator`; no message could be generated.

        """


class Reporter(Plugin):
    """A document rendered from a report; a pure function."""

    file: ClassVar[str]
    """The file name of the document in the output directory."""
    optional: ClassVar[bool] = False
    """Whether it is written only if `reports` names it."""

    def prepared(self, context: RunContext) -> Self:
        """Return a copy that has read the files its options name; called before the run starts.

        Raises:
            UsageError: one of these files cannot be used.

        """
        del context
        return self

    @abstractmethod
    def render(self, report: Report, results: Callable[[], Iterator[TrialResult]]) -> Iterator[str]:
        """Yield the document in pieces."""

    def of_run(self, report: Report, run: Run, before: Run | None = None) -> Iterator[str]:
        """Yield the document of a run; override to read its conversations, too.

        `before` holds the trials without the change: of the merge base in the same job, or of the
        other run of a comparison.
        """
        del before
        return self.render(report, run.results)


agent = Registry[Agent]("agent type", "ci_eval.agents", "agent")
evalset = ReaderRegistry[EvalSetReader]("evalset format", "ci_eval.evalsets", "evalset")
recording = ReaderRegistry[RecordingReader]("recording format", "ci_eval.recordings", "recording")
criterion = Registry[AnyCriterion]("criterion", "ci_eval.criteria", "criterion")
judge = Registry[Judge]("judge", "ci_eval.judges", "judge")
simulator = Registry[Simulator]("simulator", "ci_eval.simulators", "simulator")
baseline = Registry[BaselineStore]("baseline store", "ci_eval.baselines", "baseline")
reporter = Registry[Reporter]("reporter", "ci_eval.reporters", "reporter")
engine = Registry[Engine]("engine", "ci_eval.engines", "engine")

POINTS = (agent, evalset, recording, criterion, judge, simulator, baseline, reporter, engine)
"""Every registry, in the order of `ci-eval list`."""
