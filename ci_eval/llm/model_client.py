"""Questions to models, from the criterion that asks to the answer.

Each question passes these steps: the cassette, which may have the answer; the budget; the
provider's rate limits; and the call, which is retried after transient failures.
"""

import asyncio
import hashlib
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from ci_eval.forge.lineage import from_fork
from ci_eval.formats.reported_models import served
from ci_eval.llm.cassette import Cassette
from ci_eval.llm.judge_settings import Judging, Simulation, endpoint, identity
from ci_eval.llm.line_file import shard_file
from ci_eval.llm.model_calls import Budget, Caller, Meter
from ci_eval.llm.prompts import Prompts
from ci_eval.plugins.points import Judge, JudgedCriterion
from ci_eval.records.cases import EvalCase, Json
from ci_eval.records.errors import JudgeError, UsageError
from ci_eval.records.model_versions import ModelRole
from ci_eval.records.questions import Answer, Question, Reading, UnreadableError, Wording
from ci_eval.records.results import JudgeUsage, Score
from ci_eval.records.trials import Trace
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.path_checks import contained
from ci_eval.text.redact import Secrets, print_none_of
from ci_eval.text.yaml_files import read_text

_log = logging.getLogger(__name__)

T = TypeVar("T")

_NOTHING = JudgeUsage()
MAX_UNUSABLE = 10
"""Number of unusable answers, with none usable, after which a model is not asked again."""
MAX_ANSWER_CHARS = 200_000
"""Maximum length of an answer; a longer one counts as unreadable."""
_ENDED = {
    "length": "was cut off at its maximum length",
    "blocked": "was blocked by the provider's filters",
    "other": "ended before it was complete",
}


@asynccontextmanager
async def asking(
    judging: Judging, context: RunContext, spent: JudgeUsage = _NOTHING
) -> AsyncIterator["Asker"]:
    """Provide an `Asker`, which connects to a provider at the first question.

    `spent` is earlier usage that counts towards the limits of the run.

    Raises:
        UsageError: the cassette or `judge.env_file` cannot be read.

    """
    options = judging.options
    context = replace(context, env=environment(judging, context))
    cassette = _cassette(judging, context)
    async with AsyncExitStack() as stack:
        yield Asker(judging, context, cassette, stack, spent)
        if cassette and options.mode == "record":
            cassette.tidy()


def environment(judging: Judging, context: RunContext) -> Mapping[str, str]:
    """Return the environment plus the variables of `judge.env_file`, masked in the log.

    Raises:
        UsageError: the file cannot be read.

    """
    given = judging.options.env_file
    if given is None:
        return context.env
    import io

    from dotenv import dotenv_values

    text = read_text(contained(context.root, given), shown=context.shown(given))
    values = dotenv_values(stream=io.StringIO(text), interpolate=False)
    found = {name: value for name, value in values.items() if value}
    print_none_of(Secrets(found))
    return {**found, **context.env}


def check(
    judging: Judging,
    criteria: Sequence[JudgedCriterion],
    context: RunContext,
    *,
    simulation: Simulation | None = None,
) -> None:
    """Check, before a run, that the judges of `criteria` and the simulated user can be called.

    Raises:
        UsageError: a key is missing, or the cassette cannot be read.
        OSError: the cassette cannot be written.

    """
    env = environment(judging, context)  # refused before a cassette is begun
    cassette = _cassette(judging, context)
    mode = judging.options.mode
    if mode == "replay" or (mode == "auto" and cassette and not cassette.is_empty):
        return  # every answer may be recorded
    hint = "set it in the environment or with `judge.env_file`"
    if from_fork(context.env):
        hint = (
            "pull requests from forks get no secrets and need recorded answers: "
            "`judge: {mode: replay}`"
        )
    if simulation and (missing := judging.player(simulation).missing(env)):
        raise UsageError(f"the simulated user of scenarios lacks {missing}", hint=hint)
    for criterion in criteria:
        for judge in judging.judges(criterion):
            if missing := judge.missing(env):
                raise UsageError(f"the judge of {criterion.type_name} lacks {missing}", hint=hint)


def _cassette(judging: Judging, context: RunContext) -> Cassette | None:
    options = judging.options
    if options.mode == "off":
        return None
    written = options.mode != "replay"
    path = contained(context.root, options.cassette, written=written)
    own = shard_file(context.cassettes, options.cassette) if written else None
    shown = context.shown(options.cassette)
    cassette = Cassette(path, shown=shown, secrets=context.secrets, own=own)
    cassette.load()
    if written:
        cassette.begin()
    return cassette


@dataclass
class Asker:
    """Asks the questions of all criteria of a run."""

    _judging: Judging
    _context: RunContext
    _cassette: Cassette | None
    _stack: AsyncExitStack
    _spent: JudgeUsage = _NOTHING

    def __post_init__(self) -> None:
        options, spent = self._judging.options, self._spent
        self._callers: dict[str, Caller] = {}
        self._budget = Budget(
            options.max_calls, options.max_cost_usd, calls=spent.calls, cost_usd=spent.cost_usd
        )
        # Equal questions share one call.
        self._in_progress: dict[str, asyncio.Task[Answer]] = {}
        self._recorded: set[str] = set()
        self._unusable: Counter[tuple[str, str]] = Counter()
        """Number of unusable answers, by model and kind of question."""
        self._usable: set[tuple[str, str]] = set()

    def panel(self, criterion: JudgedCriterion) -> "JudgePanel":
        """Return the judges for one score by `criterion`."""
        judging = self._judging
        judges, samples = judging.judges(criterion), judging.samples(criterion)
        return JudgePanel(self, criterion.type_name, judging.prompts, judges, samples=samples)

    def player(self, simulation: Simulation, repeat: int) -> "JudgePanel":
        """Return the panel that plays a simulated user; `repeat` is the sample index, from 0.

        Each repeat of a case gets its own answers.
        """
        judge = self._judging.player(simulation)
        about = f"simulator/{simulation.simulator.type_name}"
        return JudgePanel(self, about, Prompts(kind="simulator"), [judge], sample=repeat)

    async def answer(
        self, judge: Judge, question: Question, meter: Meter, *, fresh: bool
    ) -> tuple[Answer, bool]:
        """Return the answer of `judge`, and whether it was recorded earlier.

        Raises:
            JudgeError: there is no answer.

        """
        length, most = len(question.prompt), self._judging.options.max_prompt_chars
        if length > most:
            message = (
                f"the question has {length:,} characters, more than the {most:,} that "
                "`judge.max_prompt_chars` allows"
            )
            raise JudgeError(message)
        if self._cassette is None:
            return await self._call(judge, question, meter), False
        key = key_of(judge, question)
        known = None if fresh and self._judging.options.mode != "replay" else self._replayed(key)
        if known:
            _log.debug("%s: answer from %s", question.model, self._cassette.shown)
            meter.add(JudgeUsage(cached=1))
            return known, True
        if self._judging.options.mode == "replay":
            raise JudgeError(f"the answer is not in {self._cassette.shown}")
        if key in self._in_progress:
            return await asyncio.shield(self._in_progress[key]), False
        task = asyncio.create_task(self._call(judge, question, meter))
        self._in_progress[key] = task
        try:
            answer = await task
        finally:
            task.cancel()
            del self._in_progress[key]
        return answer, False

    def keep(self, judge: Judge, question: Question, answer: Answer) -> None:
        """Record `answer`, readable or not, as the final answer to `question`."""
        # Equal questions got the same answer.
        if self._cassette is None or (key := key_of(judge, question)) in self._recorded:
            return
        self._recorded.add(key)
        # One character over the limit, so that a text that is too long stays so when replayed.
        kept = answer.model_copy(update={"text": answer.text[: MAX_ANSWER_CHARS + 1]})
        self._cassette.add(key, kept, about=question.about)

    def note_reading(self, judge: Judge, question: Question, *, usable: bool) -> None:
        """Count an answer to `question`, to give up on a judge whose answers are never usable."""
        place = str(judge.model), question.about
        if usable:
            self._usable.add(place)
        self._unusable[place] += not usable

    def _replayed(self, key: str) -> Answer | None:
        anew = self._judging.options.mode == "record" and key not in self._recorded
        return None if self._cassette is None or anew else self._cassette.get(key)

    async def _call(self, judge: Judge, question: Question, meter: Meter) -> Answer:
        place = str(judge.model), question.about
        if place not in self._usable and self._unusable[place] >= MAX_UNUSABLE:
            first = f"the first {MAX_UNUSABLE} answers of {judge.model}"
            raise JudgeError(f"not asked again, because none of {first} was usable")
        asked = replace(question, model=str(judge.model), settings=judge.settings)
        return await self._caller(judge).call(asked, meter, self._budget)

    def _caller(self, judge: Judge) -> "Caller":
        name = json.dumps(endpoint(judge), sort_keys=True)
        if name not in self._callers:
            self._callers[name] = Caller(judge, self._judging.options, self._context, self._stack)
        return self._callers[name]


@dataclass(frozen=True)
class Judged:
    """A judged criterion with the asker that it needs."""

    criterion: JudgedCriterion
    asker: Asker

    async def score(self, case: EvalCase, trace: Trace) -> Score:
        """Return the score of one trial, with the usage of its judges."""
        panel = self.asker.panel(self.criterion)
        score = await self.criterion.score(case, trace, panel)
        return score.model_copy(update={"judging": panel.usage})


class JudgePanel(Meter):
    """The judges of one score, or the player of one simulated user, with their usage."""

    def __init__(  # noqa: PLR0913  # what a panel is made of
        self,
        asker: Asker,
        about: str,
        prompts: Prompts,
        judges: Iterable[Judge],
        *,
        samples: int = 1,
        sample: int = 0,
    ) -> None:
        super().__init__()
        self._about = about
        self._prompts = prompts
        self._sample = sample
        self.judges = [JudgeSeat(asker, each, samples, prompts.kind, self) for each in judges]

    def question(
        self,
        prompt: str,
        schema: Mapping[str, Json],
        *,
        wording: Wording | None = None,
        **data: Json,
    ) -> Question:
        """Return the question: the template `prompt`, or `wording`, filled with `data`."""
        question = self._prompts.question(self._about, prompt, schema, data, wording)
        return replace(question, sample=self._sample)

    def note_agreement(self, share: float) -> None:
        """Count one decision of a jury; `share` is the share of pairs of judges that agreed."""
        self.add(JudgeUsage(agreements=1, agreement=share))


@dataclass(frozen=True)
class JudgeSeat:
    """One judge of a panel."""

    asker: Asker
    judge: Judge
    samples: int
    role: ModelRole
    meter: Meter

    @property
    def name(self) -> str:
        """Name of the model."""
        return str(self.judge.model)

    async def ask(
        self, question: Question, read: Callable[[str], T], *, fresh: bool = False
    ) -> Reading[T]:
        """Ask, again if the answer is unreadable, and return the result of `read`."""
        try:
            answer, cached = await self._answer(question, fresh=fresh)
            found, problem = _read(answer, read)
            if problem and not cached:
                again = replace(question, remark=problem)
                answer, _ = await self._answer(again, fresh=fresh)
                found, _ = _read(answer, read)
            if not cached:
                self.asker.note_reading(self.judge, question, usable=found.value is not None)
                self.asker.keep(self.judge, question, answer)
        except JudgeError as exc:
            return Reading(None, str(exc), failed=True)
        # An unreadable answer from the cache is asked for again.
        is_final = fresh or not cached
        self.meter.add(JudgeUsage(unreadable=int(is_final and found.value is None)))
        return found._replace(cached=cached)

    async def _answer(self, question: Question, *, fresh: bool) -> tuple[Answer, bool]:
        answer, cached = await self.asker.answer(self.judge, question, self.meter, fresh=fresh)
        models = served(self.role, self.judge.model, answer.model, answer.fingerprint)
        self.meter.add(JudgeUsage(models=models))
        return answer, cached


def _read(answer: Answer, read: Callable[[str], T]) -> tuple[Reading[T], str]:
    """Return the result of `read`, and why `answer` is unreadable, without quoting it."""
    problem = ""
    if answer.finish != "stop":
        problem = f"the answer {_ENDED[answer.finish]}"
    elif not answer.text.strip():
        problem = "the answer was empty"
    elif len(answer.text) > MAX_ANSWER_CHARS:
        problem = f"the answer had more than {MAX_ANSWER_CHARS:,} characters"
    if problem:
        return Reading(None, problem), problem
    try:
        return Reading(read(answer.text)), ""
    except UnreadableError as exc:
        return Reading(None, str(exc)), exc.problem


def key_of(judge: Judge, question: Question) -> str:
    """Return the key of an answer: a digest of everything that determines it."""
    asked = (question.about, question.instructions, question.text, question.schema)
    whole = json.dumps([identity(judge), *asked, question.sample, question.remark], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()[:32]
